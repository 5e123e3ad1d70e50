/* process.h - what is truly per process. Tests may replace it. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_owned;
struct bootstrap;
struct ncclx_rt;

enum base_process_state { PROCESS_NEW, PROCESS_INITIALIZING, PROCESS_READY, PROCESS_FINALIZED };

struct ncclx_process {
    struct ncclx_rt *rt;   /* the process' rank once ready */
    atomic_int state;      /* enum base_process_state */
    atomic_bool forked;    /* true in a forked child */
    struct bootstrap *client; /* connected by a start that failed later; the next one goes on with it */
    struct base_owned *owned; /* mappings that a forked child must not keep, under owned_lock */
    uint64_t *owned_fds;      /* and descriptors: a bit each */
    size_t owned_words;
    pthread_mutex_t owned_lock;
};

extern struct ncclx_process ncclx_process;

/* Installs the fork handlers, once. */
int base_process_init(void);
/* Descriptors and mappings that a forked child must not hold: the child's fork handler closes and unmaps them. */
int base_process_own_fd(int fd);
/* Closes it, owned or not: no child that is forked at that moment keeps it. */
void base_process_close(int fd);
/* How many descriptors are open; if_unknown where that cannot be seen. */
unsigned base_process_descriptors(unsigned if_unknown);
int base_process_own_mapping(void *start, size_t bytes);
void base_process_disown_mapping(void *start);

#endif
