/* cards.c - what a peer tells of its memory: rank 1 of two has memory that can be mapped, and a window; the input changes words of their
 * cards before rank 0 reads them. Whatever rank 0 believes, it can touch. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/pml_world.h"

#include "osc/window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char fuzz_name[] = "cards";

#define BYTES 5000
#define CONTEXT 8

static struct world world;
static void *shared;

/* One change. Words that name a process or a file of it stay among those of this one, which is rank 1, too. */
struct record {
    uint8_t word, how;
    uint16_t small;
    uint64_t value;
};

enum { CARD_PROCESS = 3 };

static uint64_t changed(uint64_t word, const struct record *record)
{
    switch (record->how % 5) {
    case 0: return record->value;
    case 1: return word + record->small;
    case 2: return word - record->small;
    case 3: return word ^ UINT64_C(1) << record->small % 64;
    default: return record->small;
    }
}

static void change(void *card, size_t words, size_t process, const uint8_t *data, size_t bytes)
{
    for (; bytes >= sizeof(struct record); bytes -= sizeof(struct record), data += sizeof(struct record)) {
        struct record record;
        memcpy(&record, data, sizeof record);
        size_t at = record.word % words;
        uint64_t word;
        memcpy(&word, (char *)card + at * sizeof word, sizeof word);
        word = changed(word, &record);
        if (at == process) word = (uint64_t)(uint32_t)getpid() << 32 | word % 64;
        memcpy((char *)card + at * sizeof word, &word, sizeof word);
    }
}

static void touch(const struct pml_region *region)
{
    static volatile char sink;
    if (region->access != PML_ACCESS_DIRECT || !region->bytes) return;
    sink = region->pointer[0];
    sink = region->pointer[region->bytes - 1];
    (void)sink;
}

static void try_region(const uint8_t *data, size_t bytes)
{
    struct pml_region_card card;
    struct pml_region *region;
    if (pml_region_card(&world.rt[1], shared, BYTES, &card)) abort();
    change(card.word, sizeof card.word / sizeof card.word[0], CARD_PROCESS, data, bytes);
    if (pml_region_attach(&world.rt[0], 1, &card, &region)) return;
    touch(region);
    pml_region_detach(&world.rt[0], region);
}

/* ---- Of a window ---- */

static const uint8_t *changes;
static size_t change_bytes;

static int no_barrier(struct ncclx_comm *comm)
{
    (void)comm;
    return NCCLX_SUCCESS;
}

/* Rank 1's part is as large as rank 0's, and in memory of rank 1, before it is changed. Words of its two regions' cards, which name
 * processes, are the last ones. */
static int exchange(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes)
{
    const size_t first = offsetof(struct osc_card, memory_card) / 8 + CARD_PROCESS;
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, mine, bytes);
    (void)comm;
    if (bytes != sizeof(struct osc_card)) {
        memset(all, 0, 2 * bytes); /* verdicts: no messages needed, so no agent starts */
        return NCCLX_SUCCESS;
    }
    struct osc_card *card = (struct osc_card *)((char *)all + bytes);
    struct pml_region_card memory;
    if (pml_region_card(&world.rt[1], shared, BYTES, &memory)) abort();
    card->memory_card = memory;
    change(card, offsetof(struct osc_card, memory_card) / 8 + sizeof memory.word / 8, first, changes, change_bytes);
    return NCCLX_SUCCESS;
}

static void use(struct ncclx_win *win, const struct osc_window *window)
{
    uint64_t word = 1;
    const struct osc_signal signal = {.slot = 2, .op = NCCLX_SIGNAL_ADD, .value = 1};
    if (window->cards[1].unit && !osc_get(win, &word, sizeof word, 1, 0)) (void)osc_put(win, &word, sizeof word, 1, 0);
    (void)osc_put(win, &word, sizeof word, 1, (size_t)window->cards[1].bytes - sizeof word);
    (void)osc_signal(win, 1, &signal);
    (void)osc_accumulate(win, &word, 1, NCCLX_UINT64, NCCLX_SUM, 1, 0);
}

static void try_window(const uint8_t *data, size_t bytes)
{
    static const struct base_comm_services services = {.barrier = no_barrier, .allgather = exchange};
    struct ncclx_comm comm = {.rt = &world.rt[0], .context = CONTEXT, .rank = 0, .size = 2, .services = &services, .name = "window"};
    struct ncclx_win *win;
    void *base;
    changes = data;
    change_bytes = bytes;
    if (osc_init(&world.rt[0]) || osc_win_reserve(&comm, &win)) abort();
    if (!osc_win_create(win, &comm, NULL, BYTES - 1000, 1, 3, &base)) use(win, osc_window_of(win));
    osc_finalize(&world.rt[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *environment[] = {"NCCLX_SHM_CMA=0", "NCCLX_LOG=none", "NCCLX_SHM_RING=32768", NULL};
    world_open(&world, 2, environment);
    if (pml_mem_alloc(&world.rt[1], BYTES, &shared)) abort();
    if (bytes && data[0] & 1) try_window(data + 1, bytes - 1);
    else if (bytes) try_region(data + 1, bytes - 1);
    if (pml_mem_free(&world.rt[1], shared)) abort();
    world_close(&world);
    return 0;
}
