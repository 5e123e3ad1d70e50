/* The way of messages to a peer, learnt from what both sides measure: against made-up machines. */
#include "pml/shm/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

struct machine {
    struct pace pace;
    struct pace_shared shared;
    uint64_t in_ns, out_ns, single_ns; /* for 64 KiB */
    uint64_t past_ns;                  /* in or out, past the caches */
    unsigned lost_every;               /* the peer does not tell of one message in so many; 0: of all */
    bool refuses;                      /* single copies do not work */
    unsigned by_ring, by_past, by_single;
};

static void send_one(struct machine *machine, size_t bytes, bool answered)
{
    static unsigned count;
    bool mark;
    machine->pace.spoken = answered;
    enum pace_way way = pace_next(&machine->pace, &machine->shared, bytes, &mark);
    unsigned class = pace_class(bytes, PACE_LEAST, PACE_CLASSES);
    bool lost = machine->lost_every && ++count % machine->lost_every == 0;
    if (way != PACE_SINGLE) {
        uint64_t in = way == PACE_RING ? machine->in_ns : machine->past_ns, out = way == PACE_RING ? machine->out_ns : machine->past_ns;
        machine->by_ring += way == PACE_RING;
        machine->by_past += way == PACE_PAST;
        if (mark) pace_here(&machine->pace, way, bytes, in * bytes / 65536);
        if (mark && !lost) pace_tell(&machine->shared, way, class, pace_cost(out * bytes / 65536, bytes));
    } else {
        machine->by_single++;
        uint32_t cost = machine->refuses ? UINT32_MAX : pace_cost(machine->single_ns * bytes / 65536, bytes);
        if (!lost) pace_tell(&machine->shared, way, class, cost);
    }
}

static void send_many(struct machine *machine, size_t bytes, bool answered, unsigned count)
{
    machine->by_ring = machine->by_past = machine->by_single = 0;
    for (unsigned i = 0; i < count; i++) send_one(machine, bytes, answered);
}

static void open_machine(struct machine *machine, uint64_t in_ns, uint64_t out_ns, uint64_t single_ns)
{
    *machine = (struct machine){.in_ns = in_ns, .out_ns = out_ns, .single_ns = single_ns, .past_ns = 30000};
    pace_init(&machine->pace, true);
}

static void classes(void **state)
{
    (void)state;
    assert_int_equal(pace_class(PACE_LEAST + 1, PACE_LEAST, PACE_CLASSES), 0);
    assert_int_equal(pace_class(2 * PACE_LEAST, PACE_LEAST, PACE_CLASSES), 0);
    assert_int_equal(pace_class(2 * PACE_LEAST + 1, PACE_LEAST, PACE_CLASSES), 1);
    assert_int_equal(pace_class(PACE_LEAST << PACE_CLASSES, PACE_LEAST, PACE_CLASSES), PACE_CLASSES - 1);
    assert_int_equal(pace_class(SIZE_MAX / 4, PACE_LEAST, PACE_CLASSES), PACE_CLASSES - 1);
    assert_int_equal(pace_cost(UINT64_C(1) << 40, 4097), 0xffffff);
}

/* Where both ring copies take less than a single one, the ring; where they take more, only in a row. */
static void ways(void **state)
{
    (void)state;
    struct machine machine;
    for (size_t bytes = PACE_SINGLE_LEAST + 1; bytes <= PACE_LEAST << PACE_CLASSES; bytes *= 2) {
        open_machine(&machine, 3000, 3000, 20000);
        send_many(&machine, bytes, true, 100);
        send_many(&machine, bytes, true, 2000);
        assert_true(machine.by_single < 60);
        open_machine(&machine, 13000, 13000, 16000);
        send_many(&machine, bytes, true, 100);
        send_many(&machine, bytes, true, 2000);
        assert_true(machine.by_ring < 150);
        send_many(&machine, bytes, false, 100);
        send_many(&machine, bytes, false, 2000);
        assert_true(machine.by_single < 200);
        send_many(&machine, bytes, true, 2000); /* what was learnt of those is still known */
        assert_true(machine.by_ring < 150);
    }
}

