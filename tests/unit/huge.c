/* huge.c - lengths and offsets of 2^31 and 2^32 and a little more, in every core that cuts data into pieces. No memory is
 * touched: the pieces have to follow each other and end where the whole ends. */
#include "osc/window_core.h"
#include "pml/copy.h"
#include "pml/lanes/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <cmocka.h>

#define THERE UINT64_C(0x7000000000) /* of the target's memory */
#define ROOM ((size_t)7 << 30)

static const uint64_t sizes[] = {(UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,       (UINT64_C(1) << 32) - 1,
                                 UINT64_C(1) << 32,       (UINT64_C(1) << 32) + 1, (UINT64_C(3) << 31) + 7};
#define SIZES (sizeof sizes / sizeof sizes[0])

static char *base; /* addresses, without memory */

static int make(void **state)
{
    (void)state;
    base = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? -1 : 0;
}

static int unmake(void **state)
{
    (void)state;
    return munmap(base, ROOM);
}

/* ---- Lanes ---- */

static void put_over_lanes(uint64_t bytes, size_t segment, bool notice)
{
    const struct dqplb_terms terms = {.lanes = 5, .depth = 16, .receives = 64, .window = 1024, .notices = 4};
    const struct dqplb_limits limits = {.lanes = 4, .outstanding = 4, .segment = segment};
    struct dqplb_sender sender;
    struct dqplb_tracker tracker;
    struct dqplb_order order = {0};
    struct dqplb_put put = {.from = base, .to = THERE, .key = 9, .bytes = bytes, .notice = notice};
    struct dqplb_action action;
    uint64_t at = 0, token = 0, expected, applied, receives;
    unsigned lane;
    uint32_t life;
    bool done = false;
    assert_int_equal(dqplb_sender_init(&sender, &terms, &limits, 16384), NCCLX_SUCCESS);
    assert_int_equal(dqplb_tracker_init(&tracker, &terms), NCCLX_SUCCESS);
    for (unsigned i = 0; i < terms.lanes; i++) {
        assert_int_equal(dqplb_lane_up(&sender, i), NCCLX_SUCCESS);
        dqplb_tracker_lane_up(&tracker, i);
    }
    dqplb_put(&sender, &order, &put);
    while (!done && dqplb_next(&sender, &action)) {
        if (action.kind == DQPLB_WRITE) {
            assert_true(action.bytes <= segment && action.from == base + at && action.to == THERE + at);
            at += action.bytes;
            if (action.has_immediate) assert_int_equal(dqplb_arrived(&tracker, action.lane, action.immediate), NCCLX_SUCCESS);
            while (dqplb_credit_due(&tracker, &lane, &life, &receives))
                assert_int_equal(dqplb_credited(&sender, lane, life, receives), NCCLX_SUCCESS);
            if (dqplb_progress_due(&tracker, &expected, &applied))
                assert_int_equal(dqplb_progressed(&sender, expected, applied), NCCLX_SUCCESS);
            assert_int_equal(dqplb_completed(&sender, action.lane), NCCLX_SUCCESS);
        } else if (action.kind == DQPLB_NOTICE) {
            assert_int_equal(at, bytes);
            assert_int_equal(dqplb_noticed(&tracker, 1, action.bound, action.fast_bound, 5), NCCLX_SUCCESS);
            assert_true(dqplb_apply(&tracker, &token));
        } else {
            done = action.kind == DQPLB_DONE;
        }
    }
    assert_true(done && at == bytes && token == (notice ? 5 : 0));
    dqplb_sender_release(&sender);
    dqplb_tracker_release(&tracker);
}

static void puts_over_lanes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        put_over_lanes(sizes[i], 262144, true);
        put_over_lanes(sizes[i], 99991, false);
        put_over_lanes(sizes[i], (size_t)1 << 30, true);
    }
}

static void ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        const struct lanes_range range = {.address = THERE, .bytes = sizes[i]};
        assert_true(lanes_range_holds(&range, THERE, sizes[i]));
        assert_true(lanes_range_holds(&range, THERE + sizes[i] - 1, 1));
        assert_true(lanes_range_holds(&range, THERE + sizes[i], 0));
        assert_false(lanes_range_holds(&range, THERE, sizes[i] + 1));
        assert_false(lanes_range_holds(&range, THERE + sizes[i], 1));
        assert_false(lanes_range_holds(&range, THERE + 1, UINT64_MAX));
        assert_false(lanes_range_holds(&range, THERE - 1, 1));
    }
}

/* ---- Messages ---- */

static void messages_in_pieces(void **state)
{
    (void)state;
    const struct protocol_route route = {.eager_limit = 32768};
    for (size_t i = 0; i < SIZES; i++) {
        struct protocol_send send;
        struct protocol_receive receive = {.capacity = sizes[i]};
        protocol_requested(&send, sizes[i], 0);
        struct protocol_action action = protocol_deliver(&receive, &route, PROTOCOL_REQUEST, sizes[i], 0);
        assert_true(action.control == PROTOCOL_CLEAR && !action.error && !action.complete);
        assert_int_equal(protocol_grants(&receive), sizes[i]);
        assert_true(protocol_cleared(&send, 1));
        uint64_t at = 0;
        while (send.state != STATE_DONE) {
            assert_true(protocol_data(&receive, at + (UINT64_C(1) << 32), 1).error == NCCLX_ERR_TRANSPORT);
            size_t bytes = protocol_stream_next(&send, 262144);
            action = protocol_data(&receive, at, bytes);
            at += bytes;
            assert_true(!action.error && action.complete == (at == sizes[i]));
        }
        assert_int_equal(at, sizes[i]);
    }
}

