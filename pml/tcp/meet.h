/* meet.h - two processes that want one connection, and may both open it: a pure core.
 *
 * Either side opens on first use. The one that is connected to answers with a greeting on the connection that it keeps;
 * the other sends nothing before that has come, so nothing is lost when a connection is dropped. When both open at
 * once, the lower rank's attempt wins: the lower rank drops what the higher one opened, the higher one gives its own
 * up. */
#ifndef PML_TCP_MEET_H
#define PML_TCP_MEET_H

#include "runtime/base/planted.h"

#include <stdbool.h>

enum meet_state {
    MEET_IDLE,
    MEET_OPENING,   /* our attempt is under way */
    MEET_CONNECTED, /* it has led to a connection, on which no greeting has come yet */
    MEET_OPEN
};

struct meet {
    enum meet_state state;
    bool lower; /* our rank is */
};

enum meet_action {
    MEET_NOTHING,
    MEET_START,        /* an attempt */
    MEET_KEEP,         /* greet on the connection that has come, and use it */
    MEET_KEEP_IT_ONLY, /* the same, and give our own attempt, or what it has led to, up */
    MEET_DROP,         /* the connection that has come */
    MEET_USE           /* our own */
};

/* Something is to be sent. */
static inline enum meet_action meet_wanted(struct meet *meet)
{
    if (meet->state != MEET_IDLE) return MEET_NOTHING;
    meet->state = MEET_OPENING;
    return MEET_START;
}

/* Our attempt has led to a connection. It is ours to drop when DROP is said. */
static inline enum meet_action meet_connected(struct meet *meet)
{
    if (meet->state != MEET_OPENING) return MEET_DROP;
    meet->state = MEET_CONNECTED;
    return MEET_NOTHING;
}

/* The peer has opened one. */
static inline enum meet_action meet_accepted(struct meet *meet)
{
    bool own = meet->state == MEET_OPENING || meet->state == MEET_CONNECTED;
    if (PLANTED_BUG(BUG_MEET_BOTH_KEPT) && own)
        own = false;
    else if (meet->state == MEET_OPEN || (own && (meet->lower || PLANTED_BUG(BUG_MEET_BOTH_DROPPED))))
        return MEET_DROP;
    meet->state = MEET_OPEN;
    return own ? MEET_KEEP_IT_ONLY : MEET_KEEP;
}

/* A greeting has come on the connection that we have opened. */
static inline enum meet_action meet_greeted(struct meet *meet)
{
    if (meet->state != MEET_CONNECTED) return MEET_NOTHING;
    meet->state = MEET_OPEN;
    return MEET_USE;
}

/* The connection that we have opened has ended without a greeting: the peer has one of its own under way. Should that
 * fail, the driver asks again with meet_wanted, after a while. */
static inline void meet_dropped(struct meet *meet)
{
    if (meet->state == MEET_CONNECTED) meet->state = MEET_IDLE;
}

#endif
