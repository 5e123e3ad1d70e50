/* protocol.h - how a message travels, as a pure core: eager, rendezvous, announced receives, truncation, flow.
 *
 * Events go in, at most one action comes out, by value. The driver (the rest of pml, or the simulator) owns all memory,
 * moves the bytes and sends the control packets. Between two processes packets arrive in the order sent; nothing else
 * is assumed.
 *
 *   eager       the data travels with the envelope; the sender is done at once
 *   rendezvous  REQUEST (sender's address) -> the receiver reads the data -> FINISHED. Where the receiver cannot read
 *               the sender's memory: CLEAR (receiver's address), and the sender writes the data there, or streams DATA
 *               packets. REQUEST may bring the beginning of the data, which travels while CLEAR comes back
 *   announced   ANNOUNCE (receiver's address, and the number of envelopes seen from that source) -> the sender of a
 *               matching message writes the data, then FILLED. Where the writing takes its time: FILLED, which keeps its
 *               place among the envelopes, and the data lands later
 *
 * Announcements are hints which must never change what matches what. A receive announces itself only when no receive
 * that is pending already could take one of its messages. The sender drops an announcement when a message that the
 * announcement had not counted could be taken by the receive; it may drop any. While one is kept, the next message that
 * its receive accepts uses it up, whichever way that message travels.
 *
 * What a peer can make this process keep is bounded. Data without a receive, for which eager messages have no slots: their credit is bytes,
 * past NCCLX_UNEXPECTED_LIMIT the peer is told HOLD, and whatever was not on its way then (transport.h, in_flight) asks first, as REQUEST,
 * also what its program had handed over before. REQUESTs without a receive: no more than PROTOCOL_REQUESTS_MAX, of which the sender's program
 * is told with an error. Announcements: the driver drops those beyond a few.
 */
#ifndef PML_PROTOCOL_H
#define PML_PROTOCOL_H

#include "pml/match.h"

/* Kinds of packets. */
enum protocol_kind {
    PROTOCOL_NONE = 0,
    PROTOCOL_EAGER,
    PROTOCOL_REQUEST,
    PROTOCOL_CLEAR,
    PROTOCOL_DATA,
    PROTOCOL_FINISHED,
    PROTOCOL_ANNOUNCE,
    PROTOCOL_FILLED,
    PROTOCOL_WITHDRAW,  /* takes an announcement back */
    PROTOCOL_WITHDRAWN, /* the receive is its receiver's alone again */
    PROTOCOL_HOLD,      /* too much unexpected data here: use rendezvous for every size */
    PROTOCOL_RESUME,
    PROTOCOL_ACTIVE, /* an active message: not of this core */
    PROTOCOL_LANES,  /* what the drivers of lanes tell each other (lanes/lanes.h): neither */
    PROTOCOL_KINDS
};

/* What may be done between two processes; the driver keeps it up to date. */
struct protocol_route {
    size_t eager_limit; /* largest eager message */
    bool can_read;      /* this side can read the peer's memory */
    bool can_write;     /* and write it */
    size_t first;       /* bytes that go with REQUEST; 0: none, as where the peer reads them anyway */
    bool held;          /* the peer said HOLD */
};

/* Tags of the latest envelopes sent to a peer; announcements that have counted fewer than (sent - this) are dropped. */
#define PROTOCOL_RECENT 8

struct protocol_announcement {
    struct protocol_announcement *next;
    uint64_t receive; /* the receiver's name for its receive */
    uint64_t address; /* of its buffer, there */
    uint64_t bytes;
    int tag; /* or ANY_TAG */
};

/* One peer in one matching space. Zero at first. */
struct protocol_peer {
    struct match_peer match;
    uint32_t sent; /* envelopes sent to it, modulo 2^32 */
    int recent[PROTOCOL_RECENT];
    struct protocol_announcement *announced; /* by it, in its order */
};

struct protocol_stream {
    uint64_t bytes, moved;
    uint64_t first; /* of those moved: with REQUEST */
};

enum protocol_state {
    STATE_IDLE = 0,
    STATE_REQUESTED,   /* send: REQUEST is out */
    STATE_STREAMING,   /* send: CLEAR came, or FILLED is out; receive: CLEAR is out, or FILLED came */
    STATE_ANNOUNCED,   /* receive */
    STATE_WITHDRAWING, /* receive: cancelled while announced */
    STATE_ARRIVING,    /* receive: of an eager message, whose data goes into the buffer as it comes */
    STATE_DONE
};

