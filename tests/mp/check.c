/* check.c - NCCLX_CHECK=1: ranks that do not call the same are told, all of them, what two of them called. Two to
 * sixteen ranks, with NCCLX_ERRORS=return. The last rank is the one that goes its own way; afterwards all go on
 * together. With an argument, other things:
 *
 *     check absent    the last rank makes no call: NCCLX_TIMEOUT ends those of the others
 *     check fatal     an error handler ends the job
 *     check finalize  the last rank finalizes while the others call
 */
#include "check.h"

#include <string.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD
#define DOUBLES 64

static int rank, size;
static double send[DOUBLES * 16], recv[DOUBLES * 16];
static unsigned long long calls; /* collective ones on WORLD so far, comm_free and the like excepted */

static int odd(void)
{
    return rank == size - 1;
}

/* All ranks hear the same sentence. */
static void told(int code, const char *of_last, const char *of_first, const char *where, unsigned long long number)
{
    char text[512];
    if (!strstr(of_last, "wrong arguments")) check_code(__FILE__, __LINE__, of_last, code, NCCLX_ERR_MISMATCH);
    snprintf(text, sizeof text, "rank %d called %s, rank 0 called %s as collective %llu on %s", size - 1, of_last,
             of_first, number, where);
    if (strcmp(ncclx_error_detail(), text)) {
        fprintf(stderr, "rank %d: expected: %s\n     got: %s\n", rank, text, ncclx_error_detail());
        check_failed(__FILE__, __LINE__, of_last);
    }
}

static void told_on_world(int code, const char *of_last, const char *of_first)
{
    told(code, of_last, of_first, "COMM_WORLD", ++calls);
}

/* The next call after a mismatch is a good one. */
static void together(void)
{
    double one = 1, sum = 0;
    OK(ncclx_coll_allreduce(&one, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, WORLD));
    CHECK(sum == size);
    calls++;
}

static void functions(void)
{
    int code = odd() ? ncclx_coll_allreduce(send, recv, 5, NCCLX_FLOAT, NCCLX_SUM, WORLD)
                     : ncclx_coll_bcast(recv, 5, NCCLX_FLOAT, 0, WORLD);
    told_on_world(code, "allreduce(count 5, float, sum)", "bcast(count 5, float, root 0)");
    together();
    code = odd() ? ncclx_coll_barrier(WORLD) : ncclx_coll_allgather(send, recv, 1, NCCLX_DOUBLE, WORLD);
    told_on_world(code, "barrier()", "allgather(count 1, double)");
    together();
}

static void arguments(void)
{
    int code = ncclx_coll_allreduce(send, recv, odd() ? 6 : 5, NCCLX_DOUBLE, NCCLX_MAX, WORLD);
    told_on_world(code, "allreduce(count 6, double, max)", "allreduce(count 5, double, max)");
    code =
        ncclx_coll_alltoall(send, recv, odd() ? 2 : 1, odd() ? NCCLX_INT32 : NCCLX_UINT64, WORLD); /* the same bytes */
    told_on_world(code, "alltoall(count 2, int32)", "alltoall(count 1, uint64)");
    code = ncclx_coll_reduce(send, recv, 3, NCCLX_INT32, odd() ? NCCLX_BOR : NCCLX_SUM, 0, WORLD);
    told_on_world(code, "reduce(count 3, int32, bor, root 0)", "reduce(count 3, int32, sum, root 0)");
    code = ncclx_coll_bcast(recv, 0, NCCLX_BYTE, odd() ? 1 : 0, WORLD);
    told_on_world(code, "bcast(count 0, uint8, root 1)", "bcast(count 0, uint8, root 0)");
    code = ncclx_coll_allreduce(odd() ? NCCLX_IN_PLACE : send, recv, 4, NCCLX_FLOAT, NCCLX_MIN, WORLD);
    told_on_world(code, "allreduce(count 4, float, min, in place)", "allreduce(count 4, float, min)");
    together();
}

