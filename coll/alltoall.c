/* alltoall.c - a block from each rank to each, blocks of one size or of many. */
#include "coll/algorithms.h"

static struct span block_in(const struct builder *builder, struct span buffer, int index)
{
    return span_part(buffer, (size_t)index * builder->problem->bytes, builder->problem->bytes);
}

static struct span whole(const struct builder *builder, enum schedule_buffer buffer)
{
    return span_of(buffer, 0, (size_t)builder->problem->size * builder->problem->bytes);
}

static struct span arriving(const struct builder *builder, int source)
{
    return problem_recv_block(builder->problem, source);
}

/* In place, blocks come to where they leave from. */
static struct span leaving(const struct builder *builder, int destination)
{
    if (builder->problem->in_place) return arriving(builder, destination);
    return problem_send_block(builder->problem, destination);
}

static size_t largest_block(const struct builder *builder)
{
    size_t largest = 0;
    for (int i = 0; i < builder->problem->size; i++)
        if (leaving(builder, i).bytes > largest) largest = leaving(builder, i).bytes;
    return largest;
}

/* Pairwise exchange: in each round every rank has one partner, the same for both, itself included; one block each
 * way is in flight. In place it needs room for one block only. */
void alltoall_pairwise(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct span spare = {0};
    if (problem->in_place) spare = builder_scratch(builder, largest_block(builder));
    for (int round = 0; round < problem->size; round++) {
        int partner = ring_before(round, problem->rank, problem->size);
        struct span leaves = leaving(builder, partner);
        if (partner == problem->rank) {
            builder_copy(builder, leaves, arriving(builder, partner)); /* in place: nothing */
            continue;
        }
        if (problem->in_place) {
            struct span kept = span_part(spare, 0, leaves.bytes);
            builder_copy(builder, leaves, kept);
            leaves = kept;
        }
        builder_receive(builder, arriving(builder, partner), partner);
        builder_send(builder, leaves, partner);
        builder_join(builder);
    }
}

/* Copies of what is to be sent, one after the other, so that receiving may overwrite it. */
static struct span copy_aside(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    size_t bytes = 0, offset = 0;
    for (int i = 1; i < size; i++) bytes += leaving(builder, ring_after(rank, i, size)).bytes;
    struct span copies = builder_scratch(builder, bytes);
    for (int i = 1; i < size; i++) {
        struct span leaves = leaving(builder, ring_after(rank, i, size));
        builder_copy(builder, leaves, span_part(copies, offset, leaves.bytes));
        offset += leaves.bytes;
    }
    return copies;
}

/* Everything at once, each rank starting with another partner. */
void alltoall_direct(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span copies = problem->in_place ? copy_aside(builder) : (struct span){0};
    size_t offset = 0;
    for (int i = 1; i < size; i++) {
        int from = ring_before(rank, i, size);
        builder_receive(builder, arriving(builder, from), from);
    }
    for (int i = 1; i < size; i++) {
        struct span leaves = leaving(builder, ring_after(rank, i, size));
        if (problem->in_place) leaves = span_part(copies, offset, leaves.bytes);
        builder_send(builder, leaves, ring_after(rank, i, size));
        offset += leaves.bytes;
    }
    builder_copy(builder, leaving(builder, rank), arriving(builder, rank));
}

/* Bruck and others 1997, for blocks of one size: block i of `held` has i places to travel; the step of distance d moves those whose i has
 * bit d set. ceil(log2 size) steps, each of about half of all blocks. */
void alltoall_bruck(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span input = whole(builder, problem->in_place ? BUFFER_RECV : BUFFER_SEND), result = whole(builder, BUFFER_RECV);
    struct span held = builder_scratch(builder, result.bytes);
    struct span leaves = builder_scratch(builder, result.bytes), arrives = builder_scratch(builder, result.bytes);
    unsigned round = 0;
    for (int i = 0; i < size; i++) builder_copy(builder, block_in(builder, input, ring_after(rank, i, size)), block_in(builder, held, i));
    builder_join(builder);
    for (int64_t distance = 1; distance < size; distance *= 2) {
        int blocks = 0;
        for (int i = 0; i < size; i++)
            if (i & distance) builder_copy(builder, block_in(builder, held, i), block_in(builder, leaves, blocks++));
        builder_round(builder, round++);
        builder_receive(builder, span_part(arrives, 0, (size_t)blocks * problem->bytes), ring_before(rank, (int)distance, size));
        builder_send(builder, span_part(leaves, 0, (size_t)blocks * problem->bytes), ring_after(rank, (int)distance, size));
        blocks = 0;
        for (int i = 0; i < size; i++)
            if (i & distance) builder_copy(builder, block_in(builder, arrives, blocks++), block_in(builder, held, i));
        builder_join(builder);
    }
    for (int i = 0; i < size; i++) builder_copy(builder, block_in(builder, held, i), block_in(builder, result, ring_before(rank, i, size)));
}
