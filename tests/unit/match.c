/* match.c - the matching core and the message protocols, against what the rules say. */
#include "pml/protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct match_bin bins[16];
static struct match_space space;
static struct protocol_peer peer[4];

static int reset(void **state)
{
    (void)state;
    match_space_init(&space, bins, 16);
    memset(peer, 0, sizeof peer);
    return 0;
}

static void post(struct match_receive *receive, int source, int tag)
{
    *receive = (struct match_receive){.source = source, .tag = tag};
    match_post(&space, source == NCCLX_ANY_SOURCE ? NULL : &peer[source].match, receive);
}

static struct match_receive *arrive(int source, int tag)
{
    return match_arrive(&space, &peer[source].match, source, tag);
}

static void exact_receives_in_order(void **state)
{
    (void)state;
    struct match_receive a, b, c;
    post(&a, 1, 5);
    post(&b, 1, 5);
    post(&c, 2, 5);
    assert_null(arrive(1, 6));
    assert_ptr_equal(arrive(2, 5), &c);
    assert_ptr_equal(arrive(1, 5), &a);
    assert_ptr_equal(arrive(1, 5), &b);
    assert_null(arrive(1, 5));
    assert_int_equal(peer[1].match.seen, 4);
    assert_int_equal(peer[1].match.exact, 0);
}

static void wildcards_in_order_of_posting(void **state)
{
    (void)state;
    struct match_receive exact, any_tag, any_source, any;
    post(&any_tag, 1, NCCLX_ANY_TAG);
    post(&exact, 1, 5);
    post(&any_source, NCCLX_ANY_SOURCE, 5);
    post(&any, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG);
    assert_ptr_equal(arrive(2, 5), &any_source);
    assert_ptr_equal(arrive(1, 5), &any_tag);
    assert_ptr_equal(arrive(1, 5), &exact);
    assert_ptr_equal(arrive(3, 9), &any);
    assert_null(arrive(1, 5));
}

static void cancelled_receives_take_nothing(void **state)
{
    (void)state;
    struct match_receive a, b;
    post(&a, 1, 5);
    post(&b, NCCLX_ANY_SOURCE, 5);
    match_cancel(&peer[1].match, &a);
    assert_ptr_equal(arrive(1, 5), &b);
    assert_int_equal(peer[1].match.exact, 0);
}

static void envelopes_in_order_of_arrival(void **state)
{
    (void)state;
    struct match_envelope e[4];
    match_keep(&space, &e[0], 1, 5);
    match_keep(&space, &e[1], 2, 5);
    match_keep(&space, &e[2], 1, 6);
    match_keep(&space, &e[3], 1, 5);
    assert_ptr_equal(match_find(&space, 1, 5), &e[0]);
    assert_ptr_equal(match_find(&space, NCCLX_ANY_SOURCE, 6), &e[2]);
    assert_ptr_equal(match_find(&space, 2, NCCLX_ANY_TAG), &e[1]);
    match_take(&e[0]);
    assert_ptr_equal(match_find(&space, 1, NCCLX_ANY_TAG), &e[2]);
    assert_ptr_equal(match_find(&space, 1, 5), &e[3]);
    assert_ptr_equal(match_find(&space, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG), &e[1]);
    assert_null(match_find(&space, 3, NCCLX_ANY_TAG));
}

