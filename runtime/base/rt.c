/* rt.c - one rank: locks, pollers, spin limits, and the agent thread. */
#include "runtime/base/base.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A rank with a core of its own polls this often before it yields, about 1 ms; an oversubscribed one yields almost at once, as the peer it
 * waits for may need this very core. */
#define SPIN_FREE 20000
#define SPIN_OVERSUBSCRIBED 1
/* Idle for this long, a rank sleeps instead of yielding; each sleep is bounded, so a wake-up that is lost, or that memory written by peers does
 * not bring, costs no more than that. The more ranks share a core, the sooner and the longer they sleep: together they leave it to those
 * that have something to do, the daemon among them. A thousand ranks that yield, or look around every millisecond, need all of two cores. */
#define SLEEP_AFTER_NS UINT64_C(20000000)
#define SLEEP_NS UINT64_C(1000000)
#define SLEEP_MAX_NS UINT64_C(100000000)
#define CROWD 8 /* ranks a core that make no difference yet */

extern char **environ;

static void destroy_locks(struct ncclx_rt *rt)
{
    pthread_mutex_destroy(&rt->wake_lock);
    pthread_mutex_destroy(&rt->lock);
}

int base_rt_init(struct ncclx_rt *rt, char **environment)
{
    memset(rt, 0, sizeof *rt);
    if (pthread_mutex_init(&rt->lock, NULL)) return base_error(NCCLX_ERR_NO_MEM, "cannot make a lock");
    if (pthread_mutex_init(&rt->wake_lock, NULL)) {
        pthread_mutex_destroy(&rt->lock);
        return base_error(NCCLX_ERR_NO_MEM, "cannot make a lock");
    }
    rt->main_thread = pthread_self();
    rt->job.size = 1;
    rt->spin_limit = SPIN_FREE;
    rt->sleep_after_ns = SLEEP_AFTER_NS;
    rt->sleep_ns = SLEEP_NS;
    int error = base_config_load(&rt->config, environment ? environment : environ);
    if (error) destroy_locks(rt);
    return error;
}

/* Peers behind sockets wake nobody: with them the sleep stays short. */
static void choose_sleep(struct ncclx_rt *rt)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t crowds = (uint64_t)rt->job.local_size / (CROWD * (uint64_t)(cores > 0 ? cores : 1));
    if (crowds < 1) crowds = 1;
    rt->sleep_after_ns = SLEEP_AFTER_NS / crowds;
    rt->sleep_ns = rt->job.local_size < rt->job.size ? SLEEP_NS : SLEEP_NS * crowds;
    if (rt->sleep_ns > SLEEP_MAX_NS) rt->sleep_ns = SLEEP_MAX_NS;
}

void base_rt_configure(struct ncclx_rt *rt)
{
    choose_sleep(rt);
    int64_t spin = rt->config.value[CONFIG_SPIN].number;
    if (spin >= 0) rt->spin_limit = spin > UINT32_MAX ? UINT32_MAX : (unsigned)spin;
    else rt->spin_limit = rt->job.oversubscribed ? SPIN_OVERSUBSCRIBED : SPIN_FREE;
    rt->check = rt->config.value[CONFIG_CHECK].number != 0;
    rt->timeout_ns = (uint64_t)rt->config.value[CONFIG_TIMEOUT].number;
    base_log_identity(rt->job.node_name, rt->job.spawned ? rt->job.id : NULL, rt->job.rank);
}

void base_rt_release(struct ncclx_rt *rt)
{
    base_agent_stop(rt);
    base_log_flush();
    base_config_release(&rt->config);
    base_free(AREA_BOOTSTRAP, rt->job.local_ranks);
    rt->job.local_ranks = NULL;
    destroy_locks(rt);
}

int base_rt_add_poller(struct ncclx_rt *rt, base_poll_fn function, void *arg)
{
    if (rt->poller_count == BASE_MAX_POLLERS) return base_error(NCCLX_ERR_INTERNAL, "more than %d pollers", BASE_MAX_POLLERS);
    rt->pollers[rt->poller_count].function = function;
    rt->pollers[rt->poller_count].arg = arg;
    rt->poller_count++;
    return NCCLX_SUCCESS;
}

void base_rt_remove_poller(struct ncclx_rt *rt, base_poll_fn function, void *arg)
{
    for (int i = 0; i < rt->poller_count; i++) {
        if (rt->pollers[i].function != function || rt->pollers[i].arg != arg) continue;
        rt->poller_count--;
        memmove(&rt->pollers[i], &rt->pollers[i + 1], (size_t)(rt->poller_count - i) * sizeof rt->pollers[0]);
        return;
    }
}

void base_rt_sleep_on(struct ncclx_rt *rt, base_block_fn block, base_wake_fn wake, void *arg)
{
    pthread_mutex_lock(&rt->wake_lock);
    rt->block = block;
    rt->wake = wake;
    rt->block_arg = arg;
    pthread_mutex_unlock(&rt->wake_lock);
}

void base_rt_wake(struct ncclx_rt *rt)
{
    pthread_mutex_lock(&rt->wake_lock);
    if (rt->wake) rt->wake(rt->block_arg);
    pthread_mutex_unlock(&rt->wake_lock);
}

/* ---- The lock. A plain mutex goes to whoever is awake, and a thread that polls is always awake: it has to step aside by itself. ------- */