/* Lists that have to be the same; the sentence holds a checksum of each. */
static void lists_of_counts(void)
{
    size_t counts[16];
    for (int i = 0; i < size; i++) counts[i] = (size_t)i + 1;
    OK(ncclx_coll_reduce_scatter(send, recv, counts, NCCLX_INT32, NCCLX_SUM, WORLD));
    OK(ncclx_coll_allgatherv(send, counts[rank], recv, counts, NULL, NCCLX_INT32, WORLD));
    if (odd()) counts[0] = 2, counts[1] = 1;
    char text[64];
    snprintf(text, sizeof text, "(counts of %d in all, checksum ", size * (size + 1) / 2);
    FAILS(ncclx_coll_reduce_scatter(send, recv, counts, NCCLX_INT32, NCCLX_SUM, WORLD), NCCLX_ERR_MISMATCH);
    CHECK(strstr(ncclx_error_detail(), text) &&
          strstr(ncclx_error_detail(), ", int32, sum), rank 0 called reduce_scatter("));
    FAILS(ncclx_coll_allgatherv(send, counts[rank], recv, counts, NULL, NCCLX_INT32, WORLD), NCCLX_ERR_MISMATCH);
    calls += 4;
    int code = odd() ? ncclx_coll_gatherv(send, 1, recv, counts, NULL, NCCLX_INT32, 0, WORLD)
                     : ncclx_coll_scan(send, recv, 3, NCCLX_DOUBLE, NCCLX_PROD, WORLD);
    told_on_world(code, "gatherv(int32, root 0)", "scan(count 3, double, prod)");
    ncclx_request_t request = NCCLX_REQUEST_NULL;
    code = odd() ? ncclx_coll_barrier_init(WORLD, &request) : ncclx_coll_ibarrier(WORLD, &request);
    told_on_world(code, "barrier_init()", "ibarrier()");
    together();
}

static void differs(int code, const char *text)
{
    check_code(__FILE__, __LINE__, text, code, NCCLX_ERR_MISMATCH);
    if (!strcmp(ncclx_error_detail(), text)) return;
    fprintf(stderr, "rank %d: expected: %s\n     got: %s\n", rank, text, ncclx_error_detail());
    check_failed(__FILE__, __LINE__, text);
}

/* Counts that only two ranks know: all hear of it, whoever has more or nothing at all, and in every form. */
static void counts_of_pairs(void)
{
    static const size_t wrong[] = {2, 4, 0};
    size_t sends[16], expects[16];
    ncclx_request_t request = NCCLX_REQUEST_NULL;
    char text[256];
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        for (int j = 0; j < size; j++) sends[j] = expects[j] = 3;
        OK(ncclx_coll_alltoallv(send, sends, NULL, recv, expects, NULL, NCCLX_INT32, WORLD));
        OK(ncclx_coll_gatherv(send, 3, recv, expects, NULL, NCCLX_INT32, 0, WORLD));
        OK(ncclx_coll_scatterv(send, sends, NULL, recv, 3, NCCLX_INT32, 0, WORLD));
        calls += 3;
        if (odd()) sends[0] = wrong[i];
        snprintf(text, sizeof text,
                 "rank %d sends %zu elements to rank 0, which expects 3, in alltoallv(int32) as collective %llu on "
                 "COMM_WORLD",
                 size - 1, wrong[i], ++calls);
        differs(ncclx_coll_alltoallv(send, sends, NULL, recv, expects, NULL, NCCLX_INT32, WORLD), text);
        snprintf(text, sizeof text,
                 "rank %d sends %zu elements to rank 0, which expects 3, in ialltoallv(int32) as collective %llu on "
                 "COMM_WORLD",
                 size - 1, wrong[i], ++calls);
        differs(ncclx_coll_ialltoallv(send, sends, NULL, recv, expects, NULL, NCCLX_INT32, WORLD, &request), text);
        snprintf(text, sizeof text,
                 "rank %d sends %zu elements to rank 0, which expects 3, in gatherv(int32, root 0) as collective %llu "
                 "on COMM_WORLD",
                 size - 1, wrong[i], ++calls);
        differs(ncclx_coll_gatherv(send, odd() ? wrong[i] : 3, recv, expects, NULL, NCCLX_INT32, 0, WORLD), text);
        snprintf(text, sizeof text,
                 "rank 0 sends 3 elements to rank %d, which expects %zu, in scatterv_init(int32, root 0) as collective "
                 "%llu on "
                 "COMM_WORLD",
                 size - 1, wrong[i], ++calls);
        if (odd()) sends[0] = 3;
        differs(
            ncclx_coll_scatterv_init(send, sends, NULL, recv, odd() ? wrong[i] : 3, NCCLX_INT32, 0, WORLD, &request),
            text);
        CHECK(request == NCCLX_REQUEST_NULL);
        if (odd()) expects[0] = wrong[i];
        snprintf(text, sizeof text,
                 "rank %d sends %zu elements to rank 0, which expects 3, in alltoallv(int32, in place) as collective "
                 "%llu on COMM_WORLD",
                 size - 1, wrong[i], ++calls);
        differs(ncclx_coll_alltoallv(NCCLX_IN_PLACE, NULL, NULL, recv, expects, NULL, NCCLX_INT32, WORLD), text);
    }
    together();
}

