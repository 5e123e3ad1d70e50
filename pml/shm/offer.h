/* offer.h - who does a piece of work: its owner offers it to another process, which may accept; as long as nobody has,
 * the owner may withdraw the offer and do the work itself. A pure core: one word, changed by both.
 *
 *     free, round n - 1  --accept-->  accepted n  --end-->  free n, or refused n  --forget-->  free n
 *                        --withdraw-->  withdrawn n  --accept-->  free n
 *
 * The description of the work travels beside the word, as a message that the other side finds in its own time. The next
 * offer is made only when the word is free, so that at most one description is under way: a withdrawn offer whose
 * description was not looked at yet says that the other side is busy elsewhere.
 */
#ifndef PML_SHM_OFFER_H
#define PML_SHM_OFFER_H

#include "runtime/base/planted.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum offer_state { OFFER_FREE = 0, OFFER_ACCEPTED, OFFER_WITHDRAWN, OFFER_REFUSED };

/* In shared memory, zero at first: free, of round 0. The first offer has round 1. */
struct offer {
    _Atomic uint64_t word; /* round (32 bits), state (32) */
};

static inline uint64_t offer_word(uint32_t round, enum offer_state state)
{
    return (uint64_t)round << 32 | (uint64_t)state;
}

static inline bool offer_change(struct offer *offer, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&offer->word, &from, to, memory_order_acq_rel, memory_order_acquire);
}

/* ---- Owner --------------------------------------------------------------------------------------------------- */

/* Whether offer `round` + 1 may be made. */
static inline bool offer_possible(const struct offer *offer, uint32_t round)
{
    return atomic_load_explicit(&offer->word, memory_order_acquire) == offer_word(round, OFFER_FREE);
}

enum offer_progress { OFFER_OPEN, OFFER_TAKEN, OFFER_DONE, OFFER_DECLINED };

static inline enum offer_progress offer_look(const struct offer *offer, uint32_t round)
{
    uint64_t word = atomic_load_explicit(&offer->word, memory_order_acquire);
    if (word == offer_word(round, OFFER_FREE)) return OFFER_DONE;
    if (word == offer_word(round, OFFER_ACCEPTED)) return OFFER_TAKEN;
    return word == offer_word(round, OFFER_REFUSED) ? OFFER_DECLINED : OFFER_OPEN;
}

/* After DECLINED, once: then the next offer is possible. */
static inline void offer_forget(struct offer *offer, uint32_t round)
{
    atomic_store_explicit(&offer->word, offer_word(round, OFFER_FREE), memory_order_relaxed);
}

/* False: the other side was faster, and has to be waited for. */
static inline bool offer_withdraw(struct offer *offer, uint32_t round)
{
    return offer_change(offer, offer_word(round - 1, OFFER_FREE), offer_word(round, OFFER_WITHDRAWN)) ||
           PLANTED_BUG(BUG_OFFER_WITHDRAWN_LATE);
}

/* ---- The other side, when it finds the description ------------------------------------------------------------- */

/* True: do the work, then call offer_end. */
static inline bool offer_accept(struct offer *offer, uint32_t round)
{
    enum offer_state accepted = PLANTED_BUG(BUG_OFFER_ENDED_EARLY) ? OFFER_FREE : OFFER_ACCEPTED;
    if (offer_change(offer, offer_word(round - 1, OFFER_FREE), offer_word(round, accepted))) return true;
    bool withdrawn = !PLANTED_BUG(BUG_OFFER_NOT_FREED) &&
                     offer_change(offer, offer_word(round, OFFER_WITHDRAWN), offer_word(round, OFFER_FREE));
    return withdrawn && PLANTED_BUG(BUG_OFFER_ACCEPTED_LATE);
}

static inline void offer_end(struct offer *offer, uint32_t round, bool done)
{
    atomic_store_explicit(&offer->word, offer_word(round, done ? OFFER_FREE : OFFER_REFUSED), memory_order_release);
}

#endif
