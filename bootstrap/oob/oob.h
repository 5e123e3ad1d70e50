/* oob.h - authenticated sockets between the processes of a job: daemons that link into a tree, and ranks that open
 * data sockets.
 *
 * Owns: the listening sockets, connections until they are authenticated, and what is known of addresses of this host.
 * Never: a thread, a fork, an event library, a type of PMIx; what travels once a connection is handed over.
 * Threads: one struct oob is used by one thread at a time; different ones are independent.
 *
 * How it works. One end listens, the other connects; which does is the users' affair. Both prove in one and a half
 * round trips that they belong to the same job (by its secret, or by keys that each knows of the other), and say who
 * they are: a position in the job. An address may lead to the wrong host (the same 172.17.0.1 is on many); then the
 * next one is tried. Afterwards the user has a connected socket, whose next byte is the first of its own, and two fresh
 * keys, for oob_seal below or to be wiped.
 *
 * Driving it. Wait for oob_fd to become readable, or for the time oob_deadline; call oob_dispatch; take events with
 * oob_next until there is none. Calls below may add events too: after any of them, look at oob_deadline again, which is
 * 0 while events wait. Nothing blocks, except oob_resolve.
 *
 * Strangers (port scanners, browsers, silence, garbage, wrong keys, replays) are dropped as soon as it shows, at the
 * latest after options.handshake_ms, delay nobody, and cost one line each, like ones counted. Only a bounded
 * number of them is kept; when descriptors run out, or the bound is reached, the oldest goes.
 *
 * All sockets are close-on-exec and non-blocking, with TCP_NODELAY.
 */
#ifndef BOOTSTRAP_OOB_H
#define BOOTSTRAP_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OOB_VERSION 1
#define OOB_KEY_BYTES 32
#define OOB_MAX_JOB 255                /* characters of a job's name */
#define OOB_MAX_RELEASE 23             /* characters of a release's name */
#define OOB_FRONT UINT32_C(0xffffffff) /* position of ncclxrun */

/* ---- Addresses ---- */

#define OOB_MAX_ADDRESSES 32 /* in a list */
#define OOB_ADDRESS_TEXT 80  /* room for one in text */

struct oob_address {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
    uint16_t port;
    uint32_t scope; /* of a link-local IPv6 address: the index of the interface on this host. 0: each is tried */
};

struct oob_addresses {
    size_t count;
    bool proven; /* the first has led to whom it is of (oob_addresses_prove) */
    struct oob_address list[OOB_MAX_ADDRESSES];
};

/* "192.0.2.1:4711", "[2001:db8::1]:4711"; a scope, which means nothing on other hosts, is shown as "%3" by
 * oob_address_text and left out by oob_addresses_format. */
const char *oob_address_text(const struct oob_address *address, char text[OOB_ADDRESS_TEXT]);
/* A list as one word, with commas between: for messages and cards. The first ones, if not all fit. */
void oob_addresses_format(const struct oob_addresses *addresses, char *text, size_t room);
/* Who they are of has been met at this address: if it is one of them, it comes first, and who is gone is known by it. */
void oob_addresses_prove(struct oob_addresses *addresses, const struct oob_address *seen);
/* NCCLX_ERR_ARG names what is wrong. */
int oob_addresses_parse(const char *text, struct oob_addresses *addresses);
/* "LOW-HIGH", from 1 to 65535. NCCLX_ERR_ARG. */
int oob_ports_parse(const char *text, uint16_t *low, uint16_t *high);
/* Name or number of a host. May block for as long as the resolver takes. NCCLX_ERR_UNREACHABLE with the resolver's
 * reason. */
int oob_resolve(const char *host, uint16_t port, struct oob_addresses *addresses);

/* ---- Keys ---- */

void oob_random(void *bytes, size_t count);
/* A rank's: the public one goes into its card. NCCLX_ERR_UNSUPPORTED: no libsodium here. */
int oob_key_pair(unsigned char public_key[OOB_KEY_BYTES], unsigned char private_key[OOB_KEY_BYTES]);
void oob_wipe(void *bytes, size_t count);

/* ---- An endpoint ---- */

/* How members of a job know each other. */
enum oob_trust {
    OOB_SECRET = 1, /* all have one secret */
    OOB_CARDS       /* each has a pair of keys, and can look up the public ones of the others */
};

struct oob_identity {
    const char *job;    /* the same on all, up to OOB_MAX_JOB; not secret */
    uint32_t position;  /* who we are */
    uint32_t positions; /* positions 0 .. positions - 1 exist, and OOB_FRONT */
    enum oob_trust trust;
    unsigned char secret[OOB_KEY_BYTES];                                 /* OOB_SECRET */
    unsigned char public_key[OOB_KEY_BYTES], private_key[OOB_KEY_BYTES]; /* OOB_CARDS */
    const char *release; /* must be the same on both ends of a connection, as must OOB_VERSION; null: this build's */
};

/* Zero is a good choice for each. */
struct oob_options {
    uint16_t port_low, port_high; /* for listening; 0, 0: any */
    const char *networks;         /* to listen on and to advertise: "10.1.0.0/16,fd00::/8,eth0"; null: all */
    uint32_t handshake_ms;        /* longest time of a stranger: 5000 */
    uint32_t try_ms;              /* one address may take this long in the first round, then twice that, and so on
                                   * up to five times: 2000 */
    uint32_t pause_ms;            /* about so long between the first and the second round, then twice that ...: 50 */
    uint32_t pause_most_ms;       /* ... up to this: 2000 */
    uint32_t strangers;           /* at most, at a time: an eighth of the descriptors that the process may have, at
                                   * least 16, at most 256 */
    void (*say)(void *arg, const char *line); /* lines about strangers; null: base_log, as warnings */
    void *say_arg;
};

