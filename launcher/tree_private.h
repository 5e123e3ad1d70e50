/* tree_private.h - shared by the files of the tree only. */
#ifndef LAUNCHER_TREE_PRIVATE_H
#define LAUNCHER_TREE_PRIVATE_H

#include "launcher/tree.h"

#include "runtime/base/base.h"

#define TREE_FLUSH_NS BASE_NS_PER_S            /* what is known of nodes waits that long for more */
#define TREE_END_STEP_NS (2 * BASE_NS_PER_S)   /* each level waits so much longer for the end than the one below */
#define TREE_AGENT_PATIENCE_NS (BASE_NS_PER_S) /* for agents of daemons that are gone */

/* ---- tree_wire.c: frames as structures ---- */

struct tree_hello {
    uint64_t job;
    const char *version;
    int count, radix, position;
};

struct tree_entry { /* of a frame of nodes */
    int position;
    const char *node;
    const void *description, *contact;
    size_t description_bytes, contact_bytes;
};

void tree_write_hello(struct frame_writer *writer, const struct tree_hello *hello);
int tree_read_hello(const struct frame *frame, struct tree_hello *hello);
void tree_write_lost(struct frame_writer *writer, const struct tree_failure *failure);
int tree_read_lost(const struct frame *frame, struct tree_failure *failure);
int tree_read_end(const struct frame *frame, bool *at_once);

/* Walks a frame of nodes. Opening it checks the whole. */
struct tree_walk {
    struct frame_reader reader;
    const unsigned char *kinds; /* where the table begins */
    uint32_t kind_count, left;
    bool last;
};
int tree_walk_open(const struct frame *frame, struct tree_walk *walk);
bool tree_walk_next(struct tree_walk *walk, struct tree_entry *entry);

/* ---- tree_batch.c: the frame of nodes that gathers ---- */

struct tree_kind {
    void *bytes;
    size_t size;
};

struct tree_batch {
    struct tree_kind *kinds;
    uint32_t kind_count, kind_room, entry_count;
    struct frame_writer entries; /* as they will stand in the frame, after a header of no use */
    size_t bytes;                /* of all */
};

/* False: memory is short. */
bool tree_batch_add(struct tree_batch *batch, const struct tree_entry *entry);
/* What it would add. */
size_t tree_batch_weight(const struct tree_batch *batch, const struct tree_entry *entry);
/* Writes the frame and empties the batch. */
void tree_batch_write(struct tree_batch *batch, bool last, struct frame_writer *writer);
void tree_batch_release(struct tree_batch *batch);

/* ---- tree.c: the instance and its output ---- */

struct tree_place { /* the other end of a link */
    bool greeted, open, held, away;
    bool closing, early; /* its connection has closed, though the tree waits for the reason; before the end began */
    bool ended;    /* its ranks and those below have */
    bool complete; /* all below it have been heard of */
    int up;        /* how many have */
    uint64_t heard, sent;
};

struct tree_agent { /* a start that this place makes or waits for */
    enum tree_stage stage;
    bool begun, runs, stopped;
    int status;
    uint64_t since;
};

struct tree_output {
    struct tree_output *next;
    struct tree_action action;
    struct frame_writer frame; /* what the action points into */
    struct tree_walk walk;     /* TREE_NODE stands for all entries of the frame */
    char *text;
};

enum tree_phase { TREE_NOT_BEGUN, TREE_RUNS, TREE_ENDS, TREE_IS_FINISHED };

struct tree {
    struct tree_options options;
    int child_count, height;
    enum tree_phase phase;
    bool short_of_memory, failed, at_once, local_ended, ended_told, was_ready;
    uint64_t now, skew, last; /* now leaves out the time in which this process was stopped; last does not */
    char *version;
    void *contact; /* the front's own */
    size_t contact_bytes;

    struct tree_place *places; /* the one above, then those below */
    struct tree_agent *agents; /* of those below, or at the front of all; the one for everybody stands last */
    int agent_count;
    int *queue; /* of agents, in the order of their starts */
    int queued, begun, settled, under_way;
    uint64_t begun_at;

    unsigned char *known; /* (front) positions heard of */
    void **contacts;      /* (front, TREE_START_FRONT) length (size_t), then bytes */
    int up;
    struct tree_batch batch;
    uint64_t batch_since;
    bool last_sent; /* all that was to be said of nodes */

    struct frame_writer failure; /* a loss that waits for the link above */
    uint64_t end_at, agents_end_at;

    struct tree_output *first, **rest, *current, *spare;
};

static inline struct tree_place *tree_place_of(const struct tree *tree, int link)
{
    return &tree->places[link + 1];
}
static inline bool tree_is_front(const struct tree *tree)
{
    return tree->options.position == TREE_FRONT;
}

/* Null: memory is short, which tree_result will say. */
struct tree_output *tree_act(struct tree *tree, enum tree_action_kind kind);
/* Takes the writer over. Nothing is sent over a link that is not open. */
void tree_send(struct tree *tree, int link, struct frame_writer *writer);
void tree_send_empty(struct tree *tree, int link, enum tree_frame type);
int tree_result(struct tree *tree);
/* Every event begins with it. */
void tree_advance(struct tree *tree, uint64_t now);

/* ---- tree_start.c ---- */

void tree_start_open(struct tree *tree);
void tree_start_more(struct tree *tree);
/* Position has been heard of. */
void tree_start_known(struct tree *tree, int position);
void tree_start_check(struct tree *tree);
uint64_t tree_start_deadline(const struct tree *tree);
/* The agent of a place below, or null. */
struct tree_agent *tree_agent_of(const struct tree *tree, int position);
void tree_stop_agents(struct tree *tree, bool all);

/* ---- tree_nodes.c ---- */

bool tree_nodes_add_self(struct tree *tree, const struct tree_self *self);
/* Null, or what is wrong with it. */
const char *tree_nodes_receive(struct tree *tree, int link, const struct frame *frame);
/* Sends what has gathered if it is time, or complete. */
void tree_nodes_review(struct tree *tree);
uint64_t tree_nodes_deadline(const struct tree *tree);

/* ---- tree_loss.c ---- */

/* The first of this place goes up, or is reported. Not what the end has brought about. */
void tree_fail(struct tree *tree, const struct tree_failure *failure);
/* The same of what had happened before the end began, wherever it is known only now. */
void tree_fail_before(struct tree *tree, const struct tree_failure *failure);
void tree_tell_failure(struct tree *tree); /* the link above stands now */
void tree_lose(struct tree *tree, int link, enum tree_cause cause, const char *text);
void tree_beat(struct tree *tree);
uint64_t tree_beat_deadline(const struct tree *tree);

/* ---- tree_end.c ---- */

void tree_end_begin(struct tree *tree, bool at_once, bool orphan);
void tree_end_review(struct tree *tree);
void tree_end_check(struct tree *tree);
void tree_send_end(struct tree *tree, int link);

#endif
