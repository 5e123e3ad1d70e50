/* window_forms.c - other forms of puts, gets and waits between processes: window_forms CASE [NUMBER]. Prints nothing
 * but "ok RANKS". Each case runs on a window that allocates, and on one made of the program's memory. */
#include "tests/mp/window.h"

#include <time.h>

#define BYTES 100000
#define SLOTS 40

typedef void (*window_case)(ncclx_win_t win, unsigned char *base, uint64_t number);

/* ---- iov: many pieces, one signal ------------------------------------------------------------------------------ */

#define PIECES 100

static size_t piece_bytes(size_t i)
{
    return i % 7 == 0 ? 0 : i * 13 % 300 + 1;
}

static void iov(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned char *out = need(BYTES);
    ncclx_iov_t pieces[PIECES];
    for (uint64_t round = 1; round <= rounds; round++) {
        for (size_t i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 3 + (size_t)rank * 11 + round);
        for (size_t i = 0; i < PIECES; i++) /* scattered, backwards */
            pieces[i] = (ncclx_iov_t){.origin = out + i * 900, .bytes = piece_bytes(i), .target_disp = (PIECES - 1 - i) * 900};
        OK(ncclx_win_put_iov(pieces, PIECES / 2, right, win));
        OK(ncclx_win_put_iov_signal(pieces + PIECES / 2, PIECES / 2, right, win, 1, NCCLX_SIGNAL_ADD, 1));
        OK(ncclx_win_wait_signal(win, 1, NCCLX_CMP_GE, round, -1, NULL));
        for (size_t i = 0; i < PIECES; i++)
            for (size_t j = 0; j < piece_bytes(i); j++)
                CHECK(base[(PIECES - 1 - i) * 900 + j] == (unsigned char)((i * 900 + j) * 3 + (size_t)left * 11 + round));
        OK(ncclx_win_fence(win));
    }
    /* The last piece does not fit: nothing is written, no signal. */
    memset(base, 0x5a, BYTES);
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_fence(win));
    for (size_t i = 0; i < PIECES; i++) pieces[i] = (ncclx_iov_t){.origin = out, .bytes = 10, .target_disp = i * 10};
    pieces[PIECES - 1].target_disp = BYTES - 9;
    FAILS(ncclx_win_put_iov_signal(pieces, PIECES, right, win, 2, NCCLX_SIGNAL_ADD, 1), NCCLX_ERR_RANGE);
    CHECK(strstr(ncclx_error_detail(), "piece 99 of 100") != NULL);
    FAILS(ncclx_win_put_iov_signal(pieces, 1, right, win, SLOTS, NCCLX_SIGNAL_ADD, 1), NCCLX_ERR_RANGE);
    FAILS(ncclx_win_put_iov_signal(pieces, 1, right, win, 0, (ncclx_signal_op_t)9, 1), NCCLX_ERR_OP);
    pieces[0].origin = NULL;
    FAILS(ncclx_win_put_iov(pieces, 1, right, win), NCCLX_ERR_BUFFER);
    FAILS(ncclx_win_put_iov(NULL, 1, right, win), NCCLX_ERR_ARG);
    FAILS(ncclx_win_put_iov(pieces, 1, size, win), NCCLX_ERR_RANK);
    OK(ncclx_win_put_iov(NULL, 0, right, win));
    OK(ncclx_win_put_iov(pieces, 1, NCCLX_PROC_NULL, win));
    OK(ncclx_win_fence(win));
    for (size_t i = 0; i < BYTES; i++) CHECK(base[i] == 0x5a);
    OK(ncclx_win_wait_signal(win, 2, NCCLX_CMP_EQ, 0, 0, NULL));
    OK(ncclx_win_fence(win));
    free(out);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

#define REQUESTS 50

