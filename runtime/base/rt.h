/* rt.h - struct ncclx_rt, one rank. A process has one; a test can have thousands. */
#ifndef BASE_RT_H
#define BASE_RT_H

#include "runtime/base/comm.h"
#include "runtime/base/config.h"
#include "runtime/base/job.h"
#include "runtime/base/request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BASE_MAX_POLLERS 4

/* Looks once for work and does it; returns how many events it handled. Called with the lock held. */
typedef int (*base_poll_fn)(void *arg);
/* Sleeps until something may have happened or `ns` have passed. Called without the lock. */
typedef void (*base_block_fn)(void *arg, uint64_t ns);
/* Ends that sleep, or the next one. Called by any thread, without the lock. */
typedef void (*base_wake_fn)(void *arg);

struct ncclx_rt {
    struct {
        base_poll_fn function;
        void *arg;
    } pollers[BASE_MAX_POLLERS];
    int poller_count;
    bool threaded;  /* more than one thread may call: take the lock */
    bool check;     /* NCCLX_CHECK: ranks compare collective calls before they begin */
    bool polling;   /* inside base_progress: completion callbacks must not drive progress again */
    int thread_level;
    unsigned spin_limit;   /* polls that find nothing before a waiting rank yields */
    uint64_t sleep_after_ns, sleep_ns; /* idle for so long it sleeps instead, for so long at a time */
    uint64_t timeout_ns;   /* NCCLX_TIMEOUT; 0: none */
    base_block_fn block;   /* null: nothing to sleep on, only yield */
    base_wake_fn wake;
    void *block_arg;
    pthread_mutex_t wake_lock; /* keeps block_arg alive while another thread wakes */
    pthread_mutex_t lock;
    _Atomic uintptr_t lock_owner; /* the thread that held it last */
    atomic_uint lock_wanted;      /* threads that have found it taken */
    atomic_uint lock_turn;        /* counts acquisitions, so that a thread that gives way sees it taken */
    pthread_t main_thread;
    pthread_t agent;
    bool agent_running;
    atomic_bool agent_stop;
    void (*watch)(struct ncclx_rt *rt, uint64_t now); /* what a rank that waits, or looks, looks at now and then; null: nothing */
    uint64_t watch_ns;            /* when next */
    atomic_bool aborting;         /* the job is being ended: waits and looks return ERR_ABORTED */
    atomic_uint dump_requested;   /* counts requests to print what this rank waits for */
    atomic_uint dump_answered;    /* the last of them that a wait has answered */
    int lost_peer;                /* job rank of the first one that was lost, plus one; 0: none */
    char lost_why[256];
    struct base_wait *waiting;    /* waits in progress, newest first; null: the program computes */
    struct base_job job;
    struct base_config config;
    struct ncclx_request done;    /* base_request_done */
    struct ncclx_comm *world;     /* COMM_WORLD, COMM_SELF */
    struct ncclx_comm *self;
    struct bootstrap *bootstrap;  /* one opaque pointer a folder */
    struct topo *topo;
    struct pml *pml;
    struct coll *coll;
    struct osc *osc;
    struct runtime *runtime;
};

/* Sets locks, defaults and configuration (environment: null for the process'). job is filled by bootstrap afterwards. */
int base_rt_init(struct ncclx_rt *rt, char **environment);
/* Once the job is known: spin limit from oversubscription and NCCLX_SPIN, log identity, timeout, NCCLX_CHECK. */
void base_rt_configure(struct ncclx_rt *rt);
void base_rt_release(struct ncclx_rt *rt);
int base_rt_add_poller(struct ncclx_rt *rt, base_poll_fn function, void *arg);
void base_rt_remove_poller(struct ncclx_rt *rt, base_poll_fn function, void *arg);

/* A thread that comes back for the lock at once lets those who wait for it go first. */
void base_rt_lock_threaded(struct ncclx_rt *rt);
/* With the lock held: lets a thread that waits for it have it, if there is one, and takes it again. */
void base_rt_give_way(struct ncclx_rt *rt);

static inline void base_rt_lock(struct ncclx_rt *rt)
{
    if (__builtin_expect(rt->threaded, 0)) base_rt_lock_threaded(rt);
}

static inline void base_rt_unlock(struct ncclx_rt *rt)
{
    if (__builtin_expect(rt->threaded, 0)) pthread_mutex_unlock(&rt->lock);
}

/* What the rank sleeps on from now on; null: nothing any more. */
void base_rt_sleep_on(struct ncclx_rt *rt, base_block_fn block, base_wake_fn wake, void *arg);
/* For threads that bring what no poller and no peer's wake-up tells of. Without the lock. */
void base_rt_wake(struct ncclx_rt *rt);

/* A transport has lost a peer: from now on every wait that is not over, or look in vain, ends with ERR_PROC_FAILED. The first one counts. */
void base_rt_peer_lost(struct ncclx_rt *rt, int rank, const char *why);

/* One round of all pollers. Returns events handled; 0 when called from inside itself. */
static inline int base_progress(struct ncclx_rt *rt)
{
    int events = 0;
    if (__builtin_expect(rt->polling, 0)) return 0;
    rt->polling = true;
    for (int i = 0; i < rt->poller_count; i++) events += rt->pollers[i].function(rt->pollers[i].arg);
    rt->polling = false;
    return events;
}

/* Starts (once) the agent: a thread that drives progress while the program computes. Sets rt->threaded. Called with the lock held if threaded. */
int base_agent_start(struct ncclx_rt *rt);
/* Called without the lock: it waits for the thread. rt stays threaded. */
void base_agent_stop(struct ncclx_rt *rt);

#endif
