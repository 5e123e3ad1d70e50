/* ncclxd.c - the daemon's two processes. The outer one is a guard: it waits for the inner one, which does the work. Whichever way the inner one ends,
 * also by KILL, what its ranks have started comes to the guard as orphans and is killed, and the job's private directory is removed. If the guard is
 * killed instead, the inner one is told by its parent-death signal, its ranks by theirs, and the front end cleans up.
 *
 * Started by ncclxrun only: ncclxd --link FD --job NAME */
#include "config.h"

#include "launcher/daemon.h"
#include "launcher/scratch.h"
#include "launcher/sweep.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD_SWEEPS 100 /* with 20 ms between them */

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
    return *text && *text != '.' && strlen(text) < 128 && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(text);
}

/* Kills what the dead daemon has left, until nothing is found. */
static void end_orphans(void)
{
    for (int i = 0; i < GUARD_SWEEPS; i++) {
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) return;
        sweep_descendants(getpid(), SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(20000);
    }
}

static int guard(pid_t daemon, const char *scratch)
{
    int status = 0;
    while (waitpid(daemon, &status, 0) < 0 && errno == EINTR) {}
    end_orphans();
    scratch_remove(scratch);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    int link_fd;
    char scratch[256];
    if (argc != 5 || strcmp(argv[1], "--link") || strcmp(argv[3], "--job") || !read_descriptor(argv[2], &link_fd) || !is_job_name(argv[4])) {
        fprintf(stderr, "ncclxd: is started by ncclxrun only\n");
        return 2;
    }
    fcntl(link_fd, F_SETFD, FD_CLOEXEC);
    setsid(); /* a terminal's signals are for the front end, which decides */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t deferred;
    sigemptyset(&deferred);
    sigaddset(&deferred, SIGTERM);
    sigaddset(&deferred, SIGINT);
    sigaddset(&deferred, SIGHUP);
    if (scratch_make(argv[4], scratch, sizeof scratch)) {
        fprintf(stderr, "ncclxd: %s\n", base_error_detail());
        return 1;
    }
    pid_t outer = getpid(), inner = fork();
    if (inner < 0) {
        fprintf(stderr, "ncclxd: cannot start: %s\n", strerror(errno));
        scratch_remove(scratch);
        return 1;
    }
    if (inner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != outer) _exit(1);
        _exit(daemon_run(link_fd, scratch));
    }
    sigprocmask(SIG_BLOCK, &deferred, NULL);
    close(link_fd);
    return guard(inner, scratch);
}
