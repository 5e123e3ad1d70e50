/* window_atomics.c - atomic operations on windows between processes: window_atomics CASE [NUMBER]. Prints nothing but "ok RANKS". Each case
 * runs on a window that allocates, and on one made of the program's memory. */
#include "tests/mp/window.h"

#include <pthread.h>

typedef void (*window_case)(ncclx_win_t win, char *base, uint64_t number);

/* ---- values: every operation on every type does what ncclx_reduce_local does --------------------------------- */

#define ELEMENTS 37

static void fill(unsigned char *bytes, size_t count, ncclx_datatype_t type, unsigned seed)
{
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i * 7 + seed * 31 + 1);
    size_t element = 0;
    OK(ncclx_type_size(type, &element));
    for (size_t i = 0; i < count / element; i++) { /* numbers, not NaNs */
        double real = (double)((i + seed) % 9) - 3;
        float single = (float)real;
        if (type == NCCLX_FLOAT || type == NCCLX_FLOAT_PAIR) memcpy(bytes + i * element, &single, sizeof single);
        if (type == NCCLX_DOUBLE || type == NCCLX_DOUBLE_PAIR) memcpy(bytes + i * element, &real, sizeof real);
        if (type == NCCLX_FP16 || type == NCCLX_BF16) bytes[i * element + 1] = 0x3c;
        if (type == NCCLX_FP8_E4M3 || type == NCCLX_FP8_E5M2) bytes[i * element] = (unsigned char)(0x30 + (i + seed) % 8);
    }
}

static void try_value(ncclx_win_t win, ncclx_datatype_t type, ncclx_op_t op, int target, size_t place)
{
    unsigned char before[ELEMENTS * 16], mine[ELEMENTS * 16], after[ELEMENTS * 16], back[ELEMENTS * 16], expected[ELEMENTS * 16];
    size_t element = 0;
    OK(ncclx_type_size(type, &element));
    const size_t bytes = ELEMENTS * element;
    fill(before, bytes, type, 1);
    fill(mine, bytes, type, 2);
    const bool special = op == NCCLX_REPLACE || op == NCCLX_NO_OP;
    memcpy(expected, mine, bytes);
    if (op == NCCLX_NO_OP) memcpy(expected, before, bytes);
    if (!special && ncclx_reduce_local(before, expected, ELEMENTS, type, op) != NCCLX_SUCCESS) {
        CHECK(ncclx_win_accumulate(mine, ELEMENTS, type, op, target, place, win) != NCCLX_SUCCESS);
        return;
    }
    OK(ncclx_win_put(before, bytes, NCCLX_BYTE, target, place, win));
    OK(ncclx_win_flush(target, win));
    memset(back, 0xee, sizeof back);
    OK(ncclx_win_get_accumulate(op == NCCLX_NO_OP ? NULL : mine, back, ELEMENTS, type, op, target, place, win));
    OK(ncclx_win_flush(target, win));
    CHECK(memcmp(back, before, bytes) == 0);
    OK(ncclx_win_get(after, bytes, NCCLX_BYTE, target, place, win));
    OK(ncclx_win_flush(target, win));
    CHECK(memcmp(after, expected, bytes) == 0);
    if (op == NCCLX_NO_OP) return;
    OK(ncclx_win_put(before, bytes, NCCLX_BYTE, target, place, win));
    OK(ncclx_win_flush(target, win));
    OK(ncclx_win_accumulate(mine, ELEMENTS, type, op, target, place, win));
    OK(ncclx_win_get_accumulate(NULL, after, ELEMENTS, type, NCCLX_NO_OP, target, place, win));
    OK(ncclx_win_flush(target, win));
    CHECK(memcmp(after, expected, bytes) == 0);
}

static void values(ncclx_win_t win, char *base, uint64_t number)
{
    (void)base, (void)number;
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    for (int type = NCCLX_INT8; type <= NCCLX_DOUBLE_PAIR; type++)
        for (size_t op = 1; op <= 15; op++) /* NCCLX_SUM ... NCCLX_NO_OP */
            try_value(win, (ncclx_datatype_t)type, (ncclx_op_t)op, (rank + 1) % size, (size_t)rank * 1024 + (op % 2 ? 0 : 3));
}

/* ---- shared: all ranks change the same elements of every rank ------------------------------------------------ */

enum { AT_TICKET = 0, AT_SWAP = 8, AT_SMALL = 16, AT_FLOATS = 64, AT_ODD = 201, AT_PAIR = 304, AT_MAX = 400 };

static void swap_up(ncclx_win_t win, int to)
{
    for (uint32_t expected = 0, old = 0;; expected = old) {
        const uint32_t next = expected + 1;
        OK(ncclx_win_compare_swap(&next, &expected, &old, NCCLX_UINT32, to, AT_SWAP, win));
        OK(ncclx_win_flush(to, win));
        if (old == expected) return;
    }
}

