/* dqplb.c - lanes: the layout of immediates, how segments are dealt, what a hostile peer may say, the limits' text, and which class
 * gets which. The simulator tests what holds over time. */
#include "pml/lanes/private.h"

#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct dqplb_terms terms = {.lanes = 3, .depth = 8, .receives = 4, .window = 64, .notices = 2};
static const struct dqplb_limits limits = {.lanes = 2, .outstanding = 2, .segment = 100};
static const char data[4096];

static struct dqplb_sender sender;
static struct dqplb_tracker tracker;
static struct dqplb_order order;
static struct dqplb_action action;

static int make(void **state)
{
    (void)state;
    memset(&order, 0, sizeof order);
    if (dqplb_sender_init(&sender, &terms, &limits, 16) || dqplb_tracker_init(&tracker, &terms)) return -1;
    for (unsigned i = 0; i < terms.lanes; i++) {
        if (dqplb_lane_up(&sender, i)) return -1;
        dqplb_tracker_lane_up(&tracker, i);
    }
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    dqplb_sender_release(&sender);
    dqplb_tracker_release(&tracker);
    return 0;
}

static struct dqplb_put put_of(size_t bytes, bool notice)
{
    return (struct dqplb_put){.from = data, .to = 1000, .key = 9, .bytes = bytes, .notice = notice};
}

static enum dqplb_action_kind next(void)
{
    return dqplb_next(&sender, &action);
}

static void expect_write(unsigned lane, uint64_t to, size_t bytes, uint32_t immediate)
{
    assert_int_equal(next(), DQPLB_WRITE);
    assert_int_equal(action.lane, lane);
    assert_int_equal(action.to, to);
    assert_int_equal(action.bytes, bytes);
    assert_int_equal(action.has_immediate, immediate != UINT32_MAX);
    if (action.has_immediate) assert_int_equal(action.immediate, immediate);
}

#define NO_IMMEDIATE UINT32_MAX

static void deals_segments_in_turn(void **state)
{
    (void)state;
    struct dqplb_put put = put_of(450, true);
    dqplb_put(&sender, &order, &put);
    expect_write(1, 1000, 100, 0);
    expect_write(2, 1100, 100, 1);
    expect_write(1, 1200, 100, 2);
    expect_write(2, 1300, 100, 3);
    assert_int_equal(next(), DQPLB_NOTHING); /* two on each of two lanes */
    assert_int_equal(dqplb_completed(&sender, 2), NCCLX_SUCCESS);
    expect_write(2, 1400, 50, 4 | DQPLB_LAST); /* a completion refills its lane */
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_int_equal(action.bound, 5);
    assert_int_equal(action.fast_bound, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dqplb_completed(&sender, 1), NCCLX_SUCCESS);
        assert_int_equal(dqplb_completed(&sender, 2), NCCLX_SUCCESS);
    }
    assert_int_equal(next(), DQPLB_DONE);
    assert_ptr_equal(action.put, &put);
    assert_int_equal(action.code, NCCLX_SUCCESS);
}

static void small_ones_go_ahead(void **state)
{
    (void)state;
    struct dqplb_put large = put_of(4096, false), small = put_of(8, true), other = put_of(8, false);
    struct dqplb_order others = {0};
    dqplb_put(&sender, &order, &large);
    expect_write(1, 1000, 100, NO_IMMEDIATE);
    dqplb_put(&sender, &others, &small);
    expect_write(0, 1000, 8, 0 | DQPLB_FAST | DQPLB_LAST);
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_int_equal(action.bound, 0); /* it waits for nobody else's numbers */
    assert_int_equal(action.fast_bound, 1);
    expect_write(2, 1100, 100, NO_IMMEDIATE);
    dqplb_put(&sender, &others, &other);
    expect_write(0, 1000, 8, NO_IMMEDIATE);
}

static void markers_follow_plain_writes(void **state)
{
    (void)state;
    struct dqplb_put plain = put_of(200, false), signal = put_of(0, true);
    dqplb_put(&sender, &order, &plain);
    dqplb_put(&sender, &order, &signal);
    expect_write(1, 1000, 100, NO_IMMEDIATE);
    expect_write(2, 1100, 100, NO_IMMEDIATE);
    expect_write(1, 0, 0, 0);
    expect_write(2, 0, 0, 1);
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_ptr_equal(action.put, &signal);
    assert_int_equal(action.bound, 2);
    assert_int_equal(next(), DQPLB_DONE);
    assert_ptr_equal(action.put, &signal);
}

