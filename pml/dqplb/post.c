/* post.c - what goes on which lane next. */
#include "pml/dqplb/private.h"

static uint32_t immediate_of(const struct dqplb_entry *entry)
{
    uint32_t number = (uint32_t)(entry->number & DQPLB_NUMBER_MASK);
    if (PLANTED_BUG(BUG_DQPLB_WRAP)) number = (uint32_t)(entry->number % DQPLB_NUMBER_MASK);
    return number | (entry->fast ? DQPLB_FAST : 0) | (entry->last ? DQPLB_LAST : 0);
}

static void count_write(struct dqplb_sender *sender, unsigned index, const struct dqplb_entry *entry)
{
    struct dqplb_order *order = entry->of.put->order;
    order->unread |= lane_bit(index);
    if (entry->kind != DQPLB_ENTRY_PLAIN) return;
    order->plain |= lane_bit(index);
    order->stamp[index] = sender->lane[index].stamp;
}

void dqplb_post_again(struct dqplb_sender *sender, unsigned index, const struct dqplb_entry *entry,
                      struct dqplb_action *action)
{
    struct dqplb_lane *lane = &sender->lane[index];
    *action = (struct dqplb_action){.kind = entry->kind == DQPLB_ENTRY_READ ? DQPLB_READ : DQPLB_WRITE, .lane = index};
    lane->sent++;
    if (entry->kind == DQPLB_ENTRY_NUMBERED || entry->kind == DQPLB_ENTRY_MARKER) {
        lane->numbered++;
        lane->stamp++;
        *(entry->fast ? &lane->fast_bound : &lane->bound) = entry->number + 1;
        action->has_immediate = true;
        action->immediate = immediate_of(entry);
    }
    if (entry->kind == DQPLB_ENTRY_READ || entry->kind == DQPLB_ENTRY_MARKER) return;
    count_write(sender, index, entry);
    action->put = entry->of.put;
    action->from = entry->of.put->from + entry->offset;
    action->to = entry->of.put->to + entry->offset;
    action->key = entry->of.put->key;
    action->bytes = entry->bytes;
}

void dqplb_post(struct dqplb_sender *sender, unsigned index, const struct dqplb_entry *entry,
                struct dqplb_action *action)
{
    struct dqplb_lane *lane = &sender->lane[index];
    lane->ring[lane->tail++ & sender->ring_mask] = *entry;
    if (is_segment(entry)) dqplb_segment_enters(sender, index, entry);
    dqplb_post_again(sender, index, entry, action);
}

static void give_number(struct dqplb_sender *sender, struct dqplb_put *put, struct dqplb_entry *entry)
{
    entry->number = entry->fast ? sender->fast_next++ : sender->next++;
    *(entry->fast ? &put->fast_bound : &put->bound) = entry->number + 1;
}

/* ---- Segments ---- */

static bool window_open(const struct dqplb_sender *sender)
{
    return sender->next + 1 - sender->expected < sender->terms.window || PLANTED_BUG(BUG_DQPLB_WINDOW_IGNORED);
}

/* Plain writes would need markers anew. */
static bool held(const struct dqplb_put *put)
{
    const struct dqplb_put *first = put->order->first;
    return !put->notice && first != put && first->state == DQPLB_PUT_CLOSING;
}

static bool may_post(const struct dqplb_sender *sender, const struct dqplb_put *put, unsigned index)
{
    const struct dqplb_lane *lane = &sender->lane[index];
    if (held(put) || (put->notice && !lane_has_receive(lane))) return false;
    if (put->notice && !put->fast && !window_open(sender)) return false;
    if (PLANTED_BUG(BUG_DQPLB_REFILL_PAST_CAP)) return true;
    bool one_more = put->used & lane_bit(index) || (unsigned)__builtin_popcountll(put->used) < put->limits.lanes;
    return one_more && put->on_lane[index] < put->limits.outstanding;
}

static size_t next_bytes(const struct dqplb_put *put)
{
    uint64_t left = put->bytes - put->offset;
    return left < put->limits.segment ? (size_t)left : put->limits.segment;
}

