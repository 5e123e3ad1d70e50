/* coll_world.c - ranks, their buffers, the network between them, and the serial reference. */
#include "tests/sim/coll_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY_BYTES 64
#define CANARY 0xC5
#define GARBAGE 0x9D

struct message {
    struct message *next;
    int source, tag;
    size_t bytes;
    bool eager;      /* data is in `copy`; else it is read from `data` when matched */
    const char *data;
    int which;       /* sender's collective and step, for its completion */
    uint32_t step;
    char copy[];
};

struct receive {
    struct receive *next;
    int source, tag, which;
    uint32_t step;
    char *to;
    size_t bytes;
};

struct collective {
    struct schedule *schedule;
    struct executor executor;
    void *states;
    char *block[BUFFER_COUNT]; /* with canaries around */
    size_t bytes[BUFFER_COUNT];
    bool *under_way;           /* of each step */
    uint32_t sequence;
    unsigned started, ended;
};

struct rank {
    struct collective collective[COLL_WORLD_MOST];
    struct receive *posted;
    struct message *unexpected;
    struct message **arriving; /* from each source, in order */
    uint32_t next_sequence;
};

struct coll_world {
    int size, count;
    struct coll_world_case cases[COLL_WORLD_MOST];
    struct coll_world_host host;
    struct builder builder;
    struct rank *ranks;
    bool failed;
};

static void __attribute__((format(printf, 2, 3))) complain(struct coll_world *world, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    world->failed = true;
    world->host.fail(world->host.arg, text);
}

static void *need(size_t count, size_t bytes)
{
    void *block = calloc(count ? count : 1, bytes ? bytes : 1);
    if (block) return block;
    fprintf(stderr, "no memory\n");
    exit(99);
}

/* ---- Elements -------------------------------------------------------------------------------------------------- */

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

static bool reduces(enum coll_name name)
{
    return name == COLL_REDUCE || name == COLL_ALLREDUCE;
}

static ncclx_datatype_t type_of(const struct coll_world_case *c)
{
    if (!reduces(c->name)) return NCCLX_INT64;
    return c->ordered ? NCCLX_INT64_PAIR : c->single ? NCCLX_FLOAT : NCCLX_INT64;
}

static ncclx_op_t op_of(const struct coll_world_case *c)
{
    if (!reduces(c->name)) return NCCLX_OP_NULL;
    return c->ordered ? &compose_op : c->average ? NCCLX_AVG : NCCLX_SUM;
}

/* Element `index` of rank's contribution, different for each start. */
static void element(const struct coll_world_case *c, int rank, size_t index, unsigned start, void *out)
{
    int64_t value = (int64_t)index * 131 + rank * 1009 + (int64_t)start * 7 + 1;
    if (type_of(c) == NCCLX_INT64_PAIR) {
        struct line line = {value | 1, value * 3 + rank};
        memcpy(out, &line, sizeof line);
    } else if (type_of(c) == NCCLX_FLOAT) {
        float number = (float)value / 7.0f;
        memcpy(out, &number, sizeof number);
    } else {
        memcpy(out, &value, sizeof value);
    }
}

/* Element `index` of the result of a reduction over all ranks, serially in rank order. */
static void reduced(const struct coll_world_case *c, int size, size_t index, unsigned start, void *out)
{
    char sum[16], next[16];
    element(c, 0, index, start, sum);
    for (int rank = 1; rank < size; rank++) {
        element(c, rank, index, start, next);
        base_op_apply(op_of(c), type_of(c), sum, next, sum, 1);
    }
    base_op_finish(op_of(c), type_of(c), sum, 1, size);
    memcpy(out, sum, base_type_size(type_of(c)));
}

/* ---- Buffers --------------------------------------------------------------------------------------------------- */

static char *buffer(const struct collective *collective, enum schedule_buffer which)
{
    return collective->block[which] + CANARY_BYTES;
}

static void make_buffer(struct collective *collective, enum schedule_buffer which, size_t bytes)
{
    collective->bytes[which] = bytes;
    collective->block[which] = need(1, bytes + 2 * CANARY_BYTES);
    memset(collective->block[which], CANARY, bytes + 2 * CANARY_BYTES);
}

static bool canaries_live(const struct collective *collective)
{
    for (int which = 0; which < BUFFER_COUNT; which++) {
        const unsigned char *block = (const unsigned char *)collective->block[which];
        for (size_t i = 0; i < CANARY_BYTES; i++)
            if (block[i] != CANARY || block[CANARY_BYTES + collective->bytes[which] + i] != CANARY) return false;
    }
    return true;
}

/* Elements of the input, and where they lie in their buffer. */
static size_t input_count(const struct coll_world_case *c, int size)
{
    return c->name == COLL_ALLTOALL ? c->count * (size_t)size : c->count;
}

