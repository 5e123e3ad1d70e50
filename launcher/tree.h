/* tree.h - one place in the tree of daemons: starting those below, wire-up, readiness, liveness, loss, and the end.
 *
 * Owns: nothing but its own memory. Never: a socket, a process, a clock, a thread. One instance is the place of one
 * ncclxd, or of ncclxrun (the front). Events go in by the functions below, actions come out of tree_next. Whoever
 * drives it (ncclxrun, ncclxd, the simulator) carries frames between neighbours, each way in order, starts and ends
 * agents (processes that bring up a daemon: fork, ssh, srun), and calls from one thread at a time.
 *
 * The tree. Daemons have positions 0 .. count - 1; above position p stands (p - 1) / radix, above position 0 the front.
 * A position is not a node index of the job: ncclxrun keeps the table.
 *
 * Start. Each place starts those below it through an agent, or the front starts all (enum tree_start). A daemon that
 * runs connects to the place above and greets it with version, job and position. What it says of its node goes up
 * merged: a frame holds each different description once, and a place waits with its own until all below it have spoken;
 * a frame leaves earlier when it is full, or when a second has passed, so that the front can show how far things are.
 * When the front has heard of every position it says TREE_READY.
 *
 * Loss. A place that cannot start one below it, or loses one (connection closed, silence, broken protocol), says so
 * upwards at once, the first time only; the front makes one TREE_REPORT of the first that arrives and ends the job.
 * Whoever loses the place above it ends what it has, and those below it: nobody who stands below the lost one reports.
 *
 * Silence. A place that has sent nothing on a link for a quarter of the limit sends a beat there; a link on which
 * nothing has come for the whole limit is lost. A process that was itself stopped blames nobody: it gives all a new
 * period; those below that have given it up by then have said so, and it reports itself.
 *
 * End. tree_end at the front, or a loss: every place is told once (and a second time when it is to be at once), ends
 * its ranks (TREE_END_LOCAL, answered by tree_local_ended), waits until all below it are gone, and finishes
 * (TREE_FINISHED). Every wait has a bound that grows with the height above the lowest, so that the inner ones give up
 * first. A job that ends by itself goes up the same way: when the ranks of all daemons have ended the front gets
 * TREE_ALL_ENDED and calls tree_end.
 *
 * What travels: frames of the types of enum tree_frame; the first on a link names the job, and a link that was lost is
 * never taken again, so that nothing late counts. All others are the driver's;
 * tree_way tells where they go. With TREE_START_ONCE the driver lets those below know where those above listen.
 *
 * Memory: a record for each place below, one frame under way (see TREE_FRAME_BYTES), at the front a byte a position; a
 * record for each agent that this place starts. Beats allocate nothing.
 */
#ifndef LAUNCHER_TREE_H
#define LAUNCHER_TREE_H

#include "launcher/frame.h"

#define TREE_MAX_COUNT 65536
#define TREE_MAX_RADIX 256
#define TREE_FRAME_BYTES 65536         /* a frame of descriptions leaves when it is that full */
#define TREE_MAX_DESCRIPTION (1 << 20) /* of one node */
#define TREE_MAX_NAME 255              /* of a node, and of a version */
#define TREE_MAX_CONTACT 1024
#define TREE_MAX_TEXT 2000 /* of a cause: the last output of an agent; what is longer loses its beginning */

#define TREE_FRONT (-1)     /* a position: ncclxrun */
#define TREE_EVERYBODY (-2) /* all daemons; the agent that starts them all */
#define TREE_PARENT (-1)    /* a link; those below are 0, 1, ... */

/* ---- The shape: plain arithmetic ---- */

struct tree_shape {
    int count, radix;
};

int tree_above(const struct tree_shape *shape, int position); /* TREE_FRONT for position 0 */
int tree_child_count(const struct tree_shape *shape, int position);
int tree_child(const struct tree_shape *shape, int position, int index); /* also of TREE_FRONT */
/* How many stand at or below it, and the position of each: index 0 is itself, then level by level. */
int tree_below_count(const struct tree_shape *shape, int position);
int tree_below(const struct tree_shape *shape, int position, int index);
/* The link of `position` that leads to `other`; TREE_PARENT when it is not below it. Not for other == position. */
int tree_link_to(const struct tree_shape *shape, int position, int other);
/* Levels below: 0 for one that has nobody below it. */
int tree_height(const struct tree_shape *shape, int position);

/* Where a frame of the driver goes from this place: to a position, to TREE_FRONT, or, downwards only, to
 * TREE_EVERYBODY. */
struct tree_way {
    bool here;             /* it is for this place */
    bool up;               /* it goes to TREE_PARENT */
    int first, link_count; /* and to these links */
};
struct tree_way tree_way(const struct tree_shape *shape, int position, int to);

