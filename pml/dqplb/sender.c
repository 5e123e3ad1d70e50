/* sender.c - the sending half of a connection: puts and flushes from their beginning to their end. */
#include "pml/dqplb/private.h"

#include <string.h>

/* ---- Life ---- */

static bool sensible(const struct dqplb_terms *terms, const struct dqplb_limits *limits)
{
    bool power = (terms->window & (terms->window - 1)) == 0;
    return terms->lanes >= 1 && terms->lanes <= DQPLB_MAX_LANES && terms->depth >= 1 &&
           terms->depth <= DQPLB_MAX_OUTSTANDING && terms->receives >= 1 && power &&
           terms->window >= DQPLB_MIN_WINDOW && terms->window <= DQPLB_MAX_WINDOW && terms->notices >= 1 &&
           terms->notices <= DQPLB_MAX_NOTICES && limits->lanes >= 1 && limits->outstanding >= 1 &&
           limits->segment >= 1 && limits->segment <= UINT32_MAX;
}

int dqplb_sender_init(struct dqplb_sender *sender, const struct dqplb_terms *terms, const struct dqplb_limits *limits,
                      size_t fast_bytes)
{
    memset(sender, 0, sizeof *sender);
    if (!sensible(terms, limits)) return base_error(NCCLX_ERR_ARG, "terms of a connection that make no sense");
    sender->terms = *terms;
    sender->limits = *limits;
    sender->fast_bytes = fast_bytes < limits->segment ? fast_bytes : limits->segment;
    sender->fast_lane = DQPLB_MAX_LANES;
    sender->ring_mask = 1;
    while (sender->ring_mask < terms->depth) sender->ring_mask *= 2;
    sender->ring_mask -= 1;
    sender->fast.last = &sender->fast.first;
    sender->large.last = &sender->large.first;
    sender->closing.last = &sender->closing.first;
    sender->done.last = &sender->done.first;
    sender->lane = base_calloc(AREA_PML, terms->lanes, sizeof *sender->lane);
    if (sender->lane) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for the lanes of a connection");
}

void dqplb_sender_release(struct dqplb_sender *sender)
{
    for (unsigned i = 0; sender->lane && i < sender->terms.lanes; i++) base_free(AREA_PML, sender->lane[i].ring);
    base_free(AREA_PML, sender->lane);
    sender->lane = NULL;
}

int dqplb_agree(struct dqplb_sender *sender, const struct dqplb_terms *offer)
{
    struct dqplb_terms terms = sender->terms;
    if (PLANTED_BUG(BUG_DQPLB_OFFER_IGNORED)) return NCCLX_SUCCESS;
    if (offer->lanes < terms.lanes) terms.lanes = offer->lanes;
    terms.receives = offer->receives;
    terms.window = offer->window;
    terms.notices = offer->notices;
    if (!sensible(&terms, &sender->limits))
        return base_error(NCCLX_ERR_TRANSPORT, "it offers terms that make no sense");
    sender->terms = terms;
    return NCCLX_SUCCESS;
}

/* ---- Window and budget ---- */

void dqplb_adapt(struct dqplb_sender *sender)
{
    sender->control.on = true;
}

void dqplb_join(struct dqplb_sender *sender, struct dqplb_budget *budget)
{
    sender->share.budget = budget;
}

void dqplb_turn(struct dqplb_sender *sender)
{
    sender->idle = false;
}

bool dqplb_wants_clock(const struct dqplb_sender *sender)
{
    return sender->control.on && (sender->large.first || !control_idle(&sender->control));
}

void dqplb_clock(struct dqplb_sender *sender, uint64_t now)
{
    sender->now = now;
}

static void set_bytes(struct dqplb_sender *sender, unsigned index, uint64_t bytes)
{
    sender->over = over_with(sender, index, bytes);
    sender->lane[index].bytes = bytes;
}

