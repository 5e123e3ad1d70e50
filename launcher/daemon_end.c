/* daemon_end.c - the processes of the job on this node: their deaths, signals to them, and their end by TERM and KILL.
 * Agents, which are children too, are left alone. */
#include "config.h"

#include "launcher/daemon.h"

#include "launcher/dying.h"
#include "launcher/sweep.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAEMON_ORPHAN_GRACE_NS                                                                                         \
    (2 * BASE_NS_PER_S) /* at most, when the front end is gone: all is to be over after 5 seconds */
#define REAP_BATCH 64
#define DAEMON_STOP_NS (BASE_NS_PER_S / 10)
#define DAEMON_KILL_AGAIN_NS (BASE_NS_PER_S / 20)

static void arm(struct event *timer, uint64_t ns)
{
    struct timeval delay = {.tv_sec = (time_t)(ns / BASE_NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % BASE_NS_PER_S / 1000)};
    event_add(timer, &delay);
}

/* Signals all processes of the job; returns how many there are. */
static int sweep(struct daemon *daemon, int number)
{
    int agents = wiring_agents(daemon->wiring);
    pid_t *spared = base_calloc(AREA_LAUNCHER, (size_t)agents + 1, sizeof *spared);
    if (spared) wiring_list_agents(daemon->wiring, spared);
    struct sweep_spare spare = {.processes = spared, .count = spared ? agents : 0, .job = daemon->order->job};
    int found = sweep_descendants(number, &spare);
    base_free(AREA_LAUNCHER, spared);
    return found;
}

/* KILL, again and again: a process may fork while it is being looked for. */
static void kill_all(struct daemon *daemon)
{
    daemon->phase = DAEMON_KILLING;
    sweep(daemon, SIGKILL);
    arm(daemon->end_timer, DAEMON_KILL_AGAIN_NS);
}

/* With agents, or what is left of other daemons, among the children, their number does not tell when the last process of the job is gone: that is looked
 * for, twice, because a walk through all processes is no snapshot. */
static bool none_left(struct daemon *daemon)
{
    return wiring_below(daemon->wiring) > 0 && !sweep(daemon, 0) && !sweep(daemon, 0);
}

/* Every process of all jobs is gone. What they wrote is still in pipes, which daemon_drain_streams empties as fast as
 * the link takes it. */
static void finish(struct daemon *daemon)
{
    if (daemon->gone) return;
    daemon->gone = true;
    event_del(daemon->end_timer);
    for (struct daemon_job *job = daemon->jobs; job; job = job->next)
        for (int i = 0; i < job->rank_count; i++) daemon_close_input(&job->ranks[i]);
    daemon_drain_streams(daemon);
}

static void on_end_timer(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    (void)fd, (void)what;
    if (daemon->gone) return;
    if (daemon->running == 0 && none_left(daemon))
        finish(daemon);
    else
        kill_all(daemon);
}

/* Who dies already does not die of what is told to the ranks now, and may be why the others have failed: on a busy machine long
 * before it can be reaped. */
static void note_dying(struct daemon *daemon)
{
    struct frame_writer writer;
    bool before_time = false;
    for (struct daemon_job *job = daemon->jobs; job; job = job->next) {
        for (int i = 0; i < job->rank_count; i++) {
            struct daemon_rank *rank = &job->ranks[i];
            rank->was_dying = rank->running && process_is_dying(rank->pid);
            before_time = before_time || (rank->was_dying && !server_left(daemon->server, daemon_number(rank)));
        }
    }
    if (!before_time) return;
    frame_begin(&writer, MESSAGE_DYING);
    daemon_send(daemon, &writer);
}

void daemon_end(struct daemon *daemon, bool at_once)
{
    uint64_t grace = daemon->jobs ? daemon->jobs->launch.kill_grace_ns : 0;
    daemon_stop_starts(daemon);
    if (daemon->gone || daemon->phase == DAEMON_KILLING || daemon->phase == DAEMON_DONE) return;
    if (daemon->alone && grace > DAEMON_ORPHAN_GRACE_NS) grace = DAEMON_ORPHAN_GRACE_NS;
    if (daemon->phase != DAEMON_TERMINATING) note_dying(daemon);
    if (at_once || grace == 0) {
        kill_all(daemon);
    } else if (daemon->phase != DAEMON_TERMINATING) {
        daemon->phase = DAEMON_TERMINATING;
        sweep(daemon, SIGTERM);
        sweep(daemon, SIGCONT); /* a stopped process takes its TERM only then */
        arm(daemon->end_timer, grace);
    } else if (daemon->alone) {
        arm(daemon->end_timer, grace); /* the user's patience may have been longer */
    }
}

static struct daemon_rank *find_rank(struct daemon *daemon, pid_t pid)
{
    for (struct daemon_job *job = daemon->jobs; job; job = job->next)
        for (int i = 0; i < job->rank_count; i++)
            if (job->ranks[i].running && job->ranks[i].pid == pid) return &job->ranks[i];
    return NULL;
}

