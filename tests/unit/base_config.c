/* base_config.c - every type of value, good and bad, and where values come from. */
#include "config.h"

#include "runtime/base/base.h"
#include "tests/unit/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct base_config_entry entries[] = {
    [CONFIG_BOOL] = {"NCCLX_B", CONFIG_BOOL, "on", 0, 1, NULL, ""},
    [CONFIG_INT] = {"NCCLX_I", CONFIG_INT, "0", -5, 1000, NULL, ""},
    [CONFIG_SIZE] = {"NCCLX_Z", CONFIG_SIZE, "0", 0, 1e18, NULL, ""},
    [CONFIG_SECONDS] = {"NCCLX_S", CONFIG_SECONDS, "0", 0, 1e9, NULL, ""},
    [CONFIG_ENUM] = {"NCCLX_E", CONFIG_ENUM, "auto", 0, 0, "auto|tree|ring", ""},
    [CONFIG_STRING] = {"NCCLX_T", CONFIG_STRING, "", 0, 0, NULL, ""},
};

static void good_values(void **state)
{
    static const struct {
        enum base_config_type type;
        const char *text;
        int64_t number;
    } cases[] = {
        {CONFIG_BOOL, "1", 1}, {CONFIG_BOOL, "yes", 1}, {CONFIG_BOOL, "ON", 1}, {CONFIG_BOOL, "True", 1},
        {CONFIG_BOOL, "0", 0}, {CONFIG_BOOL, "no", 0}, {CONFIG_BOOL, "off", 0}, {CONFIG_BOOL, "FALSE", 0},
        {CONFIG_INT, "-5", -5}, {CONFIG_INT, "+7", 7}, {CONFIG_INT, "007", 7}, {CONFIG_INT, "1000", 1000},
        {CONFIG_SIZE, "0", 0}, {CONFIG_SIZE, "64K", 65536}, {CONFIG_SIZE, "3m", 3 << 20}, {CONFIG_SIZE, "2G", INT64_C(2) << 30},
        {CONFIG_SECONDS, "0", 0}, {CONFIG_SECONDS, "2", INT64_C(2000000000)}, {CONFIG_SECONDS, "0.5", 500000000},
        {CONFIG_SECONDS, "1.000000001", 1000000001}, {CONFIG_SECONDS, "0.0000000019", 1}, {CONFIG_SECONDS, "1000000000", INT64_C(1000000000000000000)},
        {CONFIG_ENUM, "auto", 0}, {CONFIG_ENUM, "Tree", 1}, {CONFIG_ENUM, "ring", 2},
        {CONFIG_STRING, "", 0}, {CONFIG_STRING, "any thing", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t number = -1;
        if (base_config_parse(&entries[cases[i].type], "", cases[i].text, &number)) fail_msg("\"%s\": %s", cases[i].text, base_error_detail());
        assert_int_equal(number, cases[i].number);
    }
}

static void bad_values(void **state)
{
    static const struct {
        enum base_config_type type;
        const char *text;
    } cases[] = {
        {CONFIG_BOOL, ""}, {CONFIG_BOOL, "2"}, {CONFIG_BOOL, "y"}, {CONFIG_BOOL, "on "}, {CONFIG_BOOL, "onn"},
        {CONFIG_INT, ""}, {CONFIG_INT, "-"}, {CONFIG_INT, "+"}, {CONFIG_INT, "-6"}, {CONFIG_INT, "1001"}, {CONFIG_INT, "1e3"}, {CONFIG_INT, "0x10"},
        {CONFIG_INT, "5 "}, {CONFIG_INT, " 5"}, {CONFIG_INT, "--5"}, {CONFIG_INT, "9223372036854775808"}, {CONFIG_INT, "18446744073709551617"},
        {CONFIG_SIZE, ""}, {CONFIG_SIZE, "K"}, {CONFIG_SIZE, "-1"}, {CONFIG_SIZE, "+1"}, {CONFIG_SIZE, "1KB"}, {CONFIG_SIZE, "1KK"}, {CONFIG_SIZE, "1.5M"},
        {CONFIG_SIZE, "1T"}, {CONFIG_SIZE, "9007199254740992K"}, {CONFIG_SIZE, "8589934592G"}, {CONFIG_SIZE, "99999999999999999999"},
        {CONFIG_SECONDS, ""}, {CONFIG_SECONDS, "."}, {CONFIG_SECONDS, ".5"}, {CONFIG_SECONDS, "1."}, {CONFIG_SECONDS, "-1"}, {CONFIG_SECONDS, "1s"},
        {CONFIG_SECONDS, "1.5.5"}, {CONFIG_SECONDS, "1000000001"}, {CONFIG_SECONDS, "9223372037"}, {CONFIG_SECONDS, "1e3"}, {CONFIG_SECONDS, "nan"},
        {CONFIG_ENUM, ""}, {CONFIG_ENUM, "tre"}, {CONFIG_ENUM, "trees"}, {CONFIG_ENUM, "auto|tree"}, {CONFIG_ENUM, "|"},
    };
    char start[128];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t number;
        const struct base_config_entry *entry = &entries[cases[i].type];
        if (base_config_parse(entry, "f:3: ", cases[i].text, &number) != NCCLX_ERR_CONFIG) fail_msg("\"%s\" is taken", cases[i].text);
        snprintf(start, sizeof start, "f:3: %s is \"%s\"; valid is ", entry->name, cases[i].text);
        if (strncmp(base_error_detail(), start, strlen(start))) fail_msg("%s", base_error_detail());
    }
    assert_string_equal(base_error_detail(), "f:3: NCCLX_E is \"|\"; valid is one of auto, tree, ring");
}

