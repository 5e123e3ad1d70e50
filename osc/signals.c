/* signals.c - waiting for this rank's own slots, one or several. */
#include "osc/window.h"

#include <inttypes.h>
#include <stdio.h>

static bool compare_true(uint64_t seen, ncclx_compare_t compare, uint64_t value)
{
    switch (compare) {
    case NCCLX_CMP_EQ: return seen == value;
    case NCCLX_CMP_NE: return seen != value;
    case NCCLX_CMP_GT: return seen > value;
    case NCCLX_CMP_GE: return seen >= value;
    case NCCLX_CMP_LT: return seen < value;
    case NCCLX_CMP_LE: return seen <= value;
    }
    return false;
}

static int check_condition(const struct osc_window *window, size_t slot, ncclx_compare_t compare)
{
    int error = osc_check_slot(window->slot_count, slot);
    if (!error && (compare < NCCLX_CMP_EQ || compare > NCCLX_CMP_LE))
        error = base_error(NCCLX_ERR_ARG, "comparison %d is not one of NCCLX_CMP_*", (int)compare);
    return error;
}

/* One slot, or several of which one or all have to be true. */
struct signal_wait {
    const struct osc_window *window;
    struct osc_conditions conditions;
    bool all;
    size_t index;   /* the first condition that is true (any), or that is not (all); count: none */
    uint64_t *seen; /* all: of each; any and one: a single value, of `index`. May be null */
};

static bool condition_true(const struct signal_wait *wait, size_t i, uint64_t *seen)
{
    *seen = osc_slot_read(&wait->window->slots[wait->conditions.slots[i]]);
    return compare_true(*seen, wait->conditions.compares[i], wait->conditions.values[i]);
}

static bool look_for_any(struct signal_wait *wait)
{
    uint64_t seen = 0;
    for (wait->index = 0; wait->index < wait->conditions.count; wait->index++) {
        bool found = condition_true(wait, wait->index, &seen);
        if (wait->seen && (found || wait->conditions.count == 1)) *wait->seen = seen;
        if (found) return true;
    }
    return wait->conditions.count == 0;
}

static bool look_for_all(struct signal_wait *wait)
{
    bool good = true;
    wait->index = wait->conditions.count;
    for (size_t i = 0; i < wait->conditions.count; i++) {
        uint64_t seen;
        bool found = condition_true(wait, i, &seen);
        if (wait->seen) wait->seen[i] = seen;
        if (found) continue;
        if (good) wait->index = i;
        good = false;
        if (!wait->seen) break;
    }
    return good;
}

static bool look(struct signal_wait *wait)
{
    return wait->all ? look_for_all(wait) : look_for_any(wait);
}

/* base_wait.ready: changes nothing. */
static bool is_over(const void *arg)
{
    struct signal_wait copy = *(const struct signal_wait *)arg;
    copy.seen = NULL;
    return look(&copy);
}

static void describe(const void *arg, char *text, size_t bytes)
{
    static const char *const sign[] = {"?", "==", "!=", ">", ">=", "<", "<="};
    const struct signal_wait *wait = arg;
    const struct osc_window *window = wait->window;
    const struct osc_conditions *conditions = &wait->conditions;
    size_t i = wait->all && wait->index < conditions->count ? wait->index : 0;
    char others[48] = "";
    if (conditions->count > 1) snprintf(others, sizeof others, "%s %zu conditions: ", wait->all ? "all of" : "one of", conditions->count);
    snprintf(text, bytes, "%sslot %zu of window %" PRIx64 " of %d ranks to be %s %" PRIu64 ", now %" PRIu64, others, conditions->slots[i],
             osc_window_id(window), window->face.comm->size, sign[conditions->compares[i]], conditions->values[i],
             osc_slot_read(&window->slots[conditions->slots[i]]));
}

/* Looks this often without a look at clocks and flags, about 5 us, in which most signals of an exchange come; and every
 * so many of them at what else may have arrived. */
#define SPIN_LOOKS 512u
#define SPIN_POLL 8u
#define SPIN_NS 100000u /* deadlines below are kept to the letter */

