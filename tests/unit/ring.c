/* ring.c - the shared-memory queue: order, wrap-around, fullness, payloads, and what a hostile peer writes into it. */
#include "pml/shm/ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define PAYLOAD ((size_t)4096)

static struct ring_shared *shared;
static struct ring_writer writer;
static struct ring_reader reader;

static int make(void **state)
{
    (void)state;
    shared = aligned_alloc(4096, (ring_bytes(PAYLOAD) + 4095) & ~(size_t)4095);
    if (!shared) return -1;
    memset((void *)shared, 0, ring_bytes(PAYLOAD));
    ring_writer_init(&writer, shared, PAYLOAD);
    ring_reader_init(&reader, shared, PAYLOAD);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    free(shared);
    return 0;
}

static bool put(uint64_t number, size_t bytes)
{
    struct pml_packet *line = ring_reserve(&writer);
    if (!line) return false;
    line->context = number;
    if (bytes > PACKET_INLINE_MAX) {
        char *place = ring_payload(&writer, line, bytes);
        if (!place) return false;
        memset(place, (int)(number & 0x7f), bytes);
    } else {
        line->inline_bytes = (uint8_t)bytes;
        memset(line->u.data, (int)(number & 0x7f), bytes);
    }
    ring_publish(&writer, line);
    return true;
}

static bool get(uint64_t number, size_t bytes)
{
    const struct pml_packet *line = ring_peek(&reader);
    const void *payload;
    size_t length;
    if (!line) return false;
    assert_true(ring_look(&reader, line, &payload, &length));
    assert_true(line->context == number && length == bytes);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(((const char *)payload)[i], (int)(number & 0x7f));
    ring_release(&reader, line, bytes > PACKET_INLINE_MAX ? bytes : 0);
    return true;
}

static size_t size_of(uint64_t number)
{
    static const size_t sizes[] = {0, 40, 41, 1000, 1024, 8, 64, 65, 513, 1};
    return sizes[number % 10];
}

static void fills_and_empties(void **state)
{
    (void)state;
    uint64_t in = 0, out = 0;
    for (int round = 0; round < 2000; round++) {
        while (put(in, size_of(in))) in++;
        assert_true(in > out); /* a full ring holds something, and a drained one takes something */
        for (int k = 0; k < 1 + round % 150 && get(out, size_of(out)); k++) out++;
        if (round % 7 == 0)
            while (get(out, size_of(out))) out++;
    }
    while (get(out, size_of(out))) out++;
    assert_true(in == out && in > 10000);
}

static void lines_alone_fill_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING_LINES; i++) assert_true(put(i, 8));
    assert_false(put(RING_LINES, 8));
    for (unsigned i = 0; i < RING_LINES; i++) assert_true(get(i, 8));
    assert_false(get(0, 8));
    assert_true(put(1, 8));
}

/* The largest payload always fits in the end, wherever the byte ring stands. */
static void largest_payload_is_never_stuck(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        size_t bytes = i % 3 == 0 ? ring_payload_max(&writer) : (size_t)(i * 64 % 1024) + 41;
        if (bytes > ring_payload_max(&writer)) bytes = 41;
        assert_true(put(i, bytes));
        assert_true(get(i, bytes));
    }
}

static void hostile_lines_are_refused(void **state)
{
    (void)state;
    const void *payload;
    size_t length;
    struct pml_packet line = {.inline_bytes = PACKET_HAS_PAYLOAD};
    static const uint32_t lie[][2] = {
        {0, PAYLOAD + 1}, {PAYLOAD / 64, 1}, {PAYLOAD / 64 + 1, 0}, {UINT32_MAX, 64}, {1, UINT32_MAX}};
    for (size_t i = 0; i < sizeof lie / sizeof lie[0]; i++) {
        line.u.payload.start = lie[i][0];
        line.u.payload.bytes = lie[i][1];
        assert_false(ring_look(&reader, &line, &payload, &length));
    }
    line.inline_bytes = PACKET_INLINE_MAX + 1;
    line.u.payload.start = line.u.payload.bytes = 0;
    assert_false(ring_look(&reader, &line, &payload, &length));
    for (unsigned i = 0; i < RING_LINES; i++)
        assert_true(put(i, 8)); /* a reader that claims to have read what was not written */
    atomic_store(&shared->taken, 1000000);
    assert_false(put(0, 8));
    atomic_store(&shared->taken, UINT64_MAX);
    assert_false(put(0, 8));
}

static void *write_all(void *arg)
{
    for (uint64_t i = 0; i < 20000; i++)
        while (!put(i, size_of(i))) sched_yield();
    return arg;
}

static void two_threads(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_all, NULL), 0);
    for (uint64_t i = 0; i < 20000; i++)
        while (!get(i, size_of(i))) sched_yield();
    pthread_join(thread, NULL);
}

/* The last place in the ring of `count` payloads that the reader takes as they come. */
static size_t last_place(size_t count, size_t bytes, bool answered)
{
    size_t furthest = 0;
    for (size_t i = 0; i < count; i++) {
        if (answered) ring_answered(&writer);
        struct pml_packet *line = ring_reserve(&writer);
        assert_non_null(line);
        char *place = ring_payload(&writer, line, bytes);
        assert_non_null(place);
        if ((size_t)(place - shared->payload) + bytes > furthest) furthest = (size_t)(place - shared->payload) + bytes;
        ring_publish(&writer, line);
        assert_non_null(ring_peek(&reader));
        ring_release(&reader, line, bytes);
        ring_idle(&reader);
    }
    return furthest;
}

/* Payloads that are answered, or short, stay in the hot part; others in a row use all of the ring. */
static void hot_part(void **state)
{
    enum { LARGE_RING = 1 << 20 };
    (void)state;
    shared = aligned_alloc(4096, (ring_bytes(LARGE_RING) + 4095) & ~(size_t)4095);
    assert_non_null(shared);
    memset((void *)shared, 0, ring_bytes(LARGE_RING));
    ring_writer_init(&writer, shared, LARGE_RING);
    ring_reader_init(&reader, shared, LARGE_RING);
    assert_true(last_place(2000, 1000, false) <= RING_HOT_BYTES);
    assert_true(last_place(300, 8192, false) == LARGE_RING);
    last_place(LARGE_RING / 8192 + RING_CALM, 8192, true);
    assert_true(last_place(300, 8192, true) <= RING_HOT_BYTES);
    free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fills_and_empties, make, unmake),
        cmocka_unit_test_setup_teardown(lines_alone_fill_it, make, unmake),
        cmocka_unit_test_setup_teardown(largest_payload_is_never_stuck, make, unmake),
        cmocka_unit_test_setup_teardown(hostile_lines_are_refused, make, unmake),
        cmocka_unit_test_setup_teardown(two_threads, make, unmake),
        cmocka_unit_test(hot_part),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
