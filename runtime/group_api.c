/* group_api.c - the public functions on groups. */
#include "runtime/api.h"
#include "osc/osc.h"
#include "runtime/group.h"

/* Of GROUP_EMPTY, which is a constant and no memory of ours. */
static const struct ncclx_group empty = {.size = 0, .rank = NCCLX_UNDEFINED};

/* *group becomes what the handle stands for, or ERR_GROUP. */
static int resolve(const struct ncclx_rt *rt, ncclx_group_t handle, const struct ncclx_group **group)
{
    *group = handle == NCCLX_GROUP_EMPTY ? &empty : handle;
    if (handle == NCCLX_GROUP_EMPTY || handle_live(&rt->runtime->handles, HANDLE_GROUP, handle)) return NCCLX_SUCCESS;
    if (handle == NCCLX_GROUP_NULL) return base_error(NCCLX_ERR_GROUP, "the group is NCCLX_GROUP_NULL");
    return base_error(NCCLX_ERR_GROUP, "%p is not a group; was it freed?", (void *)handle);
}

static int enter_group(struct api_call *call, const char *name, ncclx_group_t handle, const struct ncclx_group **group)
{
    int error = api_enter(call, name);
    if (error) return error;
    error = resolve(call->rt, handle, group);
    return error ? api_leave(call, error) : NCCLX_SUCCESS;
}

/* Hands a new group to the program; an empty one becomes the constant. Room for the handle was reserved. */
static void publish(struct ncclx_rt *rt, struct ncclx_group *group, ncclx_group_t *out)
{
    if (group->size == 0) {
        base_free(AREA_RUNTIME, group);
        *out = NCCLX_GROUP_EMPTY;
        return;
    }
    handle_insert(&rt->runtime->handles, HANDLE_GROUP, group);
    *out = group;
}

static int check_result(struct ncclx_rt *rt, const ncclx_group_t *out)
{
    int error = api_check_out(out, "out");
    return error ? error : handle_reserve(&rt->runtime->handles);
}

static int check_list(const void *list, size_t count, const char *what)
{
    return count ? api_check_out(list, what) : NCCLX_SUCCESS;
}

API_DEFINE(int, group_size)(ncclx_group_t group, int *size)
{
    struct api_call call;
    const struct ncclx_group *g;
    int error = enter_group(&call, API_NAME, group, &g);
    if (error) return error;
    error = api_check_out(size, "size");
    if (!error) *size = g->size;
    return api_leave(&call, error);
}

API_DEFINE(int, group_rank)(ncclx_group_t group, int *rank)
{
    struct api_call call;
    const struct ncclx_group *g;
    int error = enter_group(&call, API_NAME, group, &g);
    if (error) return error;
    error = api_check_out(rank, "rank");
    if (!error) *rank = g->rank;
    return api_leave(&call, error);
}

API_DEFINE(int, group_translate)(ncclx_group_t from, size_t count, const int *ranks, ncclx_group_t to, int *out)
{
    struct api_call call;
    const struct ncclx_group *source, *target;
    int error = enter_group(&call, API_NAME, from, &source);
    if (error) return error;
    error = resolve(call.rt, to, &target);
    if (!error) error = check_list(ranks, count, "ranks");
    if (!error) error = check_list(out, count, "out");
    if (!error) error = group_translate(source, count, ranks, target, out);
    return api_leave(&call, error);
}

API_DEFINE(int, group_compare)(ncclx_group_t a, ncclx_group_t b, int *result)
{
    struct api_call call;
    const struct ncclx_group *first, *second;
    int error = enter_group(&call, API_NAME, a, &first);
    if (error) return error;
    error = resolve(call.rt, b, &second);
    if (!error) error = api_check_out(result, "result");
    if (!error) error = group_compare(first, second, result);
    return api_leave(&call, error);
}

typedef int (*combine_fn)(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out);

static int combine(const char *name, ncclx_group_t a, ncclx_group_t b, combine_fn function, ncclx_group_t *out)
{
    struct api_call call;
    const struct ncclx_group *first, *second;
    struct ncclx_group *made;
    int error = enter_group(&call, name, a, &first);
    if (error) return error;
    error = resolve(call.rt, b, &second);
    if (!error) error = check_result(call.rt, out);
    if (!error) error = function(first, second, call.rt->job.rank, &made);
    if (!error) publish(call.rt, made, out);
    return api_leave(&call, error);
}

API_DEFINE(int, group_union)(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out)
{
    return combine(API_NAME, a, b, group_union, out);
}

API_DEFINE(int, group_intersection)(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out)
{
    return combine(API_NAME, a, b, group_intersection, out);
}

API_DEFINE(int, group_difference)(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out)
{
    return combine(API_NAME, a, b, group_difference, out);
}

