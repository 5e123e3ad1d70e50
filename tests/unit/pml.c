/* pml.c - messages between ranks of one process, over the real rings. */
#include "tests/unit/pml_world.h"

#include "pml/shm/serve.h"
#include "pml/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* 0, inline limits, payloads, eager limit, rendezvous. */
static const size_t sizes[] = {
    0, 1, 7, 39, 40, 41, 64, 1000, 4096, 8191, 8192, 8193, 16384, 16385, 65537, ((size_t)1 << 20) + 1};
#define SIZES (sizeof sizes / sizeof sizes[0])
#define GUARD 64

static struct world world;

static char *pattern(size_t bytes, int seed)
{
    char *block = malloc(bytes + 2 * GUARD);
    assert_non_null(block);
    for (size_t i = 0; i < bytes + 2 * GUARD; i++) block[i] = (char)((size_t)seed + i * 7 + i / 251);
    return block + GUARD;
}

static char *blank(size_t bytes)
{
    char *block = malloc(bytes + 2 * GUARD);
    assert_non_null(block);
    memset(block, 0x5a, bytes + 2 * GUARD);
    return block + GUARD;
}

static void check_guards(const char *buffer, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(buffer[-(ptrdiff_t)i - 1], 0x5a);
        assert_int_equal(buffer[bytes + i], 0x5a);
    }
}

static void drop(char *buffer)
{
    free(buffer - GUARD);
}

static int send_to(int from, int to, const void *buffer, size_t bytes, int tag, struct ncclx_request **request)
{
    return pml_isend(&world.comm[from], PML_USER, buffer, bytes, to, tag, request);
}

static int receive_from(int at, int source, void *buffer, size_t bytes, int tag, struct ncclx_request **request)
{
    return pml_irecv(&world.comm[at], PML_USER, buffer, bytes, source, tag, request);
}

static void finish(struct ncclx_request *request, int expected)
{
    assert_int_equal(world_wait(&world, request), expected);
    request->kind->release(request);
}

static void transfer(int from, int to, size_t bytes, bool receive_first)
{
    struct ncclx_request *send, *receive;
    char *out = pattern(bytes, from), *in = blank(bytes);
    if (receive_first) {
        assert_int_equal(receive_from(to, from, in, bytes, 3, &receive), 0);
        for (int i = 0; i < 3; i++) world_progress(&world);
    }
    assert_int_equal(send_to(from, to, out, bytes, 3, &send), 0);
    if (!receive_first) {
        for (int i = 0; i < 3; i++) world_progress(&world);
        assert_int_equal(receive_from(to, from, in, bytes, 3, &receive), 0);
    }
    assert_int_equal(world_wait(&world, receive), 0);
    assert_int_equal(receive->status.source, from);
    assert_int_equal(receive->status.tag, 3);
    assert_true(receive->status.bytes == bytes);
    receive->kind->release(receive);
    finish(send, 0);
    assert_memory_equal(out, in, bytes);
    check_guards(in, bytes);
    drop(out);
    drop(in);
}

static void all_transfers(char **environment)
{
    world_open(&world, 3, environment);
    for (size_t i = 0; i < SIZES; i++) {
        for (int order = 0; order < 2; order++) {
            transfer(0, 1, sizes[i], order);
            transfer(2, 0, sizes[i], order);
            transfer(1, 1, sizes[i], order);
        }
    }
    world_close(&world);
}

static void every_size(void **state)
{
    (void)state;
    all_transfers(NULL);
}

static void without_single_copies(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_SHM_CMA=0", NULL};
    all_transfers(environment);
}

/* What a peer's process number leads to is not what its mailbox says: another process, or none that may be read. */
static void single_copies_refused(void **state)
{
    (void)state;
    struct pml_counters counters;
    world_open(&world, 2, NULL);
    for (int i = 0; i < 2; i++) ((struct shm *)world.rt[i].pml->shm)->token ^= 2;
    transfer(0, 1, 100000, true);
    transfer(1, 0, 100000, false);
    pml_get_counters(&world.rt[0], &counters);
    assert_true(counters.announced == 0 && counters.rendezvous == 1);
    world_close(&world);
}

