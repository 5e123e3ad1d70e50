/* matching.c - the simulator runs pml's matching and message protocols between a few ranks with random programs.
 *
 * Each rank posts sends, receives (exact and wildcard), matched probes and cancels at random moments over channels with
 * random delays. An oracle, which knows nothing but MPI's rules and scans plain lists, says at each arrival and each
 * posting which receive and which message belong together. Checked: who matches whom; every byte; nothing written past
 * a buffer, into a truncated one, or after completion; senders that reuse their buffer at once when told; that all
 * completes; and that the bytes held for unexpected messages return to zero.
 */
#include "pml/protocol.h"
#include "tests/sim/engine.h"

#include <string.h>

#define MAX_RANKS 5
#define MAX_SENDS 400
#define MAX_RECEIVES 900
#define EAGER_LIMIT 64
#define ANNOUNCE_THRESHOLD 100
#define FLOW_LIMIT 1500
#define MAX_BYTES 600
#define CANARY 0xcb
#define SCRIBBLE 0xee
#define BINS 4
#define QUIET UINT64_C(10000000) /* after this all random operations are over */

struct send {
    struct protocol_send core;
    int to, tag;
    unsigned number; /* among the messages of this pair */
    size_t bytes;
    bool complete;
    unsigned char data[MAX_BYTES];
};

struct receive {
    struct protocol_receive core; /* first: match.link leads here */
    struct receive *oracle_next;  /* pending, by posting */
    int source, tag;
    bool complete, cancelled;
    int error;
    int from, from_tag; /* what it got */
    unsigned from_number;
    size_t bytes;
    unsigned char data[MAX_BYTES + 16];
};

struct envelope {
    struct match_envelope match; /* first: found by it */
    struct envelope *oracle_next;
    enum protocol_kind kind;
    uint64_t send;
    unsigned number;
    size_t bytes, first; /* of which so many are in data */
    unsigned char data[EAGER_LIMIT];
};

struct packet {
    enum protocol_kind kind;
    int from, tag;
    uint64_t send, receive, address, count, bytes, first, offset;
    unsigned number;
    bool follows;
    unsigned char data[MAX_BYTES];
};

struct rank {
    int me;
    struct match_space space;
    struct match_bin bins[BINS];
    struct protocol_peer peer[MAX_RANKS];
    struct protocol_route route[MAX_RANKS];
    struct protocol_flow flow;
    bool lanes[MAX_RANKS]; /* writes to it take their time */
    bool hold_sent[MAX_RANKS];
    struct sim_channel *channel[MAX_RANKS]; /* to each */
    unsigned sent_to[MAX_RANKS], arrived_from[MAX_RANKS];
    struct send *sends[MAX_SENDS];
    struct receive *receives[MAX_RECEIVES];
    int send_count, receive_count;
    struct receive *oracle_receives;
    struct envelope *oracle_envelopes;
};

struct world {
    int ranks;
    struct rank rank[MAX_RANKS];
};

static unsigned char byte_of(int from, int to, unsigned number, size_t at)
{
    return (unsigned char)((unsigned)from * 37 + (unsigned)to * 101 + number * 59 + at * 7 + at / 64 + 1);
}

static struct world *world_of(struct sim *sim)
{
    return sim_user(sim);
}

static void transmit(struct rank *rank, int to, struct packet packet)
{
    packet.from = rank->me;
    sim_channel_send(rank->channel[to], &packet, sizeof packet);
}

/* ---- Oracle ---- */

static bool accepts(const struct receive *receive, int source, int tag)
{
    return (receive->source == NCCLX_ANY_SOURCE || receive->source == source) &&
           (receive->tag == NCCLX_ANY_TAG || receive->tag == tag);
}

static void oracle_remove_receive(struct rank *rank, struct receive *receive)
{
    struct receive **at = &rank->oracle_receives;
    while (*at && *at != receive) at = &(*at)->oracle_next;
    if (*at) *at = receive->oracle_next;
}

