/* launcher_map.c - where ranks go and what they are bound to, on described nodes. */
#include "launcher/gpus.h"
#include "launcher/map.h"
#include "launcher/message_gpus.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two packages of one NUMA node and one L3 each, `cores` cores in each with two threads numbered as x86 does it: first
 * all first threads. */
static struct map_node two_packages(struct map_cpu *cpus, int cores)
{
    struct map_node node = {.name = "n", .cpus = cpus, .cpu_count = 4 * cores};
    for (int i = 0; i < 4 * cores; i++) {
        int core = i / 2, package = core / cores;
        cpus[i] = (struct map_cpu){.os_index = core + (i % 2) * 2 * cores,
                                   .object = {i, core, core, package, package, package}};
    }
    return node;
}

static struct map map_one(const struct map_node *nodes, int node_count, int ranks, struct map_request request)
{
    struct map map;
    request.app_ranks = &ranks;
    request.app_count = 1;
    assert_int_equal(map_compute(&request, nodes, node_count, &map), NCCLX_SUCCESS);
    assert_int_equal(map.rank_count, ranks);
    return map;
}

static void test_fill_slots(void **state)
{
    (void)state;
    struct map_node nodes[3] = {{.name = "a", .slots = 2}, {.name = "b", .slots = 1}, {.name = "c", .slots = 3}};
    static const int wanted[] = {0, 0, 1, 2, 2, 2, 0, 0};
    struct map map = map_one(nodes, 3, 8, (struct map_request){.by = MAP_BY_SLOT, .oversubscribe = true});
    for (int i = 0; i < 8; i++) assert_int_equal(map.ranks[i].node, wanted[i]);
    assert_int_equal(map.ranks[7].local_rank, 3);
    assert_int_equal(map.local_size[0], 4);
    map_release(&map);
}

static void test_round_the_nodes(void **state)
{
    (void)state;
    struct map_node nodes[3] = {{.name = "a", .slots = 2}, {.name = "b", .slots = 1}, {.name = "c", .slots = 3}};
    static const int wanted[] = {0, 1, 2, 0, 2, 2, 0};
    struct map map = map_one(nodes, 3, 7, (struct map_request){.by = MAP_BY_NODE, .oversubscribe = true});
    for (int i = 0; i < 7; i++) assert_int_equal(map.ranks[i].node, wanted[i]);
    map_release(&map);
}

static void test_programs(void **state)
{
    (void)state;
    struct map_node node = {.name = "a", .slots = 5};
    int ranks[] = {1, 3};
    struct map map;
    struct map_request request = {.app_ranks = ranks, .app_count = 2};
    assert_int_equal(map_compute(&request, &node, 1, &map), NCCLX_SUCCESS);
    assert_int_equal(map.ranks[0].app, 0);
    assert_int_equal(map.ranks[1].app, 1);
    assert_int_equal(map.ranks[3].local_rank, 3);
    map_release(&map);
}

static void test_too_many(void **state)
{
    (void)state;
    struct map_node node = {.name = "a", .slots = 2};
    int ranks = 3;
    struct map map;
    struct map_request request = {.app_ranks = &ranks, .app_count = 1};
    assert_int_equal(map_compute(&request, &node, 1, &map), NCCLX_ERR_ARG);
    assert_non_null(strstr(base_error_detail(), "3 ranks"));
    ranks = MAP_MAX_RANKS + 1;
    request.oversubscribe = true;
    assert_int_equal(map_compute(&request, &node, 1, &map), NCCLX_ERR_ARG);
    ranks = 0;
    assert_int_equal(map_compute(&request, &node, 1, &map), NCCLX_ERR_ARG);
}

