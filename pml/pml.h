/* pml - CTran: matching, connections, transports. Moves messages and one-sided data between processes of the job.
 *
 * Owns: connections (one a pair of processes, made on first use), matching state of each communicator, shareable
 * memory, transports. Never: sees hwloc, Slurm or PMIx types; knows a collective algorithm or a window; prints.
 * Threads: every call holds the rank's lock (base/rt.h). Blocking calls give it up while they wait.
 *
 * Bounds on what one peer can make this rank keep, beside what the program itself has under way:
 *   messages without a receive, also for contexts that are not known yet   protocol.h: data by NCCLX_UNEXPECTED_LIMIT and what is in flight,
 *                                                                          PROTOCOL_REQUESTS_MAX that ask first
 *   announcements of receives                                              64, more are dropped (send.c)
 *   reads of windows that are being answered                               64 (lanes/gets.c)
 *   notices, numbers, lanes                                                lanes_offer (lanes/offer.c), the transport's own offer
 *   slots of the copy protocol                                             one set (lanes/copy.c)
 *   whatever else it asks for and does not take                            PML_ANSWERS_MAX (internal.h)
 *   what is sent and not acknowledged; what has come and is not whole      KEEP_MAX, TCP_IN_BYTES (tcp/)
 *   window messages that are being handled: none; locks that wait: one a window (osc/)
 * Who goes beyond breaks the rules (pml_breach): over sockets its connection ends, in shared memory the packet is dropped.
 */
#ifndef PML_H
#define PML_H

#include "runtime/base/base.h"

/* Each communicator has a matching space of its own for each kind of traffic: the low two bits of the context on the
 * wire. */
enum pml_space { PML_USER = 0, PML_COLL = 1, PML_SYSTEM = 2 };

int pml_init(struct ncclx_rt *rt);
void pml_finalize(struct ncclx_rt *rt);
/* Whether all that was handed over for sending has left this rank, so that it may stop making progress. */
bool pml_drained(struct ncclx_rt *rt);
/* Makes comm->pml. Messages that came before for its context are delivered. */
int pml_comm_attach(struct ncclx_comm *comm);
void pml_comm_detach(struct ncclx_comm *comm);

/* ---- Messages. dest and source are ranks of comm (never PROC_NULL here); arguments are checked by the caller ---- */

int pml_send(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag);
int pml_isend(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag,
              struct ncclx_request **request);
int pml_recv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag,
             ncclx_status_t *status);
int pml_irecv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag,
              struct ncclx_request **request);
/* One look; *found tells. message null: leave it (probe); else take it out (mprobe). */
int pml_probe(struct ncclx_comm *comm, enum pml_space space, int source, int tag, bool *found,
              struct ncclx_message **message, ncclx_status_t *status);
/* Receives a message taken out by pml_probe; consumes the handle. */
int pml_imrecv(void *buf, size_t bytes, struct ncclx_message *message, struct ncclx_request **request);
struct ncclx_comm *pml_message_comm(const struct ncclx_message *message);

/* ---- Memory that peers reach. `peer` is a job rank ---------------------------------------------------------- */

int pml_mem_alloc(struct ncclx_rt *rt, size_t bytes, void **ptr);
int pml_mem_free(struct ncclx_rt *rt, void *ptr); /* ERR_ARG: not from pml_mem_alloc */

enum pml_access {
    PML_ACCESS_DIRECT, /* mapped here: loads, stores and atomics at `pointer` */
    PML_ACCESS_COPY,   /* single copies by the kernel: pml_region_write and _read, complete when they return */
    PML_ACCESS_LANES,  /* pml_order_put and _get, complete later; what these cannot do is for active messages */
    PML_ACCESS_MESSAGE /* only active messages reach it, handled by the owner's progress or agent */
};

/* What a peer needs to reach a region: plain bytes to be sent by any means. */
struct pml_region_card {
    uint64_t word[9];
};