static bool spin(struct signal_wait *signal)
{
    struct ncclx_rt *rt = signal->window->face.rt;
    if (rt->threaded || rt->spin_limit < SPIN_LOOKS) return false;
    for (unsigned i = 1; i <= SPIN_LOOKS; i++) {
        if (look(signal)) return true;
        if (i % SPIN_POLL == 0) base_progress(rt);
    }
    return false;
}

static int wait_long(struct signal_wait *signal, const char *call, uint64_t timeout_ns)
{
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    if (timeout_ns > SPIN_NS && spin(signal)) return NCCLX_SUCCESS;
    base_wait_begin(&wait, signal->window->face.rt, call, describe, signal);
    wait.ready = is_over;
    if (timeout_ns != UINT64_MAX) base_wait_set_timeout(&wait, timeout_ns);
    while (!look(signal) && !error) error = base_wait_step(&wait);
    base_wait_end(&wait);
    /* A wait that is already satisfied wins over the deadline and over the job's end. */
    return look(signal) ? NCCLX_SUCCESS : error;
}

static bool test(struct signal_wait *wait)
{
    if (look(wait)) return true;
    base_progress(wait->window->face.rt);
    return look(wait);
}

/* ---- One slot -------------------------------------------------------------------------------------------------- */

int osc_wait_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, uint64_t timeout_ns, uint64_t *seen)
{
    struct signal_wait wait = {.window = osc_window_of(win), .conditions = {1, &slot, &compare, &value}, .seen = seen};
    int error = check_condition(wait.window, slot, compare);
    if (error || look(&wait)) return error;
    return wait_long(&wait, "ncclx_win_wait_signal", timeout_ns);
}

int osc_test_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, bool *flag, uint64_t *seen)
{
    struct signal_wait wait = {.window = osc_window_of(win), .conditions = {1, &slot, &compare, &value}, .seen = seen};
    int error = check_condition(wait.window, slot, compare);
    if (!error) *flag = test(&wait);
    return error;
}

/* ---- Several --------------------------------------------------------------------------------------------------- */

static int begin(struct ncclx_win *win, const struct osc_conditions *conditions, bool all, uint64_t *seen, struct signal_wait *wait)
{
    *wait = (struct signal_wait){.window = osc_window_of(win), .conditions = *conditions, .all = all, .seen = seen};
    for (size_t i = 0; i < conditions->count; i++) {
        int error = check_condition(wait->window, conditions->slots[i], conditions->compares[i]);
        if (error) return base_error_context(error, "condition %zu of %zu", i, conditions->count);
    }
    return NCCLX_SUCCESS;
}

static size_t index_of(const struct signal_wait *wait)
{
    return wait->index < wait->conditions.count ? wait->index : NCCLX_INDEX_UNDEFINED;
}

int osc_wait_any(struct ncclx_win *win, const struct osc_conditions *conditions, uint64_t timeout_ns, size_t *index, uint64_t *seen)
{
    struct signal_wait wait;
    int error = begin(win, conditions, false, seen, &wait);
    if (error) return error;
    if (!look(&wait)) error = wait_long(&wait, "ncclx_win_wait_signal_any", timeout_ns);
    *index = index_of(&wait);
    return error;
}

int osc_wait_all(struct ncclx_win *win, const struct osc_conditions *conditions, uint64_t timeout_ns, uint64_t *seen)
{
    struct signal_wait wait;
    int error = begin(win, conditions, true, seen, &wait);
    if (error || look(&wait)) return error;
    return wait_long(&wait, "ncclx_win_wait_signal_all", timeout_ns);
}

int osc_test_any(struct ncclx_win *win, const struct osc_conditions *conditions, bool *flag, size_t *index, uint64_t *seen)
{
    struct signal_wait wait;
    int error = begin(win, conditions, false, seen, &wait);
    if (error) return error;
    *flag = test(&wait);
    *index = index_of(&wait);
    return NCCLX_SUCCESS;
}

int osc_test_all(struct ncclx_win *win, const struct osc_conditions *conditions, bool *flag, uint64_t *seen)
{
    struct signal_wait wait;
    int error = begin(win, conditions, true, seen, &wait);
    if (!error) *flag = test(&wait);
    return error;
}
