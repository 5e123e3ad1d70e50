/* clock.h - monotonic time, and the shortest pause. Protocol cores never call this: their drivers pass the time in. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define BASE_NS_PER_S UINT64_C(1000000000)

static inline uint64_t base_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * BASE_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* A few milliseconds behind base_clock_ns, and cheap enough for every look of a busy loop. */
static inline uint64_t base_clock_coarse_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * BASE_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Between two looks at memory that another core writes. */
static inline void base_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