static struct receive *oracle_arrive(struct rank *rank, int source, int tag)
{
    for (struct receive *receive = rank->oracle_receives; receive; receive = receive->oracle_next) {
        if (!accepts(receive, source, tag)) continue;
        oracle_remove_receive(rank, receive);
        return receive;
    }
    return NULL;
}

static void oracle_post(struct rank *rank, struct receive *receive)
{
    struct receive **at = &rank->oracle_receives;
    while (*at) at = &(*at)->oracle_next;
    receive->oracle_next = NULL;
    *at = receive;
}

static void oracle_keep(struct rank *rank, struct envelope *envelope)
{
    struct envelope **at = &rank->oracle_envelopes;
    while (*at) at = &(*at)->oracle_next;
    envelope->oracle_next = NULL;
    *at = envelope;
}

static struct envelope *oracle_find(struct rank *rank, int source, int tag)
{
    for (struct envelope *envelope = rank->oracle_envelopes; envelope; envelope = envelope->oracle_next)
        if ((source == NCCLX_ANY_SOURCE || envelope->match.source == source) &&
            (tag == NCCLX_ANY_TAG || envelope->match.tag == tag))
            return envelope;
    return NULL;
}

static void oracle_take(struct rank *rank, struct envelope *envelope)
{
    struct envelope **at = &rank->oracle_envelopes;
    while (*at != envelope) at = &(*at)->oracle_next;
    *at = envelope->oracle_next;
}

/* ---- Completion and its checks ---- */

static void complete_send(struct send *send)
{
    send->complete = true;
    memset(send->data, SCRIBBLE, sizeof send->data); /* as a program may do from now on */
}

static void complete_receive(struct sim *sim, struct rank *rank, struct receive *receive, int error)
{
    if (receive->complete) sim_fail(sim, "rank %d: a receive completes twice", rank->me);
    receive->complete = true;
    receive->error = error;
    size_t valid = error ? 0 : receive->bytes;
    if (error != (receive->bytes > receive->core.capacity ? NCCLX_ERR_TRUNCATE : NCCLX_SUCCESS))
        sim_fail(sim, "rank %d: %zu bytes for a buffer of %zu give error %d", rank->me, receive->bytes,
                 receive->core.capacity, error);
    for (size_t i = 0; i < sizeof receive->data; i++) {
        unsigned char want = i < valid ? byte_of(receive->from, rank->me, receive->from_number, i) : CANARY;
        if (receive->data[i] == want) continue;
        sim_fail(sim, "rank %d: byte %zu of %zu from rank %d is %02x, expected %02x", rank->me, i, receive->bytes,
                 receive->from, receive->data[i], want);
        return;
    }
}

static void store(struct sim *sim, struct rank *rank, struct receive *receive, uint64_t offset, const void *data,
                  size_t bytes)
{
    if (receive->complete)
        sim_fail(sim, "rank %d: a write into a receive that is complete", rank->me);
    else if (offset + bytes > sizeof receive->data)
        sim_fail(sim, "rank %d: a write far past a buffer", rank->me);
    else if (bytes)
        memcpy(receive->data + offset, data, bytes);
}

/* ---- Receiver ---- */

struct read {
    struct rank *rank;
    struct receive *receive;
    struct send *send;
    int from;
    uint64_t name;
};

static void read_done(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct read *read = context;
    (void)a;
    (void)b;
    store(sim, read->rank, read->receive, 0, read->send->data, read->receive->bytes);
    struct protocol_action action = protocol_copied(&read->receive->core);
    if (action.control) transmit(read->rank, read->from, (struct packet){.kind = action.control, .send = read->name});
    if (action.complete) complete_receive(sim, read->rank, read->receive, action.error);
}