static void requests(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    ncclx_request_t put[REQUESTS], get[REQUESTS];
    const size_t bytes = BYTES / 2 / REQUESTS, part = bytes / (size_t)size;
    unsigned char *out = need(BYTES), *back = need(BYTES);
    for (uint64_t round = 1; round <= rounds; round++) {
        const int to = (rank + (int)(round % (uint64_t)size)) % size;
        const size_t mine = part * (size_t)rank;
        for (size_t i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 5 + (size_t)rank * 7 + round);
        for (size_t i = 0; i < REQUESTS; i++)
            OK(ncclx_win_rput(out + i * bytes, part, NCCLX_BYTE, to, i * bytes + mine, win, &put[i]));
        OK(ncclx_request_free(&put[0]));
        OK(ncclx_waitall(REQUESTS, put, NCCLX_STATUSES_IGNORE));
        memset(out, 0xee, BYTES); /* the buffers are the program's again */
        OK(ncclx_win_flush(to, win));
        for (size_t i = 0; i < REQUESTS; i++)
            OK(ncclx_win_rget(back + i * bytes, part, NCCLX_BYTE, to, i * bytes + mine, win, &get[i]));
        for (size_t i = 0; i < REQUESTS; i++) { /* one way or the other */
            int flag = 0;
            if (i % 2) OK(ncclx_wait(&get[i], NCCLX_STATUS_IGNORE));
            else while (!flag) OK(ncclx_test(&get[i], &flag, NCCLX_STATUS_IGNORE));
            CHECK(get[i] == NCCLX_REQUEST_NULL);
            for (size_t j = 0; j < part; j++)
                CHECK(i == 0 || back[i * bytes + j] == (unsigned char)((i * bytes + j) * 5 + (size_t)rank * 7 + round));
        }
        OK(ncclx_win_fence(win));
    }
    (void)base;
    ncclx_request_t none;
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    FAILS(ncclx_win_rput(out, BYTES + 1, NCCLX_BYTE, 0, 0, win, &none), NCCLX_ERR_RANGE);
    FAILS(ncclx_win_rget(out, 1, NCCLX_BYTE, 0, 0, win, NULL), NCCLX_ERR_ARG);
    OK(ncclx_win_rget(out, 1, NCCLX_BYTE, NCCLX_PROC_NULL, 0, win, &none));
    OK(ncclx_wait(&none, NCCLX_STATUS_IGNORE));
    OK(ncclx_win_fence(win));
    free(out);
    free(back);
}

/* ---- handlers: where operations are messages, calls on their requests that fail are the window's --------------- */

static struct {
    uint64_t calls;
    ncclx_comm_t comm;
    ncclx_win_t win;
} told;

static void note(ncclx_comm_t comm, ncclx_win_t win, int code, const char *detail, void *user)
{
    CHECK(user == &told && code == NCCLX_ERR_UNSUPPORTED && detail[0]);
    told.calls++;
    told.comm = comm;
    told.win = win;
}

static void handlers(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    const int right = (rank + 1) % size;
    ncclx_request_t request[2];
    ncclx_errhandler_t handler;
    char out = 1, in, *memory;
    (void)win, (void)base;
    OK(ncclx_errhandler_create(note, &told, &handler));
    for (uint64_t round = 1; round <= rounds; round++) {
        ncclx_win_t own = allocate(8, 1, 1, &memory);
        told.calls = 0;
        OK(ncclx_win_set_errhandler(own, handler));
        OK(ncclx_win_rput(&out, 1, NCCLX_BYTE, right, 0, own, &request[0]));
        OK(ncclx_win_rget(&in, 1, NCCLX_BYTE, right, 1, own, &request[1]));
        for (uint64_t i = 0; i < 2; i++) {
            FAILS(ncclx_cancel(&request[i]), NCCLX_ERR_UNSUPPORTED);
            CHECK(told.calls == i + 1 && told.win == own && told.comm == NCCLX_COMM_NULL);
        }
        OK(ncclx_win_set_errhandler(own, NCCLX_ERRORS_RETURN));
        FAILS(ncclx_cancel(&request[0]), NCCLX_ERR_UNSUPPORTED);
        CHECK(told.calls == 2);
        OK(ncclx_win_set_errhandler(own, handler));
        OK(ncclx_win_fence(own));
        OK(ncclx_win_free(&own));
        FAILS(ncclx_cancel(&request[0]), NCCLX_ERR_UNSUPPORTED);
        CHECK(told.calls == 3 && told.win == NCCLX_WIN_NULL && told.comm == NCCLX_COMM_NULL); /* no handle any more */
        OK(ncclx_waitall(2, request, NCCLX_STATUSES_IGNORE));
    }
    OK(ncclx_errhandler_free(&handler));
}

/* ---- several: waiting for one or all of several slots ---------------------------------------------------------- */

