/* lanes_wire.c - see lanes_wire.h.
 *
 * What is posted leaves when the driver rings. A write arrives, and is checked then; with queue pairs it is acknowledged at once and
 * placed later, in the order of its lane, with sockets placed and then acknowledged. An immediate takes a receive when it is placed,
 * and is looked at later, in the one order of all lanes; a read comes back once all before it is placed. A target that fences a lane
 * places what has arrived, looks at what was placed, and takes no more. */
#include "tests/sim/lanes_wire.h"

#include <string.h>

/* Breaks of one lane: fewer than make the driver give a lane up. */
#define BREAKS_MAX 7

struct flight {
    struct end *end; /* origin */
    struct flight *next;
    const char *from;
    char *data, *place;
    uint64_t to, key;
    size_t bytes;
    unsigned lane;
    uint32_t life, immediate;
    bool has_immediate, is_read, over;
};

struct flights {
    struct flight *first, *last;
};

/* One that `end` writes. */
struct lane {
    uint64_t least, most;
    /* At the origin. */
    uint32_t life, attempt; /* one that came up and was not used may be followed by another of the same life */
    bool opening, open, broken, carried;
    unsigned entries, breaks;
    struct flights posted; /* and not rung for */
    /* On the way. */
    uint64_t last_arrival, last_placed, last_back, read_until, lost_after;
    /* At the target. */
    uint32_t there; /* life */
    bool accepts;
    unsigned receives;
    struct flights placing, looking;
};

struct end {
    struct wire *wire;
    struct end *peer;
    int rank;
    struct pml *pml;
    struct pml_connection *connection;
    struct sim_channel *control; /* to the peer */
    struct lane lane[WIRE_LANES];
    uint64_t busy_until; /* it computes, or looks at completions */
    bool wanted, lost, drains;
};

struct wire {
    struct sim *sim;
    struct wire_nature nature;
    struct end end[2];
    bool lost;
    void (*looked)(void *arg);
    void *arg;
};

static struct wire *opening; /* for connect() */

static struct end *end_of(const struct pml_connection *connection)
{
    return connection->channel;
}

static void append(struct flights *flights, struct flight *flight)
{
    flight->next = NULL;
    if (flights->first) flights->last->next = flight;
    else flights->first = flight;
    flights->last = flight;
}

static struct flight *take(struct flights *flights)
{
    struct flight *flight = flights->first;
    if (flight) flights->first = flight->next;
    return flight;
}

static void looked(struct wire *wire)
{
    wire->looked(wire->arg);
}

/* ---- The end of a connection ---- */

static void lose(struct end *end)
{
    if (end->lost) return;
    end->lost = true;
    lanes_lost(end->connection);
}

static void peer_loses(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct end *end = context;
    (void)sim, (void)a, (void)b;
    lose(end);
    looked(end->wire);
}

static void fail(struct pml_connection *connection, const char *why)
{
    struct end *end = end_of(connection);
    struct wire *wire = end->wire;
    if (!wire->nature.refuses) sim_fail(wire->sim, "the connection of rank %d fails: %s", end->rank, why);
    if (!wire->lost) sim_after(wire->sim, sim_random(wire->sim, 5000), peer_loses, end->peer, 0, 0);
    wire->lost = true;
    lose(end);
}

bool wire_lost(const struct wire *wire)
{
    return wire->lost;
}

/* ---- Lanes, at the target ---- */

static void look_at(struct end *target, struct lane *lane)
{
    struct flight *flight = take(&lane->looking);
    flight->over = true;
    lane->receives++;
    lanes_arrived(target->connection, flight->lane, flight->immediate);
}

static void target_looks(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    const struct flight *flight = context;
    struct end *target = flight->end->peer;
    struct lane *lane = &flight->end->lane[flight->lane];
    (void)sim, (void)a, (void)b;
    if (flight->over || target->wire->lost) return;
    look_at(target, lane);
    if (!target->lost) lanes_told(target->connection);
    looked(target->wire);
}

