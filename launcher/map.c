/* map.c - the mapping of ranks. Ranks fill the slots of a node before the next, or go round the nodes; inside a node
 * they go round the objects of the level they are mapped by, and within an object round its parts. With a number of
 * ranks for each object they fill one object after the other. */
#include "launcher/map.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

static const char *const level_names[MAP_LEVELS] = {"hwthread", "core", "l2cache", "l3cache", "numa", "package"};

const char *map_level_name(enum map_level level)
{
    return (unsigned)level < MAP_LEVELS ? level_names[level] : NULL;
}

int map_level_find(const char *name)
{
    if (!strcmp(name, "socket")) return MAP_PACKAGE;
    for (int level = 0; level < MAP_LEVELS; level++)
        if (!strcmp(name, level_names[level])) return level;
    return -1;
}

int map_objects(const struct map_node *node, enum map_level level)
{
    int count = 0;
    for (int i = 0; i < node->cpu_count; i++)
        if (node->cpus[i].object[level] >= count) count = node->cpus[i].object[level] + 1;
    return count;
}

int map_slots(const struct map_node *node)
{
    if (node->slots > 0) return node->slots;
    int cores = map_objects(node, MAP_CORE);
    return cores > 0 ? cores : 1;
}

/* Ranks that one node takes in a round. */
static int room_of(const struct map_request *request, const struct map_node *node)
{
    long room = map_slots(node);
    if (request->by == MAP_BY_GPU && (node->slots == 0 || node->gpu_count == 0)) room = node->gpu_count;
    if (request->per > 0) {
        long objects = request->by == MAP_BY_OBJECT ? map_objects(node, request->by_level) : 1;
        room = request->per * (request->by == MAP_BY_GPU ? node->gpu_count : objects);
    }
    return room < MAP_MAX_RANKS ? (int)room : MAP_MAX_RANKS;
}

static bool is_open(const struct map_request *request, int node)
{
    return !request->closed || !request->closed[node];
}

/* The same, less what runs there already. */
static int free_of(const struct map_request *request, const struct map_node *nodes, int node)
{
    int room = is_open(request, node) ? room_of(request, &nodes[node]) : 0;
    int taken = request->taken ? request->taken[node] : 0;
    return taken < room ? room - taken : 0;
}

long map_room(const struct map_request *request, const struct map_node *nodes, int node_count)
{
    long room = 0;
    for (int i = 0; i < node_count; i++) room += free_of(request, nodes, i);
    return room;
}

