/* huge.c - huge BYTES: from rank 0 to the last, messages (the receiver first, and the sender first), a put with a signal and a get on
 * windows of both kinds, of any size; every byte has to be in its place, and none beside it changed. Prints "ok BYTES" from rank 0. */
#include "tests/mp/window.h"

#include <time.h>

#define MARGIN 64
#define MARK 0xa5

static size_t bytes;
static int last;

/* What byte i of the transfer numbered `salt` is, eight at a time: no two places look alike. */
static uint64_t word_at(size_t i, uint64_t salt)
{
    return ((uint64_t)i + salt * 77777) * UINT64_C(0x9e3779b97f4a7c15) >> 3;
}

static void fill(char *memory, uint64_t salt)
{
    uint64_t word;
    for (size_t i = 0; i < bytes / 8; i++) {
        word = word_at(i, salt);
        memcpy(memory + 8 * i, &word, 8);
    }
    word = word_at(bytes / 8, salt);
    memcpy(memory + bytes / 8 * 8, &word, bytes % 8);
}

static void check(const char *memory, uint64_t salt)
{
    uint64_t word, wrong = 0;
    for (size_t i = 0; i < bytes / 8; i++) {
        memcpy(&word, memory + 8 * i, 8);
        wrong += word != word_at(i, salt);
    }
    word = word_at(bytes / 8, salt);
    CHECK(wrong == 0 && memcmp(memory + bytes / 8 * 8, &word, bytes % 8) == 0);
}

static void mark_margin(char *memory)
{
    memset(memory + bytes, MARK, MARGIN);
}

static void check_margin(const char *memory)
{
    for (size_t i = 0; i < MARGIN; i++) CHECK((unsigned char)memory[bytes + i] == MARK);
}

/* late: of which rank the other one has heard nothing for a while. */
static void message(char *memory, uint64_t salt, int late)
{
    ncclx_status_t status;
    const struct timespec pause = {.tv_nsec = 100000000};
    if (rank == 0) fill(memory, salt);
    if (rank == last) memset(memory, 0, bytes);
    if (memory) mark_margin(memory);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == late) nanosleep(&pause, NULL);
    if (rank == 0) {
        OK(ncclx_send(memory, bytes, NCCLX_BYTE, last, 5, NCCLX_COMM_WORLD));
    } else if (rank == last) {
        OK(ncclx_recv(memory, bytes, NCCLX_BYTE, 0, 5, NCCLX_COMM_WORLD, &status));
        CHECK(status.bytes == bytes);
        check(memory, salt);
    }
    if (memory) check_margin(memory);
}

/* base: the window's memory at the last rank; memory: rank 0's. */
static void window(ncclx_win_t win, char *base, char *memory, uint64_t salt)
{
    if (rank == last) mark_margin(base);
    OK(ncclx_win_fence(win));
    if (rank == 0) {
        fill(memory, salt);
        OK(ncclx_win_put_signal(memory, bytes, NCCLX_BYTE, last, 0, win, 0, NCCLX_SIGNAL_SET, 1));
        OK(ncclx_win_flush(last, win));
        memset(memory, 0, bytes);
        mark_margin(memory);
        OK(ncclx_win_get(memory, bytes, NCCLX_BYTE, last, 0, win));
        OK(ncclx_win_flush(last, win));
        check(memory, salt);
        check_margin(memory);
    } else if (rank == last) {
        OK(ncclx_win_wait_signal(win, 0, NCCLX_CMP_EQ, 1, -1, NULL));
        check(base, salt);
        check_margin(base);
    }
    OK(ncclx_win_fence(win));
    OK(ncclx_win_free(&win));
}

/* At the last rank in its buffer, and in memory of its own; no more than two of them are there at a time. */
static void windows(char *memory)
{
    ncclx_win_t win;
    char *base;
    size_t here = rank == last ? bytes + MARGIN : 0;
    OK(ncclx_win_create(here ? memory : NULL, here, 1, NCCLX_INFO_NULL, NCCLX_COMM_WORLD, &win));
    window(win, memory, memory, 3);
    if (rank == last) free(memory);
    win = allocate(here, 1, 1, &base);
    window(win, base, memory, 4);
    if (rank == 0) free(memory);
}

int main(int argc, char **argv)
{
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    CHECK(argc == 2 && size >= 2);
    last = size - 1;
    bytes = (size_t)strtoull(argv[1], NULL, 10);
    char *memory = rank == 0 || rank == last ? need(bytes + MARGIN) : NULL;
    message(memory, 1, 0);
    message(memory, 2, last);
    windows(memory);
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %zu\n", bytes);
    return 0;
}
