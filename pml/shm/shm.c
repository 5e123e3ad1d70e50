/* shm.c - packets between ranks of one node, through the rings of the node's segment. */
#include "config.h"

#include "pml/shm/shm.h"

#include "pml/shm/cma.h"
#include "pml/shm/help.h"
#include "pml/shm/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Up to here two copies through the ring are faster than a system call and its page walks. Measured on Zen 3, one way,
 * cores that share a cache: 16 KiB 1.7 us against 3.5, and many in a row 0.7 against 3.5; 64 KiB 5.9 against 6.4, and 2.5
 * against 6.8. Cores far from each other: 8 KiB 3.4 against 3.7, and in a row 2.5 against 5.2; 16 KiB in a row 5.4 against
 * 3.7. */
#define EAGER_LIMIT ((size_t)65536)
#define EAGER_LIMIT_FAR ((size_t)8192)
/* Copies of more than this are timed, so that some still are while the peer is far. */
#define TIMED_BYTES ((size_t)4096)
/* Time to copy 1 KiB to or from the ring which says that the cores are far from each other: 50 ns are usual between near
 * ones with warm caches, 240 between far ones. */
#define FAR_PACE 170u
#define NEAR_PACE 100u /* a single copy at this one is proof of the opposite */
#define PACE_MAX 1000u /* more is an interruption */
/* A stream is cut into pieces of this many bytes at most, so that small packets pass between them. */
#define STREAM_PIECE ((size_t)16384)
/* Packets taken from one peer before the others get their turn. */
#define BURST 16
/* With more peers than this their lines would only push each other out of the cache. */
#define EXPECT_READERS 4

/* ---- Start and end
 * ---------------------------------------------------------------------------------------------------- */

static size_t eager_limit(const struct ncclx_rt *rt)
{
    int64_t wish = rt->config.value[CONFIG_EAGER_LIMIT].number;
    return wish > 0 ? (size_t)wish : EAGER_LIMIT;
}

static int open_mailbox(struct shm *shm)
{
    struct ncclx_rt *rt = shm->pml->rt;
    int error = shm_segment_mailbox(&shm->segment, shm->index, &shm->mailbox);
    if (error) return error;
    if (getrandom(&shm->token, sizeof shm->token, 0) != sizeof shm->token)
        return base_error(NCCLX_ERR_INTERNAL, "no random numbers: %s", strerror(errno));
    shm->token |= 1;
    shm->mailbox->token_address = (uint64_t)(uintptr_t)&shm->token;
    shm->mailbox->pid = getpid();
    shm->mailbox->rank = rt->job.rank;
    atomic_store_explicit(&shm->mailbox->token, shm->token, memory_order_release);
    return NCCLX_SUCCESS;
}

int shm_start(struct pml *pml, int fd)
{
    struct ncclx_rt *rt = pml->rt;
    if (fd < 0) return NCCLX_SUCCESS;
    struct shm *shm = base_calloc(AREA_SHM, 1, sizeof *shm);
    if (!shm) {
        close(fd);
        return base_error(NCCLX_ERR_NO_MEM, "no memory");
    }
    shm->pml = pml;
    shm->index = base_job_local_index(&rt->job, rt->job.rank);
    int error = shm_segment_open(&shm->segment, fd, rt->job.local_size, rt->job.size,
                                 (size_t)rt->config.value[CONFIG_SHM_RING].number);
    if (!error) {
        shm->reading = base_calloc(AREA_SHM, (size_t)rt->job.size, sizeof *shm->reading);
        error = shm->reading ? open_mailbox(shm) : base_error(NCCLX_ERR_NO_MEM, "no memory for %d ranks", rt->job.size);
        if (error) shm_segment_close(&shm->segment);
    }
    if (error) {
        base_free(AREA_SHM, shm->reading);
        base_free(AREA_SHM, shm);
        return error;
    }
    shm_wake_init(shm);
    pml->shm = shm;
    if (rt->config.value[CONFIG_SHM_CMA].number) pml->announce_threshold = eager_limit(rt) + 1;
    return NCCLX_SUCCESS;
}