/* Single copies worked once, and work no more. */
static void single_copies_end(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    for (int order = 0; order < 2; order++) {
        transfer(0, 1, 100000, order);
        transfer(1, 0, 100000, order);
    }
    for (int i = 0; i < 2; i++) world.rt[i].pml->shm->mailbox->pid = INT32_MAX; /* more than any process has */
    for (int order = 0; order < 2; order++) {
        transfer(0, 1, 100000, order);
        transfer(1, 0, 100000, order);
    }
    world_close(&world);
}

static void transports_chosen(void **state)
{
    (void)state;
    char *only_self[] = {"NCCLX_TRANSPORTS=self", NULL}, *listed[] = {"NCCLX_TRANSPORTS=self,shm", NULL};
    struct ncclx_request *request;
    world_open(&world, 2, listed);
    transfer(0, 1, 10, true);
    assert_string_equal(pml_transport_name(&world.rt[0], 1), "shm");
    assert_null(pml_transport_name(&world.rt[0], 0));
    world_close(&world);
    world_open(&world, 2, only_self);
    assert_int_equal(send_to(0, 1, "x", 1, 1, &request), NCCLX_ERR_UNREACHABLE);
    transfer(1, 1, 10, true);
    world_close(&world);
}

static void smallest_ring(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_SHM_RING=4096", "NCCLX_SHM_CMA=0", NULL};
    all_transfers(environment);
}

static void truncation(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    static const size_t sent[] = {41, 8000, 100000}, room[] = {40, 100, 20000};
    for (int i = 0; i < 3; i++) {
        for (int first = 0; first < 2; first++) {
            struct ncclx_request *send, *receive;
            char *out = pattern(sent[i], 1), *in = blank(room[i]);
            if (first) assert_int_equal(receive_from(1, 0, in, room[i], 1, &receive), 0);
            for (int k = 0; k < 3; k++) world_progress(&world);
            assert_int_equal(send_to(0, 1, out, sent[i], 1, &send), 0);
            if (!first) {
                world_progress(&world);
                assert_int_equal(receive_from(1, 0, in, room[i], 1, &receive), 0);
            }
            finish(receive, NCCLX_ERR_TRUNCATE);
            finish(send, 0);
            check_guards(in, room[i]);
            drop(out);
            drop(in);
        }
    }
    world_close(&world);
}

static void order_and_wildcards(void **state)
{
    (void)state;
    world_open(&world, 3, NULL);
    struct ncclx_request *send[20], *receive;
    int value[20], got;
    for (int i = 0; i < 20; i++) {
        value[i] = i;
        assert_int_equal(send_to(i % 2 ? 1 : 2, 0, &value[i], sizeof value[i], i / 4, &send[i]), 0);
    }
    world_progress(&world);
    for (int tag = 4; tag >= 0; tag--) {
        for (int k = 0; k < 2; k++) { /* by source and tag, the later tags first */
            assert_int_equal(receive_from(0, 1, &got, sizeof got, tag, &receive), 0);
            finish(receive, 0);
            assert_int_equal(got, tag * 4 + 2 * k + 1);
        }
    }
    for (int k = 0; k < 10; k++) {
        assert_int_equal(receive_from(0, NCCLX_ANY_SOURCE, &got, sizeof got, NCCLX_ANY_TAG, &receive), 0);
        assert_int_equal(world_wait(&world, receive), 0);
        assert_int_equal(receive->status.source, 2);
        assert_int_equal(receive->status.tag, k / 2);
        assert_int_equal(got, 2 * k);
        receive->kind->release(receive);
    }
    for (int i = 0; i < 20; i++) finish(send[i], 0);
    world_close(&world);
}

