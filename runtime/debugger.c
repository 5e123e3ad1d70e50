/* debugger.c - NCCLX_DEBUG_WAIT: a rank that waits in ncclx_init until a debugger has attached to it. */
#include "runtime/debugger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 50000000

/* One of "3" and "3-5"; moves behind it. */
static bool read_range(const char **text, unsigned long *first, unsigned long *last)
{
    char *end;
    if (**text < '0' || **text > '9') return false;
    *first = *last = strtoul(*text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') *last = strtoul(end + 1, &end, 10);
    *text = end;
    return *first <= *last;
}

int debugger_is_wanted(const char *list, int rank, bool *wanted)
{
    *wanted = strcmp(list, "all") == 0;
    if (*wanted || !*list) return NCCLX_SUCCESS;
    for (const char *at = list;; at++) {
        unsigned long first, last;
        if (!read_range(&at, &first, &last) || (*at && *at != ','))
            return base_error(NCCLX_ERR_CONFIG, "NCCLX_DEBUG_WAIT is \"%.100s\"; valid is all, or a list of ranks such as 0,3-5", list);
        if ((unsigned long)rank >= first && (unsigned long)rank <= last) *wanted = true;
        if (!*at) return NCCLX_SUCCESS;
    }
}

/* The kernel tells who traces this process. */
static bool is_traced(void)
{
    char text[2048];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *tracer = strstr(text, "TracerPid:");
    return tracer && strtol(tracer + strlen("TracerPid:"), NULL, 10) > 0;
}

int debugger_wait(const struct ncclx_rt *rt)
{
    struct timespec pause = {.tv_nsec = POLL_NS};
    bool wanted;
    int error = debugger_is_wanted(rt->config.value[CONFIG_DEBUG_WAIT].text, rt->job.rank, &wanted);
    if (error || !wanted || is_traced()) return error;
    dprintf(STDERR_FILENO, "ncclx: rank %d on %s waits for a debugger: gdb -p %d\n", rt->job.rank, rt->job.node_name, (int)getpid());
    while (!is_traced() && !atomic_load_explicit(&rt->aborting, memory_order_relaxed)) nanosleep(&pause, NULL);
    return NCCLX_SUCCESS;
}
