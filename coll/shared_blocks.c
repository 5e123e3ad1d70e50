/* shared_blocks.c - the collectives that divide data among ranks, and scans, by loads and stores. */
#include "coll/blocks.h"
#include "coll/shared_parts.h"

/* ---- Reductions -------------------------------------------------------------------------------------------------- */

/* Vectors pass in parts; of each, a rank combines what is its own. In place the result is written where input has been
 * given already: it never gets ahead. */
int shared_reduce_scatter(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    const char *input = problem->in_place ? recvbuf : sendbuf;
    size_t begin = 0, own = 0, most = shared->data_bytes / problem->element_bytes * problem->element_bytes;
    size_t total = problem->recv.counts ? problem->total_bytes : problem->bytes * (size_t)problem->size;
    for (int i = 0; i <= problem->rank; i++) shared_walk_to(&walk, i, &begin, &own);
    for (size_t done = 0; done < total; done += most) {
        size_t bytes = shared_smaller(total - done, most);
        int error = shared_give(shared, input + done, bytes);
        if (error) return error;
        size_t first = begin > done ? begin : done, end = shared_smaller(begin + own, done + bytes);
        if (first >= end) continue;
        error = shared_wait_for_all(shared);
        if (error) return error;
        shared_combine(shared, problem, shared->size, bytes, first - done, (char *)recvbuf + (first - begin), end - first);
    }
    return NCCLX_SUCCESS;
}

int shared_scan(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    const char *input = problem->in_place ? recvbuf : sendbuf;
    size_t most = shared->data_bytes / problem->element_bytes * problem->element_bytes;
    int ranks = problem->name == COLL_SCAN ? problem->rank + 1 : problem->rank;
    for (size_t done = 0; done < problem->bytes; done += most) {
        size_t bytes = shared_smaller(problem->bytes - done, most);
        int error = shared_give(shared, input + done, bytes);
        for (int rank = 0; rank < ranks && !error; rank++)
            if (rank != problem->rank) error = shared_wait(shared, rank, shared->number);
        if (error) return error;
        if (ranks) shared_combine(shared, problem, ranks, bytes, 0, (char *)recvbuf + done, bytes);
    }
    return NCCLX_SUCCESS;
}

/* ---- Blocks to all or to one -------------------------------------------------------------------------------------- */

/* Bytes [done, done + data_bytes) of every block but the own one to their places. */
static int take_blocks(struct shared *shared, const struct coll_problem *problem, char *result, size_t done)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    for (int rank = 0; rank < shared->size; rank++) {
        size_t offset, block;
        shared_walk_to(&walk, rank, &offset, &block);
        if (rank == shared->rank || block <= done) continue;
        size_t bytes = shared_smaller(block - done, shared->data_bytes);
        int error = shared_wait(shared, rank, shared->number);
        if (error) return error;
        memcpy(result + offset + done, shared_given(shared, rank, bytes), bytes);
    }
    return NCCLX_SUCCESS;
}

int shared_allgatherv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    size_t own_offset = 0, offset, bytes, largest = 0;
    for (int rank = 0; rank < shared->size; rank++) {
        shared_walk_to(&walk, rank, &offset, &bytes);
        if (rank == shared->rank) own_offset = offset;
        if (bytes > largest) largest = bytes;
    }
    char *own = (char *)recvbuf + own_offset;
    const char *input = problem->in_place ? own : sendbuf;
    for (size_t done = 0; done < largest; done += shared->data_bytes) {
        size_t left = problem->bytes > done ? problem->bytes - done : 0;
        int error = shared_give(shared, left ? input + done : NULL, shared_smaller(left, shared->data_bytes));
        if (!error) error = take_blocks(shared, problem, recvbuf, done);
        if (error) return error;
    }
    if (!problem->in_place && problem->bytes) memcpy(own, input, problem->bytes);
    return NCCLX_SUCCESS;
}

int shared_gather(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    bool root = problem->rank == problem->root;
    for (size_t done = 0; done < problem->bytes; done += shared->data_bytes) {
        size_t bytes = root ? 0 : shared_smaller(problem->bytes - done, shared->data_bytes);
        int error = shared_give(shared, root ? NULL : (const char *)sendbuf + done, bytes);
        if (!error && root) error = take_blocks(shared, problem, recvbuf, done);
        if (error) return error;
    }
    if (root && !problem->in_place) memcpy((char *)recvbuf + (size_t)problem->rank * problem->bytes, sendbuf, problem->bytes);
    return NCCLX_SUCCESS;
}

/* ---- Blocks of the root's, or of all, to each ---------------------------------------------------------------------- */

