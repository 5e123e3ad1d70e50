/* gpus.h - the GPUs of a node as the map wants them. */
#ifndef LAUNCHER_GPUS_H
#define LAUNCHER_GPUS_H

#include "launcher/map.h"
#include "topo/topo.h"

#define GPUS_MAX 4096

/* Those of CUDA_VISIBLE_DEVICES, or else all that the node has, numbered in the order of their PCI addresses. Null and
 * 0 when there are none or memory is short; otherwise to be freed with base_free(AREA_LAUNCHER, ...). */
struct map_gpu *gpus_discover(const struct topo_node *node, int *count);
/* A list as CUDA reads it: numbers and GPU-... or MIG-... names up to the first that is neither, or is no GPU's number.
 * numa: of the `found` GPUs there are; with none the list is believed. Pure. */
struct map_gpu *gpus_parse(const char *list, const int *numa, int found, int *count);
/* So many as the user says a node has: the first of those that were found, and more numbers when that is more. `near`
 * spreads them over that many NUMA nodes; 0: it is not known. Null: memory is short, or count is 0. Pure. */
struct map_gpu *gpus_make(const struct map_gpu *found, int found_count, int count, int near);

#endif
