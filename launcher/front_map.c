/* front_map.c - from options and nodes to the map of ranks, and showing it. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/display.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

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

static struct map_request request_of(const struct options *options)
{
    return (struct map_request){.app_count = options->app_count,
                                .by = options->by,
                                .by_level = options->by_level,
                                .per = options->per,
                                .bind = options->bind,
                                .bind_level = options->bind_level,
                                .oversubscribe = options->oversubscribe};
}

int front_map_ranks(struct front *front, const struct map_node *nodes, int node_count)
{
    struct map_request request = request_of(&front->options);
    int *ranks = count_ranks(front, &request, nodes, node_count);
    if (!ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map");
    request.app_ranks = ranks;
    int code = map_compute(&request, nodes, node_count, &front->user.map);
    base_free(AREA_LAUNCHER, ranks);
    return code;
}

/* ---- Beside other jobs ------------------------------------------------------------------------------------------- */

int *front_count_taken(const struct front *front)
{
    int *taken = base_calloc(AREA_LAUNCHER, (size_t)front->node_count, sizeof *taken);
    for (struct job *job = jobs_first(front->jobs); taken && job; job = job->next) {
        const struct front_job *known = job->data;
        for (int i = 0; i < job->count; i++)
            if (!jobs_has_ended(job, job->first + i)) taken[known->map.ranks[i].node]++;
    }
    return taken;
}

/* All nodes but those of "a,b". NCCLX_ERR_UNREACHABLE: one of these is none of ours. */
static int close_others(const struct front *front, const char *hosts, bool *closed)
{
    char name[MAP_NAME_BYTES];
    for (int i = 0; i < front->node_count; i++)
        closed[i] =
            !spawn_lists_host(hosts, front->nodes[i].name) && !spawn_lists_host(hosts, front->hosts.entries[i].name);
    while (*hosts) {
        size_t length = strcspn(hosts, ",");
        bool found = length == 0;
        snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, hosts);
        for (int i = 0; i < front->node_count && !found; i++)
            found = !strcmp(front->nodes[i].name, name) || !strcmp(front->hosts.entries[i].name, name);
        if (!found)
            return base_error(NCCLX_ERR_UNREACHABLE, "PMIX_HOST: '%.*s' is not among the hosts of ncclxrun",
                              length < 200 ? (int)length : 200, hosts);
        hosts += length + (hosts[length] == ',');
    }
    return NCCLX_SUCCESS;
}

static int map_beside(struct front *front, struct front_job *job, struct map_request *request, int *ranks)
{
    bool *closed = base_calloc(AREA_LAUNCHER, (size_t)front->node_count, sizeof *closed);
    int *taken = front_count_taken(front);
    int code = closed && taken ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "memory is short for the map");
    if (!code && job->request.hosts) code = close_others(front, job->request.hosts, closed);
    request->app_ranks = ranks;
    request->app_count = job->app_count;
    request->taken = taken;
    request->closed = closed;
    if (!code) code = map_compute(request, front->nodes, front->node_count, &job->map);
    base_free(AREA_LAUNCHER, closed);
    base_free(AREA_LAUNCHER, taken);
    return code;
}

int front_map_spawned(struct front *front, struct front_job *job)
{
    struct options options = front->options;
    int code = options_place(&options, job->request.map_by, job->request.bind_to);
    if (code) return base_error(NCCLX_ERR_CONFIG, "%s", base_error_detail());
    struct map_request request = request_of(&options);
    int *ranks = base_calloc(AREA_LAUNCHER, (size_t)job->app_count, sizeof *ranks);
    if (!ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map");
    for (int i = 0; i < job->app_count; i++) ranks[i] = job->request.apps[i].ranks;
    code = map_beside(front, job, &request, ranks);
    base_free(AREA_LAUNCHER, ranks);
    return code;
}

/* ---- For the user ------------------------------------------------------------------------------------------------ */

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

void front_display(const struct front_job *job, const struct map_node *nodes, unsigned what, bool on_stdout)
{
    const char **programs = base_calloc(AREA_LAUNCHER, (size_t)job->app_count, sizeof *programs);
    if (!programs) return;
    for (int i = 0; i < job->app_count; i++) programs[i] = job->apps[i].argv[0];
    struct display display = {.map = &job->map,
                              .nodes = nodes,
                              .node_count = job->map.node_count,
                              .programs = programs,
                              .label = job->label,
                              .line = on_stdout ? to_stdout : to_user};
    if (what & OPTIONS_ALLOCATION) display_allocation(&display);
    if (what & OPTIONS_MAP) display_map(&display);
    if (what & OPTIONS_BINDINGS) display_bindings(&display);
    if (what & OPTIONS_PIDS && job->pids) display_pids(&display, job->pids);
    if (what & OPTIONS_PLACES && job->pids) display_places(&display, job->pids);
    base_free(AREA_LAUNCHER, programs);
}
