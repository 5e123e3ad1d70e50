/* windows_plans.c - the public functions on put plans. */
#include "runtime/api.h"
#include "osc/osc.h"

API_DEFINE(int, win_plan_create)(const ncclx_plan_piece_t *pieces, size_t count, ncclx_datatype_t type, ncclx_win_t win,
                                 ncclx_plan_t *plan)
{
    struct api_call call;
    ncclx_plan_t made = NCCLX_PLAN_NULL;
    int error = api_enter_win(&call, API_NAME, win);
    if (error) return error;
    error = api_check_out(plan, "plan");
    if (!error && count && !pieces) error = base_error(NCCLX_ERR_ARG, "pieces is a null pointer");
    if (!error && handle_reserve(&call.rt->runtime->handles)) error = base_error(NCCLX_ERR_NO_MEM, "no memory for a plan");
    if (!error) error = osc_plan_create(call.win, pieces, count, type, &made);
    if (error) return api_leave(&call, error);
    handle_insert(&call.rt->runtime->handles, HANDLE_PLAN, made);
    *plan = made;
    return api_leave(&call, NCCLX_SUCCESS);
}

static int enter_plan(struct api_call *call, const char *name, ncclx_plan_t plan)
{
    int error = api_enter(call, name);
    if (API_UNLIKELY(error)) return error;
    if (API_UNLIKELY(!handle_live(&call->rt->runtime->handles, HANDLE_PLAN, plan)))
        return api_leave(call, base_error(NCCLX_ERR_ARG, "%p is not a plan; was it freed?", (void *)plan));
    call->win = osc_plan_win(plan);
    return NCCLX_SUCCESS;
}

API_DEFINE(int, win_plan_start)(ncclx_plan_t plan)
{
    struct api_call call;
    int error = enter_plan(&call, API_NAME, plan);
    if (API_UNLIKELY(error)) return error;
    return api_leave(&call, osc_plan_start(plan));
}

API_DEFINE(int, win_plan_free)(ncclx_plan_t *plan)
{
    struct api_call call;
    int error = enter_plan(&call, API_NAME, plan ? *plan : NCCLX_PLAN_NULL);
    if (error) return error;
    handle_remove(&call.rt->runtime->handles, *plan);
    osc_plan_free(*plan);
    *plan = NCCLX_PLAN_NULL;
    return api_leave(&call, NCCLX_SUCCESS);
}
