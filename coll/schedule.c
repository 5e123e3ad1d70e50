/* schedule.c - the builder: collects steps, finds their dependencies, packs them. */
#include "coll/schedule.h"

#include "runtime/base/planted.h"

#include <string.h>

/* Scratch pieces start on lines of their own, which also aligns every element type. */
#define SCRATCH_ALIGN 64

void builder_begin(struct builder *builder, const struct coll_problem *problem)
{
    builder->problem = problem;
    builder->step_count = 0;
    builder->edge_count = 0;
    builder->scratch_bytes = 0;
    builder->joined = 0;
    builder->round = 0;
    builder->error = NCCLX_SUCCESS;
    span_index_clear(&builder->touched);
}

void builder_release(struct builder *builder)
{
    base_free(AREA_COLL, builder->steps);
    base_free(AREA_COLL, builder->edges);
    base_free(AREA_COLL, builder->linked);
    span_index_release(&builder->touched);
    memset(builder, 0, sizeof *builder);
}

static bool grow(struct builder *builder, void **array, size_t *room, size_t bytes)
{
    size_t wanted = *room ? 2 * *room : 64;
    void *moved = wanted > UINT32_MAX / 2 ? NULL : base_realloc(AREA_COLL, *array, wanted * bytes);
    if (!moved) {
        builder->error = base_error(NCCLX_ERR_NO_MEM, "no memory for a collective of %zu steps", builder->step_count);
        return false;
    }
    *array = moved;
    *room = wanted;
    return true;
}

static void add_edge(struct builder *builder, size_t from, size_t to)
{
    if (builder->edge_count == builder->edge_room &&
        !grow(builder, (void **)&builder->edges, &builder->edge_room, sizeof *builder->edges))
        return;
    builder->edges[builder->edge_count++] = (struct edge){(uint32_t)from, (uint32_t)to};
}

/* The step that was added last waits for `earlier`. */
static void link_step(void *arg, uint32_t earlier)
{
    struct builder *builder = arg;
    uint32_t last = (uint32_t)(builder->step_count - 1);
    if (builder->linked[earlier] == last) return;
    builder->linked[earlier] = last;
    add_edge(builder, earlier, last);
}

static void link_to(struct builder *builder, const struct span *span, enum span_use use)
{
    if (span->bytes)
        span_index_find(&builder->touched, span->buffer, use, span->offset, span->bytes, link_step, builder);
}

static void touch(struct builder *builder, const struct span *span, enum span_use use)
{
    uint32_t last = (uint32_t)(builder->step_count - 1);
    if (builder->error || !span->bytes) return;
    if (!span_index_add(&builder->touched, span->buffer, use, span->offset, span->bytes, last))
        builder->error = base_error(NCCLX_ERR_NO_MEM, "no memory for a collective of %zu steps", builder->step_count);
}

/* It waits for those that write what it reads or writes, and for those that read what it writes. */
static void order_step(struct builder *builder, const struct step *step)
{
    link_to(builder, &step->a, SPAN_WRITTEN);
    link_to(builder, &step->b, SPAN_WRITTEN);
    link_to(builder, &step->out, SPAN_WRITTEN);
    if (!PLANTED_BUG(BUG_REUSE_IGNORED)) link_to(builder, &step->out, SPAN_READ);
    touch(builder, &step->a, SPAN_READ);
    touch(builder, &step->b, SPAN_READ);
    touch(builder, &step->out, SPAN_WRITTEN);
}

static void add_step(struct builder *builder, struct step step)
{
    if (builder->error) return;
    if (builder->step_count == builder->step_room &&
        !grow(builder, (void **)&builder->steps, &builder->step_room, sizeof *builder->steps))
        return;
    if (builder->step_count == builder->linked_room &&
        !grow(builder, (void **)&builder->linked, &builder->linked_room, sizeof *builder->linked))
        return;
    size_t index = builder->step_count++;
    step.round = builder->round;
    builder->steps[index] = step;
    builder->linked[index] = UINT32_MAX;
    if (builder->joined) add_edge(builder, builder->joined - 1, index);
    if (step.kind != STEP_JOIN) {
        order_step(builder, &step);
        return;
    }
    for (size_t i = builder->joined; i < index; i++) add_edge(builder, i, index);
    builder->joined = index + 1;
    span_index_clear(&builder->touched);
}

