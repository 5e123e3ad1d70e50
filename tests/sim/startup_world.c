/* startup_world.c - processes that do one thing after another, connections, and agents. */
#include "tests/sim/startup_private.h"

#include "runtime/base/base.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICROSECOND UINT64_C(1000)
#define MILLISECOND UINT64_C(1000000)
#define MAX_PAUSE (100 * MILLISECOND) /* between two attempts to connect */

struct task {
    struct task *next;
    task_fn function;
    void *argument;
    uint64_t number;
};

struct parcel {
    struct parcel *next, **previous;
    struct conn *conn;
    bool upwards;
    uint64_t steps;
    size_t bytes; /* 0: the end */
    unsigned char data[];
};

struct chunk {
    struct chunk *next;
    max_align_t bytes[];
};

static void *need(void *block)
{
    if (block) return block;
    fprintf(stderr, "simulator: no memory\n");
    exit(99);
}

void *world_alloc(struct world *world, size_t bytes)
{
    struct chunk *chunk = need(calloc(1, sizeof *chunk + bytes));
    chunk->next = world->chunks;
    world->chunks = chunk;
    return chunk->bytes;
}

uint64_t world_chance(struct world *world, uint64_t least, uint64_t most)
{
    return world->setup.chance ? least + sim_random(world->sim, most - least + 1) : 0;
}

/* ---- Processes ---- */

void proc_spend(struct proc *proc, uint64_t ns)
{
    uint64_t now = sim_now(proc->world->sim);
    if (!ns) return;
    if (proc->busy_until < now) proc->busy_until = now;
    proc->busy_until += ns;
}

static uint64_t free_at(const struct proc *proc)
{
    uint64_t now = sim_now(proc->world->sim);
    return proc->busy_until > now ? proc->busy_until : now;
}

