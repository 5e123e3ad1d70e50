/* tcp_room.c - which connections over sockets go when there are more peers than places. Rank 0 has one place; ranks 1 and 2
 * are this program, on the other ends of socket pairs. */
#include "tests/unit/pml_world.h"

#include "pml/lanes/lanes.h"
#include "pml/tcp/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct world world;
static struct tcp *tcp;
static struct tcp_channel *channel[3];
static int peer[3]; /* their ends */

static void connect_peer(int rank)
{
    int pair[2];
    struct pml *pml = world.rt[0].pml;
    struct pml_connection *connection = base_calloc(AREA_PML, 1, sizeof *connection);
    struct tcp_channel *made = base_calloc(AREA_TCP, 1, sizeof *made);
    assert_non_null(connection);
    assert_non_null(made);
    *connection = (struct pml_connection){.pml = pml,
                                          .rank = rank,
                                          .transport = &transport_tcp,
                                          .channel = made,
                                          .payload_max = TCP_PAYLOAD_MAX,
                                          .choose_above = SIZE_MAX,
                                          .probed = true};
    assert_int_equal(lanes_make(connection, &tcp_lane_transport), 0);
    if (!pml->connection[0]) pml->connection[0] = base_calloc(AREA_PML, CONNECTION_CHUNK, sizeof *pml->connection[0]);
    pml->connection[0][rank] = connection;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    made->connection = connection;
    made->meet.state = MEET_OPEN;
    made->meet.attempt = 1;
    made->fd = pair[0];
    made->in = base_alloc(AREA_TCP, TCP_IN_BYTES);
    assert_non_null(made->in);
    made->next = tcp->first;
    tcp->first = made;
    channel[rank] = made;
    peer[rank] = pair[1];
}

static void begin(void)
{
    static char *environment[] = {"NCCLX_LOG=none", NULL};
    world_open(&world, 3, environment);
    tcp = base_calloc(AREA_TCP, 1, sizeof *tcp);
    assert_non_null(tcp);
    tcp->pml = world.rt[0].pml;
    tcp->pml->tcp = tcp;
    tcp->epoll = -1;
    tcp->most = 1;
    connect_peer(1);
    connect_peer(2);
}

static void end(void)
{
    for (int rank = 1; rank <= 2; rank++) {
        close(peer[rank]);
        tcp_lost(channel[rank], "the end of the test");
    }
    world_close(&world);
}

static void says(int rank, uint8_t kind)
{
    const struct pml_packet packet = {.kind = kind};
    assert_int_equal(send(peer[rank], &packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
    assert_true(tcp_receive(channel[rank]) > 0);
}

/* The next packet that the peer hears; 0: the end of the connection, -1: nothing. */
static int hears(int rank)
{
    struct pml_packet packet;
    ssize_t got = recv(peer[rank], &packet, sizeof packet, MSG_DONTWAIT);
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
