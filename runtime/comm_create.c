/* comm_create.c - making communicators together with others: dup, split, split_type, create_group.
 *
 * One exchange tells everybody who the members are and the context id that one of them made; each attaches; a second,
 * small exchange makes all of them agree that all succeeded. Nobody keeps a communicator that another member could not
 * make.
 */
#include "runtime/api.h"
#include "runtime/group.h"
#include "runtime/group_tree.h"
#include "runtime/split_core.h"
#include "bootstrap/bootstrap.h"
#include "coll/coll.h"
#include "pml/pml.h"
#include "topo/topo.h"

#include <string.h>

/* The largest of the members' values, at every member: error codes are positive. */
static int agree(struct ncclx_comm *comm, uint64_t values[2])
{
    struct coll_args args = {.name = COLL_ALLREDUCE,
                             .sendbuf = NCCLX_IN_PLACE,
                             .recvbuf = values,
                             .count = 2,
                             .type = NCCLX_UINT64,
                             .op = NCCLX_MAX};
    return comm->size > 1 ? coll_run(comm, &args) : NCCLX_SUCCESS;
}

static int another_failed(const struct ncclx_comm *comm, int code)
{
    return base_error(code, "another member of %s could not make its part: %s",
                      base_comm_name(comm), base_error_string(code));
}

/* The caller's error, or that another member has one. */
static int agree_on(struct ncclx_comm *comm, int error)
{
    uint64_t values[2] = {(uint64_t)error, 0};
    int exchange = agree(comm, values);
    if (exchange) return exchange;
    return error || !values[0] ? error : another_failed(comm, (int)values[0]);
}

/* After every member has tried: keeps *out if all succeeded. error is the caller's. */
static int agree_to_keep(struct ncclx_comm *parent, int error, struct ncclx_comm **out)
{
    error = agree_on(parent, error);
    if (error && *out) runtime_comm_destroy(*out);
    if (error) *out = NULL;
    return error;
}

int runtime_comm_dup(struct ncclx_comm *comm, int error, struct ncclx_comm **out)
{
    struct ncclx_rt *rt = comm->rt;
    uint64_t values[2] = {(uint64_t)error, comm->rank == 0 ? runtime_new_context(rt) : 0};
    *out = NULL;
    int exchange = agree(comm, values);
    if (exchange) return exchange;
    if (values[0]) return error ? error : another_failed(comm, (int)values[0]);
    error = runtime_comm_make(rt, values[1], comm->rank, comm->size, comm->world, comm->runtime->errhandler, out);
    return agree_to_keep(comm, error, out);
}

static int gather_entries(struct ncclx_comm *comm, const struct split_entry *mine, struct split_entry *entries)
{
    if (comm->size > 1) return coll_allgather_bytes(comm, mine, entries, sizeof *mine);
    entries[0] = *mine;
    return NCCLX_SUCCESS;
}

/* members: old ranks, replaced by job ranks. */
static int make_part(struct ncclx_comm *comm, const struct split_result *result, int *members, struct ncclx_comm **out)
{
    for (int i = 0; i < result->size; i++) members[i] = base_comm_world(comm, members[i]);
    return runtime_comm_make(comm->rt, result->context, result->rank, result->size, members, comm->runtime->errhandler,
                             out);
}

static int split_with(struct ncclx_comm *comm, const struct split_entry *mine, struct split_entry *entries,
                      int *members, struct ncclx_comm **out)
{
    struct split_result result;
    int error = gather_entries(comm, mine, entries);
    if (error) return error;
    split_core(entries, comm->size, comm->rank, members, &result);
    if (mine->error) return mine->error; /* its detail is recorded on this rank */
    if (result.error)
        return base_error(result.error, "rank %d of the communicator could not take part: %s", result.failed,
                          base_error_string(result.error));
    if (result.size) error = make_part(comm, &result, members, out);
    return agree_to_keep(comm, error, out);
}

/* Collective. error: what this rank knows to be wrong with its arguments; the others must hear of it, not wait. */
static int split(struct ncclx_comm *comm, int error, int color, int key, struct ncclx_comm **out)
{
    size_t size = (size_t)comm->size;
    *out = NULL;
    struct split_entry *entries = base_alloc(AREA_RUNTIME, size * (sizeof *entries + sizeof(int)));
    /* Without this room a rank cannot even take part in the exchange. */
    int room = entries ? NCCLX_SUCCESS
                       : base_error(NCCLX_ERR_NO_MEM, "no memory to split a communicator of %d ranks", comm->size);
    room = agree_on(comm, room);
    if (!room && !error && color < 0 && color != NCCLX_UNDEFINED)
        error = base_error(NCCLX_ERR_ARG, "color %d is neither 0 or more nor NCCLX_UNDEFINED", color);
    struct split_entry mine = {.context = runtime_new_context(comm->rt), .color = color, .key = key, .error = error};
    error = room ? room : split_with(comm, &mine, entries, (int *)(entries + size), out);
    base_free(AREA_RUNTIME, entries);
    return error;
}

