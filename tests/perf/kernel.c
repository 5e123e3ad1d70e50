/* kernel.c - the benchmark itself, one source for ncclx and MPI: API_HEADER names the calls it is
 * compiled with.
 *
 *     perf-LIBRARY TEST LEAST MOST [MILLISECONDS [FILE JOB COUNT [bind]]]
 *
 * runs TEST at sizes LEAST, 2 LEAST, ... MOST bytes (0: only that size), and prints on rank 0 one line a size:
 *     LIBRARY TEST RANKS BYTES MICROSECONDS...      (a batch average each; bandwidth tests: time of one message)
 * TEST "start" does nothing between init and finalize but a barrier. Batches are short, so that the reader of the
 * output can take medians. With FILE (turns.h) it takes turns with COUNT - 1 others, batch by batch. bind: each rank has the core of its
 * number; for hosts of one machine, where no launcher knows of the others.
 */
#define _GNU_SOURCE
#include API_HEADER

#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    int rank, size, peer;
    size_t bytes;
    int messages; /* in flight */
    char *in, *out;
    api_window window;
    api_count *counts, *at; /* bytes and their place, the same for each rank */
    struct turns turns;
};

typedef void (*step_fn)(struct bench *b);

static void latency(struct bench *b)
{
    if (b->rank == 0) {
        api_send(b->in, b->bytes, 1);
        api_recv(b->out, b->bytes, 1);
    } else if (b->rank == 1) {
        api_recv(b->out, b->bytes, 0);
        api_send(b->in, b->bytes, 0);
    }
}

static void bandwidth(struct bench *b)
{
    api_request request[IN_FLIGHT];
    if (b->rank == 0) {
        for (int i = 0; i < b->messages; i++) api_isend(b->in, b->bytes, 1, &request[i]);
        api_waitall(b->messages, request);
        api_recv(b->out, 1, 1);
    } else if (b->rank == 1) {
        for (int i = 0; i < b->messages; i++) api_irecv(b->out, b->bytes, 0, &request[i]);
        api_waitall(b->messages, request);
        api_send(b->in, 1, 0);
    }
}

static void put_flush(struct bench *b)
{
    if (b->rank != 0) return;
    api_put(&b->window, b->in, b->bytes, 1);
    api_flush(&b->window, 1);
}

static void get_flush(struct bench *b)
{
    if (b->rank != 0) return;
    api_get(&b->window, b->out, b->bytes, 1);
    api_flush(&b->window, 1);
}

static void put_bandwidth(struct bench *b)
{
    if (b->rank != 0) return;
    for (int i = 0; i < b->messages; i++) api_put(&b->window, b->in, b->bytes, 1);
    api_flush(&b->window, 1);
}

static void put_signal(struct bench *b)
{
    if (b->rank == 0) {
        api_put_signal(&b->window, b->in, b->bytes, 1);
        api_wait_signal(&b->window);
    } else if (b->rank == 1) {
        api_wait_signal(&b->window);
        api_put_signal(&b->window, b->in, b->bytes, 0);
    }
}

static void put_signal_rate(struct bench *b)
{
    if (b->rank == 0) {
        for (int i = 0; i < b->messages; i++) api_put_signal(&b->window, b->in, b->bytes, 1);
        api_wait_signal(&b->window);
    } else if (b->rank == 1) {
        for (int i = 0; i < b->messages; i++) api_wait_signal(&b->window);
        api_put_signal(&b->window, b->in, 1, 0);
    }
}

static void barrier(struct bench *b)
{
    (void)b;
    api_barrier();
}

static void bcast(struct bench *b)
{
    api_bcast(b->out, b->bytes);
}

static void allreduce(struct bench *b)
{
    api_allreduce(b->in, b->out, b->bytes / sizeof(float));
}

static void reduce(struct bench *b)
{
    api_reduce(b->in, b->out, b->bytes / sizeof(float));
}

static void allgather(struct bench *b)
{
    api_allgather(b->in, b->out, b->bytes);
}

static void alltoall(struct bench *b)
{
    api_alltoall(b->in, b->out, b->bytes);
}

static void gather(struct bench *b)
{
    api_gather(b->in, b->out, b->bytes);
}

static void scatter(struct bench *b)
{
    api_scatter(b->in, b->out, b->bytes);
}

/* bytes: of each rank's part of the result. */
static void reduce_scatter(struct bench *b)
{
    api_reduce_scatter(b->in, b->out, b->bytes / sizeof(float));
}

static void scan(struct bench *b)
{
    api_scan(b->in, b->out, b->bytes / sizeof(float));
}

static void exscan(struct bench *b)
{
    api_exscan(b->in, b->out, b->bytes / sizeof(float));
}

static void allgatherv(struct bench *b)
{
    api_allgatherv(b->in, b->bytes, b->out, b->counts, b->at);
}

static void gatherv(struct bench *b)
{
    api_gatherv(b->in, b->bytes, b->out, b->counts, b->at);
}

static void scatterv(struct bench *b)
{
    api_scatterv(b->in, b->counts, b->at, b->out, b->bytes);
}

static void alltoallv(struct bench *b)
{
    api_alltoallv(b->in, b->out, b->counts, b->at);
}

enum memory { PRIVATE, ALLOCATED, CREATED };
enum { FLIGHT };

