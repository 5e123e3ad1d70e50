/* map.h - which rank runs where: nodes, slots, places within a node, and the cpus a rank is bound to. Pure: nothing is
 * launched or probed. */
#ifndef LAUNCHER_MAP_H
#define LAUNCHER_MAP_H

#include <stdbool.h>
#include <stddef.h>

#define MAP_MAX_RANKS 1048576 /* of a job */
#define MAP_NAME_BYTES 256
#define MAP_GPU_BYTES 64

/* From the smallest to the largest; MAP_LEVELS is their number. */
enum map_level { MAP_HWTHREAD, MAP_CORE, MAP_L2CACHE, MAP_L3CACHE, MAP_NUMA, MAP_PACKAGE, MAP_LEVELS };

enum map_by { MAP_BY_SLOT, MAP_BY_NODE, MAP_BY_OBJECT, MAP_BY_GPU };
enum map_bind { MAP_BIND_DEFAULT, MAP_BIND_NONE, MAP_BIND_OBJECT };

/* One hardware thread that ranks may use. object[level] numbers the object of that level which holds it, from 0 without
 * gaps. */
struct map_cpu {
    int os_index;
    int object[MAP_LEVELS];
};

struct map_gpu {
    char id[MAP_GPU_BYTES]; /* as CUDA_VISIBLE_DEVICES takes it */
    int numa;               /* the object of MAP_NUMA that is near it; -1: not known */
};

/* Nodes that are alike may share their arrays, and should: lists of cpus are then made once. */
struct map_node {
    char name[MAP_NAME_BYTES];
    int slots; /* 0: one a core, or a GPU when mapped by those */
    const struct map_cpu *cpus;
    int cpu_count;
    const struct map_gpu *gpus;
    int gpu_count;
};

struct map_request {
    const int *app_ranks; /* ranks of each program */
    int app_count;
    enum map_by by;
    enum map_level by_level; /* MAP_BY_OBJECT */
    int per;                 /* so many ranks on each node, object or GPU, one after the other; 0: as the slots say */
    enum map_bind bind;
    enum map_level bind_level; /* MAP_BIND_OBJECT */
    bool oversubscribe;        /* more ranks than slots are allowed */
    /* For each node, or null. Ranks that run there already: theirs are not the first places to be given, and when what
     * they leave free is enough nothing else is used. */
    const int *taken;
    const bool *closed; /* no rank goes there */
};

struct map_rank {
    int node, app, local_rank;
    const char *cpus; /* "0-3,8"; null: not bound */
    const char *gpu;  /* of the node's; null: none was chosen */
};

struct map {
    struct map_rank *ranks;
    int rank_count;
    int *local_size;      /* ranks of each node */
    bool *oversubscribed; /* each node: more ranks than hardware threads */
    int node_count;
    char **lists; /* of cpus, to which ranks point */
    int list_count;
};

/* NCCLX_ERR_ARG (more ranks than slots and that is not allowed, no ranks, too many), NCCLX_ERR_NO_MEM. */
int map_compute(const struct map_request *request, const struct map_node *nodes, int node_count, struct map *map);
void map_release(struct map *map);
/* Ranks that the nodes take before one of them has more than its share; the number of ranks when none is asked for. */
long map_room(const struct map_request *request, const struct map_node *nodes, int node_count);
/* Slots of a node: as given, or one a core. */
int map_slots(const struct map_node *node);
int map_objects(const struct map_node *node, enum map_level level);
/* "core", "package"...; null past the end. */
const char *map_level_name(enum map_level level);
/* Accepts "socket" for package too. -1: no such level. */
int map_level_find(const char *name);

#endif
