/* tcp_floods.c - a peer that keeps each rule but asks, sends or announces without end: what it can make this rank keep is bounded, and so
 * is what a correct peer is held back from. Rank 0 is ours; its peer, rank 1, is this program, on the other ends of the sockets. Bounds that
 * take too much memory to be reached in a test are nearly reached when it begins. */
#include "tests/unit/tcp_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define CONTEXT 4
#define UNKNOWN 400 /* context of no communicator yet */
#define BYTES ((size_t)256)
#define GETS 64 /* at a time: gets.c */

static struct tcp_world world;
static struct tcp_channel *channel;
static struct pml_connection *connection;
static struct ncclx_comm *comm;
static char memory[BYTES];
static uint64_t key;

static int begin(void **state)
{
    static char *environment[] = {"NCCLX_LOG=none", "NCCLX_UNEXPECTED_LIMIT=65536", "NCCLX_DQPLB_NODE=1:4:1000", NULL};
    (void)state;
    tcp_world_open(&world, 2, environment);
    tcp_world_connect(&world, 1);
    channel = world.peer[1].channel;
    connection = world.peer[1].connection;
    comm = &world.world.comm[0];
    return lanes_range_add(comm, (uint64_t)(uintptr_t)memory, BYTES, &key);
}

static int end(void **state)
{
    (void)state;
    tcp_world_close(&world);
    return 0;
}

/* ---- What the peer says and hears ---- */

static void say_with(const struct pml_packet *packet, size_t bytes)
{
    static const char payload[TCP_PAYLOAD_MAX];
    struct pml_packet sent;
    memcpy((void *)&sent, (const void *)packet, sizeof sent);
    sent.pass = (uint32_t)bytes;
    if (bytes) sent.inline_bytes = PACKET_HAS_PAYLOAD;
    tcp_world_say(world.peer[1].control, &sent, sizeof sent);
    if (bytes) tcp_world_say(world.peer[1].control, payload, bytes);
}
#define SAY(...) say_with(&(struct pml_packet){__VA_ARGS__}, 0)

/* Rank 0 takes what has come; the peer reads nothing. */
static void take(void)
{
    while (!channel->lost && tcp_receive(channel) > 0) continue;
}

/* The next packet, of those that carry nothing beside. */
static bool hear(struct pml_packet *packet)
{
    return recv(world.peer[1].control, (void *)packet, sizeof *packet, MSG_DONTWAIT) == sizeof *packet;
}

static bool hears_of(unsigned kind)
{
    struct pml_packet packet;
    while (hear(&packet))
        if (packet.kind == kind) return true;
    return false;
}

static void expect_lost(const char *why)
{
    const struct ncclx_rt *rt = &world.world.rt[0];
    assert_true(channel->lost);
    assert_int_equal(rt->lost_peer, 1 + 1);
    if (!strstr(rt->lost_why, why)) fail_msg("%s", rt->lost_why);
}

/* ---- Gets ---- */

static void get(void)
{
    SAY(.kind = PROTOCOL_LANES, .count = LANES_GET, .inline_bytes = 32, .context = 77,
        .u.word = {key, (uint64_t)(uintptr_t)memory, 8, 4096});
    take();
}

static void gets_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < GETS; i++) get();
    assert_false(channel->lost);
    get();
    expect_lost("more places at a time than it may");
}

/* An answer is over when its notice is out: the peer may ask again, before its acknowledgement is here. */
static void gets_go_on(void **state)
{
    (void)state;
    lanes_agreed(connection, &lanes_offer);
    for (int i = 0; i < 100; i++) {
        get();
        assert_true(hears_of(PROTOCOL_LANES));
        assert_int_equal(connection->lanes->answering, 0);
    }
    assert_false(channel->lost);
}

/* ---- Answers that the peer does not take ---- */

static void withdraw(void)
{
    SAY(.kind = PROTOCOL_WITHDRAW, .context = CONTEXT, .source = 1, .inline_bytes = 8, .u.word[0] = 1);
}

static void close_lane(void)
{
    static uint64_t life;
    if (!connection->lanes->target) life = 0;
    SAY(.kind = PROTOCOL_LANES, .count = LANES_CLOSE, .inline_bytes = 16, .u.word = {3, ++life});
}

/* Each comes in time for numbers that are due, of which the peer is told after each half of the places. */
static void notice(void)
{
    for (unsigned i = 0; i < lanes_offer.notices / 2; i++)
        SAY(.kind = PROTOCOL_LANES, .count = LANES_SIGNAL, .inline_bytes = 16, .context = 1);
}

