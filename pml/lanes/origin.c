/* origin.c - what this process writes to a peer: puts go into the core, and what it says is done. */
#include "pml/lanes/private.h"

#include "topo/topo.h"

/* Puts up to this take the fast lane: about what a socket or a queue pair carries in the time that a system call or a
 * doorbell takes. */
#define FAST_BYTES ((size_t)16384)
/* A lane may break so often in a row, with nothing completed on it in between; one that could not be opened was tried
 * often enough. Then it stays closed, and when all are the connection ends. */
#define FAILURES_MAX 8

/* ---- Life ---- */

static struct dqplb_limits limits_of(const struct lanes *lanes)
{
    const struct pml_connection *connection = lanes->connection;
    struct dqplb_limits limits = connection->pml->lanes->limits[topo_distance(connection->pml->rt, connection->rank)];
    if (limits.segment > lanes->transport->largest) limits.segment = lanes->transport->largest;
    return limits;
}

static int make(struct lanes *lanes)
{
    struct dqplb_limits limits = limits_of(lanes);
    unsigned most = lanes->transport->most(lanes->connection);
    unsigned all = limits.lanes < most ? limits.lanes + 1 : most; /* and the fast one */
    struct dqplb_terms terms = {.lanes = all,
                                .depth = lanes->transport->depth,
                                .receives = lanes_offer.receives,
                                .window = lanes_offer.window,
                                .notices = lanes_offer.notices,
                                .reads = lanes->transport->reads && !PLANTED_BUG(BUG_LANES_READS_IGNORED)};
    struct lanes_origin *origin = base_calloc(AREA_PML, 1, sizeof *origin);
    if (!origin) return base_error(NCCLX_ERR_NO_MEM, "no memory for lanes to rank %d", lanes->connection->rank);
    int error = dqplb_sender_init(&origin->sender, &terms, &limits, FAST_BYTES);
    if (error) {
        base_free(AREA_PML, origin);
        return error;
    }
    if (lanes->connection->pml->rt->config.value[CONFIG_DQPLB_ADAPT].number) dqplb_adapt(&origin->sender);
    dqplb_join(&origin->sender, &lanes->connection->pml->lanes->budget[lanes->transport->port(lanes->connection)]);
    origin->lanes = lanes;
    origin->orders = LANES_ORDER_CHUNKS;
    lanes->origin = origin;
    if (lanes->has_offer) lanes_origin_agree(lanes);
    return NCCLX_SUCCESS;
}

int lanes_origin_of(struct lanes *lanes, struct lanes_origin **origin)
{
    if (lanes->lost)
        return base_error(NCCLX_ERR_PROC_FAILED, "the connection to rank %d is lost", lanes->connection->rank);
    int error = lanes->origin ? NCCLX_SUCCESS : make(lanes);
    *origin = lanes->origin;
    return error;
}

void lanes_origin_free(struct lanes *lanes)
{
    if (!lanes->origin) return;
    lanes_origin_fail(lanes);
    dqplb_sender_release(&lanes->origin->sender);
    base_free(AREA_PML, lanes->origin);
    lanes->origin = NULL;
}

void lanes_origin_agree(struct lanes *lanes)
{
    struct lanes_origin *origin = lanes->origin;
    const struct lane_offer *offer = &lanes->offer;
    const struct dqplb_terms terms = {
        .lanes = offer->lanes, .receives = offer->receives, .window = offer->window, .notices = offer->notices};
    if (!origin || origin->agreed) return;
    if (dqplb_agree(&origin->sender, &terms)) {
        lanes_breach(lanes, base_error_detail());
        return;
    }
    origin->agreed = true;
    lanes_drive(lanes);
}

void lanes_origin_fail(struct lanes *lanes)
{
    if (!lanes->origin) return;
    dqplb_sender_fail(&lanes->origin->sender, NCCLX_ERR_PROC_FAILED);
    lanes->origin->agreed = true; /* there is nothing to wait for */
    lanes_drive(lanes);
}

/* ---- Lanes ---- */

