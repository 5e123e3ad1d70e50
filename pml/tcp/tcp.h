/* tcp.h - the transport over sockets, for ranks that share no memory.
 *
 * One authenticated connection a pair of processes, made on first use (meet.h, bootstrap/oob), carries packets: their 64
 * bytes, in host order, followed by their payload. It is the control lane; large data and puts go over sockets of their
 * own (lane.h). Its socket may break, and is replaced: what was lost with it is sent again (keep.h). While it is not used
 * it may rest, without a socket, when descriptors are short (room.c). */
#ifndef PML_TCP_TCP_H
#define PML_TCP_TCP_H

#include "pml/lanes/lanes.h"
#include "pml/tcp/keep.h"
#include "pml/tcp/meet.h"
#include "pml/tcp/pipe.h"
#include "pml/tcp/trouble.h"

#include "bootstrap/bootstrap.h"
#include "bootstrap/oob/oob.h"

#define TCP_CARD_KEY "ncclx.tcp"
#define TCP_CARD_VERSION 4
#define TCP_CARD_TEXT 4096
#define TCP_PAYLOAD_MAX ((size_t)65536) /* of a packet, which is taken whole */
#define TCP_EAGER_MAX ((size_t)262144)  /* of an eager message, which is where its receive does not wait for it */
#define TCP_LONG_MAX KEEP_LENT_MAX      /* of a long eager message: it is lent, not kept, and acknowledged as soon as it is there */
#define TCP_PIECE_MAX ((size_t)262144)  /* of a stream: goes into the receive's buffer as it comes */
#define TCP_IN_BYTES (2 * sizeof(struct pml_packet) + TCP_EAGER_MAX)
/* So much has come, and the other direction has not told of it: bytes, and packets, which keep the peer's memory small. */
#define TCP_ACKNOWLEDGE ((size_t)131072)
#define TCP_ACKNOWLEDGE_PACKETS 64
#define TCP_TAG_LANE (UINT64_C(1) << 63) /* tags of connections: a lane's; else the number of the attempt */

/* In a packet's kind, for the connection itself. */
enum tcp_own {
    TCP_BYE = PROTOCOL_KINDS + 1, /* its sender ends, and says no more */
    TCP_ACK,                      /* 0 bytes that have come */
    TCP_REST,                     /* context: name of the socket; 0 bytes that have come. May it rest? */
    TCP_REST_YES,                 /* alike */
    TCP_REST_NO
};

/* The lowest bits of `pass` tell how much payload follows, the others what has come (keep_code). All ones: a long message, whose length
 * is in its first word. */
#define TCP_FOLLOWS_BITS 19
#define TCP_FOLLOWS_LONG ((1U << TCP_FOLLOWS_BITS) - 1)
_Static_assert(TCP_PIECE_MAX < TCP_FOLLOWS_LONG && TCP_EAGER_MAX < TCP_FOLLOWS_LONG && TCP_FOLLOWS_BITS + KEEP_CODE_BITS == 32, "both fit");

/* The first on a socket, from both sides. */
struct tcp_greeting {
    char magic[8];
    uint32_t attempts, zero; /* of its sender's */
    uint64_t name;           /* of the socket */
    uint64_t come;           /* bytes of the stream, on earlier sockets */
};
#define TCP_ASKERS 4                 /* incoming handshakes that wait for a peer's key */

/* What a rank tells others about where it is. */
struct tcp_card {
    unsigned char key[OOB_KEY_BYTES];
    struct lane_offer offer;
    struct oob_addresses addresses;
};