static void fill(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    struct collective *collective = &world->ranks[rank].collective[which];
    const struct coll_problem *problem = &collective->schedule->problem;
    size_t skip = c->name == COLL_ALLGATHER && problem->in_place ? (size_t)rank * problem->bytes : 0;
    char *input = buffer(collective, problem->in_place ? BUFFER_RECV : BUFFER_SEND) + skip;
    memset(buffer(collective, BUFFER_RECV), GARBAGE, collective->bytes[BUFFER_RECV]);
    if (c->name == COLL_BARRIER || (c->name == COLL_BCAST && rank != c->root)) return;
    for (size_t i = 0; i < input_count(c, world->size); i++)
        element(c, rank, i, collective->started, input + i * problem->element_bytes);
}

/* What recvbuf must hold at element `index`. */
static void expected(const struct coll_world *world, const struct coll_world_case *c, int rank, size_t index, unsigned start, void *out)
{
    if (reduces(c->name)) reduced(c, world->size, index, start, out);
    else if (c->name == COLL_BCAST) element(c, c->root, index, start, out);
    else if (c->name == COLL_ALLGATHER) element(c, (int)(index / c->count), index % c->count, start, out);
    else element(c, (int)(index / c->count), (size_t)rank * c->count + index % c->count, start, out);
}

static bool nearly(const void *got, const void *wanted)
{
    float a, b;
    memcpy(&a, got, sizeof a);
    memcpy(&b, wanted, sizeof b);
    return a - b <= b * 1e-5f && b - a <= b * 1e-5f;
}

static void check_result(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    const struct collective *collective = &world->ranks[rank].collective[which];
    size_t bytes = collective->schedule->problem.element_bytes, count = collective->bytes[BUFFER_RECV] / bytes;
    char wanted[16];
    if (!canaries_live(collective)) complain(world, "rank %d wrote outside a buffer", rank);
    if (c->name == COLL_BARRIER || (c->name == COLL_REDUCE && rank != c->root)) return;
    for (size_t i = 0; i < count && !world->failed; i++) {
        const char *got = buffer(collective, BUFFER_RECV) + i * bytes;
        expected(world, c, rank, i, collective->started - 1, wanted);
        bool right = type_of(c) == NCCLX_FLOAT ? nearly(got, wanted) : !memcmp(got, wanted, bytes);
        if (!right) complain(world, "%s %s of %zu, %d ranks, root %d%s: rank %d, element %zu is wrong",
                             coll_name_text(c->name), c->algorithm->name,
                             c->count, world->size, c->root, c->in_place ? ", in place" : "", rank, i);
    }
}

/* ---- Network --------------------------------------------------------------------------------------------------- */

static void end_later(struct coll_world *world, int rank, int which, uint32_t step)
{
    world->host.later(world->host.arg, (struct coll_world_event){.kind = WORLD_END, .rank = rank, .which = which, .step = step});
}

static void deliver(struct coll_world *world, int rank, struct receive *receive, struct message *message)
{
    if (message->bytes != receive->bytes)
        complain(world, "rank %d expects %zu bytes of rank %d and gets %zu", rank, receive->bytes, message->source, message->bytes);
    else if (message->bytes) memcpy(receive->to, message->eager ? message->copy : message->data, message->bytes);
    if (!message->eager) end_later(world, message->source, message->which, message->step);
    end_later(world, rank, receive->which, receive->step);
    free(receive);
    free(message);
}

static void arrive(struct coll_world *world, int rank, int source)
{
    struct rank *here = &world->ranks[rank];
    struct message *message = here->arriving[source];
    here->arriving[source] = message->next;
    message->next = NULL;
    for (struct receive **link = &here->posted; *link; link = &(*link)->next) {
        struct receive *receive = *link;
        if (receive->source != source || receive->tag != message->tag) continue;
        *link = receive->next;
        deliver(world, rank, receive, message);
        return;
    }
    struct message **last = &here->unexpected;
    while (*last) last = &(*last)->next;
    *last = message;
}

static void post_send(struct coll_world *world, int rank, int which, uint32_t index, const struct step *step)
{
    struct collective *collective = &world->ranks[rank].collective[which];
    bool eager = world->host.random(world->host.arg, 2);
    const char *data = buffer(collective, step->a.buffer) + step->a.offset;
    struct message *message = need(1, sizeof *message + (eager ? step->a.bytes : 0));
    *message = (struct message){.source = rank, .tag = executor_tag(collective->sequence, step->round), .bytes = step->a.bytes,
                                .eager = eager, .data = data, .which = which, .step = index};
    if (eager && step->a.bytes) memcpy(message->copy, data, step->a.bytes);
    struct message **last = &world->ranks[step->peer].arriving[rank];
    while (*last) last = &(*last)->next;
    *last = message;
    world->host.later(world->host.arg, (struct coll_world_event){.kind = WORLD_ARRIVE, .rank = step->peer, .peer = rank});
    if (eager) end_later(world, rank, which, index);
}

