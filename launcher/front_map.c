/* front_map.c - from options and nodes to the map of ranks, and showing it. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/display.h"
#include "runtime/base/base.h"

#include <stdio.h>

/* Ranks of each program; without -n as many as there is room for. */
static int *count_ranks(const struct front *front, const struct map_request *request, const struct map_node *nodes,
                        int node_count)
{
    int *ranks = base_calloc(AREA_LAUNCHER, (size_t)front->options.app_count, sizeof *ranks);
    long room = map_room(request, nodes, node_count);
    if (room > MAP_MAX_RANKS) room = MAP_MAX_RANKS;
    for (int i = 0; ranks && i < front->options.app_count; i++)
        ranks[i] = front->options.apps[i].ranks ? front->options.apps[i].ranks : (int)room;
    return ranks;
}

int front_map_ranks(struct front *front, const struct map_node *nodes, int node_count)
{
    const struct options *options = &front->options;
    struct map_request request = {.app_count = options->app_count,
                                  .by = options->by,
                                  .by_level = options->by_level,
                                  .per = options->per,
                                  .bind = options->bind,
                                  .bind_level = options->bind_level,
                                  .oversubscribe = options->oversubscribe};
    int *ranks = count_ranks(front, &request, nodes, node_count);
    if (!ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map");
    request.app_ranks = ranks;
    int code = map_compute(&request, nodes, node_count, &front->map);
    base_free(AREA_LAUNCHER, ranks);
    return code;
}

static void to_stdout(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

static void to_user(void *arg, const char *line)
{
    (void)arg;
    front_say("%s", line);
}

void front_display(struct front *front, const struct map_node *nodes, int node_count, unsigned what, bool on_stdout)
{
    const char **programs = base_calloc(AREA_LAUNCHER, (size_t)front->options.app_count, sizeof *programs);
    if (!programs) return;
    for (int i = 0; i < front->options.app_count; i++) programs[i] = front->options.apps[i].argv[0];
    struct display display = {.map = &front->map,
                              .nodes = nodes,
                              .node_count = node_count,
                              .programs = programs,
                              .line = on_stdout ? to_stdout : to_user};
    if (what & OPTIONS_ALLOCATION) display_allocation(&display);
    if (what & OPTIONS_MAP) display_map(&display);
    if (what & OPTIONS_BINDINGS) display_bindings(&display);
    if (what & OPTIONS_PIDS && front->pids) display_pids(&display, front->pids);
    if (what & OPTIONS_PLACES && front->pids) display_places(&display, front->pids);
    base_free(AREA_LAUNCHER, programs);
}
