/* split_core.c - see split_core.h. */
#include "runtime/split_core.h"
#include "runtime/ncclx.h"

/* Whether old rank a comes before b: by key, then by old rank. */
static inline int before(const struct split_entry *entries, int a, int b)
{
    if (entries[a].key != entries[b].key) return entries[a].key < entries[b].key;
    return a < b;
}

static void sift_down(const struct split_entry *entries, int *members, int root, int size)
{
    for (;;) {
        int child = 2 * root + 1;
        if (child >= size) return;
        if (child + 1 < size && before(entries, members[child], members[child + 1])) child++;
        if (!before(entries, members[root], members[child])) return;
        int moved = members[root];
        members[root] = members[child];
        members[child] = moved;
        root = child;
    }
}

/* Heap sort: in place, no worst case, and the order has no ties. */
static void sort(const struct split_entry *entries, int *members, int size)
{
    for (int root = size / 2; root-- > 0;) sift_down(entries, members, root, size);
    for (int last = size - 1; last > 0; last--) {
        int largest = members[0];
        members[0] = members[last];
        members[last] = largest;
        sift_down(entries, members, 0, last);
    }
}

void split_core(const struct split_entry *entries, int count, int rank, int *members, struct split_result *result)
{
    int32_t color = entries[rank].color;
    int sorted = 1;
    *result = (struct split_result){.failed = -1};
    for (int i = 0; i < count; i++) {
        if (!entries[i].error) continue;
        result->error = entries[i].error;
        result->failed = i;
        return;
    }
    if (color == NCCLX_UNDEFINED) return;
    for (int i = 0; i < count; i++) {
        if (entries[i].color != color) continue;
        if (result->size && entries[i].key < entries[members[result->size - 1]].key) sorted = 0;
        members[result->size++] = i;
    }
    if (!sorted) sort(entries, members, result->size);
    result->context = entries[members[0]].context;
    while (members[result->rank] != rank) result->rank++;
}
