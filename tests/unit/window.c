/* window.c - windows over a stand-in for pml: ranks are threads (window_world.h). */
#include "tests/unit/window_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BYTES 6000

static int send_signal(struct ncclx_win *win, int target, size_t slot, ncclx_signal_op_t op, uint64_t value)
{
    const struct osc_signal signal = {.slot = slot, .op = op, .value = value};
    return osc_signal(win, target, &signal);
}

static int put_signal(struct ncclx_win *win, const void *origin, size_t bytes, int target, size_t displacement, size_t slot,
                      ncclx_signal_op_t op, uint64_t value)
{
    const struct osc_signal signal = {.slot = slot, .op = op, .value = value};
    return osc_put_signal(win, origin, bytes, target, displacement, &signal);
}

static char pattern(int rank, size_t i, unsigned round)
{
    return (char)((size_t)(rank + 1) * 31 + i * 7 + round * 13);
}

/* ---- Puts, gets, signals ------------------------------------------------------------------------------------- */

static void put_and_get_on(struct rank *rank, void *memory)
{
    static const size_t sizes[] = {0, 1, 4, 8, PML_STANDIN_AM_MAX - 1, PML_STANDIN_AM_MAX, PML_STANDIN_AM_MAX + 1, BYTES - 8};
    char *base, out[BYTES], back[BYTES];
    struct ncclx_win *win = make_window(rank, memory, BYTES, 8, &base);
    int me = rank->comm.rank, right = (me + 1) % RANKS, left = (me + RANKS - 1) % RANKS;
    for (unsigned round = 0; round < sizeof sizes / sizeof sizes[0]; round++) {
        size_t bytes = sizes[round];
        for (size_t i = 0; i < bytes; i++) out[i] = pattern(me, i, round);
        EXPECT(osc_put(win, out, bytes, right, 1) == NCCLX_SUCCESS);
        EXPECT(osc_flush(win, right) == NCCLX_SUCCESS); /* a get may overtake a put */
        memset(back, 0, sizeof back);
        EXPECT(osc_get(win, back, bytes, right, 1) == NCCLX_SUCCESS);
        EXPECT(osc_flush(win, right) == NCCLX_SUCCESS);
        EXPECT(memcmp(out, back, bytes) == 0);
        EXPECT(osc_fence(win) == NCCLX_SUCCESS);
        for (size_t i = 0; i < bytes; i++) EXPECT(base[8 + i] == pattern(left, i, round));
        EXPECT(osc_put(win, base + 8, bytes, me, 1) == NCCLX_SUCCESS);
        EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    }
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void put_and_get(struct rank *rank)
{
    static char memory[RANKS][BYTES] __attribute__((aligned(64)));
    put_and_get_on(rank, NULL);
    put_and_get_on(rank, memory[rank->comm.rank]);
}

/* Everybody to everybody else; the signal of a round must never come before that round's data. */
static void signals_on(struct rank *rank, void *memory)
{
    enum { ROUNDS = 200, PART = BYTES / RANKS / 8 };
    char *base;
    uint64_t data[ROUNDS % 2 + 2][PART];
    struct ncclx_win *win = make_window(rank, memory, BYTES, 8, &base);
    int me = rank->comm.rank, left = (me + RANKS - 1) % RANKS, right = (me + 1) % RANKS;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t *mine = data[round % 2], seen;
        size_t count = 1 + (size_t)(round * 37 % PART);
        for (size_t i = 0; i < count; i++) mine[i] = round * 1000 + i;
        EXPECT(osc_put(win, mine, 8 * (count / 2), right, (size_t)me * PART) == NCCLX_SUCCESS);
        EXPECT(put_signal(win, mine + count / 2, 8 * (count - count / 2), right, (size_t)me * PART + count / 2, (size_t)me,
                              NCCLX_SIGNAL_ADD, 1) == NCCLX_SUCCESS);
        EXPECT(osc_wait_signal(win, (size_t)left, NCCLX_CMP_GE, round, UINT64_MAX, &seen) == NCCLX_SUCCESS);
        EXPECT(seen == round);
        const uint64_t *arrived = (const uint64_t *)(void *)base + left * PART;
        for (size_t i = 0; i < count; i++) EXPECT(arrived[i] == round * 1000 + i);
        EXPECT(send_signal(win, left, 4, NCCLX_SIGNAL_SET, round) == NCCLX_SUCCESS);
        EXPECT(osc_wait_signal(win, 4, NCCLX_CMP_EQ, round, UINT64_MAX, NULL) == NCCLX_SUCCESS);
        EXPECT(osc_flush_local(win, right) == NCCLX_SUCCESS);
    }
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void signals(struct rank *rank)
{
    static char memory[RANKS][BYTES] __attribute__((aligned(64)));
    signals_on(rank, NULL);
    signals_on(rank, memory[rank->comm.rank]);
}

/* ADD from all ranks on one slot of rank 0, which adds to itself directly. */
static void counters(struct rank *rank)
{
    char *base;
    uint64_t seen;
    struct ncclx_win *win = make_window(rank, NULL, 8, 1, &base);
    for (int i = 0; i < 500; i++) EXPECT(send_signal(win, 0, 3, NCCLX_SIGNAL_ADD, 1) == NCCLX_SUCCESS);
    if (rank->comm.rank == 0)
        EXPECT(osc_wait_signal(win, 3, NCCLX_CMP_GE, 500 * RANKS, UINT64_MAX, &seen) == NCCLX_SUCCESS && seen == 500 * RANKS);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

/* ---- Atomics ---- */

/* Everybody adds to the same elements of rank 0, of every size and alignment, and takes numbers from a counter: none comes twice. */
static void atomics_on(struct rank *rank, void *memory)
{
    enum { ROUNDS = 300, ELEMENTS = 40 };
    char *base;
    struct ncclx_win *win = make_window(rank, memory, BYTES, 1, &base);
    int64_t pairs[ELEMENTS][2], counter = 0;
    uint8_t bytes[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        bytes[i] = 1;
        pairs[i][0] = rank->comm.rank * 100 + i;
        pairs[i][1] = rank->comm.rank;
    }
    const int64_t one = 1;
    int64_t last = -1;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(osc_get_accumulate(win, &one, &counter, 1, NCCLX_INT64, NCCLX_SUM, 0, 0) == NCCLX_SUCCESS);
        EXPECT(osc_accumulate(win, bytes, ELEMENTS, NCCLX_UINT8, NCCLX_SUM, 0, 100) == NCCLX_SUCCESS);
        EXPECT(osc_accumulate(win, &one, 1, NCCLX_INT64, NCCLX_SUM, 0, 201) == NCCLX_SUCCESS); /* not aligned */
        EXPECT(osc_accumulate(win, pairs, ELEMENTS, NCCLX_INT64_PAIR, NCCLX_MAXLOC, 0, 1000) == NCCLX_SUCCESS);
        EXPECT(osc_flush(win, 0) == NCCLX_SUCCESS);
        EXPECT(counter > last && counter < ROUNDS * RANKS);
        last = counter;
        int64_t old = 0; /* another counter, by compare-and-swap */
        for (int64_t expected = 0; ; expected = old) {
            int64_t next = expected + 1;
            EXPECT(osc_compare_swap(win, &next, &expected, &old, NCCLX_INT64, 0, 8) == NCCLX_SUCCESS);
            EXPECT(osc_flush(win, 0) == NCCLX_SUCCESS);
            if (old == expected) break;
        }
    }
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    if (rank->comm.rank == 0) {
        int64_t odd;
        memcpy(&odd, base + 201, sizeof odd);
        EXPECT(*(int64_t *)(void *)base == ROUNDS * RANKS && *(int64_t *)(void *)(base + 8) == ROUNDS * RANKS && odd == ROUNDS * RANKS);
        for (int i = 0; i < ELEMENTS; i++) {
            int64_t pair[2];
            memcpy(pair, base + 1000 + (size_t)i * sizeof pair, sizeof pair);
            EXPECT((uint8_t)base[100 + i] == (uint8_t)(ROUNDS * RANKS) && pair[0] == (RANKS - 1) * 100 + i && pair[1] == RANKS - 1);
        }
    }
    EXPECT(osc_accumulate(win, &one, 1, NCCLX_INT64, NCCLX_AVG, 0, 0) == NCCLX_ERR_OP);
    EXPECT(osc_accumulate(win, &one, 1, NCCLX_INT64, NCCLX_NO_OP, 0, 0) == NCCLX_ERR_OP);
    EXPECT(osc_accumulate(win, &one, 1, NCCLX_DOUBLE, NCCLX_BAND, 0, 0) == NCCLX_ERR_TYPE);
    EXPECT(osc_accumulate(win, &one, 1, NCCLX_INT64, NCCLX_SUM, 0, BYTES - 7) == NCCLX_ERR_RANGE);
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void atomics(struct rank *rank)
{
    static char memory[RANKS][BYTES] __attribute__((aligned(64)));
    memset(memory[rank->comm.rank], 0, BYTES);
    atomics_on(rank, NULL);
    atomics_on(rank, memory[rank->comm.rank]);
}

/* ---- Errors -------------------------------------------------------------------------------------------------- */

static void wrong_arguments(struct rank *rank)
{
    char *base, byte[16] = {0};
    int me = rank->comm.rank, next = (me + 1) % RANKS;
    size_t unit = (size_t)next + 1; /* of the next rank's part, which has 100 * next bytes */
    struct ncclx_win *win = make_window(rank, NULL, (size_t)me * 100, (size_t)me + 1, &base);
    size_t whole = (size_t)next * 100;
    EXPECT(osc_put(win, byte, 1, next, whole / unit + 1) == NCCLX_ERR_RANGE);
    EXPECT(osc_put(win, byte, whole + 1, next, 0) == NCCLX_ERR_RANGE);
    EXPECT(osc_put(win, byte, 0, next, whole / unit) == NCCLX_SUCCESS);
    EXPECT(osc_get(win, byte, 1, next, SIZE_MAX) == NCCLX_ERR_RANGE);
    EXPECT(osc_get(win, byte, SIZE_MAX, next, 1) == NCCLX_ERR_RANGE);
    EXPECT(osc_put(win, byte, 1, next, SIZE_MAX / unit + 1) == NCCLX_ERR_RANGE);
    EXPECT(put_signal(win, byte, 0, next, 0, SLOTS, NCCLX_SIGNAL_ADD, 1) == NCCLX_ERR_RANGE);
    EXPECT(put_signal(win, byte, 0, next, 0, SLOTS - 1, (ncclx_signal_op_t)9, 1) == NCCLX_ERR_ARG);
    EXPECT(send_signal(win, next, SIZE_MAX, NCCLX_SIGNAL_ADD, 1) == NCCLX_ERR_RANGE);
    EXPECT(send_signal(win, RANKS, 0, NCCLX_SIGNAL_ADD, 1) == NCCLX_ERR_RANK);
    EXPECT(osc_put(win, byte, 1, -1, 0) == NCCLX_ERR_RANK);
    EXPECT(osc_flush(win, RANKS) == NCCLX_ERR_RANK);
    EXPECT(osc_put(win, byte, SIZE_MAX, NCCLX_PROC_NULL, SIZE_MAX) == NCCLX_SUCCESS);
    EXPECT(send_signal(win, NCCLX_PROC_NULL, SIZE_MAX, NCCLX_SIGNAL_ADD, 1) == NCCLX_SUCCESS);
    EXPECT(osc_flush(win, NCCLX_PROC_NULL) == NCCLX_SUCCESS);
    EXPECT(osc_wait_signal(win, SLOTS, NCCLX_CMP_EQ, 0, 0, NULL) == NCCLX_ERR_RANGE);
    EXPECT(osc_wait_signal(win, 0, (ncclx_compare_t)7, 0, 0, NULL) == NCCLX_ERR_ARG);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void comparisons(struct rank *rank)
{
    char *base;
    bool flag;
    uint64_t seen = 0;
    struct ncclx_win *win = make_window(rank, NULL, 8, 8, &base);
    EXPECT(send_signal(win, rank->comm.rank, 1, NCCLX_SIGNAL_SET, 5) == NCCLX_SUCCESS);
    EXPECT(osc_test_signal(win, 1, NCCLX_CMP_EQ, 5, &flag, &seen) == NCCLX_SUCCESS && flag && seen == 5);
    EXPECT(osc_test_signal(win, 1, NCCLX_CMP_NE, 5, &flag, &seen) == NCCLX_SUCCESS && !flag && seen == 5);
    EXPECT(osc_wait_signal(win, 1, NCCLX_CMP_GT, 4, 0, NULL) == NCCLX_SUCCESS);
    EXPECT(osc_wait_signal(win, 1, NCCLX_CMP_LT, 6, 0, NULL) == NCCLX_SUCCESS);
    EXPECT(osc_wait_signal(win, 1, NCCLX_CMP_LE, 5, 0, NULL) == NCCLX_SUCCESS);
    EXPECT(osc_wait_signal(win, 1, NCCLX_CMP_GE, 6, 2000000, &seen) == NCCLX_ERR_TIMEOUT && seen == 5);
    /* Unsigned: -1 is the largest value. A wait that is satisfied wins over the end of the job. */
    EXPECT(send_signal(win, rank->comm.rank, 2, NCCLX_SIGNAL_ADD, UINT64_MAX) == NCCLX_SUCCESS);
    atomic_store(&rank->rt.aborting, true);
    EXPECT(osc_wait_signal(win, 2, NCCLX_CMP_GT, 7, UINT64_MAX, NULL) == NCCLX_SUCCESS);
    EXPECT(osc_wait_signal(win, 0, NCCLX_CMP_GT, 7, UINT64_MAX, NULL) == NCCLX_ERR_ABORTED);
    atomic_store(&rank->rt.aborting, false);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void creation_fails_everywhere(struct rank *rank)
{
    struct ncclx_win *win = NULL;
    void *base = NULL;
    int me = rank->comm.rank;
    EXPECT(create(&rank->comm, NULL, 64, me == 1 ? 0 : 1, SLOTS, &base, &win) == NCCLX_ERR_ARG);
    EXPECT(strstr(base_error_detail(), me == 1 ? "disp_unit" : "rank 1") != NULL);
    EXPECT(create(&rank->comm, NULL, 64, 1, me == 2 ? SLOTS + 1 : SLOTS, &base, &win) == NCCLX_ERR_MISMATCH);
    EXPECT(create(&rank->comm, NULL, me == 0 ? SIZE_MAX : 64, 1, SLOTS, &base, &win) == NCCLX_ERR_NO_MEM);
    EXPECT(win == NULL);
    /* A rank that could not even begin tells the others before; what they had reserved is given back. */
    EXPECT(osc_win_reserve(&rank->comm, &win) == NCCLX_SUCCESS);
    osc_win_abandon(win);
    osc_win_abandon(NULL);
}

static void epochs(struct rank *rank)
{
    char *base, word[8] = {1};
    int me = rank->comm.rank;
    struct ncclx_win *win = make_window(rank, NULL, 64, 8, &base);
    EXPECT(osc_unlock_all(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(osc_lock_all(win) == NCCLX_SUCCESS && osc_lock_all(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(osc_fence(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(osc_put(win, word, 8, 0, (size_t)me) == NCCLX_SUCCESS);
    EXPECT(osc_unlock_all(win) == NCCLX_SUCCESS);
    /* One rank has an operation in flight: all are told, and the window stays. */
    if (me == 1) EXPECT(osc_put(win, word, 8, 2, 1) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(strstr(base_error_detail(), "rank 1 has operations to rank 2") != NULL);
    EXPECT(osc_flush_all(win) == NCCLX_SUCCESS && osc_flush_local_all(win) == NCCLX_SUCCESS);
    EXPECT(osc_get(win, word, 8, 0, 0) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

/* ---- Locks ---- */

/* A counter that is read and written by put and get is right only when locks exclude; readers see both halves alike. */
static void locks_on(struct rank *rank, void *memory)
{
    enum { ROUNDS = 150 };
    char *base;
    struct ncclx_win *win = make_window(rank, memory, 64, 8, &base);
    const int me = rank->comm.rank;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t words[2] = {0, 1};
        const int target = (int)(round % RANKS), type = (round + (uint64_t)me) % 4 ? NCCLX_LOCK_EXCLUSIVE : NCCLX_LOCK_SHARED;
        EXPECT(osc_lock(win, type, target) == NCCLX_SUCCESS);
        EXPECT(osc_lock(win, type, target) == NCCLX_ERR_RMA_SYNC);
        EXPECT(osc_lock_all(win) == NCCLX_ERR_RMA_SYNC && osc_fence(win) == NCCLX_ERR_RMA_SYNC);
        EXPECT(osc_get(win, words, 16, target, 0) == NCCLX_SUCCESS && osc_flush(win, target) == NCCLX_SUCCESS);
        EXPECT(words[0] == words[1]);
        words[0] = words[1] = words[0] + 1;
        if (type == NCCLX_LOCK_EXCLUSIVE) EXPECT(osc_put(win, words, 16, target, 0) == NCCLX_SUCCESS);
        EXPECT(osc_unlock(win, target) == NCCLX_SUCCESS);
        if (round % 10 == 0) { /* as a reader of all */
            EXPECT(osc_lock_all(win) == NCCLX_SUCCESS);
            EXPECT(osc_get(win, words, 16, (me + 1) % RANKS, 0) == NCCLX_SUCCESS && osc_flush_all(win) == NCCLX_SUCCESS);
            EXPECT(words[0] == words[1]);
            EXPECT(osc_lock(win, NCCLX_LOCK_SHARED, me) == NCCLX_ERR_RMA_SYNC && osc_unlock(win, (me + 1) % RANKS) == NCCLX_ERR_RMA_SYNC);
            EXPECT(osc_unlock_all(win) == NCCLX_SUCCESS);
        }
    }
    EXPECT(osc_fence(win) == NCCLX_SUCCESS);
    uint64_t expected = 0;
    for (int r = 0; r < RANKS; r++)
        for (uint64_t round = (uint64_t)me; round < ROUNDS; round += RANKS) expected += (round + (uint64_t)r) % 4 != 0;
    EXPECT(*(uint64_t *)(void *)base == expected);
    EXPECT(osc_unlock(win, me) == NCCLX_ERR_RMA_SYNC && osc_lock(win, 3, me) == NCCLX_ERR_ARG && osc_lock(win, 1, RANKS) == NCCLX_ERR_RANK);
    /* One that does not get its turn in time, and later does. */
    if (me == 0) EXPECT(osc_lock(win, NCCLX_LOCK_EXCLUSIVE, 1) == NCCLX_SUCCESS);
    meet(&rank->comm);
    rank->rt.timeout_ns = me == 2 ? 5000000 : 0;
    if (me == 2) EXPECT(osc_lock(win, NCCLX_LOCK_SHARED, 1) == NCCLX_ERR_TIMEOUT);
    rank->rt.timeout_ns = 0;
    meet(&rank->comm);
    if (me == 0) EXPECT(osc_unlock(win, 1) == NCCLX_SUCCESS);
    EXPECT(osc_lock(win, NCCLX_LOCK_EXCLUSIVE, 1) == NCCLX_SUCCESS && osc_unlock(win, 1) == NCCLX_SUCCESS);
    meet(&rank->comm);
    if (me == 1) EXPECT(osc_lock(win, NCCLX_LOCK_SHARED, 2) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_ERR_RMA_SYNC);
    EXPECT(strstr(base_error_detail(), "rank 1 is ") != NULL);
    if (me == 1) EXPECT(osc_unlock(win, 2) == NCCLX_SUCCESS);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

static void locks(struct rank *rank)
{
    static char memory[RANKS][64] __attribute__((aligned(64)));
    memset(memory[rank->comm.rank], 0, sizeof memory[0]);
    locks_on(rank, NULL);
    locks_on(rank, memory[rank->comm.rank]);
}

/* ---- Hostile messages ---------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Random headers, most of them nearly right, from all kinds of senders: nothing outside the window changes, nothing crashes. */
static void hostile(struct rank *rank)
{
    static char memory[RANKS][BYTES + 128];
    int me = rank->comm.rank;
    char *base, data[PML_STANDIN_AM_MAX] = {0}, *mine = memory[me];
    uint64_t state = 77 + (uint64_t)me, sequence = 1;
    struct ncclx_win *win = make_window(rank, mine + 64, BYTES, 1, &base);
    if (me == 0) base_log_levels[AREA_OSC] = LOG_NONE; /* it would say what it answered */
    meet(&rank->comm);
    memset(mine, 0x5a, sizeof memory[me]);
    memset(data, 0x11, sizeof data);
    for (int i = 0; i < 20000; i++) {
        static const uint64_t offsets[] = {0, 1, BYTES - 1, BYTES, BYTES + 1, UINT64_MAX, UINT64_MAX - PML_STANDIN_AM_MAX + 1};
        size_t bytes = next_random(&state) % (PML_STANDIN_AM_MAX + 1);
        struct window_header header = {
            .window = next_random(&state) % 16 ? rank->comm.context : next_random(&state),
            .sequence = next_random(&state) % 8 ? sequence : next_random(&state),
            .offset = offsets[next_random(&state) % 7],
            .bytes = next_random(&state) % 4 ? bytes : offsets[next_random(&state) % 7],
            .slot = next_random(&state) % (SLOTS + 2),
            .rank = (int32_t)(next_random(&state) % (RANKS + 2)) - 1,
            .kind = (uint8_t)(next_random(&state) % 13),
            .type = (uint8_t)(next_random(&state) % 20),
            .op = (uint8_t)(next_random(&state) % 18),
            .flags = (uint8_t)(next_random(&state) % 5),
            .signal_op = (uint8_t)(next_random(&state) % 4),
            .version = next_random(&state) % 16 ? WINDOW_VERSION : 0,
        };
        if (header.flags & WINDOW_WANTS_ACK && next_random(&state) % 8) continue; /* few answers: nobody asked for them */
        if (header.kind == WINDOW_GET || header.kind == WINDOW_FETCH) header.kind = WINDOW_SIGNAL;
        int source = next_random(&state) % 4 ? header.rank : (int)(next_random(&state) % RANKS);
        if (source < 0 || source >= RANKS || source == me) source = (me + 2) % RANKS; /* whose connection it came by is sure */
        size_t header_bytes = next_random(&state) % 16 ? sizeof header : next_random(&state) % sizeof header;
        osc_message_arrived(&rank->rt, source, &header, header_bytes, data, bytes, rank->rt.osc);
        struct osc_incoming **incoming = osc_window_of(win)->incoming;
        int other = (me + 1) % RANKS;
        sequence = incoming[other] ? incoming[other]->core.handled + 1 : 1;
    }
    EXPECT(osc_window_of(win)->incoming[(me + 1) % RANKS]->core.handled > 0);
    for (int i = 0; i < 64; i++) EXPECT(mine[i] == 0x5a && mine[64 + BYTES + i] == 0x5a);
    EXPECT(pml_standin.breaches > 0);
    meet(&rank->comm);
    while (poll_messages(rank)) continue;
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
    /* The window is gone: late answers and signals find nothing, and nobody is to blame. */
    meet(&rank->comm);
    const struct window_header late = {.window = rank->comm.context, .sequence = 1, .kind = WINDOW_ACK, .version = WINDOW_VERSION};
    const struct pml_signal signal = {.window = rank->comm.context, .op = NCCLX_SIGNAL_ADD};
    int breaches = pml_standin.breaches;
    osc_message_arrived(&rank->rt, (me + 1) % RANKS, &late, sizeof late, NULL, 0, rank->rt.osc);
    osc_signal_arrived(&rank->rt, (me + 1) % RANKS, &signal, rank->rt.osc);
    EXPECT(pml_standin.breaches == breaches);
}

/* One message that breaks one rule: whoever sent it is to blame, and nothing happens. They come from rank 1, to rank 0. */
struct breach {
    struct window_header header;
    size_t bytes, header_bytes; /* of data; less than a header */
    int source;                 /* another rank than 1 */
};
#define SUM 1 /* NCCLX_SUM, in a byte */
#define FROM(sender, number, size, ...) {.header = {.window = 64, .sequence = number, .rank = sender, .version = WINDOW_VERSION, __VA_ARGS__}, .bytes = size}
#define SAYS(size, ...) FROM(1, 1, size, __VA_ARGS__)
static const struct breach breaches[] = {
    {.header_bytes = sizeof(struct window_header) - 1, .header = {.window = 64, .sequence = 1, .rank = 1, .kind = WINDOW_FLUSH, .version = WINDOW_VERSION}},
    {.header = {.window = 64, .sequence = 1, .rank = 1, .kind = WINDOW_FLUSH, .version = WINDOW_VERSION + 1}},
    FROM(2, 1, 0, .kind = WINDOW_FLUSH),
    FROM(0, 1, 0, .kind = WINDOW_FLUSH),
    FROM(-1, 1, 0, .kind = WINDOW_FLUSH),
    FROM(RANKS, 1, 0, .kind = WINDOW_FLUSH),
    FROM(1, 0, 0, .kind = WINDOW_FLUSH),
    FROM(1, 2, 0, .kind = WINDOW_FLUSH),
    SAYS(0, .kind = WINDOW_FLUSH, .flags = 4),
    SAYS(1, .kind = WINDOW_FLUSH),
    SAYS(0, .kind = WINDOW_FLUSH, .flags = WINDOW_HAS_SIGNAL, .signal_op = NCCLX_SIGNAL_ADD),
    SAYS(8, .kind = WINDOW_PUT, .bytes = 8, .offset = BYTES - 7),
    SAYS(8, .kind = WINDOW_PUT, .bytes = 8, .offset = UINT64_MAX - 3),
    SAYS(8, .kind = WINDOW_PUT, .bytes = 9),
    SAYS(8, .kind = WINDOW_PUT, .bytes = 8, .flags = WINDOW_HAS_SIGNAL, .signal_op = NCCLX_SIGNAL_ADD, .slot = SLOTS),
    SAYS(8, .kind = WINDOW_PUT, .bytes = 8, .flags = WINDOW_HAS_SIGNAL, .signal_op = 9),
    SAYS(0, .kind = WINDOW_SIGNAL),
    SAYS(0, .kind = WINDOW_GET, .bytes = 8, .offset = BYTES - 7),
    SAYS(0, .kind = WINDOW_GET, .bytes = PML_STANDIN_AM_MAX + 1), /* more than one message brings back */
    SAYS(0, .kind = WINDOW_GET),
    SAYS(8, .kind = WINDOW_GET, .bytes = 8),
    SAYS(0, .kind = WINDOW_FETCH, .type = NCCLX_UINT64, .op = OSC_NO_OP, .bytes = (PML_STANDIN_AM_MAX / 8 + 1) * 8),
    SAYS(8, .kind = WINDOW_FETCH, .type = 200, .op = SUM, .bytes = 8),
    SAYS(8, .kind = WINDOW_ACCUMULATE, .type = NCCLX_UINT64, .op = 200, .bytes = 8),
    SAYS(7, .kind = WINDOW_ACCUMULATE, .type = NCCLX_UINT64, .op = SUM, .bytes = 7),
    SAYS(8, .kind = WINDOW_ACCUMULATE, .type = NCCLX_UINT64, .op = SUM, .bytes = 8, .offset = BYTES),
    SAYS(0, .kind = WINDOW_LOCK, .op = 3),
    SAYS(0, .kind = WINDOW_UNLOCK),
    SAYS(0, .kind = WINDOW_ACK),
    SAYS(8, .kind = WINDOW_DATA, .bytes = 8),
    SAYS(0, .kind = WINDOW_LOCKED),
    SAYS(0, .kind = 77),
    /* Whom rank 0 has asked nothing; rank 1 is its neighbour, which it has tried. */
    {.header = {.window = 64, .rank = -1, .kind = WINDOW_GONE, .version = WINDOW_VERSION}, .source = 2},
};
static const struct pml_signal bad_signals[] = {
    {.window = 64, .rank = 2, .op = NCCLX_SIGNAL_ADD},
    {.window = 64, .rank = -1, .op = NCCLX_SIGNAL_ADD},
    {.window = 64, .rank = 1, .op = NCCLX_SIGNAL_ADD, .slot = SLOTS},
    {.window = 64, .rank = 1, .op = UINT64_MAX},
};

static void blames(struct rank *rank)
{
    static char memory[RANKS][BYTES];
    char *base, data[PML_STANDIN_AM_MAX] = {1}, *mine = memory[rank->comm.rank];
    memset(mine, 0x5a, BYTES);
    struct ncclx_win *win = make_window(rank, mine, BYTES, 1, &base);
    for (size_t i = 0; i < sizeof breaches / sizeof breaches[0] && rank->comm.rank == 0; i++) {
        const struct breach *breach = &breaches[i];
        pml_standin.breaches = 0;
        osc_message_arrived(&rank->rt, breach->source ? breach->source : 1, &breach->header, breach->header_bytes ? breach->header_bytes : sizeof breach->header, data,
                            breach->bytes, rank->rt.osc);
        EXPECT(pml_standin.breaches == 1);
    }
    for (size_t i = 0; i < sizeof bad_signals / sizeof bad_signals[0] && rank->comm.rank == 0; i++) {
        pml_standin.breaches = 0;
        osc_signal_arrived(&rank->rt, 1, &bad_signals[i], rank->rt.osc);
        EXPECT(pml_standin.breaches == 1);
    }
    for (int i = 0; i < BYTES; i++) EXPECT(mine[i] == 0x5a);
    for (size_t slot = 0; slot < SLOTS; slot++) EXPECT(osc_window_of(win)->slots[slot] == 0);
    meet(&rank->comm);
    EXPECT(osc_win_free(win) == NCCLX_SUCCESS);
}

/* A rank whose window has ended early, as no correct program lets it, says so to those who ask. */
static void answers_for_what_is_gone(struct rank *rank)
{
    static char memory[RANKS][64];
    char *base, word[8] = {0};
    struct ncclx_win *win = make_window(rank, memory[rank->comm.rank], 64, 1, &base);
    struct osc_window *window = osc_window_of(win);
    if (rank->comm.rank == 1) osc_window_remove(rank->rt.osc, window);
    meet(&rank->comm);
    if (rank->comm.rank == 0) {
        EXPECT(osc_put(win, word, sizeof word, 1, 0) == NCCLX_SUCCESS);
        EXPECT(osc_flush(win, 1) == NCCLX_ERR_WIN);
        EXPECT(osc_put(win, word, sizeof word, 1, 0) == NCCLX_ERR_WIN);
        window->targets[1]->put_open = false;
        EXPECT(osc_put(win, word, sizeof word, 2, 0) == NCCLX_SUCCESS);
        EXPECT(osc_flush(win, 2) == NCCLX_SUCCESS);
    }
    meet(&rank->comm);
    if (rank->comm.rank == 1) osc_window_add(rank->rt.osc, window);
    meet(&rank->comm); /* osc_finalize ends it */
}

static void left_behind(struct rank *rank)
{
    char *base;
    EXPECT(make_window(rank, NULL, 64, 8, &base) != NULL); /* osc_finalize ends it */
}

/* ---- Tests --------------------------------------------------------------------------------------------------- */

#define EVERY_WAY(name)                                                                                                         \
    static void test_##name(void **state)                                                                                      \
    {                                                                                                                           \
        (void)state;                                                                                                            \
        run_all_ways(name);                                                                                                     \
    }
EVERY_WAY(put_and_get)
EVERY_WAY(signals)
EVERY_WAY(counters)
EVERY_WAY(atomics)
EVERY_WAY(wrong_arguments)
EVERY_WAY(comparisons)
EVERY_WAY(creation_fails_everywhere)
EVERY_WAY(epochs)
EVERY_WAY(locks)
EVERY_WAY(left_behind)

static void test_hostile(void **state)
{
    (void)state;
    run_with(hostile, PML_ACCESS_DIRECT, PML_ACCESS_COPY);
}

static void test_blames(void **state)
{
    (void)state;
    run_with(blames, PML_ACCESS_DIRECT, PML_ACCESS_COPY);
    run_with(blames, PML_ACCESS_MESSAGE, PML_ACCESS_MESSAGE);
    run_with(blames, PML_ACCESS_LANES, PML_ACCESS_LANES);
}

static void test_answers_for_what_is_gone(void **state)
{
    (void)state;
    run_with(answers_for_what_is_gone, PML_ACCESS_MESSAGE, PML_ACCESS_MESSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_get),   cmocka_unit_test(test_signals),
        cmocka_unit_test(test_counters),      cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_comparisons),   cmocka_unit_test(test_creation_fails_everywhere),
        cmocka_unit_test(test_epochs),        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_locks),         cmocka_unit_test(test_blames),
        cmocka_unit_test(test_answers_for_what_is_gone),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
