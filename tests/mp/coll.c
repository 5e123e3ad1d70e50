/* coll.c - what grid.c's calls one by one do not show of collectives between processes: several at a time on
 * COMM_WORLD, a duplicate and a split, persistent ones in any order or given up, wrong arguments, and the same bits
 * from the first call on. Prints nothing when all is well.
 *
 *     coll
 *     coll far          blocks that begin beyond 2^32 elements
 *     coll mismatch     what a call with different arguments is told
 */
#include "coll_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_AT_ONCE 8

/* ---- Several at a time ---------------------------------------------------------------------------------------------
 */

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

/* Up to MOST_AT_ONCE collectives, completed in another order on each rank. */
static void overlapping_calls(const ncclx_comm_t *comms, unsigned comm_count, unsigned rounds)
{
    static const size_t counts[] = {0, 1, 3, 64, 777, 5000};
    unsigned common = 12345, private;
    int world;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &world);
    private = 77u + (unsigned)world;
    for (unsigned round = 0; round < rounds; round++) {
        struct call call[MOST_AT_ONCE];
        unsigned at_once = 1 + draw(&common, MOST_AT_ONCE), left = at_once;
        memset(call, 0, sizeof call);
        for (unsigned i = 0; i < at_once; i++) {
            int size;
            call[i].form = NONBLOCKING;
            call[i].kind = (enum kind)draw(&common, KINDS);
            call[i].operands = (enum operands)draw(&common, OPERANDS);
            call[i].count = counts[draw(&common, sizeof counts / sizeof counts[0])];
            call[i].in_place = (int)draw(&common, 2);
            call[i].seed = round;
            call[i].comm = comms[draw(&common, comm_count)];
            ncclx_comm_size(call[i].comm, &size);
            call[i].root = (int)(draw(&common, 1000) % (unsigned)size);
            call_prepare(&call[i]);
            call_fill(&call[i]);
            call_must(&call[i], call_make(&call[i]));
        }
        while (left) {
            unsigned i = draw(&private, at_once);
            if (!call[i].send) continue;
            call_must(&call[i], ncclx_wait(&call[i].request, NCCLX_STATUS_IGNORE));
            call_check(&call[i]);
            call_finish(&call[i]);
            left--;
        }
    }
}

/* Several persistent requests, started in another order on each rank, and all at once. */
static void in_any_order(ncclx_comm_t comm)
{
    enum { MANY = KINDS };
    struct call call[MANY];
    ncclx_request_t requests[MANY];
    int rank;
    ncclx_comm_rank(comm, &rank);
    for (int i = 0; i < MANY; i++) {
        call[i] = (struct call){.kind = (enum kind)i, .comm = comm, .count = 50, .form = PERSISTENT, .seed = 3};
        call_prepare(&call[i]);
        call_must(&call[i], call_make(&call[i]));
        requests[i] = call[i].request;
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) call_fill(&call[i]);
        if (round == 1) call_must(&call[0], ncclx_startall(MANY, requests));
        for (int i = 0; i < MANY && round != 1; i++) {
            int turn = (i * (round ? 3 : 1) + rank) % MANY;
            call_must(&call[turn], ncclx_start(&requests[turn]));
        }
        call_must(&call[0], ncclx_waitall(MANY, requests, NCCLX_STATUSES_IGNORE));
        for (int i = 0; i < MANY; i++) call_check(&call[i]);
    }
    for (int i = 0; i < MANY; i++) {
        call_must(&call[i], ncclx_request_free(&requests[i]));
        call_finish(&call[i]);
    }
}