static void probing(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    struct ncclx_request *send[2], *receive;
    struct ncclx_message *message;
    ncclx_status_t status;
    bool found;
    char *large = pattern(50000, 9), *in = blank(50000);
    int small = 5, got = 0;
    assert_int_equal(pml_probe(&world.comm[1], PML_USER, 0, 1, &found, NULL, &status), 0);
    assert_false(found);
    assert_int_equal(send_to(0, 1, large, 50000, 1, &send[0]), 0);
    assert_int_equal(send_to(0, 1, &small, sizeof small, 1, &send[1]), 0);
    assert_int_equal(pml_probe(&world.comm[1], PML_USER, NCCLX_ANY_SOURCE, 1, &found, NULL, &status), 0);
    assert_true(found);
    assert_true(status.bytes == 50000 && status.source == 0 && status.tag == 1);
    assert_int_equal(pml_probe(&world.comm[1], PML_USER, 0, 1, &found, &message, &status), 0);
    assert_true(found && pml_message_comm(message) == &world.comm[1]);
    assert_int_equal(receive_from(1, 0, &got, sizeof got, 1, &receive), 0); /* not the message taken out */
    finish(receive, 0);
    assert_int_equal(got, 5);
    assert_int_equal(pml_imrecv(in, 50000, message, &receive), 0);
    finish(receive, 0);
    assert_memory_equal(in, large, 50000);
    finish(send[0], 0);
    finish(send[1], 0);
    drop(large);
    drop(in);
    world_close(&world);
}

static void cancelling(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    for (int large = 0; large < 2; large++) {
        struct ncclx_request *receive, *send, *second;
        size_t bytes = large ? 100000 : 8;
        char *in = blank(bytes), *out = pattern(bytes, 3);
        assert_int_equal(receive_from(1, 0, in, bytes, 2, &receive), 0);
        for (int i = 0; i < 3; i++) world_progress(&world); /* a large one has announced itself */
        assert_int_equal(receive->kind->cancel(receive), 0);
        assert_int_equal(world_wait(&world, receive), 0);
        assert_int_equal(receive->status.cancelled, 1);
        receive->kind->release(receive);
        assert_int_equal(send_to(0, 1, out, bytes, 2, &send), 0);
        assert_int_equal(receive_from(1, 0, in, bytes, 2, &second), 0);
        finish(second, 0);
        finish(send, 0);
        assert_memory_equal(in, out, bytes);
        drop(in);
        drop(out);
    }
    world_close(&world);
}

/* A wait that ended early leaves an announced receive behind; the communicator may end before the announcement is
 * given back. */
static void communicator_ends_before_its_receive(void **state)
{
    (void)state;
    struct ncclx_request *receive;
    char *in = blank(100000);
    world_open(&world, 2, NULL);
    assert_int_equal(receive_from(1, 0, in, 100000, 2, &receive), 0);
    for (int i = 0; i < 3; i++) world_progress(&world);
    receive->detached = true;
    assert_int_equal(receive->kind->cancel(receive), 0);
    assert_true(((struct pml_request *)receive)->in_use);
    pml_comm_detach(&world.comm[1]);
    assert_false(((struct pml_request *)receive)->in_use);
    for (int i = 0; i < 3; i++) world_progress(&world); /* the peer's answer names a receive that is no more */
    world.comm[1].context = 8; /* contexts are never used again */
    assert_int_equal(pml_comm_attach(&world.comm[1]), 0);
    world_close(&world);
    check_guards(in, 100000);
    drop(in);
}

/* The sender of a message that nobody will ever receive is not kept waiting, whether it comes before the communicator's
 * end or after it. */
static void nobody_receives(void **state)
{
    (void)state;
    struct ncclx_request *before, *after;
    char *out = pattern(100000, 4);
    world_open(&world, 2, NULL);
    assert_int_equal(send_to(0, 1, out, 100000, 2, &before), 0);
    for (int i = 0; i < 3; i++) world_progress(&world);
    assert_false(before->complete);
    pml_comm_detach(&world.comm[1]);
    finish(before, 0);
    assert_int_equal(send_to(0, 1, out, 100000, 2, &after), 0);
    finish(after, 0);
    world.comm[1].context = 8;
    assert_int_equal(pml_comm_attach(&world.comm[1]), 0);
    world_close(&world);
    drop(out);
}

