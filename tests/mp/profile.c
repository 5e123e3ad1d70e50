/* A profiling tool: ncclx_send is replaced, and calls its twin. */
#include "check.h"

static int sends;

int ncclx_send(const void *buf, size_t count, ncclx_datatype_t type, int dest, int tag, ncclx_comm_t comm)
{
    sends++;
    return pncclx_send(buf, count, type, dest, tag, comm);
}

int main(void)
{
    int rank, size, got = -1;
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    OK(ncclx_send(&rank, 1, NCCLX_INT32, next, 1, NCCLX_COMM_WORLD));
    OK(ncclx_recv(&got, 1, NCCLX_INT32, previous, 1, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE));
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD)); /* the library's own messages do not pass through the replacement */
    CHECK(sends == 1 && got == previous);
    OK(ncclx_finalize());
    return 0;
}
