/* startup.c - whole starts in virtual time: 1 to 40 hosts, any radix, started by each other, by the front or by one
 * agent; agents that fail, hang or detach, daemons that crash, stop for a while or for ever, are cut off, are of
 * another version or refuse; a front that is killed, suspended, or told to end; strangers that greet.
 *
 * Holds at every moment: a node is told of once and with its own description; no more agents are under way than
 * allowed; no stranger is taken in; there is one report at most, and what it says is true of whom it blames; no rank
 * learns of a loss before the front. At the end: without a fault the job has started, run and ended everywhere; with
 * one, everything that can has ended, within the bound that follows from the time limits, and the front knows of whom
 * it does not know; no memory is held.
 *
 * The planted bugs that it must find stand in main. SIM_TRACE=1 shows what the places of the tree do in a replay.
 */
#include "tests/sim/startup_world.h"

#include "runtime/base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)
#define MAX_HOSTS 40
#define TRUE(cause) (1u << (cause))

static struct world *last_world; /* of a run that may have failed, whose instances are still there */

/* What this run has in store. */
struct plan {
    bool fault;       /* something that makes the job fail, sooner or later */
    bool front_lost;  /* and nobody is left to report */
    bool user_ends;   /* or a rank fails: the job ends, without a report of ours */
    bool slow;        /* something that shows by silence, or by a time limit, only */
    uint64_t last;    /* when the last of it happens */
    uint64_t excused; /* time in which the front was suspended */
    bool stopped_for_ever[MAX_HOSTS];
    int faults, crashed; /* how many there are; the daemon that has crashed while it had ranks */
};

static struct plan plan;

static uint64_t some_time(struct sim *sim)
{
    uint64_t at = sim_random(sim, sim_chance(sim, 1, 3) ? 4000 * MILLISECOND : 800 * MILLISECOND);
    if (at > plan.last) plan.last = at;
    return at;
}

/* ---- Things that happen later ---- */

static void crash_later(struct sim *sim, void *context, uint64_t position, uint64_t b)
{
    struct world *world = context;
    struct proc *proc = world_proc(world, (int)(int64_t)position);
    (void)sim, (void)b;
    if (!proc) return;
    if (proc == world->front)
        plan.front_lost = true;
    else
        world->hosts[position].truth |=
            TRUE(TREE_CAUSE_CLOSED) | TRUE(TREE_CAUSE_AGENT_ENDED) | TRUE(TREE_CAUSE_NOT_CONNECTED);
    plan.fault = true;
    plan.faults++;
    if (proc != world->front && !proc->local_ended) plan.crashed = (int)(int64_t)position;
    world_crash(proc);
}

static void stop_later(struct sim *sim, void *context, uint64_t position, uint64_t duration)
{
    struct world *world = context;
    struct proc *proc = world_proc(world, (int)(int64_t)position);
    (void)sim;
    if (!proc || proc->stopped) return;
    world_stop(proc, duration);
    if (duration && duration <= world->setup.silence_ns / 2) return; /* nobody minds */
    plan.fault = plan.slow = true;
    plan.faults++;
    if (proc == world->front)
        plan.front_lost = true;
    else
        world->hosts[position].truth |= TRUE(TREE_CAUSE_SILENT) | TRUE(TREE_CAUSE_NOT_CONNECTED);
    if (!duration && proc != world->front) plan.stopped_for_ever[position] = true;
    plan.excused += duration;
}

static void cut_later(struct sim *sim, void *context, uint64_t position, uint64_t b)
{
    struct world *world = context;
    (void)sim, (void)b;
    world_cut(world, (int)position);
    world->hosts[position].truth |= TRUE(TREE_CAUSE_SILENT) | TRUE(TREE_CAUSE_NOT_CONNECTED) | TRUE(TREE_CAUSE_CLOSED);
    plan.fault = plan.slow = true;
    plan.faults++;
}