/* Random posts, cancels and arrivals against lists that are searched from the front. */
static void random_against_lists(void **state)
{
    (void)state;
    enum { STEPS = 20000, POOL = 64 };
    static struct match_receive receive[POOL];
    static struct match_envelope envelope[POOL];
    struct match_receive *posted[POOL];
    struct match_envelope *kept[POOL];
    int posts = 0, keeps = 0;
    unsigned seed = 7;
    bool used[POOL] = {false}, holds[POOL] = {false};
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1103515245u + 12345u;
        int source = (int)(seed >> 16) % 3, tag = (int)(seed >> 20) % 3, what = (int)(seed >> 8) % 3, free_one = 0;
        if (what == 0) { /* receive */
            if ((seed >> 24) % 4 == 0) source = NCCLX_ANY_SOURCE;
            if ((seed >> 26) % 4 == 0) tag = NCCLX_ANY_TAG;
            struct match_envelope *expected = NULL;
            int at = 0;
            for (; at < keeps && !expected; at++)
                if ((source < 0 || kept[at]->source == source) && (tag < 0 || kept[at]->tag == tag))
                    expected = kept[at];
            assert_ptr_equal(match_find(&space, source, tag), expected);
            if (expected) {
                match_take(expected);
                holds[expected - envelope] = false;
                memmove(&kept[at - 1], &kept[at], (size_t)(keeps - at) * sizeof kept[0]);
                keeps--;
            } else if (posts < POOL) {
                while (used[free_one]) free_one++;
                used[free_one] = true;
                post(&receive[free_one], source, tag);
                posted[posts++] = &receive[free_one];
            }
        } else if (what == 1 || !posts) { /* message */
            if (keeps == POOL) continue;
            int at = 0;
            while (at < posts && !match_accepts(posted[at], source, tag)) at++;
            struct match_receive *got = arrive(source, tag);
            assert_ptr_equal(got, at < posts ? posted[at] : NULL);
            if (got) {
                used[got - receive] = false;
                memmove(&posted[at], &posted[at + 1], (size_t)(posts - at - 1) * sizeof posted[0]);
                posts--;
            } else {
                while (holds[free_one]) free_one++;
                holds[free_one] = true;
                match_keep(&space, &envelope[free_one], source, tag);
                kept[keeps++] = &envelope[free_one];
            }
        } else { /* cancel */
            int at = (int)(seed >> 5) % posts;
            struct match_receive *gone = posted[at];
            match_cancel(gone->source >= 0 ? &peer[gone->source].match : NULL, gone);
            used[gone - receive] = false;
            memmove(&posted[at], &posted[at + 1], (size_t)(posts - at - 1) * sizeof posted[0]);
            posts--;
        }
    }
}

/* ---- Announcements
 * --------------------------------------------------------------------------------------------------------- */

static const struct protocol_route route = {.eager_limit = 100, .can_read = true, .can_write = true};

static void only_unambiguous_receives_announce(void **state)
{
    (void)state;
    struct match_receive earlier;
    struct protocol_receive large = {.capacity = 1000, .match = {.source = 1, .tag = 5}};
    uint32_t count;
    assert_true(protocol_announces(&space, &peer[1], &large, 1000, &count));
    assert_false(protocol_announces(&space, &peer[1], &large, 1001, &count));
    assert_false(protocol_announces(&space, NULL, &large, 1000, &count));
    static const int rival[][2] = {
        {1, 5}, {1, NCCLX_ANY_TAG}, {NCCLX_ANY_SOURCE, 5}, {NCCLX_ANY_SOURCE, NCCLX_ANY_TAG}};
    static const int harmless[][2] = {{1, 6}, {2, 5}, {NCCLX_ANY_SOURCE, 6}, {2, NCCLX_ANY_TAG}};
    for (int i = 0; i < 4; i++) {
        post(&earlier, rival[i][0], rival[i][1]);
        assert_false(protocol_announces(&space, &peer[1], &large, 1000, &count));
        match_cancel(earlier.source >= 0 ? &peer[earlier.source].match : NULL, &earlier);
        post(&earlier, harmless[i][0], harmless[i][1]);
        assert_true(protocol_announces(&space, &peer[1], &large, 1000, &count));
        match_cancel(earlier.source >= 0 ? &peer[earlier.source].match : NULL, &earlier);
    }
    large.match.tag = NCCLX_ANY_TAG;
    post(&earlier, 1, 77);
    assert_false(protocol_announces(&space, &peer[1], &large, 1000, &count));
}

