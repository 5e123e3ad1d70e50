/* pingpong.c - latency and bandwidth of messages between ranks 0 and 1, by size.
 *
 * Shows: send and receive, timing, contents checked on arrival. Latency is half a round trip; bandwidth is bytes one way in that time.
 *
 *     ncclxcc pingpong.c -o pingpong
 *     ncclxrun -n 2 ./pingpong [LARGEST]        LARGEST message in bytes, default 4194304; suffixes K, M, G
 */
#include <errno.h>
#include <ncclx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 0
#define WORK (UINT64_C(64) << 20) /* bytes moved for one size, about */
#define MOST_ROUNDS 10000
#define LEAST_ROUNDS 4

/* The number with its suffix; 0 when it is none. */
static size_t size_of(const char *text)
{
    static const char suffixes[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno) return 0;
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        const int shift = 10 * (int)(suffix - suffixes + 1);
        if (bytes > SIZE_MAX >> shift) return 0;
        bytes <<= shift;
        end++;
    }
    return *end ? 0 : (size_t)bytes;
}

/* Seconds of one round trip. Every message is filled by the round, and its first and last byte are checked. */
static double round_trip(int rank, char *buffer, size_t bytes, int rounds)
{
    const int peer = 1 - rank, warm_up = rounds / 10 + 1;
    double start = 0;
    for (int round = -warm_up; round < rounds; round++) {
        const char mark = (char)(round & 0x7f);
        if (round == 0) start = ncclx_wtime();
        if (rank == 0) {
            if (bytes) buffer[0] = buffer[bytes - 1] = mark;
            ncclx_send(buffer, bytes, NCCLX_BYTE, peer, TAG, NCCLX_COMM_WORLD);
        }
        if (bytes && rank == 0) buffer[0] = buffer[bytes - 1] = -1;
        ncclx_recv(buffer, bytes, NCCLX_BYTE, peer, TAG, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE);
        if (bytes && (buffer[0] != mark || buffer[bytes - 1] != mark)) {
            fprintf(stderr, "pingpong: rank %d got wrong bytes in a message of %zu\n", rank, bytes);
            ncclx_abort(NCCLX_COMM_WORLD, 1);
        }
        if (rank == 1) ncclx_send(buffer, bytes, NCCLX_BYTE, peer, TAG, NCCLX_COMM_WORLD);
    }
    return (ncclx_wtime() - start) / rounds;
}

static void measure(int rank, char *buffer, size_t largest)
{
    if (rank == 0) printf("%12s %14s %14s\n", "bytes", "latency, us", "MB/s");
    for (size_t bytes = 0; bytes <= largest; bytes = bytes ? bytes * 2 : 1) {
        uint64_t rounds = WORK / (bytes + 1);
        if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
        if (rounds < LEAST_ROUNDS) rounds = LEAST_ROUNDS;
        const double seconds = round_trip(rank, buffer, bytes, (int)rounds) / 2;
        if (rank == 0) printf("%12zu %14.3f %14.1f\n", bytes, seconds * 1e6, (double)bytes / seconds / 1e6);
        if (rank == 0) fflush(stdout);
        if (bytes > SIZE_MAX / 2) break;
    }
}

int main(int argc, char **argv)
{
    int rank, size;

    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    const size_t largest = argc > 1 ? size_of(argv[1]) : (size_t)4 << 20;
    if (argc > 2 || largest == 0 || size < 2) {
        if (rank == 0)
            fprintf(stderr, size < 2 ? "pingpong: needs two ranks: ncclxrun -n 2 pingpong\n"
                                     : "usage: pingpong [LARGEST]   (bytes, at least 1; K, M, G)\n");
        ncclx_finalize();
        return 2;
    }
    if (rank < 2) {
        char *buffer = malloc(largest);
        if (!buffer) {
            fprintf(stderr, "pingpong: no memory for a message of %zu bytes\n", largest);
            ncclx_abort(NCCLX_COMM_WORLD, 1);
        }
        memset(buffer, 0, largest);
        measure(rank, buffer, largest);
        free(buffer);
    }
    ncclx_coll_barrier(NCCLX_COMM_WORLD); /* ranks other than 0 and 1 wait here */
    ncclx_finalize();
    return 0;
}