static void deliver(struct sim *sim, struct rank *rank, struct receive *receive, const struct packet *packet)
{
    receive->from = packet->from;
    receive->from_tag = packet->tag;
    receive->from_number = packet->number;
    receive->bytes = packet->bytes;
    struct protocol_action action =
        protocol_deliver(&receive->core, &rank->route[packet->from], packet->kind, packet->bytes, packet->first);
    uint64_t name = 0;
    while (rank->receives[name] != receive) name++;
    if (action.control)
        transmit(rank, packet->from, (struct packet){.kind = action.control, .send = packet->send, .receive = name});
    if (action.copy == COPY_EAGER || action.copy == COPY_FIRST) store(sim, rank, receive, 0, packet->data, packet->first);
    if (action.complete) complete_receive(sim, rank, receive, action.error);
    if (action.copy != COPY_READ) return;
    struct read *read = sim_alloc(sim, sizeof *read);
    *read =
        (struct read){rank, receive, world_of(sim)->rank[packet->from].sends[packet->send], packet->from, packet->send};
    sim_after(sim, sim_random(sim, 3000), read_done, read, 0, 0);
}

static void hold(struct rank *rank, int peer)
{
    if (rank->hold_sent[peer]) return;
    rank->hold_sent[peer] = true;
    transmit(rank, peer, (struct packet){.kind = PROTOCOL_HOLD});
}

static void release(struct world *world, struct rank *rank, size_t bytes)
{
    if (!protocol_flow_release(&rank->flow, bytes)) return;
    for (int peer = 0; peer < world->ranks; peer++) {
        if (!rank->hold_sent[peer]) continue;
        rank->hold_sent[peer] = false;
        transmit(rank, peer, (struct packet){.kind = PROTOCOL_RESUME});
    }
}

static size_t held_bytes(const struct envelope *envelope)
{
    return envelope->first;
}

static void message_arrived(struct sim *sim, struct rank *rank, const struct packet *packet)
{
    struct protocol_peer *peer = &rank->peer[packet->from];
    struct receive *want = oracle_arrive(rank, packet->from, packet->tag);
    if (packet->number != rank->arrived_from[packet->from]++)
        sim_fail(sim, "rank %d: messages of a pair out of order", rank->me);
    struct match_receive *match = match_arrive(&rank->space, &peer->match, packet->from, packet->tag);
    struct receive *receive = (struct receive *)match;
    if (receive != want) {
        sim_fail(sim, "rank %d: a message from rank %d with tag %d goes to the wrong receive", rank->me, packet->from,
                 packet->tag);
    } else if (receive) {
        deliver(sim, rank, receive, packet);
    } else {
        struct envelope *envelope = sim_alloc(sim, sizeof *envelope);
        envelope->kind = packet->kind;
        envelope->send = packet->send;
        envelope->number = packet->number;
        envelope->bytes = packet->bytes;
        envelope->first = packet->first;
        memcpy(envelope->data, packet->data, packet->first);
        match_keep(&rank->space, &envelope->match, packet->from, packet->tag);
        oracle_keep(rank, envelope);
        if (protocol_flow_keep(&rank->flow, held_bytes(envelope))) hold(rank, packet->from);
    }
}

static void filled(struct sim *sim, struct rank *rank, const struct packet *packet)
{
    struct receive *want = oracle_arrive(rank, packet->from, packet->tag), *receive = rank->receives[packet->receive];
    if (packet->number != rank->arrived_from[packet->from]++)
        sim_fail(sim, "rank %d: messages of a pair out of order", rank->me);
    struct protocol_action action =
        protocol_filled(&rank->peer[packet->from], &receive->core, packet->from, packet->tag, packet->bytes, packet->follows);
    if (receive != want)
        sim_fail(sim, "rank %d: a write from rank %d with tag %d fills the wrong receive", rank->me, packet->from,
                 packet->tag);
    if (action.error == NCCLX_ERR_TRANSPORT || action.complete == packet->follows)
        sim_fail(sim, "rank %d: FILLED is refused", rank->me);
    if (sim_failed(sim)) return;
    receive->from = packet->from;
    receive->from_tag = packet->tag;
    receive->from_number = packet->number;
    receive->bytes = packet->bytes;
    if (action.complete) complete_receive(sim, rank, receive, action.error);
}

