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

/* A message that is kept, for there is no receive. */
static void message(int rank, size_t bytes)
{
    static const char data[1000];
    const struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = 4, .source = rank, .pass = (uint32_t)bytes, .inline_bytes = PACKET_HAS_PAYLOAD};
    assert_int_equal(send(world.peer[rank].control, &packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
    assert_int_equal(send(world.peer[rank].control, data, bytes, MSG_NOSIGNAL), bytes);
}

static bool receives(int rank)
{
    struct pml_counters before, after;
    pml_get_counters(&world.world.rt[0], &before);
    while (tcp_receive(channel[rank]) > 0) continue;
    pml_get_counters(&world.world.rt[0], &after);
    return after.unexpected == before.unexpected + 1;
}

static uint64_t buffers(int rank)
{
    struct pml_holdings holdings;
    assert_int_equal(pml_get_holdings(&world.world.rt[0], "tcp", rank, &holdings), 0);
    return holdings.bytes[PML_MEMORY_RECEIVE] + holdings.bytes[PML_MEMORY_KEEP];
}

static void buffers_go_when_idle(void **state)
{
    (void)state;
    const struct pml_packet word = {.kind = PROTOCOL_RESUME}, whole = {.kind = TCP_ACK, .inline_bytes = 8, .u.word = {sizeof word}};
    const struct pml_payload none = {0};
    begin();
    for (int rank = 1; rank <= 2; rank++) {
        tcp->looks++;
        message(rank, 1000);
        assert_true(receives(rank));
        assert_true(tcp_send(channel[rank], &word, &none));
    }
    assert_int_equal(send(world.peer[2].control, &whole, sizeof whole, MSG_NOSIGNAL), sizeof whole); /* has come */
    assert_true(tcp_receive(channel[2]) > 0);
    tcp->looks++;
    tcp_room_give_back(tcp);
    assert_true(buffers(1) >= TCP_IN_BYTES && buffers(2) >= TCP_IN_BYTES); /* used lately */
    tcp->looks++;
    message(1, 10);
    assert_true(receives(1));
    tcp->looks++;
    tcp_room_give_back(tcp);
    assert_true(buffers(1) >= TCP_IN_BYTES);
    assert_int_equal(buffers(2), 0);
    tcp->looks++;
    tcp_room_give_back(tcp);
    assert_true(buffers(1) <= 256); /* what the peer has not acknowledged */
    for (int rank = 1; rank <= 2; rank++) assert_false(receives(rank)); /* a look takes no memory */
    assert_true(buffers(1) <= 256 && buffers(2) == 0);
    for (int rank = 1; rank <= 2; rank++) {
        message(rank, 1000);
        assert_true(receives(rank));
        assert_true(tcp_send(channel[rank], &word, &none));
        assert_int_equal(hears(rank), PROTOCOL_RESUME);
        assert_int_equal(hears(rank), PROTOCOL_RESUME);
    }
    end();
}

/* Half a message has come: it stays. */
static void buffers_in_use_stay(void **state)
{
    (void)state;
    static const char data[1000];
    const struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = 4, .source = 1, .pass = sizeof data, .inline_bytes = PACKET_HAS_PAYLOAD};
    begin();
    assert_int_equal(send(world.peer[1].control, &packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
    assert_false(receives(1));
    for (int i = 0; i < 3; i++) {
        tcp->looks++;
        tcp_room_give_back(tcp);
    }
    assert_true(buffers(1) >= TCP_IN_BYTES);
    assert_int_equal(send(world.peer[1].control, data, sizeof data, MSG_NOSIGNAL), sizeof data);
    assert_true(receives(1));
    end();
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

static void nothing(void *arg)
{
    (void)arg;
}

/* Its lanes went with it: a put is an error, and not one for a lane that is not there. */
static void nothing_is_put_to_one_that_ended(void **state)
{
    (void)state;
    static const char data[8];
    const struct tcp_ack ack = {.kind = TCP_FRAME_ACK, .life = 1, .completed = 1, .receives = lanes_offer.receives};
    struct pml_region region = {.access = PML_ACCESS_LANES, .address = 4096, .bytes = sizeof data, .peer = 1, .key = 5};
    struct pml_order *order;
    begin();
    lanes_agreed(world.peer[1].connection, &lanes_offer);
    assert_int_equal(pml_order_make(&world.world.rt[0], &region, nothing, NULL, &order), 0);
    assert_int_equal(pml_order_put(order, 0, data, sizeof data, NULL), 0);
    tcp_world_say(world.peer[1].from[0], &ack, sizeof ack);
    tcp_out_look(channel[1]->lanes->out[0], true);
    assert_true(lanes_idle(world.peer[1].connection));
    says(1, TCP_BYE);
    tcp->crowded = true;
    tcp_room_tick(tcp, 1);
    tcp_room_tick(tcp, 2);
    assert_int_equal(channel[1]->meet.state, MEET_IDLE);
    tcp_room_trim(tcp);
    assert_int_equal(pml_order_put(order, 0, data, sizeof data, NULL), NCCLX_ERR_PROC_FAILED);
    pml_order_leave(order);
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
        cmocka_unit_test(buffers_go_when_idle),
        cmocka_unit_test(buffers_in_use_stay),
        cmocka_unit_test(one_is_asked),
        cmocka_unit_test(those_that_end_are_not_asked),
        cmocka_unit_test(nothing_is_put_to_one_that_ended),
        cmocka_unit_test(one_that_was_asked_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
