/* Groups against a model that searches lists, and ranges, bounds and large groups. */
#include "runtime/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define WORLD 12
#define SELF 5
#define ROUNDS 2000

static uint64_t state = 1;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

/* A random ordered subset of 0 ... WORLD - 1. */
static struct ncclx_group *random_group(void)
{
    int world[WORLD], size = (int)draw(WORLD + 1);
    for (int i = 0; i < WORLD; i++) world[i] = i;
    for (int i = WORLD - 1; i > 0; i--) {
        int j = (int)draw((unsigned)i + 1), kept = world[i];
        world[i] = world[j];
        world[j] = kept;
    }
    struct ncclx_group *group = group_make(world, size, SELF);
    assert_non_null(group);
    return group;
}

static int find(const int *list, int size, int wanted)
{
    for (int i = 0; i < size; i++)
        if (list[i] == wanted) return i;
    return -1;
}

static void expect(struct ncclx_group *group, const int *world, int size)
{
    int self = find(world, size, SELF);
    assert_int_equal(group->size, size);
    for (int i = 0; i < size; i++) assert_int_equal(group->world[i], world[i]);
    assert_int_equal(group->rank, self < 0 ? NCCLX_UNDEFINED : self);
    base_free(AREA_RUNTIME, group);
}

/* Appends the members of `from` that are in `other`, or are not. */
static int model_filter(int *out, int size, const struct ncclx_group *from, const struct ncclx_group *other, bool wanted)
{
    for (int i = 0; i < from->size; i++)
        if ((find(other->world, other->size, from->world[i]) >= 0) == wanted) out[size++] = from->world[i];
    return size;
}

static void set_operations_agree_with_the_model(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct ncclx_group *a = random_group(), *b = random_group(), *out;
        int model[2 * WORLD], size;
        assert_int_equal(group_union(a, b, SELF, &out), NCCLX_SUCCESS);
        memcpy(model, a->world, (size_t)a->size * sizeof(int));
        size = model_filter(model, a->size, b, a, false);
        expect(out, model, size);
        assert_int_equal(group_intersection(a, b, SELF, &out), NCCLX_SUCCESS);
        expect(out, model, model_filter(model, 0, a, b, true));
        assert_int_equal(group_difference(a, b, SELF, &out), NCCLX_SUCCESS);
        expect(out, model, model_filter(model, 0, a, b, false));
        base_free(AREA_RUNTIME, a);
        base_free(AREA_RUNTIME, b);
    }
}

static void choosing_agrees_with_the_model(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct ncclx_group *all = random_group(), *ranks = random_group(), *out;
        int model[WORLD], size = 0, valid = 1;
        for (int i = 0; i < ranks->size; i++) valid &= ranks->world[i] < all->size;
        int error = group_incl(all, (size_t)ranks->size, ranks->world, SELF, &out);
        assert_int_equal(error, valid ? NCCLX_SUCCESS : NCCLX_ERR_RANK);
        for (int i = 0; valid && i < ranks->size; i++) model[size++] = all->world[ranks->world[i]];
        if (valid) expect(out, model, size);
        error = group_excl(all, (size_t)ranks->size, ranks->world, SELF, &out);
        assert_int_equal(error, valid ? NCCLX_SUCCESS : NCCLX_ERR_RANK);
        size = 0;
        for (int i = 0; i < all->size; i++)
            if (find(ranks->world, ranks->size, i) < 0) model[size++] = all->world[i];
        if (valid) expect(out, model, size);
        base_free(AREA_RUNTIME, all);
        base_free(AREA_RUNTIME, ranks);
    }
}

static void comparing_and_translating_agree_with_the_model(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct ncclx_group *a = random_group(), *b = round % 3 ? random_group() : group_make(a->world, a->size, SELF);
        int result, common = 0, same = a->size == b->size, ranks[WORLD + 1], out[WORLD + 1];
        for (int i = 0; i < a->size; i++) {
            common += find(b->world, b->size, a->world[i]) >= 0;
            same = same && a->world[i] == b->world[i];
            ranks[i] = a->size - 1 - i;
        }
        ranks[a->size] = NCCLX_PROC_NULL;
        assert_int_equal(group_compare(a, b, &result), NCCLX_SUCCESS);
        bool similar = a->size == b->size && common == a->size;
        assert_int_equal(result, same ? NCCLX_IDENT : similar ? NCCLX_SIMILAR : NCCLX_UNEQUAL);
        assert_int_equal(group_translate(a, (size_t)a->size + 1, ranks, b, out), NCCLX_SUCCESS);
        for (int i = 0; i < a->size; i++) {
            int at = find(b->world, b->size, a->world[ranks[i]]);
            assert_int_equal(out[i], at < 0 ? NCCLX_UNDEFINED : at);
        }
        assert_int_equal(out[a->size], NCCLX_PROC_NULL);
        ranks[0] = a->size;
        assert_int_equal(group_translate(a, 1, ranks, b, out), NCCLX_ERR_RANK);
        base_free(AREA_RUNTIME, a);
        base_free(AREA_RUNTIME, b);
    }
}