/* Everybody signals everybody on the slot of its own rank; arrivals are taken in any order. */
static void several(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    size_t slots[SLOTS], index = 0;
    ncclx_compare_t compares[SLOTS];
    uint64_t values[SLOTS], seen[SLOTS], one = 0;
    const size_t count = (size_t)size;
    int flag = 0;
    (void)base;
    for (size_t i = 0; i < count; i++) slots[i] = count - 1 - i;
    for (uint64_t round = 1; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            compares[i] = NCCLX_CMP_GE;
            values[i] = round;
        }
        for (int to = 0; to < size; to++) OK(ncclx_win_signal((to + rank) % size, win, (size_t)rank, NCCLX_SIGNAL_ADD, 1));
        for (size_t taken = 0; taken < count; taken++) { /* each of them once */
            index = NCCLX_INDEX_UNDEFINED;
            if (round % 2) OK(ncclx_win_wait_signal_any(win, count, slots, compares, values, -1, &index, &one));
            else for (flag = 0; !flag;) OK(ncclx_win_test_signal_any(win, count, slots, compares, values, &flag, &index, &one));
            CHECK(index < count && values[index] == round && one >= round);
            values[index] = UINT64_MAX;
        }
        for (size_t i = 0; i < count; i++) values[i] = round;
        if (round % 2) OK(ncclx_win_wait_signal_all(win, count, slots, compares, values, -1, seen));
        else for (flag = 0; !flag;) OK(ncclx_win_test_signal_all(win, count, slots, compares, values, &flag, seen));
        for (size_t i = 0; i < count; i++) CHECK(seen[i] >= round);
    }
    OK(ncclx_win_fence(win));
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    for (size_t i = 0; i < count; i++) values[i] = rounds + 1;
    FAILS(ncclx_win_wait_signal_any(win, count, slots, compares, values, 1000, &index, &one), NCCLX_ERR_TIMEOUT);
    CHECK(index == NCCLX_INDEX_UNDEFINED);
    values[count - 1] = 0;
    OK(ncclx_win_wait_signal_any(win, count, slots, compares, values, 0, &index, NULL));
    CHECK(index == count - 1);
    values[0] = rounds + 1;
    FAILS(ncclx_win_wait_signal_all(win, count, slots, compares, values, 1000, seen), NCCLX_ERR_TIMEOUT);
    OK(ncclx_win_test_signal_all(win, count, slots, compares, values, &flag, NULL));
    CHECK(flag == 0);
    OK(ncclx_win_wait_signal_any(win, 0, NULL, NULL, NULL, -1, &index, NULL));
    CHECK(index == NCCLX_INDEX_UNDEFINED);
    OK(ncclx_win_wait_signal_all(win, 0, NULL, NULL, NULL, -1, NULL));
    slots[0] = SLOTS;
    FAILS(ncclx_win_wait_signal_all(win, 1, slots, compares, values, 0, NULL), NCCLX_ERR_RANGE);
    index = 0;
    FAILS(ncclx_win_test_signal_any(win, 1, slots, compares, values, &flag, &index, NULL), NCCLX_ERR_RANGE);
    CHECK(index == NCCLX_INDEX_UNDEFINED);
    slots[0] = 0;
    compares[0] = (ncclx_compare_t)8;
    index = 0;
    FAILS(ncclx_win_wait_signal_any(win, 1, slots, compares, values, 0, &index, NULL), NCCLX_ERR_OP);
    CHECK(index == NCCLX_INDEX_UNDEFINED);
    FAILS(ncclx_win_wait_signal_any(win, 1, NULL, compares, values, 0, &index, NULL), NCCLX_ERR_ARG);
    FAILS(ncclx_win_wait_signal_any(win, 1, slots, compares, values, 0, NULL, NULL), NCCLX_ERR_ARG);
    OK(ncclx_win_fence(win));
}

/* ---- plans: puts to everybody whose counts change from start to start --------------------------------------------- */

