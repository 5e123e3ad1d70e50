/* kvx.c - the key-value exchange in virtual time: 1 to 64 daemons, any radix; fences over overlapping sets of ranks,
 * several under way; values of ranks asked for before and after they are there; names; deaths of ranks and daemons.
 *
 * Holds at every moment: a fence ends well only when all its daemons have called, and with everybody's data; a fence
 * ends the same way on all (a daemon that died between them excepted); who is said to be dead is, and who is said to be
 * late was; a get returns a value
 * that the rank had, no older than asked for; no time limit comes early. At the end: nothing waits, no memory is held.
 */
#include "bootstrap/kvx/kvx.h"

#include "runtime/base/base.h"
#include "tests/sim/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DAEMONS 64
#define MAX_RANKS 128
#define SETS 5
#define FENCES 4 /* of a set */
#define NAMES 4
#define VERSIONS 3 /* of a rank's value */
#define MAX_DUPLICATES 20
#define MILLISECOND UINT64_C(1000000)
#define NOT_YET UINT64_MAX

struct world;

struct fence_state { /* of one fence on one daemon */
    bool called, done;
    uint64_t called_at;
};

struct set {
    unsigned kind;
    struct kvx_range ranges[MAX_RANKS];
    size_t range_count;
    bool member[MAX_DAEMONS];
    int members, calls[FENCES], bytes[FENCES][MAX_DAEMONS];
    uint64_t deadline[FENCES]; /* the earliest */
    bool decided[FENCES];
    enum kvx_status outcome[FENCES];
    struct kvx_failure blame[FENCES];
    struct fence_state state[FENCES][MAX_DAEMONS];
};

enum kind { FENCE, GET, PUBLISH, LOOKUP, SERIES };

struct operation {
    struct operation *next;
    enum kind kind;
    int daemon, set, fence; /* a fence */
    int rank, version;      /* a get: at least this version; a name's owner */
    int name, step;
    bool wait, settled, done; /* settled: the name was there for good when it was asked for */
    uint64_t deadline;
};

struct node {
    struct world *world;
    int number;
    struct kvx *kvx;
    bool crashed;
    uint64_t tick_at;
    struct sim_channel *up, *down[MAX_DAEMONS];
    struct stale *stale; /* a message of a fence that is sent again later */
};

struct stale {
    struct sim_channel *channel;
    size_t bytes;
    unsigned char data[];
};

struct link {
    struct node *node; /* which receives */
    int index;
};

struct fetch {
    struct fetch *next;
    struct node *node;
    int rank, version; /* and at least this one */
    uint64_t token;
};

struct world {
    struct sim *sim;
    struct kvx_map *map;
    int daemons, ranks, home[MAX_RANKS], version[MAX_RANKS];
    bool dead[MAX_RANKS], crashed;
    bool published[NAMES];
    struct node nodes[MAX_DAEMONS];
    struct set sets[SETS];
    struct operation *operations;
    struct fetch *fetches; /* of values that are not there yet */
    size_t fence_bytes;    /* limit */
    int duplicates;        /* messages that came twice */
    int64_t held_before;
};

static struct world *last_world; /* of a run that may have failed, whose instances are still there */

static void pump(struct node *node);

static int64_t held(void)
{
    struct base_area_usage usage;
    base_area_usage(AREA_BOOTSTRAP, &usage);
    return (int64_t)usage.bytes;
}

static void demand(struct node *node, int code)
{
    if (code) sim_fail(node->world->sim, "daemon %d: %s", node->number, base_error_detail());
    pump(node);
}

/* ---- Values: their bytes tell who made them --------------------------------------------------------------------- */

static size_t pattern_bytes(int rank, int version)
{
    return (size_t)(8 + (rank * 37 + version * 11) % 300);
}

static void fill(unsigned char *out, size_t bytes, unsigned a, unsigned b)
{
    for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)(a * 31 + b * 7 + i);
}

static bool is_filled(const void *data, size_t bytes, unsigned a, unsigned b)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(a * 31 + b * 7 + i)) return false;
    return true;
}

#define KEY_BYTES 6 /* "key-1", one for each version that there was */

