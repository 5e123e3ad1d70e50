/* span_index.c - see span_index.h. Treaps after Seidel and Aragon 1996, augmented for intervals as in Cormen and
 * others, section 14.3; priorities are a hash of the node's number, so that the same steps always give the same tree.
 */
#include "coll/span_index.h"

#include "runtime/base/base.h"

#include <string.h>

struct span_node {
    size_t begin, end;
    size_t last_end; /* of all spans from here down */
    uint32_t left, right, step;
};

void span_index_clear(struct span_index *index)
{
    index->used = 1;
    memset(index->roots, 0, sizeof index->roots);
}

void span_index_release(struct span_index *index)
{
    base_free(AREA_COLL, index->nodes);
    *index = (struct span_index){0};
}

static uint32_t priority(uint32_t node)
{
    uint32_t mixed = node * UINT32_C(2654435769);
    return (mixed ^ mixed >> 15) * UINT32_C(2246822519);
}

static void look_below(struct span_node *nodes, uint32_t at)
{
    struct span_node *node = &nodes[at];
    node->last_end = node->end;
    if (node->left && nodes[node->left].last_end > node->last_end) node->last_end = nodes[node->left].last_end;
    if (node->right && nodes[node->right].last_end > node->last_end) node->last_end = nodes[node->right].last_end;
}

/* Spans that begin before `begin` to *left, the others to *right. */
static void split(struct span_node *nodes, uint32_t root, size_t begin, uint32_t *left, uint32_t *right)
{
    if (!root) {
        *left = *right = 0;
        return;
    }
    if (nodes[root].begin < begin) {
        split(nodes, nodes[root].right, begin, &nodes[root].right, right);
        *left = root;
    } else {
        split(nodes, nodes[root].left, begin, left, &nodes[root].left);
        *right = root;
    }
    look_below(nodes, root);
}

static uint32_t insert(struct span_node *nodes, uint32_t root, uint32_t fresh)
{
    if (!root || priority(fresh) > priority(root)) {
        split(nodes, root, nodes[fresh].begin, &nodes[fresh].left, &nodes[fresh].right);
        root = fresh;
    } else if (nodes[fresh].begin < nodes[root].begin) {
        nodes[root].left = insert(nodes, nodes[root].left, fresh);
    } else {
        nodes[root].right = insert(nodes, nodes[root].right, fresh);
    }
    look_below(nodes, root);
    return root;
}

bool span_index_add(struct span_index *index, unsigned buffer, enum span_use use, size_t offset, size_t bytes,
                    uint32_t step)
{
    if (index->used >= index->room) {
        size_t room = index->room ? 2 * index->room : 64;
        struct span_node *moved =
            room > UINT32_MAX / 2 ? NULL : base_realloc(AREA_COLL, index->nodes, room * sizeof *moved);
        if (!moved) return false;
        index->nodes = moved;
        index->room = room;
    }
    uint32_t fresh = (uint32_t)index->used++;
    index->nodes[fresh] =
        (struct span_node){.begin = offset, .end = offset + bytes, .last_end = offset + bytes, .step = step};
    index->roots[buffer][use] = insert(index->nodes, index->roots[buffer][use], fresh);
    return true;
}

struct search {
    const struct span_node *nodes;
    size_t begin, end;
    void (*found)(void *arg, uint32_t step);
    void *arg;
};

static void find(const struct search *search, uint32_t at)
{
    while (at && search->nodes[at].last_end > search->begin) {
        const struct span_node *node = &search->nodes[at];
        find(search, node->left);
        if (node->begin >= search->end) return; /* and all to the right of it */
        if (node->end > search->begin) search->found(search->arg, node->step);
        at = node->right;
    }
}

void span_index_find(const struct span_index *index, unsigned buffer, enum span_use use, size_t offset, size_t bytes,
                     void (*found)(void *arg, uint32_t step), void *arg)
{
    struct search search = {.nodes = index->nodes, .begin = offset, .end = offset + bytes, .found = found, .arg = arg};
    find(&search, index->roots[buffer][use]);
}
