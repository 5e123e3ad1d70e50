/* floor.c - what the machine itself needs: a cache line handed over, and one copy between two processes.
 *
 *     perf-floor TEST LEAST MOST [MILLISECONDS [FILE JOB COUNT]]
 *
 * prints lines like kernel.c's. TEST "latency", library "floor": at each size, half the time of a round trip in which
 * each side copies the message once, from its own memory to shared memory, then hands one line over. No library that
 * copies once can be faster; one that does not copy can.
 *
 * Any other TEST, library "copy": one copy by one process, the other idle: to shared memory ("put", "put_bandwidth",
 * "put_signal", "put_signal_rate") or from it ("get"); else by one system call from the other's private memory.
 * The last arguments are kernel.c's.
 */
#define _GNU_SOURCE
#include "common.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define LINE 64

struct side {
    _Atomic unsigned flag __attribute__((aligned(LINE)));
};

struct floor {
    const char *test;
    pid_t child; /* 0: this is the child */
    struct side *side;
    char *shared, *own;
    size_t room;
    unsigned turn;
    struct turns turns;
};

static void wait_for(struct side *side, unsigned value)
{
    while (atomic_load_explicit(&side->flag, memory_order_acquire) != value) {
    }
}

static void hand_over(struct floor *floor, size_t bytes, long steps)
{
    for (long i = 0; i < steps; i++) {
        floor->turn++;
        if (!floor->child) wait_for(&floor->side[0], floor->turn);
        memcpy(floor->shared + (floor->child ? 0 : floor->room), floor->own, bytes);
        atomic_store_explicit(&floor->side[floor->child ? 0 : 1].flag, floor->turn, memory_order_release);
        if (floor->child) wait_for(&floor->side[1], floor->turn);
    }
}

/* own is at the same address on both sides. */
static void copy(const struct floor *floor, size_t bytes, long steps)
{
    struct iovec local = {.iov_base = floor->own, .iov_len = bytes}, remote = local;
    for (long i = 0; i < steps; i++) {
        if (!strncmp(floor->test, "put", 3) && !strstr(floor->test, "created")) memcpy(floor->shared, floor->own, bytes);
        else if (!strcmp(floor->test, "get")) memcpy(floor->own, floor->shared, bytes);
        else if (process_vm_readv(floor->child, &local, 1, &remote, 1, 0) != (ssize_t)bytes) return;
        __asm__ volatile("" ::: "memory");
    }
}

static bool is_copied(const struct floor *floor)
{
    return strcmp(floor->test, "latency") != 0;
}

static void do_steps(struct floor *floor, size_t bytes, long steps)
{
    if (is_copied(floor)) copy(floor, bytes, steps);
    else hand_over(floor, bytes, steps);
}

static void measure(struct floor *floor, size_t bytes, double seconds)
{
    /* Both sides compute the same number of steps: from an assumed 2 GB/s and 100 ns. */
    long steps = (long)(seconds / (2 * (100e-9 + (double)bytes / 2e9))) + 1;
    double sample[BATCHES];
    for (int batch = -1; batch < BATCHES; batch++) { /* the first one warms up */
        turns_begin(&floor->turns, NULL);
        do_steps(floor, bytes, 1); /* caches are full of what others did */
        double start = now();
        do_steps(floor, bytes, steps);
        if (batch >= 0) sample[batch] = (now() - start) / (double)steps / (is_copied(floor) ? 1 : 2) * 1e6;
        turns_end(&floor->turns, floor->child != 0);
    }
    if (!floor->child) return;
    printf("%s %s 2 %zu", is_copied(floor) ? "copy" : "floor", floor->test, bytes);
    for (int batch = 0; batch < BATCHES; batch++) printf(" %.4f", sample[batch]);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct floor floor = {.test = argc > 1 ? argv[1] : ""};
    if (argc < 4) {
        fprintf(stderr, "usage: perf-floor TEST LEAST MOST [MILLISECONDS]\n");
        return 2;
    }
    size_t least = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    double seconds = (argc > 4 ? atof(argv[4]) : 100) / 1e3 / BATCHES;
    floor.room = most + 4096;
    floor.side = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    floor.shared = mmap(NULL, 2 * floor.room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    floor.own = make_buffer(floor.room);
    if (floor.side == MAP_FAILED || floor.shared == MAP_FAILED || !floor.own) return 1;
    if (turns_open(&floor.turns, argc - 5, argv + 5)) return 1;
    memset(floor.shared, 0, 2 * floor.room);
    floor.child = fork();
    if (floor.child < 0) return 1;
    if (!floor.child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(floor.own, floor.child ? 1 : 2, floor.room); /* each has pages of its own */
    pin(floor.child ? 0 : 1);
    turns_arrive(&floor.turns, floor.child != 0);
    bool idle = !floor.child && is_copied(&floor);
    for (size_t bytes = least; !idle; bytes = bytes ? 2 * bytes : 1) {
        measure(&floor, bytes, seconds);
        if (bytes * 2 > most) break;
    }
    turns_leave(&floor.turns, floor.child != 0);
    if (!floor.child) _exit(0);
    waitpid(floor.child, NULL, 0);
    return 0;
}
