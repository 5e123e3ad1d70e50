/* Messages between any number of ranks: every way they travel, in every order, with checked contents and untouched
 * surroundings. */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#define GUARD 32
#define MOST ((size_t)1 << 20)

static int rank, size;

/* Around the sizes at which a message takes another way: inline, payload, rendezvous, shared copies; over TCP lent, or begun with the
 * request. */
static const size_t sizes[] = {0,    1,    3,    39,    40,    41,    127,   1024,   4095,    4096,
                               4097, 8191, 8193, 16385, 65535, 65536, 65537, 300001, 700001, MOST + 1, 3 * MOST + 5};
#define SIZES (sizeof sizes / sizeof sizes[0])

static unsigned char byte_of(int from, int to, size_t salt, size_t i)
{
    return (unsigned char)((size_t)from * 31 + (size_t)to * 17 + salt * 7 + i + i / 253);
}

static unsigned char *filled(int from, int to, size_t salt, size_t bytes)
{
    unsigned char *buffer = malloc(bytes + 1);
    CHECK(buffer != NULL);
    for (size_t i = 0; i < bytes; i++) buffer[i] = byte_of(from, to, salt, i);
    return buffer;
}

static unsigned char *guarded(size_t bytes)
{
    unsigned char *block = malloc(bytes + 2 * GUARD);
    CHECK(block != NULL);
    memset(block, 0xa5, bytes + 2 * GUARD);
    return block + GUARD;
}

static void check_guards(const unsigned char *buffer, size_t bytes)
{
    for (size_t i = 1; i <= GUARD; i++) CHECK(buffer[-(ptrdiff_t)i] == 0xa5 && buffer[bytes + i - 1] == 0xa5);
}

static void check_content(const unsigned char *buffer, int from, int to, size_t salt, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) CHECK(buffer[i] == byte_of(from, to, salt, i));
    check_guards(buffer, bytes);
}

/* Each rank sends to the one `shift` above it. early: the receive is posted before the message can be there. */
static void shift_by(int shift, size_t bytes, size_t salt, bool early)
{
    int to = (rank + shift) % size, from = (rank + size - shift) % size;
    unsigned char *out = filled(rank, to, salt, bytes), *in = guarded(bytes);
    ncclx_request_t receive = NCCLX_REQUEST_NULL, send;
    ncclx_status_t status;
    if (early) {
        OK(ncclx_irecv(in, bytes, NCCLX_BYTE, from, 5, NCCLX_COMM_WORLD, &receive));
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    }
    OK(ncclx_isend(out, bytes, NCCLX_BYTE, to, 5, NCCLX_COMM_WORLD, &send));
    if (!early) {
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
        OK(ncclx_irecv(in, bytes, NCCLX_BYTE, from, salt % 2 ? 5 : NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &receive));
    }
    OK(ncclx_wait(&receive, &status));
    CHECK(status.source == from && status.tag == 5 && status.bytes == bytes);
    OK(ncclx_wait(&send, NCCLX_STATUS_IGNORE));
    check_content(in, from, rank, salt, bytes);
    free(out);
    free(in - GUARD);
}

static void every_size(void)
{
    for (size_t i = 0; i < SIZES; i++)
        for (int shift = 0; shift < size && shift < 4; shift++)
            for (int early = 0; early < 2; early++) shift_by(shift, sizes[i], i, early);
}

static void blocking_pairs(void)
{
    int peer = rank ^ 1;
    if (peer >= size) return;
    for (size_t i = 0; i < SIZES; i++) {
        unsigned char *out = filled(rank, peer, i, sizes[i]), *in = guarded(sizes[i]);
        if (rank < peer) {
            OK(ncclx_send(out, sizes[i], NCCLX_BYTE, peer, 1, NCCLX_COMM_WORLD));
            OK(ncclx_recv(in, sizes[i], NCCLX_BYTE, peer, 1, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE));
        } else {
            OK(ncclx_recv(in, sizes[i], NCCLX_BYTE, peer, 1, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE));
            OK(ncclx_send(out, sizes[i], NCCLX_BYTE, peer, 1, NCCLX_COMM_WORLD));
        }
        check_content(in, peer, rank, i, sizes[i]);
        memset(in, 0xa5, sizes[i]);
        OK(ncclx_sendrecv(out, sizes[i], in, sizes[i], NCCLX_BYTE, peer, 2, peer, 2, NCCLX_COMM_WORLD,
                          NCCLX_STATUS_IGNORE));
        check_content(in, peer, rank, i, sizes[i]);
        free(out);
        free(in - GUARD);
    }
}

