/* spawn.c - jobs that come and go: the front's record of jobs (launcher/jobs) and one exchange of keys a daemon
 * (bootstrap/kvx), in a tree, with random delays on every link.
 *
 * Rank 0 of the first job asks for other jobs, some at a time. Ranks of a job start one by one; they fence among
 * themselves, meet their parent, ask for each other's values, or leave at any point without a word. Some daemon may be
 * unable to start its part of a job. Whatever happens: each request is answered once, with "up" only when every daemon
 * knows the job; each call of the exchange ends; everything that is over is forgotten everywhere, and in the end the
 * front says, once, that no rank is left.
 */
#include "bootstrap/kvx/kvx.h"
#include "launcher/jobs.h"
#include "runtime/base/base.h"
#include "tests/sim/engine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DAEMONS 13
#define MAX_RANKS 12 /* of a job */
#define JOBS_IN_ALL 6
#define MICROSECOND UINT64_C(1000)
#define PARENT_WAITS (200 * MICROSECOND)

enum { OWN_FENCE, MEETING };

enum order_kind { DOWN_LAUNCH, DOWN_CANCEL, DOWN_RETIRE, DOWN_COMPLETE, UP_STARTED, UP_FAILED, UP_EXITED, UP_OUTPUT };

/* What goes between the front and daemons; 'O' and this, or 'K' and a message of the exchange. */
struct order {
    enum order_kind kind;
    int first, count, number, descriptor;
    bool last;
    int home[MAX_RANKS];
};

/* One rank, at its daemon. */
struct rank {
    int number, stage;
    bool started, ended, quits; /* early */
    bool came[2];               /* to each meeting */
};

/* What a daemon has of a job. */
struct part {
    struct part *next;
    int first, count, here; /* its ranks; those of them that are here */
    struct rank ranks[MAX_RANKS];
    int at, fails_at; /* next to be started; the one that cannot be, or -1 */
    bool cancelled, starting;
    int called[2]; /* ranks here that have come to each meeting */
};

struct daemon {
    int place;
    struct kvx_map *map;
    struct kvx *kvx;
    struct sim_channel *up, *down[MAX_DAEMONS];
    struct part *parts;
    bool complete;
    int calls; /* of the exchange, that have not ended */
};

struct link {
    struct daemon *daemon;
    int index;
};

/* A job as the front knows it. */
struct known {
    struct job *job;
    int home[MAX_RANKS];
    int answers, up;
};

struct world {
    struct sim *sim;
    int daemons, radix, asked, completes;
    struct daemon daemon[MAX_DAEMONS];
    struct jobs *jobs;
    struct known known[JOBS_IN_ALL + 1];
    bool parent_left;
};

static struct world *world_of(struct sim *sim)
{
    return sim_user(sim);
}

static void pump(struct world *world, struct daemon *daemon);
static void review(struct world *world);

/* ---- Messages ---- */

static void send(struct sim_channel *channel, char mark, const void *data, size_t bytes)
{
    char *message = malloc(bytes + 1);
    if (!message) abort();
    message[0] = mark;
    memcpy(message + 1, data, bytes);
    sim_channel_send(channel, message, bytes + 1);
    free(message);
}

static void send_up(struct daemon *daemon, const struct order *order)
{
    send(daemon->up, 'O', order, sizeof *order);
}

static void spread(struct world *world, struct daemon *daemon, const struct order *order)
{
    for (int i = 0; i < kvx_child_count(daemon->map, daemon->place); i++)
        send(daemon->down[i], 'O', order, sizeof *order);
    (void)world;
}

/* ---- Ranks ---- */

static struct part *find_part(const struct daemon *daemon, int number)
{
    struct part *part = daemon->parts;
    while (part && (number < part->first || number - part->first >= part->count)) part = part->next;
    return part;
}

