/* topo.c - cpu lists, described machines, and what binding refuses. */
#include "config.h"

#include "topo/cpulist.h"
#include "topo/topo.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void lists(void **state)
{
    static const struct {
        const char *text, *cpus; /* cpus null: refused */
    } cases[] = {
        {"0", "0"}, {"0-3,8", "0-3,8"}, {"8,0-3", "0-3,8"}, {"1,1,0-2", "0-2"}, {"5-5", "5"}, {"007", "7"}, {"65535", "65535"},
        {"", NULL}, {",", NULL}, {"0,", NULL}, {",0", NULL}, {"0,,1", NULL}, {"3-1", NULL}, {"-1", NULL}, {"1-", NULL}, {"1-2-3", NULL},
        {" 1", NULL}, {"1 ", NULL}, {"+1", NULL}, {"0x1", NULL}, {"a", NULL}, {"1.5", NULL}, {"65536", NULL}, {"0-65536", NULL},
        {"4294967296", NULL}, {"18446744073709551617", NULL}, {"1\n", NULL}, {"1;2", NULL}, {"all", NULL},
    };
    (void)state;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char list[128];
        bool good = topo_cpulist_parse(cases[i].text, set);
        if (good != (cases[i].cpus != NULL)) fail_msg("\"%s\" is %s", cases[i].text, good ? "taken" : "refused");
        if (!good) continue;
        hwloc_bitmap_list_snprintf(list, sizeof list, set);
        assert_string_equal(list, cases[i].cpus);
    }
    hwloc_bitmap_free(set);
}

static struct topo_node *described(const char *machine)
{
    struct topo_node *node = NULL;
    setenv("HWLOC_SYNTHETIC", machine, 1);
    int error = topo_node_discover(&node);
    unsetenv("HWLOC_SYNTHETIC");
    if (error) fail_msg("%s: %s", machine, base_error_detail());
    return node;
}

static void assert_cpus(const struct topo_node *node, enum topo_object object, int index, const char *want)
{
    char list[128];
    int length = topo_node_cpus(node, object, index, list, sizeof list);
    assert_string_equal(list, want);
    assert_int_equal(length, (int)strlen(want));
}

static void machine_of_two_packages(void **state)
{
    (void)state;
    struct topo_node *node = described("pack:2 numa:2 l3:1 l2:2 core:2 pu:2");
    assert_int_equal(topo_node_count(node, TOPO_MACHINE), 1);
    assert_int_equal(topo_node_count(node, TOPO_PACKAGE), 2);
    assert_int_equal(topo_node_count(node, TOPO_NUMA), 4);
    assert_int_equal(topo_node_count(node, TOPO_L3CACHE), 4);
    assert_int_equal(topo_node_count(node, TOPO_L2CACHE), 8);
    assert_int_equal(topo_node_count(node, TOPO_CORE), 16);
    assert_int_equal(topo_node_count(node, TOPO_HWTHREAD), 32);
    assert_cpus(node, TOPO_PACKAGE, 1, "16-31");
    assert_cpus(node, TOPO_NUMA, 3, "24-31");
    assert_cpus(node, TOPO_CORE, 5, "10-11");
    assert_cpus(node, TOPO_HWTHREAD, 31, "31");
    assert_cpus(node, TOPO_MACHINE, 0, "0-31");
    assert_cpus(node, TOPO_PACKAGE, 2, "");
    assert_cpus(node, TOPO_PACKAGE, -1, "");
    topo_node_release(node);
}

static void text_that_does_not_fit(void **state)
{
    (void)state;
    struct topo_node *node = described("core:16 pu:1");
    char list[4];
    assert_int_equal(topo_node_cpus(node, TOPO_MACHINE, 0, list, sizeof list), 4); /* "0-15" */
    assert_string_equal(list, "0-1");
    assert_int_equal(topo_node_cpus(node, TOPO_MACHINE, 0, NULL, 0), 4);
    topo_node_release(node);
}

