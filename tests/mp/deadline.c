/* NCCLX_TIMEOUT ends every call that waits: the last rank stops, and rank 0 tries them all. The job ends with code 42. Runs with
 * NCCLX_ERRORS=return; `deadline messages` where the window of the last rank is reached by messages only.
 *
 * What comes before that has a deadline of its own: on a busy machine it may take longer than a wait that is to end. No public call changes
 * the deadline, so this program sees hidden symbols. */
#include "check.h"

#include "runtime/base/base.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD
#define LARGE 3000000 /* more than any transport sends at once */
#define LATE(call) FAILS(call, NCCLX_ERR_TIMEOUT)
#define SET_UP "100" /* seconds */

/* Not on the stack: what was given up may still be written to. */
static char out[LARGE], in[LARGE];
static ncclx_status_t status;

/* A communicator a call: one that failed is of no more use. Of the second kind, collectives have been used often enough
 * to have memory of their own. */
enum { COMMS = 40, WINDOWS = 8 };
static ncclx_comm_t comm[COMMS], used[8];
static ncclx_comm_t reversed[2]; /* rank 0 is the last there, and waits for all that come before it */
static int next_comm;
static int last; /* the rank that stops */

static ncclx_comm_t fresh(void)
{
    CHECK(next_comm < COMMS);
    return comm[next_comm++];
}

static void try_messages(void)
{
    ncclx_message_t message;
    ncclx_request_t request[2];
    size_t index, done, indices[2];
    LATE(ncclx_send(out, LARGE, NCCLX_INT8, last, 1, WORLD));
    LATE(ncclx_recv(in, 8, NCCLX_INT8, last, 1, WORLD, &status));
    LATE(ncclx_recv(in, LARGE, NCCLX_INT8, last, 1, WORLD, &status));
    LATE(ncclx_recv(in, 8, NCCLX_INT8, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, WORLD, &status));
    LATE(ncclx_sendrecv(out, 8, in, 8, NCCLX_INT8, last, 1, last, 1, WORLD, &status));
    LATE(ncclx_sendrecv(out, LARGE, in, LARGE, NCCLX_INT8, last, 1, last, 1, WORLD, &status));
    LATE(ncclx_probe(last, 1, WORLD, &status));
    LATE(ncclx_mprobe(last, 1, WORLD, &message, &status));
    OK(ncclx_isend(out, LARGE, NCCLX_INT8, last, 1, WORLD, &request[0]));
    OK(ncclx_irecv(in, LARGE, NCCLX_INT8, last, 1, WORLD, &request[1]));
    LATE(ncclx_wait(&request[0], &status));
    LATE(ncclx_wait(&request[1], &status));
    LATE(ncclx_waitall(2, request, NULL));
    LATE(ncclx_waitany(2, request, &index, &status));
    LATE(ncclx_waitsome(2, request, &done, indices, NULL));
}

