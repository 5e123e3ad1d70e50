/* control.c - windows and budgets, in virtual time: connections over lanes through ports of given rates.
 *
 * A segment waits in the queue of its sender's port and of its receiver's, which are first in, first out, takes its bytes'
 * time in each, and its completion comes back after a delay which may be noisy: a little on each, and at times the process is not on
 * its core, so that nothing comes back for many round trips and then everything does. Each network has a twin, the same
 * with windows that stay what the limits say.
 *
 * Holds: throughput is that of the twin, and of the bottleneck where nothing is noisy; queues are bounded by what
 * connections may have there; those that share a port share it evenly; windows keep between two segments a lane and the limits,
 * no lane has less than two segments while data waits, no port's budget is exceeded, small puts wait for neither; one round that is
 * late changes nothing; rates and delays that change, lanes that break: what follows is as good, and everything ends. Bounds of
 * throughput are what the worst of a thousand networks keeps, each measured for so long that one late round is little of it. */
#include "pml/dqplb/dqplb.h"

#include "runtime/base/error.h"
#include "runtime/ncclx.h"

#include "tests/sim/engine.h"

#include <inttypes.h>
#include <string.h>

#define SEGMENT UINT64_C(65536)
#define SMALL UINT64_C(1024)
#define FAST_BYTES 4096
#define MAX_LANES 8
#define MAX_CONNECTIONS 24
#define DEEP 4 /* puts that wait, of a connection that always has data */
#define S UINT64_C(1000000000)

struct network;

/* First in, first out. */
struct port {
    uint64_t rate;    /* bytes a microsecond */
    uint64_t free_at; /* when all that has come is through */
    /* From the begin of measuring on: bytes that came, and the sum of what they found there before them. */
    uint64_t bytes, found;
};

struct flight {
    struct connection *connection;
    unsigned lane;
    uint32_t life;
    uint64_t bytes;
    bool small;
};

struct put {
    struct dqplb_put put; /* first */
    struct put *free;
};

struct lane {
    uint32_t life;
    bool open;
    uint64_t last_there, last_back;
    uint64_t bytes; /* large ones in flight, by our own count */
    unsigned segments;
};

struct connection {
    struct network *network;
    struct dqplb_sender sender;
    struct dqplb_order order;
    struct port *out, *in;
    uint64_t begin, end;     /* when it has data */
    uint64_t bytes, most;    /* of each put; puts at a time */
    uint64_t asleep_until;
    uint64_t put_bytes, done_bytes, delivered; /* delivered: since measuring began */
    unsigned puts;           /* under way */
    struct lane lane[MAX_LANES];
    struct put *free;
    bool moved; /* a lane has ended: what it held is posted anew, whatever the window */
};

struct network {
    struct sim *sim;
    bool adapt;
    unsigned lanes, outstanding, connections;
    uint64_t delay;       /* ns, one way */
    uint64_t detour;      /* ns more, on the way there */
    uint64_t noise;       /* ns, on each completion */
    uint64_t sleep, every; /* ns: a process is off its core so long, so often */
    uint64_t measure;     /* when */
    struct port port[MAX_CONNECTIONS + 1];
    struct connection connection[MAX_CONNECTIONS];
    struct dqplb_budget budget; /* of port 0 */
};

/* A network, its twin, and what is to be checked. */
struct world {
    struct network *network[2];
    void (*check)(struct world *world);
};

static struct world *world_of(const struct sim *sim)
{
    return sim_user(sim);
}

static void drive(struct connection *connection);

static uint64_t bottleneck(const struct network *network)
{
    return network->port[0].rate;
}

/* Bytes that the path itself holds. */
static uint64_t held(const struct network *network)
{
    return 2 * network->delay * bottleneck(network) / 1000;
}

static uint64_t floor_of(const struct network *network)
{
    return 2 * network->lanes * SEGMENT;
}

static uint64_t step_of(const struct network *network)
{
    return (network->lanes < 2 ? 2 : network->lanes) * SEGMENT;
}

/* ---- The way there and back ---- */