/* A rank's value; all that came before are named in it. */
static size_t make_value(int rank, int version, unsigned char *out)
{
    size_t bytes = pattern_bytes(rank, version);
    fill(out, bytes, (unsigned)rank, (unsigned)version);
    for (int i = 1; i <= version; i++, bytes += KEY_BYTES) snprintf((char *)out + bytes, KEY_BYTES, "key-%d", i);
    return bytes;
}

/* ---- Ends of operations ----------------------------------------------------------------------------------------- */

static void check_blame(struct operation *operation, const struct kvx_action *action, struct world *world)
{
    const struct kvx_failure *who = &action->failure;
    bool rank = who->rank >= 0 && who->rank < world->ranks && world->dead[who->rank];
    bool daemon =
        who->rank < 0 && who->daemon >= 0 && who->daemon < world->daemons && world->nodes[who->daemon].crashed;
    if (!rank && !daemon)
        sim_fail(world->sim, "operation %d on daemon %d blames rank %d, daemon %d, who live", operation->kind,
                 operation->daemon, who->rank, who->daemon);
}

/* Somebody at or below the daemon that is blamed had not called when the first limit passed. */
static void check_missing(struct world *world, const struct operation *operation, const struct kvx_action *action)
{
    const struct set *set = &world->sets[operation->set];
    uint64_t deadline = set->deadline[operation->fence];
    bool found = false;
    for (int d = 0; d < world->daemons; d++) {
        const struct fence_state *state = &set->state[operation->fence][d];
        int above = d;
        while (above > action->failure.daemon) above = kvx_parent(world->map, above);
        found |= set->member[d] && above == action->failure.daemon && (!state->called || state->called_at >= deadline);
    }
    if (!found || sim_now(world->sim) < deadline)
        sim_fail(world->sim, "fence %d of set %d: its time has not passed, or daemon %d and those below it had come",
                 operation->fence, operation->set, action->failure.daemon);
}

static unsigned pattern_of(int set, int fence, int daemon)
{
    return (unsigned)(set * 1000 + fence * 100 + daemon);
}

static void check_data(struct world *world, const struct operation *operation, const struct kvx_action *action)
{
    const struct set *set = &world->sets[operation->set];
    const unsigned char *at = action->data;
    size_t left = action->bytes;
    for (int d = 0; d < world->daemons; d++) {
        size_t bytes = set->member[d] ? (size_t)set->bytes[operation->fence][d] : 0;
        if (!bytes) continue;
        if (bytes > left || !is_filled(at, bytes, pattern_of(operation->set, operation->fence, d), 0)) {
            sim_fail(world->sim, "data of daemon %d is missing or wrong in fence %d of set %d", d, operation->fence,
                     operation->set);
            return;
        }
        at += bytes;
        left -= bytes;
    }
    if (left) sim_fail(world->sim, "%zu bytes too many in fence %d of set %d", left, operation->fence, operation->set);
}

static void call_fence(struct sim *sim, void *context, uint64_t set, uint64_t fence);

static size_t total_bytes(const struct world *world, const struct set *set, int fence)
{
    size_t total = 0;
    for (int d = 0; d < world->daemons; d++) total += set->member[d] ? (size_t)set->bytes[fence][d] : 0;
    return total;
}

static void end_fence(struct world *world, struct operation *operation, const struct kvx_action *action)
{
    struct set *set = &world->sets[operation->set];
    int fence = operation->fence;
    bool good = action->status == KVX_OK;
    bool too_much = total_bytes(world, set, fence) > world->fence_bytes;
    if (good && too_much) sim_fail(world->sim, "a fence with too much data ended well");
    if (good && set->calls[fence] < set->members)
        sim_fail(world->sim, "fence %d of set %d ended before all had called", fence, operation->set);
    if (good)
        check_data(world, operation, action);
    else if (action->status == KVX_FAILED)
        check_blame(operation, action, world);
    else if (action->status == KVX_TIMEOUT)
        check_missing(world, operation, action);
    else if (action->status != KVX_LIMIT || !too_much)
        sim_fail(world->sim, "fence %d of set %d ended with status %d", fence, operation->set, action->status);
    bool same = !set->decided[fence] ||
                (set->outcome[fence] == action->status && set->blame[fence].rank == action->failure.rank &&
                 set->blame[fence].daemon == action->failure.daemon);
    if (!same && !world->crashed) sim_fail(world->sim, "fence %d of set %d ended in two ways", fence, operation->set);
    set->decided[fence] = true;
    set->outcome[fence] = action->status;
    set->blame[fence] = action->failure;
    struct fence_state *state = set->state[fence] + operation->daemon;
    state->done = true;
    if (fence + 1 < FENCES && !set->state[fence + 1][operation->daemon].called)
        sim_after(world->sim, sim_random(world->sim, 3000), call_fence, &world->nodes[operation->daemon],
                  (uint64_t)operation->set, (uint64_t)fence + 1);
}

