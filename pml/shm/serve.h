/* serve.h - small copies to and from exposed memory, done by its owner when it happens to look: a fraction of the price
 * of a system call. Nothing depends on it: an owner that does not look at once is left out. */
#ifndef PML_SHM_SERVE_H
#define PML_SHM_SERVE_H

#include "pml/shm/shm.h"

/* Kinds of packets of this transport, beside help.h's. context: the address, source: the round of the offer; the
 * payload is the data, or the room for it. */
enum {
    SERVE_WRITE = 66, /* copy the payload to the address */
    SERVE_READ = 67   /* copy from the address into the payload, which stays the sender's */
};

/* Up to here two copies by two cores are always less than a system call; up to the other, they may be. */
#define SERVE_SURE_BYTES ((size_t)2048)
#define SERVE_MAX_BYTES (SERVE_SURE_BYTES << SERVE_CLASSES)

/* True: copied, or *failed. False: copy by other means. */
bool serve_copy(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes, int *failed);
/* A packet asks for service. */
void serve_arrived(struct shm_channel *channel, const struct pml_packet *packet, const void *payload, size_t bytes);

#endif
