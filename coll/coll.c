/* coll.c - the calls of coll.h: what needs no communication is done here, the rest by an operation. */
#include "coll/blocks.h"
#include "coll/operation.h"

#include <string.h>

int coll_init(struct ncclx_rt *rt)
{
    rt->coll = base_calloc(AREA_COLL, 1, sizeof *rt->coll);
    if (!rt->coll) return base_error(NCCLX_ERR_NO_MEM, "no memory for collectives");
    int error = coll_choice_read(&rt->coll->choice, &rt->config);
    if (error) coll_finalize(rt);
    return error;
}

void coll_finalize(struct ncclx_rt *rt)
{
    if (!rt->coll) return;
    segments_reap(rt, true);
    builder_release(&rt->coll->builder);
    base_free(AREA_COLL, rt->coll);
    rt->coll = NULL;
}

int coll_comm_attach(struct ncclx_comm *comm)
{
    comm->coll = base_calloc(AREA_COLL, 1, sizeof *comm->coll);
    if (!comm->coll) return base_error(NCCLX_ERR_NO_MEM, "no memory for the collectives of %s", base_comm_name(comm));
    if (!comm->rt->check) return NCCLX_SUCCESS;
    int error = check_attach(comm);
    if (error) coll_comm_detach(comm);
    return error;
}

void coll_comm_detach(struct ncclx_comm *comm)
{
    if (!comm->coll) return;
    segments_end(comm);
    operations_end(comm->coll);
    check_detach(comm->coll);
    base_free(AREA_COLL, comm->coll);
    comm->coll = NULL;
}

static bool is_in_place(const struct coll_args *args)
{
    switch (args->name) {
    case COLL_BARRIER:
        return false;
    case COLL_BCAST:
        return true;
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return args->recvbuf == NCCLX_IN_PLACE;
    default:
        return args->sendbuf == NCCLX_IN_PLACE;
    }
}

/* With blocks of unlike size: this rank's contribution, or what it gets. */
static size_t own_count(const struct ncclx_comm *comm, const struct coll_args *args, bool in_place)
{
    switch (args->name) {
    case COLL_ALLTOALLV:
    case COLL_REDUCE_SCATTER:
        return args->recv.counts[comm->rank];
    case COLL_GATHERV:
    case COLL_ALLGATHERV:
        return in_place ? args->recv.counts[comm->rank] : args->count;
    case COLL_SCATTERV:
        return in_place ? args->send.counts[comm->rank] : args->count;
    default:
        return args->count;
    }
}

static struct coll_problem problem_of(const struct ncclx_comm *comm, const struct coll_args *args)
{
    bool in_place = is_in_place(args);
    struct coll_problem problem = {
        .name = args->name,
        .rank = comm->rank,
        .size = comm->size,
        .root = args->root,
        .count = own_count(comm, args, in_place),
        .element_bytes = args->name == COLL_BARRIER ? 1 : base_type_size(args->type),
        .send = args->send,
        .recv = args->recv,
        .type = args->type,
        .op = args->op,
        .commutative = !args->op || base_op_commutative(args->op),
        .in_place = in_place,
    };
    problem.bytes = problem.count * problem.element_bytes;
    if (args->name == COLL_ALLGATHERV || args->name == COLL_REDUCE_SCATTER)
        problem.total_bytes = blocks_total(&args->recv, comm->size) * problem.element_bytes;
    /* What the call ignores may be anything. */
    if (args->name == COLL_SCATTERV && comm->rank != args->root) problem.send = (struct coll_blocks){NULL, NULL};
    if (args->name == COLL_ALLTOALLV && in_place) problem.send = (struct coll_blocks){NULL, NULL};
    if (args->name == COLL_GATHERV && comm->rank != args->root) problem.recv = (struct coll_blocks){NULL, NULL};
    return problem;
}

static const char *call_name(enum coll_name name)
{
    static const char *const text[COLL_NAMES] = {
        [COLL_BARRIER] = "ncclx_coll_barrier",
        [COLL_BCAST] = "ncclx_coll_bcast",
        [COLL_REDUCE] = "ncclx_coll_reduce",
        [COLL_ALLREDUCE] = "ncclx_coll_allreduce",
        [COLL_ALLGATHER] = "ncclx_coll_allgather",
        [COLL_ALLTOALL] = "ncclx_coll_alltoall",
        [COLL_REDUCE_SCATTER] = "ncclx_coll_reduce_scatter",
        [COLL_REDUCE_SCATTER_BLOCK] = "ncclx_coll_reduce_scatter_block",
        [COLL_ALLGATHERV] = "ncclx_coll_allgatherv",
        [COLL_GATHER] = "ncclx_coll_gather",
        [COLL_GATHERV] = "ncclx_coll_gatherv",
        [COLL_SCATTER] = "ncclx_coll_scatter",
        [COLL_SCATTERV] = "ncclx_coll_scatterv",
        [COLL_ALLTOALLV] = "ncclx_coll_alltoallv",
        [COLL_SCAN] = "ncclx_coll_scan",
        [COLL_EXSCAN] = "ncclx_coll_exscan",
    };
    return text[name];
}