/* Everybody floods rank 0, which looks only later: order of each source, any source, any tag. */
static void flood_of_one(void)
{
    enum { COUNT = 300 };
    int next[64] = {0};
    if (rank) {
        int value[2] = {rank, 0};
        for (int i = 0; i < COUNT; i++) {
            value[1] = i;
            OK(ncclx_send(value, 2, NCCLX_INT32, 0, i % 7, NCCLX_COMM_WORLD));
        }
        return;
    }
    for (int i = 0; i < COUNT * (size - 1); i++) {
        int value[2];
        ncclx_status_t status;
        OK(ncclx_recv(value, 2, NCCLX_INT32, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &status));
        CHECK(status.source == value[0] && value[1] == next[value[0]] && status.tag == value[1] % 7);
        next[value[0]]++;
    }
}

/* All to all at once, with sizes that both sides compute; received in order by probe, by mprobe, or directly. */
static size_t random_size(int from, int to, int number)
{
    unsigned seed = (unsigned)(from * 7919 + to * 104729 + number * 1299709);
    seed ^= seed >> 13;
    seed *= 2654435761u;
    seed ^= seed >> 16;
    switch (seed % 8) {
    case 0:
        return seed / 8 % 41;
    case 1:
        return seed / 8 % 70000;
    default:
        return seed / 8 % 3000;
    }
}

static void receive_some_way(int from, int number)
{
    size_t bytes = random_size(from, rank, number);
    unsigned char *in = guarded(bytes);
    ncclx_status_t status;
    if (number % 3 == 0) {
        OK(ncclx_recv(in, bytes, NCCLX_BYTE, from, number, NCCLX_COMM_WORLD, &status));
    } else if (number % 3 == 1) {
        OK(ncclx_probe(from, NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &status));
        CHECK(status.bytes == bytes && status.tag == number && status.source == from);
        OK(ncclx_recv(in, bytes, NCCLX_BYTE, from, NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &status));
    } else {
        ncclx_message_t message;
        OK(ncclx_mprobe(from, number, NCCLX_COMM_WORLD, &message, &status));
        CHECK(status.bytes == bytes);
        OK(ncclx_mrecv(in, bytes, NCCLX_BYTE, &message, &status));
        CHECK(message == NCCLX_MESSAGE_NULL);
    }
    CHECK(status.bytes == bytes && status.tag == number && status.source == from);
    check_content(in, from, rank, (size_t)number, bytes);
    free(in - GUARD);
}

static void random_traffic(void)
{
    enum { COUNT = 60 };
    ncclx_request_t *send = calloc((size_t)size * COUNT, sizeof *send);
    unsigned char **out = calloc((size_t)size * COUNT, sizeof *out);
    CHECK(send && out);
    for (int i = 0; i < COUNT; i++) {
        for (int to = 0; to < size; to++) {
            size_t bytes = random_size(rank, to, i), at = (size_t)(i * size + to);
            out[at] = filled(rank, to, (size_t)i, bytes);
            OK(ncclx_isend(out[at], bytes, NCCLX_BYTE, to, i, NCCLX_COMM_WORLD, &send[at]));
        }
    }
    for (int i = 0; i < COUNT; i++)
        for (int from = 0; from < size; from++) receive_some_way((from + rank) % size, i);
    OK(ncclx_waitall((size_t)(size * COUNT), send, NCCLX_STATUSES_IGNORE));
    for (int i = 0; i < size * COUNT; i++) free(out[i]);
    free(out);
    free(send);
}

