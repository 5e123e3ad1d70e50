/* tcp_long.c - long eager messages over a socket: lent until the peer has them; and taken, whether a receive waits for them or not. And
 * requests that bring the first bytes of a message. */
#include "tests/unit/tcp_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT 4 /* of the world's communicator */
#define BYTES ((size_t)700001)

static struct tcp_world world;
static char out[BYTES], in[BYTES], there[BYTES];

static int begin(void **state)
{
    (void)state;
    static char *environment[] = {"NCCLX_LOG=none", NULL};
    for (size_t i = 0; i < BYTES; i++) out[i] = (char)(i * 7 + i / 251);
    memset(in, 0x5a, sizeof in);
    memset(there, 0x5a, sizeof there);
    tcp_world_open(&world, 2, environment);
    tcp_world_connect(&world, 1);
    world.peer[1].connection->announce_threshold = SIZE_MAX;
    return 0;
}

static int end(void **state)
{
    (void)state;
    tcp_world_close(&world);
    return 0;
}

static struct pml *pml(void)
{
    return world.tcp->pml;
}

static struct ncclx_comm *comm(void)
{
    return &world.world.comm[0];
}

/* ---- Out ---- */

/* The peer reads that much, while rank 0 goes on; what is more than that is left in the socket. */
static void peer_reads(char *to, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t more = recv(world.peer[1].control, to + got, bytes - got, MSG_DONTWAIT);
        got += more > 0 ? (size_t)more : 0;
        tcp_flush(world.peer[1].channel);
    }
}

static void peer_tells(uint64_t come)
{
    const struct pml_packet packet = {.kind = TCP_ACK, .inline_bytes = 8, .u.word = {come}};
    tcp_world_say(world.peer[1].control, &packet, sizeof packet);
    tcp_receive(world.peer[1].channel);
}

static struct ncclx_request *sends(void)
{
    struct pml_connection *connection = world.peer[1].connection;
    struct ncclx_request *request;
    connection->route.eager_limit = TCP_LONG_MAX;
    connection->lend_above = TCP_EAGER_MAX;
    assert_int_equal(pml_isend(comm(), PML_USER, out, BYTES, 1, 9, &request), 0);
    return request;
}

static void is_lent_until_the_peer_has_it(void **state)
{
    (void)state;
    struct pml_packet header;
    struct ncclx_request *request = sends();
    assert_false(request->complete);
    peer_reads((char *)&header, sizeof header);
    peer_reads(there, BYTES);
    assert_true(header.kind == PROTOCOL_EAGER && header.tag == 9 && header.u.word[0] == BYTES);
    assert_memory_equal(there, out, BYTES);
    assert_true(base_block_bytes(world.peer[1].channel->keep.data) < BYTES / 10); /* no copy */
    assert_false(request->complete);
    peer_tells(sizeof header + BYTES - 1);
    assert_false(request->complete);
    peer_tells(sizeof header + BYTES);
    assert_true(request->complete);
    assert_int_equal(request->status.error, 0);
    request->kind->release(request);
}

/* The second one asks first. */
static void one_at_a_time(void **state)
{
    (void)state;
    struct pml_packet header, second;
    struct ncclx_request *request = sends(), *other = sends();
    peer_reads((char *)&header, sizeof header);
    peer_reads(there, BYTES);
    pml_backlog_drain(pml());
    peer_reads((char *)&second, sizeof second);
    assert_int_equal(second.kind, PROTOCOL_REQUEST);
    peer_tells(sizeof header + BYTES);
    assert_true(request->complete);
    assert_false(other->complete);
    request->kind->release(request);
}

/* What the old socket has taken with it goes out again, from the program's memory. */
static void again_on_another_socket(void **state)
{
    (void)state;
    struct tcp_peer *peer = &world.peer[1];
    struct pml_packet header;
    struct ncclx_request *request = sends();
    size_t come = sizeof header + 100000;
    peer_reads((char *)&header, sizeof header);
    peer_reads(there, 100000);
    close(peer->channel->fd);
    peer->channel->fd = tcp_world_pair(&peer->control);
    assert_true(keep_resume(&peer->channel->keep, come));
    peer_reads(there + 100000, BYTES - 100000);
    assert_memory_equal(there, out, BYTES);
    peer_tells(sizeof header + BYTES);
    assert_true(request->complete);
    request->kind->release(request);
}

/* ---- In ---- */

static void comes(const void *data, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t more = send(world.peer[1].control, (const char *)data + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += more > 0 ? (size_t)more : 0;
        tcp_receive(world.peer[1].channel);
    }
    tcp_receive(world.peer[1].channel);
}

