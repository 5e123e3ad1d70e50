/* message.h - what ncclxrun and ncclxd say to each other, as structures. Pure: encoding and decoding only.
 *
 * Ranks are named by their numbers, which tell those of all jobs apart (see jobs.h); a job by the number of its first
 * rank. */
#ifndef LAUNCHER_MESSAGE_H
#define LAUNCHER_MESSAGE_H

#include "launcher/frame.h"
#include "launcher/map.h"

#include <stdbool.h>
#include <stdint.h>

enum message_type {
    /* from ncclxd */
    MESSAGE_STARTED = 1,  /* u32 job, u8: no more will be, u32 count, then u32 number, u32 pid each (0: it will not) */
    MESSAGE_OUTPUT,       /* u32 number, u8 descriptor (1 or 2), bytes; no bytes: its end */
    MESSAGE_EXITED,       /* struct message_exited */
    MESSAGE_ABORTED,      /* u32 number, u32 code, text */
    MESSAGE_REFUSED,      /* u32 job or MESSAGE_NO_JOB, u32 exit status, text: it cannot start; no job: all must end */
    MESSAGE_TROUBLE,      /* text: something to tell the user */
    MESSAGE_INPUT_WANTED, /* u8: every reader has taken what was sent; 0: there was none */
    MESSAGE_NODE,         /* struct message_node: not sent by itself, but as the tree's description of a node */
    MESSAGE_SPAWN,        /* struct spawn_request: a rank wants another job */
    MESSAGE_DYING,        /* nothing: a rank is past all help, and how it ended will be reported */
    /* from ncclxrun */
    MESSAGE_LAUNCH = 65,  /* struct message_launch */
    MESSAGE_SIGNAL,       /* u32 signal for every rank */
    MESSAGE_DUMP,         /* nothing */
    MESSAGE_INPUT,        /* bytes; none: the end */
    MESSAGE_OUTPUT_CLOSED, /* u8 descriptor: nobody reads it any more */
    MESSAGE_SPAWNED,      /* struct spawn_answer, to the daemon of the rank that asked */
    MESSAGE_CANCEL,       /* u32 job: kill what runs of it */
    MESSAGE_RETIRE,       /* u32 job: it is over */
    MESSAGE_COMPLETE,     /* nothing: all ranks have ended, and no more will come */
    /* between neighbours in the tree of daemons */
    MESSAGE_KVX = 129 /* the rest of the frame is a message of bootstrap/kvx */
};

#define MESSAGE_NO_JOB UINT32_MAX

struct message_node {
    struct map_cpu *cpus; /* to be freed with base_free(AREA_LAUNCHER, ...) */
    int cpu_count;
    struct map_gpu *gpus; /* likewise; null: none */
    int gpu_count;
    int file_limit;    /* descriptors the daemon may hold */
    int process_limit; /* processes its user may have; 0: no limit known */
};

enum message_input { MESSAGE_INPUT_NONE, MESSAGE_INPUT_DIRECT, MESSAGE_INPUT_FORWARDED };

struct message_app {
    char **argv;           /* ends with null */
    const char **settings; /* NAME=value, or =NAME to leave it out; setting_count of them */
    int setting_count;
    const char *directory; /* null: the launcher's */
};

struct message_launch {
    const char *job;      /* its name, which is that of its PMIx namespace */
    int first;            /* the number of its rank 0 */
    int parent;           /* the number of the rank that asked for it; -1: the user did */
    bool notify;          /* which wants to hear of its end */
    const char **nodes;   /* names, in the job's order */
    int *positions;       /* of each node's daemon in the tree: 0 is the root, the parent of p is (p - 1) / radix */
    bool *oversubscribed; /* each node: more ranks than hardware threads */
    int node_count, radix;
    int node; /* which of them this daemon is: not sent, the receiver finds itself by its position */
    struct message_app *apps;
    int app_count;
    char **environment;     /* of the ranks, ends with null */
    struct map_rank *ranks; /* the whole job; cpus point into storage */
    int rank_count;
    uint64_t kill_grace_ns;
    enum message_input input;
    int input_rank; /* -1: all */
    void *storage;  /* what the texts point into, when decoded */
};

struct message_exited {
    int number, pid;
    int status;  /* as waitpid gives it */
    bool joined; /* called ncclx_init (connected to the server) */
    bool left;   /* and ncclx_finalize */
    bool told;   /* the ranks of its node had been told to end before */
};

void message_write_node(struct frame_writer *writer, const struct message_node *node);
int message_read_node(const struct frame *frame, struct message_node *node);
void message_write_launch(struct frame_writer *writer, const struct message_launch *launch);
/* The frame's payload is copied: launch stands alone. Each position below node_count belongs to one node. */
int message_read_launch(const struct frame *frame, struct message_launch *launch);
void message_release_launch(struct message_launch *launch);
void message_write_exited(struct frame_writer *writer, const struct message_exited *exited);
int message_read_exited(const struct frame *frame, struct message_exited *exited);
/* For frames of one job: u32 job, and nothing else. */
int message_read_job(const struct frame *frame, int *first);
/* "rank 3", of another job than the first "rank 3 of NAME". */
void message_name_rank(const struct message_launch *launch, int rank, char *text, size_t bytes);
#define MESSAGE_RANK_BYTES 300
/* A frame that is not what its type says. */
int message_malformed(const struct frame *frame);

#endif