static int run_schedule(struct ncclx_comm *comm, const struct coll_problem *problem, const struct coll_args *args)
{
    struct coll_operation *operation;
    int error = operation_acquire(comm, problem, &operation);
    if (error) return error;
    operation_start(operation, args);
    error = operation->request.complete ? operation->request.status.error
                                        : base_request_wait(&operation->request, call_name(args->name));
    if (!operation->request.complete) operation_abandon(operation, error);
    operation_release(operation);
    return error;
}

int coll_run_schedule(struct ncclx_comm *comm, const struct coll_args *args)
{
    struct coll_problem problem = problem_of(comm, args);
    return run_schedule(comm, &problem, args);
}

static size_t largest_block(const struct coll_problem *problem)
{
    size_t largest = 0;
    for (int i = 0; i < problem->size; i++)
        if (problem->recv.counts[i] > largest) largest = problem->recv.counts[i];
    return largest * problem->element_bytes;
}

/* What a rank puts into one slot at most, as all ranks know it. */
static size_t slot_bytes(const struct coll_problem *problem)
{
    switch (problem->name) {
    case COLL_BARRIER:
        return 0;
    case COLL_ALLTOALL:
    case COLL_SCATTER:
    case COLL_REDUCE_SCATTER_BLOCK:
        return problem->bytes * (size_t)problem->size;
    case COLL_REDUCE_SCATTER:
        return problem->total_bytes;
    case COLL_ALLGATHERV:
        return largest_block(problem);
    case COLL_ALLTOALLV:
    case COLL_GATHERV:
    case COLL_SCATTERV:
        return SIZE_MAX; /* the larger the blocks that fit */
    default:
        return problem->bytes;
    }
}

/* Whether the order of operands shows in the result: then the same call must take the same way from the first time
 * on. */
static bool order_shows(const struct coll_problem *problem)
{
    if (!problem->op || problem->op == NCCLX_MIN || problem->op == NCCLX_MAX) return false;
    return !base_op_predefined(problem->op) || (problem->type >= NCCLX_FLOAT && problem->type <= NCCLX_FP8_E5M2);
}

/* After the blocks that fit into slots. Schedules are counted alike on all ranks, also where there is none to run. */
static int run_rest_of_lists(struct ncclx_comm *comm, struct coll_problem *problem, const struct coll_args *args,
                             const struct shared *shared, int error)
{
    if (error != SHARED_DECLINED) {
        comm->coll->sequence++;
        return error;
    }
    problem->passed = shared_lists_limit(shared, problem->name);
    return run_schedule(comm, problem, args);
}

int coll_run(struct ncclx_comm *comm, const struct coll_args *args)
{
    struct coll_problem problem = problem_of(comm, args);
    if (alone_is(&problem)) {
        alone_run(&problem, args);
        return NCCLX_SUCCESS;
    }
    problem.shared = segments_possible(comm);
    const struct coll_algorithm *algorithm = problem.shared ? coll_select(&comm->rt->coll->choice, &problem) : NULL;
    problem.shared = false;
    if (!algorithm || !algorithm->run) return run_schedule(comm, &problem, args);
    struct shared *shared;
    bool copies = algorithm->needs == COPIES;
    int error = segments_get(comm, copies ? SIZE_MAX : slot_bytes(&problem), order_shows(&problem), &shared);
    if (error) return error;
    if (!shared) return run_schedule(comm, &problem, args);
    if (shared->error)
        return base_error(shared->error, "an earlier collective on %s failed; the communicator is of no more use",
                          base_comm_name(comm));
    shared->call = call_name(args->name);
    error = algorithm->run(shared, &problem, args->sendbuf, args->recvbuf);
    if (problem.name == COLL_GATHERV || problem.name == COLL_SCATTERV) return run_rest_of_lists(comm, &problem, args, shared, error);
    if (error == SHARED_DECLINED) error = run_schedule(comm, &problem, args);
    shared_measured_end(shared);
    return error;
}

int coll_start(struct ncclx_comm *comm, const struct coll_args *args, struct ncclx_request **request)
{
    struct coll_problem problem = problem_of(comm, args);
    struct coll_operation *operation;
    if (alone_is(&problem)) {
        alone_run(&problem, args);
        *request = base_request_done(comm->rt);
        return NCCLX_SUCCESS;
    }
    int error = operation_acquire(comm, &problem, &operation);
    if (error) return error;
    operation_start(operation, args);
    *request = &operation->request;
    return NCCLX_SUCCESS;
}

int coll_prepare(struct ncclx_comm *comm, const struct coll_args *args, struct ncclx_request **request)
{
    struct coll_problem problem = problem_of(comm, args);
    struct coll_operation *operation;
    int error = operation_acquire(comm, &problem, &operation);
    if (error) return error;
    error = operation_prepare(operation, args);
    if (error) operation_release(operation);
    *request = error ? NULL : &operation->request;
    return error;
}

int coll_barrier(struct ncclx_comm *comm)
{
    return coll_run(comm, &(struct coll_args){.name = COLL_BARRIER});
}

int coll_allgather_bytes(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes)
{
    struct coll_args args = {
        .name = COLL_ALLGATHER, .sendbuf = mine, .recvbuf = all, .count = bytes, .type = NCCLX_UINT8};
    return coll_run(comm, &args);
}
