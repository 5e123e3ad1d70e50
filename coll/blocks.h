/* blocks.h - lists of counts and displacements that outlive the call which brought them. */
#ifndef COLL_BLOCKS_H
#define COLL_BLOCKS_H

#include "coll/schedule.h"

/* Lets the problem's lists, if it has any, lie in memory of their own, every displacement written out. *memory is to be freed
 * with base_free(AREA_COLL, ...) after the problem's last use. */
int blocks_keep(struct coll_problem *problem, size_t **memory);
/* Whether kept blocks are those that a call has brought. */
bool blocks_same(const struct coll_blocks *kept, const struct coll_blocks *brought, int size);
/* Elements of all blocks. */
size_t blocks_total(const struct coll_blocks *blocks, int size);

#endif
