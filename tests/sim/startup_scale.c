/* startup_scale.c - what the start of a job costs as it grows, to 98,304 ranks on 12,288 nodes: the real cores
 * (startup_world.h), costs that were measured, and links of 5 to 150 microseconds by distance.
 *
 * The model. A node is a daemon that does one thing after another, and ranks that initialise side by side as far as
 * there are cores. Nodes of one rack are 5 us apart, of one zone 35, of one building 75, others 150. The phases, of
 * which each ends when the last daemon has done it:
 *
 *     up        every daemon runs and is connected: the depth of the tree x (agent, start of ncclxd, handshake)
 *     ready     the front has heard of all: descriptions, merged, one message a daemon
 *     launch    every daemon has its order, which comes down the tree: 24 bytes a rank
 *     register  libpmix has started and knows the job
 *     fork      the ranks are forked
 *     fence     they have initialised, and the fence without data is over; before the first of a node, libpmix lays out
 *               what all of them read
 *     cards     the first rank of each node has fetched the cards of log2(nodes) others (direct modex)
 *
 * Asserted: steps (the longest chain of messages until the fence is over) grow with the depth of the tree, messages and
 * bytes of the busiest place with the ranks, connections stay radix + 1. Times are printed, never asserted.
 *
 * NAME=NANOSECONDS arguments replace the costs below (see tests/perf/startup_costs); agent= is how long the agent takes
 * (ssh), which cannot be measured without other hosts, once=1 starts all by one agent (srun), cards= is how many
 * cards are fetched (log2(nodes)), radix=, nodes=, ranks= and cores= run one job of that size
 * alone.
 */
#include "tests/sim/startup_world.h"

#include "runtime/base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICROSECOND UINT64_C(1000)
#define MILLISECOND UINT64_C(1000000)
#define RANKS_A_NODE 8

/* Measured by tests/perf/startup_costs on one core of a server of 2022, Debian 12, libpmix 4.2.2; assumed: agent.
 * rank_init_more is all that a rank and its daemon compute from exec to exit: with more ranks than cores that is what
 * a start waits for. */
static struct world_costs costs = {.agent_fork = 119 * MICROSECOND,
                                   .agent = 200 * MILLISECOND,
                                   .daemon_start = 2750 * MICROSECOND,
                                   .accept = 207 * MICROSECOND,
                                   .connect = 207 * MICROSECOND,
                                   .receive = 10600,
                                   .send = 7100,
                                   .kilobyte = 1720,
                                   .order_rank = 88,
                                   .server_init = 4100 * MICROSECOND,
                                   .register_fixed = 177 * MICROSECOND,
                                   .register_rank = 3670,
                                   .register_node = 32400,
                                   .register_far = 8930,
                                   .register_client = 18 * MICROSECOND,
                                   .first_client_rank = 15130,
                                   .fork_rank = 190 * MICROSECOND,
                                   .rank_init = 5480 * MICROSECOND,
                                   .rank_init_node = 6620,
                                   .rank_init_far = 80,
                                   .rank_init_more = 9800 * MICROSECOND,
                                   .upcall = 30 * MICROSECOND};

static int radix = 32, cores = 8, once, only_nodes, only_ranks, cards = -1;
static struct world *world;

static uint64_t latency(const struct world *unused, int from, int to)
{
    (void)unused;
    if (from < 0) from = 0; /* ncclxrun runs beside daemon 0 */
    if (to < 0) to = 0;
    if (from / 16 == to / 16) return 5 * MICROSECOND;
    if (from / 256 == to / 256) return 35 * MICROSECOND;
    return from / 4096 == to / 4096 ? 75 * MICROSECOND : 150 * MICROSECOND;
}

static int log2_of(int count)
{
    int log = 0;
    while ((1 << log) < count) log++;
    return log;
}