static void post_receive(struct coll_world *world, int rank, int which, uint32_t index, const struct step *step)
{
    struct rank *here = &world->ranks[rank];
    struct collective *collective = &here->collective[which];
    struct receive *receive = need(1, sizeof *receive);
    *receive = (struct receive){.source = step->peer, .tag = executor_tag(collective->sequence, step->round), .which = which, .step = index,
                                .to = buffer(collective, step->out.buffer) + step->out.offset, .bytes = step->out.bytes};
    memset(receive->to, GARBAGE, receive->bytes);
    for (struct message **link = &here->unexpected; *link; link = &(*link)->next) {
        struct message *message = *link;
        if (message->source != receive->source || message->tag != receive->tag) continue;
        *link = message->next;
        deliver(world, rank, receive, message);
        return;
    }
    struct receive **last = &here->posted;
    while (*last) last = &(*last)->next;
    *last = receive;
}

/* ---- Ranks ----------------------------------------------------------------------------------------------------- */

static void begin(struct coll_world *world, int rank, int which, uint32_t index)
{
    struct collective *collective = &world->ranks[rank].collective[which];
    const struct coll_problem *problem = &collective->schedule->problem;
    const struct step *step = &collective->schedule->steps[index];
    char *out = buffer(collective, step->out.buffer) + step->out.offset;
    const char *a = buffer(collective, step->a.buffer) + step->a.offset, *b = buffer(collective, step->b.buffer) + step->b.offset;
    if (collective->under_way[index]) {
        complain(world, "rank %d begins step %u twice", rank, index);
        return;
    }
    collective->under_way[index] = true;
    switch (step->kind) {
    case STEP_SEND: post_send(world, rank, which, index, step); return;
    case STEP_RECEIVE: post_receive(world, rank, which, index, step); return;
    case STEP_REDUCE: base_op_apply(problem->op, problem->type, a, b, out, step->out.bytes / problem->element_bytes); break;
    case STEP_FINISH: base_op_finish(problem->op, problem->type, out, step->out.bytes / problem->element_bytes, problem->size); break;
    case STEP_COPY: memmove(out, a, step->out.bytes); break;
    case STEP_JOIN: complain(world, "rank %d was told to begin a join", rank); return;
    }
    executor_complete(&collective->executor, index);
}

static void ask_to_start(struct coll_world *world, int rank, int which)
{
    world->host.later(world->host.arg, (struct coll_world_event){.kind = WORLD_START, .rank = rank, .which = which});
}

static bool every_rank_started(const struct coll_world *world, int which, unsigned start)
{
    for (int rank = 0; rank < world->size; rank++)
        if (world->ranks[rank].collective[which].started < start) return false;
    return true;
}

static void drive(struct coll_world *world, int rank, int which)
{
    struct collective *collective = &world->ranks[rank].collective[which];
    uint32_t step;
    while (!world->failed && (step = executor_next(&collective->executor)) != EXECUTOR_NOTHING) begin(world, rank, which, step);
    if (world->failed || !executor_done(&collective->executor) || collective->ended == collective->started) return;
    collective->ended = collective->started;
    if (world->cases[which].name == COLL_BARRIER && !every_rank_started(world, which, collective->started))
        complain(world, "rank %d leaves a barrier that not all have reached", rank);
    check_result(world, rank, which);
    if (collective->started < world->cases[which].starts && which == world->count - 1)
        for (int i = 0; i < world->count; i++) ask_to_start(world, rank, 0);
}

/* Collectives start in the same order on all ranks: the event says that the next one may. A second round begins when
 * the last has ended. */
static void start(struct coll_world *world, int rank)
{
    struct rank *here = &world->ranks[rank];
    int which = (int)(here->next_sequence % (unsigned)world->count);
    struct collective *collective = &here->collective[which];
    if (collective->started != collective->ended) {
        ask_to_start(world, rank, 0);
        return;
    }
    fill(world, rank, which);
    collective->sequence = here->next_sequence++;
    collective->started++;
    memset(collective->under_way, 0, collective->schedule->step_count * sizeof(bool));
    executor_start(&collective->executor);
    drive(world, rank, which);
}

