/* dqplb.c - one direction of a connection over lanes, in virtual time: queue pairs or sockets with delays of their own,
 * a target that is slow now and then, lanes that break and come back.
 *
 * Puts may come before the target's offer has; lanes may never open, or be lost for good, and with the last one the
 * connection is. A lane takes writes in order; what has arrived is placed a while later (verbs: an acknowledgement is not placement;
 * an immediate shows only after all before it is placed; a read returns after that, too) or at once (sockets). Memory
 * is real: each put has a place of its own, filled with its pattern; once the target has been told that it is there,
 * the target uses the place for something else.
 *
 * Holds: no byte is early (a notice or a flush finds every earlier put of its order in place), twice or late (what the
 * target has written since stays), everything ends, no limit is exceeded, no immediate finds the target without a
 * receive, a small put behind a large one takes bounded time. */
#include "pml/dqplb/dqplb.h"

#include "runtime/base/error.h"
#include "runtime/ncclx.h"

#include "tests/sim/engine.h"

#include <inttypes.h>
#include <string.h>

#define MAX_LANES 8
#define MAX_PUTS 120
#define MAX_BYTES 1500
#define MAX_FLUSHES 24
#define ORDERS 2
#define WINDOW 64
#define FRAGILE_LIVES 10
#define NEAR_WRAP ((UINT64_C(1) << DQPLB_NUMBER_BITS) - 40)
#define USED 0xee /* what the target writes into a place that was given to it */

struct world;

struct op {
    struct dqplb_put put; /* first */
    struct world *world;
    int id, order;
    char from[MAX_BYTES], place[MAX_BYTES];
    uint64_t issued;
    bool issued_yet, done, noticed;
    bool told; /* the target knows that it is there */
    bool small;
};

struct flush {
    struct dqplb_flush flush; /* first */
    int order, below;         /* puts of lower id */
    bool issued, done;
};

/* A write, or a read, on its way. */
struct flight {
    struct world *world;
    struct op *op; /* null: a marker or a read */
    const char *from;
    char *to;
    size_t bytes;
    unsigned lane;
    uint32_t life, immediate;
    bool has_immediate, is_read;
};

struct lane {
    uint32_t life;
    uint64_t least, most, rate; /* ns; ns a byte */
    uint64_t last_arrival, last_placed, last_back, read_until;
    bool ready; /* open, and not up yet: what it held is still moving */
    bool sender_open, target_open, broken;
    uint64_t lost_after; /* arrivals later than this never happen */
    unsigned posted;     /* receives at the target */
    unsigned entries;    /* in flight, by our own count */
    unsigned waiting;    /* immediates that the target has not looked at */
    unsigned segments;   /* of puts, in flight */
    bool gone;           /* for good */
};

struct world {
    struct sim *sim;
    struct dqplb_terms terms, own; /* what the target offers; what the sender would take */
    struct dqplb_limits limits;
    struct dqplb_sender sender;
    struct dqplb_budget budget;
    struct dqplb_tracker tracker;
    struct dqplb_order order[ORDERS];
    struct lane lane[MAX_LANES];
    struct op *op[MAX_PUTS];
    struct flush flush[MAX_FLUSHES];
    int puts, flushes;
    int applied[ORDERS];
    uint64_t placed_late; /* verbs: at most this long after the acknowledgement */
    uint64_t busy_until;  /* the target computes, or has looked at completions */
    struct sim_channel *to_target, *to_sender;
    struct sim_channel *credits; /* plain writes on any lane: in no order with the rest */
    bool breaks, loses, over;
    bool fragile; /* lanes break soon after they have come up, in their first lives */
    bool agreed;
    int failed;
    uint64_t small_bound; /* ns; 0: none */
};

enum message_kind {
    MESSAGE_NOTICE,
    MESSAGE_CREDIT,
    MESSAGE_PROGRESS,
    MESSAGE_CLOSE,
    MESSAGE_REPORT,
    MESSAGE_OPEN,
    MESSAGE_OPENED
};