struct protocol_send {
    struct protocol_stream stream;
    uint64_t receive; /* the receiver's name for it, known once CLEAR */
    enum protocol_state state;
};

struct protocol_receive {
    struct match_receive match;
    size_t capacity;
    struct protocol_stream stream;
    enum protocol_state state;
};

/* ---- Sender -------------------------------------------------------------------------------------------------- */

enum protocol_way {
    SEND_EAGER,   /* send the envelope with the data; complete when it is on its way */
    SEND_REQUEST, /* send REQUEST; complete by FINISHED, or after the last DATA */
    SEND_FILL,    /* write to the announcement's address, then send FILLED; complete */
    SEND_REFUSE   /* longer than the announced buffer: send FILLED with the length and write nothing; complete */
};

/* The kept announcement that a message with this tag has to use, unlinked; or null. */
struct protocol_announcement *protocol_use(struct protocol_peer *peer, int tag);

/* A message is sent now. *used: the announcement it used up, which the caller owns again; else untouched. */
static inline enum protocol_way protocol_send_start(struct protocol_peer *peer, const struct protocol_route *route,
                                                    int tag, size_t bytes, struct protocol_announcement **used)
{
    struct protocol_announcement *announcement = NULL;
    peer->recent[peer->sent++ % PROTOCOL_RECENT] = tag;
    if (__builtin_expect(peer->announced != NULL, 0) &&
        !(PLANTED_BUG(BUG_ANNOUNCEMENT_NOT_USED_UP) && bytes <= route->eager_limit))
        announcement = protocol_use(peer, tag);
    if (__builtin_expect(announcement != NULL, 0)) {
        *used = announcement;
        if (bytes <= route->eager_limit) return SEND_EAGER; /* the receive is there: held or not */
        if (bytes > announcement->bytes && !PLANTED_BUG(BUG_TRUNCATED_WRITE)) return SEND_REFUSE;
        return route->can_write ? SEND_FILL : SEND_REQUEST;
    }
    return bytes <= route->eager_limit && !route->held ? SEND_EAGER : SEND_REQUEST;
}

/* ANNOUNCE came, which counted `count` envelopes. True: kept, linked into peer. False: dropped, the caller's again. */
bool protocol_announced(struct protocol_peer *peer, struct protocol_announcement *announcement, uint32_t count);
/* WITHDRAW came: the announcement, unlinked, or null when it was used or dropped. Answer WITHDRAWN in either case. */
struct protocol_announcement *protocol_withdrawn(struct protocol_peer *peer, uint64_t receive);

/* REQUEST goes out, with the first bytes of so many. */
void protocol_requested(struct protocol_send *send, size_t bytes, size_t first);
/* FINISHED or CLEAR came. False: the peer breaks the protocol. */
bool protocol_finished(struct protocol_send *send);
bool protocol_cleared(struct protocol_send *send, uint64_t receive);
/* Bytes to send next from offset stream.moved, at most `room`, and counts them as sent. A stream of 0 bytes never
 * starts. */
size_t protocol_stream_next(struct protocol_send *send, size_t room);

/* ---- Receiver ------------------------------------------------------------------------------------------------ */

/* What to do with a receive and a message that belong together, in this order: send `control`; copy; complete with
 * `error`. After READ the driver calls protocol_copied, and does what that says. */
struct protocol_action {
    enum protocol_kind control; /* to the sender; NONE: nothing */
    enum { COPY_NOTHING, COPY_EAGER, COPY_FIRST, COPY_READ } copy; /* FIRST: what came with REQUEST */
    bool complete;
    int error;
};

/* A message of `bytes`, EAGER or REQUEST, meets its receive. first: fewer, which came with REQUEST. */
struct protocol_action protocol_deliver(struct protocol_receive *receive, const struct protocol_route *route,
                                        enum protocol_kind kind, size_t bytes, size_t first);
struct protocol_action protocol_copied(struct protocol_receive *receive);
/* The envelope of an EAGER message that fits is here, its data is not: it goes straight into the buffer. */
static inline void protocol_arrives(struct protocol_receive *receive)
{
    receive->state = STATE_ARRIVING;
}
/* DATA came. Nothing moves, with an error, when the peer breaks the protocol. */
struct protocol_action protocol_data(struct protocol_receive *receive, uint64_t offset, size_t bytes);

