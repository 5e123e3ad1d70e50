/* budget.h - what the connections of a process keep in flight together through one port of a network card: a pure core.
 *
 * Each of them may have its least window (control.h) in flight, whatever the others do: nobody starves, and a new one need not
 * wait for old ones. What is more than that is posted only if with it all of the port is within the budget. Who is refused waits in
 * a queue, and whoever comes later waits behind, also who has just given something back: so each of those that wait gets one segment in
 * turn, which makes their rates equal, and what one does not use is the others'. A connection with nothing in flight holds
 * nothing. The driver asks budget_next whenever something was given back, and lets that connection post. */
#ifndef PML_DQPLB_BUDGET_H
#define PML_DQPLB_BUDGET_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dqplb_share;

/* Of a port. All zero: no bound. */
struct dqplb_budget {
    uint64_t bytes; /* 0: no bound */
    uint64_t used;
    struct dqplb_share *first, *last; /* that wait */
    struct dqplb_share *turn;         /* may post one segment before those that wait */
};

/* Of a connection. Budget null: it has none to keep to. */
struct dqplb_share {
    struct dqplb_budget *budget;
    struct dqplb_share *next;
    uint64_t used, wanted;
    bool waiting;
};

/* Of what all ranks of a node may have in flight through the port. They need not know of each other: each has an equal part. */
static inline uint64_t budget_part(uint64_t bytes, int ranks)
{
    uint64_t among = ranks > 1 ? (uint64_t)ranks : 1;
    return bytes / among + (bytes % among != 0);
}

/* Whether so many bytes, which are not of its least window, may be posted now. If not, it waits for its turn. */
bool budget_may(struct dqplb_share *share, uint64_t bytes);
/* The next one that may post a segment; null: nobody. */
struct dqplb_share *budget_next(struct dqplb_budget *budget);
/* It waits no longer. */
void budget_leave(struct dqplb_share *share);

static inline void budget_take(struct dqplb_share *share, uint64_t bytes)
{
    share->used += bytes;
    if (share->budget) share->budget->used += bytes;
}

static inline void budget_give(struct dqplb_share *share, uint64_t bytes)
{
    share->used -= bytes;
    if (share->budget) share->budget->used -= bytes;
}

#endif
