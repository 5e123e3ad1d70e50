/* behind.c - a message of 8 bytes that is sent behind a put of MEBIBYTES to the same peer:
 *
 *     behind MEBIBYTES [TIMES]
 *
 * on two ranks. It has to be there when little of the put is, by the bytes in the target's memory, no clock. Then rank 0
 * prints, from TIMES tries, medians in microseconds: the message's way while nothing else is sent, its way behind the put, and
 * that of 512 KiB of the put. Both clocks have to be the same one: ranks of one machine. */
#include "tests/mp/check.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define SEGMENT ((size_t)512 << 10)
#define TIMES_MOST 99
#define IDLE 200

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void send_time(void)
{
    double sent = now();
    OK(ncclx_send(&sent, 1, NCCLX_DOUBLE, 1, 1, NCCLX_COMM_WORLD));
}

/* How long it took. */
static double receive_time(void)
{
    double sent;
    OK(ncclx_recv(&sent, 1, NCCLX_DOUBLE, 0, 1, NCCLX_COMM_WORLD, NULL));
    return now() - sent;
}

static double idle(int rank)
{
    double way[IDLE];
    for (int i = 0; i < IDLE; i++) {
        if (rank) way[i] = receive_time();
        else send_time();
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    }
    return rank ? median(way, IDLE) : 0;
}

/* Segments of the put that have come, at least in part. */
static size_t segments_there(const char *base, size_t bytes, char mark)
{
    size_t there = 0;
    for (size_t at = 0; at < bytes; at += SEGMENT) there += ((const volatile char *)base)[at] == mark;
    return there;
}

/* Returns the message's way at rank 1, the put's time at rank 0. */
static double once(int rank, ncclx_win_t win, const char *base, char *data, size_t bytes, char mark)
{
    double took = 0;
    if (!rank) memset(data, mark, bytes);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank) {
        took = receive_time();
        CHECK(segments_there(base, bytes, mark) < bytes / SEGMENT / 2);
    } else {
        double begin = now();
        OK(ncclx_win_put(data, bytes, NCCLX_BYTE, 1, 0, win));
        send_time();
        OK(ncclx_win_flush(1, win));
        took = now() - begin;
    }
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank) CHECK(segments_there(base, bytes, mark) == (bytes + SEGMENT - 1) / SEGMENT && base[bytes - 1] == mark);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    return took;
}

int main(int argc, char **argv)
{
    int rank, size;
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
    int times = argc > 2 ? atoi(argv[2]) : 1;
    CHECK(size == 2 && bytes > 0 && times > 0 && times <= TIMES_MOST);
    void *base;
    char *data = malloc(bytes);
    ncclx_win_t win;
    CHECK(data != NULL);
    OK(ncclx_win_allocate(bytes, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &base, &win));
    OK(ncclx_win_lock_all(win));
    double sample[TIMES_MOST], figures[2];
    once(rank, win, base, data, bytes, 1); /* pages are there, and lanes open */
    double alone = idle(rank);
    for (int i = 0; i < times; i++) sample[i] = once(rank, win, base, data, bytes, (char)(i + 2));
    if (rank) {
        figures[0] = alone;
        figures[1] = median(sample, times);
        OK(ncclx_send(figures, 2, NCCLX_DOUBLE, 0, 2, NCCLX_COMM_WORLD));
    } else {
        OK(ncclx_recv(figures, 2, NCCLX_DOUBLE, 1, 2, NCCLX_COMM_WORLD, NULL));
        printf("idle %.1f behind %.1f segment %.1f\n", figures[0], figures[1],
               median(sample, times) * (double)SEGMENT / (double)bytes);
    }
    OK(ncclx_win_unlock_all(win));
    OK(ncclx_win_free(&win));
    OK(ncclx_finalize());
    free(data);
    return 0;
}
