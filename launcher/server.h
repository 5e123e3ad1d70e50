/* server.h - the PMIx server of a node: what ranks learn of their job, and what they ask for.
 *
 * It serves ranks of several jobs, each of which is a namespace of PMIx. Ranks are named by their numbers (jobs.h).
 *
 * Owns: libpmix in this process. Never: starts or ends a process; decides anything about the job.
 *
 * What concerns other nodes goes from daemon to daemon along the tree, as messages that only servers read: the driver
 * takes them from `send`, carries them, each way in order, and gives them to server_receive on the other side. A
 * daemon without ranks has a server too, which passes on what is not for it and starts no libpmix until ranks come.
 *
 * Back pressure: while a link is full the driver may stop reading from children, but must always read from the parent
 * when the links to its children take data (see bootstrap/kvx/kvx.h).
 *
 * Threads: all functions are for the daemon's one thread, and all events come on it, from within server_dispatch,
 * server_receive, server_link_lost, and server_rank_died. PMIx calls back on its own thread, which touches only the
 * state behind the server's locks; what the daemon must act on is queued. */
#ifndef LAUNCHER_SERVER_H
#define LAUNCHER_SERVER_H

#include "launcher/message.h"
#include "launcher/spawn.h"

#include <stdbool.h>

#define SERVER_PARENT (-1)                              /* a link; children are 0, 1, ... in the order of positions */
#define SERVER_MAX_MESSAGE (((size_t)16 << 20) + 65536) /* longest for a neighbour */

/* Of larger jobs libpmix, and who asks it by PMIx_Resolve_nodes, is told this node's map only, and each rank's host. */
#define SERVER_MAP_NODES 1024

struct server;

struct server_options {
    const struct message_launch *launch; /* the first job, with every node's place in the tree; above position 0 nobody
                                          * has a server. It must last */
    const char *scratch;                 /* private directory; must last */
    void *topology;                      /* hwloc_topology_t, loaded; must last */
    const char *segment;                 /* path of the memory that ranks of that job share on this node */
};

struct server_events {
    void (*aborted)(void *arg, int number, int code, const char *message);
    void (*logged)(void *arg, int number, const char *text);
    /* A message for the neighbour: SERVER_PARENT, or a child's index. Valid during the call. */
    void (*send)(void *arg, int link, const void *data, size_t bytes);
    /* A rank of the job has asked for this signal to the process group of a rank of this node. */
    void (*signal)(void *arg, int rank, int number);
    /* A rank of this node wants another job: a frame of type MESSAGE_SPAWN. server_spawned answers. */
    void (*spawn)(void *arg, const void *frame, size_t bytes);
    /* Something that the user should read; the job goes on. */
    void (*trouble)(void *arg, const char *text);
    /* The server can no longer keep its promises: end the job. */
    void (*failed)(void *arg, const char *text);
};

int server_start(const struct server_options *options, const struct server_events *events, void *arg,
                 struct server **server);
/* Another job; its launch must last until server_retire. Nothing that concerns it may have come from or gone to other
 * nodes before. */
int server_add(struct server *server, const struct message_launch *launch, const char *segment);
/* All ranks of a job have ended, and everybody is told; not of the first. */
void server_retire(struct server *server, const struct message_launch *launch);
/* The node of a rank of any job; -1: there is none. */
int server_node(struct server *server, int number);
/* To one of its ranks. */
void server_spawned(struct server *server, const struct spawn_answer *answer);
/* Becomes readable when server_dispatch has something to do, be it that a time limit has passed. */
int server_fd(const struct server *server);
void server_dispatch(struct server *server);
/* A message of the server of a neighbour. NCCLX_ERR_TRANSPORT: that one broke the protocol, its link is to be closed
 * and reported lost; NCCLX_ERR_NO_MEM: end the job. */
int server_receive(struct server *server, int link, const void *data, size_t bytes);
/* The link has closed, or its daemon is known to be dead: whoever waits for ranks there, or beyond, is told. Comes once
 * a link, and nothing may be received from it any more. */
void server_link_lost(struct server *server, int link);
/* Adds the variables that lead this rank to the server, as NAME=value allocated with malloc; the array ends with null
 * and is freed with server_free_environment. */
int server_environment(struct server *server, int number, char ***environment);
void server_free_environment(char **environment);
/* Has it connected; has it said goodbye since. */
bool server_joined(struct server *server, int number);
bool server_left(struct server *server, int number);
/* The process is dead: fences that wait for it fail. */
void server_rank_died(struct server *server, int number);
/* Asks every rank of this node to print what it waits for. */
void server_dump(struct server *server);

#endif