static void end_get(struct world *world, struct operation *operation, const struct kvx_action *action)
{
    if (action->status == KVX_OK) {
        int version = operation->version ? operation->version : 1;
        unsigned char value[512];
        while (version <= world->version[operation->rank] &&
               (make_value(operation->rank, version, value) != action->bytes ||
                memcmp(value, action->data, action->bytes)))
            version++;
        if (version > world->version[operation->rank])
            sim_fail(world->sim, "a get of rank %d returns wrong or old bytes", operation->rank);
    } else if (action->status == KVX_TIMEOUT) {
        if (sim_now(world->sim) < operation->deadline)
            sim_fail(world->sim, "a get of rank %d gave up early", operation->rank);
    } else if (action->status == KVX_FAILED) {
        check_blame(operation, action, world);
    } else {
        sim_fail(world->sim, "a get of rank %d ended with status %d", operation->rank, action->status);
    }
}

/* Everybody may publish a name, one succeeds. */
static void end_publish(struct world *world, struct operation *operation, const struct kvx_action *action)
{
    if (action->status == KVX_FAILED)
        check_blame(operation, action, world);
    else if (action->status == KVX_OK && operation->settled)
        sim_fail(world->sim, "a name was published twice");
    else if (action->status == KVX_OK || action->status == KVX_DUPLICATE)
        world->published[operation->name] = true;
    else
        sim_fail(world->sim, "publishing ended with status %d", action->status);
}

static void end_lookup(struct world *world, struct operation *operation, const struct kvx_action *action)
{
    bool right = action->owner >= 0 && action->bytes == pattern_bytes(action->owner, operation->name) &&
                 is_filled(action->data, action->bytes, (unsigned)action->owner, (unsigned)operation->name);
    if (action->status == KVX_OK && !right) sim_fail(world->sim, "a look-up returns wrong bytes");
    if (action->status == KVX_FAILED) check_blame(operation, action, world);
    if (action->status == KVX_NOT_FOUND && (operation->wait || operation->settled))
        sim_fail(world->sim, "a name that is there is not found");
    if (action->status == KVX_TIMEOUT && (operation->settled || sim_now(world->sim) < operation->deadline))
        sim_fail(world->sim, "a look-up gave up early");
}

/* One daemon on a name of its own: publish, look up, publish again, unpublish, look up. */
static void next_of_series(struct node *node, struct operation *operation)
{
    char name[32];
    snprintf(name, sizeof name, "series of %d", node->number);
    int step = operation->step++;
    if (step == 0 || step == 2)
        demand(node, kvx_publish(node->kvx, operation->rank, name, name, 5, (uint64_t)(uintptr_t)operation));
    else if (step == 3)
        demand(node, kvx_unpublish(node->kvx, operation->rank, name, (uint64_t)(uintptr_t)operation));
    else
        demand(node, kvx_lookup(node->kvx, name, false, 0, sim_now(node->world->sim), (uint64_t)(uintptr_t)operation));
}

static void end_of_series(struct world *world, struct operation *operation, const struct kvx_action *action)
{
    static const enum kvx_status expected[] = {KVX_OK, KVX_OK, KVX_DUPLICATE, KVX_OK, KVX_NOT_FOUND};
    int step = operation->step - 1;
    if (action->status == KVX_FAILED) {
        check_blame(operation, action, world);
    } else if (action->status != expected[step] || (step == 1 && action->owner != operation->rank)) {
        sim_fail(world->sim, "step %d with a name of one's own ended with status %d", step, action->status);
    } else if (step < 4) {
        operation->done = false;
        next_of_series(&world->nodes[operation->daemon], operation);
    }
}

