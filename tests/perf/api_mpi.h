/* api_mpi.h - the calls of the benchmark on MPI. Its twin api_ncclx.h has the same functions on ncclx: keep them alike.
 */
#ifndef PERF_API_H
#define PERF_API_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef OPEN_MPI
#define API_NAME "openmpi"
#else
#define API_NAME "mpich"
#endif
#define WORLD MPI_COMM_WORLD

typedef struct {
    MPI_Win win;
    char *base;
    uint64_t slot_value;
} api_window;
typedef MPI_Request api_request;

static inline void api_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
}
static inline void api_finalize(void)
{
    MPI_Finalize();
}
static inline double api_time(void)
{
    return MPI_Wtime();
}

static inline int api_rank(void)
{
    int rank;
    MPI_Comm_rank(WORLD, &rank);
    return rank;
}

static inline int api_size(void)
{
    int size;
    MPI_Comm_size(WORLD, &size);
    return size;
}

static inline void api_send(const void *buf, size_t n, int to)
{
    MPI_Send(buf, (int)n, MPI_BYTE, to, 1, WORLD);
}
static inline void api_recv(void *buf, size_t n, int from)
{
    MPI_Recv(buf, (int)n, MPI_BYTE, from, 1, WORLD, MPI_STATUS_IGNORE);
}
static inline void api_isend(const void *buf, size_t n, int to, api_request *r)
{
    MPI_Isend(buf, (int)n, MPI_BYTE, to, 1, WORLD, r);
}
static inline void api_irecv(void *buf, size_t n, int from, api_request *r)
{
    MPI_Irecv(buf, (int)n, MPI_BYTE, from, 1, WORLD, r);
}
static inline void api_waitall(int n, api_request *r)
{
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

static inline void api_progress(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, WORLD, &found, MPI_STATUS_IGNORE);
}
static inline void api_barrier(void)
{
    MPI_Barrier(WORLD);
}
static inline void api_bcast(void *buf, size_t n)
{
    MPI_Bcast(buf, (int)n, MPI_BYTE, 0, WORLD);
}
static inline void api_allreduce(const void *in, void *out, size_t floats)
{
    MPI_Allreduce(in, out, (int)floats, MPI_FLOAT, MPI_SUM, WORLD);
}
static inline void api_reduce(const void *in, void *out, size_t floats)
{
    MPI_Reduce(in, out, (int)floats, MPI_FLOAT, MPI_SUM, 0, WORLD);
}
static inline void api_max(double *value)
{
    MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, WORLD);
}
static inline void api_allgather(const void *in, void *out, size_t n)
{
    MPI_Allgather(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, WORLD);
}
static inline void api_alltoall(const void *in, void *out, size_t n)
{
    MPI_Alltoall(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, WORLD);
}

static inline void api_gather(const void *in, void *out, size_t n)
{
    MPI_Gather(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, 0, WORLD);
}
static inline void api_scatter(const void *in, void *out, size_t n)
{
    MPI_Scatter(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, 0, WORLD);
}
static inline void api_reduce_scatter(const void *in, void *out, size_t floats)
{
    MPI_Reduce_scatter_block(in, out, (int)floats, MPI_FLOAT, MPI_SUM, WORLD);
}
static inline void api_scan(const void *in, void *out, size_t floats)
{
    MPI_Scan(in, out, (int)floats, MPI_FLOAT, MPI_SUM, WORLD);
}
static inline void api_exscan(const void *in, void *out, size_t floats)
{
    MPI_Exscan(in, out, (int)floats, MPI_FLOAT, MPI_SUM, WORLD);
}

/* The forms with a count for each rank, as the arrays that this library takes. */
typedef int api_count;
static inline void api_allgatherv(const void *in, size_t n, void *out, const api_count *counts, const api_count *at)
{
    MPI_Allgatherv(in, (int)n, MPI_BYTE, out, counts, at, MPI_BYTE, WORLD);
}
static inline void api_gatherv(const void *in, size_t n, void *out, const api_count *counts, const api_count *at)
{
    MPI_Gatherv(in, (int)n, MPI_BYTE, out, counts, at, MPI_BYTE, 0, WORLD);
}
static inline void api_scatterv(const void *in, const api_count *counts, const api_count *at, void *out, size_t n)
{
    MPI_Scatterv(in, counts, at, MPI_BYTE, out, (int)n, MPI_BYTE, 0, WORLD);
}
static inline void api_alltoallv(const void *in, void *out, const api_count *counts, const api_count *at)
{
    MPI_Alltoallv(in, counts, at, MPI_BYTE, out, counts, at, MPI_BYTE, WORLD);
}

static inline void api_window_allocate(size_t bytes, api_window *w)
{
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, WORLD, &w->base, &w->win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win);
    *(volatile uint64_t *)w->base = 0;
    w->slot_value = 0;
    MPI_Win_sync(w->win);
    MPI_Barrier(WORLD);
}
static inline void api_window_create(void *memory, size_t bytes, api_window *w)
{
    MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, WORLD, &w->win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win);
    w->base = memory;
    w->slot_value = 0;
}
static inline void api_window_free(api_window *w)
{
    MPI_Win_unlock_all(w->win);
    MPI_Win_free(&w->win);
}
static inline void api_put(api_window *w, const void *buf, size_t n, int to)
{
    MPI_Put(buf, (int)n, MPI_BYTE, to, 0, (int)n, MPI_BYTE, w->win);
}
static inline void api_get(api_window *w, void *buf, size_t n, int to)
{
    MPI_Get(buf, (int)n, MPI_BYTE, to, 0, (int)n, MPI_BYTE, w->win);
}
static inline void api_flush(api_window *w, int to)
{
    MPI_Win_flush(to, w->win);
}

/* MPI has no signal: data, flush, then an atomic add that the peer waits for by fetching, which is the portable way. */
static inline void api_put_signal(api_window *w, const void *buf, size_t n, int to)
{
    static const uint64_t one = 1;
    MPI_Put(buf, (int)n, MPI_BYTE, to, 64, (int)n, MPI_BYTE, w->win);
    MPI_Win_flush(to, w->win);
    MPI_Accumulate(&one, 1, MPI_UINT64_T, to, 0, 1, MPI_UINT64_T, MPI_SUM, w->win);
    MPI_Win_flush(to, w->win);
}
static inline void api_wait_signal(api_window *w)
{
    uint64_t seen = 0, none = 0;
    w->slot_value++;
    while (seen < w->slot_value) {
        MPI_Fetch_and_op(&none, &seen, MPI_UINT64_T, api_rank(), 0, MPI_NO_OP, w->win);
        MPI_Win_flush(api_rank(), w->win);
    }
}

#endif
