/* api.h - the boundary between the program and the library. Every public function that needs the rank is
 *
 *     struct api_call call;
 *     int error = api_enter_comm(&call, API_NAME, handle);   state checked, lock taken, handle resolved
 *     if (error) return error;
 *     error = ... the work ...
 *     return api_leave(&call, error);                        lock given up, error handler run
 *
 * An enter that fails has already run the error handler. The inline parts cost a few nanoseconds: everything rare is
 * behind a call.
 */
#ifndef RUNTIME_API_H
#define RUNTIME_API_H

#include "runtime/runtime.h"

#define API_LIKELY(x) __builtin_expect(!!(x), 1)
#define API_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Begins the definition of pncclx_NAME, and makes ncclx_NAME its weak, exported alias:
 * API_DEFINE(int, send)(arguments) { ... } */
#define API_DEFINE(result, name) \
    extern __typeof__(ncclx_##name) ncclx_##name __attribute__((weak, alias("pncclx_" #name), visibility("default"))); \
    __attribute__((visibility("default"))) result pncclx_##name

/* The public name of the function being defined. */
#define API_NAME (&__func__[1])

struct api_call {
    struct ncclx_rt *rt;
    struct ncclx_comm *comm; /* whose error handler answers; both null: COMM_WORLD's */
    struct ncclx_win *win;
    const char *name;
};

/* Why the library cannot be called now: ERR_NOT_INITIALIZED or ERR_FORKED. Without an object no handler runs. */
int api_refuse(const char *name) __attribute__((cold));
/* Gives the lock up, runs the error handler, returns the error. */
int api_fail(struct ncclx_rt *rt, struct ncclx_comm *comm, struct ncclx_win *win, const char *name, int error)
    __attribute__((cold));
int api_bad_comm(ncclx_comm_t handle) __attribute__((cold));
int api_bad_win(ncclx_win_t handle) __attribute__((cold));
/* Prints the error and ends the job. */
void api_fatal(struct ncclx_rt *rt, const char *name, int error) __attribute__((cold, noreturn));
/* Tells the process manager, then leaves. rt null: there is none to tell. */
void api_end_job(struct ncclx_rt *rt, int code, const char *message) __attribute__((cold, noreturn));

static inline int api_leave(const struct api_call *call, int error)
{
    if (API_UNLIKELY(error)) return api_fail(call->rt, call->comm, call->win, call->name, error);
    base_rt_unlock(call->rt);
    return NCCLX_SUCCESS;
}

/* Ends a call that looked whether something is there or complete: *flag is stored unless the look itself has failed. */
static inline int api_leave_look(const struct api_call *call, int error, bool found, int *flag)
{
    if (API_UNLIKELY(error)) return api_leave(call, error);
    *flag = found;
    return api_leave(call, found ? NCCLX_SUCCESS : base_look_check(call->rt, call->name));
}

static inline int api_enter(struct api_call *call, const char *name)
{
    bool ready = atomic_load_explicit(&ncclx_process.state, memory_order_acquire) == PROCESS_READY;
    *call = (struct api_call){.rt = ncclx_process.rt, .name = name};
    if (API_UNLIKELY(!ready || atomic_load_explicit(&ncclx_process.forked, memory_order_relaxed)))
        return api_refuse(name);
    base_rt_lock(call->rt);
    return NCCLX_SUCCESS;
}

/* The communicator a handle stands for, or null. */
static inline struct ncclx_comm *api_comm(const struct ncclx_rt *rt, ncclx_comm_t handle)
{
    if (API_LIKELY(handle == NCCLX_COMM_WORLD)) return rt->world;
    if (handle == NCCLX_COMM_SELF) return rt->self;
    return handle_live(&rt->runtime->handles, HANDLE_COMM, handle) ? handle : NULL;
}

static inline ncclx_comm_t api_comm_handle(struct ncclx_comm *comm)
{
    if (comm == comm->rt->world) return NCCLX_COMM_WORLD;
    return comm == comm->rt->self ? NCCLX_COMM_SELF : comm;
}

static inline int api_enter_comm(struct api_call *call, const char *name, ncclx_comm_t handle)
{
    int error = api_enter(call, name);
    if (API_UNLIKELY(error)) return error;
    call->comm = api_comm(call->rt, handle);
    if (API_UNLIKELY(!call->comm)) return api_leave(call, api_bad_comm(handle));
    return NCCLX_SUCCESS;
}

static inline int api_enter_win(struct api_call *call, const char *name, ncclx_win_t handle)
{
    int error = api_enter(call, name);
    if (API_UNLIKELY(error)) return error;
    if (API_UNLIKELY(!handle_live(&call->rt->runtime->handles, HANDLE_WIN, handle)))
        return api_leave(call, api_bad_win(handle));
    call->win = handle;
    return NCCLX_SUCCESS;
}

/* ---- Argument checks shared by several files. Each records its detail ---- */

/* For results: ERR_ARG when null. */
static inline int api_check_out(const void *out, const char *what)
{
    if (API_UNLIKELY(!out)) return base_error(NCCLX_ERR_ARG, "%s is a null pointer", what);
    return NCCLX_SUCCESS;
}

int api_bad_elements(const void *buf, size_t count, ncclx_datatype_t type) __attribute__((cold));
int api_bad_rank(const struct ncclx_comm *comm, int rank, const char *what) __attribute__((cold));

/* `count` elements at buf: their size in bytes, or ERR_TYPE, ERR_COUNT, ERR_BUFFER. */
static inline int api_check_elements(const void *buf, size_t count, ncclx_datatype_t type, size_t *bytes)
{
    if (API_UNLIKELY(!base_type_size(type) || !base_type_bytes(count, type, bytes) || (!buf && count) ||
                     buf == NCCLX_IN_PLACE)) {
        *bytes = 0;
        return api_bad_elements(buf, count, type);
    }
    return NCCLX_SUCCESS;
}

/* A rank of comm; PROC_NULL too when allowed. */
static inline int api_check_rank(const struct ncclx_comm *comm, int rank, bool null_allowed, const char *what)
{
    if (API_LIKELY((unsigned)rank < (unsigned)comm->size) || (null_allowed && rank == NCCLX_PROC_NULL))
        return NCCLX_SUCCESS;
    return api_bad_rank(comm, rank, what);
}

int api_check_op(const struct ncclx_rt *rt, ncclx_op_t op, ncclx_datatype_t type);

#endif