struct message {
    enum message_kind kind;
    unsigned lane;
    uint32_t life;
    uint64_t a, b, token;
    uint32_t order;
    struct dqplb_report report;
};

static struct world *world_of(const struct sim *sim)
{
    return sim_user(sim);
}

static void drive(struct world *world);
static void tell_time(struct world *world);

static void check(struct world *world, int code, const char *who)
{
    if (code) sim_fail(world->sim, "%s: %s", who, base_error_detail());
}

static void send_message(struct sim_channel *channel, const struct message *message)
{
    bool whole = message->kind == MESSAGE_REPORT;
    sim_channel_send(channel, message, whole ? sizeof *message : offsetof(struct message, report));
}

/* ---- What must be in place ---- */

static void check_place(struct world *world, const struct op *op, const char *why)
{
    for (size_t i = 0; i < op->put.bytes; i++) {
        if (op->place[i] == op->from[i]) continue;
        sim_fail(world->sim, "%s: byte %zu of put %d is not in place", why, i, op->id);
        return;
    }
}

/* The target is told that all puts of this order below `below` are there, and uses their memory. */
static void tell(struct world *world, int order, int below, const char *why)
{
    for (int i = 0; i < below; i++) {
        struct op *op = world->op[i];
        if (op->order != order || op->told || !op->issued_yet) continue;
        check_place(world, op, why);
        op->told = true;
        memset(op->place, USED, sizeof op->place);
    }
}

/* ---- Target ---- */

static void target_tells(struct world *world)
{
    uint64_t token, expected, applied, receives;
    unsigned lane;
    uint32_t life;
    while (dqplb_apply(&world->tracker, &token)) {
        struct op *op = world->op[token];
        if (op->noticed) sim_fail(world->sim, "the notice of put %d takes effect twice", op->id);
        op->noticed = true;
        if (op->id < world->applied[op->order]) sim_fail(world->sim, "notices of one order change places");
        world->applied[op->order] = op->id;
        tell(world, op->order, op->id + 1, "a notice");
        if (world->small_bound && op->small && sim_now(world->sim) - op->issued > world->small_bound)
            sim_fail(world->sim, "a small put took %" PRIu64 " ns behind a large one",
                     sim_now(world->sim) - op->issued);
    }
    while (dqplb_credit_due(&world->tracker, &lane, &life, &receives))
        send_message(world->credits,
                     &(struct message){.kind = MESSAGE_CREDIT, .lane = lane, .life = life, .a = receives});
    if (dqplb_progress_due(&world->tracker, &expected, &applied))
        send_message(world->credits, &(struct message){.kind = MESSAGE_PROGRESS, .a = expected, .b = applied});
}

/* The target looks at an immediate, and posts its receive again. */
static void target_counts(struct sim *sim, void *context, uint64_t immediate, uint64_t life)
{
    struct flight *flight = context;
    struct world *world = flight->world;
    struct lane *lane = &world->lane[flight->lane];
    (void)sim;
    if (world->over) return;
    if (life != lane->life) return; /* was drained when the lane closed */
    if (!lane->waiting) return;
    lane->waiting--;
    lane->posted++;
    check(world, dqplb_arrived(&world->tracker, flight->lane, (uint32_t)immediate), "target");
    target_tells(world);
}

/* One queue of completions for all lanes. */
static uint64_t when_looked_at(struct world *world)
{
    uint64_t now = sim_now(world->sim), at = now + sim_random(world->sim, 300);
    if (!world->small_bound && sim_chance(world->sim, 1, 40)) at += sim_random(world->sim, 30000);
    if (!world->small_bound && sim_chance(world->sim, 1, 2000)) at += sim_random(world->sim, 1000000); /* it computes */
    if (at > world->busy_until) world->busy_until = at;
    return world->busy_until - now;
}

/* ---- Lanes ---- */