void builder_send(struct builder *builder, struct span from, int peer)
{
    if (from.bytes) add_step(builder, (struct step){.kind = STEP_SEND, .peer = peer, .a = from});
}

void builder_receive(struct builder *builder, struct span to, int peer)
{
    if (to.bytes) add_step(builder, (struct step){.kind = STEP_RECEIVE, .peer = peer, .out = to});
}

void builder_reduce(struct builder *builder, struct span lower, struct span higher, struct span out)
{
    struct step step = {.kind = STEP_REDUCE, .a = lower, .b = higher, .out = out};
    if (PLANTED_BUG(BUG_REDUCE_ORDER)) {
        step.a = higher;
        step.b = lower;
    }
    if (out.bytes) add_step(builder, step);
}

void builder_copy(struct builder *builder, struct span from, struct span to)
{
    bool same = from.buffer == to.buffer && from.offset == to.offset;
    if (from.bytes && !same) add_step(builder, (struct step){.kind = STEP_COPY, .a = from, .out = to});
}

void builder_finish(struct builder *builder, struct span result)
{
    if (result.bytes && builder->problem->op == NCCLX_AVG)
        add_step(builder, (struct step){.kind = STEP_FINISH, .out = result});
}

void builder_send_token(struct builder *builder, int peer)
{
    add_step(builder, (struct step){.kind = STEP_SEND, .peer = peer});
}

void builder_receive_token(struct builder *builder, int peer)
{
    add_step(builder, (struct step){.kind = STEP_RECEIVE, .peer = peer});
}

void builder_round(struct builder *builder, unsigned round)
{
    builder->round = round % SCHEDULE_ROUNDS;
}

void builder_join(struct builder *builder)
{
    if (builder->step_count > builder->joined) add_step(builder, (struct step){.kind = STEP_JOIN});
}

struct span builder_scratch(struct builder *builder, size_t bytes)
{
    struct span span = span_of(BUFFER_SCRATCH, builder->scratch_bytes, bytes);
    if (bytes > SIZE_MAX / 4 || builder->scratch_bytes > SIZE_MAX / 4)
        builder->error = base_error(NCCLX_ERR_NO_MEM, "a collective needs more scratch memory than there can be");
    else
        builder->scratch_bytes += (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    return span;
}

/* Edges, sorted by the step they leave from, by counting. */
static void pack_successors(const struct builder *builder, struct step *steps, uint32_t *successors)
{
    uint32_t next = 0;
    for (size_t i = 0; i < builder->edge_count; i++) {
        steps[builder->edges[i].from].successor_count++;
        steps[builder->edges[i].to].dependencies++;
    }
    for (size_t i = 0; i < builder->step_count; i++) {
        steps[i].first_successor = next;
        next += steps[i].successor_count;
        steps[i].successor_count = 0;
    }
    for (size_t i = 0; i < builder->edge_count; i++) {
        struct step *from = &steps[builder->edges[i].from];
        successors[from->first_successor + from->successor_count++] = builder->edges[i].to;
    }
}

int builder_end(struct builder *builder, struct schedule **schedule)
{
    if (builder->error) return builder->error;
    size_t step_bytes = builder->step_count * sizeof(struct step), edge_bytes = builder->edge_count * sizeof(uint32_t);
    size_t bytes = sizeof(struct schedule) + step_bytes + edge_bytes;
    struct schedule *result = base_alloc(AREA_COLL, bytes);
    if (!result) return base_error(NCCLX_ERR_NO_MEM, "no memory for a collective of %zu steps", builder->step_count);
    struct step *steps = (struct step *)(result + 1);
    uint32_t *successors = (uint32_t *)(steps + builder->step_count);
    if (step_bytes) memcpy(steps, builder->steps, step_bytes);
    pack_successors(builder, steps, successors);
    *result = (struct schedule){.problem = *builder->problem,
                                .step_count = (uint32_t)builder->step_count,
                                .steps = steps,
                                .successors = successors,
                                .scratch_bytes = builder->scratch_bytes,
                                .memory_bytes = bytes};
    *schedule = result;
    return NCCLX_SUCCESS;
}
