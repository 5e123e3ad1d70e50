/* check_counts.c - NCCLX_CHECK=1: the counts that only a sender and its receiver know (gatherv, scatterv, alltoallv) are compared
 * before anything moves. Each rank tells each other one how much it will send; then all hear of the first pair that differs. */
#include "coll/check_counts.h"

#include "coll/operation.h"

#include <stdio.h>

struct finding {
    uint64_t differs, sends, expects; /* elements */
    int32_t from, to;
};
_Static_assert(sizeof(struct finding) == 32, "no padding: every byte that travels is set");

struct check_counts {
    uint64_t *sends, *announced, *expects; /* one a rank, in one block with this and the findings */
    struct finding *findings;
};

struct check_counts *check_counts_create(int size)
{
    size_t ranks = (size_t)size;
    struct check_counts *counts =
        base_calloc(AREA_COLL, 1, sizeof *counts + ranks * (sizeof(struct finding) + 3 * sizeof(uint64_t)));
    if (!counts) return NULL;
    counts->findings = (struct finding *)(counts + 1);
    counts->sends = (uint64_t *)(counts->findings + ranks);
    counts->announced = counts->sends + ranks;
    counts->expects = counts->announced + ranks;
    return counts;
}

bool check_counts_needed(const struct coll_args *args)
{
    return args->name == COLL_GATHERV || args->name == COLL_SCATTERV || args->name == COLL_ALLTOALLV;
}

/* What stays on a rank is its own affair: the two sides of it are compared with the other arguments. */
static void list(struct check_counts *counts, const struct coll_args *args, int rank, int size)
{
    bool root = rank == args->root, in_place = args->sendbuf == NCCLX_IN_PLACE;
    const size_t *sends = in_place ? args->recv.counts : args->send.counts;
    for (int i = 0; i < size; i++) {
        uint64_t *to = &counts->sends[i], *from = &counts->expects[i];
        *to = *from = 0;
        if (i == rank) continue;
        if (args->name == COLL_ALLTOALLV) *to = sends[i], *from = args->recv.counts[i];
        if (args->name == COLL_GATHERV && i == args->root) *to = args->count;
        if (args->name == COLL_GATHERV && root) *from = args->recv.counts[i];
        if (args->name == COLL_SCATTERV && root) *to = args->send.counts[i];
        if (args->name == COLL_SCATTERV && i == args->root) *from = args->count;
    }
}

static struct finding look(const struct check_counts *counts, int rank, int size)
{
    for (int i = 0; i < size; i++)
        if (counts->announced[i] != counts->expects[i])
            return (struct finding){1, counts->announced[i], counts->expects[i], i, rank};
    return (struct finding){0};
}

int check_counts_compare(struct ncclx_comm *comm, struct check_counts *counts, const struct coll_args *args,
                         const char *call)
{
    list(counts, args, comm->rank, comm->size);
    struct coll_args tell = {.name = COLL_ALLTOALL,
                             .sendbuf = counts->sends,
                             .recvbuf = counts->announced,
                             .count = 1,
                             .type = NCCLX_UINT64};
    int error = coll_run_schedule(comm, &tell);
    if (error) return error;
    struct finding mine = look(counts, comm->rank, comm->size);
    struct coll_args hear = {.name = COLL_ALLGATHER,
                             .sendbuf = &mine,
                             .recvbuf = counts->findings,
                             .count = sizeof mine,
                             .type = NCCLX_UINT8};
    error = coll_run_schedule(comm, &hear);
    for (int i = 0; i < comm->size && !error; i++) {
        const struct finding *found = &counts->findings[i];
        if (found->differs)
            return base_error(NCCLX_ERR_MISMATCH, "rank %d sends %llu elements to rank %d, which expects %llu, in %s",
                              found->from, (unsigned long long)found->sends, found->to,
                              (unsigned long long)found->expects, call);
    }
    return error;
}