/* One queue of completions for all lanes. */
static uint64_t when_looked_at(struct end *target)
{
    struct sim *sim = target->wire->sim;
    uint64_t now = sim_now(sim), at = now + sim_random(sim, 300);
    if (sim_chance(sim, 1, 40)) at += sim_random(sim, 30000);
    if (at > target->busy_until) target->busy_until = at;
    return target->busy_until - now;
}

static void comes_back(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    const struct flight *flight = context;
    struct end *end = flight->end;
    struct lane *lane = &end->lane[flight->lane];
    (void)a, (void)b;
    if (end->wire->lost || !lane->open || lane->life != flight->life || sim_now(sim) > lane->lost_after) return;
    lane->entries--;
    if (lanes_completed(end->connection, flight->lane, 1)) lanes_told(end->connection);
    looked(end->wire);
}

static void send_back(struct flight *flight)
{
    struct sim *sim = flight->end->wire->sim;
    struct lane *lane = &flight->end->lane[flight->lane];
    uint64_t now = sim_now(sim), from = now > lane->read_until ? now : lane->read_until;
    uint64_t at = from + lane->least + sim_random(sim, lane->most - lane->least + 1);
    if (at < lane->last_back) at = lane->last_back;
    lane->last_back = at;
    sim_after(sim, at - now, comes_back, flight, 0, 0);
}

static void place_next(struct end *target, struct lane *lane)
{
    struct flight *flight = take(&lane->placing);
    struct sim *sim = target->wire->sim;
    bool sockets = !target->wire->nature.placed_late;
    if (flight->bytes) memcpy(flight->place, flight->data, flight->bytes);
    if (flight->has_immediate && !lane->receives--) sim_fail(sim, "an immediate finds no receive on lane %u", flight->lane);
    if (flight->has_immediate) append(&lane->looking, flight);
    else flight->over = true;
    if (flight->has_immediate) sim_after(sim, when_looked_at(target), target_looks, flight, 0, 0);
    if (flight->is_read || sockets) send_back(flight);
}

static void is_placed(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct lane *lane = &flight->end->lane[flight->lane];
    (void)sim, (void)a, (void)b;
    if (flight->end->wire->lost || flight->over || lane->placing.first != flight) return; /* was drained */
    place_next(flight->end->peer, lane);
}

/* Checked, and no longer the origin's memory. */
static bool take_in(struct end *target, struct flight *flight)
{
    if (!flight->bytes) return true;
    flight->place = lanes_place(target->connection, flight->key, flight->to, flight->bytes);
    if (!flight->place) return false;
    flight->data = sim_alloc(target->wire->sim, flight->bytes);
    memcpy(flight->data, flight->from, flight->bytes);
    return true;
}

static void arrives(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct flight *flight = context;
    struct end *target = flight->end->peer;
    struct lane *lane = &flight->end->lane[flight->lane];
    uint64_t now = sim_now(sim), late = target->wire->nature.placed_late, at;
    (void)a, (void)b;
    if (target->wire->lost || flight->life != lane->there || !lane->accepts || now > lane->lost_after) return;
    if (!take_in(target, flight)) return;
    append(&lane->placing, flight);
    if (!late) {
        place_next(target, lane);
        return;
    }
    at = now + sim_random(sim, late);
    if (at < lane->last_placed) at = lane->last_placed;
    lane->last_placed = at;
    if (flight->is_read) lane->read_until = at; /* what comes after a read is acknowledged after it */
    sim_after(sim, at - now, is_placed, flight, 0, 0);
    if (!flight->is_read) send_back(flight);
}

static void fence(struct pml_connection *connection, unsigned index)
{
    struct end *target = end_of(connection);
    struct lane *lane = &target->peer->lane[index];
    if (!lane->accepts) return;
    lane->accepts = false;
    while (lane->placing.first) place_next(target, lane);
    bool any = lane->looking.first != NULL;
    while (lane->looking.first && !target->lost) look_at(target, lane);
    if (any && !target->lost) lanes_told(connection);
}

