/* window.c - making and ending windows: both agree, so that a window exists on all ranks or on none. */
#include "osc/window.h"

#include <inttypes.h>
#include <string.h>

#define CARD_VERSION 2
#define CONTROL_ALIGNMENT 64 /* bytes: control words and slots do not share a cache line with the program's data */

/* ---- This rank's part ---------------------------------------------------------------------------------------- */

static uint64_t control_bytes(const struct osc_window *window)
{
    return sizeof(struct osc_control) + window->slot_count * sizeof(uint64_t); /* no overflow: at most OSC_MAX_SLOTS */
}

static int allocate_segment(struct osc_window *window, bool own_memory)
{
    uint64_t offset = 0, total;
    bool fits = true;
    if (own_memory) {
        fits = !__builtin_add_overflow(window->bytes, (uint64_t)CONTROL_ALIGNMENT - 1, &offset);
        offset -= offset % CONTROL_ALIGNMENT;
    }
    if (!fits || __builtin_add_overflow(offset, control_bytes(window), &total) || total > SIZE_MAX / 2)
        return base_error(NCCLX_ERR_NO_MEM, "a window of %" PRIu64 " bytes is larger than any memory", window->bytes);
    int error = pml_mem_alloc(window->face.rt, (size_t)total, &window->segment);
    if (error) return error;
    char *control = (char *)window->segment + offset;
    memset(control, 0, (size_t)control_bytes(window));
    if (own_memory && window->bytes) window->base = window->segment;
    window->control = (struct osc_control *)(void *)control;
    window->slots = (uint64_t *)(void *)(window->control + 1);
    return NCCLX_SUCCESS;
}

static int describe_part(struct osc_window *window, struct osc_card *card)
{
    struct ncclx_rt *rt = window->face.rt;
    int error = NCCLX_SUCCESS;
    card->shared = window->bytes && window->base == window->segment;
    if (card->shared) {
        card->control_offset = (uint64_t)((char *)window->control - window->base);
        error = pml_region_card(rt, window->base, (size_t)(card->control_offset + control_bytes(window)), &card->memory_card);
        if (!error) error = pml_region_open(window->face.comm, &card->memory_card, (size_t)window->bytes); /* not the control words */
        window->own_card = card->memory_card;
        return error;
    }
    if (window->bytes) error = pml_region_card(rt, window->base, (size_t)window->bytes, &card->memory_card);
    if (window->bytes && !error) error = pml_region_open(window->face.comm, &card->memory_card, (size_t)window->bytes);
    window->own_card = card->memory_card;
    window->plain = window->bytes && !pml_region_shareable(&card->memory_card);
    return error ? error : pml_region_card(rt, window->control, (size_t)control_bytes(window), &card->control_card);
}

static int check_arguments(const struct osc_window *window)
{
    if (window->unit == 0) return base_error(NCCLX_ERR_ARG, "disp_unit is 0; it is the bytes of one displacement step, at least 1");
    if (window->slot_count > OSC_MAX_SLOTS)
        return base_error(NCCLX_ERR_LIMIT, "%" PRIu64 " signal slots: a window has at most %" PRIu64, window->slot_count,
                          OSC_MAX_SLOTS);
    if (window->base && window->bytes > UINTPTR_MAX - (uintptr_t)window->base)
        return base_error(NCCLX_ERR_RANGE, "%" PRIu64 " bytes from %p on do not fit into the address space", window->bytes,
                          (void *)window->base);
    return NCCLX_SUCCESS;
}

static int make_part(struct osc_window *window, bool own_memory, struct osc_card *card)
{
    int error = check_arguments(window);
    if (!error) error = allocate_segment(window, own_memory);
    if (!error) error = describe_part(window, card);
    card->version = CARD_VERSION;
    card->status = error;
    card->bytes = window->bytes;
    card->unit = window->unit;
    card->slots = window->slot_count;
    return error;
}