static void comes_back(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct world *world = flight->world;
    struct lane *lane = &world->lane[flight->lane];
    (void)a, (void)b;
    if (world->over || flight->life != lane->life || !lane->sender_open || sim_now(sim) > lane->lost_after) return;
    lane->entries--;
    if (flight->op) lane->segments--;
    tell_time(world);
    check(world, dqplb_completed(&world->sender, flight->lane), "sender");
    drive(world);
}

static void send_back(struct flight *flight)
{
    struct world *world = flight->world;
    struct lane *lane = &world->lane[flight->lane];
    uint64_t now = sim_now(world->sim), from = now > lane->read_until ? now : lane->read_until;
    uint64_t at = from + lane->least + sim_random(world->sim, lane->most - lane->least + 1);
    if (at < lane->last_back) at = lane->last_back;
    lane->last_back = at;
    sim_after(world->sim, at - sim_now(world->sim), comes_back, flight, 0, 0);
}

static void is_placed(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct world *world = flight->world;
    struct lane *lane = &world->lane[flight->lane];
    (void)a, (void)b;
    if (world->over || flight->life != lane->life) return;
    if (flight->op && flight->bytes) {
        if (flight->op->done && !world->placed_late)
            sim_fail(sim, "put %d is written after it was done", flight->op->id);
        if (flight->op->told) sim_fail(sim, "put %d is written into memory that is in use again", flight->op->id);
        memcpy(flight->to, flight->from, flight->bytes);
    }
    if (flight->has_immediate) {
        if (!lane->posted--) {
            sim_fail(sim, "an immediate finds no receive on lane %u", flight->lane);
            return;
        }
        lane->waiting++;
        sim_after(sim, when_looked_at(world), target_counts, flight, flight->immediate, flight->life);
    }
    if (flight->is_read || !world->placed_late) send_back(flight);
}

static void arrives(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct world *world = flight->world;
    struct lane *lane = &world->lane[flight->lane];
    (void)a, (void)b;
    if (world->over || flight->life != lane->life || !lane->target_open || sim_now(sim) > lane->lost_after) return;
    if (!world->placed_late) {
        is_placed(sim, flight, 0, 0);
        return;
    }
    uint64_t at = sim_now(sim) + sim_random(sim, world->placed_late);
    if (at < lane->last_placed) at = lane->last_placed;
    lane->last_placed = at;
    if (flight->is_read) lane->read_until = at; /* what comes after a read is acknowledged after it */
    sim_after(sim, at - sim_now(sim), is_placed, flight, 0, 0);
    if (!flight->is_read) send_back(flight);
}

/* Of the connection, when it posts a segment of a large put. */
static void check_limits(struct world *world, unsigned index)
{
    if (world->lane[index].segments > world->limits.outstanding)
        sim_fail(world->sim, "lane %u has more segments in flight than the connection allows", index);
    if (!(world->sender.data >> index & 1) || (unsigned)__builtin_popcountll(world->sender.data) > world->limits.lanes)
        sim_fail(world->sim, "lane %u is one more for large puts than the connection allows", index);
}

static void post(struct world *world, const struct dqplb_action *action)
{
    struct sim *sim = world->sim;
    struct lane *lane = &world->lane[action->lane];
    struct flight *flight = sim_alloc(sim, sizeof *flight);
    if (!lane->sender_open) sim_fail(sim, "something is posted on lane %u, which is down", action->lane);
    if (++lane->entries > world->terms.depth) sim_fail(sim, "lane %u holds more than it can", action->lane);
    *flight = (struct flight){.world = world,
                              .lane = action->lane,
                              .life = lane->life,
                              .from = action->from,
                              .to = (char *)(uintptr_t)action->to,
                              .bytes = action->bytes,
                              .is_read = action->kind == DQPLB_READ,
                              .has_immediate = action->has_immediate,
                              .immediate = action->immediate};
    if (action->bytes) {
        flight->op = (struct op *)action->put;
        const struct dqplb_put *put = &flight->op->put;
        size_t at = (size_t)(action->from - flight->op->from);
        if (action->bytes > world->limits.segment || at + action->bytes > put->bytes)
            sim_fail(sim, "a segment is longer than it may be");
        if (put->on_lane[action->lane] > put->limits.outstanding && !world->breaks)
            sim_fail(sim, "put %d has more segments on a lane than it may", flight->op->id);
        if ((unsigned)__builtin_popcountll(put->used) > put->limits.lanes && !world->breaks)
            sim_fail(sim, "put %d uses more lanes than it may", flight->op->id);
        lane->segments++;
        if (!put->fast && !world->breaks) check_limits(world, action->lane);
    }
    uint64_t at = sim_now(sim) + lane->least + sim_random(sim, lane->most - lane->least + 1);
    if (at < lane->last_arrival) at = lane->last_arrival;
    lane->last_arrival = at + action->bytes * lane->rate;
    sim_after(sim, lane->last_arrival - sim_now(sim), arrives, flight, 0, 0);
}