static void end_operation(struct node *node, const struct kvx_action *action)
{
    struct operation *operation = (struct operation *)(uintptr_t)action->token;
    struct world *world = node->world;
    if (operation->done || operation->daemon != node->number) {
        sim_fail(world->sim, "an operation ended twice, or elsewhere");
        return;
    }
    operation->done = true;
    switch (operation->kind) {
    case FENCE:
        end_fence(world, operation, action);
        break;
    case GET:
        end_get(world, operation, action);
        break;
    case PUBLISH:
        end_publish(world, operation, action);
        break;
    case LOOKUP:
        end_lookup(world, operation, action);
        break;
    case SERIES:
        end_of_series(world, operation, action);
        break;
    }
}

/* ---- The driver of an instance ---------------------------------------------------------------------------------- */

static void answer_fetch(struct sim *sim, void *context, uint64_t rank, uint64_t token)
{
    struct node *node = context;
    unsigned char value[512];
    if (node->crashed) return;
    size_t bytes = make_value((int)rank, node->world->version[rank], value);
    demand(node, kvx_fetched(node->kvx, (int)rank, token, KVX_OK, value, bytes, sim_now(sim)));
}

static void start_fetch(struct node *node, int rank, const char *key, uint64_t token)
{
    int wanted = key ? atoi(key + 4) : 1;
    struct world *world = node->world;
    if (world->home[rank] != node->number) sim_fail(world->sim, "daemon %d is asked for rank %d", node->number, rank);
    if (world->version[rank] >= wanted) {
        sim_after(world->sim, sim_random(world->sim, 2000), answer_fetch, node, (uint64_t)rank, token);
        return;
    }
    struct fetch *fetch = sim_alloc(world->sim, sizeof *fetch);
    *fetch = (struct fetch){world->fetches, node, rank, wanted, token};
    world->fetches = fetch;
}

static void tick(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct node *node = context;
    (void)a, (void)b;
    node->tick_at = NOT_YET;
    if (!node->crashed) demand(node, kvx_tick(node->kvx, sim_now(sim)));
}

/* What is about a fence may come twice, at once or later: it says which fence it is about. */
static void transmit(struct node *node, struct sim_channel *channel, const void *message, size_t bytes)
{
    struct sim *sim = node->world->sim;
    const unsigned char *type = (const unsigned char *)message + 2;
    sim_channel_send(channel, message, bytes);
    if (*type > 2 || node->world->duplicates >= MAX_DUPLICATES || sim_chance(sim, 3, 4)) return;
    node->world->duplicates++;
    if (sim_chance(sim, 1, 4)) sim_channel_send(channel, message, bytes);
    struct stale *stale = node->stale;
    if (stale && sim_chance(sim, 1, 2)) sim_channel_send(stale->channel, stale->data, stale->bytes);
    node->stale = stale = sim_alloc(sim, sizeof *stale + bytes);
    stale->channel = channel;
    stale->bytes = bytes;
    memcpy(stale->data, message, bytes);
}

static void pump(struct node *node)
{
    struct sim *sim = node->world->sim;
    struct kvx_action action;
    while (!node->crashed && kvx_next(node->kvx, &action)) {
        if (action.kind == KVX_SEND)
            transmit(node, action.link == KVX_PARENT ? node->up : node->down[action.link], action.message,
                     action.bytes);
        else if (action.kind == KVX_FETCH)
            start_fetch(node, action.rank, action.key, action.token);
        else if (action.kind == KVX_COMPLETE)
            end_operation(node, &action);
        base_free(AREA_BOOTSTRAP, action.data);
    }
    if (node->crashed || kvx_deadline(node->kvx) >= node->tick_at) return;
    node->tick_at = kvx_deadline(node->kvx);
    sim_after(sim, node->tick_at - sim_now(sim), tick, node, 0, 0);
}

static void deliver(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct link *link = context;
    if (link->node->crashed) return;
    demand(link->node, kvx_receive(link->node->kvx, link->index, data, bytes, sim_now(sim)));
}

