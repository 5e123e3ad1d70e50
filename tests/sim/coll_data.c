/* coll_data.c - elements, layouts, and the serial reference. */
#include "tests/sim/coll_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements for one rank never have the index of those for another. */
#define STRIDE 100000u

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

/* x -> a x + b over the integers modulo 2^64: composition is associative, and hardly ever commutative. */
struct line {
    int64_t a, b;
};

static struct line compose(struct line first, struct line second)
{
    return (struct line){(int64_t)((uint64_t)second.a * (uint64_t)first.a),
                         (int64_t)((uint64_t)second.a * (uint64_t)first.b + (uint64_t)second.b)};
}

static void compose_all(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    (void)type, (void)user;
    for (size_t i = 0; i < count; i++) {
        struct line lower, higher;
        memcpy(&lower, (const char *)in + i * sizeof lower, sizeof lower);
        memcpy(&higher, (char *)inout + i * sizeof higher, sizeof higher);
        higher = compose(lower, higher);
        memcpy((char *)inout + i * sizeof higher, &higher, sizeof higher);
    }
}

static struct ncclx_op compose_op = {.function = compose_all, .references = 1, .commutative = false};

bool coll_data_reduces(enum coll_name name)
{
    return name == COLL_REDUCE || name == COLL_ALLREDUCE || name == COLL_REDUCE_SCATTER || name == COLL_REDUCE_SCATTER_BLOCK ||
           name == COLL_SCAN || name == COLL_EXSCAN;
}

ncclx_datatype_t coll_data_type(const struct coll_world_case *c)
{
    if (!coll_data_reduces(c->name)) return NCCLX_INT64;
    return c->ordered ? NCCLX_INT64_PAIR : c->single ? NCCLX_FLOAT : NCCLX_INT64;
}

ncclx_op_t coll_data_op(const struct coll_world_case *c)
{
    if (!coll_data_reduces(c->name)) return NCCLX_OP_NULL;
    return c->ordered ? &compose_op : c->average ? NCCLX_AVG : NCCLX_SUM;
}

static void element(const struct coll_world_case *c, int rank, size_t index, unsigned start, void *out)
{
    int64_t value = (int64_t)index * 131 + rank * 1009 + (int64_t)start * 7 + 1;
    if (coll_data_type(c) == NCCLX_INT64_PAIR) {
        struct line line = {value | 1, value * 3 + rank};
        memcpy(out, &line, sizeof line);
    } else if (coll_data_type(c) == NCCLX_FLOAT) {
        float number = (float)value / 7.0f;
        memcpy(out, &number, sizeof number);
    } else {
        memcpy(out, &value, sizeof value);
    }
}

/* Contributions of ranks 0 to `ranks` - 1, combined in this order. */
static void reduced(const struct coll_world_case *c, int ranks, size_t index, unsigned start, void *out)
{
    char sum[16], next[16];
    element(c, 0, index, start, sum);
    for (int rank = 1; rank < ranks; rank++) {
        element(c, rank, index, start, next);
        base_op_apply(coll_data_op(c), coll_data_type(c), sum, next, sum, 1);
    }
    base_op_finish(coll_data_op(c), coll_data_type(c), sum, 1, ranks);
    memcpy(out, sum, base_type_size(coll_data_type(c)));
}

static bool from_every_rank_to_every_rank(enum coll_name name)
{
    return name == COLL_ALLTOALL || name == COLL_ALLTOALLV;
}

static bool from_one(enum coll_name name)
{
    return name == COLL_SCATTER || name == COLL_SCATTERV;
}

static bool to_all_or_one(enum coll_name name)
{
    return name == COLL_ALLGATHER || name == COLL_ALLGATHERV || name == COLL_GATHER || name == COLL_GATHERV;
}

static bool scatters_sums(enum coll_name name)
{
    return name == COLL_REDUCE_SCATTER || name == COLL_REDUCE_SCATTER_BLOCK;
}

void coll_data_input(const struct coll_world_case *c, int rank, int block, size_t index, unsigned start, void *out)
{
    element(c, rank, (size_t)block * STRIDE + index, start, out);
}

/* ---- Counts ------------------------------------------------------------------------------------------------------ */

static size_t vary(const struct coll_world_case *c, int a, int b)
{
    uint32_t mixed = ((uint32_t)a * 2654435761u + (uint32_t)b * 40503u + c->seed) * 2246822519u;
    mixed ^= mixed >> 15;
    return mixed % 3 ? mixed / 3 % (2 * c->count + 1) : 0;
}

/* Elements from rank `from` to rank `to`. */
static size_t count_between(const struct coll_world_case *c, int from, int to)
{
    switch (c->name) {
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        return vary(c, from, 0);
    case COLL_SCATTERV:
    case COLL_REDUCE_SCATTER:
        return vary(c, to, 0);
    case COLL_ALLTOALLV:
        return c->in_place && from > to ? vary(c, to, from) : vary(c, from, to);
    default:
        return c->count;
    }
}

size_t coll_data_count(const struct coll_world_case *c, int rank)
{
    return count_between(c, rank, rank);
}

size_t coll_data_total(const struct coll_world_case *c, int size)
{
    size_t total = 0;
    for (int i = 0; i < size; i++) total += coll_data_count(c, i);
    return total;
}

/* ---- Layouts ----------------------------------------------------------------------------------------------------- */