/* ---- Sender ---- */

static void ended(struct world *world, const struct dqplb_action *action)
{
    if (action->code != world->failed) sim_fail(world->sim, "something ends with code %d", action->code);
    if (action->kind == DQPLB_DONE) {
        struct op *op = (struct op *)action->put;
        if (op->done) sim_fail(world->sim, "put %d is done twice", op->id);
        op->done = true;
        return;
    }
    struct flush *flush = (struct flush *)action->flush;
    if (flush->done) sim_fail(world->sim, "a flush ends twice");
    flush->done = true;
    if (!world->failed) tell(world, flush->order, flush->below, "a flush");
}

static void tell_time(struct world *world)
{
    if (dqplb_wants_clock(&world->sender)) dqplb_clock(&world->sender, sim_now(world->sim) + 1);
}

static void lane_breaks(struct sim *sim, void *context, uint64_t index, uint64_t b);

/* As soon as they may, with what waits on others not moved yet. */
static void bring_up(struct world *world)
{
    struct sim *sim = world->sim;
    for (unsigned i = 0; i < world->terms.lanes && !world->over; i++) {
        struct lane *lane = &world->lane[i];
        if (!lane->ready || !dqplb_lane_may_open(&world->sender, i)) continue;
        lane->ready = false;
        lane->sender_open = true;
        check(world, dqplb_lane_up(&world->sender, i), "sender");
        if (world->fragile ? lane->life < FRAGILE_LIVES : world->breaks && sim_chance(sim, 1, world->loses ? 2 : 3))
            sim_after(sim, sim_random(sim, world->fragile || world->loses ? 10000 : 60000), lane_breaks, world, i, 0);
    }
}

static void drive_once(struct world *world)
{
    struct dqplb_action action;
    bring_up(world);
    tell_time(world);
    while (world->agreed && !sim_failed(world->sim) && dqplb_next(&world->sender, &action)) {
        if (action.kind == DQPLB_WRITE || action.kind == DQPLB_READ)
            post(world, &action);
        else if (action.kind == DQPLB_NOTICE)
            send_message(world->to_target, &(struct message){.kind = MESSAGE_NOTICE,
                                                             .a = action.bound,
                                                             .b = action.fast_bound,
                                                             .token = (uint64_t)((struct op *)action.put)->id,
                                                             .order = 1 + (uint32_t)((struct op *)action.put)->order});
        else
            ended(world, &action);
    }
}

static void drive(struct world *world)
{
    do {
        drive_once(world);
        if (world->budget.first) dqplb_turn(&world->sender);
    } while (!sim_failed(world->sim) && budget_next(&world->budget));
}

static void open_again(struct sim *sim, void *context, uint64_t index, uint64_t b)
{
    struct world *world = context;
    (void)sim, (void)b;
    if (world->over) return;
    if (!dqplb_lane_may_open(&world->sender, (unsigned)index)) { /* its entries are still on their way elsewhere */
        sim_after(world->sim, 1000, open_again, world, index, 0);
        return;
    }
    send_message(world->to_target, &(struct message){.kind = MESSAGE_OPEN, .lane = (unsigned)index});
}

