/* pulse.c - see pulse.h. */
#include "config.h"

#include "launcher/pulse.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As in /proc/PID/stat; 0: there is no such process. */
static char state_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *after = base_read_small(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return after && after[1] == ' ' ? after[2] : 0;
}

bool pulse_is_stopped(pid_t pid)
{
    char state = state_of(pid);
    return state == 'T' || state == 't';
}

bool pulse_felt(struct pulse *pulse, pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    char state = state_of(pid);
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used)) return false;
    uint64_t cpu_ns = (uint64_t)used.tv_sec * BASE_NS_PER_S + (uint64_t)used.tv_nsec;
    bool ran = cpu_ns != pulse->cpu_ns;
    pulse->cpu_ns = cpu_ns;
    return state == 'R' || (ran && (state == 'S' || state == 'D'));
}

pid_t pulse_child_of(pid_t pid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    return base_read_small(path, text, sizeof text) ? (pid_t)atoi(text) : 0;
}
