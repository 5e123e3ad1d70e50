/* window_epochs.c - locks and epochs of windows between processes: window_epochs CASE [NUMBER]. Prints nothing but
 * "ok RANKS". Each case runs on a window that allocates, and on one made of the program's memory. */
#include "tests/mp/window.h"

#include <pthread.h>
#include <sched.h>

#define WORDS 64

typedef void (*window_case)(ncclx_win_t win, uint64_t *base, uint64_t number);

/* ---- locks: two words that are read, added to and written are always alike -------------------------------------- */

static void look(ncclx_win_t win, int to, uint64_t *words)
{
    OK(ncclx_win_get(words, 2, NCCLX_UINT64, to, 0, win));
    OK(ncclx_win_flush(to, win));
    CHECK(words[0] == words[1]);
}

static void locks(ncclx_win_t win, uint64_t *base, uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++) {
        const int to = (int)((round + (uint64_t)rank) % (uint64_t)size);
        uint64_t words[2] = {0, 1};
        if (round % 8 == 3) {
            OK(ncclx_win_lock_all(win));
            for (int i = 0; i < size; i++) look(win, i, words);
            OK(ncclx_win_unlock_all(win));
        }
        OK(ncclx_win_lock(NCCLX_LOCK_SHARED, to, win));
        look(win, to, words);
        OK(ncclx_win_unlock(to, win));
        OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, to, win));
        look(win, to, words);
        words[0]++;
        OK(ncclx_win_put(&words[0], 1, NCCLX_UINT64, to, 0, win));
        OK(ncclx_win_flush(to, win));
        OK(ncclx_win_put(&words[0], 1, NCCLX_UINT64, to, 1, win)); /* completed by unlock */
        OK(ncclx_win_unlock(to, win));
    }
    OK(ncclx_win_fence(win));
    uint64_t expected = 0;
    for (int from = 0; from < size; from++)
        for (uint64_t round = 0; round < rounds; round++) expected += (int)((round + (uint64_t)from) % (uint64_t)size) == rank;
    CHECK(base[0] == expected && base[1] == expected);
    OK(ncclx_win_fence(win));
}

/* ---- threads: those of one rank are the first to use targets together, while other ranks hold exclusive locks ------ */

#define THREADS 3

struct worker {
    ncclx_win_t win;
    uint64_t rounds;
    pthread_barrier_t meeting;
};

/* Of all threads; true for one. */
static bool meet(struct worker *worker)
{
    return pthread_barrier_wait(&worker->meeting) != 0;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    const int right = (rank + 1) % size;
    const uint64_t one = 1;
    for (uint64_t round = 0; round < worker->rounds; round++) {
        if (meet(worker)) OK(ncclx_win_lock_all(worker->win));
        (void)meet(worker);
        for (int i = 0; i < size; i++)
            OK(ncclx_win_accumulate(&one, 1, NCCLX_UINT64, NCCLX_SUM, (rank + i) % size, 30, worker->win));
        if (!meet(worker)) continue;
        OK(ncclx_win_unlock_all(worker->win));
        OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, right, worker->win));
        OK(ncclx_win_put(&round, 1, NCCLX_UINT64, right, 31, worker->win));
        OK(ncclx_win_unlock(right, worker->win));
    }
    return NULL;
}

static void threads(ncclx_win_t win, uint64_t *base, uint64_t rounds)
{
    pthread_t thread[THREADS];
    struct worker worker = {.win = win, .rounds = rounds};
    CHECK(pthread_barrier_init(&worker.meeting, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, work, &worker) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    pthread_barrier_destroy(&worker.meeting);
    OK(ncclx_win_fence(win));
    CHECK(base[30] == rounds * THREADS * (uint64_t)size && base[31] == rounds - 1);
    OK(ncclx_win_fence(win));
}

/* ---- passive: rank 0 locks, changes and unlocks the others, who compute ------------------------------------------ */

static void passive(ncclx_win_t win, uint64_t *base, uint64_t number)
{
    volatile uint64_t *mine = base;
    const uint64_t one = 1;
    (void)number;
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == 0) {
        for (int to = 1; to < size; to++)
            for (size_t i = 0; i < 2; i++) {
                OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, to, win));
                OK(ncclx_win_put(&one, 1, NCCLX_UINT64, to, 2 + i, win));
                OK(ncclx_win_unlock(to, win));
            }
    } else {
        while (mine[3] == 0) sched_yield();
        CHECK(mine[2] == 1);
    }
    OK(ncclx_win_fence(win));
}

