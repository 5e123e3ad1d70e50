/* keep.h - one direction of a stream that outlives its sockets: bytes stay here until the peer has acknowledged them, and
 * go out again on the next socket from where the peer says. So each arrives once, in order, whatever a socket has taken
 * with it. A pure core; memory apart, which grows with what is not acknowledged. One piece at a time may be lent instead: it is sent
 * from where it is, which its owner leaves as it is until the peer has it.
 *
 * Positions count bytes from the beginning. Both sides tell what has come exactly when a socket begins; in between, the
 * lowest bits of how many units have come travel with every packet. */
#ifndef PML_TCP_KEEP_H
#define PML_TCP_KEEP_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define KEEP_MAX ((size_t)1 << 20) /* not acknowledged */
#define KEEP_OWN ((size_t)4096)    /* of it: only for what the connection itself has to say */
#define KEEP_LEAST ((size_t)4096)  /* allocated */
#define KEEP_LENT_MAX ((size_t)2 << 20)

/* What has come, in a few bits. Packets that are sent again carry what was true once: what is further back than half of
 * the range is old, and no more than KEEP_MAX and what is lent can come between. */
#define KEEP_UNIT 2048
#define KEEP_CODE_BITS 13
#define KEEP_CODE_MASK ((1U << KEEP_CODE_BITS) - 1)
_Static_assert(2 * (KEEP_MAX + KEEP_LENT_MAX) / KEEP_UNIT <= (KEEP_CODE_MASK + 1) / 2, "old and new codes can be told apart");

struct keep {
    char *data;
    size_t room;               /* 0, or a power of two */
    uint64_t acked, sent, end; /* [acked, sent) is under way or has come, [sent, end) is to be sent */
    const char *lent;          /* [lent_at, lent_at + lent_bytes) is there; null: nothing is lent */
    uint64_t lent_at, lent_bytes;
    uint64_t returned; /* bytes lent before, of which the ring knows nothing */
};

/* The place of a position in the ring, where what was or is lent takes none. */
static inline uint64_t keep_place(const struct keep *keep, uint64_t at)
{
    if (__builtin_expect(keep->lent != NULL, 0) && at > keep->lent_at)
        at = at - keep->lent_at < keep->lent_bytes ? keep->lent_at : at - keep->lent_bytes;
    return at - keep->returned;
}

/* In the ring. */
static inline size_t keep_held(const struct keep *keep)
{
    return (size_t)(keep_place(keep, keep->end) - keep_place(keep, keep->acked));
}

bool keep_grow(struct keep *keep, size_t bytes, size_t most);
/* Gives back memory that is not needed now. */
void keep_trim(struct keep *keep);
void keep_release(struct keep *keep);
/* All that has not been acknowledged goes out again, but for what has come, as the peer says. False: that cannot be. */
bool keep_resume(struct keep *keep, uint64_t come);

static inline size_t keep_unsent(const struct keep *keep)
{
    return (size_t)(keep->end - keep->sent);
}

/* Whether so many more bytes may be added. */
static inline bool keep_room(struct keep *keep, size_t bytes)
{
    size_t needed = keep_held(keep) + bytes;
    return needed <= KEEP_MAX - KEEP_OWN && (needed <= keep->room || keep_grow(keep, bytes, KEEP_MAX));
}

/* For an acknowledgement that nobody waits for: what somebody does wait for has the other half to itself. */
static inline bool keep_room_to_acknowledge(struct keep *keep, size_t bytes)
{
    return keep_grow(keep, bytes, KEEP_MAX - KEEP_OWN / 2);
}

/* There is room. */
static inline void keep_add(struct keep *keep, const void *from, size_t bytes)
{
    size_t at = (size_t)keep_place(keep, keep->end) & (keep->room - 1), first = keep->room - at < bytes ? keep->room - at : bytes;
    memcpy(keep->data + at, from, first);
    if (first < bytes) memcpy(keep->data, (const char *)from + first, bytes - first);
    keep->end += bytes;
}

/* The next bytes stay where they are, until keep->lent is null again. Nothing is lent. */
static inline void keep_lend(struct keep *keep, const void *from, size_t bytes)
{
    keep->lent = from;
    keep->lent_at = keep->end;
    keep->lent_bytes = bytes;
    keep->end += bytes;
}

/* What is to be sent next, though perhaps not all of it; pieces. */
static inline int keep_next(const struct keep *keep, struct iovec piece[2])
{
    size_t bytes = keep_unsent(keep);
    if (keep->lent && keep->sent >= keep->lent_at && keep->sent - keep->lent_at < keep->lent_bytes) {
        size_t gone = (size_t)(keep->sent - keep->lent_at);
        piece[0] = (struct iovec){.iov_base = (char *)(uintptr_t)keep->lent + gone, .iov_len = (size_t)keep->lent_bytes - gone};
        return 1;
    }
    if (keep->lent && keep->sent < keep->lent_at) bytes = (size_t)(keep->lent_at - keep->sent);
    size_t at = (size_t)keep_place(keep, keep->sent) & (keep->room - 1);
    size_t first = keep->room - at < bytes ? keep->room - at : bytes;
    piece[0] = (struct iovec){.iov_base = keep->data + at, .iov_len = first};
    piece[1] = (struct iovec){.iov_base = keep->data, .iov_len = bytes - first};
    return first < bytes ? 2 : 1;
}

/* The peer has it all: it is its owner's again. */
static inline void keep_return(struct keep *keep)
{
    bool early = PLANTED_BUG(BUG_KEEP_RETURNED_EARLY) && keep->sent - keep->lent_at >= keep->lent_bytes;
    if (!early && (keep->acked < keep->lent_at || keep->acked - keep->lent_at < keep->lent_bytes)) return;
    keep->returned += keep->lent_bytes;
    keep->lent = NULL;
}

/* False: that was never sent. */
static inline bool keep_acknowledge(struct keep *keep, uint64_t come)
{
    if (come > keep->sent) return false;
    if (come > keep->acked) keep->acked = come;
    if (__builtin_expect(keep->lent != NULL, 0)) keep_return(keep);
    return true;
}

static inline unsigned keep_code(uint64_t come)
{
    return (unsigned)(come / KEEP_UNIT + PLANTED_BUG(BUG_KEEP_ACKNOWLEDGED_EARLY)) & KEEP_CODE_MASK;
}

static inline bool keep_acknowledge_code(struct keep *keep, unsigned code)
{
    uint64_t units = keep->acked / KEEP_UNIT;
    unsigned ahead = (code - (unsigned)units) & KEEP_CODE_MASK;
    if (!ahead || (ahead > (KEEP_CODE_MASK + 1) / 2 && !PLANTED_BUG(BUG_KEEP_OLD_CODE))) return true;
    return keep_acknowledge(keep, (units + ahead) * KEEP_UNIT);
}

#endif
