/* atomic.h - reading, combining and writing elements that several processes change at once; private to this folder.
 *
 * Atomic for each element with respect to every other such operation of the same type, whoever makes it and on whichever way it comes:
 * the address and the type alone decide how an element is changed.
 *
 *   aligned elements of 1, 2, 4 and 8 bytes    by the processor: compare-and-swap or better
 *   16 bytes, or not aligned                   under the target's element lock, one word which all that map its memory see
 *   memory that is not shareable (its card     always under the element lock, so that ranks which reach the memory by kernel
 *   says so: everybody knows)                  copies may read, combine and write it
 *
 * A rank that can do neither sends a message, and the target does it in one of these ways.
 */
#ifndef OSC_ATOMIC_H
#define OSC_ATOMIC_H

#include "runtime/base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beside the numbers of the predefined operations: 14 and 15 are NCCLX_REPLACE and NCCLX_NO_OP. */
enum { OSC_REPLACE = 14, OSC_NO_OP = 15, OSC_COMPARE_SWAP = 16 };

struct osc_atomic {
    ncclx_datatype_t type;
    unsigned op;   /* the number of a predefined operation, or OSC_COMPARE_SWAP */
    size_t size;   /* bytes of one element */
};

/* What a number pair from a user or a peer means. ERR_TYPE, ERR_OP, with the detail recorded. */
int osc_atomic_make(ncclx_datatype_t type, size_t op, struct osc_atomic *atomic);
/* Operands that each element needs: 0 (NO_OP), 1, or 2 (COMPARE_SWAP: the new value, then the one to compare with). */
unsigned osc_atomic_operands(const struct osc_atomic *atomic);

/* Combines `count` elements in place; the old ones go to `result` unless it is null. operands: one after the other. COMPARE_SWAP takes one
 * element. locked: the memory is one that is always locked. */
void osc_atomic_run(const struct osc_atomic *atomic, char *memory, const void *operands, void *result, size_t count,
                    uint32_t *lock, bool locked);
/* out = old combined with the operands, without regard to anybody else; out may be old. */
void osc_atomic_combine(const struct osc_atomic *atomic, const void *old, const void *operands, void *out, size_t count);

void osc_element_lock(uint32_t *lock);
static inline void osc_element_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
