/* tries.c - one address after the other, round after round. */
#include "config.h"

#include "bootstrap/oob/tries.h"

#include "runtime/base/planted.h"

void tries_begin(struct tries *tries, size_t count, const struct tries_limits *limits, uint64_t now, uint64_t seed)
{
    *tries = (struct tries){.limits = *limits, .state = TRIES_READY, .count = count, .chance = seed};
    tries->end = limits->all_ns < UINT64_MAX - now ? now + limits->all_ns : UINT64_MAX;
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t random_below(struct tries *tries, uint64_t limit)
{
    uint64_t z = (tries->chance += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return limit ? z % limit : 0;
}

static uint64_t doubled(uint64_t value, unsigned times, uint64_t most)
{
    while (times-- && value < most) value *= 2;
    return value < most ? value : most;
}

void tries_failed(struct tries *tries, uint64_t now)
{
    if (tries->state != TRIES_TRYING) return;
    tries->state = TRIES_READY;
    if (++tries->next < tries->count && !PLANTED_BUG(BUG_OOB_ONE_ADDRESS)) return;
    uint64_t pause = doubled(tries->limits.pause_ns, tries->round, tries->limits.pause_most_ns);
    tries->next = 0;
    tries->round++;
    tries->until = now + pause / 2 + random_below(tries, pause);
    if (!PLANTED_BUG(BUG_OOB_NO_PAUSE)) tries->state = TRIES_PAUSING;
}

void tries_end_round(struct tries *tries, uint64_t now, bool soon)
{
    if (soon) tries->round = 0;
    bool ended = tries->state == TRIES_PAUSING, amid = tries->state == TRIES_READY && tries->next;
    if (!amid && !(ended && soon)) return;
    tries->next = tries->count - 1;
    tries->state = TRIES_TRYING;
    tries_failed(tries, now);
}

enum tries_action tries_step(struct tries *tries, uint64_t now)
{
    if (tries->state == TRIES_OVER) return TRIES_WAIT;
    if (now >= tries->end) {
        tries->state = TRIES_OVER;
        return TRIES_GIVE_UP;
    }
    if (tries->state == TRIES_TRYING) {
        if (now < tries->until) return TRIES_WAIT;
        tries_failed(tries, now);
        return TRIES_CLOSE;
    }
    if (tries->state == TRIES_PAUSING && now < tries->until) return TRIES_WAIT;
    tries->state = TRIES_TRYING;
    tries->until = now + doubled(tries->limits.try_ns, tries->round, TRIES_MOST_TIMES * tries->limits.try_ns);
    if (PLANTED_BUG(BUG_OOB_TRY_UNLIMITED)) tries->until = tries->end;
    return TRIES_OPEN;
}

uint64_t tries_deadline(const struct tries *tries)
{
    if (tries->state == TRIES_OVER) return UINT64_MAX;
    if (tries->state == TRIES_READY) return 0;
    return tries->until < tries->end ? tries->until : tries->end;
}