/* More than any limit allows: the sender has to fall back to rendezvous, and nothing is lost or reordered. */
static void flood(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_UNEXPECTED_LIMIT=65536", NULL};
    enum { COUNT = 3000 };
    static struct ncclx_request *send[COUNT];
    static uint64_t value[COUNT][25];
    world_open(&world, 2, environment);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 25; k++) value[i][k] = (uint64_t)i * 100 + (uint64_t)k;
        assert_int_equal(send_to(0, 1, value[i], sizeof value[i], 1, &send[i]), 0);
        world_progress(&world);
    }
    struct pml_counters counters;
    pml_get_counters(&world.rt[0], &counters);
    assert_true(counters.rendezvous > COUNT / 2);
    for (int i = 0; i < COUNT; i++) {
        struct ncclx_request *receive;
        uint64_t got[25];
        assert_int_equal(receive_from(1, 0, got, sizeof got, 1, &receive), 0);
        finish(receive, 0);
        assert_memory_equal(got, value[i], sizeof got);
    }
    for (int i = 0; i < COUNT; i++) finish(send[i], 0);
    pml_get_counters(&world.rt[1], &counters);
    assert_true(counters.unexpected == 0);
    struct ncclx_request *last; /* and back to eager */
    assert_int_equal(send_to(0, 1, value[0], 8, 1, &last), 0);
    assert_true(last->complete);
    world_close(&world);
}

static void context_not_known_yet(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    struct ncclx_comm comm[2];
    struct ncclx_request *send[2], *receive;
    char *out = pattern(30000, 4), *in = blank(30000);
    int small = 77, got = 0;
    for (int i = 0; i < 2; i++)
        comm[i] = (struct ncclx_comm){.rt = &world.rt[i], .context = 1048, .rank = 1 - i, .size = 2, .name = "late"};
    static const int turned[2] = {1, 0};
    comm[0].world = comm[1].world = turned;
    assert_int_equal(pml_comm_attach(&comm[0]), 0);
    assert_int_equal(pml_isend(&comm[0], PML_COLL, out, 30000, 0, 6, &send[0]), 0); /* rank 0 of it is job rank 1 */
    assert_int_equal(pml_isend(&comm[0], PML_COLL, &small, sizeof small, 0, 6, &send[1]), 0);
    for (int i = 0; i < 3; i++) world_progress(&world);
    assert_int_equal(pml_comm_attach(&comm[1]), 0);
    assert_int_equal(pml_irecv(&comm[1], PML_COLL, in, 30000, 1, 6, &receive), 0);
    finish(receive, 0);
    assert_memory_equal(in, out, 30000);
    assert_int_equal(pml_irecv(&comm[1], PML_COLL, &got, sizeof got, 1, 6, &receive), 0);
    finish(receive, 0);
    assert_int_equal(got, 77);
    finish(send[0], 0);
    finish(send[1], 0);
    pml_comm_detach(&comm[1]);
    assert_int_equal(pml_isend(&comm[0], PML_COLL, out, 30000, 0, 6, &send[0]), 0); /* too late: the sender is let go */
    finish(send[0], 0);
    pml_comm_detach(&comm[0]);
    drop(out);
    drop(in);
    world_close(&world);
}

static int heard;

static void hear(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data,
                 size_t bytes, void *arg)
{
    int *place = arg;
    (void)rt;
    assert_int_equal(source, 0);
    assert_true(header_bytes == sizeof(int) && bytes % sizeof(int) == 0);
    int number;
    memcpy(&number, header, sizeof number);
    assert_int_equal(number, heard);
    for (size_t i = 0; i < bytes / sizeof(int); i++) assert_int_equal(((const int *)data)[i], number);
    heard++;
    *place = number;
}

static void active_messages(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    world_open(&world, 2, NULL);
    int last = -1;
    assert_int_equal(pml_am_register(&world.rt[1], 3, hear, &last), 0);
    size_t most = pml_am_max(&world.rt[0], 1) / sizeof(int);
    int *data = malloc((most + 1) * sizeof *data);
    assert_non_null(data);
    heard = 0;
    for (int i = 0; i < COUNT; i++) { /* far more than fits: they queue */
        size_t count = i % 100 == 99 ? most : (size_t)i % 20;
        for (size_t k = 0; k < count; k++) data[k] = i;
        assert_int_equal(pml_am_send(&world.rt[0], 1, 3, &i, sizeof i, data, count * sizeof *data), 0);
    }
    assert_int_not_equal(pml_am_send(&world.rt[0], 1, 3, data, 4, data, (most + 1) * sizeof *data), 0);
    for (int i = 0; i < 100000 && heard < COUNT; i++) world_progress(&world);
    assert_int_equal(heard, COUNT);
    assert_int_equal(last, COUNT - 1);
    free(data);
    world_close(&world);
}

