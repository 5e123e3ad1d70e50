/* coll_blocks.c - the collectives that divide data among ranks, and scans, between processes: blocking, non-blocking and
 * persistent, in place and not, every root, counts that differ from rank to rank with gaps between blocks, against what one
 * rank alone computes; and calls with wrong arguments. Prints nothing when all is well.
 *
 *     coll_blocks [COUNTS]     how many of the counts below are tried
 *     coll_blocks large        a million elements; blocks beyond 2^32 elements; the bits of float sums
 */
#include <ncclx.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_RANKS 64
#define CANARY_BYTES 64
#define CANARY 0xC5
#define GAP 0x6B
#define STRIDE 10000000 /* elements for one rank never have the index of those for another */
#define STARTS 3

enum kind { REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV, ALLTOALLV, SCAN, EXSCAN, KINDS };
static const char *const kind_name[] = {
    "reduce_scatter", "reduce_scatter_block", "allgatherv", "gather", "gatherv", "scatter", "scatterv", "alltoallv", "scan", "exscan"};
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

struct layout {
    int blocks;
    size_t counts[MOST_RANKS], displs[MOST_RANKS], extent;
};

struct call {
    enum kind kind;
    enum form form;
    int ordered; /* a reduction with an operation that is not commutative */
    size_t count;
    int root, in_place;
    unsigned seed, number;
    ncclx_comm_t comm;
    int rank, size;
    size_t element;
    struct layout send_layout, recv_layout;
    char *send, *recv; /* blocks, with canaries */
    ncclx_request_t request;
};

static ncclx_op_t ordered_op;
static unsigned calls;

static void __attribute__((format(printf, 2, 3), noreturn)) fail(const struct call *call, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s of %zu (form %d, ordered %d), root %d, in place %d, call %u, rank %d of %d: ", kind_name[call->kind], call->count,
            call->form, call->ordered, call->root, call->in_place, call->number, call->rank, call->size);
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

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

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

static int reduces(enum kind kind)
{
    return kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_BLOCK || kind == SCAN || kind == EXSCAN;
}

/* All elements are made as lines; those that are not ordered have their first half. */
static void element(const struct call *call, int rank, size_t index, struct line *out)
{
    int64_t value = (int64_t)index * 131 + rank * 1009 + (int64_t)call->number * 7 + 1;
    *out = call->ordered ? (struct line){value | 1, value * 3 + rank} : (struct line){value, 0};
}

static void reduced(const struct call *call, int ranks, size_t index, struct line *out)
{
    element(call, 0, index, out);
    for (int rank = 1; rank < ranks; rank++) {
        struct line next;
        element(call, rank, index, &next);
        if (call->ordered) {
            compose(out, &next, 1, NCCLX_INT64_PAIR, NULL);
            *out = next;
        } else {
            out->a += next.a;
        }
    }
}

/* ---- Counts and layouts ------------------------------------------------------------------------------------------ */

static size_t vary(const struct call *call, int a, int b)
{
    uint32_t mixed = ((uint32_t)a * 2654435761u + (uint32_t)b * 40503u + call->seed) * 2246822519u;
    mixed ^= mixed >> 15;
    return mixed % 3 ? mixed / 3 % (2 * call->count + 1) : 0;
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
        return call->in_place && from > to ? vary(call, to, from) : vary(call, from, to);
    default:
        return call->count;
    }
}

static size_t own_count(const struct call *call, int rank)
{
    return count_between(call, rank, rank);
}

static int has_root(enum kind kind)
{
    return kind == GATHER || kind == GATHERV || kind == SCATTER || kind == SCATTERV;
}

static int has_lists(enum kind kind)
{
    return kind == ALLGATHERV || kind == GATHERV || kind == SCATTERV || kind == ALLTOALLV;
}

static void one_block(struct layout *layout, size_t count) { *layout = (struct layout){.blocks = 1, .counts = {count}, .extent = count}; }