static void open_lane(struct lanes *lanes, unsigned index)
{
    struct lanes_origin *origin = lanes->origin;
    if (origin->lane[index].door != DOOR_CLOSED || origin->lane[index].failures == FAILURES_MAX ||
        !dqplb_lane_may_open(&origin->sender, index)) return;
    origin->lane[index].door = DOOR_OPENING;
    lanes->transport->open(lanes->connection, index, origin->sender.lane[index].life + 1);
}

static void bring_up(struct lanes *lanes, unsigned index)
{
    struct lanes_origin *origin = lanes->origin;
    if (origin->lane[index].door != DOOR_READY) return;
    if (!dqplb_lane_may_open(&origin->sender, index) && !PLANTED_BUG(BUG_LANES_UP_EARLY)) return;
    if (dqplb_lane_up(&origin->sender, index)) {
        lanes_breach(lanes, base_error_detail());
        return;
    }
    origin->lane[index].door = DOOR_OPEN;
    base_log(AREA_PML, LOG_INFO, "lane %u to rank %d is open", index, lanes->connection->rank);
}

/* A marker belongs to no put: it may have to be sent again when none is under way. */
static void mind_lanes(struct lanes *lanes)
{
    struct lanes_origin *origin = lanes->origin;
    bool needed = origin->under_way || (origin->sender.moving && !PLANTED_BUG(BUG_LANES_MARKER_LEFT));
    for (unsigned i = 0; i < origin->wanted && i < origin->sender.terms.lanes && !lanes->lost; i++) {
        if (needed) open_lane(lanes, i);
        bring_up(lanes, i);
    }
}

void lanes_opened(struct pml_connection *connection, unsigned lane)
{
    connection->lanes->origin->lane[lane].door = DOOR_READY;
    bring_up(connection->lanes, lane);
    lanes_drive(connection->lanes);
}

/* Lanes that nobody opens any more count as gone. */
static bool any_hope(const struct lanes_origin *origin)
{
    uint64_t gone = 0;
    for (unsigned i = 0; i < origin->sender.terms.lanes && !PLANTED_BUG(BUG_LANES_HOPES_IN_VAIN); i++)
        if (i >= origin->wanted || (origin->lane[i].door == DOOR_CLOSED && origin->lane[i].failures == FAILURES_MAX))
            gone |= UINT64_C(1) << i;
    return dqplb_has_hope(&origin->sender, gone);
}

void lanes_ask_for_report(struct lanes *lanes, unsigned lane)
{
    struct pml_packet packet = {.kind = PROTOCOL_LANES,
                                .count = LANES_CLOSE,
                                .inline_bytes = 2 * sizeof(uint64_t),
                                .u.word = {lane, lanes->origin->sender.lane[lane].life}};
    pml_post_control(lanes->connection, &packet);
}

void lanes_broke(struct pml_connection *connection, unsigned lane, const char *why)
{
    struct lanes *lanes = connection->lanes;
    struct lanes_origin *origin = lanes->origin;
    bool was_up = origin->lane[lane].door == DOOR_OPEN;
    base_log(AREA_PML, LOG_INFO, "lane %u to rank %d broke: %s", lane, connection->rank, why);
    lanes->transport->close(connection, lane);
    if (origin->lane[lane].door == DOOR_OPENING) origin->lane[lane].failures = FAILURES_MAX;
    else if (origin->lane[lane].failures < FAILURES_MAX) origin->lane[lane].failures++;
    origin->lane[lane].door = was_up ? DOOR_REPORTING : DOOR_CLOSED;
    if (was_up) {
        dqplb_lane_failed(&origin->sender, lane);
        lanes_ask_for_report(lanes, lane);
    }
    if (any_hope(origin)) lanes_drive(lanes);
    else lanes_breach(lanes, why);
}

