/* The choice between two ways: it finds the faster one, stays with it through noise, follows changes, and what its trials cost is
 * bounded. */
#include "runtime/base/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after the headers it needs */
#include <cmocka.h>

static uint64_t state = 7;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

struct world {
    struct choice choice;
    uint64_t true_cost[2];
    unsigned noise;       /* per cent that a call may take longer */
    unsigned interrupted; /* one call in so many takes a hundred times as long; 0: none */
    unsigned seen_every;  /* only one call in so many is timed, but in trials all */
    uint64_t spent, calls, lost;
};

static void run(struct world *world, unsigned calls)
{
    uint64_t least = world->true_cost[0] < world->true_cost[1] ? world->true_cost[0] : world->true_cost[1];
    for (unsigned i = 0; i < calls; i++) {
        unsigned way = choice_next(&world->choice);
        uint64_t cost = world->true_cost[way];
        world->spent += least;
        world->lost += cost - least;
        world->calls++;
        cost += cost * draw(world->noise + 1) / 100;
        if (world->interrupted && draw(world->interrupted) == 0) cost *= 100;
        bool trial = way != choice_best(&world->choice);
        if (trial || !world->seen_every || world->calls % world->seen_every == 0) choice_learn(&world->choice, way, cost);
    }
}

static unsigned faster(const struct world *world)
{
    return world->true_cost[1] < world->true_cost[0];
}

static void finds_the_faster(void **unused)
{
    (void)unused;
    static const uint64_t pairs[][2] = {{1000, 1200}, {1200, 1000}, {1000, 8000}, {8000, 1000}, {40, 50}, {50, 40}, {1000, 100000}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (unsigned first = 0; first < 2; first++) {
            for (unsigned every = 0; every <= 8; every += 8) {
                struct world world = {.true_cost = {pairs[i][0], pairs[i][1]}, .noise = 10, .interrupted = 50, .seen_every = every};
                choice_init(&world.choice, 2, first);
                run(&world, 100);
                assert_int_equal(choice_best(&world.choice), faster(&world));
                world.spent = world.lost = 0;
                run(&world, 20000);
                assert_int_equal(choice_best(&world.choice), faster(&world));
                assert_true(world.lost <= world.spent / CHOICE_LOSS + 2 * CHOICE_TRIAL * pairs[i][!faster(&world)]);
            }
        }
    }
}

/* Whichever is the fastest, and a third that is much slower than both does not keep the second from being tried. */
static void three(void **unused)
{
    (void)unused;
    static const uint64_t costs[3] = {1000, 1500, 20000};
    for (unsigned order = 0; order < 6; order++) {
        unsigned fast = order % 3, middle = (fast + 1 + order / 3) % 3, slow = 3 - fast - middle;
        struct choice choice;
        uint64_t cost[3];
        cost[fast] = costs[0], cost[middle] = costs[1], cost[slow] = costs[2];
        choice_init(&choice, 3, order / 2);
        for (unsigned i = 0; i < 3000; i++) {
            unsigned way = choice_next(&choice);
            choice_learn(&choice, way, cost[way] + draw(50));
        }
        assert_int_equal(choice_best(&choice), fast);
        cost[middle] = 500;
        unsigned by_slow = 0;
        for (unsigned i = 0; i < 2 * CHOICE_TRIAL * CHOICE_LOSS; i++) {
            unsigned way = choice_next(&choice);
            by_slow += way == slow;
            choice_learn(&choice, way, cost[way] + draw(50));
        }
        assert_int_equal(choice_best(&choice), middle);
        assert_true(by_slow <= 2 * CHOICE_TRIAL);
    }
}

/* Whether what was in use becomes slower, or what was not becomes faster. */
static void follows_changes(void **unused)
{
    (void)unused;
    struct world world = {.true_cost = {1000, 1500}, .noise = 5, .interrupted = 50};
    choice_init(&world.choice, 2, 0);
    run(&world, 2000);
    assert_int_equal(choice_best(&world.choice), 0);
    world.true_cost[0] = 3000;
    run(&world, 40);
    assert_int_equal(choice_best(&world.choice), 1);
    world.true_cost[0] = 1000;
    run(&world, 3000 / 1500 * CHOICE_TRIAL * CHOICE_LOSS + CHOICE_PAUSE);
    assert_int_equal(choice_best(&world.choice), 0);
}

/* Everything becomes slower, and after that everything faster: the order stays, so nothing should change for long. */
static void stays_when_all_change(void **unused)
{
    (void)unused;
    struct world world = {.true_cost = {1000, 1300}, .noise = 5};
    choice_init(&world.choice, 2, 1);
    run(&world, 1000);
    for (int i = 0; i < 20; i++) {
        world.true_cost[0] = i % 2 ? 1000 : 4000;
        world.true_cost[1] = i % 2 ? 1300 : 5200;
        world.spent = world.lost = 0;
        run(&world, 1000);
        assert_int_equal(choice_best(&world.choice), 0);
        assert_true(world.lost < world.spent / 20);
    }
}

/* Two ways that are the same: never more trials than the shortest pause allows. */
static void alike(void **unused)
{
    (void)unused;
    struct world world = {.true_cost = {1000, 1000}, .noise = 30, .interrupted = 20};
    choice_init(&world.choice, 2, 0);
    unsigned trials = 0;
    for (int i = 0; i < 100000; i++) {
        unsigned before = choice_best(&world.choice), way = choice_next(&world.choice);
        if (way != before) trials++;
        choice_learn(&world.choice, way, 1000 + draw(300));
    }
    assert_true(trials < 100000 * CHOICE_TRIAL / CHOICE_PAUSE * 3 / 2);
}

/* No sample of the other way ever comes, as when its calls all fail: it is tried, but no more often for that. */
static void silence(void **unused)
{
    (void)unused;
    struct choice choice;
    choice_init(&choice, 2, 0);
    unsigned tried = 0;
    for (unsigned i = 0; i < 10000; i++) {
        unsigned way = choice_next(&choice);
        tried += way;
        if (!way) choice_learn(&choice, way, 1000 + i);
    }
    assert_int_equal(choice_best(&choice), 0);
    assert_true(tried > 0 && tried <= 10000 * CHOICE_TRIAL / CHOICE_PAUSE + CHOICE_TRIAL);
}

static void extremes(void **unused)
{
    (void)unused;
    struct choice choice = {0};
    assert_false(choice_knows(&choice));
    choice_init(&choice, 2, 0);
    assert_false(choice_knows(&choice));
    for (unsigned i = 0; i < 1000; i++) {
        unsigned way = choice_next(&choice);
        choice_learn(&choice, way, way ? 0 : UINT64_MAX);
    }
    assert_int_equal(choice_best(&choice), 1);
    assert_true(choice_knows(&choice));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_faster), cmocka_unit_test(three), cmocka_unit_test(follows_changes), cmocka_unit_test(stays_when_all_change),
        cmocka_unit_test(alike),            cmocka_unit_test(silence),         cmocka_unit_test(extremes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
