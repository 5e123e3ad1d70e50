/* ncclxd.c - the daemon's two processes. The inner one does the work, the outer one is its guard. Whichever way the
 * inner one ends, also by KILL, what its ranks have started comes to the guard as orphans and is killed, and the job's
 * private directory is removed. If the guard is killed, the inner one ends the job and cleans up itself; if both are,
 * the front end does.
 *
 * Started by ncclxrun or by another ncclxd only: with `--link FD` on the front's host, where the socket brings the start
 * order, too; elsewhere with `--order JOB`: it comes over standard input, which then stays open until nobody above is left.
 */
#include "config.h"

#include "launcher/daemon.h"
#include "launcher/environment.h"
#include "launcher/order.h"
#include "launcher/pulse.h"
#include "launcher/scratch.h"
#include "launcher/sweep.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD_SWEEP_MS 2000
#define GUARD_PATIENCE_MS 3500 /* a daemon without front end needs 2 s at most */
#define GUARD_STOPPED_MS 1000
#define SWEEP_DELAY_US 500000 /* in which a guard that is there does better, and the report goes up */

static bool read_descriptor(const char *text, int *fd)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    *fd = (int)value;
    return *text && !*end && !errno && value > STDERR_FILENO && value < INT32_MAX && fcntl(*fd, F_GETFD) >= 0;
}

extern char **environ;

/* A name that is one component of a path. */
static bool is_job_name(const char *text)
{
    return *text && *text != '.' && strlen(text) < 128 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(text);
}

/* Waits for the daemon's end. When the place above is gone, a daemon that does not come to its end is killed: on the
 * front's host in any case, elsewhere if it is stopped, because there the end of standard input proves less. */
