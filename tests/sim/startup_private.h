/* startup_private.h - shared by the files of the world of starts only. */
#ifndef SIM_STARTUP_PRIVATE_H
#define SIM_STARTUP_PRIVATE_H

#include "tests/sim/startup_world.h"

#define NOT_GREETED (-9)

struct conn {
    struct conn *next;
    struct proc *child, *parent;
    int link;         /* its name at the parent */
    bool open[2];     /* as the child sees it, as the parent does */
    bool reset[2];    /* what was under way downwards, upwards, is lost */
    bool leaves;      /* its child has ended: no surprise */
    bool cut;         /* nothing gets through */
    bool stranger;    /* its child is no daemon of the job */
    uint64_t last[2]; /* when what was sent last downwards, upwards, comes */
};

enum agent_event { AGENT_STARTED, AGENT_FAILED, AGENT_ENDED };
struct note {
    enum agent_event what;
    int position, status;
};

typedef void (*task_fn)(struct proc *proc, void *argument, uint64_t number);

/* ---- startup_world.c ---- */

struct proc *proc_create(struct world *world, int position);
/* Runs it as soon as the process is free and not stopped; never when it is dead. */
void proc_post(struct proc *proc, task_fn function, void *argument, uint64_t number);
void proc_spend(struct proc *proc, uint64_t ns);
void proc_exit(struct proc *proc);
struct conn *conn_create(struct proc *child, struct proc *parent);
void conn_send(struct conn *conn, bool upwards, const void *data, size_t bytes);
void conn_close(struct conn *conn, bool upwards); /* by the end below, or the one above */
void agent_start(struct proc *starter, int position);
void agent_stop(struct proc *starter, int position);
void *world_alloc(struct world *world, size_t bytes); /* zeroed, until world_destroy: also after a run that failed */
uint64_t world_chance(struct world *world, uint64_t least, uint64_t most); /* 0 where nothing is left to chance */

/* ---- startup_driver.c: what ncclxd and ncclxrun do around their cores ---- */

void driver_begin(struct proc *proc);
/* What a frame stands for: of the order to launch only the beginning is carried about. */
size_t driver_weight(const struct world *world, const unsigned char *data, size_t bytes);
void driver_connected(struct proc *proc);
void driver_frame(struct proc *proc, struct conn *conn, bool upwards, const void *data, size_t bytes);
void driver_closed(struct proc *proc, struct conn *conn, bool upwards);
void driver_tick(struct proc *proc);
void driver_pump(struct proc *proc);
void driver_release(struct proc *proc);
void driver_user_ends(struct proc *front, void *unused, uint64_t at_once);
void driver_greet_falsely(struct conn *conn, uint64_t job);
bool driver_has_greeted(const struct proc *proc, int position);

#endif