/* Receives posted from the last tag to the first, large and small, while the messages come the other way round. */
static void backward_posts(void)
{
    enum { COUNT = 40 };
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    ncclx_request_t receive[COUNT], send[COUNT];
    unsigned char *in[COUNT], *out[COUNT];
    for (int i = COUNT - 1; i >= 0; i--) {
        in[i] = guarded(sizes[(size_t)i % (SIZES - 1)]);
        OK(ncclx_irecv(in[i], sizes[(size_t)i % (SIZES - 1)], NCCLX_BYTE, i % 5 ? from : NCCLX_ANY_SOURCE, i,
                       NCCLX_COMM_WORLD, &receive[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        out[i] = filled(rank, to, (size_t)i, sizes[(size_t)i % (SIZES - 1)]);
        OK(ncclx_isend(out[i], sizes[(size_t)i % (SIZES - 1)], NCCLX_BYTE, to, i, NCCLX_COMM_WORLD, &send[i]));
    }
    OK(ncclx_waitall(COUNT, receive, NCCLX_STATUSES_IGNORE));
    OK(ncclx_waitall(COUNT, send, NCCLX_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        check_content(in[i], from, rank, (size_t)i, sizes[(size_t)i % (SIZES - 1)]);
        free(in[i] - GUARD);
        free(out[i]);
    }
}

static void cancelled(void)
{
    int from = (rank + size - 1) % size, to = (rank + 1) % size;
    for (size_t bytes = 8; bytes < 10000000; bytes *= 100) {
        unsigned char *in = guarded(bytes), *out = filled(rank, to, 3, bytes);
        ncclx_request_t receive, send;
        ncclx_status_t status;
        OK(ncclx_irecv(in, bytes, NCCLX_BYTE, from, 77, NCCLX_COMM_WORLD, &receive));
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
        OK(ncclx_cancel(&receive));
        OK(ncclx_wait(&receive, &status));
        CHECK(status.cancelled == 1);
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
        OK(ncclx_isend(out, bytes, NCCLX_BYTE, to, 77, NCCLX_COMM_WORLD, &send));
        OK(ncclx_recv(in, bytes, NCCLX_BYTE, from, 77, NCCLX_COMM_WORLD, &status));
        CHECK(status.cancelled == 0);
        OK(ncclx_wait(&send, NCCLX_STATUS_IGNORE));
        check_content(in, from, rank, 3, bytes);
        free(in - GUARD);
        free(out);
    }
}

/* A cancel that races with the message: either it is cancelled and the message goes to the next receive, or it is
 * received. */
static void cancel_races(void)
{
    int from = (rank + size - 1) % size, to = (rank + 1) % size;
    enum { BYTES = 20000 };
    static unsigned char in[BYTES], out[BYTES];
    for (int i = 0; i < 50; i++) {
        ncclx_request_t receive, send;
        ncclx_status_t status;
        memset(out, i, sizeof out);
        OK(ncclx_irecv(in, BYTES, NCCLX_BYTE, from, 9, NCCLX_COMM_WORLD, &receive));
        OK(ncclx_isend(out, BYTES, NCCLX_BYTE, to, 9, NCCLX_COMM_WORLD, &send));
        OK(ncclx_cancel(&receive));
        OK(ncclx_wait(&receive, &status));
        if (status.cancelled) OK(ncclx_recv(in, BYTES, NCCLX_BYTE, from, 9, NCCLX_COMM_WORLD, &status));
        CHECK(status.bytes == BYTES && in[0] == i && in[BYTES - 1] == i);
        OK(ncclx_wait(&send, NCCLX_STATUS_IGNORE));
    }
}

static void truncated(void)
{
    int from = (rank + size - 1) % size, to = (rank + 1) % size;
    static const size_t sent[] = {9, 41, 4000, 5000, 200000, 700000, 3 * MOST};
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        for (int early = 0; early < 2; early++) {
            size_t room = sent[i] - 1;
            unsigned char *out = filled(rank, to, i, sent[i]), *in = guarded(room);
            ncclx_request_t receive = NCCLX_REQUEST_NULL, send;
            if (early) OK(ncclx_irecv(in, room, NCCLX_BYTE, from, 8, NCCLX_COMM_WORLD, &receive));
            OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
            OK(ncclx_isend(out, sent[i], NCCLX_BYTE, to, 8, NCCLX_COMM_WORLD, &send));
            if (early) FAILS(ncclx_wait(&receive, NCCLX_STATUS_IGNORE), NCCLX_ERR_TRUNCATE);
            else
                FAILS(ncclx_recv(in, room, NCCLX_BYTE, from, 8, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE),
                      NCCLX_ERR_TRUNCATE);
            OK(ncclx_wait(&send, NCCLX_STATUS_IGNORE));
            check_guards(in, room);
            free(out);
            free(in - GUARD);
        }
    }
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL));
}

/* Memory that peers can map is ordinary memory to messages. */
static void shareable_buffers(void)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    void *out, *in;
    OK(ncclx_mem_alloc(MOST, NCCLX_MEM_HOST, &out));
    OK(ncclx_mem_alloc(MOST, NCCLX_MEM_HOST, &in));
    for (size_t i = 0; i < MOST; i++) ((unsigned char *)out)[i] = byte_of(rank, to, 2, i);
    OK(ncclx_sendrecv(out, MOST, in, MOST, NCCLX_BYTE, to, 4, from, 4, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE));
    for (size_t i = 0; i < MOST; i++) CHECK(((unsigned char *)in)[i] == byte_of(from, rank, 2, i));
    OK(ncclx_mem_free(out));
    OK(ncclx_mem_free(in));
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"every_size", every_size},
                 {"blocking_pairs", blocking_pairs},
                 {"flood_of_one", flood_of_one},
                 {"random_traffic", random_traffic},
                 {"backward_posts", backward_posts},
                 {"cancelled", cancelled},
                 {"cancel_races", cancel_races},
                 {"truncated", truncated},
                 {"shareable_buffers", shareable_buffers}};
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    CHECK(size <= 64);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (getenv("P2P_VERBOSE") && !rank) fprintf(stderr, "%s\n", tests[i].name);
        tests[i].run();
        OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    }
    OK(ncclx_finalize());
    return 0;
}
