/* ring.h - a queue from one process to another in shared memory: one writer, one reader, no locks.
 *
 * A packet is one cache line, which holds its own "full" flag: the number of the round in which it was written. The
 * reader needs the transfer of that one line to see the packet and its inline data, and nothing has to be zeroed.
 * Larger payloads go to a byte ring beside the lines, in the same order. The reader publishes how far it has come every
 * quarter of a round, and when it finds nothing: most packets cost no traffic in the other direction. Payloads are at
 * most a quarter of the byte ring, so that a writer that finds it full is always let in by the next publication.
 *
 * The reader treats what it finds as hostile: lengths and places are checked.
 */
#ifndef PML_SHM_RING_H
#define PML_SHM_RING_H

#include "pml/packet.h"
#include "pml/shm/offer.h"
#include "pml/shm/pace.h"

#include <stdbool.h>
#include <string.h>

#define RING_LINES 128u
#define RING_LINE_BYTES 64u
/* While messages are answered one by one, or are short, only this much of the byte ring is used again and again, so that
 * it stays in caches. Many in a row run through the whole ring: a line comes faster from where the reader's cache has
 * put it aside in the meantime than from that cache. 8 KiB in a row take 0.4 us in a ring of 1 MiB, 0.75 in one of 64 or
 * 256 KiB; but 512 bytes 0.114 instead of 0.106. */
#define RING_HOT_BYTES 65536u
#define RING_CALM 4 /* so many answered payloads in a row */
#define RING_SHORT 1024u

/* A copy in progress which the writer of the ring owns and the reader may help with: see help.c. */
struct ring_help {
    _Atomic uint64_t claim, done;
    _Atomic uint32_t seen; /* the last round of help with mapped memory that the reader has found */
};

/* In shared memory, all zero at first. The byte ring follows. */
struct ring_shared {
    _Atomic uint64_t taken; /* packets the reader has finished with, published now and then */
    char pad[RING_LINE_BYTES - sizeof(uint64_t)];
    struct ring_help help;
    char help_pad[RING_LINE_BYTES - sizeof(struct ring_help)];
    struct offer offer; /* of a copy that the writer of the ring asks the reader for: see serve.c */
    char offer_pad[RING_LINE_BYTES - sizeof(struct offer)];
    struct pace_shared pace; /* of the messages in this ring, and those too large for it: the reader tells */
    char pace_pad[2 * RING_LINE_BYTES - sizeof(struct pace_shared)];
    struct pml_packet line[RING_LINES];
    char payload[];
};

struct ring_writer {
    struct ring_shared *shared;
    uint64_t next;         /* packets written */
    uint64_t room_until;   /* may write while next < room_until */
    uint64_t payload_next; /* bytes of payload written, with what was skipped at the end of a round */
    uint64_t payload_until;
    uint64_t payload_bytes;           /* size of the byte ring, a power of two */
    uint32_t calm;                    /* payloads in a row before each of which the peer said something */
    bool answered;                    /* it has since the last one */
    uint64_t payload_end[RING_LINES]; /* payload_next after the packet in that line */
};

struct ring_reader {
    struct ring_shared *shared;
    uint64_t next;
    uint64_t published;
    uint64_t payload_unpublished;
    uint64_t payload_bytes;
    uint64_t payload_next; /* where the next payload will begin, if it does not skip to the front */
};

void ring_writer_init(struct ring_writer *writer, struct ring_shared *shared, size_t payload_bytes);
void ring_reader_init(struct ring_reader *reader, struct ring_shared *shared, size_t payload_bytes);
static inline size_t ring_bytes(size_t payload_bytes)
{
    return sizeof(struct ring_shared) + payload_bytes;
}
static inline size_t ring_payload_max(const struct ring_writer *writer)
{
    return (size_t)writer->payload_bytes / 4;
}

/* ---- Writer -------------------------------------------------------------------------------------------------- */

/* Reads how far the reader has come. */
bool ring_refresh(struct ring_writer *writer);

