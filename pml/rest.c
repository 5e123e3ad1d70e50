/* rest.c - how a rank sleeps that waits for its peers, or whose agent has nothing to do: until something comes.
 *
 * Peers that share memory wake it by a futex, sockets by a poll, and nothing waits for both. A rank with peers of both kinds polls, and those
 * that share memory ring (shm/bell.c). Without a bell, or while something waits for room, which rings for nobody, it waits for the
 * kind that was the last to have something for it, and looks at the other one after a moment, or halfway through a long sleep. */
#include "pml/internal.h"
#include "pml/shm/shm.h"
#include "pml/tcp/tcp.h"

#define MOMENT_NS UINT64_C(500000)
#define LONG_NS UINT64_C(10000000) /* nothing has come for long, or many ranks share a core */

static bool hears_both(struct pml *pml)
{
    base_rt_lock(pml->rt);
    bool both = pml->shm && pml->shm->bell.out >= 0 && !pml->busy && !pml->called_in_vain;
    pml->called_in_vain = false;
    base_rt_unlock(pml->rt);
    return both;
}

/* base_block_fn, without the rank's lock. */
static void rest(void *arg, uint64_t ns)
{
    struct pml *pml = arg;
    if (!pml->tcp) {
        shm_block(pml->shm, ns);
        return;
    }
    if (pml->shm && ns > MOMENT_NS) ns = ns < LONG_NS ? MOMENT_NS : ns / 2;
    enum pml_slept slept = SLEPT;
    if (hears_both(pml)) slept = shm_block_on(pml->shm, tcp_all_sockets(pml->tcp), ns) == WOKEN_BY_SOCKET ? SLEPT_UNTIL_CALLED : SLEPT;
    else if (pml->shm && !atomic_load_explicit(&pml->rests_on_tcp, memory_order_relaxed)) shm_block(pml->shm, ns);
    else if (tcp_block(pml->tcp, ns)) slept = SLEPT_UNTIL_CALLED;
    atomic_store_explicit(&pml->slept, (uint8_t)slept, memory_order_relaxed);
}

/* base_wake_fn: wherever it sleeps, or is about to. */
static void wake(void *arg)
{
    const struct pml *pml = arg;
    if (pml->shm) shm_wake(pml->shm->mailbox);
    if (pml->tcp) tcp_wake(pml->tcp);
}

void pml_rest_start(struct pml *pml)
{
    if (pml->shm || pml->tcp) base_rt_sleep_on(pml->rt, rest, wake, pml);
}