static void check_cpus(struct map_request request, int ranks, const char *const *wanted)
{
    struct map_cpu cpus[16];
    struct map_node node = two_packages(cpus, 4);
    request.oversubscribe = true;
    struct map map = map_one(&node, 1, ranks, request);
    for (int i = 0; i < ranks; i++) {
        if (wanted[i])
            assert_string_equal(map.ranks[i].cpus, wanted[i]);
        else
            assert_null(map.ranks[i].cpus);
    }
    map_release(&map);
}

static void test_bind_core(void **state)
{
    (void)state;
    check_cpus((struct map_request){.bind = MAP_BIND_OBJECT, .bind_level = MAP_CORE}, 3,
               (const char *[]){"0,8", "1,9", "2,10"});
    check_cpus(
        (struct map_request){
            .by = MAP_BY_OBJECT, .by_level = MAP_PACKAGE, .bind = MAP_BIND_OBJECT, .bind_level = MAP_CORE},
        5, (const char *[]){"0,8", "4,12", "1,9", "5,13", "2,10"});
}

static void test_bind_thread(void **state)
{
    (void)state;
    check_cpus(
        (struct map_request){
            .by = MAP_BY_OBJECT, .by_level = MAP_HWTHREAD, .bind = MAP_BIND_OBJECT, .bind_level = MAP_HWTHREAD},
        3, (const char *[]){"0", "8", "1"});
    check_cpus(
        (struct map_request){
            .by = MAP_BY_OBJECT, .by_level = MAP_NUMA, .bind = MAP_BIND_OBJECT, .bind_level = MAP_HWTHREAD},
        4, (const char *[]){"0", "4", "8", "12"});
}

static void test_bind_package(void **state)
{
    (void)state;
    check_cpus((struct map_request){.bind = MAP_BIND_OBJECT, .bind_level = MAP_PACKAGE}, 5,
               (const char *[]){"0-3,8-11", "0-3,8-11", "0-3,8-11", "0-3,8-11", "4-7,12-15"});
}

static void test_bind_default(void **state)
{
    (void)state;
    check_cpus((struct map_request){.bind = MAP_BIND_NONE}, 2, (const char *[]){NULL, NULL});
    check_cpus((struct map_request){.bind = MAP_BIND_DEFAULT}, 2, (const char *[]){"0-3,8-11", "0-3,8-11"});
    const char *none[17] = {NULL};
    check_cpus((struct map_request){.bind = MAP_BIND_DEFAULT}, 17, none); /* more ranks than threads */
}

static void test_more_ranks_than_parts(void **state)
{
    (void)state;
    struct map_cpu cpus[4];
    struct map_node node = two_packages(cpus, 1);
    struct map map = map_one(
        &node, 1, 9, (struct map_request){.bind = MAP_BIND_OBJECT, .bind_level = MAP_CORE, .oversubscribe = true});
    for (int i = 0; i < 9; i++) assert_string_equal(map.ranks[i].cpus, i % 2 ? "1,3" : "0,2");
    assert_true(map.oversubscribed[0]);
    map_release(&map);
}

/* A given number of ranks for each node, package or GPU, and no more. */
static void test_per(void **state)
{
    (void)state;
    struct map_cpu cpus[16];
    struct map_node nodes[2] = {two_packages(cpus, 4), two_packages(cpus, 4)};
    static const int by_node[] = {0, 0, 1, 1}, ranks = 9;
    struct map_request request = {.by = MAP_BY_NODE, .per = 2, .app_ranks = &ranks, .app_count = 1};
    assert_int_equal(map_room(&request, nodes, 2), 4);
    struct map map = map_one(nodes, 2, 4, request);
    for (int i = 0; i < 4; i++) assert_int_equal(map.ranks[i].node, by_node[i]);
    map_release(&map);
    request = (struct map_request){.by = MAP_BY_OBJECT,
                                   .by_level = MAP_PACKAGE,
                                   .per = 2,
                                   .bind = MAP_BIND_OBJECT,
                                   .bind_level = MAP_CORE,
                                   .app_ranks = &ranks,
                                   .app_count = 1};
    assert_int_equal(map_room(&request, nodes, 2), 8);
    map = map_one(nodes, 2, 5, request);
    static const char *const wanted[] = {"0,8", "1,9", "4,12", "5,13", "0,8"};
    for (int i = 0; i < 5; i++) assert_string_equal(map.ranks[i].cpus, wanted[i]);
    assert_int_equal(map.ranks[4].node, 1);
    map_release(&map);
    request.oversubscribe = true; /* says nothing about this */
    assert_int_equal(map_compute(&request, nodes, 2, &map), NCCLX_ERR_ARG);
    assert_non_null(strstr(base_error_detail(), "9 ranks are more than the 8"));
}

