/* launcher_blame.c - which of several failures is told, with which status, and when. */
#include "launcher/blame.h"

#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND BASE_NS_PER_S

static void expect(struct blame *blame, bool ended, uint64_t now, const char *wanted)
{
    const char *text = blame_tell(blame, ended, now);
    if (wanted) {
        assert_non_null(text);
        assert_string_equal(text, wanted);
    } else {
        assert_null(text);
    }
}

static void test_nothing_is_told_of_nothing(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    assert_int_equal(blame.status, -1);
    assert_int_equal(blame_deadline(&blame), UINT64_MAX);
    expect(&blame, false, SECOND, NULL);
    expect(&blame, true, SECOND, NULL);
}

static void test_an_origin_is_told_at_once_and_stands(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    blame_take(&blame, BLAME_ORIGIN, 137, "killed", 5);
    expect(&blame, false, 5, "killed");
    blame_take(&blame, BLAME_FOLLOWER, 99, "aborted", 6);
    blame_take(&blame, BLAME_ORIGIN, 139, "crashed", 7);
    expect(&blame, true, 8 * SECOND, NULL);
    assert_int_equal(blame.status, 137);
}

static void test_a_follower_waits_for_its_origin(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    blame_take(&blame, BLAME_FOLLOWER, 99, "aborted", 5);
    assert_int_equal(blame.status, 99);
    expect(&blame, false, 5, NULL);
    blame_take(&blame, BLAME_FOLLOWER, 98, "another", 6);
    assert_int_equal(blame.status, 99);
    blame_take(&blame, BLAME_OTHER, 143, "the user", 7); /* who could not know */
    assert_int_equal(blame.status, 99);
    blame_take(&blame, BLAME_ORIGIN, 137, "killed", 8);
    expect(&blame, false, 8, "killed");
    assert_int_equal(blame.status, 137);
}

static void test_a_follower_alone_is_told_after_a_while(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    blame_take(&blame, BLAME_FOLLOWER, 99, "aborted", 5);
    uint64_t at = blame_deadline(&blame);
    assert_in_range(at, 5 + SECOND, 5 + 2 * SECOND);
    expect(&blame, false, at - 1, NULL);
    expect(&blame, false, at, "aborted");
    assert_int_equal(blame_deadline(&blame), UINT64_MAX);
    blame_take(&blame, BLAME_ORIGIN, 137, "killed", at); /* what was told stands */
    expect(&blame, true, at, NULL);
    assert_int_equal(blame.status, 99);
}

static void test_a_follower_waits_for_a_death_that_is_known_to_come(void **state)
{
    (void)state;
    struct blame blame;
    for (int before = 0; before < 2; before++) { /* the word of the death may come first, or the follower's */
        blame_open(&blame);
        if (before) blame_expect(&blame);
        blame_take(&blame, BLAME_FOLLOWER, 3, "exited", 5);
        if (!before) blame_expect(&blame);
        assert_int_equal(blame_deadline(&blame), UINT64_MAX);
        expect(&blame, false, 60 * SECOND, NULL);
        blame_take(&blame, BLAME_ORIGIN, 137, "killed", 60 * SECOND);
        expect(&blame, false, 60 * SECOND, "killed");
        assert_int_equal(blame.status, 137);
    }
    blame_open(&blame);
    blame_take(&blame, BLAME_FOLLOWER, 3, "exited", 5);
    blame_expect(&blame);
    expect(&blame, true, 60 * SECOND, "exited"); /* it was not this one's cause */
    blame_open(&blame);
    blame_take(&blame, BLAME_ORIGIN, 137, "killed", 5);
    blame_expect(&blame);
    expect(&blame, false, 5, "killed");
}

static void test_a_follower_is_told_when_the_job_has_ended(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    blame_take(&blame, BLAME_FOLLOWER, 3, "exited", 5);
    expect(&blame, true, 6, "exited");
}

static void test_some_have_no_text(void **state)
{
    (void)state;
    struct blame blame;
    blame_open(&blame);
    blame_take(&blame, BLAME_OTHER, 1, NULL, 5);
    expect(&blame, true, 6, NULL);
    assert_int_equal(blame.status, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_told_of_nothing),
        cmocka_unit_test(test_an_origin_is_told_at_once_and_stands),
        cmocka_unit_test(test_a_follower_waits_for_its_origin),
        cmocka_unit_test(test_a_follower_alone_is_told_after_a_while),
        cmocka_unit_test(test_a_follower_waits_for_a_death_that_is_known_to_come),
        cmocka_unit_test(test_a_follower_is_told_when_the_job_has_ended),
        cmocka_unit_test(test_some_have_no_text),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
