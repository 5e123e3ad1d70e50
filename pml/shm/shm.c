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

/* The ring's largest message unless the user sets another one; which way those above PACE_LEAST take is learnt. On Zen 3,
 * one way, cores that share a cache: 16 KiB 1.7 us against 3.5 by a system call, and many in a row 0.7 against 3.5; 64 KiB 5.9
 * against 6.4, and 2.5 against 6.8. Cores far from each other: 16 KiB in a row 5.4 against 3.7. On a Xeon 64 KiB 15 against
 * 3.2, and in a row 6.8 against 3.1. */
#define EAGER_LIMIT (PACE_LEAST << PACE_CLASSES)
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
    bell_init(&shm->bell);
    pml->shm = shm;
    if (rt->config.value[CONFIG_SHM_CMA].number) pml->announce_threshold = eager_limit(rt) + 1;
    return NCCLX_SUCCESS;
}

void shm_stop(struct pml *pml)
{
    struct shm *shm = pml->shm;
    if (!shm) return;
    atomic_store_explicit(&shm->mailbox->token, 0, memory_order_release);
    bell_close(&shm->bell);
    shm_neighbours_close(shm);
    shm_segment_close(&shm->segment);
    base_free(AREA_SHM, shm->reading);
    base_free(AREA_SHM, shm);
    pml->shm = NULL;
}

/* ---- Connections
 * -------------------------------------------------------------------------------------------------------- */

/* The user's word counts. */
static void start_learning(struct pml_connection *connection)
{
    const struct base_config *config = &connection->pml->rt->config;
    struct shm_channel *channel = connection->channel;
    pace_init(&channel->pace, config->value[CONFIG_SHM_CMA].number);
    for (int write = 0; write < 2; write++) {
        for (int class = 0; class < HELP_CLASSES; class++) choice_init(&channel->help[write][class], 2, 0);
        for (int class = 0; class < SERVE_CLASSES; class++) choice_init(&channel->serve[write][class], 2, 0);
    }
    bool fixed = config->value[CONFIG_EAGER_LIMIT].number;
    if (!fixed && channel->eager_limit > PACE_LEAST) connection->choose_above = PACE_LEAST;
}

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
    start_learning(connection);
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

static void shm_choose(struct pml_connection *connection, size_t bytes)
{
    struct shm_channel *channel = connection->channel;
    connection->route.eager_limit = channel->eager_limit;
    channel->mark = false;
    channel->way = PACE_RING;
    if (bytes > channel->eager_limit) return;
    channel->way = pace_next(&channel->pace, &channel->writer.shared->pace, bytes, &channel->mark);
    if (channel->way == PACE_SINGLE) connection->route.eager_limit = PACE_LEAST;
}

/* A ring is used beyond its hot part: its pages come at once, and not with the messages whose times are learnt from. */
static void populate(bool *done, struct ring_shared *ring, size_t payload_bytes, const char *place)
{
    if (*done || place - ring->payload < (ptrdiff_t)RING_HOT_BYTES) return;
    *done = true;
    shm_segment_populate(ring, payload_bytes);
}

/* Into the ring; the line tells the reader which way was taken when it shall tell us what its part of it takes. */
static void copy_in(struct shm_channel *channel, struct pml_packet *line, char *place, const void *from, size_t bytes, bool marked)
{
    uint64_t begun = 0;
    if (unlikely(marked)) {
        populate(&channel->written, channel->writer.shared, channel->writer.payload_bytes, place);
        begun = base_clock_ns();
    }
    if (channel->way == PACE_PAST) base_copy_streaming(place, from, bytes);
    else base_copy_shared(place, from, bytes);
    line->count = 0;
    if (likely(!marked)) return;
    atomic_fetch_add(&channel->drain, 1); /* until the stores are done, for which the reader waits, too */
    line->count = (uint16_t)(1 + channel->way);
    pace_here(&channel->pace, channel->way, bytes, base_clock_ns() - begun);
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
        bool chosen = bytes > PACE_LEAST, marked = chosen && channel->mark;
        /* When others take another way for long: memory that was long out of use is slow in any case. */
        if (unlikely(marked && pace_answered(&channel->pace))) ring_calm_down(&channel->writer);
        char *place = ring_payload(&channel->writer, line, bytes);
        if (unlikely(!place)) return false;
        if (chosen) copy_in(channel, line, place, data, bytes, marked);
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
        if (packet->kind == PROTOCOL_EAGER && bytes > PACE_LEAST && channel->way != PACE_SINGLE)
            copy_in(channel, line, place, payload->first, bytes, pace_waits(&channel->pace, channel->way, bytes));
        else copy_payload(place, payload);
    } else if (bytes) {
        line->inline_bytes = (uint8_t)bytes;
        copy_payload(line->u.data, payload);
    } else {
        line->inline_bytes = packet->inline_bytes;
        memcpy(line->u.word, packet->u.word, sizeof line->u.word);
    }
    ring_publish(&channel->writer, line);
    visible(channel);
    return true;
}

