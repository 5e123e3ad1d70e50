/* internal.h - the structures that the files of pml share. */
#ifndef PML_INTERNAL_H
#define PML_INTERNAL_H

#include "pml/transport.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct pml_request;

/* A packet that waits for room. */
struct pml_post {
    struct pml_post *next;
    struct pml_packet packet;
    struct pml_payload payload;
    struct pml_request *request; /* send which it belongs to, complete once posted if it is eager; null: a node of its own, freed then */
    size_t answer;               /* bytes that the peer has asked for; 0: it has not */
};

/* Of what a peer asks for, so much may wait to be sent to it, nodes and all. Only one who reads nothing and asks on and on comes near. */
#define PML_ANSWERS_MAX ((size_t)256 << 20)

/* The way to one process of the job. */
struct pml_connection {
    struct pml *pml;
    int rank; /* in the job */
    const struct transport *transport;
    void *channel; /* the transport's */
    struct lanes *lanes; /* null: the transport has none */
    struct protocol_route route;
    size_t payload_max;        /* largest payload of one packet */
    size_t stream_piece;       /* and of one of a stream */
    size_t lend_above;         /* larger eager messages are lent to it */
    size_t choose_above;       /* the transport is asked how larger messages are to travel */
    size_t announce_threshold; /* receives from it announce themselves from this size on */
    bool probed;        /* route.can_read and can_write are known */
    bool copies;        /* NCCLX_PROTOCOL=copy, and the peer is another process */
    struct protocol_kept kept; /* of its messages, without a receive */
    bool reported; /* a breach of the protocol was logged */
    bool queued;   /* in pml->busy */
    struct pml_connection *next_busy;
    struct pml_post *first_post, *last_post;        /* wait for room, or for others, in order */
    unsigned posts;                                 /* so many */
    size_t answers;                                 /* bytes among these that the peer has asked for */
    unsigned burst, burst_poll;                     /* small messages begun since that poll */
    struct pml_request *first_stream, *last_stream; /* sends that stream DATA */
    int announcements;                              /* kept, of this peer */
    unsigned requested;                             /* sends to it that wait for their receivers */
    uint64_t last_context;                          /* of the latest arrival, and its space */
    struct pml_space_state *last_space;
    struct pml_traffic traffic;
};

/* One peer in one space of a communicator. */
struct pml_peer {
    struct protocol_peer core;
    struct pml_connection *connection; /* null: never used */
};

#define PEER_CHUNK 16

struct pml_space_state {
    struct match_space match;
    struct pml_peer **chunk; /* peers in chunks of PEER_CHUNK, made on first use */
    struct ncclx_comm *comm;
    uint64_t context; /* with the space in the low bits */
};

#define PML_SPACES 3

struct pml_comm {
    struct pml_comm *next; /* in its hash bin */
    struct pml *pml;
    struct ncclx_comm *comm;
    struct pml_space_state space[PML_SPACES];
};

struct pml_request {
    struct ncclx_request base;
    struct pml_space_state *space;
    struct pml_peer *peer;             /* send: destination; receive: source, null while it is a wildcard */
    struct pml_connection *connection; /* send: to; receive: from, once matched */
    uint64_t name;                     /* for peers: generation and index in the pool */
    struct pml_request *next;          /* free, or streaming */
    bool is_send, in_use;
    union {
        struct {
            struct protocol_send core;
            const void *buffer;
            size_t bytes;
        } send;
        struct {
            struct protocol_receive core;
            void *buffer;
        } receive;
    } u;
    struct pml_post post;
};

/* A message without a receive. */
struct ncclx_message {
    struct match_envelope match;
    struct ncclx_message *next; /* free */
    struct pml_space_state *space;
    struct pml_connection *connection;
    uint64_t send, address; /* REQUEST */
    size_t bytes;
    size_t first; /* of them, in data: all, when it was eager */
    enum protocol_kind kind;
    unsigned size_class;
    char data[];
};

/* A packet for a context that is not known yet. */
struct pml_held {
    struct pml_held *next;
    struct pml_connection *connection;
    struct pml_packet packet;
    size_t bytes;
    char data[];
};

#define COMM_BINS 64
#define DETACHED_KEPT 256
#define CONNECTION_CHUNK 64
#define REQUEST_SLAB 64
#define MESSAGE_CLASSES 4
#define AM_IDS 8

/* Private memory of this process that peers may ask it to copy to and from. */
struct pml_exposed {
    struct pml_exposed *next;
    uint64_t address, bytes;
};

