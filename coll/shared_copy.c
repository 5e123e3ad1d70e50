/* shared_copy.c - collectives on long vectors without a copy in between: ranks tell each other where their buffers
 * are, each fetches what it needs from there by system calls, and nobody leaves before all have. And the choice between
 * that and slots.
 *
 * Operands come through scratch memory in pieces that stay in a core's cache from the copy to the combining. It is the
 * rank's own slots: once all have entered a part, nobody looks at what earlier ones held. */
#include "coll/shared_parts.h"

/* The kernel looks every page up for itself, so pieces need not be large to be cheap. */
#define PIECE_BYTES ((size_t)32768)

/* What each rank gives. */
struct place {
    uint64_t input, result;
};

static int enter(struct shared *shared, const void *input, void *result)
{
    struct place place = {(uint64_t)(uintptr_t)input, (uint64_t)(uintptr_t)result};
    return shared_give(shared, &place, sizeof place);
}

/* Of part `number`; the slot stays as it is until this rank enters the part that uses it next. */
static struct place place_of(const struct shared *shared, int rank, uint64_t number)
{
    struct place place;
    memcpy(&place, shared_data(shared, rank, number, sizeof place), sizeof place);
    return place;
}

/* Others may still be at work in this rank's buffers. */
static int leave(struct shared *shared)
{
    int error = shared_give(shared, NULL, 0);
    return error ? error : shared_wait_for_all(shared);
}

static int copy(struct shared *shared, int rank, bool write, void *here, uint64_t there, size_t bytes)
{
    int error = bytes ? shared->copy(shared, rank, write, here, there, bytes) : NCCLX_SUCCESS;
    if (error) shared->error = error;
    return error;
}

/* ---- Reductions -------------------------------------------------------------------------------------------------- */

static char *scratch(const struct shared *shared, size_t half)
{
    return shared->data + shared_index(shared, shared->rank, 0) * shared->data_stride + half * (shared->data_bytes / 2);
}

static size_t piece_bytes(const struct shared *shared, size_t element)
{
    size_t most = shared_smaller(PIECE_BYTES, shared->data_bytes / 2);
    return most / element * element;
}

/* out = bytes at `offset` of all inputs, in rank order. Only the last operand is combined into out, which may be where
 * the own one is: partial results are kept aside. */
static int combine_piece(struct shared *shared, const struct coll_problem *problem, const char *own, size_t offset, char *out, size_t bytes)
{
    size_t count = bytes / problem->element_bytes;
    const char *sum = NULL;
    for (int rank = 0; rank < shared->size; rank++) {
        const char *operand = own + offset;
        if (rank != shared->rank) {
            char *fetched = scratch(shared, sum != NULL);
            int error = copy(shared, rank, false, fetched, place_of(shared, rank, shared->number).input + offset, bytes);
            if (error) return error;
            operand = fetched;
        }
        if (sum) {
            char *to = rank == shared->size - 1 ? out : scratch(shared, 0);
            base_op_apply(problem->op, problem->type, sum, operand, to, count);
            operand = to;
        }
        sum = operand;
    }
    base_op_finish(problem->op, problem->type, out, count, shared->size);
    return NCCLX_SUCCESS;
}

/* Bytes [begin, end) of the result, to `out`; or, with `out` null, to their place in the root's. */
static int combine(struct shared *shared, const struct coll_problem *problem, const char *own, size_t begin, size_t end, char *out)
{
    size_t most = piece_bytes(shared, problem->element_bytes);
    int error = shared_wait_for_all(shared);
    for (size_t done = begin; done < end && !error; done += most) {
        size_t bytes = shared_smaller(end - done, most);
        char *to = out ? out + (done - begin) : scratch(shared, 0);
        error = combine_piece(shared, problem, own, done, to, bytes);
        if (error || out) continue;
        error = copy(shared, problem->root, true, to, place_of(shared, problem->root, shared->number).result + done, bytes);
    }
    return error;
}

static size_t share_begin(const struct shared *shared, const struct coll_problem *problem, int rank)
{
    return split_begin(problem->count, (size_t)shared->size, (size_t)rank) * problem->element_bytes;
}

