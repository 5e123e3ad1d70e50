/* child_pool.h - threads that start ranks side by side. A thread that vforks sleeps until its child has called exec;
 * several of them keep all cores busy. They stay until the process ends, because a child's parent-death signal is sent
 * when the thread that made it ends. */
#ifndef LAUNCHER_CHILD_POOL_H
#define LAUNCHER_CHILD_POOL_H

#include "launcher/child.h"

#include <stdbool.h>

struct child_pool;

struct child_job {
    struct child child;
    bool tried; /* false: an earlier one failed first */
    enum child_step step;
    pid_t pid;
    int error;
};

/* At most `jobs` threads are of use. */
int child_pool_open(int jobs, struct child_pool **pool);
/* Returns when all have been started, or one could not be and those under way have ended. */
void child_pool_run(struct child_pool *pool, struct child_job **jobs, int count);

#endif
