/* shake.c - the handshake. Every byte that comes in is a stranger's until a proof says otherwise. */
#include "config.h"

#include "bootstrap/oob/shake.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <stdio.h>
#include <string.h>

#define PROOF_BYTES CRYPTO_BYTES

/* Places in frames. */
#define HELLO_RELEASE SHAKE_HEADER_BYTES
#define HELLO_EPHEMERAL (HELLO_RELEASE + SHAKE_RELEASE_BYTES)
#define HELLO_JOB (HELLO_EPHEMERAL + OOB_KEY_BYTES)
#define HELLO_FROM (HELLO_JOB + SHAKE_JOB_BYTES)
#define HELLO_TO (HELLO_FROM + 4)
#define HELLO_TAG (HELLO_TO + 4)
#define HELLO_PROOF (HELLO_TAG + 8)
#define ANSWER_EPHEMERAL SHAKE_HEADER_BYTES
#define ANSWER_PROOF (ANSWER_EPHEMERAL + OOB_KEY_BYTES)
#define CONFIRM_PROOF SHAKE_HEADER_BYTES
#define REFUSE_REASON SHAKE_HEADER_BYTES
#define REFUSE_RELEASE (REFUSE_REASON + 4)
#define REFUSE_PROOF (REFUSE_RELEASE + SHAKE_RELEASE_BYTES)
_Static_assert(HELLO_PROOF + PROOF_BYTES == SHAKE_HELLO_BYTES, "length of HELLO");
_Static_assert(ANSWER_PROOF + PROOF_BYTES == SHAKE_ANSWER_BYTES, "length of ANSWER");
_Static_assert(CONFIRM_PROOF + PROOF_BYTES == SHAKE_CONFIRM_BYTES, "length of CONFIRM");
_Static_assert(REFUSE_PROOF + PROOF_BYTES == SHAKE_REFUSE_BYTES, "length of REFUSE");

static const char magic[4] = {'N', 'X', 'O', 'B'};

static void put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

int shake_self_set(struct shake_self *self, const struct oob_identity *identity)
{
    const char *release = identity->release ? identity->release : PACKAGE_VERSION;
    unsigned char digest[CRYPTO_BYTES];
    memset(self, 0, sizeof *self);
    if (!identity->job || strlen(identity->job) > OOB_MAX_JOB || strlen(release) > OOB_MAX_RELEASE)
        return base_error(NCCLX_ERR_ARG,
                          "a job's name of at most %d characters, and a release's of at most %d, are "
                          "needed for its sockets",
                          OOB_MAX_JOB, OOB_MAX_RELEASE);
    if (identity->trust != OOB_SECRET && identity->trust != OOB_CARDS)
        return base_error(NCCLX_ERR_ARG, "there is no kind of trust number %d", identity->trust);
    if (identity->position >= identity->positions && identity->position != OOB_FRONT)
        return base_error(NCCLX_ERR_ARG, "there is no position %u in a job of %u", identity->position,
                          identity->positions);
    self->trust = identity->trust;
    self->position = identity->position;
    self->positions = identity->positions;
    self->version = OOB_VERSION;
    memcpy(self->release, release, strlen(release));
    memcpy(self->secret, identity->secret, OOB_KEY_BYTES);
    memcpy(self->public_key, identity->public_key, OOB_KEY_BYTES);
    memcpy(self->private_key, identity->private_key, OOB_KEY_BYTES);
    crypto_digest(digest, NULL, "job", &(struct crypto_piece){identity->job, strlen(identity->job)}, 1);
    memcpy(self->job, digest, SHAKE_JOB_BYTES);
    return NCCLX_SUCCESS;
}

static void fail(struct shake *shake, enum shake_trouble trouble)
{
    shake->state = SHAKE_FAILED;
    shake->trouble = trouble;
}

/* ---- What is sent ---- */

static unsigned char *begin_frame(struct shake *shake, enum shake_type type, size_t bytes)
{
    memset(shake->out, 0, bytes);
    memcpy(shake->out, magic, sizeof magic);
    put(shake->out + 4, shake->self->version, 2);
    shake->out[6] = (unsigned char)type;
    shake->out[7] = (unsigned char)shake->self->trust;
    put(shake->out + 8, bytes - SHAKE_HEADER_BYTES, 2);
    shake->sent = 0;
    shake->unsent = bytes;
    return shake->out;
}