static void numbers_wrap_at_24_bits(void **state)
{
    (void)state;
    sender.next = sender.expected = tracker.next = tracker.next_told = DQPLB_NUMBER_MASK;
    struct dqplb_put put = put_of(200, true);
    dqplb_put(&sender, &order, &put);
    expect_write(1, 1000, 100, DQPLB_NUMBER_MASK);
    expect_write(2, 1100, 100, 0 | DQPLB_LAST);
    assert_int_equal(dqplb_arrived(&tracker, 2, 0 | DQPLB_LAST), NCCLX_SUCCESS);
    assert_int_equal(dqplb_arrived(&tracker, 1, DQPLB_NUMBER_MASK), NCCLX_SUCCESS);
    assert_int_equal(tracker.next, (uint64_t)DQPLB_NUMBER_MASK + 2);
}

static void credits_run_out(void **state)
{
    (void)state;
    struct dqplb_put puts[5];
    for (int i = 0; i < 5; i++) {
        puts[i] = put_of(8, true);
        dqplb_put(&sender, &order, &puts[i]);
    }
    for (uint32_t i = 0; i < 4; i++) expect_write(0, 1000, 8, i | DQPLB_FAST | DQPLB_LAST);
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_int_equal(next(), DQPLB_NOTHING); /* neither receives nor places */
    assert_int_equal(dqplb_credited(&sender, 0, 1, 6), NCCLX_SUCCESS);
    expect_write(0, 1000, 8, 4 | DQPLB_FAST | DQPLB_LAST);
    assert_int_equal(dqplb_progressed(&sender, 0, 2), NCCLX_SUCCESS);
    assert_int_equal(next(), DQPLB_NOTICE);
}

static void hostile_sender(void **state)
{
    (void)state;
    uint64_t token;
    assert_int_equal(dqplb_arrived(&tracker, 1, 1 << 24), NCCLX_ERR_TRANSPORT);           /* bits that must be zero */
    assert_int_equal(dqplb_arrived(&tracker, 3, 0), NCCLX_ERR_TRANSPORT);                 /* no such lane */
    assert_int_equal(dqplb_arrived(&tracker, 1, 64), NCCLX_ERR_TRANSPORT);                /* outside the window */
    assert_int_equal(dqplb_arrived(&tracker, 1, DQPLB_NUMBER_MASK), NCCLX_ERR_TRANSPORT); /* behind it */
    assert_int_equal(dqplb_arrived(&tracker, 1, 63), NCCLX_SUCCESS);
    assert_int_equal(dqplb_arrived(&tracker, 2, 63), NCCLX_ERR_TRANSPORT); /* twice, early */
    assert_int_equal(dqplb_arrived(&tracker, 1, 0), NCCLX_SUCCESS);
    assert_int_equal(dqplb_arrived(&tracker, 2, 0), NCCLX_ERR_TRANSPORT);              /* twice, late */
    assert_int_equal(dqplb_arrived(&tracker, 0, 1 | DQPLB_FAST), NCCLX_ERR_TRANSPORT); /* out of order */
    assert_int_equal(dqplb_noticed(&tracker, 1, UINT64_MAX, 0, 1), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_noticed(&tracker, 1, 2, 0, 11), NCCLX_SUCCESS);
    assert_int_equal(dqplb_noticed(&tracker, 1, 1, 0, 12), NCCLX_SUCCESS);
    assert_int_equal(dqplb_noticed(&tracker, 1, 1, 0, 13), NCCLX_ERR_TRANSPORT); /* no place */
    assert_false(dqplb_apply(&tracker, &token)); /* the second has all it needs, but not its turn */
    assert_int_equal(dqplb_arrived(&tracker, 2, 1), NCCLX_SUCCESS);
    assert_true(dqplb_apply(&tracker, &token));
    assert_int_equal(token, 11);
    assert_true(dqplb_apply(&tracker, &token));
    assert_int_equal(token, 12);
}

static void more_immediates_than_receives(void **state)
{
    (void)state;
    unsigned lane;
    uint32_t life;
    uint64_t receives;
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(dqplb_arrived(&tracker, 1, i), NCCLX_SUCCESS);
    assert_true(dqplb_credit_due(&tracker, &lane, &life, &receives));
    assert_int_equal(receives, 8);
    for (uint32_t i = 4; i < 8; i++) assert_int_equal(dqplb_arrived(&tracker, 1, i), NCCLX_SUCCESS);
    assert_int_equal(dqplb_arrived(&tracker, 1, 8), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_arrived(&tracker, 2, 8), NCCLX_SUCCESS); /* which has its own */
}

