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

struct process {
    pid_t pid, parent, session;
    bool dead; /* or its first thread is: while others of its threads end, it still is the parent of its children */
};

struct processes {
    struct process *list;
    int count, room;
};

/* Fields of /proc/PID/stat after the command, which may hold blanks and parentheses. False for a process that is gone. */
static bool read_process(const char *name, struct process *process)
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
    int parent, group, session;
    if (!after || sscanf(after + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4) return false;
    *process = (struct process){
        .pid = (pid_t)atoi(name), .parent = parent, .session = session, .dead = state == 'Z' || state == 'X'};
    return true;
}

static void list_processes(struct processes *all)
{
    memset(all, 0, sizeof *all);
    DIR *directory = opendir("/proc");
    if (!directory) return;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        struct process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(entry->d_name, &process)) continue;
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

/* Follows the parents up; the list is sorted. A chain longer than the list is a pid that was used again meanwhile. */
static bool descends(const struct processes *all, const struct process *process, pid_t root)
{
    for (int steps = 0; process && steps < all->count; steps++) {
        if (process->parent == root) return true;
        struct process parent = {.pid = process->parent};
        process = bsearch(&parent, all->list, (size_t)all->count, sizeof *all->list, by_pid);
    }
    return false;
}

int sweep_descendants(int signal_number, pid_t spared)
{
    struct processes all;
    pid_t root = getpid();
    int found = 0;
    list_processes(&all);
    if (all.count) qsort(all.list, (size_t)all.count, sizeof *all.list, by_pid);
    for (int i = 0; i < all.count; i++) {
        const struct process *process = &all.list[i];
        if (process->dead || process->pid == root || process->session == spared || !descends(&all, process, root)) continue;
        kill(process->pid, signal_number);
        found++;
    }
    base_free(AREA_LAUNCHER, all.list);
    return found;
}

void sweep_kill(pid_t spared, int timeout_ms)
{
    int empty = 0; /* a walk through /proc is no snapshot: a process may change its parent meanwhile, so one is not enough */
    for (int waited = 0; waited < timeout_ms; waited += SWEEP_AGAIN_MS) {
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (reaped < 0 && errno == ECHILD) return; /* no child, hence no descendant */
        if (sweep_descendants(SIGKILL, spared)) empty = 0;
        else if (++empty == 2) return;
        usleep(SWEEP_AGAIN_MS * 1000);
    }
}
