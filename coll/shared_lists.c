/* shared_lists.c - gatherv and scatterv, where only the root knows the size of every block, by loads and stores. Root
 * and rank both know that of the rank's own, so both know how it passes: one that fits through a slot, one that does not by
 * a message. Ranks that have such blocks left over return SHARED_DECLINED, and problem->passed tells the schedule which
 * not to pass again. */
#include "coll/shared_parts.h"

/* Of the root's data in a scatterv, what one rank looks at. */
static size_t cell_bytes(const struct shared *shared)
{
    size_t cell = shared->data_bytes / (size_t)shared->size;
    return cell > SHARED_LINE ? cell - cell % SHARED_LINE : cell;
}

size_t shared_lists_limit(const struct shared *shared, enum coll_name name)
{
    return name == COLL_GATHERV ? shared->data_bytes : cell_bytes(shared);
}

/* ---- To one ------------------------------------------------------------------------------------------------------- */

static int gatherv_give(struct shared *shared, const struct coll_problem *problem, const void *block)
{
    bool fits = problem->bytes <= shared->data_bytes;
    int error = shared_give(shared, block, fits ? problem->bytes : 0);
    return error || fits ? error : SHARED_DECLINED;
}

static int gatherv_take(struct shared *shared, const struct coll_problem *problem, const void *own, char *result)
{
    struct shared_walk walk = {problem, &problem->recv, 0};
    bool rest = false;
    int error = shared_give(shared, NULL, 0);
    for (int rank = 0; rank < shared->size && !error; rank++) {
        size_t offset, bytes;
        shared_walk_to(&walk, rank, &offset, &bytes);
        if (rank == problem->rank) {
            if (bytes && !problem->in_place) memcpy(result + offset, own, bytes);
        } else if (bytes > shared->data_bytes) {
            rest = true;
        } else if (bytes) {
            error = shared_wait(shared, rank, shared->number);
            if (!error) memcpy(result + offset, shared_given(shared, rank, bytes), bytes);
        }
    }
    return !error && rest ? SHARED_DECLINED : error;
}

int shared_gatherv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    return problem->rank == problem->root ? gatherv_take(shared, problem, sendbuf, recvbuf)
                                          : gatherv_give(shared, problem, sendbuf);
}

/* ---- From one ----------------------------------------------------------------------------------------------------- */

/* Where the root puts what is for `rank`; of two, only the other gets anything. */
static char *cell(const struct shared *shared, int root, int rank, size_t bytes)
{
    if (shared->size == 2 && bytes <= SHARED_INLINE) return shared_data(shared, root, shared->number, bytes);
    return shared_data(shared, root, shared->number, shared->data_bytes) + (size_t)rank * cell_bytes(shared);
}

static int scatterv_give(struct shared *shared, const struct coll_problem *problem, const char *input, char *result)
{
    struct shared_walk walk = {problem, &problem->send, 0};
    bool rest = false;
    int error = shared_enter(shared);
    if (error) return error;
    for (int rank = 0; rank < shared->size; rank++) {
        size_t offset, bytes;
        shared_walk_to(&walk, rank, &offset, &bytes);
        if (rank == problem->rank) {
            if (bytes && !problem->in_place) memcpy(result, input + offset, bytes);
        } else if (bytes > cell_bytes(shared)) {
            rest = true;
        } else if (bytes) {
            memcpy(cell(shared, problem->rank, rank, bytes), input + offset, bytes);
        }
    }
    shared_publish(shared);
    return rest ? SHARED_DECLINED : NCCLX_SUCCESS;
}

static int scatterv_take(struct shared *shared, const struct coll_problem *problem, char *result)
{
    size_t bytes = problem->bytes;
    int error = shared_give(shared, NULL, 0);
    if (error || !bytes) return error;
    if (bytes > cell_bytes(shared)) return SHARED_DECLINED;
    error = shared_wait(shared, problem->root, shared->number);
    if (!error) memcpy(result, cell(shared, problem->root, problem->rank, bytes), bytes);
    return error;
}

int shared_scatterv(struct shared *shared, const struct coll_problem *problem, const void *sendbuf, void *recvbuf)
{
    return problem->rank == problem->root ? scatterv_give(shared, problem, sendbuf, recvbuf) : scatterv_take(shared, problem, recvbuf);
}