static void hostile_target(void **state)
{
    (void)state;
    static struct dqplb_report report;
    struct dqplb_put put = put_of(150, true);
    assert_int_equal(dqplb_completed(&sender, 1), NCCLX_ERR_TRANSPORT);
    dqplb_put(&sender, &order, &put);
    expect_write(1, 1000, 100, 0);
    expect_write(2, 1100, 50, 1 | DQPLB_LAST);
    assert_int_equal(dqplb_progressed(&sender, 3, 0), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_progressed(&sender, 0, 1), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_credited(&sender, 9, 1, 4), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_credited(&sender, 1, 2, 4), NCCLX_ERR_TRANSPORT);         /* a life that has not begun */
    assert_int_equal(dqplb_credited(&sender, 1, 1, 6), NCCLX_ERR_TRANSPORT);         /* more than were used */
    assert_int_equal(dqplb_lane_reported(&sender, 1, &report), NCCLX_ERR_TRANSPORT); /* it has not failed */
    dqplb_lane_failed(&sender, 1);
    assert_int_equal(dqplb_lane_reported(&sender, 1, &report), NCCLX_ERR_TRANSPORT); /* of another life */
    report.life = 1;
    report.next = 3;
    assert_int_equal(dqplb_lane_reported(&sender, 1, &report), NCCLX_ERR_TRANSPORT); /* more than was sent */
    report.next = 0;
    assert_int_equal(dqplb_lane_reported(&sender, 1, &report), NCCLX_SUCCESS);
    expect_write(0, 1000, 100, 0); /* again, with the same number, on the lane that has least to do */
    assert_int_equal(next(), DQPLB_NOTICE);
    assert_true(dqplb_lane_may_open(&sender, 1));
    dqplb_sender_fail(&sender, NCCLX_ERR_TRANSPORT);
    assert_int_equal(next(), DQPLB_DONE);
    assert_int_equal(action.code, NCCLX_ERR_TRANSPORT);
    assert_false(dqplb_lane_may_open(&sender, 1));
}

static void senseless_terms(void **state)
{
    (void)state;
    struct dqplb_sender other;
    struct dqplb_terms bad[] = {terms, terms, terms, terms, terms, terms, terms};
    bad[0].lanes = 0;
    bad[1].lanes = DQPLB_MAX_LANES + 1;
    bad[2].depth = 0;
    bad[3].receives = 0;
    bad[4].window = 96;
    bad[5].window = 2 * DQPLB_MAX_WINDOW;
    bad[6].notices = DQPLB_MAX_NOTICES + 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dqplb_sender_init(&other, &bad[i], &limits, 0), NCCLX_ERR_ARG);
}

static void the_target_sets_terms(void **state)
{
    const struct dqplb_terms offer = {.lanes = 2, .receives = 9, .window = 128, .notices = 5};
    const struct dqplb_terms none = {.receives = 9, .window = 128, .notices = 5};
    const struct dqplb_terms odd = {.lanes = 2, .receives = 9, .window = 100, .notices = 5};
    struct dqplb_put put = put_of(150, true);
    (void)state;
    assert_int_equal(dqplb_sender_init(&sender, &terms, &limits, 16), 0);
    memset(&order, 0, sizeof order);
    dqplb_put(&sender, &order, &put);
    assert_int_equal(dqplb_agree(&sender, &none), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_agree(&sender, &odd), NCCLX_ERR_TRANSPORT);
    assert_int_equal(dqplb_agree(&sender, &offer), 0);
    assert_false(dqplb_lane_may_open(&sender, 2));
    assert_int_equal(dqplb_lane_up(&sender, 1), 0);
    expect_write(1, 1000, 100, 0);
    assert_int_equal(sender.terms.depth, terms.depth);
    assert_int_equal(sender.lane[1].receives, 9);
    dqplb_sender_release(&sender);
}