static void wake(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void set_wake(struct proc *proc)
{
    if (proc->wakes || proc->stopped || !proc->tasks) return;
    proc->wakes = true;
    sim_after(proc->world->sim, free_at(proc) - sim_now(proc->world->sim), wake, proc, 0, 0);
}

static void wake(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct proc *proc = context;
    (void)a, (void)b;
    proc->wakes = false;
    if (!proc->alive || proc->stopped) return;
    if (proc->tasks && proc->busy_until <= sim_now(sim)) {
        struct task *task = proc->tasks;
        proc->tasks = task->next;
        if (!proc->tasks) proc->last_task = &proc->tasks;
        task->function(proc, task->argument, task->number);
        free(task);
        driver_pump(proc);
    }
    set_wake(proc);
}

void proc_post(struct proc *proc, task_fn function, void *argument, uint64_t number)
{
    if (!proc->alive) return;
    if (!proc->stopped && !proc->tasks && proc->busy_until <= sim_now(proc->world->sim)) {
        function(proc, argument, number);
        driver_pump(proc);
        return;
    }
    struct task *task = need(malloc(sizeof *task));
    *task = (struct task){.function = function, .argument = argument, .number = number};
    *proc->last_task = task;
    proc->last_task = &task->next;
    set_wake(proc);
}

static void drop_tasks(struct proc *proc)
{
    while (proc->tasks) {
        struct task *next = proc->tasks->next;
        free(proc->tasks);
        proc->tasks = next;
    }
    proc->last_task = &proc->tasks;
}

struct proc *proc_create(struct world *world, int position)
{
    struct proc *proc = world_alloc(world, sizeof *proc);
    *proc = (struct proc){.world = world, .position = position, .alive = true, .tick_at = UINT64_MAX};
    proc->last_task = &proc->tasks;
    proc->child_count = tree_child_count(&world->setup.shape, position);
    proc->down = world_alloc(world, ((size_t)proc->child_count + 1) * sizeof *proc->down);
    return proc;
}

/* ---- Connections ---- */

static uint64_t delay_of(const struct conn *conn)
{
    const struct world *world = conn->child->world;
    if (world->setup.latency) return world->setup.latency(world, conn->child->position, conn->parent->position);
    return 5 * MICROSECOND + sim_random(world->sim, sim_chance(world->sim, 1, 8) ? 3 * MILLISECOND : 100 * MICROSECOND);
}

static void forget(struct parcel *parcel)
{
    *parcel->previous = parcel->next;
    if (parcel->next) parcel->next->previous = parcel->previous;
    free(parcel);
}

static void take_parcel(struct proc *proc, void *argument, uint64_t number)
{
    struct parcel *parcel = argument;
    struct conn *conn = parcel->conn;
    (void)number;
    if (conn->open[parcel->upwards]) { /* the side that receives */
        if (parcel->steps > proc->steps) proc->steps = parcel->steps;
        if (parcel->bytes) {
            const struct world_costs *costs = &proc->world->setup.costs;
            size_t weight = driver_weight(proc->world, parcel->data, parcel->bytes);
            proc_spend(proc, costs->receive + costs->kilobyte * weight / 1024);
            proc->messages++;
            proc->bytes += weight;
            driver_frame(proc, conn, parcel->upwards, parcel->data, parcel->bytes);
        } else {
            conn->open[parcel->upwards] = false;
            driver_closed(proc, conn, parcel->upwards);
        }
    }
    forget(parcel);
}

static void arrive(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct parcel *parcel = context;
    struct conn *conn = parcel->conn;
    struct proc *proc = parcel->upwards ? conn->parent : conn->child;
    bool lost = conn->cut || (conn->reset[parcel->upwards] && parcel->bytes);
    (void)sim, (void)a, (void)b;
    if (lost || !proc->alive)
        forget(parcel);
    else
        proc_post(proc, take_parcel, parcel, 0);
}

static void transmit(struct conn *conn, bool upwards, const void *data, size_t bytes)
{
    struct proc *proc = upwards ? conn->child : conn->parent;
    struct world *world = proc->world;
    struct parcel *parcel = need(malloc(sizeof *parcel + bytes));
    *parcel = (struct parcel){.next = world->parcels,
                              .previous = &world->parcels,
                              .conn = conn,
                              .upwards = upwards,
                              .steps = proc->steps + 1,
                              .bytes = bytes};
    if (parcel->next) parcel->next->previous = &parcel->next;
    world->parcels = parcel;
    if (bytes) memcpy(parcel->data, data, bytes);
    uint64_t now = sim_now(world->sim), at = (free_at(proc) > now ? free_at(proc) : now) + delay_of(conn);
    if (at < conn->last[upwards]) at = conn->last[upwards];
    conn->last[upwards] = at;
    sim_after(world->sim, at - now, arrive, parcel, 0, 0);
}

void conn_send(struct conn *conn, bool upwards, const void *data, size_t bytes)
{
    struct proc *proc = upwards ? conn->child : conn->parent;
    const struct world_costs *costs = &proc->world->setup.costs;
    if (!conn->open[!upwards]) return;
    size_t weight = driver_weight(proc->world, data, bytes);
    proc_spend(proc, costs->send + costs->kilobyte * weight / 1024);
    proc->messages++;
    proc->bytes += weight;
    proc->world->messages++;
    proc->world->bytes += weight;
    transmit(conn, upwards, data, bytes);
}

void conn_close(struct conn *conn, bool upwards)
{
    if (!conn->open[!upwards]) return;
    conn->open[!upwards] = false;
    transmit(conn, upwards, NULL, 0);
}

static void connected(struct proc *proc, void *argument, uint64_t number)
{
    struct conn *conn = argument;
    (void)number;
    if (!conn->open[0]) return;
    proc->up = conn;
    proc_spend(proc, proc->world->setup.costs.connect);
    driver_connected(proc);
}

static void accepted(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    proc_spend(proc, proc->world->setup.costs.accept);
}

static void finish_connect(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct conn *conn = context;
    (void)sim, (void)a, (void)b;
    if (conn->cut || !conn->child->alive) return;
    proc_post(conn->child, connected, conn, 0);
}

struct conn *conn_create(struct proc *child, struct proc *parent)
{
    struct conn *conn = world_alloc(child->world, sizeof *conn);
    *conn = (struct conn){.child = child, .parent = parent, .link = NOT_GREETED, .open = {true, true}};
    conn->next = child->world->conns;
    child->world->conns = conn;
    return conn;
}

static void try_connect(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void attempt(struct proc *proc, void *argument, uint64_t number)
{
    struct world *world = proc->world;
    struct proc *parent = world_proc(world, tree_above(&world->setup.shape, proc->position));
    (void)argument, (void)number;
    if (parent && !world->hosts[proc->position].cut) {
        struct conn *conn = conn_create(proc, parent);
        uint64_t round_trips = 4 * delay_of(conn); /* TCP's and the handshake's */
        proc_post(parent, accepted, NULL, 0);
        sim_after(world->sim, round_trips + world->setup.costs.accept, finish_connect, conn, 0, 0);
        return;
    }
    proc->pause = proc->pause ? 2 * proc->pause : MILLISECOND;
    if (proc->pause > MAX_PAUSE) proc->pause = MAX_PAUSE;
    sim_after(world->sim, proc->pause / 2 + world_chance(world, 0, proc->pause), try_connect, proc, 0, 0);
}

static void try_connect(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    proc_post(context, attempt, NULL, 0);
}

/* ---- Ends of processes ---- */

static void tell_starter(struct world *world, int position, int status);

static void last_of_all(struct world *world)
{
    if (world->everybody_runs && --world->everybody_left == 0) tell_starter(world, TREE_EVERYBODY, 0);
}

/* Its connections close; what was on its way may be lost (reset) with a process that did not close them itself. */
static void vanish(struct proc *proc, bool reset, int status)
{
    struct world *world = proc->world;
    if (!world->setup.chance) { /* there are no others, and many */
        if (proc->up) conn_close(proc->up, true);
        for (int i = 0; i < proc->child_count; i++)
            if (proc->down[i]) conn_close(proc->down[i], false);
    }
    for (struct conn *conn = world->setup.chance ? world->conns : NULL; conn; conn = conn->next) {
        if (conn->child != proc && conn->parent != proc) continue;
        bool upwards = conn->child == proc;
        conn->reset[upwards] |= reset && sim_chance(world->sim, 1, 2);
        conn_close(conn, upwards);
    }
    proc->alive = false;
    drop_tasks(proc);
    driver_release(proc);
    if (proc->position < 0) return;
    if (world->setup.start == TREE_START_ONCE)
        last_of_all(world);
    else
        tell_starter(world, proc->position, status);
}

void proc_exit(struct proc *proc)
{
    proc->exited = true;
    vanish(proc, false, 0);
}

struct proc *world_proc(struct world *world, int position)
{
    struct proc *proc = position == TREE_FRONT ? world->front : world->hosts[position].daemon;
    return proc && proc->alive ? proc : NULL;
}

void world_crash(struct proc *proc)
{
    vanish(proc, true, 9);
}

static void resume(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct proc *proc = context;
    (void)a, (void)b;
    if (!proc->alive) return;
    proc->stopped = false;
    if (sim_chance(sim, 1, 2)) driver_tick(proc); /* its clock comes before what waits to be read, or after */
    set_wake(proc);
}

void world_stop(struct proc *proc, uint64_t duration)
{
    proc->stopped = true;
    if (duration) sim_after(proc->world->sim, duration, resume, proc, 0, 0);
}

void world_suspend(struct proc *front, uint64_t duration)
{
    if (tree_suspend(front->tree, sim_now(front->world->sim))) sim_fail(front->world->sim, "%s", base_error_detail());
    driver_pump(front);
    if (front->alive) world_stop(front, duration);
}

static void time_out(struct proc *proc, void *argument, uint64_t upwards)
{
    struct conn *conn = argument;
    if (!conn->open[upwards]) return;
    conn->open[upwards] = false;
    driver_closed(proc, conn, upwards);
}

/* The kernel gives a connection up on which nothing is acknowledged. */
static void give_up(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct conn *conn = context;
    (void)sim, (void)a, (void)b;
    proc_post(conn->parent, time_out, conn, true);
    proc_post(conn->child, time_out, conn, false);
}

void world_cut(struct world *world, int position)
{
    world->hosts[position].cut = true;
    for (struct conn *conn = world->conns; conn; conn = conn->next) {
        if (conn->child->position != position) continue;
        conn->cut = true;
        sim_after(world->sim, 2 * world->setup.silence_ns, give_up, conn, 0, 0);
    }
}

/* ---- Agents ---- */

static void agent_event(struct proc *proc, void *argument, uint64_t number)
{
    const struct note *note = argument;
    uint64_t now = sim_now(proc->world->sim);
    int code;
    (void)number;
    if (note->what == AGENT_STARTED)
        code = tree_agent_started(proc->tree, note->position, now);
    else if (note->what == AGENT_FAILED)
        code = tree_agent_failed(proc->tree, note->position, "no such file", now);
    else
        code = tree_agent_ended(proc->tree, note->position, note->status, "its last words", now);
    if (note->what != AGENT_STARTED) proc->agents--;
    if (code) sim_fail(proc->world->sim, "an agent's event is refused: %s", base_error_detail());
}

static void tell(struct proc *proc, enum agent_event what, int position, int status)
{
    struct note *note = world_alloc(proc->world, sizeof *note);
    *note = (struct note){what, position, status};
    proc_post(proc, agent_event, note, 0);
}

static struct proc **starter_of(struct world *world, int position)
{
    return position == TREE_EVERYBODY ? &world->starter_of_all : &world->hosts[position].starter;
}

static void end_agent(struct sim *sim, void *context, uint64_t position, uint64_t status)
{
    struct world *world = context;
    struct proc **starter = starter_of(world, (int)position);
    (void)sim;
    if (!*starter) return;
    struct proc *proc = *starter;
    *starter = NULL;
    if (proc->alive) tell(proc, AGENT_ENDED, (int)position, (int)status);
}

/* The agent ends as its daemon does. */
static void tell_starter(struct world *world, int position, int status)
{
    if (*starter_of(world, position))
        sim_after(world->sim, world_chance(world, 0, 20 * MILLISECOND), end_agent, world, (uint64_t)(int64_t)position,
                  (uint64_t)status);
}

static void daemon_begins(struct sim *sim, void *context, uint64_t position, uint64_t b)
{
    struct world *world = context;
    struct host *host = &world->hosts[position];
    (void)b;
    if (host->agent_killed && sim_chance(sim, 1, 2)) return; /* it may have been on its way already */
    host->daemon = proc_create(world, (int)position);
    proc_spend(host->daemon, world->setup.costs.daemon_start);
    driver_begin(host->daemon);
    sim_after(sim, world->setup.costs.daemon_start + world_chance(world, 0, 10 * MILLISECOND), try_connect,
              host->daemon, 0, 0);
}

static bool begins(enum fate fate)
{
    return fate == FATE_GOOD || fate == FATE_DETACHES || fate == FATE_VERSION || fate == FATE_REFUSES;
}

static void run_agent(struct sim *sim, void *context, uint64_t number, uint64_t b)
{
    struct world *world = context;
    int position = (int)number;
    struct host *host = &world->hosts[position];
    struct proc *starter = host->starter;
    (void)b;
    if (!starter || !starter->alive) return;
    if (host->fate == FATE_NO_AGENT) {
        host->starter = NULL;
        tell(starter, AGENT_FAILED, position, 0);
        return;
    }
    tell(starter, AGENT_STARTED, position, 0);
    uint64_t later = world->setup.costs.agent + world_chance(world, 0, 200 * MILLISECOND);
    if (begins(host->fate)) sim_after(sim, later, daemon_begins, world, number, 0);
    if (host->fate == FATE_CODE) sim_after(sim, later, end_agent, world, number, 255 << 8);
    if (host->fate == FATE_DETACHES || host->fate == FATE_NEVER)
        sim_after(sim, world_chance(world, 0, 300 * MILLISECOND), end_agent, world, number, 0);
}

/* One agent brings up all. */
static void run_everybody(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    struct proc *starter = world->starter_of_all;
    (void)a, (void)b;
    if (!starter || !starter->alive) return;
    if (world->hosts[0].fate == FATE_NO_AGENT) {
        world->starter_of_all = NULL;
        tell(starter, AGENT_FAILED, TREE_EVERYBODY, 0);
        return;
    }
    tell(starter, AGENT_STARTED, TREE_EVERYBODY, 0);
    uint64_t later = world->setup.costs.agent;
    world->everybody_runs = world->hosts[0].fate != FATE_CODE;
    if (!world->everybody_runs)
        sim_after(sim, world_chance(world, 0, 200 * MILLISECOND), end_agent, world, (uint64_t)(int64_t)TREE_EVERYBODY,
                  1 << 8);
    for (int i = 0; i < world->setup.shape.count && world->everybody_runs; i++) {
        world->everybody_left++;
        if (begins(world->hosts[i].fate))
            sim_after(sim, later + world_chance(world, 0, 200 * MILLISECOND), daemon_begins, world, (uint64_t)i, 0);
    }
}

/* At least so many are under way: not up yet as far as the starter can know. */
static void check_window(const struct proc *starter)
{
    const struct world *world = starter->world;
    int under_way = 0;
    if (!world->setup.window) return;
    for (int i = 0; i < world->setup.shape.count; i++) {
        bool up = starter == world->front && world->setup.start == TREE_START_FRONT ? world->hosts[i].told > 0
                                                                                    : driver_has_greeted(starter, i);
        under_way += world->hosts[i].starter == starter && !up;
    }
    if (under_way > world->setup.window)
        sim_fail(world->sim, "%d agents are under way, more than %d", under_way, world->setup.window);
}

void agent_start(struct proc *starter, int position)
{
    struct world *world = starter->world;
    struct proc **place = starter_of(world, position);
    if (*place) sim_fail(world->sim, "a second agent for daemon %d", position);
    *place = starter;
    starter->agents++;
    proc_spend(starter, world->setup.costs.agent_fork);
    check_window(starter);
    sim_after(world->sim, free_at(starter) - sim_now(world->sim) + world_chance(world, 0, MILLISECOND),
              position == TREE_EVERYBODY ? run_everybody : run_agent, world, (uint64_t)(int64_t)position, 0);
}

/* An end of standard input ends a daemon that has not connected yet; or it is too late for that. */
static void end_unconnected(struct world *world, struct host *host)
{
    host->agent_killed = true;
    if (host->daemon && host->daemon->alive && !host->daemon->up && sim_chance(world->sim, 1, 2)) {
        host->starter = NULL;
        vanish(host->daemon, false, 0);
    }
}

void agent_stop(struct proc *starter, int position)
{
    struct world *world = starter->world;
    if (position == TREE_EVERYBODY) {
        for (int i = 0; i < world->setup.shape.count; i++) {
            world->hosts[i].agent_killed = true;
            if (world_proc(world, i)) vanish(world->hosts[i].daemon, true, 9);
        }
    } else {
        struct proc *keep = world->hosts[position].starter;
        end_unconnected(world, &world->hosts[position]);
        world->hosts[position].starter = keep;
    }
    sim_after(world->sim, world_chance(world, 0, 20 * MILLISECOND), end_agent, world, (uint64_t)(int64_t)position, 9);
}

/* ---- A world ---- */

static void place_ranks(struct world *world)
{
    struct sim *sim = world->sim;
    int count = world->setup.shape.count, each = world->setup.ranks_a_node;
    world->first_rank = world_alloc(world, ((size_t)count + 1) * sizeof *world->first_rank);
    for (int i = 0; i < count; i++) {
        int here = each >= 0 ? each : (int)sim_random(sim, 4);
        if (each < 0 && i == count - 1 && !world->first_rank[i]) here = 1;
        world->first_rank[i + 1] = world->first_rank[i] + here;
    }
    world->ranks = world->first_rank[count];
    world->home = world_alloc(world, (size_t)world->ranks * sizeof *world->home);
    for (int i = 0; i < count; i++)
        for (int rank = world->first_rank[i]; rank < world->first_rank[i + 1]; rank++) world->home[rank] = i;
    if (kvx_map_create(world->home, world->ranks, count, world->setup.shape.radix, &world->map))
        sim_fail(sim, "%s", base_error_detail());
}

int64_t world_held(void)
{
    struct base_area_usage bootstrap, launcher;
    base_area_usage(AREA_BOOTSTRAP, &bootstrap);
    base_area_usage(AREA_LAUNCHER, &launcher);
    return (int64_t)bootstrap.bytes + (int64_t)launcher.bytes;
}

struct world *world_create(struct sim *sim, const struct world_setup *setup)
{
    struct world *world = need(calloc(1, sizeof *world));
    *world = (struct world){.sim = sim, .setup = *setup, .held_before = world_held()};
    world->hosts = world_alloc(world, (size_t)setup->shape.count * sizeof *world->hosts);
    place_ranks(world);
    return world;
}

void world_begin(struct world *world)
{
    world->front = proc_create(world, TREE_FRONT);
    driver_begin(world->front);
}

void world_destroy(struct world *world)
{
    if (world->front) driver_release(world->front);
    if (world->front) drop_tasks(world->front);
    for (int i = 0; i < world->setup.shape.count; i++) {
        if (!world->hosts[i].daemon) continue;
        driver_release(world->hosts[i].daemon);
        drop_tasks(world->hosts[i].daemon);
    }
    while (world->parcels) forget(world->parcels);
    kvx_map_free(world->map);
    while (world->chunks) {
        struct chunk *next = world->chunks->next;
        free(world->chunks);
        world->chunks = next;
    }
    free(world);
}

void world_user_ends(struct world *world, bool at_once)
{
    proc_post(world->front, driver_user_ends, NULL, at_once);
}

/* Its greeting comes over a connection of its own; it listens to nothing. */
void world_stranger(struct world *world, int position, bool other_job)
{
    struct proc *parent = world_proc(world, tree_above(&world->setup.shape, position));
    if (!parent) return;
    bool taken = driver_has_greeted(parent, position);
    if (!other_job && !taken) return; /* that would be the daemon itself */
    struct proc *nobody = proc_create(world, position);
    struct conn *conn = conn_create(nobody, parent);
    conn->stranger = true;
    driver_greet_falsely(conn, other_job ? 2 : 1);
    nobody->alive = false;
}