static struct rank *find_rank(const struct daemon *daemon, int number)
{
    struct part *part = find_part(daemon, number);
    for (int i = 0; part && i < part->here; i++)
        if (part->ranks[i].number == number) return &part->ranks[i];
    return NULL;
}

static void live(struct sim *sim, void *context, uint64_t number, uint64_t unused);

static void later(struct world *world, struct daemon *daemon, int number)
{
    sim_after(world->sim, sim_random(world->sim, 40 * MICROSECOND), live, daemon, (uint64_t)number, 0);
}

/* When all ranks of the job here have come, or are dead, the daemon calls for them, as libpmix does. */
static void come(struct world *world, struct daemon *daemon, struct part *part, struct rank *rank, int kind)
{
    const struct kvx_range ranges[] = {{(uint32_t)part->first, (uint32_t)(part->first + part->count - 1)}, {0, 0}};
    bool waited_for = false;
    if (rank->came[kind]) return;
    rank->came[kind] = true;
    for (int i = 0; i < part->here; i++) waited_for |= part->ranks[i].came[kind] && !part->ranks[i].ended;
    if (++part->called[kind] < part->here || !waited_for) return;
    const struct kvx_fence fence = {.kind = (unsigned)kind,
                                    .ranges = ranges,
                                    .count = kind == MEETING ? 2 : 1,
                                    .token = (uint64_t)part->first * 4 + (uint64_t)kind};
    if (kvx_begin_fence(daemon->kvx, &fence, sim_now(world->sim))) {
        sim_fail(world->sim, "%s", base_error_detail());
        return;
    }
    daemon->calls++;
}

/* Its end goes up first, then to the exchange; its outputs end before or after. */
static void leave(struct world *world, struct daemon *daemon, struct part *part, struct rank *rank)
{
    int early = (int)sim_random(world->sim, 3); /* outputs that end before */
    rank->ended = true;
    for (int i = 1; i <= 2; i++)
        if (i <= early) send_up(daemon, &(struct order){.kind = UP_OUTPUT, .number = rank->number, .descriptor = i});
    send_up(daemon, &(struct order){.kind = UP_EXITED, .number = rank->number});
    for (int i = 1; i <= 2; i++)
        if (i > early) send_up(daemon, &(struct order){.kind = UP_OUTPUT, .number = rank->number, .descriptor = i});
    if (kvx_rank_died(daemon->kvx, rank->number)) sim_fail(world->sim, "%s", base_error_detail());
    if (rank->number == 0) world->parent_left = true;
    for (int kind = OWN_FENCE; kind <= MEETING && part->first; kind++) come(world, daemon, part, rank, kind);
}

/* The next step of a rank. */
static void live(struct sim *sim, void *context, uint64_t number, uint64_t unused)
{
    struct world *world = world_of(sim);
    struct daemon *daemon = context;
    struct part *part = find_part(daemon, (int)number);
    struct rank *rank = part ? find_rank(daemon, (int)number) : NULL;
    (void)unused;
    if (!rank || rank->ended || sim_failed(sim)) return;
    if (part->first == 0) return; /* the first job waits for what it is told */
    if (part->cancelled || (rank->quits && sim_chance(sim, 1, 2))) {
        leave(world, daemon, part, rank);
        pump(world, daemon);
        return;
    }
    switch (rank->stage++) {
    case 0:
        come(world, daemon, part, rank, OWN_FENCE);
        break;
    case 1: {
        int other = part->first + (int)sim_random(sim, (uint64_t)part->count);
        daemon->calls++;
        if (kvx_get(daemon->kvx, other, sim_chance(sim, 1, 2), 0, sim_now(sim), 3 + 4 * number))
            sim_fail(sim, "%s", base_error_detail());
        break;
    }
    case 2:
        come(world, daemon, part, rank, MEETING);
        break;
    default:
        leave(world, daemon, part, rank);
    }
    pump(world, daemon);
}

/* ---- A daemon ---- */