/* One element for each rank, wherever. */
static void try_blocks(void)
{
    size_t counts[64], displs[64];
    CHECK(last < 64);
    for (size_t i = 0; i < 64; i++) counts[i] = 1, displs[i] = i;
    LATE(ncclx_coll_reduce_scatter(out, in, counts, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_reduce_scatter_block(out, in, 1, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_allgatherv(out, 1, in, counts, displs, NCCLX_INT8, fresh()));
    LATE(ncclx_coll_gather(out, in, 1, NCCLX_INT8, 0, fresh()));
    LATE(ncclx_coll_gatherv(out, 1, in, counts, displs, NCCLX_INT8, 0, fresh()));
    LATE(ncclx_coll_scatter(out, in, 1, NCCLX_INT8, last, fresh()));
    LATE(ncclx_coll_scatterv(out, counts, displs, in, 1, NCCLX_INT8, last, fresh()));
    LATE(ncclx_coll_alltoallv(out, counts, displs, in, counts, displs, NCCLX_INT8, fresh()));
}

static void try_collectives(void)
{
    ncclx_request_t request;
    LATE(ncclx_coll_barrier(fresh()));
    if (last == 1) LATE(ncclx_coll_bcast(in, LARGE, NCCLX_INT8, 0, fresh())); /* others might take it all */
    LATE(ncclx_coll_bcast(in, 8, NCCLX_INT8, last, fresh()));
    LATE(ncclx_coll_reduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, 0, fresh()));
    LATE(ncclx_coll_allreduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_allreduce(out, in, LARGE, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_allgather(out, in, 8, NCCLX_INT8, fresh()));
    LATE(ncclx_coll_alltoall(out, in, 8, NCCLX_INT8, fresh()));
    OK(ncclx_coll_iallreduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, fresh(), &request));
    LATE(ncclx_wait(&request, &status));
    OK(ncclx_coll_barrier_init(fresh(), &request));
    OK(ncclx_start(&request));
    LATE(ncclx_wait(&request, &status));
    LATE(ncclx_coll_scan(out, in, 8, NCCLX_INT8, NCCLX_SUM, reversed[0]));
    LATE(ncclx_coll_exscan(out, in, 8, NCCLX_INT8, NCCLX_SUM, reversed[1]));
    try_blocks();
    LATE(ncclx_coll_barrier(used[0]));
    LATE(ncclx_coll_bcast(in, 8, NCCLX_INT8, last, used[1]));
    LATE(ncclx_coll_reduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, 0, used[2]));
    LATE(ncclx_coll_allreduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, used[3]));
    LATE(ncclx_coll_allgather(out, in, 8, NCCLX_INT8, used[4]));
    LATE(ncclx_coll_alltoall(out, in, 8, NCCLX_INT8, used[5]));
}

static void try_communicators(void)
{
    ncclx_comm_t made = WORLD;
    ncclx_group_t group;
    OK(ncclx_comm_group(WORLD, &group));
    LATE(ncclx_comm_dup(fresh(), &made));
    LATE(ncclx_comm_split(fresh(), 0, 0, &made));
    LATE(ncclx_comm_split_type(fresh(), NCCLX_SPLIT_NODE, 0, &made));
    LATE(ncclx_comm_create_group(fresh(), group, 0, &made));
    LATE(ncclx_comm_dup(used[6], &made));
}

static struct {
    int calls;
    ncclx_comm_t comm;
    ncclx_win_t win;
} told;

static void note(ncclx_comm_t its_comm, ncclx_win_t win, int code, const char *detail, void *user)
{
    CHECK(!user && code == NCCLX_ERR_TIMEOUT && detail[0]);
    told.calls++;
    told.comm = its_comm;
    told.win = win;
}

/* The handler that runs is the window's. */
static void try_window_request(ncclx_win_t win)
{
    ncclx_request_t request;
    ncclx_errhandler_t handler;
    OK(ncclx_errhandler_create(note, NULL, &handler));
    OK(ncclx_win_set_errhandler(win, handler));
    OK(ncclx_errhandler_free(&handler));
    OK(ncclx_win_rget(in, 8, NCCLX_INT8, last, 0, win, &request));
    LATE(ncclx_wait(&request, &status));
    CHECK(told.calls == 1 && told.win == win && told.comm == NCCLX_COMM_NULL);
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
}

/* Where the last rank would have to answer. */
static void try_window_messages(ncclx_win_t *win)
{
    ncclx_message_t message;
    OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[2]));
    LATE(ncclx_win_flush(last, win[2]));
    LATE(ncclx_win_flush_all(win[2]));
    OK(ncclx_win_get(in, 8, NCCLX_INT8, last, 0, win[2]));
    LATE(ncclx_win_flush_local(last, win[2]));
    LATE(ncclx_win_flush_local_all(win[2]));
    try_window_request(win[2]);
    LATE(ncclx_win_unlock_all(win[2]));
    LATE(ncclx_win_unlock_all(win[2])); /* as often as one likes */
    LATE(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, last, win[3]));
    OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[4]));
    LATE(ncclx_win_unlock(last, win[4]));
    OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[5]));
    LATE(ncclx_win_complete(win[5]));
    OK(ncclx_mprobe(last, 7, used[7], &message, &status));
    LATE(ncclx_mrecv(in, LARGE, NCCLX_INT8, &message, &status));
}

