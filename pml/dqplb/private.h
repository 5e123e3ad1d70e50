/* private.h - shared by the files of DQPLB's sender. */
#ifndef PML_DQPLB_PRIVATE_H
#define PML_DQPLB_PRIVATE_H

#include "pml/dqplb/dqplb.h"

#include "runtime/base/base.h"

static inline uint64_t lane_bit(unsigned lane)
{
    return UINT64_C(1) << lane;
}

static inline bool lane_has_room(const struct dqplb_sender *sender, const struct dqplb_lane *lane)
{
    return lane->tail - lane->head < sender->terms.depth && lane->sent == lane->tail;
}

/* Whether an immediate finds a receive on the lane. */
static inline bool lane_has_receive(const struct dqplb_lane *lane)
{
    return lane->numbered < lane->receives || PLANTED_BUG(BUG_DQPLB_CREDIT_IGNORED);
}

/* Bytes that a lane may always have in flight. */
static inline uint64_t lane_least(const struct dqplb_sender *sender, unsigned lane)
{
    uint64_t segments = PLANTED_BUG(BUG_DQPLB_LANE_STARVES) ? 1 : 2;
    return sender->data & lane_bit(lane) ? segments * sender->limits.segment : 0;
}

static inline uint64_t lane_over(const struct dqplb_sender *sender, unsigned lane, uint64_t bytes)
{
    uint64_t least = lane_least(sender, lane);
    return bytes > least ? bytes - least : 0;
}

/* What all lanes have beyond, once this one has so many bytes. */
static inline uint64_t over_with(const struct dqplb_sender *sender, unsigned lane, uint64_t bytes)
{
    return sender->over - lane_over(sender, lane, sender->lane[lane].bytes) + lane_over(sender, lane, bytes);
}

static inline bool is_segment(const struct dqplb_entry *entry)
{
    return entry->kind == DQPLB_ENTRY_PLAIN || entry->kind == DQPLB_ENTRY_NUMBERED;
}

static inline void puts_append(struct dqplb_puts *puts, struct dqplb_put *put)
{
    put->next = NULL;
    *puts->last = put;
    puts->last = &put->next;
}

/* *at is one of them. */
static inline void puts_unlink(struct dqplb_puts *puts, struct dqplb_put **at)
{
    struct dqplb_put *put = *at;
    *at = put->next;
    if (!put->next) puts->last = at;
}

/* sender.c: a segment is in flight on this lane; or no longer. */
void dqplb_segment_enters(struct dqplb_sender *sender, unsigned lane, const struct dqplb_entry *entry);
void dqplb_segment_leaves(struct dqplb_sender *sender, unsigned lane, const struct dqplb_entry *entry);
/* An entry has ended on this lane, where it was the oldest. */
void dqplb_entry_ended(struct dqplb_sender *sender, unsigned lane);
/* All segments of a put are posted. */
void dqplb_put_posted(struct dqplb_sender *sender, struct dqplb_put *put);
/* And its notice is sent. */
void dqplb_put_closed(struct dqplb_sender *sender, struct dqplb_put *put);
/* After a change in which lanes are up. */
void dqplb_lanes_changed(struct dqplb_sender *sender);
/* It has lanes to read. */
void dqplb_flush_reads(struct dqplb_sender *sender, struct dqplb_flush *flush);
void dqplb_flush_check(struct dqplb_sender *sender, struct dqplb_flush *flush);

/* post.c: puts an entry on a lane that has room, and a receive if it needs one, and says what is to be written. */
void dqplb_post(struct dqplb_sender *sender, unsigned lane, const struct dqplb_entry *entry,
                struct dqplb_action *action);
/* The same for an entry that is there already. */
void dqplb_post_again(struct dqplb_sender *sender, unsigned lane, const struct dqplb_entry *entry,
                      struct dqplb_action *action);

/* recovery.c: one entry of a lane that has ended goes to its heir. */
bool dqplb_move(struct dqplb_sender *sender, struct dqplb_action *action);

#endif
