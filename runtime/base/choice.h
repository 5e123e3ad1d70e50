/* choice.h - which of two or three ways is the fastest one, learnt while all are used. A pure core: it is told what the ways took and
 * says which to take next.
 *
 * A way's cost is what it takes undisturbed: a faster sample counts at once, as nothing but the way itself can have made it fast;
 * slower ones, which interruptions, late partners and cold caches make too, draw the cost up slowly, unless several come in a row.
 * Now and then one of the others is tried for a few calls in a row, the first of which finds caches cold: as rarely as it takes to
 * lose at most one part in CHOICE_LOSS of the time. Another way is taken only after such a trial. It comes early when the way in use
 * has become slower than another was; and when it has become much slower in any case, as what made it so may have changed the
 * others, too: that happens once for each time that all were tried in their own time, so that trials cost twice as much at most.
 */
#ifndef BASE_CHOICE_H
#define BASE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define CHOICE_WAYS 3      /* at most */
#define CHOICE_TRIAL 3     /* calls */
#define CHOICE_LOSS 64     /* of the time, one part at most */
#define CHOICE_PAUSE 32    /* calls between two trials, at least */
#define CHOICE_PAUSE_MAX 32768
#define CHOICE_MARGIN 16   /* another way has to be faster by one part in this many */
#define CHOICE_SHIFT 4     /* a sample that is slower by more than one part in this many is a surprise */
#define CHOICE_SURPRISES 3 /* so many of them in a row are no interruptions any more */

struct choice {
    uint32_t cost[CHOICE_WAYS]; /* in the caller's unit; 0: unknown */
    uint32_t surprised;         /* the least of the surprises */
    uint16_t rest[CHOICE_WAYS]; /* calls that each way has to wait, from the beginning of the pause on */
    uint16_t pause;             /* calls between the last trial and the next */
    uint16_t left;              /* of them; or until this trial ends */
    uint8_t ways, best;
    uint8_t tried;       /* the way that is being tried, or was last */
    uint8_t early;       /* trials before their time, still to come */
    uint8_t regular;     /* trials in their own time since the last of those */
    uint8_t surprises;   /* in a row, of the way in use */
    uint8_t fresh;       /* bit i: the next sample of way i replaces its cost */
    bool trying;
};

/* Way `first` until something better is known. */
static inline void choice_init(struct choice *choice, unsigned ways, unsigned first)
{
    *choice = (struct choice){.ways = (uint8_t)ways,
                              .best = (uint8_t)first,
                              .early = (uint8_t)(ways - 1),
                              .regular = CHOICE_WAYS,
                              .pause = CHOICE_TRIAL,
                              .left = CHOICE_TRIAL};
}

/* What is not in the middle of a pause: begins or ends a trial. */
unsigned choice_turn(struct choice *choice);

/* The way of the next call. */
static inline unsigned choice_next(struct choice *choice)
{
    if (__builtin_expect(choice->left == 0 || choice->trying, 0)) return choice_turn(choice);
    choice->left--;
    return choice->best;
}

/* A call by this way took so long. Costs of calls of unlike size are comparable only per byte. */
void choice_learn(struct choice *choice, unsigned way, uint64_t cost);

/* The way in use may have become slower: worth a look at every call. */
static inline bool choice_wonders(const struct choice *choice)
{
    return choice->surprises > 0;
}

/* All ways have been tried. */
static inline bool choice_knows(const struct choice *choice)
{
    for (unsigned way = 0; way < choice->ways; way++)
        if (!choice->cost[way]) return false;
    return choice->ways > 0; /* all zero: one that is not in use */
}

/* The way that is taken when nothing is tried. */
static inline unsigned choice_best(const struct choice *choice)
{
    return choice->best;
}

#endif
