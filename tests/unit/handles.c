/* The table of live handles under random insertions and removals, against a list. */
#include "runtime/handles.h"
#include "runtime/ncclx.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers it needs */
#include <cmocka.h>

#define OBJECTS 300
#define ROUNDS 20000

static uint64_t state = 3;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static void random_life(void **unused)
{
    (void)unused;
    static char memory[OBJECTS * 16];
    enum handle_kind kind[OBJECTS] = {HANDLE_NONE};
    struct handle_table table = {0};
    assert_false(handle_live(&table, HANDLE_COMM, memory));
    handle_remove(&table, memory);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned at = draw(round < ROUNDS / 2 ? OBJECTS : OBJECTS / 8);
        char *object = memory + at * 16;
        if (kind[at]) {
            handle_remove(&table, object);
            kind[at] = HANDLE_NONE;
        } else {
            kind[at] = draw(2) ? HANDLE_COMM : HANDLE_WIN;
            assert_int_equal(handle_reserve(&table), NCCLX_SUCCESS);
            handle_insert(&table, kind[at], object);
        }
        if (round % 50) continue;
        for (unsigned i = 0; i < OBJECTS; i++) {
            assert_int_equal(handle_live(&table, HANDLE_COMM, memory + i * 16), kind[i] == HANDLE_COMM);
            assert_int_equal(handle_live(&table, HANDLE_WIN, memory + i * 16), kind[i] == HANDLE_WIN);
        }
    }
    assert_false(handle_live(&table, HANDLE_COMM, NULL));
    assert_false(handle_live(&table, HANDLE_COMM, &table));
    handle_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_life)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("handles", tests, NULL, NULL);
}