/* Shall this receive, about to be posted, announce itself? *count is for the packet. peer null: source is a wildcard.
 */
static inline bool protocol_announces(const struct match_space *space, const struct protocol_peer *peer,
                                      const struct protocol_receive *receive, size_t threshold, uint32_t *count)
{
    if (__builtin_expect(receive->capacity < threshold, 1) || !peer) return false;
    if (!PLANTED_BUG(BUG_AMBIGUOUS_ANNOUNCED) &&
        match_ambiguous(space, &peer->match, receive->match.source, receive->match.tag))
        return false;
    *count = peer->match.seen + (PLANTED_BUG(BUG_COUNT_OFF_BY_ONE) ? 1 : 0);
    return true;
}

/* FILLED came for this receive. An action with ERR_TRANSPORT in it: the peer breaks the protocol. follows: the data is
 * still on its way, and protocol_landed says when it is there. */
struct protocol_action protocol_filled(struct protocol_peer *peer, struct protocol_receive *receive, int source,
                                       int tag, size_t bytes, bool follows);
/* All data that was written after CLEAR, or follows FILLED, is there. */
struct protocol_action protocol_landed(struct protocol_receive *receive);
/* What the sender of this message may write into at offset 0: none of it, unless the receive is announced, or cleared. */
size_t protocol_grants(const struct protocol_receive *receive);

enum protocol_cancel { CANCEL_DONE, CANCEL_WITHDRAW, CANCEL_TOO_LATE };
/* DONE: no longer pending, complete it as cancelled. WITHDRAW: send that; it completes with WITHDRAWN, or by a message
 * that was faster. */
enum protocol_cancel protocol_cancel(struct protocol_peer *peer, struct protocol_receive *receive);
/* WITHDRAWN came. True: complete it as cancelled. */
bool protocol_cancelled(struct protocol_peer *peer, struct protocol_receive *receive);

/* ---- Flow: bytes of unexpected messages that this process holds ----------------------------------------------- */

struct protocol_flow {
    uint64_t limit;
    uint64_t held;
};

/* Each message kept for later costs this much beside its data, so that empty ones are bounded too. */
#define PROTOCOL_ENVELOPE_COST 128

/* After these the driver tells the peer HOLD (once) when true; and RESUME, when true, to all it had told. */
static inline bool protocol_flow_keep(struct protocol_flow *flow, size_t bytes)
{
    flow->held += bytes + PROTOCOL_ENVELOPE_COST;
    return flow->held > flow->limit;
}

static inline bool protocol_flow_release(struct protocol_flow *flow, size_t bytes)
{
    flow->held -= PLANTED_BUG(BUG_HELD_NOT_RELEASED) ? 0 : bytes + PROTOCOL_ENVELOPE_COST;
    return flow->held <= flow->limit / 2;
}

/* Sends to one peer that wait for their receivers, and REQUESTs from it that wait here for a receive. */
#define PROTOCOL_REQUESTS_MAX (UINT32_C(1) << 20)

/* What one peer has here without a receive. Zero at first. */
struct protocol_kept {
    bool held;         /* it was told HOLD */
    uint64_t late;     /* bytes that have come since then */
    uint32_t requests; /* REQUESTs */
};

/* One more is kept, and `bytes` have travelled that count. in_flight: what may have been on its way when the peer was told HOLD; 0: that is
 * not known. False: it breaks the protocol. */
static inline bool protocol_kept_more(struct protocol_kept *kept, enum protocol_kind kind, size_t bytes, uint64_t in_flight)
{
    if (kind == PROTOCOL_REQUEST && ++kept->requests > PROTOCOL_REQUESTS_MAX) return false;
    if (kept->held) kept->late += bytes;
    return !in_flight || kept->late <= in_flight;
}

static inline void protocol_kept_less(struct protocol_kept *kept, enum protocol_kind kind)
{
    if (kind == PROTOCOL_REQUEST) kept->requests--;
}

static inline void protocol_kept_told(struct protocol_kept *kept, bool hold)
{
    kept->held = hold;
    kept->late = 0;
}

#endif
