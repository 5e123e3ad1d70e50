/* Authenticated sockets over real ones, both families: who gets in, who does not, what it costs the others, and what is
 * left. Time is virtual; what must not be delayed is counted in rounds of the loop. */
#include "tests/unit/oob_world.h"

#include "bootstrap/oob/shake.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
/* after the headers it needs */
#include <cmocka.h>

#define MS UINT64_C(1000000)
#define HONEST_ROUNDS 12 /* in which somebody honest gets in on loopback, whoever else is there */

static int family = 4; /* each test runs with both */
static struct world world;
static int descriptors_before;

/* Loads what stays. */
static int load(void **state)
{
    unsigned char keys[2][OOB_KEY_BYTES];
    (void)state;
    return oob_key_pair(keys[0], keys[1]);
}

struct variant {
    int family;
    void (*test)(void **state);
};

static int set_up(void **state)
{
    family = ((const struct variant *)*state)->family;
    memset(&world, 0, sizeof world);
    descriptors_before = world_open_descriptors();
    return 0;
}

/* Nothing may be left. The ends are static in their tests, so that they are still there. */
static int tear_down(void **state)
{
    struct base_area_usage usage;
    (void)state;
    world_close(&world);
    base_area_usage(AREA_BOOTSTRAP, &usage);
    if (usage.bytes || world_open_descriptors() != descriptors_before) {
        printf("# %llu bytes and %d descriptors are left\n", (unsigned long long)usage.bytes,
               world_open_descriptors() - descriptors_before);
        return -1;
    }
    return 0;
}

static void open_listening(struct end *end, const struct oob_identity *identity, const struct oob_options *options)
{
    world_open(&world, end, identity, options);
    assert_int_equal(oob_listen(end->oob), NCCLX_SUCCESS);
}

static uint64_t look_for(struct end *end, uint32_t peer, const struct oob_addresses *addresses, uint32_t limit_ms)
{
    uint64_t id;
    assert_int_equal(oob_connect(end->oob, peer, NULL, addresses, 77, limit_ms, world.now, &id), NCCLX_SUCCESS);
    return id;
}

/* Both ends have each other, at the latest after so many rounds. */
static void expect_pair(struct end *connector, struct end *acceptor, int rounds)
{
    int one = world_until(&world, rounds, world_has_event, connector);
    int other = world_until(&world, rounds, world_has_event, acceptor);
    assert_true(one >= 0 && other >= 0);
    struct oob_event *connected = &connector->events[connector->event_count - 1];
    struct oob_event *accepted = &acceptor->events[acceptor->event_count - 1];
    assert_int_equal(connected->kind, OOB_CONNECTED);
    assert_int_equal(accepted->kind, OOB_ACCEPTED);
    assert_int_equal(connected->tag, 77);
    assert_int_equal(accepted->tag, 77);
    assert_memory_equal(connected->keys.send, accepted->keys.receive, OOB_KEY_BYTES);
    assert_memory_equal(connected->keys.receive, accepted->keys.send, OOB_KEY_BYTES);
    assert_true(fcntl(connected->fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(accepted->fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(accepted->fd, F_GETFL) & O_NONBLOCK);
}

static void close_event(struct end *end)
{
    close(end->events[--end->event_count].fd);
}

/* Somebody honest gets in and says hello. */
static void expect_welcome(struct end *acceptor, uint32_t position)
{
    static struct end connector;
    char text[6] = "";
    struct oob_identity identity = world_identity(position);
    struct oob_addresses addresses = world_addresses(acceptor, family);
    world_open(&world, &connector, &identity, NULL);
    look_for(&connector, 0, &addresses, 0);
    expect_pair(&connector, acceptor, HONEST_ROUNDS);
    assert_int_equal(acceptor->events[0].peer, position);
    assert_int_equal(send(connector.events[0].fd, "hello", 5, 0), 5);
    world_round(&world);
    assert_int_equal(recv(acceptor->events[0].fd, text, 5, 0), 5);
    assert_string_equal(text, "hello");
    close_event(acceptor);
    close_event(&connector);
    oob_destroy(connector.oob);
    world.end_count--;
}

static void test_pair(void **state)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0), front = world_identity(OOB_FRONT);
    unsigned char record[100 + OOB_RECORD_EXTRA], data[100], back[100];
    struct oob_seal out, in;
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    world_open(&world, &connector, &front, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    uint64_t id = look_for(&connector, 0, &addresses, 0);
    assert_int_equal(oob_deadline(connector.oob), 0);
    expect_pair(&connector, &acceptor, HONEST_ROUNDS);
    assert_int_equal(connector.events[0].id, id);
    assert_int_equal(acceptor.events[0].peer, OOB_FRONT);
    assert_int_equal(acceptor.events[0].address.family, family);
    assert_int_equal(oob_deadline(connector.oob), UINT64_MAX);
    assert_int_equal(oob_deadline(acceptor.oob), UINT64_MAX);
    oob_random(data, sizeof data);
    oob_seal_begin(&out, acceptor.events[0].keys.send);
    oob_seal_begin(&in, connector.events[0].keys.receive);
    oob_seal(&out, data, sizeof data, record);
    assert_int_equal(send(acceptor.events[0].fd, record, sizeof record, 0), sizeof record);
    world_round(&world);
    assert_int_equal(recv(connector.events[0].fd, record, sizeof record, 0), sizeof record);
    assert_int_equal(oob_unseal(&in, record, sizeof record, back), NCCLX_SUCCESS);
    assert_memory_equal(back, data, sizeof data);
    assert_int_equal(acceptor.line_count, 0);
}

/* What the connector sends at once is not taken for a part of the handshake. */
static void test_early_data(void **state)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0), one = world_identity(1);
    char text[4] = "";
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    world_open(&world, &connector, &one, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    look_for(&connector, 0, &addresses, 0);
    for (int i = 0; i < 100 && !connector.event_count; i++) world_round(&world);
    assert_int_equal(connector.event_count, 1);
    assert_int_equal(send(connector.events[0].fd, "now", 3, 0), 3); /* perhaps before the acceptor has seen the end */
    expect_pair(&connector, &acceptor, HONEST_ROUNDS);
    assert_int_equal(recv(acceptor.events[0].fd, text, 3, 0), 3);
    assert_string_equal(text, "now");
}