/* Polls of the lock's turn before the core is given up: the time a thread needs to wake on another core. */
#define GIVE_WAY_POLLS 1000
/* Tries before a thread sleeps for the lock: a few microseconds, about what a sleep and a wake-up cost. */
#define LOCK_POLLS 100

/* Differs between threads that live at the same time; costs an address calculation. */
static uintptr_t this_thread(void)
{
    static __thread char here;
    return (uintptr_t)&here;
}

/* Without the lock: until another thread has had it since `turn`, within bounds. */
static void let_others_in(struct ncclx_rt *rt, unsigned turn)
{
    for (int polls = 0; polls < GIVE_WAY_POLLS; polls++) {
        if (!atomic_load_explicit(&rt->lock_wanted, memory_order_relaxed)) return;
        if (atomic_load_explicit(&rt->lock_turn, memory_order_relaxed) != turn) return;
        base_relax();
    }
    sched_yield();
}

/* Holders poll or copy a little and step aside when the lock is wanted: mostly it comes sooner than a sleep would end. */
static bool spin_for_lock(struct ncclx_rt *rt)
{
    for (int polls = 0; polls < LOCK_POLLS; polls++) {
        base_relax();
        if (!pthread_mutex_trylock(&rt->lock)) return true;
    }
    return false;
}

void base_rt_lock_threaded(struct ncclx_rt *rt)
{
    /* A race here costs a turn, not correctness. */
    bool again = atomic_load_explicit(&rt->lock_owner, memory_order_relaxed) == this_thread();
    if (again && atomic_load_explicit(&rt->lock_wanted, memory_order_relaxed))
        let_others_in(rt, atomic_load_explicit(&rt->lock_turn, memory_order_relaxed));
    if (pthread_mutex_trylock(&rt->lock)) {
        atomic_fetch_add_explicit(&rt->lock_wanted, 1, memory_order_relaxed);
        if (!spin_for_lock(rt)) pthread_mutex_lock(&rt->lock);
        atomic_fetch_sub_explicit(&rt->lock_wanted, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&rt->lock_owner, this_thread(), memory_order_relaxed);
    atomic_store_explicit(&rt->lock_turn, atomic_load_explicit(&rt->lock_turn, memory_order_relaxed) + 1, memory_order_relaxed);
}

void base_rt_give_way(struct ncclx_rt *rt)
{
    if (!rt->threaded || !atomic_load_explicit(&rt->lock_wanted, memory_order_relaxed)) return;
    base_rt_unlock(rt);
    base_rt_lock(rt);
}

/* ---- The agent ------------------------------------------------------------------------------------------------ */

/* It polls eagerly while there is work, then sleeps on the rank's event between polls: a put that needs it waits for a wake-up, a program
 * that computes keeps its core. It does not yield in between: to a thread that computes it would lose the core for that one's whole time
 * slice, some milliseconds, where one that is woken gets it at once. While a thread waits inside the library the agent leaves the polling to it. */
#define AGENT_EAGER_ROUNDS 200
#define AGENT_SLEEP_NS UINT64_C(500000)

static void agent_sleep(struct ncclx_rt *rt, bool polled)
{
    struct timespec pause = {.tv_nsec = (long)AGENT_SLEEP_NS};
    /* Where a thread of the program polls, nobody needs to wake the agent: peers would pay for it with each message. */
    if (rt->block && !polled) rt->block(rt->block_arg, AGENT_SLEEP_NS);
    else nanosleep(&pause, NULL);
}

static void *agent(void *arg)
{
    struct ncclx_rt *rt = arg;
    unsigned idle = 0;
    while (!atomic_load_explicit(&rt->agent_stop, memory_order_acquire)) {
        base_rt_lock(rt);
        bool polled = rt->waiting != NULL;
        bool found = !polled && base_progress(rt) > 0;
        base_rt_unlock(rt);
        if (found) idle = 0;
        else if (idle < AGENT_EAGER_ROUNDS) idle++;
        if (polled || idle >= AGENT_EAGER_ROUNDS) agent_sleep(rt, polled);
        else if (!found) base_relax();
    }
    return NULL;
}

int base_agent_start(struct ncclx_rt *rt)
{
    sigset_t all, old;
    if (rt->agent_running) return NCCLX_SUCCESS;
    bool was_threaded = rt->threaded;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals belong to the program's threads */
    if (!was_threaded) {
        rt->threaded = true;
        base_rt_lock(rt); /* the caller is inside the library: from now on that means holding the lock */
    }
    atomic_store(&rt->agent_stop, false);
    int failed = pthread_create(&rt->agent, NULL, agent, rt);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        if (!was_threaded) {
            base_rt_unlock(rt);
            rt->threaded = false;
        }
        return base_error(NCCLX_ERR_LIMIT, "cannot start the agent thread: %s; raise the limit on processes (ulimit -u)", strerror(failed));
    }
    rt->agent_running = true;
    return NCCLX_SUCCESS;
}

void base_agent_stop(struct ncclx_rt *rt)
{
    if (!rt->agent_running) return;
    atomic_store_explicit(&rt->agent_stop, true, memory_order_release);
    pthread_join(rt->agent, NULL);
    rt->agent_running = false;
}

void base_rt_peer_lost(struct ncclx_rt *rt, int rank, const char *why)
{
    base_log(AREA_BASE, LOG_INFO, "rank %d is lost: %s", rank, why);
    if (rt->lost_peer) return;
    rt->lost_peer = rank + 1;
    snprintf(rt->lost_why, sizeof rt->lost_why, "%s", why);
}
