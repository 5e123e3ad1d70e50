/* coll.c - collectives between processes: blocking ones and several non-blocking ones at a time, on COMM_WORLD, a
 * duplicate and a split, with canaries around every buffer, against what one rank alone computes. Prints nothing
 * when all is well.
 *
 *     coll [COUNTS]     how many of the counts below are tried
 *     coll mismatch     what a call with different arguments is told
 */
#include <ncclx.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY_BYTES 64
#define CANARY 0xC5
#define GARBAGE 0x9D
#define MOST_AT_ONCE 8

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, KINDS };
static const char *const kind_name[] = {"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"};

enum operands { SUM, AVERAGE, FLOATS, ORDERED, OPERANDS };

struct call {
    enum kind kind;
    enum operands operands;
    size_t count;
    int root, in_place;
    ncclx_comm_t comm;
    int rank, size;
    unsigned number; /* makes each call's data its own */
    size_t element, send_count, recv_count;
    char *send, *recv; /* blocks, with canaries */
    ncclx_request_t request;
};

static ncclx_op_t ordered_op;
static unsigned calls;

static void __attribute__((format(printf, 2, 3), noreturn)) fail(const struct call *call, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s of %zu (operands %d), root %d, in place %d, call %u, rank %d of %d: ", kind_name[call->kind],
            call->count, call->operands,
            call->root, call->in_place, call->number, call->rank, call->size);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void must(const struct call *call, int code)
{
    if (code) fail(call, "%s: %s", ncclx_error_string(code), ncclx_error_detail());
}

/* ---- Data ------------------------------------------------------------------------------------------------------ */

struct line {
    int64_t a, b;
};

/* Composition of x -> a x + b: associative, not commutative. */
static void compose(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    const struct line *lower = in;
    struct line *higher = inout;
    (void)type, (void)user;
    for (size_t i = 0; i < count; i++) {
        uint64_t a = (uint64_t)higher[i].a, b = (uint64_t)higher[i].b;
        higher[i].a = (int64_t)(a * (uint64_t)lower[i].a);
        higher[i].b = (int64_t)(a * (uint64_t)lower[i].b + b);
    }
}

static ncclx_datatype_t type_of(const struct call *call)
{
    static const ncclx_datatype_t type[] = {NCCLX_INT64, NCCLX_INT64, NCCLX_FLOAT, NCCLX_INT64_PAIR};
    return type[call->operands];
}

static ncclx_op_t op_of(const struct call *call)
{
    if (call->operands == ORDERED) return ordered_op;
    return call->operands == AVERAGE ? NCCLX_AVG : NCCLX_SUM;
}

static void element(const struct call *call, int rank, size_t index, void *out)
{
    int64_t value = (int64_t)index * 131 + rank * 1009 + (int64_t)call->number * 7 + 1;
    struct line line = {value | 1, value * 3 + rank};
    float number = (float)(value % 10007) / 7.0f;
    if (call->operands == ORDERED) memcpy(out, &line, sizeof line);
    else if (call->operands == FLOATS) memcpy(out, &number, sizeof number);
    else memcpy(out, &value, sizeof value);
}

static void reduced(const struct call *call, size_t index, void *out)
{
    char sum[16], next[16];
    int64_t total = 0, value;
    element(call, 0, index, sum);
    for (int rank = 1; rank < call->size; rank++) {
        element(call, rank, index, next);
        if (call->operands == ORDERED) {
            compose(sum, next, 1, NCCLX_INT64_PAIR, NULL);
            memcpy(sum, next, sizeof sum);
        } else if (call->operands == FLOATS) {
            float a, b;
            memcpy(&a, sum, sizeof a);
            memcpy(&b, next, sizeof b);
            a += b;
            memcpy(sum, &a, sizeof a);
        } else {
            memcpy(&total, sum, sizeof total);
            memcpy(&value, next, sizeof value);
            total += value;
            memcpy(sum, &total, sizeof total);
        }
    }
    if (call->operands == AVERAGE) {
        memcpy(&total, sum, sizeof total);
        total /= call->size;
        memcpy(sum, &total, sizeof total);
    }
    memcpy(out, sum, call->element);
}

static void expected(const struct call *call, size_t index, void *out)
{
    switch (call->kind) {
    case BCAST: element(call, call->root, index, out); return;
    case ALLGATHER: element(call, (int)(index / call->count), index % call->count, out); return;
    case ALLTOALL: element(call, (int)(index / call->count), (size_t)call->rank * call->count + index % call->count, out); return;
    default: reduced(call, index, out);
    }
}

static int equal(const struct call *call, const void *got, const void *wanted)
{
    float a, b;
    if (call->operands != FLOATS || call->kind == BCAST) return !memcmp(got, wanted, call->element);
    memcpy(&a, got, sizeof a);
    memcpy(&b, wanted, sizeof b);
    return a - b <= b * 1e-4f && b - a <= b * 1e-4f; /* the order of additions is the library's */
}

/* ---- One call --------------------------------------------------------------------------------------------------- */

