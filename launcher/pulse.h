/* pulse.h - whether a process of this host that says nothing lives: where very many share few cores it may wait for one
 * longer than the silence that a neighbour on another host is allowed. */
#ifndef LAUNCHER_PULSE_H
#define LAUNCHER_PULSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pulse {
    uint64_t cpu_ns; /* what it had used at the last look */
};

/* It has run since the last look, or would if there were a core. Not when it is stopped, or waits for something. */
bool pulse_felt(struct pulse *pulse, pid_t pid);
/* It does not run because it was stopped. */
bool pulse_is_stopped(pid_t pid);
/* The only child, or the first one; 0: there is none, or the system does not tell. */
pid_t pulse_child_of(pid_t pid);

#endif
