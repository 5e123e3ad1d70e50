/* The cores of authenticated sockets by hand: handshake, sealed records, when to try which address, strangers' places,
 * addresses. What chance does to them is the simulator's (tests/sim/oob.c), real sockets are in oob_sockets.c. */
#include "bootstrap/oob/address.h"
#include "bootstrap/oob/guests.h"
#include "bootstrap/oob/shake.h"
#include "bootstrap/oob/tries.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define MS UINT64_C(1000000)

/* ---- Handshake ---- */

struct pair {
    struct shake_self caller, called;
    struct shake connector, acceptor;
};

/* Positions 3 and 0 of a job of 8. */
static void set_pair(struct pair *pair, enum oob_trust trust)
{
    struct oob_identity identity = {.job = "job.1", .position = 3, .positions = 8, .trust = trust, .release = "1.0"};
    memset(identity.secret, 7, sizeof identity.secret);
    memset(pair, 0, sizeof *pair);
    assert_int_equal(oob_key_pair(identity.public_key, identity.private_key), NCCLX_SUCCESS);
    assert_int_equal(shake_self_set(&pair->caller, &identity), NCCLX_SUCCESS);
    identity.position = 0;
    assert_int_equal(oob_key_pair(identity.public_key, identity.private_key), NCCLX_SUCCESS);
    assert_int_equal(shake_self_set(&pair->called, &identity), NCCLX_SUCCESS);
}

static void begin_pair(struct pair *pair)
{
    unsigned char random[OOB_KEY_BYTES];
    oob_random(random, sizeof random);
    shake_connect(&pair->connector, &pair->caller, 0, pair->called.public_key, 42, random);
    oob_random(random, sizeof random);
    shake_accept(&pair->acceptor, &pair->called, random);
}

/* As much as it takes. */
static void feed(struct shake *to, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t piece; (piece = shake_wanted(to)) && bytes; at += piece, bytes -= piece) {
        if (piece > bytes) piece = bytes;
        shake_receive(to, at, piece);
    }
}

/* Moves at most `piece` bytes at a time; how many in all. */
static size_t move(struct shake *from, struct shake *to, size_t piece)
{
    size_t bytes, moved = 0;
    for (;;) {
        const void *data = shake_output(from, &bytes);
        if (bytes > piece) bytes = piece;
        if (bytes > shake_wanted(to)) bytes = shake_wanted(to);
        if (!bytes) return moved;
        shake_receive(to, data, bytes);
        shake_sent(from, bytes);
        moved += bytes;
    }
}

static void run_pair(struct pair *pair, size_t piece)
{
    while (move(&pair->connector, &pair->acceptor, piece) || move(&pair->acceptor, &pair->connector, piece)) {
        if (pair->acceptor.state == SHAKE_WANTS_KEY) {
            assert_int_equal(pair->acceptor.peer, 3);
            shake_give_key(&pair->acceptor, pair->caller.public_key);
        }
    }
}

static void expect_agreement(const struct pair *pair)
{
    assert_int_equal(pair->connector.state, SHAKE_DONE);
    assert_int_equal(pair->acceptor.state, SHAKE_DONE);
    assert_int_equal(pair->acceptor.peer, 3);
    assert_int_equal(pair->acceptor.tag, 42);
    assert_memory_equal(pair->connector.keys.send, pair->acceptor.keys.receive, OOB_KEY_BYTES);
    assert_memory_equal(pair->connector.keys.receive, pair->acceptor.keys.send, OOB_KEY_BYTES);
    assert_memory_not_equal(pair->connector.keys.send, pair->connector.keys.receive, OOB_KEY_BYTES);
}

static void test_agreement(void **state)
{
    struct pair pair;
    (void)state;
    for (int trust = OOB_SECRET; trust <= OOB_CARDS; trust++) {
        unsigned char earlier[OOB_KEY_BYTES] = {0};
        set_pair(&pair, (enum oob_trust)trust);
        for (size_t piece = 1; piece < 200; piece += 13) {
            begin_pair(&pair);
            run_pair(&pair, piece);
            expect_agreement(&pair);
            assert_memory_not_equal(pair.connector.keys.send, earlier, OOB_KEY_BYTES); /* fresh each time */
            memcpy(earlier, pair.connector.keys.send, sizeof earlier);
        }
    }
}

