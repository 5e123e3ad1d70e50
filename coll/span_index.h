/* span_index.h - which steps touch a piece of a buffer: spans in search trees, so that a schedule of n steps is built
 * in O(n log n) as long as few of them touch the same bytes.
 *
 * Pure. Memory of two trees a buffer, kept when the index is cleared.
 */
#ifndef COLL_SPAN_INDEX_H
#define COLL_SPAN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum span_use { SPAN_READ, SPAN_WRITTEN, SPAN_USES };

#define SPAN_BUFFERS 3

struct span_node; /* a span of a step, in a treap ordered by where spans begin that also knows where those below it end
                   */

/* Zeroed to begin with. */
struct span_index {
    struct span_node *nodes; /* the first is no span: 0 is "none" */
    size_t used, room;
    uint32_t roots[SPAN_BUFFERS][SPAN_USES];
};

void span_index_clear(struct span_index *index);
void span_index_release(struct span_index *index);
/* Of `bytes` above 0. False: no memory. */
bool span_index_add(struct span_index *index, unsigned buffer, enum span_use use, size_t offset, size_t bytes,
                    uint32_t step);
/* Tells each span of that use which shares a byte with [offset, offset + bytes). */
void span_index_find(const struct span_index *index, unsigned buffer, enum span_use use, size_t offset, size_t bytes,
                     void (*found)(void *arg, uint32_t step), void *arg);

#endif
