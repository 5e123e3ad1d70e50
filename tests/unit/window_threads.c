/* window_threads.c - several threads of a rank on one window, and calls that are repeated after a deadline, over the stand-in for pml. Rank 0
 * does all this to rank 2, which rank 1 locks meanwhile. */
#include "tests/unit/window_world.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SHORT_NS UINT64_C(5000000) /* for what nobody answers */
#define LONG_NS UINT64_C(20000000000) /* nothing should take as long */

/* ---- Threads ------------------------------------------------------------------------------------------------- */

struct helper {
    pthread_t thread;
    struct ncclx_win *win;
    int (*call)(struct ncclx_win *win, int number);
    int number, error;
};

static void *run_helper(void *arg)
{
    struct helper *helper = arg;
    struct ncclx_rt *rt = helper->win->rt;
    base_rt_lock(rt);
    helper->error = helper->call(helper->win, helper->number);
    base_rt_unlock(rt);
    return NULL;
}

/* It begins when the caller waits. */
static void start(struct helper *helper, struct ncclx_win *win, int (*call)(struct ncclx_win *win, int number), int number)
{
    *helper = (struct helper){.win = win, .call = call, .number = number};
    EXPECT(pthread_create(&helper->thread, NULL, run_helper, helper) == 0);
}

static int end(struct helper *helper)
{
    base_rt_unlock(helper->win->rt);
    pthread_join(helper->thread, NULL);
    base_rt_lock(helper->win->rt);
    return helper->error;
}

/* Until so many threads of a rank, whose lock the caller does not hold, wait for something, and have a deadline. */
static void await_waits(struct ncclx_rt *rt, unsigned count)
{
    const uint64_t end = base_clock_ns() + LONG_NS;
    for (unsigned waiting = 0; waiting < count;) {
        EXPECT(base_clock_ns() < end);
        sched_yield();
        base_rt_lock(rt);
        waiting = 0;
        for (const struct base_wait *wait = rt->waiting; wait; wait = wait->next) waiting += wait->deadline_ns != 0;
        base_rt_unlock(rt);
    }
}

/* The same of the caller's own rank. */
static void await_own_waits(struct ncclx_rt *rt, unsigned count)
{
    base_rt_unlock(rt);
    await_waits(rt, count);
    base_rt_lock(rt);
}

/* The deadline of the wait that began first is over. */
static void end_first_wait(struct ncclx_rt *rt)
{
    struct base_wait *wait = rt->waiting;
    while (wait->next) wait = wait->next;
    wait->deadline_ns = 1;
}

/* A window of a rank that may have several threads. */
static struct ncclx_win *threaded_window(struct rank *rank, char **base)
{
    rank->rt.threaded = true; /* from now on run_rank holds the lock */
    base_rt_lock(&rank->rt);
    rank->rt.timeout_ns = LONG_NS;
    return make_window(rank, NULL, 64, 8, base);
}