void dqplb_segment_enters(struct dqplb_sender *sender, unsigned index, const struct dqplb_entry *entry)
{
    struct dqplb_lane *lane = &sender->lane[index];
    struct dqplb_put *put = entry->of.put;
    lane->segments++;
    set_bytes(sender, index, lane->bytes + entry->bytes);
    budget_take(&sender->share, entry->bytes);
    put->in_flight++;
    put->on_lane[index]++;
    put->used |= lane_bit(index);
}

void dqplb_segment_leaves(struct dqplb_sender *sender, unsigned index, const struct dqplb_entry *entry)
{
    struct dqplb_lane *lane = &sender->lane[index];
    struct dqplb_put *put = entry->of.put;
    lane->segments--;
    set_bytes(sender, index, lane->bytes - entry->bytes);
    if (!PLANTED_BUG(BUG_BUDGET_KEPT) || lane->state == DQPLB_LANE_UP) budget_give(&sender->share, entry->bytes);
    put->in_flight--;
    if (--put->on_lane[index] == 0) put->used &= ~lane_bit(index);
}

/* ---- Lanes ---- */

static void window_changed(struct dqplb_sender *sender)
{
    sender->over = 0;
    for (unsigned i = 0; i < sender->terms.lanes; i++) sender->over += lane_over(sender, i, sender->lane[i].bytes);
    if (sender->data)
        control_limits(&sender->control, (unsigned)__builtin_popcountll(sender->data), sender->limits.outstanding, sender->limits.segment);
}

void dqplb_lanes_changed(struct dqplb_sender *sender)
{
    sender->idle = false;
    if (sender->fast_lane < DQPLB_MAX_LANES && !(sender->up & lane_bit(sender->fast_lane)))
        sender->fast_lane = DQPLB_MAX_LANES;
    if (sender->fast_lane == DQPLB_MAX_LANES && sender->up) sender->fast_lane = (unsigned)__builtin_ctzll(sender->up);
    uint64_t others = sender->fast_lane < DQPLB_MAX_LANES ? sender->up & ~lane_bit(sender->fast_lane) : 0;
    uint64_t from = others ? others : sender->up;
    sender->data = 0;
    for (unsigned i = 0; i < sender->limits.lanes && from; i++) {
        sender->data |= from & -from;
        from &= from - 1;
    }
    window_changed(sender);
}

int dqplb_credited(struct dqplb_sender *sender, unsigned index, uint32_t life, uint64_t receives)
{
    if (index >= sender->terms.lanes) return base_error(NCCLX_ERR_TRANSPORT, "credits for a lane that is not there");
    struct dqplb_lane *lane = &sender->lane[index];
    if ((life != lane->life && !PLANTED_BUG(BUG_DQPLB_LATE_CREDIT)) || lane->state != DQPLB_LANE_UP)
        return life <= lane->life ? NCCLX_SUCCESS
                                  : base_error(NCCLX_ERR_TRANSPORT, "credits for a lane that is not there yet");
    if (PLANTED_BUG(BUG_DQPLB_LATE_CREDIT)) {
        if (receives > lane->receives) lane->receives = receives;
        sender->idle = false;
        return NCCLX_SUCCESS;
    }
    if (receives > lane->numbered + sender->terms.receives)
        return base_error(NCCLX_ERR_TRANSPORT, "credits that cannot be");
    if (receives > lane->receives) lane->receives = receives;
    sender->idle = false;
    return NCCLX_SUCCESS;
}

int dqplb_progressed(struct dqplb_sender *sender, uint64_t expected, uint64_t applied)
{
    if (expected > sender->next || applied > sender->noticed)
        return base_error(NCCLX_ERR_TRANSPORT, "the target is farther than what was sent");
    if (expected > sender->expected) sender->expected = expected; /* a report may have been faster */
    if (applied > sender->applied) sender->applied = applied;
    sender->idle = false;
    return NCCLX_SUCCESS;
}

/* ---- Flushes ---- */