/* Packets that rank 0 has no right to send: none has an effect, and messages go on. */
static void hostile_packets(void **state)
{
    (void)state;
    enum { LIES = 0x7ffff };
    int last = -1;
    struct ncclx_request *receive;
    char *in = blank(100000);
    world_open(&world, 2, NULL);
    assert_int_equal(pml_am_register(&world.rt[1], 3, hear, &last), 0);
    transfer(0, 1, 10, true);
    assert_int_equal(receive_from(1, 1, in, 100000, 2, &receive), 0); /* from itself: nothing of rank 0's concern */
    uint64_t name = ((struct pml_request *)receive)->name;
    struct pml_packet lies[] = {
        {.kind = PROTOCOL_NONE}, {.kind = PROTOCOL_KINDS}, {.kind = 200},
        {.kind = PROTOCOL_ACTIVE, .tag = 3, .count = 50, .inline_bytes = 8},
        {.kind = PROTOCOL_ACTIVE, .tag = 3, .count = UINT16_MAX, .inline_bytes = 40},
        {.kind = PROTOCOL_ACTIVE, .tag = 4, .count = 4, .inline_bytes = 8},
        {.kind = PROTOCOL_ACTIVE, .tag = -1, .count = 4, .inline_bytes = 8},
        {.kind = PROTOCOL_EAGER, .context = 4, .source = -1}, {.kind = PROTOCOL_EAGER, .context = 4, .source = 2},
        {.kind = PROTOCOL_EAGER, .context = 4, .source = 1, .tag = 2},
        {.kind = PROTOCOL_EAGER, .context = 4, .source = 0, .tag = -1},
        {.kind = PROTOCOL_REQUEST, .context = 4, .source = INT32_MAX, .u.word = {1, SIZE_MAX, 1}},
        {.kind = PROTOCOL_FILLED, .context = 4, .source = 0, .tag = 2, .u.word = {name, 8}},
        {.kind = PROTOCOL_FILLED, .context = 400, .source = 0, .tag = 2, .u.word = {name, 8}},
        {.kind = PROTOCOL_CLEAR, .context = name, .u.word = {1}}, {.kind = PROTOCOL_CLEAR, .context = UINT64_MAX},
        {.kind = PROTOCOL_FINISHED, .context = name}, {.kind = PROTOCOL_FINISHED, .context = LIES},
        {.kind = PROTOCOL_DATA, .context = name, .inline_bytes = 8}, {.kind = PROTOCOL_DATA, .context = LIES},
        {.kind = PROTOCOL_ANNOUNCE, .context = 4, .source = 1, .u.word = {1, 100000, 4096, 0}},
        {.kind = PROTOCOL_ANNOUNCE, .context = 4, .source = -5, .u.word = {1, 100000, 4096, 0}},
        {.kind = PROTOCOL_ANNOUNCE, .context = 4, .source = 0, .tag = 3, .u.word = {1, 100000, 4096, LIES}},
        {.kind = PROTOCOL_WITHDRAW, .context = 4, .source = 9}, {.kind = PROTOCOL_WITHDRAW, .context = LIES},
        {.kind = PROTOCOL_WITHDRAWN, .context = name}, {.kind = PROTOCOL_RESUME},
        {.kind = 64, .context = name, .inline_bytes = 32, .u.word = {4096, 1, 0, 100000}},
        {.kind = 65, .context = name, .inline_bytes = 32, .u.word = {4096, 1, SIZE_MAX, SIZE_MAX}},
        {.kind = 65, .context = LIES, .inline_bytes = 32, .u.word = {4096, 1, 4096, 4096}},
    };
    heard = 0;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        pml_post_control(world.rt[0].pml->connection[0][1], &lies[i]);
        for (int j = 0; j < 3; j++) world_progress(&world);
        assert_false(receive->complete);
    }
    assert_int_equal(heard, 0);
    assert_int_equal(world.rt[1].pml->counters.unexpected, 0);
    transfer(0, 1, 100000, true);
    transfer(1, 0, 100000, false);
    assert_int_equal(receive->kind->cancel(receive), 0);
    finish(receive, 0);
    check_guards(in, 100000);
    world_close(&world);
    drop(in);
}