static void *need(size_t count)
{
    void *block = calloc(count ? count : 1, sizeof(size_t));
    if (block) return block;
    fprintf(stderr, "no memory\n");
    exit(99);
}

static void begin_layout(struct coll_layout *layout, int blocks)
{
    layout->blocks = blocks;
    layout->counts = need((size_t)blocks);
    layout->displs = need((size_t)blocks);
    layout->extent = 0;
}

void coll_layout_free(struct coll_layout *layout)
{
    free(layout->counts);
    free(layout->displs);
}

static void one_block(struct coll_layout *layout, size_t count)
{
    begin_layout(layout, 1);
    layout->counts[0] = layout->extent = count;
}

/* Blocks one after the other; those of unlike size with gaps, and the last first when the count is odd. */
static void all_blocks(const struct coll_world_case *c, int size, int rank, enum coll_side side, struct coll_layout *layout)
{
    bool lists = c->name == COLL_ALLGATHERV || c->name == COLL_GATHERV || c->name == COLL_SCATTERV || c->name == COLL_ALLTOALLV;
    begin_layout(layout, size);
    for (int i = 0; i < size; i++) {
        int block = lists && c->count % 2 ? size - 1 - i : i;
        layout->counts[block] = side == SIDE_SEND ? count_between(c, rank, block) : count_between(c, block, rank);
        if (lists && i % 3 == 1) layout->extent++;
        layout->displs[block] = layout->extent;
        layout->extent += layout->counts[block];
    }
}

void coll_data_division(const struct coll_world_case *c, int size, struct coll_layout *layout)
{
    begin_layout(layout, size);
    for (int i = 0; i < size; i++) {
        layout->counts[i] = coll_data_count(c, i);
        layout->displs[i] = layout->extent;
        layout->extent += layout->counts[i];
    }
}

static void recv_layout(const struct coll_world_case *c, int size, int rank, struct coll_layout *layout)
{
    bool root_only = c->name == COLL_REDUCE || c->name == COLL_GATHER || c->name == COLL_GATHERV;
    if (c->name == COLL_BARRIER || (root_only && rank != c->root) || (from_one(c->name) && coll_data_in_place(c, rank)))
        begin_layout(layout, 0);
    else if (to_all_or_one(c->name) || from_every_rank_to_every_rank(c->name))
        all_blocks(c, size, rank, SIDE_RECV, layout);
    else
        one_block(layout, from_one(c->name) ? count_between(c, c->root, rank) : coll_data_count(c, rank));
    if (scatters_sums(c->name) && c->in_place) layout->extent = coll_data_total(c, size);
    if (c->name == COLL_EXSCAN && rank == 0) layout->blocks = 0; /* all a gap */
}

static void send_layout(const struct coll_world_case *c, int size, int rank, struct coll_layout *layout)
{
    if (c->name == COLL_BARRIER || ((from_one(c->name) || c->name == COLL_BCAST) && rank != c->root))
        begin_layout(layout, 0);
    else if (from_one(c->name) || from_every_rank_to_every_rank(c->name))
        all_blocks(c, size, rank, SIDE_SEND, layout);
    else if (scatters_sums(c->name))
        one_block(layout, coll_data_total(c, size));
    else
        one_block(layout, coll_data_count(c, rank));
}

void coll_data_layout(const struct coll_world_case *c, int size, int rank, enum coll_side side, struct coll_layout *layout)
{
    if (side == SIDE_RECV)
        recv_layout(c, size, rank, layout);
    else
        send_layout(c, size, rank, layout);
}

bool coll_data_in_place(const struct coll_world_case *c, int rank)
{
    bool roots = c->name == COLL_REDUCE || c->name == COLL_GATHER || c->name == COLL_GATHERV || from_one(c->name);
    return c->name == COLL_BCAST || (c->in_place && (!roots || rank == c->root));
}

void coll_data_input_layout(const struct coll_world_case *c, int size, int rank, struct coll_layout *layout)
{
    bool in_recv = coll_data_in_place(c, rank) && !from_one(c->name);
    if (in_recv && from_every_rank_to_every_rank(c->name)) {
        all_blocks(c, size, rank, SIDE_RECV, layout);
        return;
    }
    send_layout(c, size, rank, layout);
    if (!in_recv || !to_all_or_one(c->name)) return;
    struct coll_layout recv;
    all_blocks(c, size, rank, SIDE_RECV, &recv);
    layout->displs[0] = recv.displs[rank];
    coll_layout_free(&recv);
}

/* ---- The reference ----------------------------------------------------------------------------------------------- */

void coll_data_expected(const struct coll_world_case *c, int size, int rank, int block, size_t index, unsigned start, void *out)
{
    size_t before = 0;
    if (scatters_sums(c->name))
        for (int i = 0; i < rank; i++) before += coll_data_count(c, i);
    if (c->name == COLL_SCAN)
        reduced(c, rank + 1, index, start, out);
    else if (c->name == COLL_EXSCAN)
        reduced(c, rank, index, start, out);
    else if (coll_data_reduces(c->name))
        reduced(c, size, before + index, start, out);
    else if (c->name == COLL_BCAST)
        element(c, c->root, index, start, out);
    else if (from_one(c->name))
        coll_data_input(c, c->root, rank, index, start, out);
    else if (from_every_rank_to_every_rank(c->name))
        coll_data_input(c, block, rank, index, start, out);
    else
        element(c, block, index, start, out);
}
