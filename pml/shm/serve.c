/* serve.c - small copies by the owner of the memory. The origin writes what it wants into its ring to the target, and
 * waits about as long as the system call would take. A target inside the library finds it within a fraction of that,
 * and accepts; from a target that computes the origin withdraws it (offer.h), and does not ask again before the target
 * has looked into its ring. A target that loses its processor while it copies delays the origin until it runs again. */
#include "config.h"

#include "pml/shm/serve.h"

#include "pml/shm/help.h"

#include <sched.h>
#include <string.h>

/* A system call for a small copy costs 1.7 us: waiting in vain costs less than that once more. */
#define PATIENCE_NS 1000
/* Looks at an offer that was accepted between two yields, and between two questions whether that makes sense. */
#define YIELD_LOOKS 256u
#define CHECK_LOOKS 65536u
/* After so many waits in vain in a row, the pause between two tries no longer grows. */
#define MISSES_MAX 10

static bool worth_trying(struct shm_channel *channel, size_t bytes)
{
    if (bytes > SERVE_MAX_BYTES || !pml_connection_clear(channel->connection)) return false;
    if (!offer_possible(&channel->writer.shared->offer, channel->serve_round)) return false;
    if (channel->connection->pml->rt->job.oversubscribed) return false;
    if (pml_sleeps(&channel->mailbox->sleeping)) return false;
    if (!channel->serve_skip) return true;
    channel->serve_skip--;
    return false;
}

/* Where the payload is; null: the ring is full. */
static char *ask(struct shm_channel *channel, bool write, const char *here, uint64_t there, size_t bytes)
{
    struct pml_packet *line = ring_reserve(&channel->writer);
    if (!line) return NULL;
    char *place = line->u.data;
    if (bytes <= PACKET_INLINE_MAX) line->inline_bytes = (uint8_t)bytes;
    else if (!(place = ring_payload(&channel->writer, line, bytes))) return NULL;
    if (write) base_copy_shared(place, here, bytes);
    line->kind = write ? SERVE_WRITE : SERVE_READ;
    line->context = there;
    line->source = (int32_t)++channel->serve_round;
    line->tag = 0;
    ring_publish(&channel->writer, line);
    shm_visible(channel);
    return place;
}

/* Between looks: others may wait for us just so, and we for them. */
static void pass_time(struct shm_channel *channel, unsigned look)
{
    base_relax();
    if (look % 8 == 0) shm_serve_others(channel->connection->pml->shm);
}

/* Waits for a target that has accepted. An errno value when there will be no end; a target that was only stopped may do
 * its copy later, so the operation has failed: nobody else can do it safely now. */
static int await_end(struct shm_channel *channel, struct offer *offer, enum offer_progress *progress)
{
    uint64_t started_ns = 0;
    for (unsigned look = 1; (*progress = offer_look(offer, channel->serve_round)) == OFFER_TAKEN; look++) {
        pass_time(channel, look);
        if (look % YIELD_LOOKS) continue;
        sched_yield();
        if (look % CHECK_LOOKS) continue;
        if (!started_ns) started_ns = base_clock_ns();
        int failed = help_check(channel, started_ns);
        if (failed) return failed;
    }
    return 0;
}

/* Waits for somebody to accept, as long as that may pay. False: withdrawn. */
static bool await_acceptance(struct shm_channel *channel, struct offer *offer)
{
    uint64_t begin = 0;
    for (unsigned look = 1; offer_look(offer, channel->serve_round) == OFFER_OPEN; look++) {
        pass_time(channel, look);
        if (look % 16) continue;
        uint64_t now = base_clock_ns();
        if (!begin) begin = now;
        if (now - begin > PATIENCE_NS && offer_withdraw(offer, channel->serve_round)) return false;
    }
    return true;
}

static void missed(struct shm_channel *channel)
{
    if (channel->serve_misses < MISSES_MAX) channel->serve_misses++;
    channel->serve_skip = (1u << channel->serve_misses) - 1;
}

bool serve_copy(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes, int *failed)
{
    struct offer *offer = &channel->writer.shared->offer;
    enum offer_progress progress;
    if (!worth_trying(channel, bytes)) return false;
    const char *place = ask(channel, write, here, there, bytes);
    if (!place) return false;
    if (!await_acceptance(channel, offer)) {
        missed(channel);
        return false;
    }
    *failed = await_end(channel, offer, &progress);
    if (*failed) return true;
    if (progress != OFFER_DONE) { /* it declines: not memory that it exposes, which is no mistake */
        offer_forget(offer, channel->serve_round);
        missed(channel);
        return false;
    }
    channel->serve_misses = 0;
    if (!write) base_copy_shared(here, place, bytes);
    return true;
}

void serve_arrived(struct shm_channel *channel, const struct pml_packet *packet, const void *payload, size_t bytes)
{
    struct offer *offer = &channel->reader.shared->offer;
    uint32_t round = (uint32_t)packet->source;
    uint64_t address = *(const volatile uint64_t *)&packet->context; /* once: the peer may change it after the check */
    char *memory = (char *)(uintptr_t)address;
    bool write = packet->kind == SERVE_WRITE;
    if (!offer_accept(offer, round)) return;
    bool exposed = pml_exposes(channel->connection->pml, address, bytes);
    if (exposed && write) base_copy_shared(memory, payload, bytes);
    else if (exposed) base_copy_shared((char *)(uintptr_t)payload, memory, bytes);
    offer_end(offer, round, exposed);
}