static char *make_buffer(size_t bytes)
{
    char *block = malloc(bytes + 2 * CANARY_BYTES);
    if (!block) exit(99);
    memset(block, CANARY, bytes + 2 * CANARY_BYTES);
    memset(block + CANARY_BYTES, GARBAGE, bytes);
    return block;
}

static void check_canaries(const struct call *call, const char *block, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if ((unsigned char)block[i] != CANARY || (unsigned char)block[CANARY_BYTES + bytes + i] != CANARY) fail(call,
                                                                                                                "wrote outside a buffer");
}

static void prepare(struct call *call)
{
    ncclx_comm_rank(call->comm, &call->rank);
    ncclx_comm_size(call->comm, &call->size);
    size_t size = (size_t)call->size;
    int is_root = call->rank == call->root;
    if (call->kind != REDUCE && call->kind != ALLREDUCE) call->operands = SUM;
    if (call->kind == BARRIER) call->count = 0;
    if (call->kind == BARRIER || call->kind == BCAST || (call->kind == REDUCE && !is_root)) call->in_place = 0;
    call->number = calls++;
    ncclx_type_size(type_of(call), &call->element);
    call->send_count = call->kind == BCAST ? 0 : call->kind == ALLTOALL ? size * call->count : call->count;
    call->recv_count = call->kind == ALLGATHER || call->kind == ALLTOALL ? size * call->count : call->count;
    if (call->kind == REDUCE && !is_root) call->recv_count = 0;
    call->send = make_buffer(call->send_count * call->element);
    call->recv = make_buffer(call->recv_count * call->element);
    char *input = call->in_place || call->kind == BCAST ? call->recv : call->send;
    size_t skip = call->in_place && call->kind == ALLGATHER ? (size_t)call->rank * call->count : 0;
    size_t given = call->kind == BCAST ? (is_root ? call->count : 0) : call->send_count;
    for (size_t i = 0; i < given; i++) element(call, call->rank, i, input + CANARY_BYTES + (skip + i) * call->element);
}

static void begin(struct call *call, int blocking)
{
    const void *send = call->in_place ? NCCLX_IN_PLACE : call->send + CANARY_BYTES;
    void *recv = call->recv + CANARY_BYTES;
    ncclx_datatype_t type = type_of(call);
    ncclx_comm_t comm = call->comm;
    ncclx_request_t *request = &call->request;
    size_t n = call->count;
    switch (call->kind) {
    case BARRIER: must(call, blocking ? ncclx_coll_barrier(comm) : ncclx_coll_ibarrier(comm, request)); break;
    case BCAST:
        must(call, blocking ? ncclx_coll_bcast(recv, n, type, call->root, comm) : ncclx_coll_ibcast(recv, n, type,
                                                                                                    call->root, comm, request));
        break;
    case REDUCE:
        must(call, blocking ? ncclx_coll_reduce(send, recv, n, type, op_of(call), call->root, comm)
                            : ncclx_coll_ireduce(send, recv, n, type, op_of(call), call->root, comm, request));
        break;
    case ALLREDUCE:
        must(call, blocking ? ncclx_coll_allreduce(send, recv, n, type, op_of(call), comm)
                            : ncclx_coll_iallreduce(send, recv, n, type, op_of(call), comm, request));
        break;
    case ALLGATHER:
        must(call, blocking ? ncclx_coll_allgather(send, recv, n, type, comm) : ncclx_coll_iallgather(send, recv, n, type, comm, request));
        break;
    default: must(call, blocking ? ncclx_coll_alltoall(send, recv, n, type, comm) : ncclx_coll_ialltoall(send, recv, n,
                                                                                                         type, comm, request));
    }
}

/* Floats: the same bits everywhere, which rank 0 hands round for comparison. */
static void check_bits(const struct call *call)
{
    size_t bytes = call->recv_count * call->element;
    char *first = malloc(bytes + 1);
    if (!first) exit(99);
    memcpy(first, call->recv + CANARY_BYTES, bytes);
    must(call, ncclx_coll_bcast(first, bytes, NCCLX_BYTE, 0, call->comm));
    if (memcmp(first, call->recv + CANARY_BYTES, bytes)) fail(call, "other bits than on rank 0");
    free(first);
}

static void finish(struct call *call, int blocking)
{
    char wanted[16];
    check_canaries(call, call->send, call->send_count * call->element);
    check_canaries(call, call->recv, call->recv_count * call->element);
    for (size_t i = 0; i < call->recv_count; i++) {
        expected(call, i, wanted);
        if (!equal(call, call->recv + CANARY_BYTES + i * call->element, wanted)) fail(call, "element %zu is wrong", i);
    }
    if (blocking && call->kind == ALLREDUCE && call->operands == FLOATS) check_bits(call);
    free(call->send);
    free(call->recv);
}

/* ---- Programs of calls ------------------------------------------------------------------------------------------ */

