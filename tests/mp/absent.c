/* absent.c - absent [SECONDS]: the last rank is stopped, for so long, before anybody has connected to it. All others begin to send to it, and then talk to
 * each other, which nothing may delay. Then it goes on, and gets what was sent. Rank 0 prints "ok RANKS, N ms". */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD

static int rank, size;
static unsigned seconds = 4;

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void be_absent(void)
{
    pid_t self = getpid(), child = fork();
    CHECK(child >= 0);
    if (!child) {
        sleep(seconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    for (int from = 0; from < size - 1; from++) {
        int word = -1;
        OK(ncclx_recv(&word, 1, NCCLX_INT32, from, 1, WORLD, NULL));
        CHECK(word == from);
    }
}

static long talk(void)
{
    long begin = now_ms();
    ncclx_request_t request;
    OK(ncclx_isend(&rank, 1, NCCLX_INT32, size - 1, 1, WORLD, &request));
    for (int step = 0; step < size - 1; step++) {
        int to = (rank + step) % (size - 1), from = (rank + size - 1 - step) % (size - 1), word = -1;
        OK(ncclx_sendrecv(&rank, 1, &word, 1, NCCLX_INT32, to, 2, from, 2, WORLD, NULL));
        CHECK(word == from);
    }
    long took = now_ms() - begin;
    OK(ncclx_wait(&request, NULL));
    return took;
}

int main(int argc, char **argv)
{
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    long took = 0, most = 0;
    if (argc > 1) seconds = (unsigned)atoi(argv[1]);
    usleep(200000 * (rank != size - 1)); /* it is stopped by then */
    if (rank == size - 1) be_absent();
    else took = talk();
    long long mine = took, all = 0;
    OK(ncclx_coll_allreduce(&mine, &all, 1, NCCLX_INT64, NCCLX_MAX, WORLD));
    most = (long)all;
    if (rank == 0) printf("ok %d, %ld ms\n", size, most);
    OK(ncclx_finalize());
    return 0;
}