static void test_gpus(void **state)
{
    (void)state;
    struct map_cpu cpus[16];
    static const struct map_gpu gpus[] = {{"0", 1}, {"3", 0}, {"GPU-a", 1}};
    struct map_node nodes[3] = {two_packages(cpus, 4), two_packages(cpus, 4), two_packages(cpus, 4)};
    nodes[0].gpus = nodes[2].gpus = gpus;
    nodes[0].gpu_count = 3;
    nodes[2].gpu_count = 1;
    nodes[2].slots = 2; /* share one */
    struct map_request request = {.by = MAP_BY_GPU, .bind = MAP_BIND_OBJECT, .bind_level = MAP_CORE};
    assert_int_equal(map_room(&request, nodes, 3), 5);
    struct map map = map_one(nodes, 3, 5, request);
    static const char *const wanted[] = {"0", "3", "GPU-a", "0", "0"};
    static const char *const near[] = {"4,12", "0,8", "5,13", "4,12", "5,13"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(map.ranks[i].gpu, wanted[i]);
        assert_string_equal(map.ranks[i].cpus, near[i]);
        assert_int_equal(map.ranks[i].node, i < 3 ? 0 : 2);
    }
    map_release(&map);
    request.per = 2;
    assert_int_equal(map_room(&request, nodes, 3), 8);
    map = map_one(nodes, 3, 4, request);
    assert_string_equal(map.ranks[1].gpu, "0");
    assert_string_equal(map.ranks[2].gpu, "3");
    map_release(&map);
    request.by = MAP_BY_SLOT;
    request.per = 0;
    map = map_one(nodes, 3, 2, request);
    assert_null(map.ranks[0].gpu);
    map_release(&map);
    int ranks = 1;
    request = (struct map_request){.by = MAP_BY_GPU, .app_ranks = &ranks, .app_count = 1};
    assert_int_equal(map_compute(&request, &nodes[1], 1, &map), NCCLX_ERR_ARG);
    assert_non_null(strstr(base_error_detail(), "by GPU: there is none on n"));
}

/* "id/numa", separated by blanks. */
static void check_gpus(struct map_gpu *gpus, int count, const char *wanted)
{
    char text[256] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s/%d", i ? " " : "", gpus[i].id, gpus[i].numa);
    }
    assert_string_equal(text, wanted);
    assert_int_equal(gpus != NULL, count > 0);
    base_free(AREA_LAUNCHER, gpus);
}

/* CUDA_VISIBLE_DEVICES on a node with three GPUs near NUMA nodes 0, 1 and 1, and on one where none are seen. */
static void test_lists_of_gpus(void **state)
{
    (void)state;
    static const int numa[] = {0, 1, 1};
    static const struct {
        const char *list;
        int found;
        const char *wanted;
    } lists[] = {
        {"0,1,2", 3, "0/0 1/1 2/1"},
        {"2,0", 3, "2/1 0/0"},
        {" 2 , 0 ", 3, "2/1 0/0"},
        {"", 3, ""},
        {"-1", 3, ""},
        {"1,-1,2", 3, "1/1"},
        {"1,3,2", 3, "1/1"},
        {"1,x", 3, "1/1"},
        {"1,,2", 3, "1/1"},
        {"99999999999999999999", 3, ""},
        {"GPU-12ab,MIG-34cd", 3, "GPU-12ab/-1 MIG-34cd/-1"},
        {"GPU-", 3, ""},
        {"5,7", 0, "5/-1 7/-1"},
        {"none", 0, ""},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int count;
        struct map_gpu *gpus = gpus_parse(lists[i].list, numa, lists[i].found, &count);
        check_gpus(gpus, count, lists[i].wanted);
    }
    struct map_gpu found[] = {{"4", 1}};
    check_gpus(gpus_make(found, 1, 3, 2), 3, "4/1 1/0 2/1");
    check_gpus(gpus_make(NULL, 0, 2, 0), 2, "0/-1 1/-1");
    check_gpus(gpus_make(found, 1, 0, 2), 0, "");
}

