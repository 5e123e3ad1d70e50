/* atomic.c - see atomic.h. */
#include "osc/atomic.h"

#include <sched.h>
#include <string.h>

/* Elements combined at a time under the lock. */
#define CHUNK_BYTES ((size_t)2048)
/* Looks at the lock before the core is given up: its holder combines a few elements, unless it lost its core. */
#define LOOKS_PER_YIELD 100

typedef uint8_t __attribute__((may_alias)) word8;
typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

int osc_atomic_make(ncclx_datatype_t type, size_t op, struct osc_atomic *atomic)
{
    *atomic = (struct osc_atomic){.type = type, .op = (unsigned)op, .size = base_type_size(type)};
    if (!atomic->size) return base_error(NCCLX_ERR_TYPE, "%d is not a datatype", (int)type);
    if (op == OSC_REPLACE || op == OSC_NO_OP || op == OSC_COMPARE_SWAP) return NCCLX_SUCCESS;
    if (op == (size_t)NCCLX_AVG) return base_error(NCCLX_ERR_OP, "avg needs a number of ranks: windows do not take it");
    if (op < (size_t)NCCLX_SUM || op > (size_t)NCCLX_MAXLOC)
        return base_error(NCCLX_ERR_OP, "windows take predefined operations only, neither null nor a user's");
    return base_op_check((ncclx_op_t)op, type);
}

unsigned osc_atomic_operands(const struct osc_atomic *atomic)
{
    if (atomic->op == OSC_COMPARE_SWAP) return 2;
    return atomic->op == OSC_NO_OP ? 0 : 1;
}

void osc_element_lock(uint32_t *lock)
{
    unsigned looks = 0;
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(lock, __ATOMIC_RELAXED))
            if (++looks % LOOKS_PER_YIELD) base_relax();
            else sched_yield();
}

void osc_atomic_combine(const struct osc_atomic *atomic, const void *old, const void *operands, void *out, size_t count)
{
    const char *operand = operands;
    switch (atomic->op) {
    case OSC_REPLACE: memcpy(out, operand, count * atomic->size); break;
    case OSC_NO_OP: memmove(out, old, count * atomic->size); break;
    case OSC_COMPARE_SWAP:
        if (memcmp(old, operand + atomic->size, atomic->size) == 0) memcpy(out, operand, atomic->size);
        else memmove(out, old, atomic->size);
        break;
    default: base_op_apply((ncclx_op_t)(size_t)atomic->op, atomic->type, old, operand, out, count);
    }
}

/* ---- Under the lock ------------------------------------------------------------------------------------------- */

static void run_locked(const struct osc_atomic *atomic, char *memory, const char *operands, char *result, size_t count,
                       uint32_t *lock)
{
    _Alignas(16) char old[CHUNK_BYTES];
    size_t most = CHUNK_BYTES / atomic->size, now;
    for (; count; count -= now) {
        now = count < most ? count : most;
        size_t bytes = now * atomic->size;
        osc_element_lock(lock);
        memcpy(old, memory, bytes);
        if (result) memcpy(result, old, bytes);
        osc_atomic_combine(atomic, old, operands, old, now);
        if (atomic->op != OSC_NO_OP) memcpy(memory, old, bytes);
        osc_element_unlock(lock);
        memory += bytes;
        if (operands) operands += bytes;
        if (result) result += bytes;
    }
}

/* ---- By the processor ----------------------------------------------------------------------------------------- */

/* Combines one element until nobody came between; returns the old one. */
#define ONE_WORD(bits)                                                                                                        \
    static void run_##bits(const struct osc_atomic *atomic, char *memory, const char *operand, char *result)                  \
    {                                                                                                                         \
        word##bits *word = (word##bits *)(void *)memory, old = __atomic_load_n(word, __ATOMIC_ACQUIRE), next;                 \
        do osc_atomic_combine(atomic, &old, operand, &next, 1);                                                               \
        while (!__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));                     \
        if (result) memcpy(result, &old, sizeof old);                                                                         \
    }
ONE_WORD(8)
ONE_WORD(16)
ONE_WORD(32)
ONE_WORD(64)

static void run_word(const struct osc_atomic *atomic, char *memory, const char *operand, char *result)
{
    switch (atomic->size) {
    case 1: run_8(atomic, memory, operand, result); break;
    case 2: run_16(atomic, memory, operand, result); break;
    case 4: run_32(atomic, memory, operand, result); break;
    default: run_64(atomic, memory, operand, result); break;
    }
}

/* The counters of many programs: additions of 8-byte integers need no loop. */
static void add_64(char *memory, const char *operand, char *result)
{
    uint64_t value;
    memcpy(&value, operand, sizeof value);
    uint64_t old = __atomic_fetch_add((word64 *)(void *)memory, value, __ATOMIC_ACQ_REL);
    if (result) memcpy(result, &old, sizeof old);
}

void osc_atomic_run(const struct osc_atomic *atomic, char *memory, const void *operands, void *result, size_t count,
                    uint32_t *lock, bool locked)
{
    const char *operand = operands;
    char *old = result;
    size_t size = atomic->size;
    if (locked || size > 8 || (uintptr_t)memory % size) {
        run_locked(atomic, memory, operand, old, count, lock);
        return;
    }
    bool add = atomic->op == (size_t)NCCLX_SUM && (atomic->type == NCCLX_INT64 || atomic->type == NCCLX_UINT64);
    for (size_t i = 0; i < count; i++) {
        if (add) add_64(memory, operand, old);
        else run_word(atomic, memory, operand, old);
        memory += size;
        if (operand) operand += size;
        if (old) old += size;
    }
}
