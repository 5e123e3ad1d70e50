/* bootstrap - how a rank joins its job: the PMIx client, business cards, fences, and the names of keys that the launcher's
 * server and the ranks share.
 *
 * Owns: the PMIx client of the process. Never: moves user data, knows a communicator.
 * Threads: the rank's lock is held; PMIx calls back on its own thread, where only atomics of the rank are touched.
 */
#ifndef BOOTSTRAP_H
#define BOOTSTRAP_H

#include "runtime/base/base.h"

/* Keys of our own in the PMIx store. */
#define BOOTSTRAP_KEY_LAUNCHER "ncclx.launcher"      /* job, string: version of ncclxd; present only under it */
/* node or rank, string: the node's shared segment: "/proc/PID/fd/N", or with the memfd's name "/proc/PID/fd/N NAME" */
#define BOOTSTRAP_KEY_SEGMENT "ncclx.segment"
/* rank, string: the same, as the first rank of a node passes the launcher's on to other nodes */
#define BOOTSTRAP_KEY_NEIGHBOUR "ncclx.neighbour"
#define BOOTSTRAP_KEY_PLACES "ncclx.places"          /* job, string: who runs where, "node1=0-3;node2=4,6" */
#define BOOTSTRAP_KEY_OVERSUBSCRIBED "ncclx.oversub" /* node, bool: more ranks than cores allowed */
/* PMIx event codes of our own, sent by ncclxd to its ranks. */
#define BOOTSTRAP_EVENT_DUMP (-3001) /* print what you wait for */

/* Connects to the PMIx server and fills rt->job, or makes a job of one when no PMIX_* variable names a server. ERR_BOOTSTRAP when
 * one is named but cannot be reached, or has another version: one sentence. No exchange with other ranks takes place. */
int bootstrap_init(struct ncclx_rt *rt);
/* For a start that failed after bootstrap_init: the process stays connected, so that another start can go on from here, and an end
 * without one is noticed by the launcher. */
void bootstrap_leave(struct ncclx_rt *rt);
/* A barrier of the whole job without data. */
int bootstrap_fence(struct ncclx_rt *rt);
/* Publishes a value of this rank; visible to others after bootstrap_commit. key without prefix, at most 64 bytes. */
int bootstrap_put(struct ncclx_rt *rt, const char *key, const void *value, size_t bytes);
int bootstrap_commit(struct ncclx_rt *rt);
/* Waits at most timeout_ms for rank's value; *value is to be freed with base_free(AREA_BOOTSTRAP, ...). ERR_TIMEOUT, ERR_BOOTSTRAP. */
int bootstrap_get(struct ncclx_rt *rt, int rank, const char *key, void **value, size_t *bytes, int timeout_ms);
/* The same without waiting: ask, look now and then, and leave it when the answer is not wanted any more. The look that says true has
 * freed it. ERR_BOOTSTRAP: the rank has no such key, or 60 s have passed. */
struct bootstrap_fetch;
int bootstrap_fetch(struct ncclx_rt *rt, int rank, const char *key, struct bootstrap_fetch **fetch);
bool bootstrap_fetched(struct bootstrap_fetch *fetch, int *code, void **value, size_t *bytes);
void bootstrap_fetch_leave(struct bootstrap_fetch *fetch);
/* A descriptor of the memory that all ranks of this node share (anonymous, no name in a file system): the launcher's, or the first
 * local rank's. The caller sizes it (all ranks compute the same size) and closes it. ERR_UNREACHABLE says why it cannot be opened. */
int bootstrap_node_segment(struct ncclx_rt *rt, int *fd);
/* The same for the node of another rank, for peers that the process manager places on another node but that run under the same
 * kernel. ERR_UNREACHABLE when they do not: it is found by trying. */
int bootstrap_segment_of(struct ncclx_rt *rt, int rank, int *fd);
/* Index of the node of a job rank, from 0 in the job's order of nodes; computed on first use. */
int bootstrap_node_of(struct ncclx_rt *rt, int rank, int *node);
/* The ranks on the node of a job rank, itself included, ascending. Valid until bootstrap_finalize. */
int bootstrap_node_ranks(struct ncclx_rt *rt, int rank, const int **ranks, int *count);
/* Ends the job with this code and does not return, unless this is a job of one. May be called without the lock. */
void bootstrap_abort(struct ncclx_rt *rt, int code, const char *message);
/* Leaves: a fence of the job, then PMIx_Finalize. */
int bootstrap_finalize(struct ncclx_rt *rt);

#endif
