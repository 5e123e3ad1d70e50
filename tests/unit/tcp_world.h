/* tcp_world.h - rank 0 of a world, and peers behind sockets which are the test itself: connected and known, with the
 * other ends of all sockets in its hands. */
#ifndef TCP_WORLD_H
#define TCP_WORLD_H

#include "tests/unit/pml_world.h"

#include "pml/lanes/private.h"
#include "pml/tcp/lane.h"

#define TCP_WORLD_LANES 2 /* of each direction */

/* A peer, and its ends; -1: none. */
struct tcp_peer {
    struct pml_connection *connection; /* null: rank 0 has none to it */
    struct tcp_channel *channel;
    int control;
    int to[TCP_WORLD_LANES], from[TCP_WORLD_LANES]; /* lanes of its own, and of rank 0's */
};

struct tcp_world {
    struct world world;
    struct tcp *tcp; /* of rank 0, which makes no connection by itself */
    struct tcp_peer peer[WORLD_MAX];
};

/* One at a time. Failures end the program. */
void tcp_world_open(struct tcp_world *tcp_world, int size, char **environment);
void tcp_world_close(struct tcp_world *tcp_world);
/* Messages above 64 bytes are no eager ones, all receives announce themselves, and no lanes are open or agreed on. */
void tcp_world_connect(struct tcp_world *tcp_world, int rank);
/* The peer opens a lane. */
void tcp_world_accept(struct tcp_world *tcp_world, int rank, unsigned lane, uint32_t life);
/* Rank 0's end of a new pair of sockets; *theirs, if there was one, is closed. */
int tcp_world_pair(int *theirs);
/* As much as fits; to -1: nothing. */
void tcp_world_say(int fd, const void *data, size_t bytes);
/* Rank 0 takes all that has come from the peer, which takes, and forgets, what it gets. */
void tcp_world_look(struct tcp_world *tcp_world, int rank);

#endif
