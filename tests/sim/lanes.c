/* lanes.c - the driver of lanes, pml/lanes, between two whole ranks in virtual time, over lanes that are queue pairs or sockets
 * (lanes_wire.h). Both ranks put, signal, get, flush, send and receive; lanes break, rest, and are short of everything.
 *
 * Memory is real. Each operation has a place of its own, which must hold the data once somebody is told so, and is then used for something
 * else, as is the origin's memory once that is its own again.
 *
 * Holds: nothing is early, twice or late; everything ends; no limit of the transport is exceeded; no side takes the other for one that
 * breaks the rules. Where lanes may be refused for good the connection may fail: then everything ends, too. */
#include "tests/sim/lanes_wire.h"
#include "tests/unit/pml_world.h"

#include "pml/lanes/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define MAX_OPS 160
#define MAX_FLUSHES 24
#define ORDERS 2
#define LATEST UINT64_C(4000000) /* ns, when the last flushes begin */
#define AFTER UINT64_C(5000000)  /* ... and the last signals */
#define USED 0xee  /* what is written into a place that was given to its owner */
#define SPENT 0x11 /* and into the memory of who sent it */

/* Of the target: few, so that they run out. */
const struct lane_offer lanes_offer = {.lanes = WIRE_LANES, .receives = 8, .window = 64, .notices = 8};

struct side;

enum op_kind { OP_PUT, OP_GET, OP_SEND };

struct op {
    struct side *side; /* that begins it */
    enum op_kind kind;
    int id, order;
    size_t bytes, offset; /* PUT, GET: in the other's window */
    char *from, *to;
    bool signals;
    int turn;     /* of its side's operations, as they begin; 0: it has not */
    bool follows; /* begins when another one ends, or does not begin */
    bool signalled;
    bool told; /* its place is its owner's again */
    bool over; /* and so is the memory that it came from */
    struct ncclx_request *send, *receive;
};

struct flush {
    int order, turns; /* of operations before it */
    bool begun, over;
    struct pml_goal goal;
};

struct way {
    struct side *side;
    struct pml_order *order;
    bool changed;
    int signalled; /* the latest */
    const struct flush *last;
};

/* One rank, and what it begins. */
struct side {
    struct side *peer;
    int rank;
    struct ncclx_comm *comm;
    char *window;
    size_t window_bytes;
    uint64_t key;
    struct way way[ORDERS];
    struct op op[MAX_OPS];
    struct flush flush[MAX_FLUSHES];
    int ops, flushes, turns;
};

struct scene {
    struct sim *sim;
    struct wire *wire;
    struct world world;
    bool breaks; /* lanes do */
    struct side side[2];
};

static struct scene *scene; /* of this run */

/* ---- Time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t now = BASE_NS_PER_S + (scene ? sim_now(scene->sim) : 0);
    (void)clock;
    *time = (struct timespec){.tv_sec = (time_t)(now / BASE_NS_PER_S), .tv_nsec = (long)(now % BASE_NS_PER_S)};
    return 0;
}

/* ---- What must be in place ---- */

static char pattern(const struct op *op, size_t at)
{
    return (char)(1 + ((size_t)(op->id * 31 + op->side->rank * 57) + at * 7) % 200);
}

static void check_place(const struct op *op, const char *why)
{
    for (size_t i = 0; i < op->bytes; i++) {
        if (op->to[i] == pattern(op, i)) continue;
        sim_fail(scene->sim, "%s: byte %zu of operation %d of rank %d is not in place", why, i, op->id, op->side->rank);
        return;
    }
}

static void tell(struct op *op, const char *why)
{
    if (op->told) return;
    check_place(op, why);
    op->told = true;
    memset(op->to, USED, op->bytes);
}

/* All puts of this order up to this turn are there. */
static void tell_puts(struct side *side, int order, int turn, const char *why)
{
    for (int i = 0; i < side->ops; i++) {
        struct op *op = &side->op[i];
        if (op->kind == OP_PUT && op->order == order && op->turn && op->turn <= turn) tell(op, why);
    }
}

static void hear_signal(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg)
{
    struct side *side = &scene->side[source];
    struct op *op = &side->op[signal->value];
    (void)rt, (void)arg;
    if (signal->rank != source || signal->window != (uint64_t)op->order || !op->signals || !op->turn)
        sim_fail(scene->sim, "a signal is not the one that was sent");
    if (op->signalled) sim_fail(scene->sim, "signal %d takes effect twice", op->id);
    if (op->turn < side->way[op->order].signalled) sim_fail(scene->sim, "signals of one order change places");
    op->signalled = true;
    side->way[op->order].signalled = op->turn;
    tell_puts(side, op->order, op->turn, "a signal");
}