static void credits_come(struct sim *sim, void *context, uint64_t index, uint64_t what)
{
    struct end *end = context;
    (void)sim;
    if (end->wire->lost || !end->lane[index].open) return;
    if (lanes_credited(end->connection, (unsigned)index, (uint32_t)(what >> 32), (uint32_t)what)) lanes_told(end->connection);
    looked(end->wire);
}

/* A plain write to a counter: in no order with the rest. */
static void credit(struct pml_connection *connection, unsigned lane, uint32_t life, uint64_t receives)
{
    struct end *target = end_of(connection);
    struct sim *sim = target->wire->sim;
    sim_after(sim, 200 + sim_random(sim, 20000), credits_come, target->peer, lane, (uint64_t)life << 32 | receives);
}

/* ---- Lanes, at the origin ---- */

/* Nobody has closed it since, or opened it anew. */
static bool still_opens(const struct lane *lane, const struct end *end, uint64_t attempt)
{
    return !end->wire->lost && lane->opening && lane->attempt == attempt;
}

static void is_refused(struct sim *sim, void *context, uint64_t index, uint64_t attempt)
{
    struct end *end = context;
    struct lane *lane = &end->lane[index];
    (void)sim;
    if (!still_opens(lane, end, attempt)) return;
    lane->opening = false;
    lanes_broke(end->connection, (unsigned)index, "it does not open");
    looked(end->wire);
}

static void is_open(struct sim *sim, void *context, uint64_t index, uint64_t attempt)
{
    struct end *end = context;
    struct lane *lane = &end->lane[index];
    (void)sim;
    if (!still_opens(lane, end, attempt)) return;
    lane->opening = false;
    lane->open = true;
    lanes_opened(end->connection, (unsigned)index);
    looked(end->wire);
}

/* What a lane was left with that nobody fenced. */
static void drop(struct flights *flights)
{
    struct flight *flight;
    while ((flight = take(flights))) flight->over = true;
}

static void asks_target(struct sim *sim, void *context, uint64_t index, uint64_t attempt)
{
    struct end *end = context;
    struct lane *lane = &end->lane[index];
    if (!still_opens(lane, end, attempt)) return;
    if (!lanes_accept(end->peer->connection, (unsigned)index, lane->life)) {
        sim_fail(sim, "lane %u may not be opened for the time %u", (unsigned)index, (unsigned)lane->life);
        return;
    }
    lane->there = lane->life;
    lane->accepts = true;
    lane->receives = lanes_offer.receives;
    drop(&lane->placing);
    drop(&lane->looking);
    sim_after(sim, 200 + sim_random(sim, 3000), end->wire->nature.refuses && sim_chance(sim, 1, 8) ? is_refused : is_open, end, index, attempt);
}

static void open_lane(struct pml_connection *connection, unsigned index, uint32_t life)
{
    struct end *end = end_of(connection);
    struct sim *sim = end->wire->sim;
    struct lane *lane = &end->lane[index];
    bool refused = end->wire->nature.refuses && sim_chance(sim, 1, 4);
    if (index >= end->wire->nature.lanes) sim_fail(sim, "lane %u was not offered", index);
    if (lane->open || lane->opening || (life != lane->life + 1 && (lane->carried || life != lane->life)))
        sim_fail(sim, "lane %u is opened for the time %u, after %u", index, (unsigned)life, (unsigned)lane->life);
    lane->opening = true;
    lane->life = life;
    lane->attempt++;
    lane->broken = lane->carried = false;
    lane->entries = 0;
    lane->posted = (struct flights){0};
    lane->lost_after = UINT64_MAX;
    sim_after(sim, 200 + sim_random(sim, 5000), refused ? is_refused : asks_target, end, index, lane->attempt);
}

static struct flight *post_flight(struct pml_connection *connection, unsigned index)
{
    struct end *end = end_of(connection);
    struct sim *sim = end->wire->sim;
    struct lane *lane = &end->lane[index];
    struct flight *flight = sim_alloc(sim, sizeof *flight);
    lane->carried = true;
    if (!lane->open) sim_fail(sim, "something is posted on lane %u, which is not open", index);
    if (++lane->entries > end->wire->nature.depth) sim_fail(sim, "lane %u holds more than it can", index);
    flight->end = end;
    flight->lane = index;
    flight->life = lane->life;
    append(&lane->posted, flight);
    return flight;
}