static void landed(struct sim *sim, struct rank *rank, const struct packet *packet)
{
    struct receive *receive = rank->receives[packet->receive];
    struct protocol_action action = protocol_landed(&receive->core);
    if (!action.complete)
        sim_fail(sim, "rank %d: landed data is refused", rank->me);
    else
        complete_receive(sim, rank, receive, action.error);
}

static void data_arrived(struct sim *sim, struct rank *rank, const struct packet *packet)
{
    struct receive *receive = rank->receives[packet->receive];
    struct protocol_action action = protocol_data(&receive->core, packet->offset, packet->bytes);
    if (action.error)
        sim_fail(sim, "rank %d: DATA is refused", rank->me);
    else
        store(sim, rank, receive, packet->offset, packet->data, packet->bytes);
    if (action.complete) complete_receive(sim, rank, receive, NCCLX_SUCCESS);
}

static void cancelled(struct rank *rank, struct receive *receive)
{
    receive->complete = receive->cancelled = true;
    oracle_remove_receive(rank, receive);
}

/* ---- Sender ---- */

/* Over lanes: what was sent meanwhile is faster, or slower. */
static void lands(struct sim *sim, void *context, uint64_t from, uint64_t receive)
{
    struct send *send = context;
    struct world *world = world_of(sim);
    struct receive *into = world->rank[send->to].receives[receive];
    if (protocol_grants(&into->core) < send->bytes)
        sim_fail(sim, "rank %d: a write that the receiver does not grant", (int)from);
    else
        store(sim, &world->rank[send->to], into, send->core.stream.moved, send->data + send->core.stream.moved,
              send->bytes - send->core.stream.moved);
    complete_send(send);
    transmit(&world->rank[from], send->to, (struct packet){.kind = PROTOCOL_LANES, .receive = receive});
}

static void write_later(struct sim *sim, struct rank *rank, struct send *send, uint64_t receive)
{
    sim_after(sim, sim_random(sim, 20000), lands, send, (uint64_t)rank->me, receive);
}

static void stream(struct sim *sim, struct rank *rank, struct send *send)
{
    if (rank->lanes[send->to]) {
        write_later(sim, rank, send, send->core.receive);
        return;
    }
    while (send->core.state == STATE_STREAMING) {
        uint64_t offset = send->core.stream.moved;
        size_t bytes = protocol_stream_next(&send->core, 1 + sim_random(sim, 150));
        struct packet packet = {.kind = PROTOCOL_DATA, .receive = send->core.receive, .offset = offset, .bytes = bytes};
        memcpy(packet.data, send->data + offset, bytes);
        transmit(rank, send->to, packet);
    }
    complete_send(send);
}

static void announced(struct sim *sim, struct rank *rank, const struct packet *packet)
{
    struct protocol_announcement *announcement = sim_alloc(sim, sizeof *announcement);
    *announcement =
        (struct protocol_announcement){.receive = packet->receive, .bytes = packet->bytes, .tag = packet->tag};
    protocol_announced(&rank->peer[packet->from], announcement, (uint32_t)packet->count);
}

