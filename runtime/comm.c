/* comm.c - a communicator's life, and what one can ask of it. Making new ones together with others is comm_create.c. */
#include "runtime/api.h"
#include "coll/coll.h"
#include "pml/pml.h"
#include "topo/topo.h"

#include <stdio.h>
#include <string.h>

#define CONTEXT_STEP 4       /* the low two bits tell traffic spaces apart */
#define CONTEXT_RANK_SHIFT 40 /* 2^38 communicators made by each of 2^24 ranks */

/* The communicator, its part of ours, and the members' job ranks, in one block. */
struct block {
    struct ncclx_comm comm;
    struct runtime_comm runtime;
    int world[];
};

static const struct base_comm_services services = {.barrier = coll_barrier, .allgather = coll_allgather_bytes};

uint64_t runtime_new_context(struct ncclx_rt *rt)
{
    uint64_t count = ++rt->runtime->contexts_made;
    return ((uint64_t)rt->job.rank + 1) << CONTEXT_RANK_SHIFT | count * CONTEXT_STEP;
}

static bool is_identity(const int *world, int size)
{
    for (int i = 0; world && i < size; i++)
        if (world[i] != i) return false;
    return true;
}

static void link_comm(struct ncclx_comm *comm)
{
    struct runtime *runtime = comm->rt->runtime;
    comm->runtime->next = runtime->comms;
    if (runtime->comms) runtime->comms->runtime->previous = comm;
    runtime->comms = comm;
}

static void unlink_comm(struct ncclx_comm *comm)
{
    struct runtime_comm *links = comm->runtime;
    if (links->next) links->next->runtime->previous = links->previous;
    if (links->previous) links->previous->runtime->next = links->next;
    else comm->rt->runtime->comms = links->next;
}

static int attach(struct ncclx_comm *comm)
{
    int error = pml_comm_attach(comm);
    if (error) return error;
    error = coll_comm_attach(comm);
    if (error) pml_comm_detach(comm);
    return error;
}

int runtime_comm_make(struct ncclx_rt *rt, uint64_t context, int rank, int size, const int *world,
                      ncclx_errhandler_t errhandler, struct ncclx_comm **out)
{
    size_t members = is_identity(world, size) ? 0 : (size_t)size;
    struct block *block = base_calloc(AREA_RUNTIME, 1, sizeof *block + members * sizeof(int));
    if (!block) return base_error(NCCLX_ERR_NO_MEM, "no memory for a communicator of %d ranks", size);
    struct ncclx_comm *comm = &block->comm;
    *comm = (struct ncclx_comm){.rt = rt, .context = context, .rank = rank, .size = size, .services = &services};
    comm->runtime = &block->runtime;
    if (members) comm->world = memcpy(block->world, world, members * sizeof(int));
    int error = handle_reserve(&rt->runtime->handles);
    if (!error) error = attach(comm);
    if (error) {
        base_free(AREA_RUNTIME, block);
        return error;
    }
    comm->runtime->errhandler = errhandler;
    runtime_errhandler_retain(errhandler);
    link_comm(comm);
    handle_insert(&rt->runtime->handles, HANDLE_COMM, comm);
    *out = comm;
    return NCCLX_SUCCESS;
}

void runtime_comm_destroy(struct ncclx_comm *comm)
{
    handle_remove(&comm->rt->runtime->handles, comm);
    unlink_comm(comm);
    coll_comm_detach(comm);
    pml_comm_detach(comm);
    runtime_errhandler_release(comm->runtime->errhandler);
    base_free(AREA_RUNTIME, comm); /* the first member of its block */
}

void runtime_comm_free(struct ncclx_comm *comm)
{
    if (!comm->runtime->pending) {
        runtime_comm_destroy(comm);
        return;
    }
    handle_remove(&comm->rt->runtime->handles, comm);
    comm->runtime->freed = true;
}

void runtime_comm_sweep(struct ncclx_rt *rt)
{
    struct ncclx_comm *next;
    if (!rt->runtime->ended) return;
    for (struct ncclx_comm *comm = rt->runtime->comms; comm; comm = next) {
        next = comm->runtime->next;
        if (comm->runtime->freed && !comm->runtime->pending) runtime_comm_destroy(comm);
    }
    rt->runtime->ended = 0;
}