void coll_world_happen(struct coll_world *world, struct coll_world_event event)
{
    struct collective *collective = &world->ranks[event.rank].collective[event.which];
    if (world->failed) return;
    switch (event.kind) {
    case WORLD_START: start(world, event.rank); return;
    case WORLD_ARRIVE: arrive(world, event.rank, event.peer); return;
    case WORLD_END:
        if (executor_done(&collective->executor)) {
            complain(world, "rank %d: a message ends after its collective was reported complete", event.rank);
            return;
        }
        executor_complete(&collective->executor, event.step);
        drive(world, event.rank, event.which);
    }
}

void coll_world_check(struct coll_world *world)
{
    for (int rank = 0; rank < world->size && !world->failed; rank++) {
        for (int which = 0; which < world->count && !world->failed; which++) {
            const struct coll_world_case *c = &world->cases[which];
            const struct collective *collective = &world->ranks[rank].collective[which], *first = &world->ranks[0].collective[which];
            if (collective->ended != c->starts)
                complain(world, "%s %s of %zu, %d ranks, root %d: rank %d waits for ever, %u steps left",
                         coll_name_text(c->name), c->algorithm->name,
                         c->count, world->size, c->root, rank, collective->executor.left);
            else if (c->name == COLL_ALLREDUCE &&
                     memcmp(buffer(collective, BUFFER_RECV), buffer(first, BUFFER_RECV), collective->bytes[BUFFER_RECV]))
                complain(world, "ranks 0 and %d got different bits", rank);
        }
        if (world->ranks[rank].posted || world->ranks[rank].unexpected) complain(world, "rank %d is left with messages", rank);
    }
}

static void make_collective(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    struct collective *collective = &world->ranks[rank].collective[which];
    bool all = c->name == COLL_ALLGATHER || c->name == COLL_ALLTOALL;
    struct coll_problem problem = {
        .name = c->name,
        .rank = rank,
        .size = world->size,
        .root = c->root,
        .count = c->count,
        .element_bytes = base_type_size(type_of(c)),
        .bytes = c->count * base_type_size(type_of(c)),
        .type = type_of(c),
        .op = op_of(c),
        .commutative = !c->ordered,
        .in_place = c->name == COLL_BCAST || (c->in_place && (c->name != COLL_REDUCE || rank == c->root)),
    };
    builder_begin(&world->builder, &problem);
    c->algorithm->build(&world->builder);
    if (builder_end(&world->builder, &collective->schedule)) {
        complain(world, "a schedule could not be built: %s", base_error_detail());
        return;
    }
    collective->states = need(1, executor_memory(collective->schedule));
    collective->under_way = need(collective->schedule->step_count, sizeof(bool));
    executor_prepare(&collective->executor, collective->schedule, collective->states);
    size_t vector = c->name == COLL_BARRIER ? 0 : problem.bytes;
    make_buffer(collective, BUFFER_SEND, problem.in_place ? 0 : c->name == COLL_ALLTOALL ? vector * (size_t)world->size : vector);
    make_buffer(collective, BUFFER_RECV, c->name == COLL_REDUCE && rank != c->root ? 0 : all ? vector * (size_t)world->size : vector);
    make_buffer(collective, BUFFER_SCRATCH, collective->schedule->scratch_bytes);
}

struct coll_world *coll_world_create(int size, const struct coll_world_case *cases, int count, const struct coll_world_host *host)
{
    struct coll_world *world = need(1, sizeof *world);
    world->size = size;
    world->count = count;
    world->host = *host;
    memcpy(world->cases, cases, (size_t)count * sizeof *cases);
    world->ranks = need((size_t)size, sizeof *world->ranks);
    for (int rank = 0; rank < size; rank++) {
        world->ranks[rank].arriving = need((size_t)size, sizeof(struct message *));
        for (int which = 0; which < count; which++) make_collective(world, rank, which);
    }
    for (int rank = 0; rank < size && !world->failed; rank++)
        for (int which = 0; which < count; which++) ask_to_start(world, rank, which);
    return world;
}

static void free_messages(struct message *message)
{
    while (message) {
        struct message *next = message->next;
        free(message);
        message = next;
    }
}

void coll_world_destroy(struct coll_world *world)
{
    for (int rank = 0; rank < world->size; rank++) {
        struct rank *here = &world->ranks[rank];
        for (int which = 0; which < world->count; which++) {
            struct collective *collective = &here->collective[which];
            for (int i = 0; i < BUFFER_COUNT; i++) free(collective->block[i]);
            free(collective->states);
            free(collective->under_way);
            base_free(AREA_COLL, collective->schedule);
        }
        free_messages(here->unexpected);
        for (int source = 0; source < world->size; source++) free_messages(here->arriving[source]);
        free(here->arriving);
        while (here->posted) {
            struct receive *next = here->posted->next;
            free(here->posted);
            here->posted = next;
        }
    }
    builder_release(&world->builder);
    free(world->ranks);
    free(world);
}