static void flush_ended(struct dqplb_sender *sender, struct dqplb_flush *flush)
{
    struct dqplb_order *order = flush->order;
    order->first_flush = flush->later;
    if (!flush->later) order->last_flush = NULL;
    struct dqplb_flush **at = &sender->flushed;
    while (*at) at = &(*at)->next;
    flush->next = NULL;
    *at = flush;
}

void dqplb_flush_reads(struct dqplb_sender *sender, struct dqplb_flush *flush)
{
    flush->next = sender->reading;
    sender->reading = flush;
    sender->idle = false;
}

/* Whether it is posted, or complete. Flushes of an order end as they came. */
void dqplb_flush_check(struct dqplb_sender *sender, struct dqplb_flush *flush)
{
    struct dqplb_order *order = flush->order;
    if (!flush->posted && (!order->first || order->first->epoch > flush->epoch)) {
        flush->posted = true;
        if (sender->terms.reads && !sender->failed && !PLANTED_BUG(BUG_DQPLB_FLUSH_READS_NOTHING)) {
            flush->to_read = order->unread;
            order->unread = 0;
            if (flush->to_read) dqplb_flush_reads(sender, flush);
        }
    }
    while (order->first_flush && order->first_flush->posted && !order->first_flush->active &&
           !order->first_flush->to_read && !order->first_flush->reading)
        flush_ended(sender, order->first_flush);
}

static void order_changed(struct dqplb_sender *sender, struct dqplb_order *order)
{
    for (struct dqplb_flush *flush = order->first_flush, *later; flush; flush = later) {
        later = flush->later;
        dqplb_flush_check(sender, flush);
    }
}

void dqplb_flush(struct dqplb_sender *sender, struct dqplb_order *order, struct dqplb_flush *flush)
{
    *flush = (struct dqplb_flush){.order = order, .epoch = order->epoch++, .active = order->active};
    if (PLANTED_BUG(BUG_DQPLB_FLUSH_EARLY)) flush->active = 0;
    order->active = 0;
    if (order->last_flush)
        order->last_flush->later = flush;
    else
        order->first_flush = flush;
    order->last_flush = flush;
    order_changed(sender, order);
}

/* ---- Puts ---- */

static void order_append(struct dqplb_order *order, struct dqplb_put *put)
{
    put->earlier = order->last;
    put->later = NULL;
    if (order->last)
        order->last->later = put;
    else
        order->first = put;
    order->last = put;
}

static void close_put(struct dqplb_sender *sender, struct dqplb_put *put)
{
    put->state = DQPLB_PUT_CLOSING;
    puts_append(&sender->closing, put);
    sender->idle = false;
}

static void order_remove(struct dqplb_sender *sender, struct dqplb_put *put)
{
    struct dqplb_order *order = put->order;
    *(put->earlier ? &put->earlier->later : &order->first) = put->later;
    *(put->later ? &put->later->earlier : &order->last) = put->earlier;
    if (order->first && order->first->state == DQPLB_PUT_WAITING) close_put(sender, order->first);
    order_changed(sender, order);
}

/* Nothing is left to be posted: has everything come back? */
static void check_done(struct dqplb_sender *sender, struct dqplb_put *put)
{
    if (put->state != DQPLB_PUT_POSTED || put->in_flight) return;
    struct dqplb_order *order = put->order;
    puts_append(&sender->done, put);
    if (put->epoch == order->epoch) {
        order->active--;
        return;
    }
    struct dqplb_flush *flush = order->first_flush;
    while (flush && flush->epoch != put->epoch) flush = flush->later;
    if (!flush || PLANTED_BUG(BUG_DQPLB_FLUSH_EARLY)) return;
    flush->active--;
    dqplb_flush_check(sender, flush);
}

void dqplb_put_closed(struct dqplb_sender *sender, struct dqplb_put *put)
{
    put->state = DQPLB_PUT_POSTED;
    order_remove(sender, put);
    check_done(sender, put);
}

void dqplb_put_posted(struct dqplb_sender *sender, struct dqplb_put *put)
{
    if (!put->notice)
        dqplb_put_closed(sender, put);
    else if (put->order->first == put || PLANTED_BUG(BUG_DQPLB_EARLIER_UNPOSTED))
        close_put(sender, put);
    else
        put->state = DQPLB_PUT_WAITING;
}

