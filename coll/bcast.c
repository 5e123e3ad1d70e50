/* bcast.c - one rank's buffer to all. */
#include "coll/algorithms.h"

/* The pipeline sends pieces of this size, more when the buffer is so large that there would be too many of them:
 * large enough to run at full bandwidth, small enough that the chain fills quickly. */
#define PIPELINE_PIECE ((size_t)128 << 10)
#define PIPELINE_MOST_PIECES 64
/* Children of an inner node of the k-ary tree: fewer levels than a binary tree, fewer sends of one rank than a binomial
 * one. */
#define KARY 4

size_t pipeline_pieces(const struct coll_problem *problem)
{
    size_t pieces = problem->bytes / PIPELINE_PIECE + 1;
    return pieces > PIPELINE_MOST_PIECES ? PIPELINE_MOST_PIECES : pieces;
}

static struct span buffer_of(const struct builder *builder)
{
    return span_of(BUFFER_RECV, 0, builder->problem->bytes);
}

void bcast_tree(struct builder *builder, struct span buf, int root, unsigned round)
{
    int size = builder->problem->size, relative = ring_before(builder->problem->rank, root, size);
    int64_t mask = 1;
    builder_round(builder, round);
    while (mask < size && !(relative & mask)) mask *= 2;
    if (relative) builder_receive(builder, buf, ring_after(root, (int)(relative - mask), size));
    while (mask /= 2)
        if (relative + mask < size) builder_send(builder, buf, ring_after(root, (int)(relative + mask), size));
}

void bcast_binomial(struct builder *builder)
{
    bcast_tree(builder, buffer_of(builder), builder->problem->root, 0);
}

/* Blocks [first, end) of the buffer dealt to all ranks. */
static struct span blocks(const struct builder *builder, int64_t first, int64_t end)
{
    const struct coll_problem *problem = builder->problem;
    size_t begin = span_split(problem, buffer_of(builder), (size_t)problem->size, (size_t)first).offset;
    size_t stop = end < problem->size ? span_split(problem, buffer_of(builder), (size_t)problem->size, (size_t)end).offset : problem->bytes;
    return span_of(BUFFER_RECV, begin, stop - begin);
}

/* Scatter along a binomial tree, then all-gather on a ring (Van de Geijn; Thakur, Rabenseifner and Gropp 2005,
 * section 4.2). Ranks and blocks are counted from the root. */
void bcast_scatter_allgather(struct builder *builder)
{
    int root = builder->problem->root, size = builder->problem->size, relative = ring_before(builder->problem->rank, root, size);
    int left = ring_before(builder->problem->rank, 1, size), right = ring_after(builder->problem->rank, 1, size);
    int64_t mask = 1;
    builder_round(builder, 0);
    while (mask < size && !(relative & mask)) mask *= 2;
    if (relative) {
        int64_t end = relative + mask < size ? relative + mask : size;
        builder_receive(builder, blocks(builder, relative, end), ring_after(root, (int)(relative - mask), size));
    }
    while (mask /= 2) {
        int64_t child = relative + mask, end = child + mask < size ? child + mask : size;
        if (child < size) builder_send(builder, blocks(builder, child, end), ring_after(root, (int)child, size));
    }
    for (int step = 0; step < size - 1; step++) {
        int give = ring_before(relative, step, size), take = ring_before(relative, step + 1, size);
        builder_round(builder, 1 + (unsigned)step);
        /* The root has every block, and its neighbours on the ring know it. */
        if (relative) builder_receive(builder, blocks(builder, take, take + 1), left);
        if (right != root) builder_send(builder, blocks(builder, give, give + 1), right);
    }
}

/* Pieces along a chain of all ranks, each passed on while the next arrives. */
void bcast_pipeline(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int root = problem->root, size = problem->size, relative = ring_before(problem->rank, root, size);
    int left = ring_before(problem->rank, 1, size), right = ring_after(problem->rank, 1, size);
    size_t pieces = pipeline_pieces(problem);
    for (size_t i = 0; i < pieces; i++) {
        struct span piece = span_split(problem, buffer_of(builder), pieces, i);
        builder_round(builder, (unsigned)i);
        if (relative) builder_receive(builder, piece, left);
        if (relative != size - 1) builder_send(builder, piece, right);
    }
}

/* Pieces down a complete k-ary tree, whose nodes are numbered from the root level by level. */
void bcast_kary(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int root = problem->root, size = problem->size, relative = ring_before(problem->rank, root, size);
    int64_t first_child = (int64_t)KARY * relative + 1;
    size_t pieces = pipeline_pieces(problem);
    for (size_t i = 0; i < pieces; i++) {
        struct span piece = span_split(problem, buffer_of(builder), pieces, i);
        builder_round(builder, (unsigned)i);
        if (relative) builder_receive(builder, piece, ring_after(root, (relative - 1) / KARY, size));
        for (int64_t child = first_child; child < first_child + KARY && child < size; child++)
            builder_send(builder, piece, ring_after(root, (int)child, size));
    }
}
