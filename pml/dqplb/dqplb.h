/* dqplb.h - flow control and load balancing of one connection over many lanes, as a pure core: no socket, no verbs, no
 * clock, no memory of its own after creation.
 *
 * A lane is a queue pair or a socket: writes to it are placed and completed in the order posted; between lanes there
 * is no order. The sender cuts puts into segments, many puts side by side, and deals the segments to the lanes. Small
 * puts go ahead on one lane of their own, the fast one. Three limits hold: lanes used, segments in flight on each,
 * bytes of a segment; a put may bring smaller ones. In between these and two segments a lane, a window that follows what the
 * path needs (control.h), and what all connections of a port may have in flight (budget.h). Neither holds small puts back, which count.
 *
 *   plain put      writes without immediate: the target notices nothing. Complete when all completions are in.
 *   numbered put   every segment carries a number in its immediate; a notice, which the driver carries on the control
 *                  lane, takes effect at the target once all numbers below its bounds have come: those of the put and
 * what serves it as a marker, so that it waits for no later segment of others. Every earlier put of the same order (a
 * window and a target) is placed by then: notices of an order keep their order, and a lane that carried plain writes of
 * it since its last immediate gets an empty write with a number, a marker, first. An immediate that has come implies
 * that what was written before it on its lane is placed. flush          complete when all earlier puts of an order are
 * in the target's memory: all completions are in, and where a completion is not placement yet (verbs), a small read on
 * each lane used has come back.
 *
 * The immediate, as published: bits 0-23 number, 24-29 zero, 30 fast lane, 31 last of its put. Numbers of the fast
 * lane are counted apart: it keeps order. The target keeps the next number expected and a bitmap of those that came
 * early, and tells now and then how far it is; the sender never lets (next - what the target expects) reach the
 * bitmap's size. A completion would not do: it may come before the target has looked at the number. Immediates cost
 * receives at the target, which are credits of each lane, and notices cost places there, which are credits too: a
 * sender never runs a peer out of either.
 *
 * A lane that fails is closed by both sides (the driver: queue pair in error, socket closed, completions drained);
 * then each tells the other what it has (struct dqplb_report). What was written up to the last number that has come is
 * placed, and not sent again: the target may have used that memory for something else since. The rest is sent again, in
 * its order, on one other lane; or on the same one when it is the first to come up again. The connection fails when the
 * driver says so: it knows whether a lane can come back.
 *
 * Sources: the published system's DQPLB for limits, segments, immediates and the fast path; markers, credits and
 * recovery are this project's.
 */
#ifndef PML_DQPLB_H
#define PML_DQPLB_H

#include "pml/dqplb/budget.h"
#include "pml/dqplb/control.h"

#include <stddef.h>
#include <stdint.h>

#define DQPLB_MAX_LANES 64 /* of a connection, the fast one among them */
#define DQPLB_MAX_OUTSTANDING 4096
#define DQPLB_NUMBER_BITS 24
#define DQPLB_NUMBER_MASK ((UINT32_C(1) << DQPLB_NUMBER_BITS) - 1)
#define DQPLB_FAST (UINT32_C(1) << 30)
#define DQPLB_LAST (UINT32_C(1) << 31)
#define DQPLB_RESERVED (~(DQPLB_NUMBER_MASK | DQPLB_FAST | DQPLB_LAST))
#define DQPLB_MAX_WINDOW (UINT32_C(1) << 16) /* numbers; more would only cost memory. A power of two, at least 64 */
#define DQPLB_MIN_WINDOW 64
#define DQPLB_MAX_NOTICES 256

/* Of a distance class, or of a put. */
struct dqplb_limits {
    unsigned lanes;       /* that carry data */
    unsigned outstanding; /* segments in flight on each */
    size_t segment;       /* bytes */
};

/* What both sides agree on when they connect: the smaller of what each offers. */
struct dqplb_terms {
    unsigned lanes;    /* there are, the fast one among them: at least 1 */
    unsigned depth;    /* entries a lane takes */
    unsigned receives; /* for immediates, on each lane */
    unsigned window;   /* of numbers */
    unsigned notices;  /* places */
    bool reads;        /* a completion is not placement: a flush has to read */
};

