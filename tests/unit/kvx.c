/* The key-value exchange by hand: a tree of one, a tree of two with a peer that errs, limits, and the wire. What
 * happens between many is the simulator's (tests/sim/kvx.c). */
#include "bootstrap/kvx/wire.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const struct kvx_limits limits = {
    .frame_bytes = KVX_LEAST_FRAME, .fence_bytes = 100000, .cache_bytes = 10000, .published_bytes = 1000};

struct stage {
    struct kvx_map *map;
    struct kvx *kvx;
    struct kvx_action action;
};

/* Daemon `me` of `daemons` in a chain; two ranks each. */
static void open_stage(struct stage *stage, int daemons, int me)
{
    int home[16];
    for (int i = 0; i < 2 * daemons; i++) home[i] = i / 2;
    assert_int_equal(kvx_map_create(home, 2 * daemons, daemons, 1, &stage->map), NCCLX_SUCCESS);
    assert_int_equal(kvx_create(stage->map, me, &limits, &stage->kvx), NCCLX_SUCCESS);
}

static void close_stage(struct stage *stage)
{
    struct base_area_usage usage;
    kvx_destroy(stage->kvx);
    kvx_map_free(stage->map);
    base_area_usage(AREA_BOOTSTRAP, &usage);
    assert_int_equal(usage.bytes, 0);
}

/* The next action is this one. */
static void expect(struct stage *stage, enum kvx_action_kind kind, uint64_t token, enum kvx_status status)
{
    assert_true(kvx_next(stage->kvx, &stage->action));
    assert_int_equal(stage->action.kind, kind);
    assert_int_equal(stage->action.token, token);
    assert_int_equal(stage->action.status, status);
}

static void expect_data(struct stage *stage, const void *data, size_t bytes)
{
    assert_int_equal(stage->action.bytes, bytes);
    if (bytes) assert_memory_equal(stage->action.data, data, bytes);
    base_free(AREA_BOOTSTRAP, stage->action.data);
}

static void expect_nothing(struct stage *stage) { assert_false(kvx_next(stage->kvx, &stage->action)); }

static void expect_sent(struct stage *stage, int link, struct wire_message *message)
{
    static struct kvx_range room[KVX_MAX_RANGES];
    expect(stage, KVX_SEND, 0, KVX_OK);
    assert_int_equal(stage->action.link, link);
    assert_int_equal(wire_decode(stage->action.message, stage->action.bytes, room, message), NCCLX_SUCCESS);
}

static int deliver(struct stage *stage, int link, const struct wire_message *message)
{
    size_t bytes = wire_bytes(message);
    void *data = malloc(bytes);
    assert_non_null(data);
    wire_encode(message, data);
    int code = kvx_receive(stage->kvx, link, data, bytes, 0);
    free(data);
    return code;
}

/* ---- A tree of one ---- */

static void test_fence_alone(void **state)
{
    struct stage stage;
    char data[3000];
    const struct kvx_range mixed[] = {{1, 1}, {0, 0}, {0, 1}}, both = {0, 1}, one = {1, 1};
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    open_stage(&stage, 1, 0);
    assert_int_equal(kvx_fence(stage.kvx, mixed, 3, data, sizeof data, 1), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 1, KVX_OK);
    expect_data(&stage, data, sizeof data);
    assert_int_equal(kvx_fence(stage.kvx, &both, 1, NULL, 0, 2), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 2, KVX_OK);
    expect_data(&stage, NULL, 0);
    assert_int_equal(kvx_rank_died(stage.kvx, 0), NCCLX_SUCCESS);
    expect(&stage, KVX_REPORT, 0, KVX_OK);
    assert_int_equal(kvx_fence(stage.kvx, &both, 1, data, 10, 3), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 3, KVX_FAILED);
    assert_int_equal(stage.action.failure.rank, 0);
    assert_int_equal(kvx_fence(stage.kvx, &one, 1, data, 10, 4), NCCLX_SUCCESS); /* the dead one is not in it */
    expect(&stage, KVX_COMPLETE, 4, KVX_OK);
    expect_data(&stage, data, 10);
    expect_nothing(&stage);
    assert_int_equal(kvx_pending(stage.kvx), 0);
    close_stage(&stage);
}

