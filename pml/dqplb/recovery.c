/* recovery.c - lanes come up, fail, and come up again: what becomes of their entries. */
#include "pml/dqplb/private.h"

/* Its entries will go to the fast lane, which they have to precede there: beside it they would not be in order. */
static bool follows_fast_lane(const struct dqplb_sender *sender, unsigned index)
{
    return sender->fast_owed & lane_bit(index) && sender->fast_lane < DQPLB_MAX_LANES && !PLANTED_BUG(BUG_DQPLB_RETURNS_BESIDE);
}

bool dqplb_lane_may_open(const struct dqplb_sender *sender, unsigned index)
{
    if (index >= sender->terms.lanes || sender->failed) return false;
    const struct dqplb_lane *lane = &sender->lane[index];
    if (lane->state != DQPLB_LANE_MOVING) return lane->state == DQPLB_LANE_DOWN;
    return lane->heir == DQPLB_MAX_LANES && !follows_fast_lane(sender, index);
}

bool dqplb_has_hope(const struct dqplb_sender *sender, uint64_t gone)
{
    for (unsigned i = 0; i < sender->terms.lanes; i++) {
        bool may = PLANTED_BUG(BUG_DQPLB_HOPES_IN_VAIN) || dqplb_lane_may_open(sender, i);
        enum dqplb_lane_state state = sender->lane[i].state;
        if (state == DQPLB_LANE_UP || state == DQPLB_LANE_FAILED || (may && !(gone & lane_bit(i)))) return true;
    }
    return false;
}

bool dqplb_holds(const struct dqplb_sender *sender)
{
    for (unsigned i = 0; i < sender->terms.lanes; i++)
        if (sender->lane[i].head != sender->lane[i].tail) return true;
    return false;
}

int dqplb_lane_up(struct dqplb_sender *sender, unsigned index)
{
    if (!dqplb_lane_may_open(sender, index)) return base_error(NCCLX_ERR_ARG, "lane %u is not down", index);
    struct dqplb_lane *lane = &sender->lane[index];
    if (!lane->ring) lane->ring = base_alloc(AREA_PML, ((size_t)sender->ring_mask + 1) * sizeof *lane->ring);
    if (!lane->ring) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a lane");
    lane->state = DQPLB_LANE_UP;
    lane->life++;
    lane->receives = sender->terms.receives;
    lane->numbered = 0;
    lane->sent = lane->head;
    sender->moving &= ~lane_bit(index);
    if (lane->sent != lane->tail) sender->returned |= lane_bit(index);
    sender->up |= lane_bit(index);
    dqplb_lanes_changed(sender);
    return NCCLX_SUCCESS;
}

void dqplb_lane_failed(struct dqplb_sender *sender, unsigned index)
{
    if (index >= sender->terms.lanes || sender->lane[index].state != DQPLB_LANE_UP) return;
    sender->lane[index].state = DQPLB_LANE_FAILED;
    sender->lane[index].heir = DQPLB_MAX_LANES;
    sender->up &= ~lane_bit(index);
    sender->returned &= ~lane_bit(index);
    if (index == sender->fast_lane) sender->fast_owed |= lane_bit(index);
    dqplb_lanes_changed(sender);
}

/* Nothing of the lane is left. What waited to follow its entries goes where they went. */
static void lane_ended(struct dqplb_sender *sender, unsigned index)
{
    struct dqplb_lane *lane = &sender->lane[index];
    lane->state = DQPLB_LANE_DOWN;
    lane->stamp++; /* nothing that it carried needs a marker there */
    lane->bound = lane->fast_bound = 0;
    sender->moving &= ~lane_bit(index);
    sender->fast_owed &= ~lane_bit(index);
    sender->idle = false;
    for (uint64_t others = sender->moving; others; others &= others - 1) {
        struct dqplb_lane *other = &sender->lane[__builtin_ctzll(others)];
        if (other->heir == index) other->heir = lane->heir;
    }
}

/* ---- What the target has ---- */

static bool counted(const struct dqplb_entry *entry)
{
    return entry->kind == DQPLB_ENTRY_NUMBERED || entry->kind == DQPLB_ENTRY_MARKER;
}

static bool has(const struct dqplb_sender *sender, const struct dqplb_report *report, const struct dqplb_entry *entry)
{
    if (entry->fast) return entry->number < report->fast_next;
    uint64_t place = entry->number & (sender->terms.window - 1);
    return entry->number < report->next || (report->early[place / 64] >> (place & 63) & 1);
}

/* How many of its entries, from the oldest, are placed for certain: those up to the last whose number has come. False:
 * a number has come, and one before it on the same lane has not. */
