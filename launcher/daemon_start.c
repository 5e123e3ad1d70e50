/* daemon_start.c - carrying out a launch order: one process after the other, each with its streams, environment and cpus. */
#include "config.h"

#include "launcher/daemon.h"

#include "launcher/environment.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_EXTRA_VARIABLES 64 /* that PMIx adds for one rank */

/* What ranks of one program share. */
struct start_app {
    struct child_program program;
    char **environment;
    int entries; /* of environment, without those of one rank */
};

static void refuse(struct daemon *daemon, int status)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_REFUSED);
    frame_put_u32(&writer, (uint32_t)status);
    frame_put_text(&writer, base_error_detail());
    link_send(daemon->link, &writer);
}

static int prepare_app(struct daemon *daemon, int index, struct start_app *app)
{
    const struct message_app *order = &daemon->launch.apps[index];
    app->environment = environment_compose(daemon->launch.environment, order->settings, order->setting_count, START_EXTRA_VARIABLES);
    if (!app->environment) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment of %s", order->argv[0]);
    while (app->environment[app->entries]) app->entries++;
    return child_find_program(order->argv[0], app->environment, &app->program);
}

static void release_app(struct start_app *app)
{
    child_release_program(&app->program);
    base_free(AREA_LAUNCHER, app->environment);
}

/* Says what failed; returns the exit status of the job, as a shell gives it. */
static int explain(const struct daemon *daemon, const struct message_app *order, int rank, enum child_step step, int error)
{
    const char *program = order->argv[0], *why = strerror(error);
    switch (step) {
    case CHILD_PROGRAM:
        base_error(NCCLX_ERR_ARG, "cannot run '%.200s' on %s: %s", program, daemon->node, why);
        return error == ENOENT || error == ENOTDIR ? 127 : 126;
    case CHILD_DIRECTORY: base_error(NCCLX_ERR_ARG, "cannot enter the directory '%.200s' on %s: %s", order->directory, daemon->node, why); return 2;
    case CHILD_BIND:
        base_error(NCCLX_ERR_ARG, "cannot bind rank %d on %s to cpus %s: %s", rank, daemon->node, daemon->launch.ranks[rank].cpus, why);
        return 1;
    default:
        base_error(NCCLX_ERR_LIMIT, "cannot start rank %d on %s: %s; fewer ranks, or a larger limit of processes (ulimit -u)", rank, daemon->node, why);
        return 1;
    }
}

static bool wants_forwarded_input(const struct message_launch *launch, int rank)
{
    return launch->input == MESSAGE_INPUT_FORWARDED && (launch->input_rank < 0 || launch->input_rank == rank);
}

/* Starts one rank. Returns 0, or the exit status of the job with the reason recorded. */
static int start_rank(struct daemon *daemon, struct daemon_rank *rank, struct start_app *app, int null_fd)
{
    const struct message_launch *launch = &daemon->launch;
    const struct map_rank *mapped = &launch->ranks[rank->rank];
    const struct message_app *order = &launch->apps[mapped->app];
    struct child child = {.program = &app->program, .argv = order->argv, .environment = app->environment, .directory = order->directory,
                          .files = daemon->files};
    char **variables = NULL;
    child.stdio[0] = launch->input == MESSAGE_INPUT_DIRECT && launch->input_rank == rank->rank ? STDIN_FILENO : null_fd;
    if (daemon_open_streams(rank, child.stdio, wants_forwarded_input(launch, rank->rank))) return 1;
    int status = server_environment(daemon->server, rank->rank, &variables) ? 1 : 0;
    int added = 0;
    for (; variables && variables[added] && added < START_EXTRA_VARIABLES; added++) app->environment[app->entries + added] = variables[added];
    app->environment[app->entries + added] = NULL;
    cpu_set_t *cpus = mapped->cpus ? cpus_set(mapped->cpus, &child.cpus_bytes) : NULL;
    child.cpus = cpus;
    int error = 0;
    enum child_step step = status ? CHILD_FORK : child_start(&child, &rank->pid, &error);
    if (cpus) CPU_FREE(cpus);
    server_free_environment(variables);
    for (int i = 0; i < 3; i++)
        if (child.stdio[i] > STDERR_FILENO && child.stdio[i] != null_fd) close(child.stdio[i]);
    if (status) return status;
    if (step == CHILD_STARTED) {
        rank->running = true;
        daemon->running++;
        return 0;
    }
    if (step != CHILD_FORK) waitpid(rank->pid, NULL, 0);
    return explain(daemon, order, rank->rank, step, error);
}

static int make_ranks(struct daemon *daemon)
{
    const struct message_launch *launch = &daemon->launch;
    for (int i = 0; i < launch->rank_count; i++) daemon->rank_count += launch->ranks[i].node == launch->node;
    daemon->ranks = base_calloc(AREA_LAUNCHER, (size_t)daemon->rank_count, sizeof *daemon->ranks);
    if (!daemon->ranks) {
        daemon->rank_count = 0;
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for %d ranks", launch->rank_count);
    }
    for (int i = 0, at = 0; i < launch->rank_count; i++) {
        if (launch->ranks[i].node != launch->node) continue;
        struct daemon_rank *rank = &daemon->ranks[at++];
        *rank = (struct daemon_rank){.daemon = daemon, .rank = i, .input_fd = -1};
        for (int j = 0; j < 2; j++) rank->streams[j] = (struct daemon_stream){.rank = rank, .fd = -1, .descriptor = j + 1};
    }
    return NCCLX_SUCCESS;
}

static void tell_started(struct daemon *daemon)
{
    struct frame_writer writer;
    int started = 0;
    for (int i = 0; i < daemon->rank_count; i++) started += daemon->ranks[i].running;
    frame_begin(&writer, MESSAGE_STARTED);
    frame_put_u32(&writer, (uint32_t)started);
    for (int i = 0; i < daemon->rank_count; i++) {
        if (!daemon->ranks[i].running) continue;
        frame_put_u32(&writer, (uint32_t)daemon->ranks[i].rank);
        frame_put_u32(&writer, (uint32_t)daemon->ranks[i].pid);
    }
    link_send(daemon->link, &writer);
}

/* Returns 0, or the exit status with which the job ends. */
static int start_all(struct daemon *daemon, struct start_app *apps)
{
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), status = 0;
    if (null_fd < 0 || make_ranks(daemon)) return 1;
    for (int i = 0; i < daemon->launch.app_count && !status; i++) status = prepare_app(daemon, i, &apps[i]) ? 1 : 0;
    for (int i = 0; i < daemon->rank_count && !status; i++)
        status = start_rank(daemon, &daemon->ranks[i], &apps[daemon->launch.ranks[daemon->ranks[i].rank].app], null_fd);
    close(null_fd);
    return status;
}

void daemon_start_ranks(struct daemon *daemon)
{
    struct start_app *apps = base_calloc(AREA_LAUNCHER, (size_t)daemon->launch.app_count, sizeof *apps);
    int status = apps ? start_all(daemon, apps) : 1;
    for (int i = 0; apps && i < daemon->launch.app_count; i++) release_app(&apps[i]);
    base_free(AREA_LAUNCHER, apps);
    if (status) refuse(daemon, status);
    tell_started(daemon);
    if (status) daemon_end(daemon, true);
    event_active(daemon->reap, EV_READ, 0); /* none may be running */
}
