/* collectives.h - what the public collectives have in common: arguments are checked, coll does the rest. */
#ifndef RUNTIME_COLLECTIVES_H
#define RUNTIME_COLLECTIVES_H

#include "coll/coll.h"
#include "runtime/api.h"

/* Types, counts, buffers, operation and root. */
int collectives_check(const struct ncclx_comm *comm, const struct coll_args *args);

static inline int collectives_run(const char *name, ncclx_comm_t comm, const struct coll_args *args)
{
    struct api_call call;
    int error = api_enter_comm(&call, name, comm);
    if (API_UNLIKELY(error)) return error;
    error = coll_check(call.comm, name, args, COLL_BLOCKING, collectives_check(call.comm, args));
    if (API_LIKELY(!error)) error = coll_run(call.comm, args);
    return api_leave(&call, error);
}

/* make: coll_start or coll_prepare. */
static inline int collectives_make(const char *name, ncclx_comm_t comm, const struct coll_args *args, enum coll_form form,
                                   int (*make)(struct ncclx_comm *, const struct coll_args *, struct ncclx_request **),
                                   ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *made;
    int error = api_enter_comm(&call, name, comm);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_LIKELY(!error)) error = collectives_check(call.comm, args);
    error = coll_check(call.comm, name, args, form, error);
    if (API_LIKELY(!error)) error = make(call.comm, args, &made);
    if (API_LIKELY(!error)) runtime_request_publish(made, request);
    return api_leave(&call, error);
}

static inline int collectives_start(const char *name, ncclx_comm_t comm, const struct coll_args *args, ncclx_request_t *request)
{
    return collectives_make(name, comm, args, COLL_NONBLOCKING, coll_start, request);
}

static inline int collectives_prepare(const char *name, ncclx_comm_t comm, const struct coll_args *args, ncclx_request_t *request)
{
    return collectives_make(name, comm, args, COLL_PERSISTENT, coll_prepare, request);
}

#endif
