/* tries.h - when to try which address, as a pure core: one is tried at a time, for a limited time; after each round
 * there is a pause, which grows, and is different for everybody so that many do not come at the same moment. */
#ifndef BOOTSTRAP_OOB_TRIES_H
#define BOOTSTRAP_OOB_TRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRIES_MOST_TIMES 5 /* a try may take this many times options.try_ms at most */

struct tries_limits {
    uint64_t try_ns, pause_ns, pause_most_ns, all_ns;
};

enum tries_state { TRIES_READY, TRIES_TRYING, TRIES_PAUSING, TRIES_OVER };

struct tries {
    struct tries_limits limits;
    enum tries_state state;
    size_t count, next; /* addresses; the one tried now or next */
    unsigned round;
    uint64_t until; /* of the try or the pause */
    uint64_t end;
    uint64_t chance; /* state of the random numbers */
};

enum tries_action {
    TRIES_WAIT,
    TRIES_OPEN,   /* try address `next` with a fresh socket */
    TRIES_CLOSE,  /* close the socket: the time of this try has passed; ask again */
    TRIES_GIVE_UP /* close the socket, if there is one */
};

/* Not for count 0. */
void tries_begin(struct tries *tries, size_t count, const struct tries_limits *limits, uint64_t now, uint64_t seed);
enum tries_action tries_step(struct tries *tries, uint64_t now);
/* The try has failed by itself. */
void tries_failed(struct tries *tries, uint64_t now);
/* And no other address is tried before the next round. soon: after the shortest pause. */
void tries_end_round(struct tries *tries, uint64_t now, bool soon);
/* When tries_step has something to do: 0: at once. */
uint64_t tries_deadline(const struct tries *tries);

#endif
