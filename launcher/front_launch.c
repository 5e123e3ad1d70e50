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
#define LAUNCH_FILES_SPARE 48   /* the daemon's own, and PMIx' */

extern char **environ;

/* The variables of ncclx that one program's ranks will read. */
static int check_variables(const struct options_app *app)
{
    struct base_config config;
    char **environment = environment_compose(environ, app->settings, app->setting_count);
    if (!environment) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment");
    int code = base_config_load(&config, environment);
    if (!code) base_config_release(&config);
    base_free(AREA_LAUNCHER, environment);
    return code;
}

int front_check_variables(const struct front *front)
{
    int code = NCCLX_SUCCESS;
    for (int i = 0; i < front->options.app_count && !code; i++) code = check_variables(&front->options.apps[i]);
    return code;
}

/* Better said now than half way through. */
static int check_node(const struct front *front, const struct front_node *place)
{
    const char *name = front->nodes[place->node].name;
    int ranks = front->map.local_size[place->node];
    int each = LAUNCH_FILES_PER_RANK + (front->options.input == OPTIONS_STDIN_ALL);
    int below = tree_child_count(&front->order.tree.shape, (int)(place - front->places));
    bool starts = front->order.tree.start == TREE_START_EACH;
    int link = 1 + (starts ? agents_descriptors(below, place->file_limit) : 0);
    long files = (long)ranks * each + (long)below * link + LAUNCH_FILES_SPARE;
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

static int check_limits(const struct front *front)
{
    int code, ranks = front->map.rank_count;
    for (int i = 0; i < front->node_count; i++)
        if ((code = check_node(front, &front->places[i]))) return code;
    if (front->options.input == OPTIONS_STDIN_RANK && front->options.input_rank >= ranks)
        return base_error(NCCLX_ERR_ARG, "--stdin: there is no rank %d among %d", front->options.input_rank, ranks);
    return NCCLX_SUCCESS;
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

/* Lasts until the order is written. */
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

static void release_apps(struct message_app *apps, int count)
{
    for (int i = 0; apps && i < count; i++) {
        for (int j = 0; j < apps[i].setting_count; j++)
            base_free(AREA_LAUNCHER, (char *)(uintptr_t)apps[i].settings[j]);
        base_free(AREA_LAUNCHER, apps[i].settings);
        base_free(AREA_LAUNCHER, apps[i].argv);
    }
    base_free(AREA_LAUNCHER, apps);
}

static enum message_input choose_input(const struct front *front)
{
    const struct options *options = &front->options;
    if (options->input == OPTIONS_STDIN_NONE) return MESSAGE_INPUT_NONE;
    if (options->input == OPTIONS_STDIN_ALL || !front->local_root) return MESSAGE_INPUT_FORWARDED;
    bool here = front->map.ranks[options->input_rank].node == front->places[0].node;
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

static int send_order(struct front *front)
{
    const struct options *options = &front->options;
    struct frame_writer writer;
    struct message_launch launch = {.job = front->job,
                                    .oversubscribed = front->map.oversubscribed,
                                    .radix = front->order.tree.shape.radix,
                                    .app_count = options->app_count,
                                    .environment = environ,
                                    .ranks = front->map.ranks,
                                    .rank_count = front->map.rank_count,
                                    .kill_grace_ns = options->kill_grace_ns,
                                    .input = choose_input(front),
                                    .input_rank = options->input == OPTIONS_STDIN_ALL ? -1 : options->input_rank};
    launch.apps = base_calloc(AREA_LAUNCHER, (size_t)options->app_count, sizeof *launch.apps);
    int code = launch.apps ? list_nodes(front, &launch)
                           : base_error(NCCLX_ERR_NO_MEM, "memory is short for the launch order");
    for (int i = 0; i < options->app_count && !code; i++) code = fill_app(&options->apps[i], &launch.apps[i]);
    if (!code) {
        message_write_launch(&writer, &launch);
        front_send(front, &writer);
        if (launch.input == MESSAGE_INPUT_FORWARDED &&
            (code = input_open(front->base, on_input, front, &front->input)) == NCCLX_SUCCESS)
            input_want(front->input);
    }
    release_apps(launch.apps, options->app_count);
    base_free(AREA_LAUNCHER, launch.nodes);
    base_free(AREA_LAUNCHER, launch.positions);
    return code;
}

int front_launch(struct front *front)
{
    int code;
    if ((code = front_map_ranks(front, front->nodes, front->node_count)) || (code = check_limits(front))) return code;
    front->pids = base_calloc(AREA_LAUNCHER, (size_t)front->map.rank_count, sizeof *front->pids);
    if (!front->pids) return base_error(NCCLX_ERR_NO_MEM, "memory is short for %d ranks", front->map.rank_count);
    if ((code = front_open_output(front))) return code;
    front_display(front, front->nodes, front->node_count, front->options.display & ~(unsigned)OPTIONS_PIDS, false);
    front->running = front->map.rank_count;
    if (MPIR_being_debugged) setenv("NCCLX_DEBUG_WAIT", "all", 0);
    return send_order(front);
}
