/* match.c - the less usual paths of matching: wildcards, unexpected messages. */
#include "pml/match.h"

void match_space_init(struct match_space *space, struct match_bin *bins, uint32_t bin_count)
{
    *space = (struct match_space){.bin = bins, .bin_mask = bin_count - 1};
    match_link_init(&space->wild);
    match_link_init(&space->envelopes);
    for (uint32_t i = 0; i < bin_count; i++) {
        match_link_init(&bins[i].receives);
        match_link_init(&bins[i].envelopes);
    }
}

static struct match_receive *first_accepting(const struct match_link *head, int source, int tag)
{
    for (struct match_link *link = head->next; link != head; link = link->next) {
        struct match_receive *receive = match_receive_of(link);
        if (match_accepts(receive, source, tag)) return receive;
    }
    return NULL;
}

struct match_receive *match_first_receive(const struct match_space *space, int source, int tag)
{
    struct match_receive *exact = first_accepting(&match_bin_of(space, source, tag)->receives, source, tag);
    struct match_receive *wild = first_accepting(&space->wild, source, tag);
    if (!exact) return wild;
    if (!wild || PLANTED_BUG(BUG_WILDCARD_ORDER)) return exact;
    return exact->order < wild->order ? exact : wild;
}

void match_keep(struct match_space *space, struct match_envelope *envelope, int source, int tag)
{
    envelope->source = source;
    envelope->tag = tag;
    struct match_link *bin = &match_bin_of(space, source, tag)->envelopes;
    match_link_append(PLANTED_BUG(BUG_UNEXPECTED_ORDER) ? bin->next : bin, &envelope->bin);
    match_link_append(&space->envelopes, &envelope->all);
}

struct match_envelope *match_find(const struct match_space *space, int source, int tag)
{
    if (match_link_empty(&space->envelopes)) return NULL;
    if (source != NCCLX_ANY_SOURCE && tag != NCCLX_ANY_TAG) {
        const struct match_link *head = &match_bin_of(space, source, tag)->envelopes;
        for (struct match_link *link = head->next; link != head; link = link->next) {
            struct match_envelope *envelope =
                (struct match_envelope *)((char *)link - offsetof(struct match_envelope, bin));
            if (envelope->source == source && envelope->tag == tag) return envelope;
        }
        return NULL;
    }
    for (struct match_link *link = space->envelopes.next; link != &space->envelopes; link = link->next) {
        struct match_envelope *envelope =
            (struct match_envelope *)((char *)link - offsetof(struct match_envelope, all));
        if ((source == NCCLX_ANY_SOURCE || envelope->source == source) &&
            (tag == NCCLX_ANY_TAG || envelope->tag == tag))
            return envelope;
    }
    return NULL;
}

void match_take(struct match_envelope *envelope)
{
    match_link_remove(&envelope->bin);
    match_link_remove(&envelope->all);
}

bool match_ambiguous(const struct match_space *space, const struct match_peer *peer, int source, int tag)
{
    for (const struct match_link *link = space->wild.next; link != &space->wild; link = link->next) {
        const struct match_receive *receive = match_receive_of((struct match_link *)(uintptr_t)link);
        if (receive->source != source && receive->source != NCCLX_ANY_SOURCE) continue;
        if (tag == NCCLX_ANY_TAG || receive->tag == NCCLX_ANY_TAG || receive->tag == tag) return true;
    }
    if (!peer->exact) return false;
    if (tag == NCCLX_ANY_TAG) return true;
    return first_accepting(&match_bin_of(space, source, tag)->receives, source, tag) != NULL;
}