static void test_get_alone(void **state)
{
    struct stage stage;
    (void)state;
    open_stage(&stage, 1, 0);
    assert_int_equal(kvx_get(stage.kvx, 1, false, 1000, 0, 7), NCCLX_SUCCESS);
    assert_int_equal(kvx_get(stage.kvx, 1, false, 3000, 0, 8), NCCLX_SUCCESS); /* merged */
    assert_true(kvx_next(stage.kvx, &stage.action));
    assert_int_equal(stage.action.kind, KVX_FETCH);
    assert_int_equal(stage.action.rank, 1);
    uint64_t fetch = stage.action.token;
    expect_nothing(&stage);
    assert_int_equal(kvx_deadline(stage.kvx), SECOND);
    assert_int_equal(kvx_tick(stage.kvx, 2 * SECOND), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 7, KVX_TIMEOUT);
    assert_int_equal(kvx_fetched(stage.kvx, 1, fetch, KVX_OK, "value", 5, 2 * SECOND), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 8, KVX_OK);
    expect_data(&stage, "value", 5);
    assert_int_equal(kvx_fetched(stage.kvx, 1, fetch, KVX_OK, "again", 5, 2 * SECOND), NCCLX_SUCCESS);
    expect_nothing(&stage);
    assert_int_equal(kvx_get(stage.kvx, 1, false, 0, 0, 9), NCCLX_SUCCESS); /* kept */
    expect(&stage, KVX_COMPLETE, 9, KVX_OK);
    expect_data(&stage, "value", 5);
    assert_int_equal(kvx_get(stage.kvx, 1, true, 0, 0, 10), NCCLX_SUCCESS);
    assert_true(kvx_next(stage.kvx, &stage.action));
    assert_int_equal(stage.action.kind, KVX_FETCH);
    assert_int_equal(kvx_rank_died(stage.kvx, 1), NCCLX_SUCCESS);
    expect(&stage, KVX_REPORT, 0, KVX_OK);
    expect(&stage, KVX_COMPLETE, 10, KVX_FAILED);
    assert_int_equal(kvx_get(stage.kvx, 2, true, 0, 0, 11), NCCLX_ERR_ARG);
    expect_nothing(&stage);
    close_stage(&stage);
}

static void test_names_alone(void **state)
{
    struct stage stage;
    char large[1000] = "", name[KVX_MAX_KEY + 2];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    open_stage(&stage, 1, 0);
    assert_int_equal(kvx_lookup(stage.kvx, "a", false, 0, 0, 1), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 1, KVX_NOT_FOUND);
    assert_int_equal(kvx_lookup(stage.kvx, "a", true, 0, 0, 2), NCCLX_SUCCESS);
    expect_nothing(&stage);
    assert_int_equal(kvx_publish(stage.kvx, 1, "a", "x", 1, 3), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 2, KVX_OK);
    assert_int_equal(stage.action.owner, 1);
    expect_data(&stage, "x", 1);
    expect(&stage, KVX_COMPLETE, 3, KVX_OK);
    assert_int_equal(kvx_publish(stage.kvx, 0, "a", "y", 1, 4), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 4, KVX_DUPLICATE);
    assert_int_equal(kvx_unpublish(stage.kvx, 0, "a", 5), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 5, KVX_NOT_FOUND); /* another's */
    assert_int_equal(kvx_unpublish(stage.kvx, 1, NULL, 6), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 6, KVX_OK);
    assert_int_equal(kvx_publish(stage.kvx, 0, "b", large, sizeof large, 7), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 7, KVX_LIMIT);
    assert_int_equal(kvx_publish(stage.kvx, 0, name, "", 0, 8), NCCLX_ERR_LIMIT);
    assert_int_equal(kvx_lookup(stage.kvx, "", false, 0, 0, 8), NCCLX_ERR_LIMIT);
    assert_int_equal(kvx_publish(stage.kvx, 2, "c", "", 0, 8), NCCLX_ERR_ARG);
    expect_nothing(&stage);
    close_stage(&stage);
}

/* ---- Two daemons ---- */

static const struct kvx_range everybody[] = {{0, 3}};

static struct wire_message up(uint64_t generation)
{
    return (struct wire_message){.type = WIRE_FENCE_UP,
                                 .generation = generation,
                                 .failure = {-1, -1},
                                 .last = true,
                                 .ranges = everybody,
                                 .range_count = 1,
                                 .owner = -1};
}