/* ---- groups: each rank posts to its neighbours, and puts to them -------------------------------------------------- */

static ncclx_group_t neighbours(ncclx_win_t win, int first, int second)
{
    ncclx_group_t all, some;
    const int ranks[2] = {first, second};
    OK(ncclx_win_group(win, &all));
    OK(ncclx_group_incl(all, first == second ? 1 : 2, ranks, &some));
    OK(ncclx_group_free(&all));
    return some;
}

static void groups(ncclx_win_t win, uint64_t *base, uint64_t rounds)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    ncclx_group_t group = neighbours(win, left, right);
    for (uint64_t round = 1; round <= rounds; round++) {
        const uint64_t value = round * 100 + (uint64_t)rank;
        int over = 0;
        OK(ncclx_win_post(group, win));
        OK(ncclx_win_start(group, win));
        OK(ncclx_win_put(&value, 1, NCCLX_UINT64, right, 10, win));
        OK(ncclx_win_put(&value, 1, NCCLX_UINT64, left, 11, win));
        OK(ncclx_win_complete(win));
        if (round % 2) OK(ncclx_win_wait(win));
        else while (!over) OK(ncclx_win_test(win, &over));
        CHECK(base[10] == round * 100 + (uint64_t)left && base[11] == round * 100 + (uint64_t)right);
    }
    OK(ncclx_group_free(&group));
}

/* Rank 0 is opened by all the others one after the other, which it is alone to access. */
static void star(ncclx_win_t win, uint64_t *base, uint64_t rounds)
{
    for (uint64_t round = 1; round <= rounds; round++) {
        if (rank == 0) {
            for (int to = 1; to < size; to++) {
                ncclx_group_t one = neighbours(win, to, to);
                OK(ncclx_win_start(one, win));
                OK(ncclx_win_put(&round, 1, NCCLX_UINT64, to, 20, win));
                OK(ncclx_win_complete(win));
                OK(ncclx_group_free(&one));
            }
        } else {
            ncclx_group_t zero = neighbours(win, 0, 0);
            OK(ncclx_win_post(zero, win));
            OK(ncclx_win_wait(win));
            CHECK(base[20] == round);
            OK(ncclx_group_free(&zero));
        }
    }
    OK(ncclx_win_post(NCCLX_GROUP_EMPTY, win));
    OK(ncclx_win_start(NCCLX_GROUP_EMPTY, win));
    OK(ncclx_win_complete(win));
    OK(ncclx_win_wait(win));
}

/* ---- errors: wrong order is told ---------------------------------------------------------------------------------- */