static void cap(size_t *value, size_t limit)
{
    if (*value == 0 || *value > limit) *value = limit;
}

void dqplb_put(struct dqplb_sender *sender, struct dqplb_order *order, struct dqplb_put *put)
{
    size_t lanes = put->limits.lanes, outstanding = put->limits.outstanding;
    cap(&lanes, sender->limits.lanes);
    cap(&outstanding, sender->limits.outstanding);
    cap(&put->limits.segment, sender->limits.segment);
    put->limits.lanes = (unsigned)lanes;
    put->limits.outstanding = (unsigned)outstanding;
    put->order = order;
    put->epoch = order->epoch;
    put->offset = put->used = put->in_flight = 0;
    put->bound = put->fast_bound = 0;
    memset(put->on_lane, 0, sizeof put->on_lane);
    put->fast = put->bytes <= sender->fast_bytes && !PLANTED_BUG(BUG_DQPLB_NO_FAST_PATH);
    put->state = DQPLB_PUT_POSTING;
    order->active++;
    order_append(order, put);
    sender->idle = false;
    if (sender->failed)
        dqplb_put_closed(sender, put);
    else if (!put->bytes)
        dqplb_put_posted(sender, put);
    else
        puts_append(put->fast ? &sender->fast : &sender->large, put);
}

/* ---- Completions ---- */

void dqplb_entry_ended(struct dqplb_sender *sender, unsigned index)
{
    struct dqplb_lane *lane = &sender->lane[index];
    struct dqplb_entry *entry = &lane->ring[lane->head++ & sender->ring_mask];
    if (entry->kind == DQPLB_ENTRY_READ) {
        entry->of.flush->reading--;
        dqplb_flush_check(sender, entry->of.flush);
    } else if (entry->kind != DQPLB_ENTRY_MARKER) {
        dqplb_segment_leaves(sender, index, entry);
        if (!entry->of.put->fast) control_completed(&sender->control, entry->bytes, entry->posted_ns, sender->now);
        check_done(sender, entry->of.put);
    }
    sender->idle = false;
}

int dqplb_completed(struct dqplb_sender *sender, unsigned index)
{
    if (index >= sender->terms.lanes || sender->lane[index].head == sender->lane[index].sent ||
        (sender->lane[index].state != DQPLB_LANE_UP && sender->lane[index].state != DQPLB_LANE_FAILED))
        return base_error(NCCLX_ERR_TRANSPORT, "a completion of nothing");
    dqplb_entry_ended(sender, index);
    sender->turn = index; /* it is refilled first */
    return NCCLX_SUCCESS;
}

/* ---- The end ---- */

static void end_puts(struct dqplb_sender *sender, struct dqplb_puts *puts)
{
    while (puts->first) {
        struct dqplb_put *put = puts->first;
        puts_unlink(puts, &puts->first);
        dqplb_put_closed(sender, put);
    }
}

void dqplb_sender_fail(struct dqplb_sender *sender, int code)
{
    if (sender->failed) return;
    sender->failed = code;
    budget_leave(&sender->share);
    for (unsigned i = 0; i < sender->terms.lanes; i++) {
        while (sender->lane[i].head != sender->lane[i].tail) dqplb_entry_ended(sender, i);
        sender->lane[i].state = DQPLB_LANE_FAILED;
    }
    sender->up = sender->moving = sender->returned = 0;
    dqplb_lanes_changed(sender);
    end_puts(sender, &sender->fast);
    end_puts(sender, &sender->large);
    if (!PLANTED_BUG(BUG_DQPLB_FAILURE_FORGETS)) end_puts(sender, &sender->closing); /* those that waited join it */
    while (sender->reading) {
        struct dqplb_flush *flush = sender->reading;
        sender->reading = flush->next;
        flush->to_read = 0;
        dqplb_flush_check(sender, flush);
    }
}