/* ---- Strangers ---- */

/* One that says this; and what is said of it. Null: it closes at once. */
struct stranger {
    const char *name, *says, *line;
    size_t bytes;
    bool waits; /* is dropped only when its time is over */
};

static const struct stranger strangers[] = {
    {"port scanner", NULL, "has ended the connection", 0, false},
    {"silence", "", "did not say who it is in time", 0, true},
    {"browser", "GET / HTTP/1.1\r\nHost: example\r\n\r\n", "speaks HTTP", 34, false},
    {"TLS", "\x16\x03\x01\x02\x00\x01", "speaks TLS", 6, false},
    {"ssh", "SSH-2.0-x\r\n", "speaks SSH", 11, false},
    {"garbage", "\xff\x00\xff\x00 and more of it", "does not speak the protocol", 19, false},
    {"a good beginning", "NXOB", "did not say who it is in time", 4, true},
    {"a frame too long", "NXOB\x01\x00\x01\x01\xff\xff\x00\x00", "sends broken messages", 12, false},
    {"a frame too short", "NXOB\x01\x00\x01\x01\x05\x00\x00\x00", "sends broken messages", 12, false},
    {"a part of a frame", "NXOB\x01\x00\x01\x01\x78\x00\x00\x00 and then nothing", "did not say who it is in time", 29,
     true},
    {"the end of a frame first", "NXOB\x01\x00\x03\x01\x20\x00\x00\x00", "sends broken messages", 12, false},
};

static int send_stranger(const struct stranger *stranger, uint16_t port)
{
    int fd = world_stranger(family, port);
    if (!stranger->says) {
        close(fd);
        return -1;
    }
    if (stranger->bytes) assert_int_equal(send(fd, stranger->says, stranger->bytes, MSG_NOSIGNAL), stranger->bytes);
    return fd;
}