static void all_blocks(const struct call *call, int sending, struct layout *layout)
{
    int lists = has_lists(call->kind);
    *layout = (struct layout){.blocks = call->size};
    for (int i = 0; i < call->size; i++) {
        int block = lists && call->count % 2 ? call->size - 1 - i : i;
        layout->counts[block] = sending ? count_between(call, call->rank, block) : count_between(call, block, call->rank);
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

static void make_layouts(struct call *call)
{
    size_t counts[MOST_RANKS], total = division(call, counts);
    int at_root = call->rank == call->root, scatters = call->kind == SCATTER || call->kind == SCATTERV;
    int gathers = call->kind == GATHER || call->kind == GATHERV, sums = call->kind == REDUCE_SCATTER || call->kind == REDUCE_SCATTER_BLOCK;
    if (scatters && !at_root)
        one_block(&call->send_layout, 0);
    else if (scatters || call->kind == ALLTOALLV)
        all_blocks(call, 1, &call->send_layout);
    else
        one_block(&call->send_layout, sums ? total : counts[call->rank]);
    if (gathers && !at_root)
        one_block(&call->recv_layout, 0);
    else if (gathers || call->kind == ALLGATHERV || call->kind == ALLTOALLV)
        all_blocks(call, 0, &call->recv_layout);
    else
        one_block(&call->recv_layout, counts[call->rank]);
    if (sums && call->in_place) call->recv_layout.extent = total;
    if (call->kind == EXSCAN && call->rank == 0) call->recv_layout.counts[0] = 0;
}

static void expected(const struct call *call, int block, size_t index, struct line *out)
{
    size_t before = 0;
    for (int i = 0; i < call->rank; i++) before += own_count(call, i);
    switch (call->kind) {
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        reduced(call, call->size, before + index, out);
        return;
    case SCAN:
        reduced(call, call->rank + 1, index, out);
        return;
    case EXSCAN:
        reduced(call, call->rank, index, out);
        return;
    case SCATTER:
    case SCATTERV:
        element(call, call->root, (size_t)call->rank * STRIDE + index, out);
        return;
    case ALLTOALLV:
        element(call, block, (size_t)call->rank * STRIDE + index, out);
        return;
    default:
        element(call, block, index, out);
    }
}

/* ---- One call ---------------------------------------------------------------------------------------------------- */

static char *make_buffer(size_t bytes)
{
    char *block = malloc(bytes + 2 * CANARY_BYTES);
    if (!block) exit(99);
    memset(block, CANARY, bytes + 2 * CANARY_BYTES);
    memset(block + CANARY_BYTES, GAP, bytes);
    return block;
}

static void check_canaries(const struct call *call, const char *block, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if ((unsigned char)block[i] != CANARY || (unsigned char)block[CANARY_BYTES + bytes + i] != CANARY)
            fail(call, "wrote outside a buffer");
}

/* The input, in recvbuf when in place; new for each start. */
static void fill(struct call *call)
{
    int gathered = call->kind == ALLGATHERV || call->kind == GATHER || call->kind == GATHERV;
    int in_recv = call->in_place && call->kind != SCATTER && call->kind != SCATTERV;
    const struct layout *layout = in_recv && call->kind == ALLTOALLV ? &call->recv_layout : &call->send_layout;
    size_t skip = in_recv && gathered ? call->recv_layout.displs[call->rank] : 0;
    call->number = calls++;
    memset(call->recv + CANARY_BYTES, GAP, call->recv_layout.extent * call->element);
    for (int block = 0; block < layout->blocks; block++) {
        for (size_t i = 0; i < layout->counts[block]; i++) {
            struct line value;
            element(call, call->rank, (size_t)block * STRIDE + i, &value);
            memcpy((in_recv ? call->recv : call->send) + CANARY_BYTES + (skip + layout->displs[block] + i) * call->element, &value,
                   call->element);
        }
    }
}

static void prepare(struct call *call)
{
    ncclx_comm_rank(call->comm, &call->rank);
    ncclx_comm_size(call->comm, &call->size);
    if (has_root(call->kind) && call->rank != call->root) call->in_place = 0;
    make_layouts(call);
    call->element = call->ordered ? sizeof(struct line) : sizeof(int64_t);
    call->send = make_buffer(call->send_layout.extent * call->element);
    call->recv = make_buffer(call->recv_layout.extent * call->element);
}

/* call->kind in each of its forms. */
#define IN_FORM(name, ...)                                                                                                                 \
    (call->form == BLOCKING      ? ncclx_coll_##name(__VA_ARGS__)                                                                          \
     : call->form == NONBLOCKING ? ncclx_coll_i##name(__VA_ARGS__, &call->request)                                                         \
                                 : ncclx_coll_##name##_init(__VA_ARGS__, &call->request))

static int make(struct call *call)
{
    int to_root = call->kind == SCATTER || call->kind == SCATTERV;
    const void *send = call->in_place && !to_root ? NCCLX_IN_PLACE : call->send + CANARY_BYTES;
    void *recv = call->in_place && to_root ? NCCLX_IN_PLACE : call->recv + CANARY_BYTES;
    ncclx_datatype_t type = call->ordered ? NCCLX_INT64_PAIR : NCCLX_INT64;
    ncclx_op_t op = call->ordered ? ordered_op : NCCLX_SUM;
    size_t counts[MOST_RANKS], own = own_count(call, call->rank);
    struct layout sent = call->send_layout, received = call->recv_layout; /* the lists are changed as soon as the call returns */
    division(call, counts);
    int code = NCCLX_ERR_INTERNAL;
    switch (call->kind) {
    case REDUCE_SCATTER:
        code = IN_FORM(reduce_scatter, send, recv, counts, type, op, call->comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        code = IN_FORM(reduce_scatter_block, send, recv, own, type, op, call->comm);
        break;
    case ALLGATHERV:
        code = IN_FORM(allgatherv, send, own, recv, received.counts, received.displs, type, call->comm);
        break;
    case GATHER:
        code = IN_FORM(gather, send, recv, own, type, call->root, call->comm);
        break;
    case GATHERV:
        code = IN_FORM(gatherv, send, own, recv, received.counts, received.displs, type, call->root, call->comm);
        break;
    case SCATTER:
        code = IN_FORM(scatter, send, recv, own, type, call->root, call->comm);
        break;
    case SCATTERV:
        own = count_between(call, call->root, call->rank);
        code = IN_FORM(scatterv, send, sent.counts, sent.displs, recv, own, type, call->root, call->comm);
        break;
    case ALLTOALLV:
        code = IN_FORM(alltoallv, send, sent.counts, sent.displs, recv, received.counts, received.displs, type, call->comm);
        break;
    case SCAN:
        code = IN_FORM(scan, send, recv, own, type, op, call->comm);
        break;
    case EXSCAN:
        code = IN_FORM(exscan, send, recv, own, type, op, call->comm);
        break;
    case KINDS:
        break;
    }
    memset(&sent, 0xFF, sizeof sent);
    memset(&received, 0xFF, sizeof received);
    memset(counts, 0xFF, sizeof counts);
    return code;
}

/* In place, what reduce_scatter leaves behind its result and exscan on rank 0 is the input's. */
static void check_gaps(const struct call *call)
{
    const struct layout *layout = &call->recv_layout;
    if (call->in_place && reduces(call->kind)) return;
    char *covered = calloc(layout->extent + 1, 1);
    if (!covered) exit(99);
    for (int block = 0; block < layout->blocks; block++) memset(covered + layout->displs[block], 1, layout->counts[block]);
    for (size_t i = 0; i < layout->extent * call->element; i++)
        if (!covered[i / call->element] && (unsigned char)call->recv[CANARY_BYTES + i] != GAP) fail(call, "wrote between its blocks");
    free(covered);
}

static void check(const struct call *call)
{
    const struct layout *layout = &call->recv_layout;
    int untouched = call->in_place && (call->kind == SCATTER || call->kind == SCATTERV);
    check_canaries(call, call->send, call->send_layout.extent * call->element);
    check_canaries(call, call->recv, layout->extent * call->element);
    for (int block = 0; block < layout->blocks && !untouched; block++) {
        for (size_t i = 0; i < layout->counts[block]; i++) {
            struct line wanted;
            expected(call, block, i, &wanted);
            if (memcmp(call->recv + CANARY_BYTES + (layout->displs[block] + i) * call->element, &wanted, call->element))
                fail(call, "block %d, element %zu is wrong", block, i);
        }
    }
    if (!untouched) check_gaps(call);
}

static void finish(struct call *call)
{
    free(call->send);
    free(call->recv);
}

static void run(struct call *call)
{
    prepare(call);
    if (call->form != PERSISTENT) {
        fill(call);
        must(call, make(call));
        if (call->form == NONBLOCKING) must(call, ncclx_wait(&call->request, NCCLX_STATUS_IGNORE));
        check(call);
    } else {
        must(call, make(call));
        for (int start = 0; start < STARTS; start++) {
            fill(call);
            must(call, ncclx_start(&call->request));
            must(call, ncclx_wait(&call->request, NCCLX_STATUS_IGNORE));
            if (!call->request) fail(call, "completion took the handle of a persistent request");
            must(call, ncclx_wait(&call->request, NCCLX_STATUS_IGNORE)); /* inactive: returns at once */
            check(call);
        }
        must(call, ncclx_request_free(&call->request));
    }
    finish(call);
}

/* ---- Programs of calls ------------------------------------------------------------------------------------------- */

static void each_call(ncclx_comm_t comm, const size_t *counts, size_t count_count)
{
    int size;
    ncclx_comm_size(comm, &size);
    for (size_t i = 0; i < count_count; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            int roots = has_root((enum kind)kind) ? (counts[i] <= 100 ? size : 2) : 1;
            for (int variant = 0; variant < roots * FORMS * 4; variant++) {
                struct call call = {.kind = (enum kind)kind,
                                    .comm = comm,
                                    .count = counts[i],
                                    .in_place = variant & 1,
                                    .ordered = variant >> 1 & 1,
                                    .form = (enum form)((variant >> 2) % FORMS)};
                int root = (variant >> 2) / FORMS;
                call.root = roots == 2 ? root * (size - 1) : root;
                call.seed = (unsigned)(i * 100 + (size_t)variant);
                if (call.ordered && !reduces(call.kind)) continue;
                run(&call);
            }
        }
    }
}

/* Several persistent requests, started in another order on each rank, and all at once. */
static void in_any_order(ncclx_comm_t comm)
{
    enum { MANY = KINDS };
    struct call call[MANY];
    ncclx_request_t requests[MANY];
    int rank;
    ncclx_comm_rank(comm, &rank);
    for (int i = 0; i < MANY; i++) {
        call[i] = (struct call){.kind = (enum kind)i, .comm = comm, .count = 50, .form = PERSISTENT, .seed = 3};
        prepare(&call[i]);
        must(&call[i], make(&call[i]));
        requests[i] = call[i].request;
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) fill(&call[i]);
        if (round == 1) must(&call[0], ncclx_startall(MANY, requests));
        for (int i = 0; i < MANY && round != 1; i++) {
            int turn = (i * (round ? 3 : 1) + rank) % MANY;
            must(&call[turn], ncclx_start(&requests[turn]));
        }
        must(&call[0], ncclx_waitall(MANY, requests, NCCLX_STATUSES_IGNORE));
        for (int i = 0; i < MANY; i++) check(&call[i]);
    }
    for (int i = 0; i < MANY; i++) {
        must(&call[i], ncclx_request_free(&requests[i]));
        finish(&call[i]);
    }
}

/* Given up while it runs; and the communicator's end before the request's. */
static void given_up(void)
{
    ncclx_comm_t comm;
    ncclx_request_t kept, running;
    int64_t in = 1, out = 0, other = 0;
    struct call call = {.kind = SCAN};
    must(&call, ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    must(&call, ncclx_coll_scan_init(&in, &out, 1, NCCLX_INT64, NCCLX_SUM, comm, &kept));
    must(&call, ncclx_coll_scan_init(&in, &other, 1, NCCLX_INT64, NCCLX_SUM, comm, &running));
    must(&call, ncclx_start(&running));
    must(&call, ncclx_request_free(&running));
    must(&call, ncclx_start(&kept));
    must(&call, ncclx_wait(&kept, NCCLX_STATUS_IGNORE));
    must(&call, ncclx_coll_barrier(comm));
    must(&call, ncclx_comm_free(&comm));
    must(&call, ncclx_request_free(&kept));
    if (running || kept) fail(&call, "request_free leaves the handle");
}

static void refuse(const char *what, int code, int wanted)
{
    if (code == wanted) return;
    fprintf(stderr, "%s: code %d (%s), not %d\n", what, code, ncclx_error_detail(), wanted);
    exit(1);
}

/* On COMM_SELF, where a call that is refused leaves nobody waiting. */
static void wrong_arguments(void)
{
    ncclx_comm_t self = NCCLX_COMM_SELF;
    ncclx_request_t request = NCCLX_REQUEST_NULL;
    int64_t a[4] = {0}, b[4] = {0};
    size_t two = 2, three = 3, huge = SIZE_MAX / 4, zero = 0;
    ncclx_comm_set_errhandler(self, NCCLX_ERRORS_RETURN);
    ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN);
    refuse("no counts", ncclx_coll_reduce_scatter(a, b, NULL, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_ARG);
    refuse("counts too large", ncclx_coll_reduce_scatter(a, b, &huge, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_COUNT);
    refuse("displacement too large", ncclx_coll_allgatherv(a, 2, b, &two, &huge, NCCLX_INT64, self), NCCLX_ERR_COUNT);
    refuse("two own counts", ncclx_coll_allgatherv(a, 2, b, &three, NULL, NCCLX_INT64, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_gatherv(a, 2, b, &three, NULL, NCCLX_INT64, 0, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_scatterv(a, &two, NULL, b, 3, NCCLX_INT64, 0, self), NCCLX_ERR_ARG);
    refuse("two own counts", ncclx_coll_alltoallv(a, &two, NULL, b, &three, NULL, NCCLX_INT64, self), NCCLX_ERR_ARG);
    refuse("overlap", ncclx_coll_scan(a, a, 1, NCCLX_INT64, NCCLX_SUM, self), NCCLX_ERR_BUFFER);
    refuse("average", ncclx_coll_exscan(a, b, 1, NCCLX_INT64, NCCLX_AVG, self), NCCLX_ERR_OP);
    refuse("in place twice", ncclx_coll_scatter(NCCLX_IN_PLACE, b, 1, NCCLX_INT64, 0, self), NCCLX_ERR_BUFFER);
    refuse("root", ncclx_coll_gather(a, b, 1, NCCLX_INT64, 1, self), NCCLX_ERR_ROOT);
    refuse("type", ncclx_coll_scatterv(a, &two, NULL, b, 2, (ncclx_datatype_t)99, 0, self), NCCLX_ERR_TYPE);
    refuse("no request", ncclx_coll_iscan(a, b, 1, NCCLX_INT64, NCCLX_SUM, self, NULL), NCCLX_ERR_ARG);
    refuse("nothing to start", ncclx_start(&request), NCCLX_ERR_REQUEST);
    refuse("null", ncclx_coll_alltoallv(NULL, &zero, NULL, NULL, &zero, NULL, NCCLX_INT64, self), NCCLX_SUCCESS);
    refuse("prepare", ncclx_coll_scan_init(a, b, 4, NCCLX_INT64, NCCLX_SUM, self, &request), NCCLX_SUCCESS);
    refuse("start", ncclx_start(&request), NCCLX_SUCCESS);
    refuse("start again", ncclx_start(&request), NCCLX_ERR_REQUEST);
    refuse("free", ncclx_request_free(&request), NCCLX_SUCCESS);
    ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL);
}

/* ---- Large ------------------------------------------------------------------------------------------------------- */

static void a_million(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            struct call call = {.kind = (enum kind)kind, .comm = NCCLX_COMM_WORLD, .count = 1000000, .in_place = in_place};
            run(&call);
        }
    }
}

/* Each rank gives a block that lies beyond 2^32 elements to the next one; memory between blocks is never touched. */
static void far_blocks(int rank, int size)
{
    enum { COUNT = 5000 };
    struct call call = {.kind = ALLTOALLV, .rank = rank, .size = size, .count = COUNT};
    size_t far = (size_t)5 << 30, bytes = far + COUNT;
    size_t sendcounts[MOST_RANKS] = {0}, recvcounts[MOST_RANKS] = {0}, displs[MOST_RANKS];
    char *send = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *recv = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int mapped = send != MAP_FAILED && recv != MAP_FAILED, all_mapped = 0;
    must(&call, ncclx_coll_allreduce(&mapped, &all_mapped, 1, NCCLX_INT32, NCCLX_MIN, NCCLX_COMM_WORLD));
    if (!all_mapped) return; /* a small machine */
    for (int i = 0; i < size; i++) displs[i] = far;
    sendcounts[(rank + 1) % size] = recvcounts[(rank + size - 1) % size] = COUNT;
    for (int again = 0; again < 6; again++) { /* by messages, then in shared memory */
        memset(send + far, rank * 16 + again, COUNT);
        must(&call, ncclx_coll_alltoallv(send, sendcounts, displs, recv, recvcounts, displs, NCCLX_INT8, NCCLX_COMM_WORLD));
        for (size_t i = 0; i < COUNT; i++)
            if (recv[far + i] != (char)((rank + size - 1) % size * 16 + again)) fail(&call, "far element %zu is wrong", i);
    }
    munmap(send, bytes);
    munmap(recv, bytes);
}

/* The same call gives the same bits, the first time as later. */
static void repeated_sums(int rank, int size)
{
    static const size_t counts[] = {1, 50, 3000, 40000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        size_t all = counts[c] * (size_t)size;
        struct call call = {.kind = REDUCE_SCATTER_BLOCK, .rank = rank, .size = size, .count = counts[c]};
        float *in = malloc(all * sizeof *in), *out = malloc(2 * counts[c] * sizeof *out), *first = out + counts[c];
        if (!in || !out) exit(99);
        for (size_t i = 0; i < all; i++) in[i] = (float)(i % 1009 + 3 * (size_t)rank) / 7.0f;
        for (int again = 0; again < 6; again++) {
            must(&call, ncclx_coll_reduce_scatter_block(in, out, counts[c], NCCLX_FLOAT, NCCLX_SUM, NCCLX_COMM_WORLD));
            if (!again) memcpy(first, out, counts[c] * sizeof *out);
            if (memcmp(first, out, counts[c] * sizeof *out)) fail(&call, "other bits when repeated");
        }
        free(in);
        free(out);
    }
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {0, 1, 7, 255, 257, 3000, 70000};
    int large = argc > 1 && !strcmp(argv[1], "large");
    size_t count_count = argc > 1 && !large ? (size_t)atoi(argv[1]) : sizeof counts / sizeof counts[0];
    ncclx_comm_t reversed;
    int rank, size;
    if (count_count > sizeof counts / sizeof counts[0] || ncclx_init(&argc, &argv)) return 2;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    if (size > MOST_RANKS || ncclx_op_create(compose, 0, NULL, &ordered_op)) return 2;
    if (ncclx_comm_split(NCCLX_COMM_WORLD, 0, size - rank, &reversed)) return 2;
    if (large) {
        a_million();
        far_blocks(rank, size);
        repeated_sums(rank, size);
    } else {
        each_call(NCCLX_COMM_WORLD, counts, count_count);
        each_call(reversed, counts, 3);
        in_any_order(reversed);
        given_up();
        wrong_arguments();
    }
    if (ncclx_comm_free(&reversed) || ncclx_op_free(&ordered_op)) return 2;
    return ncclx_finalize() != NCCLX_SUCCESS;
}
