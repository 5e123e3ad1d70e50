/* memory.h - memory that peers can map: each block is an anonymous file of its own. */
#ifndef PML_MEMORY_H
#define PML_MEMORY_H

#include "pml/internal.h"

struct pml_memory {
    struct pml_memory *next;
    char *start;
    size_t bytes;      /* for the caller, whole pages */
    size_t file_bytes; /* with the trailer */
    int fd;
    uint64_t token[2];
};

/* In the file's last page: says that a descriptor leads to the block that a card means, and not to a later one of the
 * same number. */
struct pml_memory_trailer {
    uint64_t token[2];
    _Atomic uint64_t freed;
};

/* The block that holds all of [base, base + bytes), or null. */
struct pml_memory *pml_memory_find(struct pml *pml, const void *base, size_t bytes);

#endif
