/* pml_meanwhile.c - making a connection may wait for what the peer has published, and progress goes on meanwhile: messages that
 * come then, and the connection that they make, are not lost. */
#include "tests/unit/pml_world.h"

#include "pml/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct world world;
static void (*meanwhile)(void); /* what happens while the next connection is made */

int __real_shm_segment_of(struct shm *shm, int rank, struct shm_segment **segment, int *index);
int __wrap_shm_segment_of(struct shm *shm, int rank, struct shm_segment **segment, int *index);

int __wrap_shm_segment_of(struct shm *shm, int rank, struct shm_segment **segment, int *index)
{
    void (*now)(void) = meanwhile;
    meanwhile = NULL;
    if (now) now();
    return __real_shm_segment_of(shm, rank, segment, index);
}

/* Rank 1 sends two messages, and rank 0 takes them in. */
static void messages_come(void)
{
    for (int tag = 1; tag <= 2; tag++) assert_int_equal(pml_send(&world.comm[1], PML_USER, &tag, sizeof tag, 0, tag), 0);
    base_progress(&world.rt[0]);
}

static void end_receive(struct ncclx_request *receive, const int *got, int expected)
{
    for (int i = 0; i < 1000 && !receive->complete; i++) base_progress(&world.rt[0]);
    assert_true(receive->complete);
    assert_int_equal(*got, expected);
    receive->kind->release(receive);
}

static void a_receive_meets_them(void **state)
{
    (void)state;
    int got[2] = {0};
    struct ncclx_request *receive[2];
    world_open(&world, 2, NULL);
    meanwhile = messages_come;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pml_irecv(&world.comm[0], PML_USER, &got[i], sizeof got[i], 1, i + 1, &receive[i]), 0);
    for (int i = 0; i < 2; i++) end_receive(receive[i], &got[i], i + 1);
    world_close(&world);
}

/* What was sent on the connection that progress made, and what is sent afterwards, both arrive. */
static void a_send_uses_their_connection(void **state)
{
    (void)state;
    int value = 7, got = 0;
    struct ncclx_request *receive;
    struct pml_connection *connection;
    world_open(&world, 2, NULL);
    meanwhile = messages_come;
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 3), 0);
    assert_int_equal(pml_connection_to(world.rt[0].pml, 1, &connection), 0);
    assert_int_equal(world.rt[0].pml->shm->readers, 1);
    assert_ptr_equal(world.rt[0].pml->shm->reading[0], connection->channel);
    assert_int_equal(pml_irecv(&world.comm[1], PML_USER, &got, sizeof got, 0, 3, &receive), 0);
    for (int i = 0; i < 1000 && !receive->complete; i++) base_progress(&world.rt[1]);
    assert_true(receive->complete);
    assert_int_equal(got, value);
    receive->kind->release(receive);
    for (int tag = 1; tag <= 2; tag++) {
        assert_int_equal(pml_irecv(&world.comm[0], PML_USER, &got, sizeof got, 1, tag, &receive), 0);
        end_receive(receive, &got, tag);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receive_meets_them),
        cmocka_unit_test(a_send_uses_their_connection),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
