/* operation.c - runs schedules over pml, and keeps them for the next call with the same arguments. */
#include "coll/blocks.h"
#include "coll/operation.h"

#include <stdio.h>
#include <string.h>

/* Idle schedules kept for a communicator: enough for the loop of a program; more than this much memory is not held
 * idle. */
#define KEEP_OPERATIONS 16
#define KEEP_BYTES ((size_t)16 << 20)

/* ---- Steps ------------------------------------------------------------------------------------------------------ */

static char *address(const struct coll_operation *operation, const struct span *span)
{
    return operation->buffer[span->buffer] + span->offset;
}

static void fail(struct coll_operation *operation, int error)
{
    if (!operation->request.status.error) operation->request.status.error = error;
}

/* A receive's length tells when ranks disagree on what they do. */
static int check_message(const struct step *step, const struct ncclx_request *request)
{
    bool differs = step->kind == STEP_RECEIVE && request->status.bytes != step->out.bytes;
    if (request->status.cancelled) return NCCLX_SUCCESS; /* by operation_abandon, which has its reason */
    if (request->status.error && request->status.error != NCCLX_ERR_TRUNCATE) return request->status.error;
    if (!differs) return request->status.error;
    return base_error(NCCLX_ERR_MISMATCH,
                      "rank %d sent %zu bytes where this rank's call of the collective expects %zu: "
                      "their arguments differ",
                      step->peer, request->status.bytes, step->out.bytes);
}

static void end_message(struct operation_message *message)
{
    struct coll_operation *operation = message->operation;
    struct ncclx_request *request = message->request;
    int error = check_message(&operation->schedule->steps[message->step], request);
    message->request = NULL;
    operation->outstanding--;
    request->kind->release(request);
    if (error)
        fail(operation, error);
    else
        executor_complete(&operation->executor, message->step);
}

static void drive(struct coll_operation *operation);

static void on_message(struct ncclx_request *request, void *arg)
{
    struct operation_message *message = arg;
    struct coll_operation *operation = message->operation;
    (void)request;
    end_message(message);
    drive(operation);
}

static void post(struct coll_operation *operation, uint32_t index, const struct step *step)
{
    struct operation_message *message = &operation->messages[index];
    struct ncclx_comm *comm = operation->request.comm;
    struct ncclx_request *request;
    int tag = executor_tag(operation->sequence, step->round);
    int error =
        step->kind == STEP_SEND
            ? pml_isend(comm, PML_COLL, address(operation, &step->a), step->a.bytes, step->peer, tag, &request)
            : pml_irecv(comm, PML_COLL, address(operation, &step->out), step->out.bytes, step->peer, tag, &request);
    if (error) {
        fail(operation, error);
        return;
    }
    message->request = request;
    operation->outstanding++;
    if (request->complete) {
        end_message(message);
    } else {
        request->notify_arg = message;
        request->notify = on_message;
    }
}

static void begin(struct coll_operation *operation, uint32_t index)
{
    const struct step *step = &operation->schedule->steps[index];
    const struct coll_problem *problem = &operation->schedule->problem;
    char *out = address(operation, &step->out);
    size_t count = step->out.bytes / problem->element_bytes;
    switch (step->kind) {
    case STEP_SEND:
    case STEP_RECEIVE:
        post(operation, index, step);
        return;
    case STEP_REDUCE:
        base_op_apply(operation->op, problem->type, address(operation, &step->a), address(operation, &step->b), out,
                      count);
        break;
    case STEP_FINISH:
        base_op_finish(operation->op, problem->type, out, count, problem->size);
        break;
    case STEP_COPY:
        memmove(out, address(operation, &step->a), step->out.bytes);
        break;
    case STEP_JOIN:
        break;
    }
    executor_complete(&operation->executor, index);
}

static void recycle(struct coll_operation *operation);

