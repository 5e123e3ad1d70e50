/* starter.h - brings daemons up on other hosts: the command for each, its start order, and the agents that run.
 *
 * One agent a host (ssh, or what the user names), or one srun for all hosts that are wanted at about the same time. */
#ifndef LAUNCHER_STARTER_H
#define LAUNCHER_STARTER_H

#include "launcher/order.h"

#include <event2/event.h>
#include <sys/types.h>

struct starter;

struct starter_events {
    void (*started)(void *arg, int position);
    void (*failed)(void *arg, int position, const char *why);
    void (*ended)(void *arg, int position, int status, const char *output);
    /* A line that the daemon of this position has printed; -1: that of one of several. */
    void (*line)(void *arg, int position, const char *text);
};

/* The order is that of this place (the front's knows all hosts) and must last. `hosts`: that many may be started. Null
 * when memory is short. */
struct starter *starter_open(struct event_base *base, const struct order *order, int hosts,
                             const struct starter_events *events, void *arg);
/* contact: where the place above it listens. */
void starter_start(struct starter *starter, int position, const char *contact);
/* Its daemon has greeted: what it prints from now on is for the user. */
void starter_greeted(struct starter *starter, int position);
/* The process that has started this one alone is still there. */
bool starter_runs(const struct starter *starter, int position);
void starter_stop(struct starter *starter, int position);
/* Its daemon is lost: what it has left there is ended, if it can be reached. */
void starter_sweep(struct starter *starter, int position);
/* See agents_reaped, agents_reap, agents_count, agents_list and agents_close. */
bool starter_reaped(struct starter *starter, pid_t pid, int status);
void starter_reap(struct starter *starter);
int starter_count(const struct starter *starter);
void starter_list(const struct starter *starter, pid_t *pids);
void starter_close(struct starter *starter, int patience_ms);

#endif
