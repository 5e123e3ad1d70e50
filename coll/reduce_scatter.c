/* reduce_scatter.c - contributions of all ranks combined, each rank getting its block. In place the result goes to the
 * beginning of the buffer that holds the input, so it is written when the input is of no more use. */
#include "coll/algorithms.h"

static enum schedule_buffer input_buffer(const struct coll_problem *problem)
{
    return problem->in_place ? BUFFER_RECV : BUFFER_SEND;
}

static struct span input_block(const struct coll_problem *problem, int index)
{
    return problem_block(problem, &problem->recv, input_buffer(problem), index);
}

static struct span whole_input(const struct coll_problem *problem)
{
    struct span last = input_block(problem, problem->size - 1);
    return span_of(input_buffer(problem), 0, last.offset + last.bytes);
}

/* Where this rank's block comes together. */
static struct span own_sum(struct builder *builder)
{
    size_t bytes = builder->problem->bytes;
    return builder->problem->in_place ? builder_scratch(builder, bytes) : span_of(BUFFER_RECV, 0, bytes);
}

static void deliver(struct builder *builder, struct span sum)
{
    struct span result = span_of(BUFFER_RECV, 0, builder->problem->bytes);
    builder_finish(builder, sum);
    builder_copy(builder, sum, result);
}

/* Each block straight to its rank, which combines them in the order of ranks. */
void reduce_scatter_direct(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span result = own_sum(builder), incoming = builder_scratch(builder, (size_t)size * problem->bytes);
    for (int i = 1; i < size; i++) {
        int from = ring_before(rank, i, size);
        builder_receive(builder, span_part(incoming, (size_t)from * problem->bytes, problem->bytes), from);
    }
    for (int i = 1; i < size; i++) builder_send(builder, input_block(problem, ring_after(rank, i, size)), ring_after(rank, i, size));
    struct span sum = {0};
    for (int source = 0; source < size; source++) {
        struct span given =
            source == rank ? input_block(problem, rank) : span_part(incoming, (size_t)source * problem->bytes, problem->bytes);
        if (source) builder_reduce(builder, sum, given, result);
        sum = source ? result : given;
    }
    deliver(builder, result);
}

/* Each block travels once round the ring while contributions are added, starting with the rank after which it is named
 * and ending there. Takes operands in ring order. */
void reduce_scatter_ring(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size, left = ring_before(rank, 1, size), right = ring_after(rank, 1, size);
    size_t largest = 0;
    for (int i = 0; i < size; i++)
        if (input_block(problem, i).bytes > largest) largest = input_block(problem, i).bytes;
    struct span incoming[2] = {builder_scratch(builder, largest), builder_scratch(builder, largest)};
    struct span sums[2] = {builder_scratch(builder, largest), builder_scratch(builder, largest)};
    struct span result = own_sum(builder), leaves = input_block(problem, left);
    for (int step = 0; step < size - 1; step++) {
        struct span given = input_block(problem, ring_before(left, step + 1, size));
        struct span arrives = span_part(incoming[step % 2], 0, given.bytes);
        struct span sum = step == size - 2 ? result : span_part(sums[step % 2], 0, given.bytes);
        builder_round(builder, (unsigned)step);
        builder_receive(builder, arrives, left);
        builder_send(builder, leaves, right);
        builder_reduce(builder, arrives, given, sum);
        leaves = sum;
    }
    deliver(builder, result);
}

/* ---- Vector halving with distance doubling ------------------------------------------------------------------------ */

/* The blocks lie in the order in which halving deals them: rank g of the group, counted with its bits reversed, keeps
 * its own block, and that of the rank it acts for before it. */
static int reversed(const struct fold *fold, int index)
{
    int result = 0;
    for (int bit = 1; bit < fold->size; bit *= 2) result = 2 * result + (index & bit ? 1 : 0);
    return result;
}

/* Copies the blocks of group rank g to `to`, or only counts: returns their bytes. */
static size_t lay_out(struct builder *builder, const struct fold *fold, int g, struct span from, const struct span *to, size_t offset)
{
    const struct coll_problem *problem = builder->problem;
    int last = fold_real_rank(fold, g), first = g < fold->extra ? last - 1 : last;
    size_t bytes = 0;
    for (int owner = first; owner <= last; owner++) {
        struct span place = input_block(problem, owner), part = span_part(from, place.offset, place.bytes);
        if (to) builder_copy(builder, part, span_part(*to, offset + bytes, place.bytes));
        bytes += place.bytes;
    }
    return bytes;
}

/* Where the blocks of the group rank at `index` begin. */
static size_t begin_of(struct builder *builder, const struct fold *fold, int index)
{
    size_t bytes = 0;
    for (int i = 0; i < index; i++) bytes += lay_out(builder, fold, reversed(fold, i), (struct span){0}, NULL, 0);
    return bytes;
}

/* Each step exchanges half of what is left with a partner, twice as far away each time; afterwards `vector` holds the sums
 * of this rank's blocks at begin_of(its index). */
static void halve_blocks(struct builder *builder, const struct fold *fold, struct span vector, struct span incoming)
{
    int first = 0, end = fold->size;
    unsigned round = 1;
    for (int mask = 1; mask < fold->size; mask *= 2) {
        int partner = fold_real_rank(fold, fold->rank ^ mask), middle = first + (end - first) / 2;
        bool upper = fold->rank & mask;
        size_t begin = begin_of(builder, fold, first), half = begin_of(builder, fold, middle), stop = begin_of(builder, fold, end);
        struct span low = span_part(vector, begin, half - begin), high = span_part(vector, half, stop - half);
        struct span mine = upper ? high : low, arrives = span_part(incoming, 0, mine.bytes);
        builder_round(builder, round++);
        builder_receive(builder, arrives, partner);
        builder_send(builder, upper ? low : high, partner);
        if (upper)
            builder_reduce(builder, arrives, mine, mine);
        else
            builder_reduce(builder, mine, arrives, mine);
        if (upper)
            first = middle;
        else
            end = middle;
    }
}

/* Keeps the order of ranks. */
void reduce_scatter_halving(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct fold fold = fold_of(problem);
    struct span input = whole_input(problem), result = span_of(BUFFER_RECV, 0, problem->bytes);
    struct span accumulator = builder_scratch(builder, input.bytes), incoming = builder_scratch(builder, input.bytes);
    struct span current = fold_in(builder, &fold, input, accumulator, incoming);
    if (fold.rank < 0) {
        builder_receive(builder, result, problem->rank + 1);
        return;
    }
    struct span vector = builder_scratch(builder, input.bytes);
    size_t offset = 0;
    for (int i = 0; i < fold.size; i++) offset += lay_out(builder, &fold, reversed(&fold, i), current, &vector, offset);
    halve_blocks(builder, &fold, vector, incoming);
    size_t begin = begin_of(builder, &fold, reversed(&fold, fold.rank));
    size_t other = fold.rank < fold.extra ? input_block(problem, problem->rank - 1).bytes : 0;
    builder_finish(builder, span_part(vector, begin, other + problem->bytes));
    builder_round(builder, 0);
    if (other) builder_send(builder, span_part(vector, begin, other), problem->rank - 1);
    builder_copy(builder, span_part(vector, begin + other, problem->bytes), result);
}