/* ---- An instance ---- */

struct tree;

enum tree_start {
    TREE_START_EACH,  /* every place starts those below it */
    TREE_START_FRONT, /* the front starts all, each once the place above it listens */
    TREE_START_ONCE   /* one agent of the front starts all */
};

struct tree_options {
    struct tree_shape shape;
    int position;
    uint64_t job; /* identity: the same for all, different from every other job's */
    enum tree_start start;
    int start_window;    /* agents under way at a time; 0: no limit */
    uint64_t start_ns;   /* from an agent's start until its daemon has greeted */
    uint64_t silence_ns; /* 0: no limit, no beats */
    uint64_t end_ns;     /* from the order to end until all ranks of a daemon are gone: the grace and a bit */
};

/* What a place says of itself. The front gives its version only. */
struct tree_self {
    const char *version;
    const char *node;
    const void *description; /* equal on like nodes: it travels once */
    size_t description_bytes;
    const void *contact; /* where it listens; with TREE_START_FRONT it reaches those below by TREE_START */
    size_t contact_bytes;
};

int tree_create(const struct tree_options *options, const struct tree_self *self, uint64_t now, struct tree **tree);
void tree_destroy(struct tree *tree);

/* ---- Events. All return NCCLX_SUCCESS, or:
 *   NCCLX_ERR_NO_MEM     memory is short: end this process;
 *   NCCLX_ERR_ARG        arguments that make no sense;
 *   NCCLX_ERR_TRANSPORT  (tree_greet) close that connection, it is none of ours, or one too many.
 * `now` counts nanoseconds and never goes back. To be called after each event: tree_next until it returns false. ----
 */

/* Listening. TREE_START may come now, from a daemon once the connection upwards stands. */
int tree_begin(struct tree *tree, uint64_t now);

/* The process of an agent runs. */
int tree_agent_started(struct tree *tree, int position, uint64_t now);
/* It cannot be run. */
int tree_agent_failed(struct tree *tree, int position, const char *why, uint64_t now);
/* It has ended, with a status as waitpid gives it, and this as its last output (may be null). That by itself says
 * nothing about a daemon that has greeted, or that may still do so after status 0. */
int tree_agent_ended(struct tree *tree, int position, int status, const char *output, uint64_t now);

/* (daemon) The connection to the place above stands, its other end is proven. */
int tree_parent_up(struct tree *tree, uint64_t now);
/* The first frame of a connection from below; *link is then its name. */
int tree_greet(struct tree *tree, const struct frame *frame, uint64_t now, int *link);
/* A frame of enum tree_frame; whatever it is, the link has been heard. A neighbour that breaks the protocol is lost. */
int tree_receive(struct tree *tree, int link, const struct frame *frame, uint64_t now);
bool tree_is_frame(uint8_t type);
/* Any other frame came, or was sent. Cheap. */
void tree_heard(struct tree *tree, int link, uint64_t now);
void tree_sent(struct tree *tree, int link, uint64_t now);
/* The driver does not read from this link for the time being: its silence does not count. */
void tree_hold(struct tree *tree, int link, bool hold, uint64_t now);
/* The connection has closed, and tree_link_closed will follow in a moment: the agent of the daemon is about to end,
 * too, and its status says why. What closed before the end began is a loss, even if it is explained only afterwards. */
int tree_link_closing(struct tree *tree, int link, uint64_t now);
/* `why` may be null: closed. Not after TREE_CLOSE. Of TREE_PARENT also: it could not be made. If the agent of the
 * daemon has ended too, say that first: the report is better for it. */
int tree_link_closed(struct tree *tree, int link, const char *why, uint64_t now);

/* This place cannot do its part: why. */
int tree_refuse(struct tree *tree, const char *why, uint64_t now);
/* No process of the job is left here, and all that they wrote has been handed to the link. Comes once, also after
 * TREE_END_LOCAL, also when there was nothing. The front calls it when it has no more to do itself. */
int tree_local_ended(struct tree *tree, uint64_t now);
/* (front) End the job: TERM first, or at once; a second call makes it at once. */
int tree_end(struct tree *tree, bool at_once, uint64_t now);
/* (front) This process will be stopped by its user: its silence does not count until it speaks again. Flush the links
 * afterwards. As long as link 0 is not open nobody can be told: let the user wait. A network that is cut meanwhile is
 * noticed only by the kernel: give sockets a TCP_USER_TIMEOUT of about the silence limit. */
int tree_suspend(struct tree *tree, uint64_t now);

int tree_tick(struct tree *tree, uint64_t now);
/* When tree_tick is wanted; UINT64_MAX: never. */
uint64_t tree_deadline(const struct tree *tree);

/* ---- What is known ---- */

