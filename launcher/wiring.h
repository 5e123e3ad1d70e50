/* wiring.h - drives one place in the tree of daemons (tree.h): its links to the places above and below, the agents that
 * start those below, and time. ncclxrun has one, and each ncclxd. */
#ifndef LAUNCHER_WIRING_H
#define LAUNCHER_WIRING_H

#include "launcher/order.h"

#include <event2/event.h>
#include <sys/types.h>

struct wiring;

struct wiring_options {
    struct event_base *base;
    const struct order *order; /* must last; of the front: position TREE_FRONT */
    struct tree_self self;     /* without contact */
    int parent_fd;             /* the link to the place above, or -1: it is connected to */
    bool local_root;           /* (front) position 0 is a child process: start_local */
};

struct wiring_events {
    /* A frame that is not the tree's; a code other than NCCLX_SUCCESS (with its detail recorded) breaks the link. */
    int (*frame)(void *arg, int link, const struct frame *frame);
    /* A link that was full takes more. */
    void (*drained)(void *arg, int link);
    /* Nothing comes from this link any more. */
    void (*closed)(void *arg, int link);
    void (*say)(void *arg, const char *text);
    /* The process at the other end of a link within this host, or 0. Null: there are no such links. */
    pid_t (*neighbour)(void *arg);
    /* See tree.h for when these come. */
    void (*end_local)(void *arg, bool at_once, bool orphan);
    void (*finished)(void *arg);
    /* The daemon's only: the place above cannot be reached. */
    void (*unreachable)(void *arg, const char *why);
    /* The front's only. */
    int (*start_local)(void *arg, int *fd);
    void (*node)(void *arg, int position, const char *node, const void *description, size_t bytes);
    void (*ready)(void *arg);
    void (*report)(void *arg, const struct tree_failure *failure);
    void (*all_ended)(void *arg);
};

/* Begins at once: events may come before it returns. */
int wiring_open(const struct wiring_options *options, const struct wiring_events *events, void *arg,
                struct wiring **wiring);
/* Lets agents end for so long; closes all links. */
void wiring_close(struct wiring *wiring, int patience_ms);

/* Links are those of tree.h. To a link that is closed nothing is sent. */
void wiring_send(struct wiring *wiring, int link, struct frame_writer *writer);
void wiring_send_empty(struct wiring *wiring, int link, uint8_t type);
/* A frame that came over another link. */
void wiring_pass(struct wiring *wiring, int link, const struct frame *frame);
/* To all below. */
void wiring_spread(struct wiring *wiring, const struct frame *frame);
int wiring_below(const struct wiring *wiring); /* how many links there are below, open or not */
/* More than LINK_HIGH_WATER waits to be sent: on link, or on any of those below. `drained` comes later. */
bool wiring_full(const struct wiring *wiring, int link);
bool wiring_full_below(const struct wiring *wiring);
/* Stops or goes on with taking frames in: from the place above, or from those below. */
void wiring_hold_above(struct wiring *wiring, bool hold);
void wiring_hold_below(struct wiring *wiring, bool hold);
void wiring_flush(struct wiring *wiring, int timeout_ms);

/* See tree.h. */
void wiring_refuse(struct wiring *wiring, const char *why);
void wiring_local_ended(struct wiring *wiring);
void wiring_end(struct wiring *wiring, bool at_once);
void wiring_suspend(struct wiring *wiring);
const struct tree *wiring_tree(const struct wiring *wiring);

/* Children of this process. */
bool wiring_reaped(struct wiring *wiring, pid_t pid, int status);
void wiring_reap(struct wiring *wiring);
int wiring_agents(const struct wiring *wiring);
void wiring_list_agents(const struct wiring *wiring, pid_t *pids);
/* The child that start_local made. */
void wiring_local_died(struct wiring *wiring, int status);

#endif
