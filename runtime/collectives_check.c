/* collectives_check.c - the arguments of collectives, as one rank sees them. */
#include "runtime/collectives.h"

/* Bytes of `count` elements from each of `blocks` ranks. */
static int total_bytes(size_t count, ncclx_datatype_t type, size_t blocks, size_t *bytes)
{
    if (API_UNLIKELY(!base_type_size(type))) return api_bad_elements(NULL, 0, type);
    if (API_LIKELY(base_type_bytes(count, type, bytes) && !__builtin_mul_overflow(*bytes, blocks, bytes))) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_COUNT, "%zu elements of %s for %zu ranks are more bytes than an address can hold", count,
                      base_type_name(type), blocks);
}

static int check_buffer(const void *buf, size_t bytes, const char *what)
{
    if (API_UNLIKELY(!buf && bytes)) return base_error(NCCLX_ERR_BUFFER, "%s is a null pointer", what);
    if (API_UNLIKELY(buf == NCCLX_IN_PLACE)) return base_error(NCCLX_ERR_BUFFER, "NCCLX_IN_PLACE is not allowed as %s", what);
    return NCCLX_SUCCESS;
}

static int check_send_buffer(const void *sendbuf, size_t send_bytes, const void *recvbuf, size_t recv_bytes)
{
    uintptr_t send = (uintptr_t)sendbuf, receive = (uintptr_t)recvbuf;
    int error = check_buffer(sendbuf, send_bytes, "sendbuf");
    if (API_UNLIKELY(error) || !send_bytes || !recv_bytes) return error;
    if (API_LIKELY(send < receive ? receive - send >= send_bytes : send - receive >= recv_bytes)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BUFFER, "sendbuf and recvbuf overlap; pass NCCLX_IN_PLACE as sendbuf if the input is in recvbuf");
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

/* The bytes that a list of blocks spans. */
static int check_blocks(const struct coll_blocks *blocks, int size, ncclx_datatype_t type, const char *what, size_t *bytes)
{
    size_t element = base_type_size(type), next = 0, total = 0, extent = 0;
    *bytes = 0;
    if (API_UNLIKELY(!element)) return api_bad_elements(NULL, 0, type);
    if (API_UNLIKELY(!blocks->counts)) return base_error(NCCLX_ERR_ARG, "%s is a null pointer", what);
    for (int i = 0; i < size; i++) {
        size_t begin = blocks->displs ? blocks->displs[i] : next, count = blocks->counts[i];
        if (__builtin_add_overflow(begin, count, &next) || next > SIZE_MAX / element || __builtin_add_overflow(total, count, &total) ||
            total > SIZE_MAX / element)
            return base_error(NCCLX_ERR_COUNT, "%s: the %zu elements of %s for rank %d end beyond the last address", what, count,
                              base_type_name(type), i);
        if (count && next > extent) extent = next;
    }
    *bytes = extent * element;
    return NCCLX_SUCCESS;
}

/* What a rank says of the block that it gives to itself. */
static int check_own_block(size_t sent, size_t received)
{
    if (API_LIKELY(sent == received)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_ARG, "this rank sends %zu elements to itself and receives %zu", sent, received);
}

/* As check_buffers; with displacements the blocks of one buffer may lie between those of the other. */
static int check_block_buffers(const struct coll_args *args, size_t send_bytes, size_t recv_bytes)
{
    int error = check_buffer(args->recvbuf, recv_bytes, "recvbuf");
    if (API_UNLIKELY(error) || args->sendbuf == NCCLX_IN_PLACE) return error;
    if (args->send.displs || args->recv.displs) return check_buffer(args->sendbuf, send_bytes, "sendbuf");
    return check_send_buffer(args->sendbuf, send_bytes, args->recvbuf, recv_bytes);
}

static int check_reduce_scatter_block(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes, block;
    int error = total_bytes(args->count, args->type, (size_t)comm->size, &bytes);
    if (!error) error = api_check_op(comm->rt, args->op, args->type);
    if (API_UNLIKELY(error)) return error;
    block = args->sendbuf == NCCLX_IN_PLACE ? bytes : bytes / (size_t)comm->size;
    return check_buffers(args->sendbuf, bytes, args->recvbuf, block);
}

static int check_reduce_scatter(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes, block;
    int error = check_blocks(&args->recv, comm->size, args->type, "recvcounts", &bytes);
    if (!error) error = api_check_op(comm->rt, args->op, args->type);
    if (API_UNLIKELY(error)) return error;
    block = args->sendbuf == NCCLX_IN_PLACE ? bytes : args->recv.counts[comm->rank] * base_type_size(args->type);
    return check_buffers(args->sendbuf, bytes, args->recvbuf, block);
}

static int check_allgatherv(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t bytes;
    int error = check_blocks(&args->recv, comm->size, args->type, "recvcounts", &bytes);
    if (API_UNLIKELY(error)) return error;
    if (args->sendbuf != NCCLX_IN_PLACE) error = check_own_block(args->count, args->recv.counts[comm->rank]);
    return error ? error : check_block_buffers(args, args->count * base_type_size(args->type), bytes);
}

static int check_alltoallv(const struct ncclx_comm *comm, const struct coll_args *args)
{
    size_t send_bytes = 0, recv_bytes;
    int error = check_blocks(&args->recv, comm->size, args->type, "recvcounts", &recv_bytes);
    if (!error && args->sendbuf != NCCLX_IN_PLACE) {
        error = check_blocks(&args->send, comm->size, args->type, "sendcounts", &send_bytes);
        if (!error) error = check_own_block(args->send.counts[comm->rank], args->recv.counts[comm->rank]);
    }
    return error ? error : check_block_buffers(args, send_bytes, recv_bytes);
}

/* gather and gatherv: one's own block, and at the root where all blocks go. */
static int check_gather(const struct ncclx_comm *comm, const struct coll_args *args)
{
    bool at_root = comm->rank == args->root, lists = args->name == COLL_GATHERV;
    size_t own, all = 0;
    int error = total_bytes(args->count, args->type, 1, &own);
    if (!error) error = api_check_rank(comm, args->root, false, "root");
    if (API_UNLIKELY(error)) return error;
    if (!at_root) return check_buffer(args->sendbuf, own, "sendbuf of a rank that is not the root");
    if (!lists)
        error = total_bytes(args->count, args->type, (size_t)comm->size, &all);
    else
        error = check_blocks(&args->recv, comm->size, args->type, "recvcounts", &all);
    if (!error && lists && args->sendbuf != NCCLX_IN_PLACE) error = check_own_block(args->count, args->recv.counts[comm->rank]);
    return error ? error : check_block_buffers(args, own, all);
}

static int check_scatter(const struct ncclx_comm *comm, const struct coll_args *args)
{
    bool at_root = comm->rank == args->root, lists = args->name == COLL_SCATTERV, in_place = args->recvbuf == NCCLX_IN_PLACE;
    size_t own, all = 0;
    int error = total_bytes(args->count, args->type, 1, &own);
    if (!error) error = api_check_rank(comm, args->root, false, "root");
    if (API_UNLIKELY(error)) return error;
    if (!at_root) return check_buffer(args->recvbuf, own, "recvbuf of a rank that is not the root");
    if (!lists)
        error = total_bytes(args->count, args->type, (size_t)comm->size, &all);
    else
        error = check_blocks(&args->send, comm->size, args->type, "sendcounts", &all);
    if (!error && lists && !in_place) error = check_own_block(args->send.counts[comm->rank], args->count);
    if (API_UNLIKELY(error)) return error;
    if (in_place) return check_buffer(args->sendbuf, all, "sendbuf");
    error = check_buffer(args->recvbuf, own, "recvbuf");
    if (API_UNLIKELY(error)) return error;
    return lists ? check_buffer(args->sendbuf, all, "sendbuf") : check_send_buffer(args->sendbuf, all, args->recvbuf, own);
}

static int check_scan(const struct ncclx_comm *comm, const struct coll_args *args)
{
    if (args->op == NCCLX_AVG) return base_error(NCCLX_ERR_OP, "NCCLX_AVG is over all ranks; a scan combines some of them: use NCCLX_SUM");
    return check_allreduce(comm, args);
}

int collectives_check(const struct ncclx_comm *comm, const struct coll_args *args)
{
    switch (args->name) {
    case COLL_BARRIER:
        return NCCLX_SUCCESS;
    case COLL_BCAST:
        return check_bcast(comm, args);
    case COLL_REDUCE:
        return check_reduce(comm, args);
    case COLL_ALLREDUCE:
        return check_allreduce(comm, args);
    case COLL_ALLGATHER:
        return check_allgather(comm, args);
    case COLL_ALLTOALL:
        return check_alltoall(comm, args);
    case COLL_REDUCE_SCATTER:
        return check_reduce_scatter(comm, args);
    case COLL_REDUCE_SCATTER_BLOCK:
        return check_reduce_scatter_block(comm, args);
    case COLL_ALLGATHERV:
        return check_allgatherv(comm, args);
    case COLL_GATHER:
    case COLL_GATHERV:
        return check_gather(comm, args);
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return check_scatter(comm, args);
    case COLL_ALLTOALLV:
        return check_alltoallv(comm, args);
    case COLL_SCAN:
    case COLL_EXSCAN:
        return check_scan(comm, args);
    case COLL_NAMES:
        break;
    }
    return base_error(NCCLX_ERR_INTERNAL, "collective %d has no check", (int)args->name);
}
