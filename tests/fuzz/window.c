/* window.c - window messages from a peer: rank 0 of two has a window and operations under way; the input is a row of messages from rank 1.
 *
 * Each message: bytes of its header, bytes of its data, header, data. Memory is reached by messages only. The first words of some headers are
 * a signal instead, as it comes by lanes.
 */
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

static size_t take(const uint8_t **data, size_t *left, void *to, size_t bytes)
{
    if (bytes > *left) bytes = *left;
    if (bytes) memcpy(to, *data, bytes);
    *data += bytes;
    *left -= bytes;
    return bytes;
}

static void feed(struct ncclx_rt *rt, const uint8_t *data, size_t left)
{
    struct window_header header;
    uint8_t length[2], payload[PML_STANDIN_AM_MAX];
    while (take(&data, &left, length, sizeof length) == sizeof length) {
        size_t header_bytes = length[0] % 4 ? sizeof header : length[0] % sizeof header; /* mostly whole ones */
        memset(&header, 0, sizeof header);
        take(&data, &left, &header, sizeof header);
        size_t bytes = take(&data, &left, payload, length[1] % (PML_STANDIN_AM_MAX + 1));
        if (length[0] >= 0xf0) {
            const struct pml_signal signal = {
                .window = header.window, .rank = header.rank, .slot = header.slot, .value = header.value, .op = header.signal_op};
            osc_signal_arrived(rt, 1, &signal, rt->osc);
            continue;
        }
        osc_message_arrived(rt, 1, &header, header_bytes, payload, bytes, rt->osc);
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
    if (osc_put(win, memory + MARGIN, 100, 1, 0) || osc_get(win, got + MARGIN, BYTES, 1, 0) || osc_signal(win, 1, &signal)) abort();
    osc_message_flush_start(osc_window_of(win), osc_window_of(win)->targets[1]);
    feed(&rt, data, bytes);
    check_margins(memory);
    check_margins(got);
    osc_finalize(&rt);
    return 0;
}