/* Window and budget. Two segments a lane may always go. */
static bool within(struct dqplb_sender *sender, unsigned index, size_t bytes)
{
    const struct dqplb_lane *lane = &sender->lane[index];
    uint64_t over = over_with(sender, index, lane->bytes + bytes);
    if (lane->bytes + bytes <= lane_least(sender, index)) return !PLANTED_BUG(BUG_BUDGET_LEAST_WAITS) || budget_may(&sender->share, bytes);
    if (over + sender->control.floor > control_window(&sender->control)) {
        sender->control.limited = true;
        return false;
    }
    return budget_may(&sender->share, bytes);
}

/* The next segment of *at, on a lane where it may go. */
static void post_segment(struct dqplb_sender *sender, struct dqplb_puts *puts, struct dqplb_put **at, unsigned index,
                         struct dqplb_action *action)
{
    struct dqplb_put *put = *at;
    size_t bytes = next_bytes(put);
    struct dqplb_entry entry = {.of.put = put,
                                .offset = put->offset,
                                .posted_ns = put->fast ? 0 : sender->now,
                                .bytes = (uint32_t)bytes,
                                .kind = put->notice ? DQPLB_ENTRY_NUMBERED : DQPLB_ENTRY_PLAIN,
                                .fast = put->notice && put->fast,
                                .last = put->offset + bytes == put->bytes};
    if (put->notice) give_number(sender, put, &entry);
    if (!put->fast) control_posted(&sender->control, bytes, sender->now);
    put->offset += bytes;
    dqplb_post(sender, index, &entry, action);
    puts_unlink(puts, at);
    if (put->offset < put->bytes)
        puts_append(puts, put); /* the others' turn */
    else
        dqplb_put_posted(sender, put);
}

static bool post_fast(struct dqplb_sender *sender, struct dqplb_action *action)
{
    if (!sender->fast.first || sender->fast_lane == DQPLB_MAX_LANES ||
        (sender->fast_owed && !PLANTED_BUG(BUG_DQPLB_FAST_OVERTAKES)) ||
        !lane_has_room(sender, &sender->lane[sender->fast_lane]))
        return false;
    for (struct dqplb_put **at = &sender->fast.first; *at; at = &(*at)->next) {
        if (!may_post(sender, *at, sender->fast_lane)) continue;
        post_segment(sender, &sender->fast, at, sender->fast_lane, action);
        return true;
    }
    return false;
}

static bool post_large(struct dqplb_sender *sender, struct dqplb_action *action)
{
    if (!sender->large.first || !sender->data) return false;
    for (unsigned i = 0; i < sender->terms.lanes; i++) {
        unsigned index = (sender->turn + i) % sender->terms.lanes;
        const struct dqplb_lane *lane = &sender->lane[index];
        bool full = lane->segments >= sender->limits.outstanding && !PLANTED_BUG(BUG_DQPLB_LANE_OVERFILLED);
        if (!(sender->data & lane_bit(index)) || full || !lane_has_room(sender, lane)) continue;
        for (struct dqplb_put **at = &sender->large.first; *at; at = &(*at)->next) {
            if (!may_post(sender, *at, index)) continue;
            if (!within(sender, index, next_bytes(*at))) break; /* smaller ones may not pass for ever */
            sender->turn = (index + 1) % sender->terms.lanes;
            post_segment(sender, &sender->large, at, index, action);
            return true;
        }
    }
    return false;
}

/* ---- Notices ---- */

static void raise(uint64_t *bound, uint64_t to)
{
    if (*bound < to) *bound = to;
}

/* The first lane whose plain writes of this order no immediate has followed; DQPLB_MAX_LANES: none. Immediates of
 * others have followed some: they are markers, too. */
static unsigned unmarked(struct dqplb_sender *sender, struct dqplb_put *put)
{
    struct dqplb_order *order = put->order;
    while (order->plain && !PLANTED_BUG(BUG_DQPLB_NO_MARKER)) {
        unsigned index = (unsigned)__builtin_ctzll(order->plain);
        const struct dqplb_lane *lane = &sender->lane[index];
        if (order->stamp[index] == lane->stamp) return index;
        order->plain &= order->plain - 1;
        if (PLANTED_BUG(BUG_DQPLB_MARKER_OF_OTHERS)) continue;
        raise(&put->bound, lane->bound);
        raise(&put->fast_bound, lane->fast_bound);
    }
    return DQPLB_MAX_LANES;
}