static void test_late_contribution(void **state)
{
    struct stage stage;
    struct wire_message message = up(1), seen;
    (void)state;
    open_stage(&stage, 2, 0);
    assert_int_equal(kvx_fence(stage.kvx, everybody, 1, NULL, 0, 1), NCCLX_SUCCESS);
    expect_nothing(&stage);
    assert_int_equal(kvx_rank_died(stage.kvx, 1), NCCLX_SUCCESS);
    expect(&stage, KVX_REPORT, 0, KVX_OK);
    expect_sent(&stage, 0, &seen);
    assert_int_equal(seen.type, WIRE_FENCE_DOWN);
    assert_int_equal(seen.status, KVX_FAILED);
    assert_int_equal(seen.generation, 1);
    expect(&stage, KVX_COMPLETE, 1, KVX_FAILED);
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_SUCCESS); /* it had not heard */
    expect_nothing(&stage);
    assert_int_equal(kvx_pending(stage.kvx), 0);
    message.generation = 2; /* and now it calls again */
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_SUCCESS);
    expect_sent(&stage, 0, &seen);
    assert_int_equal(seen.generation, 2);
    expect_nothing(&stage);
    assert_int_equal(kvx_fence(stage.kvx, everybody, 1, NULL, 0, 2), NCCLX_SUCCESS); /* has failed already */
    expect(&stage, KVX_COMPLETE, 2, KVX_FAILED);
    expect_nothing(&stage);
    close_stage(&stage);
}

static void test_too_much_data(void **state)
{
    struct stage stage;
    struct wire_message seen;
    char *data = calloc(1, limits.fence_bytes + 1);
    (void)state;
    assert_non_null(data);
    open_stage(&stage, 2, 0);
    assert_int_equal(kvx_fence(stage.kvx, everybody, 1, data, limits.fence_bytes + 1, 1), NCCLX_SUCCESS);
    do expect_sent(&stage, 0, &seen);
    while (!seen.last);
    assert_int_equal(seen.status, KVX_LIMIT);
    expect(&stage, KVX_COMPLETE, 1, KVX_LIMIT);
    expect_nothing(&stage);
    close_stage(&stage);
    free(data);
}

static void test_peer_errs(void **state)
{
    struct stage stage;
    char body[64];
    struct wire_message message = up(2);
    (void)state;
    open_stage(&stage, 3, 1);
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* ahead of the first */
    message = up(1);
    message.type = WIRE_FENCE_DOWN;
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* from a child */
    message.ranges = &(struct kvx_range){4, 5};
    assert_int_equal(deliver(&stage, KVX_PARENT, &message),
                     NCCLX_ERR_TRANSPORT); /* all below: not the parent's to say */
    message.ranges = &(struct kvx_range){0, 5};
    assert_int_equal(deliver(&stage, KVX_PARENT, &message), NCCLX_ERR_TRANSPORT); /* ended without us */
    message = up(1);
    message.ranges = &(struct kvx_range){0, 6};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* a rank too many */
    message.ranges = &(struct kvx_range){0, 1};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* nobody of that child */
    message = up(1);
    message.body = body;
    message.body_bytes = WIRE_RECORD_BYTES + 1;
    wire_put_record(body, &(struct wire_record){.daemon = 1, .bytes = 1, .total = 1});
    message.ranges = &(struct kvx_range){0, 5};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* our data from a child */
    message = (struct wire_message){.type = WIRE_LOST, .failure = {0, 0}, .owner = -1};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* not below it */
    message = (struct wire_message){.type = WIRE_GET, .subject = 4, .owner = -1};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* its own rank: would go in circles */
    message.subject = 6;
    assert_int_equal(deliver(&stage, KVX_PARENT, &message), NCCLX_ERR_TRANSPORT);
    message = (struct wire_message){.type = WIRE_LOOKUP, .key = "k", .key_bytes = 1, .owner = -1};
    assert_int_equal(deliver(&stage, KVX_PARENT, &message), NCCLX_ERR_TRANSPORT);
    assert_int_equal(kvx_receive(stage.kvx, 1, body, 1, 0), NCCLX_ERR_ARG); /* no such link */
    while (kvx_next(stage.kvx, &stage.action)) base_free(AREA_BOOTSTRAP, stage.action.data);
    close_stage(&stage);
}