static uint64_t pass(struct network *network, struct port *port, uint64_t bytes)
{
    uint64_t now = sim_now(network->sim), from = port->free_at > now ? port->free_at : now;
    if (now >= network->measure) {
        port->bytes += bytes;
        port->found += bytes * ((from - now) * port->rate / 1000 / SEGMENT);
    }
    port->free_at = from + bytes * 1000 / port->rate + 1;
    return port->free_at - now;
}

static void tell_time(struct connection *connection)
{
    if (dqplb_wants_clock(&connection->sender)) dqplb_clock(&connection->sender, sim_now(connection->network->sim) + 1);
}

static void comes_back(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct connection *connection = flight->connection;
    struct lane *lane = &connection->lane[flight->lane];
    (void)a, (void)b;
    if (!lane->open || lane->life != flight->life) return;
    if (!flight->small) {
        lane->bytes -= flight->bytes;
        lane->segments--;
    }
    if (sim_now(sim) >= connection->network->measure && sim_now(sim) < connection->end) connection->delivered += flight->bytes;
    tell_time(connection);
    if (dqplb_completed(&connection->sender, flight->lane)) sim_fail(sim, "%s", base_error_detail());
    drive(connection);
}

static void is_placed(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct connection *connection = flight->connection;
    struct network *network = connection->network;
    struct lane *lane = &connection->lane[flight->lane];
    uint64_t now = sim_now(sim), at = now + network->delay;
    (void)a, (void)b;
    if (network->noise) at += sim_random(sim, network->noise);
    if (at < connection->asleep_until) at = connection->asleep_until;
    if (at < lane->last_back) at = lane->last_back;
    lane->last_back = at;
    sim_after(sim, at - now, comes_back, flight, 0, 0);
}

static void is_there(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    (void)a, (void)b;
    sim_after(sim, pass(flight->connection->network, flight->connection->in, flight->bytes), is_placed, flight, 0, 0);
}

static void falls_asleep(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    struct network *network = connection->network;
    (void)a, (void)b;
    uint64_t now = sim_now(sim);
    if (now > connection->end) return;
    connection->asleep_until = now + network->sleep / 2 + sim_random(sim, network->sleep);
    sim_after(sim, network->every / 2 + sim_random(sim, network->every), falls_asleep, connection, 0, 0);
}

/* ---- What is posted ---- */

static uint64_t in_flight(const struct connection *connection)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < MAX_LANES; i++) bytes += connection->lane[i].bytes;
    return bytes;
}

static void check_post(struct connection *connection, const struct lane *lane)
{
    struct network *network = connection->network;
    if (lane->bytes <= 2 * SEGMENT || connection->moved) return;
    if (in_flight(connection) > control_window(&connection->sender.control))
        sim_fail(network->sim, "more is in flight than the window allows");
    if (network->budget.bytes && network->budget.used > network->budget.bytes)
        sim_fail(network->sim, "more is in flight than the budget allows");
}

static void post(struct connection *connection, const struct dqplb_action *action)
{
    struct sim *sim = connection->network->sim;
    struct lane *lane = &connection->lane[action->lane];
    struct flight *flight = sim_alloc(sim, sizeof *flight);
    if (!lane->open) sim_fail(sim, "something is posted on a lane that is down");
    *flight = (struct flight){.connection = connection, .lane = action->lane, .life = lane->life, .bytes = action->bytes};
    flight->small = action->put->bytes <= FAST_BYTES;
    if (!flight->small) {
        lane->bytes += action->bytes;
        lane->segments++;
        check_post(connection, lane);
    }
    uint64_t at = sim_now(sim) + pass(connection->network, connection->out, action->bytes) + connection->network->delay + connection->network->detour;
    if (at < lane->last_there) at = lane->last_there;
    lane->last_there = at;
    sim_after(sim, at - sim_now(sim), is_there, flight, 0, 0);
}

static void put(struct connection *connection, uint64_t bytes)
{
    static const char from[1];
    struct put *put = connection->free;
    if (put) connection->free = put->free;
    else put = sim_alloc(connection->network->sim, sizeof *put);
    put->put = (struct dqplb_put){.from = from, .to = 1, .key = 1, .bytes = bytes};
    connection->put_bytes += bytes;
    connection->puts++;
    dqplb_put(&connection->sender, &connection->order, &put->put);
}

