/* locks.c - locks of targets. The way is the target's: its ticket lock in mapped memory, or messages, for which the
 * target draws the number.
 *
 * Numbers cannot be given back. A lock whose deadline passes keeps its place; when its turn comes it is given up at
 * once, by this rank's progress. / */
#include "osc/window.h"

#include <stdio.h>

_Static_assert((int)NCCLX_LOCK_SHARED == (int)WINDOW_SHARED && (int)NCCLX_LOCK_EXCLUSIVE == (int)WINDOW_EXCLUSIVE, "one numbering");

static bool is_exclusive(int type)
{
    return type == WINDOW_EXCLUSIVE;
}

/* ---- Turns that progress waits for ----------------------------------------------------------------------------- */

static int poll_turns(void *arg)
{
    struct osc *osc = arg;
    int events = 0;
    for (struct osc_turn **at = &osc->turns; *at;) {
        struct osc_turn *turn = *at;
        if (!ticket_turn(turn->lock, turn->ticket, is_exclusive(turn->type))) {
            at = &turn->next;
            continue;
        }
        *at = turn->next;
        turn->waiting = false;
        ticket_enter(turn->lock, turn->ticket, is_exclusive(turn->type));
        turn->granted(turn);
        events++;
    }
    return events;
}

static int await_turn(struct ncclx_rt *rt, struct osc_turn *turn)
{
    struct osc *osc = rt->osc;
    if (!osc->polling) {
        int error = base_rt_add_poller(rt, poll_turns, osc);
        if (error) return error;
        osc->polling = true;
    }
    turn->waiting = true;
    turn->next = osc->turns;
    osc->turns = turn;
    return NCCLX_SUCCESS;
}

void osc_turn_forget(struct ncclx_rt *rt, struct osc_turn *turn)
{
    if (!turn->waiting) return;
    struct osc_turn **at = &rt->osc->turns;
    while (*at && *at != turn) at = &(*at)->next;
    if (*at) *at = turn->next;
    turn->waiting = false;
}

void osc_turns_stop(struct ncclx_rt *rt)
{
    if (rt->osc->polling) base_rt_remove_poller(rt, poll_turns, rt->osc);
}

/* ---- For other ranks, by message -------------------------------------------------------------------------------- */

static void tell_granted(struct osc_turn *turn)
{
    struct osc_incoming *from = turn->owner;
    osc_message_granted(from->window, turn->rank, window_target_grant(&from->core));
}

int osc_lock_for(struct osc_window *window, struct osc_incoming *from, int rank, int type)
{
    struct osc_turn *turn = &from->turn;
    from->window = window;
    *turn = (struct osc_turn){.lock = &window->control->lock, .type = type, .owner = from, .rank = rank, .granted = tell_granted};
    turn->ticket = ticket_draw(turn->lock);
    if (!ticket_turn(turn->lock, turn->ticket, is_exclusive(type))) return await_turn(window->face.rt, turn);
    ticket_enter(turn->lock, turn->ticket, is_exclusive(type));
    tell_granted(turn);
    return NCCLX_SUCCESS;
}

void osc_unlock_for(struct osc_incoming *from)
{
    ticket_leave(from->turn.lock, is_exclusive(from->turn.type));
}

/* ---- This rank's ------------------------------------------------------------------------------------------------- */

static void give_up(struct osc_turn *turn)
{
    struct osc_target *target = turn->owner;
    ticket_leave(turn->lock, is_exclusive(turn->type));
    target->giving_up = false;
}

struct lock_wait {
    const struct osc_target *target;
    int type;
};

static bool granted(const struct osc_target *target)
{
    if (target->giving_up) return false;
    if (osc_target_needs_messages(target)) return target->origin.locked || target->error;
    return ticket_turn(target->turn.lock, target->turn.ticket, is_exclusive(target->turn.type));
}

static bool is_over(const void *arg)
{
    const struct lock_wait *wait = arg;
    return !wait->target->locking || granted(wait->target);
}

static void describe(const void *arg, char *text, size_t bytes)
{
    const struct lock_wait *wait = arg;
    snprintf(text, bytes, "%s lock of rank %d of a window%s", is_exclusive(wait->type) ? "an exclusive" : "a shared", wait->target->rank,
             wait->target->giving_up ? ", after one whose time was over" : "");
}

