/* pace.c - what messages have cost by either way. */
#include "pml/shm/pace.h"

#include "runtime/base/planted.h"

/* What a single copy costs beside the copy: the request, and the answer to it. In a row they overlap with copies. */
#define ASKING_NS 300
#define ASKING_IN_A_ROW_NS 100

/* After so many messages nothing will be heard of a marked one any more: it was too long for its receive, say. */
#define PACE_FORGET 64

#define COST_BITS 24
#define COST_MASK ((UINT32_C(1) << COST_BITS) - 1)

void pace_init(struct pace *pace, bool singles)
{
    *pace = (struct pace){0};
    for (int answered = 0; answered < 2; answered++)
        for (int class = 0; class < PACE_CLASSES; class++)
            choice_init(&pace->choice[answered][class], singles && class >= PACE_SINGLE_CLASS ? PACE_WAYS : PACE_SINGLE, PACE_RING);
}

/* What the peer has told since a message was marked. */
static void collect(struct pace *pace, const struct pace_shared *shared, unsigned way, unsigned class, size_t bytes)
{
    struct pace_sample *sample = &pace->sample[way][class];
    uint32_t word = atomic_load_explicit(&shared->took[way][class], memory_order_relaxed);
    uint32_t there = word & COST_MASK, here = sample->here;
    if (!sample->marked || word == sample->seen) return;
    sample->marked = false;
    uint64_t cost;
    if (way == PACE_SINGLE) cost = there + pace_cost(sample->answered ? ASKING_NS : ASKING_IN_A_ROW_NS, bytes);
    else if (sample->answered) cost = (uint64_t)there + here;
    else cost = there > here ? there : here;
    choice_learn(&pace->choice[sample->answered][class], way, cost);
}

/* A sender in a row is ahead of what it hears: marks one message after the other, and what the peer tells next is of one of them. */
static bool mark_sample(struct pace_sample *sample, const _Atomic uint32_t *took, bool answered, uint32_t turn)
{
    bool open = sample->marked && turn - sample->turn < PACE_FORGET;
    if (open) return !answered && !sample->answered;
    *sample = (struct pace_sample){.marked = true, .answered = answered, .turn = turn};
    sample->seen = atomic_load_explicit(took, memory_order_relaxed);
    return true;
}

enum pace_way pace_next(struct pace *pace, const struct pace_shared *shared, size_t bytes, bool *mark)
{
    unsigned class = pace_class(bytes, PACE_LEAST, PACE_CLASSES);
    for (unsigned way = 0; way < PACE_WAYS; way++) collect(pace, shared, way, class, bytes);
    pace->calm = pace->spoken ? pace->calm + 1 : 0;
    pace->spoken = false;
    bool answered = pace_answered(pace) && !PLANTED_BUG(BUG_PACE_CALM_IGNORED);
    struct choice *choice = &pace->choice[answered][class];
    unsigned way = choice_next(choice);
    uint32_t turn = pace->turns[class]++;
    bool due = turn % PACE_EVERY == 0 || way != choice_best(choice) || !choice_knows(choice) || choice_wonders(choice);
    for (unsigned other = 0; other < PACE_WAYS && PLANTED_BUG(BUG_PACE_ONE_AT_A_TIME); other++)
        due = due && (other == way || !pace->sample[other][class].marked);
    *mark = due && mark_sample(&pace->sample[way][class], &shared->took[way][class], answered, turn);
    return way;
}

bool pace_waits(const struct pace *pace, enum pace_way way, size_t bytes)
{
    const struct pace_sample *sample = &pace->sample[way][pace_class(bytes, PACE_LEAST, PACE_CLASSES)];
    return sample->marked && !sample->answered;
}

void pace_here(struct pace *pace, enum pace_way way, size_t bytes, uint64_t ns)
{
    pace->sample[way][pace_class(bytes, PACE_LEAST, PACE_CLASSES)].here = pace_cost(ns, bytes);
}

void pace_copied(struct pace *pace, size_t bytes, uint64_t ns)
{
    unsigned class = pace_class(bytes, PACE_LEAST, PACE_CLASSES);
    struct pace_sample *sample = &pace->sample[PACE_SINGLE][class];
    if (!sample->marked) return;
    sample->marked = false;
    choice_learn(&pace->choice[sample->answered][class], PACE_SINGLE, pace_cost(ns, bytes));
}

void pace_tell(struct pace_shared *shared, enum pace_way way, unsigned class, uint32_t cost)
{
    uint32_t count = (atomic_load_explicit(&shared->took[way][class], memory_order_relaxed) >> COST_BITS) + 1;
    atomic_store_explicit(&shared->took[way][class], count << COST_BITS | (cost & COST_MASK), memory_order_relaxed);
}