static void is_done(struct connection *connection, const struct dqplb_action *action)
{
    struct put *put = (struct put *)action->put;
    connection->done_bytes += put->put.bytes;
    connection->puts--;
    put->free = connection->free;
    connection->free = put;
}

static void more_data(struct connection *connection)
{
    uint64_t now = sim_now(connection->network->sim);
    while (now >= connection->begin && now < connection->end && connection->puts < connection->most) put(connection, connection->bytes);
}

/* Nothing more can be posted. */
static void check_rest(struct connection *connection)
{
    const struct dqplb_sender *sender = &connection->sender;
    const struct network *network = connection->network;
    const struct dqplb_control *control = &sender->control;
    if (control->on && sender->data && (control->window < control->floor || control->window > control->cap))
        sim_fail(network->sim, "a window of %" PRIu64 " is outside %" PRIu64 " to %" PRIu64, control->window, control->floor, control->cap);
    if (connection->moved) return;
    if (sender->fast.first) sim_fail(network->sim, "a small put waits");
    if (!sender->large.first) return;
    for (unsigned i = 0; i < network->lanes + 1; i++)
        if (sender->data >> i & 1 && connection->lane[i].segments < 2 && network->outstanding >= 2)
            sim_fail(network->sim, "lane %u has %u segments while data waits", i, connection->lane[i].segments);
}

static void drive_one(struct connection *connection)
{
    struct sim *sim = connection->network->sim;
    struct dqplb_action action;
    do {
        more_data(connection);
        tell_time(connection);
        while (!sim_failed(sim) && dqplb_next(&connection->sender, &action)) {
            if (action.kind == DQPLB_WRITE) post(connection, &action);
            else is_done(connection, &action);
        }
    } while (!sim_failed(sim) && sim_now(sim) < connection->end && sim_now(sim) >= connection->begin && connection->puts < connection->most);
    if (!sim_failed(sim)) check_rest(connection);
}

/* Of a connection for which nothing happens now. */
static void check_room(const struct connection *connection)
{
    const struct network *network = connection->network;
    const struct dqplb_sender *sender = &connection->sender;
    bool room = !network->budget.bytes || network->budget.used + SEGMENT <= network->budget.bytes;
    if (!room || !sender->large.first || connection->moved || sender->over + sender->control.floor + SEGMENT > control_window(&sender->control)) return;
    for (unsigned i = 1; i <= network->lanes; i++)
        if (connection->lane[i].segments < network->outstanding) sim_fail(network->sim, "data waits though there is room in window and budget");
}

static void drive(struct connection *connection)
{
    struct network *network = connection->network;
    struct dqplb_share *share;
    drive_one(connection);
    while (!sim_failed(network->sim) && (share = budget_next(&network->budget)) != NULL) {
        struct dqplb_sender *sender = (struct dqplb_sender *)((char *)share - offsetof(struct dqplb_sender, share));
        struct connection *other = (struct connection *)((char *)sender - offsetof(struct connection, sender));
        dqplb_turn(sender);
        drive_one(other);
    }
    for (unsigned i = 0; i < network->connections && !sim_failed(network->sim); i++) check_room(&network->connection[i]);
}

/* ---- Lanes that break ---- */

static void comes_up(struct sim *sim, void *context, uint64_t index, uint64_t b)
{
    struct connection *connection = context;
    struct lane *lane = &connection->lane[index];
    (void)b;
    if (!dqplb_lane_may_open(&connection->sender, (unsigned)index)) {
        sim_after(sim, 1000, comes_up, connection, index, 0);
        return;
    }
    lane->life++;
    lane->open = true;
    if (dqplb_lane_up(&connection->sender, (unsigned)index)) sim_fail(sim, "%s", base_error_detail());
    drive(connection);
}

