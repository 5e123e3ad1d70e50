/* tree_nodes.c - what daemons say of their nodes, on its way to the front. */
#include "config.h"

#include "launcher/tree_private.h"

#include "runtime/base/planted.h"

#include <string.h>

static bool at_once(const struct tree *tree)
{
    return tree->options.start == TREE_START_FRONT; /* those below cannot be started before the front knows */
}

static void send_batch(struct tree *tree, bool last)
{
    struct frame_writer writer;
    tree_batch_write(&tree->batch, last, &writer);
    tree_send(tree, TREE_PARENT, &writer);
    tree->last_sent = last;
}

/* While the link above is not there yet, what comes is kept. */
static bool add(struct tree *tree, const struct tree_entry *entry)
{
    struct tree_batch *batch = &tree->batch;
    bool full = batch->entry_count && batch->bytes + tree_batch_weight(batch, entry) > TREE_FRAME_BYTES;
    if (full && tree_place_of(tree, TREE_PARENT)->open) {
        send_batch(tree, false);
        if (PLANTED_BUG(BUG_TREE_NODE_DROPPED)) return true;
    }
    if (!batch->entry_count) tree->batch_since = tree->now;
    tree->up++;
    return tree_batch_add(batch, entry);
}

bool tree_nodes_add_self(struct tree *tree, const struct tree_self *self)
{
    const struct tree_entry entry = {.position = tree->options.position,
                                     .node = self->node,
                                     .description = self->description,
                                     .description_bytes = self->description_bytes,
                                     .contact = self->contact,
                                     .contact_bytes = at_once(tree) ? self->contact_bytes : 0};
    return add(tree, &entry);
}

static bool all_complete(const struct tree *tree)
{
    int children = tree->child_count - PLANTED_BUG(BUG_TREE_CHILD_NOT_AWAITED);
    for (int link = 0; link < children; link++)
        if (!tree_place_of(tree, link)->complete) return false;
    return true;
}

void tree_nodes_review(struct tree *tree)
{
    if (tree_is_front(tree) || tree->phase != TREE_RUNS || tree->last_sent || !tree_place_of(tree, TREE_PARENT)->open)
        return;
    if (all_complete(tree))
        send_batch(tree, true);
    else if (tree->batch.entry_count && (at_once(tree) || tree->now >= tree->batch_since + TREE_FLUSH_NS))
        send_batch(tree, false);
}

uint64_t tree_nodes_deadline(const struct tree *tree)
{
    bool waits = tree->phase == TREE_RUNS && !tree_is_front(tree) && tree->batch.entry_count &&
                 tree_place_of(tree, TREE_PARENT)->open;
    return waits ? tree->batch_since + TREE_FLUSH_NS : UINT64_MAX;
}

/* ---- In the middle ---- */

static const char *pass_on(struct tree *tree, int link, struct tree_walk *walk)
{
    const struct tree_shape *shape = &tree->options.shape;
    struct tree_place *place = tree_place_of(tree, link);
    int me = tree->options.position, child = tree_child(shape, me, link), below = tree_below_count(shape, child);
    struct tree_entry entry;
    while (tree_walk_next(walk, &entry)) {
        if (entry.position <= me || entry.position >= shape->count || tree_link_to(shape, me, entry.position) != link ||
            ++place->up > below)
            return "it speaks of daemons that are not below it, or twice";
        if (!add(tree, &entry)) tree->short_of_memory = true;
    }
    if (walk->last && place->up != below) return "it says that all below it are there, and left some out";
    place->complete = walk->last;
    tree_nodes_review(tree);
    return NULL;
}

/* ---- At the front ---- */

static bool keep_contact(struct tree *tree, const struct tree_entry *entry)
{
    unsigned char *copy = base_alloc(AREA_LAUNCHER, sizeof entry->contact_bytes + entry->contact_bytes);
    if (!copy) return false;
    memcpy(copy, &entry->contact_bytes, sizeof entry->contact_bytes);
    if (entry->contact_bytes) memcpy(copy + sizeof entry->contact_bytes, entry->contact, entry->contact_bytes);
    tree->contacts[entry->position] = copy;
    return true;
}

static const char *note_known(struct tree *tree, struct tree_walk walk)
{
    struct tree_entry entry;
    while (tree_walk_next(&walk, &entry)) {
        if (entry.position >= tree->options.shape.count || tree->known[entry.position])
            return "it speaks of daemons that do not exist, or twice";
        tree->known[entry.position] = 1;
        tree->up++;
        if (tree->contacts && !keep_contact(tree, &entry)) tree->short_of_memory = true;
    }
    if (walk.last && tree->up != tree->options.shape.count)
        return "it says that all daemons are there, and left some out";
    return NULL;
}

/* The actions stand on a copy of the frame. */
static void tell_nodes(struct tree *tree, const struct frame *frame)
{
    struct tree_output *output = tree_act(tree, TREE_NODE);
    if (!output) return;
    frame_begin(&output->frame, frame->type);
    frame_put_raw(&output->frame, frame->payload, frame->bytes);
    struct frame copy = {
        .type = frame->type, .payload = output->frame.data + FRAME_HEADER_BYTES, .bytes = frame->bytes};
    if (output->frame.failed || tree_walk_open(&copy, &output->walk)) tree->short_of_memory = true;
}

static const char *take_in(struct tree *tree, const struct frame *frame, struct tree_walk walk)
{
    const char *wrong = note_known(tree, walk);
    struct tree_entry entry;
    if (wrong) return wrong;
    tell_nodes(tree, frame);
    while (tree->contacts && tree_walk_next(&walk, &entry)) tree_start_known(tree, entry.position);
    if (tree->up < tree->options.shape.count || tree->was_ready) return NULL;
    tree->was_ready = true;
    if (tree->options.start == TREE_START_ONCE) tree_agent_of(tree, TREE_EVERYBODY)->stage = TREE_STAGE_UP;
    if (tree->phase == TREE_RUNS) tree_act(tree, TREE_READY);
    return NULL;
}

const char *tree_nodes_receive(struct tree *tree, int link, const struct frame *frame)
{
    struct tree_walk walk;
    if (tree_walk_open(frame, &walk)) return base_error_detail();
    if (tree_place_of(tree, link)->complete) return "it says more of its nodes after it has said all";
    return tree_is_front(tree) ? take_in(tree, frame, walk) : pass_on(tree, link, &walk);
}
