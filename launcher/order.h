/* order.h - the order with which a daemon is started: who it is, how to reach the place above it, and whom it starts
 * itself. It comes over standard input, or over the socket that the front and its daemon on the same host share; never
 * in arguments or the environment, which others can read: it holds the secret of the job. Pure. */
#ifndef LAUNCHER_ORDER_H
#define LAUNCHER_ORDER_H

#include "bootstrap/oob/oob.h"
#include "launcher/frame.h"
#include "launcher/tree.h"

#define ORDER_FRAME 128 /* the frame's type */
#define ORDER_LIMITS 16 /* of processes, as Linux numbers them */

struct order_host {
    int position;
    const char *name;    /* of the node; null: what it calls itself */
    const char *address; /* what the agent is told: [USER@]HOST */
};

/* Where a place listens: oob_addresses_format. */
struct order_contact {
    int position;
    const char *text;
};

struct order {
    const char *version; /* of ncclx */
    const char *job;
    unsigned char secret[OOB_KEY_BYTES];
    int position;             /* -1: that of the host in the list that is called what Slurm calls this node */
    struct tree_options tree; /* with the place's own position once order_settle has been called */
    uint16_t port_low, port_high;
    const char *networks; /* to listen on; null: all */
    struct order_contact *contacts; /* of those above: none when the order comes over the link itself */
    int contact_count;
    struct order_host *hosts; /* this place, and those below it that it starts */
    int host_count;
    const char *daemon;       /* path of ncclxd on all hosts */
    char **agent;             /* words of the command that starts those below, ends with null; none: another does */
    char **agent_environment; /* ends with null; none: the daemon's own */
    char **environment;       /* NAME=value for the daemon, ends with null */
    const char *directory;    /* where the user is */
    uint32_t umask;
    uint64_t limits[ORDER_LIMITS][2]; /* soft and hard */
    bool slurm;                       /* (front) srun starts all. Not sent */
    void *storage;                    /* what the texts point into, when decoded */
};

void order_write(struct frame_writer *writer, const struct order *order);
/* NCCLX_ERR_BOOTSTRAP: another version, which is named. NCCLX_ERR_TRANSPORT: no order. The payload is copied. */
int order_read(const struct frame *frame, struct order *order);
void order_release(struct order *order);
/* Finds the own position by the name of this node, if it is not given. NCCLX_ERR_BOOTSTRAP: it is not in the list. */
int order_settle(struct order *order, const char *node);
/* Null: not in the list. */
const struct order_host *order_find(const struct order *order, int position);
/* The order for one place below, without the contact, from that of the place above it: hosts are those below it, to be
 * freed with base_free(AREA_LAUNCHER, ...). All else is shared. */
int order_derive(const struct order *order, int position, struct order *derived);

#endif