static void arrived(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct rank *rank = context;
    struct packet packet;
    memcpy(&packet, data, bytes);
    struct send *send =
        packet.kind == PROTOCOL_FINISHED || packet.kind == PROTOCOL_CLEAR ? rank->sends[packet.send] : NULL;
    switch (packet.kind) {
    case PROTOCOL_EAGER:
    case PROTOCOL_REQUEST:
        message_arrived(sim, rank, &packet);
        break;
    case PROTOCOL_FILLED:
        filled(sim, rank, &packet);
        break;
    case PROTOCOL_DATA:
        data_arrived(sim, rank, &packet);
        break;
    case PROTOCOL_LANES:
        landed(sim, rank, &packet);
        break;
    case PROTOCOL_FINISHED:
        if (!protocol_finished(&send->core)) sim_fail(sim, "rank %d: FINISHED is refused", rank->me);
        complete_send(send);
        break;
    case PROTOCOL_CLEAR:
        if (!protocol_cleared(&send->core, packet.receive))
            sim_fail(sim, "rank %d: CLEAR is refused", rank->me);
        else
            stream(sim, rank, send);
        break;
    case PROTOCOL_ANNOUNCE:
        announced(sim, rank, &packet);
        break;
    case PROTOCOL_WITHDRAW:
        protocol_withdrawn(&rank->peer[packet.from], packet.receive);
        transmit(rank, packet.from, (struct packet){.kind = PROTOCOL_WITHDRAWN, .receive = packet.receive});
        break;
    case PROTOCOL_WITHDRAWN:
        if (protocol_cancelled(&rank->peer[packet.from], &rank->receives[packet.receive]->core))
            cancelled(rank, rank->receives[packet.receive]);
        break;
    case PROTOCOL_HOLD:
        rank->route[packet.from].held = true;
        break;
    case PROTOCOL_RESUME:
        rank->route[packet.from].held = false;
        break;
    default:
        sim_fail(sim, "rank %d: packet of kind %d", rank->me, (int)packet.kind);
    }
}

/* ---- The program of a rank ---- */

static size_t random_bytes(struct sim *sim)
{
    static const size_t edge[] = {
        0,   1,        EAGER_LIMIT - 1, EAGER_LIMIT, EAGER_LIMIT + 1, ANNOUNCE_THRESHOLD, ANNOUNCE_THRESHOLD + 1,
        333, MAX_BYTES};
    return edge[sim_random(sim, sizeof edge / sizeof edge[0])];
}

static void start_send(struct sim *sim, struct rank *rank)
{
    struct world *world = world_of(sim);
    if (rank->send_count == MAX_SENDS) return;
    struct send *send = sim_alloc(sim, sizeof *send);
    uint64_t name = (uint64_t)rank->send_count;
    rank->sends[rank->send_count++] = send;
    send->to = (int)sim_random(sim, (uint64_t)world->ranks);
    send->tag = (int)sim_random(sim, 3);
    send->bytes = random_bytes(sim);
    send->number = rank->sent_to[send->to]++;
    for (size_t i = 0; i < send->bytes; i++) send->data[i] = byte_of(rank->me, send->to, send->number, i);
    struct packet packet = {.tag = send->tag, .send = name, .number = send->number, .bytes = send->bytes};
    struct protocol_announcement *used = NULL;
    switch (protocol_send_start(&rank->peer[send->to], &rank->route[send->to], send->tag, send->bytes, &used)) {
    case SEND_EAGER:
        packet.kind = PROTOCOL_EAGER;
        packet.first = send->bytes;
        memcpy(packet.data, send->data, send->bytes);
        complete_send(send);
        break;
    case SEND_REQUEST:
        packet.kind = PROTOCOL_REQUEST;
        if (send->bytes && sim_chance(sim, 1, 2)) packet.first = sim_random(sim, send->bytes < EAGER_LIMIT ? send->bytes : EAGER_LIMIT);
        memcpy(packet.data, send->data, packet.first);
        protocol_requested(&send->core, send->bytes, packet.first);
        break;
    case SEND_FILL:
        packet.kind = PROTOCOL_FILLED;
        packet.receive = used->receive;
        if (rank->lanes[send->to]) {
            packet.follows = true;
            write_later(sim, rank, send, used->receive);
            break;
        }
        store(sim, &world->rank[send->to], world->rank[send->to].receives[used->receive], 0, send->data, send->bytes);
        complete_send(send);
        break;
    case SEND_REFUSE:
        packet.kind = PROTOCOL_FILLED;
        packet.receive = used->receive;
        complete_send(send);
        break;
    }
    transmit(rank, send->to, packet);
}

static struct receive *new_receive(struct sim *sim, struct rank *rank, int source, int tag, size_t capacity)
{
    struct receive *receive = sim_alloc(sim, sizeof *receive);
    rank->receives[rank->receive_count++] = receive;
    receive->source = receive->core.match.source = source;
    receive->tag = receive->core.match.tag = tag;
    receive->core.capacity = capacity;
    memset(receive->data, CANARY, sizeof receive->data);
    return receive;
}