static void reports(struct sim *sim, void *context, uint64_t index, uint64_t life)
{
    struct connection *connection = context;
    static struct dqplb_report report;
    report.life = (uint32_t)life;
    if (dqplb_lane_reported(&connection->sender, (unsigned)index, &report)) sim_fail(sim, "%s", base_error_detail());
    /* What it held is counted where it goes. */
    drive(connection);
    sim_after(sim, 1 + sim_random(sim, 4 * connection->network->delay), comes_up, connection, index, 0);
}

static void breaks(struct sim *sim, void *context, uint64_t index, uint64_t b)
{
    struct connection *connection = context;
    struct lane *lane = &connection->lane[index];
    (void)b;
    if (!lane->open) return;
    lane->open = false;
    lane->bytes = lane->segments = 0;
    connection->moved = true;
    dqplb_lane_failed(&connection->sender, (unsigned)index);
    sim_after(sim, 1 + sim_random(sim, 4 * connection->network->delay), reports, connection, index, lane->life);
    drive(connection);
}

/* ---- Stages ---- */

static void begins(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    drive(context);
}

/* A run that fails has no end: the next one frees what it held. */
static struct dqplb_sender latest[2 * MAX_CONNECTIONS];
static unsigned latests;

static void release(struct sim *sim)
{
    (void)sim;
    while (latests) dqplb_sender_release(&latest[--latests]);
}

static void connect(struct network *network, struct connection *connection)
{
    const struct dqplb_terms terms = {.lanes = network->lanes + 1, .depth = 256, .receives = 64, .window = 64, .notices = 8};
    const struct dqplb_limits limits = {.lanes = network->lanes, .outstanding = network->outstanding, .segment = SEGMENT};
    struct sim *sim = network->sim;
    connection->network = network;
    if (dqplb_sender_init(&connection->sender, &terms, &limits, FAST_BYTES)) sim_fail(sim, "%s", base_error_detail());
    if (network->adapt) dqplb_adapt(&connection->sender);
    dqplb_join(&connection->sender, &network->budget);
    for (unsigned i = 0; i < terms.lanes; i++) {
        connection->lane[i].open = true;
        connection->lane[i].life = 1;
        if (dqplb_lane_up(&connection->sender, i)) sim_fail(sim, "%s", base_error_detail());
    }
    struct dqplb_lane *ring = connection->sender.lane;
    latest[latests] = connection->sender;
    latest[latests++].lane = ring;
    sim_after(sim, connection->begin, begins, connection, 0, 0);
    if (network->sleep) sim_after(sim, connection->begin + sim_random(sim, network->every), falls_asleep, connection, 0, 0);
}

static struct network *make_network(struct sim *sim)
{
    struct network *network = sim_alloc(sim, sizeof *network);
    network->sim = sim;
    network->adapt = true;
    network->connections = 1;
    network->lanes = 1 + (unsigned)sim_random(sim, 4);
    network->port[0].rate = 1000 + sim_random(sim, 20000);
    network->delay = (1 + sim_random(sim, 40)) * SEGMENT * 1000 / bottleneck(network) / 2;
    return network;
}

/* Large enough for the path, `times` over. */
static void choose_limits(struct network *network, unsigned times)
{
    uint64_t segments = (held(network) + step_of(network)) / SEGMENT + 1;
    network->outstanding = 2 + (unsigned)(times * segments / network->lanes);
}

static uint64_t round_trip(const struct network *network)
{
    return 2 * network->delay + 2 * SEGMENT * 1000 / bottleneck(network);
}

static void open_world(struct sim *sim, struct network *network, void (*check)(struct world *world))
{
    struct world *world = sim_alloc(sim, sizeof *world);
    struct network *twin = sim_alloc(sim, sizeof *twin);
    *twin = *network;
    twin->adapt = false;
    *world = (struct world){.network = {network, twin}, .check = check};
    sim_set_user(sim, world);
    for (unsigned t = 0; t < 2; t++) {
        struct network *one = world->network[t];
        for (unsigned i = 0; i < one->connections; i++) {
            struct connection *connection = &one->connection[i];
            connection->out = &one->port[connection->out - network->port];
            connection->in = &one->port[connection->in - network->port];
            connect(one, connection);
        }
    }
}