static void test_steady_fences(void **state)
{
    struct stage stage;
    struct base_area_usage before, after;
    (void)state;
    open_stage(&stage, 2, 0);
    for (uint64_t generation = 1; generation <= 1000; generation++) {
        struct wire_message message = up(generation), seen;
        assert_int_equal(kvx_fence(stage.kvx, everybody, 1, NULL, 0, generation), NCCLX_SUCCESS);
        assert_int_equal(deliver(&stage, 0, &message), NCCLX_SUCCESS);
        expect_sent(&stage, 0, &seen);
        assert_true(seen.last);
        expect(&stage, KVX_COMPLETE, generation, KVX_OK);
        expect_nothing(&stage);
        base_area_usage(AREA_BOOTSTRAP, generation == 1 ? &before : &after);
    }
    assert_int_equal(after.blocks, before.blocks); /* blocks are never given back in between: none was taken */
    assert_int_equal(after.peak, before.peak);
    close_stage(&stage);
}

/* ---- Ranks that come later, and go ---- */

/* What a child has sent before it heard that they are gone. */
static void expect_ignored(struct stage *stage, const struct kvx_range *range)
{
    const struct wire_message messages[] = {
        {.type = WIRE_FENCE_UP, .generation = 1, .failure = {-1, -1}, .last = true, .ranges = range, .range_count = 1},
        {.type = WIRE_LOST, .failure = {5, 1}, .owner = -1},
        {.type = WIRE_GET, .generation = 1, .subject = 4, .failure = {-1, -1}, .owner = -1},
        {.type = WIRE_ANSWER, .generation = 1, .subject = 5, .failure = {-1, -1}, .owner = -1}};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        assert_int_equal(deliver(stage, 0, &messages[i]), NCCLX_SUCCESS);
    expect_nothing(stage);
}

static void test_later_ranks(void **state)
{
    const int home[] = {0, 1};
    const struct kvx_range all = {0, 5}, later = {4, 5};
    struct wire_message message = {
        .type = WIRE_FENCE_UP, .generation = 1, .failure = {-1, -1}, .last = true, .ranges = &all, .range_count = 1};
    struct wire_message seen;
    struct stage stage;
    (void)state;
    open_stage(&stage, 2, 0);
    assert_int_equal(kvx_fence(stage.kvx, &all, 1, NULL, 0, 1), NCCLX_ERR_ARG); /* not yet */
    assert_int_equal(kvx_map_add(stage.map, 3, home, 2), NCCLX_ERR_ARG);
    assert_int_equal(kvx_map_add(stage.map, 4, home, 2), NCCLX_SUCCESS);
    assert_int_equal(kvx_fence(stage.kvx, &all, 1, NULL, 0, 1), NCCLX_SUCCESS);
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_SUCCESS);
    expect_sent(&stage, 0, &seen);
    expect(&stage, KVX_COMPLETE, 1, KVX_OK);
    assert_int_equal(kvx_fence(stage.kvx, &later, 1, NULL, 0, 2), NCCLX_SUCCESS);
    assert_int_equal(kvx_get(stage.kvx, 5, false, 0, 0, 3), NCCLX_SUCCESS);
    expect_sent(&stage, 0, &seen);
    assert_int_equal(kvx_publish(stage.kvx, 4, "name", "x", 1, 4), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 4, KVX_OK);
    assert_int_equal(kvx_rank_died(stage.kvx, 4), NCCLX_SUCCESS);
    expect(&stage, KVX_REPORT, 0, KVX_OK);
    expect_sent(&stage, 0, &seen);
    expect(&stage, KVX_COMPLETE, 2, KVX_FAILED);
    expect_nothing(&stage);
    assert_int_equal(kvx_retire(stage.kvx, 4, 2), NCCLX_SUCCESS);
    kvx_map_remove(stage.map, 4);
    expect(&stage, KVX_COMPLETE, 3, KVX_FAILED);
    assert_int_equal(kvx_pending(stage.kvx), 0);
    expect_ignored(&stage, &later);
    assert_int_equal(kvx_fence(stage.kvx, &all, 1, NULL, 0, 5), NCCLX_ERR_ARG);
    assert_int_equal(kvx_get(stage.kvx, 4, false, 0, 0, 6), NCCLX_ERR_ARG);
    assert_int_equal(kvx_publish(stage.kvx, 4, "other", "x", 1, 7), NCCLX_ERR_ARG);
    assert_int_equal(kvx_lookup(stage.kvx, "name", false, 0, 0, 8), NCCLX_SUCCESS); /* went with its owner */
    expect(&stage, KVX_COMPLETE, 8, KVX_NOT_FOUND);
    assert_int_equal(kvx_map_add(stage.map, 4, home, 2), NCCLX_ERR_ARG); /* no number twice */
    message.ranges = &(struct kvx_range){6, 6};
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_ERR_TRANSPORT); /* there never was such a rank */
    assert_int_equal(kvx_map_add(stage.map, 6, home, 2), NCCLX_SUCCESS);
    message.ranges = &(struct kvx_range){6, 7};
    assert_int_equal(kvx_fence(stage.kvx, message.ranges, 1, NULL, 0, 9), NCCLX_SUCCESS);
    assert_int_equal(deliver(&stage, 0, &message), NCCLX_SUCCESS);
    expect_sent(&stage, 0, &seen);
    expect(&stage, KVX_COMPLETE, 9, KVX_OK);
    close_stage(&stage);
}