static void table_is_sound(void **state)
{
    (void)state;
    for (int id = 0; id < CONFIG_COUNT; id++) {
        const struct base_config_entry *entry = &base_config_table()[id];
        int64_t number;
        assert_non_null(entry->name);
        assert_int_equal(strncmp(entry->name, "NCCLX_", 6), 0);
        assert_int_equal(base_config_find(entry->name), id); /* no name twice */
        assert_true(strlen(entry->name) < 64);
        assert_true(strlen(entry->doc) > 5 && !strchr(entry->doc, '\n'));
        assert_int_equal(entry->type == CONFIG_ENUM, entry->choices != NULL);
        assert_int_equal(base_config_parse(entry, "", entry->initial, &number), NCCLX_SUCCESS);
    }
    assert_int_equal(base_config_find("NCCLX_NO_SUCH"), CONFIG_COUNT);
    assert_int_equal(base_config_find(""), CONFIG_COUNT);
}

static void environment_wins_over_defaults(void **state)
{
    char *environment[] = {"HOME=relative", "NCCLX_TIMEOUT=1.5", "NCCLX_SHM_CMA=no", "NCCLX_TIMEOUT=9", "OTHER=1", NULL};
    struct base_config config;
    (void)state;
    assert_int_equal(base_config_load(&config, environment), NCCLX_SUCCESS);
    assert_int_equal(config.value[CONFIG_TIMEOUT].number, 1500000000); /* the first of two, as getenv has it */
    assert_string_equal(config.value[CONFIG_TIMEOUT].text, "1.5");
    assert_int_equal(config.value[CONFIG_TIMEOUT].source, CONFIG_FROM_ENVIRONMENT);
    assert_int_equal(config.value[CONFIG_SHM_CMA].number, 0);
    assert_int_equal(config.value[CONFIG_SHM_DIRECT].number, 1);
    assert_int_equal(config.value[CONFIG_SHM_DIRECT].source, CONFIG_FROM_DEFAULT);
    assert_int_equal(config.value[CONFIG_UNEXPECTED_LIMIT].number, 16 << 20);
    base_config_release(&config);
    base_config_release(&config); /* harmless */
}

