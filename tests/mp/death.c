/* death.c - `death HOW HOUR [stop|late]`: the last rank is killed, or only stops, in a phase of its connection to rank 0, whose wait
 * must name it, or end at NCCLX_TIMEOUT, in time; those between have no part in it. A loop of calls that do not wait must end as a wait
 * does. late: the launcher sees its death LATE_S later. HOUR is in seconds of CLOCK_MONOTONIC. Runs with NCCLX_ERRORS=return. Rank 0
 * prints what its call said, and how many milliseconds after that hour. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#define LARGE ((size_t)256 << 20)
#define LATE_S 3
#define BOUND_S 2

/* Of the two alone, or WORLD where they must not have met before. */
static ncclx_comm_t comm = NCCLX_COMM_WORLD;
static int rank, last; /* there */
static int end = SIGKILL; /* of the last rank */

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
    OK(ncclx_sendrecv(&word, 1, &other, 1, NCCLX_INT32, last - rank, 9, last - rank, 9, comm, NULL));
}

/* Each returns what rank 0's call said; the last rank comes back from none. */

/* It has not looked at its sockets yet: rank 0 is not answered. */
static int connecting(double hour)
{
    char *bytes = calloc(1, LARGE);
    CHECK(bytes);
    if (rank == last) die_at(hour);
    return ncclx_send(bytes, LARGE, NCCLX_BYTE, last, 1, comm);
}

/* Who is who has just been proved, and nothing sent. With NCCLX_LOG=warn,tcp:info. */
static int authenticated(double hour)
{
    char *bytes = calloc(1, LARGE), said[4096] = "";
    int log[2], found;
    CHECK(bytes);
    if (rank != last) return ncclx_send(bytes, LARGE, NCCLX_BYTE, last, 1, comm);
    CHECK(!pipe2(log, O_NONBLOCK) && dup2(log[1], STDERR_FILENO) >= 0);
    while (now() < hour) usleep(1000);
    while (!strstr(said, "connected to rank 0")) {
        OK(ncclx_iprobe(0, 2, comm, &found, NULL));
        if (read(log[0], said, sizeof said - 1) < 0) CHECK(errno == EAGAIN);
    }
    raise(end);
    return NCCLX_SUCCESS;
}

static int connected(double hour)
{
    int word;
    connect_first();
    if (rank == last) die_at(hour);
    return ncclx_recv(&word, 1, NCCLX_INT32, last, 1, comm, NULL);
}

/* Rank 0 has never had anything to do with it. */
static int unknown(double hour)
{
    int word;
    if (rank == last) die_at(hour);
    return ncclx_recv(&word, 1, NCCLX_INT32, last, 1, comm, NULL);
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
            code = ncclx_isend(bytes, LARGE, NCCLX_BYTE, last - rank, 1, comm, &request);
        else
            code = ncclx_irecv(bytes, LARGE, NCCLX_BYTE, last - rank, 1, comm, &request);
        if (rank == 0 && !code) code = ncclx_wait(&request, NULL);
        for (int done = 0; rank == last && !code && !done;) {
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
    OK(ncclx_win_allocate(4096, 1, NCCLX_INFO_NULL, comm, &base, &win));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_put(&value, 8, NCCLX_BYTE, last - rank, 0, win));
    OK(ncclx_win_fence(win));
    if (rank == last) die_at(hour);
    return fences ? ncclx_win_fence(win) : ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, 5, -1, NULL);
}

static int in_collective(double hour)
{
    double sum = 0, one = 1;
    OK(ncclx_coll_allreduce(&one, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, comm));
    if (rank == last) die_at(hour);
    return ncclx_coll_allreduce(&one, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, comm);
}

/* ---- Calls that do not wait, again and again ---- */

struct polled {
    ncclx_request_t requests[2]; /* neither ever completes */
    ncclx_win_t win;             /* nor does a signal or an epoch */
};

static int poll_test(struct polled *polled, int *flag)
{
    return ncclx_test(&polled->requests[0], flag, NCCLX_STATUS_IGNORE);
}

static int poll_testall(struct polled *polled, int *flag)
{
    return ncclx_testall(2, polled->requests, flag, NCCLX_STATUSES_IGNORE);
}

static int poll_testany(struct polled *polled, int *flag)
{
    size_t index;
    return ncclx_testany(2, polled->requests, &index, flag, NCCLX_STATUS_IGNORE);
}

static int poll_testsome(struct polled *polled, int *flag)
{
    size_t done = 0, indices[2];
    int code = ncclx_testsome(2, polled->requests, &done, indices, NCCLX_STATUSES_IGNORE);
    *flag = done > 0;
    return code;
}

static int poll_get_status(struct polled *polled, int *flag)
{
    return ncclx_request_get_status(polled->requests[0], flag, NCCLX_STATUS_IGNORE);
}

static int poll_iprobe(struct polled *polled, int *flag)
{
    (void)polled;
    return ncclx_iprobe(last, 3, comm, flag, NCCLX_STATUS_IGNORE);
}

static int poll_improbe(struct polled *polled, int *flag)
{
    ncclx_message_t message;
    (void)polled;
    return ncclx_improbe(last, 3, comm, flag, &message, NCCLX_STATUS_IGNORE);
}

static int poll_signal(struct polled *polled, int *flag)
{
    return ncclx_win_test_signal(polled->win, 0, NCCLX_CMP_EQ, 5, flag, NULL);
}

