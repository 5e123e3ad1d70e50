/* shared.c - collectives by loads and stores: each rank writes what it gives, all read what they need. Results are
 * combined in rank order, by everyone alike. */
#include "coll/shared_parts.h"

#include <stdio.h>
#include <string.h>

/* A reduction is shared out when that saves each rank, or the root, the combining of more bytes than this: then each
 * rank combines a piece, and those who want the result copy the pieces, which costs a second hand-over and a copy. */
#define SHARE_OUT_BYTES ((size_t)8192)
#define SHARE_OUT_ROOT_BYTES ((size_t)65536)
/* Looks at a slot before progress is driven too: a few hand-overs of a cache line between cores. */
#define LOOKS 200
/* The same where ranks take turns and only those of other cores are missing: some changes of process over there. One that gives
 * up too early makes two changes here for nothing, for which the others then wait. */
#define LOOKS_ELSEWHERE 1000

static size_t to_pages(size_t bytes)
{
    return (bytes + SHARED_PAGE - 1) / SHARED_PAGE * SHARED_PAGE;
}

static size_t rows_bytes(int size, unsigned slots)
{
    return to_pages((size_t)size * slots * sizeof(struct shared_slot));
}

static size_t seats_bytes(int size)
{
    return to_pages((size_t)size * sizeof(struct shared_seat));
}

size_t shared_bytes(int size, unsigned slots, size_t data_bytes)
{
    return rows_bytes(size, slots) + seats_bytes(size) + (size_t)size * slots * to_pages(SHARED_APART + data_bytes);
}

void shared_prepare(struct shared *shared, struct ncclx_rt *rt, char *memory, int rank, int size, unsigned slots, size_t data_bytes)
{
    memset(shared, 0, sizeof *shared);
    shared->rt = rt;
    shared->rank = rank;
    shared->size = size;
    shared->slots = slots;
    shared->cores = shared_cores();
    shared->data_bytes = data_bytes;
    shared->data_stride = to_pages(SHARED_APART + data_bytes);
    shared->rows = (struct shared_slot *)memory;
    shared->seats = (struct shared_seat *)(memory + rows_bytes(size, slots));
    shared->data = memory + rows_bytes(size, slots) + seats_bytes(size) + SHARED_APART;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

static void describe(const void *arg, char *text, size_t bytes)
{
    const struct shared *shared = arg;
    snprintf(text, bytes, "rank %d of %d has not come (part %llu)", shared->waits_for, shared->size, (unsigned long long)shared->number);
}

static bool look_for_a_while(struct shared *shared, const struct shared_slot *slot, uint64_t number, unsigned looks)
{
    if (shared->rt->job.oversubscribed) looks = shared_keeps_from_running(shared, number) ? 1 : LOOKS_ELSEWHERE;
    for (unsigned i = 0; i < looks; i++) {
        if (atomic_load_explicit(&slot->number, memory_order_acquire) >= number) return true;
        base_relax();
    }
    return false;
}

int shared_wait_slow(struct shared *shared, int rank, uint64_t number)
{
    const struct shared_slot *slot = shared_slot(shared, rank, number);
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    if (look_for_a_while(shared, slot, number, shared->rt->spin_limit > LOOKS ? LOOKS : 1)) return NCCLX_SUCCESS;
    shared->waits_for = rank;
    base_wait_begin(&wait, shared->rt, shared->call, describe, shared);
    do error = base_wait_step(&wait);
    while (!error && !look_for_a_while(shared, slot, number, 1));
    base_wait_end(&wait);
    if (error) shared->error = error;
    return error;
}

/* ---- Collectives without arithmetic ---------------------------------------------------------------------------- */

int shared_barrier(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    (void)problem, (void)sendbuf, (void)recvbuf;
    int error = shared_give(shared, NULL, 0);
    return error ? error : shared_wait_for_all(shared);
}

int shared_bcast(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    (void)sendbuf;
    size_t most = shared_smaller(shared->data_bytes, SHARED_BCAST_BYTES);
    for (size_t done = 0; done < problem->bytes; done += most) {
        size_t bytes = shared_smaller(problem->bytes - done, most);
        char *piece = (char *)recvbuf + done;
        bool root = problem->rank == problem->root;
        int error = shared_give(shared, piece, root ? bytes : 0);
        if (root && !error) continue;
        if (!error) error = shared_wait(shared, problem->root, shared->number);
        if (error) return error;
        __builtin_prefetch(shared_slot(shared, problem->root, shared->number + 1));
        memcpy(piece, shared_given(shared, problem->root, bytes), bytes);
    }
    return NCCLX_SUCCESS;
}

/* When what all ranks of a call give and get is more than this, results go past the caches. Where those hold more, single copies
 * are faster than slots in any case. */
#define PAST_CACHES_BYTES ((size_t)8 << 20)

static void take(bool past, void *to, const void *from, size_t bytes)
{
    if (past) base_copy_streaming(to, from, bytes);
    else memcpy(to, from, bytes);
}

int shared_allgather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    char *result = recvbuf, *own = result + (size_t)problem->rank * problem->bytes;
    const char *input = problem->in_place ? own : sendbuf;
    size_t size = (size_t)shared->size;
    bool past = (size * size + size) * problem->bytes > PAST_CACHES_BYTES;
    for (size_t done = 0; done < problem->bytes; done += shared->data_bytes) {
        size_t bytes = shared_smaller(problem->bytes - done, shared->data_bytes);
        int error = shared_give(shared, input + done, bytes);
        if (error) return error;
        if (!problem->in_place) take(past, own + done, input + done, bytes);
        for (int i = 1; i < shared->size; i++) {
            int rank = (shared->rank + i) % shared->size;
            error = shared_wait(shared, rank, shared->number);
            if (error) return error;
            take(past, result + (size_t)rank * problem->bytes + done, shared_given(shared, rank, bytes), bytes);
        }
        shared->entered = shared->number;
    }
    return NCCLX_SUCCESS;
}

