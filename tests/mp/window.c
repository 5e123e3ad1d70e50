/* window.c - windows between processes: window CASE [NUMBER]. Prints nothing but "ok RANKS" from rank 0 when everything holds. */
#include "tests/mp/window.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static unsigned char pattern(int from, int to, size_t i, unsigned round)
{
    return (unsigned char)((size_t)from * 41 + (size_t)to * 17 + i * 3 + i / 251 + round * 5 + 1);
}

/* ---- put: everybody to everybody, all sizes; read back by get, and looked at by the owner -------------------- */

static void put_round(ncclx_win_t win, const char *base, size_t part, size_t bytes, unsigned round)
{
    unsigned char *out = need(bytes * (size_t)size), *back = need(bytes);
    for (int to = 0; to < size; to++) {
        unsigned char *mine = out + (size_t)to * bytes;
        for (size_t i = 0; i < bytes; i++) mine[i] = pattern(rank, to, i, round);
        OK(ncclx_win_put(mine, bytes, NCCLX_BYTE, to, (size_t)rank * part, win));
        if (round % 2) OK(ncclx_win_flush(to, win));
    }
    OK(ncclx_win_flush_all(win));
    for (int to = 0; to < size; to++) {
        memset(back, 0, bytes);
        OK(ncclx_win_get(back, bytes, NCCLX_BYTE, to, (size_t)rank * part, win));
        OK(ncclx_win_flush(to, win));
        CHECK(memcmp(back, out + (size_t)to * bytes, bytes) == 0);
    }
    OK(ncclx_win_fence(win));
    for (int from = 0; from < size; from++)
        for (size_t i = 0; i < bytes; i++)
            CHECK((unsigned char)base[(size_t)from * part + i] == pattern(from, rank, i, round));
    OK(ncclx_win_fence(win));
    free(out);
    free(back);
}

static void case_put(void)
{
    static const size_t sizes[] = {0, 1, 3, 8, 64, 1000, 8192, 65537, 300000};
    const size_t part = 300000 + 16, bytes = part * (size_t)size;
    char *base, *own = need(bytes + 16);
    ncclx_win_t win = allocate(bytes, 1, 4, &base);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) put_round(win, base, part, sizes[i], i);
    OK(ncclx_win_free(&win));
    CHECK(win == NCCLX_WIN_NULL);
    OK(ncclx_win_create(own + 3, bytes, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win)); /* odd on purpose */
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) put_round(win, own + 3, part, sizes[i], i);
    OK(ncclx_win_free(&win));
    free(own);
}

/* ---- signal: no signal before its data ----------------------------------------------------------------------- */

#define BUFFERS 8
#define WORDS 96

/* One buffer of the ring: part by a plain put, the rest with the signal. */
static void send_words(ncclx_win_t win, uint64_t *staged, uint64_t round, int to)
{
    const size_t count = 1 + (size_t)(round * 7919 % WORDS), plain = count / 3, place = (size_t)(round % BUFFERS) * WORDS;
    uint64_t *words = staged + place;
    for (size_t i = 0; i < count; i++) words[i] = round * 1000 + i;
    if (plain) OK(ncclx_win_put(words, plain, NCCLX_UINT64, to, place, win));
    OK(ncclx_win_put_signal(words + plain, count - plain, NCCLX_UINT64, to, place + plain, win, 0, NCCLX_SIGNAL_ADD, 1));
}

static void check_words(const uint64_t *memory, uint64_t round)
{
    const size_t count = 1 + (size_t)(round * 7919 % WORDS), place = (size_t)(round % BUFFERS) * WORDS;
    for (size_t i = 0; i < count; i++) CHECK(memory[place + i] == round * 1000 + i);
}

static void signal_rounds(ncclx_win_t win, const char *base, uint64_t rounds)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    uint64_t *staged = need(sizeof(uint64_t) * BUFFERS * WORDS), seen = 0;
    for (uint64_t round = 1; round <= rounds; round++) {
        if (round > BUFFERS) OK(ncclx_win_wait_signal(win, 1, NCCLX_CMP_GE, round - BUFFERS, -1, NULL));
        send_words(win, staged, round, right);
        while (seen < round) { /* take all that have come */
            uint64_t now;
            OK(ncclx_win_wait_signal(win, 0, NCCLX_CMP_GT, seen, -1, &now));
            while (seen < now) check_words((const uint64_t *)(const void *)base, ++seen);
            OK(ncclx_win_signal(left, win, 1, NCCLX_SIGNAL_SET, seen));
        }
    }
    OK(ncclx_win_wait_signal(win, 1, NCCLX_CMP_EQ, rounds, -1, NULL));
    OK(ncclx_win_free(&win)); /* puts that a signal followed are not in flight */
    free(staged);
}

