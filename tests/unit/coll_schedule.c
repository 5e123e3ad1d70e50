/* coll_schedule.c - every algorithm, for every number of ranks, root and count, over a network that delivers in
 * random order, against a serial reference with canaries around all buffers. */
#include "coll/blocks.h"
#include "tests/sim/coll_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- A host that keeps events in a bag and draws them by chance ------------------------------------------------ */

static struct bag {
    struct coll_world_event *events;
    size_t used, room;
    uint64_t state;
    char failure[300];
} bag;

static uint64_t draw(void *arg, uint64_t below)
{
    (void)arg;
    bag.state = bag.state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (bag.state >> 33) % below;
}

static void later(void *arg, struct coll_world_event event)
{
    (void)arg;
    if (bag.used == bag.room) {
        bag.room = bag.room ? 2 * bag.room : 64;
        bag.events = realloc(bag.events, bag.room * sizeof *bag.events);
        assert_non_null(bag.events);
    }
    bag.events[bag.used++] = event;
}

static void failed(void *arg, const char *text)
{
    (void)arg;
    if (!bag.failure[0]) snprintf(bag.failure, sizeof bag.failure, "%s", text);
}

static void run(int size, const struct coll_world_case *cases, int count, uint64_t seed)
{
    static const struct coll_world_host host = {later, draw, failed, NULL};
    bag.used = 0;
    bag.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    bag.failure[0] = 0;
    struct coll_world *world = coll_world_create(size, cases, count, &host);
    while (bag.used) {
        size_t index = (size_t)draw(NULL, bag.used);
        struct coll_world_event event = bag.events[index];
        bag.events[index] = bag.events[--bag.used];
        coll_world_happen(world, event);
    }
    coll_world_check(world);
    coll_world_destroy(world);
    if (bag.failure[0]) fail_msg("%s (seed %llu)", bag.failure, (unsigned long long)seed);
}

/* ---- Everything against everything ----------------------------------------------------------------------------- */

static bool has_root(enum coll_name name)
{
    return name == COLL_BCAST || name == COLL_REDUCE || name == COLL_GATHER || name == COLL_GATHERV || name == COLL_SCATTER ||
           name == COLL_SCATTERV;
}

/* All kinds of operands of one algorithm at one size, root and count. */
static void run_kinds(int size, struct coll_world_case c, uint64_t seed)
{
    for (int in_place = 0; in_place < (c.name == COLL_BARRIER || c.name == COLL_BCAST ? 1 : 2); in_place++) {
        c.in_place = in_place;
        run(size, &c, 1, seed);
        if (!coll_data_reduces(c.name)) continue;
        struct coll_world_case kind = c;
        kind.single = true;
        run(size, &kind, 1, seed);
        kind = c;
        kind.average = true;
        if (c.name != COLL_SCAN && c.name != COLL_EXSCAN) run(size, &kind, 1, seed);
        kind = c;
        kind.ordered = true;
        if (c.algorithm->needs != COMMUTATIVE) run(size, &kind, 1, seed);
    }
}

static void test_collective(enum coll_name name)
{
    static const size_t counts[] = {0, 1, 7, 100};
    for (const struct coll_algorithm *algorithm = coll_algorithms(name); algorithm->name; algorithm++) {
        if (!algorithm->build) continue; /* not a schedule */
        for (int size = 2; size <= 32; size = size == 17 ? 32 : size + 1) {
            for (int root = 0; root < (has_root(name) ? size : 1); root++) {
                for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                    struct coll_world_case c = {.name = name, .algorithm = algorithm, .root = root, .count = counts[i], .starts = 2};
                    if (name == COLL_BARRIER && i) continue;
                    run_kinds(size, c, (uint64_t)size * 1000 + (uint64_t)root * 10 + i);
                }
            }
        }
    }
}

static void test_barrier(void **state)
{
    (void)state;
    test_collective(COLL_BARRIER);
}

static void test_bcast(void **state)
{
    (void)state;
    test_collective(COLL_BCAST);
}

static void test_reduce(void **state)
{
    (void)state;
    test_collective(COLL_REDUCE);
}

static void test_allreduce(void **state)
{
    (void)state;
    test_collective(COLL_ALLREDUCE);
}

static void test_allgather(void **state)
{
    (void)state;
    test_collective(COLL_ALLGATHER);
}

static void test_alltoall(void **state)
{
    (void)state;
    test_collective(COLL_ALLTOALL);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    test_collective(COLL_REDUCE_SCATTER);
}

static void test_reduce_scatter_block(void **state)
{
    (void)state;
    test_collective(COLL_REDUCE_SCATTER_BLOCK);
}