static void flushed(struct side *side, const struct flush *flush)
{
    for (int i = 0; i < side->ops && !pml_order_error(side->way[flush->order].order); i++) {
        struct op *op = &side->op[i];
        if (op->kind == OP_SEND || op->order != flush->order || !op->turn || op->turn > flush->turns || op->over) continue;
        tell(op, "a flush");
        op->over = true;
        if (op->kind == OP_PUT) memset(op->from, SPENT, op->bytes);
    }
}

static void look_at_flushes(struct side *side, int order)
{
    side->way[order].changed = false;
    for (int i = 0; i < side->flushes; i++) {
        struct flush *flush = &side->flush[i];
        if (flush->order != order || !flush->begun || flush->over || !pml_order_reached(side->way[order].order, &flush->goal)) continue;
        flush->over = true;
        flushed(side, flush);
    }
}

static bool ended(struct ncclx_request **request)
{
    struct ncclx_request *it = *request;
    if (!it || !it->complete) return false;
    if (it->status.error) sim_fail(scene->sim, "a message ends with error %d", it->status.error);
    *request = NULL;
    it->kind->release(it);
    return true;
}

static void look_at_message(struct op *op)
{
    size_t came = op->receive ? op->receive->status.bytes : 0;
    if (ended(&op->receive)) {
        if (came != op->bytes) sim_fail(scene->sim, "of %zu bytes %zu came", op->bytes, came);
        tell(op, "a receive");
    }
    if (ended(&op->send)) {
        op->over = true;
        memset(op->from, SPENT, op->bytes);
    }
}

static void look(void *arg)
{
    (void)arg;
    for (int s = 0; s < 2; s++) {
        struct side *side = &scene->side[s];
        for (int order = 0; order < ORDERS; order++)
            if (side->way[order].changed) look_at_flushes(side, order);
        for (int i = 0; i < side->ops; i++)
            if (side->op[i].kind == OP_SEND) look_at_message(&side->op[i]);
    }
}

/* ---- What happens ---- */

static void expect(int error)
{
    if (error && !wire_lost(scene->wire)) sim_fail(scene->sim, "error %d: %s", error, base_error_detail());
}

static void start_op(struct op *op)
{
    struct side *side = op->side;
    struct pml_order *order = side->way[op->order].order;
    const struct pml_signal signal = {.window = (uint64_t)op->order, .rank = side->rank, .value = (uint64_t)op->id};
    if (op->turn || wire_lost(scene->wire)) return;
    op->turn = ++side->turns;
    if (op->kind == OP_PUT) expect(pml_order_put(order, op->offset, op->from, op->bytes, op->signals ? &signal : NULL));
    else if (op->kind == OP_GET) expect(pml_order_get(order, op->offset, op->to, op->bytes));
    else expect(pml_isend(side->comm, PML_USER, op->from, op->bytes, 1 - side->rank, op->id, &op->send));
}

static void begin(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    start_op(context);
    look(NULL);
}

static void receive(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct op *op = context;
    (void)sim, (void)a, (void)b;
    if (wire_lost(scene->wire)) return;
    expect(pml_irecv(op->side->peer->comm, PML_USER, op->to, op->bytes, op->side->rank, op->id, &op->receive));
    look(NULL);
}

/* Something of an order has ended: called in the middle of the driver's work. The next one of those that follow begins there. */
static void change(void *arg)
{
    struct way *way = arg;
    struct side *side = way->side;
    way->changed = true;
    for (int i = 0; i < side->ops; i++) {
        struct op *op = &side->op[i];
        if (!op->follows || op->turn) continue;
        start_op(op);
        if (op->kind == OP_SEND) sim_after(scene->sim, sim_random(scene->sim, 40000), receive, op, 0, 0);
        return;
    }
}

static void begin_flush(struct sim *sim, void *context, uint64_t rank, uint64_t b)
{
    struct flush *flush = context;
    struct side *side = &scene->side[rank];
    (void)sim, (void)b;
    if (wire_lost(scene->wire)) return;
    flush->turns = side->turns;
    flush->begun = true;
    expect(pml_order_flush(side->way[flush->order].order, &flush->goal));
    side->way[flush->order].changed = true;
    look(NULL);
}

