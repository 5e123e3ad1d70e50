/* window_world.h - three ranks with windows over the stand-in for pml: each is a thread. Active messages are queues that the ranks' pollers
 * empty, in order, never in the sender's call. */
#ifndef TESTS_UNIT_WINDOW_WORLD_H
#define TESTS_UNIT_WINDOW_WORLD_H

#include "tests/unit/pml_standin.h"

#define RANKS 3
#define SLOTS 5

struct parcel;

struct rank {
    struct ncclx_rt rt;
    struct ncclx_comm comm;
    pthread_t thread;
    pthread_mutex_t guard;
    struct parcel *first, *last;
};

extern struct rank ranks[RANKS];

/* Ends the test program: the other ranks may wait for this one, which cannot go on, at a barrier or for a signal. */
void expect_at(bool good, const char *condition, const char *file, int line);
#define EXPECT(condition) expect_at(condition, #condition, __FILE__, __LINE__)

/* Runs the function on each rank, with its lock held; everything has to be given back at its end. */
void run_with(void (*function)(struct rank *rank), enum pml_access of_shareable, enum pml_access of_plain);
void run_all_ways(void (*function)(struct rank *rank));
/* A barrier of all ranks. Messages are answered meanwhile where a rank has an agent. */
int meet(struct ncclx_comm *comm);
/* The same with the locks held: a rank that does nothing else stays silent. */
void meet_silently(void);
/* A base_poll_fn, of a rank. */
int poll_messages(void *rank);
int create(struct ncclx_comm *comm, void *memory, size_t bytes, size_t unit, size_t slots, void **base, struct ncclx_win **win);
/* Over `memory`; null: an allocated one. */
struct ncclx_win *make_window(struct rank *rank, void *memory, size_t bytes, size_t unit, char **base);

#endif
