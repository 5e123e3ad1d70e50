/* wire.h - what daemons say to each other about keys and fences, as bytes.
 *
 * A message is 16 bytes of header: 'K', version, type, status, payload length (32 bits), generation (64 bits); then the
 * payload. All numbers are little endian. The generation of a fence counts the fences of its participants from 1; of
 * a request and its answer it is the number that the asking neighbour gave to the request.
 *
 *   FENCE_UP, FENCE_DOWN  flags (32; bit 0: last, bits 8 to 15: kind), failed rank (32), failed daemon (32), count
 * (32), count ranges (first, last: 32 each), then records to the end: daemon (32), length (32), offset (64), total
 * (64), bytes LOST                  rank or -1 (32), daemon (32) GET, PUBLISH, LOOKUP, UNPUBLISH subject (32),
 * milliseconds (32), flag (32), owner (32), key length (32), key, value to the end ANSWER                subject (32),
 * failed rank (32), failed daemon (32), owner (32), value to the end
 *
 * Decoding accepts nothing else: ranges are in order and apart, records are within their total, nothing is left over.
 */
#ifndef BOOTSTRAP_KVX_WIRE_H
#define BOOTSTRAP_KVX_WIRE_H

#include "bootstrap/kvx/kvx.h"

#define WIRE_VERSION 2
#define WIRE_HEADER_BYTES 16
#define WIRE_RECORD_BYTES 24 /* before its data */

enum wire_type {
    WIRE_FENCE_UP = 1,
    WIRE_FENCE_DOWN,
    WIRE_LOST,
    WIRE_GET,
    WIRE_PUBLISH,
    WIRE_LOOKUP,
    WIRE_UNPUBLISH,
    WIRE_ANSWER
};

struct wire_message {
    enum wire_type type;
    enum kvx_status status;
    uint64_t generation;
    struct kvx_failure failure; /* FENCE_*, LOST, ANSWER */
    bool last;                  /* FENCE_* */
    unsigned kind;              /* FENCE_* */
    const struct kvx_range *ranges;
    size_t range_count;
    uint32_t subject;    /* requests and ANSWER: the rank, or a number that helps the asker find its request */
    uint32_t timeout_ms; /* requests */
    bool flag;           /* GET: fresh; LOOKUP: wait */
    int owner;           /* PUBLISH, UNPUBLISH, ANSWER */
    const char *key;     /* not terminated */
    size_t key_bytes;
    const void *body; /* records, or a value */
    size_t body_bytes;
};

/* A piece of what a daemon contributes to a fence. */
struct wire_record {
    int daemon;
    uint32_t bytes;
    uint64_t offset, total;
    const void *data;
};

size_t wire_bytes(const struct wire_message *message);
void wire_encode(const struct wire_message *message, void *out); /* wire_bytes of room */
/* Says afterwards how long the payload became, and whether it is the last. */
void wire_patch(void *message, size_t bytes, bool last);
/* NCCLX_SUCCESS or NCCLX_ERR_TRANSPORT. `room` takes up to KVX_MAX_RANGES; the message points into it and the bytes. */
int wire_decode(const void *data, size_t bytes, struct kvx_range *room, struct wire_message *message);

void wire_put_record(void *out, const struct wire_record *record); /* WIRE_RECORD_BYTES of room; without data */
/* Walks a decoded body from *at = 0 on. */
bool wire_next_record(const struct wire_message *message, size_t *at, struct wire_record *record);

#endif