/* Always something to send. */
static void stream(struct connection *connection, struct port *out, struct port *in, uint64_t begin, uint64_t end)
{
    *connection = (struct connection){.out = out, .in = in, .begin = begin, .end = end, .bytes = 40 * SEGMENT + 1000, .most = DEEP};
}

/* ---- What is seen ---- */

static uint64_t delivered(const struct network *network)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < network->connections; i++) bytes += network->connection[i].delivered;
    return bytes;
}

/* Segments in front of one, on average. */
static double queue(const struct port *port)
{
    return port->bytes ? (double)port->found / (double)port->bytes : 0;
}

/* Jain's index: 1, all get the same; 1/n, one gets all. */
static double evenness(const struct network *network)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < network->connections; i++) {
        double bytes = (double)network->connection[i].delivered;
        sum += bytes;
        squares += bytes * bytes;
    }
    return squares > 0 ? sum * sum / squares / network->connections : 0;
}

static void expect_throughput(struct world *world, uint64_t from, uint64_t to, double least)
{
    double got = (double)delivered(world->network[0]), twin = (double)delivered(world->network[1]);
    double all = (double)bottleneck(world->network[0]) * (double)(to - from) / 1000, best = twin < all ? twin : all;
    if (got < least * best)
        sim_fail(world->network[0]->sim, "throughput is %.3f of the path's %.3f: of the twin's %.3f", got / all, best / all, got / twin);
}

static void expect_queue(struct world *world, double most)
{
    double got = queue(&world->network[0]->port[0]), twin = queue(&world->network[1]->port[0]);
    if (got > most) sim_fail(world->network[0]->sim, "a queue of %.1f segments, not %.1f; the twin's is %.1f", got, most, twin);
}

/* Where least windows fill the path and more, each has half as much again in flight, and a step or two. */
static double allowed_queue(const struct network *network)
{
    double path = (double)held(network) / (double)SEGMENT, step = (double)step_of(network) / (double)SEGMENT;
    double least = (double)floor_of(network) / (double)SEGMENT;
    return 1.75 * (path + 3 + network->connections * (1.5 * least + 2 * step));
}

static void finish(struct sim *sim)
{
    struct world *world = world_of(sim);
    for (unsigned t = 0; t < 2; t++) {
        struct network *network = world->network[t];
        for (unsigned i = 0; i < network->connections; i++) {
            struct connection *connection = &network->connection[i];
            if (connection->done_bytes != connection->put_bytes || !connection->put_bytes)
                sim_fail(sim, "%s %u has ended %" PRIu64 " of %" PRIu64 " bytes", t ? "twin" : "connection", i, connection->done_bytes, connection->put_bytes);
        }
        if (network->budget.used || network->budget.first) sim_fail(sim, "of the budget %" PRIu64 " bytes are not given back", network->budget.used);
    }
    world->check(world);
}

/* ---- One connection ---- */

static void check_alone(struct world *world)
{
    struct network *network = world->network[0];
    expect_throughput(world, network->measure, network->connection[0].end, 0.9);
    if (!network->noise && !network->sleep) expect_queue(world, allowed_queue(network));
}

static void start_alone(struct sim *sim)
{
    struct network *network = make_network(sim);
    choose_limits(network, 2 + (unsigned)sim_random(sim, 4));
    uint64_t rtt = round_trip(network);
    if (sim_chance(sim, 1, 2)) network->noise = 1 + sim_random(sim, rtt);
    if (sim_chance(sim, 1, 3)) {
        network->sleep = rtt * (1 + sim_random(sim, 8));
        network->every = 30 * network->sleep;
    }
    network->measure = 300 * rtt; /* a window that noise has stopped early grows by steps */
    stream(&network->connection[0], &network->port[0], &network->port[1], 1, 700 * rtt);
    network->port[1].rate = bottleneck(network) + sim_random(sim, bottleneck(network));
    open_world(sim, network, check_alone);
}

/* ---- What comes late once ---- */

