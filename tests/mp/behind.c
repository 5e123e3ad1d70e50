/* behind.c - a message of 8 bytes that is sent behind a put of MEBIBYTES to the same peer:
 *
 *     behind MEBIBYTES [TIMES]
 *
 * from rank 0 to the last. It may not wait for the put: what comes before it, of the segments that were not there when it was sent, is
 * counted, by the bytes in the target's memory, no clock; of TIMES tries the best counts, for on a busy machine a rank may be held up
 * between any two steps, and more comes meanwhile. Then rank 0 prints medians: microseconds of the message's way while nothing else is
 * sent, its way behind the put, and that of 512 KiB of the put; and the segments ahead of it. Both clocks have to be the same one: ranks
 * of one machine. */
#include "tests/mp/check.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define SEGMENT ((size_t)512 << 10)
#define LIMITS "2:4:512K" /* whatever the distance */
#define LANES 2
/* What may be in flight, and as much as goes out anew while target and origin look at each lane once: a look takes in a segment at most, and
 * the target looks for messages after each, the origin before it. */
#define AHEAD_MOST (LANES * 4 + LANES * 2)
#define TIMES 9
#define TIMES_MOST 99
#define IDLE 200

static int rank, last;

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

/* Puts them in order. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void send_time(void)
{
    double sent = now();
    OK(ncclx_send(&sent, 1, NCCLX_DOUBLE, last, 1, NCCLX_COMM_WORLD));
}

/* How long it took. */
static double receive_time(void)
{
    double sent;
    OK(ncclx_recv(&sent, 1, NCCLX_DOUBLE, 0, 1, NCCLX_COMM_WORLD, NULL));
    return now() - sent;
}

static double idle(void)
{
    double way[IDLE];
    for (int i = 0; i < IDLE; i++) {
        if (rank == last) way[i] = receive_time();
        if (rank == 0) send_time();
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    }
    return rank == last ? median(way, IDLE) : 0;
}

/* Segments of the put that have come, at least in part, with this mark. */
static size_t segments_there(const char *base, size_t bytes, char mark)
{
    size_t there = 0;
    for (size_t at = 0; at < bytes; at += SEGMENT) there += ((const volatile char *)base)[at] == mark;
    return there;
}

/* A put's data may not be changed before it is complete: what comes is the one or the other, and it is this that tells when it left. */
static char late(char mark)
{
    return (char)(mark ^ 0x80);
}

static void mark_late(char *data, size_t bytes, char mark)
{
    for (size_t at = 0; at < bytes; at += SEGMENT) ((volatile char *)data)[at] = late(mark);
}

struct try {
    double took; /* the message's way at the last rank, the put's time at rank 0 */
    double ahead;
};

static struct try once(ncclx_win_t win, const char *base, char *data, size_t bytes, char mark)
{
    struct try try = {.took = 0};
    if (rank == 0) memset(data, mark, bytes);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == last) {
        try.took = receive_time();
        try.ahead = (double)segments_there(base, bytes, late(mark));
    } else if (rank == 0) {
        double begin = now();
        OK(ncclx_win_put(data, bytes, NCCLX_BYTE, last, 0, win));
        mark_late(data, bytes, mark);
        send_time();
        OK(ncclx_win_flush(last, win));
        try.took = now() - begin;
    }
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == last) {
        size_t there = segments_there(base, bytes, mark) + segments_there(base, bytes, late(mark));
        CHECK(there == (bytes + SEGMENT - 1) / SEGMENT && base[bytes - 1] == mark);
    }
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    return try;
}

int main(int argc, char **argv)
{
    int size;
    setenv("NCCLX_DQPLB_NODE", LIMITS, 1);
    setenv("NCCLX_DQPLB_ZONE", LIMITS, 1);
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
    int times = argc > 2 ? atoi(argv[2]) : TIMES;
    CHECK(size >= 2 && bytes > 0 && times > 0 && times <= TIMES_MOST);
    last = size - 1;
    void *base;
    char *data = rank == 0 ? malloc(bytes) : NULL;
    ncclx_win_t win;
    CHECK(rank != 0 || data);
    OK(ncclx_win_allocate(rank == last ? bytes : 0, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &base, &win));
    OK(ncclx_win_lock_all(win));
    double took[TIMES_MOST], ahead[TIMES_MOST], figures[3];
    once(win, base, data, bytes, 1); /* pages are there, and lanes open */
    double alone = idle();
    for (int i = 0; i < times; i++) {
        struct try try = once(win, base, data, bytes, (char)(i + 2));
        took[i] = try.took;
        ahead[i] = try.ahead;
    }
    if (rank == last) {
        figures[0] = alone;
        figures[1] = median(took, times);
        figures[2] = median(ahead, times);
        CHECK(ahead[0] <= AHEAD_MOST);
        OK(ncclx_send(figures, 3, NCCLX_DOUBLE, 0, 2, NCCLX_COMM_WORLD));
    } else if (rank == 0) {
        OK(ncclx_recv(figures, 3, NCCLX_DOUBLE, last, 2, NCCLX_COMM_WORLD, NULL));
        printf("idle %.1f behind %.1f segment %.1f ahead %.0f\n", figures[0], figures[1], median(took, times) * (double)SEGMENT / (double)bytes,
               figures[2]);
    }
    OK(ncclx_win_unlock_all(win));
    OK(ncclx_win_free(&win));
    OK(ncclx_finalize());
    free(data);
    return 0;
}