void lanes_report_arrived(struct lanes *lanes, const struct pml_packet *packet, const void *payload, size_t bytes)
{
    struct lanes_origin *origin = lanes->origin;
    uint64_t lane = packet->u.word[0];
    struct dqplb_report report = {
        .life = (uint32_t)packet->u.word[1], .next = packet->u.word[2], .fast_next = packet->u.word[3]};
    if (!origin || lane >= origin->sender.terms.lanes || origin->lane[lane].door != DOOR_REPORTING ||
        bytes != origin->sender.terms.window / 8) {
        lanes_breach(lanes, "it reports about a lane that nobody asked for");
        return;
    }
    memcpy(report.early, payload, bytes);
    if (dqplb_lane_reported(&origin->sender, (unsigned)lane, &report)) {
        lanes_breach(lanes, base_error_detail());
        return;
    }
    origin->lane[lane].door = DOOR_CLOSED;
    if (any_hope(origin)) lanes_drive(lanes);
    else lanes_breach(lanes, "its lanes break again and again");
}

static void tell_time(struct lanes_origin *origin)
{
    if (dqplb_wants_clock(&origin->sender)) dqplb_clock(&origin->sender, base_clock_ns());
}

bool lanes_completed(struct pml_connection *connection, unsigned lane, uint64_t entries)
{
    struct lanes *lanes = connection->lanes;
    if (entries) lanes->origin->lane[lane].failures = 0;
    tell_time(lanes->origin);
    for (; entries; entries--)
        if (dqplb_completed(&lanes->origin->sender, lane)) return lanes_breach(lanes, base_error_detail());
    return true;
}

bool lanes_credited(struct pml_connection *connection, unsigned lane, uint32_t life, uint64_t receives)
{
    struct lanes *lanes = connection->lanes;
    if (dqplb_credited(&lanes->origin->sender, lane, life, receives)) return lanes_breach(lanes, base_error_detail());
    return true;
}

/* ---- Puts ---- */

struct lanes_put *lanes_put_get(struct pml *pml)
{
    struct lanes_put *put = pml->lanes->free_puts;
    if (put) pml->lanes->free_puts = put->next;
    else put = base_alloc(AREA_PML, sizeof *put);
    if (!put) return NULL;
    memset(&put->core.limits, 0, sizeof put->core.limits);
    put->request = NULL;
    put->order = NULL;
    put->slot = 0;
    put->copied = false;
    return put;
}

static void put_ended(struct lanes *lanes, struct lanes_put *put, int code)
{
    struct pml *pml = lanes->connection->pml;
    struct pml_request *request = put->request;
    struct pml_order *order = put->order;
    unsigned slot = put->slot;
    lanes->origin->under_way--;
    pml->lanes->under_way--;
    if (lanes->origin->ways.timed == put && !code) ways_end(&lanes->origin->ways, put, base_clock_ns());
    put->next = pml->lanes->free_puts;
    pml->lanes->free_puts = put;
    if (request) pml_send_landed(request, code);
    if (order) lanes_order_put_ended(order, code);
    if (slot) lanes_copy_placed(lanes, slot - 1);
}

static bool all_open(const struct lanes_origin *origin)
{
    return (unsigned)__builtin_popcountll(origin->sender.up) == origin->sender.terms.lanes;
}

/* Where nothing else is under way, one of several ways may be faster than the usual one. */
static void choose_way(struct lanes *lanes, struct lanes_put *put)
{
    struct lanes_origin *origin = lanes->origin;
    if (origin->under_way || put->core.bytes < WAYS_LEAST || put->slot || !all_open(origin)) {
        ways_disturb(&origin->ways);
        return;
    }
    bool spares = lanes->transport->spares && lanes->transport->spares(lanes->connection);
    enum lanes_way way = ways_begin(&origin->ways, put, put->core.bytes, spares, base_clock_ns());
    put->copied = way == WAY_COPIED;
    if (way != WAY_SPREAD) put->core.limits.lanes = 1;
}

void lanes_begin(struct lanes *lanes)
{
    if (!lanes->has_offer) lanes->transport->want(lanes->connection);
    lanes_drive(lanes);
}

void lanes_submit(struct lanes *lanes, struct dqplb_order *order, struct lanes_put *put)
{
    struct lanes_origin *origin = lanes->origin;
    unsigned wanted = put->core.bytes > FAST_BYTES ? origin->sender.terms.lanes : put->core.bytes ? 1 : 0;
    if (wanted > origin->wanted) origin->wanted = wanted;
    choose_way(lanes, put);
    origin->under_way++;
    lanes->connection->pml->lanes->under_way++;
    dqplb_put(&origin->sender, order, &put->core);
    lanes_begin(lanes);
}