typedef int (*choose_fn)(const struct ncclx_group *group, size_t count, const int *ranks, int self,
                         struct ncclx_group **out);

static int choose(const char *name, ncclx_group_t group, size_t count, const int *ranks, choose_fn function,
                  ncclx_group_t *out)
{
    struct api_call call;
    const struct ncclx_group *g;
    struct ncclx_group *made;
    int error = enter_group(&call, name, group, &g);
    if (error) return error;
    error = check_list(ranks, count, "ranks");
    if (!error) error = check_result(call.rt, out);
    if (!error) error = function(g, count, ranks, call.rt->job.rank, &made);
    if (!error) publish(call.rt, made, out);
    return api_leave(&call, error);
}

API_DEFINE(int, group_incl)(ncclx_group_t group, size_t count, const int *ranks, ncclx_group_t *out)
{
    return choose(API_NAME, group, count, ranks, group_incl, out);
}

API_DEFINE(int, group_excl)(ncclx_group_t group, size_t count, const int *ranks, ncclx_group_t *out)
{
    return choose(API_NAME, group, count, ranks, group_excl, out);
}

static int choose_ranges(const char *name, ncclx_group_t group, size_t count, const int (*ranges)[3],
                         choose_fn function, ncclx_group_t *out)
{
    struct api_call call;
    const struct ncclx_group *g;
    struct ncclx_group *made;
    int *ranks = NULL;
    size_t expanded = 0;
    int error = enter_group(&call, name, group, &g);
    if (error) return error;
    error = check_list(ranges, count, "ranges");
    if (!error) error = check_result(call.rt, out);
    if (!error) error = group_expand(g, count, ranges, &expanded, &ranks);
    if (!error) error = function(g, expanded, ranks, call.rt->job.rank, &made);
    if (!error) publish(call.rt, made, out);
    base_free(AREA_RUNTIME, ranks);
    return api_leave(&call, error);
}

API_DEFINE(int, group_range_incl)(ncclx_group_t group, size_t count, const int (*ranges)[3], ncclx_group_t *out)
{
    return choose_ranges(API_NAME, group, count, ranges, group_incl, out);
}

API_DEFINE(int, group_range_excl)(ncclx_group_t group, size_t count, const int (*ranges)[3], ncclx_group_t *out)
{
    return choose_ranges(API_NAME, group, count, ranges, group_excl, out);
}

API_DEFINE(int, group_free)(ncclx_group_t *group)
{
    struct api_call call;
    const struct ncclx_group *g;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(group, "group");
    if (!error) error = resolve(call.rt, *group, &g);
    if (!error && *group != NCCLX_GROUP_EMPTY) {
        handle_remove(&call.rt->runtime->handles, *group);
        base_free(AREA_RUNTIME, *group);
    }
    if (!error) *group = NCCLX_GROUP_NULL;
    return api_leave(&call, error);
}

static int members_of(struct api_call *call, const struct ncclx_comm *comm, ncclx_group_t *group)
{
    int error = check_result(call->rt, group);
    if (error) return api_leave(call, error);
    struct ncclx_group *made = group_make(comm->world, comm->size, call->rt->job.rank);
    if (!made) return api_leave(call, base_error(NCCLX_ERR_NO_MEM, "no memory for a group of %d ranks", comm->size));
    publish(call->rt, made, group);
    return api_leave(call, NCCLX_SUCCESS);
}

API_DEFINE(int, comm_group)(ncclx_comm_t comm, ncclx_group_t *group)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    return error ? error : members_of(&call, call.comm, group);
}

API_DEFINE(int, win_group)(ncclx_win_t win, ncclx_group_t *group)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    return error ? error : members_of(&call, call.win->comm, group);
}

API_DEFINE(int, comm_compare)(ncclx_comm_t a, ncclx_comm_t b, int *result)
{
    struct api_call call;
    struct ncclx_group *first = NULL, *second = NULL;
    int error = api_enter_comm(&call, API_NAME, a);
    if (error) return error;
    struct ncclx_comm *other = api_comm(call.rt, b);
    error = other ? api_check_out(result, "result") : api_bad_comm(b);
    if (error) return api_leave(&call, error);
    if (other == call.comm) {
        *result = NCCLX_IDENT;
        return api_leave(&call, NCCLX_SUCCESS);
    }
    first = group_make(call.comm->world, call.comm->size, call.rt->job.rank);
    second = group_make(other->world, other->size, call.rt->job.rank);
    if (!first || !second) error = base_error(NCCLX_ERR_NO_MEM, "no memory to compare communicators");
    if (!error) error = group_compare(first, second, result);
    if (!error && *result == NCCLX_IDENT) *result = NCCLX_CONGRUENT;
    base_free(AREA_RUNTIME, first);
    base_free(AREA_RUNTIME, second);
    return api_leave(&call, error);
}
