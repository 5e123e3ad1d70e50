/* plans.c - put plans: what is the same every time is checked once; counts are read when a plan starts. */
#include "osc/window.h"

#include <string.h>

struct ncclx_plan {
    struct osc_window *window;
    struct ncclx_plan *next; /* of the window */
    size_t element;          /* bytes */
    size_t count;
    ncclx_plan_piece_t pieces[];
};

static int check_piece(struct osc_window *window, const ncclx_plan_piece_t *piece, size_t element)
{
    struct osc_target *target = NULL;
    uint64_t offset;
    size_t bytes;
    if (__builtin_mul_overflow(piece->most, element, &bytes)) return base_error(NCCLX_ERR_COUNT, "%zu elements overflow", piece->most);
    if (!piece->count) return base_error(NCCLX_ERR_ARG, "its count is a null pointer");
    if (piece->most && (!piece->origin || piece->origin == NCCLX_IN_PLACE))
        return base_error(NCCLX_ERR_BUFFER, "its buffer is null or NCCLX_IN_PLACE");
    if (piece->target == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_look_up(window, piece->target, &target);
    if (!error) error = osc_check_range(target, piece->target_disp, bytes, &offset);
    if (error || piece->slot == NCCLX_NO_SLOT) return error;
    const struct osc_signal signal = {.slot = piece->slot, .op = piece->op, .value = piece->value};
    return osc_check_signal(target, &signal);
}

int osc_plan_create(struct ncclx_win *win, const ncclx_plan_piece_t *pieces, size_t count, ncclx_datatype_t type, struct ncclx_plan **plan)
{
    struct osc_window *window = osc_window_of(win);
    size_t bytes, element = base_type_size(type);
    if (!element) return base_error(NCCLX_ERR_TYPE, "%d is not a datatype", (int)type);
    for (size_t i = 0; i < count; i++) {
        int error = check_piece(window, &pieces[i], element);
        if (error) return base_error_context(error, "piece %zu of %zu", i, count);
    }
    struct ncclx_plan *made = NULL;
    if (!__builtin_mul_overflow(count, sizeof made->pieces[0], &bytes) && !__builtin_add_overflow(bytes, sizeof *made, &bytes))
        made = base_alloc(AREA_OSC, bytes);
    if (!made) return base_error(NCCLX_ERR_NO_MEM, "no memory for a plan of %zu pieces", count);
    *made = (struct ncclx_plan){.window = window, .next = window->plans, .element = element, .count = count};
    if (count) memcpy(made->pieces, pieces, count * sizeof made->pieces[0]);
    window->plans = made;
    *plan = made;
    return NCCLX_SUCCESS;
}

/* Between the look at a count and its use nobody may change it, but a look costs little: it is read once, here. */
static int start_piece(struct ncclx_plan *plan, const ncclx_plan_piece_t *piece)
{
    const size_t count = *piece->count;
    struct ncclx_win *win = &plan->window->face;
    if (count > piece->most) return base_error(NCCLX_ERR_COUNT, "its count grew to %zu while the plan started", count);
    if (piece->slot == NCCLX_NO_SLOT) return osc_put(win, piece->origin, count * plan->element, piece->target, piece->target_disp);
    const struct osc_signal signal = {.slot = piece->slot, .op = piece->op, .value = piece->value};
    return osc_put_signal(win, piece->origin, count * plan->element, piece->target, piece->target_disp, &signal);
}

int osc_plan_start(struct ncclx_plan *plan)
{
    int error = NCCLX_SUCCESS;
    for (size_t i = 0; i < plan->count; i++)
        if (*plan->pieces[i].count > plan->pieces[i].most)
            return base_error(NCCLX_ERR_COUNT, "piece %zu of %zu: its count is %zu, but the plan was made for at most %zu", i, plan->count,
                              *plan->pieces[i].count, plan->pieces[i].most);
    for (size_t i = 0; i < plan->count && !error; i++) error = start_piece(plan, &plan->pieces[i]);
    return error;
}

struct ncclx_win *osc_plan_win(struct ncclx_plan *plan)
{
    return &plan->window->face;
}

void osc_plan_free(struct ncclx_plan *plan)
{
    struct ncclx_plan **at = &plan->window->plans;
    while (*at != plan) at = &(*at)->next;
    *at = plan->next;
    base_free(AREA_OSC, plan);
}
