/* pace.c - ways that are learnt (choice.h, pace.h) while what they cost changes: how much is lost to the slower one.
 *
 * Holds: after the start, and after each change, only so many calls take the slower way as it needs to notice; a change that makes
 * the other way faster and the one in use slower is noticed by the latter, even when the other was much slower before; and trials
 * cost what they may, however wildly the costs jump. With messages in a row, too, of which the sender hears only when it has sent
 * many more, and when they alternate with answered ones, for which the other way is the faster. */
#include "pml/shm/pace.h"

#include "tests/sim/engine.h"

#include <string.h>

/* ---- Calls, each of which is timed ------------------------------------------------------------------------------- */

struct calls {
    struct sim *sim;
    struct choice choice;
    uint64_t cost[2];
    uint64_t spent, lost; /* by the faster way; what more it was */
    unsigned slower;      /* calls that took the slower way */
};

/* One in a hundred is interrupted. */
static uint64_t disturbed(struct sim *sim, uint64_t cost)
{
    cost += cost * sim_random(sim, 10) / 100;
    return sim_random(sim, 100) ? cost : 20 * cost;
}

static void call(struct calls *calls, unsigned count)
{
    uint64_t least = calls->cost[0] < calls->cost[1] ? calls->cost[0] : calls->cost[1];
    calls->spent = calls->lost = calls->slower = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned way = choice_next(&calls->choice);
        uint64_t cost = calls->cost[way];
        calls->spent += least;
        calls->lost += cost - least;
        calls->slower += cost > least;
        choice_learn(&calls->choice, way, disturbed(calls->sim, cost));
    }
}

static void expect_slower(struct sim *sim, const char *when, unsigned slower, unsigned most)
{
    if (slower > most) sim_fail(sim, "%s, %u calls took the slower way, more than %u", when, slower, most);
}

/* In use: way 0. */
static struct calls *settled(struct sim *sim, uint64_t used, uint64_t other)
{
    struct calls *calls = sim_alloc(sim, sizeof *calls);
    *calls = (struct calls){.sim = sim, .cost = {used, other}};
    choice_init(&calls->choice, (unsigned)sim_random(sim, 2));
    call(calls, 200);
    call(calls, 2000 + (unsigned)sim_random(sim, 1000));
    return calls;
}

/* Of 200 calls after a change, which are fewer than a trial that comes in its own time would need. */
#define NOTICED (CHOICE_SURPRISES + 2 * CHOICE_TRIAL + 2)

static void start_calls(struct sim *sim)
{
    uint64_t unit = 500 + sim_random(sim, 5000);
    struct calls *calls = settled(sim, unit, 4 * unit);
    calls->cost[0] = 8 * unit;
    call(calls, 200);
    expect_slower(sim, "after the way in use became slower", calls->slower, NOTICED);

    calls = settled(sim, unit, 20 * unit);
    calls->cost[0] = (4 + sim_random(sim, 8)) * unit;
    calls->cost[1] = unit;
    call(calls, 200);
    expect_slower(sim, "after both changed", calls->slower, NOTICED);

    calls = settled(sim, unit, 10 * unit);
    uint64_t spent = 0, lost = 0;
    for (unsigned i = 0; i < 300; i++) {
        calls->cost[0] = i % 2 ? 2 * unit : unit;
        call(calls, 20 + (unsigned)sim_random(sim, 20));
        spent += calls->spent;
        lost += calls->lost;
    }
    /* Two parts, by what the ways cost when pauses begin. */
    if (lost > 6 * spent / CHOICE_LOSS) sim_fail(sim, "trials cost one part in %u of the time", (unsigned)(spent / lost));
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

#define RING_BYTES ((size_t)1 << 20)
#define WINDOW 64 /* messages in a row before an answer */

struct event {
    uint64_t at;
    unsigned way;
    uint32_t cost;
};

/* Costs are nanoseconds for 64 KiB. */
struct world {
    struct sim *sim;
    struct pace pace;
    struct pace_shared shared;
    size_t bytes;
    uint64_t in, out, single;
    uint64_t now, reader; /* when the sender may go on, and when the reader has done everything so far */
    struct event told[WINDOW], taken[WINDOW];
    unsigned tells, takes; /* what the reader will tell, and what it takes out of the ring */
    unsigned by[PACE_WAYS];
};

static uint64_t took(const struct world *world, uint64_t cost)
{
    cost += cost * sim_random(world->sim, 10) / 100;
    return cost * world->bytes / 65536 + 1;
}

static void tell(struct world *world, enum pace_way way, uint64_t ns)
{
    world->told[world->tells++] = (struct event){world->reader, way, pace_cost(ns, world->bytes)};
}

static void hear(struct world *world)
{
    unsigned kept = 0, class = pace_class(world->bytes, PACE_LEAST, PACE_CLASSES);
    for (unsigned i = 0; i < world->tells; i++) {
        struct event event = world->told[i];
        if (event.at > world->now) world->told[kept++] = event;
        else pace_tell(&world->shared, event.way, class, event.cost);
    }
    world->tells = kept;
}

/* The sender waits until the ring has room. */
static void await_room(struct world *world)
{
    unsigned room = (unsigned)(RING_BYTES / world->bytes);
    if (world->takes >= room && world->taken[world->takes - room].at > world->now) world->now = world->taken[world->takes - room].at;
}

static void reader_works(struct world *world, uint64_t ns)
{
    if (world->reader < world->now) world->reader = world->now;
    world->reader += ns;
}

static void send(struct world *world)
{
    bool mark;
    hear(world);
    enum pace_way way = pace_next(&world->pace, &world->shared, world->bytes, &mark);
    world->by[way]++;
    if (way == PACE_SINGLE) {
        uint64_t ns = took(world, world->single);
        reader_works(world, ns);
        tell(world, way, ns);
        return;
    }
    await_room(world);
    uint64_t in = took(world, world->in), out = took(world, world->out);
    world->now += in;
    if (mark) pace_here(&world->pace, world->bytes, in);
    reader_works(world, out);
    if (mark) tell(world, way, out);
    world->taken[world->takes++] = (struct event){.at = world->reader};
}

static void answer(struct world *world)
{
    if (world->now < world->reader) world->now = world->reader;
    hear(world);
    world->takes = 0;
    world->pace.spoken = true;
}

static void in_a_row(struct world *world, unsigned windows)
{
    memset(world->by, 0, sizeof world->by);
    for (unsigned i = 0; i < windows; i++) {
        for (unsigned j = 0; j < WINDOW; j++) send(world);
        answer(world);
    }
}

static void answered(struct world *world, unsigned messages)
{
    memset(world->by, 0, sizeof world->by);
    for (unsigned i = 0; i < messages; i++) {
        send(world);
        answer(world);
    }
}

static struct world *open_world(struct sim *sim, uint64_t in, uint64_t out, uint64_t single)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    *world = (struct world){.sim = sim, .in = in, .out = out, .single = single};
    world->bytes = (PACE_LEAST << sim_random(sim, PACE_CLASSES)) + 1 + sim_random(sim, PACE_LEAST);
    pace_init(&world->pace);
    return world;
}

