/* front_daemon.c - starting ncclxd on this node, and cleaning up after it when it is killed. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/environment.h"
#include "launcher/scratch.h"
#include "launcher/sweep.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAEMON_EXIT_WAIT_MS 10000 /* its guard may have to look for orphans */
#define DAEMON_SIGNAL_WAIT_MS 1000   /* it closes its link as it ends */
#define LEFTOVERS_MS 2000

extern char **environ;

/* Beside the launcher in a build tree, in libexec of the same prefix when installed (also when the prefix was moved),
 * else where it was configured. */
int front_find_daemon(const struct front *front, char *path, size_t bytes)
{
    char self[PATH_MAX];
    if (front->options.prefix) {
        snprintf(path, bytes, "%s/libexec/ncclxd", front->options.prefix);
        return NCCLX_SUCCESS;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = 0;
        char *slash = strrchr(self, '/');
        if (slash) *slash = 0;
        snprintf(path, bytes, "%s/ncclxd", self);
        if (access(path, X_OK) == 0) return NCCLX_SUCCESS;
        snprintf(path, bytes, "%s/../libexec/ncclxd", self);
        if (access(path, X_OK) == 0) return NCCLX_SUCCESS;
    }
    snprintf(path, bytes, "%s/ncclxd", LIBEXECDIR);
    if (access(path, X_OK) == 0) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BOOTSTRAP,
                      "ncclxd is neither beside ncclxrun nor in %s: is ncclx installed completely?", LIBEXECDIR);
}

/* Only async-signal-safe calls: this is between fork and exec. */
static void run_daemon(const struct front *front, const char *path, char *const *argv, char *const *environment)
{
    const struct rlimit files = {.rlim_cur = (rlim_t)front->order.limits[RLIMIT_NOFILE][0],
                                 .rlim_max = (rlim_t)front->order.limits[RLIMIT_NOFILE][1]};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) sigaction(number, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_NOFILE, &files); /* the user's, which ncclxrun has raised for itself */
    execve(path, argv, environment);
    _exit(127);
}

/* What the user's environment may tell the daemon; ranks get all of it by message. */
char **front_daemon_environment(void)
{
    size_t count = 0;
    while (environ[count]) count++;
    char **list = base_calloc(AREA_LAUNCHER, count + 2, sizeof *list);
    if (!list) return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (environment_for_daemon(environ[i])) list[kept++] = environ[i];
    list[kept] = (char *)(uintptr_t) "PMIX_MCA_psec=native"; /* the kernel tells who connects: no munge daemon needed */
    return list;
}

/* Its order goes ahead of all frames. */
static int send_order(const struct front *front, int fd)
{
    struct order order;
    struct frame_writer writer;
    int code = order_derive(&front->order, 0, &order);
    if (code) return code;
    bool starts = order.tree.start == TREE_START_EACH && order.tree.shape.count > 1;
    order.agent_environment = starts ? environ : NULL;
    order_write(&writer, &order);
    code = frame_finish(&writer);
    for (size_t sent = 0; !code && sent < writer.used;) {
        ssize_t wrote = write(fd, writer.data + sent, writer.used - sent);
        if (wrote < 0 && errno != EINTR) code = base_error(NCCLX_ERR_BOOTSTRAP, "ncclxd takes no order: %s", strerror(errno));
        if (wrote > 0) sent += (size_t)wrote;
    }
    if (writer.data) oob_wipe(writer.data, writer.used);
    frame_release(&writer);
    base_free(AREA_LAUNCHER, order.hosts);
    return code;
}

int front_start_daemon(void *arg, int *link_fd)
{
    struct front *front = arg;
    char *path = (char *)(uintptr_t)front->order.daemon, fd_text[16];
    char **environment = front->order.environment;
    int ends[2];
    if (access(path, X_OK))
        return base_error(NCCLX_ERR_BOOTSTRAP, "ncclxd cannot be run: %.300s: %s", path, strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return base_error(NCCLX_ERR_LIMIT, "no socket for ncclxd: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    snprintf(fd_text, sizeof fd_text, "%d", ends[1]);
    char *argv[] = {path, (char *)(uintptr_t) "--link", fd_text, NULL};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    front->daemon = fork();
    if (front->daemon == 0) run_daemon(front, path, argv, environment);
    int error = errno, code = NCCLX_SUCCESS;
    close(ends[1]);
    if (front->daemon < 0) code = base_error(NCCLX_ERR_LIMIT, "cannot start ncclxd: %s", strerror(error));
    if (!code) code = send_order(front, ends[0]);
    if (!code)
        *link_fd = ends[0];
    else
        close(ends[0]);
    return code;
}

/* Orphans of a killed daemon come to us. Children that ncclxrun had before it was ncclxrun (exec in a script) are in
 * its own session, ranks never. */
static void end_leftovers(const struct front *front)
{
    struct sweep_spare spare = {.one_session = true, .session = getsid(0), .job = front->job};
    sweep_kill(&spare, LEFTOVERS_MS);
    scratch_remove_job(front->job);
}

/* False when no waiting with a time limit is possible. */
static bool await_end(pid_t daemon, int timeout_ms)
{
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, daemon, 0), .events = POLLIN};
    if (ended.fd < 0) return false;
    while (poll(&ended, 1, timeout_ms) < 0 && errno == EINTR) {
    }
    close(ended.fd);
    return true;
}

/* True when the process has ended within the time. */
static bool daemon_ended(pid_t daemon, int timeout_ms, int *status)
{
    return waitpid(daemon, status, await_end(daemon, timeout_ms) ? WNOHANG : 0) == daemon;
}

int front_daemon_signal(const struct front *front)
{
    siginfo_t end = {.si_pid = 0};
    if (front->daemon <= 0) return 0;
    await_end(front->daemon, DAEMON_SIGNAL_WAIT_MS);
    if (waitid(P_PID, (id_t)front->daemon, &end, WEXITED | WNOHANG | WNOWAIT) || !end.si_pid) return 0;
    if (end.si_code != CLD_EXITED) return end.si_status;
    return end.si_status > 128 ? end.si_status - 128 : 0; /* its guard says so of the inner process */
}

void front_watch_daemon(struct front *front)
{
    siginfo_t end = {.si_pid = 0};
    if (front->daemon <= 0 || front->daemon_ended ||
        waitid(P_PID, (id_t)front->daemon, &end, WEXITED | WNOHANG | WNOWAIT) || !end.si_pid)
        return;
    front->daemon_ended = true;
    wiring_local_died(front->wiring, end.si_code == CLD_EXITED ? end.si_status << 8 : end.si_status);
}

void front_end_daemon(struct front *front)
{
    int status;
    if (!daemon_ended(front->daemon, DAEMON_EXIT_WAIT_MS, &status)) {
        kill(front->daemon, SIGKILL);
        waitpid(front->daemon, &status, 0);
    }
    /* Also when it was killed during the end of a job that fails of something else. */
    if (front->daemon_lost || status) end_leftovers(front);
}
