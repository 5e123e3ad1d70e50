/* api.c - what happens at the boundary when something is wrong. */
#include "runtime/api.h"
#include "bootstrap/bootstrap.h"
#include "osc/osc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the launcher shows for a job that an error handler ended. */
#define FATAL_EXIT_CODE 1

int api_refuse(const char *name)
{
    if (atomic_load(&ncclx_process.forked))
        return base_error(NCCLX_ERR_FORKED,
                          "%s: called in a forked child, which is no rank; only exec and _exit are useful there", name);
    if (atomic_load(&ncclx_process.state) == PROCESS_FINALIZED)
        return base_error(NCCLX_ERR_NOT_INITIALIZED, "%s: called after ncclx_finalize", name);
    return base_error(NCCLX_ERR_NOT_INITIALIZED, "%s: called before ncclx_init", name);
}

/* Output of the program's own up to here is worth more than the error: but another thread may hold stdout for ever. */
static void flush_stdout(void)
{
    if (ftrylockfile(stdout)) return;
    fflush(stdout);
    funlockfile(stdout);
}

void api_end_job(struct ncclx_rt *rt, int code, const char *message)
{
    flush_stdout();
    if (rt && rt->bootstrap) bootstrap_abort(rt, code, message);
    _exit(code);
}

void api_fatal(struct ncclx_rt *rt, const char *name, int error)
{
    char line[2048], who[320] = ""; /* unknown before the process manager has told */
    const char *text = base_error_string(error); /* "NAME: meaning" */
    if (error == NCCLX_ERR_ABORTED) api_end_job(NULL, FATAL_EXIT_CODE, NULL); /* whoever ends the job has said why */
    if (rt && rt->job.node_name[0]) snprintf(who, sizeof who, "rank %d on %s: ", rt->job.rank, rt->job.node_name);
    snprintf(line, sizeof line, "ncclx: %s%s: %.*s: %s", who, name, (int)strcspn(text, ":"), text, base_error_detail());
    dprintf(STDERR_FILENO, "%s\n", line);
    api_end_job(rt, FATAL_EXIT_CODE, line);
}

int api_fail(struct ncclx_rt *rt, struct ncclx_comm *comm, struct ncclx_win *win, const char *name, int error)
{
    char detail[1024];
    struct ncclx_comm *object = win ? win->comm : comm ? comm : rt->world;
    const struct runtime_comm *own = object->runtime;
    ncclx_errhandler_t handler = own->errhandler;
    if (handler == NCCLX_ERRORS_RETURN) {
        base_rt_unlock(rt);
        return error;
    }
    if (handler == NCCLX_ERRORS_ARE_FATAL) {
        base_rt_unlock(rt);
        api_fatal(rt, name, error);
    }
    /* A request may outlive its communicator's or window's handle. */
    ncclx_comm_t comm_handle = own->window || own->freed ? NCCLX_COMM_NULL : api_comm_handle(object);
    ncclx_win_t win_handle = own->window;
    ncclx_errhandler_fn_t function = handler->function;
    void *user = handler->user;
    base_rt_unlock(rt);
    snprintf(detail, sizeof detail, "%s", base_error_detail()); /* the function may call the library */
    function(comm_handle, win_handle, error, detail, user);
    return base_error(error, "%s", detail);
}

int api_bad_comm(ncclx_comm_t handle)
{
    if (handle == NCCLX_COMM_NULL) return base_error(NCCLX_ERR_COMM, "the communicator is NCCLX_COMM_NULL");
    return base_error(NCCLX_ERR_COMM, "%p is not a communicator; was it freed?", (void *)handle);
}

int api_bad_win(ncclx_win_t handle)
{
    if (handle == NCCLX_WIN_NULL) return base_error(NCCLX_ERR_WIN, "the window is NCCLX_WIN_NULL");
    return base_error(NCCLX_ERR_WIN, "%p is not a window; was it freed?", (void *)handle);
}

int api_bad_elements(const void *buf, size_t count, ncclx_datatype_t type)
{
    size_t bytes;
    if (!base_type_size(type)) return base_error(NCCLX_ERR_TYPE, "%d is not a datatype", (int)type);
    if (!base_type_bytes(count, type, &bytes))
        return base_error(NCCLX_ERR_COUNT, "%zu elements of %s are more bytes than an address can hold", count,
                          base_type_name(type));
    if (buf == NCCLX_IN_PLACE) return base_error(NCCLX_ERR_BUFFER, "NCCLX_IN_PLACE is not allowed here");
    return base_error(NCCLX_ERR_BUFFER, "the buffer of %zu elements of %s is a null pointer", count,
                      base_type_name(type));
}

int api_bad_rank(const struct ncclx_comm *comm, int rank, const char *what)
{
    return base_error(strcmp(what, "root") == 0 ? NCCLX_ERR_ROOT : NCCLX_ERR_RANK,
                      "%s %d is not a rank of %s, which has %d", what, rank,
                      base_comm_name(comm), comm->size);
}

int api_check_op(const struct ncclx_rt *rt, ncclx_op_t op, ncclx_datatype_t type)
{
    if (API_UNLIKELY(!base_op_predefined(op) && op != NCCLX_REPLACE && op != NCCLX_NO_OP &&
                     !handle_live(&rt->runtime->handles, HANDLE_OP, op)))
        return base_error(NCCLX_ERR_OP, "%p is not an operation; was it freed?", (void *)op);
    return base_op_check(op, type);
}
