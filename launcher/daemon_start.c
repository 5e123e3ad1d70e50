/* daemon_start.c - carrying out a launch order: a process for each rank, with its streams, environment and cpus. */
#include "config.h"

#include "launcher/daemon.h"

#include "launcher/environment.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_BATCH 16
#define START_TURN_NS (BASE_NS_PER_S / 10)

/* What ranks of one program share. */
struct start_app {
    struct child_program program;
    char **environment;
    int entries; /* of environment, without those of one rank */
};

static int prepare_app(struct daemon_job *job, int index, struct start_app *app)
{
    const struct daemon *daemon = job->daemon;
    const struct message_app *order = &job->launch.apps[index];
    bool elsewhere = order->directory && order->directory[0] == '/';
    if (daemon->lost_directory && !elsewhere)
        return base_error(NCCLX_ERR_ARG, "cannot enter the directory '%.200s' on %s: %s", daemon->order->directory,
                          daemon->node, daemon->lost_directory);
    app->environment = environment_compose(job->launch.environment, order->settings, order->setting_count);
    if (!app->environment)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment of %s", order->argv[0]);
    while (app->environment[app->entries]) app->entries++;
    return child_find_program(order->argv[0], app->environment, &app->program);
}

static void release_app(struct start_app *app)
{
    child_release_program(&app->program);
    base_free(AREA_LAUNCHER, app->environment);
}

/* The kernel's word for why a program cannot run misleads in three cases that everybody meets. */
static const char *explain_program(const struct message_app *order, int error)
{
    struct stat status = {.st_mode = 0};
    int directory = order->directory ? open(order->directory, O_PATH | O_CLOEXEC) : AT_FDCWD;
    bool there = strchr(order->argv[0], '/') && !fstatat(directory, order->argv[0], &status, 0);
    if (directory >= 0) close(directory);
    if (there && S_ISDIR(status.st_mode)) return strerror(EISDIR);
    if (there && error == ENOENT) return "it is there, but the interpreter in its first line, or its loader, is not";
    if (error == ENOEXEC) return "Exec format error; a script begins with a line #!INTERPRETER";
    return strerror(error);
}

/* Says what failed; returns the exit status of the job, as a shell gives it. */
static int explain(const struct daemon_rank *rank, enum child_step step, int error)
{
    const struct message_launch *launch = &rank->job->launch;
    const struct daemon *daemon = rank->job->daemon;
    const struct message_app *order = &launch->apps[launch->ranks[rank->rank].app];
    char name[MESSAGE_RANK_BYTES];
    message_name_rank(launch, rank->rank, name, sizeof name);
    const char *program = order->argv[0], *why = strerror(error);
    switch (step) {
    case CHILD_PROGRAM:
        base_error(NCCLX_ERR_ARG, "cannot run '%.200s' on %s: %s", program, daemon->node, explain_program(order, error));
        return error == ENOENT || error == ENOTDIR ? 127 : 126;
    case CHILD_DIRECTORY:
        base_error(NCCLX_ERR_ARG, "cannot enter the directory '%.200s' on %s: %s", order->directory, daemon->node, why);
        return 2;
    case CHILD_BIND:
        base_error(NCCLX_ERR_ARG, "cannot bind %s on %s to cpus %s: %s", name, daemon->node,
                   launch->ranks[rank->rank].cpus, why);
        return 1;
    default:
        base_error(NCCLX_ERR_LIMIT,
                   "cannot start %s on %s: %s; fewer ranks, or a larger limit of processes (ulimit -u)", name,
                   daemon->node, why);
        return 1;
    }
}

static bool wants_forwarded_input(const struct message_launch *launch, int rank)
{
    return launch->input == MESSAGE_INPUT_FORWARDED && (launch->input_rank < 0 || launch->input_rank == rank);
}

/* What starting one rank takes, until it runs. */
struct start_rank {
    struct daemon_rank *rank;
    struct child_job job;
    char **variables;   /* from PMIx, malloc'ed */
    char **environment; /* with the program's variables; pointers only */
    char gpu[MAP_GPU_BYTES + sizeof "CUDA_VISIBLE_DEVICES="];
    cpu_set_t *cpus;
};

