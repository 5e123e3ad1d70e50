/* tree_end.c - the end: everybody is told, everybody waits for those below, no wait is without a bound. */
#include "config.h"

#include "launcher/tree_private.h"

#include "runtime/base/planted.h"

void tree_send_end(struct tree *tree, int link)
{
    struct frame_writer writer;
    frame_begin(&writer, TREE_FRAME_END);
    frame_put_u8(&writer, tree->at_once);
    tree_send(tree, link, &writer);
}

static void tell_those_below(struct tree *tree)
{
    for (int link = 0; link < tree->child_count; link++)
        if (tree_place_of(tree, link)->open) tree_send_end(tree, link);
}

static void end_local(struct tree *tree, bool orphan)
{
    struct tree_output *output = tree->local_ended ? NULL : tree_act(tree, TREE_END_LOCAL);
    if (!output) return;
    output->action.at_once = tree->at_once;
    output->action.orphan = orphan;
}

void tree_end_begin(struct tree *tree, bool at_once, bool orphan)
{
    bool first = tree->phase < TREE_ENDS, sooner = at_once && !tree->at_once;
    if (tree->phase == TREE_IS_FINISHED || (!first && !sooner && !orphan)) return;
    if (orphan && PLANTED_BUG(BUG_TREE_ORPHAN_STAYS)) return;
    tree->at_once |= at_once;
    if (first) {
        tree->phase = TREE_ENDS;
        if (!PLANTED_BUG(BUG_TREE_END_UNBOUNDED))
            tree->end_at = tree->now + tree->options.end_ns + (uint64_t)tree->height * TREE_END_STEP_NS;
        tree_stop_agents(tree, false);
    }
    if (first || sooner) tell_those_below(tree);
    end_local(tree, orphan);
    tree_end_review(tree);
}

/* ---- Who still has something to end ---- */

static bool agent_runs(const struct tree *tree, int link)
{
    return tree->options.start == TREE_START_EACH && tree->agents[link].runs;
}

static bool is_gone(const struct tree *tree, int link)
{
    const struct tree_place *place = tree_place_of(tree, link);
    return place->greeted ? !place->open : !agent_runs(tree, link);
}

static bool all_gone(const struct tree *tree)
{
    for (int link = 0; link < tree->child_count; link++)
        if (!is_gone(tree, link)) return false;
    return true;
}

static bool all_agents_ended(const struct tree *tree)
{
    for (int i = 0; i <= tree->agent_count; i++)
        if (tree->agents[i].runs) return false;
    return true;
}

/* One that greeted says when all has ended; of one that never came up there is nothing to end. */
static bool all_ended(const struct tree *tree)
{
    for (int link = 0; link < tree->child_count; link++) {
        bool never_was = tree->phase >= TREE_ENDS && !tree_place_of(tree, link)->greeted && is_gone(tree, link);
        if (!tree_place_of(tree, link)->ended && !never_was) return false;
    }
    return true;
}

static int find_unended(const struct tree *tree)
{
    for (int link = 0; link < tree->child_count; link++)
        if (tree_place_of(tree, link)->greeted && !tree_place_of(tree, link)->ended)
            return tree_child(&tree->options.shape, tree->options.position, link);
    return tree->local_ended ? TREE_EVERYBODY : tree->options.position;
}

static void finish(struct tree *tree)
{
    int position = find_unended(tree);
    tree_stop_agents(tree, true);
    for (int link = 0; link < tree->child_count; link++) {
        struct tree_output *output = tree_place_of(tree, link)->open ? tree_act(tree, TREE_CLOSE) : NULL;
        if (output) output->action.link = link;
        tree_place_of(tree, link)->open = false;
    }
    struct tree_output *output = tree_act(tree, TREE_FINISHED);
    if (output) output->action.position = position;
    tree->phase = TREE_IS_FINISHED;
}

static void tell_ended(struct tree *tree)
{
    if (tree->ended_told || !all_ended(tree)) return;
    if (tree_is_front(tree)) {
        tree->ended_told = true;
        if (tree->phase == TREE_RUNS) tree_act(tree, TREE_ALL_ENDED);
    } else if (tree->local_ended && tree_place_of(tree, TREE_PARENT)->open) {
        tree->ended_told = true;
        tree_send_empty(tree, TREE_PARENT, TREE_FRAME_ENDED);
    }
}

void tree_end_review(struct tree *tree)
{
    if (tree->phase == TREE_IS_FINISHED || tree->phase == TREE_NOT_BEGUN) return;
    tell_ended(tree);
    if (tree->phase != TREE_ENDS || !tree->local_ended || !all_gone(tree)) return;
    if (all_agents_ended(tree))
        finish(tree);
    else if (tree->agents_end_at == UINT64_MAX)
        tree->agents_end_at = tree->now + TREE_AGENT_PATIENCE_NS;
}

void tree_end_check(struct tree *tree)
{
    if (tree->now >= tree->end_at || tree->now >= tree->agents_end_at) finish(tree);
}
