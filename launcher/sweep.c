/* sweep.c - walks /proc once for each sweep. */
#include "config.h"

#include "launcher/sweep.h"

#include "runtime/base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEP_AGAIN_MS 20
#define SWEEP_TIMES 50
#define SWEEP_ENVIRONMENT_BYTES ((size_t)4 << 20)

struct process {
    pid_t pid, parent, session;
    bool daemon; /* ncclxd, started by an agent for the job that is spared */
    bool stopped;
    bool dead;   /* all of it: a process whose first thread has ended runs on while it has others, and is a parent still */
};

struct processes {
    struct process *list;
    int count, room;
};

/* By its arguments: ncclxd --order JOB. */
static bool is_daemon(const char *name, const char *job)
{
    char path[64], text[512], wanted[160];
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", name);
    int fd = job ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return false;
    ssize_t got = read(fd, text, sizeof text);
    close(fd);
    int length = snprintf(wanted, sizeof wanted, "--order%c%s", 0, job) + 1; /* with the zero byte at its end */
    return got >= length && !memcmp(text + got - length, wanted, (size_t)length);
}

/* Fields of /proc/PID/stat after the command, which may hold blanks and parentheses. False for a process that is gone. */
static bool read_process(const char *name, const char *job, struct process *process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return false;
    text[got] = 0;
    const char *after = strrchr(text, ')');
    char state;
    int parent, group, session, threads;
    if (!after || sscanf(after + 1, " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &state, &parent,
                         &group, &session, &threads) != 5)
        return false;
    *process = (struct process){.pid = (pid_t)atoi(name),
                                .parent = parent,
                                .session = session,
                                .dead = state == 'X' || (state == 'Z' && threads <= 1)};
    process->stopped = state == 'T';
    process->daemon = strstr(text, "(ncclxd)") && !process->dead && is_daemon(name, job);
    return true;
}

static void list_processes(struct processes *all, const char *job)
{
    memset(all, 0, sizeof *all);
    DIR *directory = opendir("/proc");
    if (!directory) return;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        struct process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(entry->d_name, job, &process)) continue;
        if (all->count == all->room) {
            int room = all->room ? 2 * all->room : 256;
            struct process *list = base_realloc(AREA_LAUNCHER, all->list, (size_t)room * sizeof *list);
            if (!list) break;
            all->list = list;
            all->room = room;
        }
        all->list[all->count++] = process;
    }
    closedir(directory);
}

static int by_pid(const void *a, const void *b)
{
    const struct process *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

static bool is_spared(const struct sweep_spare *spare, const struct process *process)
{
    for (int i = 0; i < spare->count; i++)
        if (spare->processes[i] == process->pid) return true;
    return false;
}

/* Every daemon has a session of its own, in which its ranks are. */
static bool is_others(const struct processes *all, const struct process *process, pid_t own)
{
    for (int i = 0; i < all->count && process->session != own; i++)
        if (all->list[i].daemon && all->list[i].session == process->session) return true;
    return false;
}

/* Follows the parents up; the list is sorted. A chain longer than the list is a pid that was used again meanwhile. */
static bool descends(const struct processes *all, const struct process *process, pid_t root,
                     const struct sweep_spare *spare)
{
    for (int steps = 0; process && steps < all->count && !is_spared(spare, process); steps++) {
        if (process->parent == root) return true;
        struct process parent = {.pid = process->parent};
        process = bsearch(&parent, all->list, (size_t)all->count, sizeof *all->list, by_pid);
    }
    return false;
}

int sweep_descendants(int signal_number, const struct sweep_spare *spare)
{
    struct processes all;
    pid_t root = getpid(), own = getsid(0);
    int found = 0;
    list_processes(&all, spare->job);
    if (all.count) qsort(all.list, (size_t)all.count, sizeof *all.list, by_pid);
    for (int i = 0; i < all.count; i++) {
        const struct process *process = &all.list[i];
        if (process->dead || process->pid == root ||
            (spare->one_session && process->session == spare->session) || !descends(&all, process, root, spare) || (spare->job && is_others(&all, process, own)))
            continue;
        kill(process->pid, signal_number);
        found++;
    }
    base_free(AREA_LAUNCHER, all.list);
    return found;
}

void sweep_kill(const struct sweep_spare *spare, int timeout_ms)
{
    int empty = 0; /* a walk through /proc is no snapshot: a process may change its parent meanwhile, so one is not enough */
    for (int waited = 0; waited < timeout_ms; waited += SWEEP_AGAIN_MS) {
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (reaped < 0 && errno == ECHILD) return; /* no child, hence no descendant */
        if (sweep_descendants(SIGKILL, spare)) empty = 0;
        else if (++empty == 2) return;
        usleep(SWEEP_AGAIN_MS * 1000);
    }
}

/* True when NAME=value stands in the environment that the process was started with. */
static bool has_variable(const char *name, const char *wanted)
{
    size_t length = strlen(wanted) + 1, room = SWEEP_ENVIRONMENT_BYTES, used = 0;
    char path[64], *text = base_alloc(AREA_LAUNCHER, room);
    snprintf(path, sizeof path, "/proc/%.20s/environ", name);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t got; fd >= 0 && used < room && (got = read(fd, text + used, room - used)) > 0;) used += (size_t)got;
    if (fd >= 0) close(fd);
    bool found = false;
    for (size_t at = 0; !found && at + length <= used; at += strnlen(text + at, used - at) + 1)
        found = !memcmp(text + at, wanted, length);
    base_free(AREA_LAUNCHER, text);
    return found;
}

/* Returns how many there were. */
static int kill_of_job(const char *job, const char *variable)
{
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    int found = 0;
    while (directory && (entry = readdir(directory))) {
        struct process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(entry->d_name, job, &process)) continue;
        if (process.dead || process.pid == getpid() || !(process.daemon ? process.stopped : has_variable(entry->d_name, variable)))
            continue;
        if (kill(process.pid, SIGKILL) == 0) found++;
    }
    if (directory) closedir(directory);
    return found;
}

void sweep_job(const char *job)
{
    char variable[192];
    snprintf(variable, sizeof variable, "PMIX_NAMESPACE=%.160s", job);
    for (int i = 0; i < SWEEP_TIMES && kill_of_job(job, variable) > 0; i++) usleep(SWEEP_AGAIN_MS * 1000);
}
