/* tracker.c - the target's half of a connection: numbers, notices, credits. */
#include "pml/dqplb/private.h"

#include <string.h>

int dqplb_tracker_init(struct dqplb_tracker *tracker, const struct dqplb_terms *terms)
{
    memset(tracker, 0, sizeof *tracker);
    tracker->terms = *terms;
    tracker->early = base_calloc(AREA_PML, terms->window / 64, sizeof *tracker->early);
    tracker->notice = base_calloc(AREA_PML, terms->notices, sizeof *tracker->notice);
    if (tracker->early && tracker->notice) return NCCLX_SUCCESS;
    dqplb_tracker_release(tracker);
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for a connection");
}

void dqplb_tracker_release(struct dqplb_tracker *tracker)
{
    base_free(AREA_PML, tracker->early);
    base_free(AREA_PML, tracker->notice);
    tracker->early = NULL;
    tracker->notice = NULL;
}

void dqplb_tracker_lane_up(struct dqplb_tracker *tracker, unsigned lane)
{
    tracker->lane[lane].life++;
    tracker->lane[lane].taken = tracker->lane[lane].told = 0;
    tracker->due &= ~lane_bit(lane);
}

/* ---- Numbers ---- */

static bool test_and_set(uint64_t *word, uint64_t bit)
{
    bool was = *word & bit;
    *word |= bit;
    return was;
}

static void advance(struct dqplb_tracker *tracker)
{
    uint64_t mask = tracker->terms.window - 1;
    for (;;) {
        uint64_t *word = &tracker->early[(tracker->next & mask) / 64], bit = lane_bit(tracker->next & 63);
        if (!(*word & bit)) return;
        if (!PLANTED_BUG(BUG_DQPLB_EARLY_KEPT) || tracker->next % 7) *word &= ~bit;
        tracker->next++;
    }
}

static int count_fast(struct dqplb_tracker *tracker, uint32_t number)
{
    if (number != (tracker->fast_next & DQPLB_NUMBER_MASK))
        return base_error(NCCLX_ERR_TRANSPORT, "the fast lane is out of order: number %u instead of %u", number,
                          (unsigned)(tracker->fast_next & DQPLB_NUMBER_MASK));
    tracker->fast_next++;
    return NCCLX_SUCCESS;
}

static int count(struct dqplb_tracker *tracker, uint32_t number)
{
    uint64_t ahead = (number - tracker->next) & DQPLB_NUMBER_MASK, mask = tracker->terms.window - 1;
    if (ahead >= tracker->terms.window)
        return base_error(NCCLX_ERR_TRANSPORT, "number %u is outside the window of %u from %u", number,
                          tracker->terms.window, (unsigned)(tracker->next & DQPLB_NUMBER_MASK));
    uint64_t full = tracker->next + ahead;
    if (test_and_set(&tracker->early[(full & mask) / 64], lane_bit(full & 63)))
        return base_error(NCCLX_ERR_TRANSPORT, "number %u has come twice", number);
    if (ahead == 0) advance(tracker);
    return NCCLX_SUCCESS;
}

int dqplb_arrived(struct dqplb_tracker *tracker, unsigned lane, uint32_t immediate)
{
    if (lane >= tracker->terms.lanes || immediate & DQPLB_RESERVED)
        return base_error(NCCLX_ERR_TRANSPORT, "an immediate that cannot be: %#x", immediate);
    tracker->lane[lane].taken++;
    uint64_t unknown = tracker->lane[lane].taken - tracker->lane[lane].told;
    if (unknown > tracker->terms.receives)
        return base_error(NCCLX_ERR_TRANSPORT, "more immediates on lane %u than it has receives", lane);
    if (2 * unknown >= tracker->terms.receives) tracker->due |= lane_bit(lane);
    uint32_t number = immediate & DQPLB_NUMBER_MASK;
    return immediate & DQPLB_FAST ? count_fast(tracker, number) : count(tracker, number);
}

/* ---- Notices ---- */

int dqplb_noticed(struct dqplb_tracker *tracker, uint32_t order, uint64_t bound, uint64_t fast_bound, uint64_t token)
{
    if (tracker->waiting == tracker->terms.notices)
        return base_error(NCCLX_ERR_TRANSPORT, "more notices than there are places");
    /* Numbers that have come, but were not looked at yet, are no more than all receives together. */
    if (bound > tracker->next + DQPLB_NUMBER_MASK || fast_bound > tracker->fast_next + DQPLB_NUMBER_MASK)
        return base_error(NCCLX_ERR_TRANSPORT, "a notice whose bounds cannot be");
    tracker->notice[tracker->waiting++] =
        (struct dqplb_notice){.bound = bound, .fast_bound = fast_bound, .token = token, .order = order};
    return NCCLX_SUCCESS;
}

static bool has_come(const struct dqplb_tracker *tracker, unsigned index)
{
    const struct dqplb_notice *notice = &tracker->notice[index];
    if (notice->bound > tracker->next && !PLANTED_BUG(BUG_DQPLB_NOTICE_EARLY)) return false;
    if (notice->fast_bound > tracker->fast_next) return false;
    if (!notice->order || PLANTED_BUG(BUG_DQPLB_NOTICES_OVERTAKE)) return true;
    for (unsigned i = 0; i < index; i++)
        if (tracker->notice[i].order == notice->order) return false;
    return true;
}

bool dqplb_apply(struct dqplb_tracker *tracker, uint64_t *token)
{
    for (unsigned i = 0; i < tracker->waiting; i++) {
        if (!has_come(tracker, i)) continue;
        *token = tracker->notice[i].token;
        tracker->waiting--;
        memmove(&tracker->notice[i], &tracker->notice[i + 1], (tracker->waiting - i) * sizeof tracker->notice[0]);
        tracker->applied++;
        return true;
    }
    return false;
}

/* ---- Credits ---- */

bool dqplb_credit_due(struct dqplb_tracker *tracker, unsigned *lane, uint32_t *life, uint64_t *receives)
{
    if (!tracker->due) return false;
    *lane = (unsigned)__builtin_ctzll(tracker->due);
    tracker->due &= tracker->due - 1;
    *life = tracker->lane[*lane].life;
    tracker->lane[*lane].told = tracker->lane[*lane].taken;
    *receives = tracker->lane[*lane].taken + tracker->terms.receives - (PLANTED_BUG(BUG_DQPLB_CREDIT_LEAK) ? 1 : 0);
    return true;
}

bool dqplb_progress_due(struct dqplb_tracker *tracker, uint64_t *expected, uint64_t *applied)
{
    if (2 * (tracker->applied - tracker->applied_told) < tracker->terms.notices &&
        2 * (tracker->next - tracker->next_told) < tracker->terms.window)
        return false;
    *expected = tracker->next_told = tracker->next;
    *applied = tracker->applied_told = tracker->applied;
    return true;
}

/* ---- The end of a lane ---- */

void dqplb_lane_closed(struct dqplb_tracker *tracker, unsigned lane, struct dqplb_report *report)
{
    tracker->due &= ~lane_bit(lane);
    memset(report, 0, sizeof *report);
    report->life = tracker->lane[lane].life;
    report->next = tracker->next;
    report->fast_next = tracker->fast_next;
    memcpy(report->early, tracker->early, tracker->terms.window / 8);
}