static void tell_started(struct daemon *daemon, const struct part *part, int number, bool started)
{
    send_up(daemon, &(struct order){.kind = UP_STARTED, .first = part->first, .number = number, .count = started});
}

static void stop_start(struct daemon *daemon, struct part *part)
{
    if (!part->starting) return;
    part->starting = false;
    for (; part->at < part->here; part->at++) tell_started(daemon, part, part->ranks[part->at].number, false);
    send_up(daemon, &(struct order){.kind = UP_STARTED, .first = part->first, .number = -1, .last = true});
}

static void cancel(struct world *world, struct daemon *daemon, struct part *part)
{
    if (part->cancelled) return;
    part->cancelled = true;
    stop_start(daemon, part);
    for (int i = 0; i < part->here; i++)
        if (part->ranks[i].started && !part->ranks[i].ended) later(world, daemon, part->ranks[i].number);
}

/* One rank a turn. */
static void start_one(struct sim *sim, void *context, uint64_t first, uint64_t unused)
{
    struct world *world = world_of(sim);
    struct daemon *daemon = context;
    struct part *part = find_part(daemon, (int)first);
    (void)unused;
    if (!part || !part->starting) return;
    if (part->at == part->fails_at) {
        send_up(daemon, &(struct order){.kind = UP_FAILED, .first = part->first});
        cancel(world, daemon, part);
    } else if (part->at < part->here) {
        struct rank *rank = &part->ranks[part->at++];
        rank->started = true;
        tell_started(daemon, part, rank->number, true);
        later(world, daemon, rank->number);
        sim_after(sim, sim_random(sim, 10 * MICROSECOND), start_one, daemon, first, 0);
    } else {
        stop_start(daemon, part);
    }
}

static void launch(struct world *world, struct daemon *daemon, const struct order *order)
{
    struct part *part = sim_alloc(world->sim, sizeof *part);
    *part = (struct part){.next = daemon->parts, .first = order->first, .count = order->count, .starting = true};
    bool spawned = order->first > 0;
    if (spawned && kvx_map_add(daemon->map, order->first, order->home, order->count))
        sim_fail(world->sim, "%s", base_error_detail());
    for (int i = 0; i < order->count; i++)
        if (order->home[i] == daemon->place)
            part->ranks[part->here++] =
                (struct rank){.number = order->first + i, .quits = spawned && sim_chance(world->sim, 1, 8)};
    bool fails = spawned && sim_chance(world->sim, 1, 6u * (unsigned)world->daemons);
    part->fails_at = fails ? (int)sim_random(world->sim, (uint64_t)part->here + 1) : -1;
    daemon->parts = part;
    sim_after(world->sim, sim_random(world->sim, 10 * MICROSECOND), start_one, daemon, (uint64_t)order->first, 0);
}

static void retire(struct world *world, struct daemon *daemon, int first)
{
    struct part **place = &daemon->parts;
    while (*place && (*place)->first != first) place = &(*place)->next;
    struct part *part = *place;
    if (!part || part->starting) {
        sim_fail(world->sim, "daemon %d is to forget a job that it does not know, or is starting", daemon->place);
        return;
    }
    for (int i = 0; i < part->here; i++)
        if (part->ranks[i].started && !part->ranks[i].ended) sim_fail(world->sim, "a job is forgotten that runs");
    if (kvx_retire(daemon->kvx, first, part->count)) sim_fail(world->sim, "%s", base_error_detail());
    kvx_map_remove(daemon->map, first);
    *place = part->next;
}

/* In the order of launcher/daemon_frames.c. */
static void obey(struct world *world, struct daemon *daemon, const struct order *order)
{
    struct part *part = find_part(daemon, order->first);
    if (order->kind == DOWN_RETIRE) {
        retire(world, daemon, order->first);
        pump(world, daemon);
        spread(world, daemon, order);
        return;
    }
    spread(world, daemon, order);
    if (order->kind == DOWN_LAUNCH) launch(world, daemon, order);
    if (order->kind == DOWN_CANCEL && part) cancel(world, daemon, part);
    if (order->kind == DOWN_COMPLETE) daemon->complete = true;
    pump(world, daemon);
}

