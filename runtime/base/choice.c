/* choice.c - trials, and what they show. */
#include "runtime/base/choice.h"

#include "runtime/base/planted.h"

/* A slower sample draws the cost up by one part in RISE of the difference, and counts as CEILING times the cost at most. */
#define RISE 8
#define CEILING 2

/* CHOICE_TRIAL calls have lost what the way that was tried takes longer: so many calls make up for that, and for trials of others. */
static uint16_t pause_of(const struct choice *choice)
{
    uint64_t best = choice->cost[choice->best], other = choice->cost[choice->tried], others = choice->ways - 1u;
    uint64_t pause = 0;
    if (best && other > best) pause = (other - best) * CHOICE_TRIAL * CHOICE_LOSS / best;
    if (pause < CHOICE_PAUSE) pause = CHOICE_PAUSE;
    return (uint16_t)(pause * others < CHOICE_PAUSE_MAX ? pause * others : CHOICE_PAUSE_MAX);
}

static uint8_t next_to_try(const struct choice *choice)
{
    int next = -1;
    for (int way = 0; way < choice->ways; way++)
        if (way != choice->best && (next < 0 || choice->rest[way] < choice->rest[next])) next = way;
    return (uint8_t)next;
}

static void pause_for(struct choice *choice, uint16_t calls)
{
    choice->left = choice->pause = calls;
}

/* The way that was tried rests, and the next trial is of the one whose rest ends first. */
static void begin_pause(struct choice *choice)
{
    choice->rest[choice->tried] = pause_of(choice);
    uint16_t calls = choice->rest[next_to_try(choice)];
    if (choice->early) calls = CHOICE_TRIAL;
    else if (calls < CHOICE_PAUSE) calls = CHOICE_PAUSE;
    pause_for(choice, calls);
}

/* All others have rested since the last trial. */
static void end_pause(struct choice *choice)
{
    uint16_t calls = (uint16_t)(choice->pause - choice->left);
    for (unsigned way = 0; way < choice->ways; way++) choice->rest[way] -= choice->rest[way] < calls ? choice->rest[way] : calls;
    pause_for(choice, 0);
}

static void begin_trial(struct choice *choice)
{
    end_pause(choice);
    choice->tried = next_to_try(choice);
    choice->trying = true;
    choice->fresh |= (uint8_t)(1u << choice->tried);
    choice->left = CHOICE_TRIAL;
    if (choice->early) choice->early--;
    else if (choice->regular < CHOICE_WAYS) choice->regular++;
}

unsigned choice_turn(struct choice *choice)
{
    if (choice->trying && choice->left == 0) {
        choice->trying = false;
        begin_pause(choice);
    } else if (!choice->trying) {
        begin_trial(choice);
    }
    choice->left--;
    return choice->trying ? choice->tried : choice->best;
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
    return choice_knows(choice) && (choice->regular >= choice->ways - 1 || PLANTED_BUG(BUG_CHOICE_ALWAYS_EARLY));
}

/* Another way that was faster when it was used last; -1: none. */
static int better_one(const struct choice *choice)
{
    int found = -1;
    uint32_t least = choice->cost[choice->best];
    for (int way = 0; way < choice->ways; way++) {
        if (way == choice->best || choice->fresh >> way & 1 || !is_better(choice->cost[way], choice->cost[choice->best])) continue;
        if (choice->cost[way] < least) {
            least = choice->cost[way];
            found = way;
        }
    }
    return found;
}

static void change_to(struct choice *choice, unsigned way)
{
    choice->best = (uint8_t)way;
    choice->trying = false;
    choice->surprises = 0;
    for (unsigned i = 0; i < choice->ways; i++) choice->rest[i] = CHOICE_PAUSE; /* and no longer: perhaps others became faster, too */
    pause_for(choice, choice->early ? CHOICE_TRIAL : CHOICE_PAUSE);
}

/* Whether another way shall be tried before its time. */
static void look_around(struct choice *choice, bool slowed)
{
    int better = better_one(choice);
    if (better >= 0) {
        end_pause(choice);
        choice->rest[better] = 0; /* what is known of it may be long out of date */
    } else if (slowed && may_hurry(choice)) {
        choice->early = (uint8_t)(choice->ways - 1);
        choice->regular = 0;
        for (unsigned way = 0; way < choice->ways; way++) choice->rest[way] = 0;
        pause_for(choice, 0);
    }
}

void choice_learn(struct choice *choice, unsigned way, uint64_t cost)
{
    uint32_t sample = cost < 1 ? 1 : cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    uint32_t *known = &choice->cost[way];
    bool other = way != choice->best;
    bool slowed = !other && has_slowed(choice, sample);
    bool fresh = choice->fresh >> way & 1;
    *known = other && fresh ? sample : moved(*known, sample);
    choice->fresh &= (uint8_t)~(1u << way);
    if (other && is_better(*known, choice->cost[choice->best])) change_to(choice, way);
    else if (!other && !choice->trying) look_around(choice, slowed);
    else if (other && !choice->trying && way == choice->tried) begin_pause(choice);
}