static int await_daemon(pid_t daemon, int above_fd, bool local)
{
    struct pollfd watched[2] = {{.fd = (int)syscall(SYS_pidfd_open, daemon, 0), .events = POLLIN},
                                {.fd = above_fd, .events = local ? POLLRDHUP : POLLIN}};
    int status = 0, timeout_ms = -1;
    while (watched[0].fd >= 0) {
        int ready = poll(watched, 2, timeout_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0 || watched[0].revents) break;
        if (ready == 0 && (local || pulse_is_stopped(daemon))) break;
        if (!local) kill(daemon, SIGHUP);
        watched[1].fd = -1;
        timeout_ms = local ? GUARD_PATIENCE_MS : GUARD_STOPPED_MS;
    }
    if (!watched[0].revents && watched[0].fd >= 0) kill(daemon, SIGKILL);
    while (waitpid(daemon, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_daemon(const struct order *order, int link_fd, pid_t parent, int guard_pipe[2], const char *scratch,
                      const char *lost_directory)
{
    struct daemon_options options = {.order = order,
                                     .parent_fd = link_fd,
                                     .parent = parent,
                                     .guard_fd = guard_pipe[0],
                                     .scratch = scratch,
                                     .lost_directory = lost_directory};
    close(guard_pipe[1]);
    fcntl(guard_pipe[0], F_SETFL, O_NONBLOCK);
    return daemon_run(&options);
}

/* Standard output is the ranks', through ncclxrun; what libraries print here must not get into it. */
static void leave_standard_output(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    dup2(fd, STDOUT_FILENO);
    close(fd);
}

static int run_guard(pid_t daemon, int link_fd, int guard_pipe[2], const char *job, const char *scratch)
{
    sigset_t deferred;
    bool local = link_fd >= 0;
    sigemptyset(&deferred);
    sigaddset(&deferred, SIGTERM);
    sigaddset(&deferred, SIGINT);
    sigaddset(&deferred, SIGHUP);
    sigprocmask(SIG_BLOCK, &deferred, NULL); /* it ends with the job, not before */
    close(guard_pipe[0]);
    int status = await_daemon(daemon, local ? link_fd : STDIN_FILENO, local);
    struct sweep_spare spare = {.job = job};
    sweep_kill(&spare, GUARD_SWEEP_MS);
    scratch_remove(scratch);
    return status;
}

/* ---- The start order -------------------------------------------------------------------------------------------- */

static bool read_bytes(int fd, unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(fd, data, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        data += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Not a byte more than the order: what follows is for others. */
static int read_order(int fd, struct order *order)
{
    unsigned char header[FRAME_HEADER_BYTES], *data;
    struct frame frame;
    if (!read_bytes(fd, header, sizeof header))
        return base_error(NCCLX_ERR_BOOTSTRAP, "no start order came; ncclxd is started by ncclxrun only");
    int code = frame_parse(header, sizeof header, &frame);
    size_t total = frame_wanted(header, sizeof header);
    if (code || !total) return code ? code : base_error(NCCLX_ERR_TRANSPORT, "this is not a start order");
    data = base_alloc(AREA_LAUNCHER, total);
    if (!data) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a start order");
    memcpy(data, header, sizeof header);
    if (!read_bytes(fd, data + sizeof header, total - sizeof header))
        code = base_error(NCCLX_ERR_TRANSPORT, "the start order ends in its middle");
    if (!code && !(code = frame_parse(data, total, &frame))) code = order_read(&frame, order);
    oob_wipe(data, total);
    base_free(AREA_LAUNCHER, data);
    if (!code) code = order_settle(order, getenv("SLURMD_NODENAME"));
    if (!code && !is_job_name(order->job)) code = base_error(NCCLX_ERR_TRANSPORT, "this is not a start order");
    return code;
}

/* A user's libraries are not for the daemon: it begins again without them. */
static void leave_libraries(char **argv)
{
    if (!getenv("LD_LIBRARY_PATH") && !getenv("LD_PRELOAD")) return;
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    execv("/proc/self/exe", argv);
}

/* Agents get the environment that this host has given us, the daemon and its PMIx server only what is for them. */
static int sort_environment(struct order *order)
{
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **list = base_calloc(AREA_LAUNCHER, count + 1, sizeof *list);
    if (!list) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment");
    for (size_t i = 0; i < count; i++)
        if (!environment_is_foreign(environ[i])) list[kept++] = environ[i];
    order->agent_environment = list;
    clearenv();
    for (size_t i = 0; i < kept; i++)
        if (environment_for_daemon(list[i])) putenv(list[i]);
    for (char **entry = order->environment; entry && *entry; entry++) putenv(*entry);
    return NCCLX_SUCCESS;
}

/* On another host than the front's: limits as the user has set them, as far as this host allows, his mask and his
 * directory. Returns why that cannot be entered, or null. */
static const char *take_surroundings(const struct order *order)
{
    for (int i = 0; i < ORDER_LIMITS && i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit(i, &limit)) continue;
        limit.rlim_cur = order->limits[i][0] < limit.rlim_max ? (rlim_t)order->limits[i][0] : limit.rlim_max;
        setrlimit(i, &limit);
    }
    umask((mode_t)order->umask);
    return order->directory && chdir(order->directory) ? strerror(errno) : NULL;
}

static int fail(void)
{
    fprintf(stderr, "ncclxd: %s\n", base_error_detail());
    return 1;
}

/* `ncclxd --sweep JOB POSITION`: cleans up after another one. */
static int sweep_for_neighbour(const char *job, const char *position)
{
    char name[160];
    scratch_name(job, atoi(position), name, sizeof name);
    usleep(SWEEP_DELAY_US);
    sweep_job(job);
    scratch_remove_job(name);
    return 0;
}

int main(int argc, char **argv)
{
    struct order order;
    int link_fd = -1, guard_pipe[2];
    char name[160], scratch[256];
    const char *lost_directory = NULL;
    if (argc > 1 && argc < 4 && !strcmp(argv[1], "--describe")) return daemon_describe(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "--sweep") && is_job_name(argv[2])) return sweep_for_neighbour(argv[2], argv[3]);
    bool local = argc == 3 && !strcmp(argv[1], "--link") && read_descriptor(argv[2], &link_fd);
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("ncclxd (ncclx) %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (!local && (argc != 3 || strcmp(argv[1], "--order"))) {
        fprintf(stderr, "ncclxd: is started by ncclxrun only\n");
        return 2;
    }
    if (local)
        fcntl(link_fd, F_SETFD, FD_CLOEXEC);
    else
        leave_libraries(argv);
    if (read_order(local ? link_fd : STDIN_FILENO, &order) || (!local && sort_environment(&order))) return fail();
    if (!local) lost_directory = take_surroundings(&order);
    leave_standard_output();
    setsid(); /* a terminal's signals are for the front end, which decides */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    scratch_name(order.job, order.position, name, sizeof name);
    if (scratch_make(name, scratch, sizeof scratch)) return fail();
    sigset_t hangup; /* the guard's word to the daemon, which may come before that is ready for it */
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hangup, NULL);
    pid_t parent = getppid();
    pid_t inner = pipe2(guard_pipe, O_CLOEXEC) ? -1 : fork();
    if (inner == 0) _exit(run_daemon(&order, link_fd, parent, guard_pipe, scratch, lost_directory));
    int status = inner > 0 ? run_guard(inner, link_fd, guard_pipe, order.job, scratch) : 1;
    if (inner < 0) {
        fprintf(stderr, "ncclxd: cannot start: %s\n", strerror(errno));
        scratch_remove(scratch);
    }
    order_release(&order);
    return status;
}
