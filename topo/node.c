/* node.c - the inside of this machine, through hwloc. */
#include "topo/topo.h"

#include "topo/cpulist.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct topo_node {
    hwloc_topology_t topology;
};

static const struct {
    const char *name; /* as the launcher's options have it */
    hwloc_obj_type_t type;
} kinds[] = {
    [TOPO_HWTHREAD] = {"hwthread", HWLOC_OBJ_PU},
    [TOPO_CORE] = {"core", HWLOC_OBJ_CORE},
    [TOPO_L2CACHE] = {"l2cache", HWLOC_OBJ_L2CACHE},
    [TOPO_L3CACHE] = {"l3cache", HWLOC_OBJ_L3CACHE},
    [TOPO_NUMA] = {"numa", HWLOC_OBJ_NUMANODE},
    [TOPO_PACKAGE] = {"package", HWLOC_OBJ_PACKAGE},
    [TOPO_MACHINE] = {"machine", HWLOC_OBJ_MACHINE},
};

/* ---- Discovery ------------------------------------------------------------------------------------------------ */

static int load(hwloc_topology_t topology)
{
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].type != HWLOC_OBJ_PU && kinds[i].type != HWLOC_OBJ_NUMANODE && kinds[i].type != HWLOC_OBJ_MACHINE)
            hwloc_topology_set_type_filter(topology, kinds[i].type, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (getenv("HWLOC_XMLFILE")) hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT); /* for GPUs */
    if (hwloc_topology_load(topology)) return base_error(NCCLX_ERR_LIMIT, "hwloc cannot discover this machine: %s", strerror(errno));
    /* hwloc goes on with the real machine when the synthetic one makes no sense. */
    const char *synthetic = getenv("HWLOC_SYNTHETIC");
    if (synthetic && *synthetic && !hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "SyntheticDescription"))
        return base_error(NCCLX_ERR_CONFIG, "HWLOC_SYNTHETIC=%s does not describe a machine", synthetic);
    return NCCLX_SUCCESS;
}

/* hwloc knows what the cgroup allows; what taskset or a batch system has bound this process to is left to us. */
static int restrict_to_binding(hwloc_topology_t topology)
{
    int error = NCCLX_SUCCESS;
    if (!hwloc_topology_is_thissystem(topology)) return NCCLX_SUCCESS;
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (!bound) return base_error(NCCLX_ERR_NO_MEM, "no memory for a set of cpus");
    if (!hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_THREAD) && hwloc_topology_restrict(topology, bound, 0))
        error = base_error(NCCLX_ERR_LIMIT, "hwloc knows none of the cpus that this process is bound to");
    hwloc_bitmap_free(bound);
    return error;
}

int topo_node_discover(struct topo_node **node)
{
    struct topo_node *made = base_calloc(AREA_TOPO, 1, sizeof *made);
    if (!made) return base_error(NCCLX_ERR_NO_MEM, "no memory for the topology of this machine");
    if (hwloc_topology_init(&made->topology)) {
        base_free(AREA_TOPO, made);
        return base_error(NCCLX_ERR_NO_MEM, "no memory for the topology of this machine");
    }
    int error = load(made->topology);
    if (!error) error = restrict_to_binding(made->topology);
    if (error) topo_node_release(made);
    else *node = made;
    return error;
}

void topo_node_release(struct topo_node *node)
{
    if (!node) return;
    hwloc_topology_destroy(node->topology);
    base_free(AREA_TOPO, node);
}

bool topo_node_is_this(const struct topo_node *node)
{
    return hwloc_topology_is_thissystem(node->topology);
}

void *topo_node_hwloc(const struct topo_node *node)
{
    return node->topology;
}

/* ---- Objects -------------------------------------------------------------------------------------------------- */

/* Some machines do not tell their cores or packages: each hardware thread is a core then, and the machine one package. */
static hwloc_obj_type_t type_of(const struct topo_node *node, enum topo_object object)
{
    hwloc_obj_type_t type = kinds[object].type;
    if (hwloc_get_nbobjs_by_type(node->topology, type) > 0) return type;
    if (object == TOPO_CORE) return HWLOC_OBJ_PU;
    if (object == TOPO_PACKAGE) return HWLOC_OBJ_MACHINE;
    return type;
}

