/* dying.c - see dying.h. */
#include "config.h"

#include "launcher/dying.h"

#include "runtime/base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* In the flags of /proc/PID/task/TID/stat: include/linux/sched.h of the kernel. */
#define PF_EXITING 0x4u

/* Of a thread that is gone meanwhile, too. */
static bool thread_is_dying(pid_t pid, const char *thread)
{
    char path[96], text[512];
    unsigned flags;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, thread);
    if (!base_read_small(path, text, sizeof text)) return true;
    const char *after = strrchr(text, ')'); /* the command may hold blanks and parentheses */
    return after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & PF_EXITING);
}

bool process_is_dying(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    bool dying = true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *directory = opendir(path);
    if (!directory) return false;
    while (dying && (entry = readdir(directory)))
        if (entry->d_name[0] != '.') dying = thread_is_dying(pid, entry->d_name);
    closedir(directory);
    return dying;
}