static void test_allgatherv(void **state)
{
    (void)state;
    test_collective(COLL_ALLGATHERV);
}

static void test_gather(void **state)
{
    (void)state;
    test_collective(COLL_GATHER);
}

static void test_gatherv(void **state)
{
    (void)state;
    test_collective(COLL_GATHERV);
}

static void test_scatter(void **state)
{
    (void)state;
    test_collective(COLL_SCATTER);
}

static void test_scatterv(void **state)
{
    (void)state;
    test_collective(COLL_SCATTERV);
}

static void test_alltoallv(void **state)
{
    (void)state;
    test_collective(COLL_ALLTOALLV);
}

static void test_scan(void **state)
{
    (void)state;
    test_collective(COLL_SCAN);
}

static void test_exscan(void **state)
{
    (void)state;
    test_collective(COLL_EXSCAN);
}

/* Counts of every kind, most of them 0. */
static void test_random_alltoallv(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        int size = 2 + (int)(seed % 12);
        for (const struct coll_algorithm *algorithm = coll_algorithms(COLL_ALLTOALLV); algorithm->name; algorithm++)
            if (algorithm->build)
                run(size, &(struct coll_world_case){.name = COLL_ALLTOALLV, .algorithm = algorithm, .count = 1 + seed % 40,
                                                    .seed = seed * 7919, .in_place = seed / 12 % 2, .starts = 1}, 1, seed);
    }
}

/* Around the sizes where an algorithm cuts a buffer into another number of pieces, and with counts that do not
 * divide. */
static void test_long_vectors(void **state)
{
    (void)state;
    static const size_t counts[] = {16383, 16384, 16385, 65537};
    static const enum coll_name names[] = {COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE, COLL_SCAN, COLL_EXSCAN};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (const struct coll_algorithm *algorithm = coll_algorithms(names[n]); algorithm->name; algorithm++)
            for (size_t i = 0; i < 4 && algorithm->build; i++)
                for (int size = 2; size <= 5; size++)
                    run(size, &(struct coll_world_case){.name = names[n], .algorithm = algorithm, .root = size / 2,
                                                        .count = counts[i], .starts = 1}, 1,
                        counts[i] + (uint64_t)size);
}

/* ---- Choice ---------------------------------------------------------------------------------------------------- */

static struct coll_problem problem(enum coll_name name, int size, size_t bytes, bool commutative)
{
    return (struct coll_problem){.name = name, .size = size, .count = bytes, .element_bytes = 1, .bytes = bytes,
                                 .commutative = commutative};
}

static void test_every_case_has_an_algorithm(void **state)
{
    (void)state;
    struct coll_choice choice = {0};
    for (int name = 0; name < COLL_NAMES; name++) {
        for (int size = 2; size < 100; size++) {
            for (size_t bytes = 0; bytes < (size_t)1 << 40; bytes = bytes * 2 + 1) {
                for (int commutative = 0; commutative < 2; commutative++) {
                    struct coll_problem p = problem((enum coll_name)name, size, bytes, commutative);
                    const struct coll_algorithm *algorithm = coll_select(&choice, &p);
                    assert_non_null(algorithm->build);
                    assert_true(coll_can(algorithm, &p));
                }
            }
        }
    }
}

static void test_forced(void **state)
{
    (void)state;
    struct ncclx_rt rt;
    struct coll_choice choice;
    char *environment[] = {"NCCLX_COLL_ALLREDUCE=ring", "NCCLX_COLL_BARRIER=tree", NULL};
    assert_int_equal(base_rt_init(&rt, environment), NCCLX_SUCCESS);
    assert_int_equal(coll_choice_read(&choice, &rt.config), NCCLX_SUCCESS);
    struct coll_problem p = problem(COLL_ALLREDUCE, 4, 8, true);
    assert_string_equal(coll_select(&choice, &p)->name, "ring");
    p.commutative = false; /* which ring cannot do */
    assert_string_equal(coll_select(&choice, &p)->name, "recursive_doubling");
    p = problem(COLL_BARRIER, 4, 0, true);
    assert_string_equal(coll_select(&choice, &p)->name, "tree");
    char *text = coll_explain(&rt.config, 4);
    assert_non_null(text);
    assert_non_null(strstr(text, "asked for by NCCLX_COLL_ALLREDUCE"));
    assert_non_null(strstr(text, "alltoall"));
    base_free(AREA_COLL, text);
    base_rt_release(&rt);
}