static void try_windows(ncclx_win_t *win, ncclx_group_t target, bool messages)
{
    static const size_t slots[] = {0, 1};
    static const ncclx_compare_t compares[] = {NCCLX_CMP_GT, NCCLX_CMP_GT};
    static const uint64_t values[] = {0, 0};
    ncclx_win_t made;
    void *base;
    uint64_t seen[2];
    size_t index;
    LATE(ncclx_win_allocate(64, 1, NCCLX_INFO_NULL, fresh(), &base, &made));
    LATE(ncclx_win_create(in, 64, 1, NCCLX_INFO_NULL, fresh(), &made));
    LATE(ncclx_win_wait_signal(win[0], 0, NCCLX_CMP_GT, 0, -1, seen));
    LATE(ncclx_win_wait_signal_any(win[0], 2, slots, compares, values, -1, &index, seen));
    LATE(ncclx_win_wait_signal_all(win[0], 2, slots, compares, values, -1, seen));
    LATE(ncclx_win_fence(win[0]));
    LATE(ncclx_win_free(&win[1]));
    LATE(ncclx_win_start(target, win[6]));
    OK(ncclx_win_post(target, win[7]));
    LATE(ncclx_win_wait(win[7]));
    if (messages) try_window_messages(win);
}

/* What rank 0 has of the last, and the last of rank 0, before it stops. */
static void prepare(int rank, ncclx_win_t *win, ncclx_group_t *target)
{
    ncclx_group_t all, origin;
    ncclx_request_t request;
    const int none = 0;
    OK(ncclx_comm_group(WORLD, &all));
    OK(ncclx_group_incl(all, 1, &none, &origin));
    OK(ncclx_group_incl(all, 1, &last, target));
    OK(ncclx_win_lock_all(win[2]));
    if (rank == last) {
        OK(ncclx_win_post(origin, win[5]));
        OK(ncclx_isend(out, LARGE, NCCLX_INT8, 0, 7, used[7], &request));
    }
    if (rank == 0) { /* the first operation to a target takes its lock, and would wait for that */
        OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[2]));
        OK(ncclx_win_flush(last, win[2]));
        OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, last, win[4]));
        OK(ncclx_win_start(*target, win[5]));
    }
    OK(ncclx_coll_barrier(WORLD));
}

static void set_deadline(double seconds)
{
    struct ncclx_rt *rt = ncclx_process.rt;
    CHECK(seconds > 0);
    base_rt_lock(rt);
    rt->timeout_ns = (uint64_t)(seconds * 1e9);
    base_rt_unlock(rt);
}

int main(int argc, char **argv)
{
    const char *timeout = getenv("NCCLX_TIMEOUT");
    double seconds = timeout ? strtod(timeout, NULL) : 0;
    ncclx_win_t win[WINDOWS];
    ncclx_group_t target;
    void *base;
    int rank;
    CHECK(!setenv("NCCLX_TIMEOUT", SET_UP, 1));
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &last));
    last--;
    for (int i = 0; i < COMMS; i++) OK(ncclx_comm_dup(WORLD, &comm[i]));
    for (int i = 0; i < 2; i++) OK(ncclx_comm_split(WORLD, 0, -rank, &reversed[i]));
    for (int i = 0; i < 8; i++) {
        OK(ncclx_comm_dup(WORLD, &used[i]));
        for (int j = 0; j < 6; j++) OK(ncclx_coll_barrier(used[i]));
    }
    for (int i = 0; i < WINDOWS; i++) OK(ncclx_win_allocate(64, 1, NCCLX_INFO_NULL, WORLD, &base, &win[i]));
    prepare(rank, win, &target);
    if (rank == last) raise(SIGSTOP);
    if (rank != 0) pause();
    set_deadline(seconds);
    try_messages();
    try_collectives();
    try_communicators();
    try_windows(win, target, argc > 1 && strcmp(argv[1], "messages") == 0);
    LATE(ncclx_finalize());
    for (int i = 0; i < COMMS; i++) OK(ncclx_comm_free(&comm[i])); /* what was given up on them does no harm */
    return ncclx_abort(WORLD, 42);
}
