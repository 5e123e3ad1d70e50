/* tcp_room.c - which connections over sockets go when there are more peers than places. Rank 0 has one place; ranks 1 and 2
 * are this program, on the other ends of socket pairs. */
#include "tests/unit/tcp_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

static struct tcp_world world;
static struct tcp *tcp;
static struct tcp_channel *channel[3];

static void begin(void)
{
    static char *environment[] = {"NCCLX_LOG=none", NULL};
    tcp_world_open(&world, 3, environment);
    tcp = world.tcp;
    for (int rank = 1; rank <= 2; rank++) {
        tcp_world_connect(&world, rank);
        channel[rank] = world.peer[rank].channel;
    }
}

static void end(void)
{
    tcp_world_close(&world);
}

static void says(int rank, uint8_t kind)
{
    const struct pml_packet packet = {.kind = kind};
    assert_int_equal(send(world.peer[rank].control, &packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
    assert_true(tcp_receive(channel[rank]) > 0);
}

/* The next packet that the peer hears; 0: the end of the connection, -1: nothing. */
static int hears(int rank)
{
    struct pml_packet packet;
    ssize_t got = recv(world.peer[rank].control, &packet, sizeof packet, MSG_DONTWAIT);
    if (got <= 0) return (int)got;
    assert_int_equal(got, sizeof packet);
    return packet.kind;
}

static void one_is_asked(void **state)
{
    (void)state;
    begin();
    channel[1]->used = 5;
    tcp->looks = 7;
    tcp_room_tick(tcp, 1);
    assert_int_equal(hears(1), -1); /* used later than the other */
    assert_int_equal(hears(2), TCP_REST);
    assert_int_equal(channel[2]->meet.state, MEET_RESTING);
    end();
}

/* Nobody there answers a question any more, and all who ended may hold all places. */
static void those_that_end_are_not_asked(void **state)
{
    (void)state;
    begin();
    says(1, TCP_BYE);
    says(2, TCP_BYE);
    tcp_room_tick(tcp, 1);
    tcp_room_tick(tcp, 2);
    for (int rank = 1; rank <= 2; rank++) {
        assert_int_equal(hears(rank), TCP_BYE);
        assert_int_equal(hears(rank), 0);
        assert_int_equal(channel[rank]->meet.state, MEET_IDLE);
        assert_int_equal(channel[rank]->fd, -1);
        assert_false(channel[rank]->lost);
    }
    end();
}

/* A goodbye behind a question is its answer, too. */
static void one_that_was_asked_ends(void **state)
{
    (void)state;
    begin();
    channel[1]->used = tcp->looks = 5;
    tcp_room_tick(tcp, 1);
    assert_int_equal(hears(2), TCP_REST);
    says(2, TCP_BYE);
    tcp_room_tick(tcp, 2);
    tcp_room_tick(tcp, 3);
    assert_int_equal(hears(2), TCP_BYE);
    assert_int_equal(hears(2), 0);
    assert_int_equal(channel[2]->meet.state, MEET_IDLE);
    assert_int_equal(channel[1]->meet.state, MEET_OPEN);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_asked),
        cmocka_unit_test(those_that_end_are_not_asked),
        cmocka_unit_test(one_that_was_asked_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
