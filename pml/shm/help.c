/* help.c - large copies shared by two processes. The state is one word in the ring from the owner of the copy to the
 * helper:
 *
 *     round (32 bits) | next piece of the front (16) | end of what is left at the back (16)
 *
 * Each side claims a piece by compare-and-swap. The owner ends the round only when the helper's pieces are done, so
 * nobody writes into a buffer after its request completed. */
#include "config.h"

#include "pml/shm/help.h"

#include "pml/memory.h"
#include "pml/shm/cma.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

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

/* The piece claimed; false: none left but `spared` ones, or another round. */
static bool claim(struct ring_help *help, uint32_t round, bool from_front, unsigned spared, unsigned *piece)
{
    uint64_t word = atomic_load_explicit(&help->claim, memory_order_acquire);
    for (;;) {
        unsigned front = front_of(word), back = back_of(word);
        if ((uint32_t)(word >> 32) != round || front + spared >= back) return false;
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
    char *mapped; /* where `there` is mapped; null: the kernel copies */
    size_t bytes, piece_bytes;
};

static int copy_range(const struct copying *copying, size_t offset, size_t bytes)
{
    if (copying->mapped) {
        if (copying->write) memcpy(copying->mapped + offset, copying->here + offset, bytes);
        else memcpy(copying->here + offset, copying->mapped + offset, bytes);
        return 0;
    }
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

/* The other side: takes pieces from the back, as long as more than `spared` are left. */
static void help_with(struct ring_help *help, const struct copying *copying, uint32_t round, unsigned spared)
{
    size_t pieces = (copying->bytes + copying->piece_bytes - 1) / copying->piece_bytes;
    unsigned piece;
    while (claim(help, round, false, spared, &piece)) {
        int failed = piece < pieces ? copy_piece(copying, piece) : EPROTO;
        atomic_fetch_add_explicit(&help->done, failed ? FAILED + 1 : 1, memory_order_release);
    }
}

/* Begins a round of copies; the helper has to be told then. */
static uint32_t begin(struct shm_channel *channel, unsigned pieces)
{
    struct ring_help *help = &channel->writer.shared->help;
    uint32_t round = ++channel->help_round;
    atomic_store_explicit(&help->done, 0, memory_order_relaxed);
    atomic_store_explicit(&help->claim, claim_word(round, 0, pieces), memory_order_release);
    return round;
}

static unsigned count_pieces(const struct copying *copying)
{
    return (unsigned)((copying->bytes + copying->piece_bytes - 1) / copying->piece_bytes);
}

/* Copies from the front until nothing is left, and waits for what the helper has claimed. *helped: its pieces. */
static int share(struct shm_channel *channel, const struct copying *copying, uint32_t round, unsigned *helped)
{
    struct ring_help *help = &channel->writer.shared->help;
    unsigned pieces = count_pieces(copying), piece, mine = 0;
    int failed = 0;
    while (!failed && claim(help, round, true, 0, &piece)) {
        failed = copy_piece(copying, piece);
        mine++;
    }
    uint64_t left =
        atomic_exchange_explicit(&help->claim, claim_word(round, 0, 0), memory_order_acq_rel); /* no more claims */
    unsigned back = back_of(left), front = front_of(left);
    *helped = pieces - back;
    int died = await_helper(channel, help, *helped);
    bool redo = died == ESRCH && copying->mapped; /* nobody else copies there any more */
    if (failed || (died && !redo)) return failed ? failed : died;
    if (front != back || mine != back) return EPROTO; /* somebody else wrote into the word */
    if (!redo && atomic_load_explicit(&help->done, memory_order_acquire) < FAILED) return 0;
    size_t offset = (size_t)back * copying->piece_bytes;
    return copy_range(copying, offset, copying->bytes - offset);
}

/* What the helper is told. */
static struct pml_packet description(uint8_t kind, uint64_t context, const struct copying *copying, uint32_t round)
{
    return (struct pml_packet){.kind = kind,
                               .context = context,
                               .inline_bytes = 4 * sizeof(uint64_t),
                               .u.word = {(uint64_t)(uintptr_t)copying->here, round, copying->piece_bytes, copying->bytes}};
}

int help_copy(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes, uint64_t name)
{
    struct copying copying = {.pid = channel->mailbox->pid,
                              .write = write,
                              .here = here,
                              .there = there,
                              .bytes = bytes,
                              .piece_bytes = choose_piece(bytes)};
    unsigned helped;
    uint32_t round = begin(channel, count_pieces(&copying));
    const struct pml_packet packet = description(write ? HELP_WRITING : HELP_READING, name, &copying, round);
    pml_post_control(channel->connection, &packet);
    return share(channel, &copying, round, &helped);
}

void help_arrived(struct shm_channel *channel, const struct pml_packet *packet)
{
    struct ring_help *help = &channel->reader.shared->help;
    bool write = packet->kind == HELP_READING;
    struct copying copying = {
        .pid = channel->mailbox->pid, .write = write, .there = packet->u.word[0], .piece_bytes = packet->u.word[2]};
    uint32_t round = (uint32_t)packet->u.word[1];
    uint64_t bytes = *(const volatile uint64_t *)&packet->u.word[3]; /* once: the peer can still write to the packet */
    void *buffer;
    if (!pml_request_buffer(channel->connection, packet->context, write, &buffer, &copying.bytes))
        return; /* over before we looked */
    copying.here = buffer;
    if (copying.piece_bytes < 4096 || (write && bytes != copying.bytes) || bytes > copying.bytes) return;
    copying.bytes = bytes;
    help_with(help, &copying, round, 0);
}

/* ---- Memory that the owner of the copy has mapped ---------------------------------------------------------------- */

/* The owner needs about 1 us for a piece, the helper four times as long, as its copies are the kernel's: what is left
 * for one piece of the helper's time is the owner's. */
#define MAPPED_PIECE ((size_t)32768)
#define MAPPED_SPARED 4
/* After so many rounds without a helper in a row, the pause between two tries no longer grows. */
#define MISSES_MAX 6

/* One description is under way at most, or a peer that computes would find its ring full of them. */
static bool may_ask(struct shm_channel *channel)
{
    const struct ring_help *help = &channel->writer.shared->help;
    if (channel->alone || channel->connection->pml->rt->job.oversubscribed) return false;
    if (!pml_connection_clear(channel->connection) || pml_sleeps(&channel->mailbox->sleeping)) return false;
    if (atomic_load_explicit(&help->seen, memory_order_relaxed) != channel->help_asked) return false;
    if (!channel->help_skip) return true;
    channel->help_skip--;
    return false;
}

int help_copy_mapped(struct shm_channel *channel, bool write, char *here, uint64_t there, char *mapped, size_t bytes)
{
    struct copying copying = {.write = write, .here = here, .mapped = mapped, .bytes = bytes, .piece_bytes = MAPPED_PIECE};
    while (count_pieces(&copying) > PIECES_MAX) copying.piece_bytes *= 2;
    bool overlap = here < mapped + bytes && mapped < here + bytes;
    if (overlap || !may_ask(channel)) {
        memmove(write ? mapped : here, write ? here : mapped, bytes);
        return 0;
    }
    unsigned helped;
    uint32_t round = begin(channel, count_pieces(&copying));
    const struct pml_packet packet = description(write ? HELP_PUTTING : HELP_GETTING, there, &copying, round);
    const struct pml_payload none = {0};
    if (channel->connection->transport->post(channel->connection, &packet, &none)) channel->help_asked = round;
    int failed = share(channel, &copying, round, &helped);
    if (helped) channel->help_misses = 0;
    else if (channel->help_misses < MISSES_MAX) channel->help_misses++;
    channel->help_skip = (1u << channel->help_misses) - 1;
    return failed;
}

void help_mapped_arrived(struct shm_channel *channel, const struct pml_packet *packet)
{
    struct ring_help *help = &channel->reader.shared->help;
    uint64_t address = *(const volatile uint64_t *)&packet->context; /* once each: the peer may change them after the check */
    uint64_t bytes = *(const volatile uint64_t *)&packet->u.word[3];
    uint32_t round = (uint32_t)packet->u.word[1];
    struct copying copying = {.pid = channel->mailbox->pid,
                              .write = packet->kind == HELP_GETTING,
                              .here = (char *)(uintptr_t)address,
                              .there = packet->u.word[0],
                              .bytes = bytes,
                              .piece_bytes = *(const volatile uint64_t *)&packet->u.word[2]};
    struct pml_connection *connection = channel->connection;
    atomic_store_explicit(&help->seen, round, memory_order_relaxed);
    if (copying.piece_bytes < 4096 || !pml_memory_find(connection->pml, copying.here, bytes)) return;
    pml_connection_probe(connection);
    if (!connection->route.can_read || !connection->route.can_write) return;
    help_with(help, &copying, round, MAPPED_SPARED);
}
