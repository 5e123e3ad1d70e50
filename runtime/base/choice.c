/* choice.c - trials, and what they show. */
#include "runtime/base/choice.h"

#include "runtime/base/planted.h"

/* A slower sample draws the cost up by one part in RISE of the difference, and counts as CEILING times the cost at most. */
#define RISE 8
#define CEILING 2

enum { EARLY_NONE, EARLY_DUE, EARLY_MADE };

/* CHOICE_TRIAL calls lose what the other way takes longer: so many calls make up for that. */
static uint16_t pause_of(const struct choice *choice)
{
    uint64_t best = choice->cost[choice->best], other = choice->cost[!choice->best];
    if (!best || other <= best) return CHOICE_PAUSE;
    uint64_t pause = (other - best) * CHOICE_TRIAL * CHOICE_LOSS / best;
    if (pause < CHOICE_PAUSE) return CHOICE_PAUSE;
    return pause < CHOICE_PAUSE_MAX ? (uint16_t)pause : CHOICE_PAUSE_MAX;
}

unsigned choice_turn(struct choice *choice)
{
    if (choice->trying && choice->left == 0) {
        choice->trying = false;
        choice->left = pause_of(choice);
    } else if (!choice->trying) {
        choice->trying = choice->fresh = true;
        choice->left = CHOICE_TRIAL;
        choice->early = choice->early == EARLY_DUE ? EARLY_MADE : EARLY_NONE;
    }
    choice->left--;
    return choice->trying ? !choice->best : choice->best;
}

static uint32_t moved(uint32_t cost, uint32_t sample)
{
    if (!cost || sample <= cost) return sample;
    uint64_t counted = sample < (uint64_t)CEILING * cost ? sample : (uint64_t)CEILING * cost;
    return (uint32_t)(cost + (counted - cost + RISE - 1) / RISE);
}

static bool is_better(uint32_t cost, uint32_t than)
{
    return cost && than && cost < than - than / CHOICE_MARGIN;
}

/* The way in use has become much slower: one sample may have been interrupted, several in a row are a new level. */
static bool has_slowed(struct choice *choice, uint32_t sample)
{
    uint32_t *known = &choice->cost[choice->best];
    if (!*known || sample <= *known || sample - *known <= *known / CHOICE_SHIFT) {
        choice->surprises = 0;
        return false;
    }
    if (!choice->surprises++ || sample < choice->surprised) choice->surprised = sample;
    if (choice->surprises < CHOICE_SURPRISES || PLANTED_BUG(BUG_CHOICE_LEVEL_IGNORED)) return false;
    choice->surprises = 0;
    *known = choice->surprised;
    return true;
}

static bool may_hurry(const struct choice *choice)
{
    if (PLANTED_BUG(BUG_CHOICE_NEVER_EARLY)) return false;
    return choice_knows(choice) && (choice->early == EARLY_NONE || PLANTED_BUG(BUG_CHOICE_ALWAYS_EARLY));
}

void choice_learn(struct choice *choice, unsigned way, uint64_t cost)
{
    uint32_t sample = cost < 1 ? 1 : cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    uint32_t *known = &choice->cost[way];
    bool other = way != choice->best;
    bool slowed = !other && has_slowed(choice, sample);
    *known = other && choice->fresh ? sample : moved(*known, sample);
    if (other) choice->fresh = false;
    bool other_better = is_better(choice->cost[!choice->best], choice->cost[choice->best]);
    if (other && other_better) {
        choice->best = (uint8_t)way;
        choice->trying = false;
        choice->early = EARLY_NONE;
        choice->surprises = 0;
        choice->left = CHOICE_PAUSE; /* and no longer: perhaps both became faster at this moment */
    } else if (other_better && !choice->trying && !choice->fresh) {
        choice->left = 0; /* what is known of the other way may be long out of date: try it */
    } else if (slowed && !choice->trying && may_hurry(choice)) {
        choice->left = 0;
        choice->early = EARLY_DUE;
    } else if (other && !choice->trying) {
        choice->left = pause_of(choice);
    }
}