/* Both ends end up with this trouble; the connector may believe the reason, or not. */
static void expect_refusal(struct pair *pair, enum shake_trouble trouble, bool proven)
{
    begin_pair(pair);
    run_pair(pair, SIZE_MAX);
    assert_int_equal(pair->acceptor.state, SHAKE_FAILED);
    assert_int_equal(pair->acceptor.trouble, trouble);
    assert_int_equal(pair->connector.state, SHAKE_FAILED);
    assert_int_equal(pair->connector.trouble, trouble);
    assert_true(pair->connector.told);
    assert_int_equal(pair->connector.proven, proven);
}

static void test_refusals(void **state)
{
    struct pair pair;
    (void)state;
    set_pair(&pair, OOB_SECRET);
    pair.caller.secret[0]++;
    expect_refusal(&pair, SHAKE_WRONG_KEY, false);
    set_pair(&pair, OOB_SECRET);
    pair.caller.job[0]++;
    expect_refusal(&pair, SHAKE_JOB, false);
    set_pair(&pair, OOB_SECRET);
    pair.called.position = 5; /* the address led to the wrong host */
    expect_refusal(&pair, SHAKE_ELSEWHERE, false);
    set_pair(&pair, OOB_SECRET);
    pair.caller.position = 8;
    expect_refusal(&pair, SHAKE_NOBODY, false);
    set_pair(&pair, OOB_SECRET);
    pair.caller.position = 0; /* somebody says to be us */
    expect_refusal(&pair, SHAKE_NOBODY, false);
    set_pair(&pair, OOB_SECRET);
    pair.called.trust = OOB_CARDS;
    expect_refusal(&pair, SHAKE_TRUST, false);
    set_pair(&pair, OOB_CARDS); /* not the keys of the card */
    assert_int_equal(oob_key_pair(pair.caller.public_key, pair.caller.private_key), NCCLX_SUCCESS);
    pair.caller.public_key[0] ^= 1;
    expect_refusal(&pair, SHAKE_WRONG_KEY, false);
    set_pair(&pair, OOB_CARDS); /* a key that gives everybody the same result */
    memset(pair.caller.public_key, 0, OOB_KEY_BYTES);
    expect_refusal(&pair, SHAKE_WRONG_KEY, false);
}

static void test_versions(void **state)
{
    struct pair pair;
    char text[256];
    (void)state;
    for (int trust = OOB_SECRET; trust <= OOB_CARDS; trust++) {
        set_pair(&pair, (enum oob_trust)trust);
        pair.caller.version = 9;
        strcpy(pair.caller.release, "9.5");
        expect_refusal(&pair, SHAKE_VERSION, true);
        shake_explain(&pair.acceptor, text, sizeof text);
        assert_string_equal(text, "runs ncclx 9.5 (protocol 9), this is ncclx 1.0 (protocol 1): install one version");
        shake_explain(&pair.connector, text, sizeof text);
        assert_string_equal(text, "runs ncclx 1.0 (protocol 1), this is ncclx 9.5 (protocol 9): install one version");
        set_pair(&pair, (enum oob_trust)trust);
        strcpy(pair.caller.release, "1.0.1"); /* the same protocol, but another release */
        expect_refusal(&pair, SHAKE_VERSION, true);
    }
    set_pair(&pair, OOB_SECRET); /* somebody without the secret may say so, but is not believed */
    pair.caller.version = 9;
    pair.caller.secret[0]++;
    expect_refusal(&pair, SHAKE_VERSION, false);
    assert_int_equal(pair.connector.proven, false);
}

