/* shared.h - collectives of ranks that share a node, by loads and stores in a segment of the communicator's own.
 *
 * Each rank has an area with SHARED_SLOTS slots. The collectives, and the parts of long ones, are numbered; part number n uses slot
 * n % SHARED_SLOTS of each area. A rank writes its data, then the slot's number, which tells that the data is there and that the rank
 * has ended everything before part n. Nobody else writes to an area. A slot is used again when every rank has entered a part after the one
 * that used it last, so nobody waits for readers: SHARED_SLOTS parts may be under way.
 *
 * Blocking calls only. The segment is made when a communicator calls such collectives repeatedly, by rank 0, and goes when all have left.
 */
#ifndef COLL_SHARED_H
#define COLL_SHARED_H

#include "coll/schedule.h"

#include <stdatomic.h>

#define SHARED_LINE 64
#define SHARED_SLOTS 4
/* Bytes of a slot's data that fit beside its number: one cache line carries both. */
#define SHARED_INLINE (SHARED_LINE - sizeof(uint64_t))
#define SHARED_MOST_RANKS 64
/* Where data begins in a slot, which begins at a page: far from the places in a page where users' large buffers begin. Processors take a load for
 * one that depends on a store still under way when the two lie at the same place of different pages, and copies get several times slower. */
#define SHARED_PAGE 4096
#define SHARED_APART 2048

struct shared_slot {
    _Alignas(SHARED_LINE) _Atomic uint64_t number;
    char inline_data[SHARED_INLINE];
    char apart[SHARED_APART - SHARED_LINE];
    char data[]; /* instead, when there is more */
};

struct shared {
    struct ncclx_rt *rt;
    const char *call; /* for the dump */
    int rank, size;
    int waits_for;    /* for the dump */
    size_t data_bytes; /* of a slot */
    size_t slot_bytes, area_bytes;
    char *areas;
    uint64_t number;  /* of the part under way, or the last */
    uint64_t entered; /* all ranks are known to have entered this part */
    int error;        /* a wait failed: ranks no longer agree on the number, so every later call fails too */
};

/* Bytes of a segment for `size` ranks whose slots hold data_bytes. */
size_t shared_bytes(int size, size_t data_bytes);
/* areas: zeroed memory of that size, the same for all ranks, aligned to SHARED_LINE. */
void shared_prepare(struct shared *shared, struct ncclx_rt *rt, char *areas, int rank, int size, size_t data_bytes);

/* Runs problem on these buffers. */
typedef int (*shared_fn)(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_barrier(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_bcast(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_reduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_allreduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_allgather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_alltoall(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);

/* ---- Parts: used by the algorithms ------------------------------------------------------------------------------ */

int shared_wait_slow(struct shared *shared, int rank, uint64_t number);

static inline struct shared_slot *shared_slot(const struct shared *shared, int rank, uint64_t number)
{
    return (struct shared_slot *)(shared->areas + (size_t)rank * shared->area_bytes + number % SHARED_SLOTS * shared->slot_bytes);
}

static inline char *shared_data(struct shared_slot *slot, size_t bytes)
{
    return bytes <= SHARED_INLINE ? slot->inline_data : slot->data;
}

/* Until `rank` has entered part `number`. */
static inline int shared_wait(struct shared *shared, int rank, uint64_t number)
{
    const struct shared_slot *slot = shared_slot(shared, rank, number);
    if (__builtin_expect(atomic_load_explicit(&slot->number, memory_order_acquire) >= number, 1)) return NCCLX_SUCCESS;
    return shared_wait_slow(shared, rank, number);
}

#endif
