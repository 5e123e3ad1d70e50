/* reduce.c - contributions of all ranks combined at one. */
#include "coll/algorithms.h"

void reduce_tree(struct builder *builder, struct span input, struct span accumulator, int first)
{
    int size = builder->problem->size, relative = ring_before(builder->problem->rank, first, size);
    struct span current = input, incoming[2];
    unsigned children = 0;
    builder_round(builder, 0);
    for (int64_t mask = 1; mask < size; mask *= 2) {
        if (relative & mask) {
            builder_send(builder, current, ring_after(first, (int)(relative - mask), size));
            return;
        }
        if (relative + mask >= size) continue;
        struct span *arrives = &incoming[children % 2];
        if (children++ < 2) *arrives = builder_scratch(builder, builder->problem->bytes);
        builder_receive(builder, *arrives, ring_after(first, (int)(relative + mask), size));
        builder_reduce(builder, current, *arrives, accumulator);
        current = accumulator;
    }
}

static struct span accumulator_of(struct builder *builder, bool at_root)
{
    size_t bytes = builder->problem->bytes;
    return at_root ? span_of(BUFFER_RECV, 0, bytes) : builder_scratch(builder, bytes);
}

/* Binomial tree, its root at the call's root when the order of operands is free; else at rank 0, which keeps the
 * order of ranks, and one message more to the root. */
void reduce_binomial(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int top = problem->commutative ? problem->root : 0;
    bool leaf = ring_before(problem->rank, top, problem->size) % 2;
    struct span input = problem_input(problem), result = span_of(BUFFER_RECV, 0, problem->bytes);
    struct span accumulator = leaf ? input : accumulator_of(builder, problem->rank == problem->root);
    reduce_tree(builder, input, accumulator, top);
    builder_round(builder, 1);
    if (top != problem->root && problem->rank == top) builder_send(builder, accumulator, problem->root);
    if (problem->rank != problem->root) return;
    if (top != problem->root) builder_receive(builder, result, top);
    builder_finish(builder, result);
}

/* The pieces of `result` come together at group rank `target`, the halving's steps in reverse. */
static void gather_pieces(struct builder *builder, const struct fold *fold, const struct halving *halving, struct span result, int target)
{
    for (int level = halving->levels - 1; level >= 0; level--) {
        int mask = 1 << level, partner = fold_real_rank(fold, fold->rank ^ mask);
        builder_round(builder, 1 + (unsigned)(2 * halving->levels - level));
        if ((fold->rank ^ target) & mask) {
            builder_send(builder, halving_piece(builder, halving, result, level + 1), partner);
            return;
        }
        builder_receive(builder, halving_sibling(builder, halving, result, level), partner);
    }
}

/* Reduce-scatter by vector halving, then a gather to the root. Keeps the order of ranks. */
void reduce_rabenseifner(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct fold fold = fold_of(problem);
    struct span accumulator = accumulator_of(builder, problem->rank == problem->root);
    struct span incoming = builder_scratch(builder, problem->bytes);
    struct span current = fold_in(builder, &fold, problem_input(problem), accumulator, incoming);
    /* Who acts for the root in the group. */
    bool root_left_out = problem->root < 2 * fold.extra && problem->root % 2 == 0;
    int stand_in = root_left_out ? problem->root + 1 : problem->root;
    int target = stand_in < 2 * fold.extra ? stand_in / 2 : stand_in - fold.extra;
    if (fold.rank >= 0) {
        struct halving halving;
        halve(builder, &fold, &halving, current, accumulator, incoming);
        builder_finish(builder, halving_piece(builder, &halving, accumulator, halving.levels));
        gather_pieces(builder, &fold, &halving, accumulator, target);
    }
    builder_round(builder, 0);
    if (root_left_out && problem->rank == stand_in) builder_send(builder, accumulator, problem->root);
    if (root_left_out && problem->rank == problem->root) builder_receive(builder, accumulator, stand_in);
}
