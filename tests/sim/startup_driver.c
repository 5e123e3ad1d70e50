/* startup_driver.c - what ncclxd and ncclxrun do around their cores, as the real ones do it: frames to and fro, the
 * order to launch, ranks, and the end. */
#include "tests/sim/startup_private.h"

#include "launcher/server.h"
#include "launcher/tree_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICROSECOND UINT64_C(1000)
#define MILLISECOND UINT64_C(1000000)

/* Frames of the driver. */
enum { LAUNCH = 1, OUTPUT, KEYS, RANK_FAILED };

#define FENCE_TOKEN UINT64_MAX /* others are local ranks */
#define ORDER_BYTES 4096       /* environment, programs */

static struct sim *sim_of(const struct proc *proc)
{
    return proc->world->sim;
}

static uint64_t now_of(const struct proc *proc)
{
    return sim_now(proc->world->sim);
}

static void demand(const struct proc *proc, int code)
{
    if (code) sim_fail(sim_of(proc), "place %d: %s", proc->position, base_error_detail());
}

size_t driver_weight(const struct world *world, const unsigned char *data, size_t bytes)
{
    if (data[3] != LAUNCH) return bytes;
    return ORDER_BYTES + world->setup.order_bytes_rank * (size_t)world->ranks;
}

static struct conn *conn_of(const struct proc *proc, int link)
{
    return link == TREE_PARENT ? proc->up : proc->down[link];
}

static int local_ranks(const struct proc *proc)
{
    const int *first = proc->world->first_rank;
    return proc->position < 0 ? 0 : first[proc->position + 1] - first[proc->position];
}

static void latest(uint64_t *time, const struct proc *proc)
{
    uint64_t now = proc->busy_until > now_of(proc) ? proc->busy_until : now_of(proc);
    if (now > *time) *time = now;
}

/* ---- Sending ---- */

static void send_raw(struct proc *proc, int link, const void *data, size_t bytes)
{
    struct conn *conn = conn_of(proc, link);
    if (conn) conn_send(conn, link == TREE_PARENT, data, bytes);
}

/* A frame of the driver's own: to everybody, or to the front. */
static void pass(struct proc *proc, int to, const void *data, size_t bytes)
{
    struct tree_way way = tree_way(&proc->world->setup.shape, proc->position, to);
    if (way.up && tree_is_open(proc->tree, TREE_PARENT)) {
        send_raw(proc, TREE_PARENT, data, bytes);
        tree_sent(proc->tree, TREE_PARENT, now_of(proc));
    }
    for (int link = way.first; link < way.first + way.link_count; link++) {
        if (!tree_is_open(proc->tree, link)) continue;
        send_raw(proc, link, data, bytes);
        tree_sent(proc->tree, link, now_of(proc));
    }
}

static void send_text(struct proc *proc, int to, uint8_t type, size_t bytes)
{
    struct frame_writer writer;
    unsigned char filler[1024] = {0};
    frame_begin(&writer, type);
    for (; bytes > sizeof filler; bytes -= sizeof filler) frame_put_raw(&writer, filler, sizeof filler);
    frame_put_raw(&writer, filler, bytes);
    demand(proc, frame_finish(&writer));
    pass(proc, to, writer.data, writer.used);
    frame_release(&writer);
}

static void send_keys(struct proc *proc, const struct kvx_action *action)
{
    struct frame_writer writer;
    if (!tree_is_open(proc->tree, action->link)) return;
    frame_begin(&writer, KEYS);
    frame_put_raw(&writer, action->message, action->bytes);
    demand(proc, frame_finish(&writer));
    send_raw(proc, action->link, writer.data, writer.used);
    tree_sent(proc->tree, action->link, now_of(proc));
    frame_release(&writer);
}

/* ---- Ranks ---- */

static void end_local(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    if (proc->local_ended) return;
    proc->local_ended = true;
    latest(&proc->world->times.ended, proc);
    demand(proc, tree_local_ended(proc->tree, now_of(proc)));
}

static void end_soon(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    proc_post(context, end_local, NULL, 0);
}

