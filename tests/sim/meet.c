/* meet.c - two ranks that open a connection whenever they like, lose its sockets, let it rest and die, in virtual time.
 *
 * Holds: what a rank has handed over arrives, each byte once and in order, whichever sockets were dropped or reset on the
 * way; both end up with the same socket, or none; nobody takes a socket that was given up by agreement for one that broke;
 * and who has something for a rank that has died learns of it. */
#include "pml/tcp/keep.h"
#include "pml/tcp/meet.h"

#include "tests/sim/engine.h"

#include <stddef.h>
#include <stdlib.h>

#define PACKETS 12
#define RETRY 5000
#define BYTES_MAX 3000 /* of a packet */
#define CHUNK_MAX 1500 /* of what travels as one */
#define ACKNOWLEDGE 4000

enum kind { KIND_DATA = 1, KIND_ASK, KIND_YES, KIND_NO, KIND_ACK };

struct header {
    uint32_t kind, bytes, code, number;
    uint64_t name, come;
};

struct side;

struct link { /* a socket */
    struct side *opener, *other;
    uint32_t attempt;
    struct sim_channel *to_other, *to_opener;
    bool opener_closed, other_closed;
    bool to_other_cut, to_opener_cut;
    bool insisted; /* its opener has dropped the peer's for it */
    bool troubled; /* something else than its owners has ended it */
};

struct side {
    struct sim *sim;
    struct side *peer;
    struct meet meet;
    struct keep keep;
    struct link *own, *used; /* our attempt; what state KEPT and later are about */
    unsigned char *lent;     /* data of the packet that is lent to the stream; null: none */
    size_t lent_bytes;
    uint64_t come, told;     /* bytes of the peer's stream */
    bool broken;             /* a socket was lost, and none has taken its place yet */
    bool dead, lost;
    int wanted, sent, got;
    size_t have;
    unsigned char in[sizeof(struct header) + BYTES_MAX + 2 * CHUNK_MAX];
};

enum word { WORD_OPEN, WORD_GREETING, WORD_BYTES, WORD_END };

struct message {
    enum word word;
    struct link *link;
    uint32_t attempts, bytes;
    uint64_t come;
    unsigned char data[CHUNK_MAX];
};

static void work(struct side *side);

/* ---- Sockets ---- */

static bool *closed_by(struct link *link, const struct side *side)
{
    return side == link->opener ? &link->opener_closed : &link->other_closed;
}

static struct sim_channel *from(struct link *link, const struct side *side)
{
    return side == link->opener ? link->to_other : link->to_opener;
}

static bool *cut_towards(struct link *link, const struct side *side)
{
    return side == link->opener ? &link->to_opener_cut : &link->to_other_cut;
}

static void reset_towards(struct link *link, struct side *side);

/* The system there knows nothing of the socket any more, and says so. */
static void say(struct link *link, struct side *side, struct message *message)
{
    if (*cut_towards(link, side->peer)) reset_towards(link, side);
    message->link = link;
    sim_channel_send(from(link, side), message, offsetof(struct message, data) + message->bytes);
}

static void shut(struct link *link, struct side *side)
{
    struct message message = {.word = WORD_END};
    if (!link || *closed_by(link, side)) return;
    *closed_by(link, side) = true;
    say(link, side, &message);
}

static void socket_ended(struct side *side, struct link *link, bool known);

static void sees_reset(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)b;
    socket_ended(context, (struct link *)(uintptr_t)a, false);
}

/* The way to this side ends, with all that is on it. */
static void reset_towards(struct link *link, struct side *side)
{
    if (*cut_towards(link, side)) return;
    *cut_towards(link, side) = true;
    sim_channel_cut(from(link, side->peer));
    sim_after(side->sim, 1 + sim_random(side->sim, 2000), sees_reset, side, (uint64_t)(uintptr_t)link, 0);
}

/* ---- The stream ---- */

static unsigned char byte_at(const struct side *side, uint32_t number, size_t at)
{
    return (unsigned char)(number * 31 + at * 7 + side->meet.lower);
}

/* Who lent something has it back, and uses it for something else. */
static void take_back(struct side *side)
{
    if (!side->lent || side->keep.lent) return;
    memset(side->lent, 0xee, side->lent_bytes);
    side->lent = NULL;
}

