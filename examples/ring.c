/* ring.c - a token goes round all ranks; each adds one.
 *
 * Shows: blocking send and receive, sendrecv where both must happen at once, timing.
 *
 *     ncclxcc ring.c -o ring
 *     ncclxrun -n 4 ./ring [ROUNDS]
 */
#include <errno.h>
#include <ncclx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TAG 0
#define MAX_ROUNDS 100000000

/* The first argument, or 100; -1 when it is not a number of rounds. */
static long rounds_wanted(int argc, char **argv)
{
    char *end;
    if (argc < 2) return 100;
    errno = 0;
    long rounds = strtol(argv[1], &end, 10);
    return argc > 2 || end == argv[1] || *end || errno || rounds < 1 || rounds > MAX_ROUNDS ? -1 : rounds;
}

int main(int argc, char **argv)
{
    int rank, size;
    int64_t token = 0;

    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    const long rounds = rounds_wanted(argc, argv);
    if (rounds < 0) {
        if (rank == 0) fprintf(stderr, "usage: ring [ROUNDS]   (1 to %d)\n", MAX_ROUNDS);
        ncclx_finalize();
        return 2;
    }
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    ncclx_coll_barrier(NCCLX_COMM_WORLD);
    const double start = ncclx_wtime();
    for (long round = 0; round < rounds; round++) {
        if (rank == 0) {
            int64_t sent = token + 1;
            ncclx_sendrecv(&sent, 1, &token, 1, NCCLX_INT64, next, TAG, previous, TAG, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE);
        } else {
            ncclx_recv(&token, 1, NCCLX_INT64, previous, TAG, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE);
            token++;
            ncclx_send(&token, 1, NCCLX_INT64, next, TAG, NCCLX_COMM_WORLD);
        }
    }
    const double seconds = ncclx_wtime() - start;

    int failed = 0;
    if (rank == 0) {
        const int64_t hops = (int64_t)rounds * size;
        failed = token != hops;
        printf("ring of %d ranks, %ld rounds: token %lld%s, %.3f us a hop\n", size, rounds, (long long)token,
               failed ? " (WRONG)" : "", seconds / (double)hops * 1e6);
    }
    ncclx_finalize();
    return failed;
}