/* The configuration table offers exactly the algorithms that there are. */
static void test_configuration_names_them_all(void **state)
{
    (void)state;
    for (int name = 0; name < COLL_NAMES; name++) {
        const struct base_config_entry *entry = &base_config_table()[CONFIG_COLL_BARRIER + name];
        char choices[200];
        size_t offered = 0, known = 1; /* auto */
        assert_int_equal(entry->type, CONFIG_ENUM);
        snprintf(choices, sizeof choices, "|%s|", entry->choices);
        for (const char *c = choices + 1; *c; c++) offered += *c == '|';
        for (const struct coll_algorithm *algorithm = coll_algorithms((enum coll_name)name); algorithm->name; algorithm++) {
            char wanted[64];
            bool repeated = false;
            for (const struct coll_algorithm *earlier = coll_algorithms((enum coll_name)name); earlier != algorithm; earlier++)
                if (!strcmp(earlier->name, algorithm->name)) repeated = true;
            if (!repeated) known++;
            snprintf(wanted, sizeof wanted, "|%s|", algorithm->name);
            if (!strstr(choices, wanted)) fail_msg("%s does not offer %s", entry->name, algorithm->name);
        }
        if (offered != known) fail_msg("%s offers %zu values, there are %zu", entry->name, offered, known);
    }
}

static void test_split(void **state)
{
    (void)state;
    size_t huge = SIZE_MAX - 3; /* no product of count and index may overflow */
    for (size_t parts = 1; parts < 70; parts++) {
        assert_int_equal(split_begin(huge, parts, 0), 0);
        assert_int_equal(split_begin(huge, parts, parts), huge);
        for (size_t i = 0; i < parts; i++) {
            size_t part = split_begin(huge, parts, i + 1) - split_begin(huge, parts, i);
            assert_true(part == huge / parts || part == huge / parts + 1);
        }
    }
}

/* Beyond 2^32 elements, and with displacements left out. */
static void test_far_blocks(void **state)
{
    (void)state;
    size_t counts[] = {(size_t)3 << 31, 5, (size_t)1 << 33}, displs[] = {(size_t)1 << 34, 0, 7}, *memory;
    struct coll_problem p = {.size = 3, .element_bytes = 16, .send = {counts, displs}, .recv = {counts, NULL}};
    struct coll_blocks packed = {counts, NULL}, placed = {counts, displs};
    assert_int_equal(blocks_keep(&p, &memory), NCCLX_SUCCESS);
    assert_int_equal(problem_send_block(&p, 0).offset, (size_t)1 << 38);
    assert_int_equal(problem_send_block(&p, 0).bytes, (size_t)3 << 35);
    assert_int_equal(problem_recv_block(&p, 1).offset, (size_t)3 << 35);
    assert_int_equal(problem_recv_block(&p, 2).offset, ((size_t)3 << 35) + 80);
    assert_int_equal(problem_recv_block(&p, 2).bytes, (size_t)1 << 37);
    assert_int_equal(blocks_total(&p.recv, 3), ((size_t)3 << 31) + 5 + ((size_t)1 << 33));
    assert_true(blocks_same(&p.recv, &packed, 3) && blocks_same(&p.send, &placed, 3));
    assert_false(blocks_same(&p.recv, &placed, 3) || blocks_same(&p.send, &packed, 3));
    counts[1]++;
    assert_false(blocks_same(&p.recv, &packed, 3));
    assert_false(blocks_same(&p.recv, &(struct coll_blocks){NULL, NULL}, 3));
    base_free(AREA_COLL, memory);
    p = (struct coll_problem){.size = 3, .bytes = (size_t)1 << 33};
    assert_int_equal(problem_recv_block(&p, 2).offset, (size_t)1 << 34);
}

static void test_tags(void **state)
{
    (void)state;
    assert_int_not_equal(executor_tag(0, 1), executor_tag(1, 0));
    assert_true(executor_tag(UINT32_MAX, SCHEDULE_ROUNDS - 1) >= 0);
    assert_int_not_equal(executor_tag(0, 0), executor_tag(EXECUTOR_OVERLAP, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_bcast),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_reduce_scatter_block),
        cmocka_unit_test(test_allgatherv),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gatherv),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatterv),
        cmocka_unit_test(test_alltoallv),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_exscan),
        cmocka_unit_test(test_random_alltoallv),
        cmocka_unit_test(test_long_vectors),
        cmocka_unit_test(test_every_case_has_an_algorithm),
        cmocka_unit_test(test_forced),
        cmocka_unit_test(test_configuration_names_them_all),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_far_blocks),
        cmocka_unit_test(test_tags),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
