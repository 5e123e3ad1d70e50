/* windows_atomics.c - the public functions that change elements of a window atomically. */
#include "runtime/api.h"
#include "osc/osc.h"

static int check_pointer(const void *pointer, const char *what)
{
    if (API_LIKELY(pointer && pointer != NCCLX_IN_PLACE)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BUFFER, "%s is null or NCCLX_IN_PLACE", what);
}

API_DEFINE(int, win_accumulate)(const void *origin, size_t count, ncclx_datatype_t type, ncclx_op_t op, int target,
                                size_t target_disp, ncclx_win_t win)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_elements(origin, count, type, &bytes);
    if (API_LIKELY(!error)) error = osc_accumulate(call.win, origin, count, type, op, target, target_disp);
    return api_leave(&call, error);
}

/* The fetching calls. */
static int fetch(const char *name, const void *origin, void *result, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                 int target, size_t target_disp, ncclx_win_t win)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_win(&call, name, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_elements(result, count, type, &bytes);
    if (API_LIKELY(!error) && count && op != NCCLX_NO_OP) error = check_pointer(origin, "origin");
    if (API_LIKELY(!error)) error = osc_get_accumulate(call.win, origin, result, count, type, op, target, target_disp);
    return api_leave(&call, error);
}

API_DEFINE(int, win_get_accumulate)(const void *origin, void *result, size_t count, ncclx_datatype_t type,
                                    ncclx_op_t op, int target, size_t target_disp, ncclx_win_t win)
{
    return fetch(API_NAME, origin, result, count, type, op, target, target_disp, win);
}

API_DEFINE(int, win_fetch_op)(const void *origin, void *result, ncclx_datatype_t type, ncclx_op_t op, int target,
                              size_t target_disp, ncclx_win_t win)
{
    return fetch(API_NAME, origin, result, 1, type, op, target, target_disp, win);
}

API_DEFINE(int, win_compare_swap)(const void *origin, const void *compare, void *result, ncclx_datatype_t type,
                                  int target, size_t target_disp, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_pointer(origin, "origin");
    if (!error) error = check_pointer(compare, "compare");
    if (!error) error = check_pointer(result, "result");
    if (API_LIKELY(!error)) error = osc_compare_swap(call.win, origin, compare, result, type, target, target_disp);
    return api_leave(&call, error);
}
