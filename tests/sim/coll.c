/* coll.c - the schedule executor in virtual time: several collectives at once on up to 33 ranks (a few times
 * hundreds), with delays of three orders of magnitude; and the bugs that this must find. */
#include "tests/sim/coll_world.h"
#include "tests/sim/engine.h"

#include <stdlib.h>
#include <string.h>

static struct coll_world *left; /* of a run that failed */

struct call {
    struct sim *sim;
    struct coll_world_event event;
};

static void happen(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct call *call = context;
    (void)sim, (void)a, (void)b;
    coll_world_happen(left, call->event);
}

/* Most things take about as long as each other, some a thousand times as long. */
static void later(void *arg, struct coll_world_event event)
{
    struct sim *sim = arg;
    struct call *call = sim_alloc(sim, sizeof *call);
    call->event = event;
    uint64_t delay = 200 + sim_random(sim, 400);
    if (sim_chance(sim, 1, 16)) delay *= 1 + sim_random(sim, 1000);
    sim_after(sim, delay, happen, call, 0, 0);
}

static uint64_t chance(void *arg, uint64_t below)
{
    return sim_random(arg, below);
}

static void fail(void *arg, const char *text)
{
    sim_fail(arg, "%s", text);
}

static void draw_case(struct sim *sim, int size, struct coll_world_case *c)
{
    static const size_t counts[] = {0, 1, 2, 7, 16, 33, 100};
    memset(c, 0, sizeof *c);
    c->name = (enum coll_name)sim_random(sim, COLL_NAMES);
    c->seed = (unsigned)sim_random(sim, 1000);
    const struct coll_algorithm *algorithm = coll_algorithms(c->name);
    size_t known = 0;
    while (algorithm[known].name) known++;
    do c->algorithm = &algorithm[sim_random(sim, known)];
    while (!c->algorithm->build); /* not a schedule */
    c->root = (int)sim_random(sim, (uint64_t)size);
    c->count = c->name == COLL_BARRIER ? 0 : counts[sim_random(sim, sizeof counts / sizeof counts[0])];
    c->in_place = c->name != COLL_BARRIER && sim_chance(sim, 1, 2);
    switch (sim_random(sim, 4)) {
    case 0: c->single = true; break;
    case 1: c->average = c->name != COLL_SCAN && c->name != COLL_EXSCAN; break;
    default: c->ordered = c->algorithm->needs != COMMUTATIVE;
    }
}

static void stage(struct sim *sim, int size, int count, unsigned starts)
{
    struct coll_world_host host = {later, chance, fail, sim};
    struct coll_world_case cases[COLL_WORLD_MOST];
    if (left) coll_world_destroy(left);
    for (int i = 0; i < count; i++) {
        draw_case(sim, size, &cases[i]);
        cases[i].starts = starts;
    }
    left = coll_world_create(size, cases, count, &host);
}

static void start_small(struct sim *sim)
{
    int size = sim_chance(sim, 1, 20) ? 18 + (int)sim_random(sim, 16) : 2 + (int)sim_random(sim, 16);
    stage(sim, size, 1 + (int)sim_random(sim, COLL_WORLD_MOST), 1 + (unsigned)sim_random(sim, 2));
}

static void start_large(struct sim *sim)
{
    stage(sim, 100 + (int)sim_random(sim, 300), 1, 1);
}

static void finish(struct sim *sim)
{
    (void)sim;
    coll_world_check(left);
    coll_world_destroy(left);
    left = NULL;
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {BUG_DEPENDENCY_IGNORED, BUG_REUSE_IGNORED, BUG_REDUCE_ORDER, BUG_TAG_REUSED, BUG_ROUND_IGNORED,
                                            BUG_STEP_TWICE, BUG_DONE_EARLY, BUG_RESTART_STALE, BUG_NONE};
    static const struct sim_scenario scenarios[] = {
        {.name = "collectives", .start = start_small, .finish = finish, .seeds = 10000, .bugs = bugs},
        {.name = "collectives-of-hundreds", .start = start_large, .finish = finish, .seeds = 20},
    };
    int status = sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (left) coll_world_destroy(left);
    return status;
}