/* What sockets are for: the first field of whatever epoll points to. */
enum tcp_kind { TCP_CONTROL, TCP_LANE_OUT, TCP_LANE_IN, TCP_CALL };
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
    int fd;            /* in use, or waits for a greeting; -1: none */
    bool said_bye, heard_bye, lost;
    bool broken;         /* its socket was lost, and no other has taken its place yet */
    bool waits_for_room; /* to open one */
    bool wanted;         /* something is to be sent, or heard */
    unsigned awaited;    /* tcp->awaits when a receive waited for the peer last */
    uint64_t refused_ns; /* when the peer said last that it may not rest */
    unsigned used;       /* tcp->looks when it was last */
    unsigned segment;    /* bytes of the largest on its socket */
    size_t last_read;    /* bytes of the last read that found something */
    struct tcp_bad_luck luck;
    char *in; /* what has come and is not taken yet: [in_begin, in_end) of TCP_IN_BYTES; null: nothing, for a while */
    size_t in_begin, in_end;
    size_t missing; /* of the packet at in_begin, which is taken whole */
    char *to; /* where `left` more bytes of a stream or an eager message go */
    size_t left;
    struct pml_request *receive; /* complete when they are there; null: more pieces follow */
    struct ncclx_message *message; /* or they are of this one, which no receive waited for */
    struct pml_packet envelope;    /* of which this is the envelope */
    bool is_long;                  /* they are of a long message */
    struct keep keep;            /* what was sent */
    struct pml_request *lender;  /* the send that lent it a message; null: none */
    uint64_t come, told;         /* bytes from the peer, and so many as it knows */
    unsigned untold;             /* packets among these */
    bool pending;                /* something waits for room in the socket, or for a socket */
    uint32_t watched;            /* what epoll looks for; 0: not in its set */
    struct tcp_lanes *lanes; /* null: none was ever used */
    uint64_t to_ring;        /* lanes of ours with something to send */
};

struct tcp {
    struct pml *pml;
    struct oob *oob;
    int epoll;
    struct {
        enum tcp_kind kind; /* first */
        int fd;             /* an eventfd: another thread has brought something, such as a card */
    } call;
    struct tcp_channel *first; /* all of them */
    struct tcp_channel *hot;   /* something came from it last; and from these */
    unsigned hot_finds;        /* looks at it that found something since then */
    struct tcp_channel *alone; /* hot, and its socket is not in the epoll set; null: all are */
    struct tcp_out *hot_out;
    struct tcp_in *hot_in;
    unsigned idle_out, idle_in; /* looks at them that found nothing */
    int unsettled;             /* channels that wait for a card, for a retry, or for room */
    unsigned offered;          /* lanes from each peer, as the card says */
    int pending;               /* channels of which something waits for room in a socket, or for a socket */
    unsigned most;             /* channels with a socket; 0: as many as there are ranks */
    bool crowded;              /* some should rest */
    bool sent_away;            /* a peer was, for want of room */
    bool trim;                 /* some rest, and hold memory of lanes */
    bool ending;
    unsigned looks;            /* at all sockets */
    unsigned idle_looks;       /* when it was last asked which channels are idle */
    struct tcp_pipes pipes;
    uint64_t awaited_ns;       /* when it was last asked whom receives wait for */
    unsigned awaits;           /* how often */
    struct tcp_trouble trouble;
    unsigned turn;
    uint64_t looked_ns;
};

/* tcp.c */
int tcp_start(struct pml *pml);
void tcp_stop(struct pml *pml);
/* The peer is gone, or breaks the rules of the wire. */
void tcp_lost(struct tcp_channel *channel, const char *why);
/* Its socket has ended, and the peer may be there. */
void tcp_broke(struct tcp_channel *channel, const char *why);
/* Something waits to be sent, or does not. */
void tcp_pending(struct tcp_channel *channel);
void tcp_watch(struct tcp_channel *channel);
/* A socket that is watched; -1: none. */
void tcp_close(struct tcp *tcp, int fd);
/* Sleeps until something comes, for `ns` at most; whether it did. Without the rank's lock. */
bool tcp_block(struct tcp *tcp, uint64_t ns);
/* The set of them all, for who is about to sleep on it. Without the rank's lock. */
int tcp_all_sockets(struct tcp *tcp);
/* Ends that sleep, or the next one. By any thread. */
void tcp_wake(const struct tcp *tcp);
/* The next poll looks at all sockets. */
void tcp_look_everywhere(struct tcp *tcp);

/* card.c */
void tcp_card_format(const struct tcp_card *card, char text[TCP_CARD_TEXT]);
int tcp_card_publish(struct ncclx_rt *rt, const struct tcp_card *card);
int tcp_card_parse(const void *value, size_t bytes, struct tcp_card *card);