/* Ranks of the same class share the lowest member at or below that distance as their color. */
static int color_of_type(struct ncclx_comm *comm, int type, int *color)
{
    if (type == NCCLX_UNDEFINED) {
        *color = NCCLX_UNDEFINED;
        return NCCLX_SUCCESS;
    }
    if (type < NCCLX_SPLIT_NODE || type > NCCLX_SPLIT_BUILDING)
        return base_error(NCCLX_ERR_ARG, "%d is not a type of split", type);
    for (int i = 0; i < comm->size; i++) {
        int distance = topo_distance(comm->rt, base_comm_world(comm, i));
        if (distance == NCCLX_DISTANCE_UNKNOWN) distance = NCCLX_DISTANCE_ZONE;
        *color = i;
        if (distance <= type) return NCCLX_SUCCESS;
    }
    return base_error(NCCLX_ERR_INTERNAL, "this rank is at no distance from itself");
}

/* ---- create_group: its members alone take part, over a binomial tree of the group ---- */

/* A call in progress: the tree has rank 0 of the group at its root. */
struct group_call {
    struct ncclx_comm *comm; /* the parent, whose system space carries the messages */
    const struct ncclx_group *group;
    const int *parent_rank;  /* rank in comm of each member; null without memory: looked for */
    int tag;
};

/* Without memory only neighbours in the tree are looked for: who has memory finds out whether all are there. */
static int rank_in_parent(const struct group_call *call, int member)
{
    int rank = 0, world = call->group->world[member];
    if (call->parent_rank) return call->parent_rank[member];
    while (rank < call->comm->size && base_comm_world(call->comm, rank) != world) rank++;
    return rank < call->comm->size ? rank : NCCLX_PROC_NULL;
}

static int tree_send(const struct group_call *call, int member, uint64_t value)
{
    int rank = rank_in_parent(call, member);
    return rank >= 0 ? pml_send(call->comm, PML_SYSTEM, &value, sizeof value, rank, call->tag) : NCCLX_ERR_GROUP;
}

static int tree_receive(const struct group_call *call, int member, uint64_t *value)
{
    ncclx_status_t status;
    int rank = rank_in_parent(call, member);
    if (rank < 0) return NCCLX_ERR_GROUP;
    int error = pml_recv(call->comm, PML_SYSTEM, value, sizeof *value, rank, call->tag, &status);
    if (!error && status.bytes != sizeof *value)
        error = base_error(NCCLX_ERR_TRANSPORT, "a peer broke the protocol of create_group");
    return error;
}

/* The root's value reaches every member. */
static int tree_broadcast(const struct group_call *call, uint64_t *value)
{
    int rank = call->group->rank, size = call->group->size, error = NCCLX_SUCCESS;
    if (rank) error = tree_receive(call, group_tree_parent(rank), value);
    for (int step = group_tree_reach(rank, size) / 2; step && !error; step /= 2)
        if (rank + step < size) error = tree_send(call, rank + step, *value);
    return error;
}

/* The largest value of all members reaches the root. */
static int tree_maximum(const struct group_call *call, uint64_t *value)
{
    int rank = call->group->rank, size = call->group->size, error = NCCLX_SUCCESS;
    for (int step = 1, reach = group_tree_reach(rank, size); step < reach && !error; step *= 2) {
        uint64_t other = 0;
        if (rank + step >= size) continue;
        error = tree_receive(call, rank + step, &other);
        if (other > *value) *value = other;
    }
    if (rank && !error) error = tree_send(call, group_tree_parent(rank), *value);
    return error;
}

/* failed: what is wrong on this rank already. */
static int create_in_tree(const struct group_call *call, int failed, struct ncclx_comm **out)
{
    const struct ncclx_group *group = call->group;
    struct ncclx_rt *rt = call->comm->rt;
    uint64_t context = group->rank == 0 ? runtime_new_context(rt) : 0;
    int error = tree_broadcast(call, &context);
    if (error) return error;
    if (!failed)
        failed = runtime_comm_make(rt, context, group->rank, group->size, group->world, call->comm->runtime->errhandler,
                                   out);
    uint64_t verdict = (uint64_t)failed;
    error = tree_maximum(call, &verdict);
    if (!error) error = tree_broadcast(call, &verdict);
    if (!error && !verdict) return NCCLX_SUCCESS;
    if (*out) runtime_comm_destroy(*out);
    *out = NULL;
    if (error) return error;
    return failed ? failed : another_failed(call->comm, (int)verdict);
}