static void deliver_kept(struct sim *sim, struct rank *rank, struct receive *receive, struct envelope *envelope)
{
    struct packet packet = {.kind = envelope->kind,
                            .from = envelope->match.source,
                            .tag = envelope->match.tag,
                            .send = envelope->send,
                            .number = envelope->number,
                            .bytes = envelope->bytes,
                            .first = envelope->first};
    memcpy(packet.data, envelope->data, sizeof envelope->data);
    release(world_of(sim), rank, held_bytes(envelope));
    deliver(sim, rank, receive, &packet);
}

/* The envelope that source and tag find, taken out; checked against the oracle. */
static struct envelope *take(struct sim *sim, struct rank *rank, int source, int tag)
{
    struct envelope *want = oracle_find(rank, source, tag);
    struct envelope *found = (struct envelope *)match_find(&rank->space, source, tag);
    if (found != want)
        sim_fail(sim, "rank %d: the wrong unexpected message is found for source %d, tag %d", rank->me, source, tag);
    if (!found || sim_failed(sim)) return NULL;
    match_take(&found->match);
    oracle_take(rank, found);
    return found;
}

static void start_receive(struct sim *sim, struct rank *rank, int source, int tag, size_t capacity)
{
    if (rank->receive_count == MAX_RECEIVES) return;
    uint64_t name = (uint64_t)rank->receive_count;
    uint32_t count = 0;
    struct receive *receive = new_receive(sim, rank, source, tag, capacity);
    struct envelope *envelope = take(sim, rank, source, tag);
    if (envelope) {
        deliver_kept(sim, rank, receive, envelope);
        return;
    }
    struct protocol_peer *peer = source == NCCLX_ANY_SOURCE ? NULL : &rank->peer[source];
    if (protocol_announces(&rank->space, peer, &receive->core, ANNOUNCE_THRESHOLD, &count)) {
        receive->core.state = STATE_ANNOUNCED;
        transmit(
            rank, source,
            (struct packet){.kind = PROTOCOL_ANNOUNCE, .receive = name, .tag = tag, .bytes = capacity, .count = count});
    }
    match_post(&rank->space, peer ? &peer->match : NULL, &receive->core.match);
    oracle_post(rank, receive);
}

static void cancel(struct rank *rank, struct receive *receive)
{
    struct protocol_peer *peer = receive->source == NCCLX_ANY_SOURCE ? NULL : &rank->peer[receive->source];
    if (receive->complete) return;
    uint64_t name = 0;
    while (rank->receives[name] != receive) name++;
    switch (protocol_cancel(peer, &receive->core)) {
    case CANCEL_DONE:
        cancelled(rank, receive);
        break;
    case CANCEL_WITHDRAW:
        transmit(rank, receive->source, (struct packet){.kind = PROTOCOL_WITHDRAW, .receive = name});
        break;
    case CANCEL_TOO_LATE:
        break;
    }
}

static void step(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct rank *rank = context;
    struct world *world = world_of(sim);
    int source = sim_chance(sim, 1, 6) ? NCCLX_ANY_SOURCE : (int)sim_random(sim, (uint64_t)world->ranks);
    int tag = sim_chance(sim, 1, 6) ? NCCLX_ANY_TAG : (int)sim_random(sim, 3);
    uint64_t what = sim_random(sim, 100);
    (void)a;
    (void)b;
    if (what < 46) {
        start_send(sim, rank);
    } else if (what < 90) {
        start_receive(sim, rank, source, tag, sim_chance(sim, 1, 8) ? random_bytes(sim) : MAX_BYTES);
    } else if (what < 96) {
        if (rank->receive_count) cancel(rank, rank->receives[sim_random(sim, (uint64_t)rank->receive_count)]);
    } else { /* a matched probe: the message leaves matching and is received by itself */
        struct envelope *envelope = rank->receive_count < MAX_RECEIVES ? take(sim, rank, source, tag) : NULL;
        if (envelope) deliver_kept(sim, rank, new_receive(sim, rank, source, tag, MAX_BYTES), envelope);
    }
}