/* Of two, the root does it alone: what the other combined for it would have to be copied once more. */
static int copy_reduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    char *result = problem->rank == problem->root ? recvbuf : NULL;
    const char *input = problem->in_place ? recvbuf : sendbuf;
    size_t begin = share_begin(shared, problem, shared->rank), end = share_begin(shared, problem, shared->rank + 1);
    if (shared->size == 2) {
        begin = 0;
        end = result ? problem->bytes : 0;
    }
    int error = combine(shared, problem, input, begin, end, result ? result + begin : NULL);
    return error ? error : leave(shared);
}

/* Each rank combines its share, and fetches those of the others. */
static int allreduce_shared_out(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    char *result = recvbuf;
    const char *input = problem->in_place ? recvbuf : sendbuf;
    size_t begin = share_begin(shared, problem, shared->rank), end = share_begin(shared, problem, shared->rank + 1);
    uint64_t entered = shared->number;
    int error = combine(shared, problem, input, begin, end, result + begin);
    if (!error) error = shared_give(shared, NULL, 0);
    uint64_t combined = shared->number;
    for (int i = 1; i < shared->size && !error; i++) {
        int rank = (shared->rank + i) % shared->size;
        begin = share_begin(shared, problem, rank);
        end = share_begin(shared, problem, rank + 1);
        error = shared_wait(shared, rank, combined);
        if (!error) error = copy(shared, rank, false, result + begin, place_of(shared, rank, entered).result + begin, end - begin);
    }
    return error ? error : leave(shared);
}

/* Two ranks save a hand-over when both combine everything, unless results lie where the other still reads. */
static int copy_allreduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    if (shared->size > 2 || problem->in_place) return allreduce_shared_out(shared, problem, sendbuf, recvbuf);
    int error = combine(shared, problem, sendbuf, 0, problem->bytes, recvbuf);
    return error ? error : leave(shared);
}

/* In place, the own block is completed where it stands, and moves to the front when nobody looks there any more. */
static int copy_reduce_scatter(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    size_t begin = 0, own = 0;
    for (int i = 0; i <= problem->rank; i++) shared_walk_to(&walk, i, &begin, &own);
    char *result = problem->in_place ? (char *)recvbuf + begin : recvbuf;
    int error = combine(shared, problem, problem->in_place ? recvbuf : sendbuf, begin, begin + own, result);
    if (!error) error = leave(shared);
    if (!error && problem->in_place) memmove(recvbuf, result, own);
    return error;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* From each rank's input, at `offset`, to its block of the result. */
static int fetch_blocks(struct shared *shared, const struct coll_problem *problem, size_t offset, char *result)
{
    uint64_t entered = shared->number;
    int error = NCCLX_SUCCESS;
    for (int i = 1; i < shared->size && !error; i++) {
        int rank = (shared->rank + i) % shared->size;
        error = shared_wait(shared, rank, entered);
        if (error) return error;
        error = copy(shared, rank, false, result + (size_t)rank * problem->bytes, place_of(shared, rank, entered).input + offset, problem->bytes);
    }
    return error ? error : leave(shared);
}

static int copy_allgather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    if (!problem->in_place) memcpy((char *)recvbuf + (size_t)problem->rank * problem->bytes, sendbuf, problem->bytes);
    return fetch_blocks(shared, problem, 0, recvbuf);
}

static int copy_alltoall(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    size_t own = (size_t)problem->rank * problem->bytes;
    memcpy((char *)recvbuf + own, (const char *)sendbuf + own, problem->bytes);
    return fetch_blocks(shared, problem, own, recvbuf);
}

/* ---- Choice ------------------------------------------------------------------------------------------------------ */

/* How the caches of two cores are connected decides which is faster: near ones hand data over at several times the
 * speed at which the kernel finds pages, far ones at a fraction of it. Where a process runs is not ours to say, and
 * changes; so it is measured now and then, by rank 0 reading what rank 1 has just written, and rank 0 decides for all. To
 * copy 1 KiB so and read the clock takes up to 140 ns between near cores, 220 and more between far ones. */