static int poll_signal_any(struct polled *polled, int *flag)
{
    size_t slots[] = {0, 1}, index;
    ncclx_compare_t compares[] = {NCCLX_CMP_EQ, NCCLX_CMP_EQ};
    uint64_t values[] = {5, 5};
    return ncclx_win_test_signal_any(polled->win, 2, slots, compares, values, flag, &index, NULL);
}

static int poll_signal_all(struct polled *polled, int *flag)
{
    size_t slots[] = {0, 1};
    ncclx_compare_t compares[] = {NCCLX_CMP_EQ, NCCLX_CMP_GE};
    uint64_t values[] = {5, 0};
    return ncclx_win_test_signal_all(polled->win, 2, slots, compares, values, flag, NULL);
}

static int poll_epoch(struct polled *polled, int *flag)
{
    return ncclx_win_test(polled->win, flag);
}

static const struct {
    const char *how;
    int (*poll)(struct polled *polled, int *flag);
    enum { NOTHING, RECEIVES, COLLECTIVES, WINDOW } of;
} polls[] = {
    {"test", poll_test, RECEIVES},
    {"testall", poll_testall, RECEIVES},
    {"testany", poll_testany, RECEIVES},
    {"testsome", poll_testsome, RECEIVES},
    {"get_status", poll_get_status, RECEIVES},
    {"test-collective", poll_test, COLLECTIVES},
    {"iprobe", poll_iprobe, NOTHING},
    {"improbe", poll_improbe, NOTHING},
    {"test_signal", poll_signal, WINDOW},
    {"test_signal_any", poll_signal_any, WINDOW},
    {"test_signal_all", poll_signal_all, WINDOW},
    {"win_test", poll_epoch, WINDOW},
};
#define POLLS (sizeof polls / sizeof polls[0])

static size_t poll_named(const char *how)
{
    size_t i = 0;
    while (i < POLLS && strcmp(polls[i].how, how) != 0) i++;
    return i;
}

static void post_to_last(ncclx_win_t win)
{
    ncclx_group_t all, partner;
    OK(ncclx_comm_group(comm, &all));
    OK(ncclx_group_incl(all, 1, &last, &partner));
    OK(ncclx_win_post(partner, win));
    OK(ncclx_group_free(&partner));
    OK(ncclx_group_free(&all));
}

/* A call that fails leaves what it looked at as it was: it fails again, alike. */
static int polling(double hour, size_t which)
{
    static double in[2], out[2]; /* what was given up may be written to */
    struct polled polled = {{NCCLX_REQUEST_NULL, NCCLX_REQUEST_NULL}, NCCLX_WIN_NULL};
    void *base;
    int flag = 0, code = NCCLX_SUCCESS;
    if (polls[which].of == WINDOW) {
        OK(ncclx_win_allocate(4096, 1, NCCLX_INFO_NULL, comm, &base, &polled.win));
        OK(ncclx_win_set_errhandler(polled.win, NCCLX_ERRORS_RETURN));
    }
    connect_first();
    if (rank == last) die_at(hour);
    for (int i = 0; i < 2; i++) {
        if (polls[which].of == RECEIVES) OK(ncclx_irecv(&in[i], 1, NCCLX_DOUBLE, last, i, comm, &polled.requests[i]));
        if (polls[which].of == COLLECTIVES) OK(ncclx_coll_iallreduce(&out[i], &in[i], 1, NCCLX_DOUBLE, NCCLX_SUM, comm, &polled.requests[i]));
    }
    if (polls[which].poll == poll_epoch) post_to_last(polled.win);
    while (code == NCCLX_SUCCESS) {
        code = polls[which].poll(&polled, &flag);
        CHECK(!flag);
    }
    CHECK(polls[which].poll(&polled, &flag) == code && !flag);
    for (int i = 0; i < 2; i++)
        CHECK((polled.requests[i] == NCCLX_REQUEST_NULL) == (polls[which].of != RECEIVES && polls[which].of != COLLECTIVES));
    return code;
}

/* Sets comm. Who has no part is there until all is over, so that rank 0 loses one peer only. strangers: the two meet later. */
static void meet(bool strangers, double hour)
{
    int size;
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    CHECK(size >= 2);
    bool plays = rank == 0 || rank == size - 1;
    if (!strangers && size > 2) OK(ncclx_comm_split(NCCLX_COMM_WORLD, plays ? 0 : NCCLX_UNDEFINED, rank, &comm));
    if (!plays) {
        double begin = now() > hour ? now() : hour; /* on a busy machine the play may begin late */
        while (now() < begin + BOUND_S) usleep(10000);
        _exit(0);
    }
    OK(ncclx_comm_rank(comm, &rank));
    OK(ncclx_comm_size(comm, &size));
    last = size - 1;
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
    meet(!strcmp(how, "connecting") || !strcmp(how, "authenticated") || !strcmp(how, "unknown"), hour);
    if (rank == last && !strcmp(manner, "late")) be_seen_late(hour);
    if (!strcmp(how, "connecting"))
        code = connecting(hour);
    else if (!strcmp(how, "authenticated"))
        code = authenticated(hour);
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
    else if (poll_named(how) < POLLS)
        code = polling(hour, poll_named(how));
    else
        check_failed(__FILE__, __LINE__, "no such case");
    printf("%s after %.0f ms: %s\n", ncclx_error_string(code), (now() - hour) * 1000, ncclx_error_detail());
    fflush(stdout);
    return 3;
}