/* The report leaves first: what other ranks do because their fences fail comes behind it, on every way up. */
static void report_exit(struct daemon *daemon, struct daemon_rank *rank, int status, bool told)
{
    struct frame_writer writer;
    int number = daemon_number(rank);
    struct message_exited exited = {.number = number,
                                    .pid = rank->pid,
                                    .status = status,
                                    .told = (told && !rank->was_dying) || rank->job->cancelled};
    rank->running = false;
    daemon->running--;
    server_dispatch(daemon->server); /* an abort call of this rank came before its end */
    exited.joined = server_joined(daemon->server, number);
    exited.left = server_left(daemon->server, number);
    daemon_close_input(rank);
    message_write_exited(&writer, &exited);
    daemon_send(daemon, &writer);
    server_rank_died(daemon->server, number);
    bool failed = status != 0 || (exited.joined && !exited.left);
    if (failed && !rank->job->cancelled) daemon_end(daemon, false);
}

/* The ranks here have been told to end. */
static bool is_ending(const struct daemon *daemon)
{
    return daemon->phase != DAEMON_RUNNING;
}

/* True when a signal has ended it, and nobody knows yet. */
static bool has_died(const struct daemon_rank *rank, int *status)
{
    siginfo_t info = {.si_pid = 0};
    return rank->running && !waitid(P_PID, (id_t)rank->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
           info.si_code != CLD_EXITED && waitpid(rank->pid, status, WNOHANG) == rank->pid;
}

void daemon_take_deaths(struct daemon *daemon)
{
    bool told = is_ending(daemon);
    int status;
    for (struct daemon_job *job = daemon->jobs; job && !told; job = job->next)
        for (int i = 0; i < job->rank_count; i++)
            if (has_died(&job->ranks[i], &status)) report_exit(daemon, &job->ranks[i], status, told);
}

static void take_end(struct daemon *daemon, pid_t pid, int status, bool told)
{
    struct daemon_rank *rank = find_rank(daemon, pid);
    if (rank)
        report_exit(daemon, rank, status, told);
    else
        wiring_reaped(daemon->wiring, pid, status);
}

/* True when no child is left. All that have ended are collected before anybody is told anything: who ended by himself,
 * and who because of that, would be mixed up. Those that a signal has ended come first, as the others may be the
 * consequence. */
static bool reap(struct daemon *daemon)
{
    struct {
        pid_t pid;
        int status;
    } ended[REAP_BATCH];
    int count, error;
    do {
        bool told = is_ending(daemon);
        for (count = 0; count < REAP_BATCH; count++)
            if ((ended[count].pid = waitpid(-1, &ended[count].status, WNOHANG)) <= 0) break;
        error = count < REAP_BATCH && ended[count].pid < 0 ? errno : 0;
        for (int i = 0; i < count; i++)
            if (WIFSIGNALED(ended[i].status)) take_end(daemon, ended[i].pid, ended[i].status, told);
        for (int i = 0; i < count; i++)
            if (!WIFSIGNALED(ended[i].status)) take_end(daemon, ended[i].pid, ended[i].status, told);
    } while (count == REAP_BATCH);
    return error == ECHILD;
}

/* Until the front says that no more jobs come, a node without ranks may get some. */
static void look_for_end(struct daemon *daemon, bool no_children)
{
    bool may_come = daemon->phase == DAEMON_RUNNING && !daemon->complete;
    if (daemon->phase == DAEMON_IDLE || daemon->phase == DAEMON_DONE || may_come || daemon->running > 0 || daemon_starts(daemon)) return;
    if (no_children || none_left(daemon))
        finish(daemon);
    else
        daemon_end(daemon, false); /* what ranks left behind */
}

void daemon_look_for_end(struct daemon *daemon)
{
    event_active(daemon->reap, EV_READ, 0);
}

/* The guard says that nobody above is left: who is still on the way there need not go on. */
static void on_hangup(struct daemon *daemon)
{
    if (tree_is_open(wiring_tree(daemon->wiring), TREE_PARENT) || daemon->phase != DAEMON_IDLE) return;
    daemon->unreachable = true;
    event_base_loopbreak(daemon->base);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *daemon = arg;
    struct signalfd_siginfo info[16];
    (void)what;
    ssize_t got = read(fd, info, sizeof info);
    if (got < 0 && errno != EAGAIN) return;
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof info[0]; i++)
        if (info[i].ssi_signo == SIGHUP) on_hangup(daemon);
    look_for_end(daemon, reap(daemon));
}

static void signal_groups(struct daemon *daemon, int number)
{
    for (struct daemon_job *job = daemon->jobs; job; job = job->next)
        for (int i = 0; i < job->rank_count; i++)
            if (job->ranks[i].running) kill(-job->ranks[i].pid, number);
}

static void on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    signal_groups(arg, SIGSTOP);
}

/* Signals the process groups of the ranks, as a terminal would. STOP follows TSTP, after a while in which those that
 * handle TSTP do so. */
void daemon_signal_ranks(struct daemon *daemon, int number)
{
    if (number == SIGTSTP) arm(daemon->stop_timer, DAEMON_STOP_NS);
    if (number == SIGCONT) event_del(daemon->stop_timer);
    signal_groups(daemon, number);
}

int daemon_watch_children(struct daemon *daemon)
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) return base_error(NCCLX_ERR_LIMIT, "no descriptor for signals: %s", strerror(errno));
    daemon->reap = event_new(daemon->base, signals, EV_READ | EV_PERSIST, on_signal, daemon);
    daemon->end_timer = evtimer_new(daemon->base, on_end_timer, daemon);
    daemon->stop_timer = evtimer_new(daemon->base, on_stop_timer, daemon);
    if (!daemon->reap || !daemon->end_timer || !daemon->stop_timer || event_add(daemon->reap, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    return NCCLX_SUCCESS;
}