/* One part of an all-to-all: bytes [done, done + bytes) of every block. The own block goes straight. */
static int alltoall_part(struct shared *shared, const struct coll_problem *problem, const char *input, char *result,
                         size_t done, size_t bytes)
{
    size_t size = (size_t)shared->size, own = (size_t)shared->rank, all = size * bytes;
    int error = shared_enter(shared);
    if (error) return error;
    char *leaves = shared_data(shared, shared->rank, shared->number, all);
    for (size_t i = 0; i < size; i++)
        if (i != own) shared_fill(shared, leaves + i * bytes, input + i * problem->bytes + done, bytes);
    shared_publish(shared);
    bool past = 2 * size * size * problem->bytes > PAST_CACHES_BYTES;
    if (!problem->in_place) take(past, result + own * problem->bytes + done, input + own * problem->bytes + done, bytes);
    for (size_t i = 1; i < size; i++) {
        size_t rank = (own + i) % size;
        error = shared_wait(shared, (int)rank, shared->number);
        if (error) return error;
        take(past, result + rank * problem->bytes + done, shared_given(shared, (int)rank, all) + own * bytes, bytes);
    }
    shared->entered = shared->number;
    return NCCLX_SUCCESS;
}

int shared_alltoall(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    const char *input = problem->in_place ? recvbuf : sendbuf;
    size_t most = shared->data_bytes / (size_t)shared->size;
    if (most > SHARED_LINE) most -= most % SHARED_LINE;
    for (size_t done = 0; done < problem->bytes; done += most) {
        int error = alltoall_part(shared, problem, input, recvbuf, done, shared_smaller(problem->bytes - done, most));
        if (error) return error;
    }
    return NCCLX_SUCCESS;
}

/* ---- Reductions ------------------------------------------------------------------------------------------------- */

void shared_combine(const struct shared *shared, const struct coll_problem *problem, int ranks, size_t data_bytes, size_t offset,
                    char *out, size_t bytes)
{
    size_t count = bytes / problem->element_bytes;
    const char *sum = shared_given(shared, 0, data_bytes) + offset;
    for (int rank = 1; rank < ranks; rank++) {
        base_op_apply(problem->op, problem->type, sum, shared_given(shared, rank, data_bytes) + offset, out, count);
        sum = out;
    }
    if (ranks == 1) memcpy(out, sum, bytes);
    base_op_finish(problem->op, problem->type, out, count, ranks);
}

/* Everyone who wants the result combines everything. */
static int reduce_flat(struct shared *shared, const struct coll_problem *problem, const char *input, char *result, size_t bytes)
{
    int error = shared_give(shared, input, bytes);
    if (error || !result) return error;
    error = shared_wait_for_all(shared);
    if (error) return error;
    shared_combine(shared, problem, shared->size, bytes, 0, result, bytes);
    return NCCLX_SUCCESS;
}

/* Each rank combines its share, gives it, and whoever wants the result copies all shares. */
static int reduce_shared_out(struct shared *shared, const struct coll_problem *problem, const char *input, char *result, size_t bytes)
{
    size_t count = bytes / problem->element_bytes, size = (size_t)shared->size;
    size_t begin = split_begin(count, size, (size_t)shared->rank) * problem->element_bytes;
    size_t end = split_begin(count, size, (size_t)shared->rank + 1) * problem->element_bytes;
    int error = shared_give(shared, input, bytes);
    if (!error) error = shared_wait_for_all(shared);
    if (error) return error;
    /* The share goes to its own place in the next part's slot. */
    uint64_t gathered = shared->number;
    error = shared_enter(shared);
    if (error) return error;
    char *shares = shared_data(shared, shared->rank, shared->number, bytes);
    shared->number = gathered;
    shared_combine(shared, problem, shared->size, bytes, begin, shares + begin, end - begin);
    shared->number = gathered + 1;
    shared_publish(shared);
    for (size_t i = 0; i < size && result; i++) {
        int rank = (int)(((size_t)shared->rank + i) % size);
        begin = split_begin(count, size, (size_t)rank) * problem->element_bytes;
        end = split_begin(count, size, (size_t)rank + 1) * problem->element_bytes;
        error = i ? shared_wait(shared, rank, shared->number) : NCCLX_SUCCESS;
        if (error) return error;
        memcpy(result + begin, shared_given(shared, rank, bytes) + begin, end - begin);
    }
    return NCCLX_SUCCESS;
}

/* result is null on ranks that do not want it. */
static int reduce_parts(struct shared *shared, const struct coll_problem *problem, const char *input, char *result)
{
    size_t most = shared->data_bytes / problem->element_bytes * problem->element_bytes;
    for (size_t done = 0; done < problem->bytes; done += most) {
        size_t bytes = shared_smaller(problem->bytes - done, most);
        bool share_out = bytes * (size_t)(shared->size - 2) > (problem->name == COLL_REDUCE ? SHARE_OUT_ROOT_BYTES : SHARE_OUT_BYTES);
        char *out = result ? result + done : NULL;
        int error = share_out ? reduce_shared_out(shared, problem, input + done, out, bytes) : reduce_flat(shared,
                                                                                                           problem,
                                                                                                               input + done, out, bytes);
        if (error) return error;
    }
    return NCCLX_SUCCESS;
}

int shared_allreduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    return reduce_parts(shared, problem, problem->in_place ? recvbuf : sendbuf, recvbuf);
}

int shared_reduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    return reduce_parts(shared, problem, problem->in_place ? recvbuf : sendbuf, problem->rank == problem->root ? recvbuf : NULL);
}