struct lanes_put *lanes_send_make(struct pml_connection *connection, struct pml_request *request, uint64_t receive,
                                  uint64_t to)
{
    struct lanes_origin *origin;
    struct lanes_put *put = lanes_origin_of(connection->lanes, &origin) ? NULL : lanes_put_get(connection->pml);
    if (!put) return NULL;
    uint64_t moved = request->u.send.core.stream.moved; /* with its request */
    put->request = request;
    put->core.from = (const char *)request->u.send.buffer + moved;
    put->core.bytes = request->u.send.bytes - moved;
    put->core.to = to + moved;
    put->core.key = pml_receive_key(receive);
    put->core.notice = true;
    put->notice = (struct pml_packet){
        .kind = PROTOCOL_LANES, .count = LANES_LANDED, .inline_bytes = 2 * sizeof(uint64_t), .context = receive};
    return put;
}

void lanes_send(struct pml_connection *connection, struct lanes_put *put)
{
    lanes_submit(connection->lanes, &connection->lanes->origin->messages, put);
}

/* ---- What the core says ---- */

static void act(struct lanes *lanes, const struct dqplb_action *action)
{
    struct lanes_put *put = (struct lanes_put *)action->put;
    struct lanes_flush *flush = (struct lanes_flush *)action->flush;
    const struct lane_write write = {.from = action->from,
                                     .to = action->to,
                                     .key = action->key,
                                     .bytes = action->bytes,
                                     .copied = put && put->copied,
                                     .has_immediate = action->has_immediate,
                                     .immediate = action->immediate};
    switch (action->kind) {
    case DQPLB_WRITE:
        lanes->transport->write(lanes->connection, action->lane, &write);
        break;
    case DQPLB_READ:
        lanes->transport->read(lanes->connection, action->lane);
        break;
    case DQPLB_NOTICE:
        lanes->transport->ring(lanes->connection); /* the data, which takes longer, goes first */
        put->notice.u.word[0] = action->bound;
        put->notice.u.word[1] = action->fast_bound;
        pml_post_control(lanes->connection, &put->notice);
        if (put->notice.count == LANES_ANSWERED && !PLANTED_BUG(BUG_LANES_ANSWERS_KEPT)) lanes->answering--;
        break;
    case DQPLB_DONE:
        put_ended(lanes, put, action->code);
        break;
    case DQPLB_FLUSHED:
        lanes->origin->under_way--;
        lanes->connection->pml->lanes->under_way--;
        lanes_order_flushed(flush, action->code);
        break;
    case DQPLB_NOTHING:
        break;
    }
}

/* What was given back is others' to take. */
static void wake_waiting(struct lanes_state *state, struct dqplb_budget *budget)
{
    struct dqplb_share *share;
    if (!budget->first || state->waking || PLANTED_BUG(BUG_LANES_BUDGET_SLEEPS)) return;
    state->waking = true;
    while ((share = budget_next(budget)) != NULL) {
        struct lanes_origin *origin = (struct lanes_origin *)((char *)share - offsetof(struct lanes_origin, sender.share));
        dqplb_turn(&origin->sender);
        lanes_drive(origin->lanes);
    }
    state->waking = false;
}

/* Ends of puts may bring new ones: those are driven by who is here already. */
void lanes_drive(struct lanes *lanes)
{
    struct lanes_origin *origin = lanes->origin;
    struct dqplb_action action;
    if (!origin || !origin->agreed) return;
    origin->again = !PLANTED_BUG(BUG_LANES_NOT_AGAIN) || !origin->driving;
    if (origin->driving) return;
    origin->driving = true;
    while (origin->again) {
        origin->again = false;
        if (!lanes->lost) mind_lanes(lanes);
        tell_time(origin);
        while (dqplb_next(&origin->sender, &action)) act(lanes, &action);
        if (!lanes->lost && !PLANTED_BUG(BUG_LANES_NOT_RUNG)) lanes->transport->ring(lanes->connection);
    }
    origin->driving = false;
    wake_waiting(lanes->connection->pml->lanes, origin->sender.share.budget);
}
