/* cpus.c - discovery with hwloc, within the cpus this process may use. */
#include "config.h"

#include "launcher/cpus.h"

#include "runtime/base/base.h"

#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

#define CPUS_MAX_INDEX 65535

static const hwloc_obj_type_t level_types[MAP_LEVELS] = {HWLOC_OBJ_PU, HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_NUMANODE,
                                                         HWLOC_OBJ_PACKAGE};

/* The object of a level that holds a cpu; an absent level (a machine without L3) is one object. */
static int object_of(hwloc_topology_t topology, hwloc_obj_t cpu, enum map_level level)
{
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, level_types[level], object)))
        if (object->cpuset && hwloc_bitmap_isincluded(cpu->cpuset, object->cpuset)) return (int)object->logical_index;
    return 0;
}

/* Numbers the objects of a level from 0 without gaps, in their order: cpus that may not be used leave some out. */
static void close_gaps(struct cpus *cpus, enum map_level level)
{
    int next = 0, last = -1;
    for (int i = 0; i < cpus->count; i++) {
        int *object = &cpus->table[i].object[level];
        if (i > 0 && *object != last) next++;
        last = *object;
        *object = next;
    }
}

static int fill_table(hwloc_topology_t topology, struct cpus *cpus)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_bitmap_t usable = hwloc_bitmap_dup(allowed);
    int total = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    cpus->table = total > 0 ? base_calloc(AREA_LAUNCHER, (size_t)total, sizeof *cpus->table) : NULL;
    if (!cpus->table || !usable) {
        hwloc_bitmap_free(usable);
        return base_error(NCCLX_ERR_NO_MEM, "the cpus of this node cannot be listed");
    }
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (bound && hwloc_topology_is_thissystem(topology) && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(usable, usable, bound);
    hwloc_bitmap_free(bound);
    hwloc_obj_t cpu = NULL;
    while ((cpu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, cpu))) {
        if (!hwloc_bitmap_isset(usable, cpu->os_index) || cpu->os_index > CPUS_MAX_INDEX) continue;
        struct map_cpu *entry = &cpus->table[cpus->count++];
        entry->os_index = (int)cpu->os_index;
        for (int level = 0; level < MAP_LEVELS; level++) entry->object[level] = object_of(topology, cpu, (enum map_level)level);
    }
    hwloc_bitmap_free(usable);
    for (int level = 0; level < MAP_LEVELS; level++) close_gaps(cpus, (enum map_level)level);
    return cpus->count > 0 ? NCCLX_SUCCESS : base_error(NCCLX_ERR_INTERNAL, "this node has no cpu that may be used");
}

int cpus_discover(struct cpus *cpus)
{
    hwloc_topology_t topology;
    *cpus = (struct cpus){0};
    if (hwloc_topology_init(&topology)) return base_error(NCCLX_ERR_NO_MEM, "hwloc cannot start");
    if (hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return base_error(NCCLX_ERR_INTERNAL, "hwloc cannot read this node's topology");
    }
    cpus->topology = topology;
    int code = fill_table(topology, cpus);
    if (code) cpus_release(cpus);
    return code;
}

void cpus_release(struct cpus *cpus)
{
    if (cpus->topology) hwloc_topology_destroy(cpus->topology);
    base_free(AREA_LAUNCHER, cpus->table);
    *cpus = (struct cpus){0};
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