/* The rank sees this one only. Numbers of our own are those of the PCI order; a list of the user's has his. */
static void choose_gpu(struct start_rank *start, const char *gpu)
{
    if (!gpu) return;
    snprintf(start->gpu, sizeof start->gpu, "CUDA_VISIBLE_DEVICES=%s", gpu);
    environment_set(start->environment, start->gpu);
    if (!getenv("CUDA_VISIBLE_DEVICES")) environment_set(start->environment, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

static int prepare_environment(struct start_rank *start, const struct start_app *app)
{
    const struct daemon_rank *rank = start->rank;
    int code = server_environment(rank->job->daemon->server, daemon_number(rank), &start->variables);
    if (code) return code;
    size_t added = 0;
    while (start->variables[added]) added++;
    start->environment = base_calloc(AREA_LAUNCHER, (size_t)app->entries + added + 3, sizeof *start->environment);
    if (!start->environment)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment of rank %d", rank->rank);
    memcpy(start->environment, app->environment, (size_t)app->entries * sizeof *start->environment);
    memcpy(start->environment + app->entries, start->variables, added * sizeof *start->environment);
    choose_gpu(start, rank->job->launch.ranks[rank->rank].gpu);
    return NCCLX_SUCCESS;
}

static int prepare_rank(struct start_rank *start, struct start_app *app, int null_fd)
{
    const struct daemon *daemon = start->rank->job->daemon;
    const struct message_launch *launch = &start->rank->job->launch;
    int number = start->rank->rank, code;
    const struct map_rank *mapped = &launch->ranks[number];
    const struct message_app *order = &launch->apps[mapped->app];
    struct child *child = &start->job.child;
    *child = (struct child){.program = &app->program,
                            .argv = order->argv,
                            .directory = order->directory,
                            .files = daemon->files,
                            .stdio = {-1, -1, -1}};
    child->stdio[0] = launch->input == MESSAGE_INPUT_DIRECT && launch->input_rank == number ? STDIN_FILENO : null_fd;
    if ((code = daemon_open_streams(start->rank, child->stdio, wants_forwarded_input(launch, number)))) return code;
    if ((code = prepare_environment(start, app))) return code;
    child->environment = start->environment;
    if (!mapped->cpus || daemon->described) return NCCLX_SUCCESS;
    child->cpus = start->cpus = cpus_set(mapped->cpus, &child->cpus_bytes);
    return child->cpus ? NCCLX_SUCCESS
                       : base_error(NCCLX_ERR_ARG, "rank %d cannot be bound to cpus '%.100s'", number, mapped->cpus);
}

static void release_start(struct start_rank *start, int null_fd)
{
    for (int i = 0; i < 3; i++)
        if (start->job.child.stdio[i] > STDERR_FILENO && start->job.child.stdio[i] != null_fd)
            close(start->job.child.stdio[i]);
    if (start->cpus) CPU_FREE(start->cpus);
    base_free(AREA_LAUNCHER, start->environment);
    server_free_environment(start->variables);
}

/* Books what was started. Returns 0, or the exit status with which the job ends. */
static int settle_rank(struct start_rank *start)
{
    struct daemon_rank *rank = start->rank;
    if (!start->job.tried) return 0;
    if (start->job.step == CHILD_STARTED) {
        rank->pid = start->job.pid;
        rank->running = true;
        rank->job->daemon->running++;
        return 0;
    }
    if (start->job.step != CHILD_FORK) waitpid(start->job.pid, NULL, 0);
    return explain(rank, start->job.step, start->job.error);
}

/* Some ranks at a time, side by side: descriptors for all at once may be more than the limit. */
static int start_batch(struct daemon_job *job, struct start_app *apps, int first, int null_fd)
{
    static struct start_rank starts[START_BATCH];
    struct child_job *jobs[START_BATCH];
    int count = job->rank_count - first < START_BATCH ? job->rank_count - first : START_BATCH, status = 0;
    memset(starts, 0, sizeof starts);
    for (int i = 0; i < count; i++) {
        starts[i].rank = &job->ranks[first + i];
        jobs[i] = &starts[i].job;
        if (!status && prepare_rank(&starts[i], &apps[job->launch.ranks[starts[i].rank->rank].app], null_fd))
            status = 1;
    }
    if (!status) child_pool_run(job->daemon->pool, jobs, count);
    for (int i = 0; i < count; i++) {
        int failed = settle_rank(&starts[i]);
        if (!status) status = failed;
        release_start(&starts[i], null_fd);
    }
    return status;
}

static int make_ranks(struct daemon_job *job)
{
    const struct message_launch *launch = &job->launch;
    int count = 0;
    for (int i = 0; i < launch->rank_count; i++) count += launch->ranks[i].node == launch->node;
    job->ranks = base_calloc(AREA_LAUNCHER, (size_t)count, sizeof *job->ranks);
    if (!job->ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for %d ranks", launch->rank_count);
    for (int i = 0; i < launch->rank_count; i++) {
        if (launch->ranks[i].node != launch->node) continue;
        struct daemon_rank *rank = &job->ranks[job->rank_count++];
        *rank = (struct daemon_rank){.job = job, .rank = i, .input_fd = -1};
        for (int j = 0; j < 2; j++)
            rank->streams[j] = (struct daemon_stream){.rank = rank, .fd = -1, .descriptor = j + 1};
    }
    return NCCLX_SUCCESS;
}

/* ---- In turns ---------------------------------------------------------------------------------------------------
 * A thousand processes take many seconds on few cores, because those that run already want them, too. Between turns
 * the event loop does what cannot wait for so long: a sign of life to the neighbours, what ranks ask for, their deaths.
 */

struct daemon_start {
    struct start_app *apps;
    int null_fd;
    int next; /* of this node's ranks */
    int told; /* so many have been reported */
    struct event *turn;
};

/* Of the ranks before `end`; the rest is told later, or never when this is the last that is started. */
static void tell_started(struct daemon_job *job, int end, bool last)
{
    struct daemon_start *start = job->start;
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_STARTED);
    frame_put_u32(&writer, (uint32_t)job->launch.first);
    frame_put_u8(&writer, last);
    frame_put_u32(&writer, (uint32_t)(end - start->told));
    for (; start->told < end; start->told++) {
        const struct daemon_rank *rank = &job->ranks[start->told];
        frame_put_u32(&writer, (uint32_t)daemon_number(rank));
        frame_put_u32(&writer, (uint32_t)rank->pid);
    }
    daemon_send(job->daemon, &writer);
}

static void release(struct daemon_job *job)
{
    struct daemon_start *start = job->start;
    job->start = NULL;
    if (start->turn) event_free(start->turn);
    if (start->null_fd >= 0) close(start->null_fd);
    for (int i = 0; start->apps && i < job->launch.app_count; i++) release_app(&start->apps[i]);
    base_free(AREA_LAUNCHER, start->apps);
    base_free(AREA_LAUNCHER, start);
}

void daemon_stop_start(struct daemon_job *job)
{
    if (!job->start) return;
    tell_started(job, job->rank_count, true);
    for (int i = 0; i < job->rank_count; i++)
        if (!job->ranks[i].pid) daemon_close_streams(&job->ranks[i]);
    release(job);
    daemon_take_held(job->daemon);
    daemon_look_for_end(job->daemon); /* none may be running */
}

void daemon_stop_starts(struct daemon *daemon)
{
    for (struct daemon_job *job = daemon->jobs; job; job = job->next) daemon_stop_start(job);
}

bool daemon_starts(const struct daemon *daemon)
{
    for (const struct daemon_job *job = daemon->jobs; job; job = job->next)
        if (job->start) return true;
    return false;
}

/* Returns 0, or the exit status with which the job fails. */
static int take_turn(struct daemon_job *job)
{
    struct daemon_start *start = job->start;
    uint64_t until = base_clock_ns() + START_TURN_NS;
    int status = 0;
    while (!status && start->next < job->rank_count && base_clock_ns() < until) {
        status = start_batch(job, start->apps, start->next, start->null_fd);
        start->next += START_BATCH;
    }
    if (start->next > job->rank_count) start->next = job->rank_count;
    return status;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval at_once = {.tv_sec = 0}; /* but after a look at everything else */
    struct daemon_job *job = arg;
    (void)fd, (void)what;
    int status = take_turn(job);
    if (status) {
        daemon_fail_job(job, status, base_error_detail());
    } else if (job->start->next < job->rank_count) {
        tell_started(job, job->start->next, false);
        event_add(job->start->turn, &at_once);
    } else {
        daemon_stop_start(job);
    }
}

/* Returns 0, or the exit status with which the job fails. */
static int prepare(struct daemon_job *job)
{
    struct daemon *daemon = job->daemon;
    struct daemon_start *start = job->start;
    start->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    start->turn = evtimer_new(daemon->base, on_turn, job);
    start->apps = base_calloc(AREA_LAUNCHER, (size_t)job->launch.app_count, sizeof *start->apps);
    if (start->null_fd < 0 || !start->turn || !start->apps) {
        base_error(NCCLX_ERR_NO_MEM, "memory or descriptors are short for starting ranks");
        return 1;
    }
    if (daemon_tell_server(job)) return 1;
    for (int i = 0; i < job->launch.app_count; i++)
        if (prepare_app(job, i, &start->apps[i])) return 2;
    bool described = !hwloc_topology_is_thissystem(topo_node_hwloc(daemon->cpus.node));
    if (described && !daemon->described)
        daemon_trouble(daemon, "no rank is bound: this machine is only described (HWLOC_SYNTHETIC or HWLOC_XMLFILE)");
    daemon->described = described;
    return !daemon->pool && child_pool_open(job->rank_count, &daemon->pool) ? 1 : 0;
}

void daemon_start_ranks(struct daemon_job *job)
{
    job->start = base_calloc(AREA_LAUNCHER, 1, sizeof *job->start);
    if (!job->start || make_ranks(job)) { /* nothing that could be told of single ranks */
        base_free(AREA_LAUNCHER, job->start);
        job->start = NULL;
        daemon_refuse(job->daemon, 1, "memory is short for starting ranks");
        return;
    }
    job->start->null_fd = -1;
    int status = prepare(job);
    if (status)
        daemon_fail_job(job, status, base_error_detail());
    else
        on_turn(-1, 0, job);
}