static void plans(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    const size_t part = BYTES / (size_t)size / sizeof(uint32_t);
    uint32_t *out = need(BYTES);
    size_t *counts = need((size_t)size * sizeof *counts);
    ncclx_plan_piece_t *pieces = need((size_t)size * sizeof *pieces);
    ncclx_plan_t plan, none = NCCLX_PLAN_NULL;
    for (int to = 0; to < size; to++)
        pieces[to] = (ncclx_plan_piece_t){.origin = out + (size_t)to * part, .count = &counts[to], .most = part, .target = to,
                                          .target_disp = (size_t)rank * part * sizeof(uint32_t), .slot = (size_t)rank,
                                          .op = NCCLX_SIGNAL_ADD, .value = 1};
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_win_plan_create(pieces, (size_t)size, NCCLX_UINT32, win, &plan));
    pieces[size - 1].most = part + BYTES;
    FAILS(ncclx_win_plan_create(pieces, (size_t)size, NCCLX_UINT32, win, &none), NCCLX_ERR_RANGE);
    pieces[size - 1].most = SIZE_MAX;
    FAILS(ncclx_win_plan_create(pieces, (size_t)size, NCCLX_UINT32, win, &none), NCCLX_ERR_COUNT);
    pieces[size - 1].most = 0;
    pieces[size - 1].slot = SLOTS;
    FAILS(ncclx_win_plan_create(pieces, (size_t)size, NCCLX_UINT32, win, &none), NCCLX_ERR_RANGE);
    FAILS(ncclx_win_plan_create(NULL, 1, NCCLX_UINT32, win, &none), NCCLX_ERR_ARG);
    FAILS(ncclx_win_plan_create(pieces, 0, (ncclx_datatype_t)99, win, &none), NCCLX_ERR_TYPE);
    memset(pieces, 0xff, (size_t)size * sizeof *pieces); /* the list was copied */
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int to = 0; to < size; to++) counts[to] = (size_t)(round * 37 + (uint64_t)to * 11 + (uint64_t)rank) % (part + 1);
        if (round % 3 == 0) counts[0] = 0;
        for (size_t i = 0; i < part * (size_t)size; i++) out[i] = (uint32_t)(i % part + round * 7 + (size_t)rank);
        OK(ncclx_win_plan_start(plan));
        for (int from = 0; from < size; from++) {
            OK(ncclx_win_wait_signal(win, (size_t)from, NCCLX_CMP_GE, round, -1, NULL));
            size_t count = (size_t)(round * 37 + (uint64_t)rank * 11 + (uint64_t)from) % (part + 1);
            if (round % 3 == 0 && rank == 0) count = 0;
            const uint32_t *came = (const uint32_t *)(void *)base + (size_t)from * part;
            for (size_t i = 0; i < count; i++) CHECK(came[i] == (uint32_t)(i + round * 7 + (size_t)from));
        }
        OK(ncclx_win_fence(win));
    }
    counts[size - 1] = part + 1; /* nothing is written, no slot raised */
    FAILS(ncclx_win_plan_start(plan), NCCLX_ERR_COUNT);
    OK(ncclx_win_fence(win));
    OK(ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, rounds, 0, NULL));
    ncclx_win_t same = win;
    FAILS(ncclx_win_free(&same), NCCLX_ERR_RMA_SYNC);
    const ncclx_plan_t dead = plan;
    OK(ncclx_win_plan_free(&plan));
    CHECK(plan == NCCLX_PLAN_NULL);
    FAILS(ncclx_win_plan_start(dead), NCCLX_ERR_ARG);
    FAILS(ncclx_win_plan_free(&plan), NCCLX_ERR_ARG);
    OK(ncclx_win_fence(win));
    free(out);
    free(counts);
    free(pieces);
}

/* ---- asleep: a rank that has waited for long is woken by a signal ----------------------------------------------- */

static void asleep(ncclx_win_t win, unsigned char *base, uint64_t rounds)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    double most = 0;
    (void)base;
    for (uint64_t round = 1; round <= rounds; round++) {
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
        if (rank == 0) {
            nanosleep(&pause, NULL);
            const double start = ncclx_wtime();
            for (int to = 1; to < size; to++) OK(ncclx_win_signal(to, win, 0, NCCLX_SIGNAL_SET, round));
            if (size > 1) OK(ncclx_win_wait_signal(win, 1, NCCLX_CMP_GE, round * (uint64_t)(size - 1), -1, NULL));
            const double took = ncclx_wtime() - start;
            if (took > most) most = took;
        } else {
            OK(ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, round, -1, NULL));
            OK(ncclx_win_signal(0, win, 1, NCCLX_SIGNAL_ADD, 1));
        }
    }
    if (rank == 0 && getenv("WINDOW_TIMES")) printf("woken and answered after %.0f us at most\n", most * 1e6);
}

static void on_both(window_case run, uint64_t number)
{
    char *base;
    unsigned char *own = need(BYTES);
    ncclx_info_t info;
    ncclx_win_t win = allocate(BYTES, 1, SLOTS, &base);
    run(win, (unsigned char *)base, number);
    OK(ncclx_win_free(&win));
    OK(ncclx_info_create(&info));
    OK(ncclx_info_set(info, "ncclx_signal_slots", "40"));
    OK(ncclx_win_create(own, BYTES, 1, info, NCCLX_COMM_WORLD, &win));
    OK(ncclx_info_free(&info));
    run(win, own, number);
    OK(ncclx_win_free(&win));
    free(own);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        window_case run;
    } cases[] = {{"iov", iov}, {"requests", requests}, {"handlers", handlers}, {"several", several}, {"asleep", asleep}, {"plans", plans}};
    const char *name = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    window_case run = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(name, cases[i].name)) run = cases[i].run;
    CHECK(run != NULL);
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    on_both(run, number);
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
