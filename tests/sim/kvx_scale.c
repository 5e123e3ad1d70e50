/* kvx_scale.c - what the fence of a start costs as a job grows: steps, messages, bytes at the busiest daemon,
 * connections, memory. 8 ranks a daemon, radix 32, every message one microsecond, up to 98,304 ranks. The figures are
 * asserted to be what a tree gives, and printed. One fence, with or without data; or one value that all ask for at
 * once.
 */
#include "bootstrap/kvx/kvx.h"

#include "runtime/base/base.h"
#include "tests/sim/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS_A_DAEMON 8
#define RADIX 32
#define STEP 1000        /* nanoseconds */
#define EMPTY_MESSAGE 40 /* of a fence of one range: header 16, fixed 16, range 8 */

struct node {
    struct world *world;
    int number;
    struct kvx *kvx;
    struct sim_channel *up, **down;
    uint64_t bytes, messages; /* sent and received */
};

struct link {
    struct node *node;
    int index;
};

struct world {
    struct sim *sim;
    struct kvx_map *map;
    struct node *nodes;
    int daemons, ended;
    size_t data; /* of a daemon */
    bool value;  /* not a fence: all ask for the value of rank 0 */
    uint64_t messages;
};

static struct world world;

static const unsigned char data_of_all[4096];

static void answer(struct sim *sim, void *context, uint64_t rank, uint64_t token);

static void pump(struct node *node)
{
    struct kvx_action action;
    while (kvx_next(node->kvx, &action)) {
        if (action.kind == KVX_SEND) {
            sim_channel_send(action.link == KVX_PARENT ? node->up : node->down[action.link], action.message,
                             action.bytes);
            world.messages++;
            node->messages++;
            node->bytes += action.bytes;
        } else if (action.kind == KVX_FETCH) {
            sim_after(world.sim, 0, answer, node, (uint64_t)action.rank, action.token);
        } else if (action.kind == KVX_COMPLETE) {
            size_t expected = world.value ? world.data : world.data * (size_t)world.daemons;
            world.ended++;
            if (action.status != KVX_OK || action.bytes != expected)
                sim_fail(world.sim, "it ends with status %d and %zu bytes on daemon %d", action.status, action.bytes,
                         node->number);
        }
        base_free(AREA_BOOTSTRAP, action.data);
    }
}

static void answer(struct sim *sim, void *context, uint64_t rank, uint64_t token)
{
    struct node *node = context;
    if (kvx_fetched(node->kvx, (int)rank, token, KVX_OK, data_of_all, world.data, sim_now(sim)))
        sim_fail(sim, "%s", base_error_detail());
    pump(node);
}

static void deliver(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct link *link = context;
    link->node->bytes += bytes;
    link->node->messages++;
    if (kvx_receive(link->node->kvx, link->index, data, bytes, sim_now(sim))) sim_fail(sim, "%s", base_error_detail());
    pump(link->node);
}

static struct sim_channel *connect_to(int daemon, int index)
{
    struct link *link = sim_alloc(world.sim, sizeof *link);
    *link = (struct link){&world.nodes[daemon], index};
    return sim_channel_create(world.sim, STEP, STEP, deliver, link);
}

static void call(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct node *node = context;
    const struct kvx_range all = {0, (uint32_t)(world.daemons * RANKS_A_DAEMON - 1)};
    (void)a, (void)b;
    int code = world.value ? kvx_get(node->kvx, 0, false, 0, sim_now(sim), 0)
                           : kvx_fence(node->kvx, &all, 1, data_of_all, world.data, 0);
    if (code) sim_fail(sim, "%s", base_error_detail());
    pump(node);
}

static void build_node(struct sim *sim, int number)
{
    const struct kvx_limits limits = {.frame_bytes = KVX_FRAME_BYTES,
                                      .fence_bytes = (size_t)1 << 30,
                                      .cache_bytes = 1 << 20,
                                      .published_bytes = 1 << 20};
    struct node *node = &world.nodes[number];
    int parent = kvx_parent(world.map, number);
    *node = (struct node){.world = &world, .number = number};
    if (kvx_create(world.map, number, &limits, &node->kvx)) sim_fail(sim, "%s", base_error_detail());
    node->down = sim_alloc(sim, RADIX * sizeof *node->down);
    if (parent >= 0) {
        int index = number - kvx_child(world.map, parent, 0);
        node->up = connect_to(parent, index);
        world.nodes[parent].down[index] = connect_to(number, KVX_PARENT);
    }
    sim_after(sim, 0, call, node, 0, 0);
}

static void start(struct sim *sim, int daemons, size_t data, bool value)
{
    int ranks = daemons * RANKS_A_DAEMON, *home = sim_alloc(sim, (size_t)ranks * sizeof *home);
    world = (struct world){.sim = sim, .daemons = daemons, .data = data, .value = value};
    world.nodes = sim_alloc(sim, (size_t)daemons * sizeof *world.nodes);
    for (int rank = 0; rank < ranks; rank++) home[rank] = rank / RANKS_A_DAEMON;
    if (kvx_map_create(home, ranks, daemons, RADIX, &world.map)) sim_fail(sim, "%s", base_error_detail());
    for (int d = 0; d < daemons; d++) build_node(sim, d);
}