static hwloc_obj_t next_with_cpus(const struct topo_node *node, hwloc_obj_type_t type, hwloc_obj_t object)
{
    do object = hwloc_get_next_obj_by_type(node->topology, type, object);
    while (object && hwloc_bitmap_iszero(object->cpuset)); /* memory without cpus */
    return object;
}

int topo_node_count(const struct topo_node *node, enum topo_object object)
{
    int count = 0;
    hwloc_obj_type_t type = type_of(node, object);
    for (hwloc_obj_t at = next_with_cpus(node, type, NULL); at; at = next_with_cpus(node, type, at)) count++;
    return count;
}

int topo_node_cpus(const struct topo_node *node, enum topo_object object, int index, char *list, size_t bytes)
{
    hwloc_obj_type_t type = type_of(node, object);
    hwloc_obj_t at = next_with_cpus(node, type, NULL);
    for (; at && index > 0; index--) at = next_with_cpus(node, type, at);
    if (at && index == 0) return hwloc_bitmap_list_snprintf(list, bytes, at->cpuset);
    if (bytes) list[0] = 0;
    return 0;
}

int topo_node_bind(const struct topo_node *node, const char *list)
{
    int error = NCCLX_SUCCESS;
    char allowed[256];
    hwloc_const_bitmap_t all = hwloc_get_root_obj(node->topology)->cpuset;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) return base_error(NCCLX_ERR_NO_MEM, "no memory for a set of cpus");
    hwloc_bitmap_list_snprintf(allowed, sizeof allowed, all);
    if (!topo_cpulist_parse(list, set)) error = base_error(NCCLX_ERR_ARG, "\"%.100s\" is not a list of cpus such as 0-3,8", list);
    else if (!hwloc_bitmap_isincluded(set, all)) error = base_error(NCCLX_ERR_ARG, "cpus %s: only %s may be used here", list, allowed);
    else if (!hwloc_topology_is_thissystem(node->topology))
        error = base_error(NCCLX_ERR_UNSUPPORTED, "cpus %s: nothing can be bound on a machine that is only described", list);
    else if (hwloc_set_cpubind(node->topology, set, HWLOC_CPUBIND_THREAD))
        error = base_error(NCCLX_ERR_LIMIT, "cannot bind to cpus %s: %s", list, strerror(errno));
    hwloc_bitmap_free(set);
    return error;
}

/* ---- Drawing -------------------------------------------------------------------------------------------------- */

static const char *name_of(hwloc_obj_type_t type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].type == type) return kinds[i].name;
    return "group";
}

static void draw_line(FILE *out, hwloc_obj_t object, int depth)
{
    char cpus[256];
    hwloc_bitmap_list_snprintf(cpus, sizeof cpus, object->cpuset);
    fprintf(out, "%*s%s %u", depth * 2, "", name_of(object->type), object->logical_index);
    if (object->type == HWLOC_OBJ_NUMANODE) fprintf(out, ", %.1f GiB", (double)object->attr->numanode.local_memory / (1 << 30));
    else if (object->type == HWLOC_OBJ_L2CACHE || object->type == HWLOC_OBJ_L3CACHE)
        fprintf(out, ", %.1f MiB", (double)object->attr->cache.size / (1 << 20));
    fprintf(out, ": cpus %s\n", cpus[0] ? cpus : "none");
}

static void draw(FILE *out, hwloc_obj_t object, int depth)
{
    draw_line(out, object, depth);
    for (hwloc_obj_t child = object->memory_first_child; child; child = child->next_sibling) draw(out, child, depth + 1);
    for (hwloc_obj_t child = object->first_child; child; child = child->next_sibling)
        if (child->type != HWLOC_OBJ_PU) draw(out, child, depth + 1); /* a core's line lists its threads */
}

char *topo_node_describe(const struct topo_node *node)
{
    char *text = NULL, *mine = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    draw(out, hwloc_get_root_obj(node->topology), 0);
    if (!fclose(out)) mine = base_strdup(AREA_TOPO, text);
    free(text);
    return mine;
}
