/* floor.c - what the machine itself needs: a cache line handed over, and one copy between two processes.
 *
 *     perf-floor LEAST MOST [MILLISECONDS]
 *
 * prints lines like kernel.c's with the library "floor": at each size, half the time of a round trip in which each side
 * copies the message once, from its own memory to shared memory, then hands one line over. No library that copies once
 * can be faster; one that does not copy can.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 9
#define LINE 64

struct side {
    _Atomic unsigned flag __attribute__((aligned(LINE)));
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void wait_for(struct side *side, unsigned value)
{
    while (atomic_load_explicit(&side->flag, memory_order_acquire) != value) {
    }
}

static void pin(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: perf-floor LEAST MOST [MILLISECONDS]\n");
        return 2;
    }
    size_t least = strtoull(argv[1], NULL, 10), most = strtoull(argv[2], NULL, 10);
    double seconds = (argc > 3 ? atof(argv[3]) : 100) / 1e3 / BATCHES;
    size_t room = most + 4096;
    struct side *side = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, 2 * room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *own = malloc(room);
    if (side == MAP_FAILED || shared == MAP_FAILED || !own) return 1;
    memset(shared, 0, 2 * room);
    memset(own, 0, room);
    pid_t child = fork();
    if (child < 0) return 1;
    pin(child ? 0 : 1);
    unsigned turn = 0;
    for (size_t bytes = least;; bytes = bytes ? 2 * bytes : 1) {
        /* Both sides compute the same number of steps: from an assumed 2 GB/s and 100 ns. */
        long steps = (long)(seconds / (2 * (100e-9 + (double)bytes / 2e9))) + 1;
        if (child) printf("floor latency 2 %zu", bytes);
        for (int batch = 0; batch < BATCHES; batch++) {
            double start = now();
            for (long i = 0; i < steps; i++) {
                turn++;
                if (!child) wait_for(&side[0], turn);
                memcpy(shared + (child ? 0 : room), own, bytes);
                atomic_store_explicit(&side[child ? 0 : 1].flag, turn, memory_order_release);
                if (child) wait_for(&side[1], turn);
            }
            if (child) printf(" %.4f", (now() - start) / (double)steps / 2 * 1e6);
        }
        if (child) printf("\n");
        if (bytes * 2 > most) break;
    }
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
