/* packet.h - what travels between two processes: one cache line, and sometimes a payload beside it. */
#ifndef PML_PACKET_H
#define PML_PACKET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_INLINE_MAX 40
#define PACKET_HAS_PAYLOAD 255 /* in inline_bytes */

struct pml_packet {
    _Atomic uint32_t pass; /* the transport's: which round of the ring this line was written in */
    uint8_t kind;          /* enum protocol_kind */
    uint8_t inline_bytes;  /* of data in use, or PACKET_HAS_PAYLOAD */
    uint16_t count;        /* ACTIVE: bytes of the header */
    uint64_t context;    /* of the communicator, with enum pml_space in its low bits; CLEAR and the like: the name of a
                            send or receive */
    int32_t source, tag; /* source: rank in the communicator of whoever sends this packet */
    union {
        char data[PACKET_INLINE_MAX];
        uint64_t word[5];
        struct {
            uint64_t skipped[4];
            uint32_t start,
                bytes; /* the transport's, with a payload: place in the payload ring in cache lines, length */
        } payload;
    } u;
};
_Static_assert(sizeof(struct pml_packet) == 64, "a packet is one cache line");

/* Two pieces that travel as one payload. */
struct pml_payload {
    const void *first, *second;
    size_t first_bytes, second_bytes;
};

/* The words of packets:
 *   REQUEST    0 name of the send, 1 bytes, 2 address; payload, if any: the first of them
 *   FILLED     context, source, tag of the envelope; 0 name of the receive, 1 bytes, 2 not 0: the data follows
 *   CLEAR      context: name of the send, 0 of the receive, 1 its address
 *   DATA       context: name of the receive, 0 offset
 *   FINISHED   context: name of the send
 *   ANNOUNCE   0 name of the receive, 1 capacity, 2 address, 3 count
 *   WITHDRAW   0 name of the receive
 *   WITHDRAWN  context: name of the receive
 *   LANES      lanes/lanes.h */

#endif
