/* cpus.h - the hardware threads that ranks of this node may use, with the cores, caches, NUMA nodes and packages they
 * are in. */
#ifndef LAUNCHER_CPUS_H
#define LAUNCHER_CPUS_H

#include "launcher/map.h"
#include "topo/topo.h"

struct cpus {
    struct map_cpu *table; /* sorted by place */
    int count;
    struct topo_node *node;
};

/* Once a process: what it finds stays. */
int cpus_discover(struct cpus *cpus);
/* A list such as "0-3,8" as a kernel cpu set; null when it is malformed or memory is short. CPU_FREE it. */
void *cpus_set(const char *list, size_t *bytes);

#endif
