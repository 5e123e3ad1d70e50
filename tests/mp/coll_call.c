/* coll_call.c - see coll_call.h. */
#include "coll_call.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY 0xC5
#define GAP 0x6B
#define STRIDE ((size_t)1 << 24) /* elements for one rank never have the index of those for another */
#define STARTS 3
#define AT_ONCE 2048 /* elements that are computed and compared at a time */

const char *const kind_name[KINDS] = {
    "barrier",    "bcast",  "reduce",  "allreduce", "allgather", "alltoall",  "reduce_scatter", "reduce_scatter_block",
    "allgatherv", "gather", "gatherv", "scatter",   "scatterv",  "alltoallv", "scan",           "exscan"};
unsigned call_number;
ncclx_op_t ordered_op;

struct line {
    int64_t a, b;
};

static size_t element_bytes(enum operands operands)
{
    static const size_t bytes[OPERANDS] = {
        [SUMS] = 8, [BYTES] = 1, [AVERAGES] = 8, [FLOATS] = 4, [ORDERED] = sizeof(struct line)};
    return bytes[operands];
}

int kind_reduces(enum kind kind)
{
    return kind == REDUCE || kind == ALLREDUCE || kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_BLOCK ||
           kind == SCAN || kind == EXSCAN;
}

int kind_has_root(enum kind kind)
{
    return kind == BCAST || kind == REDUCE || kind == GATHER || kind == GATHERV || kind == SCATTER || kind == SCATTERV;
}

int kind_takes(enum kind kind, enum operands operands)
{
    if (operands == SUMS) return 1;
    if (operands == AVERAGES && (kind == SCAN || kind == EXSCAN)) return 0;
    return kind_reduces(kind) || (operands == BYTES && kind != BARRIER);
}

static int scatters(enum kind kind)
{
    return kind == SCATTER || kind == SCATTERV;
}

static int gathers(enum kind kind)
{
    return kind == GATHER || kind == GATHERV;
}

static int scatters_sums(enum kind kind)
{
    return kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_BLOCK;
}

static int to_all(enum kind kind)
{
    return kind == ALLTOALL || kind == ALLTOALLV;
}

static int has_lists(enum kind kind)
{
    return kind == ALLGATHERV || kind == GATHERV || kind == SCATTERV || kind == ALLTOALLV;
}

