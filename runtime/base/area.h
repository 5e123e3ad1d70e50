/* area.h - memory areas: every internal allocation belongs to one, so that a dump can say who holds what. */
#ifndef BASE_AREA_H
#define BASE_AREA_H

#include <stddef.h>
#include <stdint.h>

/* Areas name the part of the library for both memory accounting and logging. */
enum base_area {
    AREA_BASE,
    AREA_BOOTSTRAP,
    AREA_TOPO,
    AREA_PML,
    AREA_SHM,
    AREA_TCP,
    AREA_COLL,
    AREA_OSC,
    AREA_RUNTIME,
    AREA_LAUNCHER,
    AREA_COUNT
};

struct base_area_usage {
    uint64_t bytes; /* held now */
    uint64_t peak;  /* most ever held */
    uint64_t blocks;
};

const char *base_area_name(enum base_area area);
/* Null when memory is short or `count * bytes` overflows; the caller turns that into NCCLX_ERR_NO_MEM. calloc zeroes. */
void *base_alloc(enum base_area area, size_t bytes);
void *base_calloc(enum base_area area, size_t count, size_t bytes);
/* Begins with a page. Copies by `rep movsb`, which kernels and C libraries use, take up to thirty times as long where source and
 * destination differ by less than 32 bytes modulo a page (Zen 3; tests/perf/README.md): memory that whole packets are read into. */
void *base_alloc_pages(enum base_area area, size_t bytes);
void *base_realloc(enum base_area area, void *block, size_t bytes);
char *base_strdup(enum base_area area, const char *text);
void base_free(enum base_area area, void *block);
/* What a block from here counts in its area. Null: 0. */
size_t base_block_bytes(const void *block);
/* Books memory that was not allocated here (mappings); negative when it is given back. */
void base_area_account(enum base_area area, int64_t bytes);
void base_area_usage(enum base_area area, struct base_area_usage *usage);

#endif