static void test_cards_without_peer(void **state)
{
    struct pair pair;
    (void)state;
    set_pair(&pair, OOB_CARDS);
    begin_pair(&pair);
    move(&pair.connector, &pair.acceptor, SIZE_MAX);
    assert_int_equal(pair.acceptor.state, SHAKE_WANTS_KEY);
    assert_int_equal(shake_wanted(&pair.acceptor), 0);
    shake_give_key(&pair.acceptor, NULL);
    assert_int_equal(pair.acceptor.trouble, SHAKE_NOBODY);
}

static enum shake_trouble trouble_after(struct pair *pair, const void *data, size_t bytes)
{
    begin_pair(pair);
    feed(&pair->acceptor, data, bytes);
    return pair->acceptor.trouble;
}

static void test_garbage(void **state)
{
    static const unsigned char tls[] = {0x16, 3, 1, 2, 0};
    struct pair pair;
    unsigned char hello[SHAKE_HELLO_BYTES];
    size_t bytes;
    (void)state;
    set_pair(&pair, OOB_SECRET);
    assert_int_equal(trouble_after(&pair, "GET / HTTP/1.1\r\n\r\n", 18), SHAKE_HTTP);
    assert_int_equal(trouble_after(&pair, "SSH-2.0-OpenSSH_9.2\r\n", 21), SHAKE_SSH);
    assert_int_equal(trouble_after(&pair, tls, sizeof tls), SHAKE_TLS);
    assert_int_equal(trouble_after(&pair, "\0", 1), SHAKE_GARBAGE);
    assert_int_equal(trouble_after(&pair, "NXOA", 4), SHAKE_GARBAGE);
    begin_pair(&pair);
    memcpy(hello, shake_output(&pair.connector, &bytes), sizeof hello);
    assert_int_equal(bytes, sizeof hello);
    for (size_t cut = 1; cut < sizeof hello; cut++) /* a part of it is not yet trouble */
        assert_int_equal(trouble_after(&pair, hello, cut), SHAKE_NO_TROUBLE);
    hello[8] = 255; /* longer than it should be, */
    assert_int_equal(trouble_after(&pair, hello, SHAKE_HEADER_BYTES), SHAKE_BAD_FRAME);
    hello[4] = 77; /* but not for another version, */
    assert_int_equal(trouble_after(&pair, hello, SHAKE_HEADER_BYTES), SHAKE_NO_TROUBLE);
    hello[9] = 255; /* except that this is longer than any may be */
    assert_int_equal(trouble_after(&pair, hello, SHAKE_HEADER_BYTES), SHAKE_BAD_FRAME);
    begin_pair(&pair);
    memcpy(hello, shake_output(&pair.connector, &bytes), sizeof hello);
    hello[6] = SHAKE_CONFIRM;
    assert_int_equal(trouble_after(&pair, hello, SHAKE_HEADER_BYTES), SHAKE_BAD_FRAME);
}

/* Each bit of each frame counts. */
static void test_changed_bits(void **state)
{
    static const size_t frames[] = {SHAKE_HELLO_BYTES, SHAKE_ANSWER_BYTES, SHAKE_CONFIRM_BYTES};
    (void)state;
    struct pair pair;
    set_pair(&pair, OOB_SECRET);
    for (size_t frame = 0; frame < 3; frame++) {
        for (size_t bit = 0; bit < frames[frame] * 8; bit += frame == 0 ? 1 : 3) {
            begin_pair(&pair);
            if (frame > 0) move(&pair.connector, &pair.acceptor, SIZE_MAX);
            if (frame > 1) move(&pair.acceptor, &pair.connector, SIZE_MAX);
            struct shake *from = frame == 1 ? &pair.acceptor : &pair.connector;
            from->out[bit / 8] ^= (unsigned char)(1u << bit % 8);
            run_pair(&pair, SIZE_MAX);
            assert_int_not_equal(pair.acceptor.state, SHAKE_DONE);
            if (frame < 2) assert_int_not_equal(pair.connector.state, SHAKE_DONE);
        }
    }
}