static const struct test {
    const char *name;
    step_fn step;
    enum memory memory;
    int per_step; /* messages one step times, by which its time is divided; FLIGHT: those in flight */
} tests[] = {
    {"latency", latency, PRIVATE, 2},
    {"bandwidth", bandwidth, PRIVATE, FLIGHT},
    {"put", put_flush, ALLOCATED, 1},
    {"put_created", put_flush, CREATED, 1},
    {"put_bandwidth", put_bandwidth, ALLOCATED, FLIGHT},
    {"put_signal", put_signal, ALLOCATED, 2},
    {"put_signal_rate", put_signal_rate, ALLOCATED, FLIGHT},
    {"get", get_flush, ALLOCATED, 1},
    {"get_created", get_flush, CREATED, 1},
    {"barrier", barrier, PRIVATE, 1},
    {"bcast", bcast, PRIVATE, 1},
    {"allreduce", allreduce, PRIVATE, 1},
    {"reduce", reduce, PRIVATE, 1},
    {"allgather", allgather, PRIVATE, 1},
    {"alltoall", alltoall, PRIVATE, 1},
    {"gather", gather, PRIVATE, 1},
    {"scatter", scatter, PRIVATE, 1},
    {"reduce_scatter", reduce_scatter, PRIVATE, 1},
    {"scan", scan, PRIVATE, 1},
    {"exscan", exscan, PRIVATE, 1},
    {"allgatherv", allgatherv, PRIVATE, 1},
    {"gatherv", gatherv, PRIVATE, 1},
    {"scatterv", scatterv, PRIVATE, 1},
    {"alltoallv", alltoallv, PRIVATE, 1},
};

static double timed(struct bench *b, const struct test *test, long steps)
{
    api_barrier();
    double start = api_time();
    for (long i = 0; i < steps; i++) test->step(b);
    double seconds = api_time() - start;
    if (test->memory == PRIVATE) api_max(&seconds); /* a collective is over when its last rank is */
    return seconds;
}

/* Steps that take about `seconds`, with the same answer on all ranks: more until they do, since a few calls say little, of ranks that
 * have just woken up and may first have to find cores, say. The faster of two runs counts. It is the warm-up, too, of every library
 * alike: at least twice half the time of a batch. */
static long calibrate(struct bench *b, const struct test *test, double seconds)
{
    for (long steps = 1;;) {
        double took = timed(b, test, steps), again = timed(b, test, steps);
        if (again < took) took = again;
        api_max(&took);
        if (took >= seconds / 2 || steps >= 1L << 24) return steps;
        steps = took > seconds / 16 ? (long)((double)steps * seconds / took) + 1 : steps * 8;
    }
}

static void measure(struct bench *b, const struct test *test, double seconds)
{
    double sample[BATCHES];
    for (int i = 0; i < b->size; i++) {
        b->counts[i] = (api_count)b->bytes;
        b->at[i] = (api_count)((size_t)i * b->bytes);
    }
    b->messages = in_flight(b->bytes);
    int per_step = test->per_step == FLIGHT ? b->messages : test->per_step;
    long steps = 0;
    for (int i = -1; i < BATCHES; i++) {
        turns_begin(&b->turns, api_progress);
        if (i < 0) steps = calibrate(b, test, seconds / BATCHES);
        else (void)timed(b, test, 1); /* caches are full of what others did */
        if (i >= 0) sample[i] = timed(b, test, steps) / (double)steps / per_step * 1e6;
        api_barrier(); /* none sleeps while another is still measuring */
        turns_end(&b->turns, b->rank == 0);
    }
    if (b->rank != 0) return;
    printf("%s %s %d %zu", API_NAME, test->name, b->size, b->bytes);
    for (int i = 0; i < BATCHES; i++) printf(" %.4f", sample[i]);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bench b;
    const struct test *test = NULL;
    api_init(&argc, &argv);
    b.rank = api_rank();
    b.size = api_size();
    for (size_t i = 0; argc >= 4 && i < sizeof tests / sizeof tests[0]; i++)
        if (!strcmp(argv[1], tests[i].name)) test = &tests[i];
    if (argc >= 2 && !strcmp(argv[1], "start")) { /* only what every program does: init, barrier, finalize */
        api_barrier();
        api_finalize();
        return 0;
    }
    if (!test || b.size < 2) {
        if (b.rank == 0) fprintf(stderr, "usage: perf TEST LEAST MOST [MILLISECONDS], on 2 ranks or more\n");
        api_finalize();
        return 2;
    }
    size_t least = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    double seconds = argc > 4 ? atof(argv[4]) / 1e3 : 0.1;
    if (turns_open(&b.turns, argc - 5, argv + 5)) return 1;
    if (argc > 8) pin(b.rank);
    size_t room = (most + 4096) * (size_t)b.size;
    b.in = make_buffer(room);
    b.out = make_buffer(room);
    b.counts = malloc((size_t)b.size * sizeof *b.counts);
    b.at = malloc((size_t)b.size * sizeof *b.at);
    if (!b.in || !b.out || !b.counts || !b.at) return 1;
    if (test->memory == ALLOCATED) api_window_allocate(most + 4096, &b.window);
    if (test->memory == CREATED) api_window_create(b.out, most + 4096, &b.window);
    turns_arrive(&b.turns, b.rank == 0);
    for (b.bytes = least;; b.bytes *= 2) {
        measure(&b, test, seconds);
        if (b.bytes == 0 || b.bytes * 2 > most) break;
    }
    turns_leave(&b.turns, b.rank == 0);
    if (test->memory != PRIVATE) api_window_free(&b.window);
    api_finalize();
    free(b.in);
    free(b.out);
    free(b.counts);
    free(b.at);
    return 0;
}
