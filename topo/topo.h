/* topo - where things are: the inside of this node (cores, caches, NUMA nodes) and the distance class of every peer.
 *
 * Owns: the hwloc topology. Never: opens a connection. Other folders see plain integers and cpu lists, no hwloc type.
 * Threads: the rank's lock is held; the launcher calls from one thread.
 */
#ifndef TOPO_H
#define TOPO_H

#include "runtime/base/base.h"

/* Nothing is discovered before it is asked for: a rank's start stays cheap. */
int topo_init(struct ncclx_rt *rt);
void topo_finalize(struct ncclx_rt *rt);
/* NCCLX_DISTANCE_* of a job rank: SELF, NODE, or UNKNOWN for every other node. Nothing here knows racks, zones or buildings yet. */
int topo_distance(struct ncclx_rt *rt, int rank);
const char *topo_distance_name(int distance);

/* ---- The inside of a node, for the launcher and ncclx-info ---------------------------------------------------- */

struct topo_node;

enum topo_object { TOPO_HWTHREAD, TOPO_CORE, TOPO_L2CACHE, TOPO_L3CACHE, TOPO_NUMA, TOPO_PACKAGE, TOPO_MACHINE };

/* Discovers this machine within the cpus this process may use. HWLOC_SYNTHETIC and HWLOC_XMLFILE describe another one, for tests of
 * placement; binding is then ERR_UNSUPPORTED. */
int topo_node_discover(struct topo_node **node);
void topo_node_release(struct topo_node *node);
/* Objects of a kind which hold at least one allowed cpu. 0: the machine has no such caches. */
int topo_node_count(const struct topo_node *node, enum topo_object object);
/* The allowed cpus of object `index`, as a list such as "0-3,8". Returns the length needed, as snprintf does; 0 when there is no
 * such object. */
int topo_node_cpus(const struct topo_node *node, enum topo_object object, int index, char *list, size_t bytes);
/* Binds the calling thread (and what it will exec) to a cpu list. Binding outside the allowed cpus is ERR_ARG. */
int topo_node_bind(const struct topo_node *node, const char *list);
/* False when the environment describes another machine. */
bool topo_node_is_this(const struct topo_node *node);
/* How many GPUs there are, at most `room`: in the order of their PCI addresses, the number of the NUMA node (of those with cpus) that
 * each is near, or -1. */
int topo_node_gpus(const struct topo_node *node, int *numa, int room);
/* The hwloc topology, for PMIx which wants it loaded: a hwloc_topology_t as void *. */
void *topo_node_hwloc(const struct topo_node *node);
/* A drawing of the node, indented lines, to be freed with base_free(AREA_TOPO, ...). */
char *topo_node_describe(const struct topo_node *node);

#endif
