/* window.c - window messages from a peer: rank 0 of two has a window and operations under way; the input is a row of messages from rank 1.
 *
 * Each message: bytes of its header, bytes of its data, header, data. The functions of pml that osc calls are stood in for here.
 */
#include "osc/window.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "window";

#define AM_MAX 64
#define BYTES 256
#define MARGIN 64
#define CONTEXT 8

static char memory[MARGIN + BYTES + MARGIN], got[MARGIN + BYTES + MARGIN];

int pml_mem_alloc(struct ncclx_rt *rt, size_t bytes, void **ptr)
{
    (void)rt;
    *ptr = calloc(1, bytes);
    return *ptr ? NCCLX_SUCCESS : NCCLX_ERR_NO_MEM;
}

int pml_mem_free(struct ncclx_rt *rt, void *ptr)
{
    (void)rt;
    free(ptr);
    return NCCLX_SUCCESS;
}

int pml_region_card(struct ncclx_rt *rt, void *base, size_t bytes, struct pml_region_card *card)
{
    (void)rt;
    *card = (struct pml_region_card){{(uintptr_t)base, bytes}};
    return NCCLX_SUCCESS;
}

void pml_region_hide(struct ncclx_rt *rt, const struct pml_region_card *card)
{
    (void)rt, (void)card;
}

bool pml_region_shareable(const struct pml_region_card *card)
{
    (void)card;
    return false;
}

int pml_region_attach(struct ncclx_rt *rt, int peer, const struct pml_region_card *card, struct pml_region **region)
{
    (void)rt;
    *region = calloc(1, sizeof **region);
    if (!*region) abort();
    **region = (struct pml_region){.access = PML_ACCESS_MESSAGE, .bytes = card->word[1], .peer = peer};
    return NCCLX_SUCCESS;
}

void pml_region_detach(struct ncclx_rt *rt, struct pml_region *region)
{
    (void)rt;
    free(region);
}

int pml_region_write(struct ncclx_rt *rt, struct pml_region *region, size_t offset, const void *from, size_t bytes)
{
    (void)rt, (void)region, (void)offset, (void)from, (void)bytes;
    abort();
}

int pml_region_read(struct ncclx_rt *rt, struct pml_region *region, size_t offset, void *to, size_t bytes)
{
    (void)rt, (void)region, (void)offset, (void)to, (void)bytes;
    abort();
}

const _Atomic uint32_t *pml_sleeper(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
    return NULL;
}

void pml_wake(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
}

/* Epochs between groups are for tests of several processes. */
int pml_isend(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag,
              struct ncclx_request **request)
{
    (void)comm, (void)space, (void)buf, (void)bytes, (void)dest, (void)tag, (void)request;
    return NCCLX_ERR_UNSUPPORTED;
}

int pml_irecv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag, struct ncclx_request **request)
{
    (void)comm, (void)space, (void)buf, (void)bytes, (void)source, (void)tag, (void)request;
    return NCCLX_ERR_UNSUPPORTED;
}

void pml_count_direct(struct ncclx_rt *rt, size_t put_bytes, size_t get_bytes)
{
    (void)rt, (void)put_bytes, (void)get_bytes;
}

int pml_am_register(struct ncclx_rt *rt, unsigned id, pml_am_fn function, void *arg)
{
    (void)rt, (void)id, (void)function, (void)arg;
    return NCCLX_SUCCESS;
}

size_t pml_am_max(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
    return AM_MAX;
}

int pml_am_send(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data, size_t bytes)
{
    (void)rt, (void)id, (void)header;
    if (peer != 1 || header_bytes != sizeof(struct window_header) || bytes > AM_MAX) abort();
    static volatile char sink;
    for (size_t i = 0; i < bytes; i++) sink = ((const char *)data)[i]; /* the sanitizer sees what would be sent */
    (void)sink;
    return NCCLX_SUCCESS;
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
    uint8_t length[2], payload[AM_MAX];
    while (take(&data, &left, length, sizeof length) == sizeof length) {
        size_t header_bytes = length[0] % 4 ? sizeof header : length[0] % sizeof header; /* mostly whole ones */
        memset(&header, 0, sizeof header);
        take(&data, &left, &header, sizeof header);
        size_t bytes = take(&data, &left, payload, length[1] % (AM_MAX + 1));
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
