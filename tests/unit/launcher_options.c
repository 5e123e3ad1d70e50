/* launcher_options.c - the command line and the environment of ranks. */
#include "launcher/environment.h"
#include "launcher/options.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_WORDS 40

/* Splits at blanks; the words stay valid until the next call. */
static int parse(const char *line, struct options *options)
{
    static char text[256];
    static char *words[MAX_WORDS + 1];
    int count = 0;
    char *rest = text;
    snprintf(text, sizeof text, "ncclxrun %s", line);
    while (count < MAX_WORDS && (words[count] = strtok_r(rest, " ", &rest))) count++;
    return options_parse(count, words, options);
}

static void test_programs(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(parse("-n 3 --wdir /tmp -x A=1 -x B one -n 9 : -np 2 two : --np=4 three x", &options),
                     NCCLX_SUCCESS);
    assert_int_equal(options.app_count, 3);
    assert_int_equal(options.apps[0].ranks, 3);
    assert_string_equal(options.apps[0].directory, "/tmp");
    assert_int_equal(options.apps[0].setting_count, 2);
    assert_string_equal(options.apps[0].settings[1], "B");
    assert_int_equal(options.apps[0].argc, 3); /* options end at the program */
    assert_int_equal(options.apps[1].ranks, 2);
    assert_null(options.apps[1].directory);
    assert_int_equal(options.apps[2].ranks, 4);
    assert_string_equal(options.apps[2].argv[1], "x");
    options_release(&options);
}

static void test_defaults(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(parse("-- -strange", &options), NCCLX_SUCCESS);
    assert_string_equal(options.apps[0].argv[0], "-strange");
    assert_int_equal(options.apps[0].ranks, 0);
    assert_true(options.oversubscribe);
    assert_int_equal(options.input, OPTIONS_STDIN_RANK);
    assert_int_equal(options.input_rank, 0);
    assert_true(options.kill_grace_ns == 5 * BASE_NS_PER_S);
    options_release(&options);
}

static void test_values(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(
        parse(
            "--map-by socket --bind-to none --stdin all --timeout 0.5 --kill-grace 0 --no-oversubscribe --host a:2,b p",
            &options),
        NCCLX_SUCCESS);
    assert_int_equal(options.by, MAP_BY_OBJECT);
    assert_int_equal(options.by_level, MAP_PACKAGE);
    assert_int_equal(options.bind, MAP_BIND_NONE);
    assert_int_equal(options.input, OPTIONS_STDIN_ALL);
    assert_true(options.timeout_ns == BASE_NS_PER_S / 2);
    assert_true(options.kill_grace_ns == 0);
    assert_false(options.oversubscribe);
    assert_string_equal(options.hosts, "a:2,b");
    options_release(&options);
    assert_int_equal(parse("-wdir /tmp -H a -tag-output --timeout=1 p", &options), NCCLX_SUCCESS);
    assert_string_equal(options.apps[0].directory, "/tmp");
    assert_string_equal(options.hosts, "a");
    assert_true(options.timeout_ns == BASE_NS_PER_S);
    options_release(&options);
    assert_int_equal(parse("--help nonsense --foo", &options), NCCLX_SUCCESS);
    assert_int_equal(options.action, OPTIONS_HELP);
    options_release(&options);
}

/* Each is refused with a sentence that names what is wrong. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *line, *named;
    } cases[] = {
        {"", "no program"},
        {"-n 0 p", "'0'"},
        {"-n -3 p", "'-3'"},
        {"-n 1x p", "'1x'"},
        {"-n 1048577 p", "1048577"},
        {"-n", "-n needs"},
        {"-n 99999999999999999999 p", "9999"},
        {"--foo p", "--foo"},
        {"-n= p", "''"},
        {"--quiet=1 p", "--quiet"},
        {"--map-by moon p", "moon"},
        {"--bind-to moon p", "moon"},
        {"--display all p", "all"},
        {"--display map, p", "map,"},
        {"--display mapp p", "mapp"},
        {"--map-by ppr:0:node p", "ppr:0:node"},
        {"--map-by ppr:2:slot p", "ppr:2:slot"},
        {"--map-by ppr:2 p", "ppr:2"},
        {"--topology core:2 p", "--dry-run"},
        {"--hostfile= p", "''"},
        {"--stdin -1 p", "-1"},
        {"--timeout 0 p", "--timeout"},
        {"--timeout 1e99 p", "1e99"},
        {"--timeout nan p", "nan"},
        {"--kill-grace -1 p", "-1"},
        {"-x =a p", "=a"},
        {"a :", "':'"},
        {": a", "no program"},
        {"-n 2 a : b", "program 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options options;
        assert_int_equal(parse(cases[i].line, &options), NCCLX_ERR_ARG);
        if (!strstr(base_error_detail(), cases[i].named)) fail_msg("%s: %s", cases[i].line, base_error_detail());
    }
}

static void test_help_names_every_option(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    assert_non_null(stream);
    options_help(stream);
    fclose(stream);
    static const char *const names[] = {"-n, -np, --np N",
                                        "--host",
                                        "-x",
                                        "--wdir",
                                        "--map-by",
                                        "--bind-to",
                                        "--report-bindings",
                                        "--display",
                                        "--oversubscribe",
                                        "--no-oversubscribe",
                                        "--tag-output",
                                        "--timestamp",
                                        "--output",
                                        "--stdin",
                                        "--timeout",
                                        "--kill-grace",
                                        "--quiet",
                                        "--verbose",
                                        "--version",
                                        "--help"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) assert_non_null(strstr(text, names[i]));
    free(text);
}

static void test_environment(void **state)
{
    (void)state;
    char *inherited[] = {"A=1",
                         "PMIX_RANK=3",
                         "B=x\ny",
                         "SLURM_PROCID=1",
                         "SLURM_JOB_ID=7",
                         "PMI_RANK=0",
                         "EMPTY=",
                         "BASH_FUNC_f%%=() { :\n}",
                         NULL};
    const char *settings[] = {"A=2", "C=a=b", "NOVALUE", "C=c", "PMIX_RANK=9"};
    char **list = environment_compose(inherited, settings, 5);
    static const char *const wanted[] = {"A=2", "B=x\ny", "SLURM_JOB_ID=7", "EMPTY=", "BASH_FUNC_f%%=() { :\n}", "C=c"};
    assert_non_null(list);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) assert_string_equal(list[i], wanted[i]);
    assert_null(list[6]);
    base_free(AREA_LAUNCHER, list);
    assert_false(environment_for_daemon("LD_LIBRARY_PATH=/evil"));
    assert_false(environment_for_daemon("LD_PRELOAD=x"));
    assert_false(environment_for_daemon("PMIX_MCA_gds=hash"));
    assert_true(environment_for_daemon("TMPDIR=/scratch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_help_names_every_option),
        cmocka_unit_test(test_environment),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