static void bad_environment_leaves_nothing(void **state)
{
    struct base_area_usage before, after;
    struct base_config config;
    char *spin[] = {"NCCLX_SPIN=much", NULL}, *log[] = {"NCCLX_LOG=warn,nowhere:debug", NULL};
    (void)state;
    base_area_usage(AREA_BASE, &before);
    assert_int_equal(base_config_load(&config, spin), NCCLX_ERR_CONFIG);
    assert_string_equal(base_error_detail(), "NCCLX_SPIN is \"much\"; valid is a whole number from -1 to 1000000000");
    assert_int_equal(base_config_load(&config, log), NCCLX_ERR_CONFIG);
    assert_non_null(strstr(base_error_detail(), "NCCLX_LOG: \"nowhere:debug\" names no area"));
    base_area_usage(AREA_BASE, &after);
    assert_int_equal(before.bytes, after.bytes);
}

static void unknown_names_are_warned_about(void **state)
{
    struct base_config config;
    char *slip[] = {"NCCLX_TIMOUT=1", "NCCLX_CC=gcc", "NCCLXRUN=1", NULL};
    char *other[] = {"NCCLX_SOMETHING_ELSE=1", NULL}, *rank_1[] = {"PMIX_RANK=1", "NCCLX_TIMEOUTS=1", NULL};
    (void)state;
    capture_begin();
    int error = base_config_load(&config, slip);
    assert_string_equal(capture_end(), "ncclx: base: warning: unknown variable NCCLX_TIMOUT is ignored; did you mean NCCLX_TIMEOUT?\n");
    assert_int_equal(error, NCCLX_SUCCESS);
    base_config_release(&config);
    capture_begin();
    base_config_load(&config, other);
    assert_string_equal(capture_end(), "ncclx: base: warning: unknown variable NCCLX_SOMETHING_ELSE is ignored; ncclx-info --config lists all\n");
    base_config_release(&config);
    capture_begin();
    base_config_load(&config, rank_1); /* rank 0 has said it */
    assert_string_equal(capture_end(), "");
    base_config_release(&config);
    assert_string_equal(base_config_nearest("NCCLX_COLL_ALLREDUCED"), "NCCLX_COLL_ALLREDUCE");
    assert_string_equal(base_config_nearest("NCCLX_shm_cma"), "NCCLX_SHM_CMA");
    assert_null(base_config_nearest("NCCLX_"));
    char longest[300];
    memset(longest, 'X', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_null(base_config_nearest(longest));
}

/* ---- Files ---------------------------------------------------------------------------------------------------------- */

static int parse(struct base_config *config, const char *text)
{
    return base_config_parse_file(config, "x.conf", text, strlen(text), CONFIG_FROM_USER_FILE);
}

static void files_in_every_form(void **state)
{
    static const char *const same[] = {"NCCLX_TIMEOUT=3", "TIMEOUT=3\n", "  TIMEOUT \t=\t 3  \r\n", "# x\n\nTIMEOUT = 3 # seconds\n", "TIMEOUT=2\nTIMEOUT=3\n",
                                       "\r\n#\r\nNCCLX_TIMEOUT = 3\r"};
    struct base_config config;
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(base_config_load(&config, NULL), NCCLX_SUCCESS);
        assert_int_equal(parse(&config, same[i]), NCCLX_SUCCESS);
        assert_int_equal(config.value[CONFIG_TIMEOUT].number, INT64_C(3000000000));
        assert_int_equal(config.value[CONFIG_TIMEOUT].source, CONFIG_FROM_USER_FILE);
        base_config_release(&config);
    }
    assert_int_equal(base_config_load(&config, NULL), NCCLX_SUCCESS);
    assert_int_equal(parse(&config, ""), NCCLX_SUCCESS);
    assert_int_equal(parse(&config, "TRANSPORTS =\n"), NCCLX_SUCCESS); /* empty text */
    assert_string_equal(config.value[CONFIG_TRANSPORTS].text, "");
    base_config_release(&config);
}

