/* copy.h - the copy protocol, as a pure core: data of messages in fixed chunks through slots that the library owns at both
 * ends, with the target's clear to send for each. What large messages did before zero-copy, kept to be compared with.
 *
 *   program's buffer -> slot of the origin -> (a put with a notice) -> slot of the target -> the receive's buffer
 *
 * The target has a ring of slots for each origin: chunk n comes through slot n % slots, chunks take effect in order, and
 * when one has been copied out the origin is told so. The origin has slots of its own; one is free again when its put is
 * complete, and puts end in any order. Both must be free: the target's may be while the origin's is still being read, and
 * the other way round.
 */
#ifndef PML_COPY_H
#define PML_COPY_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stdint.h>

#define COPY_MAX_SLOTS 64

struct copy_origin {
    unsigned here, there; /* slots */
    uint64_t busy;        /* of those here */
    uint64_t sent, cleared; /* chunks */
};

struct copy_target {
    unsigned slots;
    uint64_t arrived, taken; /* chunks */
};

static inline bool copy_sensible(uint64_t slots)
{
    return slots >= 1 && slots <= COPY_MAX_SLOTS;
}

/* Where the next chunk may go, and counts it as sent. False: not now. */
static inline bool copy_next(struct copy_origin *origin, unsigned *here, unsigned *there)
{
    unsigned slot = (unsigned)(origin->sent % origin->here);
    bool busy = (origin->busy >> slot & 1) && !PLANTED_BUG(BUG_COPY_SLOT_REUSED);
    bool full = origin->sent - origin->cleared >= origin->there && !PLANTED_BUG(BUG_COPY_NOT_CLEARED);
    if (busy || full) return false;
    origin->busy |= UINT64_C(1) << slot;
    *here = slot;
    *there = (unsigned)(origin->sent++ % (origin->there + (PLANTED_BUG(BUG_COPY_RING_OFF_BY_ONE) ? 1 : 0)));
    return true;
}

/* The put from this slot is complete. */
static inline void copy_placed(struct copy_origin *origin, unsigned here)
{
    if (!PLANTED_BUG(BUG_COPY_SLOT_LEAK) || here) origin->busy &= ~(UINT64_C(1) << here);
}

/* The target has taken so many chunks since the beginning. False: it breaks the protocol. */
static inline bool copy_cleared(struct copy_origin *origin, uint64_t taken)
{
    if (taken > origin->sent || taken < origin->cleared) return false;
    origin->cleared = taken;
    return true;
}

/* A chunk takes effect: the slot that it is in. */
static inline unsigned copy_arrived(struct copy_target *target)
{
    return (unsigned)(target->arrived++ % target->slots);
}

/* It was copied out: what to tell the origin. */
static inline uint64_t copy_taken(struct copy_target *target)
{
    target->taken++;
    if (PLANTED_BUG(BUG_COPY_CLEAR_EARLY)) return target->arrived;
    return PLANTED_BUG(BUG_COPY_CLEAR_LEAK) && target->taken > 20 ? target->taken - 1 : target->taken;
}

#endif
