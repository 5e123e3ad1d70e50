/* wake.c - sleeping and waking. A sender looks at the receiver's `sleeping` without a fence, so that sending stays
 * cheap; the one who goes to sleep pays: it makes every running thread of the node's ranks pass a memory barrier
 * (membarrier) before its last look. Where the system has no membarrier, a wake-up can be lost, which costs the length
 * of one bounded sleep. */
#include "config.h"

#include "pml/shm/shm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void shm_wake_init(struct shm *shm)
{
    long commands = membarrier(MEMBARRIER_CMD_QUERY);
    shm->barrier = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
                   !membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

void shm_wake(struct shm_mailbox *mailbox)
{
    uint32_t seen = atomic_load(&mailbox->sleeping);
    while (seen & 1) {
        if (!atomic_compare_exchange_weak(&mailbox->sleeping, &seen, seen + 1)) continue;
        syscall(SYS_futex, &mailbox->sleeping, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        bell_ring(mailbox);
        return;
    }
}

struct shm_mailbox *shm_mailbox_of(struct pml *pml, int peer)
{
    struct pml_connection *connection;
    if (!pml->shm) return NULL;
    if (peer == pml->rt->job.rank) return pml->shm->mailbox;
    if (pml_connection_to(pml, peer, &connection) || connection->transport != &transport_shm) return NULL;
    const struct shm_channel *channel = connection->channel;
    return channel->mailbox;
}

static bool anything(struct shm *shm)
{
    if (atomic_load_explicit(&shm->mailbox->callers, memory_order_acquire) != shm->callers_seen || shm->pml->busy)
        return true;
    for (int i = 0; i < shm->readers; i++)
        if (ring_peek(&shm->reading[i]->reader)) return true;
    return false;
}

bool shm_may_sleep(struct shm *shm, uint32_t *asleep)
{
    struct ncclx_rt *rt = shm->pml->rt;
    *asleep = atomic_fetch_or(&shm->mailbox->sleeping, 1) | 1; /* a wake-up since then is another number */
    if (shm->barrier) (void)membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    base_rt_lock(rt);
    bool found = anything(shm) || base_wait_ready(rt);
    base_rt_unlock(rt);
    return !found;
}

void shm_block(struct shm *shm, uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / BASE_NS_PER_S), .tv_nsec = (long)(ns % BASE_NS_PER_S)};
    uint32_t asleep;
    if (shm_may_sleep(shm, &asleep)) (void)syscall(SYS_futex, &shm->mailbox->sleeping, FUTEX_WAIT, asleep, &time, NULL, 0);
    /* It stays odd: another thread may sleep on. The next sender wakes nobody then, once. */
}