static void is_open(struct world *world, unsigned index)
{
    world->lane[index].ready = true;
    drive(world);
}

static void sender_notices_break(struct sim *sim, void *context, uint64_t index, uint64_t life)
{
    struct world *world = context;
    struct lane *lane = &world->lane[index];
    (void)sim;
    if (world->over || lane->life != life || !lane->sender_open) return;
    lane->sender_open = false;
    dqplb_lane_failed(&world->sender, (unsigned)index);
    send_message(world->to_target,
                 &(struct message){.kind = MESSAGE_CLOSE, .lane = (unsigned)index, .life = (uint32_t)life});
    drive(world);
}

static void target_reports(struct sim *sim, void *context, uint64_t index, uint64_t life)
{
    struct world *world = context;
    struct lane *lane = &world->lane[index];
    struct message message = {.kind = MESSAGE_REPORT, .lane = (unsigned)index};
    if (world->over || lane->life != life) return;
    uint64_t now = sim_now(sim), after = lane->last_placed > now ? lane->last_placed : world->busy_until;
    if (lane->last_placed > now || lane->waiting) {
        sim_after(sim, after > now ? after - now + 1 : 1, target_reports, world, index, life);
        return;
    }
    if (PLANTED_BUG(BUG_DQPLB_NO_FENCE)) lane->target_open = sim_chance(sim, 1, 2);
    dqplb_lane_closed(&world->tracker, (unsigned)index, &message.report);
    send_message(world->to_sender, &message);
}

static void lane_breaks(struct sim *sim, void *context, uint64_t index, uint64_t b)
{
    struct world *world = context;
    struct lane *lane = &world->lane[index];
    (void)b;
    if (world->over || lane->broken || !lane->sender_open) return;
    lane->broken = true;
    if (sim_chance(sim, 3, 4)) lane->lost_after = sim_now(sim) + sim_random(sim, 3000);
    sim_after(sim, sim_random(sim, 8000), sender_notices_break, world, index, lane->life);
}

/* ---- Control lane ---- */

static void at_target(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct world *world = context;
    struct message message;
    memcpy(&message, data, bytes);
    if (world->over) return;
    if (message.kind == MESSAGE_NOTICE) {
        check(world, dqplb_noticed(&world->tracker, message.order, message.a, message.b, message.token), "target");
        target_tells(world);
    } else if (message.kind == MESSAGE_CLOSE) {
        /* Queue pair in error, or socket closed; what has come is looked at; then the report. */
        if (!PLANTED_BUG(BUG_DQPLB_NO_FENCE)) world->lane[message.lane].target_open = false;
        target_reports(sim, world, message.lane, message.life);
    } else if (message.kind == MESSAGE_OPEN) {
        struct lane *lane = &world->lane[message.lane];
        lane->life++;
        lane->broken = false;
        lane->lost_after = UINT64_MAX;
        lane->target_open = true;
        lane->waiting = lane->entries = lane->segments = 0;
        lane->posted = world->terms.receives;
        dqplb_tracker_lane_up(&world->tracker, message.lane);
        send_message(world->to_sender, &(struct message){.kind = MESSAGE_OPENED, .lane = message.lane});
    }
}

static void connection_fails(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    (void)sim, (void)a, (void)b;
    world->failed = NCCLX_ERR_PROC_FAILED;
    world->over = world->agreed = true;
    dqplb_sender_fail(&world->sender, world->failed);
    drive(world);
}

/* The driver has lost a lane for good, or heard a report. */
static void give_up_without_hope(struct world *world)
{
    uint64_t gone = 0;
    for (unsigned i = 0; i < world->terms.lanes; i++) gone |= (uint64_t)world->lane[i].gone << i;
    if (!dqplb_has_hope(&world->sender, gone)) connection_fails(world->sim, world, 0, 0);
}