/* Given up while it runs; and the communicator's end before the request's. */
static void given_up(void)
{
    ncclx_comm_t comm;
    ncclx_request_t kept, running;
    int64_t in = 1, out = 0, other = 0;
    struct call call = {.kind = SCAN};
    call_must(&call, ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    call_must(&call, ncclx_coll_scan_init(&in, &out, 1, NCCLX_INT64, NCCLX_SUM, comm, &kept));
    call_must(&call, ncclx_coll_scan_init(&in, &other, 1, NCCLX_INT64, NCCLX_SUM, comm, &running));
    call_must(&call, ncclx_start(&running));
    call_must(&call, ncclx_request_free(&running));
    call_must(&call, ncclx_start(&kept));
    call_must(&call, ncclx_wait(&kept, NCCLX_STATUS_IGNORE));
    call_must(&call, ncclx_coll_barrier(comm));
    call_must(&call, ncclx_comm_free(&comm));
    call_must(&call, ncclx_request_free(&kept));
    if (running || kept) call_failed(&call, "request_free leaves the handle");
}

/* The same call gives the same bits, the first time as later, whatever its size. */
static void from_the_first_on(enum kind kind)
{
    static const size_t counts[] = {1, 100, 3000, 30000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct call call = {.kind = kind, .operands = FLOATS, .count = counts[i]};
        unsigned number = call_number;
        char *first = malloc(counts[i] * sizeof(float));
        call_must(&call, ncclx_comm_dup(NCCLX_COMM_WORLD, &call.comm));
        call_prepare(&call);
        for (int again = 0; again < 6 && first; again++) {
            call_number = number; /* the same data */
            call_fill(&call);
            call_must(&call, call_make(&call));
            call_check(&call);
            if (!again) memcpy(first, call.recv + CANARY_BYTES, counts[i] * sizeof(float));
            if (memcmp(first, call.recv + CANARY_BYTES, counts[i] * sizeof(float)))
                call_failed(&call, "other bits when repeated");
        }
        free(first);
        call_finish(&call);
        call_must(&call, ncclx_comm_free(&call.comm));
    }
}

/* ---- Arguments ------------------------------------------------------------------------------------------------------
 */

static void refuse(const char *what, int code, int wanted)
{
    if (code == wanted) return;
    fprintf(stderr, "%s: code %d (%s), not %d\n", what, code, ncclx_error_detail(), wanted);
    exit(1);
}

/* On COMM_SELF, where a call that is refused leaves nobody waiting. */
static void wrong_arguments(void)
{
    ncclx_comm_t self = NCCLX_COMM_SELF;
    ncclx_request_t request = NCCLX_REQUEST_NULL;
    int64_t a[4] = {0}, b[4] = {0};
    size_t two = 2, three = 3, huge = SIZE_MAX / 4, zero = 0;
    ncclx_comm_set_errhandler(self, NCCLX_ERRORS_RETURN);
    ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN);
    refuse("no counts", ncclx_coll_reduce_scatter(a, b, NULL, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_ARG);
    refuse("counts too large", ncclx_coll_reduce_scatter(a, b, &huge, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_COUNT);
    refuse("displacement too large", ncclx_coll_allgatherv(a, 2, b, &two, &huge, NCCLX_INT64, self), NCCLX_ERR_COUNT);
    refuse("two own counts", ncclx_coll_allgatherv(a, 2, b, &three, NULL, NCCLX_INT64, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_gatherv(a, 2, b, &three, NULL, NCCLX_INT64, 0, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_scatterv(a, &two, NULL, b, 3, NCCLX_INT64, 0, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_alltoallv(a, &two, NULL, b, &three, NULL, NCCLX_INT64, self), NCCLX_ERR_ARG);
    refuse("overlap", ncclx_coll_scan(a, a, 1, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_BUFFER);
    refuse("average", ncclx_coll_exscan(a, b, 1, NCCLX_INT64, NCCLX_AVG, self), NCCLX_ERR_OP);
    refuse("in place twice", ncclx_coll_scatter(NCCLX_IN_PLACE, b, 1, NCCLX_INT64, 0, self), NCCLX_ERR_BUFFER);
    refuse("root", ncclx_coll_gather(a, b, 1, NCCLX_INT64, 1, self), NCCLX_ERR_ROOT);
    refuse("type", ncclx_coll_scatterv(a, &two, NULL, b, 2, (ncclx_datatype_t)99, 0, self), NCCLX_ERR_TYPE);
    refuse("no request", ncclx_coll_iscan(a, b, 1, NCCLX_INT64, NCCLX_SUM, self, NULL), NCCLX_ERR_ARG);
    refuse("nothing to start", ncclx_start(&request), NCCLX_ERR_REQUEST);
    refuse("null", ncclx_coll_alltoallv(NULL, &zero, NULL, NULL, &zero, NULL, NCCLX_INT64, self), NCCLX_SUCCESS);
    refuse("prepare", ncclx_coll_scan_init(a, b, 4, NCCLX_INT64, NCCLX_SUM, self, &request), NCCLX_SUCCESS);
    refuse("start", ncclx_start(&request), NCCLX_SUCCESS);
    refuse("start again", ncclx_start(&request), NCCLX_ERR_REQUEST);
    refuse("free", ncclx_request_free(&request), NCCLX_SUCCESS);
    ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL);
}

/* A broadcast of which rank 1 expects less than it gets: rank 1 is told, and nothing hangs. */
static int mismatch(void)
{
    char buf[200] = {0};
    int rank;
    if (ncclx_comm_rank(NCCLX_COMM_WORLD, &rank) || ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN))
        return 2;
    int code = ncclx_coll_bcast(buf, rank == 1 ? 100 : sizeof buf, NCCLX_BYTE, 0, NCCLX_COMM_WORLD);
    if (code != (rank == 1 ? NCCLX_ERR_MISMATCH : NCCLX_SUCCESS)) {
        fprintf(stderr, "rank %d: code %d: %s\n", rank, code, ncclx_error_detail());
        return 1;
    }
    return ncclx_finalize() != NCCLX_SUCCESS;
}

/* Each rank gives a block that lies beyond 2^32 elements to the next one; memory between blocks is never touched. */
static void far_blocks(int rank, int size)
{
    enum { COUNT = 5000 };
    struct call call = {.kind = ALLTOALLV, .rank = rank, .size = size, .count = COUNT};
    size_t far = (size_t)5 << 30, bytes = far + COUNT;
    size_t sendcounts[MOST_RANKS] = {0}, recvcounts[MOST_RANKS] = {0}, displs[MOST_RANKS];
    char *send = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *recv = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int mapped = send != MAP_FAILED && recv != MAP_FAILED, all_mapped = 0;
    call_must(&call, ncclx_coll_allreduce(&mapped, &all_mapped, 1, NCCLX_INT32, NCCLX_MIN, NCCLX_COMM_WORLD));
    if (!all_mapped) return; /* a small machine */
    for (int i = 0; i < size; i++) displs[i] = far;
    sendcounts[(rank + 1) % size] = recvcounts[(rank + size - 1) % size] = COUNT;
    for (int again = 0; again < 6; again++) { /* by messages, then in shared memory */
        memset(send + far, rank * 16 + again, COUNT);
        call_must(&call, ncclx_coll_alltoallv(send, sendcounts, displs, recv, recvcounts, displs, NCCLX_INT8,
                                              NCCLX_COMM_WORLD));
        for (size_t i = 0; i < COUNT; i++)
            if (recv[far + i] != (char)((rank + size - 1) % size * 16 + again))
                call_failed(&call, "far element %zu is wrong", i);
    }
    munmap(send, bytes);
    munmap(recv, bytes);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    ncclx_comm_t comms[3] = {NCCLX_COMM_WORLD};
    int rank, size;
    if (ncclx_init(&argc, &argv)) return 2;
    if (!strcmp(what, "mismatch")) return mismatch();
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    if (size > MOST_RANKS) return 2;
    calls_begin();
    if (ncclx_comm_dup(NCCLX_COMM_WORLD, &comms[1])) return 2;
    if (ncclx_comm_split(NCCLX_COMM_WORLD, rank % 2, size - rank, &comms[2])) return 2; /* ranks in reverse */
    if (!strcmp(what, "far")) {
        far_blocks(rank, size);
    } else {
        from_the_first_on(ALLREDUCE);
        from_the_first_on(REDUCE_SCATTER_BLOCK);
        overlapping_calls(comms, 2, 100);
        in_any_order(comms[1]);
        given_up();
        wrong_arguments();
        overlapping_calls(&comms[2], 1, 30); /* here the halves make different calls */
        in_any_order(comms[2]);
    }
    for (int i = 1; i < 3; i++)
        if (ncclx_comm_free(&comms[i])) return 2;
    calls_end();
    return ncclx_finalize() != NCCLX_SUCCESS;
}