static void limits_as_text(void **state)
{
    (void)state;
    struct dqplb_limits parsed;
    assert_int_equal(dqplb_limits_parse("8:16:512K", &parsed), NCCLX_SUCCESS);
    assert_int_equal(parsed.lanes, 8);
    assert_int_equal(parsed.outstanding, 16);
    assert_int_equal(parsed.segment, 512 << 10);
    assert_int_equal(dqplb_limits_parse("1:1:1024M", &parsed), NCCLX_SUCCESS);
    assert_int_equal(parsed.segment, 1 << 30);
    static const char *const bad[] = {
        "",         "8",       "8:16",      "8:16:",  "0:1:1",    "65:1:1",         "1:0:1",
        "1:4097:1", "1:1:0",   "1:1:1025M", "1:1:1G", "1:1:1K ",  "-1:1:1",         " 1:1:1",
        "1 :1:1",   "1:1:1:1", "1:+1:1",    "x:1:1",  "1:1:0x10", "1:1:5000000000", "99999999999999999999:1:1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dqplb_limits_parse(bad[i], &parsed), NCCLX_ERR_ARG);
    for (enum base_config_id id = CONFIG_DQPLB_NODE; id <= CONFIG_DQPLB_CAMPUS; id++) {
        struct dqplb_limits usual;
        assert_int_equal(dqplb_limits_parse(base_config_table()[id].initial, &usual), NCCLX_SUCCESS);
        assert_in_range(usual.lanes, 1, DQPLB_MAX_LANES - 1);
        assert_in_range(usual.outstanding, 2, DQPLB_MAX_OUTSTANDING); /* never under two segments a lane */
    }
}

static void ranks_share_a_budget(void **state)
{
    (void)state;
    assert_int_equal(budget_part(128 << 20, 1), 128 << 20);
    assert_int_equal(budget_part(128 << 20, 8), 16 << 20);
    assert_int_equal(budget_part(1, 3), 1); /* none is left without, which would mean no bound */
    assert_int_equal(budget_part(0, 3), 0);
    assert_int_equal(budget_part(UINT64_MAX, 2), UINT64_C(1) << 63);
    assert_int_equal(budget_part(5, 0), 5);
}

static void read_limits(const char *variable, struct dqplb_limits limits_of[NCCLX_DISTANCE_UNKNOWN + 1])
{
    struct ncclx_rt rt;
    struct pml pml = {.rt = &rt};
    char setting[64], *environment[] = {variable ? setting : NULL, NULL};
    if (variable) snprintf(setting, sizeof setting, "%s=3:5:7K", variable);
    assert_int_equal(base_rt_init(&rt, environment), NCCLX_SUCCESS);
    base_rt_configure(&rt);
    assert_int_equal(lanes_start(&pml), NCCLX_SUCCESS);
    memcpy(limits_of, pml.lanes->limits, sizeof pml.lanes->limits);
    lanes_stop(&pml);
    base_rt_release(&rt);
}

/* Each variable sets its own class, and those that have none of their own and follow it, and no other. */
static void limits_of_classes(void **state)
{
    static const struct {
        const char *variable;
        int distance, follows;
    } class[] = {{"NCCLX_DQPLB_NODE", NCCLX_DISTANCE_NODE, NCCLX_DISTANCE_SELF},
                 {"NCCLX_DQPLB_RACK", NCCLX_DISTANCE_RACK, -1},
                 {"NCCLX_DQPLB_ZONE", NCCLX_DISTANCE_ZONE, NCCLX_DISTANCE_UNKNOWN},
                 {"NCCLX_DQPLB_BUILDING", NCCLX_DISTANCE_BUILDING, -1},
                 {"NCCLX_DQPLB_CAMPUS", NCCLX_DISTANCE_CAMPUS, -1}};
    struct dqplb_limits usual[NCCLX_DISTANCE_UNKNOWN + 1], changed[NCCLX_DISTANCE_UNKNOWN + 1];
    (void)state;
    read_limits(NULL, usual);
    for (size_t i = 0; i < sizeof class / sizeof class[0]; i++) {
        read_limits(class[i].variable, changed);
        for (int distance = NCCLX_DISTANCE_SELF; distance <= NCCLX_DISTANCE_UNKNOWN; distance++) {
            const bool own = distance == class[i].distance || distance == class[i].follows;
            assert_int_equal(changed[distance].lanes, own ? 3 : usual[distance].lanes);
            assert_int_equal(changed[distance].outstanding, own ? 5 : usual[distance].outstanding);
            assert_int_equal(changed[distance].segment, own ? 7 << 10 : usual[distance].segment);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deals_segments_in_turn, make, unmake),
        cmocka_unit_test_setup_teardown(small_ones_go_ahead, make, unmake),
        cmocka_unit_test_setup_teardown(markers_follow_plain_writes, make, unmake),
        cmocka_unit_test_setup_teardown(numbers_wrap_at_24_bits, make, unmake),
        cmocka_unit_test_setup_teardown(credits_run_out, make, unmake),
        cmocka_unit_test_setup_teardown(hostile_sender, make, unmake),
        cmocka_unit_test_setup_teardown(more_immediates_than_receives, make, unmake),
        cmocka_unit_test_setup_teardown(hostile_target, make, unmake),
        cmocka_unit_test(senseless_terms),
        cmocka_unit_test(the_target_sets_terms),
        cmocka_unit_test(ranks_share_a_budget),
        cmocka_unit_test(limits_as_text),
        cmocka_unit_test(limits_of_classes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