/* Begins every step that may begin. Completions inside come back here, and leave their work to the outer call. */
static void drive(struct coll_operation *operation)
{
    if (operation->driving) return;
    operation->driving = true;
    while (!operation->request.status.error) {
        uint32_t step = executor_next(&operation->executor);
        if (step == EXECUTOR_NOTHING) break;
        begin(operation, step);
    }
    operation->driving = false;
    int error = operation->request.status.error;
    if (operation->request.complete) {
        if (operation->released && !operation->outstanding) recycle(operation);
    } else if (error) {
        operation_abandon(operation, error);
    } else if (executor_done(&operation->executor)) {
        base_request_complete(&operation->request, NCCLX_SUCCESS);
    }
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

static void release(struct ncclx_request *request)
{
    operation_release((struct coll_operation *)request);
}

static void describe(const struct ncclx_request *request, char *text, size_t bytes)
{
    const struct coll_operation *operation = (const struct coll_operation *)request;
    const struct coll_problem *problem = &operation->schedule->problem;
    int length =
        snprintf(text, bytes, "%s (%s) of %zu bytes, number %u on %s", coll_name_text(problem->name),
                 operation->algorithm->name, problem->bytes, operation->sequence, base_comm_name(request->comm));
    for (uint32_t i = 0; i < operation->schedule->step_count; i++) {
        const struct step *step = &operation->schedule->steps[i];
        if (!operation->messages[i].request || length < 0 || (size_t)length >= bytes) continue;
        snprintf(text + length, bytes - (size_t)length, ", %s rank %d",
                 step->kind == STEP_SEND ? "sending to" : "waiting for", step->peer);
        return;
    }
}

/* Numbers of ordinary collectives follow the order of calls; a persistent one keeps its own for life, so that ranks
 * may start several in different orders. */
static void begin_anew(struct coll_operation *operation)
{
    struct ncclx_comm *comm = operation->request.comm;
    const struct base_request_kind *kind = operation->request.kind;
    bool persistent = operation->request.persistent;
    base_request_prepare(&operation->request, kind, comm->rt, comm);
    operation->request.persistent = persistent;
    executor_start(&operation->executor);
    drive(operation);
}

static int start_persistent(struct ncclx_request *request)
{
    struct coll_operation *operation = (struct coll_operation *)request;
    if (operation->outstanding)
        return base_error(NCCLX_ERR_REQUEST, "%u messages of its last start, which failed, are still under way",
                          operation->outstanding);
    begin_anew(operation);
    return NCCLX_SUCCESS;
}

static const struct base_request_kind operation_kind = {.name = "collective", .release = release, .describe = describe};
static const struct base_request_kind persistent_kind = {
    .name = "persistent collective", .release = release, .start = start_persistent, .describe = describe};

static void bind(struct coll_operation *operation, const struct coll_args *args)
{
    operation->buffer[BUFFER_SEND] = (char *)(uintptr_t)args->sendbuf; /* read only: no step writes to it */
    operation->buffer[BUFFER_RECV] = args->recvbuf;
    operation->op = args->op;
    operation->released = false;
    operation->home->in_flight++;
    if (args->op && !base_op_predefined(args->op)) base_op_retain(args->op);
}

void operation_start(struct coll_operation *operation, const struct coll_args *args)
{
    bind(operation, args);
    operation->request.kind = &operation_kind;
    operation->request.persistent = false;
    operation->sequence = operation->home->sequence++ % EXECUTOR_SEQUENCES;
    begin_anew(operation);
}

static bool number_taken(const struct coll_operation *operation, uint32_t sequence)
{
    for (const struct coll_operation *other = operation->home->operations; other; other = other->next)
        if (other != operation && other->in_use && other->sequence == sequence) return true;
    return false;
}

int operation_prepare(struct coll_operation *operation, const struct coll_args *args)
{
    struct ncclx_comm *comm = operation->request.comm;
    bind(operation, args);
    base_request_prepare(&operation->request, &persistent_kind, comm->rt, comm);
    operation->request.persistent = true;
    operation->request.active = false;
    operation->sequence = EXECUTOR_SEQUENCES + operation->home->prepared++ % EXECUTOR_SEQUENCES;
    if (!number_taken(operation, operation->sequence)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_LIMIT, "one of the last %u persistent collectives on %s is the oldest: free it",
                      EXECUTOR_SEQUENCES, base_comm_name(comm));
}

void operation_abandon(struct coll_operation *operation, int error)
{
    fail(operation, error);
    operation->driving = true; /* cancelled receives may complete at once: they begin nothing more */
    for (uint32_t i = 0; i < operation->schedule->step_count && operation->outstanding; i++) {
        struct ncclx_request *request = operation->messages[i].request;
        if (request && request->kind->cancel) request->kind->cancel(request);
    }
    operation->driving = false;
    if (!operation->request.complete) base_request_complete(&operation->request, operation->request.status.error);
}

/* ---- Keeping them ------------------------------------------------------------------------------------------------ */

static size_t memory_of(const struct coll_operation *operation)
{
    return operation->schedule->memory_bytes + operation->schedule->scratch_bytes;
}

static void destroy(struct coll_operation *operation)
{
    base_free(AREA_COLL, operation->buffer[BUFFER_SCRATCH]);
    base_free(AREA_COLL, operation->executor.pending);
    base_free(AREA_COLL, operation->blocks);
    base_free(AREA_COLL, operation->schedule);
    base_free(AREA_COLL, operation);
}

/* Lets go of what has been idle for longest, beyond what is kept. */
static void trim(struct coll_comm *home)
{
    unsigned kept = 0;
    size_t bytes = 0;
    struct coll_operation **link = &home->operations;
    while (*link) {
        struct coll_operation *operation = *link;
        if (!operation->in_use && (++kept > KEEP_OPERATIONS || (bytes += memory_of(operation)) > KEEP_BYTES)) {
            *link = operation->next;
            destroy(operation);
        } else {
            link = &operation->next;
        }
    }
}

static void recycle(struct coll_operation *operation)
{
    struct coll_comm *home = operation->home;
    bool failed = operation->request.status.error != NCCLX_SUCCESS;
    if (operation->op && !base_op_predefined(operation->op)) base_op_release(operation->op);
    operation->in_use = false;
    if (!home) {
        destroy(operation);
        return;
    }
    home->in_flight--;
    if (failed || memory_of(operation) > KEEP_BYTES / KEEP_OPERATIONS) trim(home);
}

void operation_release(struct coll_operation *operation)
{
    operation->released = true;
    if (!operation->outstanding && !operation->driving) recycle(operation);
}

void operations_end(struct coll_comm *home)
{
    struct coll_operation *next;
    for (struct coll_operation *operation = home->operations; operation; operation = next) {
        next = operation->next;
        if (operation->in_use)
            operation->home = NULL;
        else
            destroy(operation);
    }
    home->operations = NULL;
}

/* a: of a schedule. */
static bool same_problem(const struct coll_problem *a, const struct coll_problem *b)
{
    return a->count == b->count && a->name == b->name && a->type == b->type && a->op == b->op && a->root == b->root &&
           a->in_place == b->in_place && a->commutative == b->commutative && a->passed == b->passed && blocks_same(&a->send, &b->send, a->size) &&
           blocks_same(&a->recv, &b->recv, a->size);
}

static int build_schedule(struct ncclx_comm *comm, const struct coll_problem *problem, struct schedule **schedule,
                          const struct coll_algorithm **algorithm)
{
    struct builder *builder = &comm->rt->coll->builder;
    *algorithm = alone_is(problem) ? &alone_algorithm : coll_select(&comm->rt->coll->choice, problem);
    builder_begin(builder, problem);
    (*algorithm)->build(builder);
    return builder_end(builder, schedule);
}

/* An operation without memory of its own, for this schedule. */
static struct coll_operation *allocate(const struct schedule *schedule)
{
    size_t message_bytes = schedule->step_count * sizeof(struct operation_message);
    struct coll_operation *operation = base_calloc(AREA_COLL, 1, sizeof *operation + message_bytes);
    void *states = base_alloc(AREA_COLL, executor_memory(schedule));
    char *scratch = schedule->scratch_bytes ? base_alloc(AREA_COLL, schedule->scratch_bytes) : NULL;
    if (!operation || !states || (schedule->scratch_bytes && !scratch)) {
        base_free(AREA_COLL, operation);
        base_free(AREA_COLL, states);
        base_free(AREA_COLL, scratch);
        return NULL;
    }
    operation->buffer[BUFFER_SCRATCH] = scratch;
    executor_prepare(&operation->executor, schedule, states);
    for (uint32_t i = 0; i < schedule->step_count; i++)
        operation->messages[i] = (struct operation_message){.operation = operation, .step = i};
    return operation;
}

static int build(struct ncclx_comm *comm, const struct coll_problem *brought, struct coll_operation **result)
{
    struct coll_problem problem = *brought;
    const struct coll_algorithm *algorithm;
    struct schedule *schedule = NULL;
    struct coll_operation *operation = NULL;
    size_t *blocks;
    int error = blocks_keep(&problem, &blocks);
    if (!error) error = build_schedule(comm, &problem, &schedule, &algorithm);
    if (!error && !(operation = allocate(schedule)))
        error = base_error(NCCLX_ERR_NO_MEM, "%s of %zu bytes (%s) needs %zu bytes of memory",
                           coll_name_text(problem.name), problem.bytes, algorithm->name, schedule->scratch_bytes);
    if (error) {
        base_free(AREA_COLL, schedule);
        base_free(AREA_COLL, blocks);
        return error;
    }
    operation->request.comm = comm;
    operation->home = comm->coll;
    operation->algorithm = algorithm;
    operation->schedule = schedule;
    operation->blocks = blocks;
    *result = operation;
    return NCCLX_SUCCESS;
}

int operation_acquire(struct ncclx_comm *comm, const struct coll_problem *problem, struct coll_operation **operation)
{
    struct coll_comm *home = comm->coll;
    struct coll_operation *found = home->operations, **link = &home->operations;
    if (home->in_flight >= EXECUTOR_OVERLAP / 2)
        return base_error(NCCLX_ERR_LIMIT, "more than %u collectives in flight on %s: wait for some", home->in_flight,
                          base_comm_name(comm));
    while (found && (found->in_use || !same_problem(&found->schedule->problem, problem))) {
        link = &found->next;
        found = *link;
    }
    if (found) {
        *link = found->next;
    } else {
        trim(home);
        int error = build(comm, problem, &found);
        if (error) return error;
    }
    found->next = home->operations;
    home->operations = found;
    found->in_use = true;
    *operation = found;
    return NCCLX_SUCCESS;
}