static void machine_without_caches(void **state)
{
    (void)state;
    struct topo_node *node = described("pu:4"); /* tells neither cores nor packages */
    assert_int_equal(topo_node_count(node, TOPO_L2CACHE), 0);
    assert_int_equal(topo_node_count(node, TOPO_L3CACHE), 0);
    assert_int_equal(topo_node_count(node, TOPO_CORE), 4);
    assert_int_equal(topo_node_count(node, TOPO_PACKAGE), 1);
    assert_cpus(node, TOPO_CORE, 2, "2");
    assert_cpus(node, TOPO_PACKAGE, 0, "0-3");
    assert_cpus(node, TOPO_L3CACHE, 0, "");
    topo_node_release(node);
}

static void drawing(void **state)
{
    (void)state;
    struct topo_node *node = described("pack:1 l3:1(size=8388608) core:2 pu:1");
    char *text = topo_node_describe(node);
    assert_non_null(text);
    assert_non_null(strstr(text, "machine 0: cpus 0-1\n"));
    assert_non_null(strstr(text, "l3cache 0, 8.0 MiB: cpus 0-1\n"));
    assert_non_null(strstr(text, "core 1: cpus 1\n"));
    base_free(AREA_TOPO, text);
    topo_node_release(node);
}

static void nonsense_is_not_the_real_machine(void **state)
{
    (void)state;
    struct topo_node *node = NULL;
    setenv("HWLOC_SYNTHETIC", "nonsense:3", 1);
    assert_int_equal(topo_node_discover(&node), NCCLX_ERR_CONFIG);
    unsetenv("HWLOC_SYNTHETIC");
    assert_non_null(strstr(base_error_detail(), "nonsense:3"));
    assert_null(node);
}

static void described_machine_binds_nothing(void **state)
{
    (void)state;
    struct topo_node *node = described("pu:4");
    assert_int_equal(topo_node_bind(node, "1"), NCCLX_ERR_UNSUPPORTED);
    topo_node_release(node);
}

static void binding(void **state)
{
    (void)state;
    struct topo_node *node = NULL, *inner = NULL;
    char first[32], list[32];
    assert_int_equal(topo_node_discover(&node), NCCLX_SUCCESS);
    assert_true(topo_node_count(node, TOPO_HWTHREAD) >= 1);
    assert_non_null(topo_node_hwloc(node));
    topo_node_cpus(node, TOPO_HWTHREAD, 0, first, sizeof first);
    assert_int_equal(topo_node_bind(node, "65000"), NCCLX_ERR_ARG);
    assert_int_equal(topo_node_bind(node, "0-65000"), NCCLX_ERR_ARG);
    assert_int_equal(topo_node_bind(node, "one"), NCCLX_ERR_ARG);
    assert_int_equal(topo_node_bind(node, first), NCCLX_SUCCESS);
    /* A discovery sees only what the process is bound to. */
    assert_int_equal(topo_node_discover(&inner), NCCLX_SUCCESS);
    assert_int_equal(topo_node_count(inner, TOPO_HWTHREAD), 1);
    topo_node_cpus(inner, TOPO_MACHINE, 0, list, sizeof list);
    assert_string_equal(list, first);
    topo_node_cpus(node, TOPO_MACHINE, 0, list, sizeof list);
    assert_int_equal(topo_node_bind(node, list), NCCLX_SUCCESS);
    topo_node_release(inner);
    topo_node_release(node);
}

static void distances(void **state)
{
    static int local[] = {2, 3, 7};
    struct ncclx_rt rt = {.job = {.rank = 3, .size = 9, .local_ranks = local, .local_size = 3, .local_rank = 1}};
    (void)state;
    assert_int_equal(topo_distance(&rt, 3), NCCLX_DISTANCE_SELF);
    assert_int_equal(topo_distance(&rt, 7), NCCLX_DISTANCE_NODE);
    assert_int_equal(topo_distance(&rt, 4), NCCLX_DISTANCE_UNKNOWN);
    assert_string_equal(topo_distance_name(NCCLX_DISTANCE_CAMPUS), "campus");
    assert_string_equal(topo_distance_name(-1), "none");
    assert_string_equal(topo_distance_name(99), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(machine_of_two_packages),
        cmocka_unit_test(text_that_does_not_fit),
        cmocka_unit_test(machine_without_caches),
        cmocka_unit_test(drawing),
        cmocka_unit_test(nonsense_is_not_the_real_machine),
        cmocka_unit_test(described_machine_binds_nothing),
        cmocka_unit_test(binding),
        cmocka_unit_test(distances),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
