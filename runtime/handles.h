/* handles.h - the set of live handles of a rank. A handle that was freed, or never was one, is found out by looking
 * here, without touching the memory it points to.
 */
#ifndef RUNTIME_HANDLES_H
#define RUNTIME_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum handle_kind {
    HANDLE_NONE,
    HANDLE_COMM,
    HANDLE_GROUP,
    HANDLE_WIN,
    HANDLE_MESSAGE,
    HANDLE_OP,
    HANDLE_INFO,
    HANDLE_ERRHANDLER,
    HANDLE_PLAN,
    HANDLE_KINDS
};

struct handle_entry {
    const void *pointer; /* null: an empty place */
    enum handle_kind kind;
};

/* Open addressing with linear probing, at most half full. All zero is an empty table. */
struct handle_table {
    struct handle_entry *entries;
    size_t mask;    /* places - 1; places are a power of two */
    unsigned shift; /* 64 - log2(places) */
    size_t used;
    const void *latest[HANDLE_KINDS]; /* found last, and still live: most calls name the same window again */
};

/* Fibonacci hashing: the high bits of a product with 2^64 / golden ratio. Allocations are 16 bytes apart or more. */
static inline size_t handle_place(const struct handle_table *table, const void *pointer)
{
    return (size_t)((((uint64_t)(uintptr_t)pointer >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> table->shift);
}

bool handle_find(struct handle_table *table, enum handle_kind kind, const void *pointer);

static inline bool handle_live(struct handle_table *table, enum handle_kind kind, const void *pointer)
{
    if (__builtin_expect(pointer && pointer == table->latest[kind], 1)) return true;
    return handle_find(table, kind, pointer);
}

/* Makes room for one more, so that the next handle_insert cannot fail. NCCLX_SUCCESS or NCCLX_ERR_NO_MEM. */
int handle_reserve(struct handle_table *table);
/* After handle_reserve. */
void handle_insert(struct handle_table *table, enum handle_kind kind, const void *pointer);
void handle_remove(struct handle_table *table, const void *pointer);
void handle_table_release(struct handle_table *table);

#endif
