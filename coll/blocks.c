/* blocks.c - lists of counts and displacements. */
#include "coll/blocks.h"

#include <string.h>

static struct coll_blocks keep(const struct coll_blocks *brought, int size, size_t *counts)
{
    size_t *displs = counts + size, next = 0;
    if (!brought->counts) return *brought;
    memcpy(counts, brought->counts, (size_t)size * sizeof *counts);
    for (int i = 0; i < size; i++) {
        displs[i] = brought->displs ? brought->displs[i] : next;
        next += counts[i];
    }
    return (struct coll_blocks){counts, displs};
}

int blocks_keep(struct coll_problem *problem, size_t **memory)
{
    size_t size = (size_t)problem->size;
    *memory = NULL;
    if (!problem->send.counts && !problem->recv.counts) return NCCLX_SUCCESS;
    *memory = base_alloc(AREA_COLL, 4 * size * sizeof **memory);
    if (!*memory) return base_error(NCCLX_ERR_NO_MEM, "no memory for the counts of %d ranks", problem->size);
    problem->send = keep(&problem->send, problem->size, *memory);
    problem->recv = keep(&problem->recv, problem->size, *memory + 2 * size);
    return NCCLX_SUCCESS;
}

bool blocks_same(const struct coll_blocks *kept, const struct coll_blocks *brought, int size)
{
    size_t next = 0;
    if (!kept->counts || !brought->counts) return !kept->counts && !brought->counts;
    if (memcmp(kept->counts, brought->counts, (size_t)size * sizeof *kept->counts)) return false;
    if (brought->displs) return !memcmp(kept->displs, brought->displs, (size_t)size * sizeof *kept->displs);
    for (int i = 0; i < size; i++) {
        if (kept->displs[i] != next) return false;
        next += kept->counts[i];
    }
    return true;
}

size_t blocks_total(const struct coll_blocks *blocks, int size)
{
    size_t total = 0;
    for (int i = 0; i < size; i++) total += blocks->counts[i];
    return total;
}