static void suspend_later(struct sim *sim, void *context, uint64_t duration, uint64_t b)
{
    struct world *world = context;
    (void)sim, (void)b;
    if (!world_proc(world, TREE_FRONT) || world->front->stopped || !tree_is_open(world->front->tree, 0)) return;
    plan.excused += duration;
    world_suspend(world->front, duration);
}

static void end_later(struct sim *sim, void *context, uint64_t at_once, uint64_t b)
{
    struct world *world = context;
    (void)sim, (void)b;
    if (!world_proc(world, TREE_FRONT)) return;
    plan.user_ends = true;
    world_user_ends(world, at_once != 0);
}

static void greet_later(struct sim *sim, void *context, uint64_t position, uint64_t other_job)
{
    (void)sim;
    world_stranger(context, (int)position, other_job != 0);
}

/* ---- Setting the stage ---- */

static const unsigned truth_of_fate[FATE_COUNT] = {
    [FATE_NO_AGENT] = TRUE(TREE_CAUSE_AGENT_FAILED), [FATE_CODE] = TRUE(TREE_CAUSE_AGENT_ENDED),
    [FATE_HANGS] = TRUE(TREE_CAUSE_NOT_CONNECTED),   [FATE_NEVER] = TRUE(TREE_CAUSE_NOT_CONNECTED),
    [FATE_VERSION] = TRUE(TREE_CAUSE_VERSION),       [FATE_REFUSES] = TRUE(TREE_CAUSE_REFUSED)};

static void give_fate(struct world *world, int position, enum fate fate)
{
    struct host *host = &world->hosts[position];
    bool once = world->setup.start == TREE_START_ONCE;
    host->fate = fate;
    host->truth |= truth_of_fate[fate];
    plan.fault |= truth_of_fate[fate] != 0;
    plan.faults += truth_of_fate[fate] != 0;
    plan.slow |= fate == FATE_HANGS || fate == FATE_NEVER;
    if (!once || (fate != FATE_CODE && fate != FATE_NO_AGENT)) return;
    if (position == 0)
        world->truth_all |= truth_of_fate[fate];
    else
        host->truth |= TRUE(TREE_CAUSE_NOT_CONNECTED);
    plan.slow = true;
}

static int some_host(struct world *world)
{
    return (int)sim_random(world->sim, (uint64_t)world->setup.shape.count);
}

/* A host, or now and then the front. */
static uint64_t some_place(struct world *world)
{
    int position = sim_chance(world->sim, 1, 8) ? TREE_FRONT : some_host(world);
    return (uint64_t)(int64_t)position;
}

static void choose_trouble(struct world *world)
{
    struct sim *sim = world->sim;
    uint64_t silence = world->setup.silence_ns;
    switch (sim_random(sim, 6)) {
    case 0:
    case 1:
        give_fate(world, some_host(world), (enum fate)(FATE_NO_AGENT + sim_random(sim, FATE_COUNT - FATE_NO_AGENT)));
        break;
    case 2:
        sim_after(sim, some_time(sim), crash_later, world, some_place(world), 0);
        break;
    case 3:
        sim_after(sim, some_time(sim), stop_later, world, some_place(world),
                  sim_chance(sim, 1, 3) ? 0 : 3 * silence + sim_random(sim, silence));
        break;
    case 4:
        sim_after(sim, some_time(sim), cut_later, world, (uint64_t)some_host(world), 0);
        break;
    default:
        sim_after(sim, some_time(sim), end_later, world, 0, 0);
        if (sim_chance(sim, 1, 2)) sim_after(sim, some_time(sim), end_later, world, 1, 0);
        break;
    }
}