static void release(struct osc_window *window)
{
    struct ncclx_rt *rt = window->face.rt;
    osc_window_remove(rt->osc, window);
    while (window->plans) osc_plan_free(window->plans);
    osc_epochs_release(window);
    if (window->targets) osc_targets_detach(window);
    pml_region_hide(rt, &window->own_card);
    for (int i = 0; window->incoming && i < window->face.comm->size; i++) {
        if (window->incoming[i]) osc_turn_forget(rt, &window->incoming[i]->turn);
        base_free(AREA_OSC, window->incoming[i]);
    }
    base_free(AREA_OSC, window->incoming);
    base_free(AREA_OSC, window->verdicts);
    base_free(AREA_OSC, window->targets);
    base_free(AREA_OSC, window->cards);
    if (window->segment) (void)pml_mem_free(rt, window->segment);
    base_free(AREA_OSC, window);
}

/* ---- Agreement ----------------------------------------------------------------------------------------------- */

/* Every rank sees the same cards, so every rank comes to the same verdict. */
static int judge_cards(const struct osc_window *window, int own_error)
{
    const struct ncclx_comm *comm = window->face.comm;
    if (own_error) return own_error; /* with this rank's own words */
    for (int i = 0; i < comm->size; i++) {
        const struct osc_card *card = &window->cards[i];
        if (card->version != CARD_VERSION)
            return base_error(NCCLX_ERR_TRANSPORT, "rank %d made a window of another version of ncclx", i);
        if (card->status < 0 || card->status > NCCLX_ERR_LAST)
            return base_error(NCCLX_ERR_TRANSPORT, "the window card of rank %d is wrong", i);
        if (card->status)
            return base_error(card->status, "the window was not made, because rank %d could not: %s", i, base_error_string(card->status));
        if (card->slots != window->slot_count)
            return base_error(NCCLX_ERR_MISMATCH,
                              "ranks %d and %d ask for %" PRIu64 " and %" PRIu64 " signal slots; ncclx_signal_slots has to be the same", i,
                              comm->rank, card->slots, window->slot_count);
    }
    return NCCLX_SUCCESS;
}

/* Does somebody need this window's ranks to answer messages? Each rank tries the next one, so that each rank's memory is tried once and the
 * answer is found by trying, without a connection between all. */
static int try_neighbour(struct osc_window *window)
{
    const struct ncclx_comm *comm = window->face.comm;
    struct osc_target *target;
    int next = (comm->rank + 1) % comm->size;
    int error = osc_target_attach(window, next, &target);
    if (error == NCCLX_ERR_UNREACHABLE) return NCCLX_SUCCESS; /* said again by whoever uses it */
    if (error) return -error;
    return osc_target_needs_messages(target);
}

void osc_window_answer(struct osc_window *window)
{
    if (window->answered) return;
    window->answered = true;
    if (base_agent_start(window->face.rt))
        base_log(AREA_OSC, LOG_WARN, "no progress thread, so operations on a window wait for this rank's calls: %s", base_error_detail());
}

static int agree_on_agent(struct osc_window *window)
{
    const struct ncclx_comm *comm = window->face.comm;
    if (comm->size == 1) return NCCLX_SUCCESS;
    int mine = try_neighbour(window);
    int error = mine < 0 ? -mine : NCCLX_SUCCESS;
    int *all = window->verdicts;
    bool messages = false;
    int failed = comm->services->allgather(window->face.comm, &mine, all, sizeof mine);
    if (!error) error = failed;
    for (int i = 0; i < comm->size && !error; i++) {
        if (all[i] < 0) error = base_error(-all[i], "the window was not made: rank %d cannot reach its neighbour", i);
        messages |= all[i] > 0;
    }
    window->agreed = true;
    if (!error && messages) osc_window_answer(window);
    return error;
}

/* ---- Create -------------------------------------------------------------------------------------------------- */

static struct osc_window *new_window(struct ncclx_comm *comm)
{
    size_t ranks = (size_t)comm->size;
    struct osc_window *window = base_calloc(AREA_OSC, 1, sizeof *window);
    if (!window) return NULL;
    window->face.rt = comm->rt;
    window->face.comm = comm;
    window->cards = base_calloc(AREA_OSC, ranks, sizeof *window->cards);
    window->targets = base_calloc(AREA_OSC, ranks, sizeof *window->targets);
    window->incoming = base_calloc(AREA_OSC, ranks, sizeof *window->incoming);
    window->verdicts = base_calloc(AREA_OSC, ranks, sizeof *window->verdicts);
    if (window->cards && window->targets && window->incoming && window->verdicts) return window;
    release(window);
    return NULL;
}

