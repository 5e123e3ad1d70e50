/* scan.c - on each rank the contributions of the ranks up to it (scan) or before it (exscan), combined in order. */
#include "coll/algorithms.h"

static struct span result_of(const struct coll_problem *problem)
{
    return span_of(BUFFER_RECV, 0, problem->bytes);
}

/* Hillis and Steele 1986, as between the elements of a vector: before the step of distance d a rank has combined d
 * contributions, its own last; it gets the d before them. */
void scan_recursive_doubling(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span result = result_of(problem), current = problem_input(problem);
    struct span incoming[2] = {builder_scratch(builder, problem->bytes), builder_scratch(builder, problem->bytes)};
    unsigned step = 0;
    for (int64_t distance = 1; distance < size; distance *= 2, step++) {
        struct span arrives = incoming[step % 2];
        builder_round(builder, step);
        if (rank >= distance) builder_receive(builder, arrives, (int)(rank - distance));
        if (rank + distance < size) builder_send(builder, current, (int)(rank + distance));
        if (rank < distance) continue;
        builder_reduce(builder, arrives, current, result);
        current = result;
    }
    builder_copy(builder, current, result);
}

/* What comes from the rank before is the beginning of an exscan's result, and goes there straight unless the input, still
 * needed, is in the way. */
static bool result_is_free(const struct coll_problem *problem)
{
    return !problem->in_place || problem->rank == problem->size - 1;
}

/* The same; what leaves out the own contribution is combined beside it. */
void exscan_recursive_doubling(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span result = result_of(problem), current = problem_input(problem);
    struct span accumulator = builder_scratch(builder, problem->bytes);
    struct span incoming[2] = {builder_scratch(builder, problem->bytes), builder_scratch(builder, problem->bytes)};
    unsigned step = 0;
    for (int64_t distance = 1; distance < size; distance *= 2, step++) {
        struct span arrives = step == 0 && result_is_free(problem) ? result : incoming[step % 2];
        builder_round(builder, step);
        if (rank >= distance) builder_receive(builder, arrives, (int)(rank - distance));
        if (rank + distance < size) builder_send(builder, current, (int)(rank + distance));
        if (rank < distance) continue;
        if (rank + 2 * distance < size) { /* it will be asked for again */
            builder_reduce(builder, arrives, current, accumulator);
            current = accumulator;
        }
        if (step)
            builder_reduce(builder, arrives, result, result);
        else
            builder_copy(builder, arrives, result);
    }
}

/* Pieces along the chain of ranks, each passed on while the next arrives. */
void scan_pipeline(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    size_t pieces = pipeline_pieces(problem);
    struct span input = problem_input(problem), result = result_of(problem), largest = span_split(problem, input, pieces, 0);
    struct span incoming[2] = {builder_scratch(builder, largest.bytes), builder_scratch(builder, largest.bytes)};
    for (size_t i = 0; i < pieces; i++) {
        struct span given = span_split(problem, input, pieces, i), sum = span_split(problem, result, pieces, i);
        struct span arrives = span_part(incoming[i % 2], 0, given.bytes);
        builder_round(builder, (unsigned)i);
        if (rank) builder_receive(builder, arrives, rank - 1);
        if (rank)
            builder_reduce(builder, arrives, given, sum);
        else
            builder_copy(builder, given, sum);
        if (rank + 1 < size) builder_send(builder, sum, rank + 1);
    }
}

void exscan_pipeline(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    size_t pieces = pipeline_pieces(problem);
    struct span input = problem_input(problem), largest = span_split(problem, input, pieces, 0);
    struct span incoming[2] = {builder_scratch(builder, largest.bytes), builder_scratch(builder, largest.bytes)};
    struct span sums[2] = {builder_scratch(builder, largest.bytes), builder_scratch(builder, largest.bytes)};
    for (size_t i = 0; i < pieces; i++) {
        struct span given = span_split(problem, input, pieces, i), leaves = given;
        struct span result = span_split(problem, result_of(problem), pieces, i);
        struct span arrives = result_is_free(problem) ? result : span_part(incoming[i % 2], 0, given.bytes);
        builder_round(builder, (unsigned)i);
        if (rank) builder_receive(builder, arrives, rank - 1);
        if (rank && rank + 1 < size) {
            leaves = span_part(sums[i % 2], 0, given.bytes);
            builder_reduce(builder, arrives, given, leaves);
        }
        if (rank + 1 < size) builder_send(builder, leaves, rank + 1);
        if (rank) builder_copy(builder, arrives, result);
    }
}
