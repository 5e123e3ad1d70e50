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
    target->slots = window->slots;
}

static int attach_memory(struct osc_window *window, struct osc_target *target, const struct osc_card *card)
{
    if (target->bytes == 0) return NCCLX_SUCCESS;
    int error = pml_region_attach(window->face.rt, target->peer, &card->memory_card, &target->memory_region);
    if (error) return error;
    if (target->memory_region->bytes < target->bytes) return card_lies(target, "less memory than it says");
    if (target->memory_region->access == PML_ACCESS_DIRECT) target->memory = target->memory_region->pointer;
    target->copied = target->memory_region->access == PML_ACCESS_COPY;
    return NCCLX_SUCCESS;
}

static int attach_slots(struct osc_window *window, struct osc_target *target, const struct osc_card *card)
{
    if (target->slot_count == 0) return NCCLX_SUCCESS;
    if (card->shared && target->memory_region) {
        target->slots_region = target->memory_region;
    } else {
        int error = pml_region_attach(window->face.rt, target->peer, &card->slots_card, &target->slots_region);
        if (error) return error;
    }
    const struct pml_region *region = target->slots_region;
    if (!window_within(card->slots_offset, target->slot_count * sizeof(uint64_t), region->bytes) || card->slots_offset % 8)
        return card_lies(target, "its signal slots are outside its memory");
    /* A signal may not overtake puts that travel as messages: then it is one itself. */
    bool puts_are_messages = target->bytes > 0 && !target->memory && !target->copied;
    if (region->access == PML_ACCESS_DIRECT && !puts_are_messages) {
        target->slots = (uint64_t *)(void *)(region->pointer + card->slots_offset);
        if ((uintptr_t)target->slots % 8) return card_lies(target, "its signal slots are not aligned");
    }
    return NCCLX_SUCCESS;
}

static void detach(struct osc_window *window, struct osc_target *target)
{
    struct ncclx_rt *rt = window->face.rt;
    osc_message_drop(window, target);
    if (target->slots_region && target->slots_region != target->memory_region) pml_region_detach(rt, target->slots_region);
    if (target->memory_region) pml_region_detach(rt, target->memory_region);
    base_free(AREA_OSC, target);
}

bool osc_target_needs_messages(const struct osc_target *target)
{
    return (target->bytes && !target->memory && !target->copied) || (target->slot_count && !target->slots);
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
        if (!error) error = attach_slots(window, target, card);
        if (!error && osc_target_needs_messages(target)) {
            size_t piece = pml_am_max(window->face.rt, target->peer);
            window_origin_init(&target->origin, osc_window_id(window), comm->rank, piece);
            if (piece == 0) error = base_error(NCCLX_ERR_UNREACHABLE, "no transport carries window messages to rank %d", rank);
        }
    }
    if (error) {
        detach(window, target);
        return error;
    }
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