/* A message whose sender wants to know what our part of it takes. */
static void take_marked(struct pml *pml, struct shm_channel *channel, const struct pml_packet *line, const void *payload,
                        size_t bytes)
{
    enum pace_way way = line->count == 1 + PACE_PAST ? PACE_PAST : PACE_RING;
    populate(&channel->read, channel->reader.shared, channel->reader.payload_bytes, payload);
    uint64_t begun = base_clock_ns();
    pml_packet_arrived(pml, channel->connection, line, payload, bytes);
    pace_tell(&channel->reader.shared->pace, way, pace_class(bytes, PACE_LEAST, PACE_CLASSES), pace_cost(base_clock_ns() - begun, bytes));
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
        channel->pace.spoken |= line->kind != PROTOCOL_FINISHED;
        if (unlikely(bytes > PACE_LEAST && line->kind == PROTOCOL_EAGER && line->count))
            take_marked(pml, channel, line, payload, bytes);
        else pml_packet_arrived(pml, channel->connection, line, payload, bytes);
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
    for (unsigned class = 0; class < PACE_CLASSES && !works; class++)
        pace_tell(&channel->reader.shared->pace, PACE_SINGLE, class, UINT32_MAX);
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

static int copy_alone(const struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes)
{
    return write ? cma_write(channel->mailbox->pid, here, there, bytes) : cma_read(channel->mailbox->pid, here, there, bytes);
}

/* For a request of the peer's, which waits for it. */
static int copy_for_request(struct pml_connection *connection, bool write, char *here, uint64_t there, size_t bytes, uint64_t name)
{
    struct shm_channel *channel = connection->channel;
    if (!may_help(connection, write, bytes)) return copy_alone(channel, write, here, there, bytes);
    if (bytes > HELP_SURE_BYTES) return help_copy(channel, write, here, there, bytes, name);
    struct choice *choice = &channel->help[write][pace_class(bytes, HELP_MIN_BYTES, HELP_CLASSES)];
    uint64_t begun = base_clock_ns();
    unsigned alone = choice_next(choice);
    int failed = alone ? copy_alone(channel, write, here, there, bytes) : help_copy(channel, write, here, there, bytes, name);
    choice_learn(choice, alone, pace_cost(base_clock_ns() - begun, bytes));
    return failed;
}

/* For an operation on a window, of which the peer need not know. */
static int copy_exposed(struct shm_channel *channel, bool write, char *here, uint64_t there, size_t bytes)
{
    int failed = 0;
    if (bytes <= SERVE_SURE_BYTES || bytes > SERVE_MAX_BYTES)
        return serve_copy(channel, write, here, there, bytes, &failed) ? failed : copy_alone(channel, write, here, there, bytes);
    struct choice *choice = &channel->serve[write][pace_class(bytes, SERVE_SURE_BYTES, SERVE_CLASSES)];
    uint64_t begun = base_clock_ns();
    unsigned alone = choice_next(choice);
    bool served = !alone && serve_copy(channel, write, here, there, bytes, &failed);
    if (!served) failed = copy_alone(channel, write, here, there, bytes);
    if (served || alone) choice_learn(choice, alone, pace_cost(base_clock_ns() - begun, bytes)); /* else it was asked in vain */
    return failed;
}

static int copy(struct pml_connection *connection, bool write, char *here, uint64_t there, size_t bytes, uint64_t name)
{
    int failed = name ? copy_for_request(connection, write, here, there, bytes, name)
                      : copy_exposed(connection->channel, write, here, there, bytes);
    if (!failed) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_TRANSPORT, "cannot %s the memory of rank %d: %s", write ? "write" : "read",
                      connection->rank, strerror(failed));
}

static int shm_read(struct pml_connection *connection, void *to, uint64_t address, size_t bytes, uint64_t name)
{
    struct shm_channel *channel = connection->channel;
    if (!name || bytes <= PACE_SINGLE_LEAST || bytes > EAGER_LIMIT) return copy(connection, false, to, address, bytes, name);
    uint64_t begun = base_clock_ns();
    int error = copy(connection, false, to, address, bytes, name);
    if (!error)
        pace_tell(&channel->reader.shared->pace, PACE_SINGLE, pace_class(bytes, PACE_LEAST, PACE_CLASSES),
                  pace_cost(base_clock_ns() - begun, bytes));
    return error;
}

static int shm_write(struct pml_connection *connection, const void *from, uint64_t address, size_t bytes, uint64_t name)
{
    struct shm_channel *channel = connection->channel;
    char *here = (char *)(uintptr_t)from;
    if (!name || bytes <= PACE_SINGLE_LEAST || bytes > EAGER_LIMIT) return copy(connection, true, here, address, bytes, name);
    uint64_t begun = base_clock_ns();
    int error = copy(connection, true, here, address, bytes, name);
    if (!error) pace_copied(&channel->pace, bytes, base_clock_ns() - begun);
    return error;
}

static void shm_hold(const struct pml_connection *connection, struct pml_holdings *holdings)
{
    holdings->open++;
    holdings->bytes[PML_MEMORY_STATE] += base_block_bytes(connection->channel);
    holdings->bytes[PML_MEMORY_RINGS] += connection->pml->shm->segment.ring_stride;
}

const struct transport transport_shm = {
    .name = "shm",
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .choose = shm_choose,
    .eager = shm_eager,
    .post = shm_post,
    .probe = shm_probe,
    .read = shm_read,
    .write = shm_write,
    .poll = shm_poll,
    .hold = shm_hold,
};
