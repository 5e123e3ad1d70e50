/* child.c - vfork and exec. The daemon is large (PMIx, hwloc) and threaded: a vforked child copies no page tables, and
 * does only what is allowed between fork and exec. It shares the daemon's memory until then, which is how it reports
 * what failed. */
#include "config.h"

#include "launcher/child.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *find_variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

static char *join(const char *directory, size_t length, const char *name)
{
    size_t bytes = length + strlen(name) + 3;
    char *path = base_alloc(AREA_LAUNCHER, bytes);
    if (path) snprintf(path, bytes, "%.*s/%s", (int)(length ? length : 1), length ? directory : ".", name);
    return path;
}

int child_find_program(const char *name, char *const *environment, struct child_program *program)
{
    const char *path = find_variable(environment, "PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin"; /* confstr(_CS_PATH) with the place of local programs in front */
    size_t places = 2;
    for (const char *at = path; *at; at++) places += *at == ':';
    atomic_init(&program->found, 0);
    program->places = base_calloc(AREA_LAUNCHER, places, sizeof *program->places);
    if (!program->places) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the places of %s", name);
    if (strchr(name, '/')) {
        program->places[0] = base_strdup(AREA_LAUNCHER, name);
        return program->places[0] ? NCCLX_SUCCESS
                                  : base_error(NCCLX_ERR_NO_MEM, "memory is short for the name of %s", name);
    }
    for (int i = 0;; i++) {
        size_t length = strcspn(path, ":");
        program->places[i] = join(path, length, name);
        if (!program->places[i]) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the places of %s", name);
        if (!path[length]) return NCCLX_SUCCESS;
        path += length + 1;
    }
}

void child_release_program(struct child_program *program)
{
    for (char **place = program->places; place && *place; place++) base_free(AREA_LAUNCHER, *place);
    base_free(AREA_LAUNCHER, program->places);
    program->places = NULL;
}

/* What the child leaves in the daemon's memory. */
struct outcome {
    enum child_step step;
    int error;
};

static void clean_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) sigaction(number, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_descriptors(rlim_t limit)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
    for (int fd = 3; (rlim_t)fd < limit; fd++) close(fd); /* Linux before 5.9 */
}

/* Tries each place; what is forbidden in one may be allowed in the next, and is what is told if none works. */
static int execute(const struct child *child)
{
    int error = ENOENT;
    for (int i = atomic_load(&child->program->found); child->program->places[i]; i++) {
        atomic_store(&child->program->found, i); /* seen by the daemon: memory is shared until exec */
        execve(child->program->places[i], child->argv, child->environment);
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
        if (errno == EACCES) error = EACCES;
    }
    atomic_store(&child->program->found, 0);
    return error;
}

static void run_child(const struct child *child, pid_t daemon, volatile struct outcome *outcome)
{
    struct rlimit raised;
    /* Not a session: the kernel's autogroups would schedule each rank as a group of its own, and a rank that yields
     * would give its core to none of the others. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != daemon) _exit(1); /* it died before the line above */
    if (child->directory && chdir(child->directory)) {
        outcome->step = CHILD_DIRECTORY;
    } else if (child->cpus && sched_setaffinity(0, child->cpus_bytes, child->cpus)) {
        outcome->step = CHILD_BIND;
    } else {
        for (int i = 0; i < 3; i++) dup2(child->stdio[i], i);
        getrlimit(RLIMIT_NOFILE, &raised);
        close_descriptors(raised.rlim_cur);
        setrlimit(RLIMIT_NOFILE, &child->files);
        clean_signals();
        outcome->step = CHILD_PROGRAM;
        errno = execute(child);
    }
    outcome->error = errno;
    _exit(127);
}

enum child_step child_start(const struct child *child, pid_t *pid, int *error)
{
    volatile struct outcome outcome = {.step = CHILD_STARTED};
    sigset_t all, before;
    pid_t daemon = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t child_pid = vfork();
    if (child_pid == 0) run_child(child, daemon, &outcome);
    int fork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child_pid < 0) {
        *error = fork_error;
        return CHILD_FORK;
    }
    *pid = child_pid;
    *error = outcome.error;
    return outcome.error ? outcome.step : CHILD_STARTED;
}