/* Jobs without number come and go: nothing is left of them. */
static void test_no_growth(void **state)
{
    struct base_area_usage before, after;
    struct stage stage;
    (void)state;
    open_stage(&stage, 1, 0);
    for (int job = 0; job < 2 * KVX_MAX_SETS; job++) {
        const int home[] = {0, 0}, first = 2 + 2 * job;
        const struct kvx_range range = {(uint32_t)first, (uint32_t)first + 1};
        assert_int_equal(kvx_map_add(stage.map, first, home, 2), NCCLX_SUCCESS);
        assert_int_equal(kvx_fence(stage.kvx, &range, 1, NULL, 0, 1), NCCLX_SUCCESS);
        expect(&stage, KVX_COMPLETE, 1, KVX_OK);
        assert_int_equal(kvx_rank_died(stage.kvx, first), NCCLX_SUCCESS);
        expect(&stage, KVX_REPORT, 0, KVX_OK);
        assert_int_equal(kvx_retire(stage.kvx, first, 2), NCCLX_SUCCESS);
        kvx_map_remove(stage.map, first);
        expect_nothing(&stage);
        base_area_usage(AREA_BOOTSTRAP, job == 0 ? &before : &after);
    }
    assert_int_equal(after.blocks, before.blocks);
    assert_int_equal(after.bytes, before.bytes);
    close_stage(&stage);
}

/* ---- Limits, arguments ---- */

static void test_arguments(void **state)
{
    int home[2] = {0, 2};
    struct kvx_map *map;
    struct kvx *kvx;
    struct stage stage;
    struct kvx_limits small = limits;
    (void)state;
    assert_int_equal(kvx_map_create(home, 2, 2, 2, &map), NCCLX_ERR_ARG);
    assert_int_equal(kvx_map_create(home, 2, 3, 0, &map), NCCLX_ERR_ARG);
    assert_int_equal(kvx_map_create(home, 2, 3, KVX_MAX_RADIX + 1, &map), NCCLX_ERR_ARG);
    assert_int_equal(kvx_map_create(home, 0, 3, 2, &map), NCCLX_ERR_ARG);
    open_stage(&stage, 2, 0);
    assert_int_equal(kvx_create(stage.map, 2, &limits, &kvx), NCCLX_ERR_ARG);
    small.frame_bytes = KVX_LEAST_FRAME - 1;
    assert_int_equal(kvx_create(stage.map, 0, &small, &kvx), NCCLX_ERR_ARG);
    assert_int_equal(kvx_fence(stage.kvx, everybody, 0, NULL, 0, 0), NCCLX_ERR_ARG);
    assert_int_equal(kvx_fence(stage.kvx, &(struct kvx_range){0, 4}, 1, NULL, 0, 0), NCCLX_ERR_ARG);
    assert_int_equal(kvx_fence(stage.kvx, &(struct kvx_range){1, 0}, 1, NULL, 0, 0), NCCLX_ERR_ARG);
    assert_int_equal(kvx_fence(stage.kvx, &(struct kvx_range){2, 3}, 1, NULL, 0, 0), NCCLX_ERR_ARG); /* none is here */
    assert_int_equal(kvx_link_lost(stage.kvx, KVX_PARENT), NCCLX_ERR_ARG);
    assert_int_equal(kvx_link_lost(stage.kvx, 1), NCCLX_ERR_ARG);
    assert_int_equal(kvx_rank_died(stage.kvx, 2), NCCLX_ERR_ARG);
    close_stage(&stage);
}