static struct sim_channel *connect_to(struct world *world, int daemon, int index)
{
    struct link *link = sim_alloc(world->sim, sizeof *link);
    *link = (struct link){&world->nodes[daemon], index};
    return sim_channel_create(world->sim, 50, 50 + sim_random(world->sim, 4000), deliver, link);
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

static struct operation *new_operation(struct world *world, enum kind kind, int daemon)
{
    struct operation *operation = sim_alloc(world->sim, sizeof *operation);
    operation->kind = kind;
    operation->daemon = daemon;
    operation->deadline = NOT_YET;
    operation->next = world->operations;
    world->operations = operation;
    return operation;
}

static bool can_call(const struct world *world, int set, int daemon)
{
    for (int rank = 0; rank < world->ranks; rank++) {
        if (world->home[rank] != daemon || world->dead[rank]) continue;
        for (size_t i = 0; i < world->sets[set].range_count; i++)
            if (world->sets[set].ranges[i].first <= (uint32_t)rank && (uint32_t)rank <= world->sets[set].ranges[i].last)
                return true;
    }
    return false;
}

static void call_fence(struct sim *sim, void *context, uint64_t set_index, uint64_t fence)
{
    struct node *node = context;
    struct world *world = node->world;
    struct set *set = &world->sets[set_index];
    unsigned char data[4096];
    if (node->crashed || set->state[fence][node->number].called || !can_call(world, (int)set_index, node->number))
        return;
    size_t bytes = (size_t)set->bytes[fence][node->number];
    struct operation *operation = new_operation(world, FENCE, node->number);
    operation->set = (int)set_index;
    operation->fence = (int)fence;
    set->state[fence][node->number] = (struct fence_state){.called = true, .called_at = sim_now(sim)};
    set->calls[fence]++;
    fill(data, bytes, pattern_of((int)set_index, (int)fence, node->number), 0);
    if (fence + 1 < FENCES && sim_chance(sim, 1, 5)) /* does not wait for the end */
        sim_after(sim, sim_random(sim, 3000), call_fence, node, set_index, fence + 1);
    uint32_t timeout = sim_chance(sim, 1, 12) ? (uint32_t)(1 + sim_random(sim, 20)) : 0;
    uint64_t deadline = timeout ? sim_now(sim) + timeout * MILLISECOND : NOT_YET,
             token = (uint64_t)(uintptr_t)operation;
    if (deadline < set->deadline[fence]) set->deadline[fence] = deadline;
    struct kvx_fence order = {set->kind, set->ranges, set->range_count, data, bytes, timeout, token};
    demand(node, kvx_begin_fence(node->kvx, &order, sim_now(sim)));
}

static void call_get(struct sim *sim, void *context, uint64_t rank, uint64_t limited)
{
    struct node *node = context;
    if (node->crashed) return;
    bool fresh = sim_chance(sim, 1, 2);
    struct operation *operation = new_operation(node->world, GET, node->number);
    uint32_t timeout = limited ? (uint32_t)(1 + sim_random(sim, 4)) : 0;
    operation->rank = (int)rank;
    operation->version = fresh ? node->world->version[rank] : 0;
    if (timeout) operation->deadline = sim_now(sim) + timeout * MILLISECOND;
    if (!fresh && sim_chance(sim, 1, 2)) {
        char key[KEY_BYTES];
        int version = 1 + (int)sim_random(sim, VERSIONS); /* which may never come */
        snprintf(key, sizeof key, "key-%d", version);
        operation->version = version;
        if (!timeout) timeout = 5;
        operation->deadline = sim_now(sim) + timeout * MILLISECOND;
        demand(node, kvx_get_with(node->kvx, (int)rank, key, false, timeout, sim_now(sim), (uint64_t)(uintptr_t)operation));
        return;
    }
    demand(node, kvx_get(node->kvx, (int)rank, fresh, timeout, sim_now(sim), (uint64_t)(uintptr_t)operation));
}

static void commit(struct sim *sim, void *context, uint64_t rank, uint64_t b)
{
    struct world *world = context;
    (void)b;
    struct node *node = &world->nodes[world->home[rank]];
    if (world->dead[rank] || node->crashed) return;
    world->version[rank]++;
    for (struct fetch **place = &world->fetches; *place;) {
        struct fetch *fetch = *place;
        if (fetch->rank != (int)rank || fetch->version > world->version[rank]) {
            place = &fetch->next;
            continue;
        }
        *place = fetch->next;
        sim_after(sim, 1 + sim_random(sim, 500), answer_fetch, node, rank, fetch->token);
    }
}

static void call_publish(struct sim *sim, void *context, uint64_t name_index, uint64_t rank)
{
    struct node *node = context;
    unsigned char value[512];
    char name[32];
    (void)sim;
    if (node->crashed) return;
    struct operation *operation = new_operation(node->world, PUBLISH, node->number);
    size_t bytes = pattern_bytes((int)rank, (int)name_index);
    operation->name = (int)name_index;
    operation->settled = node->world->published[name_index];
    snprintf(name, sizeof name, "name-%d", (int)name_index);
    fill(value, bytes, (unsigned)rank, (unsigned)name_index);
    demand(node, kvx_publish(node->kvx, (int)rank, name, value, bytes, (uint64_t)(uintptr_t)operation));
}

static void call_lookup(struct sim *sim, void *context, uint64_t name_index, uint64_t wait)
{
    struct node *node = context;
    char name[32];
    if (node->crashed) return;
    struct operation *operation = new_operation(node->world, LOOKUP, node->number);
    uint32_t timeout = wait == 2 ? (uint32_t)(1 + sim_random(sim, 4)) : 0;
    operation->name = (int)name_index;
    operation->wait = wait != 0;
    operation->settled = node->world->published[name_index] && !timeout;
    if (timeout) operation->deadline = sim_now(sim) + timeout * MILLISECOND;
    snprintf(name, sizeof name, "name-%d", (int)name_index);
    demand(node, kvx_lookup(node->kvx, name, wait != 0, timeout, sim_now(sim), (uint64_t)(uintptr_t)operation));
}

static void call_series(struct sim *sim, void *context, uint64_t rank, uint64_t b)
{
    struct node *node = context;
    (void)sim, (void)b;
    if (node->crashed) return;
    struct operation *operation = new_operation(node->world, SERIES, node->number);
    operation->rank = (int)rank;
    next_of_series(node, operation);
}

static void kill_rank(struct sim *sim, void *context, uint64_t rank, uint64_t b)
{
    struct world *world = context;
    struct node *node = &world->nodes[world->home[rank]];
    (void)sim, (void)b;
    if (world->dead[rank] || node->crashed) return;
    world->dead[rank] = true;
    demand(node, kvx_rank_died(node->kvx, (int)rank));
}

static void lose_link(struct sim *sim, void *context, uint64_t index, uint64_t b)
{
    struct node *node = context;
    (void)sim, (void)b;
    if (!node->crashed) demand(node, kvx_link_lost(node->kvx, (int)index - 1));
}

static void crash(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct node *node = context;
    struct world *world = node->world;
    (void)a, (void)b;
    int parent = kvx_parent(world->map, node->number);
    if (node->crashed) return;
    world->crashed = node->crashed = true;
    kvx_destroy(node->kvx);
    node->kvx = NULL;
    for (int rank = 0; rank < world->ranks; rank++) world->dead[rank] |= world->home[rank] == node->number;
    if (parent >= 0) {
        int index = node->number - kvx_child(world->map, parent, 0);
        sim_channel_cut(world->nodes[parent].down[index]);
        if (sim_chance(sim, 1, 2)) sim_channel_cut(node->up); /* what was on its way */
        sim_after(sim, 4100 + sim_random(sim, 5000), lose_link, &world->nodes[parent], (uint64_t)index + 1, 0);
    }
    for (int i = 0; i < kvx_child_count(world->map, node->number); i++) {
        struct node *child = &world->nodes[kvx_child(world->map, node->number, i)];
        sim_channel_cut(child->up);
        if (sim_chance(sim, 1, 2)) sim_channel_cut(node->down[i]);
        sim_after(sim, 4100 + sim_random(sim, 5000), lose_link, child, 0, 0);
    }
}

/* ---- Setting the stage ------------------------------------------------------------------------------------------ */

static void choose_set(struct world *world, struct set *set, bool everybody)
{
    struct sim *sim = world->sim;
    set->kind = (unsigned)sim_random(sim, 2);
    while (!set->range_count) {
        for (int rank = 0; rank < world->ranks; rank++) {
            if (!everybody && sim_chance(sim, 1, 2)) continue;
            set->ranges[set->range_count++] = (struct kvx_range){(uint32_t)rank, (uint32_t)rank};
            set->members += !set->member[world->home[rank]];
            set->member[world->home[rank]] = true;
        }
    }
    for (int fence = 0; fence < FENCES; fence++) {
        bool collecting = sim_chance(sim, 1, 2);
        set->deadline[fence] = NOT_YET;
        for (int d = 0; d < world->daemons && collecting; d++)
            set->bytes[fence][d] = (int)sim_random(sim, sim_chance(sim, 1, 8) ? 2000 : 80);
    }
}

/* Two of ours that are the same would be one of theirs. */
static bool is_new(const struct world *world, int index)
{
    const struct set *set = &world->sets[index];
    for (int s = 0; s < index; s++)
        if (set->kind == world->sets[s].kind && set->range_count == world->sets[s].range_count &&
            !memcmp(set->ranges, world->sets[s].ranges, set->range_count * sizeof set->ranges[0]))
            return false;
    return true;
}

static void schedule_fences(struct world *world)
{
    struct sim *sim = world->sim;
    int sets = 1 + (int)sim_random(sim, SETS);
    for (int s = 0; s < sets; s++) {
        choose_set(world, &world->sets[s], s == 0 || sim_chance(sim, 1, 4));
        for (int d = 0; d < world->daemons && is_new(world, s); d++)
            if (world->sets[s].member[d])
                sim_after(sim, sim_random(sim, sim_chance(sim, 1, 40) ? 30 * MILLISECOND : 20000), call_fence,
                          &world->nodes[d], (uint64_t)s, 0);
    }
}

static void schedule_values(struct world *world)
{
    struct sim *sim = world->sim;
    bool *comes = sim_alloc(sim, MAX_RANKS * sizeof *comes);
    for (int rank = 0; rank < world->ranks; rank++) {
        comes[rank] = sim_chance(sim, 7, 8);
        for (int i = 0; comes[rank] && i < VERSIONS; i++)
            sim_after(sim, sim_random(sim, 40000), commit, world, (uint64_t)rank, 0);
    }
    uint64_t some = sim_random(sim, 30);
    uint64_t popular = sim_random(sim, (uint64_t)world->ranks);
    for (uint64_t i = 0; i < some; i++) {
        struct node *node = &world->nodes[sim_random(sim, (uint64_t)world->daemons)];
        uint64_t rank = sim_chance(sim, 1, 2) ? popular : sim_random(sim, (uint64_t)world->ranks);
        sim_after(sim, sim_random(sim, sim_chance(sim, 1, 2) ? 60000 : 5 * MILLISECOND), call_get, node, rank,
                  !comes[rank] || sim_chance(sim, 1, 3));
    }
}

static void schedule_names(struct world *world)
{
    struct sim *sim = world->sim;
    for (uint64_t name = 0; name < NAMES; name++) {
        for (uint64_t i = 1 + sim_random(sim, 2); i; i--) {
            uint64_t rank = sim_random(sim, (uint64_t)world->ranks);
            sim_after(sim, sim_random(sim, 50000), call_publish, &world->nodes[world->home[rank]], name, rank);
        }
        for (uint64_t i = sim_random(sim, 6); i; i--)
            sim_after(sim, sim_random(sim, 80000), call_lookup,
                      &world->nodes[sim_random(sim, (uint64_t)world->daemons)], name, sim_random(sim, 3));
    }
    uint64_t rank = sim_random(sim, (uint64_t)world->ranks);
    sim_after(sim, sim_random(sim, 50000), call_series, &world->nodes[world->home[rank]], rank, 0);
}

static void schedule_deaths(struct world *world)
{
    struct sim *sim = world->sim;
    if (sim_chance(sim, 1, 2)) return;
    for (uint64_t i = 1 + sim_random(sim, 2); i; i--)
        sim_after(sim, sim_random(sim, 60000), kill_rank, world, sim_random(sim, (uint64_t)world->ranks), 0);
    if (sim_chance(sim, 1, 2)) return;
    for (uint64_t i = 1 + sim_random(sim, 2); i; i--)
        sim_after(sim, sim_random(sim, 60000), crash, &world->nodes[sim_random(sim, (uint64_t)world->daemons)], 0, 0);
}

static void build(struct world *world)
{
    struct sim *sim = world->sim;
    world->daemons = 1 + (int)sim_random(sim, sim_chance(sim, 1, 10) ? MAX_DAEMONS : 12);
    world->ranks = world->daemons + (int)sim_random(sim, (uint64_t)world->daemons + 1);
    int radix = 1 + (int)sim_random(sim, sim_chance(sim, 1, 4) ? 32 : 4);
    bool cyclic = sim_chance(sim, 1, 2); /* or anywhere, so that some daemons host none */
    for (int rank = 0; rank < world->ranks; rank++)
        world->home[rank] = cyclic ? rank % world->daemons : (int)sim_random(sim, (uint64_t)world->daemons);
    if (kvx_map_create(world->home, world->ranks, world->daemons, radix, &world->map))
        sim_fail(sim, "%s", base_error_detail());
    bool limited = sim_chance(sim, 1, 8);
    world->fence_bytes = limited ? 100 + sim_random(sim, 2000) : 1 << 20;
    world->duplicates = limited ? MAX_DUPLICATES : 0; /* what comes twice counts twice */
    const struct kvx_limits limits = {.frame_bytes = KVX_LEAST_FRAME + sim_random(sim, 2000),
                                      .fence_bytes = world->fence_bytes,
                                      .cache_bytes = sim_random(sim, 2000),
                                      .published_bytes = 1 << 20};
    for (int d = 0; d < world->daemons; d++) {
        struct node *node = &world->nodes[d];
        *node = (struct node){.world = world, .number = d, .tick_at = NOT_YET};
        if (kvx_create(world->map, d, &limits, &node->kvx)) sim_fail(sim, "%s", base_error_detail());
        int parent = kvx_parent(world->map, d);
        if (parent < 0) continue;
        int index = d - kvx_child(world->map, parent, 0);
        node->up = connect_to(world, parent, index);
        world->nodes[parent].down[index] = connect_to(world, d, KVX_PARENT);
    }
}

static void tear_down(struct world *world)
{
    for (int d = 0; d < world->daemons; d++) kvx_destroy(world->nodes[d].kvx);
    kvx_map_free(world->map);
    last_world = NULL;
    free(world);
}

static void start(struct sim *sim)
{
    if (last_world) tear_down(last_world);
    struct world *world = calloc(1, sizeof *world);
    if (!world) exit(99);
    last_world = world;
    world->sim = sim;
    world->held_before = held();
    sim_set_user(sim, world);
    build(world);
    schedule_fences(world);
    schedule_values(world);
    schedule_names(world);
    schedule_deaths(world);
}

/* ---- At the end ------------------------------------------------------------------------------------------------- */

static bool may_wait(const struct world *world, const struct operation *operation)
{
    if (world->nodes[operation->daemon].crashed) return true;
    if (operation->kind == LOOKUP) return !world->published[operation->name]; /* who would have published has died */
    return false;
}

static void finish(struct sim *sim)
{
    struct world *world = sim_user(sim);
    bool all_ended = true;
    for (const struct operation *operation = world->operations; operation; operation = operation->next) {
        if (operation->done) continue;
        all_ended = false;
        if (!may_wait(world, operation))
            sim_fail(sim, "operation %d (set %d, fence %d; rank %d; name %d) on daemon %d of %d never ended",
                     operation->kind, operation->set, operation->fence, operation->rank, operation->name,
                     operation->daemon, world->daemons);
    }
    for (int d = 0; d < world->daemons && all_ended && !world->crashed; d++)
        if (kvx_pending(world->nodes[d].kvx))
            sim_fail(sim, "daemon %d keeps %zu operations", d, kvx_pending(world->nodes[d].kvx));
    int64_t before = world->held_before;
    tear_down(world);
    if (held() != before) sim_fail(sim, "%" PRId64 " bytes are not given back", held() - before);
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {BUG_KVX_CHILD_NOT_AWAITED,
                                            BUG_KVX_GENERATION_IGNORED,
                                            BUG_KVX_DEATH_FORGOTTEN,
                                            BUG_KVX_LOSS_NOT_TOLD,
                                            BUG_KVX_REST_DROPPED,
                                            BUG_KVX_FRESH_FROM_CACHE,
                                            BUG_KVX_TIMEOUT_SHARED,
                                            BUG_KVX_LOOKUP_NOT_WOKEN,
                                            BUG_KVX_REQUEST_KEPT,
                                            BUG_KVX_NOT_ANNOUNCED,
                                            BUG_KVX_KIND_IGNORED,
                                            BUG_KVX_EXPIRED_ALONE,
                                            BUG_NONE};
    static const struct sim_scenario scenario = {
        .name = "key-value exchange", .start = start, .finish = finish, .seeds = 10000, .bugs = bugs};
    int result = sim_main(argc, argv, &scenario, 1);
    if (last_world) tear_down(last_world);
    return result;
}
