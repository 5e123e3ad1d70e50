/* help.c - large copies shared by two processes. The state is one word in the ring from the owner of the copy to the
 * helper:
 *
 *     round (32 bits) | next piece of the front (16) | end of what is left at the back (16)
 *
 * Each side claims a piece by compare-and-swap. The owner ends the round only when the helper's pieces are done, so
 * nobody writes into a buffer after its request completed. */
#include "config.h"

#include "pml/shm/help.h"

#include "pml/shm/cma.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

#define PIECE_MAX ((size_t)524288)
#define PIECES_MAX 32768u

/* Looks at the helper's pieces, every 64th of which gives the core up, between looks at the helper itself. */
#define HELPER_CHECK_ROUNDS 8192

#define FAILED (UINT64_C(1) << 32) /* added to `done` with a piece that the helper could not copy */

static uint64_t claim_word(uint64_t round, unsigned front, unsigned back)
{
    return round << 32 | (uint64_t)front << 16 | back;
}

static unsigned front_of(uint64_t word)
{
    return (unsigned)(word >> 16) & 0xffff;
}
static unsigned back_of(uint64_t word)
{
    return (unsigned)word & 0xffff;
}

/* The piece claimed; false: none left, or another round. */
static bool claim(struct ring_help *help, uint32_t round, bool from_front, unsigned *piece)
{
    uint64_t word = atomic_load_explicit(&help->claim, memory_order_acquire);
    for (;;) {
        unsigned front = front_of(word), back = back_of(word);
        if ((uint32_t)(word >> 32) != round || front >= back) return false;
        *piece = from_front ? front : back - 1;
        uint64_t next = from_front ? claim_word(round, front + 1, back) : claim_word(round, front, back - 1);
        if (atomic_compare_exchange_weak_explicit(&help->claim, &word, next, memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    }
}

struct copying {
    pid_t pid;
    bool write;
    char *here;
    uint64_t there;
    size_t bytes, piece_bytes;
};

static int copy_range(const struct copying *copying, size_t offset, size_t bytes)
{
    if (copying->write) return cma_write(copying->pid, copying->here + offset, copying->there + offset, bytes);
    return cma_read(copying->pid, copying->here + offset, copying->there + offset, bytes);
}

static int copy_piece(const struct copying *copying, unsigned piece)
{
    size_t offset = piece * copying->piece_bytes, left = copying->bytes - offset;
    return copy_range(copying, offset, left < copying->piece_bytes ? left : copying->piece_bytes);
}

int help_check(const struct shm_channel *channel, uint64_t started_ns)
{
    const struct ncclx_rt *rt = channel->connection->pml->rt;
    if (kill(channel->mailbox->pid, 0) && errno == ESRCH) return ESRCH;
    if (atomic_load_explicit(&rt->aborting, memory_order_relaxed)) return ECANCELED;
    return rt->timeout_ns && base_clock_ns() - started_ns > rt->timeout_ns ? ETIMEDOUT : 0;
}

/* Waits for the helper's pieces. An errno value when they will not come; a helper that was only stopped may count them
 * later, so this channel's copies are made without help from then on. */
static int await_helper(struct shm_channel *channel, struct ring_help *help, uint64_t pieces)
{
    uint64_t started_ns = 0;
    int failed = 0;
    for (unsigned rounds = 1;
         !failed && (atomic_load_explicit(&help->done, memory_order_acquire) & (FAILED - 1)) != pieces; rounds++) {
        if (rounds % 64) continue;
        sched_yield();
        if (rounds % HELPER_CHECK_ROUNDS) continue;
        if (!started_ns) started_ns = base_clock_ns();
        failed = help_check(channel, started_ns);
    }
    if (failed) channel->alone = true;
    return failed;
}

/* A call has a fixed cost of about 1 us, so few pieces; but neither side shall wait long for the other's last one. */
static size_t choose_piece(size_t bytes)
{
    size_t pieces = bytes <= 262144 ? 2 : bytes <= 1048576 ? 4 : 8;
    size_t piece = (bytes / pieces + 4095) & ~(size_t)4095;
    if (piece > PIECE_MAX) piece = PIECE_MAX;
    size_t least = (bytes / PIECES_MAX + 4096) & ~(size_t)4095;
    return piece < least ? least : piece;
}

int help_copy(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes, uint64_t name)
{
    struct ring_help *help = &channel->writer.shared->help;
    struct copying copying = {.pid = channel->mailbox->pid,
                              .write = write,
                              .here = here,
                              .there = there,
                              .bytes = bytes,
                              .piece_bytes = choose_piece(bytes)};
    unsigned pieces = (unsigned)((bytes + copying.piece_bytes - 1) / copying.piece_bytes), piece, mine = 0;
    uint32_t round = ++channel->help_round;
    int failed = 0;
    atomic_store_explicit(&help->done, 0, memory_order_relaxed);
    atomic_store_explicit(&help->claim, claim_word(round, 0, pieces), memory_order_release);
    struct pml_packet packet = {.kind = write ? HELP_WRITING : HELP_READING,
                                .context = name,
                                .inline_bytes = 4 * sizeof(uint64_t),
                                .u.word = {(uint64_t)(uintptr_t)here, round, copying.piece_bytes, bytes}};
    pml_post_control(channel->connection, &packet);
    while (!failed && claim(help, round, true, &piece)) {
        failed = copy_piece(&copying, piece);
        mine++;
    }
    uint64_t left =
        atomic_exchange_explicit(&help->claim, claim_word(round, 0, 0), memory_order_acq_rel); /* no more claims */
    unsigned back = back_of(left), front = front_of(left);
    int died = await_helper(channel, help, pieces - back);
    if (failed || died) return failed ? failed : died;
    if (front != back || mine != back) return EPROTO; /* somebody else wrote into the word */
    if (atomic_load_explicit(&help->done, memory_order_acquire) < FAILED) return 0;
    size_t offset = (size_t)back * copying.piece_bytes;
    return copy_range(&copying, offset, bytes - offset);
}

void help_arrived(struct shm_channel *channel, const struct pml_packet *packet)
{
    struct ring_help *help = &channel->reader.shared->help;
    bool write = packet->kind == HELP_READING;
    struct copying copying = {
        .pid = channel->mailbox->pid, .write = write, .there = packet->u.word[0], .piece_bytes = packet->u.word[2]};
    uint32_t round = (uint32_t)packet->u.word[1];
    uint64_t bytes = *(const volatile uint64_t *)&packet->u.word[3]; /* once: the peer can still write to the packet */
    unsigned piece;
    void *buffer;
    if (!pml_request_buffer(channel->connection, packet->context, write, &buffer, &copying.bytes))
        return; /* over before we looked */
    copying.here = buffer;
    if (copying.piece_bytes < 4096 || (write && bytes != copying.bytes) || bytes > copying.bytes) return;
    copying.bytes = bytes;
    size_t pieces = (copying.bytes + copying.piece_bytes - 1) / copying.piece_bytes;
    while (claim(help, round, false, &piece)) {
        int failed = piece < pieces ? copy_piece(&copying, piece) : EPROTO;
        atomic_fetch_add_explicit(&help->done, failed ? FAILED + 1 : 1, memory_order_release);
    }
}