static void long_begins(void)
{
    const struct pml_packet header = {.pass = TCP_FOLLOWS_LONG,
                                      .kind = PROTOCOL_EAGER,
                                      .inline_bytes = PACKET_HAS_PAYLOAD,
                                      .context = CONTEXT,
                                      .source = 1,
                                      .tag = 9,
                                      .u.word = {BYTES}};
    comes(&header, sizeof header);
}

static void long_comes(void)
{
    long_begins();
    comes(out, BYTES);
}

/* That all has come is the last that rank 0 says. */
static void is_told(void)
{
    struct pml_packet packet = {.kind = 0};
    while (recv(world.peer[1].control, &packet, sizeof packet, MSG_DONTWAIT) == sizeof packet) continue;
    assert_int_equal(packet.kind, TCP_ACK);
    assert_int_equal(packet.u.word[0], sizeof packet + BYTES);
}

static struct ncclx_request *receives(size_t bytes)
{
    struct ncclx_request *request;
    assert_int_equal(pml_irecv(comm(), PML_USER, in, bytes, 1, 9, &request), 0);
    return request;
}

static void ends(struct ncclx_request *request, int error)
{
    assert_true(request->complete);
    assert_int_equal(request->status.error, error);
    assert_int_equal(request->status.bytes, BYTES);
    if (!error) assert_memory_equal(in, out, BYTES);
    for (size_t i = 0; error && i < BYTES; i++) assert_true(in[i] == 0x5a);
    request->kind->release(request);
}

static void a_receive_waits(void **state)
{
    (void)state;
    struct ncclx_request *request = receives(BYTES);
    long_comes();
    is_told();
    ends(request, 0);
}

static void no_receive_waits(void **state)
{
    (void)state;
    uint64_t held = pml()->flow.held;
    long_comes();
    is_told();
    assert_true(pml()->flow.held >= held + BYTES);
    ends(receives(BYTES), 0);
    assert_int_equal(pml()->flow.held, held);
}

/* It has begun already. */
static void a_receive_comes_meanwhile(void **state)
{
    (void)state;
    long_begins();
    comes(out, 1000);
    struct ncclx_request *request = receives(BYTES);
    comes(out + 1000, BYTES - 1000);
    is_told();
    ends(request, 0);
}

static void its_receive_is_too_small(void **state)
{
    (void)state;
    struct ncclx_request *request = receives(BYTES - 1);
    long_comes();
    is_told();
    ends(request, NCCLX_ERR_TRUNCATE);
}

/* ---- Requests ---- */

#define FIRST ((size_t)50000)

static void request_comes(size_t bytes)
{
    const struct pml_packet header = {.pass = FIRST,
                                      .kind = PROTOCOL_REQUEST,
                                      .inline_bytes = PACKET_HAS_PAYLOAD,
                                      .context = CONTEXT,
                                      .source = 1,
                                      .tag = 9,
                                      .u.word = {17, bytes}};
    comes(&header, sizeof header);
    comes(out, FIRST);
}

static void is_answered(enum protocol_kind kind)
{
    struct pml_packet packet = {.kind = 0};
    assert_int_equal(recv(world.peer[1].control, &packet, sizeof packet, MSG_DONTWAIT), sizeof packet);
    assert_int_equal(packet.kind, kind);
    assert_int_equal(packet.context, 17);
}

static void requests_bring_the_first_bytes(void **state)
{
    (void)state;
    struct ncclx_request *request = receives(BYTES);
    request_comes(BYTES);
    is_answered(PROTOCOL_CLEAR);
    assert_memory_equal(in, out, FIRST);
    assert_false(request->complete);
    tcp_world_look(&world, 1);
    request_comes(BYTES); /* and once more, for nobody */
    assert_true(pml()->flow.held >= FIRST);
    tcp_world_look(&world, 1);
    struct ncclx_request *other = receives(BYTES - 1);
    is_answered(PROTOCOL_FINISHED);
    assert_int_equal(pml()->flow.held, 0);
    assert_int_equal(other->status.error, NCCLX_ERR_TRUNCATE);
    other->kind->release(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_lent_until_the_peer_has_it, begin, end),
        cmocka_unit_test_setup_teardown(one_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(again_on_another_socket, begin, end),
        cmocka_unit_test_setup_teardown(a_receive_waits, begin, end),
        cmocka_unit_test_setup_teardown(no_receive_waits, begin, end),
        cmocka_unit_test_setup_teardown(a_receive_comes_meanwhile, begin, end),
        cmocka_unit_test_setup_teardown(its_receive_is_too_small, begin, end),
        cmocka_unit_test_setup_teardown(requests_bring_the_first_bytes, begin, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
