/* display.h - what --display and --dry-run print, line by line. Pure. */
#ifndef LAUNCHER_DISPLAY_H
#define LAUNCHER_DISPLAY_H

#include "launcher/map.h"

#include <sys/types.h>

/* Takes one line, without its end. */
typedef void (*display_fn)(void *arg, const char *line);

struct display {
    const struct map *map; /* null for the allocation */
    const struct map_node *nodes;
    int node_count;
    const char *const *programs; /* by number */
    const char *label;           /* stands before the number of a rank; "" */
    display_fn line;
    void *arg;
};

/* The hosts, with their slots, cpus and GPUs. */
void display_allocation(const struct display *display);
/* The ranks of each node, and then each rank. */
void display_map(const struct display *display);
void display_bindings(const struct display *display);
/* The processes, as what attaches to them wants to know. */
void display_pids(const struct display *display, const pid_t *pids);

/* The same for a glance: those that run, host by host. */
void display_places(const struct display *display, const pid_t *pids);

#endif
