/* shared_tree.c - barrier and broadcast along a tree in shared memory: whatever the number of ranks, a rank looks at the
 * rows of few others, and few look at its own. Where a processor can look at many rows at once, which one socket's cores
 * do, that saves less than the levels of the tree cost (tests/perf/README.md). */
#include "coll/shared_parts.h"

/* Children of a rank. Few levels count for more than few children: 4 are slower with any number of ranks, 16 are not
 * faster. */
#define ARITY 8

/* Ranks counted from the root, level by level. */
struct node {
    int parent; /* -1: the root */
    int first, end; /* children; none: the same */
};

static struct node node_of(const struct shared *shared, int root)
{
    int64_t relative = ((int64_t)shared->rank - root + shared->size) % shared->size, first = ARITY * relative + 1;
    struct node node = {
        .parent = relative ? (int)((relative - 1) / ARITY) : -1,
        .first = (int)(first < shared->size ? first : shared->size),
        .end = (int)(first + ARITY < shared->size ? first + ARITY : shared->size),
    };
    return node;
}

static int rank_of(const struct shared *shared, int relative, int root)
{
    return (int)(((int64_t)relative + root) % shared->size);
}

/* Part n tells a rank's parent that all below have come, part n + 1 its children that all have. */
int shared_barrier_tree(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    (void)problem, (void)sendbuf, (void)recvbuf;
    struct node node = node_of(shared, 0);
    int error = shared_enter(shared);
    for (int child = node.first; child < node.end && !error; child++) error = shared_wait(shared, child, shared->number);
    if (error) return error;
    shared_publish(shared);
    error = shared_enter(shared);
    if (!error && node.parent >= 0) error = shared_wait(shared, node.parent, shared->number);
    if (error) return error;
    shared_publish(shared);
    shared->entered = shared->number - 1;
    return NCCLX_SUCCESS;
}

/* Ranks with children hand a piece on before they keep it. */
static int bcast_part(struct shared *shared, const struct node *node, int parent, char *piece, size_t bytes)
{
    bool leaf = node->first == node->end;
    if (node->parent < 0) return shared_give(shared, piece, bytes);
    int error = leaf ? shared_give(shared, NULL, 0) : shared_enter(shared);
    if (!error) error = shared_wait(shared, parent, shared->number);
    if (error) return error;
    __builtin_prefetch(shared_slot(shared, parent, shared->number + 1));
    const char *given = shared_given(shared, parent, bytes);
    if (!leaf) {
        char *own = shared_data(shared, shared->rank, shared->number, bytes);
        memcpy(own, given, bytes);
        shared_publish(shared);
        given = own;
    }
    memcpy(piece, given, bytes);
    return NCCLX_SUCCESS;
}

int shared_bcast_tree(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    (void)sendbuf;
    struct node node = node_of(shared, problem->root);
    int parent = rank_of(shared, node.parent, problem->root);
    size_t most = shared_smaller(shared->data_bytes, SHARED_BCAST_BYTES);
    for (size_t done = 0; done < problem->bytes; done += most) {
        size_t bytes = shared_smaller(problem->bytes - done, most);
        int error = bcast_part(shared, &node, parent, (char *)recvbuf + done, bytes);
        if (error) return error;
    }
    return NCCLX_SUCCESS;
}
