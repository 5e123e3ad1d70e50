/* meet.h - two processes that want one connection, may both open it, lose its socket, and let it rest: a pure core.
 *
 * Either side opens on first use. The one that is connected to answers with a greeting on the socket that it keeps, and
 * so does the other; both send nothing else before the other's greeting has come. When both open at once, the lower
 * rank's attempt wins: the lower rank drops what the higher one opened, the higher one gives its own up. Attempts are
 * numbered, and a greeting tells how many its sender has made: an attempt that was given up and is found late leads
 * nowhere. A newer one means that the opener has given up the socket in use, which then ends here, too.
 *
 * A socket that ends without notice is replaced; what was under way in it is in keep.h. One that is not used may be
 * given up by agreement: one side asks, the other says yes, or no when it has something to send, and both know that the
 * end of the socket is nobody's death. When both ask at once, the lower rank's question counts. Questions and answers
 * name their socket, as they may be repeated on a later one. */
#ifndef PML_TCP_MEET_H
#define PML_TCP_MEET_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stdint.h>

enum meet_state {
    MEET_IDLE,      /* never used, broken, or at rest */
    MEET_OPENING,   /* our attempt is under way */
    MEET_CONNECTED, /* it has led to a connection, on which no greeting has come yet */
    MEET_KEPT,      /* the peer's attempt has, and no greeting has come yet */
    MEET_OPEN,
    MEET_RESTING, /* we have asked whether it may rest, and send nothing before the answer */
    MEET_LEAVING  /* we have said that it may: the socket is closed once that is out */
};

struct meet {
    enum meet_state state;
    bool lower;       /* our rank is */
    uint32_t attempt; /* of ours: the latest */
    uint32_t passed;  /* of the peer's: up to this they lead nowhere any more */
    uint64_t name;    /* of the socket, from CONNECTED and KEPT on: the same on both sides */
};

enum meet_action {
    MEET_NOTHING,
    MEET_START,        /* an attempt */
    MEET_KEEP,         /* the connection that has come, after all that was there before */
    MEET_DROP,         /* the connection that has come */
    MEET_GREET,        /* on our own, and wait for the peer's greeting */
    MEET_USE,
    MEET_ASK,          /* whether it may rest */
    MEET_YES,          /* is to be answered; the socket is closed behind that */
    MEET_NO,           /* is to be answered */
    MEET_CLOSE         /* the socket: it rests */
};

static inline bool meet_talks(const struct meet *meet)
{
    return meet->state == MEET_OPEN || meet->state == MEET_RESTING;
}

static inline uint64_t meet_name(bool lower, uint32_t attempt)
{
    return (uint64_t)attempt << 1 | lower;
}

/* ---- Opening ---- */

/* Something is to be sent. */
static inline enum meet_action meet_wanted(struct meet *meet)
{
    if (meet->state != MEET_IDLE) return MEET_NOTHING;
    meet->state = MEET_OPENING;
    meet->attempt++;
    return MEET_START;
}

/* Our attempt has led to a connection. It is ours to drop when DROP is said. */
static inline enum meet_action meet_connected(struct meet *meet)
{
    if (meet->state != MEET_OPENING) return MEET_DROP;
    meet->state = MEET_CONNECTED;
    meet->name = meet_name(meet->lower, meet->attempt);
    return MEET_GREET;
}

/* The peer has opened one. */
static inline enum meet_action meet_accepted(struct meet *meet, uint32_t attempt)
{
    bool own = meet->state == MEET_OPENING || meet->state == MEET_CONNECTED;
    if (attempt <= meet->passed && !PLANTED_BUG(BUG_MEET_LATE_KEPT)) return MEET_DROP;
    if (own && (meet->lower || PLANTED_BUG(BUG_MEET_BOTH_DROPPED)) && !PLANTED_BUG(BUG_MEET_BOTH_KEPT)) return MEET_DROP;
    meet->state = MEET_KEPT;
    meet->passed = attempt;
    meet->name = meet_name(!meet->lower, attempt);
    return MEET_KEEP;
}

/* A greeting has come. The peer has made so many attempts. */
static inline enum meet_action meet_greeted(struct meet *meet, uint32_t attempts)
{
    if (meet->state != MEET_CONNECTED && meet->state != MEET_KEPT) return MEET_NOTHING;
    if (attempts > meet->passed) meet->passed = attempts;
    meet->state = MEET_OPEN;
    return MEET_USE;
}

/* Our attempt, or the socket, has ended. The driver asks again with meet_wanted, after a while: where a connection of
 * ours was dropped, the peer has one of its own under way, or no room. */
static inline void meet_ended(struct meet *meet)
{
    meet->state = MEET_IDLE;
}

/* ---- Resting ---- */

/* Nothing is under way here. */
static inline enum meet_action meet_rest(struct meet *meet)
{
    if (meet->state != MEET_OPEN) return MEET_NOTHING;
    meet->state = MEET_RESTING;
    return MEET_ASK;
}

/* The peer asks. quiet: nothing is under way here. */
static inline enum meet_action meet_asked(struct meet *meet, uint64_t name, bool quiet)
{
    if (name != meet->name && !PLANTED_BUG(BUG_MEET_OLD_QUESTION)) return MEET_NOTHING;
    if (!meet_talks(meet)) return MEET_NOTHING;
    if (meet->state == MEET_RESTING && meet->lower && !PLANTED_BUG(BUG_MEET_BOTH_ANSWER)) return MEET_NOTHING;
    meet->state = quiet ? MEET_LEAVING : MEET_OPEN;
    return quiet ? MEET_YES : MEET_NO;
}

static inline enum meet_action meet_answered(struct meet *meet, uint64_t name, bool yes)
{
    if (meet->state != MEET_RESTING || (name != meet->name && !PLANTED_BUG(BUG_MEET_OLD_ANSWER))) return MEET_NOTHING;
    meet->state = yes ? MEET_IDLE : MEET_OPEN;
    return yes ? MEET_CLOSE : MEET_USE;
}

#endif