/* Everything that a rank needs to tell the others how it fares, so that none is left waiting. */
int osc_win_reserve(struct ncclx_comm *comm, struct ncclx_win **win)
{
    struct osc_window *window = new_window(comm);
    if (!window) return base_error(NCCLX_ERR_NO_MEM, "no memory to make a window of %d ranks", comm->size);
    *win = &window->face;
    return NCCLX_SUCCESS;
}

void osc_win_abandon(struct ncclx_win *win)
{
    if (win) release(osc_window_of(win));
}

int osc_win_create(struct ncclx_win *win, struct ncclx_comm *comm, void *base, size_t bytes, size_t disp_unit, size_t slots,
                   void **allocated)
{
    struct osc_card card = {.version = 0};
    struct osc_window *window = osc_window_of(win);
    win->comm = comm;
    window->base = base;
    window->bytes = bytes;
    window->unit = disp_unit;
    window->slot_count = slots;
    int error = make_part(window, base == NULL, &card);
    /* Known before the others can know of this rank's part: their messages may come before the exchange returns here. */
    if (!error) osc_window_add(comm->rt->osc, window);
    int failed = comm->services->allgather(comm, &card, window->cards, sizeof card);
    if (!error) error = failed;
    if (!failed) error = judge_cards(window, error);
    if (!error) error = agree_on_agent(window);
    if (error) {
        release(window);
        return error;
    }
    if (allocated) *allocated = window->base;
    return NCCLX_SUCCESS;
}

/* ---- Free ---------------------------------------------------------------------------------------------------- */

/* "In flight" means the same on every way: a put or get that no flush, fence or unlock_all, nor (a put) a signal to its target, came after.
 * So a program that is right here is right on a slower way as well. Returns the target's rank + 1, or 0. */
static int first_open_target(const struct osc_window *window)
{
    for (const struct osc_target *target = window->used; target; target = target->next)
        if (target->put_open || target->get_open) return target->rank + 1;
    return 0;
}

static int agree_on_free(struct osc_window *window)
{
    struct ncclx_comm *comm = window->face.comm;
    int mine = osc_epoch_name(window) ? -1 : window->plans ? -2 : first_open_target(window);
    int *all = window->verdicts;
    int error = comm->services->allgather(comm, &mine, all, sizeof mine);
    for (int i = 0; i < comm->size && !error; i++) {
        if (all[i] == -2) error = base_error(NCCLX_ERR_RMA_SYNC, "window not freed: rank %d has put plans on it; free them first", i);
        else if (all[i] < 0)
            error = base_error(NCCLX_ERR_RMA_SYNC, "window not freed: rank %d is %s", i,
                               i == comm->rank ? osc_epoch_name(window) : "inside an epoch (lock, lock_all, start or post)");
        else if (all[i] > 0)
            error = base_error(NCCLX_ERR_RMA_SYNC, "window not freed: rank %d has operations to rank %d in flight; flush them first", i,
                               all[i] - 1);
    }
    return error;
}

int osc_win_free(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    int error = agree_on_free(window);
    if (!error) error = osc_flush_all(win); /* signals still on their way */
    if (!error) error = win->comm->services->barrier(win->comm);
    if (!error) release(window);
    return error;
}

/* ---- The folder ---------------------------------------------------------------------------------------------- */

int osc_init(struct ncclx_rt *rt)
{
    rt->osc = base_calloc(AREA_OSC, 1, sizeof *rt->osc);
    if (!rt->osc) return base_error(NCCLX_ERR_NO_MEM, "no memory for windows");
    pml_signal_register(rt, osc_signal_arrived, rt->osc);
    return pml_am_register(rt, OSC_AM_ID, osc_message_arrived, rt->osc);
}

void osc_finalize(struct ncclx_rt *rt)
{
    if (!rt->osc) return;
    unsigned left = 0;
    for (unsigned i = 0; i < OSC_WINDOW_BUCKETS; i++)
        for (; rt->osc->buckets[i]; left++) release(rt->osc->buckets[i]);
    if (left) base_log(AREA_OSC, LOG_INFO, "%u windows were not freed before the end", left);
    osc_turns_stop(rt);
    osc_operations_release(rt->osc);
    base_free(AREA_OSC, rt->osc);
    rt->osc = NULL;
}
