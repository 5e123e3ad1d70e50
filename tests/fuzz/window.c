/* window.c - window messages from a peer: rank 0 of two has a window and operations under way; the input is a row of messages from rank 1,
 * and signals, as they come by lanes. Memory is reached by messages only. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/pml_standin.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "window";

#define BYTES 256
#define MARGIN 64
#define CONTEXT 8

static char memory[MARGIN + BYTES + MARGIN], got[MARGIN + BYTES + MARGIN];

static void send(struct ncclx_rt *rt, int peer, const void *header, size_t header_bytes, const void *data, size_t bytes)
{
    (void)rt, (void)header;
    if (peer != 1 || header_bytes != sizeof(struct window_header)) abort();
    static volatile char sink;
    for (size_t i = 0; i < bytes; i++) sink = ((const char *)data)[i]; /* the sanitizer sees what would be sent */
    (void)sink;
}

static int no_barrier(struct ncclx_comm *comm)
{
    (void)comm;
    return NCCLX_SUCCESS;
}

/* Rank 1's part looks like rank 0's; its verdicts are "no messages needed", so no agent starts. */
static int mirror(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes)
{
    for (int i = 0; i < comm->size; i++)
        if (bytes == sizeof(int)) memset((char *)all + (size_t)i * bytes, 0, bytes);
        else memcpy((char *)all + (size_t)i * bytes, mine, bytes);
    return NCCLX_SUCCESS;
}

/* One message. Fields that a random search would hardly hit are right, unless it lies about them. */
struct record {
    uint8_t kind, lies, bytes, length, flags, signal_op, type, op;
    uint8_t slot, sequence;
    int8_t rank;
    uint8_t offset;
    uint32_t header_bytes;
    uint64_t value;
};
enum { LIES_WINDOW = 1, LIES_VERSION = 2, LIES_SEQUENCE = 4, LIES_OFFSET = 8, LIES_LENGTH = 16, LIES_SIZE = 32, IS_SIGNAL = 64, LIES_SLOT = 128 };

static uint64_t next_sequence(const struct osc_window *window, const struct record *record)
{
    bool answers = record->kind == WINDOW_ACK || record->kind == WINDOW_DATA || record->kind == WINDOW_LOCKED;
    if (answers) return record->sequence;
    return window->incoming[1] ? window->incoming[1]->core.handled + 1 : 1;
}

static void signal_arrives(struct ncclx_rt *rt, const struct record *record)
{
    const struct pml_signal signal = {.window = record->lies & LIES_WINDOW ? record->value : CONTEXT,
                                      .rank = record->rank ? record->rank : 1,
                                      .slot = record->lies & LIES_SLOT ? record->value : record->slot % 4,
                                      .value = record->value,
                                      .op = record->lies & LIES_LENGTH ? record->value : record->signal_op};
    osc_signal_arrived(rt, 1, &signal, rt->osc);
}

static void message_arrives(struct ncclx_rt *rt, const struct osc_window *window, const struct record *record)
{
    static const char data[PML_STANDIN_AM_MAX] = {1};
    uint8_t lies = record->lies;
    size_t bytes = record->bytes % (PML_STANDIN_AM_MAX + 1);
    const struct window_header header = {.window = lies & LIES_WINDOW ? record->value : CONTEXT,
                                         .sequence = lies & LIES_SEQUENCE ? record->value : next_sequence(window, record),
                                         .offset = lies & LIES_OFFSET ? record->value : record->offset,
                                         .bytes = lies & LIES_LENGTH ? record->value : record->length,
                                         .slot = lies & LIES_SLOT ? record->value : record->slot % 4,
                                         .value = record->value,
                                         .rank = record->rank ? record->rank : 1,
                                         .kind = record->kind,
                                         .flags = record->flags,
                                         .signal_op = record->signal_op,
                                         .version = lies & LIES_VERSION ? (uint8_t)record->value : WINDOW_VERSION,
                                         .type = record->type,
                                         .op = record->op};
    size_t header_bytes = lies & LIES_SIZE ? record->header_bytes % sizeof header : sizeof header;
    osc_message_arrived(rt, 1, &header, header_bytes, data, bytes, rt->osc);
}

static void feed(struct ncclx_rt *rt, const struct osc_window *window, const uint8_t *data, size_t left)
{
    for (; left >= sizeof(struct record); left -= sizeof(struct record), data += sizeof(struct record)) {
        struct record record;
        memcpy(&record, data, sizeof record);
        if (record.lies & IS_SIGNAL) signal_arrives(rt, &record);
        else message_arrives(rt, window, &record);
    }
}

static void check_margins(const char *block)
{
    for (int i = 0; i < MARGIN; i++)
        if (block[i] != 0x5a || block[MARGIN + BYTES + i] != 0x5a) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct base_comm_services services = {.barrier = no_barrier, .allgather = mirror};
    static struct ncclx_rt rt;
    struct ncclx_comm comm = {.rt = &rt, .context = CONTEXT, .rank = 0, .size = 2, .services = &services};
    const struct osc_signal signal = {.slot = 0, .op = NCCLX_SIGNAL_ADD, .value = 1};
    struct ncclx_win *win;
    pml_standin.shareable = pml_standin.plain = PML_ACCESS_MESSAGE;
    pml_standin.send = send;
    memset(&rt, 0, sizeof rt);
    memset(memory, 0x5a, sizeof memory);
    memset(got, 0x5a, sizeof got);
    base_log_levels[AREA_OSC] = LOG_NONE;
    if (osc_init(&rt) || osc_win_reserve(&comm, &win) || osc_win_create(win, &comm, memory + MARGIN, BYTES, 1, 3, NULL)) abort();
    osc_window_of(win)->answered = true; /* so that nobody's message starts an agent */
    if (osc_put(win, memory + MARGIN, 100, 1, 0) || osc_get(win, got + MARGIN, BYTES, 1, 0) || osc_signal(win, 1, &signal)) abort();
    osc_message_flush_start(osc_window_of(win), osc_window_of(win)->targets[1]);
    feed(&rt, osc_window_of(win), data, bytes);
    check_margins(memory);
    check_margins(got);
    osc_finalize(&rt);
    return 0;
}