void shm_stop(struct pml *pml)
{
    struct shm *shm = pml->shm;
    if (!shm) return;
    atomic_store_explicit(&shm->mailbox->token, 0, memory_order_release);
    shm_neighbours_close(shm);
    shm_segment_close(&shm->segment);
    base_free(AREA_SHM, shm->reading);
    base_free(AREA_SHM, shm);
    pml->shm = NULL;
}

/* ---- Connections
 * -------------------------------------------------------------------------------------------------------- */

static int shm_connect(struct pml *pml, struct pml_connection *connection)
{
    struct shm *shm = pml->shm;
    struct shm_segment *segment;
    int index;
    if (!shm) return base_error(NCCLX_ERR_UNREACHABLE, "this rank has no shared memory");
    int error = shm_segment_of(shm, connection->rank, &segment, &index);
    if (error || connection->transport) return error;
    struct shm_channel *channel = base_calloc(AREA_SHM, 1, sizeof *channel);
    if (!channel) return base_error(NCCLX_ERR_NO_MEM, "no memory for the connection to rank %d", connection->rank);
    struct ring_shared *out, *in;
    error = shm_segment_mailbox(segment, index, &channel->mailbox);
    if (!error) error = shm_segment_ring(segment, pml->rt->job.rank, index, &out);
    if (!error) error = shm_segment_ring(&shm->segment, connection->rank, shm->index, &in);
    if (error) {
        base_free(AREA_SHM, channel);
        return base_error_context(error, "while connecting to rank %d", connection->rank);
    }
    ring_writer_init(&channel->writer, out, segment->ring_payload);
    ring_reader_init(&channel->reader, in, shm->segment.ring_payload);
    channel->connection = connection;
    connection->channel = channel;
    connection->payload_max = ring_payload_max(&channel->writer);
    connection->stream_piece = connection->payload_max < STREAM_PIECE ? connection->payload_max : STREAM_PIECE;
    size_t limit = eager_limit(pml->rt);
    channel->eager_limit = limit < connection->payload_max ? limit : connection->payload_max;
    connection->route.eager_limit = channel->eager_limit;
    return NCCLX_SUCCESS;
}

static void shm_disconnect(struct pml *pml, struct pml_connection *connection)
{
    (void)pml;
    base_free(AREA_SHM, connection->channel);
}

/* Tells the peer that our ring to it is in use. */
static void call(struct shm *shm, struct shm_channel *channel)
{
    channel->called = true;
    int rank = shm->pml->rt->job.rank;
    atomic_fetch_or(&channel->mailbox->calling[rank / 64], UINT64_C(1) << (rank % 64));
    atomic_fetch_add(&channel->mailbox->callers, 1);
}

static bool answer(struct shm *shm, int rank)
{
    struct pml *pml = shm->pml;
    struct pml_connection *connection;
    if (rank >= pml->rt->job.size || rank == pml->rt->job.rank) return true; /* a bit that means nothing */
    if (pml_connection_from(pml, rank, &transport_shm, &connection)) {
        base_log(AREA_SHM, LOG_WARN, "%s", base_error_detail());
        return false;
    }
    struct shm_channel *channel = connection->channel;
    if (connection->transport != &transport_shm || channel->reading) return true;
    channel->reading = true;
    shm->reading[shm->readers++] = channel;
    return true;
}

static void answer_callers(struct shm *shm, uint32_t callers)
{
    bool all = true;
    for (int word = 0; word < (shm->segment.senders + 63) / 64; word++) {
        uint64_t bits = atomic_load_explicit(&shm->mailbox->calling[word], memory_order_acquire);
        for (; bits; bits &= bits - 1) all = answer(shm, word * 64 + __builtin_ctzll(bits)) && all;
    }
    if (all) shm->callers_seen = callers; /* else again with the next poll: memory may be there by then */
}

/* ---- Packets
 * ---------------------------------------------------------------------------------------------------------------- */

static inline void visible(struct shm_channel *channel)
{
    if (unlikely(!channel->called)) call(channel->connection->pml->shm, channel);
    if (unlikely(pml_sleeps(&channel->mailbox->sleeping))) shm_wake(channel->mailbox);
}

void shm_visible(struct shm_channel *channel)
{
    visible(channel);
}

bool shm_is_far(const struct shm_channel *channel)
{
    return channel->pace > FAR_PACE;
}