/* Nothing was out of order, and no lock is left: every rank gets each for itself. */
static void end_window(struct rank *rank, struct ncclx_win *win)
{
    meet(&rank->comm);
    for (int to = 0; to < RANKS; to++)
        EXPECT(osc_lock(win, NCCLX_LOCK_EXCLUSIVE, to) == NCCLX_SUCCESS && osc_unlock(win, to) == NCCLX_SUCCESS);
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    EXPECT(pml_standin.breaches == 0);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static const uint64_t words[] = {100, 101, 102};

static int put_word(struct ncclx_win *win, int number)
{
    int error = osc_put(win, &words[number], sizeof words[0], 2, (size_t)number);
    return error ? error : osc_flush(win, 2);
}

static int lock_exclusive(struct ncclx_win *win, int target)
{
    return osc_lock(win, NCCLX_LOCK_EXCLUSIVE, target);
}

/* ---- The first use of a target -------------------------------------------------------------------------------- */

static pthread_barrier_t both;

/* Each of the two threads finds no target, and makes one. */
static void attach_together(struct ncclx_rt *rt, int peer)
{
    if (rt != &ranks[0].rt || peer != 2) return;
    base_rt_unlock(rt);
    pthread_barrier_wait(&both);
    base_rt_lock(rt);
}

static void first_use(struct rank *rank)
{
    char *base;
    struct helper helper[2];
    struct ncclx_win *win = threaded_window(rank, &base);
    if (rank->comm.rank == 0) {
        unsigned found = 0;
        for (int i = 0; i < 2; i++) start(&helper[i], win, put_word, i + 1);
        for (int i = 0; i < 2; i++) EXPECT(end(&helper[i]) == NCCLX_SUCCESS);
        for (const struct osc_target *target = osc_window_of(win)->used; target; target = target->next) found += target->rank == 2;
        EXPECT(found == 1);
    }
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    if (rank->comm.rank == 2) EXPECT(memcmp(base + 8, &words[1], 16) == 0);
    end_window(rank, win);
}

/* ---- Locks ---------------------------------------------------------------------------------------------------- */

/* A window in which rank 1 has locked the target. */
static struct ncclx_win *locked_window(struct rank *rank)
{
    char *base;
    struct ncclx_win *win = threaded_window(rank, &base);
    if (rank->comm.rank == 1) EXPECT(lock_exclusive(win, 2) == NCCLX_SUCCESS);
    meet(&rank->comm);
    return win;
}

/* Both threads are the first to use the target, and have to wait for it. */
static void lock_once(struct rank *rank)
{
    struct helper helper[2];
    const int me = rank->comm.rank;
    struct ncclx_win *win = locked_window(rank);
    if (me == 1) {
        await_waits(&ranks[0].rt, 2);
        EXPECT(osc_unlock(win, 2) == NCCLX_SUCCESS);
    }
    if (me == 0) {
        EXPECT(osc_lock_all(win) == NCCLX_SUCCESS);
        for (int i = 0; i < 2; i++) start(&helper[i], win, put_word, i + 1);
        for (int i = 0; i < 2; i++) EXPECT(end(&helper[i]) == NCCLX_SUCCESS);
        EXPECT(osc_window_of(win)->locks == 1);
        EXPECT(osc_unlock_all(win) == NCCLX_SUCCESS);
    }
    end_window(rank, win);
}

/* The time of the thread that asks for the lock is over; the one that waits for it has more, and tries, too. */
static void lock_after_another(struct rank *rank)
{
    struct helper helper[2];
    const int me = rank->comm.rank;
    struct ncclx_win *win = locked_window(rank);
    if (me == 0) {
        EXPECT(osc_lock_all(win) == NCCLX_SUCCESS);
        for (int i = 0; i < 2; i++) {
            start(&helper[i], win, put_word, i + 1);
            await_own_waits(&rank->rt, (unsigned)i + 1);
        }
        end_first_wait(&rank->rt);
        EXPECT(end(&helper[0]) == NCCLX_ERR_TIMEOUT);
    }
    meet(&rank->comm);
    if (me == 1) EXPECT(osc_unlock(win, 2) == NCCLX_SUCCESS);
    if (me == 0) EXPECT(end(&helper[1]) == NCCLX_SUCCESS && osc_unlock_all(win) == NCCLX_SUCCESS);
    end_window(rank, win);
}

static void lock_twice(struct rank *rank)
{
    struct helper helper;
    const int me = rank->comm.rank;
    struct ncclx_win *win = locked_window(rank);
    if (me == 0) {
        start(&helper, win, lock_exclusive, 2);
        await_own_waits(&rank->rt, 1);
        EXPECT(osc_lock(win, NCCLX_LOCK_SHARED, 2) == NCCLX_ERR_RMA_SYNC);
    }
    meet(&rank->comm);
    if (me == 1) EXPECT(osc_unlock(win, 2) == NCCLX_SUCCESS);
    if (me == 0) EXPECT(end(&helper) == NCCLX_SUCCESS && osc_unlock(win, 2) == NCCLX_SUCCESS);
    end_window(rank, win);
}

/* ---- Unlocks that are repeated -------------------------------------------------------------------------------- */

/* The others answer nothing: what needs no answer succeeds, else the call fails twice, and lets no operation pass. */
static void unlock_in_vain(struct ncclx_win *win, int (*unlock)(struct ncclx_win *win, int number))
{
    win->rt->timeout_ns = SHORT_NS;
    if (osc_target_needs_messages(osc_window_of(win)->targets[2])) {
        EXPECT(unlock(win, 2) == NCCLX_ERR_TIMEOUT);
        EXPECT(put_word(win, 0) == NCCLX_ERR_RMA_SYNC && lock_exclusive(win, 2) == NCCLX_ERR_RMA_SYNC);
        EXPECT(unlock(win, 2) == NCCLX_ERR_TIMEOUT);
    } else {
        EXPECT(unlock(win, 2) == NCCLX_SUCCESS);
    }
    win->rt->timeout_ns = LONG_NS;
}

static void repeat_unlock(struct rank *rank, struct ncclx_win *win, int (*unlock)(struct ncclx_win *win, int number))
{
    const bool first = rank->comm.rank == 0;
    meet(&rank->comm);
    meet_silently();
    if (first) unlock_in_vain(win, unlock);
    meet_silently();
    if (first && osc_window_of(win)->locks) EXPECT(unlock(win, 2) == NCCLX_SUCCESS);
    if (first) EXPECT(unlock(win, 2) == NCCLX_ERR_RMA_SYNC && osc_window_of(win)->locks == 0 && put_word(win, 0) == NCCLX_SUCCESS);
    end_window(rank, win);
}

static void unlock_again(struct rank *rank)
{
    char *base;
    struct ncclx_win *win = threaded_window(rank, &base);
    if (rank->comm.rank == 0) EXPECT(lock_exclusive(win, 2) == NCCLX_SUCCESS && put_word(win, 1) == NCCLX_SUCCESS);
    repeat_unlock(rank, win, osc_unlock);
}

static int unlock_all(struct ncclx_win *win, int number)
{
    (void)number;
    return osc_unlock_all(win);
}

static void unlock_all_again(struct rank *rank)
{
    char *base;
    struct ncclx_win *win = threaded_window(rank, &base);
    if (rank->comm.rank == 0) {
        EXPECT(osc_lock_all(win) == NCCLX_SUCCESS && put_word(win, 1) == NCCLX_SUCCESS);
        EXPECT(osc_put(win, &words[0], sizeof words[0], 1, 0) == NCCLX_SUCCESS && osc_flush(win, 1) == NCCLX_SUCCESS);
    }
    repeat_unlock(rank, win, unlock_all);
}

/* ---- Tests ---------------------------------------------------------------------------------------------------- */

static void test_first_use(void **state)
{
    (void)state;
    pthread_barrier_init(&both, NULL, 2);
    pml_standin.attaching = attach_together;
    run_all_ways(first_use);
    pml_standin.attaching = NULL;
    pthread_barrier_destroy(&both);
}

#define EVERY_WAY(name)                                                                                                         \
    static void test_##name(void **state)                                                                                      \
    {                                                                                                                           \
        (void)state;                                                                                                            \
        run_all_ways(name);                                                                                                     \
    }
EVERY_WAY(lock_once)
EVERY_WAY(lock_after_another)
EVERY_WAY(lock_twice)
EVERY_WAY(unlock_again)
EVERY_WAY(unlock_all_again)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_use),  cmocka_unit_test(test_lock_once),    cmocka_unit_test(test_lock_after_another),
        cmocka_unit_test(test_lock_twice), cmocka_unit_test(test_unlock_again), cmocka_unit_test(test_unlock_all_again),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