/* The key that the two ends share before they speak. False: there is none. */
static bool find_base(struct shake *shake)
{
    unsigned char shared[CRYPTO_BYTES];
    if (shake->self->trust == OOB_SECRET) {
        memcpy(shake->base, shake->self->secret, OOB_KEY_BYTES);
        return true;
    }
    if (!crypto_shared(shared, shake->self->private_key, shake->peer_key)) return false;
    crypto_digest(shake->base, NULL, "cards", &(struct crypto_piece){shared, sizeof shared}, 1);
    oob_wipe(shared, sizeof shared);
    return true;
}

static void hello_proof(const struct shake *shake, unsigned char proof[PROOF_BYTES])
{
    crypto_digest(proof, shake->base, "hello", &(struct crypto_piece){shake->hello, HELLO_PROOF}, 1);
}

static void refuse_proof(const struct shake *shake, const unsigned char *refuse, unsigned char proof[PROOF_BYTES])
{
    const struct crypto_piece pieces[] = {{shake->hello, HELLO_PROOF}, {refuse, REFUSE_PROOF}};
    crypto_digest(proof, shake->base, "refuse", pieces, 2);
}

static void refuse(struct shake *shake, enum shake_trouble reason, bool proven)
{
    unsigned char *frame = begin_frame(shake, SHAKE_REFUSE, SHAKE_REFUSE_BYTES);
    frame[REFUSE_REASON] = (unsigned char)reason;
    memcpy(frame + REFUSE_RELEASE, shake->self->release, SHAKE_RELEASE_BYTES);
    if (proven) refuse_proof(shake, frame, frame + REFUSE_PROOF);
    shake->refused = true;
    fail(shake, reason);
}

/* After HELLO and ANSWER (without its proof) are known. False: the other end's key is a trap. */
static bool find_session(struct shake *shake, const unsigned char *their_ephemeral, const unsigned char *answer)
{
    unsigned char results[3][CRYPTO_BYTES] = {{0}}; /* ephemeral both; connector's long-term; acceptor's long-term */
    const struct shake_self *self = shake->self;
    bool good = crypto_shared(results[0], shake->ephemeral, their_ephemeral);
    if (self->trust == OOB_CARDS) {
        int mine = shake->connector ? 1 : 2;
        good = good && crypto_shared(results[mine], self->private_key, their_ephemeral) &&
               crypto_shared(results[3 - mine], shake->ephemeral, shake->peer_key);
    }
    const struct crypto_piece pieces[] = {
        {results, sizeof results}, {shake->hello, SHAKE_HELLO_BYTES}, {answer, ANSWER_PROOF}};
    crypto_digest(shake->session, shake->base, "session", pieces, 3);
    oob_wipe(results, sizeof results);
    return good;
}

static void session_digest(const struct shake *shake, const char *label, unsigned char out[CRYPTO_BYTES])
{
    crypto_digest(out, shake->session, label, NULL, 0);
}

static void finish(struct shake *shake)
{
    session_digest(shake, "from connector", shake->connector ? shake->keys.send : shake->keys.receive);
    session_digest(shake, "from acceptor", shake->connector ? shake->keys.receive : shake->keys.send);
    shake->proven = true;
    shake->state = SHAKE_DONE;
}

void shake_connect(struct shake *shake, const struct shake_self *self, uint32_t peer, const unsigned char *peer_key,
                   uint64_t tag, const unsigned char random[OOB_KEY_BYTES])
{
    memset(shake, 0, sizeof *shake);
    shake->self = self;
    shake->connector = true;
    shake->peer = peer;
    shake->tag = tag;
    if (peer_key) memcpy(shake->peer_key, peer_key, OOB_KEY_BYTES);
    memcpy(shake->ephemeral, random, OOB_KEY_BYTES);
    if (!find_base(shake)) {
        fail(shake, SHAKE_WRONG_KEY);
        return;
    }
    unsigned char *frame = begin_frame(shake, SHAKE_HELLO, SHAKE_HELLO_BYTES);
    memcpy(frame + HELLO_RELEASE, self->release, SHAKE_RELEASE_BYTES);
    crypto_public(frame + HELLO_EPHEMERAL, shake->ephemeral);
    memcpy(frame + HELLO_JOB, self->job, SHAKE_JOB_BYTES);
    put(frame + HELLO_FROM, self->position, 4);
    put(frame + HELLO_TO, peer, 4);
    put(frame + HELLO_TAG, tag, 8);
    memcpy(shake->hello, frame, SHAKE_HELLO_BYTES);
    hello_proof(shake, shake->hello + HELLO_PROOF);
    memcpy(frame, shake->hello, SHAKE_HELLO_BYTES);
}