static void test_strangers(void **state)
{
    struct oob_identity zero = world_identity(0);
    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        static struct end acceptor;
        const struct stranger *stranger = &strangers[i];
        open_listening(&acceptor, &zero, NULL);
        int fd = send_stranger(stranger, world_port(&acceptor));
        for (int round = 0; round < 3; round++) world_round(&world);
        if (fd >= 0 && world_was_dropped(fd) == stranger->waits)
            fail_msg("%s: dropped at the wrong time", stranger->name);
        expect_welcome(&acceptor, 9);
        if (stranger->waits) world_pass(&world, 5001);
        if (fd >= 0 && !world_was_dropped(fd)) fail_msg("%s: not dropped", stranger->name);
        if (acceptor.line_count != 1 || world_count_lines(&acceptor, stranger->line) != 1)
            fail_msg("%s: %d lines, first \"%s\"", stranger->name, acceptor.line_count, acceptor.lines[0]);
        if (fd >= 0) close(fd);
        oob_destroy(acceptor.oob);
        world.end_count--;
    }
}

/* A byte now and then buys no time. */
static void test_dripping(void **state)
{
    static struct end acceptor;
    struct oob_identity zero = world_identity(0);
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    int fd = world_stranger(family, world_port(&acceptor));
    for (int i = 0; i < 12; i++) {
        send(fd, &"NXOB\x01\x00\x01\x01\x78\x00\x00\x00"[i], 1, MSG_NOSIGNAL);
        world_pass(&world, 450);
    }
    assert_true(world_was_dropped(fd));
    close(fd);
}

/* Wrong key, other job, other position, other version: refused, and both ends know why. */
static void expect_refusal(const struct oob_identity *identity, const char *at_acceptor, const char *at_connector,
                           bool at_once)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0);
    open_listening(&acceptor, &zero, NULL);
    world_open(&world, &connector, identity, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    look_for(&connector, 0, &addresses, 1000);
    for (int round = 0; round < HONEST_ROUNDS; round++) world_round(&world);
    assert_int_equal(connector.event_count, at_once);
    if (!at_once) world_pass(&world, 1100);
    assert_int_equal(connector.event_count, 1);
    assert_int_equal(connector.events[0].kind, OOB_FAILED);
    assert_int_equal(connector.events[0].code, at_once ? NCCLX_ERR_UNREACHABLE : NCCLX_ERR_TIMEOUT);
    if (!strstr(connector.events[0].text, at_connector)) fail_msg("connector: %s", connector.events[0].text);
    if (acceptor.line_count != 1 || !strstr(acceptor.lines[0], at_acceptor))
        fail_msg("acceptor: %s", acceptor.lines[0]);
    expect_welcome(&acceptor, 9);
    world_close(&world);
}

static void test_refusals(void **state)
{
    struct oob_identity identity = world_identity(3);
    (void)state;
    identity.secret[31]++;
    expect_refusal(&identity, "does not have the key of this job", "does not have the key of its job", false);
    identity = world_identity(3);
    identity.job = "job.2";
    expect_refusal(&identity, "belongs to another job", "belongs to another job", false);
    identity = world_identity(100);
    identity.positions = 200;
    expect_refusal(&identity, "is not of this job", "does not know this end", false);
    identity = world_identity(3);
    identity.trust = OOB_SECRET;
    identity.release = "1.1";
    expect_refusal(&identity, "runs ncclx 1.1 (protocol 1), this is ncclx 1.0 (protocol 1): install one version",
                   "runs ncclx 1.0 (protocol 1), this is ncclx 1.1 (protocol 1): install one version", true);
}

