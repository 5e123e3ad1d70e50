/* daemon_where.c - where the ranks of this node are. Those inside the library say so themselves; for those that have
 * not come to it, or have left it, or know nothing of it, the kernel is asked what their process does. */
#include "config.h"

#include "launcher/daemon.h"

#include <stdio.h>
#include <string.h>

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "waits for a device or a file system";
    case 'T':
        return "was stopped by a signal";
    case 't':
        return "was stopped by a debugger";
    case 'Z':
        return "has ended";
    default:
        return "is in a state of its own";
    }
}

static bool read_of(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return base_read_small(path, text, bytes);
}

/* "NAME, which sleeps in do_wait": the name is what /proc/PID/stat has in brackets. */
static void describe(pid_t pid, char *text, size_t bytes)
{
    char stat[512], wait[64];
    snprintf(text, bytes, "process %d", (int)pid);
    if (!read_of(pid, "stat", stat, sizeof stat)) return;
    char *open_bracket = strchr(stat, '('), *close = strrchr(stat, ')');
    if (!open_bracket || !close || close < open_bracket || close[1] != ' ') return;
    bool known = read_of(pid, "wchan", wait, sizeof wait) && wait[0] != '0';
    snprintf(text, bytes, "process %d (%.*s), which %s%s%s", (int)pid, (int)(close - open_bracket - 1),
             open_bracket + 1, state_name(close[2]), known ? " in " : "", known ? wait : "");
}

static void tell_rank(struct daemon *daemon, const struct daemon_rank *rank)
{
    char process[768], name[MESSAGE_RANK_BYTES], line[1200];
    int number = daemon_number(rank);
    bool joined = daemon->server && server_joined(daemon->server, number);
    bool left = joined && server_left(daemon->server, number);
    if (!rank->running || (joined && !left)) return;
    describe(rank->pid, process, sizeof process);
    message_name_rank(&rank->job->launch, rank->rank, name, sizeof name);
    snprintf(line, sizeof line, "%s on %s: %s: %s", name, daemon->node,
             left ? "after ncclx_finalize" : "not in the library", process);
    daemon_trouble(daemon, line);
}

void daemon_tell_where(struct daemon *daemon)
{
    for (struct daemon_job *job = daemon->jobs; job; job = job->next)
        for (int i = 0; i < job->rank_count; i++) tell_rank(daemon, &job->ranks[i]);
}