void shake_accept(struct shake *shake, const struct shake_self *self, const unsigned char random[OOB_KEY_BYTES])
{
    memset(shake, 0, sizeof *shake);
    shake->self = self;
    memcpy(shake->ephemeral, random, OOB_KEY_BYTES);
}

void shake_end(struct shake *shake)
{
    oob_wipe(shake, sizeof *shake);
}

/* ---- What comes ---- */

static void take_release(struct shake *shake, const unsigned char *at)
{
    memcpy(shake->their_release, at, OOB_MAX_RELEASE);
    for (char *c = shake->their_release; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?'; /* it is going to be printed */
}

static bool known_position(const struct shake *shake, uint32_t position)
{
    return position < shake->self->positions || position == OOB_FRONT;
}

static void answer_hello(struct shake *shake)
{
    unsigned char proof[PROOF_BYTES];
    hello_proof(shake, proof);
    if (!crypto_equal(proof, shake->hello + HELLO_PROOF, PROOF_BYTES) && !PLANTED_BUG(BUG_OOB_HELLO_UNCHECKED)) {
        refuse(shake, SHAKE_WRONG_KEY, false);
        return;
    }
    if (PLANTED_BUG(BUG_OOB_EPHEMERAL_REUSED)) memset(shake->ephemeral, 1, sizeof shake->ephemeral);
    unsigned char *frame = begin_frame(shake, SHAKE_ANSWER, SHAKE_ANSWER_BYTES);
    crypto_public(frame + ANSWER_EPHEMERAL, shake->ephemeral);
    if (!find_session(shake, shake->hello + HELLO_EPHEMERAL, frame)) {
        refuse(shake, SHAKE_WRONG_KEY, false);
        return;
    }
    session_digest(shake, "answer", frame + ANSWER_PROOF);
    shake->tag = get(shake->hello + HELLO_TAG, 8);
    shake->proven = true;
    shake->state = SHAKE_TALKING;
}

static bool same_version(const struct shake *shake)
{
    return PLANTED_BUG(BUG_OOB_VERSION_IGNORED) ||
           (shake->their_version == shake->self->version && !strcmp(shake->their_release, shake->self->release));
}

/* The connector may exist, and its key is known if that takes one. */
static void judge_hello(struct shake *shake)
{
    if (!find_base(shake))
        refuse(shake, SHAKE_WRONG_KEY, false);
    else if (!same_version(shake))
        refuse(shake, SHAKE_VERSION, true);
    else
        answer_hello(shake);
}

static void take_hello(struct shake *shake)
{
    const unsigned char *frame = shake->in;
    const struct shake_self *self = shake->self;
    memcpy(shake->hello, frame, SHAKE_HELLO_BYTES);
    take_release(shake, frame + HELLO_RELEASE);
    shake->peer = (uint32_t)get(frame + HELLO_FROM, 4);
    if (frame[7] != self->trust)
        refuse(shake, SHAKE_TRUST, false);
    else if (memcmp(frame + HELLO_JOB, self->job, SHAKE_JOB_BYTES) != 0 && !PLANTED_BUG(BUG_OOB_JOB_IGNORED))
        refuse(shake, SHAKE_JOB, false);
    else if (get(frame + HELLO_TO, 4) != self->position && !PLANTED_BUG(BUG_OOB_WRONG_HOST))
        refuse(shake, SHAKE_ELSEWHERE, false);
    else if (!known_position(shake, shake->peer) || shake->peer == self->position)
        refuse(shake, SHAKE_NOBODY, false);
    else if (self->trust == OOB_CARDS)
        shake->state = SHAKE_WANTS_KEY;
    else
        judge_hello(shake);
}

void shake_give_key(struct shake *shake, const unsigned char *key)
{
    if (shake->state != SHAKE_WANTS_KEY) return;
    if (!key) {
        refuse(shake, SHAKE_NOBODY, false);
        return;
    }
    memcpy(shake->peer_key, key, OOB_KEY_BYTES);
    judge_hello(shake);
}

static void take_answer(struct shake *shake)
{
    unsigned char proof[PROOF_BYTES];
    if (!find_session(shake, shake->in + ANSWER_EPHEMERAL, shake->in)) {
        fail(shake, SHAKE_WRONG_KEY);
        return;
    }
    session_digest(shake, "answer", proof);
    if (!crypto_equal(proof, shake->in + ANSWER_PROOF, PROOF_BYTES) && !PLANTED_BUG(BUG_OOB_ANSWER_UNCHECKED)) {
        fail(shake, SHAKE_WRONG_KEY);
        return;
    }
    session_digest(shake, "confirm", begin_frame(shake, SHAKE_CONFIRM, SHAKE_CONFIRM_BYTES) + CONFIRM_PROOF);
    finish(shake);
}

static void take_confirm(struct shake *shake)
{
    unsigned char proof[PROOF_BYTES];
    session_digest(shake, "confirm", proof);
    if (crypto_equal(proof, shake->in + CONFIRM_PROOF, PROOF_BYTES) || PLANTED_BUG(BUG_OOB_CONFIRM_UNCHECKED))
        finish(shake);
    else
        fail(shake, SHAKE_REPLAY);
}

static void take_refuse(struct shake *shake)
{
    unsigned char proof[PROOF_BYTES];
    unsigned char reason = shake->in[REFUSE_REASON];
    take_release(shake, shake->in + REFUSE_RELEASE);
    refuse_proof(shake, shake->in, proof);
    shake->proven = crypto_equal(proof, shake->in + REFUSE_PROOF, PROOF_BYTES) || PLANTED_BUG(BUG_OOB_REFUSAL_BELIEVED);
    shake->told = true;
    fail(shake, reason >= SHAKE_VERSION && reason <= SHAKE_WRONG_KEY ? (enum shake_trouble)reason : SHAKE_BAD_FRAME);
}

/* Strangers that give themselves away by their first bytes. */
static enum shake_trouble garbage_kind(const unsigned char *data, size_t bytes)
{
    static const char *const methods[] = {"GET ", "HEAD", "POST", "PUT ", "OPTI", "CONN", "PRI "};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (!memcmp(data, methods[i], bytes < 4 ? bytes : 4)) return SHAKE_HTTP;
    if (!memcmp(data, "SSH-", bytes < 4 ? bytes : 4)) return SHAKE_SSH;
    return data[0] == 0x16 && (bytes < 2 || data[1] == 3) ? SHAKE_TLS : SHAKE_GARBAGE;
}

static size_t frame_bytes(const struct shake *shake)
{
    return SHAKE_HEADER_BYTES + (size_t)get(shake->in + 8, 2);
}

/* The type may come now, and the length is what it should be. */
static bool good_header(const struct shake *shake)
{
    size_t bytes = frame_bytes(shake);
    bool same = shake->their_version == shake->self->version;
    if (bytes > SHAKE_MAX_BYTES || shake->in[10] || shake->in[11]) return false;
    switch (shake->in[6]) {
    case SHAKE_HELLO:
        return !shake->connector && !shake->proven &&
               (same ? bytes == SHAKE_HELLO_BYTES : bytes >= HELLO_PROOF); /* others may have a longer one */
    case SHAKE_ANSWER:
        return shake->connector && same && bytes == SHAKE_ANSWER_BYTES;
    case SHAKE_CONFIRM:
        return !shake->connector && shake->proven && same && shake->in[7] == shake->self->trust &&
               bytes == SHAKE_CONFIRM_BYTES;
    case SHAKE_REFUSE:
        return shake->connector && (same ? bytes == SHAKE_REFUSE_BYTES : bytes >= SHAKE_REFUSE_BYTES);
    default:
        return false;
    }
}

static void take_frame(struct shake *shake)
{
    unsigned char type = shake->in[6];
    shake->have = 0;
    if (type == SHAKE_HELLO)
        take_hello(shake);
    else if (type == SHAKE_ANSWER)
        take_answer(shake);
    else if (type == SHAKE_CONFIRM)
        take_confirm(shake);
    else
        take_refuse(shake);
}

size_t shake_wanted(const struct shake *shake)
{
    if (shake->state != SHAKE_TALKING) return 0;
    size_t total = shake->have < SHAKE_HEADER_BYTES ? SHAKE_HEADER_BYTES : frame_bytes(shake);
    if (PLANTED_BUG(BUG_OOB_READS_AHEAD)) total = SHAKE_MAX_BYTES;
    return total - shake->have;
}

void shake_receive(struct shake *shake, const void *data, size_t bytes)
{
    if (bytes > shake_wanted(shake)) bytes = shake_wanted(shake);
    if (!bytes) return;
    memcpy(shake->in + shake->have, data, bytes);
    bool had_header = shake->have >= SHAKE_HEADER_BYTES;
    shake->have += bytes;
    size_t checked = shake->have < sizeof magic ? shake->have : sizeof magic;
    if (memcmp(shake->in, magic, checked) != 0) {
        fail(shake, garbage_kind(shake->in, shake->have));
        return;
    }
    if (shake->have < SHAKE_HEADER_BYTES) return;
    if (!had_header) {
        shake->their_version = (uint16_t)get(shake->in + 4, 2);
        if (!good_header(shake)) {
            fail(shake, SHAKE_BAD_FRAME);
            return;
        }
    }
    if (shake->have >= frame_bytes(shake)) take_frame(shake);
}

const void *shake_output(const struct shake *shake, size_t *bytes)
{
    *bytes = shake->unsent;
    return shake->out + shake->sent;
}

void shake_sent(struct shake *shake, size_t bytes)
{
    shake->sent += bytes;
    shake->unsent -= bytes;
}

void shake_explain(const struct shake *shake, char *text, size_t room)
{
    static const char *const to_acceptor[SHAKE_TROUBLE_COUNT] = {
        [SHAKE_NO_TROUBLE] = "has ended the connection before it said who it is",
        [SHAKE_TRUST] = "has another kind of key",
        [SHAKE_JOB] = "belongs to another job",
        [SHAKE_ELSEWHERE] = "looks for somebody else",
        [SHAKE_NOBODY] = "says to be somebody who is not of this job",
        [SHAKE_WRONG_KEY] = "does not have the key of this job",
        [SHAKE_GARBAGE] = "does not speak the protocol of ncclx",
        [SHAKE_HTTP] = "speaks HTTP",
        [SHAKE_TLS] = "speaks TLS",
        [SHAKE_SSH] = "speaks SSH",
        [SHAKE_BAD_FRAME] = "sends broken messages",
        [SHAKE_REPLAY] = "repeats what others have said",
    };
    static const char *const to_connector[SHAKE_TROUBLE_COUNT] = {
        [SHAKE_NO_TROUBLE] = "has ended the connection",
        [SHAKE_ELSEWHERE] = "is of this job, but not the one that was looked for",
        [SHAKE_NOBODY] = "does not know this end",
        [SHAKE_WRONG_KEY] = "cannot prove that it is of this job",
    };
    const struct shake_self *self = shake->self;
    const char *what = shake->connector ? to_connector[shake->trouble] : NULL;
    if (!shake->connector && shake->proven && shake->trouble == SHAKE_NO_TROUBLE)
        what = "has ended the connection in the middle of the handshake";
    if (shake->trouble == SHAKE_VERSION)
        snprintf(text, room, "runs ncclx %s (protocol %u), this is ncclx %s (protocol %u): install one version",
                 shake->their_release, shake->their_version, self->release, self->version);
    else if (shake->told && shake->trouble == SHAKE_WRONG_KEY)
        snprintf(text, room, "says that this end does not have the key of its job");
    else
        snprintf(text, room, "%s", what ? what : to_acceptor[shake->trouble]);
}
