/* shared.h - collectives of ranks that share a node, by loads and stores in a segment of the communicator's own.
 *
 * Each rank has a row of slots. The collectives, and the parts of long ones, are numbered; part number n uses slot n
 * % slots of each row. A rank writes its data, then the slot's number, which tells that the data is there and that
 * the rank has ended everything before part n. Nobody else writes to a row. A slot is used again when every rank has
 * entered a part after the one that used it last, so nobody waits for readers: as many parts as there are slots may
 * be under way.
 *
 * Blocking calls only. The segment is made when a communicator calls such collectives repeatedly, by rank 0, and
 * goes when all have left.
 */
#ifndef COLL_SHARED_H
#define COLL_SHARED_H

#include "coll/schedule.h"
#include "runtime/base/choice.h"

#include <stdatomic.h>

#define SHARED_LINE 64
/* Bytes of a slot's data that fit beside its number: one cache line carries both. */
#define SHARED_INLINE (SHARED_LINE - sizeof(uint64_t))
#define SHARED_MOST_RANKS 64
/* Where data begins in its pages: far from the places in a page where users' large buffers begin. Processors take a
 * load for one that depends on a store still under way when the two lie at the same place of different pages, and
 * copies get several times slower. */
#define SHARED_PAGE 4096
#define SHARED_APART 2048

/* One line. More data than fits here lies in pages of its own. */
struct shared_slot {
    _Alignas(SHARED_LINE) _Atomic uint64_t number;
    char inline_data[SHARED_INLINE];
};

/* One line: the core on which a rank waited last, plus 1. It is written when that changes, which is rare. */
struct shared_seat {
    _Alignas(SHARED_LINE) _Atomic unsigned core;
};

/* What shared_copy.c knows of one collective and class of sizes: up to SHARED_PACE_LEAST bytes, up to twice as many, ... */
#define SHARED_PACE_LEAST ((size_t)8192)
#define SHARED_PACE_CLASSES 12
#define SHARED_ROUND 8 /* calls for which the ways are told at once */
#define SHARED_WAY_BITS 2
enum shared_way { SHARED_SLOTS, SHARED_COPIES, SHARED_PAST /* slots that are filled past the caches */, SHARED_WAYS };
struct shared_pace {
    struct choice choice;        /* rank 0: between ways, enum shared_way; costs are ns per 64 KiB */
    uint32_t took[SHARED_ROUND]; /* the calls of this round, on this rank */
    uint32_t ways;               /* SHARED_WAY_BITS of each call of the round, the first lowest */
    unsigned calls;
};

struct shared;
/* One copy between this rank's memory and `there` in that of `rank`. */
typedef int (*shared_copy_fn)(struct shared *shared, int rank, bool write, void *here, uint64_t there, size_t bytes);

struct shared {
    struct ncclx_rt *rt;
    shared_copy_fn copy; /* null: not all ranks can */
    void *copy_arg;
    const char *call; /* for the dump */
    int rank, size;
    int waits_for;    /* for the dump */
    unsigned slots;     /* of a rank; a power of two */
    size_t data_bytes;  /* of a slot */
    size_t data_stride; /* from one slot's data to the next's */
    struct shared_slot *rows;
    struct shared_seat *seats; /* of all ranks */
    int cores;                 /* that this rank may use */
    uint64_t moved_ns;         /* when it last tried to find a better one */
    char *data;
    uint64_t number;  /* of the part under way, or the last */
    uint64_t entered; /* all ranks are known to have entered this part */
    struct shared_pace pace[COLL_NAMES][SHARED_PACE_CLASSES];
    struct shared_pace *timed; /* the call under way is to be timed for this; or null */
    size_t timed_bytes;
    bool past; /* slots are filled past the caches */
    uint64_t begun_ns;
    int error;        /* a wait failed: ranks no longer agree on the number, so every later call fails too */
};

/* Bytes of a segment for `size` ranks with `slots` slots each, which hold data_bytes. */
size_t shared_bytes(int size, unsigned slots, size_t data_bytes);
/* memory: zeroed, of that size, the same for all ranks, aligned to SHARED_PAGE. */
void shared_prepare(struct shared *shared, struct ncclx_rt *rt, char *memory, int rank, int size, unsigned slots, size_t data_bytes);

/* Runs problem on these buffers. */
typedef int (*shared_fn)(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_barrier(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_bcast(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_reduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_allreduce(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_allgather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_alltoall(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
/* And reduce_scatter_block. */
int shared_reduce_scatter(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_allgatherv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_gather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_scatter(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
/* SHARED_DECLINED on all ranks when a rank has a block too large for one part. */
int shared_alltoallv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
/* And exscan. */
int shared_scan(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);

/* shared_lists.c. SHARED_DECLINED on ranks that have a block above shared_lists_limit(): it is left over. */
size_t shared_lists_limit(const struct shared *shared, enum coll_name name);
int shared_gatherv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_scatterv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);

/* shared_tree.c: with a few ranks at a time. */
int shared_barrier_tree(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_bcast_tree(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);

/* shared_copy.c, for long vectors. single_copy, of reduce, allreduce, reduce_scatter(_block), allgather and alltoall: data
 * does not pass through slots, each rank fetches what it needs from the others' buffers with shared->copy. measured, of
 * these, bcast, gather and scatter: the one or the other, whichever was faster of late, with the same results, and of medium sizes
 * also slots that are filled past the caches; where there is no single copy, SHARED_DECLINED. In place has to be the same on all
 * ranks. The caller calls shared_measured_end when all is done, by whatever way. */
int shared_single_copy(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
int shared_measured(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf);
struct shared_pace *shared_pace_of(struct shared *shared, const struct coll_problem *problem);
void shared_timed(struct shared *shared);
static inline void shared_measured_end(struct shared *shared)
{
    if (shared->timed) shared_timed(shared);
}

/* Nothing is done, and all ranks know: messages are the better way. */
#define SHARED_DECLINED (-1)

/* ---- Parts: used by the algorithms ------------------------------------------------------------------------------ */

int shared_wait_slow(struct shared *shared, int rank, uint64_t number);

/* shared_seats.c. Where ranks outnumber cores: whether one that has not entered part `number` waits for this very core. Else the
 * missing ones run at this moment, or will after others of their cores: to wait for them is shorter than to change processes
 * twice. */
bool shared_keeps_from_running(struct shared *shared, uint64_t number);
/* That this thread may use. */
int shared_cores(void);

static inline size_t shared_index(const struct shared *shared, int rank, uint64_t number)
{
    return (size_t)rank * shared->slots + (number & (shared->slots - 1));
}

static inline struct shared_slot *shared_slot(const struct shared *shared, int rank, uint64_t number)
{
    return &shared->rows[shared_index(shared, rank, number)];
}

/* Where `rank` puts its `bytes` of part `number`. */
static inline char *shared_data(const struct shared *shared, int rank, uint64_t number, size_t bytes)
{
    if (bytes <= SHARED_INLINE) return shared_slot(shared, rank, number)->inline_data;
    return shared->data + shared_index(shared, rank, number) * shared->data_stride;
}

/* Until `rank` has entered part `number`. */
static inline int shared_wait(struct shared *shared, int rank, uint64_t number)
{
    const struct shared_slot *slot = shared_slot(shared, rank, number);
    if (__builtin_expect(atomic_load_explicit(&slot->number, memory_order_acquire) >= number, 1)) return NCCLX_SUCCESS;
    return shared_wait_slow(shared, rank, number);
}

#endif