static void rest(struct sim *sim, void *context, uint64_t rank, uint64_t b)
{
    struct pml_holdings holdings = {0};
    struct pml_connection *connection = wire_connection(scene->wire, (int)rank);
    (void)sim, (void)context, (void)b;
    if (wire_lost(scene->wire)) return;
    const struct lanes_origin *origin = connection->lanes->origin;
    if (origin && dqplb_holds(&origin->sender) && lanes_idle(connection)) sim_fail(scene->sim, "rank %d is idle, and its lanes hold something", (int)rank);
    lanes_rest(connection);
    lanes_hold(connection, &holdings);
    look(NULL);
}

static void lane_breaks(struct sim *sim, void *context, uint64_t rank, uint64_t lane)
{
    (void)sim, (void)context;
    wire_break(scene->wire, (int)rank, (unsigned)lane);
}

/* ---- A scene ---- */

static void fill(const struct op *op, char *memory)
{
    for (size_t i = 0; i < op->bytes; i++) memory[i] = pattern(op, i);
}

/* In the window of the other side: what is put there, and what is got from there. */
static void furnish(struct side *side)
{
    struct sim *sim = scene->sim;
    for (int i = 0; i < side->peer->ops; i++) side->window_bytes += side->peer->op[i].kind == OP_SEND ? 0 : side->peer->op[i].bytes;
    side->window = sim_alloc(sim, side->window_bytes + 1);
    size_t offset = 0;
    for (int i = 0; i < side->peer->ops; i++) {
        struct op *op = &side->peer->op[i];
        char *place = side->window + offset;
        op->offset = offset;
        if (op->kind == OP_SEND) place = sim_alloc(sim, op->bytes);
        else offset += op->bytes;
        op->from = op->kind == OP_GET ? place : sim_alloc(sim, op->bytes);
        op->to = op->kind == OP_GET ? sim_alloc(sim, op->bytes) : place;
        fill(op, op->from);
    }
    if (lanes_range_add(side->comm, (uint64_t)(uintptr_t)side->window, side->window_bytes + 1, &side->key)) sim_fail(sim, "no range");
}

static void open_orders(struct side *side)
{
    const struct side *peer = side->peer;
    struct pml_region region = {.access = PML_ACCESS_LANES,
                                .address = (uint64_t)(uintptr_t)peer->window,
                                .bytes = peer->window_bytes + 1,
                                .peer = peer->rank,
                                .key = peer->key};
    for (int i = 0; i < ORDERS; i++)
        if (pml_order_make(side->comm->rt, &region, change, &side->way[i], &side->way[i].order)) sim_fail(scene->sim, "no order");
}

static void plan_flush(struct side *side, int order, uint64_t at)
{
    struct flush *flush = &side->flush[side->flushes++];
    flush->order = order;
    side->way[order].last = flush;
    sim_after(scene->sim, at, begin_flush, flush, (uint64_t)side->rank, 0);
}

static size_t some_bytes(struct sim *sim)
{
    return sim_chance(sim, 1, 8) ? 0 : sim_random(sim, sim_chance(sim, 1, 4) ? 40000 : 400);
}

static struct op *add_op(struct side *side, enum op_kind kind, size_t bytes)
{
    struct op *op = &side->op[side->ops];
    *op = (struct op){.side = side, .id = side->ops++, .kind = kind, .order = (int)sim_random(scene->sim, ORDERS), .bytes = bytes};
    return op;
}

/* A put that was flushed, and then a signal that carries nothing: its marker is all that is under way, and is not lost with its lane. */
static void plan_last_word(struct side *side)
{
    struct sim *sim = scene->sim;
    uint64_t at = AFTER + (uint64_t)side->rank * 1000000, word = at + 500000;
    struct op *put = add_op(side, OP_PUT, 1 + sim_random(sim, 300)), *signal = add_op(side, OP_PUT, 0);
    signal->order = put->order;
    signal->signals = true;
    sim_after(sim, at, begin, put, 0, 0);
    plan_flush(side, put->order, at + 1);
    sim_after(sim, word, begin, signal, 0, 0);
    if (sim_chance(sim, 1, 2)) sim_after(sim, word + sim_random(sim, 2000), rest, NULL, (uint64_t)side->rank, 0);
    else if (scene->breaks) sim_after(sim, word + sim_random(sim, 1000), lane_breaks, NULL, (uint64_t)side->rank, sim_random(sim, 2));
}

