/* wait.c - what a rank does between polls that find nothing. */
#include "runtime/base/base.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A clock read and a look at flags every so many idle rounds: rare enough to cost nothing, often enough for deadlines of a millisecond. */
#define ROUNDS_PER_CHECK 64
/* Idle for this long, a rank sleeps instead of yielding; each sleep is bounded, so a wake-up that is lost costs no more than that. */
#define SLEEP_AFTER_NS UINT64_C(20000000)
#define SLEEP_NS UINT64_C(1000000)

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void base_wait_set_timeout(struct base_wait *wait, uint64_t ns)
{
    wait->started_ns = base_clock_ns();
    wait->deadline_ns = ns > UINT64_MAX - wait->started_ns ? UINT64_MAX : wait->started_ns + ns;
}

static void line(const struct base_wait *wait, char *text, size_t bytes)
{
    char what[256] = "";
    if (wait->describe) wait->describe(wait->arg, what, sizeof what);
    double seconds = wait->started_ns ? (double)(base_clock_ns() - wait->started_ns) / 1e9 : 0;
    snprintf(text, bytes, "in %s for %.1f s%s%s", wait->call, seconds, what[0] ? ": " : "", what);
}

void base_wait_report(struct ncclx_rt *rt)
{
    char text[512];
    const struct base_wait *wait = rt->waiting;
    if (wait) line(wait, text, sizeof text);
    else snprintf(text, sizeof text, "waits for nothing: the program computes");
    dprintf(STDERR_FILENO, "ncclx: rank %d on %s: %s\n", rt->job.rank, rt->job.node_name, text);
}

int base_wait_check(struct base_wait *wait)
{
    struct ncclx_rt *rt = wait->rt;
    if (atomic_load_explicit(&rt->aborting, memory_order_relaxed))
        return base_error(NCCLX_ERR_ABORTED, "%s: the job is being ended", wait->call);
    uint64_t now = base_clock_ns();
    if (!wait->started_ns) {
        wait->started_ns = now;
        if (rt->timeout_ns) wait->deadline_ns = now + rt->timeout_ns;
    }
    unsigned wanted = atomic_load_explicit(&rt->dump_requested, memory_order_relaxed);
    if (wanted != wait->dumped) {
        wait->dumped = wanted;
        base_wait_report(rt);
        atomic_store_explicit(&rt->dump_answered, wanted, memory_order_relaxed);
    }
    if (wait->deadline_ns && now >= wait->deadline_ns) {
        char text[512];
        line(wait, text, sizeof text);
        return base_error(NCCLX_ERR_TIMEOUT, "deadline passed %s", text);
    }
    return NCCLX_SUCCESS;
}

int base_wait_idle(struct base_wait *wait)
{
    struct ncclx_rt *rt = wait->rt;
    unsigned round = ++wait->rounds;
    if (round < rt->spin_limit && round % ROUNDS_PER_CHECK) {
        base_rt_unlock(rt);
        relax();
        base_rt_lock(rt);
        return NCCLX_SUCCESS;
    }
    if (round % ROUNDS_PER_CHECK == 0 || !wait->started_ns) {
        int error = base_wait_check(wait);
        if (error) return error;
    }
    bool sleep = false;
    if (round >= rt->spin_limit && round % ROUNDS_PER_CHECK == 0)
        sleep = rt->block && base_clock_ns() - wait->started_ns > SLEEP_AFTER_NS;
    base_rt_unlock(rt);
    if (sleep) {
        wait->rounds = (rt->spin_limit | (ROUNDS_PER_CHECK - 1)); /* sleep again after the next empty poll */
        rt->block(rt->block_arg, SLEEP_NS);
    } else if (round >= rt->spin_limit) {
        sched_yield();
    } else {
        relax();
    }
    base_rt_lock(rt);
    return NCCLX_SUCCESS;
}
