/* collectives.c - the public collectives of one count: blocking, non-blocking and persistent forms. */
#include "runtime/collectives.h"

API_DEFINE(int, coll_barrier)(ncclx_comm_t comm)
{
    struct coll_args args = {.name = COLL_BARRIER};
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ibarrier)(ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {.name = COLL_BARRIER};
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_barrier_init)(ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = {.name = COLL_BARRIER};
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args bcast_args(void *buf, size_t count, ncclx_datatype_t type, int root)
{
    return (struct coll_args){.name = COLL_BCAST, .recvbuf = buf, .count = count, .type = type, .root = root};
}

API_DEFINE(int, coll_bcast)(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm)
{
    struct coll_args args = bcast_args(buf, count, type, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ibcast)(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                             ncclx_request_t *request)
{
    struct coll_args args = bcast_args(buf, count, type, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_bcast_init)(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = bcast_args(buf, count, type, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args reduce_args(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, int root)
{
    return (struct coll_args){
        .name = COLL_REDUCE, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op, .root = root};
}

API_DEFINE(int, coll_reduce)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, int root, ncclx_comm_t comm)
{
    struct coll_args args = reduce_args(sendbuf, recvbuf, count, type, op, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ireduce)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, int root, ncclx_comm_t comm,
 ncclx_request_t *request)
{
    struct coll_args args = reduce_args(sendbuf, recvbuf, count, type, op, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_reduce_init)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, int root, ncclx_comm_t comm,
 ncclx_request_t *request)
{
    struct coll_args args = reduce_args(sendbuf, recvbuf, count, type, op, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args allreduce_args(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op)
{
    return (struct coll_args){.name = COLL_ALLREDUCE, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op};
}

API_DEFINE(int, coll_allreduce)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm)
{
    struct coll_args args = allreduce_args(sendbuf, recvbuf, count, type, op);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iallreduce)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allreduce_args(sendbuf, recvbuf, count, type, op);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_allreduce_init)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allreduce_args(sendbuf, recvbuf, count, type, op);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args reduce_scatter_block_args(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                                                  ncclx_op_t op)
{
    return (struct coll_args){
        .name = COLL_REDUCE_SCATTER_BLOCK, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = recvcount, .type = type, .op = op};
}

API_DEFINE(int, coll_reduce_scatter_block)
(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm)
{
    struct coll_args args = reduce_scatter_block_args(sendbuf, recvbuf, recvcount, type, op);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ireduce_scatter_block)
(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = reduce_scatter_block_args(sendbuf, recvbuf, recvcount, type, op);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_reduce_scatter_block_init)
(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = reduce_scatter_block_args(sendbuf, recvbuf, recvcount, type, op);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args allgather_args(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type)
{
    return (struct coll_args){.name = COLL_ALLGATHER, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = sendcount, .type = type};
}

API_DEFINE(int, coll_allgather)(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, ncclx_comm_t comm)
{
    struct coll_args args = allgather_args(sendbuf, recvbuf, sendcount, type);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iallgather)
(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allgather_args(sendbuf, recvbuf, sendcount, type);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_allgather_init)
(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allgather_args(sendbuf, recvbuf, sendcount, type);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args gather_args(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root)
{
    return (struct coll_args){.name = COLL_GATHER, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = sendcount, .type = type, .root = root};
}

API_DEFINE(int, coll_gather)(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root, ncclx_comm_t comm)
{
    struct coll_args args = gather_args(sendbuf, recvbuf, sendcount, type, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_igather)
(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = gather_args(sendbuf, recvbuf, sendcount, type, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_gather_init)
(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = gather_args(sendbuf, recvbuf, sendcount, type, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args scatter_args(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root)
{
    return (struct coll_args){.name = COLL_SCATTER, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = recvcount, .type = type, .root = root};
}

API_DEFINE(int, coll_scatter)(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm)
{
    struct coll_args args = scatter_args(sendbuf, recvbuf, recvcount, type, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iscatter)
(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scatter_args(sendbuf, recvbuf, recvcount, type, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_scatter_init)
(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scatter_args(sendbuf, recvbuf, recvcount, type, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args alltoall_args(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type)
{
    return (struct coll_args){.name = COLL_ALLTOALL, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type};
}

API_DEFINE(int, coll_alltoall)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_comm_t comm)
{
    struct coll_args args = alltoall_args(sendbuf, recvbuf, count, type);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ialltoall)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = alltoall_args(sendbuf, recvbuf, count, type);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_alltoall_init)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = alltoall_args(sendbuf, recvbuf, count, type);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args scan_args(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op)
{
    return (struct coll_args){.name = COLL_SCAN, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op};
}

API_DEFINE(int, coll_scan)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm)
{
    struct coll_args args = scan_args(sendbuf, recvbuf, count, type, op);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iscan)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scan_args(sendbuf, recvbuf, count, type, op);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_scan_init)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scan_args(sendbuf, recvbuf, count, type, op);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args exscan_args(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op)
{
    return (struct coll_args){.name = COLL_EXSCAN, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = count, .type = type, .op = op};
}

API_DEFINE(int, coll_exscan)(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm)
{
    struct coll_args args = exscan_args(sendbuf, recvbuf, count, type, op);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iexscan)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = exscan_args(sendbuf, recvbuf, count, type, op);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_exscan_init)
(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = exscan_args(sendbuf, recvbuf, count, type, op);
    return collectives_prepare(API_NAME, comm, &args, request);
}