static bool post_marker(struct dqplb_sender *sender, struct dqplb_put *put, unsigned index, struct dqplb_action *action)
{
    const struct dqplb_lane *lane = &sender->lane[index];
    bool fast = index == sender->fast_lane;
    if (lane->state != DQPLB_LANE_UP || !lane_has_room(sender, lane)) return false;
    if (!lane_has_receive(lane) || (fast ? sender->fast_owed != 0 : !window_open(sender))) return false;
    struct dqplb_entry entry = {.kind = DQPLB_ENTRY_MARKER, .fast = fast};
    give_number(sender, put, &entry);
    dqplb_post(sender, index, &entry, action);
    return true;
}

static bool close_next(struct dqplb_sender *sender, struct dqplb_action *action)
{
    for (struct dqplb_put **at = &sender->closing.first; *at; at = &(*at)->next) {
        struct dqplb_put *put = *at;
        unsigned index = unmarked(sender, put);
        if (index < DQPLB_MAX_LANES) {
            if (post_marker(sender, put, index, action)) return true;
            continue;
        }
        if (sender->noticed - sender->applied >= sender->terms.notices && !PLANTED_BUG(BUG_DQPLB_PLACES_IGNORED))
            return false;
        sender->noticed++;
        *action =
            (struct dqplb_action){.kind = DQPLB_NOTICE, .put = put, .bound = put->bound, .fast_bound = put->fast_bound};
        puts_unlink(&sender->closing, at);
        dqplb_put_closed(sender, put);
        return true;
    }
    return false;
}

/* ---- Reads ---- */

static bool post_read(struct dqplb_sender *sender, struct dqplb_flush *flush, struct dqplb_action *action)
{
    for (uint64_t lanes = flush->to_read; lanes; lanes &= lanes - 1) {
        unsigned index = (unsigned)__builtin_ctzll(lanes);
        const struct dqplb_lane *lane = &sender->lane[index];
        if (lane->state == DQPLB_LANE_DOWN) flush->to_read &= ~lane_bit(index); /* all it carried went elsewhere */
        if (lane->state != DQPLB_LANE_UP || !lane_has_room(sender, lane)) continue;
        flush->to_read &= ~lane_bit(index);
        flush->reading++;
        struct dqplb_entry entry = {.of.flush = flush, .kind = DQPLB_ENTRY_READ};
        dqplb_post(sender, index, &entry, action);
        return true;
    }
    return false;
}

static bool read_next(struct dqplb_sender *sender, struct dqplb_action *action)
{
    for (struct dqplb_flush **at = &sender->reading; *at;) {
        struct dqplb_flush *flush = *at;
        bool posted = post_read(sender, flush, action);
        if (!flush->to_read) {
            *at = flush->next;
            dqplb_flush_check(sender, flush);
        } else {
            at = &flush->next;
        }
        if (posted) return true;
    }
    return false;
}

/* ---- In this order: what others wait for first ---- */

static bool take_ended(struct dqplb_sender *sender, struct dqplb_action *action)
{
    struct dqplb_put *put = sender->done.first;
    struct dqplb_flush *flush = sender->flushed;
    if (put) {
        puts_unlink(&sender->done, &sender->done.first);
        *action = (struct dqplb_action){.kind = DQPLB_DONE, .put = put, .code = sender->failed};
    } else if (flush) {
        sender->flushed = flush->next;
        *action = (struct dqplb_action){.kind = DQPLB_FLUSHED, .flush = flush, .code = sender->failed};
    }
    return put || flush;
}

enum dqplb_action_kind dqplb_next(struct dqplb_sender *sender, struct dqplb_action *action)
{
    action->kind = DQPLB_NOTHING;
    if (take_ended(sender, action)) return action->kind;
    if (sender->failed || sender->idle) return DQPLB_NOTHING;
    if (dqplb_move(sender, action) || post_fast(sender, action) || close_next(sender, action) ||
        read_next(sender, action) || post_large(sender, action) || take_ended(sender, action))
        return action->kind;
    sender->idle = true;
    return DQPLB_NOTHING;
}