/* What was recorded gets an answer, once more, and then no further. */
static void test_replay(void **state)
{
    struct pair pair;
    unsigned char hello[SHAKE_HELLO_BYTES], confirm[SHAKE_CONFIRM_BYTES];
    size_t bytes;
    (void)state;
    set_pair(&pair, OOB_SECRET);
    begin_pair(&pair);
    memcpy(hello, shake_output(&pair.connector, &bytes), sizeof hello);
    move(&pair.connector, &pair.acceptor, SIZE_MAX);
    move(&pair.acceptor, &pair.connector, SIZE_MAX);
    memcpy(confirm, shake_output(&pair.connector, &bytes), sizeof confirm);
    move(&pair.connector, &pair.acceptor, SIZE_MAX);
    expect_agreement(&pair);
    begin_pair(&pair);
    feed(&pair.acceptor, hello, sizeof hello);
    assert_int_equal(pair.acceptor.state, SHAKE_TALKING);
    shake_output(&pair.acceptor, &bytes);
    shake_sent(&pair.acceptor, bytes);
    feed(&pair.acceptor, confirm, sizeof confirm);
    assert_int_equal(pair.acceptor.state, SHAKE_FAILED);
    assert_int_equal(pair.acceptor.trouble, SHAKE_REPLAY);
}

/* The first byte after the handshake is not taken. */
static void test_no_reading_ahead(void **state)
{
    struct pair pair;
    unsigned char stream[SHAKE_CONFIRM_BYTES + 5];
    size_t bytes;
    (void)state;
    set_pair(&pair, OOB_SECRET);
    begin_pair(&pair);
    move(&pair.connector, &pair.acceptor, SIZE_MAX);
    move(&pair.acceptor, &pair.connector, SIZE_MAX);
    memcpy(stream, shake_output(&pair.connector, &bytes), SHAKE_CONFIRM_BYTES);
    assert_int_equal(bytes, SHAKE_CONFIRM_BYTES);
    size_t taken = 0;
    while (shake_wanted(&pair.acceptor)) {
        size_t wanted = shake_wanted(&pair.acceptor);
        assert_true(taken + wanted <= SHAKE_CONFIRM_BYTES);
        shake_receive(&pair.acceptor, stream + taken, wanted);
        taken += wanted;
    }
    assert_int_equal(taken, SHAKE_CONFIRM_BYTES);
    assert_int_equal(pair.acceptor.state, SHAKE_DONE);
}

static void test_identity(void **state)
{
    struct shake_self self;
    struct oob_identity identity = {.job = "job", .position = 0, .positions = 1, .trust = OOB_SECRET};
    (void)state;
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_SUCCESS);
    identity.position = 1;
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_ERR_ARG);
    identity.position = OOB_FRONT;
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_SUCCESS);
    identity.trust = 0;
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_ERR_ARG);
    identity.trust = OOB_SECRET;
    identity.release = "a release with a long name";
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_ERR_ARG);
    identity.release = NULL;
    identity.job = NULL;
    assert_int_equal(shake_self_set(&self, &identity), NCCLX_ERR_ARG);
}

/* ---- Sealed records ---- */

