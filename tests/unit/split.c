/* The split core against a brute-force model, at every rank, with random colors and keys; and at 100,000 ranks. */
#include "runtime/split_core.h"
#include "runtime/ncclx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* after the headers it needs */
#include <cmocka.h>

#define MOST 24
#define ROUNDS 1500

static uint64_t state = 7;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static void draw_entries(struct split_entry *entries, int count)
{
    static const int32_t extreme[] = {INT32_MIN, -1, 0, INT32_MAX};
    unsigned colors = 1 + draw(4), keys = 1 + draw(6);
    for (int i = 0; i < count; i++) {
        int32_t color = (int32_t)draw(colors + 1);
        entries[i] = (struct split_entry){.context = (uint64_t)i * 4 + 1000, .key = (int32_t)draw(keys) - 2};
        entries[i].color = color == (int32_t)colors ? NCCLX_UNDEFINED : color;
        if (draw(8) == 0) entries[i].key = extreme[draw(4)];
    }
}

/* How many members of i's color come before it. */
static int model_rank(const struct split_entry *entries, int count, int i)
{
    int before = 0;
    for (int j = 0; j < count; j++) {
        if (entries[j].color != entries[i].color) continue;
        before += entries[j].key < entries[i].key || (entries[j].key == entries[i].key && j < i);
    }
    return before;
}

static void check_rank(const struct split_entry *entries, int count, int rank)
{
    int members[MOST], size = 0;
    struct split_result result;
    split_core(entries, count, rank, members, &result);
    assert_int_equal(result.error, NCCLX_SUCCESS);
    if (entries[rank].color == NCCLX_UNDEFINED) {
        assert_int_equal(result.size, 0);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (entries[i].color != entries[rank].color) continue;
        assert_int_equal(members[model_rank(entries, count, i)], i);
        size++;
    }
    assert_int_equal(result.size, size);
    assert_int_equal(result.rank, model_rank(entries, count, rank));
    assert_int_equal(result.context, entries[members[0]].context);
}

static void agrees_with_the_model(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct split_entry entries[MOST];
        int count = 1 + (int)draw(MOST);
        draw_entries(entries, count);
        for (int rank = 0; rank < count; rank++) check_rank(entries, count, rank);
    }
}

static void one_failure_fails_everybody(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct split_entry entries[MOST];
        int members[MOST], count = 2 + (int)draw(MOST - 1), failed = (int)draw((unsigned)count);
        struct split_result result;
        draw_entries(entries, count);
        entries[failed].error = NCCLX_ERR_NO_MEM;
        entries[count - 1].error = NCCLX_ERR_ARG;
        for (int rank = 0; rank < count; rank++) {
            split_core(entries, count, rank, members, &result);
            assert_int_equal(result.size, 0);
            assert_int_equal(result.failed, failed);
            assert_int_equal(result.error, failed == count - 1 ? NCCLX_ERR_ARG : NCCLX_ERR_NO_MEM);
        }
    }
}

static void large_and_reversed(void **unused)
{
    (void)unused;
    enum { COUNT = 100000 };
    struct split_entry *entries = calloc(COUNT, sizeof *entries);
    int *members = malloc(COUNT * sizeof *members);
    struct split_result result;
    for (int i = 0; i < COUNT; i++) entries[i] = (struct split_entry){.context = (uint64_t)i, .color = i & 1, .key = -i};
    split_core(entries, COUNT, 1, members, &result);
    assert_int_equal(result.size, COUNT / 2);
    assert_int_equal(result.rank, COUNT / 2 - 1);
    assert_int_equal(result.context, COUNT - 1);
    for (int i = 0; i < result.size; i++) assert_int_equal(members[i], COUNT - 1 - 2 * i);
    free(entries);
    free(members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_model),
        cmocka_unit_test(one_failure_fails_everybody),
        cmocka_unit_test(large_and_reversed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
