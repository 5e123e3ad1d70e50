/* agent.h - the processes that bring daemons up on other hosts (ssh, srun, or what the user names), as children of this
 * one.
 *
 * An agent reads the start order from its standard input, which then stays open: its end tells the other host that
 * nobody is left here. What it prints, before its daemon has greeted, is kept for the case that it fails; afterwards it
 * is handed on line by line. Agents die with this process.
 *
 * Each takes two descriptors, or one when many are to come: then one socket is its input and what it prints. That is
 * not the rule because srun looks whether its standard error still has a reader by reading from it, and would take a
 * byte of the input. */
#ifndef LAUNCHER_AGENT_H
#define LAUNCHER_AGENT_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agents;

struct agents_events {
    /* Its process has ended: status as waitpid gives it, and its last output, "" if it had none. */
    void (*ended)(void *arg, int tag, int status, const char *output);
    void (*line)(void *arg, int tag, const char *line);
};

/* How many descriptors each of so many agents takes, when this process may have `limit`. */
int agents_descriptors(int expected, long limit);
/* `expected`: that many may run at a time. Null when memory is short. */
struct agents *agents_open(struct event_base *base, int expected, const struct agents_events *events, void *arg);
/* Null environment: this process' own. NCCLX_ERR_BOOTSTRAP says why the command cannot be run. The input is copied. */
int agents_start(struct agents *agents, int tag, char *const *argv, char *const *environment, const void *input,
                 size_t bytes);
/* What it prints from now on is handed on; what it has printed is forgotten. */
void agents_show(struct agents *agents, int tag);
/* Tells it to end: it gets no more input, and TERM. */
void agents_stop(struct agents *agents, int tag);
/* True when the process, which waitpid has returned, was an agent. */
bool agents_reaped(struct agents *agents, pid_t pid, int status);
/* The same for all that have ended; other children are left alone. */
void agents_reap(struct agents *agents);
int agents_count(const struct agents *agents);
/* Their processes, agents_count of them. */
void agents_list(const struct agents *agents, pid_t *pids);
/* Lets all end by themselves for so long, then ends them; waits for that. No handler is called. */
void agents_close(struct agents *agents, int patience_ms);

#endif