static void test_seal(void **state)
{
    static unsigned char data[OOB_RECORD_MAX], record[OOB_RECORD_MAX + OOB_RECORD_EXTRA], back[OOB_RECORD_MAX];
    unsigned char key[OOB_KEY_BYTES] = {1}, earlier[100 + OOB_RECORD_EXTRA];
    struct oob_seal out, in;
    (void)state;
    oob_random(data, sizeof data);
    oob_seal_begin(&out, key);
    oob_seal_begin(&in, key);
    const size_t sizes[] = {1, 15, 100, 65535, OOB_RECORD_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i], total = bytes + OOB_RECORD_EXTRA;
        oob_seal(&out, data, bytes, record);
        assert_int_equal(oob_record_bytes(record, 3), OOB_RECORD_HEADER);
        assert_int_equal(oob_record_bytes(record, OOB_RECORD_HEADER), total);
        if (bytes > 16) assert_memory_not_equal(record + OOB_RECORD_HEADER, data, 16);
        if (bytes == 100) memcpy(earlier, record, sizeof earlier);
        assert_int_equal(oob_unseal(&in, record, total, back), NCCLX_SUCCESS);
        assert_memory_equal(back, data, bytes);
    }
    assert_int_equal(oob_unseal(&in, earlier, sizeof earlier, back), NCCLX_ERR_TRANSPORT); /* repeated */
    for (size_t bit = 0; bit < sizeof earlier * 8; bit += 5) {                             /* changed */
        oob_seal_begin(&in, key);
        in.count = 2;
        earlier[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(oob_unseal(&in, earlier, sizeof earlier, back), NCCLX_ERR_TRANSPORT);
        earlier[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(oob_unseal(&in, earlier, sizeof earlier - 1, back), NCCLX_ERR_TRANSPORT);
    assert_int_equal(oob_unseal(&in, earlier, sizeof earlier, earlier + OOB_RECORD_HEADER), NCCLX_SUCCESS);
    assert_memory_equal(earlier + OOB_RECORD_HEADER, data, 100);
    memmove(record + OOB_RECORD_HEADER, data, 100); /* sealed in place, too */
    oob_seal_begin(&out, key);
    oob_seal_begin(&in, key);
    oob_seal(&out, record + OOB_RECORD_HEADER, 100, record);
    assert_int_equal(oob_unseal(&in, record, 100 + OOB_RECORD_EXTRA, back), NCCLX_SUCCESS);
    assert_memory_equal(back, data, 100);
    memset(record, 0, OOB_RECORD_HEADER);
    assert_int_equal(oob_record_bytes(record, 100), 0);
    record[2] = 1, record[0] = 1;
    assert_int_equal(oob_record_bytes(record, 100), 0);
}

/* ---- When to try which address ---- */

static void test_tries(void **state)
{
    const struct tries_limits limits = {
        .try_ns = 2000 * MS, .pause_ns = 50 * MS, .pause_most_ns = 2000 * MS, .all_ns = 30000 * MS};
    struct tries tries;
    uint64_t now = 5 * MS;
    (void)state;
    tries_begin(&tries, 2, &limits, now, 1);
    assert_int_equal(tries_deadline(&tries), 0);
    assert_int_equal(tries_step(&tries, now), TRIES_OPEN);
    assert_int_equal(tries.next, 0);
    assert_int_equal(tries_deadline(&tries), now + 2000 * MS);
    assert_int_equal(tries_step(&tries, now + 1999 * MS), TRIES_WAIT);
    now += 2000 * MS;
    assert_int_equal(tries_step(&tries, now), TRIES_CLOSE); /* silent */
    assert_int_equal(tries_step(&tries, now), TRIES_OPEN);
    assert_int_equal(tries.next, 1);
    tries_failed(&tries, now);
    assert_int_equal(tries_step(&tries, now), TRIES_WAIT);
    assert_in_range(tries_deadline(&tries), now + 25 * MS, now + 75 * MS);
    for (int round = 1; round < 12; round++) { /* refused each time: pauses grow to their limit */
        uint64_t pause = tries_deadline(&tries) - now;
        uint64_t about = UINT64_C(50) << (round - 1) < 2000 ? (UINT64_C(50) << (round - 1)) * MS : 2000 * MS;
        assert_in_range(pause, about / 2, about * 3 / 2);
        now += pause;
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(tries_step(&tries, now), TRIES_OPEN);
            assert_int_equal(tries.next, i);
            assert_in_range(tries_deadline(&tries), now + 1, now + TRIES_MOST_TIMES * limits.try_ns);
            tries_failed(&tries, now);
        }
    }
    assert_true(tries_deadline(&tries) <= 5 * MS + limits.all_ns);
    assert_int_equal(tries_step(&tries, 5 * MS + limits.all_ns), TRIES_GIVE_UP);
    assert_int_equal(tries_deadline(&tries), UINT64_MAX);
    assert_int_equal(tries_step(&tries, UINT64_MAX), TRIES_WAIT);
}

/* Of many that fail at one moment, no large part comes back in the same millisecond. */
/* Of three addresses the first says enough. */
static void test_end_of_round(void **state)
{
    const struct tries_limits limits = {.try_ns = 2000 * MS, .pause_ns = 50 * MS, .pause_most_ns = 2000 * MS, .all_ns = 100000 * MS};
    struct tries tries;
    uint64_t now = 0;
    (void)state;
    tries_begin(&tries, 3, &limits, now, 1);
    for (int round = 0; round < 6; round++) {
        bool soon = round == 4;
        assert_int_equal(tries_step(&tries, now), TRIES_OPEN);
        assert_int_equal(tries.next, 0);
        tries_failed(&tries, now);
        tries_end_round(&tries, now, soon);
        assert_int_equal(tries_step(&tries, now), TRIES_WAIT);
        uint64_t usual = soon ? 50 * MS : 50 * MS << (round == 5 ? 1 : round);
        assert_in_range(tries_deadline(&tries) - now, usual / 2, usual * 3 / 2);
        now = tries_deadline(&tries);
    }
}

static void test_no_herd(void **state)
{
    const struct tries_limits limits = {
        .try_ns = 2000 * MS, .pause_ns = 50 * MS, .pause_most_ns = 2000 * MS, .all_ns = 30000 * MS};
    unsigned at[76] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct tries tries;
        tries_begin(&tries, 1, &limits, 0, seed * 7919);
        assert_int_equal(tries_step(&tries, 0), TRIES_OPEN);
        tries_failed(&tries, 0);
        at[tries_deadline(&tries) / MS]++;
    }
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) assert_true(at[i] < 60);
}

