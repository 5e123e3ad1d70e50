/* alone.c - collectives that end without a message. */
#include "coll/operation.h"

#include <string.h>

/* A communicator of one, or nothing to move as all ranks know. */
bool alone_is(const struct coll_problem *problem)
{
    if (problem->size == 1) return true;
    switch (problem->name) {
    case COLL_BARRIER:
    case COLL_GATHERV:
    case COLL_SCATTERV:
    case COLL_ALLTOALLV:
        return false;
    case COLL_ALLGATHERV:
    case COLL_REDUCE_SCATTER:
        return problem->total_bytes == 0;
    default:
        return problem->count == 0;
    }
}

/* What a rank alone has to copy; nothing: of no bytes. */
static void own_block(const struct coll_problem *problem, struct span *from, struct span *to)
{
    size_t bytes = problem->in_place || problem->name == COLL_EXSCAN ? 0 : problem->bytes, element = problem->element_bytes;
    bool to_block = problem->recv.displs && problem->name != COLL_REDUCE_SCATTER;
    *from = span_of(BUFFER_SEND, problem->send.displs ? problem->send.displs[0] * element : 0, bytes);
    *to = span_of(BUFFER_RECV, to_block ? problem->recv.displs[0] * element : 0, bytes);
}

void alone_run(const struct coll_problem *problem, const struct coll_args *args)
{
    struct span from, to;
    own_block(problem, &from, &to);
    if (to.bytes) memcpy((char *)args->recvbuf + to.offset, (const char *)args->sendbuf + from.offset, to.bytes);
}

static void build(struct builder *builder)
{
    struct span from, to;
    own_block(builder->problem, &from, &to);
    builder_copy(builder, from, to);
}

const struct coll_algorithm alone_algorithm = {.name = "alone", .build = build, .least_ranks = 1, .most_ranks = 1};
