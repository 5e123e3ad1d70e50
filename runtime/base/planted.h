/* planted.h - bugs that the simulator must find, to prove that it would find real ones. They exist only in simulator builds, which compile the
 * protocol cores with -DPLANTED_BUGS; anywhere else the condition is a constant 0 and leaves no code.
 *
 *     if (!PLANTED_BUG(BUG_ANNOUNCEMENT_KEPT)) drop(announcement);
 */
#ifndef BASE_PLANTED_H
#define BASE_PLANTED_H

enum planted_bug {
    BUG_NONE,
    /* matching and protocols: pml/match, pml/protocol */
    BUG_WILDCARD_ORDER,           /* an exact receive wins over a wildcard one that was posted before it */
    BUG_UNEXPECTED_ORDER,         /* the newest matching envelope is taken first */
    BUG_ANNOUNCEMENT_KEPT,        /* an announcement stays although a message already sent will take its receive */
    BUG_COUNT_OFF_BY_ONE,         /* an announcement counts one envelope too many */
    BUG_FINISHED_BEFORE_COPY,     /* the sender is told that its buffer is free before it was read */
    BUG_TRUNCATED_WRITE,          /* a message longer than the announced buffer is written all the same */
    BUG_AMBIGUOUS_ANNOUNCED,      /* a receive announces itself although an earlier one could take its message */
    BUG_ANNOUNCEMENT_NOT_USED_UP, /* an eager message leaves the announcement that its receive made */
    BUG_WITHDRAWN_UNSEEN,         /* a cancelled announcement is confirmed before it is taken back */
    BUG_FILLING_STAYS_PENDING,    /* a receive whose data follows can still be matched, and cancelled */
    BUG_FIRST_OF_TRUNCATED,       /* what comes with a request is copied into a buffer that is too short for the message */
    BUG_FIRST_NOT_COUNTED,        /* and is expected again */
    BUG_HELD_NOT_RELEASED,        /* bytes of unexpected messages are not given back */
    /* offers of work: pml/shm/offer */
    BUG_OFFER_ACCEPTED_LATE,  /* an offer is accepted that was withdrawn */
    BUG_OFFER_WITHDRAWN_LATE, /* an offer counts as withdrawn that was accepted */
    BUG_OFFER_ENDED_EARLY,    /* an accepted offer looks done before its work is */
    BUG_OFFER_NOT_FREED,      /* a withdrawn offer stays withdrawn when its description is found */
    /* ways that are learnt: runtime/base/choice, pml/shm/pace */
    BUG_CHOICE_LEVEL_IGNORED, /* any number of slower calls in a row are taken for interruptions */
    BUG_CHOICE_NEVER_EARLY,   /* when the way in use gets slower, the other is not tried before its time */
    BUG_CHOICE_ALWAYS_EARLY,  /* ... but each time, whatever trials cost */
    BUG_PACE_ONE_AT_A_TIME,   /* a trial goes unseen while a message by the way in use is awaited */
    BUG_PACE_CALM_IGNORED,    /* messages in a row and answered ones are one and the same */
    /* schedules: coll/executor, coll/schedule */
    BUG_DEPENDENCY_IGNORED,        /* a step starts before what it depends on */
    BUG_REUSE_IGNORED,             /* memory is written while an earlier step still reads it */
    BUG_REDUCE_ORDER,              /* operands swapped */
    BUG_TAG_REUSED,                /* two collectives in flight share tags */
    BUG_ROUND_IGNORED,             /* two messages of one collective share tags */
    BUG_STEP_TWICE,                /* a step is started twice */
    BUG_DONE_EARLY,                /* completion is reported with a step in flight */
    BUG_RESTART_STALE,             /* a second start finds what the first left */
    /* windows: osc/window_core */
    BUG_SIGNAL_EARLY,              /* a signal travels with the first piece of its put instead of the last */
    BUG_FLUSH_FORGETS_QUEUE,       /* a flush asks only for what was sent, not for what waits its turn */
    BUG_FLUSH_WAITS_FOR_LATER,     /* a flush waits for operations that came after it, which nobody flushes */
    BUG_ACKNOWLEDGEMENT_NOT_ASKED, /* the way fills up and nobody asks for an acknowledgement */
    BUG_ELEMENT_CUT,               /* a piece of an atomic operation ends inside an element */
    BUG_GRANT_KEPT,                /* the grant of an earlier lock counts for the next one */
    /* key-value exchange: bootstrap/kvx */
    BUG_KVX_CHILD_NOT_AWAITED,  /* a fence goes on before the last child has come */
    BUG_KVX_GENERATION_IGNORED, /* a late contribution to a fence that has failed counts for the next */
    BUG_KVX_DEATH_FORGOTTEN,    /* only fences under way fail when somebody dies, not later ones */
    BUG_KVX_NOT_ANNOUNCED,      /* who decides does not learn of a fence that waits for the dead */
    BUG_KVX_LOSS_NOT_TOLD,      /* the daemons above do not learn who is lost */
    BUG_KVX_REST_DROPPED,       /* what does not fit a frame is not sent in the next */
    BUG_KVX_FRESH_FROM_CACHE,   /* a fresh value is taken from a copy */
    BUG_KVX_TIMEOUT_SHARED,     /* one asker's time passes, and all that wait for the same are told so */
    BUG_KVX_LOOKUP_NOT_WOKEN,   /* publishing tells nobody who waits for the name */
    BUG_KVX_KIND_IGNORED,       /* fences of different kinds count for each other */
    BUG_KVX_EXPIRED_ALONE,      /* a fence whose time has passed fails where it is, and not for all at once */
    BUG_KVX_REQUEST_KEPT,       /* a request that nobody waits for any more is not forgotten */
    BUG_KVX_RETIRED_WAITED,     /* a fence with ranks that are gone is not ended */
    BUG_KVX_RETIRED_BROKEN,     /* what comes late of ranks that are gone is taken for nonsense */
    /* jobs: launcher/jobs */
    BUG_JOBS_UP_EARLY,            /* a job is up before every daemon knows it */
    BUG_JOBS_OVER_EARLY,          /* a job is over before all of its output has come */
    BUG_JOBS_UNSTARTED_FORGOTTEN, /* ranks that will not start are waited for */
    /* daemons: launcher/tree */
    BUG_TREE_CHILD_NOT_AWAITED, /* a place says that all below it are there before the last is */
    BUG_TREE_NODE_DROPPED,      /* the node that made a frame full is forgotten */
    BUG_TREE_WINDOW_KEPT,       /* a daemon that has come up still counts as being started */
    BUG_TREE_AGENT_IGNORED,     /* an agent that fails is taken for one that detached */
    BUG_TREE_LOSS_TWICE,        /* a second loss is reported too */
    BUG_TREE_LOSS_FORGOTTEN,    /* a loss before the link above stands is not told later */
    BUG_TREE_END_REPORTED,      /* who leaves during the end counts as lost */
    BUG_TREE_OTHER_JOB,         /* a daemon of an earlier job is taken in */
    BUG_TREE_TRAFFIC_NOT_HEARD, /* only frames of the tree count as signs of life */
    BUG_TREE_BEAT_FORGOTTEN,    /* who hears much sends no beats */
    BUG_TREE_STOPPED_BLAMES,    /* a process that was stopped takes the time for its neighbours' silence */
    BUG_TREE_ORPHAN_STAYS,      /* the loss of the link above ends nothing */
    BUG_TREE_LATE_NOT_TOLD,     /* who greets during the end is not told of it */
    BUG_TREE_END_UNBOUNDED,     /* the end waits for whom it takes */
    BUG_TREE_EARLY_FORGOTTEN,   /* a loss that is explained only during the end counts as brought about by it */
    /* authenticated sockets: bootstrap/oob */
    BUG_OOB_HELLO_UNCHECKED,   /* a stranger's greeting is answered without proof */
    BUG_OOB_ANSWER_UNCHECKED,  /* whoever answers is believed */
    BUG_OOB_CONFIRM_UNCHECKED, /* a recorded greeting is enough to get in */
    BUG_OOB_EPHEMERAL_REUSED,  /* the acceptor's ephemeral key is always the same: recordings work */
    BUG_OOB_REFUSAL_BELIEVED,  /* anybody's refusal ends the attempts */
    BUG_OOB_JOB_IGNORED,       /* another job with the same secret gets in */
    BUG_OOB_WRONG_HOST,        /* an acceptor takes who looks for somebody else */
    BUG_OOB_VERSION_IGNORED,   /* another version gets in */
    BUG_OOB_READS_AHEAD,       /* the handshake swallows what comes after it */
    BUG_OOB_RECORD_NUMBER,     /* sealed records are not numbered */
    BUG_OOB_NEWEST_DROPPED,    /* when strangers are too many the newest goes, so that old ones lock all others out */
    BUG_OOB_PROVEN_DROPPED,    /* ... or one that has shown a key, though others have not */
    BUG_OOB_ONE_ADDRESS,       /* only the first address is tried */
    BUG_OOB_NO_PAUSE,          /* rounds follow each other at once */
    BUG_OOB_TRY_UNLIMITED,     /* a silent address is waited for until the end */
    /* who opens a connection: pml/tcp/meet */
    BUG_MEET_BOTH_KEPT,    /* each side keeps the connection that the other has opened */
    BUG_MEET_BOTH_DROPPED, /* each side drops it */
    BUG_MEET_LATE_KEPT,    /* an attempt that was given up is found late, and kept */
    BUG_MEET_OLD_QUESTION, /* a question whether a socket may rest is taken to be about a later one */
    BUG_MEET_OLD_ANSWER,   /* alike, an answer */
    BUG_MEET_BOTH_ANSWER,  /* both ask, and both answer */
    BUG_MEET_SENDS_RESTING, /* (simulator) who has asked goes on sending, and who has agreed closes */
    /* what is sent again on the next socket: pml/tcp/keep */
    BUG_KEEP_ALL_AGAIN,          /* also what has come */
    BUG_KEEP_NOTHING_AGAIN,      /* what was lost with a socket stays lost */
    BUG_KEEP_ACKNOWLEDGED_EARLY, /* a unit counts before the last of its bytes has come */
    BUG_KEEP_OLD_CODE,           /* what a packet that is sent again says of the other direction is taken to be new */
    BUG_KEEP_RETURNED_EARLY,     /* what is lent is its owner's again once it is sent */
    BUG_KEEP_NO_FENCE,           /* (simulator) an old socket is read after it was told what has come */
    /* lanes: pml/dqplb */
    BUG_DQPLB_NO_MARKER,           /* a notice without markers on the lanes that carried plain writes */
    BUG_DQPLB_MARKER_OF_OTHERS,    /* an immediate of another put serves as a marker, and is not waited for */
    BUG_DQPLB_WRAP,                /* numbers wrap at 2^24 - 1 */
    BUG_DQPLB_REFILL_PAST_CAP,     /* a completion refills its lane beyond the put's own limits */
    BUG_DQPLB_NO_FENCE,            /* (simulator) a lane is reported before it is closed */
    BUG_DQPLB_CREDIT_LEAK,         /* each time credits are returned, one is kept */
    BUG_DQPLB_CREDIT_IGNORED,      /* immediates go out without a receive at the target */
    BUG_DQPLB_LATE_CREDIT,         /* credits of an earlier life of a lane count */
    BUG_DQPLB_WINDOW_IGNORED,      /* more numbers are under way than the target can tell apart */
    BUG_DQPLB_PLACES_IGNORED,      /* more notices are under way than the target has places for */
    BUG_DQPLB_NO_FAST_PATH,        /* small puts take turns with large ones */
    BUG_DQPLB_FAST_OVERTAKES,      /* the fast lane goes on before the entries of the one that failed */
    BUG_DQPLB_FLUSH_READS_NOTHING, /* a completion is taken for placement */
    BUG_DQPLB_FLUSH_EARLY,         /* a flush does not wait for completions */
    BUG_DQPLB_EARLIER_UNPOSTED,    /* a notice does not wait for earlier puts to be posted */
    BUG_DQPLB_NOTICE_EARLY,        /* the target does not wait for the numbers below a notice's bound */
    BUG_DQPLB_NOTICES_OVERTAKE,    /* of one order */
    BUG_DQPLB_EARLY_KEPT,          /* the bitmap of early numbers is not cleared as they are passed */
    BUG_DQPLB_PLACED_AGAIN,        /* what is placed is sent again after a failure */
    BUG_DQPLB_SCATTERED,           /* entries of a lane that failed go to several lanes */
    BUG_DQPLB_MOVED_NOT_READ,      /* a flush does not read the lane that took over */
    BUG_DQPLB_FAILURE_FORGETS,     /* puts that wait for their notice do not end with the connection */
    BUG_DQPLB_HOPES_IN_VAIN,       /* a lane whose rest follows one that is gone for good is waited for */
    BUG_DQPLB_OFFER_IGNORED,       /* the sender takes what it would like for what the target offers */
    BUG_DQPLB_LANE_OVERFILLED,     /* each put keeps its limits on a lane, and all together do not */
    BUG_DQPLB_RETURNS_BESIDE,      /* what a lane held of the fast lane's goes out on it again, while another is the fast lane */
    BUG_DQPLB_LANE_STARVES,        /* one segment a lane may always go, not two */
    /* the driver of lanes: pml/lanes */
    BUG_LANES_NO_FENCE,       /* a lane is reported, and not fenced */
    BUG_LANES_READS_IGNORED,  /* completions are taken for placement, whatever the transport says */
    BUG_LANES_NOT_RUNG,       /* what was posted stays where it is */
    BUG_LANES_UP_EARLY,       /* a lane comes up while what it held is still moving */
    BUG_LANES_PLACE_LEAK,     /* the place of a notice is not free again */
    BUG_LANES_GETS_LEFT,      /* gets do not end with the connection */
    BUG_LANES_NOT_AGAIN,      /* what comes while the core is asked is left until somebody asks again */
    BUG_LANES_ANSWERS_KEPT,   /* gets that were answered still count */
    BUG_LANES_GETS_UNBOUNDED, /* a peer is asked for more at a time than it allows */
    BUG_LANES_BUDGET_SLEEPS,  /* nobody tells those that wait for the budget */
    BUG_LANES_HOPES_IN_VAIN,  /* lanes that nobody opens any more are waited for */
    BUG_LANES_CREDITS_KEPT,   /* receives are posted again, and the origin is not told */
    BUG_LANES_MARKER_LEFT,    /* a marker whose lane broke waits for the next put */
    BUG_LANES_MARKER_RESTED,  /* a lane that holds a marker is closed as if it held nothing */
    BUG_LANES_UNCHANGED,      /* a window is not told that something of it has ended */
    /* windows and budgets: pml/dqplb/control, budget */
    BUG_CONTROL_CAP_IGNORED,   /* a window grows beyond the limits of the class */
    BUG_CONTROL_DELAY_IGNORED, /* a window that is used grows, whatever stands in queues */
    BUG_CONTROL_SPIKES_COUNT,  /* one late round counts */
    BUG_CONTROL_NOISE_IGNORED, /* what is not a queue is taken for one */
    BUG_CONTROL_UNUSED_GROWS,  /* a window grows though nothing waits for it */
    BUG_CONTROL_BASE_KEPT,     /* the shortest round trip ever counts for ever */
    BUG_BUDGET_EXCEEDED,       /* what is in flight beyond least windows is not looked at */
    BUG_BUDGET_NO_QUEUE,       /* who has just given something back takes it before those that wait */
    BUG_BUDGET_FORGETS,        /* who is refused does not wait for its turn */
    BUG_BUDGET_LEAST_WAITS,    /* two segments a lane have to wait, too */
    BUG_BUDGET_KEPT,           /* a lane that ends gives nothing back */
    /* the copy protocol: pml/copy.h */
    BUG_COPY_SLOT_REUSED,     /* a slot is filled again while its put is under way */
    BUG_COPY_NOT_CLEARED,     /* chunks go out without the target's clear to send */
    BUG_COPY_RING_OFF_BY_ONE, /* the two sides go round a ring of unlike length */
    BUG_COPY_SLOT_LEAK,       /* a slot is not free again */
    BUG_COPY_CLEAR_EARLY,     /* clear to send before the copy */
    BUG_COPY_CLEAR_LEAK,      /* one clear to send is kept */
    BUG_COUNT
};

#ifdef PLANTED_BUGS
extern enum planted_bug planted_bug; /* defined by the simulator */
#define PLANTED_BUG(bug) (planted_bug == (bug))
#else
#define PLANTED_BUG(bug) 0
#endif

#endif