/* The next line to fill; null: full. */
static inline struct pml_packet *ring_reserve(struct ring_writer *writer)
{
    if (__builtin_expect(writer->next == writer->room_until, 0) && !ring_refresh(writer)) return NULL;
    return &writer->shared->line[writer->next % RING_LINES];
}

/* A packet has come from the peer. */
static inline void ring_answered(struct ring_writer *writer)
{
    writer->answered = true;
}

/* The next payload goes to the hot part. */
static inline void ring_calm_down(struct ring_writer *writer)
{
    writer->answered = true;
    writer->calm = RING_CALM;
}

/* Makes the reserved line visible. Asks for one of the next lines, but not for the one that the reader looks at now: a
 * line comes back from the reader's cache while others are written. */
static inline void ring_publish(struct ring_writer *writer, struct pml_packet *line)
{
    writer->payload_end[writer->next % RING_LINES] = writer->payload_next;
    atomic_store_explicit(&line->pass, (uint32_t)(writer->next / RING_LINES) + 1, memory_order_release);
    writer->next++;
    __builtin_prefetch(&writer->shared->line[(writer->next + 3) % RING_LINES], 1, 3);
}

/* Room for a payload of the reserved line, which it describes; null: full. */
char *ring_payload(struct ring_writer *writer, struct pml_packet *line, size_t bytes);

/* ---- Reader -------------------------------------------------------------------------------------------------- */

static inline const struct pml_packet *ring_peek(const struct ring_reader *reader)
{
    const struct pml_packet *line = &reader->shared->line[reader->next % RING_LINES];
    uint32_t pass = atomic_load_explicit(&line->pass, memory_order_acquire);
    return __builtin_expect(pass == (uint32_t)(reader->next / RING_LINES) + 1, 0) ? line : NULL;
}

/* Where the payload of a line is, and its length; false: the writer lies. */
static inline bool ring_look(const struct ring_reader *reader, const struct pml_packet *line, const void **payload,
                             size_t *bytes)
{
    size_t inlined = line->inline_bytes;
    if (__builtin_expect(inlined <= PACKET_INLINE_MAX, 1)) {
        *payload = line->u.data;
        *bytes = inlined;
        return true;
    }
    uint64_t start = (uint64_t)line->u.payload.start * RING_LINE_BYTES;
    uint64_t length = line->u.payload.bytes;
    *payload = reader->shared->payload + start;
    *bytes = (size_t)length;
    return inlined == PACKET_HAS_PAYLOAD && start <= reader->payload_bytes && length <= reader->payload_bytes - start;
}

static inline void ring_reader_publish(struct ring_reader *reader)
{
    reader->published = reader->next;
    reader->payload_unpublished = 0;
    atomic_store_explicit(&reader->shared->taken, reader->next, memory_order_release);
}

/* While nothing comes: publishes how far we are. */
static inline void ring_idle(struct ring_reader *reader)
{
    if (reader->next != reader->published) ring_reader_publish(reader);
}

/* Fetches the line where the next payload will begin, so that it arrives together with its packet and not after it.
 * (More lines than one gain nothing.) */
static inline void ring_expect(const struct ring_reader *reader)
{
    __builtin_prefetch(&reader->shared->payload[reader->payload_next & (reader->payload_bytes - 1)], 0, 3);
}

/* Done with the packet that ring_peek showed. */
static inline void ring_release(struct ring_reader *reader, const struct pml_packet *line, size_t payload_bytes)
{
    if (payload_bytes)
        reader->payload_next =
            (line->u.payload.start + (payload_bytes + RING_LINE_BYTES - 1) / RING_LINE_BYTES) * RING_LINE_BYTES;
    reader->next++;
    reader->payload_unpublished += payload_bytes;
    if (__builtin_expect(reader->next - reader->published >= RING_LINES / 4 ||
                             reader->payload_unpublished >= reader->payload_bytes / 4,
                         0))
        ring_reader_publish(reader);
}

#endif
