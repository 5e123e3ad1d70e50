/* tree.c - an instance: its life, its clock, its output, and which function an event goes to. */
#include "config.h"

#include "launcher/tree_private.h"

#include "runtime/base/planted.h"

#include <string.h>

/* ---- Output ---- */

static void put_output(struct tree *tree, struct tree_output *output)
{
    *tree->rest = output;
    tree->rest = &output->next;
}

struct tree_output *tree_act(struct tree *tree, enum tree_action_kind kind)
{
    struct tree_output *output = tree->spare;
    if (output)
        tree->spare = output->next;
    else
        output = base_alloc(AREA_LAUNCHER, sizeof *output);
    if (!output) {
        tree->short_of_memory = true;
        return NULL;
    }
    *output = (struct tree_output){
        .action = {.kind = kind, .link = TREE_PARENT, .position = TREE_EVERYBODY, .failure = {.status = -1}}};
    put_output(tree, output);
    return output;
}

static void end_current(struct tree *tree)
{
    struct tree_output *output = tree->current;
    if (!output) return;
    frame_release(&output->frame);
    base_free(AREA_LAUNCHER, output->text);
    output->next = tree->spare;
    tree->spare = output;
    tree->current = NULL;
}

/* A frame of nodes stands for an action a node. */
static bool next_node(struct tree *tree, struct tree_action *action)
{
    struct tree_output *output = tree->current;
    struct tree_entry entry;
    if (!output || output->action.kind != TREE_NODE || !tree_walk_next(&output->walk, &entry)) return false;
    *action = output->action;
    action->position = entry.position;
    action->node = entry.node;
    action->data = entry.description;
    action->bytes = entry.description_bytes;
    return true;
}

bool tree_next(struct tree *tree, struct tree_action *action)
{
    if (next_node(tree, action)) return true;
    do {
        end_current(tree);
        if (!tree->first) return false;
        tree->current = tree->first;
        tree->first = tree->first->next;
        if (!tree->first) tree->rest = &tree->first;
    } while (tree->current->action.kind == TREE_NODE && !next_node(tree, action));
    if (tree->current->action.kind != TREE_NODE) *action = tree->current->action;
    return true;
}

static void send_bytes(struct tree *tree, int link, const void *data, size_t bytes, struct frame_writer *writer)
{
    struct tree_output *output = tree_place_of(tree, link)->open ? tree_act(tree, TREE_SEND) : NULL;
    if (output) {
        output->action.link = link;
        output->action.data = data;
        output->action.bytes = bytes;
        if (writer) output->frame = *writer;
        tree_place_of(tree, link)->sent = tree->now;
    } else if (writer) {
        frame_release(writer);
    }
}

void tree_send(struct tree *tree, int link, struct frame_writer *writer)
{
    if (frame_finish(writer) == NCCLX_SUCCESS) {
        send_bytes(tree, link, writer->data, writer->used, writer);
    } else {
        tree->short_of_memory = true;
        frame_release(writer);
    }
}

void tree_send_empty(struct tree *tree, int link, enum tree_frame type)
{
    static const unsigned char ended[FRAME_HEADER_BYTES] = {'N', 'X', FRAME_VERSION, TREE_FRAME_ENDED},
                               away[FRAME_HEADER_BYTES] = {'N', 'X', FRAME_VERSION, TREE_FRAME_AWAY},
                               beat[FRAME_HEADER_BYTES] = {'N', 'X', FRAME_VERSION, TREE_FRAME_BEAT},
                               leave[FRAME_HEADER_BYTES] = {'N', 'X', FRAME_VERSION, TREE_FRAME_LEAVE};
    const unsigned char *frame = type == TREE_FRAME_ENDED   ? ended
                                 : type == TREE_FRAME_AWAY  ? away
                                 : type == TREE_FRAME_LEAVE ? leave
                                                            : beat;
    send_bytes(tree, link, frame, FRAME_HEADER_BYTES, NULL);
}

int tree_result(struct tree *tree)
{
    if (!tree->short_of_memory) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for the tree of daemons: the job must end");
}

/* ---- Time ---- */

/* Ticks come at least that often, so that a gap is known. 0: they don't. */
static uint64_t longest_tick(const struct tree *tree)
{
    return tree->options.silence_ns / 4;
}

/* A process that was stopped (a signal, a suspended machine) finds all deadlines passed, and may be wrong about every
 * one of them: for it that time did not pass. */