/* Somebody has recorded all that a connector said, and says it again. */
static void test_replay(void **state)
{
    static struct end acceptor;
    struct oob_identity zero = world_identity(0), one = world_identity(1);
    struct shake_self self;
    struct shake shake;
    unsigned char recorded[SHAKE_HELLO_BYTES + SHAKE_CONFIRM_BYTES], random[OOB_KEY_BYTES], answer[SHAKE_ANSWER_BYTES];
    size_t bytes;
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    assert_int_equal(shake_self_set(&self, &one), NCCLX_SUCCESS);
    oob_random(random, sizeof random);
    shake_connect(&shake, &self, 0, NULL, 77, random);
    int fd = world_stranger(family, world_port(&acceptor));
    memcpy(recorded, shake_output(&shake, &bytes), SHAKE_HELLO_BYTES);
    assert_int_equal(send(fd, recorded, SHAKE_HELLO_BYTES, 0), SHAKE_HELLO_BYTES);
    shake_sent(&shake, bytes);
    for (int round = 0; round < 3; round++) world_round(&world);
    assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
    shake_receive(&shake, answer, SHAKE_HEADER_BYTES);
    shake_receive(&shake, answer + SHAKE_HEADER_BYTES, sizeof answer - SHAKE_HEADER_BYTES);
    assert_int_equal(shake.state, SHAKE_DONE);
    memcpy(recorded + SHAKE_HELLO_BYTES, shake_output(&shake, &bytes), SHAKE_CONFIRM_BYTES);
    assert_int_equal(send(fd, recorded + SHAKE_HELLO_BYTES, SHAKE_CONFIRM_BYTES, 0), SHAKE_CONFIRM_BYTES);
    for (int round = 0; round < 3; round++) world_round(&world);
    assert_int_equal(acceptor.event_count, 1);
    close_event(&acceptor);
    close(fd);
    fd = world_stranger(family, world_port(&acceptor));
    assert_int_equal(send(fd, recorded, sizeof recorded, 0), sizeof recorded);
    for (int round = 0; round < 3; round++) world_round(&world);
    assert_true(world_was_dropped(fd));
    close(fd);
    assert_int_equal(acceptor.event_count, 0);
    assert_int_equal(acceptor.line_count, 1);
    assert_int_equal(world_count_lines(&acceptor, "repeats what others have said"), 1);
}

/* More strangers than there are places, most of them silent: the oldest go, and who knows the key gets in. */
static void test_crowd(void **state)
{
    static struct end acceptor;
    struct oob_identity zero = world_identity(0);
    const struct oob_options options = {.strangers = 16};
    int fds[100], dropped = 0;
    (void)state;
    open_listening(&acceptor, &zero, &options);
    for (int i = 0; i < 100; i++) {
        fds[i] = world_stranger(family, world_port(&acceptor));
        if (i % 10 == 9) world_round(&world);
        if (i == 50) expect_welcome(&acceptor, 9);
    }
    expect_welcome(&acceptor, 10);
    for (int i = 0; i < 100; i++) dropped += world_was_dropped(fds[i]);
    assert_in_range(dropped, 84, 85);
    assert_true(world_was_dropped(fds[0]) && !world_was_dropped(fds[99]));
    world_pass(&world, 5001);
    for (int i = 0; i < 100; i++) {
        assert_true(world_was_dropped(fds[i]));
        close(fds[i]);
    }
    assert_in_range(acceptor.line_count, 1, 3); /* the rest is counted, */
    world_pass(&world, 12000);
    assert_in_range(world_count_lines(&acceptor, "more times)"), 1, 2);
}

