/* map.c - the mapping of ranks. Ranks fill the slots of a node before the next, or go round the nodes; inside a node
 * they go round the objects of the level they are mapped by, and within an object round its parts. */
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

/* The first node from `start` on with a free slot in this round; when all are full the next round begins at the first
 * node. */
static int next_node(const struct map_node *nodes, const struct map *map, int start, long *round)
{
    for (;; (*round)++, start = 0) {
        for (int i = 0; i < map->node_count; i++) {
            int node = (start + i) % map->node_count;
            if (map->local_size[node] < map_slots(&nodes[node]) * *round) return node;
        }
    }
}

/* Places ranks on nodes: slot by slot, or node by node while slots are left. */
static void place_on_nodes(const struct map_request *request, const struct map_node *nodes, struct map *map)
{
    int node = 0;
    long round = 1;
    for (int app = 0; app < request->app_count; app++) {
        for (int i = 0; i < request->app_ranks[app]; i++) {
            node = next_node(nodes, map, node, &round);
            map->ranks[map->rank_count++] =
                (struct map_rank){.node = node, .app = app, .local_rank = map->local_size[node]++};
            if (request->by == MAP_BY_NODE) node = (node + 1) % map->node_count;
        }
    }
}

/* The hardware thread a rank starts from: object number local_rank of the level, and within it the next part each time
 * round. */
static const struct map_cpu *find_place(const struct map_node *node, int local_rank, enum map_level level,
                                        enum map_level part)
{
    int objects = map_objects(node, level);
    int object = local_rank % objects, turn = local_rank / objects;
    int parts = 0, last = -1;
    for (int i = 0; i < node->cpu_count;
         i++) { /* cpus come sorted by place, so that the threads of a part are neighbours */
        if (node->cpus[i].object[level] != object || node->cpus[i].object[part] == last) continue;
        last = node->cpus[i].object[part];
        parts++;
    }
    int wanted = turn % parts;
    last = -1;
    for (int i = 0; i < node->cpu_count; i++) {
        if (node->cpus[i].object[level] != object || node->cpus[i].object[part] == last) continue;
        last = node->cpus[i].object[part];
        if (wanted-- == 0) return &node->cpus[i];
    }
    return &node->cpus[0];
}

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

static int bind_ranks(const struct map_request *request, const struct map_node *nodes, struct map *map)
{
    for (int rank = 0; rank < map->rank_count; rank++) {
        struct map_rank *mapped = &map->ranks[rank];
        const struct map_node *node = &nodes[mapped->node];
        enum map_level bind, by = request->by == MAP_BY_OBJECT ? request->by_level : MAP_CORE;
        if (node->cpu_count == 0 || !bind_level(request, map->oversubscribed[mapped->node], &bind)) continue;
        /* Mapped by the smaller of the two: a rank bound to a core in "--map-by numa" takes the next core of its NUMA
         * node. */
        enum map_level part = bind < by ? bind : MAP_CORE;
        if (by == MAP_HWTHREAD) part = MAP_HWTHREAD;
        const struct map_cpu *place = find_place(node, mapped->local_rank, by, part);
        mapped->cpus = list_cpus(node, bind, place->object[bind]);
        if (!mapped->cpus)
            return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", map->rank_count);
    }
    return NCCLX_SUCCESS;
}

static int check_counts(const struct map_request *request, const struct map_node *nodes, int node_count, int *total)
{
    long ranks = 0, slots = 0;
    for (int i = 0; i < request->app_count; i++) ranks += request->app_ranks[i];
    for (int i = 0; i < node_count; i++) slots += map_slots(&nodes[i]);
    if (ranks < 1 || node_count < 1) return base_error(NCCLX_ERR_ARG, "there is nothing to run: no ranks or no nodes");
    if (ranks > MAP_MAX_RANKS)
        return base_error(NCCLX_ERR_ARG, "%ld ranks are more than this release can start (%d)", ranks, MAP_MAX_RANKS);
    if (ranks > slots && !request->oversubscribe)
        return base_error(
            NCCLX_ERR_ARG,
            "%ld ranks do not fit into %ld slot%s; leave --no-oversubscribe out, or give slots with --host NAME:SLOTS",
            ranks, slots, slots == 1 ? "" : "s");
    *total = (int)ranks;
    return NCCLX_SUCCESS;
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
    if (!map->ranks || !map->local_size || !map->oversubscribed) {
        map_release(map);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", total);
    }
    place_on_nodes(request, nodes, map);
    for (int i = 0; i < node_count; i++)
        map->oversubscribed[i] = map->local_size[i] > (nodes[i].cpu_count ? nodes[i].cpu_count : 1);
    if ((code = bind_ranks(request, nodes, map))) map_release(map);
    return code;
}

void map_release(struct map *map)
{
    for (int i = 0; map->ranks && i < map->rank_count; i++) base_free(AREA_LAUNCHER, map->ranks[i].cpus);
    base_free(AREA_LAUNCHER, map->ranks);
    base_free(AREA_LAUNCHER, map->local_size);
    base_free(AREA_LAUNCHER, map->oversubscribed);
    memset(map, 0, sizeof *map);
}