static int depth_of(int daemons)
{
    int depth = 0;
    for (int d = daemons - 1; d > 0; d = kvx_parent(world.map, d)) depth++;
    return depth;
}

static void expect(struct sim *sim, const char *what, uint64_t seen, uint64_t most)
{
    if (seen > most) sim_fail(sim, "%d daemons: %s: %" PRIu64 ", more than %" PRIu64, world.daemons, what, seen, most);
}

/* Frames that data of `bytes` takes in records of at most one daemon's, and their weight. */
static uint64_t weight_of(uint64_t daemons) { return daemons * (world.data ? world.data + 2 * 24 : 0); }

static void finish(struct sim *sim)
{
    uint64_t daemons = (uint64_t)world.daemons, steps = sim_now(sim) / STEP, busiest_bytes = 0, busiest_messages = 0,
             connections = 0;
    uint64_t depth = (uint64_t)depth_of(world.daemons), total = weight_of(world.value ? 1 : daemons);
    uint64_t frames =
        total ? 1 + total / (KVX_FRAME_BYTES / 2) : 1; /* a frame is at least half full, but for the last */
    struct base_area_usage usage;
    base_area_usage(AREA_BOOTSTRAP, &usage);
    for (int d = 0; d < world.daemons; d++) {
        const struct node *node = &world.nodes[d];
        uint64_t links = (uint64_t)kvx_child_count(world.map, d) + (d > 0);
        if (node->bytes > busiest_bytes) busiest_bytes = node->bytes;
        if (node->messages > busiest_messages) busiest_messages = node->messages;
        if (links > connections) connections = links;
    }
    printf("# %6d ranks on %5d daemons, %4zu bytes each: %" PRIu64 " steps, %" PRIu64
           " messages; busiest daemon %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " connections; %" PRIu64
           " bytes of memory a daemon\n",
           world.daemons * RANKS_A_DAEMON, world.daemons, world.data, steps, world.messages, busiest_messages,
           busiest_bytes, connections, usage.bytes / daemons);
    if (world.ended != world.daemons) sim_fail(sim, "%d of %d daemons ended", world.ended, world.daemons);
    expect(sim, "steps", steps, 2 * depth);
    expect(sim, "messages", world.messages, (daemons - 1) * (1 + frames) + depth * frames * RADIX);
    expect(sim, "messages of the busiest daemon", busiest_messages, (RADIX + 1) * (1 + frames) + frames);
    expect(sim, "bytes of the busiest daemon", busiest_bytes,
           (RADIX + 2) * (frames + 1) * EMPTY_MESSAGE + (RADIX + 2) * total);
    expect(sim, "connections", connections, RADIX + 1);
    for (int d = 0; d < world.daemons; d++) kvx_destroy(world.nodes[d].kvx);
    kvx_map_free(world.map);
    base_area_usage(AREA_BOOTSTRAP, &usage);
    if (usage.bytes) sim_fail(sim, "%" PRIu64 " bytes are not given back", usage.bytes);
}

static void start_8(struct sim *sim) { start(sim, 8, 0, false); }
static void start_128(struct sim *sim) { start(sim, 128, 0, false); }
static void start_1536(struct sim *sim) { start(sim, 1536, 0, false); }
static void start_12288(struct sim *sim) { start(sim, 12288, 0, false); }
static void collect_8(struct sim *sim) { start(sim, 8, 1000, false); }
static void collect_64(struct sim *sim) { start(sim, 64, 1000, false); }
static void collect_512(struct sim *sim) { start(sim, 512, 1000, false); }
static void ask_128(struct sim *sim) { start(sim, 128, 1000, true); }
static void ask_12288(struct sim *sim) { start(sim, 12288, 1000, true); }

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "fence of 64 ranks", .start = start_8, .finish = finish, .seeds = 1},
        {.name = "fence of 1,024 ranks", .start = start_128, .finish = finish, .seeds = 1},
        {.name = "fence of 12,288 ranks", .start = start_1536, .finish = finish, .seeds = 1},
        {.name = "fence of 98,304 ranks", .start = start_12288, .finish = finish, .seeds = 1},
        {.name = "collecting fence of 64 ranks", .start = collect_8, .finish = finish, .seeds = 1},
        {.name = "collecting fence of 512 ranks", .start = collect_64, .finish = finish, .seeds = 1},
        {.name = "collecting fence of 4,096 ranks", .start = collect_512, .finish = finish, .seeds = 1},
        {.name = "one value for 1,024 ranks", .start = ask_128, .finish = finish, .seeds = 1},
        {.name = "one value for 98,304 ranks", .start = ask_12288, .finish = finish, .seeds = 1},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
