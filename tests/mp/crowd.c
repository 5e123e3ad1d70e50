/* crowd.c - every rank talks to every other, while it may have fewer descriptors than there are ranks: `crowd ROUNDS`.
 * Connections must come and go, and nothing may be lost, out of order, or taken for a death; none takes a thread. Prints "ok RANKS" at
 * the end, and how many descriptors a rank had open at most. */
#include "check.h"

#include <stdint.h>
#include <string.h>

#define WORLD NCCLX_COMM_WORLD
#define SMALL 8
#define LARGE 50000 /* goes over a lane */
#define BURST 5

static int rank, size;

static unsigned char byte_of(int from, int to, int round, size_t at)
{
    return (unsigned char)(from * 31 + to * 17 + round * 7 + (int)at);
}

static void exchange(size_t bytes, int round)
{
    unsigned char *out = malloc(bytes * (size_t)size), *in = malloc(bytes * (size_t)size);
    CHECK(out && in);
    for (int to = 0; to < size; to++)
        for (size_t i = 0; i < bytes; i++) out[(size_t)to * bytes + i] = byte_of(rank, to, round, i);
    memset(in, 0, bytes * (size_t)size);
    OK(ncclx_coll_alltoall(out, in, bytes, NCCLX_BYTE, WORLD));
    for (int from = 0; from < size; from++)
        for (size_t i = 0; i < bytes; i++) CHECK(in[(size_t)from * bytes + i] == byte_of(from, rank, round, i));
    free(out);
    free(in);
}

/* Messages to all at once, of which each pair has several in order. */
static void burst(int round)
{
    int count = 2 * BURST * size;
    ncclx_request_t *request = calloc((size_t)count, sizeof *request);
    int (*in)[BURST] = calloc((size_t)size, sizeof *in), (*out)[BURST] = calloc((size_t)size, sizeof *out);
    CHECK(request && in && out);
    size_t used = 0;
    for (int peer = 0; peer < size; peer++) {
        for (int i = 0; i < BURST; i++) {
            out[peer][i] = round * 1000 + i;
            OK(ncclx_irecv(&in[peer][i], 1, NCCLX_INT32, peer, 1, WORLD, &request[used++]));
        }
    }
    for (int i = 0; i < BURST; i++)
        for (int step = 0; step < size; step++) {
            int peer = (rank + step) % size;
            OK(ncclx_isend(&out[peer][i], 1, NCCLX_INT32, peer, 1, WORLD, &request[used++]));
        }
    OK(ncclx_waitall(used, request, NCCLX_STATUSES_IGNORE));
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < BURST; i++) CHECK(in[peer][i] == round * 1000 + i);
    free(request);
    free(in);
    free(out);
}

/* The neighbour's connection may have to be closed for others' in between. */
static void puts_and_signals(int rounds)
{
    ncclx_win_t window;
    void *base;
    uint64_t seen;
    OK(ncclx_win_allocate((size_t)LARGE, 1, NCCLX_INFO_NULL, WORLD, &base, &window));
    unsigned char *data = malloc(LARGE);
    CHECK(data);
    for (int round = 1; round <= rounds; round++) {
        int to = (rank + round) % size, from = (rank + size - round % size) % size;
        for (size_t i = 0; i < LARGE; i++) data[i] = byte_of(rank, to, round, i);
        OK(ncclx_coll_barrier(WORLD));
        OK(ncclx_win_put_signal(data, LARGE, NCCLX_BYTE, to, 0, window, 0, NCCLX_SIGNAL_ADD, 1));
        OK(ncclx_win_wait_signal(window, 0, NCCLX_CMP_GE, (uint64_t)round, -1, &seen));
        for (size_t i = 0; i < LARGE; i++) CHECK(((unsigned char *)base)[i] == byte_of(from, rank, round, i));
        OK(ncclx_win_flush_all(window));
    }
    OK(ncclx_win_free(&window));
    free(data);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    int rounds = atoi(argv[1]), most = 0, now;
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    const int threads = entries("/proc/self/task");
    for (int round = 0; round < rounds; round++) {
        burst(round);
        now = open_descriptors();
        if (now > most) most = now;
        exchange(SMALL, round);
        exchange(LARGE, round);
    }
    CHECK(entries("/proc/self/task") == threads);
    puts_and_signals(rounds);
    CHECK(entries("/proc/self/task") <= threads + 1); /* the agent */
    now = most;
    OK(ncclx_coll_reduce(&now, &most, 1, NCCLX_INT32, NCCLX_MAX, 0, WORLD));
    if (rank == 0) printf("ok %d, at most %d descriptors\n", size, most);
    OK(ncclx_finalize());
    return 0;
}