static int make_predefined(struct ncclx_rt *rt)
{
    ncclx_errhandler_t handler = rt->config.value[CONFIG_ERRORS].number ? NCCLX_ERRORS_RETURN : NCCLX_ERRORS_ARE_FATAL;
    int error = runtime_comm_make(rt, CONTEXT_STEP, rt->job.rank, rt->job.size, NULL, handler, &rt->world);
    if (!error) error = runtime_comm_make(rt, runtime_new_context(rt), 0, 1, &rt->job.rank, handler, &rt->self);
    if (error) return error;
    snprintf(rt->world->name, sizeof rt->world->name, "COMM_WORLD");
    snprintf(rt->self->name, sizeof rt->self->name, "COMM_SELF");
    handle_remove(&rt->runtime->handles, rt->world); /* their handles are the small constants, never the pointers */
    handle_remove(&rt->runtime->handles, rt->self);
    return NCCLX_SUCCESS;
}

int runtime_init(struct ncclx_rt *rt)
{
    rt->runtime = base_calloc(AREA_RUNTIME, 1, sizeof *rt->runtime);
    if (!rt->runtime) return base_error(NCCLX_ERR_NO_MEM, "no memory for the rank");
    int error = make_predefined(rt);
    if (error) runtime_finalize(rt);
    return error;
}

/* Objects that the program did not free. */
static void end_left_object(struct handle_entry *entry)
{
    void *object = (void *)(uintptr_t)entry->pointer;
    ncclx_info_t info = object;
    ncclx_op_t op = object;
    switch (entry->kind) {
    case HANDLE_GROUP: base_free(AREA_RUNTIME, object); break;
    case HANDLE_INFO: base_info_free(&info); break;
    case HANDLE_OP: base_op_free(&op); break;
    case HANDLE_ERRHANDLER: base_free(AREA_RUNTIME, object); break; /* the communicators that used it are gone */
    case HANDLE_NONE:
    case HANDLE_KINDS:
    case HANDLE_COMM:
    case HANDLE_WIN:
    case HANDLE_PLAN:    /* both ended by osc */
    case HANDLE_MESSAGE: /* ended by pml */ break;
    }
}

void runtime_finalize(struct ncclx_rt *rt)
{
    struct handle_table *handles = &rt->runtime->handles;
    while (rt->runtime->comms) runtime_comm_destroy(rt->runtime->comms);
    for (size_t i = 0; handles->entries && i <= handles->mask; i++) end_left_object(&handles->entries[i]);
    handle_table_release(&rt->runtime->handles);
    base_free(AREA_RUNTIME, rt->runtime);
    rt->runtime = NULL;
    rt->world = rt->self = NULL;
}

/* ---- The public functions ---- */

API_DEFINE(int, comm_rank)(ncclx_comm_t comm, int *rank)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    error = api_check_out(rank, "rank");
    if (!error) *rank = call.comm->rank;
    return api_leave(&call, error);
}

API_DEFINE(int, comm_size)(ncclx_comm_t comm, int *size)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    error = api_check_out(size, "size");
    if (!error) *size = call.comm->size;
    return api_leave(&call, error);
}

API_DEFINE(int, comm_remote_class)(ncclx_comm_t comm, int rank, int *distance_class)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    error = api_check_out(distance_class, "distance_class");
    if (!error) error = api_check_rank(call.comm, rank, false, "rank");
    if (!error) *distance_class = topo_distance(call.rt, base_comm_world(call.comm, rank));
    return api_leave(&call, error);
}

API_DEFINE(int, comm_set_name)(ncclx_comm_t comm, const char *name)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    error = api_check_out(name, "name");
    if (!error) snprintf(call.comm->name, sizeof call.comm->name, "%s", name);
    return api_leave(&call, error);
}

API_DEFINE(int, comm_get_name)(ncclx_comm_t comm, char *name)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    error = api_check_out(name, "name");
    if (!error) memcpy(name, call.comm->name, sizeof call.comm->name);
    return api_leave(&call, error);
}

API_DEFINE(int, comm_free)(ncclx_comm_t *comm)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(comm, "comm");
    if (error) return api_leave(&call, error);
    call.comm = api_comm(call.rt, *comm);
    if (!call.comm) return api_leave(&call, api_bad_comm(*comm));
    if (call.comm == call.rt->world || call.comm == call.rt->self)
        return api_leave(&call, base_error(NCCLX_ERR_COMM, "%s cannot be freed", call.comm->name));
    runtime_comm_sweep(call.rt);
    runtime_comm_free(call.comm);
    *comm = NCCLX_COMM_NULL;
    call.comm = NULL;
    return api_leave(&call, NCCLX_SUCCESS);
}