enum tree_stage {
    TREE_STAGE_WAITING,  /* its turn to be started has not come, or (not started by this place) it was not heard of */
    TREE_STAGE_STARTING, /* the agent is being run */
    TREE_STAGE_AGENT,    /* the agent runs */
    TREE_STAGE_DETACHED, /* the agent has ended with status 0, nothing has connected */
    TREE_STAGE_UP,       /* the daemon has greeted */
    TREE_STAGE_GONE      /* ended, or lost */
};

/* How many daemons the front has heard of; a place below: of those at and below it. */
int tree_up_count(const struct tree *tree);
/* The first position from `from` on that has not been heard of, with what is known of it; -1: none. */
int tree_missing(const struct tree *tree, int from, enum tree_stage *stage);
bool tree_is_open(const struct tree *tree, int link);
/* The end has begun: who leaves now is no loss, and the exchange of keys need not hear of it. */
bool tree_is_ending(const struct tree *tree);
/* The contact that position said, or null. (TREE_START_FRONT) */
const void *tree_contact(const struct tree *tree, int position, size_t *bytes);

/* ---- Actions ---- */

enum tree_cause {
    TREE_CAUSE_NONE,
    TREE_CAUSE_AGENT_FAILED,  /* the agent could not be run: text */
    TREE_CAUSE_AGENT_ENDED,   /* the agent ended with status before its daemon had greeted: text is its last output */
    TREE_CAUSE_NOT_CONNECTED, /* the time to start passed: stage */
    TREE_CAUSE_VERSION,       /* its version is text */
    TREE_CAUSE_CLOSED,        /* the connection closed: text or null; status of its agent when that has ended, or -1 */
    TREE_CAUSE_SILENT,        /* nothing came for the silence limit */
    TREE_CAUSE_PROTOCOL,      /* it broke the protocol: text */
    TREE_CAUSE_REFUSED,       /* it says itself that it cannot: text */
    TREE_CAUSE_COUNT
};

struct tree_failure {
    int position; /* whose failure; TREE_EVERYBODY: the one agent's; TREE_FRONT: it was itself silent for too long */
    enum tree_cause cause;
    enum tree_stage stage;
    int status; /* of the agent, as waitpid gives it; -1: none */
    const char *text;
};

/* One sentence without an end: "the daemon ncclxd on node7 did not connect within 30 s (its agent still runs)". */
void tree_explain(const struct tree *tree, const struct tree_failure *failure, const char *host, char *text,
                  size_t bytes);

enum tree_action_kind {
    TREE_START,      /* run the agent of position; contact: where the place above it listens (TREE_START_FRONT) */
    TREE_STOP_AGENT, /* end the agent of position, if it still runs */
    TREE_SEND,       /* data, bytes: a whole frame, to link; counts as sent */
    TREE_CLOSE,     /* link: it is lost, or refused; tell the exchange of keys. Send what is queued, if that is quick */
    TREE_NODE,      /* (front) position is up: node, description */
    TREE_READY,     /* (front) all are up */
    TREE_REPORT,    /* (front) failure: the one reason why the job fails. The end begins by itself */
    TREE_END_LOCAL, /* end the ranks of this place; orphan: nobody above is left, be quick */
    TREE_ALL_ENDED, /* (front) the ranks of all daemons have ended; call tree_end */
    TREE_FINISHED   /* send what is queued, within limits, close everything, exit; position: one that is not known to
                     * have ended, TREE_EVERYBODY when all have */
};

/* What it points to is valid until the next call. */
struct tree_action {
    enum tree_action_kind kind;
    int link, position;
    bool at_once, orphan;
    const void *data; /* of TREE_SEND; the contact of TREE_START; the description of TREE_NODE */
    size_t bytes;
    const char *node;
    struct tree_failure failure;
};

bool tree_next(struct tree *tree, struct tree_action *action);

/* ---- Frames ---- */

enum tree_frame {
    TREE_FRAME_HELLO = 32, /* up: u64 job, text version, u32 count, u32 radix, u32 position */
    TREE_FRAME_NODES, /* up: u8 last, u32 kinds, each bytes; u32 nodes, each u32 position, u32 kind, text, contact bytes
                       */
    TREE_FRAME_LOST,  /* up: u32 position, u8 cause, u8 stage, u32 status, text */
    TREE_FRAME_ENDED, /* up: nothing */
    TREE_FRAME_END,   /* down: u8 at once */
    TREE_FRAME_AWAY,  /* down: nothing: I will be silent until I speak again */
    TREE_FRAME_BEAT,  /* both ways: nothing */
    TREE_FRAME_LEAVE, /* up: nothing: you have been silent for too long, I end */
    TREE_FRAME_LIMIT
};

#endif