/* ---- Sender --------------------------------------------------------------------------------------------------- */

struct dqplb_put;
struct dqplb_flush;

/* What puts to one target through one window have in common. The caller's memory; all zero at first. */
struct dqplb_order {
    struct dqplb_put *first, *last;               /* that are not posted, or not closed, as they came */
    struct dqplb_flush *first_flush, *last_flush; /* under way */
    uint64_t epoch;                               /* flushes so far */
    uint64_t active;                              /* puts since the last flush that are not complete */
    uint64_t plain, unread;          /* lanes that may have carried plain writes; and any since their last read */
    uint32_t stamp[DQPLB_MAX_LANES]; /* of the lane, at the last plain write: see struct dqplb_lane */
};

enum dqplb_put_state {
    DQPLB_PUT_POSTING, /* segments are left */
    DQPLB_PUT_WAITING, /* for an earlier put of its order, to be posted and closed */
    DQPLB_PUT_CLOSING, /* markers and the notice are left */
    DQPLB_PUT_POSTED   /* completions are left */
};

/* The caller's memory, until it is DONE. The caller sets the first part. */
struct dqplb_put {
    const char *from;
    uint64_t to, key; /* address in the target, and what allows to write there */
    uint64_t bytes;
    bool notice;                /* numbered, with a notice at its end. Without bytes: the notice alone */
    struct dqplb_limits limits; /* smaller than the connection's; 0: the connection's */

    struct dqplb_put *next;            /* the rest is the core's */
    struct dqplb_put *earlier, *later; /* in its order */
    struct dqplb_order *order;
    uint64_t epoch, offset;
    uint64_t bound, fast_bound; /* its numbers, and its markers', are below these */
    uint64_t used;              /* lanes with segments in flight */
    uint32_t in_flight;
    uint8_t state;
    bool fast;
    uint16_t on_lane[DQPLB_MAX_LANES];
};

/* All of it is the core's, until it is FLUSHED. */
struct dqplb_flush {
    struct dqplb_flush *later; /* in its order */
    struct dqplb_flush *next;
    struct dqplb_order *order;
    uint64_t epoch, active;
    uint64_t to_read; /* lanes */
    unsigned reading;
    bool posted;
};

enum dqplb_entry_kind { DQPLB_ENTRY_PLAIN, DQPLB_ENTRY_NUMBERED, DQPLB_ENTRY_MARKER, DQPLB_ENTRY_READ };

/* One thing in flight on a lane. */
struct dqplb_entry {
    union {
        struct dqplb_put *put;     /* PLAIN, NUMBERED */
        struct dqplb_flush *flush; /* READ */
    } of;
    uint64_t offset, number;
    uint64_t posted_ns; /* 0: not known, or not posted as a new one */
    uint32_t bytes;
    uint8_t kind;
    bool fast, last;
};

enum dqplb_lane_state { DQPLB_LANE_DOWN, DQPLB_LANE_UP, DQPLB_LANE_FAILED, DQPLB_LANE_MOVING };

struct dqplb_lane {
    struct dqplb_entry *ring;    /* null until it comes up for the first time */
    uint32_t head, sent, tail;   /* completed, posted, to be posted again in this life; modulo 2^32 */
    uint32_t segments;           /* in flight */
    uint64_t bytes;              /* of them */
    uint32_t stamp;              /* changes with each immediate, and with each end of the lane */
    uint64_t bound, fast_bound;  /* its latest immediates' numbers are below these; 0: none since its latest end */
    uint32_t life;               /* how often it came up */
    uint64_t receives, numbered; /* of this life: that the target has posted, and used */
    uint8_t state;
    uint8_t heir; /* MOVING: where its entries go */
};

struct dqplb_puts {
    struct dqplb_put *first, **last;
};

