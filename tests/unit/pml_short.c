/* pml_short.c - messages while memory is short: the library's allocations fail when the test wants it. */
#include "tests/unit/pml_world.h"

#include "pml/shm/shm.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static struct world world;
static _Thread_local bool is_short;

/* The linker gives these the calls of base_alloc and base_calloc. */
void *__real_base_alloc(enum base_area area, size_t bytes);
void *__real_base_calloc(enum base_area area, size_t count, size_t bytes);
void *__wrap_base_alloc(enum base_area area, size_t bytes);
void *__wrap_base_calloc(enum base_area area, size_t count, size_t bytes);

void *__wrap_base_alloc(enum base_area area, size_t bytes)
{
    return is_short ? NULL : __real_base_alloc(area, bytes);
}

void *__wrap_base_calloc(enum base_area area, size_t count, size_t bytes)
{
    return is_short ? NULL : __real_base_calloc(area, count, bytes);
}

static unsigned heard;

static void hear(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data,
                 size_t bytes, void *arg)
{
    (void)rt, (void)source, (void)header, (void)header_bytes, (void)data, (void)bytes, (void)arg;
    heard++;
}

static void *look_later(void *arg)
{
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    for (int i = 0; i < 1000; i++) base_progress(arg);
    return NULL;
}

/* The ring is full and there is no memory for what waits: a control packet stays until the peer has looked. */
static void control_waits(void **state)
{
    (void)state;
    struct pml_connection *connection;
    struct pml_packet packet = {.kind = PROTOCOL_ACTIVE, .tag = 3};
    const struct pml_payload none = {0};
    unsigned sent = 0;
    pthread_t thread;
    heard = 0;
    world_open(&world, 2, NULL);
    assert_int_equal(pml_am_register(&world.rt[1], 3, hear, NULL), 0);
    assert_int_equal(pml_connection_to(world.rt[0].pml, 1, &connection), 0);
    base_log_levels[AREA_PML] = LOG_ERROR; /* not that it waits */
    while (connection->transport->post(connection, &packet, &none)) sent++;
    assert_true(sent > 0);
    is_short = true;
    assert_int_equal(pthread_create(&thread, NULL, look_later, &world.rt[1]), 0);
    pml_post_control(connection, &packet);
    is_short = false;
    pthread_join(thread, NULL);
    for (int i = 0; i < 1000 && heard <= sent; i++) world_progress(&world);
    assert_int_equal(heard, sent + 1);
    world_close(&world);
}

/* A peer that begins to talk while there is no memory for its connection is heard once there is. */
static void callers_wait(void **state)
{
    (void)state;
    int value = 5, got = 0;
    struct ncclx_request *receive;
    world_open(&world, 3, NULL);
    base_log_levels[AREA_SHM] = LOG_ERROR;
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 2, 1), 0);
    is_short = true;
    for (int i = 0; i < 5; i++) base_progress(&world.rt[2]);
    is_short = false;
    assert_int_equal(pml_send(&world.comm[1], PML_USER, &value, sizeof value, 2, 2), 0);
    for (int tag = 1; tag <= 2; tag++) {
        assert_int_equal(pml_irecv(&world.comm[2], PML_USER, &got, sizeof got, NCCLX_ANY_SOURCE, tag, &receive), 0);
        assert_int_equal(world_wait(&world, receive), 0);
        receive->kind->release(receive);
        assert_int_equal(got, value);
    }
    world_close(&world);
}

/* The same when nobody else calls afterwards. */
static void the_last_caller_waits(void **state)
{
    (void)state;
    int value = 5, got = 0;
    struct ncclx_request *receive;
    world_open(&world, 2, NULL);
    base_log_levels[AREA_SHM] = LOG_ERROR;
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 1), 0);
    is_short = true;
    for (int i = 0; i < 5; i++) base_progress(&world.rt[1]);
    is_short = false;
    for (int i = 0; i < 5; i++) base_progress(&world.rt[1]);
    assert_int_equal(((struct shm *)world.rt[1].pml->shm)->readers, 1);
    assert_int_equal(pml_irecv(&world.comm[1], PML_USER, &got, sizeof got, NCCLX_ANY_SOURCE, 1, &receive), 0);
    assert_int_equal(world_wait(&world, receive), 0);
    receive->kind->release(receive);
    assert_int_equal(got, value);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_waits),
        cmocka_unit_test(callers_wait),
        cmocka_unit_test(the_last_caller_waits),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