/* A pair that everybody writes whole is never seen half written. */
static void look_at_pair(ncclx_win_t win, int to, int64_t round)
{
    const int64_t mine[2] = {round * size + rank, round * size + rank};
    int64_t seen[2] = {0, 1};
    OK(ncclx_win_get_accumulate(mine, seen, 1, NCCLX_INT64_PAIR, round % 2 ? NCCLX_REPLACE : NCCLX_NO_OP, to, AT_PAIR, win));
    OK(ncclx_win_flush(to, win));
    CHECK(seen[0] == seen[1]);
}

static void change_all(ncclx_win_t win, int to, int64_t round, int64_t *last)
{
    const int64_t one = 1;
    const uint8_t small[5] = {1, 1, 1, 1, 1};
    const float floats[3] = {1, 2, 3};
    const struct {
        double value;
        int64_t index;
    } most = {(double)(round % 50 * size + rank), rank};
    int64_t ticket = -1;
    OK(ncclx_win_fetch_op(&one, &ticket, NCCLX_INT64, NCCLX_SUM, to, AT_TICKET, win));
    OK(ncclx_win_accumulate(small, 5, NCCLX_UINT8, NCCLX_SUM, to, AT_SMALL, win));
    OK(ncclx_win_accumulate(floats, 3, NCCLX_FLOAT, NCCLX_SUM, to, AT_FLOATS, win));
    OK(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_SUM, to, AT_ODD, win));
    OK(ncclx_win_accumulate(&most, 1, NCCLX_DOUBLE_PAIR, NCCLX_MAXLOC, to, AT_MAX, win));
    OK(ncclx_win_flush(to, win));
    CHECK(ticket > *last);
    *last = ticket;
}

static void shared(ncclx_win_t win, char *base, uint64_t rounds)
{
    int64_t *last = need(sizeof(int64_t) * (size_t)size), odd;
    for (int to = 0; to < size; to++) last[to] = -1;
    for (uint64_t round = 0; round < rounds; round++)
        for (int i = 0; i < size; i++) {
            const int to = (rank + i) % size;
            change_all(win, to, (int64_t)round, &last[to]);
            swap_up(win, to);
            look_at_pair(win, to, (int64_t)round);
        }
    OK(ncclx_win_fence(win));
    const int64_t all = (int64_t)rounds * size;
    memcpy(&odd, base + AT_ODD, sizeof odd);
    CHECK(*(int64_t *)(void *)(base + AT_TICKET) == all);
    CHECK(*(uint32_t *)(void *)(base + AT_SWAP) == (uint32_t)all);
    CHECK(odd == all);
    for (int i = 0; i < 5; i++) CHECK((uint8_t)base[AT_SMALL + i] == (uint8_t)all);
    for (int i = 0; i < 3; i++) CHECK(((float *)(void *)(base + AT_FLOATS))[i] == (float)(all * (i + 1)));
    const double most = (double)((int64_t)(rounds < 50 ? rounds - 1 : 49) * size + size - 1);
    CHECK(*(double *)(void *)(base + AT_MAX) == most && *(int64_t *)(void *)(base + AT_MAX + 8) == size - 1);
    OK(ncclx_win_fence(win));
    free(last);
}

/* ---- large: many pieces of a message, and more than a chunk under the lock ----------------------------------- */

#define LARGE 30000

static void large(ncclx_win_t win, char *base, uint64_t number)
{
    uint32_t *mine = need(sizeof(uint32_t) * LARGE), *old = need(sizeof(uint32_t) * LARGE);
    (void)number;
    for (uint32_t i = 0; i < LARGE; i++) mine[i] = i + 1;
    for (int to = 0; to < size; to++) {
        OK(ncclx_win_accumulate(mine, LARGE, NCCLX_UINT32, NCCLX_SUM, to, 0, win));
        OK(ncclx_win_get_accumulate(mine, old, LARGE, NCCLX_UINT32, NCCLX_SUM, to, 0, win));
        OK(ncclx_win_signal(to, win, 0, NCCLX_SIGNAL_ADD, 1)); /* after both */
        OK(ncclx_win_flush(to, win));
        for (uint32_t i = 0; i < LARGE; i++) CHECK(old[i] % (i + 1) == 0 && old[i] >= i + 1);
    }
    OK(ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, (uint64_t)size, -1, NULL));
    for (uint32_t i = 0; i < LARGE; i++) CHECK(((uint32_t *)(void *)base)[i] == 2 * (uint32_t)size * (i + 1));
    OK(ncclx_win_fence(win));
    free(mine);
    free(old);
}

/* ---- threads: several of each rank ---------------------------------------------------------------------------- */

#define THREADS 3

struct worker {
    ncclx_win_t win;
    uint64_t rounds;
};

static void *work(void *arg)
{
    const struct worker *worker = arg;
    const int64_t one = 1, pair[2] = {1, 0};
    for (uint64_t round = 0; round < worker->rounds; round++) {
        int64_t old;
        OK(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, 0, 0, worker->win));
        OK(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_SUM, 0, 17, worker->win));
        OK(ncclx_win_accumulate(pair, 1, NCCLX_INT64_PAIR, NCCLX_MAXLOC, 0, 32, worker->win));
        OK(ncclx_win_flush(0, worker->win));
    }
    return NULL;
}

