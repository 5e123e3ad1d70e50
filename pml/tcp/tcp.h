/* tcp.h - the transport over sockets, for ranks that share no memory.
 *
 * One authenticated connection a pair of processes, made on first use (meet.h, bootstrap/oob), carries packets: their 64
 * bytes, in host order, followed by their payload. It is the control lane; large data and puts go over sockets of their
 * own (lane.h). */
#ifndef PML_TCP_TCP_H
#define PML_TCP_TCP_H

#include "pml/lanes/lanes.h"
#include "pml/tcp/meet.h"
#include "pml/tcp/trouble.h"

#include "bootstrap/bootstrap.h"
#include "bootstrap/oob/oob.h"

#define TCP_CARD_KEY "ncclx.tcp"
#define TCP_CARD_VERSION 2
#define TCP_PAYLOAD_MAX ((size_t)65536) /* of a packet that is taken whole */
#define TCP_PIECE_MAX ((size_t)262144)  /* of a stream: goes into the receive's buffer as it comes */
#define TCP_IN_BYTES (2 * sizeof(struct pml_packet) + TCP_PAYLOAD_MAX)
#define TCP_OUT_BYTES (sizeof(struct pml_packet) + TCP_PIECE_MAX)
#define TCP_BYE (PROTOCOL_KINDS + 1) /* in a packet's kind: its sender ends, and says no more */
#define TCP_ASKERS 4                 /* incoming handshakes that wait for a peer's key */

/* What a rank tells others about where it is. */
struct tcp_card {
    unsigned char key[OOB_KEY_BYTES];
    struct lane_offer offer;
    struct oob_addresses addresses;
};

/* What sockets are for: the first field of whatever epoll points to. */
enum tcp_kind { TCP_CONTROL, TCP_LANE_OUT, TCP_LANE_IN };
struct tcp_lanes;
struct tcp_out;
struct tcp_in;

/* The way to one peer. */
struct tcp_channel {
    enum tcp_kind kind; /* first */
    struct pml_connection *connection;
    struct tcp_channel *next; /* of tcp->first */
    struct meet meet;
    struct bootstrap_fetch *fetch; /* of its card */
    struct tcp_card *card;         /* null until it is known */
    uint64_t askers[TCP_ASKERS];   /* handshakes to be told its key */
    unsigned asker_count;
    uint64_t attempt;  /* of ours, at oob; 0: none */
    uint64_t retry_ns; /* when to make another; 0: no need */
    int fd;            /* in use; or ours that waits for a greeting; -1: none */
    bool said_bye, heard_bye, lost;
    char *in; /* what has come and is not taken yet: [in_begin, in_end) of TCP_IN_BYTES */
    size_t in_begin, in_end;
    char *to; /* where `left` more bytes of a stream go */
    size_t left;
    struct pml_request *receive; /* complete when they are there; null: more pieces follow */
    char *out;                   /* the rest of a packet that did not fit the socket */
    size_t out_begin, out_end;
    bool watching_out; /* for room in the socket */
    struct tcp_lanes *lanes; /* null: none was ever used */
    uint64_t to_ring;        /* lanes of ours with something to send */
};

struct tcp {
    struct pml *pml;
    struct oob *oob;
    int epoll;
    struct tcp_channel *first; /* all of them */
    struct tcp_channel *hot;   /* something came from it last; and from these */
    struct tcp_out *hot_out;
    struct tcp_in *hot_in;
    unsigned idle_out, idle_in; /* looks at them that found nothing */
    int unsettled;             /* channels that wait for a card, or for a retry */
    int pending;               /* channels with a rest in `out` */
    struct tcp_trouble trouble;
    unsigned turn;
    uint64_t looked_ns;
};

/* tcp.c */
int tcp_start(struct pml *pml);
void tcp_stop(struct pml *pml);
/* The peer is gone, or breaks the rules of the wire. */
void tcp_lost(struct tcp_channel *channel, const char *why);
void tcp_watch(struct tcp_channel *channel);

/* card.c */
int tcp_card_publish(struct ncclx_rt *rt, const struct tcp_card *card);
int tcp_card_parse(const void *value, size_t bytes, struct tcp_card *card);

/* open.c: connections come about */
struct tcp_channel *tcp_channel_of(struct tcp *tcp, int rank);
/* Something is to be sent and there is no connection. */
void tcp_open(struct tcp_channel *channel);
/* The first bytes on a connection that we have opened, or its end. */
void tcp_greeting(struct tcp_channel *channel);
/* One look at what is under way. Returns events. */
int tcp_open_poll(struct tcp *tcp, uint64_t now);

/* lane.c and its parts, lane_out.c and lane_in.c: lanes */
extern const struct lane_transport tcp_lane_transport;
/* The peer has opened one. Takes the descriptor. */
void tcp_lane_accepted(struct tcp_channel *channel, uint64_t tag, int fd);
void tcp_in_accept(struct tcp_channel *channel, unsigned index, uint32_t life, int fd);
/* An attempt of ours has ended. False: it was not a lane's. */
bool tcp_lane_connected(struct tcp_channel *channel, uint64_t attempt, int fd);
void tcp_lane_failed(struct tcp_channel *channel, uint64_t attempt, const char *why);
/* One look at a lane. room: its socket has some. Returns events. */
int tcp_out_look(struct tcp_out *lane, bool room);
int tcp_in_look(struct tcp_in *lane, bool room);
void tcp_lanes_close(struct tcp_channel *channel);
void tcp_lanes_free(struct tcp_channel *channel);

/* stream.c: bytes */
int tcp_receive(struct tcp_channel *channel);
/* What did not fit before. True: all is out. */
bool tcp_flush(struct tcp_channel *channel);
bool tcp_send(struct tcp_channel *channel, const struct pml_packet *packet, const struct pml_payload *payload);

#endif