/* A way is noticed to be slower within three windows at most: the sender hears of one while it fills the next. */
#define WINDOWS 3

static void start_messages(struct sim *sim)
{
    static const uint64_t near[] = {3000, 3500, 9000}, far[] = {9000, 21000, 10000};
    struct world *world = open_world(sim, far[0], far[1], far[2]);
    in_a_row(world, 10);
    expect_slower(sim, "at the start, in a row", world->by[PACE_RING], WINDOWS * WINDOW);
    world = open_world(sim, near[0], near[1], near[2]);
    in_a_row(world, 50);
    expect_slower(sim, "in a row", world->by[PACE_SINGLE], 50 * WINDOW * CHOICE_TRIAL / (2 * CHOICE_PAUSE));
    world->in = far[0], world->out = far[1], world->single = far[2];
    in_a_row(world, 50);
    expect_slower(sim, "after a change, in a row", world->by[PACE_RING], WINDOWS * WINDOW + 50 * WINDOW * CHOICE_TRIAL / (2 * CHOICE_PAUSE));
    /* Answered messages, for which both copies count, alternate with those in a row, whose copies overlap. */
    world = open_world(sim, 12000, 12000, 13000);
    for (unsigned i = 0; i < 20; i++) {
        in_a_row(world, 10);
        unsigned by_single = world->by[PACE_SINGLE];
        answered(world, 10 * WINDOW);
        if (i < 2) continue;
        expect_slower(sim, "in a row, alternating", by_single, 3 * WINDOW);
        expect_slower(sim, "answered, alternating", world->by[PACE_RING], 3 * WINDOW);
    }
}

static void finish(struct sim *sim)
{
    (void)sim; /* all is in the start: what is learnt has a time of its own */
}

int main(int argc, char **argv)
{
    static const enum planted_bug of_choice[] = {BUG_CHOICE_LEVEL_IGNORED, BUG_CHOICE_NEVER_EARLY, BUG_CHOICE_ALWAYS_EARLY, BUG_NONE};
    static const enum planted_bug of_pace[] = {BUG_PACE_ONE_AT_A_TIME, BUG_PACE_CALM_IGNORED, BUG_NONE};
    static const struct sim_scenario scenarios[] = {
        {.name = "calls", .start = start_calls, .finish = finish, .seeds = 300, .bugs = of_choice},
        {.name = "messages", .start = start_messages, .finish = finish, .seeds = 100, .bugs = of_pace}};
    return sim_main(argc, argv, scenarios, 2);
}
