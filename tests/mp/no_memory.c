/* no_memory.c - making communicators while one rank runs out of memory: each allocation of the last rank
 * fails in turn, and all ranks succeed, or none does and all can go on. Needs malloc of its own: not for sanitizers,
 * which have theirs (exit status 77). With an argument: only the case of that name. */
#include "check.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define MOST 200 /* allocations of one call */
#define WARM_UP 8

static int rank, size;
static _Thread_local int left = -1; /* allocations until one fails; negative: none will */
static int failures;

static int fails(void)
{
    if (left < 0 || left-- > 0) return 0;
    failures++;
    errno = ENOMEM;
    return 1;
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const int has_malloc = 0;
#else
static const int has_malloc = 1;

#define VISIBLE __attribute__((visibility("default"))) /* to the library */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

VISIBLE void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

VISIBLE void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

VISIBLE void *realloc(void *block, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(block, bytes);
}
#endif

/* ---- Calls: each frees what it made -------------------------------------------------------------------------------
 */

static int dup(void)
{
    ncclx_comm_t made;
    int code = ncclx_comm_dup(NCCLX_COMM_WORLD, &made);
    left = -1;
    if (!code) OK(ncclx_comm_free(&made));
    return code;
}

static int split(void)
{
    ncclx_comm_t made;
    int code = ncclx_comm_split(NCCLX_COMM_WORLD, 0, -rank, &made);
    left = -1;
    if (!code) OK(ncclx_comm_free(&made));
    return code;
}

static ncclx_group_t everyone;

static int create_group(void)
{
    ncclx_comm_t made;
    int code = ncclx_comm_create_group(NCCLX_COMM_WORLD, everyone, 3, &made);
    left = -1;
    if (!code) OK(ncclx_comm_free(&made));
    return code;
}

static const struct {
    const char *name;
    int (*call)(void);
} cases[] = {{"dup", dup}, {"split", split}, {"create_group", create_group}};

/* The ranks agree by collectives on COMM_WORLD, which have kept their memory from earlier calls. So long as an allocation
 * failed, the next one is tried. */
static void exhaust(const char *name, int (*call)(void))
{
    for (int i = 0; i < WARM_UP; i++) OK(call());
    for (int n = 0; n < MOST; n++) {
        uint64_t codes[2], highest[2];
        int before = failures;
        left = rank == size - 1 ? n : -1;
        codes[0] = (uint64_t)call();
        left = -1;
        codes[1] = failures > before;
        OK(ncclx_coll_allreduce(codes, highest, 2, NCCLX_UINT64, NCCLX_MAX, NCCLX_COMM_WORLD));
        if (highest[0] != codes[0] || (codes[0] && codes[0] != NCCLX_ERR_NO_MEM)) {
            fprintf(stderr, "%s, allocation %d: rank %d has %s (%s), another one %s\n", name, n, rank,
                    ncclx_error_string((int)codes[0]), ncclx_error_detail(), ncclx_error_string((int)highest[0]));
            check_failed(__FILE__, __LINE__, name);
        }
        if (highest[1]) continue;
        CHECK(n > 0);
        return;
    }
    check_failed(__FILE__, __LINE__, "too many allocations");
}

/* An argument that is wrong on one rank only. */
static void wrong_on_one(void)
{
    ncclx_comm_t made = NCCLX_COMM_NULL;
    int odd = rank == size - 1, code = ncclx_comm_create_group(NCCLX_COMM_WORLD, everyone, 3, odd ? NULL : &made);
    CHECK(code == NCCLX_ERR_ARG && made == NCCLX_COMM_NULL);
}

int main(int argc, char **argv)
{
    if (!has_malloc) return 77;
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_comm_group(NCCLX_COMM_WORLD, &everyone));
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (argc < 2 || !strcmp(argv[1], cases[i].name)) exhaust(cases[i].name, cases[i].call);
    wrong_on_one();
    OK(ncclx_group_free(&everyone));
    OK(ncclx_finalize());
    return 0;
}
