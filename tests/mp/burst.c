/* burst.c - many messages to one peer before any is waited for, and messages that go into their receive as they come:
 *
 *     burst order         all sizes, begun and sent, with and without a receive that waits: in order, and whole
 *     burst first FILE    the first message of a burst is not kept for others: it comes while its sender does nothing but look for
 *                         FILE, which the receiver makes; all ranks see it
 *
 * From rank 0 to the last. */
#include "tests/mp/check.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES 600
#define LARGEST ((size_t)70000)

static int rank, last;

static unsigned char pattern(int message, size_t i)
{
    return (unsigned char)((size_t)message * 31 + i * 7 + i / 251 + 1);
}

/* From empty to above the eager limit, mostly small. */
static size_t bytes_of(int message)
{
    uint32_t hash = (uint32_t)message * UINT32_C(2654435761);
    return message % 7 == 6 ? hash % LARGEST : message % 3 == 2 ? hash % 9000 : hash % 100;
}

static void send_all(void)
{
    static unsigned char *data[MESSAGES];
    static ncclx_request_t request[MESSAGES];
    int begun = 0;
    for (int m = 0; m < MESSAGES; m++) {
        size_t bytes = bytes_of(m);
        data[m] = malloc(bytes + 1);
        CHECK(data[m] != NULL);
        for (size_t i = 0; i < bytes; i++) data[m][i] = pattern(m, i);
        if (m % 41 == 40) OK(ncclx_send(data[m], bytes, NCCLX_BYTE, last, 5, NCCLX_COMM_WORLD));
        else OK(ncclx_isend(data[m], bytes, NCCLX_BYTE, last, 5, NCCLX_COMM_WORLD, &request[begun++]));
    }
    OK(ncclx_waitall((size_t)begun, request, NCCLX_STATUSES_IGNORE));
    for (int m = 0; m < MESSAGES; m++) free(data[m]);
}

/* ahead: receives that wait before anything is sent. */
static void receive_all(int ahead)
{
    static unsigned char *data[MESSAGES];
    static ncclx_request_t request[MESSAGES];
    for (int m = 0; m < MESSAGES; m++) {
        data[m] = malloc(LARGEST);
        CHECK(data[m] != NULL);
        memset(data[m], 0, LARGEST);
    }
    for (int m = 0; m < ahead; m++) OK(ncclx_irecv(data[m], LARGEST, NCCLX_BYTE, 0, 5, NCCLX_COMM_WORLD, &request[m]));
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    for (int m = ahead; m < MESSAGES; m++) OK(ncclx_irecv(data[m], LARGEST, NCCLX_BYTE, 0, 5, NCCLX_COMM_WORLD, &request[m]));
    for (int m = 0; m < MESSAGES; m++) {
        ncclx_status_t status;
        OK(ncclx_wait(&request[m], &status));
        CHECK(status.bytes == bytes_of(m));
        for (size_t i = 0; i < status.bytes; i++) CHECK(data[m][i] == pattern(m, i));
        for (size_t i = status.bytes; i < status.bytes + 16 && i < LARGEST; i++) CHECK(data[m][i] == 0);
        free(data[m]);
    }
}

/* One that is too long for its receive, right after its beginning has come. */
static void truncated(void)
{
    static char data[60000];
    int word = 0;
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    if (rank == 0) {
        OK(ncclx_send(data, sizeof data, NCCLX_BYTE, last, 6, NCCLX_COMM_WORLD));
        word = 17;
        OK(ncclx_send(&word, 1, NCCLX_INT32, last, 6, NCCLX_COMM_WORLD));
    } else if (rank == last) {
        FAILS(ncclx_recv(data, 40000, NCCLX_BYTE, 0, 6, NCCLX_COMM_WORLD, NULL), NCCLX_ERR_TRUNCATE);
        OK(ncclx_recv(&word, 1, NCCLX_INT32, 0, 6, NCCLX_COMM_WORLD, NULL));
        CHECK(word == 17);
    }
}

static void first(const char *file)
{
    int got = 3;
    (void)unlink(file);
    OK(ncclx_coll_allreduce(NCCLX_IN_PLACE, &got, 1, NCCLX_INT32, NCCLX_MAX, NCCLX_COMM_WORLD));
    if (rank == 0) {
        ncclx_request_t request;
        OK(ncclx_send(&got, 1, NCCLX_INT32, last, 7, NCCLX_COMM_WORLD)); /* and there is a connection */
        OK(ncclx_recv(&got, 1, NCCLX_INT32, last, 7, NCCLX_COMM_WORLD, NULL));
        OK(ncclx_isend(&got, 1, NCCLX_INT32, last, 8, NCCLX_COMM_WORLD, &request));
        while (access(file, F_OK)) usleep(1000); /* the test ends by its deadline if the message is not on its way */
        OK(ncclx_wait(&request, NULL));
    } else if (rank == last) {
        OK(ncclx_recv(&got, 1, NCCLX_INT32, 0, 7, NCCLX_COMM_WORLD, NULL));
        OK(ncclx_send(&got, 1, NCCLX_INT32, 0, 7, NCCLX_COMM_WORLD));
        OK(ncclx_recv(&got, 1, NCCLX_INT32, 0, 8, NCCLX_COMM_WORLD, NULL));
        FILE *made = fopen(file, "w");
        CHECK(made && !fclose(made));
    }
}

static void order(void)
{
    for (int ahead = MESSAGES; ahead >= 0; ahead -= MESSAGES / 2) {
        if (rank == last) receive_all(ahead);
        else OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
        if (rank == 0) send_all();
    }
    truncated();
}

int main(int argc, char **argv)
{
    int size;
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    CHECK(argc >= 2 && size >= 2);
    last = size - 1;
    if (argc == 3 && !strcmp(argv[1], "first")) first(argv[2]);
    else order();
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