void shm_copy_timed(struct shm_channel *channel, void *to, const void *from, size_t bytes)
{
    uint64_t begin = base_clock_ns();
    base_copy_shared(to, from, bytes);
    uint64_t pace = (base_clock_ns() - begin) * 1024 / bytes;
    /* Many things make a copy slow, fresh memory and cold caches too, but only near cores a fast one. */
    if (pace <= NEAR_PACE) channel->pace = (uint32_t)pace;
    else channel->pace = (uint32_t)((7 * channel->pace + (pace < PACE_MAX ? pace : PACE_MAX)) / 8);
    bool far = shm_is_far(channel) && !channel->connection->pml->rt->config.value[CONFIG_EAGER_LIMIT].number;
    channel->connection->route.eager_limit =
        far && channel->eager_limit > EAGER_LIMIT_FAR ? EAGER_LIMIT_FAR : channel->eager_limit;
}

static bool shm_eager(struct pml_connection *connection, uint64_t context, int source, int tag, const void *data,
                      size_t bytes)
{
    struct shm_channel *channel = connection->channel;
    struct pml_packet *line = ring_reserve(&channel->writer);
    if (unlikely(!line)) return false;
    if (bytes <= PACKET_INLINE_MAX) {
        line->inline_bytes = (uint8_t)bytes;
        if (bytes) memcpy(line->u.data, data, bytes); /* without any, data may be null */
    } else {
        /* One that tries whether the peer is near: memory that was long out of use is slow in any case. */
        if (unlikely(bytes > EAGER_LIMIT_FAR && shm_is_far(channel))) ring_calm_down(&channel->writer);
        char *place = ring_payload(&channel->writer, line, bytes);
        if (unlikely(!place)) return false;
        if (bytes > TIMED_BYTES) shm_copy_timed(channel, place, data, bytes);
        else base_copy_shared(place, data, bytes);
    }
    line->kind = PROTOCOL_EAGER;
    line->context = context;
    line->source = source;
    line->tag = tag;
    ring_publish(&channel->writer, line);
    visible(channel);
    return true;
}

static void copy_payload(char *to, const struct pml_payload *payload)
{
    if (payload->first_bytes) base_copy_shared(to, payload->first, payload->first_bytes);
    if (payload->second_bytes) base_copy_shared(to + payload->first_bytes, payload->second, payload->second_bytes);
}

static bool shm_post(struct pml_connection *connection, const struct pml_packet *packet,
                     const struct pml_payload *payload)
{
    struct shm_channel *channel = connection->channel;
    size_t bytes = payload->first_bytes + payload->second_bytes;
    struct pml_packet *line = ring_reserve(&channel->writer);
    if (!line) return false;
    char *place = NULL;
    bool fits = bytes <= PACKET_INLINE_MAX &&
                (packet->kind == PROTOCOL_EAGER || packet->kind == PROTOCOL_ACTIVE); /* others use the words */
    if (bytes && !fits && !(place = ring_payload(&channel->writer, line, bytes))) return false;
    line->kind = packet->kind;
    line->count = packet->count;
    line->context = packet->context;
    line->source = packet->source;
    line->tag = packet->tag;
    if (place) {
        memcpy(line->u.payload.skipped, packet->u.word, sizeof line->u.payload.skipped);
        copy_payload(place, payload);
    } else if (bytes) {
        line->inline_bytes = (uint8_t)bytes;
        copy_payload(line->u.data, payload);
    } else {
        line->inline_bytes = packet->inline_bytes;
        memcpy(line->u.word, packet->u.word, sizeof line->u.word);
    }
    ring_publish(&channel->writer, line);
    visible(channel);
    if (packet->kind == PROTOCOL_REQUEST && ++channel->detours % FAR_DETOURS == 0)
        connection->route.eager_limit = channel->eager_limit;
    return true;
}

static inline void take(struct pml *pml, struct shm_channel *channel, const struct pml_packet *line)
{
    const void *payload;
    size_t bytes;
    if (unlikely(!ring_look(&channel->reader, line, &payload, &bytes))) {
        pml_breach(channel->connection, "it wrote a packet whose payload lies outside its ring");
        bytes = 0;
    } else if (unlikely(line->kind >= HELP_GETTING)) {
        help_mapped_arrived(channel, line);
    } else if (unlikely(line->kind >= SERVE_WRITE)) {
        serve_arrived(channel, line, payload, bytes);
    } else if (unlikely(line->kind >= HELP_READING)) {
        help_arrived(channel, line);
    } else {
        pml_packet_arrived(pml, channel->connection, line, payload, bytes);
    }
    ring_release(&channel->reader, line, bytes > PACKET_INLINE_MAX ? bytes : 0);
    ring_answered(&channel->writer);
}