/* The root gives bytes [done, done + bytes) of every block, side by side. */
static int scatter_part(struct shared *shared, const struct coll_problem *problem, const char *input, char *result, size_t done,
                        size_t bytes)
{
    size_t size = (size_t)shared->size, all = size * bytes;
    bool root = problem->rank == problem->root;
    int error = shared_enter(shared);
    if (error) return error;
    char *leaves = shared_data(shared, shared->rank, shared->number, all);
    for (size_t i = 0; i < size && root; i++)
        if ((int)i != problem->root) memcpy(leaves + i * bytes, input + i * problem->bytes + done, bytes);
    shared_publish(shared);
    if (root) return NCCLX_SUCCESS;
    error = shared_wait(shared, problem->root, shared->number);
    if (error) return error;
    memcpy(result + done, shared_given(shared, problem->root, all) + (size_t)problem->rank * bytes, bytes);
    return NCCLX_SUCCESS;
}

int shared_scatter(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    size_t most = shared->data_bytes / (size_t)shared->size;
    if (most > SHARED_LINE) most -= most % SHARED_LINE;
    for (size_t done = 0; done < problem->bytes; done += most) {
        int error = scatter_part(shared, problem, sendbuf, recvbuf, done, shared_smaller(problem->bytes - done, most));
        if (error) return error;
    }
    if (problem->rank == problem->root && !problem->in_place)
        memcpy(recvbuf, (const char *)sendbuf + (size_t)problem->rank * problem->bytes, problem->bytes);
    return NCCLX_SUCCESS;
}

/* ---- Blocks of any size from all to all ---------------------------------------------------------------------------- */

/* Nobody knows all blocks, so each rank's data begins with a line that tells whether its own ones fit their cells. */
struct head {
    _Alignas(SHARED_LINE) uint64_t fits;
};

static size_t cell_bytes(const struct shared *shared)
{
    size_t cell = (shared->data_bytes - sizeof(struct head)) / (size_t)shared->size;
    return cell / SHARED_LINE * SHARED_LINE;
}

/* In place, what leaves is where it arrives. */
static bool blocks_fit(const struct shared *shared, const struct coll_problem *problem, const struct coll_blocks *leave)
{
    for (int i = 0; i < shared->size; i++)
        if (i != shared->rank && leave->counts[i] * problem->element_bytes > cell_bytes(shared)) return false;
    return true;
}

static void fill_cells(const struct shared *shared, const struct coll_problem *problem, const struct coll_blocks *leave,
                       const char *input, char *cells)
{
    struct shared_walk walk = {problem, leave, 0};
    for (int i = 0; i < shared->size; i++) {
        size_t offset, bytes;
        shared_walk_to(&walk, i, &offset, &bytes);
        if (i != shared->rank && bytes) memcpy(cells + (size_t)i * cell_bytes(shared), input + offset, bytes);
    }
}

static void take_cells(const struct shared *shared, const struct coll_problem *problem, char *result)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    for (int i = 0; i < shared->size; i++) {
        size_t offset, bytes;
        shared_walk_to(&walk, i, &offset, &bytes);
        if (i == shared->rank || !bytes) continue;
        const char *cells = shared_given(shared, i, shared->data_bytes) + sizeof(struct head);
        memcpy(result + offset, cells + (size_t)shared->rank * cell_bytes(shared), shared_smaller(bytes, cell_bytes(shared)));
    }
}

static void copy_own(const struct coll_problem *problem, const char *input, char *result)
{
    struct shared_walk from = {problem, &problem->send, 0}, to = {problem, &problem->recv, 0};
    size_t source = 0, target = 0, bytes = 0;
    for (int i = 0; i <= problem->rank; i++) {
        shared_walk_to(&from, i, &source, &bytes);
        shared_walk_to(&to, i, &target, &bytes);
    }
    if (bytes) memcpy(result + target, input + source, bytes);
}

int shared_alltoallv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    const struct coll_blocks *leave = problem->in_place ? &problem->recv : &problem->send;
    bool fits = blocks_fit(shared, problem, leave);
    int error = shared_enter(shared);
    if (error) return error;
    char *data = shared_data(shared, shared->rank, shared->number, shared->data_bytes);
    ((struct head *)data)->fits = fits;
    if (fits) fill_cells(shared, problem, leave, problem->in_place ? recvbuf : sendbuf, data + sizeof(struct head));
    shared_publish(shared);
    error = shared_wait_for_all(shared);
    if (error) return error;
    for (int i = 0; i < shared->size; i++)
        if (!((const struct head *)shared_given(shared, i, shared->data_bytes))->fits) return SHARED_DECLINED;
    take_cells(shared, problem, recvbuf);
    if (!problem->in_place) copy_own(problem, sendbuf, recvbuf);
    return NCCLX_SUCCESS;
}
