/* shared_copy.c - collectives on long vectors without a copy in between: ranks tell each other where their buffers
 * are, each fetches what it needs from there by system calls, and nobody leaves before all have. And the choice between
 * that and slots, which is measured.
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

/* Which form is faster depends on how the caches of the cores are connected, on the kernel, on the size and the number of
 * ranks, and it changes when processes move. So each call is timed, and rank 0 decides for all (choice.h), for each collective
 * and size by itself: at the beginning of every round, the others tell it what each call of the one before took them, and it
 * tells all the ways of the calls to come. */
struct report {
    uint32_t took[SHARED_ROUND];
    uint32_t ways; /* rank 0: of the calls to come */
};
_Static_assert(sizeof(struct report) <= SHARED_INLINE, "a report is one line");
_Static_assert(SHARED_ROUND * SHARED_WAY_BITS <= 32, "a round's ways are one word");

/* Up to here slots are also tried past the caches: between cores that share none a line comes faster from memory than out of
 * the other's. Longer vectors fill the caches anyway, and trials of them are dear. */
#define PAST_BYTES ((size_t)262144)

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

/* Per 64 KiB, so that the sizes of a class compare. */
static uint32_t pace_of(uint64_t ns, size_t bytes)
{
    uint64_t pace = ns * 65536 / (bytes ? bytes : 1) + 1;
    return pace < UINT32_MAX ? (uint32_t)pace : UINT32_MAX;
}

/* What all ranks know of a problem's size. */
static size_t common_bytes(const struct coll_problem *problem)
{
    return problem->name == COLL_REDUCE_SCATTER ? problem->total_bytes : problem->bytes;
}

struct shared_pace *shared_pace_of(struct shared *shared, const struct coll_problem *problem)
{
    size_t units = common_bytes(problem) / SHARED_PACE_LEAST;
    unsigned class = units ? 64 - (unsigned)__builtin_clzll(units) : 0;
    return &shared->pace[problem->name][class < SHARED_PACE_CLASSES ? class : SHARED_PACE_CLASSES - 1];
}

static unsigned way_of(uint32_t ways, unsigned call)
{
    return ways >> call * SHARED_WAY_BITS & ((1u << SHARED_WAY_BITS) - 1);
}

/* Rank 0, when the others have reported: of each call the slowest rank counts. */
static int learn(struct shared *shared, struct shared_pace *pace)
{
    for (int rank = 1; rank < shared->size; rank++) {
        struct report report;
        int error = shared_wait(shared, rank, shared->number);
        if (error) return error;
        memcpy(&report, shared_given(shared, rank, sizeof report), sizeof report);
        for (int call = 0; call < SHARED_ROUND; call++)
            if (report.took[call] > pace->took[call]) pace->took[call] = report.took[call];
    }
    for (unsigned call = 0; call < SHARED_ROUND; call++) choice_learn(&pace->choice, way_of(pace->ways, call), pace->took[call]);
    return NCCLX_SUCCESS;
}

/* Of a class that was not used yet: what the nearest smaller one has learnt. */
static void take_after(struct shared_pace *pace, const struct shared_pace *smallest, unsigned ways)
{
    for (const struct shared_pace *from = pace; from-- > smallest;) {
        if (!choice_knows(&from->choice)) continue;
        unsigned best = choice_best(&from->choice);
        choice_init(&pace->choice, ways, best < ways ? best : SHARED_SLOTS);
        return;
    }
    choice_init(&pace->choice, ways, SHARED_SLOTS);
}

/* Where ranks take turns on cores they find each other's data in their own caches. */
static unsigned ways_for(const struct shared *shared, size_t bytes)
{
    return bytes <= PAST_BYTES && !shared->rt->job.oversubscribed ? SHARED_WAYS : SHARED_PAST;
}

static int begin_round(struct shared *shared, struct shared_pace *pace, const struct coll_problem *problem)
{
    int error = shared_enter(shared);
    if (error) return error;
    struct report report = {.ways = 0};
    memcpy(report.took, pace->took, sizeof report.took);
    if (shared->rank == 0) {
        if (pace->calls == 1) take_after(pace, shared->pace[problem->name], ways_for(shared, common_bytes(problem)));
        else error = learn(shared, pace);
        if (error) return error;
        for (unsigned call = 0; call < SHARED_ROUND; call++) report.ways |= choice_next(&pace->choice) << call * SHARED_WAY_BITS;
    }
    memcpy(shared_data(shared, shared->rank, shared->number, sizeof report), &report, sizeof report);
    shared_publish(shared);
    if (shared->rank != 0) error = shared_wait(shared, 0, shared->number);
    if (error) return error;
    memcpy(&report, shared_given(shared, 0, sizeof report), sizeof report);
    pace->ways = report.ways;
    return NCCLX_SUCCESS;
}

void shared_timed(struct shared *shared)
{
    struct shared_pace *pace = shared->timed;
    pace->took[(pace->calls - 1) % SHARED_ROUND] = pace_of(base_clock_ns() - shared->begun_ns, shared->timed_bytes);
    shared->timed = NULL;
    shared->past = false;
}

/* Where blocks in place arrive, others are on their way out. */
static bool can_copy(const struct shared *shared, const struct coll_problem *problem)
{
    return shared->copy && (problem->name != COLL_ALLTOALL || !problem->in_place);
}

int shared_single_copy(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    shared_fn run = forms[problem->name].copies;
    if (!run || !can_copy(shared, problem)) return SHARED_DECLINED;
    size_t own = problem->name == COLL_ALLGATHER ? (size_t)problem->rank * problem->bytes : 0;
    int error = enter(shared, problem->in_place ? (char *)recvbuf + own : sendbuf, recvbuf);
    return error ? error : run(shared, problem, sendbuf, recvbuf);
}

int shared_measured(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    if (!can_copy(shared, problem)) return forms[problem->name].slots(shared, problem, sendbuf, recvbuf);
    struct shared_pace *pace = shared_pace_of(shared, problem);
    unsigned call = pace->calls++ % SHARED_ROUND;
    int error = call ? NCCLX_SUCCESS : begin_round(shared, pace, problem); /* the same for all ranks */
    if (error) return error;
    unsigned way = way_of(pace->ways, call);
    shared->past = way == SHARED_PAST;
    shared->timed = pace;
    shared->timed_bytes = common_bytes(problem);
    shared->begun_ns = base_clock_ns();
    return (way == SHARED_COPIES ? shared_single_copy : forms[problem->name].slots)(shared, problem, sendbuf, recvbuf);
}
