/* shared_seats.c - ranks that take turns on cores: each tells where it sits, so that one that waits knows whether to give its core
 * up; and they spread evenly.
 *
 * The kernel evens out how busy cores are only now and then, and between ranks that pass data all the time it matters at once: with
 * three ranks on one core and one on another, every barrier takes three changes of process instead of two. */
#include "config.h"

#include "coll/shared_parts.h"

#include <sched.h>

/* Between two moves of a rank: a core that something else uses too is the kernel's to know about. */
#define MOVE_EVERY_NS UINT64_C(200000)

int shared_cores(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
}

static unsigned core_of(const struct shared *shared, int rank)
{
    return atomic_load_explicit(&shared->seats[rank].core, memory_order_relaxed);
}

static int ranks_on(const struct shared *shared, unsigned core)
{
    int ranks = 0;
    for (int rank = 0; rank < shared->size; rank++) ranks += core_of(shared, rank) == core;
    return ranks;
}

/* The core that this rank may use on which fewest ranks sit; 0: none with at least two fewer than `here`. */
static unsigned emptiest(const struct shared *shared, const cpu_set_t *allowed, int here)
{
    unsigned best = 0;
    int least = here - 1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed)) continue;
        int ranks = ranks_on(shared, cpu + 1);
        if (ranks >= least) continue;
        least = ranks;
        best = cpu + 1;
    }
    return best;
}

/* Moves this thread by allowing it nothing else, for a moment. */
static void move_to(struct shared *shared, unsigned core, const cpu_set_t *allowed)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core - 1, &only);
    if (sched_setaffinity(0, sizeof only, &only)) return;
    (void)sched_setaffinity(0, sizeof *allowed, allowed);
    atomic_store_explicit(&shared->seats[shared->rank].core, core, memory_order_relaxed);
}

/* The last of the ranks on a crowded core goes. */
static void spread(struct shared *shared, unsigned core, int here)
{
    cpu_set_t allowed;
    for (int rank = shared->rank + 1; rank < shared->size; rank++)
        if (core_of(shared, rank) == core) return;
    uint64_t now = base_clock_ns();
    if (now - shared->moved_ns < MOVE_EVERY_NS) return;
    shared->moved_ns = now;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    shared->cores = CPU_COUNT(&allowed);
    unsigned to = emptiest(shared, &allowed, here);
    if (to) move_to(shared, to, &allowed);
}

bool shared_keeps_from_running(struct shared *shared, uint64_t number)
{
    int cpu = sched_getcpu(), here = 1;
    unsigned core = cpu < 0 ? 0 : (unsigned)cpu + 1;
    bool keeps = false;
    if (core_of(shared, shared->rank) != core)
        atomic_store_explicit(&shared->seats[shared->rank].core, core, memory_order_relaxed);
    for (int rank = 0; rank < shared->size; rank++) {
        if (rank == shared->rank || core_of(shared, rank) != core) continue;
        here++;
        keeps = keeps || atomic_load_explicit(&shared_slot(shared, rank, number)->number, memory_order_relaxed) < number;
    }
    /* Of all ranks of the node: others would be in the way of an even spread. */
    if (core && here * shared->cores >= shared->size + shared->cores && shared->size == shared->rt->job.local_size)
        spread(shared, core, here);
    return keeps;
}
