/* cpus.c - from topo's lists of cpus to a table by cpu, as the map wants it. */
#include "config.h"

#include "launcher/cpus.h"

#include "runtime/base/base.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX_INDEX 65535
#define CPUS_LIST_BYTES 16384

static const enum topo_object level_objects[MAP_LEVELS] = {TOPO_HWTHREAD, TOPO_CORE, TOPO_L2CACHE,
                                                           TOPO_L3CACHE,  TOPO_NUMA, TOPO_PACKAGE};

static int fill_indexes(struct cpus *cpus)
{
    cpus->count = topo_node_count(cpus->node, TOPO_HWTHREAD);
    cpus->table = cpus->count > 0 ? base_calloc(AREA_LAUNCHER, (size_t)cpus->count, sizeof *cpus->table) : NULL;
    if (!cpus->table) return base_error(NCCLX_ERR_NO_MEM, "the cpus of this node cannot be listed");
    for (int i = 0; i < cpus->count; i++) {
        char number[32];
        topo_node_cpus(cpus->node, TOPO_HWTHREAD, i, number, sizeof number);
        int index = 0;
        for (const char *at = number; *at >= '0' && *at <= '9' && index <= CPUS_MAX_INDEX; at++)
            index = index * 10 + (*at - '0');
        if (!number[0] || index > CPUS_MAX_INDEX)
            return base_error(NCCLX_ERR_LIMIT, "cpu '%s' has too large a number", number);
        cpus->table[i].os_index = index;
    }
    return NCCLX_SUCCESS;
}

/* Writes the number of its object of this level into each cpu. A level that the machine does not have is one object. */
static int fill_level(struct cpus *cpus, enum map_level level)
{
    int objects = topo_node_count(cpus->node, level_objects[level]);
    for (int object = 0; object < objects; object++) {
        char list[CPUS_LIST_BYTES];
        size_t bytes;
        topo_node_cpus(cpus->node, level_objects[level], object, list, sizeof list);
        cpu_set_t *set = cpus_set(list, &bytes);
        if (!set)
            return base_error(NCCLX_ERR_INTERNAL, "the cpus of %s %d cannot be listed", map_level_name(level), object);
        for (int i = 0; i < cpus->count; i++)
            if (CPU_ISSET_S((size_t)cpus->table[i].os_index, bytes, set)) cpus->table[i].object[level] = object;
        CPU_FREE(set);
    }
    return NCCLX_SUCCESS;
}

int cpus_discover(struct cpus *cpus)
{
    int code;
    *cpus = (struct cpus){0};
    /* hwloc's plugins look for graphics cards and such, and bring X11 and XML libraries: half of the time of a
     * discovery of cpus. */
    setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
    if ((code = topo_node_discover(&cpus->node)) || (code = fill_indexes(cpus))) return code;
    for (int level = 0; level < MAP_LEVELS; level++)
        if ((code = fill_level(cpus, (enum map_level)level))) return code;
    return NCCLX_SUCCESS;
}

/* A number up to CPUS_MAX_INDEX, or -1. */
static int read_index(const char **text)
{
    int value = 0;
    if (**text < '0' || **text > '9') return -1;
    for (; **text >= '0' && **text <= '9'; (*text)++) {
        value = value * 10 + (**text - '0');
        if (value > CPUS_MAX_INDEX) return -1;
    }
    return value;
}

void *cpus_set(const char *list, size_t *bytes)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX_INDEX + 1);
    *bytes = CPU_ALLOC_SIZE(CPUS_MAX_INDEX + 1);
    if (!set) return NULL;
    CPU_ZERO_S(*bytes, set);
    for (;;) {
        int first = read_index(&list), last = first;
        if (first >= 0 && *list == '-') {
            list++;
            last = read_index(&list);
        }
        if (first < 0 || last < first || (*list && *list != ',')) {
            CPU_FREE(set);
            return NULL;
        }
        for (int cpu = first; cpu <= last; cpu++) CPU_SET_S((size_t)cpu, *bytes, set);
        if (!*list++) return set;
    }
}
