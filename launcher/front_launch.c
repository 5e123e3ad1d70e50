/* front_launch.c - maps the ranks onto the node the daemon described, and writes the launch order. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/agent.h"
#include "launcher/environment.h"
#include "launcher/front_mpir.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAUNCH_FILES_PER_RANK 3 /* two pipes and the PMIx connection; one more when all read standard input */
#define LAUNCH_FILES_SPARE 48   /* the daemon's own, and PMIx'; one more for the memory of each further job */

extern char **environ;

int front_check_settings(const char *const *settings, int count)
{
    struct base_config config;
    char **environment = environment_compose(environ, settings, count);
    if (!environment) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment");
    int code = base_config_load(&config, environment);
    if (!code) base_config_release(&config);
    base_free(AREA_LAUNCHER, environment);
    return code;
}

int front_check_variables(const struct front *front)
{
    int code = NCCLX_SUCCESS;
    if (front->options.port_range) setenv("NCCLX_PORT_RANGE", front->options.port_range, 0);
    for (int i = 0; i < front->options.app_count && !code; i++)
        code = front_check_settings(front->options.apps[i].settings, front->options.apps[i].setting_count);
    return code;
}

/* Better said now than half way through. */
static int check_node(const struct front *front, const struct front_node *place, int ranks)
{
    const char *name = front->nodes[place->node].name;
    int each = LAUNCH_FILES_PER_RANK + (front->options.input == OPTIONS_STDIN_ALL);
    int below = tree_child_count(&front->order.tree.shape, (int)(place - front->places));
    bool starts = front->order.tree.start == TREE_START_EACH;
    int link = 1 + (starts ? agents_descriptors(below, place->file_limit) : 0);
    long files = (long)ranks * each + (long)below * link + jobs_count(front->jobs) + LAUNCH_FILES_SPARE;
    if (files > place->file_limit)
        return base_error(
            NCCLX_ERR_LIMIT,
            "%d ranks on %s need %ld open files, the limit is %d: start fewer ranks or raise it (ulimit -Hn)", ranks,
            name, files, place->file_limit);
    if (place->process_limit && ranks + 2 > place->process_limit)
        return base_error(
            NCCLX_ERR_LIMIT,
            "%d ranks on %s need more processes than the limit of %d: start fewer ranks or raise it (ulimit -u)", ranks,
            name, place->process_limit);
    return NCCLX_SUCCESS;
}

int front_check_limits(const struct front *front, const struct front_job *job)
{
    int *ranks = front_count_taken(front), code = NCCLX_SUCCESS;
    if (!ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map");
    for (int i = 0; i < front->node_count && !code; i++) {
        const struct front_node *place = &front->places[i];
        code = check_node(front, place, ranks[place->node] + job->map.local_size[place->node]);
    }
    base_free(AREA_LAUNCHER, ranks);
    return code;
}

/* "-x NAME" passes the launcher's value on: NAME=value. Null when it has none, or memory is short. */
static char *inherited_setting(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        front_say("warning: -x %s: there is no such variable", name);
        return NULL;
    }
    size_t bytes = strlen(name) + strlen(value) + 2;
    char *setting = base_alloc(AREA_LAUNCHER, bytes);
    if (setting) snprintf(setting, bytes, "%s=%s", name, value);
    return setting;
}

static int fill_app(const struct options_app *from, struct message_app *to)
{
    to->argv = base_calloc(AREA_LAUNCHER, (size_t)from->argc + 1, sizeof *to->argv);
    to->settings = base_calloc(AREA_LAUNCHER, (size_t)from->setting_count, sizeof *to->settings);
    if (!to->argv || !to->settings) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the launch order");
    memcpy(to->argv, from->argv, (size_t)from->argc * sizeof *to->argv);
    to->directory = from->directory;
    for (int i = 0; i < from->setting_count; i++) {
        bool whole = strchr(from->settings[i], '=') != NULL;
        char *setting = whole ? base_strdup(AREA_LAUNCHER, from->settings[i]) : inherited_setting(from->settings[i]);
        if (setting) to->settings[to->setting_count++] = setting;
    }
    return NCCLX_SUCCESS;
}

int front_list_programs(struct front *front)
{
    const struct options *options = &front->options;
    struct front_job *job = &front->user;
    int code = NCCLX_SUCCESS;
    job->apps = base_calloc(AREA_LAUNCHER, (size_t)options->app_count, sizeof *job->apps);
    if (!job->apps) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the launch order");
    for (; job->app_count < options->app_count && !code; job->app_count++)
        code = fill_app(&options->apps[job->app_count], &job->apps[job->app_count]);
    return code;
}

