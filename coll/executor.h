/* executor.h - runs a schedule: the pure state machine. Events in (start, a step's completion), actions out (the
 * next step to begin).
 *
 *     executor_start(&executor);
 *     while (!executor_done(&executor)) {
 *         while ((step = executor_next(&executor)) != EXECUTOR_NOTHING) begin(step);   -- sends and receives; local steps end at once
 *         ... for each step that ended: executor_complete(&executor, step);
 *     }
 *
 * Never allocates, waits, or looks at data. May be started again once it is done.
 */
#ifndef COLL_EXECUTOR_H
#define COLL_EXECUTOR_H

#include "coll/schedule.h"

#define EXECUTOR_NOTHING UINT32_MAX

struct executor {
    const struct schedule *schedule;
    uint32_t *pending; /* of each step: dependencies that have not ended */
    uint32_t *ready;   /* steps in the order in which they became ready: each once */
    uint32_t ready_taken, ready_count;
    uint32_t left; /* steps that have not ended */
};

/* Bytes that the caller provides, aligned for uint32_t. */
size_t executor_memory(const struct schedule *schedule);
void executor_prepare(struct executor *executor, const struct schedule *schedule, void *memory);
void executor_start(struct executor *executor);
/* The next step to begin, or EXECUTOR_NOTHING until another one completes. */
uint32_t executor_next(struct executor *executor);
void executor_complete(struct executor *executor, uint32_t step);

static inline bool executor_done(const struct executor *executor)
{
    return executor->left == 0;
}

/* Tags: 16 bits for the collective's number on its communicator, 15 for the round. Half of the numbers are for persistent
 * collectives. So up to EXECUTOR_OVERLAP collectives may be in flight. */
#define EXECUTOR_SEQUENCES 32768u
#define EXECUTOR_OVERLAP (EXECUTOR_SEQUENCES / 2)
int executor_tag(uint32_t sequence, unsigned round);

#endif
