/* coll_world.c - ranks, their buffers, and the network between them. */
#include "coll/blocks.h"
#include "tests/sim/coll_data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY_BYTES 64
#define CANARY 0xC5
#define GARBAGE 0x9D
#define GAP 0x6B /* what no step may write to, inside a buffer */

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
    size_t *blocks;  /* memory of the schedule's lists */
    bool *under_way; /* of each step */
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

static void fill(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    struct collective *collective = &world->ranks[rank].collective[which];
    const struct coll_problem *problem = &collective->schedule->problem;
    bool in_recv = problem->in_place && c->name != COLL_SCATTER && c->name != COLL_SCATTERV;
    char *input = buffer(collective, in_recv ? BUFFER_RECV : BUFFER_SEND);
    struct coll_layout layout;
    coll_data_input_layout(c, world->size, rank, &layout);
    memset(buffer(collective, BUFFER_RECV), GAP, collective->bytes[BUFFER_RECV]);
    for (int block = 0; block < layout.blocks; block++)
        for (size_t i = 0; i < layout.counts[block]; i++)
            coll_data_input(c, rank, block, i, collective->started, input + (layout.displs[block] + i) * problem->element_bytes);
    coll_layout_free(&layout);
}

static bool nearly(const void *got, const void *wanted)
{
    float a, b;
    memcpy(&a, got, sizeof a);
    memcpy(&b, wanted, sizeof b);
    return a - b <= b * 1e-5f && b - a <= b * 1e-5f;
}

/* Which elements of a buffer belong to no block. */
static bool gaps_live(const struct collective *collective, const struct coll_layout *layout)
{
    size_t bytes = collective->schedule->problem.element_bytes, extent = collective->bytes[BUFFER_RECV] / bytes;
    const char *content = buffer(collective, BUFFER_RECV);
    bool live = true;
    bool *covered = need(extent, sizeof *covered);
    for (int block = 0; block < layout->blocks; block++)
        for (size_t i = 0; i < layout->counts[block]; i++) covered[layout->displs[block] + i] = true;
    for (size_t i = 0; i < extent * bytes; i++)
        if (!covered[i / bytes] && (unsigned char)content[i] != GAP) live = false;
    free(covered);
    return live;
}

static void check_block(struct coll_world *world, int rank, int which, const struct coll_layout *layout, int block)
{
    const struct coll_world_case *c = &world->cases[which];
    const struct collective *collective = &world->ranks[rank].collective[which];
    size_t bytes = collective->schedule->problem.element_bytes;
    char wanted[16];
    for (size_t i = 0; i < layout->counts[block] && !world->failed; i++) {
        const char *got = buffer(collective, BUFFER_RECV) + (layout->displs[block] + i) * bytes;
        coll_data_expected(c, world->size, rank, block, i, collective->started - 1, wanted);
        bool right = coll_data_type(c) == NCCLX_FLOAT ? nearly(got, wanted) : !memcmp(got, wanted, bytes);
        if (!right)
            complain(world, "%s %s of %zu, %d ranks, root %d%s: rank %d, block %d, element %zu is wrong", coll_name_text(c->name),
                     c->algorithm->name, c->count, world->size, c->root, c->in_place ? ", in place" : "", rank, block, i);
    }
}

static void check_result(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    const struct collective *collective = &world->ranks[rank].collective[which];
    bool input_stays = (c->name == COLL_REDUCE_SCATTER || c->name == COLL_REDUCE_SCATTER_BLOCK || c->name == COLL_EXSCAN) && c->in_place;
    struct coll_layout layout;
    if (!canaries_live(collective)) complain(world, "rank %d wrote outside a buffer", rank);
    coll_data_layout(c, world->size, rank, SIDE_RECV, &layout);
    for (int block = 0; block < layout.blocks; block++) check_block(world, rank, which, &layout, block);
    if (!input_stays && !world->failed && !gaps_live(collective, &layout))
        complain(world, "%s %s of %zu, %d ranks: rank %d wrote between its blocks", coll_name_text(c->name), c->algorithm->name, c->count,
                 world->size, rank);
    coll_layout_free(&layout);
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

static bool has_lists(enum coll_name name)
{
    return name == COLL_ALLGATHERV || name == COLL_GATHERV || name == COLL_SCATTERV || name == COLL_ALLTOALLV;
}

/* The rank's problem, with lists that lie in `send` and `recv`. */
static struct coll_problem problem_of(const struct coll_world_case *c, int size, int rank, struct coll_layout *send,
                                      struct coll_layout *recv)
{
    struct coll_problem problem = {
        .name = c->name,
        .rank = rank,
        .size = size,
        .root = c->root,
        .count = coll_data_count(c, rank),
        .element_bytes = base_type_size(coll_data_type(c)),
        .type = coll_data_type(c),
        .op = coll_data_op(c),
        .commutative = !c->ordered,
        .in_place = coll_data_in_place(c, rank),
    };
    problem.bytes = problem.count * problem.element_bytes;
    problem.total_bytes = coll_data_total(c, size) * problem.element_bytes;
    if (has_lists(c->name) && send->blocks > 1 && !(c->name == COLL_ALLTOALLV && problem.in_place))
        problem.send = (struct coll_blocks){send->counts, send->displs};
    if (has_lists(c->name) && recv->blocks > 1) problem.recv = (struct coll_blocks){recv->counts, recv->displs};
    if (c->name != COLL_REDUCE_SCATTER) return problem;
    coll_layout_free(recv);
    coll_data_division(c, size, recv);
    problem.recv = (struct coll_blocks){recv->counts, NULL};
    return problem;
}

static int build(struct coll_world *world, int rank, int which, struct coll_problem *problem)
{
    struct collective *collective = &world->ranks[rank].collective[which];
    int error = blocks_keep(problem, &collective->blocks);
    if (error) return error;
    builder_begin(&world->builder, problem);
    world->cases[which].algorithm->build(&world->builder);
    return builder_end(&world->builder, &collective->schedule);
}

static void make_collective(struct coll_world *world, int rank, int which)
{
    const struct coll_world_case *c = &world->cases[which];
    struct collective *collective = &world->ranks[rank].collective[which];
    struct coll_layout send, recv;
    coll_data_layout(c, world->size, rank, SIDE_SEND, &send);
    coll_data_layout(c, world->size, rank, SIDE_RECV, &recv);
    size_t send_extent = send.extent, recv_extent = recv.extent;
    struct coll_problem problem = problem_of(c, world->size, rank, &send, &recv);
    int error = build(world, rank, which, &problem);
    coll_layout_free(&send);
    coll_layout_free(&recv);
    if (error) {
        complain(world, "a schedule could not be built: %s", base_error_detail());
        return;
    }
    bool unused = problem.in_place && c->name != COLL_SCATTER && c->name != COLL_SCATTERV;
    collective->states = need(1, executor_memory(collective->schedule));
    collective->under_way = need(collective->schedule->step_count, sizeof(bool));
    executor_prepare(&collective->executor, collective->schedule, collective->states);
    make_buffer(collective, BUFFER_SEND, unused ? 0 : send_extent * problem.element_bytes);
    make_buffer(collective, BUFFER_RECV, recv_extent * problem.element_bytes);
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
            base_free(AREA_COLL, collective->blocks);
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