static void case_signal(uint64_t rounds)
{
    char *base, *own = need(sizeof(uint64_t) * BUFFERS * WORDS);
    ncclx_win_t win = allocate(sizeof(uint64_t) * BUFFERS * WORDS, 8, 2, &base);
    signal_rounds(win, base, rounds);
    OK(ncclx_win_create(own, sizeof(uint64_t) * BUFFERS * WORDS, 8, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    signal_rounds(win, own, rounds / 4 + 1);
    free(own);
}

/* ---- counter: additions of all ranks on one slot are atomic -------------------------------------------------- */

static void case_counter(uint64_t rounds)
{
    char *base;
    uint64_t seen;
    ncclx_win_t win = allocate(8, 8, 3, &base);
    for (uint64_t i = 0; i < rounds; i++)
        for (int to = 0; to < size; to++) OK(ncclx_win_signal(to, win, 2, NCCLX_SIGNAL_ADD, 1));
    OK(ncclx_win_wait_signal(win, 2, NCCLX_CMP_GE, rounds * (uint64_t)size, -1, &seen));
    CHECK(seen == rounds * (uint64_t)size);
    OK(ncclx_win_free(&win));
}

/* ---- passive: flush returns though the target makes no calls -------------------------------------------------- */

static void passive_on(ncclx_win_t win, char *base)
{
    volatile uint64_t *mine = (volatile uint64_t *)(void *)base;
    const uint64_t one = 1;
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == 0) {
        for (int to = 1; to < size; to++) { /* the second word goes out only when the first is known to be there */
            OK(ncclx_win_put(&one, 1, NCCLX_UINT64, to, 0, win));
            OK(ncclx_win_flush(to, win));
            uint64_t back = 0;
            OK(ncclx_win_get(&back, 1, NCCLX_UINT64, to, 0, win));
            OK(ncclx_win_flush(to, win));
            CHECK(back == 1);
            OK(ncclx_win_put(&one, 1, NCCLX_UINT64, to, 1, win));
            OK(ncclx_win_flush(to, win));
        }
    } else {
        while (mine[1] == 0) sched_yield(); /* computes: not one call until rank 0 has flushed twice */
        CHECK(mine[0] == 1);
    }
    OK(ncclx_win_free(&win));
}

static void case_passive(void)
{
    char *base, *own = need(16);
    ncclx_win_t win = allocate(16, 8, 1, &base);
    passive_on(win, base);
    OK(ncclx_win_create(own, 16, 8, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    passive_on(win, own);
    free(own);
}

/* ---- busy: nor does anything else wait for a target that computes, however long -------------------------------- */

static void case_busy(uint64_t seconds)
{
    char *base;
    const int64_t one = 1;
    int64_t old = -1, back = -1;
    ncclx_win_t win = allocate(16, 8, 1, &base);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    const double end = ncclx_wtime() + (double)seconds;
    if (rank == 0) {
        for (int to = 1; to < size; to++) {
            OK(ncclx_win_put(&one, 1, NCCLX_INT64, to, 0, win));
            OK(ncclx_win_flush(to, win));
            OK(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, to, 0, win));
            OK(ncclx_win_flush(to, win));
            OK(ncclx_win_get(&back, 1, NCCLX_INT64, to, 0, win));
            OK(ncclx_win_flush(to, win));
            CHECK(old == 1 && back == 2);
        }
        CHECK(ncclx_wtime() < end);
    } else {
        for (volatile uint64_t i = 0; i % 1000 || ncclx_wtime() < end;) i++;
    }
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    OK(ncclx_win_free(&win));
}

/* ---- unlike: of eight ranks in this order, neighbours share memory in NCCLX_TRANSPORTS=mix, and the first and third do not: no rank
 * knows when the window is made that it has to answer while it computes ------------------------------------------- */

static void case_unlike(void)
{
    static const int ring[] = {0, 1, 3, 2, 6, 7, 5, 4};
    ncclx_comm_t comm;
    ncclx_win_t win;
    void *memory = NULL;
    uint64_t one = 1;
    int at = 0;
    CHECK(size == 8);
    while (ring[at] != rank) at++;
    OK(ncclx_comm_split(NCCLX_COMM_WORLD, 0, at, &comm));
    OK(ncclx_win_allocate(3 * sizeof one, sizeof one, NCCLX_INFO_NULL, comm, &memory, &win));
    volatile uint64_t *mine = memory;
    if (rank == ring[0]) {
        OK(ncclx_win_put(&one, 1, NCCLX_UINT64, 2, 0, win)); /* while the other one is inside a call */
        OK(ncclx_win_flush(2, win));
        OK(ncclx_send(&one, 1, NCCLX_UINT64, 2, 0, comm));
        for (size_t word = 1; word <= 2; word++) {
            OK(ncclx_win_put(&one, 1, NCCLX_UINT64, 2, word, win));
            OK(ncclx_win_flush(2, win));
        }
    } else if (rank == ring[2]) {
        OK(ncclx_recv(&one, 1, NCCLX_UINT64, 0, 0, comm, NULL));
        while (mine[2] == 0) sched_yield();
        CHECK(mine[0] == 1 && mine[1] == 1);
    }
    OK(ncclx_win_free(&win));
    OK(ncclx_comm_free(&comm));
}

/* ---- shapes: sizes and units differ, zero included ----------------------------------------------------------- */

static void case_shapes(void)
{
    char *base;
    const size_t unit = (size_t)rank + 1;
    unsigned char mark = (unsigned char)(rank + 1); /* the library's until the fence */
    ncclx_win_t win = allocate((size_t)rank * 8 * unit, unit, 1, &base);
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    for (int to = 0; to < size; to++) {
        const size_t there = (size_t)to * 8 * ((size_t)to + 1);
        if (rank < to * 8) OK(ncclx_win_put(&mark, 1, NCCLX_BYTE, to, (size_t)rank, win));
        OK(ncclx_win_put(&mark, 0, NCCLX_BYTE, to, (size_t)to * 8, win));
        FAILS(ncclx_win_put(&mark, 1, NCCLX_BYTE, to, (size_t)to * 8, win), NCCLX_ERR_RANGE);
        FAILS(ncclx_win_get(&mark, there + 1, NCCLX_BYTE, to, 0, win), NCCLX_ERR_RANGE);
        FAILS(ncclx_win_put(&mark, 1, NCCLX_BYTE, to, SIZE_MAX / 2, win), NCCLX_ERR_RANGE);
        FAILS(ncclx_win_signal(to, win, 1, NCCLX_SIGNAL_ADD, 1), NCCLX_ERR_RANGE);
    }
    OK(ncclx_win_fence(win));
    for (int from = 0; from < size && from < rank * 8; from++) CHECK(base[(size_t)from * unit] == (char)(from + 1));
    OK(ncclx_win_free(&win));
}

/* ---- split: ranks of the window are not those of the job ------------------------------------------------------ */

static void case_split(void)
{
    ncclx_comm_t half;
    ncclx_win_t win;
    void *memory = NULL;
    int me, there;
    uint64_t value, back = 0;
    OK(ncclx_comm_split(NCCLX_COMM_WORLD, rank % 2, -rank, &half)); /* highest first */
    OK(ncclx_comm_rank(half, &me));
    OK(ncclx_comm_size(half, &there));
    OK(ncclx_win_allocate(sizeof value * (size_t)there, sizeof value, NCCLX_INFO_NULL, half, &memory, &win));
    OK(ncclx_comm_free(&half)); /* the window lives on */
    value = (uint64_t)rank + 100;
    for (int to = 0; to < there; to++)
        OK(ncclx_win_put_signal(&value, 1, NCCLX_UINT64, to, (size_t)me, win, 5, NCCLX_SIGNAL_ADD, 1));
    OK(ncclx_win_wait_signal(win, 5, NCCLX_CMP_EQ, (uint64_t)there, -1, NULL));
    for (int from = 0; from < there; from++) { /* members were (even or odd) world ranks, descending */
        const int world = ((size - 1 - rank % 2) / 2 - from) * 2 + rank % 2;
        CHECK(((uint64_t *)memory)[from] == (uint64_t)world + 100);
    }
    OK(ncclx_win_flush_all(win)); /* a get may overtake a put */
    OK(ncclx_win_get(&back, 1, NCCLX_UINT64, there - 1, (size_t)me, win));
    OK(ncclx_win_flush_all(win));
    CHECK(back == value);
    OK(ncclx_win_fence(win));
    OK(ncclx_win_free(&win));
}

/* ---- threads: some wait while others put ---------------------------------------------------------------------- */

#define THREADS 3
#define THREAD_ROUNDS 200

struct worker {
    ncclx_win_t win;
    const char *base;
    size_t index;
    bool waits;
};

/* Each pair of threads has a place, a slot for arrival and a slot for the answer of its own. */
static void *work(void *arg)
{
    const struct worker *worker = arg;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const size_t arrived = worker->index * 2, taken = arrived + 1;
    for (uint64_t round = 1; round <= THREAD_ROUNDS; round++) {
        if (worker->waits) {
            OK(ncclx_win_wait_signal(worker->win, arrived, NCCLX_CMP_EQ, round, -1, NULL));
            CHECK(((const volatile uint64_t *)(const void *)worker->base)[worker->index] == round * 10 + worker->index);
            OK(ncclx_win_signal(left, worker->win, taken, NCCLX_SIGNAL_SET, round));
        } else {
            const uint64_t value = round * 10 + worker->index;
            OK(ncclx_win_put_signal(&value, 1, NCCLX_UINT64, right, worker->index, worker->win, arrived, NCCLX_SIGNAL_ADD, 1));
            OK(ncclx_win_flush(right, worker->win));
            OK(ncclx_win_wait_signal(worker->win, taken, NCCLX_CMP_EQ, round, -1, NULL));
        }
    }
    return NULL;
}

static void case_threads(void)
{
    char *base;
    struct worker workers[2 * THREADS];
    pthread_t threads[2 * THREADS];
    ncclx_win_t win = allocate(sizeof(uint64_t) * THREADS, sizeof(uint64_t), (size_t)2 * THREADS, &base);
    for (size_t i = 0; i < (size_t)2 * THREADS; i++) {
        workers[i] = (struct worker){.win = win, .base = base, .index = i / 2, .waits = i % 2};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < (size_t)2 * THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(ncclx_win_free(&win));
}

/* ---- errors: wrong use is told, and the window stays usable -------------------------------------------------- */

static void case_errors(void)
{
    char *base;
    uint64_t word = 5, seen = 0;
    ncclx_win_t win = allocate(64, 8, 2, &base), none = NCCLX_WIN_NULL;
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    FAILS(ncclx_win_put(&word, 1, NCCLX_UINT64, size, 0, win), NCCLX_ERR_RANK);
    FAILS(ncclx_win_put(&word, 1, (ncclx_datatype_t)99, 0, 0, win), NCCLX_ERR_TYPE);
    FAILS(ncclx_win_put(&word, SIZE_MAX / 4, NCCLX_UINT64, 0, 0, win), NCCLX_ERR_COUNT);
    FAILS(ncclx_win_put(NULL, 1, NCCLX_UINT64, 0, 0, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_put(&word, 1, NCCLX_UINT64, 0, 0, none), NCCLX_ERR_WIN);
    CHECK(ncclx_win_signal(0, win, 0, (ncclx_signal_op_t)7, 1) != NCCLX_SUCCESS);
    FAILS(ncclx_win_wait_signal(win, 2, NCCLX_CMP_EQ, 0, 0, NULL), NCCLX_ERR_RANGE);
    FAILS(ncclx_win_wait_signal(win, 0, NCCLX_CMP_GT, 0, 1000, &seen), NCCLX_ERR_TIMEOUT);
    OK(ncclx_win_put(&word, 1, NCCLX_UINT64, NCCLX_PROC_NULL, 99, win));
    OK(ncclx_win_signal(NCCLX_PROC_NULL, win, 99, NCCLX_SIGNAL_ADD, 1));
    FAILS(ncclx_win_unlock_all(win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_lock_all(win));
    FAILS(ncclx_win_lock_all(win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_unlock_all(win));
    if (rank == size - 1) OK(ncclx_win_put(&word, 1, NCCLX_UINT64, 0, 1, win));
    FAILS(ncclx_win_free(&win), NCCLX_ERR_RMA_SYNC);
    CHECK(win != NCCLX_WIN_NULL);
    OK(ncclx_win_fence(win));
    if (rank == 0) CHECK(((uint64_t *)(void *)base)[1] == 5);
    OK(ncclx_win_free(&win));
    /* One rank's mistake: nobody gets a window. */
    void *memory = NULL;
    CHECK(ncclx_win_allocate(64, rank == size - 1 ? 0 : 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &memory, &win) != NCCLX_SUCCESS);
    CHECK(win == NCCLX_WIN_NULL);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
}

/* ---- many: windows come and go, several at once --------------------------------------------------------------- */

static void case_many(uint64_t rounds)
{
    ncclx_win_t wins[3];
    char *bases[3];
    for (uint64_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 3; i++) wins[i] = allocate(64, 8, 1, &bases[i]);
        for (int i = 0; i < 3; i++) {
            const uint64_t value = round * 10 + (uint64_t)i;
            OK(ncclx_win_put_signal(&value, 1, NCCLX_UINT64, (rank + 1) % size, 2, wins[i], 0, NCCLX_SIGNAL_ADD, 1));
            OK(ncclx_win_flush_all(wins[i]));
        }
        for (int i = 2; i >= 0; i--) {
            OK(ncclx_win_wait_signal(wins[i], 0, NCCLX_CMP_EQ, 1, -1, NULL));
            CHECK(((uint64_t *)(void *)bases[i])[2] == round * 10 + (uint64_t)i);
            OK(ncclx_win_free(&wins[i]));
        }
    }
}

/* ---- cost: time of put + flush, for people -------------------------------------------------------------------- */

static void cost_of(ncclx_win_t win, size_t bytes, const char *kind)
{
    enum { ROUNDS = 20000 };
    char *out = need(bytes);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    const double start = ncclx_wtime();
    for (int i = 0; rank == 0 && i < ROUNDS; i++) {
        OK(ncclx_win_put(out, bytes, NCCLX_BYTE, size - 1, 0, win));
        OK(ncclx_win_flush(size - 1, win));
    }
    if (rank == 0) printf("%s %zu bytes: put + flush %.3f us\n", kind, bytes, (ncclx_wtime() - start) / ROUNDS * 1e6);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    free(out);
}

static void case_cost(void)
{
    char *base, *own = need(65536);
    ncclx_win_t win = allocate(65536, 1, 1, &base);
    for (size_t bytes = 8; bytes <= 65536; bytes *= 8) cost_of(win, bytes, "allocated");
    OK(ncclx_win_free(&win));
    OK(ncclx_win_create(own, 65536, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    for (size_t bytes = 8; bytes <= 65536; bytes *= 8) cost_of(win, bytes, "created");
    OK(ncclx_win_free(&win));
    free(own);
}

int main(int argc, char **argv)
{
    int provided;
    const bool threads = argc > 1 && !strcmp(argv[1], "threads");
    OK(ncclx_init_thread(&argc, &argv, threads ? NCCLX_THREAD_MULTIPLE : NCCLX_THREAD_SINGLE, &provided));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    const char *name = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!strcmp(name, "put")) case_put();
    else if (!strcmp(name, "signal")) case_signal(number);
    else if (!strcmp(name, "counter")) case_counter(number);
    else if (!strcmp(name, "passive")) case_passive();
    else if (!strcmp(name, "busy")) case_busy(number);
    else if (!strcmp(name, "unlike")) case_unlike();
    else if (!strcmp(name, "shapes")) case_shapes();
    else if (!strcmp(name, "split")) case_split();
    else if (!strcmp(name, "threads")) case_threads();
    else if (!strcmp(name, "errors")) case_errors();
    else if (!strcmp(name, "many")) case_many(number);
    else if (!strcmp(name, "cost")) case_cost();
    else check_failed(__FILE__, __LINE__, "no such case");
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