/* The last flushes see it through. */
static void plan(struct side *side, bool crowd)
{
    struct sim *sim = scene->sim;
    uint64_t at = 0, pace = 1 + sim_random(sim, sim_chance(sim, 1, 2) ? 40000 : 2000);
    int ops = crowd ? MAX_OPS : (int)sim_random(sim, 40);
    for (int i = 0; i < ops; i++) {
        enum op_kind kind = crowd ? OP_GET : sim_chance(sim, 1, 2) ? OP_PUT : sim_chance(sim, 1, 3) ? OP_GET : OP_SEND;
        struct op *op = add_op(side, kind, crowd ? 1 + sim_random(sim, 20) : some_bytes(sim));
        op->signals = kind == OP_PUT && sim_chance(sim, 1, 2);
        op->follows = sim_chance(sim, 1, 4);
        at += crowd ? 0 : 1 + sim_random(sim, pace);
        if (!op->follows) sim_after(sim, at, begin, op, 0, 0);
        if (kind == OP_SEND && !op->follows) sim_after(sim, sim_random(sim, at + 40000), receive, op, 0, 0);
        if (side->flushes < MAX_FLUSHES - ORDERS - 1 && sim_chance(sim, 1, 6)) plan_flush(side, (int)sim_random(sim, ORDERS), at + 1);
        if (sim_chance(sim, 1, 30)) sim_after(sim, at + sim_random(sim, 100000), rest, NULL, (uint64_t)side->rank, 0);
    }
    for (int i = 0; i < ORDERS; i++) plan_flush(side, i, LATEST);
    if (!crowd && sim_chance(sim, 1, 2)) plan_last_word(side);
}

static void plan_breaks(unsigned lanes)
{
    struct sim *sim = scene->sim;
    for (int i = (int)sim_random(sim, 30); i > 0; i--)
        sim_after(sim, sim_random(sim, 600000), lane_breaks, NULL, sim_random(sim, 2), sim_random(sim, lanes));
}

static void open_world(struct sim *sim)
{
    static char limits[64], budget[64], slots[64], chunk[64], unexpected[64];
    static char adapt[] = "NCCLX_DQPLB_ADAPT=off", copy[] = "NCCLX_PROTOCOL=copy", quiet[] = "NCCLX_LOG=none";
    char *environment[9] = {quiet, limits, budget, slots, chunk, unexpected};
    int more = 6;
    snprintf(limits, sizeof limits, "NCCLX_DQPLB_NODE=%" PRIu64 ":%" PRIu64 ":%" PRIu64, 1 + sim_random(sim, WIRE_LANES),
             1 + sim_random(sim, 32), 200 + sim_random(sim, 6000));
    snprintf(budget, sizeof budget, "NCCLX_DQPLB_BUDGET=%" PRIu64, sim_chance(sim, 1, 2) ? 0 : 1 + sim_random(sim, 40000));
    snprintf(slots, sizeof slots, "NCCLX_COPY_SLOTS=%" PRIu64, 1 + sim_random(sim, 4));
    snprintf(chunk, sizeof chunk, "NCCLX_COPY_CHUNK=%" PRIu64, 1024 + sim_random(sim, 4000));
    snprintf(unexpected, sizeof unexpected, "NCCLX_UNEXPECTED_LIMIT=%" PRIu64, sim_random(sim, 20000));
    if (sim_chance(sim, 1, 3)) environment[more++] = adapt;
    if (sim_chance(sim, 1, 4)) environment[more++] = copy;
    world_open_apart(&scene->world, 2, environment);
}

