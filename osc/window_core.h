/* window_core.h - the protocol of a window between two ranks where memory access does not reach: pure state machines.
 *
 * The origin turns puts, gets and signals into numbered messages, in the order they were called; the way between two ranks keeps order. The
 * target handles them one by one and acknowledges cumulatively, when asked: acknowledged means complete in the target's memory. Because
 * a signal travels behind the puts before it, it needs no flush.
 *
 *     origin                                target
 *       PUT 1, PUT 2 (+ signal), GET 3  ->    writes, raises the slot, reads
 *                                       <-  DATA 3                     (implies that 1 and 2 are handled)
 *       FLUSH 4 (acknowledge)           ->
 *                                       <-  ACK 4
 *       LOCK 5                          ->  takes a place in the queue of the target's lock
 *                                       <-  LOCKED 5                   (when its turn has come)
 *
 * FETCH carries operands to elements of the target and brings the elements back as they were: a GET that writes. ACCUMULATE is a PUT that
 * combines. Neither is ever cut inside an element.
 *
 * At most WINDOW_DEPTH messages are on their way from one origin to one target, so a slow target holds the origin back instead of filling
 * its memory. None of them asks for more than one message can bring back. Buffers of operations stay with the caller until their messages have been made.
 *
 * The cores take events and give messages. They do not allocate, lock, wait, or touch a transport or a window's memory.
 */
#ifndef OSC_WINDOW_CORE_H
#define OSC_WINDOW_CORE_H

#include "runtime/base/planted.h"
#include "runtime/ncclx.h"

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_DEPTH 32 /* messages not yet acknowledged; half of it apart, an acknowledgement is asked for */
#define WINDOW_ELEMENT_MAX 16 /* bytes of the largest element; atomics need pieces of two of them */
#define WINDOW_VERSION 2

enum window_kind {
    WINDOW_PUT = 1,
    WINDOW_GET = 2,
    WINDOW_SIGNAL = 3,
    WINDOW_FLUSH = 4, /* carries nothing but the wish to be acknowledged */
    WINDOW_ACK = 5,   /* target to origin: everything up to `sequence` is complete */
    WINDOW_DATA = 6,  /* target to origin: part of the answer to GET or FETCH `sequence` */
    WINDOW_ACCUMULATE = 7,
    WINDOW_FETCH = 8,
    WINDOW_LOCK = 9,   /* `op` says shared or exclusive */
    WINDOW_UNLOCK = 10,
    WINDOW_LOCKED = 11, /* target to origin: LOCK `sequence` is granted */
    WINDOW_AGENT = 12,  /* for the drivers: messages have to be answered while the target computes, too */
    WINDOW_GONE = 13    /* for the drivers: target to origin: there is no such window here (any more) */
};

enum { WINDOW_WANTS_ACK = 1, WINDOW_HAS_SIGNAL = 2 };
enum { WINDOW_SHARED = 1, WINDOW_EXCLUSIVE = 2 }; /* `op` of LOCK */

/* On the wire, in front of the data. Both ends are of one architecture. */
struct window_header {
    uint64_t window;
    uint64_t sequence;
    uint64_t offset; /* bytes: in the target's window; DATA: in the piece that the GET asked for */
    uint64_t bytes;  /* of the data; GET: wanted */
    uint64_t slot, value;
    int32_t rank;    /* of the sender in the window */
    uint8_t kind, flags, signal_op, version;
    uint8_t type, op; /* ACCUMULATE, FETCH: of the elements */
    uint8_t reserved[6];
};

/* ---- Origin: one a window and target ------------------------------------------------------------------------- */

struct window_operation {
    struct window_operation *next;
    enum window_kind kind; /* what an origin sends, but FLUSH */
    const char *from;      /* PUT, ACCUMULATE, FETCH; null: `small` */
    char *to;              /* GET, FETCH */
    char small[2 * WINDOW_ELEMENT_MAX];
    uint8_t type, op;      /* ACCUMULATE, FETCH; LOCK: op */
    unsigned element;      /* bytes that stay together; 0: cut anywhere */
    unsigned operands;     /* FETCH: bytes that travel for each byte of the target; 2 only with one element */
    uint64_t offset, bytes;
    uint64_t made;         /* bytes whose messages have been made */
    bool has_signal;       /* PUT with a signal, SIGNAL */
    ncclx_signal_op_t signal_op;
    uint64_t slot, value;
};