static void put(struct side *side, enum kind kind, uint32_t bytes, bool own)
{
    unsigned char *data = sim_alloc(side->sim, BYTES_MAX);
    bool lends = bytes && !side->lent && sim_chance(side->sim, 1, 3);
    struct header header = {.kind = kind,
                            .bytes = bytes,
                            .code = keep_code(side->come),
                            .number = (uint32_t)side->sent,
                            .name = side->meet.name,
                            .come = side->come};
    if (!keep_grow(&side->keep, sizeof header + (lends ? 0 : bytes), own ? KEEP_MAX : KEEP_MAX - KEEP_OWN)) abort();
    for (size_t i = 0; i < bytes; i++) data[i] = byte_at(side, header.number, i);
    keep_add(&side->keep, &header, sizeof header);
    if (lends) keep_lend(&side->keep, data, bytes);
    else keep_add(&side->keep, data, bytes);
    if (lends) side->lent = data;
    if (lends) side->lent_bytes = bytes;
    side->told = side->come;
}

static void send_out(struct side *side)
{
    while (keep_unsent(&side->keep)) {
        struct iovec piece[2];
        struct message message = {.word = WORD_BYTES};
        keep_next(&side->keep, piece);
        size_t bytes = 1 + sim_random(side->sim, CHUNK_MAX);
        if (bytes > piece[0].iov_len) bytes = piece[0].iov_len;
        memcpy(message.data, piece[0].iov_base, bytes);
        message.bytes = (uint32_t)bytes;
        say(side->used, side, &message);
        side->keep.sent += bytes;
    }
}

static void rests(struct side *side)
{
    shut(side->used, side);
    side->used = NULL;
    side->have = 0;
    keep_trim(&side->keep);
    work(side);
}

static void answered(struct side *side, const struct header *header)
{
    enum meet_action action = MEET_NOTHING;
    if (header->kind == KIND_ASK) {
        bool quiet = side->sent == side->wanted;
        action = meet_asked(&side->meet, header->name, quiet);
    } else {
        action = meet_answered(&side->meet, header->name, header->kind == KIND_YES);
    }
    if (action == MEET_YES || action == MEET_NO) put(side, action == MEET_YES ? KIND_YES : KIND_NO, 0, true);
    if (action == MEET_YES || action == MEET_NO) send_out(side);
    if (action == MEET_YES) meet_ended(&side->meet);
    if (action == MEET_YES || action == MEET_CLOSE) rests(side);
    else if (action != MEET_NOTHING) work(side);
}

static void packet(struct side *side, const struct header *header, const unsigned char *data)
{
    struct sim *sim = side->sim;
    if (!keep_acknowledge_code(&side->keep, header->code)) sim_fail(sim, "what was never sent is acknowledged");
    if (header->kind == KIND_ACK && !keep_acknowledge(&side->keep, header->come)) sim_fail(sim, "acknowledged before it was sent");
    take_back(side);
    if (header->kind != KIND_DATA) {
        if (header->kind != KIND_ACK) answered(side, header);
        return;
    }
    if (header->number != (uint32_t)side->got) sim_fail(sim, "packet %u comes where %d should", header->number, side->got);
    side->got++;
    for (size_t i = 0; i < header->bytes; i++)
        if (data[i] != byte_at(side->peer, header->number, i)) sim_fail(sim, "a byte is wrong");
}

static void take(struct side *side, const struct message *message)
{
    struct header header;
    size_t at = 0;
    side->come += message->bytes;
    memcpy(side->in + side->have, message->data, message->bytes);
    side->have += message->bytes;
    while (side->have - at >= sizeof header) {
        memcpy(&header, side->in + at, sizeof header);
        if (header.kind < KIND_DATA || header.kind > KIND_ACK || header.bytes > BYTES_MAX) {
            sim_fail(side->sim, "the stream is out of step");
            return;
        }
        if (side->have - at < sizeof header + header.bytes) break;
        at += sizeof header;
        packet(side, &header, side->in + at);
        at += header.bytes;
        if (side->have < at) return; /* it rests: that was the last */
    }
    memmove(side->in, side->in + at, side->have - at);
    side->have -= at;
    if (side->come - side->told > ACKNOWLEDGE && side->meet.state == MEET_OPEN) {
        put(side, KIND_ACK, 0, true);
        send_out(side);
    }
}

/* Goes on with what is there to be sent. */
static void work(struct side *side)
{
    if (side->dead || side->lost) return;
    bool may = side->meet.state == MEET_OPEN || (PLANTED_BUG(BUG_MEET_SENDS_RESTING) && side->meet.state == MEET_RESTING);
    for (; may && side->sent < side->wanted; side->sent++) put(side, KIND_DATA, (uint32_t)sim_random(side->sim, BYTES_MAX), false);
    if (may) send_out(side);
    else if (side->sent < side->wanted || side->broken) sim_after(side->sim, 0, sees_reset, side, 0, 0); /* opens */
}

