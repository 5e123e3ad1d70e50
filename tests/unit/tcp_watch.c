/* tcp_watch.c - the socket of a peer that talks alone is left out of the epoll set, and nothing that comes is missed all the same. */
#include "tests/unit/tcp_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

#define MANY 1000 /* more than it takes to leave a socket out */

static struct tcp_world world;

static bool is_watched(int rank)
{
    return world.peer[rank].channel->watched != 0;
}

static int looks(void)
{
    return transport_tcp.poll(world.tcp->pml);
}

static void says(int rank, uint8_t kind)
{
    const struct pml_packet packet = {.kind = kind};
    assert_int_equal(send(world.peer[rank].control, &packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
}

/* Each packet by itself, and as many looks as it takes. */
static void talks(int rank, int packets)
{
    for (int i = 0; i < packets; i++) {
        int looked = 0;
        says(rank, PROTOCOL_RESUME);
        while (!looks()) assert_true(++looked < 100);
    }
}

/* With what looks at sockets need; nobody connects to it. */
static int begin(void **state)
{
    (void)state;
    static char *environment[] = {"NCCLX_LOG=none", NULL};
    struct oob_identity identity = {.job = "watch", .positions = 3, .trust = OOB_CARDS};
    const struct oob_options options = {.port_low = 0};
    tcp_world_open(&world, 3, environment);
    world.tcp->most = 0;
    world.tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_true(world.tcp->epoll >= 0);
    assert_int_equal(oob_key_pair(identity.public_key, identity.private_key), 0);
    assert_int_equal(oob_create(&identity, &options, &world.tcp->oob), 0);
    for (int rank = 1; rank <= 2; rank++) {
        tcp_world_connect(&world, rank);
        tcp_watch(world.peer[rank].channel);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    tcp_world_close(&world);
    return 0;
}

static void one_talks(void **state)
{
    (void)state;
    talks(1, MANY);
    assert_false(is_watched(1));
    assert_true(is_watched(2));
    talks(2, 1); /* looks at the other one go on */
    assert_true(is_watched(1));
    talks(1, 1);
}

static void both_talk(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        talks(1 + i % 2, 1);
        assert_true(is_watched(1) && is_watched(2));
    }
}

/* It is woken by what comes. */
static void one_sleeps(void **state)
{
    (void)state;
    talks(1, MANY);
    says(1, PROTOCOL_RESUME);
    assert_true(tcp_block(world.tcp, 20 * BASE_NS_PER_S));
    assert_true(looks() > 0);
}

/* Another thread may sleep on the set. */
static void threads_begin(void **state)
{
    (void)state;
    talks(1, MANY);
    assert_false(is_watched(1));
    world.world.rt[0].threaded = true;
    (void)looks();
    assert_true(is_watched(1));
    talks(1, MANY);
    assert_true(is_watched(1));
    world.world.rt[0].threaded = false;
}

/* What does not fit the socket goes out once there is room. */
static void one_is_full(void **state)
{
    (void)state;
    static const struct pml_packet packet = {.kind = PROTOCOL_RESUME};
    static const struct pml_payload none = {0};
    struct pml_packet heard;
    int sent = 0, resumes = 0, last = 0;
    talks(1, MANY);
    assert_false(is_watched(1));
    while (sent < 100000 && tcp_send(world.peer[1].channel, &packet, &none)) sent++;
    assert_true(sent < 100000);
    assert_true(tcp_say(world.peer[1].channel, TCP_ACK, 0));
    assert_true(is_watched(1));
    while (recv(world.peer[1].control, &heard, sizeof heard, MSG_DONTWAIT) == sizeof heard) {
        last = heard.kind;
        resumes += last == PROTOCOL_RESUME;
        for (int i = 0; i < 100; i++) (void)looks();
    }
    assert_int_equal(resumes, sent);
    assert_int_equal(last, TCP_ACK);
}

static void one_ends(void **state)
{
    (void)state;
    talks(1, MANY);
    assert_false(is_watched(1));
    says(1, TCP_BYE);
    assert_true(looks() > 0);
    assert_true(is_watched(1)); /* for its end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_talks, begin, end),  cmocka_unit_test_setup_teardown(both_talk, begin, end),
        cmocka_unit_test_setup_teardown(one_sleeps, begin, end), cmocka_unit_test_setup_teardown(threads_begin, begin, end),
        cmocka_unit_test_setup_teardown(one_is_full, begin, end), cmocka_unit_test_setup_teardown(one_ends, begin, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
