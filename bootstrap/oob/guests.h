/* guests.h - who has connected and is not known yet, as a pure core: a bounded number, each for a bounded time; who
 * goes when there are too many; and which lines about them are worth printing. */
#ifndef BOOTSTRAP_OOB_GUESTS_H
#define BOOTSTRAP_OOB_GUESTS_H

#include "bootstrap/oob/oob.h"

enum guest_standing { GUEST_NONE, GUEST_LEAVING, GUEST_STRANGER, GUEST_PROVEN };

struct guest {
    enum guest_standing standing; /* leaving: has been told to go; proven: has shown a key of the job */
    uint64_t order;               /* of arrival */
    uint64_t since, until;
};

/* So long one who has shown a key keeps his place in any case: the rest of the handshake takes one round trip. */
#define GUEST_GRACE (UINT64_C(250) * 1000000)

struct guests {
    struct guest *list;
    size_t limit, count;
    uint64_t arrivals;
};

/* `list` has room for `limit`. */
void guests_init(struct guests *guests, struct guest *list, size_t limit);
/* A place for a new one, or -1: then guests_victim has to go first. */
int guests_admit(struct guests *guests, uint64_t now, uint64_t until);
/* Who has to go: one that is leaving, or the oldest stranger, or at last the oldest of all whose grace is over; -1:
 * there is none. */
int guests_victim(const struct guests *guests, uint64_t now);
/* When there will be a place, or a victim; 0: there is. */
uint64_t guests_room_at(const struct guests *guests, uint64_t now);
void guests_standing(struct guests *guests, int place, enum guest_standing standing);
/* Shortens the time of one. */
void guests_hurry(struct guests *guests, int place, uint64_t until);
void guests_release(struct guests *guests, int place);
/* One whose time has passed, or -1. */
int guests_expired(const struct guests *guests, uint64_t now);
uint64_t guests_deadline(const struct guests *guests);

/* ---- Lines about strangers: the first of a kind at once, then like ones are counted for a while ---- */

#define REMARKS_KINDS 16
#define REMARKS_PERIOD (UINT64_C(10) * 1000000000)

struct remark {
    unsigned what; /* 0: free */
    unsigned char from[16];
    uint64_t until, repeats;
    char text[192]; /* empty: of nobody in particular */
};

struct remarks {
    struct remark list[REMARKS_KINDS];
};

/* Whether to print: `what` (not 0) is the kind of trouble, `from` the address, `text` what to
 * repeat later. Beyond REMARKS_KINDS at a time nothing is
 * printed but counted, as of nobody in particular. */
bool remarks_add(struct remarks *remarks, unsigned what, const unsigned char from[16], const char *text, uint64_t now);
/* Takes one whose period is over, or any when `all`; repeats may be 0. */
bool remarks_take(struct remarks *remarks, uint64_t now, bool all, struct remark *remark);
uint64_t remarks_deadline(const struct remarks *remarks);

#endif