#define PROBE_BYTES ((size_t)1024)
#define PROBE_EVERY 8 /* calls */
#define FAR_NS 170
#define PROBES_FAR 2 /* so many in a row make it far, as one may have been interrupted; one that is fast makes it near */

static const struct {
    shared_fn slots, copies; /* null: messages */
} forms[COLL_NAMES] = {
    [COLL_BCAST] = {shared_bcast, NULL},
    [COLL_REDUCE] = {shared_reduce, copy_reduce},
    [COLL_ALLREDUCE] = {shared_allreduce, copy_allreduce},
    [COLL_REDUCE_SCATTER] = {shared_reduce_scatter, copy_reduce_scatter},
    [COLL_REDUCE_SCATTER_BLOCK] = {shared_reduce_scatter, copy_reduce_scatter},
    [COLL_ALLGATHER] = {shared_allgather, copy_allgather},
    [COLL_ALLTOALL] = {shared_alltoall, copy_alltoall},
    [COLL_GATHER] = {shared_gather, NULL},
    [COLL_SCATTER] = {shared_scatter, NULL},
};

static char *probe(const struct shared *shared, size_t *bytes)
{
    *bytes = shared_smaller(PROBE_BYTES, shared->data_bytes);
    return shared_data(shared, 1, shared->number, *bytes);
}

/* After long vectors neither the way to this page nor what the clock needs is in any cache, which takes longer than the
 * probe. `line` is of the same page, and not of the probe. */
static void warm(const char *line)
{
    char taken = *(const volatile char *)line;
    uint64_t now = base_clock_ns();
    __asm__ volatile("" ::"r"(taken), "r"(now) : "memory");
}

static int take_probe(struct shared *shared)
{
    char taken[PROBE_BYTES];
    size_t bytes;
    int error = shared_wait(shared, 1, shared->number);
    if (error) return error;
    const char *from = probe(shared, &bytes);
    warm(from - SHARED_LINE);
    uint64_t begun = base_clock_ns();
    memcpy(taken, from, bytes);
    __asm__ volatile("" ::"r"(taken) : "memory"); /* as if it were used */
    bool slow = base_clock_ns() - begun > FAR_NS;
    shared->slow_probes = slow ? shared->slow_probes + 1 : 0;
    return NCCLX_SUCCESS;
}

/* All take what rank 0 knows from the probes before, and it learns from another one. */
static int probe_distance(struct shared *shared)
{
    size_t bytes;
    int error = shared_enter(shared);
    if (error) return error;
    char *data = shared->rank == 1 ? probe(shared, &bytes) : shared_data(shared, shared->rank, shared->number, sizeof(bool));
    if (shared->rank == 1) memset(data, 1, bytes);
    if (shared->rank == 0) shared->far = shared->slow_probes >= PROBES_FAR;
    if (shared->rank == 0) memcpy(data, &shared->far, sizeof shared->far);
    shared_publish(shared);
    if (shared->rank == 0) return take_probe(shared);
    error = shared_wait(shared, 0, shared->number);
    if (!error) memcpy(&shared->far, shared_data(shared, 0, shared->number, sizeof shared->far), sizeof shared->far);
    return error;
}

/* Where blocks in place arrive, others are on their way out. */
static bool can_copy(const struct coll_problem *problem)
{
    return problem->name != COLL_ALLTOALL || !problem->in_place;
}

int shared_single_copy(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    shared_fn run = forms[problem->name].copies;
    if (!run || !can_copy(problem)) return SHARED_DECLINED;
    size_t own = problem->name == COLL_ALLGATHER ? (size_t)problem->rank * problem->bytes : 0;
    int error = enter(shared, problem->in_place ? (char *)recvbuf + own : sendbuf, recvbuf);
    return error ? error : run(shared, problem, sendbuf, recvbuf);
}

int shared_by_distance(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    int error = shared->long_calls++ % PROBE_EVERY ? NCCLX_SUCCESS : probe_distance(shared); /* the same for all ranks */
    if (error) return error;
    shared_fn run = shared->far && can_copy(problem) ? shared_single_copy : forms[problem->name].slots;
    return run(shared, problem, sendbuf, recvbuf);
}
