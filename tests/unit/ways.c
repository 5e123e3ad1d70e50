/* The way of a large put that is alone: the fastest is found, and changes are followed; what others disturbed tells nothing. */
#include "pml/lanes/ways.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
/* after the headers it needs */
#include <cmocka.h>

struct machine {
    struct lanes_ways ways;
    uint64_t ns[WAYS]; /* for 64 KiB */
    bool spares;
    uint64_t now;
    unsigned by[WAYS];
};

static void put(struct machine *machine, uint64_t bytes, bool disturbed)
{
    int one = 0, other = 0;
    enum lanes_way way = ways_begin(&machine->ways, &one, bytes, machine->spares, machine->now);
    uint64_t took = machine->ns[way] * (bytes / WAYS_LEAST);
    machine->by[way]++;
    if (disturbed) ways_disturb(&machine->ways);
    ways_end(&machine->ways, &other, machine->now + 1); /* of an earlier one */
    machine->now += disturbed ? 100 * took * (1 + way % 2) : took;
    ways_end(&machine->ways, &one, machine->now);
}

static enum lanes_way usual(struct machine *machine, uint64_t bytes, bool disturbed)
{
    for (int i = 0; i < 100; i++) put(machine, bytes, disturbed);
    for (int way = 0; way < WAYS; way++) machine->by[way] = 0;
    for (int i = 0; i < 1000; i++) put(machine, bytes, disturbed);
    for (int way = 0; way < WAYS; way++)
        if (machine->by[way] > 800) return (enum lanes_way)way;
    return WAYS;
}

static void the_fastest(void **state)
{
    (void)state;
    for (int best = 0; best < WAYS; best++) {
        struct machine machine = {.ns = {1000, 1000, 1000}, .spares = true};
        machine.ns[best] = 700;
        assert_int_equal(usual(&machine, 1 << 20, false), best);
        machine.ns[best] = 1500; /* and now it is not */
        machine.ns[(best + 1) % WAYS] = 600;
        assert_int_equal(usual(&machine, 1 << 20, false), (best + 1) % WAYS);
    }
}

static void classes_of_sizes(void **state)
{
    (void)state;
    struct machine machine = {.ns = {1000, 700, 1000}, .spares = true};
    assert_int_equal(usual(&machine, 1 << 20, false), WAY_COPIED);
    machine.ns[WAY_SPREAD] = 500;
    assert_int_equal(usual(&machine, 2 << 20, false), WAY_SPREAD);
    assert_int_equal(usual(&machine, UINT64_C(1) << 40, false), WAY_SPREAD);
    machine.ns[WAY_SPREAD] = 1000;
    put(&machine, (1 << 20) + 1, false); /* the first class is as it was */
    assert_int_equal(choice_best(&machine.ways.choice[4]), WAY_COPIED);
}

/* Where all is copied, nothing is tried that would be the same. */
static void without_pages(void **state)
{
    (void)state;
    struct machine machine = {.ns = {1000, 700, 1}};
    assert_int_equal(usual(&machine, 1 << 20, false), WAY_COPIED);
    assert_int_equal(machine.by[WAY_WHOLE], 0);
    machine.ns[WAY_COPIED] = 1300;
    assert_int_equal(usual(&machine, 1 << 20, false), WAY_SPREAD);
}

static void disturbed_ones_tell_nothing(void **state)
{
    (void)state;
    struct machine machine = {.ns = {1000, 700, 1000}, .spares = true};
    for (int i = 0; i < 1000; i++) put(&machine, 1 << 20, true);
    assert_false(choice_knows(&machine.ways.choice[4]));
    assert_int_equal(usual(&machine, 1 << 20, false), WAY_COPIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest),
        cmocka_unit_test(classes_of_sizes),
        cmocka_unit_test(without_pages),
        cmocka_unit_test(disturbed_ones_tell_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