struct pml {
    struct ncclx_rt *rt;
    struct pml_connection ***connection; /* by job rank, in chunks */
    struct pml_connection *busy;         /* have posts or streams waiting */
    struct pml_comm *comm[COMM_BINS];
    struct pml_held *first_held, *last_held;
    uint64_t detached[DETACHED_KEPT]; /* contexts of the latest communicators that ended */
    uint64_t detached_count;
    struct protocol_flow flow;
    bool holding;  /* some peer was told HOLD */
    bool draining; /* the self transport may deliver */
    size_t announce_threshold;
    unsigned turn; /* of polls with several transports */
    unsigned polls;
    struct pml_request **slab;
    uint32_t slabs, slabs_room;
    struct pml_request *free_requests;
    struct pml_post *free_posts;
    struct ncclx_message *free_messages[MESSAGE_CLASSES];
    unsigned free_message_count[MESSAGE_CLASSES];
    struct protocol_announcement *free_announcements;
    struct {
        pml_am_fn function;
        void *arg;
    } am[AM_IDS];
    struct pml_counters counters;
    struct shm *shm;           /* null: no other process can be reached by it */
    struct tcp *tcp;           /* alike */
    _Atomic bool rests_on_tcp; /* what came last came by it */
    bool called_in_vain;       /* by a socket that has nothing to say, and may call on and on */
    _Atomic uint8_t slept;     /* since the last look at all sockets: enum pml_slept */
    struct lanes_state *lanes;
    pml_signal_fn signalled; /* null: nobody takes signals */
    void *signalled_arg;
    struct pml_memory *memory; /* pml_mem_alloc's */
    struct pml_exposed *exposed;
};

extern const struct transport transport_self, transport_shm, transport_tcp;

/* base_poll_fn: one look at all transports. */
int pml_poll(void *arg);
/* pml.c. pml_init on this descriptor of the node's segment, which it takes over (-1: none); for tests with several
 * ranks in one process. */
int pml_init_on(struct ncclx_rt *rt, int segment);
int pml_connection_to(struct pml *pml, int rank, struct pml_connection **connection);
/* The one that there is; else null. */
struct pml_connection *pml_connection_found(const struct pml *pml, int rank);
void pml_connection_probe(struct pml_connection *connection);
/* A breach of the protocol by this peer: logged once, and the end of the connection where the transport can end one. */
void pml_breach(struct pml_connection *connection, const char *what);

/* comm.c */
int pml_space_peer_make(struct pml_space_state *space, int rank, struct pml_peer **peer);
struct pml_space_state *pml_space_find(struct pml *pml, uint64_t context);
bool pml_was_detached(const struct pml *pml, uint64_t context);

/* The peer `rank` of a space, with its connection. */
static inline int pml_space_peer(struct pml_space_state *space, int rank, struct pml_peer **peer)
{
    struct pml_peer *chunk = space->chunk[(unsigned)rank / PEER_CHUNK];
    if (likely(chunk != NULL)) {
        *peer = &chunk[(unsigned)rank % PEER_CHUNK];
        if (likely((*peer)->connection != NULL)) return NCCLX_SUCCESS;
    }
    return pml_space_peer_make(space, rank, peer);
}

/* pool.c */
int pml_request_get_slow(struct pml *pml, struct pml_request **request);
struct pml_request *pml_request_named(struct pml *pml, uint64_t name, bool is_send);
struct ncclx_message *pml_message_get(struct pml *pml, size_t data_bytes);
void pml_message_put(struct pml *pml, struct ncclx_message *message);
struct pml_post *pml_post_get(struct pml *pml);
void pml_post_put(struct pml *pml, struct pml_post *post);
void pml_pool_release(struct pml *pml);

static inline int pml_request_get(struct pml *pml, struct pml_request **request)
{
    struct pml_request *first = pml->free_requests;
    if (unlikely(!first)) return pml_request_get_slow(pml, request);
    pml->free_requests = first->next;
    first->in_use = true;
    *request = first;
    return NCCLX_SUCCESS;
}

static inline void pml_request_put(struct pml *pml, struct pml_request *request)
{
    request->in_use = false;
    request->name += UINT64_C(1) << 32; /* names that peers still hold are void now */
    request->next = pml->free_requests;
    pml->free_requests = request;
}

/* Polls this often without a look at clocks, flags or other pollers: about 10 us, in which most messages of a blocking
 * exchange come. */
#define PML_SPIN 256

/* Waits for a blocking call's request a short while, as directly as can be; base_request_wait is for the rest. */
static inline void pml_spin(struct pml *pml, const struct pml_request *request)
{
    struct ncclx_rt *rt = pml->rt;
    if (rt->threaded || rt->polling || rt->spin_limit < PML_SPIN) return;
    rt->polling = true;
    for (int i = 0; i < PML_SPIN && !request->base.complete; i++) pml_poll(pml);
    rt->polling = false;
}

/* backlog.c: packets that wait for room, and streams */
void pml_post_control(struct pml_connection *connection, const struct pml_packet *packet);
int pml_post_copy(struct pml_connection *connection, const struct pml_packet *packet,
                  const struct pml_payload *payload);
