/* gather.c - a block of each rank to one, and back: scatter. */
#include "coll/algorithms.h"

/* ---- Straight to the root ---------------------------------------------------------------------------------------- */

/* The root's own block; in place nothing is to be done. */
static struct span own_recv_block(const struct coll_problem *problem)
{
    return problem_recv_block(problem, problem->rank);
}

/* A block that has not been passed otherwise: root and rank know its size. */
static bool is_left(const struct coll_problem *problem, struct span block)
{
    return !problem->passed || block.bytes > problem->passed;
}

void gather_linear(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    if (problem->rank != problem->root) {
        if (is_left(problem, problem_input(problem))) builder_send(builder, problem_input(problem), problem->root);
        return;
    }
    for (int i = 1; i < problem->size; i++) {
        int from = ring_after(problem->rank, i, problem->size);
        struct span block = problem_recv_block(problem, from);
        if (is_left(problem, block)) builder_receive(builder, block, from);
    }
    if (!problem->in_place && !problem->passed) builder_copy(builder, problem_input(problem), own_recv_block(problem));
}

void scatter_linear(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct span result = span_of(BUFFER_RECV, 0, problem->bytes);
    if (problem->rank != problem->root) {
        if (is_left(problem, result)) builder_receive(builder, result, problem->root);
        return;
    }
    for (int i = 1; i < problem->size; i++) {
        int to = ring_after(problem->rank, i, problem->size);
        struct span block = problem_send_block(problem, to);
        if (is_left(problem, block)) builder_send(builder, block, to);
    }
    if (!problem->in_place && !problem->passed) builder_copy(builder, problem_send_block(problem, problem->rank), result);
}

/* ---- Along a binomial tree, for blocks of one size ---------------------------------------------------------------- */

/* Ranks are counted from the root. A node's subtree is the ranks [first, end); its children are first + 1, first + 2,
 * first + 4, ... below first + span, and its parent is first - span. */
struct subtree {
    int64_t first, end, span;
    struct span held; /* the blocks: at the root in the order of ranks, else in that of the subtree */
};

static struct subtree subtree_of(const struct coll_problem *problem)
{
    struct subtree tree = {.first = ring_before(problem->rank, problem->root, problem->size), .span = 1};
    while (tree.span < problem->size && !(tree.first & tree.span)) tree.span *= 2;
    tree.end = tree.first + tree.span < problem->size ? tree.first + tree.span : problem->size;
    return tree;
}

/* Blocks [begin, end) where this rank holds them. */
static struct span held_blocks(const struct coll_problem *problem, const struct subtree *tree, int64_t begin, int64_t end)
{
    int64_t place = tree->first ? begin - tree->first : (begin + problem->root) % problem->size;
    return span_part(tree->held, (size_t)place * problem->bytes, (size_t)(end - begin) * problem->bytes);
}

/* Blocks [begin, end) to or from a peer, in two messages where the root holds them in two places: before and after the
 * block of rank 0. */
static void exchange(struct builder *builder, const struct subtree *tree, int64_t begin, int64_t end, int64_t peer, bool send)
{
    const struct coll_problem *problem = builder->problem;
    int64_t wrap = problem->size - problem->root, middle = wrap <= begin ? begin : wrap < end ? wrap : end;
    for (unsigned half = 0; half < 2; half++) {
        struct span blocks = held_blocks(problem, tree, half ? middle : begin, half ? end : middle);
        builder_round(builder, half);
        if (send)
            builder_send(builder, blocks, ring_after(problem->root, (int)peer, problem->size));
        else
            builder_receive(builder, blocks, ring_after(problem->root, (int)peer, problem->size));
    }
}

static void with_children(struct builder *builder, const struct subtree *tree, bool send)
{
    for (int64_t span = tree->span / 2; span >= 1; span /= 2) {
        int64_t child = tree->first + span, end = child + span < tree->end ? child + span : tree->end;
        if (child < tree->end) exchange(builder, tree, child, end, child, send);
    }
}

void gather_binomial(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct subtree tree = subtree_of(problem);
    bool leaf = tree.end == tree.first + 1;
    size_t blocks = (size_t)(tree.end - tree.first);
    if (!tree.first)
        tree.held = span_of(BUFFER_RECV, 0, blocks * problem->bytes);
    else
        tree.held = leaf ? problem_input(problem) : builder_scratch(builder, blocks * problem->bytes);
    if (!problem->in_place) builder_copy(builder, problem_input(problem), held_blocks(problem, &tree, tree.first, tree.first + 1));
    with_children(builder, &tree, false);
    if (tree.first) exchange(builder, &tree, tree.first, tree.end, tree.first - tree.span, true);
}

void scatter_binomial(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct subtree tree = subtree_of(problem);
    bool leaf = tree.end == tree.first + 1;
    size_t blocks = (size_t)(tree.end - tree.first);
    struct span result = span_of(BUFFER_RECV, 0, problem->bytes);
    if (!tree.first)
        tree.held = span_of(BUFFER_SEND, 0, blocks * problem->bytes);
    else
        tree.held = leaf ? result : builder_scratch(builder, blocks * problem->bytes);
    if (tree.first) exchange(builder, &tree, tree.first, tree.end, tree.first - tree.span, false);
    with_children(builder, &tree, true);
    if (!problem->in_place) builder_copy(builder, held_blocks(problem, &tree, tree.first, tree.first + 1), result);
}