struct oob;

/* Identity and options are copied. NCCLX_ERR_UNSUPPORTED: no libsodium here; NCCLX_ERR_ARG; NCCLX_ERR_NO_MEM. */
int oob_create(const struct oob_identity *identity, const struct oob_options *options, struct oob **oob);
/* Closes what has not been handed over. */
void oob_destroy(struct oob *oob);

int oob_fd(const struct oob *oob);
/* By base_clock_ns. 0: at once; UINT64_MAX: never. */
uint64_t oob_deadline(const struct oob *oob);
void oob_dispatch(struct oob *oob, uint64_t now);

/* ---- Listening ---- */

/* NCCLX_ERR_UNREACHABLE: no port of the range is free, or no address is of options.networks. */
int oob_listen(struct oob *oob);
void oob_listen_end(struct oob *oob);
/* Where this end can be reached, the best first: the address from which the route to `towards` goes, then global ones
 * before link-local ones. Loopback only if there is no other, or `towards` is one. Null: nobody in particular; then the
 * default route decides. */
int oob_addresses(const struct oob *oob, const struct oob_address *towards, struct oob_addresses *addresses);

/* ---- Connecting ---- */

/* Tries the addresses in turn (link-local ones, and those that this host has, too, last), over and over with growing pauses, each time
 * with a fresh socket, until the one who answers has proven to be position `peer`, or limit_ms have passed (0: 30 s), or, with
 * OOB_CARDS, nobody listens any more at an address where it was met before, or at any that tells, as link-local ones do not: who has
 * given a card out listens as long as it lives. The tag, of the user's choosing, is told to the other end. peer_key: for OOB_CARDS. The
 * id comes back with the one event that ends it. */
int oob_connect(struct oob *oob, uint32_t peer, const unsigned char *peer_key, const struct oob_addresses *addresses,
                uint64_t tag, uint32_t limit_ms, uint64_t now, uint64_t *id);
/* Whether a descriptor was missing since this was asked last. */
bool oob_was_short(struct oob *oob);
/* No event comes any more. */
void oob_cancel(struct oob *oob, uint64_t id);

/* ---- Events ---- */

enum oob_event_kind {
    OOB_CONNECTED, /* id, peer, tag, fd, keys */
    OOB_FAILED, /* id, peer, tag, code, text: NCCLX_ERR_TIMEOUT; NCCLX_ERR_UNREACHABLE at once when the other end has
                 * proven to be of the job, but is of another version; NCCLX_ERR_PROC_FAILED when it is gone */
    OOB_ACCEPTED, /* peer, tag, fd, keys */
    OOB_WANT_KEY  /* (OOB_CARDS) id, peer: somebody says to be this peer; answer with oob_give_key */
};

struct oob_keys {
    unsigned char send[OOB_KEY_BYTES], receive[OOB_KEY_BYTES]; /* of this end */
};

struct oob_event {
    enum oob_event_kind kind;
    uint64_t id;
    uint32_t peer;
    uint64_t tag;
    int fd;                     /* the user's from now on, but no forked child's (base/process.h) */
    struct oob_address address; /* of the other end */
    struct oob_keys keys;
    int code;
    bool busy;      /* FAILED: somebody's system takes connections there, and the process does not answer, or ends them */
    char text[600]; /* a sentence without a full stop */
};

bool oob_next(struct oob *oob, struct oob_event *event);
/* Null: there is no such peer. Ids of strangers that have gone meanwhile do no harm. */
void oob_give_key(struct oob *oob, uint64_t id, const unsigned char *key);

/* ---- Sealed records: for links whose content must stay private. Pure ---- */

/* A record is 4 bytes of length, the encrypted data, and 16 bytes that prove that data, length and place in the stream
 * are as the other end wrote them. */
#define OOB_RECORD_HEADER 4
#define OOB_RECORD_EXTRA 20  /* how much longer than its data a record is */
#define OOB_RECORD_MAX 65536 /* bytes of data */

/* One direction. */
struct oob_seal {
    unsigned char key[OOB_KEY_BYTES];
    uint64_t count; /* of records so far */
};

void oob_seal_begin(struct oob_seal *seal, const unsigned char key[OOB_KEY_BYTES]);
/* Writes bytes + OOB_RECORD_EXTRA; 1 to OOB_RECORD_MAX bytes. `out` may not overlap `data`, unless it is
 * data - OOB_RECORD_HEADER. */
void oob_seal(struct oob_seal *seal, const void *data, size_t bytes, void *out);
/* How long the record at the front of a stream is, of which so much is there; OOB_RECORD_HEADER while that is not
 * known; 0: it is not one. */
size_t oob_record_bytes(const void *stream, size_t have);
/* Opens a whole record; its data, record_bytes - OOB_RECORD_EXTRA, goes to `out`, which may be
 * record + OOB_RECORD_HEADER. NCCLX_ERR_TRANSPORT: changed, repeated, or out of order; close the link. */
int oob_unseal(struct oob_seal *seal, const void *record, size_t record_bytes, void *out);

#endif
