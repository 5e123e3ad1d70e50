/* death.c - `death HOW HOUR [stop|late]`: rank 1 is killed, or only stops, in a phase of its connection to rank 0, whose wait
 * must name it, or end at NCCLX_TIMEOUT, in time. late: the launcher sees its death LATE_S later. HOUR is in seconds of
 * CLOCK_MONOTONIC. Runs with NCCLX_ERRORS=return. Rank 0 prints what its call said, and how many milliseconds after that
 * hour. */
#include "check.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD
#define LARGE ((size_t)256 << 20)
#define LATE_S 3

static int rank, size;
static int end = SIGKILL; /* of rank 1 */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* As on a machine that is too busy to end it: a process that is traced cannot be reaped by its parent. */
static void be_seen_late(double hour)
{
    int ready[2];
    char traced = 0;
    pid_t self = getpid();
    CHECK(!pipe(ready));
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        traced = ptrace(PTRACE_SEIZE, self, NULL, NULL) == 0;
        if (write(ready[1], &traced, 1) != 1) _exit(1);
        while (now() < hour + LATE_S) usleep(10000);
        _exit(0);
    }
    CHECK(read(ready[0], &traced, 1) == 1 && traced);
}

static void die_at(double hour)
{
    while (now() < hour) usleep(1000);
    raise(end);
}

static void connect_first(void)
{
    int word = rank, other;
    OK(ncclx_sendrecv(&word, 1, &other, 1, NCCLX_INT32, 1 - rank, 9, 1 - rank, 9, WORLD, NULL));
}

/* Each returns what rank 0's call said; rank 1 comes back from none. */

/* It has not looked at its sockets yet: rank 0 is not answered. */
static int connecting(double hour)
{
    char *bytes = calloc(1, LARGE);
    CHECK(bytes);
    if (rank == 1) die_at(hour);
    return ncclx_send(bytes, LARGE, NCCLX_BYTE, 1, 1, WORLD);
}

static int connected(double hour)
{
    int word;
    connect_first();
    if (rank == 1) die_at(hour);
    return ncclx_recv(&word, 1, NCCLX_INT32, 1, 1, WORLD, NULL);
}

/* Rank 0 has never had anything to do with it. */
static int unknown(double hour)
{
    int word;
    if (rank == 1) die_at(hour);
    return ncclx_recv(&word, 1, NCCLX_INT32, 1, 1, WORLD, NULL);
}

/* Both ends of a large message are under way, and go on being so. */
static int in_message(double hour, bool sends)
{
    char *bytes = calloc(1, LARGE);
    int code = NCCLX_SUCCESS;
    CHECK(bytes);
    connect_first();
    while (code == NCCLX_SUCCESS) {
        ncclx_request_t request;
        if (sends == (rank == 0))
            code = ncclx_isend(bytes, LARGE, NCCLX_BYTE, 1 - rank, 1, WORLD, &request);
        else
            code = ncclx_irecv(bytes, LARGE, NCCLX_BYTE, 1 - rank, 1, WORLD, &request);
        if (rank == 0 && !code) code = ncclx_wait(&request, NULL);
        for (int done = 0; rank == 1 && !code && !done;) {
            if (now() >= hour) raise(end);
            code = ncclx_test(&request, &done, NULL);
        }
    }
    return code; /* the buffer stays: what was given up may be written to */
}

static int with_window(double hour, bool fences)
{
    void *base;
    ncclx_win_t win;
    uint64_t value = 1;
    OK(ncclx_win_allocate(4096, 1, NCCLX_INFO_NULL, WORLD, &base, &win));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_put(&value, 8, NCCLX_BYTE, 1 - rank, 0, win));
    OK(ncclx_win_fence(win));
    if (rank == 1) die_at(hour);
    return fences ? ncclx_win_fence(win) : ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, 5, -1, NULL);
}

static int in_collective(double hour)
{
    double sum = 0, one = 1;
    OK(ncclx_coll_allreduce(&one, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, WORLD));
    if (rank == 1) die_at(hour);
    return ncclx_coll_allreduce(&one, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, WORLD);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 || argc == 4);
    const char *manner = argc == 4 ? argv[3] : "";
    if (!strcmp(manner, "stop")) end = SIGSTOP;
    const char *how = argv[1];
    double hour = atof(argv[2]);
    int code = NCCLX_SUCCESS;
    signal(SIGTERM, SIG_IGN); /* the launcher ends the job, too */
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    CHECK(size == 2);
    if (rank == 1 && !strcmp(manner, "late")) be_seen_late(hour);
    if (!strcmp(how, "connecting"))
        code = connecting(hour);
    else if (!strcmp(how, "connected"))
        code = connected(hour);
    else if (!strcmp(how, "unknown"))
        code = unknown(hour);
    else if (!strcmp(how, "receiving"))
        code = in_message(hour, false);
    else if (!strcmp(how, "sending"))
        code = in_message(hour, true);
    else if (!strcmp(how, "signal"))
        code = with_window(hour, false);
    else if (!strcmp(how, "fence"))
        code = with_window(hour, true);
    else if (!strcmp(how, "collective"))
        code = in_collective(hour);
    else
        check_failed(__FILE__, __LINE__, "no such case");
    printf("%s after %.0f ms: %s\n", ncclx_error_string(code), (now() - hour) * 1000, ncclx_error_detail());
    fflush(stdout);
    return 3;
}
