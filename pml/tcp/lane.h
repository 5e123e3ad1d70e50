/* lane.h - lanes of the transport over sockets: one socket each, opened by the origin.
 *
 * From the origin come frames: a struct tcp_frame, and as many bytes as it says, which are read straight to where they
 * belong, after key and bounds were checked. Back come struct tcp_ack: how many frames of this life are in place. Both in
 * host order: the two ends are of one architecture, as their cards say by their version. */
#ifndef PML_TCP_LANE_H
#define PML_TCP_LANE_H

#include "pml/tcp/tcp.h"

#define TCP_LANE_DEPTH 128        /* entries; a power of two */
#define TCP_LANE_IN_BYTES 8192    /* small frames come many at a time */
#define TCP_WHOLE_BYTES 64        /* frames up to this are placed whole: a word is never seen half written */
#define TCP_FRAME_WRITE 0x4c57    /* kinds; numbers that garbage is not */
#define TCP_FRAME_ACK 0x4c414b

enum { TCP_HAS_IMMEDIATE = 1 };

struct tcp_frame {
    uint16_t kind, flags;
    uint32_t bytes, immediate, zero;
    uint64_t to, key;
};

struct tcp_ack {
    uint32_t kind, life;
    uint64_t completed; /* frames since this life began */
    uint64_t receives;  /* credits; 0: nothing new */
};

struct tcp_entry {
    struct tcp_frame frame;
    const char *from;
    bool copied;
};

/* At the origin. */
struct tcp_out {
    enum tcp_kind kind; /* first */
    struct tcp_channel *channel;
    unsigned index;
    uint32_t life;
    int fd;           /* -1: not connected */
    uint64_t attempt; /* at oob; 0: none */
    bool watching_out;
    struct tcp_bad_luck luck;
    uint32_t head, tail; /* of the ring: what is not in the socket yet */
    size_t sent;         /* of the entry at head */
    bool by_pages;         /* large frames: through a pipe (pipe.h) */
    struct tcp_pipe *pipe; /* which it goes through; null: none yet */
    uint64_t completed;
    size_t in_end;
    char in[16 * sizeof(struct tcp_ack)];
    struct tcp_entry ring[TCP_LANE_DEPTH];
};

/* At the target. */
struct tcp_in {
    enum tcp_kind kind; /* first */
    struct tcp_channel *channel;
    unsigned index;
    uint32_t life;
    int fd;
    bool watching_out;
    struct tcp_bad_luck luck;
    bool placing;           /* frame is under way */
    struct tcp_frame frame;
    char *to;               /* where `left` more bytes of it go */
    size_t left;
    uint64_t completed, told;
    uint64_t receives; /* to be told; 0: nothing */
    size_t ack_begin, ack_end;
    char ack[sizeof(struct tcp_ack)]; /* what did not fit the socket */
    size_t in_begin, in_end;
    char in[TCP_LANE_IN_BYTES];
};

struct tcp_lanes {
    struct tcp_out *out[DQPLB_MAX_LANES];
    struct tcp_in *in[DQPLB_MAX_LANES];
};

/* lane.c */
struct tcp_lanes *tcp_lanes_of(struct tcp_channel *channel); /* null: memory is short */
void tcp_lane_watch(struct tcp *tcp, void *lane, int fd, bool out);
uint64_t tcp_lane_tag(unsigned index, uint32_t life);

/* lane_out.c */
/* One that is not connected yet; null: memory is short. */
struct tcp_out *tcp_out_make(struct tcp_channel *channel, unsigned index, uint32_t life);
void tcp_out_open(struct pml_connection *connection, unsigned lane, uint32_t life);
void tcp_out_write(struct pml_connection *connection, unsigned lane, const struct lane_write *write);
void tcp_out_ring(struct pml_connection *connection);
void tcp_out_close(struct pml_connection *connection, unsigned lane);

/* lane_in.c */
void tcp_in_fence(struct pml_connection *connection, unsigned lane);
void tcp_in_credit(struct pml_connection *connection, unsigned lane, uint32_t life, uint64_t receives);

#endif
