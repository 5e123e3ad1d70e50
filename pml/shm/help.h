/* help.h - one large copy by both processes at once: a system call copies with one core's speed, and the process on the
 * other side mostly waits for this very copy. Whoever owns the copy works from the front; the other, when it looks,
 * takes pieces from the back. */
#ifndef PML_SHM_HELP_H
#define PML_SHM_HELP_H

#include "pml/shm/shm.h"

/* Kinds of packets of this transport, beside those of protocol.h. context: the name of the other side's request; 0
 * address of the owner's buffer, 1 round, 2 bytes of a piece, 3 bytes in all. */
enum {
    HELP_READING = 64, /* to a sender: write pieces of your message into my buffer */
    HELP_WRITING = 65  /* to a receiver: read pieces from my buffer into yours */
};
/* The same for memory that its owner shares. context: its address there. (serve.h has those in between.) */
enum {
    HELP_GETTING = 68, /* write pieces of your memory into my buffer */
    HELP_PUTTING = 69  /* read pieces from my buffer into your memory */
};

/* Smaller copies are over before the other side has noticed. Above the other size help always pays. */
#define HELP_MIN_BYTES ((size_t)16384)
#define HELP_SURE_BYTES (HELP_MIN_BYTES << HELP_CLASSES)
/* From here on the calls for pieces are cheap beside the copy, even while the other side has a copy of its own. */
#define HELP_BOTH_WAYS_BYTES ((size_t)524288)

/* Copies all of it. name: of the other side's request. 0 or an errno value. */
int help_copy(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes, uint64_t name);
/* Below, a helper would come too late for a copy between mappings. */
#define HELP_MAPPED_BYTES ((size_t)262144)
/* Copies between `here` and memory of the peer's, which is at `there` and mapped here. The peer helps if it happens to
 * look; nothing depends on it. 0 or an errno value. */
int help_copy_mapped(struct shm_channel *channel, bool write, char *here, uint64_t there, char *mapped, size_t bytes);
/* Why not to wait on for a peer that is at work: it has died, the job is being ended, or a deadline has passed. 0: wait
 * on. */
int help_check(const struct shm_channel *channel, uint64_t started_ns);
/* A packet asks for help. */
void help_arrived(struct shm_channel *channel, const struct pml_packet *packet);
void help_mapped_arrived(struct shm_channel *channel, const struct pml_packet *packet);

#endif