/* No queue ever stands where the limits are what the path holds, so a window that is there stays. */
static void is_full(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    const struct network *network = context;
    const struct dqplb_control *control = &network->connection[0].sender.control;
    (void)a, (void)b;
    if (control->window < control->cap)
        sim_fail(sim, "a window of %" PRIu64 ", not %" PRIu64 ", after segments were late once", control->window, control->cap);
}

static void takes_detour(struct sim *sim, void *context, uint64_t detour, uint64_t b)
{
    struct network *network = context;
    (void)sim, (void)b;
    network->detour = detour;
}

static void check_late(struct world *world)
{
    expect_throughput(world, world->network[0]->measure, world->network[0]->connection[0].end, 0.95);
}

/* All that is posted within a round trip is late alike, and by more than half of one; never a second round. */
static void start_late(struct sim *sim)
{
    struct network *network = make_network(sim);
    uint64_t segments = held(network) / SEGMENT + 1, rtt = round_trip(network), at = network->measure = 60 * rtt;
    if (network->lanes > segments / 4) network->lanes = segments < 4 ? 1 : (unsigned)(segments / 4);
    network->outstanding = (unsigned)(segments / network->lanes);
    network->port[1].rate = 10 * bottleneck(network);
    stream(&network->connection[0], &network->port[0], &network->port[1], 1, 560 * rtt);
    open_world(sim, network, check_late);
    while (at < 540 * rtt) {
        uint64_t detour = rtt * 3 / 4 + sim_random(sim, rtt / 4);
        for (unsigned t = 0; t < 2; t++) {
            sim_after(sim, at, takes_detour, world_of(sim)->network[t], detour, 0);
            sim_after(sim, at + rtt, takes_detour, world_of(sim)->network[t], 0, 0);
        }
        sim_after(sim, at + 5 * rtt, is_full, world_of(sim)->network[0], 0, 0);
        at += (10 + sim_random(sim, 10)) * rtt;
    }
}

/* ---- Many to one, and one to many ---- */

static void check_incast(struct world *world)
{
    struct network *network = world->network[0];
    expect_throughput(world, network->measure, network->connection[0].end, 0.95);
    expect_queue(world, allowed_queue(network));
    if (evenness(network) < 0.8) sim_fail(network->sim, "evenness is %.2f, the twin's %.2f", evenness(network), evenness(world->network[1]));
}

static void start_incast(struct sim *sim)
{
    struct network *network = make_network(sim);
    network->connections = 2 + (unsigned)sim_random(sim, MAX_CONNECTIONS - 1);
    choose_limits(network, 2 + (unsigned)sim_random(sim, 4));
    uint64_t rtt = round_trip(network), drained = rtt + network->connections * floor_of(network) * 1000 / bottleneck(network);
    network->measure = 400 * drained;
    for (unsigned i = 0; i < network->connections; i++) {
        network->port[i + 1].rate = bottleneck(network) + sim_random(sim, bottleneck(network));
        stream(&network->connection[i], &network->port[i + 1], &network->port[0], 1 + sim_random(sim, 10 * rtt), network->measure+100 * drained);
    }
    open_world(sim, network, check_incast);
}

static void check_budget(struct world *world)
{
    struct network *network = world->network[0];
    expect_throughput(world, network->measure, network->connection[0].end, 0.95);
    for (unsigned t = 0; t < 2; t++)
        if (evenness(world->network[t]) < 0.8) sim_fail(network->sim, "evenness is %.2f", evenness(world->network[t]));
}

/* Through one port of the sender's, within a budget that the path needs at least. */
static void start_budget(struct sim *sim)
{
    struct network *network = make_network(sim);
    network->connections = 2 + (unsigned)sim_random(sim, MAX_CONNECTIONS - 1);
    choose_limits(network, 2 + (unsigned)sim_random(sim, 4));
    network->budget.bytes = held(network) + step_of(network) + 4 * SEGMENT + sim_random(sim, 4 * held(network));
    uint64_t rtt = round_trip(network), drained = rtt + network->connections * floor_of(network) * 1000 / bottleneck(network);
    network->measure = 400 * drained;
    for (unsigned i = 0; i < network->connections; i++) {
        network->port[i + 1].rate = 2 * bottleneck(network);
        stream(&network->connection[i], &network->port[0], &network->port[i + 1], 1 + sim_random(sim, 10 * rtt), 500 * drained);
    }
    open_world(sim, network, check_budget);
}

