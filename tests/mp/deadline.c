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
#define LARGE 1000000
#define LATE(call) FAILS(call, NCCLX_ERR_TIMEOUT)
#define SET_UP "100" /* seconds */

/* Not on the stack: what was given up may still be written to. */
static char out[LARGE], in[LARGE];
static ncclx_status_t status;

/* A communicator a call: one that failed is of no more use. Of the second kind, collectives have been used often enough
 * to have memory of their own. */
enum { COMMS = 24 };
static ncclx_comm_t comm[COMMS], used[8];
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

static void try_collectives(void)
{
    ncclx_request_t request;
    LATE(ncclx_coll_barrier(fresh()));
    LATE(ncclx_coll_bcast(in, LARGE, NCCLX_INT8, 0, fresh()));
    LATE(ncclx_coll_bcast(in, 8, NCCLX_INT8, last, fresh()));
    LATE(ncclx_coll_reduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, 0, fresh()));
    LATE(ncclx_coll_allreduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_allreduce(out, in, LARGE, NCCLX_INT8, NCCLX_SUM, fresh()));
    LATE(ncclx_coll_allgather(out, in, 8, NCCLX_INT8, fresh()));
    LATE(ncclx_coll_alltoall(out, in, 8, NCCLX_INT8, fresh()));
    OK(ncclx_coll_iallreduce(out, in, 8, NCCLX_INT8, NCCLX_SUM, fresh(), &request));
    LATE(ncclx_wait(&request, &status));
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

static void try_windows(ncclx_win_t *win, bool messages)
{
    ncclx_win_t made;
    void *base;
    uint64_t seen;
    LATE(ncclx_win_allocate(64, 1, NCCLX_INFO_NULL, fresh(), &base, &made));
    LATE(ncclx_win_create(in, 64, 1, NCCLX_INFO_NULL, fresh(), &made));
    LATE(ncclx_win_wait_signal(win[0], 0, NCCLX_CMP_GT, 0, -1, &seen));
    LATE(ncclx_win_fence(win[0]));
    LATE(ncclx_win_free(&win[1]));
    if (!messages) return;
    OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[2]));
    LATE(ncclx_win_flush(last, win[2]));
    LATE(ncclx_win_flush_all(win[2]));
    OK(ncclx_win_get(in, 8, NCCLX_INT8, last, 0, win[2]));
    LATE(ncclx_win_flush_local(last, win[2]));
    LATE(ncclx_win_flush_local_all(win[2]));
    LATE(ncclx_win_unlock_all(win[2]));
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
    ncclx_win_t win[3];
    void *base;
    int rank;
    CHECK(!setenv("NCCLX_TIMEOUT", SET_UP, 1));
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &last));
    last--;
    for (int i = 0; i < COMMS; i++) OK(ncclx_comm_dup(WORLD, &comm[i]));
    for (int i = 0; i < 8; i++) {
        OK(ncclx_comm_dup(WORLD, &used[i]));
        for (int j = 0; j < 6; j++) OK(ncclx_coll_barrier(used[i]));
    }
    for (int i = 0; i < 3; i++) OK(ncclx_win_allocate(64, 1, NCCLX_INFO_NULL, WORLD, &base, &win[i]));
    OK(ncclx_win_lock_all(win[2]));
    if (rank == 0) { /* the first operation to a target takes its lock, and would wait for that */
        OK(ncclx_win_put(out, 8, NCCLX_INT8, last, 0, win[2]));
        OK(ncclx_win_flush(last, win[2]));
    }
    OK(ncclx_coll_barrier(WORLD));
    if (rank == last) raise(SIGSTOP);
    if (rank != 0) pause();
    set_deadline(seconds);
    try_messages();
    try_collectives();
    try_communicators();
    try_windows(win, argc > 1 && strcmp(argv[1], "messages") == 0);
    LATE(ncclx_finalize());
    for (int i = 0; i < COMMS; i++) OK(ncclx_comm_free(&comm[i])); /* what was given up on them does no harm */
    return ncclx_abort(WORLD, 42);
}
