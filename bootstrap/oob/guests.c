/* guests.c - places for strangers, and lines about them. */
#include "config.h"

#include "bootstrap/oob/guests.h"

#include "runtime/base/planted.h"

#include <string.h>

void guests_init(struct guests *guests, struct guest *list, size_t limit)
{
    memset(list, 0, limit * sizeof *list);
    *guests = (struct guests){.list = list, .limit = limit};
}

int guests_admit(struct guests *guests, uint64_t now, uint64_t until)
{
    if (guests->count == guests->limit) return -1;
    size_t place = 0;
    while (guests->list[place].standing) place++;
    guests->list[place] =
        (struct guest){.standing = GUEST_STRANGER, .order = guests->arrivals++, .since = now, .until = until};
    guests->count++;
    return (int)place;
}

/* Who of the two goes first. */
static bool goes_before(const struct guest *a, const struct guest *b)
{
    if (PLANTED_BUG(BUG_OOB_NEWEST_DROPPED)) return a->order > b->order;
    if (a->standing != b->standing && !PLANTED_BUG(BUG_OOB_PROVEN_DROPPED)) return a->standing < b->standing;
    return a->order < b->order;
}

static bool in_grace(const struct guest *guest, uint64_t now)
{
    return guest->standing == GUEST_PROVEN && now - guest->since < GUEST_GRACE && !PLANTED_BUG(BUG_OOB_PROVEN_DROPPED);
}

int guests_victim(const struct guests *guests, uint64_t now)
{
    int victim = -1;
    for (size_t i = 0; i < guests->limit; i++) {
        const struct guest *guest = &guests->list[i];
        if (!guest->standing || in_grace(guest, now)) continue;
        if (victim < 0 || goes_before(guest, &guests->list[victim])) victim = (int)i;
    }
    return victim;
}

uint64_t guests_room_at(const struct guests *guests, uint64_t now)
{
    uint64_t at = UINT64_MAX;
    if (guests->count < guests->limit || guests_victim(guests, now) >= 0) return 0;
    for (size_t i = 0; i < guests->limit; i++)
        if (guests->list[i].since + GUEST_GRACE < at) at = guests->list[i].since + GUEST_GRACE;
    return at;
}

void guests_standing(struct guests *guests, int place, enum guest_standing standing)
{
    guests->list[place].standing = standing;
}

void guests_hurry(struct guests *guests, int place, uint64_t until)
{
    if (until < guests->list[place].until) guests->list[place].until = until;
}

void guests_release(struct guests *guests, int place)
{
    guests->list[place].standing = GUEST_NONE;
    guests->count--;
}

int guests_expired(const struct guests *guests, uint64_t now)
{
    for (size_t i = 0; guests->count && i < guests->limit; i++)
        if (guests->list[i].standing && guests->list[i].until <= now) return (int)i;
    return -1;
}

uint64_t guests_deadline(const struct guests *guests)
{
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; guests->count && i < guests->limit; i++)
        if (guests->list[i].standing && guests->list[i].until < deadline) deadline = guests->list[i].until;
    return deadline;
}

/* The last place is for those of nobody in particular. */
bool remarks_add(struct remarks *remarks, unsigned what, const unsigned char from[16], const char *text, uint64_t now)
{
    struct remark *rest = &remarks->list[REMARKS_KINDS - 1], *free_one = NULL;
    for (struct remark *remark = remarks->list; remark < rest; remark++) {
        if (!remark->what) {
            if (!free_one) free_one = remark;
        } else if (remark->what == what && !memcmp(remark->from, from, sizeof remark->from)) {
            remark->repeats++;
            return false;
        }
    }
    if (!free_one) {
        if (!rest->what) *rest = (struct remark){.what = what, .until = now + REMARKS_PERIOD};
        rest->repeats++;
        return false;
    }
    *free_one = (struct remark){.what = what, .until = now + REMARKS_PERIOD};
    memcpy(free_one->from, from, sizeof free_one->from);
    memcpy(free_one->text, text, strnlen(text, sizeof free_one->text - 1));
    return true;
}

bool remarks_take(struct remarks *remarks, uint64_t now, bool all, struct remark *remark)
{
    for (size_t i = 0; i < REMARKS_KINDS; i++) {
        if (!remarks->list[i].what || (!all && remarks->list[i].until > now)) continue;
        *remark = remarks->list[i];
        memset(&remarks->list[i], 0, sizeof remarks->list[i]);
        return true;
    }
    return false;
}

uint64_t remarks_deadline(const struct remarks *remarks)
{
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; i < REMARKS_KINDS; i++)
        if (remarks->list[i].what && remarks->list[i].until < deadline) deadline = remarks->list[i].until;
    return deadline;
}
