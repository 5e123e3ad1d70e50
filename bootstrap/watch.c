/* watch.c - under a process manager that lets the others wait when a rank dies (Slurm without -K), the ranks of a node
 * watch each other, and the first that sees a death ends the job.
 *
 * They see what the node shows. The process manager's daemon starts the ranks of its node: they are children of one
 * process, and the environment of each says which rank it is. A rank that waits, or polls, looks now and then whether they
 * are still there; nothing is done before the first long wait, there is no thread, and nothing is asked of the server. What
 * cannot be read (another user's processes, no /proc) is not watched. A rank that is alone on its node has nobody who
 * watches it: of that Slurm is asked (step.c). Under ncclxrun its daemon does all this.
 *
 * A rank that leaves in an orderly way is gone, too: nobody leaves before all are in the fence of the end, so only
 * those who wait there may see it, and they give it more time. */
#include "bootstrap/client.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS (BASE_NS_PER_S / 10)
#define LOOKS_PER_CHECK 8                /* at which also those are found who are dead and not buried */
/* Gone for so long, while this rank waits: it is dead. What has not been seen yet may be about to start. */
#define GONE_NS (BASE_NS_PER_S / 20)
#define UNSEEN_NS BASE_NS_PER_S
#define LEAVING_NS (5 * BASE_NS_PER_S)   /* in the fence of the end */
#define TURN_NS (BASE_NS_PER_S / 4)      /* one rank speaks: each waits a bit longer than the one before */
#define ENVIRONMENT_MAX (256 << 10)      /* of a rank, as far as it is read */
#define PATH_BYTES 96

struct peer {
    pid_t pid;         /* 0: not found yet */
    uint64_t gone_ns;  /* since when it is missing; 0: it is there */
};

struct bootstrap_watch {
    pid_t parent; /* of the ranks of this node */
    char *room;   /* ENVIRONMENT_MAX bytes */
    struct peer *peers; /* by index on the node */
    unsigned looks;
    bool blind; /* nothing can be seen here, or nobody is there */
};

/* ---- What the node shows ---- */

static ssize_t read_file(const char *path, char *text, size_t bytes)
{
    size_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    while (used < bytes - 1) {
        ssize_t got = read(fd, text + used, bytes - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    close(fd);
    text[used] = 0;
    return (ssize_t)used;
}

/* State and parent of a process; the state is X when there is none. */
static char state_of(pid_t pid, pid_t *parent)
{
    char path[PATH_BYTES], text[1024], state = 'X';
    int above = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *name_end = read_file(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!name_end || sscanf(name_end + 1, " %c %d", &state, &above) != 2) state = 'X';
    if (parent) *parent = above;
    return state;
}

static bool is_alive(pid_t pid)
{
    char state = state_of(pid, NULL);
    return state != 'X' && state != 'Z';
}

static const char *find_setting(const char *text, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; at < text + bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=') return at + length + 1;
    return NULL;
}

/* The rank of our job that a process was started as; -1: it was not; -2: who knows. */
static int rank_of(struct bootstrap *boot, pid_t pid)
{
    char path[PATH_BYTES], *room = boot->watch->room;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    ssize_t bytes = read_file(path, room, ENVIRONMENT_MAX);
    if (bytes <= 0) return -2;
    const char *job = find_setting(room, (size_t)bytes, "PMIX_NAMESPACE"), *rank = find_setting(room, (size_t)bytes, "PMIX_RANK");
    if (!job || !rank || strcmp(job, boot->self.nspace) || !isdigit((unsigned char)*rank)) return -1;
    return atoi(rank);
}

/* The parent of the topmost process that was started as this rank: the program may be run by a script. */
static pid_t find_parent(struct bootstrap *boot)
{
    pid_t pid = getpid(), parent;
    while (state_of(pid, &parent) != 'X' && parent > 1) {
        if (rank_of(boot, parent) != boot->rt->job.rank) return parent;
        pid = parent;
    }
    return 0;
}

/* Notes which ranks the children of one thread of the parent are. Returns how many are not known. */
static int note_children(struct bootstrap *boot, const char *list)
{
    struct bootstrap_watch *watch = boot->watch;
    int unknown = 0;
    for (char *end; *list; list = *end ? end + 1 : end) {
        pid_t pid = (pid_t)strtol(list, &end, 10);
        if (end == list) break;
        bool noted = false;
        for (int i = 0; i < boot->rt->job.local_size && !noted; i++) noted = watch->peers[i].pid == pid;
        if (noted) continue;
        int rank = rank_of(boot, pid), index = rank >= 0 ? base_job_local_index(&boot->rt->job, rank) : -1;
        if (index >= 0) watch->peers[index].pid = pid;
        else if (is_alive(pid)) unknown++; /* it may become a rank yet */
    }
    return unknown;
}

/* -1: that cannot be seen here. */
static int look_at_children(struct bootstrap *boot)
{
    char path[PATH_BYTES], list[64 << 10];
    int unknown = 0, seen = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)boot->watch->parent);
    DIR *threads = opendir(path);
    if (!threads) return -1;
    for (struct dirent *entry = readdir(threads); entry; entry = readdir(threads)) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)boot->watch->parent, entry->d_name);
        if (read_file(path, list, sizeof list) < 0) continue;
        seen++;
        unknown += note_children(boot, list);
    }
    closedir(threads);
    return seen ? unknown : -1;
}