static void lengths_against_buffers(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        struct protocol_announcement announcement = {.bytes = sizes[i] - 1}, *used = NULL;
        const struct protocol_route route = {.can_write = true};
        struct protocol_peer peer = {.announced = &announcement};
        assert_int_equal(protocol_send_start(&peer, &route, 0, sizes[i], &used), SEND_REFUSE);
        announcement.bytes = sizes[i];
        peer.announced = &announcement;
        assert_int_equal(protocol_send_start(&peer, &route, 0, sizes[i], &used), SEND_FILL);
        struct protocol_receive receive = {.capacity = (uint32_t)sizes[i]}; /* what is left of the length in 32 bits */
        bool fits = sizes[i] == (uint32_t)sizes[i];
        assert_int_equal(protocol_deliver(&receive, &route, PROTOCOL_REQUEST, sizes[i], 0).error, fits ? NCCLX_SUCCESS : NCCLX_ERR_TRUNCATE);
    }
}

/* ---- Windows by messages ---- */

static void acknowledge(struct window_origin *origin, uint64_t sequence)
{
    char *to;
    const struct window_header ack = {.window = 3, .kind = WINDOW_ACK, .sequence = sequence, .version = WINDOW_VERSION};
    assert_int_equal(window_origin_receive(origin, &ack, 0, &to), NCCLX_SUCCESS);
}

static void window_put(uint64_t bytes, uint64_t piece)
{
    struct window_origin origin;
    struct window_operation operation = {
        .kind = WINDOW_PUT, .from = base, .offset = THERE, .bytes = bytes, .has_signal = true, .slot = 1, .value = 2};
    struct window_message message;
    uint64_t at = 0, messages = 0;
    window_origin_init(&origin, 3, 0, piece);
    window_origin_submit(&origin, &operation);
    while (window_origin_next(&origin, &message)) {
        assert_int_equal(message.header.offset, THERE + at);
        assert_ptr_equal(message.data, base + at);
        assert_true(message.bytes <= piece && message.header.bytes == message.bytes);
        at += message.bytes;
        assert_int_equal(message.header.flags & WINDOW_HAS_SIGNAL, at == bytes ? WINDOW_HAS_SIGNAL : 0);
        assert_true(message.finished == (at == bytes ? &operation : NULL));
        if (message.header.flags & WINDOW_WANTS_ACK) acknowledge(&origin, message.header.sequence);
        messages++;
    }
    assert_int_equal(at, bytes);
    assert_int_equal(messages, (bytes + piece - 1) / piece);
    assert_int_equal(window_origin_goal(&origin), messages);
}

static void window_get(uint64_t bytes, uint64_t piece)
{
    struct window_origin origin;
    struct window_operation operation = {.kind = WINDOW_GET, .to = base, .offset = THERE, .bytes = bytes};
    struct window_message message;
    uint64_t at = 0;
    window_origin_init(&origin, 3, 0, piece);
    window_origin_submit(&origin, &operation);
    while (window_origin_next(&origin, &message)) {
        assert_int_equal(message.header.offset, THERE + at);
        for (uint64_t got = 0; got < message.header.bytes;) {
            char *to;
            uint64_t left = message.header.bytes - got, now = left < piece ? left : piece;
            const struct window_header data = {
                .window = 3, .kind = WINDOW_DATA, .sequence = message.header.sequence, .offset = got, .bytes = now, .version = WINDOW_VERSION};
            assert_int_equal(window_origin_receive(&origin, &data, now, &to), NCCLX_SUCCESS);
            assert_ptr_equal(to, base + at + got);
            got += now;
        }
        at += message.header.bytes;
    }
    assert_int_equal(at, bytes);
}

static void windows_in_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        window_put(sizes[i], 65400);
        window_get(sizes[i], 65400);
    }
}

/* ---- Chunks ---- */

static void chunks_beyond_32_bits(void **state)
{
    (void)state;
    struct copy_origin origin = {.here = 5, .there = 7, .sent = (UINT64_C(1) << 32) - 3, .cleared = (UINT64_C(1) << 32) - 3};
    struct copy_target target = {.slots = 7, .arrived = origin.sent, .taken = origin.sent};
    unsigned here, there;
    for (int i = 0; i < 100; i++) {
        assert_true(copy_next(&origin, &here, &there));
        assert_int_equal(copy_arrived(&target), there);
        copy_placed(&origin, here);
        assert_true(copy_cleared(&origin, copy_taken(&target)));
    }
    assert_int_equal(origin.sent, (UINT64_C(1) << 32) + 97);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_over_lanes),         cmocka_unit_test(ranges),            cmocka_unit_test(messages_in_pieces),
        cmocka_unit_test(lengths_against_buffers), cmocka_unit_test(windows_in_pieces), cmocka_unit_test(chunks_beyond_32_bits),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make, unmake);
}
