/* launcher_progress.c - what is said of a start, and when. */
#include "launcher/progress.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND BASE_NS_PER_S

static const char *const names[] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7"};

static void expect(struct progress *progress, uint64_t now, const char *wanted)
{
    char line[256];
    bool said = progress_line(progress, names, now, line, sizeof line);
    if (!wanted) {
        assert_false(said);
    } else {
        assert_true(said);
        assert_string_equal(line, wanted);
    }
}

static void test_a_fast_start_is_silent(void **state)
{
    (void)state;
    struct progress progress;
    bool here[2] = {false, false};
    progress_begin(&progress, here, 2, false, true, SECOND);
    assert_int_equal(progress_wait(&progress, SECOND), 2 * SECOND);
    expect(&progress, 2 * SECOND, NULL);
    progress_host(&progress, 0);
    progress_host(&progress, 1);
    progress_ranks(&progress, 4, 4);
    expect(&progress, 2 * SECOND, NULL);
    assert_int_equal(progress_wait(&progress, 2 * SECOND), 0);
    expect(&progress, 20 * SECOND, NULL);
}

static void test_a_slow_start_is_told_to_a_terminal(void **state)
{
    (void)state;
    struct progress progress;
    bool here[7] = {false};
    progress_begin(&progress, here, 7, false, true, 0);
    progress_host(&progress, 1);
    progress_host(&progress, 1); /* said twice it is one */
    expect(&progress, 2 * SECOND, "1 of 7 hosts is here after 2.0 s; waiting for n1, n3, n4, n5 and 2 more");
    expect(&progress, 3 * SECOND, NULL);
    progress_host(&progress, 0);
    progress_host(&progress, 2);
    progress_host(&progress, 5);
    expect(&progress, 4 * SECOND, "4 of 7 hosts are here after 4.0 s; waiting for n4, n5 and n7");
    assert_int_equal(progress_wait(&progress, 4 * SECOND), 4 * SECOND); /* less and less often */
    progress_host(&progress, 3);
    progress_host(&progress, 6);
    expect(&progress, 8 * SECOND, "6 of 7 hosts are here after 8.0 s; waiting for n5");
    progress_host(&progress, 4);
    progress_ranks(&progress, 10, 14);
    expect(&progress, 16 * SECOND, "all 7 hosts are here; 10 of 14 ranks run after 16.0 s");
    progress_ranks(&progress, 14, 14);
    expect(&progress, 17 * SECOND, "14 ranks run on 7 hosts after 17.0 s");
    assert_int_equal(progress_wait(&progress, 17 * SECOND), 0);
}

static void test_nobody_looks(void **state)
{
    (void)state;
    struct progress progress;
    bool here[1] = {false};
    progress_begin(&progress, here, 1, false, false, 0);
    assert_int_equal(progress_wait(&progress, 0), 0);
    expect(&progress, 100 * SECOND, NULL);
}

static void test_asked_for(void **state)
{
    (void)state;
    struct progress progress;
    bool here[1] = {false};
    progress_begin(&progress, here, 1, true, false, SECOND);
    expect(&progress, SECOND, "0 of 1 host is here after 0.0 s; waiting for n1");
    progress_host(&progress, 0);
    progress_ranks(&progress, 2, 2);
    expect(&progress, SECOND + SECOND / 2, "2 ranks run on 1 host after 0.5 s");
}

static void test_lines_have_their_bounds(void **state)
{
    (void)state;
    struct progress progress;
    bool here[7] = {false};
    char line[50];
    progress_begin(&progress, here, 7, true, false, 1);
    memset(line, 'x', sizeof line);
    assert_true(progress_line(&progress, names, 1, line, 40));
    assert_true(strlen(line) < 40);
    assert_int_equal(line[40], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fast_start_is_silent),
        cmocka_unit_test(test_a_slow_start_is_told_to_a_terminal),
        cmocka_unit_test(test_nobody_looks),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_lines_have_their_bounds),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