/* ---- Strangers ---- */

static void test_guests(void **state)
{
    struct guest list[3];
    struct guests guests;
    const uint64_t later = GUEST_GRACE + 3;
    (void)state;
    guests_init(&guests, list, 3);
    assert_int_equal(guests_victim(&guests, 0), -1);
    assert_int_equal(guests_deadline(&guests), UINT64_MAX);
    assert_int_equal(guests_admit(&guests, 1, later + 10), 0);
    assert_int_equal(guests_admit(&guests, 2, later + 11), 1);
    assert_int_equal(guests_room_at(&guests, 3), 0);
    assert_int_equal(guests_admit(&guests, 3, later + 12), 2);
    assert_int_equal(guests_admit(&guests, 4, later + 13), -1);
    assert_int_equal(guests_victim(&guests, 4), 0); /* the oldest, */
    guests_standing(&guests, 0, GUEST_PROVEN);
    assert_int_equal(guests_victim(&guests, 4), 1); /* unless it has shown a key, */
    assert_int_equal(guests_victim(&guests, later), 1);
    guests_standing(&guests, 2, GUEST_LEAVING);
    assert_int_equal(guests_victim(&guests, 4), 2); /* and one that was sent away goes before all */
    assert_int_equal(guests_deadline(&guests), later + 10);
    assert_int_equal(guests_expired(&guests, later + 9), -1);
    guests_hurry(&guests, 2, later + 5);
    assert_int_equal(guests_expired(&guests, later + 9), 2);
    guests_standing(&guests, 1, GUEST_PROVEN);
    guests_standing(&guests, 2, GUEST_PROVEN);
    assert_int_equal(guests_victim(&guests, 4), -1); /* all may be honest, and need a moment: others wait */
    assert_int_equal(guests_room_at(&guests, 4), GUEST_GRACE + 1);
    assert_int_equal(guests_room_at(&guests, GUEST_GRACE + 1), 0);
    assert_int_equal(guests_victim(&guests, later), 0); /* but no longer: it may be a repetition */
    guests_release(&guests, 2);
    assert_int_equal(guests_room_at(&guests, 4), 0);
    guests_release(&guests, 1);
    assert_int_equal(guests_expired(&guests, later + 10), 0);
    guests_release(&guests, 0);
    assert_int_equal(guests_expired(&guests, UINT64_MAX), -1);
}

