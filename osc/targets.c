/* targets.c - windows by id, and the way to each target, found when it is first used. */
#include "osc/window.h"

#include <string.h>

static struct osc_window **bucket_of(struct osc *osc, uint64_t id)
{
    return &osc->buckets[(id >> 2) % OSC_WINDOW_BUCKETS]; /* contexts are multiples of 4 */
}

struct osc_window *osc_window_find(struct osc *osc, uint64_t id)
{
    struct osc_window *window = *bucket_of(osc, id);
    while (window && osc_window_id(window) != id) window = window->next;
    return window;
}

void osc_window_add(struct osc *osc, struct osc_window *window)
{
    struct osc_window **bucket = bucket_of(osc, osc_window_id(window));
    window->next = *bucket;
    *bucket = window;
}

void osc_window_remove(struct osc *osc, struct osc_window *window)
{
    struct osc_window **place = bucket_of(osc, osc_window_id(window));
    while (*place && *place != window) place = &(*place)->next;
    if (*place) *place = window->next;
}

static int card_lies(const struct osc_target *target, const char *what)
{
    return base_error(NCCLX_ERR_TRANSPORT, "the window card of rank %d is wrong: %s; do all ranks run the same ncclx?",
                      target->rank, what);
}

static void point_at_self(struct osc_window *window, struct osc_target *target)
{
    target->memory = window->base;
    target->control = window->control;
    target->slots = window->slots;
    target->plain = window->plain;
    target->sleeping = pml_sleeper(window->face.rt, target->peer); /* another thread may wait */
}

static void lanes_changed(void *arg)
{
    osc_requests_advance(arg);
}

static int attach_memory(struct osc_window *window, struct osc_target *target, const struct osc_card *card)
{
    if (target->bytes == 0) return NCCLX_SUCCESS;
    int error = pml_region_attach(window->face.rt, target->peer, &card->memory_card, &target->memory_region);
    if (error) return error;
    if (target->memory_region->bytes < target->bytes) return card_lies(target, "less memory than it says");
    if (target->memory_region->access == PML_ACCESS_DIRECT) target->memory = target->memory_region->pointer;
    target->copied = target->memory_region->access == PML_ACCESS_COPY;
    if (target->memory_region->access == PML_ACCESS_LANES) {
        error = pml_order_make(window->face.rt, target->memory_region, lanes_changed, target, &target->order);
        if (error) return error;
    }
    target->plain = !pml_region_shareable(&card->memory_card);
    return NCCLX_SUCCESS;
}

/* Control words and slots are used directly only where nothing else needs a message: signals may not overtake puts, and atomics on one
 * element have to be of one kind (atomic.h). */
static bool all_is_direct(const struct osc_target *target)
{
    return target->control_region->access == PML_ACCESS_DIRECT &&
           (!target->bytes || target->memory || (target->copied && target->plain));
}

static int attach_control(struct osc_window *window, struct osc_target *target, const struct osc_card *card)
{
    if (card->shared && target->memory_region) {
        target->control_region = target->memory_region;
    } else {
        int error = pml_region_attach(window->face.rt, target->peer, &card->control_card, &target->control_region);
        if (error) return error;
    }
    const struct pml_region *region = target->control_region;
    uint64_t bytes = sizeof(struct osc_control) + target->slot_count * sizeof(uint64_t);
    if (!window_within(card->control_offset, bytes, region->bytes) || card->control_offset % 8)
        return card_lies(target, "its signal slots are outside its memory");
    if (!all_is_direct(target)) return NCCLX_SUCCESS;
    target->control = (struct osc_control *)(void *)(region->pointer + card->control_offset);
    target->slots = (uint64_t *)(void *)(target->control + 1);
    target->sleeping = pml_sleeper(window->face.rt, target->peer);
    return (uintptr_t)target->control % 8 ? card_lies(target, "its signal slots are not aligned") : NCCLX_SUCCESS;
}

static void detach(struct osc_window *window, struct osc_target *target)
{
    struct ncclx_rt *rt = window->face.rt;
    osc_turn_forget(rt, &target->turn);
    osc_requests_drop(target);
    osc_message_drop(window, target);
    pml_order_leave(target->order);
    if (target->control_region && target->control_region != target->memory_region) pml_region_detach(rt, target->control_region);
    if (target->memory_region) pml_region_detach(rt, target->memory_region);
    base_free(AREA_OSC, target);
}

int osc_target_attach(struct osc_window *window, int rank, struct osc_target **result)
{
    const struct ncclx_comm *comm = window->face.comm;
    if (rank < 0 || rank >= comm->size)
        return base_error(NCCLX_ERR_RANK, "target rank %d: the window has ranks 0 to %d", rank, comm->size - 1);
    struct osc_target *target = base_calloc(AREA_OSC, 1, sizeof *target);
    if (!target) return base_error(NCCLX_ERR_NO_MEM, "no memory to reach rank %d of the window", rank);
    const struct osc_card *card = &window->cards[rank];
    target->rank = rank;
    target->peer = base_comm_world(comm, rank);
    target->bytes = card->bytes;
    target->unit = card->unit;
    target->slot_count = card->slots;
    int error = NCCLX_SUCCESS;
    if (rank == comm->rank) {
        point_at_self(window, target);
    } else {
        error = attach_memory(window, target, card);
        if (!error) error = attach_control(window, target, card);
        if (!error && osc_target_needs_messages(target)) {
            size_t piece = pml_am_max(window->face.rt, target->peer);
            window_origin_init(&target->origin, osc_window_id(window), comm->rank, piece);
            if (piece == 0) error = base_error(NCCLX_ERR_UNREACHABLE, "no transport carries window messages to rank %d", rank);
        }
    }
    struct osc_target *meanwhile = window->targets[rank]; /* another thread was sooner; nothing waits from here on */
    if (error || meanwhile) {
        detach(window, target);
        *result = meanwhile;
        return meanwhile ? NCCLX_SUCCESS : error;
    }
    /* The ranks asked each other when the window was made, but each only for one pair. */
    if (rank != comm->rank && osc_target_needs_messages(target) && window->agreed && !window->answered)
        osc_message_ask_for_agent(window, target);
    target->held_back = osc_epoch_holds_back(window, rank);
    target->next = window->used;
    window->used = target;
    window->targets[rank] = target;
    *result = target;
    return NCCLX_SUCCESS;
}

void osc_targets_detach(struct osc_window *window)
{
    while (window->used) {
        struct osc_target *target = window->used;
        window->used = target->next;
        window->targets[target->rank] = NULL;
        detach(window, target);
    }
}

int osc_shared_query(struct ncclx_win *win, int rank, size_t *bytes, size_t *disp_unit, void **base)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    int error = osc_target_look_up(window, rank, &target);
    if (error) return error;
    *bytes = (size_t)target->bytes;
    *disp_unit = (size_t)target->unit;
    *base = target->memory;
    return NCCLX_SUCCESS;
}
