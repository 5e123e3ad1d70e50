/* daemon.c - ncclxd: the event loop of a node. The link brings orders; deaths of ranks, their output and what they ask
 * the PMIx server go back. */
#include "config.h"

#include "launcher/daemon.h"

#include "launcher/scratch.h"
#include "launcher/sweep.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAEMON_ORPHAN_GRACE_NS                                                                                         \
    (2 * BASE_NS_PER_S) /* at most, when the front end is gone: all is to be over after 5 seconds */
#define DAEMON_STOP_NS (BASE_NS_PER_S / 10)
#define DAEMON_KILL_AGAIN_NS (BASE_NS_PER_S / 20)

void daemon_trouble(struct daemon *daemon, const char *text)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_TROUBLE);
    frame_put_text(&writer, text);
    link_send(daemon->link, &writer);
}

static void arm(struct event *timer, uint64_t ns)
{
    struct timeval delay = {.tv_sec = (time_t)(ns / BASE_NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % BASE_NS_PER_S / 1000)};
    event_add(timer, &delay);
}

/* KILL, again and again: a process may fork while it is being looked for. */
static void kill_all(struct daemon *daemon)
{
    daemon->phase = DAEMON_KILLING;
    sweep_descendants(SIGKILL, 0);
    arm(daemon->end_timer, DAEMON_KILL_AGAIN_NS);
}

static void on_end_timer(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    (void)fd, (void)what;
    if (!daemon->gone) kill_all(daemon);
}

void daemon_end(struct daemon *daemon, bool at_once)
{
    uint64_t grace = daemon->launch.kill_grace_ns;
    if (daemon->gone || daemon->phase == DAEMON_KILLING || daemon->phase == DAEMON_DONE) return;
    if (daemon->alone && grace > DAEMON_ORPHAN_GRACE_NS) grace = DAEMON_ORPHAN_GRACE_NS;
    if (at_once || grace == 0) {
        kill_all(daemon);
    } else if (daemon->phase != DAEMON_TERMINATING) {
        daemon->phase = DAEMON_TERMINATING;
        sweep_descendants(SIGTERM, 0);
        sweep_descendants(SIGCONT, 0); /* a stopped process takes its TERM only then */
        arm(daemon->end_timer, grace);
    } else if (daemon->alone) {
        arm(daemon->end_timer, grace); /* the user's patience may have been longer */
    }
}

/* Every process of the job is gone. What they wrote is still in pipes, which daemon_drain_streams empties as fast as
 * the link takes it. */
static void finish_job(struct daemon *daemon)
{
    if (daemon->gone) return;
    daemon->gone = true;
    event_del(daemon->end_timer);
    for (int i = 0; i < daemon->rank_count; i++) daemon_close_input(&daemon->ranks[i]);
    daemon_drain_streams(daemon);
}

static struct daemon_rank *find_rank(struct daemon *daemon, pid_t pid)
{
    for (int i = 0; i < daemon->rank_count; i++)
        if (daemon->ranks[i].running && daemon->ranks[i].pid == pid) return &daemon->ranks[i];
    return NULL;
}

static void report_exit(struct daemon *daemon, struct daemon_rank *rank, int status)
{
    struct frame_writer writer;
    struct message_exited exited = {.rank = rank->rank, .pid = rank->pid, .status = status};
    server_dispatch(daemon->server); /* an abort call of this rank came before its end */
    exited.joined = server_joined(daemon->server, rank->rank);
    exited.left = server_left(daemon->server, rank->rank);
    server_rank_died(daemon->server, rank->rank);
    rank->running = false;
    daemon->running--;
    daemon_close_input(rank);
    message_write_exited(&writer, &exited);
    link_send(daemon->link, &writer);
    if (status != 0 || (exited.joined && !exited.left)) daemon_end(daemon, false);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    struct signalfd_siginfo info[16];
    (void)what;
    if (read(fd, info, sizeof info) < 0 && errno != EAGAIN) return;
    if (daemon->phase == DAEMON_IDLE) return;
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            struct daemon_rank *rank = find_rank(daemon, pid);
            if (rank) report_exit(daemon, rank, status);
            continue;
        }
        if (pid < 0 && errno == ECHILD)
            finish_job(daemon);
        else if (pid == 0 && daemon->running == 0)
            daemon_end(daemon, false); /* what ranks left behind */
        return;
    }
}

