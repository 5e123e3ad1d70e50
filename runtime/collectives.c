/* collectives.c - the public collectives: arguments are checked here, coll does the rest. */
#include "runtime/api.h"
#include "coll/coll.h"

/* Bytes of `count` elements from each of `blocks` ranks. */
static int total_bytes(size_t count, ncclx_datatype_t type, size_t blocks, size_t *bytes)
{
    if (API_UNLIKELY(!base_type_size(type))) return api_bad_elements(NULL, 0, type);
    if (API_LIKELY(base_type_bytes(count, type, bytes) && !__builtin_mul_overflow(*bytes, blocks, bytes)))
        return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_COUNT, "%zu elements of %s for %zu ranks are more bytes than an address can hold",
                      count, base_type_name(type), blocks);
}

static int check_buffer(const void *buf, size_t bytes, const char *what)
{
    if (API_UNLIKELY(!buf && bytes)) return base_error(NCCLX_ERR_BUFFER, "%s is a null pointer", what);
    if (API_UNLIKELY(buf == NCCLX_IN_PLACE))
        return base_error(NCCLX_ERR_BUFFER, "NCCLX_IN_PLACE is not allowed as %s", what);
    return NCCLX_SUCCESS;
}

static int check_send_buffer(const void *sendbuf, size_t send_bytes, const void *recvbuf, size_t recv_bytes)
{
    uintptr_t send = (uintptr_t)sendbuf, receive = (uintptr_t)recvbuf;
    int error = check_buffer(sendbuf, send_bytes, "sendbuf");
    if (API_UNLIKELY(error) || !send_bytes || !recv_bytes) return error;
    if (API_LIKELY(send < receive ? receive - send >= send_bytes : send - receive >= recv_bytes)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BUFFER,
                      "sendbuf and recvbuf overlap; pass NCCLX_IN_PLACE as sendbuf if the input is in recvbuf");
}

/* sendbuf may be IN_PLACE. */
static int check_buffers(const void *sendbuf, size_t send_bytes, const void *recvbuf, size_t recv_bytes)
{
    int error = check_buffer(recvbuf, recv_bytes, "recvbuf");
    if (API_UNLIKELY(error) || sendbuf == NCCLX_IN_PLACE) return error;
    return check_send_buffer(sendbuf, send_bytes, recvbuf, recv_bytes);
}

static int check_bcast(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = api_check_elements(args->recvbuf, args->count, args->type, &bytes);
    return error ? error : api_check_rank(comm, args->root, false, "root");
}

static int check_reduce(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = total_bytes(args->count, args->type, 1, &bytes);
    if (!error) error = api_check_op(comm->rt, args->op, args->type);
    if (!error) error = api_check_rank(comm, args->root, false, "root");
    if (error) return error;
    if (comm->rank == args->root) return check_buffers(args->sendbuf, bytes, args->recvbuf, bytes);
    return check_buffer(args->sendbuf, bytes, "sendbuf of a rank that is not the root");
}

static int check_allreduce(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = total_bytes(args->count, args->type, 1, &bytes);
    if (API_LIKELY(!error)) error = api_check_op(comm->rt, args->op, args->type);
    return API_UNLIKELY(error) ? error : check_buffers(args->sendbuf, bytes, args->recvbuf, bytes);
}

static int check_allgather(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = total_bytes(args->count, args->type, (size_t)comm->size, &bytes);
    return error ? error : check_buffers(args->sendbuf, bytes / (size_t)comm->size, args->recvbuf, bytes);
}

static int check_alltoall(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = total_bytes(args->count, args->type, (size_t)comm->size, &bytes);
    return error ? error : check_buffers(args->sendbuf, bytes, args->recvbuf, bytes);
}

static int check(const struct ncclx_comm *comm, const struct coll_args *args)
{
    switch (args->name) {
    case COLL_BARRIER: return NCCLX_SUCCESS;
    case COLL_BCAST: return check_bcast(comm, args);
    case COLL_REDUCE: return check_reduce(comm, args);
    case COLL_ALLREDUCE: return check_allreduce(comm, args);
    case COLL_ALLGATHER: return check_allgather(comm, args);
    case COLL_ALLTOALL: return check_alltoall(comm, args);
    case COLL_NAMES: break;
    }
    return base_error(NCCLX_ERR_INTERNAL, "collective %d has no check", (int)args->name);
}

static inline int run(const char *name, ncclx_comm_t comm, const struct coll_args *args)
{
    struct api_call call;
    int error = api_enter_comm(&call, name, comm);
    if (API_UNLIKELY(error)) return error;
    error = coll_check(call.comm, name, args, COLL_BLOCKING, check(call.comm, args));
    if (API_LIKELY(!error)) error = coll_run(call.comm, args);
    return api_leave(&call, error);
}

static inline int start(const char *name, ncclx_comm_t comm, const struct coll_args *args, ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *started;
    int error = api_enter_comm(&call, name, comm);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_LIKELY(!error)) error = check(call.comm, args);
    error = coll_check(call.comm, name, args, COLL_NONBLOCKING, error);
    if (API_LIKELY(!error)) error = coll_start(call.comm, args, &started);
    if (API_LIKELY(!error)) runtime_request_publish(started, request);
    return api_leave(&call, error);
}

API_DEFINE(int, coll_barrier)(ncclx_comm_t comm)
{
    struct coll_args args = {.name = COLL_BARRIER};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ibarrier)(ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {.name = COLL_BARRIER};
    return start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_bcast)(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm)
{
    struct coll_args args = {.name = COLL_BCAST, .recvbuf = buf, .count = count, .type = type, .root = root};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ibcast)(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                             ncclx_request_t *request)
{
    struct coll_args args = {.name = COLL_BCAST, .recvbuf = buf, .count = count, .type = type, .root = root};
    return start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_reduce)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                             int root, ncclx_comm_t comm)
{
    struct coll_args args = {.name = COLL_REDUCE,
                             .sendbuf = sendbuf,
                             .recvbuf = recvbuf,
                             .count = count,
                             .type = type,
                             .op = op,
                             .root = root};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ireduce)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                              int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {.name = COLL_REDUCE,
                             .sendbuf = sendbuf,
                             .recvbuf = recvbuf,
                             .count = count,
                             .type = type,
                             .op = op,
                             .root = root};
    return start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_allreduce)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                                ncclx_comm_t comm)
{
    struct coll_args args = {
        .name = COLL_ALLREDUCE, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iallreduce)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                                 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {
        .name = COLL_ALLREDUCE, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op};
    return start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_allgather)(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type,
                                ncclx_comm_t comm)
{
    struct coll_args args = {
        .name = COLL_ALLGATHER, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = sendcount, .type = type};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iallgather)(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type,
                                 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {
        .name = COLL_ALLGATHER, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = sendcount, .type = type};
    return start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_alltoall)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type,
                               ncclx_comm_t comm)
{
    struct coll_args args = {
        .name = COLL_ALLTOALL, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type};
    return run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ialltoall)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type,
                                ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {
        .name = COLL_ALLTOALL, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type};
    return start(API_NAME, comm, &args, request);
}
