/* allgather.c - every rank's block to all, blocks of one size or of many. */
#include "coll/algorithms.h"

static struct span block(const struct builder *builder, int owner)
{
    return problem_recv_block(builder->problem, owner);
}

/* This rank's own block; outside recvbuf it is copied there too. */
static struct span own_block(struct builder *builder)
{
    struct span place = block(builder, builder->problem->rank);
    if (builder->problem->in_place) return place;
    struct span input = problem_input(builder->problem);
    builder_copy(builder, input, place);
    return input;
}

/* Ring (Thakur, Rabenseifner and Gropp 2005, section 4.1): each block goes once round. */
void allgather_ring(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    int left = ring_before(rank, 1, size), right = ring_after(rank, 1, size);
    struct span current = own_block(builder);
    for (int step = 0; step < size - 1; step++) {
        struct span next = block(builder, ring_before(rank, step + 1, size));
        builder_round(builder, (unsigned)step);
        builder_receive(builder, next, left);
        builder_send(builder, current, right);
        current = next;
    }
}

/* Two rings, one in each direction: half of the steps, two messages each way in a step. */
void allgather_bidirectional_ring(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    int left = ring_before(rank, 1, size), right = ring_after(rank, 1, size);
    int from_left = size / 2, from_right = size - 1 - from_left;
    struct span rightwards = own_block(builder), leftwards = rightwards;
    for (int step = 0; step < from_left; step++) {
        struct span next = block(builder, ring_before(rank, step + 1, size));
        builder_round(builder, 2 * (unsigned)step);
        builder_receive(builder, next, left);
        builder_send(builder, rightwards, right);
        rightwards = next;
        if (step == from_right) continue;
        next = block(builder, ring_after(rank, step + 1, size));
        builder_round(builder, 2 * (unsigned)step + 1);
        builder_receive(builder, next, right);
        builder_send(builder, leftwards, left);
        leftwards = next;
    }
}

/* Bytes of `count` blocks, from that of the rank `first` places after this one on. */
static size_t bytes_after(const struct builder *builder, int64_t first, int64_t count)
{
    const struct coll_problem *problem = builder->problem;
    size_t bytes = 0;
    if (!problem->recv.counts) return (size_t)count * problem->bytes;
    for (int64_t i = first; i < first + count; i++)
        bytes += block(builder, ring_after(problem->rank, (int)i, problem->size)).bytes;
    return bytes;
}

/* Blocks in ring order, this rank's first, to their places: one copy for all that stand in a row there. */
static void turn_into_place(struct builder *builder, struct span held)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    size_t done = 0, before = (size_t)rank * problem->bytes, rest = (size_t)(size - rank) * problem->bytes;
    struct span row = span_of(BUFFER_RECV, 0, 0);
    if (!problem->recv.counts) { /* two rows */
        builder_copy(builder, span_part(held, 0, rest), span_of(BUFFER_RECV, before, rest));
        builder_copy(builder, span_part(held, rest, before), span_of(BUFFER_RECV, 0, before));
        return;
    }
    for (int i = 0; i < size; i++) {
        struct span next = block(builder, ring_after(rank, i, size));
        if (next.bytes && next.offset != row.offset + row.bytes) {
            builder_copy(builder, span_part(held, done, row.bytes), row);
            done += row.bytes;
            row = span_of(BUFFER_RECV, next.offset, 0);
        }
        row.bytes += next.bytes;
    }
    builder_copy(builder, span_part(held, done, row.bytes), row);
}

/* Bruck and others 1997: ceil(log2 size) messages each way, whatever the number of blocks in them; blocks are kept in
 * the order in which they come, own first, and turned into place at the end. */
void allgather_bruck(struct builder *builder)
{
    const struct coll_problem *problem = builder->problem;
    int rank = problem->rank, size = problem->size;
    struct span own = problem->in_place ? block(builder, rank) : problem_input(problem);
    struct span held = builder_scratch(builder, bytes_after(builder, 0, size));
    size_t known = own.bytes; /* of the first `distance` blocks */
    unsigned round = 0;
    builder_copy(builder, own, span_part(held, 0, known));
    for (int64_t distance = 1; distance < size; distance *= 2) {
        int64_t blocks = distance < size - distance ? distance : size - distance;
        size_t more = bytes_after(builder, distance, blocks),
               ours = blocks == distance ? known : bytes_after(builder, 0, blocks);
        builder_round(builder, round++);
        builder_receive(builder, span_part(held, known, more), ring_after(rank, (int)distance, size));
        builder_send(builder, span_part(held, 0, ours), ring_before(rank, (int)distance, size));
        known += more;
    }
    turn_into_place(builder, held);
}

/* Recursive doubling with the farthest first: the distance halves, so the step with most data goes to the nearest
 * rank, which neighbours in rank order make cheap. Before the step of distance d a rank holds the blocks of the
 * ranks 0, 2d, 4d, ... places before it; it passes on those that the rank d places after it needs. Any number of
 * ranks; blocks travel straight between the receive buffers. */
void allgather_recursive_doubling(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    struct span own = own_block(builder);
    int64_t distance = 1;
    while (2 * distance < size) distance *= 2;
    for (; distance >= 1; distance /= 2) {
        int to = ring_after(rank, (int)distance, size), from = ring_before(rank, (int)distance, size);
        for (int64_t offset = 0; offset + distance < size; offset += 2 * distance) {
            builder_round(builder, (unsigned)offset);
            builder_receive(builder, block(builder, ring_before(from, (int)offset, size)), from);
            builder_send(builder, offset ? block(builder, ring_before(rank, (int)offset, size)) : own, to);
        }
    }
}