static void start(struct sim *sim, int nodes, int ranks)
{
    struct world_setup setup = {.shape = {nodes, radix},
                                .start = once ? TREE_START_ONCE : TREE_START_EACH,
                                .start_ns = 300 * BASE_NS_PER_S,
                                .silence_ns = 30 * BASE_NS_PER_S,
                                .end_ns = 10 * BASE_NS_PER_S,
                                .ranks_a_node = ranks,
                                .cards = cards >= 0 ? cards : log2_of(nodes),
                                .cores = cores,
                                .card_bytes = 120,
                                .description_bytes = 3600, /* 128 hardware threads */
                                .order_bytes_rank = 24,
                                .latency = latency,
                                .costs = costs};
    world = world_create(sim, &setup);
    sim_set_user(sim, world);
    world_begin(world);
}

static double since(uint64_t *before, uint64_t time)
{
    double ms = time > *before ? (double)(time - *before) / 1e6 : 0;
    if (time > *before) *before = time;
    return ms;
}

static void print_times(void)
{
    static const char *const names[] = {"up", "ready", "launch", "register", "fork", "fence", "cards"};
    const struct world_times *times = &world->times;
    const uint64_t ends[] = {times->daemons_up, times->ready,  times->launched, times->registered,
                             times->forked,     times->fenced, times->fetched};
    uint64_t before = 0;
    printf("#   ms:");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) printf(" %s %.1f", names[i], since(&before, ends[i]));
    printf("; in all %.1f, and %.1f to the end\n", (double)before / 1e6, (double)(times->finished - before) / 1e6);
}

struct busiest {
    uint64_t messages, bytes;
    int links;
};

static void look_at(struct busiest *busiest, const struct proc *proc)
{
    int links = proc->child_count + (proc->position != TREE_FRONT);
    if (proc->messages > busiest->messages) busiest->messages = proc->messages;
    if (proc->bytes > busiest->bytes) busiest->bytes = proc->bytes;
    if (links > busiest->links) busiest->links = links;
}

static void expect(struct sim *sim, const char *what, uint64_t seen, uint64_t most)
{
    if (seen > most) sim_fail(sim, "%s: %" PRIu64 ", more than %" PRIu64, what, seen, most);
}

/* Greeting and description go up, the order down, the fence up and down: four times the depth, and a few. */
static void check(struct sim *sim, const struct busiest *busiest)
{
    uint64_t nodes = (uint64_t)world->setup.shape.count, ranks = (uint64_t)world->ranks;
    uint64_t depth = (uint64_t)world->height + 1, fetched = nodes * (uint64_t)world->setup.cards;
    expect(sim, "steps", world->steps, 6 * depth + 2);
    expect(sim, "connections", (uint64_t)busiest->links, (uint64_t)radix + 1);
    expect(sim, "messages of the busiest place", busiest->messages, (uint64_t)(radix + 1) * 20 + 5 * fetched);
    expect(sim, "bytes of the busiest place", busiest->bytes,
           (uint64_t)(radix + 2) * (4200 + 24 * ranks + 6000) + 60 * nodes + fetched * 500);
    expect(sim, "messages", world->messages, nodes * 16 + 4 * fetched * (depth + 1));
}

static void finish(struct sim *sim)
{
    struct busiest busiest = {0, 0, 0};
    uint64_t daemons = (uint64_t)world->setup.shape.count;
    look_at(&busiest, world->front);
    for (int i = 0; i < world->setup.shape.count; i++) look_at(&busiest, world->hosts[i].daemon);
    world->height = tree_height(&world->setup.shape, TREE_FRONT);
    printf("# %d ranks on %d nodes, radix %d: %" PRIu64 " steps, %" PRIu64 " messages, %" PRIu64
           " KiB; busiest place: %" PRIu64 " messages, %" PRIu64 " KiB, %d connections; %" PRId64
           " KiB of memory a daemon\n",
           world->ranks, world->setup.shape.count, radix, world->steps, world->messages, world->bytes >> 10,
           busiest.messages, busiest.bytes >> 10, busiest.links, (world->held_most / (int64_t)daemons) >> 10);
    print_times();
    if (world->ready != 1 || world->all_ended != 1 || world->reports || world->unended != TREE_EVERYBODY)
        sim_fail(sim, "the job did not start and end well");
    check(sim, &busiest);
    int64_t before = world->held_before;
    world_destroy(world);
    world = NULL;
    if (world_held() != before) sim_fail(sim, "%" PRId64 " bytes are not given back", world_held() - before);
}