/* The input of a root may be in place: no mismatch. */
static void what_may_differ(void)
{
    OK(ncclx_coll_reduce(rank ? send : NCCLX_IN_PLACE, recv, 3, NCCLX_DOUBLE, NCCLX_SUM, 0, WORLD));
    calls++;
}

static void add(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    const double *a = in;
    double *b = inout;
    (void)type, (void)user;
    for (size_t i = 0; i < count; i++) b[i] += a[i];
}

static void own_operations(void)
{
    ncclx_op_t same, different;
    OK(ncclx_op_create(add, 1, NULL, &same));
    OK(ncclx_op_create(add, !odd(), NULL, &different));
    OK(ncclx_coll_allreduce(send, recv, 2, NCCLX_DOUBLE, same, WORLD));
    calls++;
    told_on_world(ncclx_coll_allreduce(send, recv, 2, NCCLX_DOUBLE, different, WORLD),
                  "allreduce(count 2, double, a user's operation that is not commutative)",
                  "allreduce(count 2, double, a user's commutative operation)");
    OK(ncclx_op_free(&same));
    OK(ncclx_op_free(&different));
}

static void requests(void)
{
    ncclx_request_t request = NCCLX_REQUEST_NULL;
    int code =
        odd() ? ncclx_coll_ibarrier(WORLD, &request) : ncclx_coll_ibcast(recv, 7, NCCLX_INT8, 1, WORLD, &request);
    told_on_world(code, "ibarrier()", "ibcast(count 7, int8, root 1)");
    CHECK(request == NCCLX_REQUEST_NULL);
    code = odd() ? ncclx_coll_ibarrier(WORLD, &request) : ncclx_coll_barrier(WORLD);
    told_on_world(code, "ibarrier()", "barrier()");
    CHECK(request == NCCLX_REQUEST_NULL);
    OK(ncclx_coll_iallreduce(send, recv, 2, NCCLX_DOUBLE, NCCLX_SUM, WORLD, &request));
    OK(ncclx_wait(&request, NCCLX_STATUS_IGNORE));
    calls++;
    together();
}

/* A rank whose own arguments are wrong keeps its own error; the others hear of it. */
static void wrong_arguments(void)
{
    int code = ncclx_coll_bcast(recv, 1, NCCLX_INT8, odd() ? size : 0, WORLD);
    char last[128];
    calls++;
    check_code(__FILE__, __LINE__, "root outside", code, NCCLX_ERR_ROOT);
    if (odd()) {
        CHECK(strstr(ncclx_error_detail(), "root"));
    } else {
        snprintf(last, sizeof last, "bcast(count 1, int8, root %d) with wrong arguments (%s)", size,
                 ncclx_error_string(NCCLX_ERR_ROOT));
        told(code, last, "bcast(count 1, int8, root 0)", "COMM_WORLD", calls);
    }
    code = ncclx_coll_allreduce(send, recv, 1, NCCLX_DOUBLE, odd() ? (ncclx_op_t)(void *)recv : NCCLX_SUM, WORLD);
    calls++;
    check_code(__FILE__, __LINE__, "no operation", code, NCCLX_ERR_OP);
    together();
}

static void communicators(void)
{
    ncclx_comm_t half, copy = NCCLX_COMM_NULL;
    int members;
    told_on_world(odd() ? ncclx_comm_split(WORLD, 0, 0, &copy) : ncclx_comm_dup(WORLD, &copy), "comm_split()",
                  "comm_dup()");
    CHECK(copy == NCCLX_COMM_NULL);
    OK(ncclx_comm_split(WORLD, rank % 2, 0, &half)); /* colors may differ */
    OK(ncclx_comm_dup(WORLD, &copy));
    OK(ncclx_comm_set_name(copy, "the copy"));
    calls += 2;
    told(odd() ? ncclx_coll_barrier(copy) : ncclx_coll_bcast(recv, 1, NCCLX_INT8, 0, copy), "barrier()",
         "bcast(count 1, int8, root 0)", "the copy", 1);
    OK(ncclx_coll_barrier(copy));
    OK(ncclx_comm_size(half, &members));
    for (int i = 0; i < members; i++)
        OK(ncclx_coll_bcast(recv, 1, NCCLX_INT8, i, half)); /* so many calls on each half */
    OK(ncclx_comm_free(&copy));
    OK(ncclx_comm_free(&half));
    together();
}

