/* target.c - what a peer writes here: lanes that it opens, numbers and notices that come, and what it has to be told. */
#include "pml/lanes/private.h"

static struct lanes_target *make(void)
{
    const struct dqplb_terms terms = {.lanes = lanes_offer.lanes,
                                      .depth = 1,
                                      .receives = lanes_offer.receives,
                                      .window = lanes_offer.window,
                                      .notices = lanes_offer.notices};
    size_t notices = lanes_offer.notices * sizeof(struct lanes_notice);
    struct lanes_target *target = base_alloc(AREA_PML, sizeof *target + notices);
    if (!target) return NULL;
    if (dqplb_tracker_init(&target->tracker, &terms)) {
        base_free(AREA_PML, target);
        return NULL;
    }
    target->fenced = ~UINT64_C(0);
    for (unsigned i = 0; i < lanes_offer.notices; i++) target->notice[i].next_free = i;
    target->free_notice = lanes_offer.notices;
    return target;
}

/* Null: memory is short, and the connection has ended. */
static struct lanes_target *target_of(struct lanes *lanes)
{
    if (!lanes->target) lanes->target = make();
    if (!lanes->target) lanes_breach(lanes, "memory is short for what it writes");
    return lanes->target;
}

void lanes_target_free(struct lanes *lanes)
{
    if (!lanes->target) return;
    dqplb_tracker_release(&lanes->target->tracker);
    base_free(AREA_PML, lanes->target);
    lanes->target = NULL;
}

/* ---- Lanes ---- */

bool lanes_accept(struct pml_connection *connection, unsigned lane, uint32_t life)
{
    struct lanes *lanes = connection->lanes;
    struct lanes_target *target = lanes->lost ? NULL : target_of(lanes);
    if (!target || lane >= lanes_offer.lanes) return false;
    uint32_t now = target->tracker.lane[lane].life;
    bool fenced = target->fenced >> lane & 1;
    if (life == now && !fenced) return true; /* the one before led nowhere */
    if (life != now + 1 || !fenced) return false;
    dqplb_tracker_lane_up(&target->tracker, lane);
    target->fenced &= ~(UINT64_C(1) << lane);
    return true;
}

/* A lane that never came here has come up and broken there, and counts. */
void lanes_close_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    struct lanes_target *target = target_of(lanes);
    uint64_t lane = packet->u.word[0], life = packet->u.word[1];
    struct dqplb_report report;
    if (!target) return;
    bool fenced = lane < lanes_offer.lanes && target->fenced >> lane & 1;
    if (lane >= lanes_offer.lanes || life != target->tracker.lane[lane].life + (fenced ? 1u : 0u)) {
        lanes_breach(lanes, "it closes a lane that is not there");
        return;
    }
    if (fenced) dqplb_tracker_lane_up(&target->tracker, (unsigned)lane);
    if (!PLANTED_BUG(BUG_LANES_NO_FENCE)) lanes->transport->fence(lanes->connection, (unsigned)lane);
    target->fenced |= UINT64_C(1) << lane;
    dqplb_lane_closed(&target->tracker, (unsigned)lane, &report);
    struct pml_packet answer = {.kind = PROTOCOL_LANES,
                                .count = LANES_REPORT,
                                .inline_bytes = 4 * sizeof(uint64_t),
                                .u.word = {lane, report.life, report.next, report.fast_next}};
    const struct pml_payload payload = {.first = report.early, .first_bytes = lanes_offer.window / 8};
    if (pml_answer_copy(lanes->connection, &answer, &payload))
        lanes_breach(lanes, "memory is short for a report to it");
}

/* ---- Numbers and notices ---- */

bool lanes_arrived(struct pml_connection *connection, unsigned lane, uint32_t immediate)
{
    struct lanes *lanes = connection->lanes;
    if (dqplb_arrived(&lanes->target->tracker, lane, immediate)) return lanes_breach(lanes, base_error_detail());
    return true;
}

static void landed(struct lanes *lanes, const struct pml_packet *packet)
{
    struct pml_connection *connection = lanes->connection;
    if (!pml_receive_landed_by(connection, packet->context)) lanes_breach(lanes, "it fills a receive that is not its own");
}

static void signalled(struct lanes *lanes, const struct pml_packet *packet)
{
    struct pml *pml = lanes->connection->pml;
    const struct pml_signal signal = {.window = packet->context,
                                      .rank = packet->source,
                                      .value = packet->u.word[2],
                                      .slot = packet->u.word[3],
                                      .op = packet->u.word[4]};
    if (pml->signalled) pml->signalled(pml->rt, lanes->connection->rank, &signal, pml->signalled_arg);
}

static void take_effect(struct lanes *lanes, const struct pml_packet *packet)
{
    if (packet->count == LANES_LANDED) landed(lanes, packet);
    else if (packet->count == LANES_ANSWERED) lanes_get_ended(lanes, packet->context);
    else if (packet->count == LANES_CHUNK) lanes_chunk_arrived(lanes, packet);
    else signalled(lanes, packet);
}

void lanes_notice_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    struct lanes_target *target = target_of(lanes);
    if (!target) return;
    if (!target->free_notice) {
        lanes_breach(lanes, "it sends more notices than there are places");
        return;
    }
    uint32_t place = target->free_notice - 1;
    if (dqplb_noticed(&target->tracker, (uint32_t)packet->tag, packet->u.word[0], packet->u.word[1], place)) {
        lanes_breach(lanes, base_error_detail());
        return;
    }
    target->free_notice = target->notice[place].next_free;
    memcpy((void *)&target->notice[place].packet, (const void *)packet, sizeof *packet);
    lanes_told(lanes->connection);
}

static void tell_progress(struct lanes *lanes)
{
    struct dqplb_tracker *tracker = &lanes->target->tracker;
    uint64_t expected, applied, receives;
    unsigned lane;
    uint32_t life;
    while (dqplb_credit_due(tracker, &lane, &life, &receives))
        if (!PLANTED_BUG(BUG_LANES_CREDITS_KEPT)) lanes->transport->credit(lanes->connection, lane, life, receives);
    if (!dqplb_progress_due(tracker, &expected, &applied)) return;
    struct pml_packet packet = {.kind = PROTOCOL_LANES,
                                .count = LANES_PROGRESS,
                                .inline_bytes = 2 * sizeof(uint64_t),
                                .u.word = {expected, applied}};
    pml_answer(lanes->connection, &packet);
}

/* Takes notices that may take effect; and lets the core say what came of completions. */
void lanes_told(struct pml_connection *connection)
{
    struct lanes *lanes = connection->lanes;
    struct lanes_target *target = lanes->target;
    uint64_t place;
    while (target && !lanes->lost && dqplb_apply(&target->tracker, &place)) {
        struct pml_packet packet;
        memcpy((void *)&packet, (const void *)&target->notice[place].packet, sizeof packet);
        target->notice[place].next_free = target->free_notice;
        if (!PLANTED_BUG(BUG_LANES_PLACE_LEAK)) target->free_notice = (uint32_t)place + 1;
        take_effect(lanes, &packet);
    }
    if (target && !lanes->lost) tell_progress(lanes);
    if (!lanes->lost) lanes_drive(lanes);
}