/* The operation of a rank, or of all ranks here, has ended: they go on, whatever came of it. */
static void go_on(struct world *world, struct daemon *daemon, uint64_t token)
{
    struct part *part = find_part(daemon, (int)(token / 4));
    daemon->calls--;
    if (!part) return; /* it was forgotten */
    if (token % 4 == 3) {
        later(world, daemon, (int)(token / 4));
        return;
    }
    for (int i = 0; i < part->here; i++)
        if (!part->ranks[i].ended) later(world, daemon, part->ranks[i].number);
}

/* The parent's calls: tokens of its own. */
#define PARENT_TOKEN (UINT64_C(1) << 40)

static void fetched(struct sim *sim, void *context, uint64_t rank, uint64_t token)
{
    struct daemon *daemon = context;
    if (kvx_fetched(daemon->kvx, (int)rank, token, KVX_OK, "value", 5, sim_now(sim)))
        sim_fail(sim, "%s", base_error_detail());
    pump(world_of(sim), daemon);
}

static void pump(struct world *world, struct daemon *daemon)
{
    struct kvx_action action;
    while (kvx_next(daemon->kvx, &action)) {
        if (action.kind == KVX_SEND)
            send(action.link == KVX_PARENT ? daemon->up : daemon->down[action.link], 'K', action.message, action.bytes);
        else if (action.kind == KVX_FETCH)
            sim_after(world->sim, sim_random(world->sim, 20 * MICROSECOND), fetched, daemon, (uint64_t)action.rank,
                      action.token);
        else if (action.kind == KVX_COMPLETE && action.token >= PARENT_TOKEN)
            daemon->calls--;
        else if (action.kind == KVX_COMPLETE)
            go_on(world, daemon, action.token);
        base_free(AREA_BOOTSTRAP, action.data);
    }
}

/* ---- The front ---- */

static void order_all(struct world *world, const struct order *order)
{
    send(world->daemon[0].down[MAX_DAEMONS - 1], 'O', order, sizeof *order); /* the way from the front to place 0 */
}

static void ask(struct sim *sim, void *context, uint64_t count, uint64_t unused)
{
    struct world *world = context;
    struct known *known = &world->known[world->asked];
    struct order order = {.kind = DOWN_LAUNCH, .count = (int)count};
    (void)unused;
    if (world->parent_left || sim_failed(sim)) return;
    known->job = jobs_add(world->jobs, (int)count, 0, known);
    if (!known->job) {
        sim_fail(sim, "%s", base_error_detail());
        return;
    }
    for (int i = 0; i < (int)count; i++)
        order.home[i] = known->home[i] = (int)sim_random(sim, (uint64_t)world->daemons);
    order.first = known->job->first;
    world->asked++;
    order_all(world, &order);
}

/* The parent meets the job. */
static void meet(struct sim *sim, void *context, uint64_t index, uint64_t unused)
{
    struct world *world = context;
    const struct job *job = world->known[index].job;
    struct daemon *daemon = &world->daemon[world->known[0].home[0]];
    (void)unused;
    if (!job || !find_part(daemon, job->first) || world->parent_left) return; /* over already */
    const struct kvx_range ranges[] = {{(uint32_t)job->first, (uint32_t)(job->first + job->count - 1)}, {0, 0}};
    struct part *part = find_part(daemon, job->first);
    if (part->here) return; /* the daemon calls once for all: its ranks do */
    const struct kvx_fence fence = {.kind = MEETING, .ranges = ranges, .count = 2, .token = PARENT_TOKEN + index};
    daemon->calls++;
    if (kvx_begin_fence(daemon->kvx, &fence, sim_now(sim))) sim_fail(sim, "%s", base_error_detail());
    pump(world, daemon);
}

