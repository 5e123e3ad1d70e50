/* segment.h - the memory that all ranks of a node share: a mailbox for each of its ranks, and a ring to each of its
 * ranks from every rank of the job (which may be on another "node" of the same kernel). It is sparse: a part is
 * allocated for real before it is first touched, so that a shortage is an error and never a signal. */
#ifndef PML_SHM_SEGMENT_H
#define PML_SHM_SEGMENT_H

#include "pml/shm/ring.h"

#define SEGMENT_PAGE 4096u
#define SEGMENT_RANKS_MAX 4096

/* Whole pages for each rank of the node. Who writes: the owner, except where said. */
struct shm_mailbox {
    _Atomic uint64_t token; /* random, never 0: written last by the owner; then the fields of this line are valid */
    uint64_t token_address; /* of a word in the owner's memory which holds `token`: for trying single copies */
    int32_t pid;            /* as the owner sees it */
    int32_t rank;           /* in the job */
    uint64_t bell_inode;    /* of the pipe that `bell` is an end of */
    char pad0[64 - 32];
    _Atomic uint32_t sleeping; /* a futex: odd while threads of the owner sleep; peers count on and wake them */
    _Atomic uint32_t bell;     /* while some do so on sockets, too: the owner's descriptor of a pipe that wakes them, + 1; else 0 */
    char pad1[56];
    _Atomic uint32_t callers; /* peers count up after they set their bit: the owner polls this word alone */
    char pad2[60];
    _Atomic uint64_t calling[]; /* bits, by job rank: this rank's ring to the owner is in use. Written by peers */
};

struct shm_segment {
    int fd;
    char *base;
    size_t bytes;
    int ranks;   /* of the node */
    int senders; /* ranks of the job */
    size_t mailbox_bytes;
    size_t ring_payload; /* bytes of each byte ring, a power of two, the same for all ranks */
    size_t ring_stride;
};

/* Maps the segment; takes the descriptor over, also on error. ring_payload: what this rank wishes; the first rank's
 * wish holds. */
int shm_segment_open(struct shm_segment *segment, int fd, int ranks, int senders, size_t ring_payload);
void shm_segment_close(struct shm_segment *segment);
/* Allocates the mailbox for real. */
int shm_segment_mailbox(struct shm_segment *segment, int index, struct shm_mailbox **mailbox);
/* Allocates the ring from a job rank to rank `to` of the node for real. */
int shm_segment_ring(struct shm_segment *segment, int from, int to, struct ring_shared **ring);
/* Maps all pages of a ring's payloads at once, which takes a fraction of what it takes one by one. */
void shm_segment_populate(struct ring_shared *ring, size_t payload_bytes);

#endif