static int make_window(const char *slots, ncclx_win_t *win)
{
    static char memory[64];
    ncclx_info_t info;
    OK(ncclx_info_create(&info));
    OK(ncclx_info_set(info, "ncclx_signal_slots", slots));
    int code = ncclx_win_create(memory, sizeof memory, odd() ? 4 : 8, info, WORLD, win); /* units may differ */
    OK(ncclx_info_free(&info));
    return code;
}

static void windows(void)
{
    ncclx_win_t win = NCCLX_WIN_NULL;
    void *base;
    told_on_world(make_window(odd() ? "3" : "4", &win), "win_create(3 signal slots)", "win_create(4 signal slots)");
    int code = odd() ? ncclx_win_allocate(8, 8, NCCLX_INFO_NULL, WORLD, &base, &win)
                     : ncclx_win_create(recv, 8, 8, NCCLX_INFO_NULL, WORLD, &win);
    told_on_world(code, "win_allocate(64 signal slots)", "win_create(64 signal slots)");
    CHECK(win == NCCLX_WIN_NULL);
    code = ncclx_win_allocate(8, odd() ? 0 : 8, NCCLX_INFO_NULL, WORLD, &base, &win);
    calls++;
    check_code(__FILE__, __LINE__, "no unit", code, NCCLX_ERR_ARG);
    OK(make_window("4", &win));
    calls++;
    OK(ncclx_win_fence(win));
    ncclx_win_t kept = win;
    told(odd() ? ncclx_win_free(&win) : ncclx_win_fence(win), "win_free()", "win_fence()", "a window", 2);
    CHECK(win == kept);
    FAILS(ncclx_win_put(send, 9, NCCLX_INT64, 0, 0, win), NCCLX_ERR_RANGE); /* always checked */
    OK(ncclx_win_fence(win));
    OK(ncclx_win_free(&win));
    together();
}

/* ---- Other things ------------------------------------------------------------------------------------------------ */

/* The neighbour of the rank that is missing can name it, the others at least some ranks with it among them. */
static void absent(void)
{
    char name[32];
    snprintf(name, sizeof name, "rank %d has not made this call", size - 1);
    if (odd()) {
        for (int found = 0, left = size - 1; left; left -= found) {
            OK(ncclx_iprobe(NCCLX_ANY_SOURCE, 0, WORLD, &found, NCCLX_STATUS_IGNORE));
            if (found)
                OK(ncclx_recv(NULL, 0, NCCLX_BYTE, NCCLX_ANY_SOURCE, 0, WORLD, NCCLX_STATUS_IGNORE));
            else
                usleep(1000);
        }
        exit(0); /* the launcher ends what is left */
    }
    FAILS(ncclx_coll_allreduce(send, recv, 5, NCCLX_FLOAT, NCCLX_SUM, WORLD), NCCLX_ERR_TIMEOUT);
    printf("%s\n", ncclx_error_detail());
    CHECK(strstr(ncclx_error_detail(), "allreduce(count 5, float, sum) as collective 1 on COMM_WORLD: "));
    CHECK(strstr(ncclx_error_detail(), rank == 0 ? name : " not made this call"));
    FAILS(ncclx_coll_barrier(WORLD), NCCLX_ERR_TIMEOUT); /* and says that there is no use in going on */
    CHECK(strstr(ncclx_error_detail(), "of no more use"));
    fflush(stdout);
    OK(ncclx_send(NULL, 0, NCCLX_BYTE, size - 1, 0, WORLD));
    pause();
}

static void fatal(void)
{
    OK(ncclx_comm_set_errhandler(WORLD, NCCLX_ERRORS_ARE_FATAL));
    if (odd())
        ncclx_coll_barrier(WORLD);
    else
        ncclx_coll_bcast(recv, 3, NCCLX_DOUBLE, 0, WORLD);
    check_failed(__FILE__, __LINE__, "nothing ended the job");
}

static void finalize(void)
{
    told_on_world(odd() ? ncclx_finalize() : ncclx_coll_barrier(WORLD), "finalize()", "barrier()");
    together();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    CHECK(size > 1 && size <= 16);
    if (!strcmp(what, "absent"))
        absent();
    else if (!strcmp(what, "fatal"))
        fatal();
    else if (!strcmp(what, "finalize"))
        finalize();
    else {
        functions();
        arguments();
        lists_of_counts();
        counts_of_pairs();
        what_may_differ();
        own_operations();
        requests();
        wrong_arguments();
        communicators();
        windows();
    }
    OK(ncclx_finalize());
    return 0;
}
