/* packets.c - packets from a peer: rank 1 of two has receives, a send and an active message's handler; the input is a row of packets that
 * rank 0 writes into its ring, with places and lengths of payloads that may lie.
 *
 * Single copies are off: an address from the input would be one of this process.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/pml_world.h"

#include "pml/shm/help.h"
#include "pml/shm/serve.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "packets";

#define BYTES 256
#define MARGIN 64
#define LARGE 100000
#define RECEIVES 3

static struct world world;
static char buffer[RECEIVES][MARGIN + BYTES + MARGIN], large[LARGE];
static void *shared; /* memory that rank 1 exposes */

/* One packet of the input. Numbers that a random search would hardly hit are chosen from tables. */
struct record {
    uint8_t kind, inline_bytes;
    int8_t source, tag;
    uint16_t count;
    uint8_t context, name;
    uint64_t word[5];
};

static void hear(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data, size_t bytes, void *arg)
{
    static volatile char sink;
    (void)rt, (void)arg;
    if (source != 0 || header_bytes > PML_AM_HEADER_MAX) abort();
    for (size_t i = 0; i < header_bytes; i++) sink = ((const char *)header)[i];
    for (size_t i = 0; i < bytes; i++) sink = ((const char *)data)[i];
    (void)sink;
}

static uint64_t name_of(const struct ncclx_request *request)
{
    return ((const struct pml_request *)request)->name;
}

static void poll_all(void)
{
    for (int i = 0; i < 2; i++) world_progress(&world);
}

static void write_packet(struct shm_channel *channel, const struct record *record, struct ncclx_request *const *request)
{
    const uint64_t names[] = {name_of(request[0]), name_of(request[1]), name_of(request[2]), name_of(request[RECEIVES])};
    const uint64_t contexts[] = {4 | PML_USER, 4 | PML_COLL, 4 | 3, 400};
    struct pml_packet *line;
    while (!(line = ring_reserve(&channel->writer))) poll_all();
    memcpy(line->u.word, record->word, sizeof record->word);
    uint8_t kind = record->kind % 19;
    const uint8_t others[] = {HELP_READING, HELP_WRITING, (uint8_t)(HELP_GETTING + (record->tag & 1)),
                              record->tag & 1 ? PROTOCOL_LANES : record->kind, SERVE_WRITE, SERVE_READ};
    line->kind = kind < 13 ? kind : others[kind - 13];
    line->inline_bytes = record->inline_bytes;
    line->source = record->source;
    line->tag = record->tag;
    line->count = record->count;
    line->context = record->context % 2 ? names[record->context / 2 % 4] : contexts[record->context / 2 % 4];
    if (kind >= 15 && kind != 16 && record->context % 2) line->context = (uint64_t)(uintptr_t)shared;
    if (record->name % 8 < 4) line->u.word[0] = names[record->name % 4];
    ring_publish(&channel->writer, line);
}

static void check_receive(const struct ncclx_request *request, const char *block)
{
    for (int i = 0; i < MARGIN; i++)
        if (block[i] != 0x5a || block[MARGIN + BYTES + i] != 0x5a) abort();
    if (request->complete && !request->status.error && request->status.bytes > BYTES) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *environment[] = {"NCCLX_SHM_CMA=0", "NCCLX_LOG=none", "NCCLX_SHM_RING=32768", NULL};
    static const int source[RECEIVES] = {0, 0, NCCLX_ANY_SOURCE}, tag[RECEIVES] = {1, NCCLX_ANY_TAG, 2};
    struct ncclx_request *request[RECEIVES + 1];
    struct pml_connection *connection;
    memset(buffer, 0x5a, sizeof buffer);
    world_open(&world, 2, environment);
    world.rt[1].pml->announce_threshold = 1;
    if (pml_am_register(&world.rt[1], 3, hear, NULL) || pml_mem_alloc(&world.rt[1], BYTES, &shared)) abort();
    for (int i = 0; i < RECEIVES; i++)
        if (pml_irecv(&world.comm[1], PML_USER, buffer[i] + MARGIN, BYTES, source[i], tag[i], &request[i])) abort();
    if (pml_isend(&world.comm[1], PML_USER, large, LARGE, 0, 1, &request[RECEIVES])) abort();
    if (pml_connection_to(world.rt[0].pml, 1, &connection)) abort();
    struct shm_channel *channel = connection->channel;
    if (pml_am_send(&world.rt[0], 1, 3, "", 1, NULL, 0)) abort(); /* rank 1 looks at this ring from now on */
    for (; bytes >= sizeof(struct record); bytes -= sizeof(struct record), data += sizeof(struct record)) {
        struct record record;
        memcpy(&record, data, sizeof record);
        write_packet(channel, &record, request);
        if (record.name & 8) poll_all();
    }
    poll_all();
    for (int i = 0; i < RECEIVES; i++) check_receive(request[i], buffer[i]);
    world_close(&world);
    return 0;
}
