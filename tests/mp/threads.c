/* Four threads of each rank use the library at once: messages, requests, collectives on communicators of their own,
 * duplicates. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 60

static int rank, size;
static ncclx_comm_t own[THREADS];

/* Ring exchange of small and larger messages on COMM_WORLD, told apart by tag. */
static void messages(int thread, int round)
{
    enum { MOST = 20000 };
    static _Thread_local int sent[MOST], got[MOST];
    int count = round % 5 == 0 ? MOST : 1 + round, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    ncclx_request_t requests[2];
    for (int i = 0; i < count; i++) sent[i] = rank * 1000 + thread + i;
    OK(ncclx_irecv(got, (size_t)count, NCCLX_INT32, previous, thread, NCCLX_COMM_WORLD, &requests[0]));
    OK(ncclx_isend(sent, (size_t)count, NCCLX_INT32, next, thread, NCCLX_COMM_WORLD, &requests[1]));
    OK(ncclx_waitall(2, requests, NCCLX_STATUSES_IGNORE));
    CHECK(got[0] == previous * 1000 + thread && got[count - 1] == previous * 1000 + thread + count - 1);
}

static void collectives(int thread, int round)
{
    int64_t sum = rank + round, expected = (int64_t)size * (size - 1) / 2 + (int64_t)size * round;
    OK(ncclx_coll_allreduce(NCCLX_IN_PLACE, &sum, 1, NCCLX_INT64, NCCLX_SUM, own[thread]));
    CHECK(sum == expected);
    if (round % 7 == 0) OK(ncclx_coll_barrier(own[thread]));
}

static void *work(void *arg)
{
    int thread = *(int *)arg;
    for (int round = 0; round < ROUNDS; round++) {
        messages(thread, round);
        collectives(thread, round);
        if (round % 20 == thread) {
            ncclx_comm_t copy;
            OK(ncclx_comm_dup(own[thread], &copy));
            OK(ncclx_coll_barrier(copy));
            OK(ncclx_comm_free(&copy));
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], level;
    OK(ncclx_init_thread(NULL, NULL, NCCLX_THREAD_MULTIPLE, NULL));
    OK(ncclx_query_thread(&level));
    CHECK(level == NCCLX_THREAD_MULTIPLE);
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    for (int i = 0; i < THREADS; i++) OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &own[i]));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) OK(ncclx_comm_free(&own[i]));
    OK(ncclx_finalize());
    return 0;
}