/* The same for what the peer has asked for. One that takes no answers loses its connection: NCCLX_ERR_TRANSPORT. */
void pml_answer(struct pml_connection *connection, const struct pml_packet *packet);
int pml_answer_copy(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload);
/* What waits for room and has not asked for its receive does so now. */
void pml_backlog_asks(struct pml_connection *connection);
void pml_backlog_append(struct pml_connection *connection, struct pml_post *post);
void pml_stream_append(struct pml_connection *connection, struct pml_request *request);
int pml_backlog_drain(struct pml *pml);
/* What waits for others goes now, as far as there is room. */
void pml_backlog_push(struct pml_connection *connection);

static inline bool pml_connection_clear(const struct pml_connection *connection)
{
    return connection->first_post == NULL;
}

/* Who says in a packet that it is `source` of this space. False: the connection leads to somebody else. */
static inline bool pml_space_sender(struct pml_space_state *space, const struct pml_connection *connection, int source,
                                    struct pml_peer **peer)
{
    if (unlikely(source < 0 || source >= space->comm->size)) return false;
    struct pml_peer *chunk = space->chunk[(unsigned)source / PEER_CHUNK];
    if (likely(chunk != NULL)) {
        *peer = &chunk[(unsigned)source % PEER_CHUNK];
        if (likely((*peer)->connection == connection)) return true;
    }
    return base_comm_world(space->comm, source) == connection->rank && !pml_space_peer_make(space, source, peer);
}

/* send.c */
/* A send that waits to go out as an eager message asks for its receive instead. False: it fails, for too many do. */
bool pml_send_asks(struct pml_request *request);
void pml_send_finished(struct pml *pml, struct pml_connection *connection, uint64_t name);
void pml_send_cleared(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet);
void pml_announced(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet);
/* Its data is in the receive's buffer; or (code) the connection is lost. */
void pml_send_landed(struct pml_request *request, int code);
void pml_withdrawn_by_peer(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet);
void pml_announcement_put(struct pml_connection *connection, struct protocol_announcement *announcement);

/* receive.c */
/* first: bytes of the message that are in data; of an eager one, all. */
void pml_receive_deliver(struct pml_request *request, struct pml_connection *connection, enum protocol_kind kind,
                         int source, int tag, const void *data, size_t first, size_t bytes, uint64_t send, uint64_t address);
/* The same for a request whose first bytes are about to come: *to is where they go. */
void pml_receive_requested(struct pml_request *request, struct pml_connection *connection, const struct pml_packet *packet,
                           size_t first, char **to);
void pml_receive_data(struct pml_connection *connection, const struct pml_packet *packet, const void *data,
                      size_t bytes);
void pml_receive_filled(struct pml *pml, struct pml_connection *connection, struct pml_space_state *space,
                        struct pml_peer *peer, const struct pml_packet *packet);
void pml_receive_withdrawn(struct pml *pml, struct pml_connection *connection, uint64_t name);
/* With this the name of a receive is the key to its buffer, for lanes; names have not so many requests. */
#define PML_RECEIVE_KEY UINT64_C(0x80000000)
static inline uint64_t pml_receive_key(uint64_t receive)
{
    return receive | PML_RECEIVE_KEY;
}
/* Where a write with this key goes; null: this peer may not write there. */
char *pml_receive_granted(struct pml_connection *connection, uint64_t key, uint64_t to, size_t bytes);
/* All that a peer wrote to this receive is there. False: it is not the peer's. */
bool pml_receive_landed_by(struct pml_connection *connection, uint64_t name);
/* The communicator ends: a receive that is still pending on it ends with an error. */
void pml_receive_end(struct match_receive *receive);

/* packet.c */
/* A message that was kept is no longer. bytes: of its data. */
void pml_hold_release(struct pml_connection *connection, enum protocol_kind kind, size_t bytes);
void pml_held_deliver(struct pml *pml, struct pml_comm *comm);
void pml_held_release(struct pml *pml);

/* await.c: peers of this transport that a pending receive names. */
void pml_await(const struct pml *pml, const struct transport *transport,
               void (*awaited)(struct pml_connection *connection));

/* tcp/tcp.c: nothing waits for room in a socket. */
bool tcp_drained(const struct pml *pml);

/* region.c */
bool pml_exposes(struct pml *pml, uint64_t address, size_t bytes);
void pml_exposed_release(struct pml *pml);

/* rest.c: how a rank sleeps that waits for its peers. */
void pml_rest_start(struct pml *pml);
enum pml_slept { SLEPT_NOT, SLEPT, SLEPT_UNTIL_CALLED /* by a socket */ };
/* Since it was asked last. */
static inline enum pml_slept pml_slept(struct pml *pml)
{
    enum pml_slept slept = atomic_load_explicit(&pml->slept, memory_order_relaxed);
    if (unlikely(slept != SLEPT_NOT)) atomic_store_explicit(&pml->slept, SLEPT_NOT, memory_order_relaxed);
    return slept;
}

/* traffic.c: the log tells what passed by each transport. */
void pml_traffic_report(struct pml *pml);

/* memory.c */
void pml_memory_release(struct pml *pml);

#endif