static void all_done(struct proc *proc)
{
    struct world *world = proc->world;
    bool long_run = world->setup.chance && sim_chance(sim_of(proc), 1, 4);
    uint64_t most = long_run ? 3 * BASE_NS_PER_S : 200 * MILLISECOND;
    latest(&world->times.fetched, proc);
    sim_after(sim_of(proc), world_chance(world, 0, most), end_soon, proc, 0, 0);
}

static void rank_failed(struct proc *proc)
{
    if (!proc->ending) send_text(proc, TREE_FRONT, RANK_FAILED, 4);
}

/* As in rounds of a dissemination: those a power of two away; where nothing is left to chance, between the first ranks
 * of nodes. */
static int peer_of(const struct world *world, int rank, int card)
{
    int64_t unit = world->setup.chance ? 1 : world->setup.ranks_a_node;
    return (int)(((int64_t)rank + (unit << card % 20)) % world->ranks);
}

static void fetch_cards(struct proc *proc)
{
    struct world *world = proc->world;
    int cards = world->setup.cards, ranks = local_ranks(proc);
    if (!world->setup.chance && ranks) ranks = 1;
    proc->busy = ranks * cards;
    if (!proc->busy) all_done(proc);
    for (int i = 0; i < ranks; i++) {
        for (int card = 0; card < cards; card++) {
            int peer = peer_of(world, world->first_rank[proc->position] + i, card);
            proc_spend(proc, world->setup.costs.upcall);
            demand(proc, kvx_get(proc->kvx, peer, false, 0, now_of(proc), (uint64_t)i));
        }
    }
}

static void after_fence(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    proc_spend(proc, proc->world->setup.costs.upcall * (uint64_t)local_ranks(proc));
    latest(&proc->world->times.fenced, proc);
    if (proc->steps > proc->world->steps) proc->world->steps = proc->steps;
    fetch_cards(proc);
}

static void take_complete(struct proc *proc, const struct kvx_action *action)
{
    if (action->status != KVX_OK) {
        rank_failed(proc);
    } else if (action->token == FENCE_TOKEN) {
        proc_post(proc, after_fence, NULL, 0);
    } else {
        proc_spend(proc, proc->world->setup.costs.upcall);
        if (action->bytes != proc->world->setup.card_bytes)
            sim_fail(sim_of(proc), "a card of %zu bytes", action->bytes);
        if (--proc->busy == 0) all_done(proc);
    }
}

static void answer(struct proc *proc, void *argument, uint64_t token)
{
    static const unsigned char card[4096];
    const int *rank = argument;
    demand(proc, kvx_fetched(proc->kvx, *rank, token, KVX_OK, card, proc->world->setup.card_bytes, now_of(proc)));
}

static void rank_calls_fence(struct proc *proc, void *argument, uint64_t number)
{
    const struct kvx_range all = {0, (uint32_t)proc->world->ranks - 1};
    (void)argument, (void)number;
    proc_spend(proc, proc->world->setup.costs.upcall);
    if (--proc->waiting == 0) demand(proc, kvx_fence(proc->kvx, &all, 1, NULL, 0, FENCE_TOKEN));
}

static void rank_arrives(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    proc_post(context, rank_calls_fence, NULL, 0);
}

/* From a rank's exec until it calls the fence, with a core for each; none goes on before the server has laid out what
 * all read. */
static uint64_t init_time(const struct world *world)
{
    const struct world_costs *costs = &world->setup.costs;
    uint64_t ranks = (uint64_t)world->ranks, nodes = (uint64_t)world->setup.shape.count;
    uint64_t read = nodes > SERVER_MAP_NODES ? costs->rank_init_far * ranks : costs->rank_init_node * nodes;
    return costs->rank_init + costs->first_client_rank * ranks + read;
}

static void start_ranks(struct proc *proc)
{
    struct world *world = proc->world;
    const struct world_costs *costs = &world->setup.costs;
    uint64_t init = init_time(world);
    int ranks = local_ranks(proc), cores = world->setup.cores ? world->setup.cores : 1;
    uint64_t share = costs->rank_init_more * (uint64_t)(ranks > cores ? (ranks - 1) / cores : 0);
    proc->waiting = ranks;
    if (!ranks) all_done(proc);
    for (int i = 0; i < ranks; i++) {
        proc_spend(proc, costs->fork_rank);
        uint64_t forked = proc->busy_until > now_of(proc) ? proc->busy_until - now_of(proc) : 0;
        sim_after(sim_of(proc), forked + init + share + world_chance(world, 0, 20 * MILLISECOND), rank_arrives, proc, 0,
                  0);
    }
    latest(&world->times.forked, proc);
}

