/* shm.h - the transport between ranks of one node. */
#ifndef PML_SHM_SHM_H
#define PML_SHM_SHM_H

#include "pml/internal.h"
#include "pml/shm/segment.h"

#include <sys/types.h>

/* Classes of sizes for which help.h and serve.h are weighed against copying alone. */
#define HELP_CLASSES 4
#define SERVE_CLASSES 2

/* The way to one rank of the node. */
struct shm_channel {
    struct ring_writer writer;
    struct ring_reader reader;
    struct shm_mailbox *mailbox; /* the peer's */
    struct pml_connection *connection;
    uint32_t help_round;  /* of copies that we own */
    uint32_t help_asked;  /* the last of them with mapped memory for which we asked */
    uint32_t help_skip, help_misses;
    uint32_t serve_round; /* of copies that we asked for: serve.c */
    uint32_t serve_skip, serve_misses;
    struct pace pace;                            /* of messages to it */
    struct choice help[2][HELP_CLASSES];         /* reading, writing: of large copies, with its help or without */
    struct choice serve[2][SERVE_CLASSES];       /* of small ones, by the owner of the memory or by a system call */
    size_t eager_limit; /* of the ring */
    uint8_t way;         /* of the message about to be sent, when larger than PACE_LEAST: enum pace_way */
    bool mark;           /* it is to be timed */
    _Atomic uint32_t drain; /* counted up so that all stores before are done */
    bool alone;          /* a helper was lost: we copy without help */
    bool called;         /* the peer knows of our ring */
    bool reading;        /* the peer uses its ring to us */
    bool written, read;  /* all pages of our ring, and of the peer's, are at hand */
};

/* A node by the process manager's names which turned out to be the same machine. */
struct shm_neighbour {
    struct shm_neighbour *next;
    int node;
    struct shm_segment segment;
};

/* A pipe that wakes the rank while it sleeps on its sockets, too (bell.c). */
struct shm_bell {
    int in, out;  /* -1: none */
    int sleepers; /* threads */
};

struct shm {
    struct pml *pml;
    struct shm_segment segment;       /* of this node */
    struct shm_neighbour *neighbours; /* segments of other nodes under the same kernel */
    struct shm_mailbox *mailbox;      /* our own */
    int index;
    uint32_t callers_seen;
    int readers;
    struct shm_channel **reading; /* those with rings to us in use */
    uint64_t token;               /* the word that peers read to try single copies */
    bool barrier;                 /* membarrier works: no wake-up is ever lost */
    struct shm_bell bell;
};

/* Takes the node's segment over; fd -1: there is no other rank. */
int shm_start(struct pml *pml, int fd);
void shm_stop(struct pml *pml);

/* shm.c: after a packet was written: the peer may have to be told, or woken. */
void shm_visible(struct shm_channel *channel);
/* Does the copies that peers wait for at this moment (serve.h), and nothing else. */
void shm_serve_others(struct shm *shm);

/* neighbour.c: the segment of the node where a job rank is, and the rank's index there; opened on first use.
 * ERR_UNREACHABLE: another kernel. */
int shm_segment_of(struct shm *shm, int rank, struct shm_segment **segment, int *index);
void shm_neighbours_close(struct shm *shm);

/* wake.c */
void shm_wake_init(struct shm *shm);
void shm_wake(struct shm_mailbox *mailbox);
/* The mailbox of a peer that this rank reaches by shm, or its own; else null. */
struct shm_mailbox *shm_mailbox_of(struct pml *pml, int peer);
/* Sleeps until a peer has something for this rank, for `ns` at most. Without the rank's lock. */
void shm_block(struct shm *shm, uint64_t ns);
/* Says that this rank is about to sleep on *asleep. False: there is something for it. */
bool shm_may_sleep(struct shm *shm, uint32_t *asleep);

/* bell.c: for a rank that has sockets, too. */
void bell_init(struct shm_bell *bell);
/* Where that cannot be made there is none. */
void bell_open(struct shm *shm);
void bell_close(struct shm_bell *bell);
/* A peer wakes the owner of the mailbox. */
void bell_ring(const struct shm_mailbox *mailbox);
/* As shm_block, or until the set of sockets has something. There has to be a bell. */
enum shm_woken { WOKEN_NOT, WOKEN_BY_BELL, WOKEN_BY_SOCKET };
enum shm_woken shm_block_on(struct shm *shm, int sockets, uint64_t ns);

#endif