/* What no job may fail of. */
static void choose_nuisance(struct world *world)
{
    struct sim *sim = world->sim;
    for (int i = 0; i < world->setup.shape.count; i++)
        if (world->setup.start != TREE_START_ONCE && sim_chance(sim, 1, 8)) world->hosts[i].fate = FATE_DETACHES;
    if (sim_chance(sim, 1, 4))
        sim_after(sim, some_time(sim), stop_later, world, some_place(world),
                  1 + sim_random(sim, world->setup.silence_ns / 2));
    if (sim_chance(sim, 1, 4))
        sim_after(sim, some_time(sim), suspend_later, world, sim_random(sim, 10 * BASE_NS_PER_S), 0);
    for (int i = 0; i < 3; i++)
        if (sim_chance(sim, 1, 3))
            sim_after(sim, some_time(sim), greet_later, world, (uint64_t)some_host(world), sim_chance(sim, 1, 2));
}

static void start(struct sim *sim)
{
    bool large = sim_chance(sim, 1, 10);
    struct world_setup setup = {.shape = {1 + (int)sim_random(sim, large ? MAX_HOSTS : 9),
                                          1 + (int)sim_random(sim, sim_chance(sim, 1, 3) ? 32 : 3)},
                                .start = (enum tree_start)sim_random(sim, 3),
                                .window = sim_chance(sim, 1, 3) ? 1 + (int)sim_random(sim, 3) : 0,
                                .start_ns = 2 * BASE_NS_PER_S,
                                .silence_ns = BASE_NS_PER_S,
                                .end_ns = 500 * MILLISECOND,
                                .ranks_a_node = -1,
                                .cards = (int)sim_random(sim, 3),
                                .card_bytes = 100,
                                .chance = true};
    if (last_world) {
        world_destroy(last_world);
        last_world = NULL;
    }
    plan = (struct plan){.crashed = -1};
    struct world *world = last_world = world_create(sim, &setup);
    world->noticed = -1;
    sim_set_user(sim, world);
    world->unlike = sim_chance(sim, 1, 8);
    choose_nuisance(world);
    if (sim_chance(sim, 1, 12)) {
        world->hosts[some_host(world)].clings = true;
        plan.slow = true;
    }
    if (sim_chance(sim, 3, 5))
        for (uint64_t i = 1 + sim_random(sim, 2); i; i--) choose_trouble(world);
    world_begin(world);
}

/* ---- At the end ---- */

/* With TREE_START_FRONT the front hears of a host only through those above it. */
static bool is_true(const struct world *world, const struct tree_failure *failure)
{
    bool agent_gone = failure->position == TREE_EVERYBODY && failure->cause == TREE_CAUSE_AGENT_ENDED;
    if (agent_gone && failure->status == 0) return plan.fault; /* all daemons have ended, for whatever reason */
    if (failure->position == TREE_EVERYBODY) return world->truth_all & TRUE(failure->cause);
    if (failure->position == TREE_FRONT) return plan.front_lost && failure->cause == TREE_CAUSE_SILENT;
    if (world->hosts[failure->position].truth & TRUE(failure->cause)) return true;
    if (world->setup.start != TREE_START_FRONT || failure->cause != TREE_CAUSE_NOT_CONNECTED) return false;
    int above = failure->position;
    while ((above = tree_above(&world->setup.shape, above)) != TREE_FRONT)
        if (world->hosts[above].truth & TRUE(TREE_CAUSE_SILENT)) return true;
    return false;
}

static void check_report(struct sim *sim, const struct world *world)
{
    if (world->reports && !is_true(world, &world->reported))
        sim_fail(sim, "daemon %d is blamed (cause %d, stage %d), which is not true", world->reported.position,
                 world->reported.cause, world->reported.stage);
    if (!plan.fault && world->reports) sim_fail(sim, "a report, and nothing was wrong");
    if (plan.fault && !world->reports && !plan.front_lost && !plan.user_ends && world->all_ended == 0)
        sim_fail(sim, "no report, and the job has not ended well");
    /* Whoever ends the job then, and whenever it is explained. */
    if (plan.faults == 1 && plan.crashed >= 0 && world->noticed == plan.crashed && !world->reports)
        sim_fail(sim, "daemon %d was lost before the end, and nobody says so", plan.crashed);
}