static void regions(char **environment, enum pml_access allocated, enum pml_access plain)
{
    world_open(&world, 2, environment);
    struct pml_region_card card;
    struct pml_region *region;
    char own[4096], got[100];
    void *memory;
    memset(own, 1, sizeof own);
    assert_int_equal(pml_mem_alloc(&world.rt[1], 10000, &memory), 0);
    for (int kind = 0; kind < 2; kind++) {
        char *base = kind ? own : memory;
        assert_int_equal(pml_region_card(&world.rt[1], base + 10, 3000, &card), 0);
        assert_int_equal(pml_region_attach(&world.rt[0], 1, &card, &region), 0);
        assert_int_equal(region->access, kind ? plain : allocated);
        assert_true(region->bytes == 3000);
        if (region->access != PML_ACCESS_MESSAGE) {
            assert_int_equal(pml_region_write(&world.rt[0], region, 5, "hello", 6), 0);
            assert_string_equal(base + 15, "hello");
            assert_int_equal(pml_region_read(&world.rt[0], region, 6, got, 5), 0);
            assert_string_equal(got, "ello");
        }
        pml_region_detach(&world.rt[0], region);
    }
    assert_int_equal(pml_mem_free(&world.rt[1], (char *)memory + 1), NCCLX_ERR_ARG);
    assert_int_equal(pml_region_card(&world.rt[1], memory, 100, &card), 0);
    assert_int_equal(pml_mem_free(&world.rt[1], memory), 0);
    assert_int_equal(pml_mem_free(&world.rt[1], memory), NCCLX_ERR_ARG);
    void *again; /* very likely the same descriptor: the old card must not lead to the new memory */
    assert_int_equal(pml_mem_alloc(&world.rt[1], 10000, &again), 0);
    if (!pml_region_attach(&world.rt[0], 1, &card, &region)) {
        assert_int_not_equal(region->access, PML_ACCESS_DIRECT);
        pml_region_detach(&world.rt[0], region);
    }
    world_close(&world);
}

/* A rank that ends must not take away what a slower one still reads. */
static void owner_ends_first(void **state)
{
    (void)state;
    struct pml_region_card card;
    struct pml_region *region;
    void *memory;
    world_open(&world, 2, NULL);
    assert_int_equal(pml_mem_alloc(&world.rt[1], 10000, &memory), 0);
    memcpy((char *)memory + 5000, "still here", 11);
    assert_int_equal(pml_region_card(&world.rt[1], memory, 10000, &card), 0);
    assert_int_equal(pml_region_attach(&world.rt[0], 1, &card, &region), 0);
    if (region->access == PML_ACCESS_DIRECT) {
        pml_comm_detach(&world.comm[1]);
        pml_finalize(&world.rt[1]);
        assert_string_equal(region->pointer + 5000, "still here");
    }
    pml_region_detach(&world.rt[0], region);
    world_close(&world);
}

static void region_access(void **state)
{
    (void)state;
    char *no_direct[] = {"NCCLX_SHM_DIRECT=0", NULL}, *nothing[] = {"NCCLX_SHM_DIRECT=0", "NCCLX_SHM_CMA=0", NULL};
    regions(NULL, PML_ACCESS_DIRECT, PML_ACCESS_COPY);
    regions(no_direct, PML_ACCESS_COPY, PML_ACCESS_COPY);
    regions(nothing, PML_ACCESS_MESSAGE, PML_ACCESS_MESSAGE);
}