static void test_remarks(void **state)
{
    struct remarks remarks = {0};
    struct remark remark;
    unsigned char from[16] = {0};
    unsigned lines = 0;
    uint64_t all = 0;
    (void)state;
    assert_true(remarks_add(&remarks, 1, from, "one", 100));
    for (int i = 0; i < 1000; i++) assert_false(remarks_add(&remarks, 1, from, "one", 200));
    assert_true(remarks_add(&remarks, 2, from, "another", 300));
    assert_int_equal(remarks_deadline(&remarks), 100 + REMARKS_PERIOD);
    assert_false(remarks_take(&remarks, 99 + REMARKS_PERIOD, false, &remark));
    assert_true(remarks_take(&remarks, 100 + REMARKS_PERIOD, false, &remark));
    assert_int_equal(remark.repeats, 1000);
    assert_string_equal(remark.text, "one");
    assert_false(remarks_take(&remarks, 100 + REMARKS_PERIOD, false, &remark));
    for (unsigned i = 0; i < 100000; i++) { /* from everywhere */
        memcpy(from, &i, sizeof i);
        lines += remarks_add(&remarks, 3, from, "many", 400);
    }
    assert_in_range(lines, 1, REMARKS_KINDS);
    while (remarks_take(&remarks, 0, true, &remark)) all += remark.repeats;
    assert_int_equal(all + lines, 100000);
    assert_int_equal(remarks_deadline(&remarks), UINT64_MAX);
}

/* ---- Addresses ---- */

static void test_address_text(void **state)
{
    static const char *const good[] = {"192.0.2.1:4711", "[2001:db8::1]:1", "[fe80::1]:65535,10.0.0.1:80"};
    static const char *const bad[] = {"",       "192.0.2.1",    "192.0.2.1:0",  "192.0.2.1:65536", "192.0.2:1", ":1",
                                      "[::1:1", "[::1]",        "::1:80",       "[::1]:80,",       ",",         "[]:1",
                                      "1:2:3",  "10.0.0.1:+80", "10.0.0.1:80 ", "[10.0.0.1]:80",   "[::1]:8x"};
    struct oob_addresses addresses;
    char text[OOB_MAX_ADDRESSES * OOB_ADDRESS_TEXT], longer[60 * 16];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(oob_addresses_parse(good[i], &addresses), NCCLX_SUCCESS);
        oob_addresses_format(&addresses, text, sizeof text);
        assert_string_equal(text, good[i]);
    }
    oob_addresses_format(&addresses, text, 20); /* room for the first only */
    assert_string_equal(text, "[fe80::1]:65535");
    oob_addresses_format(&addresses, text, 3);
    assert_string_equal(text, "");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(oob_addresses_parse(bad[i], &addresses), NCCLX_ERR_ARG);
    longer[0] = 0;
    for (int i = 0; i <= OOB_MAX_ADDRESSES; i++) strcat(longer, i ? ",10.0.0.1:1" : "10.0.0.1:1");
    assert_int_equal(oob_addresses_parse(longer, &addresses), NCCLX_ERR_ARG);
    *strrchr(longer, ',') = 0;
    assert_int_equal(oob_addresses_parse(longer, &addresses), NCCLX_SUCCESS);
    assert_int_equal(addresses.count, OOB_MAX_ADDRESSES);
    addresses.list[0] = (struct oob_address){.family = 6, .bytes = {0xfe, 0x80, [15] = 9}, .port = 5, .scope = 3};
    assert_string_equal(oob_address_text(&addresses.list[0], text), "[fe80::9%3]:5");
}

static struct address_here here(const char *text, unsigned interface, const char *name)
{
    struct oob_addresses addresses;
    struct address_here entry = {.interface = interface};
    assert_int_equal(oob_addresses_parse(text, &addresses), NCCLX_SUCCESS);
    entry.address = addresses.list[0];
    strcpy(entry.name, name);
    return entry;
}

static void expect_order(struct address_here *list, size_t count, const struct oob_address *source, const char *order)
{
    struct oob_addresses addresses = {0};
    char text[1000];
    address_order(list, &count, source);
    for (size_t i = 0; i < count; i++) addresses.list[addresses.count++] = list[i].address;
    oob_addresses_format(&addresses, text, sizeof text);
    assert_string_equal(text, order);
}