void call_failed(const struct call *call, const char *format, ...)
{
    va_list args;
    fprintf(stderr,
            "%s of %zu (form %d, operands %d, counts %d, seed %u), root %d, in place %d, call %u, rank %d of %d: ",
            kind_name[call->kind], call->count, call->form, call->operands, call->counts, call->seed, call->root,
            call->in_place, call->number, call->rank, call->size);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void call_must(const struct call *call, int code)
{
    if (code) call_failed(call, "%s: %s", ncclx_error_string(code), ncclx_error_detail());
}

/* ---- Elements, and the serial reference ----------------------------------------------------------------------------
 */

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

void calls_begin(void)
{
    if (ncclx_op_create(compose, 0, NULL, &ordered_op)) exit(2);
}

void calls_end(void)
{
    if (ncclx_op_free(&ordered_op)) exit(2);
}

union elements {
    int64_t sums[AT_ONCE];
    unsigned char bytes[AT_ONCE];
    float floats[AT_ONCE];
    struct line lines[AT_ONCE];
};

/* What `rank` gives: elements [first, first + count). */
static void given(const struct call *call, int rank, size_t first, size_t count, union elements *out)
{
    int64_t value = (int64_t)first * 131 + rank * 1009 + (int64_t)call->number * 7 + 1;
    for (size_t i = 0; i < count; i++, value += 131) {
        if (call->operands == ORDERED)
            out->lines[i] = (struct line){value | 1, value * 3 + rank};
        else if (call->operands == FLOATS)
            out->floats[i] = (float)(value & 0x3FFF) / 7.0f;
        else if (call->operands == BYTES)
            out->bytes[i] = (unsigned char)((uint32_t)value * 2654435761u >> 24);
        else
            out->sums[i] = value;
    }
}

/* The contributions of the first `ranks` ranks, combined in this order. */
static void reduced(const struct call *call, int ranks, size_t first, size_t count, union elements *out)
{
    union elements next;
    given(call, 0, first, count, out);
    for (int rank = 1; rank < ranks; rank++) {
        given(call, rank, first, count, &next);
        if (call->operands == ORDERED) {
            compose(out->lines, next.lines, count, NCCLX_INT64_PAIR, NULL);
            memcpy(out, &next, count * sizeof(struct line));
        }
        for (size_t i = 0; i < count && call->operands == FLOATS; i++) out->floats[i] += next.floats[i];
        for (size_t i = 0; i < count && call->operands == BYTES; i++)
            out->bytes[i] = (unsigned char)(out->bytes[i] + next.bytes[i]);
        for (size_t i = 0; i < count && (call->operands == SUMS || call->operands == AVERAGES); i++)
            out->sums[i] += next.sums[i];
    }
    for (size_t i = 0; i < count && call->operands == AVERAGES; i++) out->sums[i] /= ranks;
}

/* ---- Counts and layouts ------------------------------------------------------------------------------------------ */

static uint32_t mix(const struct call *call, int a, int b)
{
    uint32_t mixed = ((uint32_t)a * 2654435761u + (uint32_t)b * 40503u + call->seed) * 2246822519u;
    return mixed ^ mixed >> 15;
}

/* Ranks that give nothing, that give to themselves only, that give to few, and to many. */
static size_t sparse(const struct call *call, int from, int to)
{
    uint32_t habit = mix(call, from, MOST_RANKS) % 4, mixed = mix(call, from, to);
    if (habit == 0 || (habit == 1 && from != to) || (habit == 2 && mixed % 8)) return 0;
    return mixed / 8 % (2 * call->count + 1);
}

static size_t vary(const struct call *call, int a, int b)
{
    size_t own = (size_t)a, size = (size_t)call->size;
    uint32_t mixed = mix(call, a, b);
    switch (call->counts) {
    case SPARSE:
        return sparse(call, a, b);
    case EQUAL:
        return call->count;
    case DEALT:
        return call->count / size + (own < call->count % size);
    default:
        return mixed % 3 ? mixed / 3 % (2 * call->count + 1) : 0;
    }
}

static size_t count_between(const struct call *call, int from, int to)
{
    switch (call->kind) {
    case ALLGATHERV:
    case GATHERV:
        return vary(call, from, 0);
    case SCATTERV:
    case REDUCE_SCATTER:
        return vary(call, to, 0);
    case ALLTOALLV:
        return (call->in_place && from > to) ? vary(call, to, from) : vary(call, from, to);
    default:
        return call->count;
    }
}

static size_t own_count(const struct call *call, int rank)
{
    return count_between(call, rank, rank);
}

static size_t own_begin(const struct call *call)
{
    size_t begin = 0;
    for (int i = 0; i < call->rank; i++) begin += own_count(call, i);
    return begin;
}

static void one_block(struct layout *layout, size_t count)
{
    layout->blocks = 1;
    layout->counts[0] = layout->extent = count;
}

static void all_blocks(const struct call *call, int sending, struct layout *layout)
{
    int lists = has_lists(call->kind);
    layout->blocks = call->size;
    for (int i = 0; i < call->size; i++) {
        int block = lists && call->count % 2 ? call->size - 1 - i : i;
        layout->counts[block] =
            sending ? count_between(call, call->rank, block) : count_between(call, block, call->rank);
        if (lists && i % 3 == 1) layout->extent++;
        layout->displs[block] = layout->extent;
        layout->extent += layout->counts[block];
    }
}

static size_t division(const struct call *call, size_t *counts)
{
    size_t total = 0;
    for (int i = 0; i < call->size; i++) total += counts[i] = own_count(call, i);
    return total;
}

static void make_send_layout(struct call *call)
{
    size_t counts[MOST_RANKS], total = division(call, counts);
    struct layout *layout = &call->send_layout;
    *layout = (struct layout){.blocks = 0};
    if (call->kind == BARRIER || call->kind == BCAST || (scatters(call->kind) && call->rank != call->root)) return;
    if (scatters(call->kind) || to_all(call->kind))
        all_blocks(call, 1, layout);
    else
        one_block(layout, scatters_sums(call->kind) ? total : counts[call->rank]);
}

static void make_recv_layout(struct call *call)
{
    size_t counts[MOST_RANKS], total = division(call, counts);
    struct layout *layout = &call->recv_layout;
    int to_root = gathers(call->kind) || call->kind == REDUCE;
    *layout = (struct layout){.blocks = 0};
    if (call->kind == BARRIER || (to_root && call->rank != call->root)) return;
    if (gathers(call->kind) || call->kind == ALLGATHER || call->kind == ALLGATHERV || to_all(call->kind))
        all_blocks(call, 0, layout);
    else
        one_block(layout, counts[call->rank]);
    if (scatters_sums(call->kind) && call->in_place) layout->extent = total;
    if (call->kind == EXSCAN && call->rank == 0) layout->counts[0] = 0;
}

/* Elements [first, first + count) of a block of the result. */
static void expected(const struct call *call, int block, size_t first, size_t count, union elements *out)
{
    size_t of_rank = (size_t)call->rank * STRIDE;
    if (call->kind == SCAN)
        reduced(call, call->rank + 1, first, count, out);
    else if (call->kind == EXSCAN)
        reduced(call, call->rank, first, count, out);
    else if (scatters_sums(call->kind))
        reduced(call, call->size, own_begin(call) + first, count, out);
    else if (kind_reduces(call->kind))
        reduced(call, call->size, first, count, out);
    else if (call->kind == BCAST)
        given(call, call->root, first, count, out);
    else if (scatters(call->kind))
        given(call, call->root, of_rank + first, count, out);
    else if (to_all(call->kind))
        given(call, block, of_rank + first, count, out);
    else
        given(call, block, first, count, out);
}

/* ---- Buffers -------------------------------------------------------------------------------------------------------
 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void *need(size_t bytes)
{
    void *block = malloc(bytes + !bytes);
    if (block) return block;
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(99);
}

static char *make_buffer(size_t bytes)
{
    char *block = need(bytes + 2 * CANARY_BYTES);
    memset(block, CANARY, CANARY_BYTES);
    memset(block + CANARY_BYTES, GAP, bytes);
    memset(block + CANARY_BYTES + bytes, CANARY, CANARY_BYTES);
    return block;
}

static void check_canaries(const struct call *call, const char *block, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if ((unsigned char)block[i] != CANARY || (unsigned char)block[CANARY_BYTES + bytes + i] != CANARY)
            call_failed(call, "wrote outside a buffer");
}

static int input_in_recv(const struct call *call)
{
    return call->kind == BCAST || (call->in_place && !scatters(call->kind));
}

static void fill(struct call *call)
{
    struct layout of_root = {.blocks = call->rank == call->root, .counts = {call->count}};
    const struct layout *layout = call->kind == BCAST                         ? &of_root
                                  : input_in_recv(call) && to_all(call->kind) ? &call->recv_layout
                                                                              : &call->send_layout;
    int gathered = gathers(call->kind) || call->kind == ALLGATHER || call->kind == ALLGATHERV;
    size_t skip = input_in_recv(call) && gathered ? call->recv_layout.displs[call->rank] : 0;
    char *input = (input_in_recv(call) ? call->recv : call->send) + CANARY_BYTES;
    union elements part;
    memset(call->recv + CANARY_BYTES, GAP, call->recv_layout.extent * call->element);
    for (int block = 0; block < layout->blocks; block++) {
        for (size_t i = 0; i < layout->counts[block]; i += AT_ONCE) {
            size_t count = smaller(AT_ONCE, layout->counts[block] - i);
            given(call, call->rank, (size_t)block * STRIDE + i, count, &part);
            memcpy(input + (skip + layout->displs[block] + i) * call->element, &part, count * call->element);
        }
    }
}

void call_fill(struct call *call)
{
    call->number = call_number++;
    fill(call);
}

void call_prepare(struct call *call)
{
    ncclx_comm_rank(call->comm, &call->rank);
    ncclx_comm_size(call->comm, &call->size);
    if (!kind_takes(call->kind, call->operands)) call->operands = SUMS;
    if (call->kind == BARRIER) call->count = 0;
    if (call->kind == BARRIER || call->kind == BCAST || (kind_has_root(call->kind) && call->rank != call->root))
        call->in_place = 0;
    make_send_layout(call);
    make_recv_layout(call);
    call->element = element_bytes(call->operands);
    call->send = make_buffer(call->send_layout.extent * call->element);
    call->recv = make_buffer(call->recv_layout.extent * call->element);
}

void call_finish(struct call *call)
{
    free(call->send);
    free(call->recv);
    call->send = call->recv = NULL;
}

/* ---- The result ----------------------------------------------------------------------------------------------------
 */

/* Bytes of recv that belong to no block. In place, what reduce_scatter leaves behind its result and exscan on rank 0 is
 * the input's. */
static void check_gaps(const struct call *call)
{
    const struct layout *layout = &call->recv_layout;
    size_t covered = 0;
    for (int block = 0; block < layout->blocks; block++) covered += layout->counts[block];
    if (covered == layout->extent || (call->in_place && kind_reduces(call->kind))) return;
    char *own = need(layout->extent);
    memset(own, 0, layout->extent);
    for (int block = 0; block < layout->blocks; block++) memset(own + layout->displs[block], 1, layout->counts[block]);
    for (size_t i = 0; i < layout->extent * call->element; i++)
        if (!own[i / call->element] && (unsigned char)call->recv[CANARY_BYTES + i] != GAP)
            call_failed(call, "wrote between its blocks");
    free(own);
}

/* The order in which floats are added is the library's. */
static int equal(const struct call *call, const char *got, const union elements *wanted, size_t count)
{
    if (call->operands != FLOATS) return !memcmp(got, wanted, count * call->element);
    for (size_t i = 0; i < count; i++) {
        float a, b = wanted->floats[i];
        memcpy(&a, got + i * sizeof a, sizeof a);
        if (!(a - b <= b * 1e-4f && b - a <= b * 1e-4f)) return 0;
    }
    return 1;
}

static void check_block(const struct call *call, int block)
{
    const struct layout *layout = &call->recv_layout;
    const char *got = call->recv + CANARY_BYTES + layout->displs[block] * call->element;
    union elements wanted;
    for (size_t i = 0; i < layout->counts[block]; i += AT_ONCE) {
        size_t count = smaller(AT_ONCE, layout->counts[block] - i);
        expected(call, block, i, count, &wanted);
        if (!equal(call, got + i * call->element, &wanted, count))
            call_failed(call, "block %d, elements %zu and on are wrong", block, i);
    }
}

void call_check(const struct call *call)
{
    check_canaries(call, call->send, call->send_layout.extent * call->element);
    check_canaries(call, call->recv, call->recv_layout.extent * call->element);
    if (call->in_place && scatters(call->kind)) return; /* nothing is received */
    for (int block = 0; block < call->recv_layout.blocks; block++) check_block(call, block);
    check_gaps(call);
}

/* ---- Calls ---------------------------------------------------------------------------------------------------------
 */

static ncclx_datatype_t type_of(const struct call *call)
{
    static const ncclx_datatype_t types[OPERANDS] = {[SUMS] = NCCLX_INT64,
                                                     [BYTES] = NCCLX_UINT8,
                                                     [AVERAGES] = NCCLX_INT64,
                                                     [FLOATS] = NCCLX_FLOAT,
                                                     [ORDERED] = NCCLX_INT64_PAIR};
    return types[call->operands];
}

static ncclx_op_t op_of(const struct call *call)
{
    return call->operands == ORDERED ? ordered_op : call->operands == AVERAGES ? NCCLX_AVG : NCCLX_SUM;
}

/* Each of the forms. */
#define IN_FORM(name, ...)                                                                                             \
    (call->form == BLOCKING      ? ncclx_coll_##name(__VA_ARGS__)                                                      \
     : call->form == NONBLOCKING ? ncclx_coll_i##name(__VA_ARGS__, &call->request)                                     \
                                 : ncclx_coll_##name##_init(__VA_ARGS__, &call->request))

int call_make(struct call *call)
{
    const void *send = call->in_place && !scatters(call->kind) ? NCCLX_IN_PLACE : call->send + CANARY_BYTES;
    void *recv = call->in_place && scatters(call->kind) ? NCCLX_IN_PLACE : call->recv + CANARY_BYTES;
    ncclx_datatype_t type = type_of(call);
    ncclx_op_t op = op_of(call);
    ncclx_comm_t comm = call->comm;
    size_t counts[MOST_RANKS], own = own_count(call, call->rank), n = call->count;
    struct layout sent = call->send_layout,
                  received = call->recv_layout; /* the lists are changed as soon as the call returns */
    int code = NCCLX_ERR_INTERNAL, root = call->root;
    division(call, counts);
    switch (call->kind) {
    case BARRIER:
        code = IN_FORM(barrier, comm);
        break;
    case BCAST:
        code = IN_FORM(bcast, recv, n, type, root, comm);
        break;
    case REDUCE:
        code = IN_FORM(reduce, send, recv, n, type, op, root, comm);
        break;
    case ALLREDUCE:
        code = IN_FORM(allreduce, send, recv, n, type, op, comm);
        break;
    case ALLGATHER:
        code = IN_FORM(allgather, send, recv, n, type, comm);
        break;
    case ALLTOALL:
        code = IN_FORM(alltoall, send, recv, n, type, comm);
        break;
    case REDUCE_SCATTER:
        code = IN_FORM(reduce_scatter, send, recv, counts, type, op, comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        code = IN_FORM(reduce_scatter_block, send, recv, own, type, op, comm);
        break;
    case ALLGATHERV:
        code = IN_FORM(allgatherv, send, own, recv, received.counts, received.displs, type, comm);
        break;
    case GATHER:
        code = IN_FORM(gather, send, recv, own, type, root, comm);
        break;
    case GATHERV:
        code = IN_FORM(gatherv, send, own, recv, received.counts, received.displs, type, root, comm);
        break;
    case SCATTER:
        code = IN_FORM(scatter, send, recv, own, type, root, comm);
        break;
    case SCATTERV:
        code = IN_FORM(scatterv, send, sent.counts, sent.displs, recv, own, type, root, comm);
        break;
    case ALLTOALLV:
        code = IN_FORM(alltoallv, send, sent.counts, sent.displs, recv, received.counts, received.displs, type, comm);
        break;
    case SCAN:
        code = IN_FORM(scan, send, recv, own, type, op, comm);
        break;
    case EXSCAN:
        code = IN_FORM(exscan, send, recv, own, type, op, comm);
        break;
    case KINDS:
        break;
    }
    memset(&sent, 0xFF, sizeof sent);
    memset(&received, 0xFF, sizeof received);
    memset(counts, 0xFF, sizeof counts);
    return code;
}

/* Rank 0's bits are handed round for comparison. */
static void check_bits(const struct call *call)
{
    size_t bytes = call->recv_layout.extent * call->element;
    char *first = need(bytes);
    memcpy(first, call->recv + CANARY_BYTES, bytes);
    call_must(call, ncclx_coll_bcast(first, bytes, NCCLX_BYTE, 0, call->comm));
    if (memcmp(first, call->recv + CANARY_BYTES, bytes)) call_failed(call, "other bits than on rank 0");
    free(first);
}

static void start_and_wait(struct call *call)
{
    if (call->form != PERSISTENT)
        call_must(call, call_make(call));
    else
        call_must(call, ncclx_start(&call->request));
    if (call->form == BLOCKING) return;
    call_must(call, ncclx_wait(&call->request, NCCLX_STATUS_IGNORE));
    if (call->form == NONBLOCKING) return;
    if (!call->request) call_failed(call, "completion took the handle of a persistent request");
    call_must(call, ncclx_wait(&call->request, NCCLX_STATUS_IGNORE)); /* inactive: returns at once */
}

/* Again with the same data: the same bits. In place, rank 0 of exscan has its input there. */
static void repeat(struct call *call)
{
    size_t bytes = call->recv_layout.extent * call->element;
    char *before = need(bytes);
    memcpy(before, call->recv + CANARY_BYTES, bytes);
    fill(call);
    start_and_wait(call);
    if (memcmp(before, call->recv + CANARY_BYTES, bytes) && !(call->in_place && scatters_sums(call->kind)))
        call_failed(call, "other bits when repeated");
    call_check(call);
    free(before);
}

void call_run(struct call *call)
{
    call_prepare(call);
    if (call->form == PERSISTENT) call_must(call, call_make(call));
    for (int start = 0; start < (call->form == PERSISTENT ? STARTS : 1); start++) {
        call_fill(call);
        start_and_wait(call);
        call_check(call);
        if (call->operands == FLOATS) repeat(call);
        if (call->operands == FLOATS && call->kind == ALLREDUCE) check_bits(call);
    }
    if (call->form == PERSISTENT) call_must(call, ncclx_request_free(&call->request));
    call_finish(call);
}
