/* errhandler.c - error handlers as objects, and the public functions on errors. */
#include "runtime/api.h"
#include "osc/osc.h"

static bool is_predefined(ncclx_errhandler_t handler)
{
    return handler == NCCLX_ERRORS_ARE_FATAL || handler == NCCLX_ERRORS_RETURN;
}

bool runtime_errhandler_valid(const struct ncclx_rt *rt, ncclx_errhandler_t handler)
{
    return is_predefined(handler) || handle_live(&rt->runtime->handles, HANDLE_ERRHANDLER, handler);
}

void runtime_errhandler_retain(ncclx_errhandler_t handler)
{
    if (!is_predefined(handler)) handler->objects++;
}

static void end_if_unused(ncclx_errhandler_t handler)
{
    if (!handler->objects && !handler->handles) base_free(AREA_RUNTIME, handler);
}

void runtime_errhandler_release(ncclx_errhandler_t handler)
{
    if (is_predefined(handler)) return;
    handler->objects--;
    end_if_unused(handler);
}

static int check_handler(const struct ncclx_rt *rt, ncclx_errhandler_t handler)
{
    if (runtime_errhandler_valid(rt, handler)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_ERRHANDLER, "%p is not an error handler; was it freed?", (void *)handler);
}

/* Puts `handler` in the place of *current. */
static int replace(const struct ncclx_rt *rt, ncclx_errhandler_t *current, ncclx_errhandler_t handler)
{
    int error = check_handler(rt, handler);
    if (error) return error;
    runtime_errhandler_retain(handler);
    runtime_errhandler_release(*current);
    *current = handler;
    return NCCLX_SUCCESS;
}

/* A handle of the program's own, to be freed by it. */
static int hand_out(struct ncclx_rt *rt, ncclx_errhandler_t current, ncclx_errhandler_t *handler)
{
    int error = api_check_out(handler, "handler");
    if (!error) error = handle_reserve(&rt->runtime->handles);
    if (error) return error;
    if (!is_predefined(current) && current->handles++ == 0)
        handle_insert(&rt->runtime->handles, HANDLE_ERRHANDLER, current);
    *handler = current;
    return NCCLX_SUCCESS;
}

API_DEFINE(int, errhandler_create)(ncclx_errhandler_fn_t function, void *user, ncclx_errhandler_t *handler)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(handler, "handler");
    if (!error && !function) error = base_error(NCCLX_ERR_ARG, "the function is a null pointer");
    if (error) return api_leave(&call, error);
    struct ncclx_errhandler *made = base_calloc(AREA_RUNTIME, 1, sizeof *made);
    if (!made) return api_leave(&call, base_error(NCCLX_ERR_NO_MEM, "no memory for an error handler"));
    *made = (struct ncclx_errhandler){.function = function, .user = user};
    error = hand_out(call.rt, made, handler);
    if (error) base_free(AREA_RUNTIME, made);
    return api_leave(&call, error);
}

API_DEFINE(int, errhandler_free)(ncclx_errhandler_t *handler)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(handler, "handler");
    if (!error) error = check_handler(call.rt, *handler);
    if (error) return api_leave(&call, error);
    if (!is_predefined(*handler) && --(*handler)->handles == 0) {
        handle_remove(&call.rt->runtime->handles, *handler);
        end_if_unused(*handler);
    }
    *handler = NCCLX_ERRHANDLER_NULL;
    return api_leave(&call, NCCLX_SUCCESS);
}

API_DEFINE(int, comm_set_errhandler)(ncclx_comm_t comm, ncclx_errhandler_t handler)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    return api_leave(&call, replace(call.rt, &call.comm->runtime->errhandler, handler));
}

API_DEFINE(int, comm_get_errhandler)(ncclx_comm_t comm, ncclx_errhandler_t *handler)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    return api_leave(&call, hand_out(call.rt, call.comm->runtime->errhandler, handler));
}

API_DEFINE(int, comm_call_errhandler)(ncclx_comm_t comm, int code)
{
    struct api_call call;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    if (code < NCCLX_SUCCESS || code > NCCLX_ERR_LAST)
        return api_leave(&call, base_error(NCCLX_ERR_ARG, "%d is not a result code", code));
    if (code)
        api_leave(&call, base_error(code, "raised by the program")); /* runs the handler; this call itself succeeds */
    else api_leave(&call, NCCLX_SUCCESS);
    return NCCLX_SUCCESS;
}

API_DEFINE(int, win_set_errhandler)(ncclx_win_t win, ncclx_errhandler_t handler)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (error) return error;
    return api_leave(&call, replace(call.rt, &call.win->comm->runtime->errhandler, handler));
}

API_DEFINE(int, win_get_errhandler)(ncclx_win_t win, ncclx_errhandler_t *handler)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (error) return error;
    return api_leave(&call, hand_out(call.rt, call.win->comm->runtime->errhandler, handler));
}

API_DEFINE(const char *, error_string)(int code)
{
    return base_error_string(code);
}

API_DEFINE(const char *, error_detail)(void)
{
    return base_error_detail();
}
