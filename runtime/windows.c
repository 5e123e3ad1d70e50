/* windows.c - the public functions on windows: handles, sizes and hints are checked here; targets, slots and ranges by
 * osc. */
#include "runtime/api.h"
#include "coll/coll.h"
#include "osc/osc.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_KEY "ncclx_signal_slots"
#define SLOTS_DEFAULT 64
#define SLOTS_MAX ((size_t)1 << 24) /* 128 MiB of slots a rank: more is a mistake */

static int read_slots(const struct ncclx_rt *rt, ncclx_info_t info, size_t *slots)
{
    *slots = SLOTS_DEFAULT;
    if (info == NCCLX_INFO_NULL) return NCCLX_SUCCESS;
    if (!handle_live(&rt->runtime->handles, HANDLE_INFO, info))
        return base_error(NCCLX_ERR_INFO, "%p is not an info object; was it freed?", (void *)info);
    const char *text = base_info_find(info, SLOTS_KEY);
    if (!text) return NCCLX_SUCCESS;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number > SLOTS_MAX)
        return base_error(NCCLX_ERR_INFO, "%s = '%s' is not a number from 0 to %zu", SLOTS_KEY, text, SLOTS_MAX);
    *slots = (size_t)number;
    return NCCLX_SUCCESS;
}

struct win_request {
    const char *function;
    enum coll_other_call call;
    void *base; /* null: the window allocates */
    size_t bytes, disp_unit;
    ncclx_info_t info;
};

static int check_request(const struct ncclx_rt *rt, const struct win_request *request, const ncclx_win_t *win,
                         size_t *slots)
{
    int error = api_check_out(win, "win");
    if (!error && !request->disp_unit) error = base_error(NCCLX_ERR_ARG, "a displacement unit of 0 bytes");
    if (!error && request->base == NCCLX_IN_PLACE) error = base_error(NCCLX_ERR_BUFFER, "NCCLX_IN_PLACE is no memory");
    return error ? error : read_slots(rt, request->info, slots);
}

/* error: what this rank knows to be wrong; making the private communicator tells the others. */
static int make(struct ncclx_comm *comm, const struct win_request *request, int error, size_t slots, void **allocated,
                ncclx_win_t *win)
{
    struct ncclx_comm *own;
    struct ncclx_win *made = NULL;
    if (!error) error = osc_win_reserve(comm, &made);
    int checked = coll_check_call(comm, request->function, request->call, slots, error);
    if (comm->rt->check && checked) error = checked; /* the others know, too */
    else error = runtime_comm_dup(comm, error, &own);
    if (error) {
        osc_win_abandon(made);
        return error;
    }
    error = osc_win_create(made, own, request->base, request->bytes, request->disp_unit, slots, allocated);
    if (error) {
        runtime_comm_free(own);
        return error;
    }
    own->runtime->window = made;
    handle_remove(&comm->rt->runtime->handles,
                  own); /* private: no handle of the program's. Its place is room for the window's */
    handle_insert(&comm->rt->runtime->handles, HANDLE_WIN, made);
    *win = made;
    return NCCLX_SUCCESS;
}

API_DEFINE(int, win_allocate)(size_t bytes, size_t disp_unit, ncclx_info_t info, ncclx_comm_t comm, void **base,
                              ncclx_win_t *win)
{
    struct api_call call;
    struct win_request request = {.function = API_NAME, .call = COLL_CALL_WIN_ALLOCATE, .bytes = bytes,
                                  .disp_unit = disp_unit, .info = info};
    void *allocated = NULL;
    size_t slots = 0;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    runtime_comm_sweep(call.rt);
    error = api_check_out(base, "base");
    if (!error) error = check_request(call.rt, &request, win, &slots);
    error = make(call.comm, &request, error, slots, &allocated, win);
    if (!error) *base = allocated;
    return api_leave(&call, error);
}