struct window_origin {
    uint64_t window;
    int32_t rank;
    uint64_t piece;   /* bytes that one message carries at most, > 0 */
    uint64_t last;    /* sequence number of the newest message; the first one is 1 */
    uint64_t asked;   /* newest message that asked for an acknowledgement */
    uint64_t acked;   /* everything up to this is complete */
    uint64_t flushed; /* everything up to this has to be acknowledged soon; may be a message still to be made */
    uint64_t queued;  /* messages that the queue will become */
    struct window_operation *head, *tail;
    uint64_t lock;    /* number of the LOCK in progress or granted; 0: not made yet */
    bool locked;      /* it is granted */
    unsigned get_first, get_count; /* GETs and FETCHes without their data, in the order sent */
    struct {
        uint64_t sequence;
        char *to;
        uint64_t bytes, received;
    } gets[WINDOW_DEPTH];
};

void window_origin_init(struct window_origin *origin, uint64_t window, int rank, uint64_t piece);
/* Queues an operation; `made` and `next` are set here. Until it comes back from window_origin_next it belongs to the core. */
void window_origin_submit(struct window_origin *origin, struct window_operation *operation);
/* The number of the last message of everything submitted so far. */
static inline uint64_t window_origin_goal(const struct window_origin *origin)
{
    return origin->last + origin->queued;
}
/* Everything submitted so far is driven to its acknowledgement. Returns the goal. */
uint64_t window_origin_flush(struct window_origin *origin);

struct window_message {
    struct window_header header;
    const void *data;
    uint64_t bytes;                     /* of data */
    struct window_operation *finished;  /* the operation whose last message this is: its owner's again once the message is sent */
};
/* The next message to send; false: nothing, or WINDOW_DEPTH are on their way. */
bool window_origin_next(struct window_origin *origin, struct window_message *message);
/* An ACK, DATA or LOCKED came. For DATA, *to is where its bytes go. ERR_TRANSPORT: not what was asked for, nothing changed. */
int window_origin_receive(struct window_origin *origin, const struct window_header *header, uint64_t bytes, char **to);

/* Every operation up to the goal is complete at the target. Later ones do not count: other threads may go on. */
static inline bool window_origin_reached(const struct window_origin *origin, uint64_t goal)
{
    if (PLANTED_BUG(BUG_FLUSH_WAITS_FOR_LATER)) goal = window_origin_goal(origin);
    return origin->acked >= goal;
}

/* Buffers of every operation up to the goal are the caller's again. */
static inline bool window_origin_reached_here(const struct window_origin *origin, uint64_t goal)
{
    return origin->last >= goal && (origin->get_count == 0 || origin->gets[origin->get_first].sequence > goal);
}

/* ---- Target: one a window and origin ------------------------------------------------------------------------- */

struct window_target {
    uint64_t handled; /* sequence number of the newest message handled */
    uint64_t lock;    /* number of the LOCK that waits or is granted; 0: none */
    bool locked;
};

struct window_limits {
    uint64_t bytes, slots; /* of this rank's part of the window */
    uint64_t piece;        /* that one message covers at most: what is asked for at a time is bounded */
    /* ACCUMULATE, FETCH: bytes of one element of the header's type, and of operands for each byte; element 0: the
     * operation does not exist. */
    unsigned element, operands;
};

/* What the header asks for, after every field was checked: in this order. */
struct window_request {
    bool write;  /* the data goes to [offset, offset + bytes) */
    bool read;   /* [offset, offset + bytes) is sent back as DATA */
    bool combine; /* the data is combined with [offset, offset + bytes); with `read`: which is sent back as it was before */
    bool signal; /* then the slot is raised */
    bool lock, unlock;
    bool acknowledge;
};
/* ERR_TRANSPORT: out of order, or a field that lies; nothing changed. */
int window_target_receive(struct window_target *target, const struct window_header *header, uint64_t bytes,
                          const struct window_limits *limits, struct window_request *request);

/* The turn of the LOCK that waits has come: LOCKED with the number that this returns is to be sent. */
uint64_t window_target_grant(struct window_target *target);

/* True when [offset, offset + bytes) lies in `size` bytes. */
static inline bool window_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

#endif