/* ---- Everything at once, for what must hold all the time, and for an end ---- */

static void check_nothing(struct world *world)
{
    (void)world;
}

static void small(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    (void)a, (void)b;
    put(connection, SMALL);
    drive(connection);
    if (sim_now(sim) < connection->end) sim_after(sim, 1 + sim_random(sim, 20 * connection->network->delay), small, connection, 0, 0);
}

static void start_any(struct sim *sim)
{
    struct network *network = make_network(sim);
    network->connections = 1 + (unsigned)sim_random(sim, 8);
    choose_limits(network, 1 + (unsigned)sim_random(sim, 4));
    if (sim_chance(sim, 1, 6)) network->outstanding = 1 + (unsigned)sim_random(sim, 3);
    if (sim_chance(sim, 2, 3)) network->budget.bytes = 1 + sim_random(sim, 4 * held(network));
    uint64_t rtt = round_trip(network);
    network->measure = UINT64_MAX;
    for (unsigned i = 0; i < network->connections; i++) {
        struct connection *connection = &network->connection[i];
        network->port[i + 1].rate = 1000 + sim_random(sim, 20000);
        stream(connection, &network->port[0], &network->port[i + 1], 1 + sim_random(sim, 20 * rtt), (25 + sim_random(sim, 40)) * rtt);
        connection->bytes = 1 + sim_random(sim, sim_chance(sim, 1, 2) ? 4 * SEGMENT : 100 * SEGMENT);
        connection->most = 1 + sim_random(sim, DEEP);
    }
    open_world(sim, network, check_nothing);
    for (unsigned t = 0; t < 2; t++)
        for (unsigned i = 0; i < network->connections; i++) {
            struct connection *connection = &world_of(sim)->network[t]->connection[i];
            if (sim_chance(sim, 1, 2)) sim_after(sim, sim_random(sim, 20 * rtt), small, connection, 0, 0);
            unsigned often = sim_chance(sim, 1, 2) ? (unsigned)sim_random(sim, 6) : 0;
            while (often--) sim_after(sim, sim_random(sim, 60 * rtt), breaks, connection, sim_random(sim, network->lanes + 1), 0);
        }
}

/* ---- What changes ---- */

static void changes(struct sim *sim, void *context, uint64_t rate, uint64_t delay)
{
    struct network *network = context;
    (void)sim;
    network->port[0].rate = rate;
    network->port[1].rate = 2 * rate;
    network->delay = delay;
}

static uint64_t changed(struct sim *sim, uint64_t value)
{
    return sim_chance(sim, 1, 3) ? value : sim_chance(sim, 1, 2) ? 4 * value : value / 4;
}

static void check_changes(struct world *world)
{
    struct network *network = world->network[0];
    double most = queue(&world->network[1]->port[0]), allowed = allowed_queue(network);
    /* Of less than two segments the least window is a large part, or more than all. */
    expect_throughput(world, network->measure, network->connection[0].end, held(network) < 2 * SEGMENT ? 0.7 : 0.85);
    expect_queue(world, most > 2 * allowed ? allowed + allowed / 2 : most + 1);
}

/* Slow, so that the time after which a round trip is forgotten is not many. */
static void start_changes(struct sim *sim)
{
    struct network *network = make_network(sim);
    uint64_t rate = 10 + sim_random(sim, 10), delay = (8 + sim_random(sim, 20)) * SEGMENT * 1000 / rate / 2;
    uint64_t new_rate = changed(sim, rate), new_delay = changed(sim, delay);
    changes(sim, network, new_rate, new_delay);
    choose_limits(network, 2); /* for what it will be */
    uint64_t most = network->outstanding;
    changes(sim, network, rate, delay);
    choose_limits(network, 2);
    if (most > network->outstanding) network->outstanding = (unsigned)most;
    uint64_t begin = 100 * round_trip(network), learnt = begin + 500 * round_trip(network) + 60 * (uint64_t)(2 * new_delay + network->lanes * network->outstanding * SEGMENT * 1000 / new_rate);
    network->measure = learnt;
    stream(&network->connection[0], &network->port[0], &network->port[1], 1, learnt + 3 * S + 50 * (2 * new_delay + 2 * SEGMENT * 1000 / new_rate));
    open_world(sim, network, check_changes);
    for (unsigned t = 0; t < 2; t++) sim_after(sim, begin, changes, world_of(sim)->network[t], new_rate, new_delay);
}

