/* wait.c - what a rank does between polls that find nothing. */
#include "runtime/base/base.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A clock read and a look at flags every so many idle rounds: rare enough to cost nothing, often enough for deadlines of a millisecond. A round
 * that yields may take long. */
#define ROUNDS_PER_CHECK 64
#define YIELDS_PER_CHECK 8

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

static void say(const struct ncclx_rt *rt, const char *text)
{
    dprintf(STDERR_FILENO, "ncclx: rank %d on %s: %s\n", rt->job.rank, rt->job.node_name, text);
}

static int check_deadline(const struct base_wait *wait, uint64_t now)
{
    char text[512];
    if (!wait->deadline_ns || now < wait->deadline_ns) return NCCLX_SUCCESS;
    line(wait, text, sizeof text);
    return base_error(NCCLX_ERR_TIMEOUT, "deadline passed %s", text);
}

/* Why what has not completed yet is not waited for any more. */
static int check_faults(const struct ncclx_rt *rt, const char *call)
{
    if (atomic_load_explicit(&rt->aborting, memory_order_relaxed))
        return base_error(NCCLX_ERR_ABORTED, "%s: the job is being ended", call);
    if (rt->lost_peer) return base_error(NCCLX_ERR_PROC_FAILED, "%s: rank %d is lost: %s", call, rt->lost_peer - 1, rt->lost_why);
    return NCCLX_SUCCESS;
}

int base_wait_check(struct base_wait *wait)
{
    struct ncclx_rt *rt = wait->rt;
    char text[512];
    int error = check_faults(rt, wait->call);
    if (error) return error;
    uint64_t now = base_clock_ns();
    wait->checked_ns = now;
    if (!wait->idle_ns) wait->idle_ns = now;
    if (!wait->started_ns) {
        wait->started_ns = now;
        if (rt->timeout_ns) wait->deadline_ns = now + rt->timeout_ns;
    }
    if (rt->watch && now >= rt->watch_ns) rt->watch(rt, now);
    unsigned wanted = atomic_load_explicit(&rt->dump_requested, memory_order_relaxed);
    if (wanted != wait->dumped) {
        wait->dumped = wanted;
        atomic_store_explicit(&rt->dump_answered, wanted, memory_order_relaxed);
        line(wait, text, sizeof text);
        say(rt, text);
    }
    return check_deadline(wait, now);
}

int base_look_check_slowly(struct ncclx_rt *rt, const char *call)
{
    if (rt->watch && base_clock_coarse_ns() >= rt->watch_ns) rt->watch(rt, base_clock_ns());
    return check_faults(rt, call);
}

bool base_wait_ready(const struct ncclx_rt *rt)
{
    for (const struct base_wait *wait = rt->waiting; wait; wait = wait->next)
        if (wait->ready && wait->ready(wait->arg)) return true;
    return false;
}

/* Not beyond its deadline. */
static void sleep_a_while(const struct base_wait *wait)
{
    struct ncclx_rt *rt = wait->rt;
    uint64_t left = wait->deadline_ns ? wait->deadline_ns - wait->checked_ns : UINT64_MAX;
    rt->block(rt->block_arg, left < rt->sleep_ns ? left : rt->sleep_ns);
}

/* With the lock given up. */
static void pass_time(struct base_wait *wait, bool yielding, bool sleep)
{
    if (sleep) sleep_a_while(wait);
    else if (yielding) sched_yield();
    else base_relax();
}

int base_wait_idle(struct base_wait *wait)
{
    struct ncclx_rt *rt = wait->rt;
    unsigned round = ++wait->rounds;
    bool yielding = round >= rt->spin_limit, sleep = false;
    if (round == 1) wait->idle_ns = 0;
    if (round % (yielding ? YIELDS_PER_CHECK : ROUNDS_PER_CHECK) == 0) {
        int error = base_wait_check(wait);
        if (error) return error;
        sleep = yielding && rt->block && wait->checked_ns - wait->idle_ns > rt->sleep_after_ns;
        if (sleep) wait->rounds = rt->spin_limit | (ROUNDS_PER_CHECK - 1); /* check and sleep again after the next empty poll */
    }
    base_rt_unlock(rt);
    pass_time(wait, yielding, sleep);
    base_rt_lock(rt);
    return NCCLX_SUCCESS;
}
