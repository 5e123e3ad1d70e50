/* oob_world.h - endpoints in one process over real sockets, driven by hand: time passes when the test says so, so that
 * nothing waits for a deadline and none is missed on a busy machine. */
#ifndef TESTS_OOB_WORLD_H
#define TESTS_OOB_WORLD_H

#include "bootstrap/oob/oob.h"

#define WORLD_ENDS 40
#define WORLD_EVENTS 40
#define WORLD_LINES 64

/* An endpoint, what has happened to it, and what it said. */
struct end {
    struct oob *oob;
    struct oob_event events[WORLD_EVENTS]; /* other than requests for keys, which are answered by `keys` */
    int event_count;
    char lines[WORLD_LINES][256];
    int line_count;
    const unsigned char *(*keys)(uint32_t peer);
};

struct world {
    uint64_t now;
    struct end *ends[WORLD_ENDS];
    int end_count;
};

struct oob_identity world_identity(uint32_t position);
/* Null options: all defaults. Fails the test when it cannot. */
void world_open(struct world *world, struct end *end, const struct oob_identity *identity,
                const struct oob_options *options);
void world_close(struct world *world);
/* The port on which it listens, after oob_listen. */
uint16_t world_port(const struct end *end);
struct oob_address world_loopback(int family, uint16_t port);
struct oob_addresses world_addresses(const struct end *end, int family);

/* One round: everybody is dispatched once, after a moment in which the system can move bytes. */
void world_round(struct world *world);
/* Rounds until the condition holds: how many; -1: not within `most`. Virtual time stands still. */
int world_until(struct world *world, int most, bool (*condition)(const void *), const void *context);
/* Lets virtual time pass, with rounds on the way. */
void world_pass(struct world *world, uint64_t milliseconds);
bool world_has_event(const void *end);
/* The lines that contain the text. */
int world_count_lines(const struct end *end, const char *text);

/* A stranger's blocking socket to this port. */
int world_stranger(int family, uint16_t port);
/* Whether the other end has closed it, without waiting; drops what it has sent. */
bool world_was_dropped(int fd);
/* A socket that listens and never accepts; -1: this family is switched off here. */
int world_listening(struct oob_address address);
uint16_t world_bound_port(int fd);
int world_open_descriptors(void);

#endif
