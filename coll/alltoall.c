/* alltoall.c - a block from each rank to each. */
#include "coll/algorithms.h"

static struct span block_in(const struct builder *builder, struct span buffer, int index)
{
    return span_part(buffer, (size_t)index * builder->problem->bytes, builder->problem->bytes);
}

static struct span whole(const struct builder *builder, enum schedule_buffer buffer)
{
    return span_of(buffer, 0, (size_t)builder->problem->size * builder->problem->bytes);
}

/* What is sent, which receiving does not overwrite: in place that is a copy. */
static struct span stable_input(struct builder *builder)
{
    if (!builder->problem->in_place) return whole(builder, BUFFER_SEND);
    struct span copy = builder_scratch(builder, whole(builder, BUFFER_RECV).bytes);
    builder_copy(builder, whole(builder, BUFFER_RECV), copy);
    return copy;
}

/* Pairwise exchange: in each round every rank has one partner, the same for both, itself included; one block each
 * way is in flight. In place it needs room for one block only. */
void alltoall_pairwise(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    struct span result = whole(builder, BUFFER_RECV), spare = {0};
    if (problem->in_place) spare = builder_scratch(builder, problem->bytes);
    for (int round = 0; round < problem->size; round++) {
        int partner = ring_before(round, problem->rank, problem->size);
        struct span arrives = block_in(builder, result, partner), leaves = spare;
        if (problem->in_place && partner == problem->rank) continue;
        if (problem->in_place) builder_copy(builder, arrives, spare);
        else leaves = block_in(builder, whole(builder, BUFFER_SEND), partner);
        if (partner == problem->rank) {
            builder_copy(builder, leaves, arrives);
            continue;
        }
        builder_receive(builder, arrives, partner);
        builder_send(builder, leaves, partner);
        builder_join(builder);
    }
}

/* Everything at once, each rank starting with another partner. */
void alltoall_direct(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    struct span input = stable_input(builder), result = whole(builder, BUFFER_RECV);
    builder_join(builder);
    for (int i = 1; i < size; i++) builder_receive(builder, block_in(builder, result, ring_before(rank, i, size)),
                                                   ring_before(rank, i, size));
    for (int i = 1; i < size; i++) builder_send(builder, block_in(builder, input, ring_after(rank, i, size)), ring_after(rank, i, size));
    builder_copy(builder, block_in(builder, input, rank), block_in(builder, result, rank));
}

/* Bruck and others 1997: block i of `held` has i places to travel; the step of distance d moves those whose i has
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