/* ---- Opening ---- */

static void lost(struct side *side)
{
    if (!side->peer->dead) sim_fail(side->sim, "a rank that lives is taken for dead");
    side->lost = true;
}

static void greet(struct side *side, struct link *link)
{
    struct message message = {.word = WORD_GREETING, .attempts = side->meet.attempt, .come = side->come};
    side->told = side->come;
    say(link, side, &message);
}

/* The handshake takes a while. */
static void is_there(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    struct link *link = (struct link *)(uintptr_t)a;
    struct message message = {.word = WORD_OPEN};
    (void)sim, (void)b;
    if (side->dead || side->lost) return;
    if (side->peer->dead) {
        if (side->own == link) lost(side);
        return;
    }
    say(link, side, &message);
    if (side->own != link || meet_connected(&side->meet) == MEET_DROP) {
        shut(link, side);
        return;
    }
    side->used = link;
    greet(side, link);
    if (!side->peer->dead) return;
    link->troubled = true;
    reset_towards(link, side);
}

static void arrives(struct sim *sim, void *context, const void *data, size_t bytes);

static void open(struct side *side)
{
    struct sim *sim = side->sim;
    if (side->dead || side->lost || meet_wanted(&side->meet) != MEET_START) return;
    struct link *link = sim_alloc(sim, sizeof *link);
    link->opener = side;
    link->other = side->peer;
    link->attempt = side->meet.attempt;
    link->to_other = sim_channel_create(sim, 100, 100 + sim_random(sim, 3000), arrives, side->peer);
    link->to_opener = sim_channel_create(sim, 100, 100 + sim_random(sim, 3000), arrives, side);
    side->own = link;
    sim_after(sim, 200 + sim_random(sim, 4000), is_there, side, (uint64_t)(uintptr_t)link, 0);
}

static void want_again(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    (void)sim, (void)a, (void)b;
    if (side->sent < side->wanted || side->broken) open(side);
}

/* Null: there is something to be sent, and no socket. */
static void socket_ended(struct side *side, struct link *link, bool known)
{
    if (side->dead || side->lost) return;
    if (!link) {
        want_again(side->sim, side, 0, 0);
        return;
    }
    if (*closed_by(link, side) || side->used != link) return;
    *closed_by(link, side) = true;
    if (known && link->insisted && side->meet.state == MEET_CONNECTED) sim_fail(side->sim, "both drop what the other has opened");
    side->used = side->own = NULL;
    if (meet_talks(&side->meet)) {
        if (!link->troubled) sim_fail(side->sim, "a socket at rest is taken for one that broke (%d)", known);
        side->broken = true;
    }
    meet_ended(&side->meet);
    sim_after(side->sim, side->meet.lower ? 0 : RETRY, want_again, side, 0, 0);
}

/* The peer has opened one. */
static void comes(struct side *side, struct link *link)
{
    bool talked = meet_talks(&side->meet);
    if (side->lost || meet_accepted(&side->meet, link->attempt) == MEET_DROP) {
        if (side->own) side->own->insisted = true;
        shut(link, side);
        return;
    }
    bool was_talking = side->used && side->used != side->own;
    if (was_talking && link->opener_closed && !link->troubled) sim_fail(side->sim, "one that was given up takes the place of one in use");
    side->broken = side->broken || talked;
    shut(side->own, side);
    if (!PLANTED_BUG(BUG_KEEP_NO_FENCE)) shut(side->used, side);
    side->own = NULL;
    side->used = link;
    greet(side, link);
    if (!side->peer->dead) return;
    link->troubled = true;
    reset_towards(link, side);
}

static void arrives(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct side *side = context;
    struct message message;
    memcpy(&message, data, bytes);
    struct link *link = message.link;
    if (side->dead) return;
    if (*closed_by(link, side)) { /* the system answers to bytes for a closed socket by a reset */
        if (message.word == WORD_BYTES && !*closed_by(link, side->peer)) reset_towards(link, side->peer);
        return;
    }
    if (message.word == WORD_OPEN) {
        comes(side, link);
    } else if (message.word == WORD_END) {
        socket_ended(side, link, true);
    } else if (message.word == WORD_GREETING) {
        if (side->used != link || meet_greeted(&side->meet, message.attempts) != MEET_USE) return;
        if (!keep_resume(&side->keep, message.come)) sim_fail(sim, "what has come does not fit what was sent");
        take_back(side);
        side->own = NULL;
        side->broken = false;
        work(side);
    } else if (side->used == link || PLANTED_BUG(BUG_KEEP_NO_FENCE)) {
        if (side->used == link && !meet_talks(&side->meet)) sim_fail(sim, "bytes come before the greeting");
        take(side, &message);
    }
}