/* To a communicator that was. */
static void request_late(void)
{
    SAY(.kind = PROTOCOL_REQUEST, .context = UNKNOWN, .source = 1, .inline_bytes = 24, .u.word = {1, 100000, 4096});
}

static void block(void (*ask)(void))
{
    for (int i = 0; pml_connection_clear(connection) && i < 100000; i++) {
        ask();
        take();
    }
    assert_false(pml_connection_clear(connection));
    assert_true(connection->answers > 0);
}

static void asks_without_end(void (*ask)(void))
{
    block(ask);
    connection->answers += PML_ANSWERS_MAX - 100 * sizeof(struct pml_post);
    for (int i = 0; i < 1000 && !channel->lost; i++) {
        ask();
        take();
    }
    expect_lost("takes no answers");
    connection->answers -= PML_ANSWERS_MAX - 100 * sizeof(struct pml_post);
}

static void withdraws_are_bounded(void **state)
{
    (void)state;
    asks_without_end(withdraw);
}

static void closes_are_bounded(void **state)
{
    (void)state;
    asks_without_end(close_lane);
}

static void notices_are_bounded(void **state)
{
    (void)state;
    asks_without_end(notice);
}

static void late_requests_are_bounded(void **state)
{
    (void)state;
    struct ncclx_comm gone = {.rt = &world.world.rt[0], .context = UNKNOWN, .rank = 0, .size = 2, .name = "gone"};
    assert_int_equal(pml_comm_attach(&gone), 0);
    pml_comm_detach(&gone);
    asks_without_end(request_late);
}

static void answers_of_windows_are_bounded(void **state)
{
    (void)state;
    const char header[8] = {0};
    block(withdraw);
    connection->answers += PML_ANSWERS_MAX;
    assert_int_equal(pml_am_send(&world.world.rt[0], 1, 0, header, sizeof header, memory, BYTES), 0); /* its own affair */
    assert_int_equal(pml_am_answer(&world.world.rt[0], 1, 0, header, sizeof header, memory, BYTES), NCCLX_ERR_TRANSPORT);
    expect_lost("takes no answers");
    connection->answers -= PML_ANSWERS_MAX;
}

/* Whoever reads may ask for ever. */
static void answers_that_are_taken_are_forgotten(void **state)
{
    (void)state;
    block(withdraw);
    for (int i = 0; i < 10000 && !pml_connection_clear(connection); i++) {
        struct pml_packet packet;
        while (hear(&packet)) continue;
        tcp_flush(channel);
        pml_backlog_push(connection);
    }
    assert_true(pml_connection_clear(connection));
    assert_int_equal(connection->answers, 0);
    assert_false(channel->lost);
}

/* ---- Messages without a receive ---- */

static void request_to(uint64_t context)
{
    SAY(.kind = PROTOCOL_REQUEST, .context = context, .source = 1, .tag = 5, .inline_bytes = 24, .u.word = {1, 100000, 4096});
    take();
}

static void requests_are_bounded(void **state)
{
    (void)state;
    connection->kept.requests = PROTOCOL_REQUESTS_MAX - 10;
    for (int i = 0; i < 10; i++) request_to(i % 2 ? CONTEXT : UNKNOWN);
    assert_false(channel->lost);
    request_to(CONTEXT);
    expect_lost("without waiting for their receives");
}