static void at_sender(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct world *world = context;
    struct message message;
    memcpy(&message, data, bytes);
    if (world->over) return;
    if (message.kind == MESSAGE_CREDIT) {
        check(world, dqplb_credited(&world->sender, message.lane, message.life, message.a), "sender");
    } else if (message.kind == MESSAGE_PROGRESS) {
        check(world, dqplb_progressed(&world->sender, message.a, message.b), "sender");
    } else if (message.kind == MESSAGE_REPORT) {
        check(world, dqplb_lane_reported(&world->sender, message.lane, &message.report), "sender");
        if (world->loses && sim_chance(sim, 1, 3)) world->lane[message.lane].gone = true;
        else if (sim_chance(sim, 1, 2)) open_again(sim, world, message.lane, 0); /* before what it held goes elsewhere */
        else sim_after(sim, 1000 + sim_random(sim, 40000), open_again, world, message.lane, 0);
        give_up_without_hope(world);
    } else if (message.kind == MESSAGE_OPENED) {
        is_open(world, message.lane);
    }
    drive(world);
}

/* ---- Scenarios ---- */

static void issue_put(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct op *op = context;
    struct world *world = op->world;
    (void)a, (void)b;
    op->issued = sim_now(sim);
    op->issued_yet = true;
    dqplb_put(&world->sender, &world->order[op->order], &op->put);
    drive(world);
}

static void issue_flush(struct sim *sim, void *context, uint64_t below, uint64_t b)
{
    struct flush *flush = context;
    struct world *world = world_of(sim);
    (void)b;
    flush->below = (int)below;
    flush->issued = true;
    dqplb_flush(&world->sender, &world->order[flush->order], &flush->flush);
    drive(world);
}

static struct op *make_put(struct world *world, size_t bytes, bool notice, int order)
{
    struct op *op = sim_alloc(world->sim, sizeof *op);
    *op = (struct op){.world = world, .id = world->puts, .order = order};
    op->put = (struct dqplb_put){
        .from = op->from, .to = (uint64_t)(uintptr_t)op->place, .key = 7, .bytes = bytes, .notice = notice};
    for (size_t i = 0; i < bytes; i++) op->from[i] = (char)(1 + (op->id * 31 + (int)i * 7) % 200);
    world->op[world->puts++] = op;
    return op;
}

static struct world *make_world(struct sim *sim)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    sim_set_user(sim, world);
    world->sim = sim;
    return world;
}

/* A run that fails has no end: the next one frees what it held. */
static struct dqplb_sender latest_sender;
static struct dqplb_tracker latest_tracker;

static void open_world(struct world *world, size_t fast_bytes, uint64_t control)
{
    struct sim *sim = world->sim;
    dqplb_sender_release(&latest_sender);
    dqplb_tracker_release(&latest_tracker);
    check(world, dqplb_sender_init(&world->sender, &world->own, &world->limits, fast_bytes), "sender");
    check(world, dqplb_tracker_init(&world->tracker, &world->terms), "target");
    if (sim_chance(sim, 2, 3)) dqplb_adapt(&world->sender);
    if (sim_chance(sim, 1, 2)) world->budget.bytes = 1 + sim_random(sim, 4000);
    dqplb_join(&world->sender, &world->budget);
    latest_sender = world->sender;
    latest_tracker = world->tracker;
    world->sender.next = world->sender.expected = world->tracker.next = world->tracker.next_told =
        NEAR_WRAP + sim_random(sim, 64);
    world->sender.fast_next = world->tracker.fast_next = NEAR_WRAP + sim_random(sim, 64);
    world->to_target = sim_channel_create(sim, 200, control, at_target, world);
    world->to_sender = sim_channel_create(sim, 200, control, at_sender, world);
    world->credits = sim_channel_create(sim, 200, control + sim_random(sim, 60000), at_sender, world);
}

/* The target's offer has come: lanes may be opened. */
static void agree(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    (void)a, (void)b;
    if (world->over) return;
    check(world, dqplb_agree(&world->sender, &world->terms), "sender");
    world->agreed = true;
    for (unsigned i = 0; i < world->terms.lanes; i++)
        if (!world->lane[i].gone) sim_after(sim, sim_random(sim, 3000), open_again, world, i, 0);
    drive(world);
}