static void output_again(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void write_output(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    if (proc->local_ended) return;
    send_text(proc, TREE_FRONT, OUTPUT, 100);
    sim_after(sim_of(proc), world_chance(proc->world, 100 * MILLISECOND, 300 * MILLISECOND), output_again, proc, 0, 0);
}

static void output_again(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    proc_post(context, write_output, NULL, 0);
}

static void launch(struct proc *proc)
{
    const struct kvx_limits limits = {
        .frame_bytes = KVX_FRAME_BYTES, .fence_bytes = 1 << 20, .cache_bytes = 1 << 20, .published_bytes = 1 << 20};
    struct world *world = proc->world;
    const struct world_costs *costs = &world->setup.costs;
    if (proc->launched) sim_fail(sim_of(proc), "daemon %d is told twice to launch", proc->position);
    proc->launched = true;
    latest(&world->times.launched, proc);
    demand(proc, kvx_create(world->map, proc->position, &limits, &proc->kvx));
    for (int link = 0; link < proc->child_count; link++)
        if (!tree_is_open(proc->tree, link)) demand(proc, kvx_link_lost(proc->kvx, link));
    if (proc->ending) return;
    uint64_t ranks = (uint64_t)world->ranks, nodes = (uint64_t)world->setup.shape.count;
    uint64_t each = nodes > SERVER_MAP_NODES ? costs->register_far * ranks
                                             : costs->register_rank * ranks + costs->register_node * nodes;
    proc_spend(proc, costs->order_rank * ranks + costs->server_init + costs->register_fixed + each +
                         costs->register_client * (uint64_t)local_ranks(proc));
    latest(&world->times.registered, proc);
    start_ranks(proc);
    if (world->setup.chance && local_ranks(proc) && sim_chance(sim_of(proc), 1, 2)) write_output(proc, NULL, 0);
}

/* ---- Actions ---- */

static uint64_t grace_of(struct proc *proc, bool at_once)
{
    return at_once ? world_chance(proc->world, 0, MILLISECOND)
                   : world_chance(proc->world, 0, proc->world->setup.end_ns);
}

static void begin_end(struct proc *proc, const struct tree_action *action)
{
    proc->ending = true;
    if (proc->position == TREE_FRONT && !proc->world->end_at) proc->world->end_at = now_of(proc);
    if (proc->position >= 0 && proc->world->hosts[proc->position].clings) return;
    uint64_t grace = proc->position == TREE_FRONT || !proc->launched ? 0 : grace_of(proc, action->at_once);
    sim_after(sim_of(proc), grace, end_soon, proc, 0, 0);
}

static void told_of_node(struct proc *proc, const struct tree_action *action)
{
    struct world *world = proc->world;
    char name[32];
    snprintf(name, sizeof name, "node-%d", action->position);
    if (world->ready || ++world->hosts[action->position].told > 1 || strcmp(name, action->node))
        sim_fail(sim_of(proc), "daemon %d is told of twice, too late or wrongly", action->position);
    const unsigned char *description = action->data;
    bool own = action->bytes >= 5000; /* unlike all others */
    for (size_t i = 0; i < action->bytes; i++)
        if (description[i] != (unsigned char)(own ? action->position + 1 : 0))
            sim_fail(sim_of(proc), "the description of daemon %d is another's", action->position);
}

static void take_report(struct proc *proc, const struct tree_action *action)
{
    struct world *world = proc->world;
    char text[3000];
    if (world->reports++) sim_fail(sim_of(proc), "a second report");
    world->reported = action->failure;
    world->reported_at = now_of(proc);
    tree_explain(proc->tree, &action->failure, "host", text, sizeof text);
    if (!text[0]) sim_fail(sim_of(proc), "a report without words");
}

/* The exchange of keys ends at daemon 0, and need not hear of those who leave during the end. */
static void lose_keys(struct proc *proc, int link)
{
    if (proc->kvx && !tree_is_ending(proc->tree) && (proc->position > 0 || link != TREE_PARENT))
        demand(proc, kvx_link_lost(proc->kvx, link));
}

static void close_link(struct proc *proc, int link)
{
    struct conn *conn = conn_of(proc, link);
    if (conn) conn_close(conn, link == TREE_PARENT);
    lose_keys(proc, link);
}

/* Who starts for others says where the place above listens. */
static void check_contact(struct proc *proc, const struct tree_action *action)
{
    char name[32];
    if (proc->world->setup.start != TREE_START_FRONT) return;
    snprintf(name, sizeof name, "node-%d", tree_above(&proc->world->setup.shape, action->position));
    if (action->bytes != strlen(name) || memcmp(action->data, name, action->bytes))
        sim_fail(sim_of(proc), "daemon %d is told to connect to the wrong place", action->position);
}

/* For a person who replays a seed. */
static void trace(const struct proc *proc, const struct tree_action *action)
{
    static const char *const kinds[] = {"start", "stop agent", "send",      "close",     "node",
                                        "ready", "report",     "end local", "all ended", "finished"};
    if (!getenv("SIM_TRACE")) return;
    fprintf(stderr, "%10.3f ms  place %d: %s, link %d, position %d", (double)now_of(proc) / 1e6, proc->position,
            kinds[action->kind], action->link, action->position);
    if (action->kind == TREE_SEND) fprintf(stderr, ", frame %d", ((const unsigned char *)action->data)[3]);
    if (action->kind == TREE_REPORT)
        fprintf(stderr, ", daemon %d, cause %d", action->failure.position, action->failure.cause);
    fprintf(stderr, "\n");
}

static void take_action(struct proc *proc, const struct tree_action *action)
{
    struct world *world = proc->world;
    trace(proc, action);
    switch (action->kind) {
    case TREE_START:
        check_contact(proc, action);
        agent_start(proc, action->position);
        break;
    case TREE_STOP_AGENT:
        agent_stop(proc, action->position);
        break;
    case TREE_SEND:
        send_raw(proc, action->link, action->data, action->bytes);
        break;
    case TREE_CLOSE:
        close_link(proc, action->link);
        break;
    case TREE_NODE:
        told_of_node(proc, action);
        break;
    case TREE_READY:
        world->ready++;
        latest(&world->times.ready, proc);
        proc_spend(proc, world->setup.costs.order_rank * (uint64_t)world->ranks); /* mapping, and writing the order */
        send_text(proc, TREE_EVERYBODY, LAUNCH, 100);
        break;
    case TREE_REPORT:
        take_report(proc, action);
        break;
    case TREE_END_LOCAL:
        begin_end(proc, action);
        break;
    case TREE_ALL_ENDED:
        world->all_ended++;
        world->held_most = world_held() - world->held_before;
        demand(proc, tree_end(proc->tree, false, now_of(proc)));
        break;
    case TREE_FINISHED:
        latest(&world->times.finished, proc);
        if (proc->position == TREE_FRONT) {
            world->unended = action->position;
            world->front_finished = now_of(proc);
        }
        proc_exit(proc);
        break;
    }
}

static void take_keys(struct proc *proc, const struct kvx_action *action)
{
    if (action->kind == KVX_SEND) {
        send_keys(proc, action);
    } else if (action->kind == KVX_COMPLETE) {
        take_complete(proc, action);
    } else if (action->kind == KVX_FETCH) {
        int *rank = world_alloc(proc->world, sizeof *rank);
        *rank = action->rank;
        proc_post(proc, answer, rank, action->token);
    }
}

static void tick_later(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void set_tick(struct proc *proc)
{
    uint64_t at = tree_deadline(proc->tree);
    if (proc->kvx && kvx_deadline(proc->kvx) < at) at = kvx_deadline(proc->kvx);
    if (at >= proc->tick_at) return;
    if (at < now_of(proc)) at = now_of(proc);
    proc->tick_at = at;
    sim_after(sim_of(proc), at - now_of(proc), tick_later, proc, at, 0);
}

void driver_pump(struct proc *proc)
{
    if (!proc->tree || proc->pumping) return;
    proc->pumping = true;
    for (bool more = true; more && proc->alive && !sim_failed(sim_of(proc));) {
        struct tree_action action;
        struct kvx_action keys;
        more = false;
        while (proc->alive && tree_next(proc->tree, &action)) {
            take_action(proc, &action);
            more = true;
        }
        while (proc->alive && proc->kvx && kvx_next(proc->kvx, &keys)) {
            take_keys(proc, &keys);
            base_free(AREA_BOOTSTRAP, keys.data);
            more = true;
        }
    }
    proc->pumping = false;
    if (proc->alive)
        set_tick(proc);
    else
        driver_release(proc);
}

/* ---- Events ---- */

static void take_tick(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    demand(proc, tree_tick(proc->tree, now_of(proc)));
    if (proc->kvx) demand(proc, kvx_tick(proc->kvx, now_of(proc)));
}

static void tick_later(struct sim *sim, void *context, uint64_t at, uint64_t b)
{
    struct proc *proc = context;
    (void)sim, (void)b;
    if (at != proc->tick_at) return;
    proc->tick_at = UINT64_MAX;
    proc_post(proc, take_tick, NULL, 0);
}

void driver_tick(struct proc *proc)
{
    take_tick(proc, NULL, 0);
    driver_pump(proc);
}

bool driver_has_greeted(const struct proc *proc, int position)
{
    int link = position - tree_child(&proc->world->setup.shape, proc->position, 0);
    return link >= 0 && link < proc->child_count && proc->down[link];
}

void driver_connected(struct proc *proc)
{
    demand(proc, tree_parent_up(proc->tree, now_of(proc)));
    latest(&proc->world->times.daemons_up, proc);
}

static void explain_close(struct proc *proc, void *unused, uint64_t name)
{
    int link = (int)(int64_t)name;
    (void)unused;
    if (!tree_is_open(proc->tree, link)) return;
    demand(proc, tree_link_closed(proc->tree, link, NULL, now_of(proc)));
    driver_pump(proc); /* the tree has the first word: a failed fence is no news after it */
    if (proc->alive) lose_keys(proc, link);
}

static void explain_close_later(struct sim *sim, void *context, uint64_t name, uint64_t b)
{
    (void)sim, (void)b;
    proc_post(context, explain_close, NULL, name);
}

/* Of a surprise it is known why when the agent of the daemon has ended, too. */
static bool await_agent(struct proc *proc, const struct conn *conn)
{
    struct world *world = proc->world;
    bool runs = world->hosts[conn->child->position].starter == proc;
    if (!runs || conn->leaves || tree_is_ending(proc->tree) || !sim_chance(sim_of(proc), 1, 2)) return false;
    world->noticed = conn->child->position;
    demand(proc, tree_link_closing(proc->tree, conn->link, now_of(proc)));
    sim_after(sim_of(proc), world_chance(world, 0, 200 * MILLISECOND), explain_close_later, proc, (uint64_t)conn->link,
              0);
    return true;
}

void driver_closed(struct proc *proc, struct conn *conn, bool upwards)
{
    int link = upwards ? conn->link : TREE_PARENT;
    if (link == NOT_GREETED || (!upwards && conn != proc->up) || !tree_is_open(proc->tree, link)) return;
    if (!upwards || !await_agent(proc, conn)) explain_close(proc, NULL, (uint64_t)(int64_t)link);
}

static void greet(struct proc *proc, struct conn *conn, const struct frame *frame)
{
    int link;
    if (tree_greet(proc->tree, frame, now_of(proc), &link)) {
        conn_close(conn, false);
        return;
    }
    if (conn->stranger) sim_fail(sim_of(proc), "a stranger is taken in");
    conn->link = link;
    proc->down[link] = conn;
}

static void take_frame(struct proc *proc, int link, const struct frame *frame)
{
    struct world *world = proc->world;
    tree_heard(proc->tree, link, now_of(proc));
    if (frame->type == KEYS) {
        if (!proc->kvx) return;
        int code = kvx_receive(proc->kvx, link, frame->payload, frame->bytes, now_of(proc));
        if (code) sim_fail(sim_of(proc), "daemon %d: %s", proc->position, base_error_detail());
    } else if (frame->type == LAUNCH) {
        pass(proc, TREE_EVERYBODY, frame->payload - FRAME_HEADER_BYTES, frame->total);
        launch(proc);
    } else if (proc->position != TREE_FRONT) {
        pass(proc, TREE_FRONT, frame->payload - FRAME_HEADER_BYTES, frame->total);
    } else if (frame->type == RANK_FAILED) {
        world->rank_failures++;
        if (!world->reports && !proc->ending && !world->rank_killed)
            sim_fail(sim_of(proc), "a rank fails before the loss that made it fail is reported");
        demand(proc, tree_end(proc->tree, false, now_of(proc)));
    }
}

void driver_frame(struct proc *proc, struct conn *conn, bool upwards, const void *data, size_t bytes)
{
    struct frame frame;
    int link = upwards ? conn->link : TREE_PARENT;
    demand(proc, frame_parse(data, bytes, &frame));
    if (upwards && link == NOT_GREETED) {
        greet(proc, conn, &frame);
    } else if (!tree_is_open(proc->tree, link)) {
        return;
    } else if (tree_is_frame(frame.type)) {
        conn->leaves |= upwards && frame.type == TREE_FRAME_ENDED;
        demand(proc, tree_receive(proc->tree, link, &frame, now_of(proc)));
    } else {
        take_frame(proc, link, &frame);
    }
}

/* ---- Life ---- */

static void refuse(struct proc *proc, void *argument, uint64_t number)
{
    (void)argument, (void)number;
    demand(proc, tree_refuse(proc->tree, "the disk is full", now_of(proc)));
}

static void refuse_soon(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    proc_post(context, refuse, NULL, 0);
}

void driver_begin(struct proc *proc)
{
    static unsigned char description[8192];
    struct world *world = proc->world;
    const struct world_setup *setup = &world->setup;
    char name[32];
    bool other = proc->position >= 0 && world->hosts[proc->position].fate == FATE_VERSION;
    struct tree_options options = {.shape = setup->shape,
                                   .position = proc->position,
                                   .job = 1,
                                   .start = setup->start,
                                   .start_window = setup->window,
                                   .start_ns = setup->start_ns,
                                   .silence_ns = setup->silence_ns,
                                   .end_ns = setup->end_ns};
    size_t bytes = setup->description_bytes;
    bool own = !bytes && world->unlike && proc->position >= 0;
    if (!bytes) bytes = own ? 5000 + sim_random(sim_of(proc), 3000) : 100;
    memset(description, own ? proc->position + 1 : 0, bytes);
    snprintf(name, sizeof name, "node-%d", proc->position);
    struct tree_self self = {.version = other ? "0.9" : "1.0",
                             .node = name,
                             .description = description,
                             .description_bytes = bytes,
                             .contact = name,
                             .contact_bytes = strlen(name)};
    demand(proc, tree_create(&options, &self, now_of(proc), &proc->tree));
    if (sim_failed(sim_of(proc))) return;
    demand(proc, tree_begin(proc->tree, now_of(proc)));
    if (proc->position >= 0 && world->hosts[proc->position].fate == FATE_REFUSES)
        sim_after(sim_of(proc), world_chance(world, 0, 20 * MILLISECOND), refuse_soon, proc, 0, 0);
    driver_pump(proc);
}

void driver_user_ends(struct proc *front, void *unused, uint64_t at_once)
{
    (void)unused;
    demand(front, tree_end(front->tree, at_once != 0, now_of(front)));
}

void driver_greet_falsely(struct conn *conn, uint64_t job)
{
    const struct tree_shape *shape = &conn->parent->world->setup.shape;
    struct frame_writer writer;
    struct tree_hello hello = {job, "1.0", shape->count, shape->radix, conn->child->position};
    tree_write_hello(&writer, &hello);
    demand(conn->parent, frame_finish(&writer));
    conn_send(conn, true, writer.data, writer.used);
    frame_release(&writer);
}

void driver_release(struct proc *proc)
{
    if (proc->pumping) return; /* in the middle of its actions: when they are done */
    tree_destroy(proc->tree);
    kvx_destroy(proc->kvx);
    proc->tree = NULL;
    proc->kvx = NULL;
}