/* A peer's memory, as this rank reaches it. Read-only for users. */
struct pml_region {
    enum pml_access access;
    char *pointer;    /* DIRECT */
    uint64_t address; /* in the owner's address space */
    size_t bytes;
    int peer;
    uint64_t key; /* LANES */
};

/* Describes [base, base + bytes) of this rank for its peers, who may use it from now on. Valid while the memory is. */
int pml_region_card(struct ncclx_rt *rt, void *base, size_t bytes, struct pml_region_card *card);
/* The members of comm, and nobody else, may write to, and read from, the first `bytes` of it over lanes, too. */
int pml_region_open(const struct ncclx_comm *comm, struct pml_region_card *card, size_t bytes);
/* The end of a card, before the memory ends: nothing is written or read there for peers any more. */
void pml_region_hide(struct ncclx_rt *rt, const struct pml_region_card *card);
/* Whether it describes memory of pml_mem_alloc, which peers can map. */
bool pml_region_shareable(const struct pml_region_card *card);
/* Finds by trying how this rank reaches the memory that peer's card describes. A card that lies is ERR_TRANSPORT. */
int pml_region_attach(struct ncclx_rt *rt, int peer, const struct pml_region_card *card, struct pml_region **region);
void pml_region_detach(struct ncclx_rt *rt, struct pml_region *region);
/* DIRECT and COPY: one synchronous copy at `offset`, which the caller has checked. */
int pml_region_write(struct ncclx_rt *rt, struct pml_region *region, size_t offset, const void *from, size_t bytes);
int pml_region_read(struct ncclx_rt *rt, struct pml_region *region, size_t offset, void *to, size_t bytes);

/* For buffers that live as long as one call: no card, only the address that the peer told. Whether the kernel copies
 * both ways between this rank and the peer, found by trying; and one such copy, complete when it returns. */
bool pml_peer_copies(struct ncclx_rt *rt, int peer);
int pml_peer_copy(struct ncclx_rt *rt, int peer, bool write, void *here, uint64_t there, size_t bytes);

/* Peers that sleep while they wait for a change of memory. The word tells whether the peer may sleep; null: it never has to be woken from
 * here. Who changes memory that a peer may wait for (base_wait.ready) looks at the word afterwards, and wakes. */
const _Atomic uint32_t *pml_sleeper(struct ncclx_rt *rt, int peer);
static inline bool pml_sleeps(const _Atomic uint32_t *sleeper)
{
    return atomic_load_explicit(sleeper, memory_order_relaxed) & 1; /* the rest counts wake-ups */
}
void pml_wake(struct ncclx_rt *rt, int peer);

/* ---- Memory that is reached by lanes -------------------------------------------------------------------------- */

/* What a window and one of its targets have in common: its puts and gets may be complete in any order; a signal takes
 * effect after all puts before it. */
struct pml_order;

struct pml_signal {
    uint64_t window; /* of whoever takes it: pml_signal_register */
    int rank;        /* of the origin in it */
    uint64_t slot, value, op;
};
/* Runs in the target's progress, under its lock; must not wait. All of the signal comes from a peer: check it. */
typedef void (*pml_signal_fn)(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg);
void pml_signal_register(struct ncclx_rt *rt, pml_signal_fn function, void *arg);

/* What has to be over until something is complete. */
struct pml_goal {
    uint64_t puts, gets;
};

/* changed is called when one of its goals may have been reached, in progress or in the calls below. */
int pml_order_make(struct ncclx_rt *rt, struct pml_region *region, void (*changed)(void *arg), void *arg,
                   struct pml_order **order);
/* The caller's no longer; what is under way goes on. Null is allowed. */
void pml_order_leave(struct pml_order *order);
/* The memory at `from` stays as it is until the put is complete, that at `to` is the order's until the get is. Ranges are
 * checked by the caller. A signal may come without bytes. */
int pml_order_put(struct pml_order *order, size_t offset, const void *from, size_t bytes, const struct pml_signal *signal);
int pml_order_get(struct pml_order *order, size_t offset, void *to, size_t bytes);
/* The goal of all puts, here and in the target's memory, and gets so far. */
int pml_order_flush(struct pml_order *order, struct pml_goal *goal);
bool pml_order_reached(const struct pml_order *order, const struct pml_goal *goal);
/* With which code the way to the target ended; else NCCLX_SUCCESS. */
int pml_order_error(const struct pml_order *order);

