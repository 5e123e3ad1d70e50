/* bare.h - what the bare programs (floor.c, socket.c) have in common. */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include "turns.h"

#include <sched.h>

#define BATCHES 9 /* as kernel.c has */

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void pin(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

#endif
