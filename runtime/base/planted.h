/* planted.h - bugs that the simulator must find, to prove that it would find real ones. They exist only in simulator builds, which compile the
 * protocol cores with -DPLANTED_BUGS; anywhere else the condition is a constant 0 and leaves no code.
 *
 *     if (!PLANTED_BUG(BUG_ANNOUNCEMENT_NOT_DROPPED)) drop(announcement);
 */
#ifndef BASE_PLANTED_H
#define BASE_PLANTED_H

enum planted_bug {
    BUG_NONE,
    /* matching and protocols: pml/match, pml/protocol */
    BUG_WILDCARD_ORDER,            /* a wildcard receive posted first loses to an exact one */
    BUG_UNEXPECTED_ORDER,          /* the newest unexpected message is taken first */
    BUG_ANNOUNCEMENT_NOT_DROPPED,  /* an announcement that an earlier message overtook is used */
    BUG_ANNOUNCEMENT_COUNT,        /* envelopes are counted one off */
    BUG_ANNOUNCEMENT_AMBIGUOUS,    /* a receive announces itself though an earlier one may match instead */
    BUG_FINISH_BEFORE_COPY,        /* the sender is told that its data was taken before it was */
    BUG_TRUNCATION_WRITES,         /* a message larger than the buffer is written */
    BUG_CREDIT_LEAK,               /* bytes of unexpected data are not given back */
    BUG_PROBE_TAKES,               /* a probe takes the message out */
    /* schedules: coll/executor, coll/schedule */
    BUG_DEPENDENCY_IGNORED,        /* a step starts before what it depends on */
    BUG_REDUCE_ORDER,              /* operands swapped */
    BUG_TAG_REUSED,                /* two collectives in flight share tags */
    BUG_STEP_TWICE,                /* a step is started twice */
    BUG_DONE_EARLY,                /* completion is reported with a step in flight */
    BUG_COUNT
};

#ifdef PLANTED_BUGS
extern enum planted_bug planted_bug; /* defined by the simulator */
#define PLANTED_BUG(bug) (planted_bug == (bug))
#else
#define PLANTED_BUG(bug) 0
#endif

#endif
