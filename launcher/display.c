/* display.c - see display.h. */
#include "launcher/display.h"

#include "runtime/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 2048

static void print(const struct display *display, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(const struct display *display, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    display->line(display->arg, line);
}

static const char *plural(long count)
{
    return count == 1 ? "" : "s";
}

void display_allocation(const struct display *display)
{
    long slots = 0;
    for (int i = 0; i < display->node_count; i++) slots += map_slots(&display->nodes[i]);
    print(display, "allocation of %d host%s with %ld slot%s", display->node_count, plural(display->node_count), slots,
          plural(slots));
    for (int i = 0; i < display->node_count; i++) {
        const struct map_node *node = &display->nodes[i];
        int count = map_slots(node);
        print(display, "  node %s: %d slot%s, %d core%s, %d cpu%s, %d GPU%s", node->name, count, plural(count),
              map_objects(node, MAP_CORE), plural(map_objects(node, MAP_CORE)), node->cpu_count,
              plural(node->cpu_count), node->gpu_count, plural(node->gpu_count));
    }
}

/* The ranks of one node, as "0-3,8", in room that grows with what a node has. */
struct node_ranks {
    char text[LINE_BYTES / 2];
    size_t length;
    int first, last;
};

static void close_range(struct node_ranks *ranks)
{
    if (ranks->first < 0) return;
    size_t room = sizeof ranks->text - ranks->length;
    const char *comma = ranks->length ? "," : "";
    int written = ranks->first == ranks->last
                      ? snprintf(ranks->text + ranks->length, room, "%s%d", comma, ranks->first)
                      : snprintf(ranks->text + ranks->length, room, "%s%d-%d", comma, ranks->first, ranks->last);
    if (written > 0 && (size_t)written < room)
        ranks->length += (size_t)written;
    else
        memcpy(ranks->text + sizeof ranks->text - 4, "...", 4);
}

static void add_rank(struct node_ranks *ranks, int rank)
{
    if (ranks->first >= 0 && rank == ranks->last + 1) {
        ranks->last = rank;
        return;
    }
    close_range(ranks);
    ranks->first = ranks->last = rank;
}

static void display_nodes(const struct display *display, const int *first, const int *next, const pid_t *pids)
{
    (void)pids;
    for (int i = 0; i < display->node_count; i++) {
        struct node_ranks ranks = {.first = -1, .last = -1};
        int slots = map_slots(&display->nodes[i]), count = display->map->local_size[i];
        for (int rank = first[i]; rank >= 0; rank = next[rank]) add_rank(&ranks, rank);
        close_range(&ranks);
        print(display, "  node %s: %d slot%s, %d rank%s%s%s%s", display->nodes[i].name, slots, plural(slots), count,
              plural(count), count ? ": " : "", ranks.text, display->map->oversubscribed[i] ? ", oversubscribed" : "");
    }
}

/* Calls `each` with the ranks of each node as lists: `first` of a node, and `next` of each rank; -1 ends them. */
static void visit_nodes(const struct display *display,
                        void (*each)(const struct display *, const int *, const int *, const pid_t *),
                        const pid_t *pids)
{
    const struct map *map = display->map;
    int *first = base_alloc(AREA_LAUNCHER, (size_t)display->node_count * sizeof *first);
    int *next = base_alloc(AREA_LAUNCHER, (size_t)map->rank_count * sizeof *next);
    for (int i = 0; first && i < display->node_count; i++) first[i] = -1;
    for (int rank = map->rank_count - 1; first && next && rank >= 0; rank--) {
        next[rank] = first[map->ranks[rank].node];
        first[map->ranks[rank].node] = rank;
    }
    if (first && next) each(display, first, next, pids);
    base_free(AREA_LAUNCHER, first);
    base_free(AREA_LAUNCHER, next);
}

void display_map(const struct display *display)
{
    const struct map *map = display->map;
    print(display, "map of %d rank%s on %d node%s", map->rank_count, plural(map->rank_count), display->node_count,
          plural(display->node_count));
    visit_nodes(display, display_nodes, NULL);
    for (int i = 0; i < map->rank_count; i++) {
        const struct map_rank *rank = &map->ranks[i];
        print(display, "  rank %s%d: node %s, local rank %d, program %d (%.200s), cpus %.1000s%s%s", display->label, i,
              display->nodes[rank->node].name, rank->local_rank, rank->app, display->programs[rank->app],
              rank->cpus ? rank->cpus : "any", rank->gpu ? ", GPU " : "", rank->gpu ? rank->gpu : "");
    }
}

void display_bindings(const struct display *display)
{
    for (int i = 0; i < display->map->rank_count; i++) {
        const struct map_rank *rank = &display->map->ranks[i];
        print(display, "rank %s%d on %s is %s%.1000s%s%s", display->label, i, display->nodes[rank->node].name,
              rank->cpus ? "bound to cpus " : "not bound", rank->cpus ? rank->cpus : "", rank->gpu ? ", uses GPU " : "",
              rank->gpu ? rank->gpu : "");
    }
}

void display_pids(const struct display *display, const pid_t *pids)
{
    for (int i = 0; i < display->map->rank_count; i++) {
        const struct map_rank *rank = &display->map->ranks[i];
        if (pids[i] <= 0) continue;
        print(display, "rank %s%d on %s is process %d (%.200s)", display->label, i, display->nodes[rank->node].name,
              (int)pids[i], display->programs[rank->app]);
    }
}

/* As many to a line as fit. */
static void display_running(const struct display *display, const int *first, const int *next, const pid_t *pids)
{
    for (int i = 0; i < display->node_count; i++) {
        char line[160] = "";
        size_t used = 0;
        for (int rank = first[i]; rank >= 0; rank = next[rank]) {
            if (pids[rank] <= 0) continue;
            used += (size_t)snprintf(line + used, sizeof line - used, "%srank %s%d is process %d", used ? ", " : "",
                                     display->label, rank, (int)pids[rank]);
            if (used < sizeof line - 48) continue;
            print(display, "on %s: %s", display->nodes[i].name, line);
            used = 0;
        }
        if (used) print(display, "on %s: %s", display->nodes[i].name, line);
    }
}

void display_places(const struct display *display, const pid_t *pids)
{
    visit_nodes(display, display_running, pids);
}