static void ranges_expand(void **unused)
{
    (void)unused;
    static const struct {
        int range[3];
        int error, count, ranks[8];
    } cases[] = {
        {{0, 6, 2}, NCCLX_SUCCESS, 4, {0, 2, 4, 6}},
        {{6, 0, -3}, NCCLX_SUCCESS, 3, {6, 3, 0}},
        {{1, 6, 4}, NCCLX_SUCCESS, 2, {1, 5}},
        {{3, 3, 1}, NCCLX_SUCCESS, 1, {3}},
        {{3, 3, -7}, NCCLX_SUCCESS, 1, {3}},
        {{5, 2, 1}, NCCLX_SUCCESS, 0, {0}},
        {{1, 7, 4}, NCCLX_SUCCESS, 2, {1, 5}}, /* the end is never reached */
        {{0, 7, 1}, NCCLX_ERR_RANK, 0, {0}},
        {{7, 0, -1}, NCCLX_ERR_RANK, 0, {0}},
        {{-1, 3, 1}, NCCLX_ERR_RANK, 0, {0}},
        {{3, -1, -1}, NCCLX_ERR_RANK, 0, {0}},
        {{0, 6, 0}, NCCLX_ERR_RANK, 0, {0}},
        {{0, INT32_MAX, INT32_MAX}, NCCLX_ERR_RANK, 0, {0}},
        {{0, INT32_MIN, INT32_MIN}, NCCLX_ERR_RANK, 0, {0}},
    };
    struct ncclx_group *all = group_make(NULL, 7, SELF);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count;
        int *ranks;
        assert_int_equal(group_expand(all, 1, &cases[i].range, &count, &ranks), cases[i].error);
        if (cases[i].error) continue;
        assert_int_equal(count, cases[i].count);
        assert_memory_equal(ranks, cases[i].ranks, count * sizeof(int));
        base_free(AREA_RUNTIME, ranks);
    }
    static const int twice[2][3] = {{0, 6, 1}, {2, 2, 1}};
    size_t count;
    int *ranks;
    assert_int_equal(group_expand(all, 2, twice, &count, &ranks), NCCLX_ERR_RANK);
    base_free(AREA_RUNTIME, all);
}

static void naming_a_rank_twice_is_an_error(void **unused)
{
    (void)unused;
    static const int ranks[] = {1, 2, 1};
    struct ncclx_group *all = group_make(NULL, 4, SELF), *out = NULL;
    assert_int_equal(group_incl(all, 3, ranks, SELF, &out), NCCLX_ERR_RANK);
    assert_int_equal(group_excl(all, 3, ranks, SELF, &out), NCCLX_ERR_RANK);
    assert_null(out);
    base_free(AREA_RUNTIME, all);
}

/* Quadratic algorithms would take minutes here. */
static void large_groups(void **unused)
{
    (void)unused;
    enum { SIZE = 200000 };
    int *reverse = malloc(SIZE * sizeof *reverse), result;
    for (int i = 0; i < SIZE; i++) reverse[i] = SIZE - 1 - i;
    struct ncclx_group *a = group_make(NULL, SIZE, SELF), *b = group_make(reverse, SIZE, SELF), *out;
    assert_int_equal(group_compare(a, b, &result), NCCLX_SUCCESS);
    assert_int_equal(result, NCCLX_SIMILAR);
    assert_int_equal(group_difference(a, b, SELF, &out), NCCLX_SUCCESS);
    assert_int_equal(out->size, 0);
    base_free(AREA_RUNTIME, out);
    assert_int_equal(group_union(a, b, SELF, &out), NCCLX_SUCCESS);
    assert_int_equal(out->size, SIZE);
    base_free(AREA_RUNTIME, out);
    assert_int_equal(group_translate(b, SIZE, reverse, a, reverse), NCCLX_SUCCESS);
    for (int i = 0; i < SIZE; i++) assert_int_equal(reverse[i], i);
    base_free(AREA_RUNTIME, a);
    base_free(AREA_RUNTIME, b);
    free(reverse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_operations_agree_with_the_model),
        cmocka_unit_test(choosing_agrees_with_the_model),
        cmocka_unit_test(comparing_and_translating_agree_with_the_model),
        cmocka_unit_test(ranges_expand),
        cmocka_unit_test(naming_a_rank_twice_is_an_error),
        cmocka_unit_test(large_groups),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
