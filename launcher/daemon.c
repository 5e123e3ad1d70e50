/* daemon.c - ncclxd: the event loop of a node. Orders come down the tree; deaths of ranks, their output and what they ask
 * the PMIx server go up. */
#include "config.h"

#include "launcher/daemon.h"

#include "launcher/gpus.h"
#include "launcher/scratch.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define DAEMON_AGENTS_MS 3000 /* for agents to end, once their daemons have */

void daemon_say(const char *text)
{
    fprintf(stderr, "ncclxd: %s\n", text);
}

void daemon_send(struct daemon *daemon, struct frame_writer *writer)
{
    wiring_send(daemon->wiring, TREE_PARENT, writer);
}

void daemon_trouble(struct daemon *daemon, const char *text)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_TROUBLE);
    frame_put_text(&writer, text);
    daemon_send(daemon, &writer);
}

void daemon_refuse(struct daemon *daemon, int status, const char *text)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_REFUSED);
    frame_put_u32(&writer, MESSAGE_NO_JOB);
    frame_put_u32(&writer, (uint32_t)status);
    frame_put_text(&writer, text);
    daemon_send(daemon, &writer);
}

void daemon_job_over(struct daemon *daemon)
{
    daemon->phase = DAEMON_DONE;
    if (daemon->ended) return;
    daemon->ended = true;
    if (daemon->unguarded) scratch_remove(daemon->scratch); /* nobody will if this process is killed, too */
    wiring_local_ended(daemon->wiring);
}

int daemon_number(const struct daemon_rank *rank)
{
    return rank->job->launch.first + rank->rank;
}

struct daemon_rank *daemon_find_rank(struct daemon *daemon, int number)
{
    for (struct daemon_job *job = daemon->jobs; job; job = job->next)
        for (int i = 0; i < job->rank_count; i++)
            if (daemon_number(&job->ranks[i]) == number) return &job->ranks[i];
    return NULL;
}

struct daemon_job *daemon_find_job(struct daemon *daemon, int first)
{
    struct daemon_job *job = daemon->jobs;
    while (job && job->launch.first != first) job = job->next;
    return job;
}

static void on_aborted(void *arg, int number, int code, const char *message)
{
    struct daemon *daemon = arg;
    struct frame_writer writer;
    daemon_take_deaths(daemon); /* of which this may be the consequence */
    frame_begin(&writer, MESSAGE_ABORTED);
    frame_put_u32(&writer, (uint32_t)number);
    frame_put_u32(&writer, (uint32_t)code);
    frame_put_text(&writer, message);
    daemon_send(daemon, &writer);
    daemon_end(daemon, false);
}

static void on_logged(void *arg, int number, const char *text)
{
    char line[5000], name[MESSAGE_RANK_BYTES];
    const struct daemon_rank *rank = daemon_find_rank(arg, number);
    if (!rank) return;
    message_name_rank(&rank->job->launch, rank->rank, name, sizeof name);
    snprintf(line, sizeof line, "%s: %s", name, text);
    daemon_trouble(arg, line);
}

static void on_signal_asked(void *arg, int rank, int number)
{
    const struct daemon_rank *target = daemon_find_rank(arg, rank);
    if (target && target->running) kill(-target->pid, number);
}

static void on_spawn(void *arg, const void *data, size_t bytes)
{
    struct daemon *daemon = arg;
    struct frame frame;
    if (frame_parse(data, bytes, &frame) == NCCLX_SUCCESS) wiring_pass(daemon->wiring, TREE_PARENT, &frame);
}

static void on_server_trouble(void *arg, const char *text)
{
    daemon_trouble(arg, text);
}

static void on_server_failed(void *arg, const char *text)
{
    daemon_refuse(arg, 1, text);
    daemon_end(arg, false);
}

static void on_upcall(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    (void)fd, (void)what;
    server_dispatch(daemon->server);
}

