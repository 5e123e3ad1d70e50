/* match.h - tag matching, as a pure core: which receive takes which message.
 *
 * One match_space holds the pending receives and the unexpected messages ("envelopes") of one kind of traffic on one
 * communicator. Its nodes belong to the caller, who embeds them; nothing here allocates. The rules are MPI's: messages
 * of one source match in the order in which they were sent, receives in the order in which they were posted; a source
 * or a tag may be a wildcard on the receiving side.
 *
 * Exact receives and all envelopes are hashed by (source, tag), so that thousands of pending ones are not scanned.
 * Receives with a wildcard sit in one ordered list, envelopes also in one list by arrival; those are scanned only when
 * wildcards are in use.
 */
#ifndef PML_MATCH_H
#define PML_MATCH_H

#include "runtime/base/planted.h"
#include "runtime/ncclx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Circular and doubly linked; a list's head is a link too. */
struct match_link {
    struct match_link *next, *previous;
};

/* A pending receive. source and tag may be NCCLX_ANY_*. */
struct match_receive {
    struct match_link link;
    uint64_t order; /* of posting, in its space */
    int source, tag;
    bool pending; /* in the space's lists */
};

/* A message that has arrived and has no receive yet. */
struct match_envelope {
    struct match_link bin;
    struct match_link all; /* by arrival */
    int source, tag;
};

/* What a space knows of one source; zero at first. */
struct match_peer {
    uint32_t seen;  /* envelopes that arrived from it, modulo 2^32 */
    uint32_t exact; /* pending receives that name it as their source, with any tag or one */
};

struct match_bin {
    struct match_link receives; /* exact ones */
    struct match_link envelopes;
};

struct match_space {
    struct match_link wild;      /* pending receives with a wildcard, as posted */
    struct match_link envelopes; /* all of them, as arrived */
    uint64_t order;
    struct match_bin *bin;
    uint32_t bin_mask;
};

/* bins: a power of two of them, memory of the caller's. */
void match_space_init(struct match_space *space, struct match_bin *bins, uint32_t bin_count);

static inline bool match_link_empty(const struct match_link *head)
{
    return head->next == head;
}

static inline void match_link_append(struct match_link *head, struct match_link *link)
{
    link->next = head;
    link->previous = head->previous;
    head->previous->next = link;
    head->previous = link;
}

static inline void match_link_remove(struct match_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

static inline void match_link_init(struct match_link *head)
{
    head->next = head->previous = head;
}

static inline struct match_bin *match_bin_of(const struct match_space *space, int source, int tag)
{
    uint32_t hash = (uint32_t)source * UINT32_C(0x9e3779b1) + (uint32_t)tag * UINT32_C(0x85ebca6b);
    return &space->bin[(hash >> 16) & space->bin_mask];
}

static inline struct match_receive *match_receive_of(struct match_link *link)
{
    return (struct match_receive *)((char *)link - offsetof(struct match_receive, link));
}

static inline bool match_accepts(const struct match_receive *receive, int source, int tag)
{
    return (receive->source == source || receive->source == NCCLX_ANY_SOURCE) &&
           (receive->tag == tag || receive->tag == NCCLX_ANY_TAG);
}

static inline bool match_is_wild(const struct match_receive *receive)
{
    return receive->source == NCCLX_ANY_SOURCE || receive->tag == NCCLX_ANY_TAG;
}

/* The receive that was posted first among those in reach of a message; null: none. It stays pending. */
struct match_receive *match_first_receive(const struct match_space *space, int source, int tag);

static inline void match_unpend(struct match_peer *peer, struct match_receive *receive)
{
    match_link_remove(&receive->link);
    receive->pending = false;
    if (receive->source != NCCLX_ANY_SOURCE) peer->exact--;
}

/* A message arrives: the receive that takes it, no longer pending; or null: the caller keeps the message with
 * match_keep. Called once for every message, in the order sent. `peer` is the source's. */
static inline struct match_receive *match_arrive(struct match_space *space, struct match_peer *peer, int source,
                                                 int tag)
{
    struct match_receive *receive;
    struct match_link *head = &match_bin_of(space, source, tag)->receives;
    peer->seen++;
    if (__builtin_expect(match_link_empty(&space->wild), 1) && head->next != head &&
        match_accepts(match_receive_of(head->next), source, tag))
        receive = match_receive_of(head->next); /* the usual case: one receive waits, and it is this message's */
    else receive = match_first_receive(space, source, tag);
    if (receive) match_unpend(peer, receive);
    return receive;
}

void match_keep(struct match_space *space, struct match_envelope *envelope, int source, int tag);
/* The earliest envelope that source and tag (wildcards allowed) accept; null: none. It stays. */
struct match_envelope *match_find(const struct match_space *space, int source, int tag);
void match_take(struct match_envelope *envelope);

/* Makes a receive pending. The caller has found no envelope for it. peer: of its source, null when that is a wildcard.
 */
static inline void match_post(struct match_space *space, struct match_peer *peer, struct match_receive *receive)
{
    receive->order = space->order++;
    receive->pending = true;
    if (peer) peer->exact++;
    match_link_append(match_is_wild(receive) ? &space->wild
                                             : &match_bin_of(space, receive->source, receive->tag)->receives,
                      &receive->link);
}

/* Takes a pending receive back. */
static inline void match_cancel(struct match_peer *peer, struct match_receive *receive)
{
    match_unpend(peer, receive);
}

/* May a message of `source` with a tag that `tag` accepts go to a receive that is pending already? */
bool match_ambiguous(const struct match_space *space, const struct match_peer *peer, int source, int tag);

#endif