/* *ranks: the rank in comm of each member of group; freed with base_free(AREA_RUNTIME, ...). */
static int ranks_in_parent(struct ncclx_comm *comm, const struct ncclx_group *group, int **ranks)
{
    struct ncclx_group *all = group_make(comm->world, comm->size, comm->rt->job.rank);
    *ranks = base_alloc(AREA_RUNTIME, 2 * (size_t)group->size * sizeof **ranks);
    int error = NCCLX_SUCCESS;
    if (!all || !*ranks) error = base_error(NCCLX_ERR_NO_MEM, "no memory for a communicator of %d ranks", group->size);
    int *members = error ? NULL : *ranks + group->size;
    for (int i = 0; !error && i < group->size; i++) members[i] = i;
    if (!error) error = group_translate(group, (size_t)group->size, members, all, *ranks);
    for (int i = 0; !error && i < group->size; i++)
        if ((*ranks)[i] == NCCLX_UNDEFINED)
            error = base_error(NCCLX_ERR_GROUP, "member %d of the group, job rank %d, is not in the communicator", i,
                               group->world[i]);
    base_free(AREA_RUNTIME, all);
    return error;
}

/* error: what is wrong on this rank alone, which the others must hear of. What all members see alike ends the call at
 * once on each. */
static int create_group(struct ncclx_comm *comm, const struct ncclx_group *group, int tag, int error,
                        struct ncclx_comm **out)
{
    int *ranks = NULL;
    *out = NULL;
    if (tag < 0 || tag >= COLL_CHECK_TAG)
        return base_error(NCCLX_ERR_TAG, "tag %d is not from 0 to %d", tag, COLL_CHECK_TAG - 1);
    if (group->rank == NCCLX_UNDEFINED) return base_error(NCCLX_ERR_GROUP, "the caller is not a member of the group");
    if (!error) error = ranks_in_parent(comm, group, &ranks);
    if (error != NCCLX_ERR_GROUP) {
        struct group_call call = {
            .comm = comm, .group = group, .parent_rank = error ? NULL : ranks, .tag = tag};
        error = create_in_tree(&call, error, out);
    }
    base_free(AREA_RUNTIME, ranks);
    return error;
}

/* ---- The public functions ---- */

/* Every member takes part in the exchange even when its own arguments are wrong: error travels with it. */
static int begin(struct api_call *call, const char *name, ncclx_comm_t comm, const ncclx_comm_t *out,
                 int *argument_error)
{
    int error = api_enter_comm(call, name, comm);
    if (error) return error;
    runtime_comm_sweep(call->rt);
    *argument_error = api_check_out(out, "out");
    return NCCLX_SUCCESS;
}

API_DEFINE(int, comm_dup)(ncclx_comm_t comm, ncclx_comm_t *out)
{
    struct api_call call;
    struct ncclx_comm *made;
    int argument_error;
    int error = begin(&call, API_NAME, comm, out, &argument_error);
    if (error) return error;
    error = coll_check_call(call.comm, API_NAME, COLL_CALL_COMM_DUP, 0, NCCLX_SUCCESS);
    if (!error) error = runtime_comm_dup(call.comm, argument_error, &made);
    if (!error) *out = made;
    return api_leave(&call, error);
}

API_DEFINE(int, comm_split)(ncclx_comm_t comm, int color, int key, ncclx_comm_t *out)
{
    struct api_call call;
    struct ncclx_comm *made;
    int argument_error;
    int error = begin(&call, API_NAME, comm, out, &argument_error);
    if (error) return error;
    error = coll_check_call(call.comm, API_NAME, COLL_CALL_COMM_SPLIT, 0, NCCLX_SUCCESS);
    if (!error) error = split(call.comm, argument_error, color, key, &made);
    if (!error) *out = made;
    return api_leave(&call, error);
}

API_DEFINE(int, comm_split_type)(ncclx_comm_t comm, int type, int key, ncclx_comm_t *out)
{
    struct api_call call;
    struct ncclx_comm *made;
    int argument_error, color = NCCLX_UNDEFINED;
    int error = begin(&call, API_NAME, comm, out, &argument_error);
    if (error) return error;
    if (!argument_error) argument_error = color_of_type(call.comm, type, &color);
    error = coll_check_call(call.comm, API_NAME, COLL_CALL_COMM_SPLIT_TYPE, 0, NCCLX_SUCCESS);
    if (!error) error = split(call.comm, argument_error, color, key, &made);
    if (!error) *out = made;
    return api_leave(&call, error);
}

API_DEFINE(int, comm_create_group)(ncclx_comm_t comm, ncclx_group_t group, int tag, ncclx_comm_t *out)
{
    struct api_call call;
    struct ncclx_comm *made;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    if (group == NCCLX_GROUP_EMPTY || !handle_live(&call.rt->runtime->handles, HANDLE_GROUP, group))
        error = base_error(NCCLX_ERR_GROUP, "the group is empty, null or was freed");
    if (!error) error = create_group(call.comm, group, tag, api_check_out(out, "out"), &made);
    if (!error) *out = made;
    return api_leave(&call, error);
}