static void test_address_order(void **state)
{
    const struct address_here all[] = {here("127.0.0.1:1", 1, "lo"),       here("[::1]:1", 1, "lo"),
                                       here("[fe80::1]:1", 3, "eth1"),     here("172.17.0.1:1", 2, "docker0"),
                                       here("10.0.0.1:1", 3, "eth1"),      here("[2001:db8::1]:1", 3, "eth1"),
                                       here("172.17.0.1:1", 5, "docker1"), here("169.254.1.1:1", 6, "usb0")};
    struct address_here list[8];
    (void)state;
    memcpy(list, all, sizeof all);
    expect_order(list, 8, NULL, "172.17.0.1:1,10.0.0.1:1,[2001:db8::1]:1,[fe80::1]:1,169.254.1.1:1");
    memcpy(list, all, sizeof all); /* the route decides */
    expect_order(list, 8, &all[4].address, "10.0.0.1:1,[2001:db8::1]:1,172.17.0.1:1,[fe80::1]:1,169.254.1.1:1");
    memcpy(list, all, sizeof all); /* to a neighbour by its link-local address */
    expect_order(list, 8, &all[2].address, "[fe80::1]:1,10.0.0.1:1,[2001:db8::1]:1,172.17.0.1:1,169.254.1.1:1");
    memcpy(list, all, sizeof all); /* to somebody on this host */
    expect_order(list, 8, &all[0].address,
                 "127.0.0.1:1,172.17.0.1:1,10.0.0.1:1,[2001:db8::1]:1,[fe80::1]:1,169.254.1.1:1");
    memcpy(list, all, sizeof all);
    expect_order(list, 2, NULL, "127.0.0.1:1,[::1]:1"); /* there is no other */
}

static void test_networks(void **state)
{
    struct address_here one = here("10.1.2.3:1", 2, "eth0"), six = here("[fd00:1::5]:1", 2, "eth0");
    (void)state;
    assert_true(address_in_networks(&one, NULL));
    assert_true(address_in_networks(&one, "10.1.0.0/16"));
    assert_false(address_in_networks(&one, "10.2.0.0/16"));
    assert_true(address_in_networks(&one, "10.2.0.0/16,eth0"));
    assert_true(address_in_networks(&one, "10.1.2.3"));
    assert_false(address_in_networks(&one, "10.1.2.2"));
    assert_true(address_in_networks(&one, "10.1.2.2/31"));
    assert_true(address_in_networks(&one, "0.0.0.0/0"));
    assert_false(address_in_networks(&six, "0.0.0.0/0"));
    assert_true(address_in_networks(&six, "10.0.0.0/8,fd00:1::/32"));
    assert_false(address_in_networks(&six, "fd00:2::/32"));
    static const char *const bad[] = {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "a name that is too long",
                                      "eth0/8",      ",",         "eth0,,eth1",  "10.0.0.0/-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(address_check_networks(bad[i]), NCCLX_ERR_ARG);
    assert_int_equal(address_check_networks("10.0.0.0/8,fd00::/8,eth0,192.0.2.1"), NCCLX_SUCCESS);
}

static int load(void **state)
{
    (void)state;
    return crypto_load();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_versions),     cmocka_unit_test(test_cards_without_peer),
        cmocka_unit_test(test_garbage),      cmocka_unit_test(test_changed_bits),
        cmocka_unit_test(test_replay),       cmocka_unit_test(test_no_reading_ahead),
        cmocka_unit_test(test_identity),     cmocka_unit_test(test_seal),
        cmocka_unit_test(test_tries),        cmocka_unit_test(test_no_herd),
        cmocka_unit_test(test_guests),       cmocka_unit_test(test_remarks),
        cmocka_unit_test(test_address_text), cmocka_unit_test(test_address_order),
        cmocka_unit_test(test_networks),     cmocka_unit_test(test_end_of_round),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