static void start_8(struct sim *sim)
{
    start(sim, 8, RANKS_A_NODE);
}

static void start_128(struct sim *sim)
{
    start(sim, 128, RANKS_A_NODE);
}

static void start_1024(struct sim *sim)
{
    start(sim, 1024, RANKS_A_NODE);
}

static void start_12288(struct sim *sim)
{
    start(sim, 12288, RANKS_A_NODE);
}

static void start_only(struct sim *sim)
{
    start(sim, only_nodes, only_ranks ? only_ranks : RANKS_A_NODE);
}

struct setting {
    const char *name;
    uint64_t *cost;
    int *number;
};

static bool set(const char *argument)
{
    const struct setting settings[] = {{"agent_fork", &costs.agent_fork, NULL},
                                       {"agent", &costs.agent, NULL},
                                       {"daemon_start", &costs.daemon_start, NULL},
                                       {"accept", &costs.accept, NULL},
                                       {"connect", &costs.connect, NULL},
                                       {"receive", &costs.receive, NULL},
                                       {"send", &costs.send, NULL},
                                       {"kilobyte", &costs.kilobyte, NULL},
                                       {"order_rank", &costs.order_rank, NULL},
                                       {"server_init", &costs.server_init, NULL},
                                       {"register_fixed", &costs.register_fixed, NULL},
                                       {"register_rank", &costs.register_rank, NULL},
                                       {"register_node", &costs.register_node, NULL},
                                       {"register_far", &costs.register_far, NULL},
                                       {"first_client_rank", &costs.first_client_rank, NULL},
                                       {"rank_init_node", &costs.rank_init_node, NULL},
                                       {"rank_init_far", &costs.rank_init_far, NULL},
                                       {"register_client", &costs.register_client, NULL},
                                       {"fork_rank", &costs.fork_rank, NULL},
                                       {"rank_init", &costs.rank_init, NULL},
                                       {"rank_init_more", &costs.rank_init_more, NULL},
                                       {"upcall", &costs.upcall, NULL},
                                       {"radix", NULL, &radix},
                                       {"cores", NULL, &cores},
                                       {"cards", NULL, &cards},
                                       {"once", NULL, &once},
                                       {"nodes", NULL, &only_nodes},
                                       {"ranks", NULL, &only_ranks}};
    const char *sign = strchr(argument, '=');
    for (size_t i = 0; sign && i < sizeof settings / sizeof settings[0]; i++) {
        if (strlen(settings[i].name) != (size_t)(sign - argument) ||
            strncmp(settings[i].name, argument, (size_t)(sign - argument)))
            continue;
        if (settings[i].cost)
            *settings[i].cost = strtoull(sign + 1, NULL, 10);
        else
            *settings[i].number = atoi(sign + 1);
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct sim_scenario all[] = {
        {.name = "start of 64 ranks", .start = start_8, .finish = finish, .seeds = 1},
        {.name = "start of 1,024 ranks", .start = start_128, .finish = finish, .seeds = 1},
        {.name = "start of 8,192 ranks", .start = start_1024, .finish = finish, .seeds = 1},
        {.name = "start of 98,304 ranks", .start = start_12288, .finish = finish, .seeds = 1, .event_limit = 50000000}};
    static const struct sim_scenario one = {
        .name = "start", .start = start_only, .finish = finish, .seeds = 1, .event_limit = 200000000};
    for (int i = 1; i < argc; i++) {
        if (set(argv[i])) continue;
        fprintf(stderr,
                "usage: %s [COST=NANOSECONDS...] [radix=R] [cores=C] [cards=C] [once=1] [nodes=N [ranks=A-NODE]]\n",
                argv[0]);
        return 2;
    }
    return only_nodes ? sim_main(1, argv, &one, 1) : sim_main(1, argv, all, sizeof all / sizeof all[0]);
}
