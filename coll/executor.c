/* executor.c - which steps of a schedule may begin. */
#include "coll/executor.h"

#include "runtime/base/planted.h"

size_t executor_memory(const struct schedule *schedule)
{
    /* A planted bug may start each step twice. */
    size_t lists = PLANTED_BUG(BUG_STEP_TWICE) ? 3 : 2;
    return lists * schedule->step_count * sizeof(uint32_t);
}

void executor_prepare(struct executor *executor, const struct schedule *schedule, void *memory)
{
    executor->schedule = schedule;
    executor->pending = memory;
    executor->ready = executor->pending + schedule->step_count;
    executor->ready_taken = executor->ready_count = 0;
    executor->left = 0;
}

static void make_ready(struct executor *executor, uint32_t step)
{
    executor->ready[executor->ready_count++] = step;
    if (PLANTED_BUG(BUG_STEP_TWICE) && executor->schedule->steps[step].kind == STEP_SEND &&
        executor->schedule->steps[step].dependencies > 1)
        executor->ready[executor->ready_count++] = step;
}

void executor_start(struct executor *executor)
{
    const struct schedule *schedule = executor->schedule;
    bool stale = PLANTED_BUG(BUG_RESTART_STALE) && executor->ready_count;
    executor->ready_taken = executor->ready_count = 0;
    executor->left = schedule->step_count;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (!stale) executor->pending[i] = schedule->steps[i].dependencies;
        if (!executor->pending[i]) make_ready(executor, i);
    }
}

void executor_complete(struct executor *executor, uint32_t step)
{
    const struct schedule *schedule = executor->schedule;
    const struct step *ended = &schedule->steps[step];
    const uint32_t *successors = schedule->successors + ended->first_successor;
    for (uint32_t i = 0; i < ended->successor_count; i++) {
        uint32_t left = --executor->pending[successors[i]];
        if (PLANTED_BUG(BUG_DEPENDENCY_IGNORED) && schedule->steps[successors[i]].dependencies > 1) {
            if (left == 1) make_ready(executor, successors[i]);
        } else if (left == 0) {
            make_ready(executor, successors[i]);
        }
    }
    executor->left--;
    if (PLANTED_BUG(BUG_DONE_EARLY) && executor->left == 1 && executor->ready_taken == executor->ready_count) executor->left = 0;
}

uint32_t executor_next(struct executor *executor)
{
    while (executor->ready_taken < executor->ready_count) {
        uint32_t step = executor->ready[executor->ready_taken++];
        if (executor->schedule->steps[step].kind != STEP_JOIN) return step;
        executor_complete(executor, step);
    }
    return EXECUTOR_NOTHING;
}

int executor_tag(uint32_t sequence, unsigned round)
{
    if (PLANTED_BUG(BUG_TAG_REUSED)) sequence = 0;
    if (PLANTED_BUG(BUG_ROUND_IGNORED)) round = 0;
    return (int)((sequence & 0xffffu) << 15 | (round & (SCHEDULE_ROUNDS - 1)));
}