static void write_lane(struct pml_connection *connection, unsigned index, const struct lane_write *write)
{
    struct end *end = end_of(connection);
    struct flight *flight = post_flight(connection, index);
    if (write->bytes > end->wire->nature.largest) sim_fail(end->wire->sim, "a write is longer than it may be");
    flight->from = write->from;
    flight->to = write->to;
    flight->key = write->key;
    flight->bytes = write->bytes;
    flight->has_immediate = write->has_immediate;
    flight->immediate = write->immediate;
}

static void read_lane(struct pml_connection *connection, unsigned index)
{
    post_flight(connection, index)->is_read = true;
}

static void ring(struct pml_connection *connection)
{
    struct end *end = end_of(connection);
    struct sim *sim = end->wire->sim;
    uint64_t now = sim_now(sim);
    for (unsigned i = 0; i < WIRE_LANES; i++) {
        struct lane *lane = &end->lane[i];
        struct flight *flight;
        while ((flight = take(&lane->posted))) {
            uint64_t at = now + lane->least + sim_random(sim, lane->most - lane->least + 1);
            if (at < lane->last_arrival) at = lane->last_arrival;
            lane->last_arrival = at + flight->bytes * end->wire->nature.rate / 16;
            sim_after(sim, lane->last_arrival - now, arrives, flight, 0, 0);
        }
    }
}

static void close_lane(struct pml_connection *connection, unsigned index)
{
    struct lane *lane = &end_of(connection)->lane[index];
    lane->open = lane->opening = false;
    lane->posted = (struct flights){0};
}

static void is_noticed(struct sim *sim, void *context, uint64_t index, uint64_t life)
{
    struct end *end = context;
    struct lane *lane = &end->lane[index];
    (void)sim;
    if (end->wire->lost || !lane->open || lane->life != life) return;
    lanes_broke(end->connection, (unsigned)index, "the simulator says so");
    looked(end->wire);
}

void wire_break(struct wire *wire, int rank, unsigned index)
{
    struct sim *sim = wire->sim;
    struct lane *lane = &wire->end[rank].lane[index];
    if (wire->lost || lane->broken || !lane->open || lane->breaks == BREAKS_MAX) return;
    lane->breaks++;
    lane->broken = true;
    if (sim_chance(sim, 3, 4)) lane->lost_after = sim_now(sim) + sim_random(sim, 3000);
    sim_after(sim, sim_random(sim, 8000), is_noticed, &wire->end[rank], index, lane->life);
}

/* ---- Connection ---- */

static void agree(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct end *end = context;
    struct lane_offer offer = lanes_offer;
    (void)sim, (void)a, (void)b;
    if (end->wire->lost) return;
    offer.lanes = end->wire->nature.lanes;
    lanes_agreed(end->connection, &offer);
    looked(end->wire);
}

static void want(struct pml_connection *connection)
{
    struct end *end = end_of(connection);
    if (end->wanted) return;
    end->wanted = true;
    sim_after(end->wire->sim, 200 + sim_random(end->wire->sim, 20000), agree, end, 0, 0);
}

static void deliver(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct end *target = context;
    struct pml_packet packet;
    (void)sim;
    memcpy((void *)&packet, data, sizeof packet);
    if (target->lost) return;
    if (packet.inline_bytes == PACKET_HAS_PAYLOAD)
        pml_packet_arrived(target->pml, target->connection, &packet, (const char *)data + sizeof packet, bytes - sizeof packet);
    else pml_packet_arrived(target->pml, target->connection, &packet, packet.u.data, packet.inline_bytes);
    looked(target->wire);
}

static void drain(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct end *end = context;
    (void)sim, (void)a, (void)b;
    end->drains = false;
    pml_backlog_drain(end->pml);
    looked(end->wire);
}