static int shm_poll(struct pml *pml)
{
    struct shm *shm = pml->shm;
    int events = 0;
    uint32_t callers = atomic_load_explicit(&shm->mailbox->callers, memory_order_acquire);
    if (unlikely(callers != shm->callers_seen)) answer_callers(shm, callers);
    for (int i = 0; i < shm->readers; i++) {
        struct shm_channel *channel = shm->reading[i];
        const struct pml_packet *line;
        int burst = 0;
        for (; burst < BURST && (line = ring_peek(&channel->reader)); burst++) take(pml, channel, line);
        events += burst;
        if (burst) continue;
        ring_idle(&channel->reader);
        if (shm->readers <= EXPECT_READERS) ring_expect(&channel->reader);
    }
    return events;
}

void shm_serve_others(struct shm *shm)
{
    for (int i = 0; i < shm->readers; i++) {
        struct shm_channel *channel = shm->reading[i];
        const struct pml_packet *line = ring_peek(&channel->reader);
        if (line && line->kind >= SERVE_WRITE) take(shm->pml, channel, line);
    }
}

/* ---- Single copies
 * ------------------------------------------------------------------------------------------------------------ */

static void shm_probe(struct pml_connection *connection)
{
    struct shm_channel *channel = connection->channel;
    struct pml *pml = connection->pml;
    if (!pml->rt->config.value[CONFIG_SHM_CMA].number) return;
    uint64_t token = atomic_load_explicit(&channel->mailbox->token, memory_order_acquire), found = 0;
    if (!token) {
        connection->probed = false; /* the peer is still starting */
        return;
    }
    int failed = cma_read(channel->mailbox->pid, &found, channel->mailbox->token_address, sizeof found);
    bool works = !failed && found == token; /* another process may have that number, in another namespace */
    connection->route.can_read = connection->route.can_write = works;
    if (!works)
        base_log(AREA_SHM, LOG_INFO, "no single copies with rank %d (%s): data goes through the ring", connection->rank,
                 failed ? strerror(failed) : "its process number means another process here");
}

/* The other side has nothing better to do than help with a large copy, unless ranks outnumber cores, or messages go both
 * ways: then it copies ours, and the system calls for pieces would only cost. */
static bool may_help(const struct pml_connection *connection, bool write, size_t bytes)
{
    const struct shm_channel *channel = connection->channel;
    if (bytes < HELP_MIN_BYTES || channel->alone || connection->pml->rt->job.oversubscribed) return false;
    return write || !connection->requested || bytes >= HELP_BOTH_WAYS_BYTES;
}

static int copy(struct pml_connection *connection, bool write, char *here, uint64_t there, size_t bytes, uint64_t name)
{
    struct shm_channel *channel = connection->channel;
    int failed = 0;
    if (!name && serve_copy(channel, write, here, there, bytes, &failed)) {
        if (!failed) return NCCLX_SUCCESS;
    } else if (name && may_help(connection, write, bytes))
        failed = help_copy(channel, write, here, there, bytes, name);
    else
        failed = write ? cma_write(channel->mailbox->pid, here, there, bytes)
                       : cma_read(channel->mailbox->pid, here, there, bytes);
    if (!failed) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_TRANSPORT, "cannot %s the memory of rank %d: %s", write ? "write" : "read",
                      connection->rank, strerror(failed));
}

static int shm_read(struct pml_connection *connection, void *to, uint64_t address, size_t bytes, uint64_t name)
{
    return copy(connection, false, to, address, bytes, name);
}

static int shm_write(struct pml_connection *connection, const void *from, uint64_t address, size_t bytes, uint64_t name)
{
    return copy(connection, true, (char *)(uintptr_t)from, address, bytes, name);
}

const struct transport transport_shm = {
    .name = "shm",
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .eager = shm_eager,
    .post = shm_post,
    .probe = shm_probe,
    .read = shm_read,
    .write = shm_write,
    .poll = shm_poll,
};