static void test_gpus_in_a_message(void **state)
{
    (void)state;
    static const struct map_gpu gpus[] = {{"0", -1}, {"GPU-x", 3}};
    struct frame_writer writer;
    struct frame frame;
    struct frame_reader reader;
    int count;
    frame_begin(&writer, 1);
    message_put_gpus(&writer, gpus, 2);
    message_put_gpus(&writer, NULL, 0);
    assert_int_equal(frame_finish(&writer), NCCLX_SUCCESS);
    assert_int_equal(frame_parse(writer.data, writer.used, &frame), NCCLX_SUCCESS);
    frame_read(&reader, &frame);
    struct map_gpu *back = message_get_gpus(&reader, &count);
    check_gpus(back, count, "0/-1 GPU-x/3");
    assert_null(message_get_gpus(&reader, &count));
    assert_true(frame_read_all(&reader));
    for (size_t cut = 0; cut < frame.bytes - 4; cut++) { /* shortened, it is refused */
        struct frame shorter = frame;
        shorter.bytes = cut;
        frame_read(&reader, &shorter);
        assert_null(message_get_gpus(&reader, &count));
        assert_false(frame_read_all(&reader));
    }
    frame_release(&writer);
}

/* 100,000 ranks on nodes of two kinds: lists of cpus are made once a kind. */
static void test_many(void **state)
{
    (void)state;
    enum { NODES = 12288 };
    struct map_cpu large[16], small[4];
    struct map_node *nodes = calloc(NODES, sizeof *nodes);
    assert_non_null(nodes);
    for (int i = 0; i < NODES; i++) nodes[i] = i % 3 ? two_packages(large, 4) : two_packages(small, 1);
    struct map_request request = {
        .by = MAP_BY_NODE, .bind = MAP_BIND_OBJECT, .bind_level = MAP_CORE, .oversubscribe = true};
    struct map map = map_one(nodes, NODES, 100000, request);
    long ranks = 0;
    for (int i = 0; i < NODES; i++) {
        ranks += map.local_size[i];
        assert_in_range(map.local_size[i], i % 3 ? 8 : 2, i % 3 ? 16 : 4);
    }
    assert_int_equal(ranks, 100000);
    assert_int_equal(map.list_count, 8 + 2);
    map_release(&map);
    free(nodes);
}

static void test_names(void **state)
{
    (void)state;
    for (int level = 0; level < MAP_LEVELS; level++)
        assert_int_equal(map_level_find(map_level_name((enum map_level)level)), level);
    assert_int_equal(map_level_find("socket"), MAP_PACKAGE);
    assert_int_equal(map_level_find("board"), -1);
    assert_null(map_level_name(MAP_LEVELS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill_slots),
        cmocka_unit_test(test_round_the_nodes),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_bind_core),
        cmocka_unit_test(test_bind_thread),
        cmocka_unit_test(test_bind_package),
        cmocka_unit_test(test_bind_default),
        cmocka_unit_test(test_more_ranks_than_parts),
        cmocka_unit_test(test_per),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_lists_of_gpus),
        cmocka_unit_test(test_gpus_in_a_message),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_names),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