/* open.c: connections come about */
struct tcp_channel *tcp_channel_of(struct tcp *tcp, int rank);
/* Something is to be sent and there is no connection. */
void tcp_open(struct tcp_channel *channel);
/* The first bytes on a connection that we have opened, or its end. */
void tcp_greeting(struct tcp_channel *channel);
/* Its socket, our attempt, or none. */
void tcp_socket_close(struct tcp_channel *channel);
/* Once it is idle: again, after so long. */
void tcp_retry(struct tcp_channel *channel, uint64_t ns);
void tcp_retry_not(struct tcp_channel *channel);
/* One look at what is under way. Returns events. */
int tcp_open_poll(struct tcp *tcp, uint64_t now);

/* lane.c and its parts, lane_out.c and lane_in.c: lanes */
extern const struct lane_transport tcp_lane_transport;
/* The peer has opened one. Takes the descriptor. */
void tcp_lane_accepted(struct tcp_channel *channel, uint64_t tag, int fd);
void tcp_in_accept(struct tcp_channel *channel, unsigned index, uint32_t life, int fd);
/* An attempt of ours has ended. False: it was not a lane's. */
bool tcp_lane_connected(struct tcp_channel *channel, uint64_t attempt, int fd);
void tcp_lane_failed(struct tcp_channel *channel, const struct oob_event *event);
/* One look at a lane. room: its socket has some. Returns events. */
int tcp_out_look(struct tcp_out *lane, bool room);
int tcp_in_look(struct tcp_in *lane, bool room);
void tcp_lanes_close(struct tcp_channel *channel);
/* To a peer: of a quarter of the descriptors that this process may have, were all peers to be written to. */
unsigned tcp_lanes_most(uint64_t descriptors, unsigned peers);
/* Of those of this process: to a peer, and from it. */
unsigned tcp_lanes_here(const struct tcp *tcp);
void tcp_lanes_free(struct tcp_channel *channel);
/* Memory of lanes that are closed. */
void tcp_lanes_trim(struct tcp_channel *channel);

/* stream.c: bytes */
int tcp_receive(struct tcp_channel *channel);
/* The same, of a socket that epoll has not named. */
int tcp_look(struct tcp_channel *channel);
/* What did not fit before. True: all is out. */
bool tcp_flush(struct tcp_channel *channel);
bool tcp_send(struct tcp_channel *channel, const struct pml_packet *packet, const struct pml_payload *payload);
/* A long eager message: pml_send_landed tells when it is there. False: it may not go this way now. */
bool tcp_lend(struct tcp_channel *channel, const struct pml_packet *packet, struct pml_request *send);
/* The first ones of a list, as many as one call takes. Returns how many are on their way. */
int tcp_send_many(struct tcp_channel *channel, const struct pml_post *first);
/* For the connection itself, or HOLD and RESUME: goes out ahead of what waits for room. False: the connection has ended. */
bool tcp_say(struct tcp_channel *channel, unsigned kind, uint64_t name);

/* hold.c: of transport_tcp */
void tcp_hold(const struct pml_connection *connection, struct pml_holdings *holdings);

/* room.c: descriptors, and memory that is not in use */
void tcp_room_start(struct tcp *tcp);
/* May this process open one more? And take one that a peer has opened? If not, others are asked to rest. */
bool tcp_room_to_open(struct tcp *tcp);
/* Alike, if nobody has to rest for it. */
bool tcp_room_to_spare(const struct tcp *tcp);
bool tcp_room_to_accept(struct tcp_channel *channel);
/* REST, REST_YES and REST_NO have come. */
void tcp_rest_arrived(struct tcp_channel *channel, enum tcp_own kind, uint64_t name);
/* Its last word is out: it rests. */
void tcp_rest(struct tcp_channel *channel);
/* Says goodbye. True: so has the peer, and nothing is left to be sent. */
bool tcp_part(struct tcp_channel *channel);
/* Gives back memory that those at rest do not need: not while events may lead to it. */
void tcp_room_trim(struct tcp *tcp);
/* Channels that were not used since the last call give their buffers back. */
void tcp_room_give_back(struct tcp *tcp);
/* Descriptors have run out: others of this process have taken some. */
void tcp_room_short(struct tcp *tcp);
void tcp_room_tick(struct tcp *tcp, uint64_t now);

#endif