static void answer(struct world *world, struct known *known, bool up)
{
    known->answers++;
    known->up = up;
    if (!up) return;
    for (int i = 0; i < world->daemons; i++)
        if (!find_part(&world->daemon[i], known->job->first))
            sim_fail(world->sim, "daemon %d does not know a job that is up", i);
    sim_after(world->sim, sim_random(world->sim, 60 * MICROSECOND), meet, world, (uint64_t)(known - world->known), 0);
}

static void review(struct world *world)
{
    struct jobs_action action;
    while (!sim_failed(world->sim) && jobs_next(world->jobs, &action)) {
        struct known *known = action.job ? action.job->data : NULL;
        bool first = known == world->known;
        if (action.kind == JOBS_UP && !first) answer(world, known, true);
        if (action.kind == JOBS_CANCEL)
            order_all(world, &(struct order){.kind = DOWN_CANCEL, .first = action.job->first});
        if (action.kind == JOBS_COMPLETE) {
            world->completes++;
            order_all(world, &(struct order){.kind = DOWN_COMPLETE});
        }
        if (action.kind != JOBS_OVER || first) continue;
        if (!action.job->up) answer(world, known, false);
        order_all(world, &(struct order){.kind = DOWN_RETIRE, .first = action.job->first});
        known->job = NULL;
        jobs_forget(world->jobs, action.job);
    }
}

static void hear(struct world *world, const struct order *order)
{
    bool good = true;
    if (order->kind == UP_STARTED && order->number >= 0)
        good = (order->count ? jobs_started : jobs_unstarted)(world->jobs, order->number);
    if (order->kind == UP_STARTED && order->last) good = jobs_answered(world->jobs, order->first);
    if (order->kind == UP_FAILED) good = jobs_failed(world->jobs, order->first);
    if (order->kind == UP_EXITED) good = jobs_exited(world->jobs, order->number);
    if (order->kind == UP_OUTPUT) good = jobs_output_ended(world->jobs, order->number, order->descriptor);
    if (!good)
        sim_fail(world->sim, "the front cannot make sense of order %d of job %d, rank %d", (int)order->kind,
                 order->first, order->number);
    review(world);
}

/* ---- Links ---- */

static void deliver(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct world *world = world_of(sim);
    struct link *link = context;
    const char *message = data;
    struct order order;
    if (sim_failed(sim)) return;
    if (*message == 'K') {
        if (kvx_receive(link->daemon->kvx, link->index, message + 1, bytes - 1, sim_now(sim)))
            sim_fail(sim, "%s", base_error_detail());
        pump(world, link->daemon);
        return;
    }
    memcpy(&order, message + 1, sizeof order);
    if (!link->daemon)
        hear(world, &order);
    else if (link->index == KVX_PARENT)
        obey(world, link->daemon, &order);
    else
        send_up(link->daemon, &order);
}

static struct sim_channel *connect_to(struct world *world, struct daemon *daemon, int index)
{
    struct link *link = sim_alloc(world->sim, sizeof *link);
    *link = (struct link){daemon, index};
    return sim_channel_create(world->sim, MICROSECOND, 30 * MICROSECOND, deliver, link);
}

/* The parent's end: the others of its job end with it. */
static void end_first(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    (void)a, (void)b;
    for (int i = 0; i < world->daemons && !sim_failed(sim); i++) {
        struct daemon *daemon = &world->daemon[i];
        struct part *part = find_part(daemon, 0);
        for (int j = 0; part && j < part->here; j++)
            if (!part->ranks[j].ended) leave(world, daemon, part, &part->ranks[j]);
        pump(world, daemon);
    }
}

static void open_daemon(struct world *world, int place, const int *home, int count)
{
    static const struct kvx_limits limits = {
        .frame_bytes = KVX_LEAST_FRAME, .fence_bytes = 100000, .cache_bytes = 300, .published_bytes = 1000};
    struct daemon *daemon = &world->daemon[place];
    daemon->place = place;
    if (kvx_map_create(home, count, world->daemons, world->radix, &daemon->map) ||
        kvx_create(daemon->map, place, &limits, &daemon->kvx))
        sim_fail(world->sim, "%s", base_error_detail());
}