/* What passed, by transport: messages on both sides, one-sided operations on the side of who asked for them. */
static void traffic(void **state)
{
    (void)state;
    struct pml_traffic passed;
    struct pml_region_card card;
    struct pml_region *region;
    void *memory;
    char data[500] = "data";
    int peers;
    world_open(&world, 3, NULL);
    transfer(0, 1, 100, true);
    transfer(1, 0, 200000, false);
    transfer(2, 0, 200000, true);
    transfer(0, 0, 7, true);
    assert_int_equal(pml_get_traffic(&world.rt[0], "shm", &passed, &peers), 0);
    assert_true(passed.sent == 100 && passed.received == 400000 && peers == 2);
    assert_int_equal(pml_get_traffic(&world.rt[2], "shm", &passed, &peers), 0);
    assert_true(passed.sent == 200000 && passed.received == 0 && peers == 1);
    assert_int_equal(pml_get_traffic(&world.rt[0], "self", &passed, &peers), 0);
    assert_true(passed.sent == 7 && passed.received == 7 && peers == 1);
    assert_int_equal(pml_get_traffic(&world.rt[0], "tcp", &passed, &peers), 0);
    assert_true(passed.sent == 0 && passed.received == 0 && peers == 0);
    assert_int_equal(pml_get_traffic(&world.rt[0], "smoke", &passed, &peers), NCCLX_ERR_ARG);

    assert_int_equal(pml_mem_alloc(&world.rt[1], 8192, &memory), 0);
    assert_int_equal(pml_region_card(&world.rt[1], memory, 8192, &card), 0);
    assert_int_equal(pml_region_attach(&world.rt[0], 1, &card, &region), 0);
    assert_int_equal(pml_region_write(&world.rt[0], region, 0, data, 500), 0);
    assert_int_equal(pml_region_read(&world.rt[0], region, 100, data, 50), 0);
    pml_count_direct(region, 3, 4);
    pml_region_detach(&world.rt[0], region);
    assert_int_equal(pml_get_traffic(&world.rt[0], "shm", &passed, &peers), 0);
    assert_true(passed.sent == 603 && passed.received == 400054 && peers == 2);
    assert_int_equal(pml_get_traffic(&world.rt[1], "shm", &passed, &peers), 0);
    assert_true(passed.sent == 200000 && passed.received == 100);
    world_close(&world);
}

/* More than there is: an error, and nobody is killed for it. */
static void too_much_memory(void **state)
{
    (void)state;
    void *memory = &memory;
    world_open(&world, 1, NULL);
    for (int bit = 40; bit < 64; bit++) {
        assert_int_equal(pml_mem_alloc(&world.rt[0], (size_t)1 << bit, &memory), NCCLX_ERR_NO_MEM);
        assert_null(memory);
    }
    assert_int_equal(pml_mem_alloc(&world.rt[0], SIZE_MAX, &memory), NCCLX_ERR_NO_MEM);
    assert_int_equal(pml_mem_alloc(&world.rt[0], 0, &memory), 0);
    assert_null(memory);
    world_close(&world);
}

static void hostile_cards(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    struct pml_region_card good, card;
    struct pml_region *region;
    void *memory;
    assert_int_equal(pml_mem_alloc(&world.rt[1], 8192, &memory), 0);
    assert_int_equal(pml_region_card(&world.rt[1], memory, 8192, &good), 0);
    for (int word = 0; word < 8; word++) {
        static const uint64_t lie[] = {0, 1, UINT64_MAX, UINT64_MAX - 4096, (uint64_t)1 << 63, 12288, 4096};
        for (size_t i = 0; i < sizeof lie / sizeof lie[0]; i++) {
            card = good;
            card.word[word] = lie[i];
            if (pml_region_attach(&world.rt[0], 1, &card, &region)) continue; /* refused */
            if (region->access == PML_ACCESS_DIRECT) assert_true(region->bytes <= 8192);
            pml_region_detach(&world.rt[0], region);
        }
    }
    assert_int_equal(pml_region_attach(&world.rt[0], 1, &good, &region), 0);
    pml_region_detach(&world.rt[0], region);
    world_close(&world);
}

/* Asks rank 1 to write one byte; what became of it. */
static enum offer_progress ask_to_write(uint32_t round, const void *address, size_t bytes)
{
    struct pml_connection *connection;
    char data[64] = "?";
    assert_int_equal(pml_connection_to(world.rt[0].pml, 1, &connection), 0);
    struct shm_channel *channel = connection->channel;
    struct pml_packet packet = {.kind = SERVE_WRITE, .context = (uint64_t)(uintptr_t)address, .source = (int32_t)round};
    struct pml_payload payload = {.first = data, .first_bytes = bytes};
    assert_true(transport_shm.post(connection, &packet, &payload));
    world_progress(&world);
    enum offer_progress progress = offer_look(&channel->writer.shared->offer, round);
    if (progress == OFFER_DECLINED) offer_forget(&channel->writer.shared->offer, round);
    return progress;
}

