/* common.h - what the programs that measure have in common. */
#ifndef PERF_COMMON_H
#define PERF_COMMON_H

#include "turns.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#define BATCHES 9
#define IN_FLIGHT 64 /* messages of the bandwidth tests, as OSU's have */
#define IN_FLIGHT_BYTES ((size_t)64 << 20)
#define IN_FLIGHT_LEAST 4

/* Of large messages fewer: a batch would take seconds. */
static inline int in_flight(size_t bytes)
{
    if (bytes <= IN_FLIGHT_BYTES / IN_FLIGHT) return IN_FLIGHT;
    return bytes < IN_FLIGHT_BYTES / IN_FLIGHT_LEAST ? (int)(IN_FLIGHT_BYTES / bytes) : IN_FLIGHT_LEAST;
}

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Whole pages, and there: how fast memory is copied may depend on where in a page both sides begin. Null: there are none. */
static inline char *make_buffer(size_t bytes)
{
    size_t room = (bytes + 4095) / 4096 * 4096;
    char *buffer = aligned_alloc(4096, room);
    if (buffer) memset(buffer, 0, room);
    return buffer;
}

#endif
