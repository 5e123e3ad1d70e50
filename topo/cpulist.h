/* cpulist.h - private to topo: lists of cpus as text. */
#ifndef TOPO_CPULIST_H
#define TOPO_CPULIST_H

#include <hwloc.h>
#include <stdbool.h>

/* "0-3,8" into set. Text from a user or another process: false for anything else, an empty list and numbers past any machine's included. */
bool topo_cpulist_parse(const char *text, hwloc_bitmap_t set);

#endif
