/* child.h - starts one rank: its own process group, clean signals and descriptors, bound, dead when the daemon dies. */
#ifndef LAUNCHER_CHILD_H
#define LAUNCHER_CHILD_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Where a program may be: every place that PATH names, tried in order by the child itself. */
struct child_program {
    char **places;    /* ends with null */
    atomic_int found; /* the place that could be executed last time; several threads start ranks of one program */
};

struct child {
    struct child_program *program;
    char *const *argv;
    char *const *environment;
    const char *directory; /* null: where the daemon is */
    int stdio[3];
    const void *cpus; /* kernel cpu set; null: not bound */
    size_t cpus_bytes;
    struct rlimit files; /* the user's limit, which the daemon has raised for itself */
};

enum child_step { CHILD_STARTED, CHILD_FORK, CHILD_DIRECTORY, CHILD_BIND, CHILD_PROGRAM };

int child_find_program(const char *name, char *const *environment, struct child_program *program);
void child_release_program(struct child_program *program);
/* CHILD_STARTED and *pid, or the step that failed with its errno in *error. */
enum child_step child_start(const struct child *child, pid_t *pid, int *error);

#endif
