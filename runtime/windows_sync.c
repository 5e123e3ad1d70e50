/* windows_sync.c - the public functions that complete operations on windows, and epochs. */
#include "runtime/api.h"
#include "runtime/group.h"
#include "coll/coll.h"
#include "osc/osc.h"

static int synchronise(const char *name, ncclx_win_t win, int (*function)(struct ncclx_win *win))
{
    struct api_call call;
    int error = api_enter_win(&call, name, win);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, function(call.win));
}

API_DEFINE(int, win_fence)(ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = coll_check_call(call.win->comm, API_NAME, COLL_CALL_WIN_FENCE, 0, NCCLX_SUCCESS);
    return api_leave(&call, error ? error : osc_fence(call.win));
}

API_DEFINE(int, win_flush)(int target, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, osc_flush(call.win, target));
}

API_DEFINE(int, win_flush_all)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_flush_all);
}

API_DEFINE(int, win_flush_local)(int target, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, osc_flush_local(call.win, target));
}

API_DEFINE(int, win_flush_local_all)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_flush_local_all);
}

API_DEFINE(int, win_lock_all)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_lock_all);
}

API_DEFINE(int, win_unlock_all)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_unlock_all);
}

API_DEFINE(int, win_sync)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_sync);
}

API_DEFINE(int, win_lock)(int type, int target, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, osc_lock(call.win, type, target));
}

API_DEFINE(int, win_unlock)(int target, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, osc_unlock(call.win, target));
}

/* ---- Epochs between groups ------------------------------------------------------------------------------------- */

/* The ranks of the group's members in comm. */
static int translate(const struct ncclx_comm *comm, const struct ncclx_group *group, int *ranks)
{
    struct ncclx_group *members = group_make(comm->world, comm->size, comm->rt->job.rank);
    if (!members) return base_error(NCCLX_ERR_NO_MEM, "no memory for a group of %d ranks", comm->size);
    for (int i = 0; i < group->size; i++) ranks[i] = i;
    int error = group_translate(group, (size_t)group->size, ranks, members, ranks);
    for (int i = 0; i < group->size && !error; i++)
        if (ranks[i] == NCCLX_UNDEFINED) error = base_error(NCCLX_ERR_GROUP, "member %d of the group is not in the window", i);
    base_free(AREA_RUNTIME, members);
    return error;
}

static int with_group(const char *name, ncclx_group_t group, ncclx_win_t win,
                      int (*function)(struct ncclx_win *win, const int *ranks, int count))
{
    struct api_call call;
    int error = api_enter_win(&call, name, win);
    if (error) return error;
    if (group == NCCLX_GROUP_EMPTY) return api_leave(&call, function(call.win, NULL, 0));
    if (!handle_live(&call.rt->runtime->handles, HANDLE_GROUP, group))
        return api_leave(&call, base_error(NCCLX_ERR_GROUP, "the group is null or was freed"));
    int count = group->size;
    int *ranks = base_calloc(AREA_RUNTIME, (size_t)count, sizeof *ranks);
    error = ranks ? translate(call.win->comm, group, ranks) : base_error(NCCLX_ERR_NO_MEM, "no memory for a group of %d ranks", count);
    if (!error) error = function(call.win, ranks, count);
    base_free(AREA_RUNTIME, ranks);
    return api_leave(&call, error);
}

API_DEFINE(int, win_post)(ncclx_group_t group, ncclx_win_t win)
{
    return with_group(API_NAME, group, win, osc_post);
}

API_DEFINE(int, win_start)(ncclx_group_t group, ncclx_win_t win)
{
    return with_group(API_NAME, group, win, osc_start);
}

API_DEFINE(int, win_complete)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_complete);
}

API_DEFINE(int, win_wait)(ncclx_win_t win)
{
    return synchronise(API_NAME, win, osc_wait);
}

API_DEFINE(int, win_test)(ncclx_win_t win, int *flag)
{
    struct api_call call;
    bool over = false;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(flag, "flag");
    if (!error) error = osc_test(call.win, &over);
    return api_leave_look(&call, error, over, flag);
}
