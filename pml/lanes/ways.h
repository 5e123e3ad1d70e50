/* ways.h - which way a large put takes to its peer while nothing else is under way to it, learnt from what such puts took of late
 * (runtime/base/choice.h): a pure core.
 *
 *   spread   over all lanes, without a copy at this end where that is possible: as puts go that follow each other
 *   copied   on one lane, copied into it: spares handing over between lanes, and between cores that share a cache a copy is cheap
 *   whole    on one lane, without a copy
 *
 * A choice for each class of sizes, which is double the one below. A put that others join while it is under way tells nothing. */
#ifndef PML_LANES_WAYS_H
#define PML_LANES_WAYS_H

#include "runtime/base/choice.h"

#include <stddef.h>
#include <stdint.h>

enum lanes_way { WAY_SPREAD, WAY_COPIED, WAY_WHOLE, WAYS };
_Static_assert(WAYS <= CHOICE_WAYS, "a choice of them all");

#define WAYS_LEAST ((size_t)65536)
#define WAYS_CLASSES 10 /* the last: from 32 MiB on */

struct lanes_ways {
    struct choice choice[WAYS_CLASSES]; /* all zero: not used yet */
    const void *timed;                  /* the put that is; null: none */
    uint64_t begun, bytes;
    enum lanes_way way; /* of it */
};

/* A put is about to go, alone. spares: lanes can do without a copy. */
enum lanes_way ways_begin(struct lanes_ways *ways, const void *put, uint64_t bytes, bool spares, uint64_t now_ns);
/* Another one joins. */
static inline void ways_disturb(struct lanes_ways *ways)
{
    ways->timed = NULL;
}
/* This one is there. */
void ways_end(struct lanes_ways *ways, const void *put, uint64_t now_ns);

#endif