static void on_aborted(void *arg, int rank, int code, const char *message)
{
    struct daemon *daemon = arg;
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_ABORTED);
    frame_put_u32(&writer, (uint32_t)rank);
    frame_put_u32(&writer, (uint32_t)code);
    frame_put_text(&writer, message);
    link_send(daemon->link, &writer);
    daemon_end(daemon, false);
}

static void on_logged(void *arg, int rank, const char *text)
{
    char line[5000];
    snprintf(line, sizeof line, "rank %d: %s", rank, text);
    daemon_trouble(arg, line);
}

/* Other nodes have no daemons in this release. */
static void on_send(void *arg, int link, const void *data, size_t bytes)
{
    (void)arg, (void)link, (void)data, (void)bytes;
}

static void on_signal_asked(void *arg, int rank, int number)
{
    struct daemon *daemon = arg;
    for (int i = 0; i < daemon->rank_count; i++)
        if (daemon->ranks[i].rank == rank && daemon->ranks[i].running) kill(-daemon->ranks[i].pid, number);
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

static int start_server(struct daemon *daemon)
{
    static const struct server_events events = {.aborted = on_aborted,
                                                .logged = on_logged,
                                                .send = on_send,
                                                .signal = on_signal_asked,
                                                .trouble = on_server_trouble,
                                                .failed = on_server_failed};
    const struct message_launch *launch = &daemon->launch;
    char segment[64];
    daemon->segment_fd = memfd_create("ncclx-segment", MFD_CLOEXEC);
    if (daemon->segment_fd < 0) return base_error(NCCLX_ERR_LIMIT, "no shared memory can be made: %s", strerror(errno));
    snprintf(segment, sizeof segment, "/proc/%d/fd/%d", (int)getpid(), daemon->segment_fd);
    struct server_options options = {.launch = launch,
                                     .oversubscribed = launch->oversubscribed,
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

void daemon_refuse(struct daemon *daemon, int status, const char *text)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_REFUSED);
    frame_put_u32(&writer, (uint32_t)status);
    frame_put_text(&writer, text);
    link_send(daemon->link, &writer);
}

/* Somebody killed it. Without it nothing is cleaned up if this process is next: the job ends while it can. */
static void on_guard_died(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    (void)fd, (void)what;
    daemon_refuse(daemon, 1, "the daemon ncclxd was killed (its guard); ending the job");
    if (daemon->phase == DAEMON_IDLE)
        event_base_loopbreak(daemon->base);
    else
        daemon_end(daemon, true);
}

static int on_launch(struct daemon *daemon, const struct frame *frame)
{
    if (daemon->phase != DAEMON_IDLE)
        return base_error(NCCLX_ERR_TRANSPORT, "a second launch order came over the link");
    int code = message_read_launch(frame, &daemon->launch);
    if (code) return code;
    while (daemon->launch.positions[daemon->launch.node] != daemon->position) daemon->launch.node++;
    daemon->phase = DAEMON_RUNNING;
    if (start_server(daemon)) {
        daemon_refuse(daemon, 1, base_error_detail());
        finish_job(daemon);
    } else {
        daemon_start_ranks(daemon);
    }
    return NCCLX_SUCCESS;
}

static void signal_groups(struct daemon *daemon, int number)
{
    for (int i = 0; i < daemon->rank_count; i++)
        if (daemon->ranks[i].running) kill(-daemon->ranks[i].pid, number);
}

static void on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    signal_groups(arg, SIGSTOP);
}

/* Signals the process groups of the ranks, as a terminal would. STOP follows TSTP, after a while in which those that
 * handle TSTP do so. */
static void signal_ranks(struct daemon *daemon, int number)
{
    if (number == SIGTSTP) arm(daemon->stop_timer, DAEMON_STOP_NS);
    if (number == SIGCONT) event_del(daemon->stop_timer);
    signal_groups(daemon, number);
}