static bool placed_entries(const struct dqplb_sender *sender, const struct dqplb_lane *lane,
                           const struct dqplb_report *report, uint32_t *placed)
{
    bool missing = false;
    *placed = 0;
    for (uint32_t i = lane->head; i != lane->tail; i++) {
        const struct dqplb_entry *entry = &lane->ring[i & sender->ring_mask];
        if (!counted(entry)) continue;
        if (!has(sender, report, entry))
            missing = true;
        else if (missing)
            return false;
        else
            *placed = i + 1 - lane->head;
    }
    return true;
}

int dqplb_lane_reported(struct dqplb_sender *sender, unsigned index, const struct dqplb_report *report)
{
    uint32_t placed;
    if (index >= sender->terms.lanes || sender->lane[index].state != DQPLB_LANE_FAILED ||
        report->life != sender->lane[index].life || report->next > sender->next ||
        report->fast_next > sender->fast_next || !placed_entries(sender, &sender->lane[index], report, &placed))
        return base_error(NCCLX_ERR_TRANSPORT, "a report about a lane that cannot be");
    struct dqplb_lane *lane = &sender->lane[index];
    lane->state = DQPLB_LANE_MOVING;
    if (report->next > sender->expected) sender->expected = report->next;
    sender->moving |= lane_bit(index);
    if (PLANTED_BUG(BUG_DQPLB_PLACED_AGAIN)) placed = 0;
    while (placed--) {
        lane->ring[lane->head & sender->ring_mask].posted_ns = 0; /* as late as the report */
        dqplb_entry_ended(sender, index);
    }
    if (lane->head == lane->tail) lane_ended(sender, index);
    sender->idle = false;
    return NCCLX_SUCCESS;
}

/* ---- The rest goes to another lane, in its order ---- */

/* Numbers of the fast lane come in order: they stay on one. */
static unsigned choose_heir(const struct dqplb_sender *sender, unsigned index)
{
    if (sender->fast_owed & lane_bit(index)) return sender->fast_lane;
    unsigned best = DQPLB_MAX_LANES;
    uint32_t least = UINT32_MAX;
    for (uint64_t lanes = sender->up; lanes; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(lanes);
        uint32_t used = sender->lane[lane].tail - sender->lane[lane].head;
        if (used >= least) continue;
        best = lane;
        least = used;
    }
    return best;
}

/* A flush that has chosen its lanes already has to read this one, too. */
static void read_again(struct dqplb_sender *sender, const struct dqplb_put *put, unsigned heir)
{
    struct dqplb_flush *flush = put->order->first_flush;
    while (flush && flush->epoch < put->epoch) flush = flush->later;
    if (!sender->terms.reads || !flush || !flush->posted || PLANTED_BUG(BUG_DQPLB_MOVED_NOT_READ)) return;
    if (!flush->to_read) dqplb_flush_reads(sender, flush);
    flush->to_read |= lane_bit(heir);
}

/* The lane has come up again before another could take over. */
static bool post_returned(struct dqplb_sender *sender, struct dqplb_action *action)
{
    for (uint64_t lanes = sender->returned; lanes; lanes &= lanes - 1) {
        unsigned index = (unsigned)__builtin_ctzll(lanes);
        struct dqplb_lane *lane = &sender->lane[index];
        struct dqplb_entry *entry = &lane->ring[lane->sent & sender->ring_mask];
        if (counted(entry) && !lane_has_receive(lane)) continue;
        entry->posted_ns = 0;
        dqplb_post_again(sender, index, entry, action);
        if (lane->sent == lane->tail) {
            sender->returned &= ~lane_bit(index);
            sender->fast_owed &= ~lane_bit(index);
        }
        return true;
    }
    return false;
}

bool dqplb_move(struct dqplb_sender *sender, struct dqplb_action *action)
{
    if (post_returned(sender, action)) return true;
    for (uint64_t lanes = sender->moving; lanes; lanes &= lanes - 1) {
        unsigned index = (unsigned)__builtin_ctzll(lanes);
        struct dqplb_lane *lane = &sender->lane[index];
        if (lane->heir == DQPLB_MAX_LANES || PLANTED_BUG(BUG_DQPLB_SCATTERED))
            lane->heir = (uint8_t)choose_heir(sender, index);
        if (lane->heir == DQPLB_MAX_LANES) continue;
        struct dqplb_lane *heir = &sender->lane[lane->heir];
        struct dqplb_entry entry = lane->ring[lane->head & sender->ring_mask];
        if (heir->state != DQPLB_LANE_UP || !lane_has_room(sender, heir) ||
            (counted(&entry) && !lane_has_receive(heir)))
            continue;
        if (is_segment(&entry)) {
            dqplb_segment_leaves(sender, index, &entry);
            read_again(sender, entry.of.put, lane->heir);
        }
        entry.posted_ns = 0;
        lane->head++;
        dqplb_post(sender, lane->heir, &entry, action);
        if (lane->head == lane->tail) lane_ended(sender, index);
        return true;
    }
    return false;
}