API_DEFINE(int, win_create)(void *base, size_t bytes, size_t disp_unit, ncclx_info_t info, ncclx_comm_t comm,
                            ncclx_win_t *win)
{
    struct api_call call;
    struct win_request request = {.function = API_NAME, .call = COLL_CALL_WIN_CREATE, .base = base, .bytes = bytes,
                                  .disp_unit = disp_unit, .info = info};
    void *allocated = NULL;
    size_t slots = 0;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    runtime_comm_sweep(call.rt);
    error = check_request(call.rt, &request, win, &slots);
    if (!error && !base && bytes) error = base_error(NCCLX_ERR_BUFFER, "base is a null pointer");
    error = make(call.comm, &request, error, slots, &allocated, win);
    return api_leave(&call, error);
}

API_DEFINE(int, win_free)(ncclx_win_t *win)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(win, "win");
    if (error) return api_leave(&call, error);
    if (!handle_live(&call.rt->runtime->handles, HANDLE_WIN, *win)) return api_leave(&call, api_bad_win(*win));
    call.win = *win;
    struct ncclx_comm *own = call.win->comm;
    error = coll_check_call(own, API_NAME, COLL_CALL_WIN_FREE, 0, NCCLX_SUCCESS);
    if (!error) error = osc_win_free(call.win);
    if (error) return api_leave(&call, error);
    handle_remove(&call.rt->runtime->handles, *win);
    own->runtime->window = NULL; /* requests may keep the communicator */
    runtime_comm_free(own);
    *win = NCCLX_WIN_NULL;
    call.win = NULL;
    return api_leave(&call, NCCLX_SUCCESS);
}

API_DEFINE(int, win_put)(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                         ncclx_win_t win)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_elements(origin, count, type, &bytes);
    if (API_LIKELY(!error)) error = osc_put(call.win, origin, bytes, target, target_disp);
    return api_leave(&call, error);
}

API_DEFINE(int, win_get)(void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                         ncclx_win_t win)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_elements(origin, count, type, &bytes);
    if (API_LIKELY(!error)) error = osc_get(call.win, origin, bytes, target, target_disp);
    return api_leave(&call, error);
}

/* rput and rget; a put does not write to origin. */
static int transfer_by_request(const char *name, bool put, void *origin, size_t count, ncclx_datatype_t type, int target,
                               size_t target_disp, ncclx_win_t win, ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *made;
    size_t bytes;
    int error = api_enter_win(&call, name, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_LIKELY(!error)) error = api_check_elements(origin, count, type, &bytes);
    if (API_LIKELY(!error))
        error = put ? osc_rput(call.win, origin, bytes, target, target_disp, &made)
                    : osc_rget(call.win, origin, bytes, target, target_disp, &made);
    if (API_LIKELY(!error)) runtime_request_publish(made, request);
    return api_leave(&call, error);
}

API_DEFINE(int, win_rput)(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                          ncclx_win_t win, ncclx_request_t *request)
{
    return transfer_by_request(API_NAME, true, (void *)origin, count, type, target, target_disp, win, request);
}

API_DEFINE(int, win_rget)(void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                          ncclx_win_t win, ncclx_request_t *request)
{
    return transfer_by_request(API_NAME, false, origin, count, type, target, target_disp, win, request);
}

API_DEFINE(int, win_shared_query)(ncclx_win_t win, int rank, size_t *bytes, size_t *disp_unit, void **base)
{
    struct api_call call;
    size_t its_bytes = 0, its_unit = 0;
    void *its_base = NULL;
    int error = api_enter_win(&call, API_NAME, win);
    if (error) return error;
    error = osc_shared_query(call.win, rank, &its_bytes, &its_unit, &its_base);
    if (error) return api_leave(&call, error);
    if (bytes) *bytes = its_bytes;
    if (disp_unit) *disp_unit = its_unit;
    if (base) *base = its_base;
    return api_leave(&call, NCCLX_SUCCESS);
}
