/* ncclxd.c - the daemon's two processes. The inner one does the work, the outer one is its guard. Whichever way the
 * inner one ends, also by KILL, what its ranks have started comes to the guard as orphans and is killed, and the job's
 * private directory is removed. If the guard is killed, the inner one ends the job and cleans up itself; if both are,
 * the front end does.
 *
 * Started by ncclxrun only: ncclxd --link FD --job NAME */
#include "config.h"

#include "launcher/daemon.h"
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD_SWEEP_MS 2000
#define GUARD_PATIENCE_MS 3500 /* a daemon without front end needs 2 s at most */

static bool read_descriptor(const char *text, int *fd)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    *fd = (int)value;
    return *text && !*end && !errno && value > STDERR_FILENO && value < INT32_MAX && fcntl(*fd, F_GETFD) >= 0;
}

/* A name that is one component of a path. */
static bool is_job_name(const char *text)
{
    return *text && *text != '.' && strlen(text) < 128 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(text);
}

/* Waits for the daemon's end. When the front end is gone, a daemon that does not come to its end (it may be stopped) is
 * killed. */
static int await_daemon(pid_t daemon, int link_fd)
{
    struct pollfd watched[2] = {{.fd = (int)syscall(SYS_pidfd_open, daemon, 0), .events = POLLIN},
                                {.fd = link_fd, .events = POLLRDHUP}};
    int status = 0, timeout_ms = -1;
    while (watched[0].fd >= 0) {
        int ready = poll(watched, 2, timeout_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 || watched[0].revents) break;
        watched[1].fd = -1;
        timeout_ms = GUARD_PATIENCE_MS;
    }
    if (!watched[0].revents && watched[0].fd >= 0) kill(daemon, SIGKILL);
    while (waitpid(daemon, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_daemon(int link_fd, int guard_pipe[2], const char *scratch)
{
    close(guard_pipe[1]);
    fcntl(guard_pipe[0], F_SETFL, O_NONBLOCK);
    return daemon_run(link_fd, guard_pipe[0], scratch);
}

/* Standard output is the ranks', through ncclxrun; what libraries print here must not get into it. */
static void leave_standard_output(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    dup2(fd, STDOUT_FILENO);
    close(fd);
}

static int run_guard(pid_t daemon, int link_fd, int guard_pipe[2], const char *scratch)
{
    sigset_t deferred;
    sigemptyset(&deferred);
    sigaddset(&deferred, SIGTERM);
    sigaddset(&deferred, SIGINT);
    sigaddset(&deferred, SIGHUP);
    sigprocmask(SIG_BLOCK, &deferred, NULL); /* it ends with the job, not before */
    close(guard_pipe[0]);
    int status = await_daemon(daemon, link_fd);
    sweep_kill(0, GUARD_SWEEP_MS);
    scratch_remove(scratch);
    return status;
}

int main(int argc, char **argv)
{
    int link_fd, guard_pipe[2];
    char scratch[256];
    if (argc > 1 && argc < 4 && !strcmp(argv[1], "--describe")) return daemon_describe(argv[2]);
    if (argc != 5 || strcmp(argv[1], "--link") || strcmp(argv[3], "--job") || !read_descriptor(argv[2], &link_fd) ||
        !is_job_name(argv[4])) {
        fprintf(stderr, "ncclxd: is started by ncclxrun only\n");
        return 2;
    }
    fcntl(link_fd, F_SETFD, FD_CLOEXEC);
    leave_standard_output();
    setsid(); /* a terminal's signals are for the front end, which decides */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (scratch_make(argv[4], scratch, sizeof scratch)) {
        fprintf(stderr, "ncclxd: %s\n", base_error_detail());
        return 1;
    }
    pid_t inner = pipe2(guard_pipe, O_CLOEXEC) ? -1 : fork();
    if (inner == 0) _exit(run_daemon(link_fd, guard_pipe, scratch));
    if (inner > 0) return run_guard(inner, link_fd, guard_pipe, scratch);
    fprintf(stderr, "ncclxd: cannot start: %s\n", strerror(errno));
    scratch_remove(scratch);
    return 1;
}