static void threads(ncclx_win_t win, char *base, uint64_t rounds)
{
    pthread_t thread[THREADS];
    struct worker worker = {.win = win, .rounds = rounds};
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, work, &worker) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    OK(ncclx_win_fence(win));
    int64_t odd, all = (int64_t)rounds * THREADS * size;
    memcpy(&odd, base + 17, sizeof odd);
    if (rank == 0) CHECK(*(int64_t *)(void *)base == all && odd == all && *(int64_t *)(void *)(base + 32) == 1);
    OK(ncclx_win_fence(win));
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void add(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    (void)in, (void)inout, (void)count, (void)type, (void)user;
}

static void errors(ncclx_win_t win, char *base, uint64_t number)
{
    int64_t one = 1, old = 0;
    ncclx_op_t own;
    (void)base, (void)number;
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_op_create(add, 1, NULL, &own));
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, own, 0, 0, win), NCCLX_ERR_OP);
    OK(ncclx_op_free(&own));
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_AVG, 0, 0, win), NCCLX_ERR_OP);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_NO_OP, 0, 0, win), NCCLX_ERR_OP);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_OP_NULL, 0, 0, win), NCCLX_ERR_OP);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, (ncclx_op_t)16, 0, 0, win), NCCLX_ERR_OP);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_DOUBLE, NCCLX_BXOR, 0, 0, win), NCCLX_ERR_TYPE);
    FAILS(ncclx_win_accumulate(NULL, 1, NCCLX_INT64, NCCLX_SUM, 0, 0, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_accumulate(&one, SIZE_MAX / 4, NCCLX_INT64, NCCLX_SUM, 0, 0, win), NCCLX_ERR_COUNT);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_SUM, size, 0, win), NCCLX_ERR_RANK);
    FAILS(ncclx_win_accumulate(&one, 1, NCCLX_INT64, NCCLX_SUM, 0, SIZE_MAX, win), NCCLX_ERR_RANGE);
    FAILS(ncclx_win_fetch_op(NULL, &old, NCCLX_INT64, NCCLX_SUM, 0, 0, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_fetch_op(&one, NULL, NCCLX_INT64, NCCLX_SUM, 0, 0, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_compare_swap(&one, NULL, &old, NCCLX_INT64, 0, 0, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_compare_swap(&one, &one, &old, (ncclx_datatype_t)77, 0, 0, win), NCCLX_ERR_TYPE);
    FAILS(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, 0, 0, NCCLX_WIN_NULL), NCCLX_ERR_WIN);
    OK(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, NCCLX_PROC_NULL, 9, win));
    OK(ncclx_win_accumulate(&one, 0, NCCLX_INT64, NCCLX_SUM, 0, 0, win));
    FAILS(ncclx_reduce_local(&one, &old, 1, NCCLX_INT64, NCCLX_REPLACE), NCCLX_ERR_OP);
    FAILS(ncclx_coll_allreduce(&one, &old, 1, NCCLX_INT64, NCCLX_NO_OP, NCCLX_COMM_WORLD), NCCLX_ERR_OP);
    OK(ncclx_win_fence(win));
    OK(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, 0, 0, win));
    FAILS(ncclx_win_free(&win), NCCLX_ERR_RMA_SYNC); /* in flight, on all ranks */
    OK(ncclx_win_flush_all(win));
}

/* ---- cost, for people ------------------------------------------------------------------------------------------ */

static void cost(ncclx_win_t win, char *base, uint64_t number)
{
    enum { ROUNDS = 20000 };
    int64_t one = 1, old;
    (void)base, (void)number;
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    const double start = ncclx_wtime();
    for (int i = 0; rank == 0 && i < ROUNDS; i++) {
        OK(ncclx_win_fetch_op(&one, &old, NCCLX_INT64, NCCLX_SUM, size - 1, 0, win));
        OK(ncclx_win_flush(size - 1, win));
    }
    if (rank == 0) printf("fetch_op + flush %.3f us\n", (ncclx_wtime() - start) / ROUNDS * 1e6);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
}

static void on_both(window_case run, uint64_t number)
{
    const size_t bytes = LARGE * sizeof(uint32_t);
    char *base, *own = need(bytes);
    ncclx_win_t win = allocate(bytes, 1, 2, &base);
    run(win, base, number);
    OK(ncclx_win_free(&win));
    OK(ncclx_win_create(own, bytes, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    run(win, own, number);
    OK(ncclx_win_free(&win));
    free(own);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        window_case run;
    } cases[] = {{"values", values}, {"shared", shared}, {"large", large}, {"threads", threads}, {"errors", errors}, {"cost", cost}};
    const char *name = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int provided;
    window_case run = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(name, cases[i].name)) run = cases[i].run;
    CHECK(run != NULL);
    OK(ncclx_init_thread(&argc, &argv, run == threads ? NCCLX_THREAD_MULTIPLE : NCCLX_THREAD_SINGLE, &provided));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    on_both(run, number);
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
