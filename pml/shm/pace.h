/* pace.h - which way data takes to a peer of the node, by what it took of late: nothing about the machine is known beforehand, and
 * where processes run changes. A choice (choice.h) for each class of sizes, which is double the one below.
 *
 *   messages   through the ring, copied in here and out by the peer; the same, but in past the caches, as a line comes faster from
 *              memory than from the cache of a core that is far; or copied once by the peer, by a system call. Sender and receiver
 *              need not agree: each way is right at any time. In a row the ring's two copies go on at the same time; where messages
 *              are answered, one follows the other, so there are two choices. The peer writes how long its part took into the ring;
 *              the sender marks the messages for which it wants to know.
 *   copies     by one side, or shared with the other (help.h); by a system call, or by the owner of the memory (serve.h)
 *
 * Smaller messages are not looked at, and of others one in PACE_EVERY is timed.
 */
#ifndef PML_SHM_PACE_H
#define PML_SHM_PACE_H

#include "runtime/base/choice.h"

#include <stdatomic.h>
#include <stddef.h>

#define PACE_EVERY 8
/* Up to here the ring by caches is always faster, and above the last class of messages no ring ever is. */
#define PACE_LEAST ((size_t)1024)
#define PACE_CLASSES 6
#define PACE_SINGLE_CLASS 2 /* in those below, single copies never are */
#define PACE_SINGLE_LEAST (PACE_LEAST << PACE_SINGLE_CLASS)

enum pace_way { PACE_RING, PACE_PAST, PACE_SINGLE, PACE_WAYS };

/* In shared memory, two lines; the receiver of messages writes: a count (8 bits), ns per 64 KiB (24). */
struct pace_shared {
    _Atomic uint32_t took[PACE_WAYS][PACE_CLASSES];
};

/* Messages in a row before each of which the peer has sent something. */
#define PACE_CALM 4

/* Of messages of one way and class. */
struct pace_sample {
    bool marked, answered;
    uint32_t here; /* our part of it, per 64 KiB */
    uint32_t seen; /* the peer's word before */
    uint32_t turn; /* when it was marked */
};

struct pace {
    struct choice choice[2][PACE_CLASSES]; /* in a row, answered */
    struct pace_sample sample[PACE_WAYS][PACE_CLASSES];
    uint32_t turns[PACE_CLASSES];
    uint32_t calm;
    bool spoken; /* the peer has sent something since our last message */
};

/* Which of the classes from `least` bytes on. */
static inline unsigned pace_class(size_t bytes, size_t least, unsigned classes)
{
    unsigned class = 0;
    for (size_t most = 2 * least; bytes > most && class < classes - 1; most *= 2) class++;
    return class;
}

static inline uint32_t pace_cost(uint64_t ns, size_t bytes)
{
    uint64_t cost = ns * 65536 / bytes;
    return cost < 0xffffff ? (uint32_t)cost : 0xffffff;
}

static inline bool pace_answered(const struct pace *pace)
{
    return pace->calm >= PACE_CALM;
}

/* singles: there are single copies. */
void pace_init(struct pace *pace, bool singles);
/* The way of a message of more than PACE_LEAST bytes. *mark: it is to be timed, with what the peer does for it. */
enum pace_way pace_next(struct pace *pace, const struct pace_shared *shared, size_t bytes, bool *mark);
/* A message by this way that had to wait, behind the one to be timed perhaps: whether it may be timed instead. */
bool pace_waits(const struct pace *pace, enum pace_way way, size_t bytes);
/* Our part of the marked message took so long. */
void pace_here(struct pace *pace, enum pace_way way, size_t bytes, uint64_t ns);
/* The whole of a single copy was made here. */
void pace_copied(struct pace *pace, size_t bytes, uint64_t ns);
/* The peer's side. cost 0xffffff: this way does not work. */
void pace_tell(struct pace_shared *shared, enum pace_way way, unsigned class, uint32_t cost);

#endif