/* Its number among the ranks of all jobs on its node. */
static int seat_of(const struct map_request *request, const struct map_rank *mapped)
{
    return mapped->local_rank + (request->taken ? request->taken[mapped->node] : 0);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

/* Where the next rank goes. In each round a node takes as many ranks as it has room for. */
struct deal {
    struct map *map;
    const int *room;
    long round;
    int node;                   /* of the last rank, when nodes are filled */
    int *open, at, kept, count; /* nodes with room, in the order of this pass, when ranks go round them */
};

static bool has_room(const struct deal *deal, int node, int more)
{
    return deal->map->local_size[node] + more < deal->room[node] * deal->round;
}

static int next_filled(struct deal *deal)
{
    while (!has_room(deal, deal->node, 0)) {
        if (++deal->node < deal->map->node_count) continue;
        deal->node = 0;
        deal->round++;
    }
    return deal->node;
}

static void begin_round(struct deal *deal)
{
    deal->round++;
    for (int i = 0; i < deal->map->node_count; i++)
        if (has_room(deal, i, 0)) deal->open[deal->count++] = i;
}

static int next_in_turn(struct deal *deal)
{
    if (deal->at == deal->count) {
        deal->count = deal->kept;
        deal->at = deal->kept = 0;
        if (!deal->count) begin_round(deal);
    }
    int node = deal->open[deal->at++];
    if (has_room(deal, node, 1)) deal->open[deal->kept++] = node;
    return node;
}

/* At least one node has room. */
static void place_on_nodes(const struct map_request *request, const int *room, int *open, struct map *map)
{
    bool fill = request->by != MAP_BY_NODE || request->per > 0;
    struct deal deal = {.map = map, .room = room, .round = fill, .open = open};
    for (int app = 0; app < request->app_count; app++) {
        for (int i = 0; i < request->app_ranks[app]; i++) {
            int node = fill ? next_filled(&deal) : next_in_turn(&deal);
            map->ranks[map->rank_count++] =
                (struct map_rank){.node = node, .app = app, .local_rank = map->local_size[node]++};
        }
    }
}

/* ---- Objects of a node ------------------------------------------------------------------------------------------- */

/* A part of an object: the rank starts from its first hardware thread. */
struct place {
    enum map_level level, part;
    int object, turn; /* which part of it, counted round and round */
};

static const struct map_cpu *find_place(const struct map_node *node, const struct place *place)
{
    int parts = 0, last = -1;
    for (int i = 0; i < node->cpu_count; i++) { /* sorted by place, so that the threads of a part are neighbours */
        if (node->cpus[i].object[place->level] != place->object || node->cpus[i].object[place->part] == last) continue;
        last = node->cpus[i].object[place->part];
        parts++;
    }
    int wanted = parts ? place->turn % parts : -1;
    last = -1;
    for (int i = 0; i < node->cpu_count; i++) {
        if (node->cpus[i].object[place->level] != place->object || node->cpus[i].object[place->part] == last) continue;
        last = node->cpus[i].object[place->part];
        if (wanted-- == 0) return &node->cpus[i];
    }
    return &node->cpus[0];
}

static int gpu_of(const struct map_request *request, const struct map_node *node, int local_rank)
{
    return (request->per > 0 ? local_rank / request->per : local_rank) % node->gpu_count;
}

/* Ranks of one NUMA node's GPUs take its parts in turn. False when it is not known which is near. */
static bool place_near_gpu(const struct map_request *request, const struct map_node *node, int local_rank,
                           struct place *place)
{
    int numa = node->gpus[gpu_of(request, node, local_rank)].numa;
    if (numa < 0 || numa >= map_objects(node, MAP_NUMA)) return false;
    *place = (struct place){.level = MAP_NUMA, .object = numa};
    for (int i = 0; i < local_rank; i++) place->turn += node->gpus[gpu_of(request, node, i)].numa == numa;
    return true;
}

static struct place choose_place(const struct map_request *request, const struct map_node *node, int local_rank,
                                 enum map_level bind)
{
    enum map_level by = request->by == MAP_BY_OBJECT ? request->by_level : MAP_CORE;
    int objects = map_objects(node, by);
    struct place place = {.level = by, .object = local_rank % objects, .turn = local_rank / objects};
    if (request->by == MAP_BY_OBJECT && request->per > 0) {
        place.object = local_rank / request->per % objects;
        place.turn = local_rank % request->per;
    }
    if (request->by == MAP_BY_GPU) place_near_gpu(request, node, local_rank, &place);
    /* Mapped by the smaller of the two: a rank bound to a core in "--map-by numa" takes the next core of its NUMA node.
     */
    place.part = bind < place.level ? bind : MAP_CORE;
    if (place.level == MAP_HWTHREAD) place.part = MAP_HWTHREAD;
    return place;
}

/* ---- Binding ----------------------------------------------------------------------------------------------------- */

/* Appends "first-last" or "first" to a list; returns the new length. */
static size_t append_range(char *list, size_t length, size_t room, int first, int last)
{
    int written = first == last ? snprintf(list + length, room - length, "%s%d", length ? "," : "", first)
                                : snprintf(list + length, room - length, "%s%d-%d", length ? "," : "", first, last);
    return written < 0 ? length : length + (size_t)written;
}

/* The cpus of an object as a list in ascending order. */
static char *list_cpus(const struct map_node *node, enum map_level level, int object)
{
    size_t room = (size_t)node->cpu_count * 12 + 1;
    char *list = base_alloc(AREA_LAUNCHER, room);
    if (!list) return NULL;
    list[0] = 0;
    int highest = -1, first = -1, last = -1;
    size_t length = 0;
    for (;;) { /* selection of the next larger index: nodes have hundreds of threads, not millions */
        int next = -1;
        for (int i = 0; i < node->cpu_count; i++) {
            const struct map_cpu *cpu = &node->cpus[i];
            if (cpu->object[level] == object && cpu->os_index > highest && (next < 0 || cpu->os_index < next))
                next = cpu->os_index;
        }
        if (next >= 0 && last >= 0 && next == last + 1) {
            last = next;
        } else {
            if (first >= 0) length = append_range(list, length, room, first, last);
            first = last = next;
        }
        if (next < 0) return list;
        highest = next;
    }
}

/* What a rank is bound to when nothing was asked for: its NUMA node, unless ranks outnumber the cpus. */
static bool bind_level(const struct map_request *request, bool oversubscribed, enum map_level *level)
{
    if (request->bind == MAP_BIND_NONE) return false;
    *level = request->bind == MAP_BIND_OBJECT ? request->bind_level : MAP_NUMA;
    return request->bind == MAP_BIND_OBJECT || !oversubscribed;
}

/* The lists of cpus of one kind of node, made when first needed. */
struct kind {
    const struct map_cpu *cpus;
    int first; /* in map->lists, one for each object that ranks are bound to */
};

static int add_kind(struct map *map, const struct map_node *node, enum map_level bind, struct kind *kind)
{
    int objects = map_objects(node, bind);
    char **grown = base_realloc(AREA_LAUNCHER, map->lists, (size_t)(map->list_count + objects + 1) * sizeof *grown);
    if (!grown) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", map->rank_count);
    map->lists = grown;
    *kind = (struct kind){.cpus = node->cpus, .first = map->list_count};
    for (int i = 0; i < objects; i++) map->lists[map->list_count++] = NULL;
    return NCCLX_SUCCESS;
}

/* The place of each node's lists: those of the last node like it. */
static int find_kinds(const struct map_node *nodes, struct map *map, enum map_level bind, int *first)
{
    struct kind *kinds = base_calloc(AREA_LAUNCHER, (size_t)map->node_count, sizeof *kinds);
    int count = 0, code = NCCLX_SUCCESS;
    if (!kinds) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", map->rank_count);
    for (int i = 0; i < map->node_count && !code; i++) {
        int at = count - 1;
        while (at >= 0 && kinds[at].cpus != nodes[i].cpus) at--;
        if (at < 0 && !(code = add_kind(map, &nodes[i], bind, &kinds[count]))) at = count++;
        if (!code) first[i] = kinds[at].first;
    }
    base_free(AREA_LAUNCHER, kinds);
    return code;
}

static int bind_ranks(const struct map_request *request, const struct map_node *nodes, struct map *map)
{
    enum map_level bind;
    if (!bind_level(request, false, &bind)) return NCCLX_SUCCESS;
    int *first = base_calloc(AREA_LAUNCHER, (size_t)map->node_count, sizeof *first);
    int code = first ? find_kinds(nodes, map, bind, first)
                     : base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", map->rank_count);
    for (int rank = 0; rank < map->rank_count && !code; rank++) {
        struct map_rank *mapped = &map->ranks[rank];
        const struct map_node *node = &nodes[mapped->node];
        if (node->cpu_count == 0 || !bind_level(request, map->oversubscribed[mapped->node], &bind)) continue;
        struct place place = choose_place(request, node, seat_of(request, mapped), bind);
        int object = find_place(node, &place)->object[bind];
        char **list = &map->lists[first[mapped->node] + object];
        if (!*list && !(*list = list_cpus(node, bind, object)))
            code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", map->rank_count);
        mapped->cpus = *list;
    }
    base_free(AREA_LAUNCHER, first);
    return code;
}

static void choose_gpus(const struct map_request *request, const struct map_node *nodes, struct map *map)
{
    for (int rank = 0; rank < map->rank_count && request->by == MAP_BY_GPU; rank++) {
        const struct map_node *node = &nodes[map->ranks[rank].node];
        map->ranks[rank].gpu = node->gpus[gpu_of(request, node, seat_of(request, &map->ranks[rank]))].id;
    }
}

/* ---- All together ------------------------------------------------------------------------------------------------ */

static int check_counts(const struct map_request *request, const struct map_node *nodes, int node_count, int *total)
{
    long ranks = 0, room = map_room(request, nodes, node_count), whole = 0;
    for (int i = 0; i < node_count; i++) whole += is_open(request, i) ? room_of(request, &nodes[i]) : 0;
    for (int i = 0; i < request->app_count; i++) ranks += request->app_ranks[i];
    if (request->by == MAP_BY_GPU && whole == 0)
        return base_error(NCCLX_ERR_ARG, "ranks cannot be mapped by GPU: there is none on %s",
                          node_count == 1 ? nodes[0].name : "any host");
    if (ranks < 1 || node_count < 1 || whole < 1)
        return base_error(NCCLX_ERR_ARG, "there is nothing to run: no ranks or no nodes");
    if (ranks > MAP_MAX_RANKS)
        return base_error(NCCLX_ERR_ARG, "%ld ranks are more than one job can have (%d)", ranks, MAP_MAX_RANKS);
    if (request->per > 0 && ranks > room)
        return base_error(NCCLX_ERR_ARG, "%ld ranks are more than the %ld for which --map-by has places", ranks, room);
    if (ranks > room && !request->oversubscribe)
        return base_error(
            NCCLX_ERR_ARG,
            "%ld rank%s not fit into %ld slot%s; leave --no-oversubscribe out, or give slots with --host NAME:SLOTS",
            ranks, ranks == 1 ? " does" : "s do", room, room == 1 ? "" : "s");
    *total = (int)ranks;
    return NCCLX_SUCCESS;
}

/* The node's room and scratch for the deal, two arrays in one block. */
static int *measure_nodes(const struct map_request *request, const struct map_node *nodes, int node_count, int ranks)
{
    bool shared = map_room(request, nodes, node_count) < ranks; /* not only what is free */
    int *room = base_calloc(AREA_LAUNCHER, 2 * (size_t)node_count, sizeof *room);
    for (int i = 0; room && i < node_count; i++) {
        if (!is_open(request, i)) continue;
        room[i] = shared ? room_of(request, &nodes[i]) : free_of(request, nodes, i);
    }
    return room;
}

int map_compute(const struct map_request *request, const struct map_node *nodes, int node_count, struct map *map)
{
    int total = 0, code;
    memset(map, 0, sizeof *map);
    if ((code = check_counts(request, nodes, node_count, &total))) return code;
    map->node_count = node_count;
    map->ranks = base_calloc(AREA_LAUNCHER, (size_t)total, sizeof *map->ranks);
    map->local_size = base_calloc(AREA_LAUNCHER, (size_t)node_count, sizeof *map->local_size);
    map->oversubscribed = base_calloc(AREA_LAUNCHER, (size_t)node_count, sizeof *map->oversubscribed);
    int *room = measure_nodes(request, nodes, node_count, total);
    if (!map->ranks || !map->local_size || !map->oversubscribed || !room) {
        code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", total);
    } else {
        place_on_nodes(request, room, room + node_count, map);
        for (int i = 0; i < node_count; i++)
            map->oversubscribed[i] = map->local_size[i] + (request->taken ? request->taken[i] : 0) >
                                     (nodes[i].cpu_count ? nodes[i].cpu_count : 1);
        choose_gpus(request, nodes, map);
        code = bind_ranks(request, nodes, map);
    }
    base_free(AREA_LAUNCHER, room);
    if (code) map_release(map);
    return code;
}

void map_release(struct map *map)
{
    for (int i = 0; i < map->list_count; i++) base_free(AREA_LAUNCHER, map->lists[i]);
    base_free(AREA_LAUNCHER, map->lists);
    base_free(AREA_LAUNCHER, map->ranks);
    base_free(AREA_LAUNCHER, map->local_size);
    base_free(AREA_LAUNCHER, map->oversubscribed);
    memset(map, 0, sizeof *map);
}
