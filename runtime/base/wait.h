/* wait.h - how a rank waits: it spins while cores are free, yields when the node is oversubscribed, sleeps when idle for long; and all
 * the while it looks for the job's end, its deadline and the wish to know what it waits for.
 *
 *     struct base_wait wait;
 *     base_wait_begin(&wait, rt, "ncclx_recv", describe, request);
 *     while (!done && !error) error = base_wait_step(&wait);
 *     base_wait_end(&wait);
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include "runtime/base/rt.h"

#include <stddef.h>
#include <stdint.h>

typedef void (*base_describe_fn)(const void *arg, char *text, size_t bytes);

struct base_wait {
    struct ncclx_rt *rt;
    const char *call;          /* API function */
    base_describe_fn describe; /* may be null */
    const void *arg;
    bool (*ready)(const void *arg); /* true: what it waits for is there, though no poller says so (memory that peers write); null: pollers tell */
    struct base_wait *next, *previous; /* rt->waiting: the waits in progress, of all threads */
    uint64_t started_ns;       /* 0 until the wait is found to be long */
    uint64_t deadline_ns;      /* 0: none */
    uint64_t checked_ns;       /* clock at the last check */
    uint64_t idle_ns;          /* clock at the first check since the last event; 0 before it */
    unsigned rounds;           /* polls that found nothing since the last event */
    unsigned busy;             /* polls that found something since the last check among them */
    unsigned dumped;           /* dump request answered last */
};

static inline void base_wait_begin(struct base_wait *wait, struct ncclx_rt *rt, const char *call,
                                   base_describe_fn describe, const void *arg)
{
    wait->rt = rt;
    wait->call = call;
    wait->describe = describe;
    wait->arg = arg;
    wait->ready = NULL;
    wait->started_ns = 0;
    wait->deadline_ns = 0;
    wait->idle_ns = 0;
    wait->rounds = 0;
    wait->busy = 0;
    wait->dumped = atomic_load_explicit(&rt->dump_requested, memory_order_relaxed);
    wait->previous = NULL;
    wait->next = rt->waiting;
    if (wait->next) wait->next->previous = wait;
    rt->waiting = wait;
}

static inline void base_wait_end(struct base_wait *wait)
{
    if (wait->next) wait->next->previous = wait->previous;
    if (wait->previous) wait->previous->next = wait->next;
    else wait->rt->waiting = wait->next;
}

/* A deadline of its own, instead of NCCLX_TIMEOUT; ns from now. */
void base_wait_set_timeout(struct base_wait *wait, uint64_t ns);
/* After a poll that found nothing. SUCCESS, ERR_TIMEOUT (detail says what was waited for) or ERR_ABORTED. Gives the lock up in between. */
int base_wait_idle(struct base_wait *wait);
/* For a wait that sleeps by itself: the look at the job's end, the deadline and dump requests alone. Results as base_wait_idle. */
int base_wait_check(struct base_wait *wait);
/* Polls that find something are looked at so rarely: even the shortest take tens of microseconds together. */
#define BASE_WAIT_BUSY_ROUNDS 1024

/* After a poll that found something, which need not be what the wait is for: results as base_wait_check. */
static inline int base_wait_busy(struct base_wait *wait)
{
    wait->rounds = 0;
    if (__builtin_expect(wait->rt->threaded, 0)) base_rt_give_way(wait->rt);
    if (__builtin_expect(++wait->busy < BASE_WAIT_BUSY_ROUNDS, 1)) return 0;
    wait->busy = 0;
    return base_wait_check(wait);
}

/* Polls once, and idles when that finds nothing. Results as base_wait_idle. */
static inline int base_wait_step(struct base_wait *wait)
{
    return base_progress(wait->rt) ? base_wait_busy(wait) : base_wait_idle(wait);
}

int base_look_check_slowly(struct ncclx_rt *rt, const char *call);

/* For a call that looks once instead, and has found nothing complete: a program that loops on it would never learn otherwise that a peer
 * is lost or the job's end has come. Results as base_wait_check, less the deadline. */
static inline int base_look_check(struct ncclx_rt *rt, const char *call)
{
    bool quiet = !rt->lost_peer && !rt->watch && !atomic_load_explicit(&rt->aborting, memory_order_relaxed);
    return __builtin_expect(quiet, 1) ? NCCLX_SUCCESS : base_look_check_slowly(rt, call);
}

/* The last look before a sleep, under the lock: whether some wait is over. */
bool base_wait_ready(const struct ncclx_rt *rt);

#endif