static void start_any(struct sim *sim)
{
    struct world *world = make_world(sim);
    world->breaks = sim_chance(sim, 1, 2);
    world->fragile = world->breaks && sim_chance(sim, 1, 4);
    world->terms = (struct dqplb_terms){.lanes = 1 + (unsigned)sim_random(sim, sim_chance(sim, 1, 2) ? 3 : MAX_LANES),
                                        .depth = 1 + (unsigned)sim_random(sim, world->fragile ? 4 : 32),
                                        .receives = 1 + (unsigned)sim_random(sim, world->fragile ? 4 : 40),
                                        .window = WINDOW,
                                        .notices = 1 + (unsigned)sim_random(sim, 8),
                                        .reads = sim_chance(sim, 1, 2)};
    world->limits = (struct dqplb_limits){.lanes = 1 + (unsigned)sim_random(sim, MAX_LANES),
                                          .outstanding = 1 + (unsigned)sim_random(sim, 32),
                                          .segment = 1 + (size_t)sim_random(sim, 64)};
    world->placed_late = world->terms.reads ? 1 + sim_random(sim, 4000) : 0;
    world->own = (struct dqplb_terms){.lanes = world->terms.lanes + (unsigned)sim_random(sim, 4),
                                      .depth = world->terms.depth,
                                      .receives = 1 + (unsigned)sim_random(sim, 40),
                                      .window = WINDOW << sim_random(sim, 3),
                                      .notices = 1 + (unsigned)sim_random(sim, 16),
                                      .reads = world->terms.reads};
    world->loses = world->breaks && sim_chance(sim, 1, 2);
    for (unsigned i = 0; i < world->terms.lanes; i++) {
        world->lane[i].least = 200;
        world->lane[i].most = 200 + sim_random(sim, sim_chance(sim, 1, 4) ? 20000 : 1000);
        world->lane[i].rate = sim_random(sim, 8);
        world->lane[i].gone = i && sim_chance(sim, 1, 8); /* never opens */
    }
    open_world(world, world->fragile ? 64 : sim_random(sim, 64), 300 + sim_random(sim, 4000));
    sim_after(sim, sim_random(sim, 20000), agree, world, 0, 0);
    uint64_t at = 0, pace = 1 + sim_random(sim, 2000);
    int puts = 1 + (int)sim_random(sim, MAX_PUTS);
    for (int i = 0; i < puts; i++) {
        size_t bytes = sim_random(sim, sim_chance(sim, 1, 3) ? MAX_BYTES : 40);
        struct op *op = make_put(world, bytes, sim_chance(sim, 2, 3), (int)sim_random(sim, ORDERS));
        if (sim_chance(sim, 1, 3))
            op->put.limits = (struct dqplb_limits){.lanes = (unsigned)sim_random(sim, 4),
                                                   .outstanding = (unsigned)sim_random(sim, 4),
                                                   .segment = (size_t)sim_random(sim, 30)};
        sim_after(sim, at += 1 + sim_random(sim, pace), issue_put, op, 0, 0);
        if (world->flushes == MAX_FLUSHES || !sim_chance(sim, 1, 6)) continue;
        struct flush *flush = &world->flush[world->flushes++];
        flush->order = (int)sim_random(sim, ORDERS);
        sim_after(sim, at += 1, issue_flush, flush, (uint64_t)i + 1, 0);
    }
    if (sim_chance(sim, 1, 10)) sim_after(sim, sim_random(sim, at + 20000), connection_fails, world, 0, 0);
}

