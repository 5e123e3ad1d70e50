/* tree_loss.c - what comes over a link, and who is lost: closed connections, silence, broken protocols. */
#include "config.h"

#include "launcher/tree_private.h"

#include "runtime/base/planted.h"

#include <stdio.h>
#include <string.h>

/* ---- One cause ---- */

/* Its end says most. */
static const char *last_part(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    return length > TREE_MAX_TEXT ? text + (length - TREE_MAX_TEXT) : text;
}

static void report(struct tree *tree, const struct tree_failure *failure)
{
    struct tree_output *output = tree_act(tree, TREE_REPORT);
    if (!output) return;
    output->action.failure = *failure;
    output->text = failure->text ? base_strdup(AREA_LAUNCHER, last_part(failure->text)) : NULL;
    output->action.failure.text = output->text;
}

void tree_tell_failure(struct tree *tree)
{
    if (!tree->failure.used || !tree_place_of(tree, TREE_PARENT)->open) return;
    tree_send(tree, TREE_PARENT, &tree->failure);
    memset(&tree->failure, 0, sizeof tree->failure);
}

void tree_fail(struct tree *tree, const struct tree_failure *failure)
{
    if (tree->phase < TREE_ENDS || tree->failed || PLANTED_BUG(BUG_TREE_END_REPORTED)) tree_fail_before(tree, failure);
}

void tree_fail_before(struct tree *tree, const struct tree_failure *failure)
{
    if (tree->failed && !PLANTED_BUG(BUG_TREE_LOSS_TWICE)) return;
    tree->failed = true;
    if (tree_is_front(tree)) {
        report(tree, failure);
        tree_end_begin(tree, false, false);
        return;
    }
    struct tree_failure known = *failure;
    known.text = last_part(failure->text);
    frame_release(&tree->failure);
    tree_write_lost(&tree->failure, &known);
    if (PLANTED_BUG(BUG_TREE_LOSS_FORGOTTEN) && !tree_place_of(tree, TREE_PARENT)->open) frame_release(&tree->failure);
    tree_tell_failure(tree);
}

/* ---- Links ---- */

static void close_link(struct tree *tree, int link)
{
    struct tree_output *output = tree_act(tree, TREE_CLOSE);
    if (output) output->action.link = link;
}

static void fail_below(struct tree *tree, int link, enum tree_cause cause, const char *text)
{
    int position = tree_child(&tree->options.shape, tree->options.position, link);
    struct tree_agent *agent = tree_agent_of(tree, position);
    const struct tree_failure failure = {.position = position,
                                         .cause = cause,
                                         .stage = TREE_STAGE_UP,
                                         .status = agent && !agent->runs ? agent->status : -1,
                                         .text = text};
    if (agent) agent->stage = TREE_STAGE_GONE;
    if (tree_place_of(tree, link)->early && !PLANTED_BUG(BUG_TREE_EARLY_FORGOTTEN))
        tree_fail_before(tree, &failure);
    else
        tree_fail(tree, &failure);
}

/* The report leaves before the driver hears of it: what the exchange of keys then tells the ranks, and ranks of their
 * failed fences, comes behind it. */
static void end_link(struct tree *tree, int link, enum tree_cause cause, const char *text, bool close)
{
    struct tree_place *place = tree_place_of(tree, link);
    place->open = false;
    if (link == TREE_PARENT) {
        place->greeted = true; /* it will not come any more */
        place->open = cause == TREE_CAUSE_SILENT;
        if (place->open) tree_send_empty(tree, link, TREE_FRAME_LEAVE);
        place->open = false;
        if (close) close_link(tree, link);
        tree_end_begin(tree, false, true);
        return;
    }
    if (close && tree_is_front(tree)) close_link(tree, link);
    fail_below(tree, link, cause, text);
    if (close && !tree_is_front(tree)) close_link(tree, link);
    tree_end_review(tree);
}

void tree_lose(struct tree *tree, int link, enum tree_cause cause, const char *text)
{
    end_link(tree, link, cause, text, true);
}

static bool is_link(const struct tree *tree, int link)
{
    return link >= (tree_is_front(tree) ? 0 : TREE_PARENT) && link < tree->child_count;
}

int tree_link_closing(struct tree *tree, int link, uint64_t now)
{
    if (!is_link(tree, link) || !tree_place_of(tree, link)->open || tree->phase == TREE_NOT_BEGUN)
        return base_error(NCCLX_ERR_ARG, "link %d is not open", link);
    struct tree_place *place = tree_place_of(tree, link);
    tree_advance(tree, now);
    place->closing = true;
    place->early = tree->phase < TREE_ENDS;
    return tree_result(tree);
}

int tree_link_closed(struct tree *tree, int link, const char *why, uint64_t now)
{
    bool was_there = is_link(tree, link) && tree_place_of(tree, link)->open;
    bool never_came = is_link(tree, link) && link == TREE_PARENT && !tree_place_of(tree, link)->greeted;
    if ((!was_there && !never_came) || tree->phase == TREE_NOT_BEGUN)
        return base_error(NCCLX_ERR_ARG, "link %d is not open", link);
    tree_advance(tree, now);
    if (tree->phase != TREE_IS_FINISHED) end_link(tree, link, TREE_CAUSE_CLOSED, why, false);
    tree_place_of(tree, link)->open = false;
    return tree_result(tree);
}