/* ---- Events ---- */

static void want(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    (void)sim, (void)a, (void)b;
    side->wanted++;
    if (side->meet.state == MEET_IDLE) open(side);
    else work(side);
}

static void rest(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    (void)sim, (void)a, (void)b;
    if (side->dead || side->lost || side->sent < side->wanted || meet_rest(&side->meet) != MEET_ASK) return;
    put(side, KIND_ASK, 0, true);
    send_out(side);
}

/* Both ends see it, or one, and the other goes on for a while. */
static void trouble(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    struct link *link = side->used;
    (void)a, (void)b;
    if (!link || side->dead || *closed_by(link, side)) return;
    link->troubled = true;
    reset_towards(link, side);
    if (sim_chance(sim, 2, 3)) reset_towards(link, side->peer);
}

static void die(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    (void)sim, (void)a, (void)b;
    side->dead = true;
    for (int i = 0; i < 2; i++) {
        struct link *link = i ? side->peer->used : side->peer->own;
        if (!link || (i && link == side->peer->own)) continue;
        link->troubled = true;
        reset_towards(link, side->peer);
    }
}

static void start(struct sim *sim)
{
    struct side *side = sim_alloc(sim, 2 * sizeof *side);
    sim_set_user(sim, side);
    uint64_t span = 1 + sim_random(sim, sim_chance(sim, 1, 2) ? 12000 : 100000);
    for (int i = 0; i < 2; i++) {
        side[i].sim = sim;
        side[i].peer = &side[1 - i];
        side[i].meet.lower = i == 0;
        for (int k = 0; k < PACKETS; k++)
            if (sim_chance(sim, 1, 2)) sim_after(sim, sim_random(sim, span), want, &side[i], 0, 0);
        for (int k = 0; k < 4; k++) {
            if (sim_chance(sim, 1, 2)) sim_after(sim, sim_random(sim, span + 20000), rest, &side[i], 0, 0);
            if (sim_chance(sim, 1, 4)) sim_after(sim, sim_random(sim, span + 20000), trouble, &side[i], 0, 0);
        }
    }
    if (sim_chance(sim, 1, 8)) sim_after(sim, sim_random(sim, span + 20000), die, &side[sim_random(sim, 2)], 0, 0);
}

static void finish(struct sim *sim)
{
    struct side *side = sim_user(sim);
    for (int i = 0; i < 2; i++) {
        struct side *one = &side[i], *other = &side[1 - i];
        if (one->dead || one->lost) continue;
        if (other->dead && (one->meet.state != MEET_IDLE || one->sent < one->wanted || one->broken))
            sim_fail(sim, "rank %d does not know that the other is dead", i);
        if (!other->dead && one->got != other->wanted) sim_fail(sim, "rank %d has %d of %d packets", i, one->got, other->wanted);
    }
    if (!side[0].dead && !side[1].dead && (side[0].used != side[1].used || side[0].meet.state != side[1].meet.state))
        sim_fail(sim, "the two ranks use different sockets, in states %d and %d", side[0].meet.state, side[1].meet.state);
}

static void release(struct sim *sim)
{
    struct side *side = sim_user(sim);
    for (int i = 0; i < 2; i++) keep_release(&side[i].keep);
}

static const enum planted_bug bugs[] = {BUG_MEET_BOTH_KEPT,
                                        BUG_MEET_BOTH_DROPPED,
                                        BUG_MEET_LATE_KEPT,
                                        BUG_MEET_OLD_QUESTION,
                                        BUG_MEET_OLD_ANSWER,
                                        BUG_MEET_BOTH_ANSWER,
                                        BUG_MEET_SENDS_RESTING,
                                        BUG_KEEP_ALL_AGAIN,
                                        BUG_KEEP_NOTHING_AGAIN,
                                        BUG_KEEP_ACKNOWLEDGED_EARLY,
                                        BUG_KEEP_OLD_CODE,
                                        BUG_KEEP_RETURNED_EARLY,
                                        BUG_KEEP_NO_FENCE,
                                        BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "meet", .start = start, .finish = finish, .release = release, .seeds = 10000, .bugs = bugs, .event_limit = 10000},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