struct dqplb_sender {
    struct dqplb_terms terms;
    struct dqplb_limits limits;
    size_t fast_bytes; /* puts up to this take the fast lane */
    struct dqplb_lane *lane;
    uint32_t ring_mask;
    uint64_t up, data;         /* lanes; and those for segments of large puts */
    uint64_t moving, returned; /* lanes in MOVING; those up again that post anew what they held */
    uint64_t fast_owed;        /* lanes whose entries have to go before new ones of the fast lane */
    unsigned fast_lane;        /* DQPLB_MAX_LANES: none */
    unsigned turn;
    struct dqplb_puts fast;  /* to be posted */
    struct dqplb_puts large; /* to be posted; they take turns */
    struct dqplb_puts closing;
    struct dqplb_puts done;
    struct dqplb_flush *reading; /* all puts posted, reads wanted; in no order */
    struct dqplb_flush *flushed;
    uint64_t next, expected; /* numbers: to be given next; that the target expects next, as far as it has told */
    uint64_t fast_next;
    uint64_t noticed, applied; /* notices sent; places given back */
    struct dqplb_control control;
    struct dqplb_share share;
    uint64_t now;  /* as far as it was told */
    uint64_t over; /* bytes in flight, of each lane what is beyond two segments; of those not for data all */
    bool idle;     /* nothing can be posted before the next event */
    int failed;                /* 0, or the code with which all ends */
};

/* Puts of up to fast_bytes take the fast lane. Terms and limits are checked: NCCLX_ERR_ARG; NCCLX_ERR_NO_MEM. */
int dqplb_sender_init(struct dqplb_sender *sender, const struct dqplb_terms *terms, const struct dqplb_limits *limits,
                      size_t fast_bytes);
void dqplb_sender_release(struct dqplb_sender *sender);
/* What the target offers is known: receives, window and notices are its own, lanes the fewer of both. Puts may be there
 * already, but nothing may have been posted. NCCLX_ERR_TRANSPORT: with such an offer there is no connection. */
int dqplb_agree(struct dqplb_sender *sender, const struct dqplb_terms *offer);
/* The window follows what segments tell, from two a lane on. Before anything is put. */
void dqplb_adapt(struct dqplb_sender *sender);
/* What it has in flight counts there. Before anything is put. When budget_next says so, it may post: dqplb_turn, and dqplb_next. */
void dqplb_join(struct dqplb_sender *sender, struct dqplb_budget *budget);
void dqplb_turn(struct dqplb_sender *sender);
/* Whether what happens next should be told the time of: small puts are not timed. */
bool dqplb_wants_clock(const struct dqplb_sender *sender);
void dqplb_clock(struct dqplb_sender *sender, uint64_t now);

/* Ways in. */
void dqplb_put(struct dqplb_sender *sender, struct dqplb_order *order, struct dqplb_put *put);
void dqplb_flush(struct dqplb_sender *sender, struct dqplb_order *order, struct dqplb_flush *flush);
/* Whether the lane may come up: not before the peer's report, and not while what it held follows to another lane. */
bool dqplb_lane_may_open(const struct dqplb_sender *sender, unsigned lane);
/* Whether a lane is up, or may come up though those of `gone` never will: what a lane held may have followed to one that is gone.
 * Without hope the driver ends the connection. To be asked after a loss and after a report. */
bool dqplb_has_hope(const struct dqplb_sender *sender, uint64_t gone);
/* Whether anything is in flight, or to be sent again, on any lane: also markers, whose puts may be complete. */
bool dqplb_holds(const struct dqplb_sender *sender);
/* It came up, for the first time or again. NCCLX_ERR_NO_MEM; NCCLX_ERR_ARG: it may not, any more; it may later. */
int dqplb_lane_up(struct dqplb_sender *sender, unsigned lane);
/* The oldest entry of the lane is complete. NCCLX_ERR_TRANSPORT: there is none. */
int dqplb_completed(struct dqplb_sender *sender, unsigned lane);
/* The target has posted this many receives in this life of the lane; says nothing when it is of an earlier life.
 * NCCLX_ERR_TRANSPORT: it cannot be. */
int dqplb_credited(struct dqplb_sender *sender, unsigned lane, uint32_t life, uint64_t receives);
/* How far the target is: the number it expects, and the notices applied since the beginning. */
int dqplb_progressed(struct dqplb_sender *sender, uint64_t expected, uint64_t applied);
/* Nothing more can be posted on the lane. */
void dqplb_lane_failed(struct dqplb_sender *sender, unsigned lane);
struct dqplb_report;
/* The target has closed the lane, too, and this is what it has. NCCLX_ERR_TRANSPORT: it cannot be. */
int dqplb_lane_reported(struct dqplb_sender *sender, unsigned lane, const struct dqplb_report *report);
/* Everything ends with the code. */
void dqplb_sender_fail(struct dqplb_sender *sender, int code);

