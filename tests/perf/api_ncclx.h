/* api_ncclx.h - the calls of the benchmark on ncclx. Its twin api_mpi.h has the same functions on MPI: keep them alike.
 */
#ifndef PERF_API_H
#define PERF_API_H

#include <ncclx.h>
#include <stddef.h>

#define API_NAME "ncclx"
#define WORLD NCCLX_COMM_WORLD

typedef struct {
    ncclx_win_t win;
    char *base;
    size_t slot_value;
} api_window;
typedef ncclx_request_t api_request;

static inline void api_init(int *argc, char ***argv)
{
    ncclx_init(argc, argv);
}
static inline void api_finalize(void)
{
    ncclx_finalize();
}
static inline double api_time(void)
{
    return ncclx_wtime();
}

static inline int api_rank(void)
{
    int rank;
    ncclx_comm_rank(WORLD, &rank);
    return rank;
}

static inline int api_size(void)
{
    int size;
    ncclx_comm_size(WORLD, &size);
    return size;
}

static inline void api_send(const void *buf, size_t n, int to)
{
    ncclx_send(buf, n, NCCLX_BYTE, to, 1, WORLD);
}
static inline void api_recv(void *buf, size_t n, int from)
{
    ncclx_recv(buf, n, NCCLX_BYTE, from, 1, WORLD, NCCLX_STATUS_IGNORE);
}
static inline void api_isend(const void *buf, size_t n, int to, api_request *r)
{
    ncclx_isend(buf, n, NCCLX_BYTE, to, 1, WORLD, r);
}
static inline void api_irecv(void *buf, size_t n, int from, api_request *r)
{
    ncclx_irecv(buf, n, NCCLX_BYTE, from, 1, WORLD, r);
}
static inline void api_waitall(int n, api_request *r)
{
    ncclx_waitall((size_t)n, r, NCCLX_STATUSES_IGNORE);
}

static inline void api_progress(void)
{
    int found;
    ncclx_iprobe(NCCLX_ANY_SOURCE, 0, WORLD, &found, NULL);
}
static inline void api_barrier(void)
{
    ncclx_coll_barrier(WORLD);
}
static inline void api_bcast(void *buf, size_t n)
{
    ncclx_coll_bcast(buf, n, NCCLX_BYTE, 0, WORLD);
}
static inline void api_allreduce(const void *in, void *out, size_t floats)
{
    ncclx_coll_allreduce(in, out, floats, NCCLX_FLOAT, NCCLX_SUM, WORLD);
}
static inline void api_reduce(const void *in, void *out, size_t floats)
{
    ncclx_coll_reduce(in, out, floats, NCCLX_FLOAT, NCCLX_SUM, 0, WORLD);
}
static inline void api_max(double *value)
{
    ncclx_coll_allreduce(NCCLX_IN_PLACE, value, 1, NCCLX_DOUBLE, NCCLX_MAX, WORLD);
}
static inline void api_allgather(const void *in, void *out, size_t n)
{
    ncclx_coll_allgather(in, out, n, NCCLX_BYTE, WORLD);
}
static inline void api_alltoall(const void *in, void *out, size_t n)
{
    ncclx_coll_alltoall(in, out, n, NCCLX_BYTE, WORLD);
}

static inline void api_gather(const void *in, void *out, size_t n)
{
    ncclx_coll_gather(in, out, n, NCCLX_BYTE, 0, WORLD);
}
static inline void api_scatter(const void *in, void *out, size_t n)
{
    ncclx_coll_scatter(in, out, n, NCCLX_BYTE, 0, WORLD);
}
static inline void api_reduce_scatter(const void *in, void *out, size_t floats)
{
    ncclx_coll_reduce_scatter_block(in, out, floats, NCCLX_FLOAT, NCCLX_SUM, WORLD);
}
static inline void api_scan(const void *in, void *out, size_t floats)
{
    ncclx_coll_scan(in, out, floats, NCCLX_FLOAT, NCCLX_SUM, WORLD);
}
static inline void api_exscan(const void *in, void *out, size_t floats)
{
    ncclx_coll_exscan(in, out, floats, NCCLX_FLOAT, NCCLX_SUM, WORLD);
}

/* The forms with a count for each rank, as the arrays that this library takes. */
typedef size_t api_count;
static inline void api_allgatherv(const void *in, size_t n, void *out, const api_count *counts, const api_count *at)
{
    ncclx_coll_allgatherv(in, n, out, counts, at, NCCLX_BYTE, WORLD);
}
static inline void api_gatherv(const void *in, size_t n, void *out, const api_count *counts, const api_count *at)
{
    ncclx_coll_gatherv(in, n, out, counts, at, NCCLX_BYTE, 0, WORLD);
}
static inline void api_scatterv(const void *in, const api_count *counts, const api_count *at, void *out, size_t n)
{
    ncclx_coll_scatterv(in, counts, at, out, n, NCCLX_BYTE, 0, WORLD);
}
static inline void api_alltoallv(const void *in, void *out, const api_count *counts, const api_count *at)
{
    ncclx_coll_alltoallv(in, counts, at, out, counts, at, NCCLX_BYTE, WORLD);
}

static inline void api_window_allocate(size_t bytes, api_window *w)
{
    void *base;
    ncclx_win_allocate(bytes, 1, NCCLX_INFO_NULL, WORLD, &base, &w->win);
    ncclx_win_lock_all(w->win);
    w->base = base;
    w->slot_value = 0;
}
static inline void api_window_create(void *memory, size_t bytes, api_window *w)
{
    ncclx_win_create(memory, bytes, 1, NCCLX_INFO_NULL, WORLD, &w->win);
    ncclx_win_lock_all(w->win);
    w->base = memory;
    w->slot_value = 0;
}
static inline void api_window_free(api_window *w)
{
    ncclx_win_unlock_all(w->win);
    ncclx_win_free(&w->win);
}
static inline void api_put(api_window *w, const void *buf, size_t n, int to)
{
    ncclx_win_put(buf, n, NCCLX_BYTE, to, 0, w->win);
}
static inline void api_get(api_window *w, void *buf, size_t n, int to)
{
    ncclx_win_get(buf, n, NCCLX_BYTE, to, 0, w->win);
}
static inline void api_flush(api_window *w, int to)
{
    ncclx_win_flush(to, w->win);
}

/* Data, then word of it: the peer waits with api_wait_signal. */
static inline void api_put_signal(api_window *w, const void *buf, size_t n, int to)
{
    ncclx_win_put_signal(buf, n, NCCLX_BYTE, to, 64, w->win, 0, NCCLX_SIGNAL_ADD, 1);
}
static inline void api_wait_signal(api_window *w)
{
    ncclx_win_wait_signal(w->win, 0, NCCLX_CMP_GE, ++w->slot_value, -1, NULL);
}

#endif
