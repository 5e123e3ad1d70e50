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
    uint64_t cost[CHOICE_WAYS];
    uint64_t spent, lost; /* by the faster way; what more it was */
    unsigned slower;      /* calls that took the slower way */
    unsigned interrupted; /* calls since the last one that was */
};

/* One in a hundred is interrupted, and never several in a row. */
static uint64_t disturbed(struct calls *calls, uint64_t cost)
{
    bool calm = calls->interrupted > 3;
    calls->interrupted++;
    cost += cost * sim_random(calls->sim, 10) / 100;
    if (sim_random(calls->sim, 100) || !calm) return cost;
    calls->interrupted = 0;
    return 20 * cost;
}

static void call(struct calls *calls, unsigned count)
{
    uint64_t least = calls->cost[0];
    for (unsigned way = 1; way < calls->choice.ways; way++)
        if (calls->cost[way] < least) least = calls->cost[way];
    calls->spent = calls->lost = calls->slower = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned way = choice_next(&calls->choice);
        uint64_t cost = calls->cost[way];
        calls->spent += least;
        calls->lost += cost - least;
        calls->slower += cost > least;
        choice_learn(&calls->choice, way, disturbed(calls, cost));
    }
}

static void expect_slower(struct sim *sim, const char *when, unsigned slower, unsigned most)
{
    if (slower > most) sim_fail(sim, "%s, %u calls took the slower way, more than %u", when, slower, most);
}

/* In use: way 0. Sometimes there is a third way, slower than the other. */
static struct calls *settled(struct sim *sim, uint64_t used, uint64_t other)
{
    struct calls *calls = sim_alloc(sim, sizeof *calls);
    unsigned ways = 2 + (unsigned)sim_random(sim, 2);
    *calls = (struct calls){.sim = sim, .cost = {used, other, 2 * other}};
    choice_init(&calls->choice, ways, (unsigned)sim_random(sim, ways));
    call(calls, 200);
    call(calls, 2000 + (unsigned)sim_random(sim, 1000));
    return calls;
}

/* Of 200 calls after a change, which are fewer than a trial that comes in its own time would need. */
#define NOTICED (CHOICE_SURPRISES + 4 * CHOICE_TRIAL + 2)

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

/* Nanoseconds for 64 KiB: of the ring, by caches and past them, and of single copies. */
struct costs {
    uint64_t in, out, past_in, past_out, single;
};

struct world {
    struct sim *sim;
    struct pace pace;
    struct pace_shared shared;
    size_t bytes;
    struct costs costs;
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
        uint64_t ns = took(world, world->costs.single);
        reader_works(world, ns);
        tell(world, way, ns);
        return;
    }
    await_room(world);
    uint64_t in = took(world, way == PACE_PAST ? world->costs.past_in : world->costs.in);
    uint64_t out = took(world, way == PACE_PAST ? world->costs.past_out : world->costs.out);
    world->now += in;
    if (mark) pace_here(&world->pace, way, world->bytes, in);
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

static struct world *open_world(struct sim *sim, const struct costs *costs)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    *world = (struct world){.sim = sim, .costs = *costs};
    world->bytes = (PACE_SINGLE_LEAST << sim_random(sim, PACE_CLASSES - PACE_SINGLE_CLASS)) + 1 + sim_random(sim, PACE_SINGLE_LEAST);
    pace_init(&world->pace, true);
    return world;
}

static unsigned by_others(const struct world *world, enum pace_way way)
{
    unsigned all = 0;
    for (unsigned other = 0; other < PACE_WAYS; other++) all += other == way ? 0 : world->by[other];
    return all;
}

/* A way is noticed to be slower within so many windows: the sender hears of one while it fills the next. */
#define WINDOWS 4
#define TRIALS(windows) ((windows) * WINDOW * CHOICE_TRIAL / CHOICE_PAUSE)

static const struct costs near = {.in = 3000, .out = 3500, .past_in = 7000, .past_out = 7000, .single = 9000};
static const struct costs far = {.in = 9000, .out = 21000, .past_in = 6000, .past_out = 7000, .single = 10000};
static const struct costs farther = {.in = 9000, .out = 21000, .past_in = 16000, .past_out = 16000, .single = 10000};
/* Answered messages, for which both copies count, and those in a row, whose copies overlap. */
static const struct costs torn = {.in = 12000, .out = 12000, .past_in = 30000, .past_out = 30000, .single = 13000};

static void start_messages(struct sim *sim)
{
    struct world *world = open_world(sim, &farther);
    in_a_row(world, 10);
    expect_slower(sim, "at the start, in a row", by_others(world, PACE_SINGLE), 2 * WINDOW);
    world = open_world(sim, &near);
    in_a_row(world, 50);
    expect_slower(sim, "in a row", by_others(world, PACE_RING), WINDOW + TRIALS(50));
    world->costs = far;
    in_a_row(world, 50);
    expect_slower(sim, "after a change, in a row", by_others(world, PACE_PAST), WINDOWS * WINDOW + TRIALS(50));
    world->costs = farther;
    in_a_row(world, 50);
    expect_slower(sim, "after another, in a row", by_others(world, PACE_SINGLE), WINDOWS * WINDOW + TRIALS(50));
    world = open_world(sim, &torn);
    for (unsigned i = 0; i < 20; i++) {
        in_a_row(world, 10);
        unsigned in_a_row_others = by_others(world, PACE_RING);
        answered(world, 10 * WINDOW);
        if (i < 2) continue;
        expect_slower(sim, "in a row, alternating", in_a_row_others, 2 * TRIALS(10));
        expect_slower(sim, "answered, alternating", by_others(world, PACE_SINGLE), 2 * TRIALS(10));
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
