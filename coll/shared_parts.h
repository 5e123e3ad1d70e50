/* shared_parts.h - what the shared-memory collectives (shared.h) are made of. */
#ifndef COLL_SHARED_PARTS_H
#define COLL_SHARED_PARTS_H

#include "coll/shared.h"
#include "runtime/base/copy.h"

#include <string.h>

/* Of a part of a broadcast: the root fills one while the others copy the one before. */
#define SHARED_BCAST_BYTES ((size_t)32768)

/* Makes this rank's slot of the next part free to write. */
static inline int shared_enter(struct shared *shared)
{
    uint64_t number = ++shared->number;
    if (number < shared->entered + shared->slots) return NCCLX_SUCCESS;
    /* The slot was used last by part number - slots: all must have entered the one after that. Waiting for a little more
     * makes looks at the others' rows, which cost a transfer each, rare. */
    uint64_t wanted = number - shared->slots / 2;
    for (int rank = 0; rank < shared->size; rank++) {
        int error = rank == shared->rank ? NCCLX_SUCCESS : shared_wait(shared, rank, wanted);
        if (error) return error;
    }
    shared->entered = wanted;
    return NCCLX_SUCCESS;
}

static inline void shared_publish(struct shared *shared)
{
    atomic_store_explicit(&shared_slot(shared, shared->rank, shared->number)->number, shared->number, memory_order_release);
}

/* Into a slot. */
static inline void shared_fill(const struct shared *shared, void *slot, const void *data, size_t bytes)
{
    if (__builtin_expect(shared->past, 0)) base_copy_streaming(slot, data, bytes);
    else memcpy(slot, data, bytes);
}

/* Enters the next part with `bytes` of data; none: null. */
static inline int shared_give(struct shared *shared, const void *data, size_t bytes)
{
    int error = shared_enter(shared);
    if (error) return error;
    if (bytes) shared_fill(shared, shared_data(shared, shared->rank, shared->number, bytes), data, bytes);
    shared_publish(shared);
    return NCCLX_SUCCESS;
}

/* Every rank has given; then all are known to have entered. */
static inline int shared_wait_for_all(struct shared *shared)
{
    for (int rank = 0; rank < shared->size; rank++) {
        int error = rank == shared->rank ? NCCLX_SUCCESS : shared_wait(shared, rank, shared->number);
        if (error) return error;
    }
    shared->entered = shared->number;
    return NCCLX_SUCCESS;
}

static inline const char *shared_given(const struct shared *shared, int rank, size_t bytes)
{
    return shared_data(shared, rank, shared->number, bytes);
}

static inline size_t shared_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* out = what the first `ranks` ranks gave at `offset` of their data, combined in this order. */
void shared_combine(const struct shared *shared, const struct coll_problem *problem, int ranks, size_t data_bytes,
                    size_t offset, char *out, size_t bytes);

/* A call's lists need not have displacements written out: this walks through them. */
struct shared_walk {
    const struct coll_problem *problem;
    const struct coll_blocks *blocks;
    size_t next; /* elements: where the next block begins if it follows the one before */
};

/* Block `index`, which is one more than the last; in bytes. */
static inline void shared_walk_to(struct shared_walk *walk, int index, size_t *offset, size_t *bytes)
{
    size_t element = walk->problem->element_bytes, i = (size_t)index;
    if (!walk->blocks->counts) {
        *bytes = walk->problem->bytes;
        *offset = i * *bytes;
        return;
    }
    *offset = (walk->blocks->displs ? walk->blocks->displs[i] : walk->next) * element;
    *bytes = walk->blocks->counts[i] * element;
    walk->next += walk->blocks->counts[i];
}

#endif