static int queue_up(struct osc_window *window, struct osc_target *target, int type)
{
    target->turn = (struct osc_turn){.type = type, .owner = target, .rank = target->rank, .granted = give_up};
    if (osc_target_needs_messages(target)) {
        struct window_operation message = {.kind = WINDOW_LOCK, .op = (uint8_t)type};
        return osc_message_submit(window, target, &message);
    }
    target->turn.lock = &target->control->lock;
    target->turn.ticket = ticket_draw(target->turn.lock);
    return NCCLX_SUCCESS;
}

/* The place in the queue is kept, for nothing. */
static void abandon(struct osc_window *window, struct osc_target *target)
{
    target->giving_up = true;
    if (!osc_target_needs_messages(target) && await_turn(window->face.rt, &target->turn))
        base_log(AREA_OSC, LOG_ERROR, "the lock of rank %d stays in the queue: %s", target->rank, base_error_detail());
}

static int await_lock(struct osc_window *window, struct osc_target *target, int type, struct base_wait *wait)
{
    int error = NCCLX_SUCCESS;
    while (target->giving_up && !error) error = base_wait_step(wait);
    bool queued = !error;
    if (!error) error = queue_up(window, target, type);
    while (!error && !granted(target)) error = base_wait_step(wait);
    if (error && queued && !target->error && !granted(target)) abandon(window, target);
    else if (error && queued && !target->error) error = NCCLX_SUCCESS; /* a turn that has come wins over a deadline */
    if (!error && target->error) error = base_error(target->error, "the way to rank %d of the window failed", target->rank);
    return error;
}

static int lock_alone(struct osc_window *window, struct osc_target *target, int type, struct base_wait *wait)
{
    target->locking = true;
    int error = await_lock(window, target, type, wait);
    target->locking = false;
    if (error) return error;
    if (!osc_target_needs_messages(target)) ticket_enter(target->turn.lock, target->turn.ticket, is_exclusive(type));
    target->locked = type;
    window->locks++;
    return NCCLX_SUCCESS;
}

/* A rank has one place in the queue. When the thread that has it fails, one of those that wait for it tries. */
int osc_target_lock(struct osc_window *window, struct osc_target *target, int type, const char *call)
{
    struct lock_wait lock = {.target = target, .type = type};
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    base_wait_begin(&wait, window->face.rt, call, describe, &lock);
    wait.ready = is_over;
    while (target->locking && !error) error = base_wait_step(&wait);
    if (!error && !target->locked) error = lock_alone(window, target, type, &wait);
    base_wait_end(&wait);
    return error;
}

/* By message: behind all operations, so that the acknowledgement of a flush covers it. What goes over lanes has to be over before. A second
 * UNLOCK would be a breach: it is on its way though the flush behind it fails. */
int osc_target_unlock_start(struct osc_window *window, struct osc_target *target)
{
    struct window_operation message = {.kind = WINDOW_UNLOCK};
    int error = target->order && !target->unlocking ? osc_message_flush(window, target, false, "ncclx_win_unlock") : NCCLX_SUCCESS;
    if (error || target->unlocking || !target->locked) return error; /* or another thread was sooner */
    if (osc_target_needs_messages(target)) error = osc_message_submit(window, target, &message);
    target->unlocking = !error;
    return error;
}

/* After the flush. */
void osc_target_unlock_finish(struct osc_window *window, struct osc_target *target)
{
    if (!target->unlocking) return; /* another thread was sooner */
    if (!osc_target_needs_messages(target)) ticket_leave(target->turn.lock, is_exclusive(target->locked));
    target->unlocking = false;
    target->locked = 0;
    target->held_back = osc_epoch_holds_back(window, target->rank);
    window->locks--;
}

void osc_target_lock_came(struct osc_window *window, struct osc_target *target)
{
    struct window_operation message = {.kind = WINDOW_UNLOCK};
    if (!target->giving_up || !target->origin.locked) return;
    target->giving_up = false;
    (void)osc_message_submit(window, target, &message); /* a failure stays in target->error */
}