int daemon_start_server(struct daemon *daemon, const struct message_launch *launch, const char *segment)
{
    static const struct server_events events = {.aborted = on_aborted,
                                                .logged = on_logged,
                                                .send = daemon_send_to_server,
                                                .signal = on_signal_asked,
                                                .spawn = on_spawn,
                                                .trouble = on_server_trouble,
                                                .failed = on_server_failed};
    struct server_options options = {.launch = launch,
                                     .scratch = daemon->scratch,
                                     .segment = segment,
                                     .topology = topo_node_hwloc(daemon->cpus.node)};
    int code = server_start(&options, &events, daemon, &daemon->server);
    if (code) return code;
    daemon->upcalls = event_new(daemon->base, server_fd(daemon->server), EV_READ | EV_PERSIST, on_upcall, daemon);
    if (!daemon->upcalls || event_add(daemon->upcalls, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    return NCCLX_SUCCESS;
}

/* Somebody killed it. Without it nothing is cleaned up if this process is next: the job ends while it can. */
static void on_guard_died(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    char text[400];
    (void)fd, (void)what;
    snprintf(text, sizeof text, "the daemon ncclxd on %.255s was killed (its guard); ending the job", daemon->node);
    daemon->unguarded = true;
    daemon_refuse(daemon, 1, text);
    if (daemon->phase == DAEMON_IDLE)
        daemon_job_over(daemon);
    else
        daemon_end(daemon, true);
}

/* As many descriptors as the system allows: three for each rank. */
static void raise_file_limit(struct daemon *daemon)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &daemon->files);
    limit = daemon->files;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int as_int(rlim_t limit)
{
    return limit > INT32_MAX - 1 ? INT32_MAX - 1 : (int)limit;
}

/* What this node has, for the map. */
static void describe(const struct daemon *daemon, struct frame_writer *writer)
{
    struct rlimit files, processes;
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NPROC, &processes);
    struct message_node node = {.cpus = daemon->cpus.table,
                                .cpu_count = daemon->cpus.count,
                                .file_limit = as_int(files.rlim_cur)};
    if (processes.rlim_cur != RLIM_INFINITY && geteuid() != 0) node.process_limit = as_int(processes.rlim_cur);
    node.gpus = gpus_discover(daemon->cpus.node, &node.gpu_count);
    message_write_node(writer, &node);
    base_free(AREA_LAUNCHER, node.gpus);
}

static int join_tree(struct daemon *daemon, const struct daemon_options *options)
{
    struct frame_writer description;
    describe(daemon, &description);
    int code = frame_finish(&description);
    struct wiring_options wiring = {.base = daemon->base,
                                    .order = options->order,
                                    .parent_fd = options->parent_fd,
                                    .self = {.version = PACKAGE_VERSION,
                                             .node = daemon->node,
                                             .description = description.data,
                                             .description_bytes = description.used}};
    if (!code) code = wiring_open(&wiring, &daemon_wiring_events, daemon, &daemon->wiring);
    frame_release(&description);
    return code;
}

static int set_up(struct daemon *daemon, const struct daemon_options *options)
{
    int code;
    daemon->base = event_base_new();
    if (!daemon->base) return base_error(NCCLX_ERR_NO_MEM, "memory is short for ncclxd's event loop");
    daemon->guard = event_new(daemon->base, options->guard_fd, EV_READ, on_guard_died, daemon);
    if (!daemon->guard || event_add(daemon->guard, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for ncclxd's event loop");
    if ((code = daemon_watch_children(daemon)) || (code = cpus_discover(&daemon->cpus))) return code;
    return join_tree(daemon, options);
}

int daemon_run(const struct daemon_options *options)
{
    struct daemon daemon = {.order = options->order,
                            .parent = options->parent,
                            .scratch = options->scratch,
                            .lost_directory = options->lost_directory};
    const struct order_host *host = order_find(options->order, options->order->tree.position);
    char own[MAP_NAME_BYTES];
    if (gethostname(own, sizeof own)) snprintf(own, sizeof own, "localhost");
    own[sizeof own - 1] = 0;
    daemon.node = host && host->name ? host->name : own;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    raise_file_limit(&daemon);
    if (set_up(&daemon, options)) {
        daemon_say(base_error_detail());
        return 1;
    }
    event_base_dispatch(daemon.base);
    scratch_remove(daemon.scratch);
    wiring_close(daemon.wiring, DAEMON_AGENTS_MS);
    return daemon.unreachable; /* memory and descriptors go with the process */
}
