/* ticket.h - the lock of a rank's part of a window: shared or exclusive, first come first served, three words in memory that all ranks who
 * map it use directly; the owner takes places in the queue for the others.
 *
 * Everybody draws a number from `users`. A writer's turn comes when all before it have gone: `write` counts those. A reader's turn comes
 * when all before it are readers that have come in, or have gone: `read` counts those.
 */
#ifndef OSC_TICKET_H
#define OSC_TICKET_H

#include <stdbool.h>
#include <stdint.h>

struct ticket_lock {
    uint32_t users, write, read;
};

static inline uint32_t ticket_draw(struct ticket_lock *lock)
{
    return __atomic_fetch_add(&lock->users, 1, __ATOMIC_ACQ_REL);
}

/* For asking before ticket_enter, as often as one likes. */
static inline bool ticket_turn(const struct ticket_lock *lock, uint32_t ticket, bool exclusive)
{
    return __atomic_load_n(exclusive ? &lock->write : &lock->read, __ATOMIC_ACQUIRE) == ticket;
}

/* Once, when the turn has come. */
static inline void ticket_enter(struct ticket_lock *lock, uint32_t ticket, bool exclusive)
{
    if (!exclusive) __atomic_store_n(&lock->read, ticket + 1, __ATOMIC_RELEASE);
}

static inline void ticket_leave(struct ticket_lock *lock, bool exclusive)
{
    if (exclusive) __atomic_fetch_add(&lock->read, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&lock->write, 1, __ATOMIC_RELEASE);
}

#endif