static void wrong_groups(ncclx_win_t win)
{
    ncclx_group_t self, freed;
    uint64_t word = 1;
    int over = 0;
    OK(ncclx_comm_group(NCCLX_COMM_SELF, &self));
    OK(ncclx_comm_group(NCCLX_COMM_SELF, &freed));
    const ncclx_group_t dead = freed;
    OK(ncclx_group_free(&freed));
    FAILS(ncclx_win_post(dead, win), NCCLX_ERR_GROUP);
    FAILS(ncclx_win_complete(win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_wait(win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_test(win, &over), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_post(self, win));
    FAILS(ncclx_win_post(self, win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_fence(win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_test(win, &over));
    CHECK(over == 0);
    OK(ncclx_win_start(self, win));
    FAILS(ncclx_win_start(self, win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_lock(NCCLX_LOCK_SHARED, rank, win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_lock_all(win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_put(&word, 1, NCCLX_UINT64, rank, 0, win));
    if (size > 1) FAILS(ncclx_win_put(&word, 1, NCCLX_UINT64, (rank + 1) % size, 0, win), NCCLX_ERR_RMA_SYNC);
    if (size > 1) FAILS(ncclx_win_signal((rank + 1) % size, win, 0, NCCLX_SIGNAL_ADD, 1), NCCLX_ERR_RMA_SYNC);
    ncclx_win_t same = win;
    FAILS(ncclx_win_free(&same), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_complete(win));
    OK(ncclx_win_wait(win));
    if (size > 1) OK(ncclx_win_put(&word, 1, NCCLX_UINT64, (rank + 1) % size, 0, win));
    OK(ncclx_win_fence(win));
    OK(ncclx_group_free(&self));
}

static void errors(ncclx_win_t win, uint64_t *base, uint64_t number)
{
    uint64_t word = 1;
    const int next = (rank + 1) % size;
    (void)base, (void)number;
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    FAILS(ncclx_win_unlock(next, win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_lock(7, next, win), NCCLX_ERR_ARG);
    FAILS(ncclx_win_lock(NCCLX_LOCK_SHARED, size, win), NCCLX_ERR_RANK);
    FAILS(ncclx_win_lock(NCCLX_LOCK_SHARED, 0, NCCLX_WIN_NULL), NCCLX_ERR_WIN);
    OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, NCCLX_PROC_NULL, win));
    OK(ncclx_win_unlock(NCCLX_PROC_NULL, win));
    OK(ncclx_win_lock(NCCLX_LOCK_SHARED, next, win));
    FAILS(ncclx_win_lock(NCCLX_LOCK_SHARED, next, win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_lock_all(win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_fence(win), NCCLX_ERR_RMA_SYNC);
    FAILS(ncclx_win_start(NCCLX_GROUP_EMPTY, win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_put(&word, 1, NCCLX_UINT64, next, 0, win));
    ncclx_win_t same = win;
    FAILS(ncclx_win_free(&same), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_unlock(next, win));
    OK(ncclx_win_lock_all(win));
    FAILS(ncclx_win_lock(NCCLX_LOCK_SHARED, next, win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_put(&word, 1, NCCLX_UINT64, next, 0, win));
    FAILS(ncclx_win_unlock(next, win), NCCLX_ERR_RMA_SYNC);
    OK(ncclx_win_unlock_all(win));
    OK(ncclx_win_sync(win));
    OK(ncclx_win_fence(win));
    wrong_groups(win);
}

/* ---- query: sizes, units, and memory that is mapped here ----------------------------------------------------------- */

static void query(ncclx_win_t win, uint64_t *base, uint64_t number)
{
    (void)number;
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    base[5] = (uint64_t)rank + 7;
    OK(ncclx_win_fence(win));
    for (int other = 0; other < size; other++) {
        size_t bytes = 0, unit = 0;
        void *there = NULL;
        OK(ncclx_win_shared_query(win, other, &bytes, &unit, &there));
        CHECK(bytes == WORDS * sizeof(uint64_t) && unit == sizeof(uint64_t));
        if (there) CHECK(((uint64_t *)there)[5] == (uint64_t)other + 7);
        if (other == rank) CHECK(there == base);
    }
    OK(ncclx_win_shared_query(win, 0, NULL, NULL, NULL));
    FAILS(ncclx_win_shared_query(win, size, NULL, NULL, NULL), NCCLX_ERR_RANK);
    ncclx_group_t group;
    int members = 0;
    OK(ncclx_win_group(win, &group));
    OK(ncclx_group_size(group, &members));
    CHECK(members == size);
    OK(ncclx_group_free(&group));
    OK(ncclx_win_fence(win));
}

/* ---- cost, for people ----------------------------------------------------------------------------------------------- */

static void cost(ncclx_win_t win, uint64_t *base, uint64_t number)
{
    enum { ROUNDS = 20000 };
    (void)base, (void)number;
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    const double start = ncclx_wtime();
    for (int i = 0; rank == 0 && i < ROUNDS; i++) {
        OK(ncclx_win_lock(NCCLX_LOCK_EXCLUSIVE, size - 1, win));
        OK(ncclx_win_unlock(size - 1, win));
    }
    if (rank == 0) printf("lock + unlock %.3f us\n", (ncclx_wtime() - start) / ROUNDS * 1e6);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
}

static void on_both(window_case run, uint64_t number)
{
    char *base;
    uint64_t *own = need(WORDS * sizeof *own);
    ncclx_win_t win = allocate(WORDS * sizeof *own, sizeof *own, 2, &base);
    run(win, (uint64_t *)(void *)base, number);
    OK(ncclx_win_free(&win));
    OK(ncclx_win_create(own, WORDS * sizeof *own, sizeof *own, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    run(win, own, number);
    OK(ncclx_win_free(&win));
    free(own);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        window_case run;
    } cases[] = {{"locks", locks}, {"threads", threads}, {"passive", passive}, {"groups", groups},
                 {"star", star},   {"errors", errors},   {"query", query},     {"cost", cost}};
    const char *name = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    window_case run = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(name, cases[i].name)) run = cases[i].run;
    CHECK(run != NULL);
    OK(ncclx_init_thread(&argc, &argv, run == threads ? NCCLX_THREAD_MULTIPLE : NCCLX_THREAD_SINGLE, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    on_both(run, number);
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