static int on_frame(void *arg, const struct frame *frame)
{
    struct daemon *daemon = arg;
    struct frame_reader reader;
    size_t bytes;
    const void *data;
    frame_read(&reader, frame);
    switch (frame->type) {
    case MESSAGE_LAUNCH:
        return on_launch(daemon, frame);
    case MESSAGE_SIGNAL: {
        uint32_t number = frame_get_u32(&reader);
        if (!frame_read_all(&reader) || number == 0 || number >= NSIG) return message_malformed(frame);
        signal_ranks(daemon, (int)number);
        return NCCLX_SUCCESS;
    }
    case MESSAGE_END: {
        bool at_once = frame_get_u8(&reader);
        if (!frame_read_all(&reader)) return message_malformed(frame);
        if (daemon->phase != DAEMON_IDLE) daemon_end(daemon, at_once);
        return NCCLX_SUCCESS;
    }
    case MESSAGE_DUMP:
        if (daemon->server) server_dump(daemon->server);
        daemon_tell_where(daemon);
        return NCCLX_SUCCESS;
    case MESSAGE_INPUT:
        data = frame_get_bytes(&reader, &bytes);
        if (!frame_read_all(&reader)) return message_malformed(frame);
        daemon_forward_input(daemon, data, bytes);
        return NCCLX_SUCCESS;
    case MESSAGE_OUTPUT_CLOSED: {
        uint8_t descriptor = frame_get_u8(&reader);
        if (!frame_read_all(&reader)) return message_malformed(frame);
        daemon_close_output(daemon, descriptor);
        return NCCLX_SUCCESS;
    }
    default:
        return message_malformed(frame);
    }
}

static void on_drained(void *arg)
{
    daemon_pause_streams(arg, false);
}

/* The front end is gone: everything it started goes too. */
static void on_link_closed(void *arg, const char *message)
{
    struct daemon *daemon = arg;
    if (message) fprintf(stderr, "ncclxd: %s\n", message);
    daemon->alone = true;
    daemon_close_output(daemon, STDOUT_FILENO);
    daemon_close_output(daemon, STDERR_FILENO);
    if (daemon->phase == DAEMON_IDLE || daemon->gone)
        event_base_loopbreak(daemon->base);
    else
        daemon_end(daemon, false);
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

static void say_hello(struct daemon *daemon)
{
    struct rlimit files, processes;
    struct frame_writer writer;
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NPROC, &processes);
    struct message_hello hello = {.version = PACKAGE_VERSION,
                                  .node = daemon->node,
                                  .scratch = daemon->scratch,
                                  .cpus = daemon->cpus.table,
                                  .cpu_count = daemon->cpus.count,
                                  .file_limit = as_int(files.rlim_cur)};
    if (processes.rlim_cur != RLIM_INFINITY && geteuid() != 0) hello.process_limit = as_int(processes.rlim_cur);
    message_write_hello(&writer, &hello);
    link_send(daemon->link, &writer);
}

static int set_up(struct daemon *daemon, int link_fd, int guard_fd)
{
    static const struct link_events events = {.frame = on_frame, .drained = on_drained, .closed = on_link_closed};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    daemon->base = event_base_new();
    if (!daemon->base || signals < 0)
        return base_error(NCCLX_ERR_LIMIT, "ncclxd cannot start its event loop: %s", strerror(errno));
    daemon->reap = event_new(daemon->base, signals, EV_READ | EV_PERSIST, on_child, daemon);
    daemon->end_timer = evtimer_new(daemon->base, on_end_timer, daemon);
    daemon->stop_timer = evtimer_new(daemon->base, on_stop_timer, daemon);
    daemon->guard = event_new(daemon->base, guard_fd, EV_READ, on_guard_died, daemon);
    daemon->link = link_open(daemon->base, link_fd, &events, daemon);
    if (!daemon->reap || !daemon->end_timer || !daemon->stop_timer || !daemon->guard || !daemon->link ||
        event_add(daemon->reap, NULL) || event_add(daemon->guard, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for ncclxd's event loop");
    return NCCLX_SUCCESS;
}

int daemon_run(int link_fd, int guard_fd, const char *scratch)
{
    struct daemon daemon = {.segment_fd = -1, .scratch = scratch};
    char node[MAP_NAME_BYTES];
    if (gethostname(node, sizeof node)) snprintf(node, sizeof node, "localhost");
    node[sizeof node - 1] = 0;
    daemon.node = node;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    raise_file_limit(&daemon);
    if (set_up(&daemon, link_fd, guard_fd) || cpus_discover(&daemon.cpus)) {
        fprintf(stderr, "ncclxd: %s\n", base_error_detail());
        return 1;
    }
    say_hello(&daemon);
    event_base_dispatch(daemon.base);
    scratch_remove(scratch);
    if (!daemon.alone) {
        link_send_empty(daemon.link, MESSAGE_DONE);
        link_flush(daemon.link, -1);
    }
    return 0; /* memory and descriptors go with the process */
}