static void test_many_ranges(void **state)
{
    enum { RANKS = 2 * KVX_MAX_RANGES + 2 };
    static int home[RANKS];
    static struct kvx_range ranges[KVX_MAX_RANGES + 1];
    static const char data[5000];
    struct stage stage;
    (void)state;
    for (uint32_t i = 0; i <= KVX_MAX_RANGES; i++) ranges[i] = (struct kvx_range){2 * i, 2 * i};
    assert_int_equal(kvx_map_create(home, RANKS, 1, 1, &stage.map), NCCLX_SUCCESS);
    assert_int_equal(kvx_create(stage.map, 0, &limits, &stage.kvx), NCCLX_SUCCESS);
    assert_int_equal(kvx_fence(stage.kvx, ranges, KVX_MAX_RANGES + 1, NULL, 0, 1), NCCLX_ERR_LIMIT);
    assert_int_equal(kvx_fence(stage.kvx, ranges, KVX_MAX_RANGES, data, sizeof data, 2), NCCLX_SUCCESS);
    expect(&stage, KVX_COMPLETE, 2, KVX_OK);
    expect_data(&stage, data, sizeof data);
    close_stage(&stage);
}

/* ---- The wire ---- */

static void test_wire(void **state)
{
    static struct kvx_range room[KVX_MAX_RANGES];
    const struct kvx_range ranges[] = {{0, 1}, {3, 3}, {5, 90000}};
    char body[WIRE_RECORD_BYTES + 10] = "";
    unsigned char bytes[256];
    (void)state;
    wire_put_record(body, &(struct wire_record){.daemon = 3, .bytes = 10, .offset = 90, .total = 100});
    struct wire_message fence = up(UINT64_C(1) << 40), seen;
    fence.ranges = ranges;
    fence.range_count = 3;
    fence.body = body;
    fence.body_bytes = sizeof body;
    struct wire_message publish = {.type = WIRE_PUBLISH,
                                   .generation = 9,
                                   .subject = 4,
                                   .timeout_ms = 70,
                                   .flag = true,
                                   .owner = 12,
                                   .key = "key",
                                   .key_bytes = 3,
                                   .body = "value",
                                   .body_bytes = 5};
    struct wire_message answer = {
        .type = WIRE_ANSWER, .subject = 1, .failure = {-1, 7}, .owner = -1, .body = "v", .body_bytes = 1};
    const struct wire_message *messages[] = {&fence, &publish, &answer};
    for (size_t i = 0; i < 3; i++) {
        size_t size = wire_bytes(messages[i]);
        assert_true(size <= sizeof bytes);
        wire_encode(messages[i], bytes);
        assert_int_equal(wire_decode(bytes, size, room, &seen), NCCLX_SUCCESS);
        assert_int_equal(seen.generation, messages[i]->generation);
        assert_int_equal(seen.body_bytes, messages[i]->body_bytes);
        assert_memory_equal(seen.body, messages[i]->body, seen.body_bytes);
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(wire_decode(bytes, cut, room, &seen), NCCLX_ERR_TRANSPORT);
        bytes[1] = WIRE_VERSION + 1;
        assert_int_equal(wire_decode(bytes, size, room, &seen), NCCLX_ERR_TRANSPORT);
    }
    wire_put_record(body,
                    &(struct wire_record){.daemon = 3, .bytes = 10, .offset = 91, .total = 100}); /* past its total */
    wire_encode(&fence, bytes);
    assert_int_equal(wire_decode(bytes, wire_bytes(&fence), room, &seen), NCCLX_ERR_TRANSPORT);
    fence.body_bytes = 0;
    fence.ranges = (const struct kvx_range[]){{0, 1}, {2, 3}, {5, 5}}; /* could be written shorter */
    wire_encode(&fence, bytes);
    assert_int_equal(wire_decode(bytes, wire_bytes(&fence), room, &seen), NCCLX_ERR_TRANSPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fence_alone),   cmocka_unit_test(test_get_alone),
        cmocka_unit_test(test_names_alone),   cmocka_unit_test(test_late_contribution),
        cmocka_unit_test(test_too_much_data), cmocka_unit_test(test_peer_errs),
        cmocka_unit_test(test_later_ranks),   cmocka_unit_test(test_no_growth),
        cmocka_unit_test(test_arguments),     cmocka_unit_test(test_many_ranges),
        cmocka_unit_test(test_wire),          cmocka_unit_test(test_steady_fences),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