enum dqplb_action_kind {
    DQPLB_NOTHING,
    DQPLB_WRITE,  /* bytes from `from` to `to` with `key` on the lane; none: an empty write. immediate: when it has one
                   */
    DQPLB_READ,   /* a small read of anything on the lane */
    DQPLB_NOTICE, /* the notice of put, with its bounds, on the control lane */
    DQPLB_DONE,   /* put is complete, with `code`, and the caller's again */
    DQPLB_FLUSHED /* flush alike */
};

struct dqplb_action {
    enum dqplb_action_kind kind;
    unsigned lane;
    struct dqplb_put *put; /* of WRITE: null when it is a marker */
    struct dqplb_flush *flush;
    const char *from;
    uint64_t to, key;
    size_t bytes;
    bool has_immediate;
    uint32_t immediate;
    uint64_t bound, fast_bound; /* numbers below these */
    int code;
};

/* To be called after events until it says NOTHING; the driver may stop before, and go on later. What it says is done.
 */
enum dqplb_action_kind dqplb_next(struct dqplb_sender *sender, struct dqplb_action *action);

/* ---- Target ---------------------------------------------------------------------------------------------------- */

struct dqplb_notice {
    uint64_t bound, fast_bound; /* counted without end */
    uint64_t token;
    uint32_t order;
};

struct dqplb_tracker {
    struct dqplb_terms terms;
    uint64_t next, fast_next;    /* expected */
    uint64_t *early;             /* bitmap of the window */
    struct dqplb_notice *notice; /* those that wait, as they came */
    unsigned waiting;
    uint64_t applied, applied_told, next_told;
    uint64_t due; /* lanes whose credits the sender should know */
    struct {
        uint32_t life;
        uint64_t taken, told; /* receives used and posted again; of which the sender knows */
    } lane[DQPLB_MAX_LANES];
};

int dqplb_tracker_init(struct dqplb_tracker *tracker, const struct dqplb_terms *terms);
void dqplb_tracker_release(struct dqplb_tracker *tracker);
void dqplb_tracker_lane_up(struct dqplb_tracker *tracker, unsigned lane);
/* An immediate has come. The receive it took is to be posted again. NCCLX_ERR_TRANSPORT: the sender breaks the
 * protocol (a duplicate, a number outside the window, bits that must be zero). */
int dqplb_arrived(struct dqplb_tracker *tracker, unsigned lane, uint32_t immediate);
/* A notice has come. Those of one order take effect as they came; 0: this one waits for no other. */
int dqplb_noticed(struct dqplb_tracker *tracker, uint32_t order, uint64_t bound, uint64_t fast_bound, uint64_t token);
/* The next notice that takes effect. */
bool dqplb_apply(struct dqplb_tracker *tracker, uint64_t *token);
/* Something that the sender should know, because half of what it may use is used: its credits on a lane; numbers or
 * places for notices. */
bool dqplb_credit_due(struct dqplb_tracker *tracker, unsigned *lane, uint32_t *life, uint64_t *receives);
bool dqplb_progress_due(struct dqplb_tracker *tracker, uint64_t *expected, uint64_t *applied);

/* What a target has, for a lane that it has closed. */
struct dqplb_report {
    uint32_t life;
    uint64_t next, fast_next;
    uint64_t
        early[DQPLB_MAX_WINDOW / 64]; /* terms.window bits: those that came early, at their number modulo the window */
};
void dqplb_lane_closed(struct dqplb_tracker *tracker, unsigned lane, struct dqplb_report *report);

/* ---- Limits ---------------------------------------------------------------------------------------------------- */

/* "lanes:outstanding:segment", the segment with K or M. NCCLX_ERR_ARG with a sentence that says what is wrong. */
int dqplb_limits_parse(const char *text, struct dqplb_limits *limits);

#endif