/* ---- Deaths ---- */

static bool all_known(const struct bootstrap *boot)
{
    for (int i = 0; i < boot->rt->job.local_size; i++)
        if (!boot->watch->peers[i].pid) return false;
    return true;
}

static void end_job(struct bootstrap *boot, int index)
{
    const struct base_job *job = &boot->rt->job;
    char text[600], who[64] = "";
    pid_t pid = boot->watch->peers[index].pid;
    if (pid) snprintf(who, sizeof who, " (pid %ld)", (long)pid);
    snprintf(text, sizeof text, "rank %d on %.255s%s died without leaving the job; rank %d saw it and ends the job",
             job->local_ranks[index], job->node_name, who, job->rank);
    dprintf(STDERR_FILENO, "ncclx: %s\n", text);
    bootstrap_abort(boot->rt, 1, text);
}

static bool is_there(const struct bootstrap_watch *watch, const struct peer *peer, bool all_found)
{
    if (!peer->pid) return !all_found;
    if (kill(peer->pid, 0) && errno == ESRCH) return false;
    return watch->looks % LOOKS_PER_CHECK != 0 || is_alive(peer->pid);
}

/* Those who come before this rank on the node speak first. */
static void check_peers(struct bootstrap *boot, bool all_found, uint64_t now)
{
    const struct base_job *job = &boot->rt->job;
    uint64_t turn = 0;
    boot->watch->looks++;
    for (int i = 0; i < job->local_size; i++) {
        struct peer *peer = &boot->watch->peers[i];
        if (i == job->local_rank) continue;
        if (peer->gone_ns && peer->pid) continue;
        if (is_there(boot->watch, peer, all_found)) {
            peer->gone_ns = 0;
            turn += i < job->local_rank ? TURN_NS : 0;
        } else if (!peer->gone_ns) {
            peer->gone_ns = now;
            boot->rt->watch_ns = now + GONE_NS;
        }
    }
    for (int i = 0; i < job->local_size; i++) {
        const struct peer *peer = &boot->watch->peers[i];
        uint64_t patience = boot->ending ? LEAVING_NS : peer->pid ? GONE_NS : UNSEEN_NS;
        if (peer->gone_ns && now - peer->gone_ns >= patience + turn) end_job(boot, i);
    }
}

static bool begin(struct bootstrap *boot)
{
    struct bootstrap_watch *watch = base_calloc(AREA_BOOTSTRAP, 1, sizeof *watch);
    if (!watch) return false;
    boot->watch = watch;
    if (boot->rt->job.local_size < 2) return false;
    watch->room = base_alloc(AREA_BOOTSTRAP, ENVIRONMENT_MAX);
    watch->peers = base_calloc(AREA_BOOTSTRAP, (size_t)boot->rt->job.local_size, sizeof *watch->peers);
    if (!watch->room || !watch->peers) return false;
    watch->parent = find_parent(boot);
    return watch->parent > 0;
}

static void look_at_node(struct bootstrap *boot, uint64_t now)
{
    int unknown = all_known(boot) ? 0 : look_at_children(boot);
    boot->watch->blind = unknown < 0;
    if (unknown >= 0) check_peers(boot, unknown == 0, now);
}

static void look(struct ncclx_rt *rt, uint64_t now)
{
    struct bootstrap *boot = rt->bootstrap;
    rt->watch_ns = now + LOOK_NS;
    if (!boot->watch && !begin(boot)) {
        if (boot->watch) boot->watch->blind = true;
    } else if (!boot->watch->blind) {
        look_at_node(boot, now);
    }
    bool elsewhere = bootstrap_step_look(boot, now);
    if (!elsewhere && (!boot->watch || boot->watch->blind)) rt->watch = NULL;
}

void bootstrap_watch_start(struct bootstrap *boot)
{
    struct ncclx_rt *rt = boot->rt;
    if (rt->job.own_launcher || (!bootstrap_step_start(boot) && rt->job.local_size < 2)) return;
    rt->watch_ns = base_clock_ns() + LOOK_NS;
    rt->watch = look;
}

void bootstrap_watch_release(struct bootstrap *boot)
{
    if (boot->rt) boot->rt->watch = NULL;
    if (!boot->watch) return;
    base_free(AREA_BOOTSTRAP, boot->watch->room);
    base_free(AREA_BOOTSTRAP, boot->watch->peers);
    base_free(AREA_BOOTSTRAP, boot->watch);
    boot->watch = NULL;
}
