/* choice.h - which of two ways is the faster one, learnt while both are used. A pure core: it is told what the ways took and says
 * which to take next.
 *
 * A way's cost is what it takes undisturbed: a faster sample counts at once, as nothing but the way itself can have made it fast;
 * slower ones, which interruptions, late partners and cold caches make too, draw the cost up slowly, unless several come in a row.
 * Now and then the other way is tried for a few calls in a row, the first of which finds caches cold: as rarely as it takes to lose
 * at most one part in CHOICE_LOSS of the time. The two change places only by such a trial. It comes early when the way in use has
 * become slower than the other was; and when it has become much slower in any case, as what made it so may have changed the other,
 * too: that happens once between two trials in their own time, so that trials cost twice as much at most.
 */
#ifndef BASE_CHOICE_H
#define BASE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define CHOICE_TRIAL 3     /* calls */
#define CHOICE_LOSS 64     /* of the time, one part at most */
#define CHOICE_PAUSE 32    /* calls between two trials, at least */
#define CHOICE_PAUSE_MAX 32768
#define CHOICE_MARGIN 16   /* the other way has to be faster by one part in this many */
#define CHOICE_SHIFT 4     /* a sample that is slower by more than one part in this many is a surprise */
#define CHOICE_SURPRISES 3 /* so many of them in a row are no interruptions any more */

/* All zero: way 0 first, nothing known. */
struct choice {
    uint32_t cost[2]; /* in the caller's unit; 0: unknown */
    uint16_t left;    /* calls until the next trial begins, or until this one ends */
    uint8_t best;     /* 0 or 1 */
    bool trying;
    bool fresh;         /* the next sample of the other way replaces its cost */
    uint8_t early;      /* a trial before its time: is due, or has been since the last one that was not */
    uint8_t surprises;  /* in a row, of the way in use */
    uint32_t surprised; /* the least of them */
};

/* Way `first` until something better is known. */
static inline void choice_init(struct choice *choice, unsigned first)
{
    *choice = (struct choice){.best = (uint8_t)first, .left = CHOICE_TRIAL};
}

/* What is not in the middle of a pause: begins or ends a trial. */
unsigned choice_turn(struct choice *choice);

/* The way of the next call: 0 or 1. */
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

/* Both ways have been tried. */
static inline bool choice_knows(const struct choice *choice)
{
    return choice->cost[0] && choice->cost[1];
}

/* The way that is taken when nothing is tried. */
static inline unsigned choice_best(const struct choice *choice)
{
    return choice->best;
}

#endif