static bool is_full(struct end *end)
{
    struct sim *sim = end->wire->sim;
    if (!end->wire->nature.fills || (!end->drains && !sim_chance(sim, 1, 20))) return false;
    if (!end->drains) sim_after(sim, 200 + sim_random(sim, 5000), drain, end, 0, 0);
    end->drains = true;
    return true;
}

static bool post(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload)
{
    char data[sizeof *packet + 4096];
    struct end *end = end_of(connection);
    size_t bytes = payload->first_bytes + payload->second_bytes;
    struct pml_packet header;
    if (end->lost) return true; /* nobody hears it */
    if (is_full(end)) return false;
    memcpy((void *)&header, (const void *)packet, sizeof header);
    if (bytes) header.inline_bytes = PACKET_HAS_PAYLOAD;
    memcpy(data, (const void *)&header, sizeof header);
    if (payload->first_bytes) memcpy(data + sizeof header, payload->first, payload->first_bytes);
    if (payload->second_bytes) memcpy(data + sizeof header + payload->first_bytes, payload->second, payload->second_bytes);
    sim_channel_send(end->control, data, sizeof header + bytes);
    return true;
}

static bool eager(struct pml_connection *connection, uint64_t context, int source, int tag, const void *data, size_t bytes)
{
    const struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = context, .source = source, .tag = tag};
    const struct pml_payload payload = {.first = data, .first_bytes = bytes};
    return post(connection, &packet, &payload);
}

static unsigned most(const struct pml_connection *connection)
{
    (void)connection;
    return WIRE_LANES;
}

static unsigned port(const struct pml_connection *connection)
{
    (void)connection;
    return LANE_PORT_FIRST;
}

static struct lane_transport lanes_simulated = {.most = most,
                                                .port = port,
                                                .want = want,
                                                .open = open_lane,
                                                .write = write_lane,
                                                .read = read_lane,
                                                .ring = ring,
                                                .close = close_lane,
                                                .fence = fence,
                                                .credit = credit};

static int connect_to(struct pml *pml, struct pml_connection *connection)
{
    const struct wire_nature *nature = &opening->nature;
    struct end *end = &opening->end[pml->rt->job.rank];
    end->connection = connection;
    connection->channel = end;
    connection->payload_max = connection->stream_piece = 4096;
    connection->route.eager_limit = nature->eager_limit;
    connection->route.can_write = true;
    connection->announce_threshold = nature->announce_threshold;
    connection->probed = true;
    return lanes_make(connection, &lanes_simulated);
}

static void disconnect(struct pml *pml, struct pml_connection *connection)
{
    (void)pml, (void)connection;
}

static int no_poll(struct pml *pml)
{
    (void)pml;
    return 0;
}

static const struct transport transport_simulated = {
    .name = "simulated", .connect = connect_to, .disconnect = disconnect, .eager = eager, .post = post, .fail = fail, .poll = no_poll};

struct pml_connection *wire_connection(const struct wire *wire, int rank)
{
    return wire->end[rank].connection;
}

struct wire *wire_open(struct sim *sim, struct pml *const pml[2], const struct wire_nature *nature, void (*after)(void *arg), void *arg)
{
    struct wire *wire = sim_alloc(sim, sizeof *wire);
    struct pml_connection *connection;
    *wire = (struct wire){.sim = sim, .nature = *nature, .looked = after, .arg = arg};
    lanes_simulated.depth = nature->depth;
    lanes_simulated.largest = nature->largest;
    lanes_simulated.reads = nature->placed_late != 0;
    opening = wire;
    for (int i = 0; i < 2; i++) {
        struct end *end = &wire->end[i];
        end->wire = wire;
        end->rank = i;
        end->pml = pml[i];
        end->peer = &wire->end[1 - i];
        end->control = sim_channel_create(sim, 200, 300 + nature->delay, deliver, end->peer);
        for (unsigned k = 0; k < WIRE_LANES; k++) {
            end->lane[k].least = 200;
            end->lane[k].most = 200 + sim_random(sim, nature->delay);
        }
        if (pml_connection_from(pml[i], 1 - i, &transport_simulated, &connection)) sim_fail(sim, "no connection: %s", base_error_detail());
    }
    return wire;
}