static void bad_lines_name_file_and_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"\nTIMEOUT = x\n", "x.conf:2: NCCLX_TIMEOUT is \"x\"; valid is seconds"},
        {"TIMEOUT = 1\r\n# c\r\nhello\r\n", "x.conf:3: not a line of the form NAME = value: \"hello\""},
        {"= 3", "x.conf:1: no name before the '='"},
        {"TIMEOUT == 3", "x.conf:1: NCCLX_TIMEOUT is \"= 3\"; valid is seconds"},
    };
    struct base_config config;
    char big[5000];
    (void)state;
    assert_int_equal(base_config_load(&config, NULL), NCCLX_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(&config, cases[i].text), NCCLX_ERR_CONFIG);
        if (strncmp(base_error_detail(), cases[i].error, strlen(cases[i].error))) fail_msg("%s", base_error_detail());
    }
    memset(big, 'A', sizeof big);
    assert_int_equal(base_config_parse_file(&config, "x.conf", big, sizeof big, CONFIG_FROM_USER_FILE), NCCLX_ERR_CONFIG);
    assert_non_null(strstr(base_error_detail(), "x.conf:1: the line is longer than"));
    assert_int_equal(base_config_parse_file(&config, "x.conf", big, 200, CONFIG_FROM_USER_FILE), NCCLX_ERR_CONFIG);
    big[198] = '=';
    assert_int_equal(base_config_parse_file(&config, "x.conf", big, 200, CONFIG_FROM_USER_FILE), NCCLX_ERR_CONFIG);
    assert_non_null(strstr(base_error_detail(), "x.conf:1: the name is longer than"));
    assert_int_equal(base_config_parse_file(&config, "x.conf", "SPIN\0=3\n", 8, CONFIG_FROM_USER_FILE), NCCLX_ERR_CONFIG);
    assert_non_null(strstr(base_error_detail(), "x.conf:1: a zero byte"));
    capture_begin();
    int error = parse(&config, "\nSPINN = 3\n");
    assert_string_equal(capture_end(), "ncclx: base: warning: x.conf:2: unknown variable NCCLX_SPINN is ignored; did you mean NCCLX_SPIN?\n");
    assert_int_equal(error, NCCLX_SUCCESS);
    base_config_release(&config);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void sources_in_order(void **state)
{
    char folder[] = "/tmp/ncclx-test-config.XXXXXX", home[64], folder_config[64], path[128], *with_home[] = {home, NULL, NULL};
    char *with_xdg[] = {home, folder_config, "NCCLX_SPIN=5", NULL};
    struct base_config config;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(home, sizeof home, "HOME=%s", folder);
    snprintf(folder_config, sizeof folder_config, "XDG_CONFIG_HOME=%s", folder);
    snprintf(path, sizeof path, "%s/ncclx.conf", folder);
    write_file(path, "SPIN = 7\nTIMEOUT = 1\n");

    assert_int_equal(base_config_load(&config, with_xdg), NCCLX_SUCCESS);
    assert_int_equal(config.value[CONFIG_SPIN].number, 5);
    assert_int_equal(config.value[CONFIG_SPIN].source, CONFIG_FROM_ENVIRONMENT);
    assert_int_equal(config.value[CONFIG_TIMEOUT].source, CONFIG_FROM_USER_FILE);
    base_config_release(&config);

    assert_int_equal(base_config_load(&config, with_home), NCCLX_SUCCESS); /* no .config there */
    assert_int_equal(config.value[CONFIG_SPIN].number, -1);
    base_config_release(&config);

    write_file(path, "SPIN = many\n");
    assert_int_equal(base_config_load(&config, with_xdg), NCCLX_ERR_CONFIG);
    assert_non_null(strstr(base_error_detail(), "/ncclx.conf:1: NCCLX_SPIN is \"many\""));

    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder where the file should be: a warning */
    capture_begin();
    int error = base_config_load(&config, with_xdg);
    assert_non_null(strstr(capture_end(), "/ncclx.conf cannot be read and is ignored: Is a directory"));
    assert_int_equal(error, NCCLX_SUCCESS);
    base_config_release(&config);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* and a pipe nobody writes to does not stop the rank */
    assert_int_equal(base_config_load(&config, with_xdg), NCCLX_SUCCESS);
    base_config_release(&config);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_values),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(environment_wins_over_defaults),
        cmocka_unit_test(bad_environment_leaves_nothing),
        cmocka_unit_test(unknown_names_are_warned_about),
        cmocka_unit_test(files_in_every_form),
        cmocka_unit_test(bad_lines_name_file_and_line),
        cmocka_unit_test(sources_in_order),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