/* The random part is over and the channels are empty: cancel what waits, then receive all that is left. */
static void cancel_all(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct rank *rank = context;
    (void)sim;
    (void)a;
    (void)b;
    for (int i = 0; i < rank->receive_count; i++) cancel(rank, rank->receives[i]);
}

static void receive_all(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct rank *rank = context;
    (void)a;
    (void)b;
    while (rank->oracle_envelopes && !sim_failed(sim))
        start_receive(sim, rank, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, MAX_BYTES);
}

static void start(struct sim *sim)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    sim_set_user(sim, world);
    world->ranks = 1 + (int)sim_random(sim, MAX_RANKS);
    bool reads = sim_chance(sim, 2, 3), writes = sim_chance(sim, 2, 3), lanes = sim_chance(sim, 1, 2);
    int steps = 10 + (int)sim_random(sim, 150);
    uint64_t span = 1000 + sim_random(sim, 300000);
    for (int r = 0; r < world->ranks; r++) {
        struct rank *rank = &world->rank[r];
        rank->me = r;
        rank->flow.limit = FLOW_LIMIT;
        match_space_init(&rank->space, rank->bins, BINS);
        for (int peer = 0; peer < world->ranks; peer++) {
            rank->route[peer] = (struct protocol_route){
                .eager_limit = EAGER_LIMIT, .can_read = reads || peer == r, .can_write = writes || peer == r};
            rank->lanes[peer] = lanes && peer != r;
            rank->channel[peer] =
                sim_channel_create(sim, 100, 100 + sim_random(sim, 20000), arrived, &world->rank[peer]);
        }
        for (int i = 0; i < steps; i++) sim_after(sim, sim_random(sim, span), step, rank, 0, 0);
        sim_after(sim, QUIET, cancel_all, rank, 0, 0);
        sim_after(sim, 2 * QUIET, receive_all, rank, 0, 0);
    }
}

static void finish(struct sim *sim)
{
    struct world *world = world_of(sim);
    for (int r = 0; r < world->ranks; r++) {
        struct rank *rank = &world->rank[r];
        for (int i = 0; i < rank->send_count; i++)
            if (!rank->sends[i]->complete) sim_fail(sim, "rank %d: send %d never completes", r, i);
        for (int i = 0; i < rank->receive_count; i++)
            if (!rank->receives[i]->complete) sim_fail(sim, "rank %d: receive %d never completes", r, i);
        for (int peer = 0; peer < world->ranks; peer++)
            if (world->rank[peer].sent_to[r] != rank->arrived_from[peer])
                sim_fail(sim, "rank %d: messages from rank %d are lost", r, peer);
        if (rank->flow.held)
            sim_fail(sim, "rank %d: %llu bytes of unexpected messages are still counted", r,
                     (unsigned long long)rank->flow.held);
    }
}

static const enum planted_bug bugs[] = {BUG_WILDCARD_ORDER,
                                        BUG_UNEXPECTED_ORDER,
                                        BUG_ANNOUNCEMENT_KEPT,
                                        BUG_COUNT_OFF_BY_ONE,
                                        BUG_FINISHED_BEFORE_COPY,
                                        BUG_TRUNCATED_WRITE,
                                        BUG_AMBIGUOUS_ANNOUNCED,
                                        BUG_ANNOUNCEMENT_NOT_USED_UP,
                                        BUG_WITHDRAWN_UNSEEN,
                                        BUG_FILLING_STAYS_PENDING,
                                        BUG_FIRST_OF_TRUNCATED,
                                        BUG_FIRST_NOT_COUNTED,
                                        BUG_HELD_NOT_RELEASED,
                                        BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "matching", .start = start, .finish = finish, .seeds = 10000, .bugs = bugs},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