static void start(struct sim *sim)
{
    bool breaks = sim_chance(sim, 1, 2), crowd = sim_chance(sim, 1, 20);
    const struct wire_nature nature = {.lanes = 1 + (unsigned)sim_random(sim, WIRE_LANES),
                                       .depth = 1 + (unsigned)sim_random(sim, 32),
                                       .largest = 200 + sim_random(sim, 10000),
                                       .eager_limit = sim_random(sim, 2000),
                                       .announce_threshold = sim_chance(sim, 1, 2) ? SIZE_MAX : 1 + sim_random(sim, 4000),
                                       .delay = 1 + sim_random(sim, sim_chance(sim, 1, 4) ? 20000 : 1000),
                                       .rate = sim_random(sim, 8),
                                       .placed_late = sim_chance(sim, 1, 2) ? 1 + sim_random(sim, 4000) : 0,
                                       .refuses = breaks && sim_chance(sim, 1, 3),
                                       .fills = sim_chance(sim, 1, 3)};
    scene = sim_alloc(sim, sizeof *scene);
    scene->sim = sim;
    scene->breaks = breaks;
    open_world(sim);
    struct pml *const pml[2] = {scene->world.rt[0].pml, scene->world.rt[1].pml};
    scene->wire = wire_open(sim, pml, &nature, look, NULL);
    for (int i = 0; i < 2; i++) {
        struct side *side = &scene->side[i];
        *side = (struct side){.peer = &scene->side[1 - i], .rank = i, .comm = &scene->world.comm[i]};
        for (int k = 0; k < ORDERS; k++) side->way[k].side = side;
        pml_signal_register(&scene->world.rt[i], hear_signal, NULL);
    }
    for (int i = 0; i < 2; i++) plan(&scene->side[i], crowd);
    for (int i = 0; i < 2; i++) furnish(&scene->side[i]);
    for (int i = 0; i < 2; i++) open_orders(&scene->side[i]);
    if (breaks) plan_breaks(nature.lanes);
}

/* What began after the last flush tells of its end only by itself. */
static bool is_flushed(const struct op *op)
{
    return op->kind == OP_SEND || op->turn <= op->side->way[op->order].last->turns;
}

static void check_op(const struct op *op)
{
    const char *const kinds[] = {"put", "get", "message"};
    bool must = op->turn && is_flushed(op);
    if (must && !(op->told && op->over)) sim_fail(scene->sim, "%s %d of rank %d, %zu bytes, has no end", kinds[op->kind], op->id, op->side->rank, op->bytes);
    if (op->turn && op->signals && !op->signalled) sim_fail(scene->sim, "signal %d of rank %d never takes effect", op->id, op->side->rank);
    for (size_t i = 0; i < op->bytes && op->told; i++) {
        if (op->to[i] == (char)USED) continue;
        sim_fail(scene->sim, "%s %d of rank %d was written again", kinds[op->kind], op->id, op->side->rank);
        return;
    }
}

static void finish(struct sim *sim)
{
    bool lost = wire_lost(scene->wire);
    for (int s = 0; s < 2; s++) {
        const struct side *side = &scene->side[s];
        const struct pml *pml = side->comm->rt->pml;
        const struct dqplb_budget *budget = &pml->lanes->budget[LANE_PORT_FIRST];
        for (int i = 0; i < side->ops && !lost; i++) check_op(&side->op[i]);
        for (int i = 0; i < side->flushes; i++)
            if (side->flush[i].begun && !side->flush[i].over) sim_fail(sim, "flush %d of rank %d never ends", i, s);
        if (!lanes_drained(pml)) sim_fail(sim, "rank %d is never done", s);
        if (pml->busy && !lost) sim_fail(sim, "rank %d has packets that nobody sends", s);
        if (budget->used || budget->first) sim_fail(sim, "of the budget of rank %d %" PRIu64 " bytes are not given back", s, budget->used);
    }
}

static void release(struct sim *sim)
{
    (void)sim;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < ORDERS; k++) pml_order_leave(scene->side[i].way[k].order);
        lanes_range_drop(scene->world.rt[i].pml, scene->side[i].key);
        lanes_lost(wire_connection(scene->wire, i));
        lanes_gets_fail(wire_connection(scene->wire, i)->lanes); /* which a planted bug leaves */
    }
    world_close(&scene->world);
    scene = NULL;
}

static const enum planted_bug bugs[] = {BUG_LANES_NO_FENCE,      BUG_LANES_READS_IGNORED, BUG_LANES_NOT_RUNG,    BUG_LANES_UP_EARLY,
                                        BUG_LANES_PLACE_LEAK,    BUG_LANES_GETS_LEFT,     BUG_LANES_NOT_AGAIN,   BUG_LANES_ANSWERS_KEPT,
                                        BUG_LANES_GETS_UNBOUNDED, BUG_LANES_BUDGET_SLEEPS, BUG_LANES_HOPES_IN_VAIN, BUG_LANES_CREDITS_KEPT,
                                        BUG_LANES_UNCHANGED,     BUG_LANES_MARKER_LEFT,   BUG_LANES_MARKER_RESTED, BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {{.name = "driver of lanes",
                                                     .start = start,
                                                     .finish = finish,
                                                     .release = release,
                                                     .seeds = 2000,
                                                     .event_limit = 400000,
                                                     .bugs = bugs}};
    return sim_main(argc, argv, scenarios, 1);
}
