/* control.h - congestion control of one connection over lanes: how many bytes it keeps in flight. A pure core: the times at
 * which segments were posted and completed come in, a window comes out. Times are nanoseconds of any clock that never goes
 * back, and never 0; sizes are bytes.
 *
 * The class's limits are the most that a connection may have in flight (lanes x segments on each x bytes of a segment); two
 * segments a lane are the least, with which it begins, so that a lane has the next one at hand while it waits for a completion. In
 * between the window moves once a round, in which all comes back that was in flight when it began. Of a round count:
 *
 *   standing  the shortest round trip of a segment, of this round and the one before
 *   noise     twice what the mean is above the shortest, the less of both rounds: how far round trips spread. A queue that stands
 *             delays all segments alike; whatever else delays them (a core that was given to somebody else, an interrupt,
 *             completions that come many at a time) delays some more than others
 *   base      the shortest round trip of late: the path without a queue
 *
 * There is a queue when standing > base + max(base / 2, noise). Then the window becomes 7/8 of window x (base + noise) / standing,
 * which is what the path holds without a queue and a little less, so that the base is seen again; the next round is not looked at, in
 * which that has not shown yet. Else, if the window has held something back, it grows: by half until there was a queue for the
 * first time, later by a segment a lane (at least two), and by another for each four rounds without one.
 *
 * This is additive increase and multiplicative decrease by delay (Leith, Heffner, Shorten, McCullagh 2007), with H-TCP's decrease by
 * base / standing and increase that quickens (Leith, Shorten 2004). Each decrease empties the queue, so that all
 * connections that share one learn how long the path is, as also Copa wants it (Arun, Balakrishnan 2018), and get equal shares. That
 * the shortest delay of an interval tells of a standing queue is CoDel's (Nichols, Jacobson 2012); the noise is this project's. A
 * base counts for eight to sixteen decreases: a path that has become longer is learnt, and queues that somebody else keeps up (least
 * windows of many that come together, for one) are the same base for all.
 *
 * Others were tried in the simulator (tests/sim/control.c) and lost: FAST's rule (Wei, Jin, Low, Hegde 2006), whose queues never
 * empty, so that who comes later takes them for the path, got 40 % of an even share, and with a base that is measured anew now and
 * then, as BBR does (Cardwell et al. 2016), queues grew to all that the limits allow. Without noise,
 * completions that come in order, each late by up to three round trips, cost 80 % of the throughput. Swift (Kumar et al. 2020) and
 * Timely (Mittal et al. 2015) hold a delay that has to be known beforehand, or follow its gradient, which is noise on a virtual
 * machine. A window that the path does not explain ends at the class's limits, where it was without all this.
 *
 * Rates are measured to be told: a round's bytes over its time, the best of the last rounds in which the window was the limit, or
 * more than that. */
#ifndef PML_DQPLB_CONTROL_H
#define PML_DQPLB_CONTROL_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_SAMPLES 8 /* completions of a round, at least */
#define CONTROL_RATES 8   /* that are kept */
/* A base counts for so many decreases and rounds at least, and for twice as many at most. */
#define CONTROL_DECREASES 8
#define CONTROL_ROUNDS 16

/* Round trips of a round. */
struct control_round {
    uint64_t shortest_ns, sum_ns, noise_ns;
    uint64_t samples;
};

struct dqplb_control {
    bool on;      /* else there is no window */
    bool limited; /* it has held something back in this round */
    bool settled; /* there was a queue once */
    bool holding; /* it has just decreased, which shows a round later */
    unsigned calm; /* rounds of growth since */
    unsigned decreases, rounds; /* since the base began to count */
    uint64_t floor, cap, window, step;
    uint64_t base_ns, next_base_ns; /* 0: not known; the shortest since the base began to count */
    uint64_t posted, completed;     /* bytes so far */
    /* The round: it ends when so much is completed. */
    uint64_t round_end, round_begin_ns, round_completed;
    struct control_round round, before;
    unsigned turn;
    uint64_t rate[CONTROL_RATES]; /* bytes a second */
};

/* How many lanes there are for data has changed; of segments of so many bytes, so many on each. */
void control_limits(struct dqplb_control *control, unsigned lanes, unsigned outstanding, uint64_t segment);
void control_posted(struct dqplb_control *control, uint64_t bytes, uint64_t now);
/* A segment that was posted then has come back; 0: not as it went, so that its round trip says nothing. */
void control_completed(struct dqplb_control *control, uint64_t bytes, uint64_t posted_ns, uint64_t now);
/* Bytes a second; 0: not known. */
uint64_t control_rate(const struct dqplb_control *control);

/* What may be in flight. */
static inline uint64_t control_window(const struct dqplb_control *control)
{
    return control->on ? control->window : UINT64_MAX;
}

static inline bool control_idle(const struct dqplb_control *control)
{
    return control->posted == control->completed;
}

#endif