static void start(struct sim *sim)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    struct order order = {.kind = DOWN_LAUNCH};
    sim_set_user(sim, world);
    world->sim = sim;
    world->daemons = 1 + (int)sim_random(sim, MAX_DAEMONS - 1);
    world->radix = 1 + (int)sim_random(sim, 4);
    world->jobs = jobs_create(world->daemons);
    order.count = 1 + (int)sim_random(sim, 4);
    struct known *first = &world->known[world->asked++];
    for (int i = 0; i < order.count; i++)
        order.home[i] = first->home[i] = (int)sim_random(sim, (uint64_t)world->daemons);
    first->job = jobs_add(world->jobs, order.count, -1, first);
    for (int place = 0; place < world->daemons; place++) open_daemon(world, place, order.home, order.count);
    for (int place = 0; place < world->daemons; place++) {
        struct daemon *daemon = &world->daemon[place];
        struct daemon *above = place ? &world->daemon[kvx_parent(daemon->map, place)] : NULL;
        int index = above ? place - kvx_child(daemon->map, above->place, 0) : 0;
        daemon->up = connect_to(world, above, index);
        struct sim_channel *down = connect_to(world, daemon, KVX_PARENT);
        *(above ? &above->down[index] : &daemon->down[MAX_DAEMONS - 1]) = down;
    }
    order_all(world, &order);
    for (int i = 0; i < JOBS_IN_ALL; i++)
        sim_after(sim, PARENT_WAITS + sim_random(sim, 3000 * MICROSECOND), ask, world,
                  1 + sim_random(sim, MAX_RANKS - 1), 0);
    sim_after(sim, PARENT_WAITS + 3000 * MICROSECOND + sim_random(sim, 3000 * MICROSECOND), end_first, world, 0, 0);
}

static void finish(struct sim *sim)
{
    struct world *world = world_of(sim);
    for (int i = 1; i < world->asked; i++)
        if (world->known[i].answers != 1) sim_fail(sim, "request %d was answered %d times", i, world->known[i].answers);
    if (world->completes != 1) sim_fail(sim, "the front says %d times that no rank is left", world->completes);
    if (jobs_left(world->jobs)) sim_fail(sim, "%d ranks are left", jobs_left(world->jobs));
    for (int i = 0; i < world->daemons; i++) {
        struct daemon *daemon = &world->daemon[i];
        if (!daemon->complete) sim_fail(sim, "daemon %d does not hear of the end", i);
        if (daemon->calls) sim_fail(sim, "%d calls at daemon %d do not end", daemon->calls, i);
        if (kvx_pending(daemon->kvx))
            sim_fail(sim, "%zu operations are left at daemon %d", kvx_pending(daemon->kvx), i);
        if (daemon->parts && daemon->parts->next) sim_fail(sim, "daemon %d has not forgotten a job", i);
    }
}

static void release(struct sim *sim)
{
    struct world *world = world_of(sim);
    for (int i = 0; i < world->daemons; i++) {
        kvx_destroy(world->daemon[i].kvx);
        kvx_map_free(world->daemon[i].map);
    }
    jobs_destroy(world->jobs);
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {
        BUG_JOBS_UP_EARLY,      BUG_JOBS_OVER_EARLY,    BUG_JOBS_UNSTARTED_FORGOTTEN,
        BUG_KVX_RETIRED_WAITED, BUG_KVX_RETIRED_BROKEN, BUG_NONE};
    const struct sim_scenario scenario = {
        .name = "jobs that come and go", .start = start, .finish = finish, .release = release, .seeds = 3000, .bugs = bugs};
    return sim_main(argc, argv, &scenario, 1);
}