static void check_success(struct sim *sim, const struct world *world)
{
    if (world->ready != 1 || world->all_ended != 1)
        sim_fail(sim, "nothing was wrong, and the job did not start and end");
    if (world->unended != TREE_EVERYBODY)
        sim_fail(sim, "nothing was wrong, and daemon %d is said not to have ended", world->unended);
    for (int i = 0; i < world->setup.shape.count && !sim_failed(sim); i++)
        if (!world->hosts[i].daemon->launched) sim_fail(sim, "nothing was wrong, and daemon %d did not launch", i);
}

static void check_all_gone(struct sim *sim, const struct world *world)
{
    if (world->front->alive && !(world->front->stopped && plan.front_lost)) sim_fail(sim, "ncclxrun never ended");
    for (int i = 0; i < world->setup.shape.count; i++)
        if (world->hosts[i].daemon && world->hosts[i].daemon->alive && !plan.stopped_for_ever[i])
            sim_fail(sim, "daemon %d of %d never ended", i, world->setup.shape.count);
}

/* Where nothing hides behind a time limit the end takes a grace, and a moment. */
static void check_prompt(struct sim *sim, const struct world *world)
{
    uint64_t end = world->end_at + world->setup.end_ns + 1300 * MILLISECOND + plan.excused;
    if (plan.slow || !world->end_at || world->front_finished <= end) return;
    sim_fail(sim, "the end took %" PRIu64 " ms", (world->front_finished - world->end_at) / MILLISECOND);
}

/* From the last fault on: noticing takes one limit, with orphans of whom nobody else tells another; then the end. */
static void check_bound(struct sim *sim, const struct world *world)
{
    uint64_t height = (uint64_t)tree_height(&world->setup.shape, TREE_FRONT);
    uint64_t notice = world->setup.start_ns + 2 * world->setup.silence_ns;
    uint64_t end = world->setup.end_ns + (height + 1) * 2 * BASE_NS_PER_S + BASE_NS_PER_S;
    uint64_t run = 5 * BASE_NS_PER_S; /* start and ranks, without faults */
    uint64_t starts =
        world->setup.window ? (uint64_t)world->setup.shape.count * 600 * MILLISECOND : height * 600 * MILLISECOND;
    if (world->times.finished > plan.last + plan.excused + run + starts + 2 * (notice + end))
        sim_fail(sim, "the job ended after %" PRIu64 " ms only", world->times.finished / MILLISECOND);
}

static void finish(struct sim *sim)
{
    struct world *world = sim_user(sim);
    check_all_gone(sim, world);
    check_report(sim, world);
    if (!plan.fault && !plan.user_ends) check_success(sim, world);
    check_prompt(sim, world);
    check_bound(sim, world);
    int64_t before = world->held_before;
    world_destroy(world);
    last_world = NULL;
    if (world_held() != before) sim_fail(sim, "%" PRId64 " bytes are not given back", world_held() - before);
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {
        BUG_TREE_CHILD_NOT_AWAITED, BUG_TREE_NODE_DROPPED,   BUG_TREE_WINDOW_KEPT,     BUG_TREE_AGENT_IGNORED,
        BUG_TREE_LOSS_TWICE,        BUG_TREE_LOSS_FORGOTTEN, BUG_TREE_END_REPORTED,    BUG_TREE_OTHER_JOB,
        BUG_TREE_TRAFFIC_NOT_HEARD, BUG_TREE_BEAT_FORGOTTEN, BUG_TREE_STOPPED_BLAMES,  BUG_TREE_ORPHAN_STAYS,
        BUG_TREE_LATE_NOT_TOLD,     BUG_TREE_END_UNBOUNDED,  BUG_TREE_EARLY_FORGOTTEN, BUG_NONE};
    static const struct sim_scenario scenario = {
        .name = "start", .start = start, .finish = finish, .seeds = 30000, .event_limit = 100000, .bugs = bugs};
    int result = sim_main(argc, argv, &scenario, 1);
    if (last_world) world_destroy(last_world);
    return result;
}
