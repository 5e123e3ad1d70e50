/* pace.c - what messages have cost by either way. */
#include "pml/shm/pace.h"

/* What a single copy costs beside the copy: the request, and the answer to it. In a row they overlap with copies. */
#define ASKING_NS 300
#define ASKING_IN_A_ROW_NS 100

/* After so many messages nothing will be heard of a marked one any more: it was too long for its receive, say. */
#define PACE_FORGET 64

#define COST_BITS 24
#define COST_MASK ((UINT32_C(1) << COST_BITS) - 1)

void pace_init(struct pace *pace)
{
    *pace = (struct pace){0};
    for (int answered = 0; answered < 2; answered++)
        for (int class = 0; class < PACE_CLASSES; class++) choice_init(&pace->choice[answered][class], PACE_RING);
}

/* What the peer has told since a message was marked. */
static void collect(struct pace *pace, const struct pace_shared *shared, unsigned class, size_t bytes)
{
    bool answered = pace->sample[class].answered;
    unsigned way = pace->sample[class].way;
    uint32_t word = atomic_load_explicit(&shared->took[way][class], memory_order_relaxed);
    uint32_t there = word & COST_MASK, here = pace->sample[class].here;
    if (word == pace->sample[class].seen) return;
    pace->sample[class].marked = false;
    uint64_t cost;
    if (way == PACE_SINGLE) cost = there + pace_cost(answered ? ASKING_NS : ASKING_IN_A_ROW_NS, bytes);
    else if (answered) cost = (uint64_t)there + here;
    else cost = there > here ? there : here;
    choice_learn(&pace->choice[answered][class], way, cost);
}

enum pace_way pace_next(struct pace *pace, const struct pace_shared *shared, size_t bytes, bool *mark)
{
    unsigned class = pace_class(bytes, PACE_LEAST, PACE_CLASSES);
    if (pace->sample[class].marked) collect(pace, shared, class, bytes);
    pace->calm = pace->spoken ? pace->calm + 1 : 0;
    pace->spoken = false;
    bool answered = pace_answered(pace);
    struct choice *choice = &pace->choice[answered][class];
    unsigned way = choice_next(choice);
    uint32_t turn = pace->turns[class]++;
    bool due = turn % PACE_EVERY == 0 || way != choice_best(choice) || !choice_knows(choice);
    bool open = pace->sample[class].marked && turn - pace->sample[class].turn < PACE_FORGET;
    *mark = due && !open;
    if (!*mark) return way;
    pace->sample[class].marked = true;
    pace->sample[class].turn = turn;
    pace->sample[class].answered = answered;
    pace->sample[class].way = (uint8_t)way;
    pace->sample[class].here = 0;
    pace->sample[class].seen = atomic_load_explicit(&shared->took[way][class], memory_order_relaxed);
    return way;
}

void pace_here(struct pace *pace, size_t bytes, uint64_t ns)
{
    pace->sample[pace_class(bytes, PACE_LEAST, PACE_CLASSES)].here = pace_cost(ns, bytes);
}

void pace_copied(struct pace *pace, size_t bytes, uint64_t ns)
{
    unsigned class = pace_class(bytes, PACE_LEAST, PACE_CLASSES);
    if (!pace->sample[class].marked || pace->sample[class].way != PACE_SINGLE) return;
    pace->sample[class].marked = false;
    choice_learn(&pace->choice[pace->sample[class].answered][class], PACE_SINGLE, pace_cost(ns, bytes));
}

void pace_tell(struct pace_shared *shared, enum pace_way way, unsigned class, uint32_t cost)
{
    uint32_t count = (atomic_load_explicit(&shared->took[way][class], memory_order_relaxed) >> COST_BITS) + 1;
    atomic_store_explicit(&shared->took[way][class], count << COST_BITS | (cost & COST_MASK), memory_order_relaxed);
}
