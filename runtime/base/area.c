/* area.c - memory by area. The size of a block is what malloc says it is, so blocks carry no header of ours. */
#include "runtime/base/area.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    _Atomic int64_t bytes, peak, blocks;
} usage_of[AREA_COUNT];

const char *base_area_name(enum base_area area)
{
    static const char *const name[AREA_COUNT] = {"base", "bootstrap", "topo", "pml", "shm", "tcp", "coll", "osc", "runtime", "launcher"};
    return (unsigned)area < AREA_COUNT ? name[area] : "?";
}

void base_area_account(enum base_area area, int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&usage_of[area].bytes, bytes, memory_order_relaxed) + bytes;
    int64_t peak = atomic_load_explicit(&usage_of[area].peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&usage_of[area].peak, &peak, now, memory_order_relaxed,
                                                                memory_order_relaxed)) {
    }
    atomic_fetch_add_explicit(&usage_of[area].blocks, bytes >= 0 ? 1 : -1, memory_order_relaxed);
}

static void *booked(enum base_area area, void *block)
{
    if (block) base_area_account(area, (int64_t)malloc_usable_size(block));
    return block;
}

void *base_alloc(enum base_area area, size_t bytes)
{
    return booked(area, malloc(bytes ? bytes : 1));
}

void *base_calloc(enum base_area area, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) return NULL; /* calloc says so too, but sanitizers end the process there */
    return booked(area, calloc(1, all ? all : 1));
}

void *base_alloc_pages(enum base_area area, size_t bytes)
{
    void *block;
    return posix_memalign(&block, (size_t)sysconf(_SC_PAGESIZE), bytes ? bytes : 1) ? NULL : booked(area, block);
}

void *base_realloc(enum base_area area, void *block, size_t bytes)
{
    int64_t old = block ? (int64_t)malloc_usable_size(block) : 0;
    void *moved = realloc(block, bytes ? bytes : 1);
    if (!moved) return NULL;
    if (block) base_area_account(area, -old);
    return booked(area, moved);
}

char *base_strdup(enum base_area area, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = base_alloc(area, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void base_free(enum base_area area, void *block)
{
    if (!block) return;
    base_area_account(area, -(int64_t)malloc_usable_size(block));
    free(block);
}

size_t base_block_bytes(const void *block)
{
    return malloc_usable_size((void *)(uintptr_t)block);
}

void base_area_usage(enum base_area area, struct base_area_usage *usage)
{
    usage->bytes = (uint64_t)atomic_load_explicit(&usage_of[area].bytes, memory_order_relaxed);
    usage->peak = (uint64_t)atomic_load_explicit(&usage_of[area].peak, memory_order_relaxed);
    usage->blocks = (uint64_t)atomic_load_explicit(&usage_of[area].blocks, memory_order_relaxed);
}
