/* meet.c - two ranks that open connections to each other whenever they like, in virtual time.
 *
 * Holds: both end up with the same connection, and each packet that a rank has handed over arrives, once, whichever
 * connections were dropped on the way. */
#include "pml/tcp/meet.h"

#include "tests/sim/engine.h"

#include <stddef.h>
#include <stdint.h>

#define PACKETS 8
#define RETRY 5000

enum word { WORD_OPEN, WORD_GREETING, WORD_END, WORD_PACKET };

struct side;

/* One connection, from the one that has opened it to the other. */
struct link {
    struct side *opener, *other;
    struct sim_channel *to_other, *to_opener;
    bool cut;
};

struct side {
    struct sim *sim;
    struct side *peer;
    struct meet meet;
    struct link *own; /* our attempt */
    struct link *used;
    bool insisted; /* on our attempt, against the peer's */
    int wanted, sent, got;
};

struct message {
    enum word word;
    struct link *link;
};

static void say(struct link *link, const struct side *from, enum word word)
{
    struct message message = {.word = word, .link = link};
    sim_channel_send(from == link->opener ? link->to_other : link->to_opener, &message, sizeof message);
}

static void send_all(struct side *side)
{
    for (; side->used && side->sent < side->wanted; side->sent++) say(side->used, side, WORD_PACKET);
}

static void arrives(struct sim *sim, void *context, const void *data, size_t bytes);

/* The handshake takes a while; then the other end has it, and a little earlier or later we do. */
static void is_there(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct side *side = context;
    struct link *link = (struct link *)(uintptr_t)a;
    (void)sim, (void)b;
    if (side->own != link || meet_connected(&side->meet) == MEET_DROP) {
        say(link, side, WORD_END);
        return;
    }
    say(link, side, WORD_OPEN);
}

static void open(struct side *side)
{
    struct sim *sim = side->sim;
    struct link *link = sim_alloc(sim, sizeof *link);
    link->opener = side;
    link->other = side->peer;
    link->to_other = sim_channel_create(sim, 100, 100 + sim_random(sim, 3000), arrives, side->peer);
    link->to_opener = sim_channel_create(sim, 100, 100 + sim_random(sim, 3000), arrives, side);
    side->own = link;
    sim_after(sim, 200 + sim_random(sim, 4000), is_there, side, (uint64_t)(uintptr_t)link, 0);
}

static void want(struct sim *sim, void *context, uint64_t more, uint64_t b)
{
    struct side *side = context;
    (void)sim, (void)b;
    side->wanted += (int)more;
    if (side->sent < side->wanted && meet_wanted(&side->meet) == MEET_START) open(side);
    send_all(side);
}

static void opened(struct side *side, struct link *link)
{
    enum meet_action action = meet_accepted(&side->meet);
    if (action == MEET_DROP) {
        side->insisted = side->insisted || side->meet.state != MEET_OPEN;
        say(link, side, WORD_END);
        return;
    }
    if (action == MEET_KEEP_IT_ONLY) {
        if (side->meet.state != MEET_OPEN) sim_fail(side->sim, "a kept connection is not open");
        say(side->own, side, WORD_END);
    }
    side->own = NULL;
    if (side->used) sim_fail(side->sim, "a second connection replaces one in use");
    side->used = link;
    say(link, side, WORD_GREETING);
    send_all(side);
}

static void arrives(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct side *side = context;
    struct message message = *(const struct message *)data;
    (void)bytes;
    if (message.word == WORD_OPEN) {
        opened(side, message.link);
    } else if (message.word == WORD_GREETING) {
        if (side->own != message.link || meet_greeted(&side->meet) != MEET_USE) return;
        side->used = side->own;
        send_all(side);
    } else if (message.word == WORD_END) {
        if (side->used == message.link) sim_fail(sim, "the connection in use is dropped");
        if (side->own != message.link) return;
        if (side->insisted) sim_fail(sim, "both drop what the other has opened");
        side->own = NULL;
        meet_dropped(&side->meet);
        sim_after(sim, RETRY, want, side, 0, 0);
    } else if (side->used == message.link) {
        side->got++;
    } else {
        sim_fail(sim, "a packet comes on a connection that is not in use");
    }
}

static void start(struct sim *sim)
{
    struct side *side = sim_alloc(sim, 2 * sizeof *side);
    sim_set_user(sim, side);
    uint64_t span = 1 + sim_random(sim, 12000);
    for (int i = 0; i < 2; i++) {
        side[i] = (struct side){.sim = sim, .peer = &side[1 - i], .meet.lower = i == 0};
        for (int k = 0; k < PACKETS; k++)
            if (sim_chance(sim, 1, 2)) sim_after(sim, sim_random(sim, span), want, &side[i], 1, 0);
    }
}

static void finish(struct sim *sim)
{
    struct side *side = sim_user(sim);
    for (int i = 0; i < 2; i++)
        if (side[i].got != side[1 - i].wanted)
            sim_fail(sim, "rank %d has %d of %d packets", i, side[i].got, side[1 - i].wanted);
    if (side[0].used != side[1].used && side[0].wanted + side[1].wanted)
        sim_fail(sim, "the two ranks use different connections");
}

static const enum planted_bug bugs[] = {BUG_MEET_BOTH_KEPT, BUG_MEET_BOTH_DROPPED, BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "meet", .start = start, .finish = finish, .seeds = 10000, .bugs = bugs, .event_limit = 10000},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
