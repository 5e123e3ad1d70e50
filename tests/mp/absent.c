/* absent.c - absent [SECONDS]: the last rank is stopped, for so long, before anybody has connected to it. All others begin to send to it, and then talk to
 * each other, which nothing may delay. Then it goes on, and gets what was sent. Rank 0 prints "ok RANKS, N ms".
 *
 * absent SECONDS receiving: it is stopped when it has said where a large message of rank 0 goes. */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD

#define LARGE ((size_t)24 << 20)

static int rank, size;
static unsigned seconds = 4;

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void stop(void)
{
    pid_t self = getpid(), child = fork();
    CHECK(child >= 0);
    if (!child) {
        sleep(seconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

static void be_absent(void)
{
    stop();
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

static void send_large(void)
{
    size_t bytes = LARGE;
    char *data = calloc(1, bytes);
    ncclx_request_t request;
    CHECK(data);
    if (rank == 0) {
        memset(data, 7, bytes);
        OK(ncclx_send(data, bytes, NCCLX_BYTE, size - 1, 3, WORLD));
    } else if (rank == size - 1) {
        OK(ncclx_probe(0, 3, WORLD, NULL));
        OK(ncclx_irecv(data, bytes, NCCLX_BYTE, 0, 3, WORLD, &request));
        stop();
        OK(ncclx_wait(&request, NULL));
        CHECK(data[0] == 7 && !memcmp(data, data + 1, bytes - 1));
    }
    free(data);
}

int main(int argc, char **argv)
{
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    long took = 0, most = 0;
    if (argc > 1) seconds = (unsigned)atoi(argv[1]);
    if (argc > 2) send_large();
    else if (rank == size - 1) be_absent();
    else {
        usleep(200000); /* it is stopped by then */
        took = talk();
    }
    long long mine = took, all = 0;
    OK(ncclx_coll_allreduce(&mine, &all, 1, NCCLX_INT64, NCCLX_MAX, WORLD));
    most = (long)all;
    if (rank == 0) printf("ok %d, %ld ms\n", size, most);
    OK(ncclx_finalize());
    return 0;
}