/* A peer gets what this rank exposes, and nothing beside it. */
static void service_refused(void **state)
{
    (void)state;
    struct pml_region_card card, other;
    char memory[300];
    memset(memory, 'x', sizeof memory);
    world_open(&world, 2, NULL);
    assert_int_equal(ask_to_write(1, memory + 100, 64), OFFER_DECLINED);
    assert_int_equal(pml_region_card(&world.rt[1], memory + 100, 100, &card), 0);
    assert_int_equal(pml_region_card(&world.rt[1], memory + 250, 10, &other), 0);
    assert_int_equal(ask_to_write(2, memory + 100, 64), OFFER_DONE);
    assert_int_equal(memory[100], '?');
    assert_int_equal(ask_to_write(3, memory + 99, 64), OFFER_DECLINED);
    assert_int_equal(ask_to_write(4, memory + 137, 64), OFFER_DECLINED);
    assert_int_equal(ask_to_write(5, memory + 200, 64), OFFER_DECLINED);
    assert_int_equal(ask_to_write(6, (void *)UINTPTR_MAX, 64), OFFER_DECLINED);
    assert_int_equal(ask_to_write(9, memory + 100, 64), OFFER_OPEN); /* not the next round: ignored */
    assert_int_equal(ask_to_write(7, memory + 136, 64), OFFER_DONE);
    pml_region_hide(&world.rt[1], &card);
    assert_int_equal(ask_to_write(8, memory + 100, 64), OFFER_DECLINED);
    for (int i = 0; i < 300; i++) assert_true(memory[i] != '?' || i == 100 || i == 136);
    assert_int_equal(memory[99], 'x');
    assert_int_equal(memory[200], 'x');
    world_close(&world);
}

/* Messages that may go either way arrive whichever is tried, and both are, in a row and answered. */
static void either_way(void **state)
{
    (void)state;
    world_open(&world, 2, NULL);
    struct pml_counters counters;
    for (int i = 0; i < 800; i++) {
        size_t bytes = PACE_LEAST - 1 + (size_t)i * 79;
        transfer(0, 1, bytes, i % 2);
        if (i % 3 == 0) transfer(1, 0, bytes, i % 2);
    }
    pml_get_counters(&world.rt[0], &counters);
    assert_true(counters.eager >= CHOICE_TRIAL && counters.rendezvous >= CHOICE_TRIAL); /* one trial at least */
    world_close(&world);
}

/* The user's limit is kept to. */
static void limit_given(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_EAGER_LIMIT=16384", NULL};
    struct pml_counters counters;
    world_open(&world, 2, environment);
    for (int i = 0; i < 100; i++) transfer(0, 1, i % 2 ? 16384 : 16385, false);
    pml_get_counters(&world.rt[0], &counters);
    assert_int_equal(counters.eager, 50);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(without_single_copies),
        cmocka_unit_test(single_copies_refused),
        cmocka_unit_test(single_copies_end),
        cmocka_unit_test(transports_chosen),
        cmocka_unit_test(smallest_ring),
        cmocka_unit_test(truncation),
        cmocka_unit_test(order_and_wildcards),
        cmocka_unit_test(probing),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(communicator_ends_before_its_receive),
        cmocka_unit_test(nobody_receives),
        cmocka_unit_test(flood),
        cmocka_unit_test(context_not_known_yet),
        cmocka_unit_test(active_messages),
        cmocka_unit_test(hostile_packets),
        cmocka_unit_test(region_access),
        cmocka_unit_test(owner_ends_first),
        cmocka_unit_test(traffic),
        cmocka_unit_test(too_much_memory),
        cmocka_unit_test(hostile_cards),
        cmocka_unit_test(service_refused),
        cmocka_unit_test(either_way),
        cmocka_unit_test(limit_given),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