static void requests_that_are_received_are_forgotten(void **state)
{
    (void)state;
    static char buffer[100000];
    struct ncclx_request *receive;
    for (int i = 0; i < 10; i++) request_to(CONTEXT);
    assert_int_equal(connection->kept.requests, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(pml_irecv(comm, PML_USER, buffer, 8, 1, 5, &receive), 0); /* too small: over at once */
    assert_int_equal(connection->kept.requests, 0);
    struct ncclx_comm late = {.rt = &world.world.rt[0], .context = UNKNOWN, .rank = 0, .size = 2, .name = "late"};
    request_to(UNKNOWN);
    assert_int_equal(connection->kept.requests, 1);
    assert_int_equal(pml_comm_attach(&late), 0);
    assert_int_equal(connection->kept.requests, 1);
    pml_comm_detach(&late);
    assert_int_equal(connection->kept.requests, 0);
}

static void eager_to(uint64_t context, size_t bytes)
{
    say_with(&(struct pml_packet){.kind = PROTOCOL_EAGER, .context = context, .source = 1, .tag = 5}, bytes);
    take();
}

static void data_is_bounded(uint64_t context)
{
    const size_t bytes = 32768, allowed = transport_tcp.in_flight / (bytes + sizeof(struct pml_packet));
    while (!connection->kept.held && !channel->lost) eager_to(context, bytes);
    assert_true(hears_of(PROTOCOL_HOLD));
    for (size_t i = 0; i < allowed; i++) eager_to(context, bytes); /* which may have been on its way */
    assert_false(channel->lost);
    eager_to(context, bytes);
    expect_lost("was told to ask first");
}

static void data_without_a_receive_is_bounded(void **state)
{
    (void)state;
    data_is_bounded(CONTEXT);
}

static void data_for_unknown_communicators_is_bounded(void **state)
{
    (void)state;
    data_is_bounded(UNKNOWN);
}

/* Empty ones take memory, too. */
static void empty_messages_are_bounded(void **state)
{
    (void)state;
    int sent = 0;
    for (; !channel->lost && sent < 1000000; sent++) {
        char sink[4096];
        SAY(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 5);
        take();
        while (recv(world.peer[1].control, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
    }
    expect_lost("was told to ask first");
    assert_true((size_t)sent >= transport_tcp.in_flight / sizeof(struct pml_packet));
}

/* After RESUME, what was late is forgotten; and both are heard though other packets wait for room. */
static void holds_and_resumes_go_ahead(void **state)
{
    (void)state;
    static char buffer[65536];
    struct ncclx_request *receive;
    const char header[8] = {0};
    struct pml_packet packet;
    for (int i = 0; i < 3; i++) {
        while (!connection->kept.held) eager_to(CONTEXT, 8192);
        while (connection->kept.held) assert_int_equal(pml_irecv(comm, PML_USER, buffer, sizeof buffer, 1, 5, &receive), 0);
        assert_int_equal(connection->kept.late, 0);
        if (i) continue;
        while (pml_connection_clear(connection))
            assert_int_equal(pml_am_send(&world.world.rt[0], 1, 0, header, sizeof header, NULL, 0), 0);
    }
    int holds = 0, resumes = 0;
    for (bool more = true; more; more = tcp_flush(channel) ? false : true)
        while (hear(&packet)) {
            holds += packet.kind == PROTOCOL_HOLD;
            resumes += packet.kind == PROTOCOL_RESUME;
        }
    while (hear(&packet)) {
        holds += packet.kind == PROTOCOL_HOLD;
        resumes += packet.kind == PROTOCOL_RESUME;
    }
    assert_int_equal(holds, 3);
    assert_int_equal(resumes, 3);
    assert_false(pml_connection_clear(connection)); /* the others still wait */
    assert_false(channel->lost);
}

/* It may have ended, and is not asked to come back for that. */
static void a_peer_at_rest_is_told_later(void **state)
{
    (void)state;
    static char buffer[65536];
    struct ncclx_request *receive;
    while (!connection->kept.held) eager_to(CONTEXT, 8192);
    assert_true(hears_of(PROTOCOL_HOLD));
    channel->meet.state = MEET_IDLE;
    while (connection->kept.held) assert_int_equal(pml_irecv(comm, PML_USER, buffer, sizeof buffer, 1, 5, &receive), 0);
    assert_false(channel->wanted);
    assert_false(hears_of(PROTOCOL_RESUME));
    channel->meet.state = MEET_OPEN;
    assert_true(tcp_flush(channel));
    assert_true(hears_of(PROTOCOL_RESUME));
}

/* ---- What this rank sends ---- */

#define SENDS 6000

static struct ncclx_request *sent[SENDS];
static char out[1000];

/* Small messages, until some wait for room. Returns the first that does. */
static int fill(int count)
{
    int waits = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(pml_isend(comm, PML_USER, out, 60, 1, 7, &sent[i]), 0);
        if (sent[i]->complete) waits = i + 1;
    }
    assert_true(waits < count);
    return waits;
}

static void hold(void)
{
    SAY(.kind = PROTOCOL_HOLD);
    take();
}

static void what_waits_asks_first(void **state)
{
    (void)state;
    uint64_t name[SENDS];
    int waits = fill(SENDS), asked = 0, eager = 0;
    struct pml_packet packet;
    char payload[64];
    hold();
    for (int i = 0; i < 100000 && asked < SENDS - waits; i++) {
        while (hear(&packet)) {
            if (packet.kind == PROTOCOL_REQUEST) name[asked++] = packet.u.word[0];
            if (packet.kind != PROTOCOL_EAGER) continue;
            assert_int_equal(asked, 0);
            eager++;
            while (recv(world.peer[1].control, payload, 60, 0) != 60) tcp_flush(channel);
        }
        tcp_flush(channel);
        pml_backlog_push(connection);
    }
    assert_int_equal(eager, waits);
    assert_int_equal(asked, SENDS - waits);
    assert_true(pml_connection_clear(connection));
    for (int i = waits; i < SENDS; i++) {
        assert_false(sent[i]->complete);
        SAY(.kind = PROTOCOL_FINISHED, .context = name[i - waits]);
        take();
        assert_true(sent[i]->complete);
        assert_int_equal(sent[i]->status.error, 0);
    }
    assert_int_equal(connection->requested, 0);
    assert_false(channel->lost);
}

static void expect_limit(int error)
{
    assert_int_equal(error, NCCLX_ERR_LIMIT);
    assert_non_null(strstr(base_error_detail(), "1048576 messages to rank 1 wait for its receives"));
}

static void too_many_that_ask_is_an_error(void **state)
{
    (void)state;
    struct ncclx_request *request;
    connection->requested = PROTOCOL_REQUESTS_MAX - 1;
    assert_int_equal(pml_isend(comm, PML_USER, out, sizeof out, 1, 7, &request), 0);
    expect_limit(pml_isend(comm, PML_USER, out, sizeof out, 1, 7, &request));
    expect_limit(pml_send(comm, PML_USER, out, sizeof out, 1, 7));
    assert_int_equal(pml_isend(comm, PML_USER, out, 60, 1, 7, &request), 0); /* which does not ask */
    assert_true(request->complete);
}

static void what_waits_and_cannot_ask_fails(void **state)
{
    (void)state;
    int waits = fill(SENDS);
    connection->requested = PROTOCOL_REQUESTS_MAX - 1;
    unsigned posts = connection->posts;
    hold();
    assert_false(sent[waits]->complete);
    for (int i = waits + 1; i < SENDS; i++) {
        assert_true(sent[i]->complete);
        assert_int_equal(sent[i]->status.error, NCCLX_ERR_LIMIT);
    }
    assert_int_equal(connection->posts, posts - (unsigned)(SENDS - waits - 1));
    assert_ptr_equal(connection->first_post, connection->last_post);
    assert_false(channel->lost);
}

/* The system takes what rank 0 sends, and the peer does not look at it. */
static void fill_what_is_kept(void)
{
    char sink[4096];
    for (int i = 0; i < 20000 && keep_room(&channel->keep, 1000); i++) {
        struct ncclx_request *request;
        assert_int_equal(pml_isend(comm, PML_USER, out, 60, 1, 7, &request), 0);
        if (i % 100) continue;
        tcp_flush(channel);
        pml_backlog_push(connection);
        while (recv(world.peer[1].control, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
    }
    assert_false(keep_room(&channel->keep, 1000));
}

/* Both send, and neither has read yet: what is said of what has come finds room, or waits until there is some. */
static void both_may_send_first(void **state)
{
    (void)state;
    fill_what_is_kept();
    for (int i = 0; i < 100 * TCP_ACKNOWLEDGE_PACKETS && !channel->lost; i++) {
        SAY(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 1);
        if (i % TCP_ACKNOWLEDGE_PACKETS == 0) take();
    }
    take();
    assert_false(channel->lost);
    assert_true(keep_held(&channel->keep) <= KEEP_MAX);
    assert_true(keep_grow(&channel->keep, KEEP_OWN / 4, KEEP_MAX)); /* for what somebody waits for */
    while (hears_of(TCP_ACK)) continue;
    SAY(.kind = TCP_ACK, .inline_bytes = 8, .u.word = {channel->keep.sent});
    for (int i = 0; i <= TCP_ACKNOWLEDGE_PACKETS; i++) SAY(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 1);
    take();
    assert_false(channel->lost);
    assert_true(hears_of(TCP_ACK));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(gets_are_bounded),
        TEST(gets_go_on),
        TEST(withdraws_are_bounded),
        TEST(closes_are_bounded),
        TEST(notices_are_bounded),
        TEST(late_requests_are_bounded),
        TEST(answers_of_windows_are_bounded),
        TEST(answers_that_are_taken_are_forgotten),
        TEST(requests_are_bounded),
        TEST(requests_that_are_received_are_forgotten),
        TEST(data_without_a_receive_is_bounded),
        TEST(data_for_unknown_communicators_is_bounded),
        TEST(empty_messages_are_bounded),
        TEST(holds_and_resumes_go_ahead),
        TEST(a_peer_at_rest_is_told_later),
        TEST(what_waits_asks_first),
        TEST(too_many_that_ask_is_an_error),
        TEST(what_waits_and_cannot_ask_fails),
        TEST(both_may_send_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