/* ---- Active messages, in order between two processes, for window operations that memory access cannot do ---- */

#define PML_AM_HEADER_MAX 96
/* Runs in the target's progress, under its lock: it must not wait, but may send. header and data are gone when it
 * returns. Both come from a peer: check them. */
typedef void (*pml_am_fn)(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data,
                          size_t bytes, void *arg);
int pml_am_register(struct ncclx_rt *rt, unsigned id, pml_am_fn function, void *arg); /* id < 8 */
/* Data that one message to this peer can carry. */
size_t pml_am_max(struct ncclx_rt *rt, int peer);
/* Copies and returns; queues when the way is full. bytes <= pml_am_max. */
int pml_am_send(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                size_t bytes);
/* The same for what a message of this peer has asked for, which is bounded: ERR_TRANSPORT where the peer takes no answers. */
int pml_am_answer(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                  size_t bytes);
/* What this peer sent cannot come from a rank that keeps the rules: logged once, and the end of the connection where the transport can
 * end one. */
void pml_peer_breach(struct ncclx_rt *rt, int peer, const char *what);

/* ---- Facts for ncclx-info, the dump and tests ---------------------------------------------------------------- */

struct pml_counters {
    uint64_t messages_sent, messages_received; /* of all spaces */
    uint64_t eager, rendezvous, announced;     /* sends by protocol */
    uint64_t unexpected, unexpected_peak;      /* messages held now, and most */
};
void pml_get_counters(struct ncclx_rt *rt, struct pml_counters *counters);

/* Payload that this rank moved: of messages, of window messages, and of one-sided operations, which only the rank that asks for them
 * counts. */
struct pml_traffic {
    uint64_t sent, received; /* put: sent; got: received */
};
/* By one transport, and with how many peers. ERR_ARG: there is no transport of this name. */
int pml_get_traffic(struct ncclx_rt *rt, const char *transport, struct pml_traffic *traffic, int *peers);
/* Loads and stores in a region that is mapped here, of which pml is not asked. */
void pml_count_direct(struct pml_region *region, size_t put_bytes, size_t get_bytes);
/* "shm", "tcp" or "self"; null when the peer was never reached. */
const char *pml_transport_name(struct ncclx_rt *rt, int peer);

/* What the memory of connections is for. */
enum pml_memory_of {
    PML_MEMORY_STATE,   /* what is known about the peer and the way to it */
    PML_MEMORY_KEEP,    /* sent, and not acknowledged yet */
    PML_MEMORY_RECEIVE, /* has come, and is not whole yet */
    PML_MEMORY_LANES,   /* the ends of lanes, and what is in flight on them */
    PML_MEMORY_REORDER, /* what came on lanes before its turn */
    PML_MEMORY_CHUNKS,  /* slots of the copy protocol */
    PML_MEMORY_RINGS,   /* shared with the peer: of the two rings of a pair, the one that leads here */
    PML_MEMORY_WAITING, /* packets that wait for room */
    PML_MEMORY_KINDS
};
struct pml_holdings {
    int peers;       /* with which there is a connection */
    int open;        /* that has its socket, or its rings */
    int resting;     /* that has given its socket up, and opens again when it is used */
    int lanes;       /* open, to the peer and from it */
    int descriptors;
    uint64_t bytes[PML_MEMORY_KINDS];
    /* Of the connection with one peer: what its large data has shown, in nanoseconds and bytes a second, and how many bytes it may
     * have in flight. 0: not known yet, or not limited by that. */
    uint64_t round_trip_ns, rate, window;
};
/* Of the connections by one transport, with one peer or (-1) with all. ERR_ARG: there is no transport of this name. */
int pml_get_holdings(struct ncclx_rt *rt, const char *transport, int peer, struct pml_holdings *holdings);

#endif