/* ---- Frames. Each function returns null, or what is wrong ---- */

static const char *receive_lost(struct tree *tree, int link, const struct frame *frame)
{
    const struct tree_shape *shape = &tree->options.shape;
    struct tree_failure failure;
    if (tree_read_lost(frame, &failure)) return base_error_detail();
    int me = tree->options.position;
    if (failure.position >= shape->count || failure.position <= me || tree_link_to(shape, me, failure.position) != link)
        return "it reports the loss of a daemon that is not below it";
    /* Whoever knows of the end says nothing of what that has brought about: this had happened before. Once all have
     * ended it does not matter any more. */
    if (tree_place_of(tree, link)->ended || PLANTED_BUG(BUG_TREE_EARLY_FORGOTTEN))
        tree_fail(tree, &failure);
    else
        tree_fail_before(tree, &failure);
    return NULL;
}

static const char *receive_ended(struct tree *tree, int link, const struct frame *frame)
{
    struct tree_place *place = tree_place_of(tree, link);
    if (frame->bytes || place->ended) return "it says twice, or in a strange way, that it has ended";
    place->ended = true;
    tree_end_review(tree);
    return NULL;
}

/* This process was stopped, and the daemon below could not know why. */
static const char *receive_leave(struct tree *tree)
{
    tree_fail(tree, &(struct tree_failure){.position = tree->options.position,
                                           .cause = TREE_CAUSE_SILENT,
                                           .stage = TREE_STAGE_UP,
                                           .status = -1});
    return NULL;
}

static const char *receive_end(struct tree *tree, const struct frame *frame)
{
    bool at_once;
    if (tree_read_end(frame, &at_once)) return base_error_detail();
    tree_end_begin(tree, at_once, false);
    return NULL;
}

static const char *take_frame(struct tree *tree, int link, const struct frame *frame)
{
    bool from_below = link != TREE_PARENT;
    if (frame->type == TREE_FRAME_NODES && from_below) return tree_nodes_receive(tree, link, frame);
    if (frame->type == TREE_FRAME_LOST && from_below) return receive_lost(tree, link, frame);
    if (frame->type == TREE_FRAME_ENDED && from_below) return receive_ended(tree, link, frame);
    if (frame->type == TREE_FRAME_LEAVE && from_below && frame->bytes == 0) return receive_leave(tree);
    if (frame->type == TREE_FRAME_END && !from_below) return receive_end(tree, frame);
    bool empty = frame->bytes == 0;
    if (frame->type == TREE_FRAME_AWAY && !from_below && empty) {
        tree_place_of(tree, link)->away = true;
        return NULL;
    }
    return frame->type == TREE_FRAME_BEAT && empty ? NULL : "it sends a frame that has no place on this link";
}

int tree_receive(struct tree *tree, int link, const struct frame *frame, uint64_t now)
{
    char text[160];
    if (!tree_is_open(tree, link)) return base_error(NCCLX_ERR_ARG, "link %d is not open", link);
    tree_heard(tree, link, now);
    if (PLANTED_BUG(BUG_TREE_TRAFFIC_NOT_HEARD)) tree_place_of(tree, link)->heard = tree->now;
    if (tree->phase == TREE_IS_FINISHED) return tree_result(tree);
    const char *wrong = take_frame(tree, link, frame);
    if (wrong) {
        snprintf(text, sizeof text, "%s", wrong); /* the detail of an error is overwritten by the next */
        tree_lose(tree, link, TREE_CAUSE_PROTOCOL, text);
    }
    return tree_result(tree);
}

/* ---- Silence ---- */

static uint64_t silent_at(const struct tree *tree, const struct tree_place *place)
{
    return place->held || place->away || place->closing ? UINT64_MAX : place->heard + tree->options.silence_ns;
}

static uint64_t beat_at(const struct tree *tree, const struct tree_place *place)
{
    uint64_t spoken = PLANTED_BUG(BUG_TREE_BEAT_FORGOTTEN) && place->heard > place->sent ? place->heard : place->sent;
    return spoken + tree->options.silence_ns / 4;
}

void tree_beat(struct tree *tree)
{
    for (int link = TREE_PARENT; link < tree->child_count && tree->options.silence_ns; link++) {
        const struct tree_place *place = tree_place_of(tree, link);
        if (!place->open) continue;
        if (silent_at(tree, place) <= tree->now)
            tree_lose(tree, link, TREE_CAUSE_SILENT, NULL);
        else if (!place->closing && beat_at(tree, place) <= tree->now)
            tree_send_empty(tree, link, TREE_FRAME_BEAT);
    }
}

uint64_t tree_beat_deadline(const struct tree *tree)
{
    uint64_t at = UINT64_MAX;
    for (int link = TREE_PARENT; link < tree->child_count && tree->options.silence_ns; link++) {
        const struct tree_place *place = tree_place_of(tree, link);
        if (!place->open) continue;
        if (silent_at(tree, place) < at) at = silent_at(tree, place);
        if (!place->closing && beat_at(tree, place) < at) at = beat_at(tree, place);
    }
    return at;
}