/* Descriptors run out while strangers hold some. */
static void test_few_descriptors(void **state)
{
    static struct end acceptor;
    struct oob_identity zero = world_identity(0);
    struct rlimit before, few;
    int fds[40], spare[1000], taken = 0;
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    for (int i = 0; i < 40; i++) fds[i] = world_stranger(family, world_port(&acceptor));
    for (int round = 0; round < 5; round++) world_round(&world);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)world_open_descriptors() + 30;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (taken < 1000 && (spare[taken] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken++;
    for (int i = 0; i < 8; i++)
        close(spare[--taken]); /* for the connector: endpoint 2, socket, events, loopback lists */
    expect_welcome(&acceptor, 9);
    while (taken < 1000 && (spare[taken] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken++;
    close(spare[--taken]);
    int late = world_stranger(family, world_port(&acceptor)); /* takes the last */
    for (int round = 0; round < 5; round++) world_round(&world);
    assert_true(world_was_dropped(fds[0])); /* made room */
    assert_false(world_was_dropped(late));
    for (int i = 0; i < 40; i++) close(fds[i]);
    close(late);
    for (int round = 0; round < 5; round++) world_round(&world);
    while (taken < 1000 && (spare[taken] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken++;
    close(spare[--taken]); /* no stranger is left to go */
    late = world_stranger(family, world_port(&acceptor));
    for (int round = 0; round < 5; round++) world_round(&world);
    assert_true(world_was_dropped(late));
    close(late);
    assert_int_equal(world_count_lines(&acceptor, "raise the limit of open files"), 1);
    while (taken) close(spare[--taken]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    world_pass(&world, 101); /* the door opens again */
    expect_welcome(&acceptor, 10);
}

/* ---- Looking for somebody ---- */

/* Addresses that lead to nobody, to others, and at last to the right one. */
static void test_wrong_hosts(void **state)
{
    static struct end acceptor, elsewhere, another_job, connector;
    struct oob_identity zero = world_identity(0), five = world_identity(5), other = world_identity(0),
                        one = world_identity(1);
    struct oob_addresses addresses = {0};
    (void)state;
    other.job = "job.2";
    open_listening(&acceptor, &zero, NULL);
    open_listening(&elsewhere, &five, NULL);
    open_listening(&another_job, &other, NULL);
    world_open(&world, &connector, &one, NULL);
    int closed = world_listening(world_loopback(4, 0)), silent = world_listening(world_loopback(4, 0));
    uint16_t closed_port = world_bound_port(closed), silent_port = world_bound_port(silent);
    close(closed);
    const uint16_t ports[] = {closed_port, world_port(&elsewhere), world_port(&another_job), silent_port,
                              world_port(&acceptor)};
    for (size_t i = 0; i < 5; i++) addresses.list[addresses.count++] = world_loopback(i == 4 ? family : 4, ports[i]);
    look_for(&connector, 0, &addresses, 0);
    for (int round = 0; round < 20; round++) world_round(&world);
    assert_int_equal(connector.event_count, 0); /* at the silent one */
    world_pass(&world, 2001);
    expect_pair(&connector, &acceptor, HONEST_ROUNDS);
    assert_int_equal(world_count_lines(&elsewhere, "looks for somebody else"), 1);
    assert_int_equal(world_count_lines(&another_job, "belongs to another job"), 1);
    assert_int_equal(acceptor.line_count, 0);
    close(silent);
}

/* All of them fail: the report says how each did. */
static void test_nobody(void **state)
{
    static struct end connector, elsewhere;
    struct oob_identity one = world_identity(1), five = world_identity(5);
    (void)state;
    open_listening(&elsewhere, &five, NULL);
    world_open(&world, &connector, &one, NULL);
    struct oob_addresses addresses = world_addresses(&elsewhere, family);
    addresses.list[addresses.count++] = world_loopback(4, 1);
    look_for(&connector, OOB_FRONT, &addresses, 3000);
    world_pass(&world, 2900);
    assert_int_equal(connector.event_count, 0);
    assert_true(oob_deadline(connector.oob) <= world.now + 100 * MS);
    world_pass(&world, 200);
    assert_int_equal(connector.event_count, 1);
    assert_int_equal(connector.events[0].kind, OOB_FAILED);
    assert_int_equal(connector.events[0].code, NCCLX_ERR_TIMEOUT);
    assert_non_null(strstr(connector.events[0].text, "ncclxrun could not be reached within 3000 ms: "));
    assert_non_null(
        strstr(connector.events[0].text, "but not the one that was looked for; 127.0.0.1:1: Connection refused"));
    addresses.count = 0;
    uint64_t id;
    assert_int_equal(oob_connect(connector.oob, 3, NULL, &addresses, 0, 0, world.now, &id), NCCLX_ERR_UNREACHABLE);
    assert_int_equal(oob_connect(connector.oob, 1, NULL, &addresses, 0, 0, world.now, &id), NCCLX_ERR_ARG);
}

/* The connector is there first. */
static void test_late_listener(void **state)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0), one = world_identity(1);
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    struct oob_options options = {.port_low = addresses.list[0].port, .port_high = addresses.list[0].port};
    oob_listen_end(acceptor.oob);
    world_close(&world);
    world_open(&world, &connector, &one, NULL);
    look_for(&connector, 0, &addresses, 0);
    world_pass(&world, 3000);
    assert_int_equal(connector.event_count, 0);
    open_listening(&acceptor, &zero, &options);
    world_pass(&world, 3000); /* the longest pause */
    expect_pair(&connector, &acceptor, HONEST_ROUNDS);
}

static void test_cancel(void **state)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0), one = world_identity(1);
    struct oob_event event;
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    world_open(&world, &connector, &one, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    uint64_t id = look_for(&connector, 0, &addresses, 0);
    world_round(&world);
    oob_cancel(connector.oob, id);
    oob_cancel(connector.oob, id);
    assert_int_equal(oob_deadline(connector.oob), UINT64_MAX);
    id = look_for(&connector, 0, &addresses, 0); /* has happened, but was not asked for yet */
    for (int i = 0; i < 100 && oob_deadline(connector.oob) != 0; i++) {
        oob_dispatch(connector.oob, world.now);
        oob_dispatch(acceptor.oob, world.now);
    }
    oob_cancel(connector.oob, id);
    assert_false(oob_next(connector.oob, &event));
}

/* Many at once: none is sent away. */
static void test_many(void **state)
{
    static struct end ends[33];
    struct oob_identity zero = world_identity(0);
    const struct oob_options options = {.strangers = 33};
    bool seen[33] = {false};
    (void)state;
    open_listening(&ends[0], &zero, &options);
    struct oob_addresses addresses = world_addresses(&ends[0], family);
    for (uint32_t i = 1; i < 33; i++) {
        struct oob_identity identity = world_identity(i);
        world_open(&world, &ends[i], &identity, NULL);
        look_for(&ends[i], 0, &addresses, 0);
    }
    for (int left = 32, round = 0; left; round++) {
        assert_true(round < HONEST_ROUNDS);
        world_round(&world);
        while (ends[0].event_count) {
            assert_int_equal(ends[0].events[ends[0].event_count - 1].kind, OOB_ACCEPTED);
            uint32_t peer = ends[0].events[ends[0].event_count - 1].peer;
            assert_true(peer > 0 && peer < 33 && !seen[peer]);
            seen[peer] = true;
            close_event(&ends[0]);
            left--;
        }
    }
    assert_int_equal(ends[0].line_count, 0);
}

/* ---- Listening ---- */

static void test_port_range(void **state)
{
    static struct end ends[4];
    struct oob_identity zero = world_identity(0);
    struct oob_options options = {.port_low = 23455, .port_high = 23456};
    struct oob *oob;
    int opened = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        world_open(&world, &ends[i], &zero, &options);
        if (oob_listen(ends[i].oob) == NCCLX_SUCCESS) {
            opened++;
            assert_in_range(world_port(&ends[i]), 23455, 23456);
        }
    }
    assert_true(opened <= 2); /* fewer when others on this machine have them */
    assert_int_equal(oob_listen(ends[2].oob), NCCLX_ERR_UNREACHABLE);
    assert_non_null(strstr(base_error_detail(), "no port from 23455 to 23456"));
    options.port_high = 23454;
    assert_int_equal(oob_create(&zero, &options, &oob), NCCLX_ERR_ARG);
}

static void test_networks(void **state)
{
    static struct end end, nowhere;
    struct oob_identity zero = world_identity(0);
    struct oob_options options = {.networks = "127.0.0.0/8,::1"};
    struct oob_addresses addresses;
    struct oob *oob;
    (void)state;
    open_listening(&end, &zero, &options);
    assert_int_equal(oob_addresses(end.oob, NULL, &addresses), NCCLX_SUCCESS);
    assert_true(addresses.count >= 1 && addresses.count <= 2);
    struct oob_address loopback = world_loopback(4, addresses.list[0].port);
    assert_memory_equal(addresses.list[0].bytes, loopback.bytes, 4);
    assert_int_equal(end.line_count, 0);
    options.networks = "255.255.255.255"; /* no host has it */
    world_open(&world, &nowhere, &zero, &options);
    assert_int_equal(oob_listen(nowhere.oob), NCCLX_ERR_UNREACHABLE);
    options.networks = "10.0.0.0/99";
    assert_int_equal(oob_create(&zero, &options, &oob), NCCLX_ERR_ARG);
}

/* ---- Cards ---- */

static unsigned char card_keys[2][2][OOB_KEY_BYTES]; /* public, private */

static const unsigned char *look_up(uint32_t peer)
{
    return peer < 2 ? card_keys[peer][0] : NULL;
}

static struct oob_identity card_identity(uint32_t position)
{
    struct oob_identity identity = world_identity(position);
    identity.trust = OOB_CARDS;
    memset(identity.secret, 0, sizeof identity.secret);
    memcpy(identity.public_key, card_keys[position % 2][0], OOB_KEY_BYTES);
    memcpy(identity.private_key, card_keys[position % 2][1], OOB_KEY_BYTES);
    return identity;
}

static void test_cards(void **state)
{
    static struct end acceptor, connector, unknown, liar;
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(oob_key_pair(card_keys[i][0], card_keys[i][1]), NCCLX_SUCCESS);
    struct oob_identity zero = card_identity(0), one = card_identity(1), three = card_identity(3);
    uint64_t id;
    open_listening(&acceptor, &zero, NULL);
    acceptor.keys = look_up;
    world_open(&world, &connector, &one, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    assert_int_equal(oob_connect(connector.oob, 0, NULL, &addresses, 77, 0, world.now, &id), NCCLX_ERR_ARG);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &addresses, 77, 0, world.now, &id), NCCLX_SUCCESS);
    expect_pair(&connector, &acceptor, HONEST_ROUNDS);
    assert_int_equal(acceptor.events[0].peer, 1);
    close_event(&acceptor);
    world_open(&world, &unknown, &three, NULL); /* not in the job's cards */
    assert_int_equal(oob_connect(unknown.oob, 0, card_keys[0][0], &addresses, 77, 500, world.now, &id), NCCLX_SUCCESS);
    world_pass(&world, 600);
    assert_int_equal(unknown.events[0].kind, OOB_FAILED);
    assert_int_equal(world_count_lines(&acceptor, "says to be somebody who is not of this job"), 1);
    oob_random(one.private_key, OOB_KEY_BYTES); /* says to be 1, and is not */
    world_open(&world, &liar, &one, NULL);
    assert_int_equal(oob_connect(liar.oob, 0, card_keys[0][0], &addresses, 77, 500, world.now, &id), NCCLX_SUCCESS);
    world_pass(&world, 600);
    assert_int_equal(liar.events[0].kind, OOB_FAILED);
    assert_int_equal(world_count_lines(&acceptor, "does not have the key of this job"), 1);
    assert_int_equal(acceptor.event_count, 0);
}

/* Who has given its card out, and does not listen, is gone; who is silent is not. */
static void test_gone(void **state)
{
    static struct end acceptor, connector;
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(oob_key_pair(card_keys[i][0], card_keys[i][1]), NCCLX_SUCCESS);
    struct oob_identity zero = card_identity(0), one = card_identity(1);
    const struct oob_options options = {.pause_most_ms = 300};
    uint64_t id;
    open_listening(&acceptor, &zero, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    struct oob_address silent = world_loopback(family, 0);
    int listening = world_listening(silent);
    world_open(&world, &connector, &one, &options);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &addresses, 77, 0, world.now, &id), NCCLX_SUCCESS);
    oob_dispatch(connector.oob, world.now); /* connects, and is not answered */
    oob_listen_end(acceptor.oob);
    addresses.list[0].port = world_bound_port(listening);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &addresses, 78, 0, world.now, &id), NCCLX_SUCCESS);
    world_pass(&world, 1000);
    assert_int_equal(connector.event_count, 1);
    assert_int_equal(connector.events[0].kind, OOB_FAILED);
    assert_int_equal(connector.events[0].tag, 77);
    assert_int_equal(connector.events[0].code, NCCLX_ERR_PROC_FAILED);
    assert_non_null(strstr(connector.events[0].text, "number 0 of the job does not listen any more: "));
    close(listening);
    world_pass(&world, 20000); /* the longest try, and two that are refused */
    assert_int_equal(connector.event_count, 2);
    assert_int_equal(connector.events[1].tag, 78);
    assert_int_equal(connector.events[1].code, NCCLX_ERR_PROC_FAILED);
}