static void start_small(struct sim *sim)
{
    struct world *world = make_world(sim);
    world->terms = (struct dqplb_terms){
        .lanes = 2 + (unsigned)sim_random(sim, 6), .depth = 32, .receives = 64, .window = WINDOW, .notices = 64};
    world->limits = (struct dqplb_limits){.lanes = MAX_LANES, .outstanding = 8, .segment = 64};
    for (unsigned i = 0; i < world->terms.lanes; i++)
        world->lane[i] = (struct lane){.least = 1000, .most = 1000, .rate = 10};
    world->own = world->terms;
    open_world(world, 16, 1000);
    sim_after(sim, 1, agree, world, 0, 0);
    world->small_bound = 2 * 1000 + 16 * 10 + 1000; /* one way, and looking, on the fast lane or the control lane */
    int large = 1 + (int)sim_random(sim, 80);
    for (int i = 0; i < large; i++)
        sim_after(sim, 10000, issue_put, make_put(world, MAX_BYTES, sim_chance(sim, 1, 2), 0), 0, 0);
    for (int i = 0; i < 10; i++) {
        struct op *op = make_put(world, 8, true, 1);
        op->small = true;
        sim_after(sim, 10001 + (uint64_t)i * 2000, issue_put, op, 0, 0);
    }
}

static void finish(struct sim *sim)
{
    struct world *world = world_of(sim);
    for (int i = 0; i < world->puts; i++) {
        const struct op *op = world->op[i];
        if (op->issued_yet && !op->done) sim_fail(sim, "put %d is never done", i);
        if (!world->failed && op->put.notice && !op->noticed)
            sim_fail(sim, "the notice of put %d never takes effect", i);
        for (size_t k = 0; k < op->put.bytes && op->told && !world->failed; k++)
            if (op->place[k] != (char)USED) sim_fail(sim, "put %d was written again", i);
    }
    if (world->budget.used || world->budget.first) sim_fail(sim, "of the budget %" PRIu64 " bytes are not given back%s, failed %d", world->budget.used, world->budget.first ? ", and somebody waits" : "", world->failed);
    for (int i = 0; i < world->flushes; i++)
        if (world->flush[i].issued && !world->flush[i].done) sim_fail(sim, "flush %d never ends", i);
}

static const enum planted_bug any_bugs[] = {BUG_DQPLB_NO_MARKER,
                                            BUG_DQPLB_MARKER_OF_OTHERS,
                                            BUG_DQPLB_WRAP,
                                            BUG_DQPLB_REFILL_PAST_CAP,
                                            BUG_DQPLB_NO_FENCE,
                                            BUG_DQPLB_CREDIT_LEAK,
                                            BUG_DQPLB_CREDIT_IGNORED,
                                            BUG_DQPLB_LATE_CREDIT,
                                            BUG_DQPLB_WINDOW_IGNORED,
                                            BUG_DQPLB_PLACES_IGNORED,
                                            BUG_DQPLB_FAST_OVERTAKES,
                                            BUG_DQPLB_FLUSH_READS_NOTHING,
                                            BUG_DQPLB_FLUSH_EARLY,
                                            BUG_DQPLB_EARLIER_UNPOSTED,
                                            BUG_DQPLB_NOTICE_EARLY,
                                            BUG_DQPLB_EARLY_KEPT,
                                            BUG_DQPLB_NOTICES_OVERTAKE,
                                            BUG_DQPLB_PLACED_AGAIN,
                                            BUG_DQPLB_SCATTERED,
                                            BUG_DQPLB_MOVED_NOT_READ,
                                            BUG_DQPLB_FAILURE_FORGETS,
                                            BUG_DQPLB_HOPES_IN_VAIN,
                                            BUG_DQPLB_OFFER_IGNORED,
                                            BUG_DQPLB_LANE_OVERFILLED,
                                            BUG_DQPLB_RETURNS_BESIDE,
                                            BUG_NONE};
static const enum planted_bug small_bugs[] = {BUG_DQPLB_NO_FAST_PATH, BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "lanes", .start = start_any, .finish = finish, .seeds = 10000, .event_limit = 200000, .bugs = any_bugs},
        {.name = "small behind large", .start = start_small, .finish = finish, .seeds = 500, .bugs = small_bugs},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
