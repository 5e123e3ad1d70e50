/* base_log.c - levels by area, whole harmless lines, and repeats that are counted. */
#include "config.h"

#include "runtime/base/base.h"
#include "tests/unit/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void levels_by_area(void **state)
{
    (void)state;
    assert_int_equal(base_log_configure("info,shm:debug,COLL:None"), NCCLX_SUCCESS);
    assert_true(base_log_on(AREA_PML, LOG_INFO));
    assert_false(base_log_on(AREA_PML, LOG_DEBUG));
    assert_true(base_log_on(AREA_SHM, LOG_DEBUG));
    assert_false(base_log_on(AREA_COLL, LOG_ERROR));
    assert_int_equal(base_log_configure("pml:debug"), NCCLX_SUCCESS); /* the others are at the default */
    assert_true(base_log_on(AREA_PML, LOG_DEBUG));
    assert_true(base_log_on(AREA_COLL, LOG_WARN));
    assert_false(base_log_on(AREA_COLL, LOG_INFO));
    assert_int_equal(base_log_configure("shm:debug,error"), NCCLX_SUCCESS); /* later parts win */
    assert_false(base_log_on(AREA_SHM, LOG_WARN));
    assert_int_equal(base_log_configure(NULL), NCCLX_SUCCESS);
    assert_int_equal(base_log_configure(""), NCCLX_SUCCESS);
    assert_true(base_log_on(AREA_SHM, LOG_WARN));
    assert_false(base_log_on(AREA_SHM, LOG_INFO));
}

static void bad_levels_change_nothing(void **state)
{
    static const char *const bad[] = {"loud", ",", "warn,", ",warn", "warn,,info", "shm", "shm:", ":debug", "shm:debug:info", "attic:debug", "warn ", "2"};
    (void)state;
    base_log_configure("shm:debug");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (base_log_configure(bad[i]) != NCCLX_ERR_CONFIG) fail_msg("\"%s\" is taken", bad[i]);
        assert_int_equal(strncmp(base_error_detail(), "NCCLX_LOG: \"", 12), 0);
        assert_non_null(strstr(base_error_detail(), "levels none, error, warn, info, debug, areas base, bootstrap"));
        assert_true(base_log_on(AREA_SHM, LOG_DEBUG));
    }
    base_log_configure(NULL);
}

static void lines_are_whole_and_harmless(void **state)
{
    char longest[3000];
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    capture_begin();
    errno = ENOENT;
    base_log(AREA_PML, LOG_WARN, "two\nlines, \x1b[31mred\x7f and %d", 5);
    int kept = errno;
    base_log(AREA_PML, LOG_INFO, "nobody asked");
    base_log(AREA_COLL, LOG_ERROR, "%s", longest);
    const char *text = capture_end();
    assert_int_equal(kept, ENOENT);
    assert_int_equal(strncmp(text, "ncclx: pml: warning: two lines, ?[31mred? and 5\nncclx: coll: error: xxxx", 70), 0);
    assert_null(strstr(text, "nobody"));
    assert_int_equal(text[strlen(text) - 1], '\n');
}

/* Messages that the text stands for: a line is one and those it counts are more. */
static int messages_in(const char *text, int *lines)
{
    int messages = 0;
    *lines = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        const char *count = strstr(text, " (");
        ++*lines;
        messages += count && count < end ? atoi(count + 2) : 1;
    }
    return messages;
}

static void repeats_are_counted(void **state)
{
    int lines;
    (void)state;
    capture_begin();
    for (int i = 0; i < 1000; i++) base_log(AREA_PML, LOG_WARN, "again"), base_log(AREA_PML, LOG_WARN, "and again");
    base_log(AREA_SHM, LOG_WARN, "again"); /* another area is another message */
    base_log_flush();
    base_log_flush();
    const char *text = capture_end();
    assert_int_equal(messages_in(text, &lines), 2001);
    assert_true(lines >= 5 && lines < 50); /* 5 within a second */
    assert_int_equal(strncmp(text, "ncclx: pml: warning: again\nncclx: pml: warning: and again\n", 58), 0);
    assert_non_null(strstr(text, "ncclx: shm: warning: again\n"));
    capture_begin();
    for (int i = 0; i < 100; i++) base_log(AREA_PML, LOG_WARN, "number %d", i); /* pushes all others out */
    text = capture_end();
    assert_non_null(strstr(text, "number 0\n"));
    assert_non_null(strstr(text, "number 99\n"));
    assert_null(strstr(text, "more time"));
}

static void speaker_is_named(void **state)
{
    (void)state;
    base_log_identity("node7", NULL, 12);
    capture_begin();
    base_log(AREA_OSC, LOG_WARN, "who");
    assert_string_equal(capture_end(), "ncclx: rank 12 on node7: osc: warning: who\n");
    base_log_identity("node7", "job.1", 12);
    capture_begin();
    base_log(AREA_OSC, LOG_WARN, "who else");
    assert_string_equal(capture_end(), "ncclx: rank 12 of job.1 on node7: osc: warning: who else\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_by_area),      cmocka_unit_test(bad_levels_change_nothing), cmocka_unit_test(lines_are_whole_and_harmless),
        cmocka_unit_test(repeats_are_counted), cmocka_unit_test(speaker_is_named),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