static void uncounted_messages_void_announcements(void **state)
{
    (void)state;
    struct protocol_announcement announcement = {.tag = 5, .bytes = 1000}, *used = NULL;
    for (int i = 0; i < 3; i++) (void)protocol_send_start(&peer[0], &route, i == 1 ? 5 : 6, 10, &used);
    assert_false(protocol_announced(&peer[0], &announcement, 0)); /* the message with tag 5 may take the receive */
    assert_false(protocol_announced(&peer[0], &announcement, 1));
    assert_true(protocol_announced(&peer[0], &announcement, 2)); /* counted */
    assert_int_equal(protocol_send_start(&peer[0], &route, 6, 500, &used), SEND_REQUEST);
    assert_null(used);
    assert_int_equal(protocol_send_start(&peer[0], &route, 5, 500, &used), SEND_FILL);
    assert_ptr_equal(used, &announcement);
    assert_int_equal(protocol_send_start(&peer[0], &route, 5, 500, &used), SEND_REQUEST);
    for (int i = 0; i < 100; i++) (void)protocol_send_start(&peer[0], &route, 6, 10, &used);
    assert_false(protocol_announced(&peer[0], &announcement, 0));        /* too long ago to know */
    assert_false(protocol_announced(&peer[0], &announcement, 1u << 31)); /* a lie */
}

static void announcements_are_used_in_every_way(void **state)
{
    (void)state;
    struct protocol_announcement announcement = {.tag = NCCLX_ANY_TAG, .bytes = 1000}, *used = NULL;
    struct protocol_route held = route, no_write = route;
    held.held = true;
    no_write.can_write = false;
    assert_true(protocol_announced(&peer[0], &announcement, 0));
    assert_int_equal(protocol_send_start(&peer[0], &held, 1, 50, &used), SEND_EAGER);
    assert_ptr_equal(used, &announcement);
    assert_true(protocol_announced(&peer[0], &announcement, 1));
    assert_int_equal(protocol_send_start(&peer[0], &route, 1, 1001, &used), SEND_REFUSE);
    assert_true(protocol_announced(&peer[0], &announcement, 2));
    assert_int_equal(protocol_send_start(&peer[0], &no_write, 1, 1000, &used), SEND_REQUEST);
    assert_null(peer[0].announced);
    assert_true(protocol_announced(&peer[0], &announcement, 3));
    announcement.receive = 9;
    assert_null(protocol_withdrawn(&peer[0], 8));
    assert_ptr_equal(protocol_withdrawn(&peer[0], 9), &announcement);
    assert_int_equal(protocol_send_start(&peer[0], &held, 1, 50, &used), SEND_REQUEST);
}

static void hostile_answers_are_refused(void **state)
{
    (void)state;
    struct protocol_send send;
    struct protocol_receive receive = {.capacity = 100};
    protocol_requested(&send, 50, 0);
    assert_true(protocol_cleared(&send, 1));
    assert_false(protocol_cleared(&send, 1));
    assert_false(protocol_finished(&send));
    protocol_requested(&send, 0, 0);
    assert_false(protocol_cleared(&send, 1));
    assert_true(protocol_finished(&send));
    assert_false(protocol_finished(&send));
    struct protocol_route blind = {.eager_limit = 10};
    assert_int_equal(protocol_data(&receive, 0, 10).error, NCCLX_ERR_TRANSPORT); /* nobody asked */
    assert_int_equal(protocol_deliver(&receive, &blind, PROTOCOL_REQUEST, 60, 0).control, PROTOCOL_CLEAR);
    assert_int_equal(protocol_data(&receive, 1, 10).error, NCCLX_ERR_TRANSPORT);
    assert_int_equal(protocol_data(&receive, 0, 61).error, NCCLX_ERR_TRANSPORT);
    assert_int_equal(protocol_data(&receive, 0, SIZE_MAX).error, NCCLX_ERR_TRANSPORT);
    assert_false(protocol_data(&receive, 0, 59).complete);
    assert_int_equal(protocol_data(&receive, 0, 1).error, NCCLX_ERR_TRANSPORT);
    assert_true(protocol_data(&receive, 59, 1).complete);
    assert_int_equal(protocol_data(&receive, 60, 0).error, NCCLX_ERR_TRANSPORT);
    assert_int_equal(protocol_filled(&peer[1], &receive, 1, 1, 5, false).error, NCCLX_ERR_TRANSPORT); /* not announced */
    assert_int_equal(protocol_landed(&receive).error, NCCLX_ERR_TRANSPORT);
    assert_int_equal(protocol_grants(&receive), 0);
    assert_int_equal(protocol_deliver(&receive, &blind, PROTOCOL_REQUEST, 60, 0).control, PROTOCOL_CLEAR);
    assert_int_equal(protocol_grants(&receive), 60);
    assert_true(protocol_landed(&receive).complete);
    assert_int_equal(protocol_landed(&receive).error, NCCLX_ERR_TRANSPORT);
}

