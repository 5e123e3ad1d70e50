/* life.c - a rank that lives and dies as it is told:
 *
 *   life ACTION [RANK [NUMBER]]
 *
 * RANK (default 1) does what ACTION says, the others wait for it in a barrier. Before the library is up, the rank is what the environment says. */
#include <ncclx.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *action;
static int who, number, rank;

static int rank_by_environment(void)
{
    const char *text = getenv("PMIX_RANK");
    return text ? atoi(text) : 0;
}

static int is(const char *name)
{
    return rank == who && !strcmp(action, name);
}

static void check(const char *call, int code)
{
    if (!code) return;
    printf("%s: %s: %s\n", call, ncclx_error_string(code), ncclx_error_detail());
    exit(70);
}

static void before_init(void)
{
    rank = rank_by_environment();
    if (is("exit-before-init")) exit(number);
    if (is("signal-before-init")) raise(number);
    if (is("stop-before-init")) pause();
}

/* As daemons and some language runtimes do, without knowing whose they are. */
static void close_descriptors(void)
{
    for (int fd = STDERR_FILENO; fd < 256; fd++) close(fd);
}

static void after_init(void)
{
    int value = 0;
    if (is("close-and-abort")) {
        close_descriptors();
        ncclx_abort(NCCLX_COMM_WORLD, number);
    }
    if (is("exit")) _exit(number);
    if (is("return-without-finalize")) exit(number);
    if (is("signal")) raise(number);
    if (is("abort")) ncclx_abort(NCCLX_COMM_WORLD, number);
    if (is("error")) ncclx_send(&value, 1, NCCLX_INT32, 1000000, 0, NCCLX_COMM_WORLD); /* the default handler ends the job */
    if (is("compute")) sleep(number > 0 ? (unsigned)number : 600);
    if (is("receive")) ncclx_recv(&value, 1, NCCLX_INT32, who, 77, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE); /* which never comes */
}

int main(int argc, char **argv)
{
    int size;
    action = argc > 1 ? argv[1] : "nothing";
    who = argc > 2 ? atoi(argv[2]) : 1;
    number = argc > 3 ? atoi(argv[3]) : 0;
    before_init();
    int code = ncclx_init(&argc, &argv);
    if (code) {
        printf("ncclx_init: %s: %s\n", ncclx_error_string(code), ncclx_error_detail());
        return 71;
    }
    check("ncclx_comm_rank", ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    check("ncclx_comm_size", ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    after_init();
    check("ncclx_coll_barrier", ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (is("exit-after-barrier")) _exit(number);
    check("ncclx_finalize", ncclx_finalize());
    if (is("exit-after-finalize")) return number;
    printf("rank %d of %d\n", rank, size);
    return 0;
}