/* By the caches, past them, or not at all; and by nothing else when messages are short. */
static void past_the_caches(void **state)
{
    (void)state;
    struct machine machine;
    for (size_t bytes = PACE_LEAST + 1; bytes <= PACE_LEAST << PACE_CLASSES; bytes *= 2) {
        for (int answered = 0; answered < 2; answered++) {
            open_machine(&machine, 9000, 20000, 21000);
            machine.past_ns = 8000;
            send_many(&machine, bytes, answered, 200);
            send_many(&machine, bytes, answered, 2000);
            assert_true(machine.by_past > 1800);
            if (bytes <= PACE_SINGLE_LEAST) assert_int_equal(machine.by_single, 0);
            machine.in_ns = machine.out_ns = 3000;
            send_many(&machine, bytes, answered, 2000);
            send_many(&machine, bytes, answered, 2000);
            assert_true(machine.by_ring > 1800);
        }
    }
    pace_init(&machine.pace, false);
    machine.single_ns = 1;
    send_many(&machine, 65536, true, 2000);
    assert_int_equal(machine.by_single, 0);
}

static void processes_move(void **state)
{
    (void)state;
    struct machine machine;
    open_machine(&machine, 2000, 2000, 8000);
    send_many(&machine, 16384, true, 500);
    machine.in_ns = machine.out_ns = 9000;
    send_many(&machine, 16384, true, 300);
    send_many(&machine, 16384, true, 1000);
    assert_true(machine.by_ring < 100);
    machine.in_ns = machine.out_ns = 2000;
    send_many(&machine, 16384, true, 500);
    send_many(&machine, 16384, true, 1000);
    assert_true(machine.by_single < 100);
}

/* Nothing is ever learnt of the messages that the peer does not tell of, and it does not matter. */
static void reports_lost(void **state)
{
    (void)state;
    struct machine machine;
    open_machine(&machine, 8000, 8000, 4000);
    machine.lost_every = 3;
    send_many(&machine, 32768, true, 2000);
    send_many(&machine, 32768, true, 2000);
    assert_true(machine.by_ring < 300);
    open_machine(&machine, 8000, 8000, 4000);
    machine.lost_every = 1;
    send_many(&machine, 32768, true, 2000);
    assert_true(machine.by_ring > 1700);
}

static void single_copies_refused(void **state)
{
    (void)state;
    struct machine machine;
    open_machine(&machine, 8000, 8000, 0);
    machine.refuses = true;
    send_many(&machine, 32768, true, 10000);
    assert_true(machine.by_single <= 2 * CHOICE_TRIAL);
}

/* What a peer writes there may be anything. */
static void nonsense(void **state)
{
    (void)state;
    struct machine machine;
    bool mark;
    open_machine(&machine, 1000, 1000, 1000);
    for (unsigned i = 0; i < 20000; i++) {
        for (int way = 0; way < PACE_WAYS; way++)
            for (int class = 0; class < PACE_CLASSES; class++) atomic_store(&machine.shared.took[way][class], i * 2654435761u);
        machine.pace.spoken = i % 100 < 50;
        enum pace_way way = pace_next(&machine.pace, &machine.shared, PACE_LEAST + 1 + i * 13 % 61440, &mark);
        assert_true(way == PACE_RING || way == PACE_PAST || way == PACE_SINGLE);
        if (mark && way != PACE_SINGLE) pace_here(&machine.pace, way, 8000, i);
        if (i % 7 == 0) pace_copied(&machine.pace, 9000, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),      cmocka_unit_test(ways), cmocka_unit_test(past_the_caches),
        cmocka_unit_test(processes_move), cmocka_unit_test(reports_lost),
        cmocka_unit_test(single_copies_refused), cmocka_unit_test(nonsense),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