static void requests_bring_the_first_bytes(void **state)
{
    (void)state;
    struct protocol_send send;
    struct protocol_receive receive = {.capacity = 100};
    struct protocol_route blind = {.eager_limit = 10}, sees = {.eager_limit = 10, .can_read = true};
    struct protocol_action action = protocol_deliver(&receive, &blind, PROTOCOL_REQUEST, 60, 20);
    assert_true(action.control == PROTOCOL_CLEAR && action.copy == COPY_FIRST && !action.complete);
    assert_int_equal(protocol_grants(&receive), 60);
    assert_int_equal(protocol_data(&receive, 0, 20).error, NCCLX_ERR_TRANSPORT); /* again */
    assert_int_equal(protocol_data(&receive, 20, 41).error, NCCLX_ERR_TRANSPORT);
    assert_false(protocol_data(&receive, 20, 30).complete);
    assert_int_equal(protocol_landed(&receive).error, NCCLX_ERR_TRANSPORT); /* one way or the other */
    assert_true(protocol_data(&receive, 50, 10).complete);
    (void)protocol_deliver(&receive, &blind, PROTOCOL_REQUEST, 60, 20);
    assert_true(protocol_landed(&receive).complete);
    assert_int_equal(protocol_deliver(&receive, &sees, PROTOCOL_REQUEST, 60, 20).copy, COPY_READ);
    action = protocol_deliver(&receive, &blind, PROTOCOL_REQUEST, 101, 20);
    assert_true(action.control == PROTOCOL_FINISHED && action.copy == COPY_NOTHING && action.error == NCCLX_ERR_TRUNCATE);
    protocol_requested(&send, 60, 20);
    assert_true(protocol_cleared(&send, 1));
    assert_int_equal(send.stream.moved, 20);
    assert_int_equal(protocol_stream_next(&send, 1000), 40);
    assert_int_equal(send.state, STATE_DONE);
}

static void flow_is_bounded_both_ways(void **state)
{
    (void)state;
    struct protocol_flow flow = {.limit = 1000};
    int kept = 0;
    while (!protocol_flow_keep(&flow, 0)) kept++;
    assert_int_equal(kept, 1000 / PROTOCOL_ENVELOPE_COST);
    while (!protocol_flow_release(&flow, 0)) kept--;
    assert_true(flow.held <= 500 && kept > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exact_receives_in_order, reset),
        cmocka_unit_test_setup(wildcards_in_order_of_posting, reset),
        cmocka_unit_test_setup(cancelled_receives_take_nothing, reset),
        cmocka_unit_test_setup(envelopes_in_order_of_arrival, reset),
        cmocka_unit_test_setup(random_against_lists, reset),
        cmocka_unit_test_setup(only_unambiguous_receives_announce, reset),
        cmocka_unit_test_setup(uncounted_messages_void_announcements, reset),
        cmocka_unit_test_setup(announcements_are_used_in_every_way, reset),
        cmocka_unit_test_setup(hostile_answers_are_refused, reset),
        cmocka_unit_test_setup(requests_bring_the_first_bytes, reset),
        cmocka_unit_test_setup(flow_is_bounded_both_ways, reset),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
