/* server.h - the PMIx server of a node: what ranks learn of their job, and what they ask for.
 *
 * Owns: libpmix in this process. Never: starts or ends a process; decides anything about the job.
 * Threads: all functions are for the daemon's one thread. PMIx calls back on its own thread, which touches only the
 * state behind the server's lock; what the daemon must act on is queued and handed over by server_dispatch. */
#ifndef LAUNCHER_SERVER_H
#define LAUNCHER_SERVER_H

#include "launcher/message.h"

#include <stdbool.h>

struct server;

struct server_options {
    const struct message_launch *launch;
    const bool *oversubscribed; /* each node */
    const char *scratch;        /* private directory */
    const char *segment;        /* path of the memory that ranks of this node share */
    void *topology;             /* hwloc_topology_t, loaded */
};

struct server_events {
    void (*aborted)(void *arg, int rank, int code, const char *message);
    void (*logged)(void *arg, int rank, const char *text);
};

int server_start(const struct server_options *options, const struct server_events *events, void *arg,
                 struct server **server);
/* Becomes readable when server_dispatch has something to do. */
int server_fd(const struct server *server);
void server_dispatch(struct server *server);
/* Adds the variables that lead this rank to the server, as NAME=value allocated with malloc; the array ends with null
 * and is freed with server_free_environment. */
int server_environment(struct server *server, int rank, char ***environment);
void server_free_environment(char **environment);
/* Has it connected; has it said goodbye since. */
bool server_joined(struct server *server, int rank);
bool server_left(struct server *server, int rank);
/* The process is dead: fences that wait for it fail. */
void server_rank_died(struct server *server, int rank);
/* Asks every rank of this node to print what it waits for. */
void server_dump(struct server *server);

#endif
