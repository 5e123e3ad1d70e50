/* allreduce.c - contributions of all ranks combined on all. Every element is combined by one rank, or by all in the
 * same order with the same operands, so that all ranks get the same bits. */
#include "coll/algorithms.h"

/* Recursive doubling (Thakur, Rabenseifner and Gropp 2005, section 4.5): in step k partners 2^k apart exchange what
 * they have. */
void allreduce_recursive_doubling(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct fold fold = fold_of(problem);
    struct span result = span_of(BUFFER_RECV, 0, problem->bytes);
    /* Two, so that the next step's receive is posted before this step's message is used up. */
    struct span incoming[2] = {builder_scratch(builder, problem->bytes), builder_scratch(builder, problem->bytes)};
    struct span current = fold_in(builder, &fold, problem_input(problem), result, incoming[1]);
    unsigned step = 0;
    for (int mask = 1; mask < fold.size && fold.rank >= 0; mask *= 2) {
        int partner = fold_real_rank(&fold, fold.rank ^ mask);
        struct span arrives = incoming[step++ % 2];
        builder_round(builder, step);
        builder_receive(builder, arrives, partner);
        builder_send(builder, current, partner);
        if (fold.rank & mask) builder_reduce(builder, arrives, current, result);
        else builder_reduce(builder, current, arrives, result);
        current = result;
    }
    if (fold.rank >= 0) builder_finish(builder, result);
    fold_out(builder, &fold, result);
}

/* Reduce-scatter by vector halving, all-gather by vector doubling. Keeps the order of ranks. */
void allreduce_rabenseifner(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct fold fold = fold_of(problem);
    struct span result = span_of(BUFFER_RECV, 0, problem->bytes), incoming = builder_scratch(builder, problem->bytes);
    struct span current = fold_in(builder, &fold, problem_input(problem), result, incoming);
    if (fold.rank >= 0) {
        struct halving halving;
        halve(builder, &fold, &halving, current, result, incoming);
        builder_finish(builder, halving_piece(builder, &halving, result, halving.levels));
        for (int level = halving.levels - 1; level >= 0; level--) {
            int partner = fold_real_rank(&fold, fold.rank ^ 1 << level);
            builder_round(builder, 1 + (unsigned)(2 * halving.levels - level));
            builder_receive(builder, halving_sibling(builder, &halving, result, level), partner);
            builder_send(builder, halving_piece(builder, &halving, result, level + 1), partner);
        }
    }
    fold_out(builder, &fold, result);
}

/* Ring (Patarasuk and Yuan 2009): each chunk travels round once while contributions are added, starting with the
 * rank after which it is named, and once more complete. Takes operands in ring order, so the operation must be
 * commutative. */
void allreduce_ring(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size, left = ring_before(rank, 1, size), right = ring_after(rank, 1, size);
    size_t parts = (size_t)size, largest = split_begin(problem->count, parts, 1) * problem->element_bytes;
    struct span input = problem_input(problem), result = span_of(BUFFER_RECV, 0, problem->bytes);
    struct span incoming[2] = {builder_scratch(builder, largest), builder_scratch(builder, largest)};
    unsigned round = 0;
    for (int step = 0; step < size - 1; step++) {
        size_t give = (size_t)ring_before(rank, step, size), take = (size_t)ring_before(rank, step + 1, size);
        struct span sum = span_split(problem, result, parts, take);
        struct span arrives = span_part(incoming[step % 2], 0, sum.bytes);
        builder_round(builder, round++);
        builder_receive(builder, arrives, left);
        builder_send(builder, span_split(problem, step ? result : input, parts, give), right);
        builder_reduce(builder, arrives, span_split(problem, input, parts, take), sum);
    }
    builder_finish(builder, span_split(problem, result, parts, (size_t)right));
    for (int step = 0; step < size - 1; step++) {
        builder_round(builder, round++);
        builder_receive(builder, span_split(problem, result, parts, (size_t)ring_before(rank, step, size)), left);
        builder_send(builder, span_split(problem, result, parts, (size_t)ring_before(right, step, size)), right);
    }
}

/* Up one binomial tree and down another: fewest messages. Keeps the order of ranks. */
void allreduce_reduce_bcast(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct span result = span_of(BUFFER_RECV, 0, problem->bytes);
    reduce_tree(builder, problem_input(problem), result, 0);
    if (problem->rank == 0) builder_finish(builder, result);
    bcast_tree(builder, result, 0, 1);
}