/* ---- A burst after a while with little to send ---- */

static void grows_up(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    const struct dqplb_control *control = &connection->sender.control;
    uint64_t most = 2 * connection->most * connection->bytes + control->floor;
    (void)a, (void)b;
    if (control->window > most) sim_fail(sim, "a window of %" PRIu64 " bytes was never used by half", control->window);
    connection->most = DEEP;
    connection->bytes = 10 * held(connection->network) + 40 * SEGMENT;
    drive(connection);
}

static void check_burst(struct world *world)
{
    expect_throughput(world, world->network[0]->measure, world->network[0]->connection[0].end, 0.8);
    expect_queue(world, 1.5 * allowed_queue(world->network[0])); /* it has yet to learn how much is too much */
}

static void start_burst(struct sim *sim)
{
    struct network *network = make_network(sim);
    choose_limits(network, 6);
    uint64_t rtt = round_trip(network), burst = 100 * rtt;
    network->measure = burst;
    struct connection *connection = &network->connection[0];
    stream(connection, &network->port[0], &network->port[1], 1, burst + 100 * rtt);
    connection->bytes = held(network) / 6 + SEGMENT;
    connection->most = 2;
    network->port[1].rate = 2 * bottleneck(network);
    open_world(sim, network, check_burst);
    sim_after(sim, burst, grows_up, &world_of(sim)->network[0]->connection[0], 0, 0);
    sim_after(sim, burst, grows_up, &world_of(sim)->network[1]->connection[0], 0, 0);
}

int main(int argc, char **argv)
{
    static const enum planted_bug of_alone[] = {BUG_CONTROL_CAP_IGNORED,   BUG_CONTROL_DELAY_IGNORED, BUG_CONTROL_NOISE_IGNORED,
                                                BUG_DQPLB_LANE_STARVES,    BUG_NONE};
    static const enum planted_bug of_late[] = {BUG_CONTROL_SPIKES_COUNT, BUG_NONE};
    static const enum planted_bug of_incast[] = {BUG_CONTROL_DELAY_IGNORED, BUG_NONE};
    static const enum planted_bug of_budget[] = {BUG_BUDGET_NO_QUEUE, BUG_NONE};
    static const enum planted_bug of_any[] = {BUG_BUDGET_EXCEEDED, BUG_BUDGET_FORGETS, BUG_BUDGET_LEAST_WAITS, BUG_BUDGET_KEPT, BUG_NONE};
    static const enum planted_bug of_changes[] = {BUG_CONTROL_BASE_KEPT, BUG_NONE};
    static const enum planted_bug of_burst[] = {BUG_CONTROL_UNUSED_GROWS, BUG_NONE};
    static const struct sim_scenario scenarios[] = {
        {.name = "alone", .start = start_alone, .finish = finish, .release = release, .seeds = 100, .bugs = of_alone},
        {.name = "late", .start = start_late, .finish = finish, .release = release, .seeds = 60, .bugs = of_late},
        {.name = "incast", .start = start_incast, .finish = finish, .release = release, .seeds = 40, .bugs = of_incast},
        {.name = "budget", .start = start_budget, .finish = finish, .release = release, .seeds = 40, .bugs = of_budget},
        {.name = "any", .start = start_any, .finish = finish, .release = release, .seeds = 300, .bugs = of_any},
        {.name = "changes", .start = start_changes, .finish = finish, .release = release, .seeds = 60, .bugs = of_changes},
        {.name = "burst", .start = start_burst, .finish = finish, .release = release, .seeds = 60, .bugs = of_burst},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
