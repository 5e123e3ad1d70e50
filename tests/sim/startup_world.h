/* startup_world.h - the start of a whole job in virtual time: the real cores of the tree (launcher/tree) and of the
 * exchange of keys (bootstrap/kvx) in the place of every ncclxd and of ncclxrun, with agents, connections and ranks
 * that are only times and fates.
 *
 * A daemon's life: its agent is run, it begins, connects upwards, greets; when the front has heard of all, the order to
 * launch goes down; a daemon starts its PMIx server, registers the job, forks its ranks; they initialise, call a fence
 * without data, fetch the cards of some peers (direct modex), run, and end; the end goes up, and the order to leave
 * goes down. Everything costs the time that struct world_costs says, of the one process that does it: a process does
 * one thing after another.
 *
 * What may go wrong is chosen by the scenario (startup.c) by fates of hosts, and by world_crash, world_stop and others
 * at any time. The scale model (startup_scale.c) lets nothing go wrong, and counts.
 */
#ifndef SIM_STARTUP_WORLD_H
#define SIM_STARTUP_WORLD_H

#include "bootstrap/kvx/kvx.h"
#include "launcher/tree.h"
#include "tests/sim/engine.h"

enum fate {
    FATE_GOOD,
    FATE_DETACHES, /* good: the agent ends with status 0 at once */
    FATE_NO_AGENT, /* cannot be run */
    FATE_CODE,     /* the agent ends with status 255 */
    FATE_HANGS,    /* the agent runs, nothing comes of it */
    FATE_NEVER,    /* the agent ends with status 0, nothing comes of it */
    FATE_VERSION,  /* another version of ncclx */
    FATE_REFUSES,  /* it connects, and cannot go on */
    FATE_COUNT
};

/* Nanoseconds of the process that does it; all zero is good for tests of correctness. */
struct world_costs {
    uint64_t agent_fork;                                   /* for the starter: running an agent */
    uint64_t agent;                                        /* from then until the daemon is run on its host, elapsed */
    uint64_t daemon_start;                                 /* until it listens and connects */
    uint64_t accept, connect;                              /* a connection, with its handshake */
    uint64_t receive, send;                                /* a message */
    uint64_t kilobyte;                                     /* of a message, each way */
    uint64_t order_rank;                                   /* reading the launch order: for each rank of the job */
    uint64_t server_init;                                  /* PMIx_server_init */
    uint64_t register_fixed, register_rank, register_node; /* PMIx_server_register_nspace */
    uint64_t register_far;                                 /* for each rank instead, of a job that is not mapped */
    uint64_t register_client;                              /* for each rank of the node */
    uint64_t first_client_rank;                            /* as the first rank connects: for each of the job */
    uint64_t fork_rank;                                    /* for each rank of the node */
    uint64_t rank_init;                                    /* from exec until the rank calls the fence, elapsed */
    uint64_t rank_init_node;                               /* for each node of the map: a rank reads it */
    uint64_t rank_init_far;                                /* for each rank instead, of a job that is not mapped */
    uint64_t rank_init_more; /* for each rank beyond the first that shares a core with it */
    uint64_t upcall;         /* the daemon, for each call of a local rank and its answer */
};

struct world_times { /* when the last did it */
    uint64_t daemons_up, ready, launched, registered, forked, fenced, fetched, ended, finished;
};

struct proc;
struct world;

struct world_setup {
    struct tree_shape shape;
    enum tree_start start;
    int window;
    uint64_t start_ns, silence_ns, end_ns;
    int ranks_a_node; /* -1: 0 to 3, by chance */
    int cards;        /* each rank fetches the cards of so many peers */
    int cores;        /* of a node */
    size_t card_bytes;
    size_t description_bytes; /* of a node; 0: by chance, also different ones */
    size_t order_bytes_rank;  /* of the launch order, beyond a fixed part */
    bool chance;              /* delays by chance, traffic, runs of some length; else only costs and `latency` */
    uint64_t (*latency)(const struct world *world, int from, int to); /* null: by chance */
    struct world_costs costs;
};

struct conn;

struct proc { /* a daemon, or the front */
    struct world *world;
    int position, child_count;
    bool alive, stopped, exited;
    struct tree *tree;
    struct kvx *kvx;
    struct conn *up, **down;
    int agents; /* that it has under way */
    uint64_t busy_until, tick_at, pause;
    struct task *tasks, **last_task; /* that wait until it is free, or runs again */
    bool wakes, launched, ending, local_ended, pumping;
    int waiting, busy;               /* ranks that have not called the fence; that have not all cards */
    uint64_t messages, bytes, steps; /* counts; the longest chain of messages that has led here */
};

struct host {
    enum fate fate;
    struct proc *daemon;  /* once it has begun */
    struct proc *starter; /* whose agent it is; null: none under way */
    bool agent_killed, cut;
    bool clings;    /* its ranks do not end when they are told to */
    unsigned truth; /* bits of causes that are true of it */
    int told;       /* TREE_NODE actions */
};

struct world {
    struct sim *sim;
    struct world_setup setup;
    struct kvx_map *map;
    struct proc *front;
    struct host *hosts;
    struct conn *conns;
    int *home, *first_rank; /* of a rank; of a daemon */
    int ranks;
    struct world_times times;
    uint64_t messages, bytes, steps; /* steps: until the fence is over */
    struct proc *starter_of_all;     /* TREE_START_ONCE */
    unsigned truth_all;              /* of that agent */
    bool everybody_runs;
    int everybody_left;
    int reports, ready, all_ended, rank_failures; /* at the front */
    struct tree_failure reported;
    uint64_t reported_at, front_finished, end_at; /* when the front began the end */
    int height;                                   /* of the tree */
    int unended;                                  /* what TREE_FINISHED said at the front */
    bool unlike;                                  /* nodes have descriptions of their own */
    bool rank_killed;                             /* a rank failed by itself */
    int noticed;                                  /* the last whose connection has closed before the end had begun */
    int64_t held_before, held_most;               /* bytes; when all ranks had ended */
    struct parcel *parcels;
    struct chunk *chunks;
};

struct world *world_create(struct sim *sim, const struct world_setup *setup);
void world_begin(struct world *world); /* ncclxrun is started */
void world_destroy(struct world *world);
int64_t world_held(void); /* bytes of the cores */

/* ---- What may happen ---- */

struct proc *world_proc(struct world *world, int position); /* null: not there, or no more */
void world_crash(struct proc *proc);
/* It does nothing for so long; 0: for ever. */
void world_stop(struct proc *proc, uint64_t duration);
/* The user stops ncclxrun, which says so before. */
void world_suspend(struct proc *front, uint64_t duration);
/* No message between the host and the one above gets through any more, and nobody is told. */
void world_cut(struct world *world, int position);
void world_user_ends(struct world *world, bool at_once);
/* Somebody greets the place above `position` who is no daemon of this job, or one too many. */
void world_stranger(struct world *world, int position, bool other_job);

#endif
