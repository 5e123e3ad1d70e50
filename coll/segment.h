/* segment.h - the memory that ranks of a node share for one communicator's collectives (shared.h): made when it is
 * worth it, by all or by none. */
#ifndef COLL_SEGMENT_H
#define COLL_SEGMENT_H

#include "coll/shared.h"

struct segment;

/* Small slots for the collectives that are many, larger ones for long vectors. */
enum segment_level { SEGMENT_SMALL, SEGMENT_LARGE, SEGMENT_LEVELS };

/* In comm->coll. All ranks hold the same, as they make the same calls. */
struct segments {
    enum { SEGMENTS_UNKNOWN, SEGMENTS_POSSIBLE, SEGMENTS_IMPOSSIBLE } state;
    unsigned calls[SEGMENT_LEVELS]; /* that would have used one */
    struct segment *segment[SEGMENT_LEVELS];
};

/* All ranks of comm are on this node, not too many, and no segment has failed. */
bool segments_possible(struct ncclx_comm *comm);
/* For slots that hold `bytes`, or parts of them. *shared is null while there is none: the caller takes another way.
 * at_once: makes one at the first call already. Collective over comm. */
int segments_get(struct ncclx_comm *comm, size_t bytes, bool at_once, struct shared **shared);
/* The communicator ends here; it may still be in use by others. */
void segments_end(struct ncclx_comm *comm);
/* Ends what other ranks have left meanwhile; at the rank's end it waits for them, within reason. */
void segments_reap(struct ncclx_rt *rt, bool at_end);

#endif