static enum message_input choose_input(const struct front *front)
{
    const struct options *options = &front->options;
    if (options->input == OPTIONS_STDIN_NONE) return MESSAGE_INPUT_NONE;
    if (options->input == OPTIONS_STDIN_ALL || !front->local_root) return MESSAGE_INPUT_FORWARDED;
    bool here = front->user.map.ranks[options->input_rank].node == front->places[0].node;
    /* A terminal is not handed over: its new owner would read also while the job is in the background. */
    return here && !isatty(STDIN_FILENO) ? MESSAGE_INPUT_DIRECT : MESSAGE_INPUT_FORWARDED;
}

static void on_input(void *arg, const void *bytes, size_t count)
{
    struct front *front = arg;
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_INPUT);
    frame_put_bytes(&writer, bytes, count);
    front_send(front, &writer);
}

/* Names, and places in the tree, of all nodes. */
static int list_nodes(const struct front *front, struct message_launch *launch)
{
    launch->node_count = front->node_count;
    launch->nodes = base_calloc(AREA_LAUNCHER, (size_t)front->node_count, sizeof *launch->nodes);
    launch->positions = base_calloc(AREA_LAUNCHER, (size_t)front->node_count, sizeof *launch->positions);
    if (!launch->nodes || !launch->positions)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the launch order");
    for (int i = 0; i < front->node_count; i++) {
        launch->nodes[i] = front->nodes[i].name;
        launch->positions[front->places[i].node] = i;
    }
    return NCCLX_SUCCESS;
}

int front_launch_job(struct front *front, struct front_job *job)
{
    const struct options *options = &front->options;
    struct frame_writer writer;
    bool first = job == &front->user;
    struct message_launch launch = {.job = job->name,
                                    .first = job->job->first,
                                    .parent = job->job->parent,
                                    .notify = job->request.notify,
                                    .oversubscribed = job->map.oversubscribed,
                                    .radix = front->order.tree.shape.radix,
                                    .apps = job->apps,
                                    .app_count = job->app_count,
                                    .environment = environ,
                                    .ranks = job->map.ranks,
                                    .rank_count = job->map.rank_count,
                                    .kill_grace_ns = options->kill_grace_ns,
                                    .input = first ? choose_input(front) : MESSAGE_INPUT_NONE,
                                    .input_rank = options->input == OPTIONS_STDIN_ALL ? -1 : options->input_rank};
    if (!first) launch.input_rank = 0;
    job->pids = base_calloc(AREA_LAUNCHER, (size_t)job->map.rank_count, sizeof *job->pids);
    int code = job->pids ? list_nodes(front, &launch)
                         : base_error(NCCLX_ERR_NO_MEM, "memory is short for %d ranks", job->map.rank_count);
    if (!code) code = output_add(front->output, job->job->first, job->map.rank_count, job->label);
    if (!code) {
        front_display(job, front->nodes, options->display & ~(unsigned)OPTIONS_PIDS, false);
        message_write_launch(&writer, &launch);
        front_send(front, &writer);
        for (int i = 1; i <= 2; i++)
            if (front->closed[i]) front_close_output(front, i);
    }
    if (!code && launch.input == MESSAGE_INPUT_FORWARDED &&
        (code = input_open(front->base, on_input, front, &front->input)) == NCCLX_SUCCESS)
        input_want(front->input);
    base_free(AREA_LAUNCHER, launch.nodes);
    base_free(AREA_LAUNCHER, launch.positions);
    return code;
}

int front_launch(struct front *front)
{
    struct front_job *job = &front->user;
    const struct options *options = &front->options;
    int code;
    if ((code = front_list_programs(front)) || (code = front_map_ranks(front, front->nodes, front->node_count)) ||
        (code = front_check_limits(front, job)))
        return code;
    if (options->input == OPTIONS_STDIN_RANK && options->input_rank >= job->map.rank_count)
        return base_error(NCCLX_ERR_ARG, "--stdin: there is no rank %d among %d", options->input_rank,
                          job->map.rank_count);
    job->job = jobs_add(front->jobs, job->map.rank_count, -1, job);
    if (!job->job) return NCCLX_ERR_NO_MEM;
    snprintf(job->name, sizeof job->name, "%s", front->job);
    if ((code = front_open_output(front))) return code;
    if (MPIR_being_debugged) setenv("NCCLX_DEBUG_WAIT", "all", 0);
    return front_launch_job(front, job);
}
