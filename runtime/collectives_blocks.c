/* collectives_blocks.c - the public collectives whose counts differ from rank to rank: blocking, non-blocking and persistent
 * forms. */
#include "runtime/collectives.h"

static struct coll_args reduce_scatter_args(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type,
                                            ncclx_op_t op)
{
    return (struct coll_args){
        .name = COLL_REDUCE_SCATTER, .sendbuf = sendbuf, .recvbuf = recvbuf, .recv = {recvcounts, NULL}, .type = type, .op = op};
}

API_DEFINE(int, coll_reduce_scatter)
(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm)
{
    struct coll_args args = reduce_scatter_args(sendbuf, recvbuf, recvcounts, type, op);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ireduce_scatter)
(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm,
 ncclx_request_t *request)
{
    struct coll_args args = reduce_scatter_args(sendbuf, recvbuf, recvcounts, type, op);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_reduce_scatter_init)
(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm,
 ncclx_request_t *request)
{
    struct coll_args args = reduce_scatter_args(sendbuf, recvbuf, recvcounts, type, op);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args allgatherv_args(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                                        const size_t *displs, ncclx_datatype_t type)
{
    return (struct coll_args){
        .name = COLL_ALLGATHERV, .sendbuf = sendbuf, .recvbuf = recvbuf, .count = sendcount, .recv = {recvcounts, displs}, .type = type};
}

API_DEFINE(int, coll_allgatherv)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type,
 ncclx_comm_t comm)
{
    struct coll_args args = allgatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iallgatherv)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allgatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_allgatherv_init)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = allgatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args gatherv_args(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs,
                                     ncclx_datatype_t type, int root)
{
    return (struct coll_args){.name = COLL_GATHERV,
                              .sendbuf = sendbuf,
                              .recvbuf = recvbuf,
                              .count = sendcount,
                              .recv = {recvcounts, displs},
                              .type = type,
                              .root = root};
}

API_DEFINE(int, coll_gatherv)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type, int root,
 ncclx_comm_t comm)
{
    struct coll_args args = gatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_igatherv)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type, int root,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = gatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_gatherv_init)
(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts, const size_t *displs, ncclx_datatype_t type, int root,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = gatherv_args(sendbuf, sendcount, recvbuf, recvcounts, displs, type, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args scatterv_args(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf, size_t recvcount,
                                      ncclx_datatype_t type, int root)
{
    return (struct coll_args){.name = COLL_SCATTERV,
                              .sendbuf = sendbuf,
                              .recvbuf = recvbuf,
                              .count = recvcount,
                              .send = {sendcounts, displs},
                              .type = type,
                              .root = root};
}

API_DEFINE(int, coll_scatterv)
(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
 ncclx_comm_t comm)
{
    struct coll_args args = scatterv_args(sendbuf, sendcounts, displs, recvbuf, recvcount, type, root);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_iscatterv)
(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scatterv_args(sendbuf, sendcounts, displs, recvbuf, recvcount, type, root);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_scatterv_init)
(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
 ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = scatterv_args(sendbuf, sendcounts, displs, recvbuf, recvcount, type, root);
    return collectives_prepare(API_NAME, comm, &args, request);
}

static struct coll_args alltoallv_args(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf,
                                       const size_t *recvcounts, const size_t *rdispls, ncclx_datatype_t type)
{
    return (struct coll_args){.name = COLL_ALLTOALLV,
                              .sendbuf = sendbuf,
                              .recvbuf = recvbuf,
                              .send = {sendcounts, sdispls},
                              .recv = {recvcounts, rdispls},
                              .type = type};
}

API_DEFINE(int, coll_alltoallv)
(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf, const size_t *recvcounts, const size_t *rdispls,
 ncclx_datatype_t type, ncclx_comm_t comm)
{
    struct coll_args args = alltoallv_args(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, type);
    return collectives_run(API_NAME, comm, &args);
}

API_DEFINE(int, coll_ialltoallv)
(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf, const size_t *recvcounts, const size_t *rdispls,
 ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = alltoallv_args(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, type);
    return collectives_start(API_NAME, comm, &args, request);
}

API_DEFINE(int, coll_alltoallv_init)
(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf, const size_t *recvcounts, const size_t *rdispls,
 ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request)
{
    struct coll_args args = alltoallv_args(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, type);
    return collectives_prepare(API_NAME, comm, &args, request);
}