void tree_advance(struct tree *tree, uint64_t now)
{
    uint64_t most = longest_tick(tree);
    if (now < tree->last) now = tree->last;
    if (most && now - tree->last > 2 * most && !PLANTED_BUG(BUG_TREE_STOPPED_BLAMES))
        tree->skew += now - tree->last - most;
    tree->last = now;
    tree->now = now - tree->skew;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t tree_deadline(const struct tree *tree)
{
    uint64_t at = UINT64_MAX;
    if (tree->phase == TREE_NOT_BEGUN || tree->phase == TREE_IS_FINISHED) return UINT64_MAX;
    at = least(tree_start_deadline(tree), least(tree_nodes_deadline(tree), tree_beat_deadline(tree)));
    if (tree->phase == TREE_ENDS) at = least(at, least(tree->end_at, tree->agents_end_at));
    if (longest_tick(tree)) at = least(at, tree->now + longest_tick(tree));
    return at == UINT64_MAX ? at : at + tree->skew;
}

int tree_tick(struct tree *tree, uint64_t now)
{
    tree_advance(tree, now);
    if (tree->phase == TREE_NOT_BEGUN || tree->phase == TREE_IS_FINISHED) return tree_result(tree);
    tree_beat(tree);
    tree_start_check(tree);
    tree_nodes_review(tree);
    if (tree->phase == TREE_ENDS) tree_end_check(tree);
    return tree_result(tree);
}

/* ---- Events that concern all ---- */

int tree_begin(struct tree *tree, uint64_t now)
{
    if (tree->phase != TREE_NOT_BEGUN) return base_error(NCCLX_ERR_ARG, "a place in the tree begins once");
    tree_advance(tree, now);
    tree->phase = TREE_RUNS;
    tree_start_open(tree);
    tree_nodes_review(tree);
    return tree_result(tree);
}

int tree_refuse(struct tree *tree, const char *why, uint64_t now)
{
    tree_advance(tree, now);
    tree_fail(tree, &(struct tree_failure){.position = tree->options.position,
                                           .cause = TREE_CAUSE_REFUSED,
                                           .stage = TREE_STAGE_UP,
                                           .status = -1,
                                           .text = why});
    return tree_result(tree);
}

int tree_local_ended(struct tree *tree, uint64_t now)
{
    if (tree->local_ended) return base_error(NCCLX_ERR_ARG, "the ranks of a place end once");
    tree_advance(tree, now);
    tree->local_ended = true;
    tree_end_review(tree);
    return tree_result(tree);
}

int tree_end(struct tree *tree, bool at_once, uint64_t now)
{
    tree_advance(tree, now);
    if (tree->phase != TREE_IS_FINISHED) tree_end_begin(tree, at_once, false);
    return tree_result(tree);
}

int tree_suspend(struct tree *tree, uint64_t now)
{
    tree_advance(tree, now);
    for (int link = 0; link < tree->child_count; link++) tree_send_empty(tree, link, TREE_FRAME_AWAY);
    return tree_result(tree);
}

void tree_heard(struct tree *tree, int link, uint64_t now)
{
    struct tree_place *place = tree_place_of(tree, link);
    tree_advance(tree, now);
    place->away = false;
    if (!PLANTED_BUG(BUG_TREE_TRAFFIC_NOT_HEARD)) place->heard = tree->now;
}

void tree_sent(struct tree *tree, int link, uint64_t now)
{
    tree_advance(tree, now);
    tree_place_of(tree, link)->sent = tree->now;
}

void tree_hold(struct tree *tree, int link, bool hold, uint64_t now)
{
    struct tree_place *place = tree_place_of(tree, link);
    tree_advance(tree, now);
    place->held = hold;
    place->heard = tree->now;
}

/* ---- What is known ---- */

bool tree_is_open(const struct tree *tree, int link)
{
    return link >= TREE_PARENT && link < tree->child_count && tree_place_of(tree, link)->open;
}

bool tree_is_ending(const struct tree *tree)
{
    return tree->phase >= TREE_ENDS;
}

int tree_up_count(const struct tree *tree)
{
    return tree->up;
}

int tree_missing(const struct tree *tree, int from, enum tree_stage *stage)
{
    if (from < 0) from = 0;
    for (int i = from; tree_is_front(tree) && i < tree->options.shape.count; i++) {
        if (tree->known[i]) continue;
        const struct tree_agent *agent = tree_agent_of(tree, i);
        *stage = agent ? agent->stage : TREE_STAGE_WAITING;
        return i;
    }
    for (int link = 0; !tree_is_front(tree) && link < tree->child_count; link++) {
        int position = tree_child(&tree->options.shape, tree->options.position, link);
        if (position < from || tree_place_of(tree, link)->greeted) continue;
        const struct tree_agent *agent = tree_agent_of(tree, position);
        *stage = agent ? agent->stage : TREE_STAGE_WAITING;
        return position;
    }
    return -1;
}

const void *tree_contact(const struct tree *tree, int position, size_t *bytes)
{
    const unsigned char *contact = tree->contacts && position >= 0 ? tree->contacts[position] : NULL;
    *bytes = 0;
    if (position == TREE_FRONT) {
        *bytes = tree->contact_bytes;
        return tree->contact;
    }
    if (!contact) return NULL;
    memcpy(bytes, contact, sizeof *bytes);
    return contact + sizeof *bytes;
}

/* ---- Life ---- */

static int check(const struct tree_options *options, const struct tree_self *self)
{
    const struct tree_shape *shape = &options->shape;
    if (shape->count < 1 || shape->count > TREE_MAX_COUNT || shape->radix < 1 || shape->radix > TREE_MAX_RADIX ||
        options->position < TREE_FRONT || options->position >= shape->count)
        return base_error(NCCLX_ERR_ARG, "no place %d in a tree of %d daemons (1 to %d) with radix %d (1 to %d)",
                          options->position, shape->count, TREE_MAX_COUNT, shape->radix, TREE_MAX_RADIX);
    bool named = self->version && *self->version && strlen(self->version) <= TREE_MAX_NAME;
    if (options->position != TREE_FRONT)
        named = named && self->node && *self->node && strlen(self->node) <= TREE_MAX_NAME;
    if (!named || self->description_bytes > TREE_MAX_DESCRIPTION || self->contact_bytes > TREE_MAX_CONTACT)
        return base_error(NCCLX_ERR_ARG, "a daemon's description of its node is too long, or without a name");
    return NCCLX_SUCCESS;
}

static bool take_memory(struct tree *tree, const struct tree_self *self)
{
    size_t count = (size_t)tree->options.shape.count;
    tree->places = base_calloc(AREA_LAUNCHER, (size_t)tree->child_count + 1, sizeof *tree->places);
    tree->agents = base_calloc(AREA_LAUNCHER, (size_t)tree->agent_count + 1, sizeof *tree->agents);
    tree->queue = base_calloc(AREA_LAUNCHER, (size_t)tree->agent_count + 1, sizeof *tree->queue);
    tree->version = base_strdup(AREA_LAUNCHER, self->version);
    tree->contact = base_alloc(AREA_LAUNCHER, self->contact_bytes + 1);
    if (!tree->places || !tree->agents || !tree->queue || !tree->version || !tree->contact) return false;
    if (self->contact_bytes) memcpy(tree->contact, self->contact, self->contact_bytes);
    tree->contact_bytes = self->contact_bytes;
    if (!tree_is_front(tree)) return tree_nodes_add_self(tree, self);
    tree->known = base_calloc(AREA_LAUNCHER, count, 1);
    if (tree->options.start != TREE_START_FRONT) return tree->known;
    tree->contacts = base_calloc(AREA_LAUNCHER, count, sizeof *tree->contacts);
    return tree->known && tree->contacts;
}

int tree_create(const struct tree_options *options, const struct tree_self *self, uint64_t now, struct tree **out)
{
    *out = NULL;
    int code = check(options, self);
    if (code) return code;
    struct tree *tree = base_calloc(AREA_LAUNCHER, 1, sizeof *tree);
    if (!tree) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the tree of daemons");
    tree->options = *options;
    tree->child_count = tree_child_count(&options->shape, options->position);
    tree->height = tree_height(&options->shape, options->position);
    tree->last = tree->now = now;
    tree->rest = &tree->first;
    tree->end_at = tree->agents_end_at = UINT64_MAX;
    if (options->start != TREE_START_FRONT)
        tree->agent_count = tree->child_count;
    else if (tree_is_front(tree))
        tree->agent_count = options->shape.count;
    if (!take_memory(tree, self)) {
        tree_destroy(tree);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the tree of daemons");
    }
    *out = tree;
    return NCCLX_SUCCESS;
}

static void release_outputs(struct tree_output *output)
{
    while (output) {
        struct tree_output *next = output->next;
        frame_release(&output->frame);
        base_free(AREA_LAUNCHER, output->text);
        base_free(AREA_LAUNCHER, output);
        output = next;
    }
}

void tree_destroy(struct tree *tree)
{
    if (!tree) return;
    end_current(tree);
    release_outputs(tree->first);
    for (struct tree_output *spare = tree->spare; spare;) {
        struct tree_output *next = spare->next;
        base_free(AREA_LAUNCHER, spare);
        spare = next;
    }
    for (int i = 0; tree->contacts && i < tree->options.shape.count; i++) base_free(AREA_LAUNCHER, tree->contacts[i]);
    tree_batch_release(&tree->batch);
    frame_release(&tree->failure);
    base_free(AREA_LAUNCHER, tree->contacts);
    base_free(AREA_LAUNCHER, tree->known);
    base_free(AREA_LAUNCHER, tree->contact);
    base_free(AREA_LAUNCHER, tree->version);
    base_free(AREA_LAUNCHER, tree->queue);
    base_free(AREA_LAUNCHER, tree->agents);
    base_free(AREA_LAUNCHER, tree->places);
    base_free(AREA_LAUNCHER, tree);
}