/* Where it was met is what counts, beside addresses at which somebody else may be silent; without that, nobody is taken for gone. */
static void test_gone_where_it_was(void **state)
{
    static struct end acceptor, connector;
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(oob_key_pair(card_keys[i][0], card_keys[i][1]), NCCLX_SUCCESS);
    struct oob_identity zero = card_identity(0), one = card_identity(1);
    const struct oob_options options = {.pause_most_ms = 300};
    uint64_t id;
    open_listening(&acceptor, &zero, NULL);
    struct oob_addresses addresses = {.count = 2, .list = {world_loopback(family, 0), world_addresses(&acceptor, family).list[0]}};
    if (family == 4) addresses.list[0].bytes[3] = 2; /* another one of this host */
    else addresses.list[0] = world_loopback(4, 0);
    int listening = world_listening(addresses.list[0]);
    addresses.list[0].port = world_bound_port(listening);
    oob_listen_end(acceptor.oob);
    struct oob_addresses met = addresses;
    struct oob_address seen = addresses.list[1];
    seen.port = 1; /* as who was accepted from there */
    oob_addresses_prove(&met, &seen);
    assert_true(met.proven && met.list[0].port == addresses.list[1].port && met.list[1].port == addresses.list[0].port);
    world_open(&world, &connector, &one, &options);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &addresses, 77, 5000, world.now, &id), NCCLX_SUCCESS);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &met, 78, 5000, world.now, &id), NCCLX_SUCCESS);
    world_pass(&world, 300);
    assert_int_equal(connector.event_count, 1);
    assert_int_equal(connector.events[0].tag, 78);
    assert_int_equal(connector.events[0].code, NCCLX_ERR_PROC_FAILED);
    world_pass(&world, 6000);
    assert_int_equal(connector.event_count, 2);
    assert_int_equal(connector.events[1].code, NCCLX_ERR_TIMEOUT);
    assert_true(connector.events[1].busy);
    close(listening);
}