static void blocking_calls(ncclx_comm_t comm, const size_t *counts, size_t count_count)
{
    int size;
    ncclx_comm_size(comm, &size);
    for (size_t i = 0; i < count_count; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            int rooted = kind == BCAST || kind == REDUCE, reduces = kind == REDUCE || kind == ALLREDUCE;
            int roots = !rooted ? 1 : counts[i] <= 100 ? size : 2;
            for (int r = 0; r < roots; r++) {
                for (int variant = 0; variant < (reduces ? 2 * OPERANDS : 2); variant++) {
                    struct call call = {.kind = (enum kind)kind, .comm = comm, .count = counts[i], .in_place = variant % 2,
                                        .operands = (enum operands)(variant / 2), .root = roots == 2 ? r * (size - 1) : r};
                    prepare(&call);
                    begin(&call, 1);
                    finish(&call, 1);
                }
            }
        }
    }
}

/* The same call gives the same bits, the first time as later, whatever its size. */
static void repeated_calls(ncclx_comm_t comm)
{
    static const size_t counts[] = {1, 100, 3000, 30000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct call call = {.kind = ALLREDUCE, .operands = FLOATS, .comm = comm, .count = counts[i]};
        size_t bytes = counts[i] * sizeof(float);
        char *first = malloc(bytes);
        unsigned number = calls;
        if (!first) exit(99);
        for (int again = 0; again < 6; again++) {
            calls = number; /* the same data */
            prepare(&call);
            begin(&call, 1);
            if (!again) memcpy(first, call.recv + CANARY_BYTES, bytes);
            if (memcmp(first, call.recv + CANARY_BYTES, bytes)) fail(&call, "other bits when repeated");
            finish(&call, 1);
        }
        free(first);
    }
}

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

/* Up to MOST_AT_ONCE collectives at a time, completed in another order on each rank. */
static void overlapping_calls(const ncclx_comm_t *comms, unsigned comm_count, unsigned rounds)
{
    static const size_t counts[] = {0, 1, 3, 64, 777, 5000};
    unsigned common = 12345, private;
    int world;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &world);
    private = 77u + (unsigned)world;
    for (unsigned round = 0; round < rounds; round++) {
        struct call call[MOST_AT_ONCE];
        unsigned at_once = 1 + draw(&common, MOST_AT_ONCE), left = at_once;
        memset(call, 0, sizeof call);
        for (unsigned i = 0; i < at_once; i++) {
            int size;
            call[i].kind = (enum kind)draw(&common, KINDS);
            call[i].operands = (enum operands)draw(&common, OPERANDS);
            call[i].count = counts[draw(&common, sizeof counts / sizeof counts[0])];
            call[i].in_place = (int)draw(&common, 2);
            call[i].comm = comms[draw(&common, comm_count)];
            ncclx_comm_size(call[i].comm, &size);
            call[i].root = (int)(draw(&common, 1000) % (unsigned)size);
            prepare(&call[i]);
            begin(&call[i], 0);
        }
        while (left) {
            unsigned i = draw(&private, at_once);
            if (!call[i].send) continue;
            must(&call[i], ncclx_wait(&call[i].request, NCCLX_STATUS_IGNORE));
            finish(&call[i], 0);
            call[i].send = NULL;
            left--;
        }
    }
}

/* A broadcast of which rank 1 expects less than it gets: rank 1 is told, and nothing hangs. */
static int mismatch(void)
{
    char buf[200] = {0};
    int rank;
    if (ncclx_comm_rank(NCCLX_COMM_WORLD, &rank) || ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN)) return 2;
    int code = ncclx_coll_bcast(buf, rank == 1 ? 100 : sizeof buf, NCCLX_BYTE, 0, NCCLX_COMM_WORLD);
    if (code != (rank == 1 ? NCCLX_ERR_MISMATCH : NCCLX_SUCCESS)) {
        fprintf(stderr, "rank %d: code %d: %s\n", rank, code, ncclx_error_detail());
        return 1;
    }
    return ncclx_finalize() != NCCLX_SUCCESS;
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {0, 1, 7, 100, 511, 513, 6000, 20000};
    ncclx_comm_t comms[3] = {NCCLX_COMM_WORLD};
    int rank, size;
    size_t count_count = sizeof counts / sizeof counts[0];
    if (argc > 1 && !strcmp(argv[1], "mismatch")) return ncclx_init(&argc, &argv) ? 2 : mismatch();
    if (argc > 1) count_count = (size_t)atoi(argv[1]);
    if (count_count > sizeof counts / sizeof counts[0] || ncclx_init(&argc, &argv)) return 2;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    if (ncclx_op_create(compose, 0, NULL, &ordered_op)) return 2;
    if (ncclx_comm_dup(NCCLX_COMM_WORLD, &comms[1])) return 2;
    if (ncclx_comm_split(NCCLX_COMM_WORLD, rank % 2, size - rank, &comms[2])) return 2; /* ranks in reverse */
    repeated_calls(comms[1]);
    for (int i = 0; i < 3; i++) blocking_calls(comms[i], counts, i ? 4 : count_count);
    calls = 1000000; /* the split's halves have made different numbers of calls */
    overlapping_calls(comms, 2, 60);
    overlapping_calls(&comms[2], 1, 20);
    for (int i = 1; i < 3; i++)
        if (ncclx_comm_free(&comms[i])) return 2;
    if (ncclx_op_free(&ordered_op)) return 2;
    return ncclx_finalize() != NCCLX_SUCCESS;
}
