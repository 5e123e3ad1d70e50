/* shake.h - the handshake, as a pure core: bytes in, bytes out. Random bytes come from the caller; there is no time in
 * it, deadlines are the driver's.
 *
 * A frame is 12 bytes of header ("NXOB", version 16, type 8, trust 8, length of the rest 16, zero 16) and a body. All
 * numbers are little endian.
 *
 *   HELLO    connector: release (24), ephemeral key (32), job (16), from (32), to (32), tag (64), proof (32)
 *   ANSWER   acceptor: ephemeral key (32), proof (32)
 *   CONFIRM  connector: proof (32)
 *   REFUSE   acceptor, instead of ANSWER: reason (8), zero (24), release (24), proof (32) of HELLO's other fields and
 * of REFUSE, which is zero where the two have no key in common
 *
 * The header, HELLO's fields before its proof, and REFUSE stay as they are in all versions, so that two versions can
 * name each other.
 *
 * Keys. Both ends have a base key: the job's secret, or the Diffie-Hellman result of their long-term keys. HELLO is
 * proven by a digest under the base key: who cannot make it gets no ANSWER, and costs no more than a digest (with
 * cards, one multiplication). The session key is a digest under the base key of the ephemeral keys' result, with cards
 * also of those of one end's ephemeral with the other's long-term key, and of all of HELLO and ANSWER. ANSWER and
 * CONFIRM prove the session key. Since both ephemeral keys are fresh, nothing that was recorded proves anything, and
 * who learns the base key later cannot read what was said. Positions, the tag and the job are under the proofs.
 */
#ifndef BOOTSTRAP_OOB_SHAKE_H
#define BOOTSTRAP_OOB_SHAKE_H

#include "bootstrap/oob/crypto.h"
#include "bootstrap/oob/oob.h"

#define SHAKE_HEADER_BYTES 12
#define SHAKE_RELEASE_BYTES (OOB_MAX_RELEASE + 1)
#define SHAKE_JOB_BYTES 16
#define SHAKE_HELLO_BYTES 132
#define SHAKE_ANSWER_BYTES 76
#define SHAKE_CONFIRM_BYTES 44
#define SHAKE_REFUSE_BYTES 72
#define SHAKE_MAX_BYTES 1024 /* of a frame, of any version */

enum shake_type { SHAKE_HELLO = 1, SHAKE_ANSWER, SHAKE_CONFIRM, SHAKE_REFUSE };

enum shake_state {
    SHAKE_TALKING,   /* wants bytes, or has some to send */
    SHAKE_WANTS_KEY, /* (acceptor, cards) shake_give_key with that of shake->peer */
    SHAKE_DONE,      /* peer, tag and keys are proven; output may still have to be sent */
    SHAKE_FAILED     /* see trouble; output, a refusal, should be sent before the end */
};

/* Why. From SHAKE_VERSION to SHAKE_WRONG_KEY also what REFUSE says. */
enum shake_trouble {
    SHAKE_NO_TROUBLE,
    SHAKE_VERSION,   /* another version or release: see theirs */
    SHAKE_TRUST,     /* the other kind of trust */
    SHAKE_JOB,       /* another job */
    SHAKE_ELSEWHERE, /* (to the connector) not the position that was called */
    SHAKE_NOBODY,    /* no such position, or no key of it */
    SHAKE_WRONG_KEY, /* another secret, other keys, or a repeated HELLO */
    SHAKE_GARBAGE,   /* not this protocol */
    SHAKE_HTTP,      /* garbage that is known */
    SHAKE_TLS,
    SHAKE_SSH,
    SHAKE_BAD_FRAME, /* this protocol, but broken */
    SHAKE_REPLAY,    /* began well, and could not prove that it is alive */
    SHAKE_TROUBLE_COUNT
};

/* What does not change between handshakes of one process. */
struct shake_self {
    enum oob_trust trust;
    unsigned char job[SHAKE_JOB_BYTES]; /* digest of its name */
    uint32_t position, positions;
    unsigned char secret[OOB_KEY_BYTES];
    unsigned char public_key[OOB_KEY_BYTES], private_key[OOB_KEY_BYTES];
    uint16_t version;
    char release[SHAKE_RELEASE_BYTES]; /* ends with zeros */
};

struct shake {
    const struct shake_self *self;
    enum shake_state state;
    enum shake_trouble trouble;
    bool connector;
    bool refused; /* (acceptor) the output is a refusal */
    bool told;    /* trouble is what the other end said about us */
    bool proven;  /* the other end has shown a key of the job: a stranger no more, but perhaps a repetition. With
                   * trouble:  the refusal is genuine */
    uint32_t peer;
    uint64_t tag;
    struct oob_keys keys;
    uint16_t their_version;
    char their_release[SHAKE_RELEASE_BYTES];

    unsigned char ephemeral[OOB_KEY_BYTES]; /* private */
    unsigned char peer_key[OOB_KEY_BYTES];  /* long-term, public */
    unsigned char base[OOB_KEY_BYTES], session[OOB_KEY_BYTES];
    unsigned char hello[SHAKE_HELLO_BYTES];
    size_t have, sent, unsent; /* bytes of in, and of out */
    unsigned char in[SHAKE_MAX_BYTES], out[SHAKE_HELLO_BYTES];
};

/* NCCLX_ERR_ARG: names that are too long, or positions that make no sense. crypto_load must have succeeded. */
int shake_self_set(struct shake_self *self, const struct oob_identity *identity);

/* `random` must be fresh each time. peer_key: for cards. */
void shake_connect(struct shake *shake, const struct shake_self *self, uint32_t peer, const unsigned char *peer_key,
                   uint64_t tag, const unsigned char random[OOB_KEY_BYTES]);
void shake_accept(struct shake *shake, const struct shake_self *self, const unsigned char random[OOB_KEY_BYTES]);
/* Forgets the keys. */
void shake_end(struct shake *shake);

/* How many bytes may be given at most: never any that come after the handshake. 0: none now. */
size_t shake_wanted(const struct shake *shake);
void shake_receive(struct shake *shake, const void *data, size_t bytes);
/* What is to be sent; shake_sent says how much of it was. */
const void *shake_output(const struct shake *shake, size_t *bytes);
void shake_sent(struct shake *shake, size_t bytes);
/* Null: there is no such peer. */
void shake_give_key(struct shake *shake, const unsigned char *key);

/* The trouble in words, to follow the other end's address: "speaks HTTP, not our protocol". */
void shake_explain(const struct shake *shake, char *text, size_t room);

#endif
