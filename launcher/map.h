/* map.h - which rank runs where: nodes, slots, places within a node, and the cpus a rank is bound to. Pure: nothing is
 * launched or probed. */
#ifndef LAUNCHER_MAP_H
#define LAUNCHER_MAP_H

#include <stdbool.h>
#include <stddef.h>

#define MAP_MAX_RANKS 65536 /* of a job in this release */
#define MAP_NAME_BYTES 256

/* From the smallest to the largest; MAP_LEVELS is their number. */
enum map_level { MAP_HWTHREAD, MAP_CORE, MAP_L2CACHE, MAP_L3CACHE, MAP_NUMA, MAP_PACKAGE, MAP_LEVELS };

enum map_by { MAP_BY_SLOT, MAP_BY_NODE, MAP_BY_OBJECT };
enum map_bind { MAP_BIND_DEFAULT, MAP_BIND_NONE, MAP_BIND_OBJECT };

/* One hardware thread that ranks may use. object[level] numbers the object of that level which holds it, from 0 without
 * gaps. */
struct map_cpu {
    int os_index;
    int object[MAP_LEVELS];
};

struct map_node {
    char name[MAP_NAME_BYTES];
    int slots; /* 0: one a core */
    const struct map_cpu *cpus;
    int cpu_count;
};

struct map_request {
    const int *app_ranks; /* ranks of each program */
    int app_count;
    enum map_by by;
    enum map_level by_level; /* MAP_BY_OBJECT */
    enum map_bind bind;
    enum map_level bind_level; /* MAP_BIND_OBJECT */
    bool oversubscribe;        /* more ranks than slots are allowed */
};

struct map_rank {
    int node, app, local_rank;
    char *cpus; /* "0-3,8"; null: not bound */
};

struct map {
    struct map_rank *ranks;
    int rank_count;
    int *local_size;      /* ranks of each node */
    bool *oversubscribed; /* each node: more ranks than hardware threads */
    int node_count;
};

/* NCCLX_ERR_ARG (more ranks than slots and that is not allowed, no ranks, too many), NCCLX_ERR_NO_MEM. */
int map_compute(const struct map_request *request, const struct map_node *nodes, int node_count, struct map *map);
void map_release(struct map *map);
/* Slots of a node: as given, or one a core. */
int map_slots(const struct map_node *node);
int map_objects(const struct map_node *node, enum map_level level);
/* "core", "package"...; null past the end. */
const char *map_level_name(enum map_level level);
/* Accepts "socket" for package too. -1: no such level. */
int map_level_find(const char *name);

#endif