/* Who refuses is not busy. */
static void test_refused(void **state)
{
    static struct end acceptor, connector;
    struct oob_identity zero = world_identity(0), one = world_identity(1);
    uint64_t id;
    (void)state;
    open_listening(&acceptor, &zero, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    oob_listen_end(acceptor.oob);
    world_open(&world, &connector, &one, NULL);
    assert_int_equal(oob_connect(connector.oob, 0, NULL, &addresses, 77, 500, world.now, &id), NCCLX_SUCCESS);
    world_pass(&world, 600);
    assert_int_equal(connector.events[0].code, NCCLX_ERR_TIMEOUT);
    assert_false(connector.events[0].busy);
}

/* The key comes late, when the one who waited for it has gone. */
static void test_late_key(void **state)
{
    static struct end acceptor, connector;
    struct oob_event event;
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(oob_key_pair(card_keys[i][0], card_keys[i][1]), NCCLX_SUCCESS);
    struct oob_identity zero = card_identity(0), one = card_identity(1);
    uint64_t id;
    open_listening(&acceptor, &zero, NULL);
    world_open(&world, &connector, &one, NULL);
    struct oob_addresses addresses = world_addresses(&acceptor, family);
    assert_int_equal(oob_connect(connector.oob, 0, card_keys[0][0], &addresses, 77, 0, world.now, &id), NCCLX_SUCCESS);
    for (int i = 0; i < 100 && oob_deadline(acceptor.oob) != 0; i++) {
        oob_dispatch(connector.oob, world.now);
        oob_dispatch(acceptor.oob, world.now);
    }
    assert_true(oob_next(acceptor.oob, &event));
    assert_int_equal(event.kind, OOB_WANT_KEY);
    assert_int_equal(event.peer, 1);
    oob_cancel(connector.oob, id);
    for (int i = 0; i < 3; i++) oob_dispatch(acceptor.oob, world.now);
    oob_give_key(acceptor.oob, event.id, card_keys[1][0]);
    oob_give_key(acceptor.oob, event.id, NULL);
    assert_false(oob_next(acceptor.oob, &event));
    assert_int_equal(world_count_lines(&acceptor, "was dropped"), 1);
}

static void run(void **state)
{
    const struct variant *variant = *state;
    int fd = variant->family == 4 ? -1 : world_listening(world_loopback(6, 0));
    if (variant->family == 6 && fd < 0) skip();
    if (fd >= 0) close(fd);
    variant->test(state);
}

#define IN_FAMILY(test, f)                                                                                             \
    {                                                                                                                  \
#test ", IPv" #f, run, set_up, tear_down, &(struct variant)                                                    \
        {                                                                                                              \
            f, test                                                                                                    \
        }                                                                                                              \
    }
#define BOTH(test) IN_FAMILY(test, 4), IN_FAMILY(test, 6)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_pair),        BOTH(test_early_data), BOTH(test_strangers),     BOTH(test_dripping),
        BOTH(test_refusals),    BOTH(test_replay),     BOTH(test_crowd),         BOTH(test_few_descriptors),
        BOTH(test_wrong_hosts), BOTH(test_nobody),     BOTH(test_late_listener), BOTH(test_cancel),
        BOTH(test_many),        BOTH(test_port_range), BOTH(test_networks),      BOTH(test_cards),
        BOTH(test_late_key),    BOTH(test_gone),       BOTH(test_gone_where_it_was), BOTH(test_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
