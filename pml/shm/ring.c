/* ring.c - the parts of the ring that are not on the shortest path. */
#include "pml/shm/ring.h"

void ring_writer_init(struct ring_writer *writer, struct ring_shared *shared, size_t payload_bytes)
{
    memset(writer, 0, sizeof *writer);
    writer->shared = shared;
    writer->room_until = RING_LINES;
    writer->payload_bytes = writer->payload_until = payload_bytes;
}

void ring_reader_init(struct ring_reader *reader, struct ring_shared *shared, size_t payload_bytes)
{
    *reader = (struct ring_reader){.shared = shared, .payload_bytes = payload_bytes};
}

bool ring_refresh(struct ring_writer *writer)
{
    uint64_t taken = atomic_load_explicit(&writer->shared->taken, memory_order_acquire);
    if (taken > writer->next || taken + RING_LINES < writer->room_until)
        return false; /* a reader that lies gets nothing more */
    writer->room_until = taken + RING_LINES;
    if (taken) writer->payload_until = writer->payload_end[(taken - 1) % RING_LINES] + writer->payload_bytes;
    return writer->next < writer->room_until;
}

static bool stays_hot(const struct ring_writer *writer, uint64_t rounded)
{
    return writer->calm >= RING_CALM || rounded <= RING_SHORT;
}

/* Places payloads from the front again, in calm, as soon as the hot part is used up and its beginning is free; else
 * through the whole ring. Positions count on for ever, a skip included: what lies less than a ring before
 * payload_until is free. */
static bool place_payload(struct ring_writer *writer, uint64_t rounded, uint64_t *begin)
{
    uint64_t place = writer->payload_next & (writer->payload_bytes - 1);
    uint64_t front = writer->payload_next + writer->payload_bytes - place;
    bool behind = stays_hot(writer, rounded) && place + rounded > RING_HOT_BYTES, fits = place + rounded <= writer->payload_bytes;
    *begin = writer->payload_next;
    if (behind && place && front + rounded <= writer->payload_until) *begin = front;
    else if (!fits) *begin = place ? front : writer->payload_next;
    return *begin + rounded <= writer->payload_until;
}

char *ring_payload(struct ring_writer *writer, struct pml_packet *line, size_t bytes)
{
    uint64_t rounded = (bytes + RING_LINE_BYTES - 1) & ~(uint64_t)(RING_LINE_BYTES - 1), begin;
    uint64_t place = writer->payload_next & (writer->payload_bytes - 1);
    writer->calm = writer->answered ? writer->calm + 1 : 0;
    writer->answered = false;
    if (stays_hot(writer, rounded) && place + rounded > RING_HOT_BYTES) ring_refresh(writer);
    if (!place_payload(writer, rounded, &begin)) {
        ring_refresh(writer);
        if (!place_payload(writer, rounded, &begin)) return NULL;
    }
    place = begin & (writer->payload_bytes - 1);
    writer->payload_next = begin + rounded;
    line->inline_bytes = PACKET_HAS_PAYLOAD;
    line->u.payload.start = (uint32_t)(place / RING_LINE_BYTES);
    line->u.payload.bytes = (uint32_t)bytes;
    return writer->shared->payload + place;
}
