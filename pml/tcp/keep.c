/* keep.c - see keep.h: memory, and a new socket. */
#include "pml/tcp/keep.h"

#include "runtime/base/base.h"

static bool move_to(struct keep *keep, size_t room)
{
    char *data = room ? base_alloc(AREA_TCP, room) : NULL;
    if (room && !data) return false;
    uint64_t end = keep_place(keep, keep->end);
    for (uint64_t at = keep_place(keep, keep->acked); at != end;) { /* pieces that are whole in both */
        size_t from = (size_t)at & (keep->room - 1), to = (size_t)at & (room - 1), bytes = (size_t)(end - at);
        if (bytes > keep->room - from) bytes = keep->room - from;
        if (bytes > room - to) bytes = room - to;
        memcpy(data + to, keep->data + from, bytes);
        at += bytes;
    }
    base_free(AREA_TCP, keep->data);
    keep->data = data;
    keep->room = room;
    return true;
}

static size_t room_for(size_t bytes, size_t least)
{
    size_t room = least;
    while (room < bytes) room *= 2;
    return room;
}

bool keep_grow(struct keep *keep, size_t bytes, size_t most)
{
    size_t needed = keep_held(keep) + bytes;
    if (needed > most) return false;
    return needed <= keep->room || move_to(keep, room_for(needed, KEEP_LEAST));
}

void keep_trim(struct keep *keep)
{
    size_t needed = keep_held(keep), room = needed ? room_for(needed, 64) : 0;
    if (room < keep->room) (void)move_to(keep, room); /* without memory it stays as it is */
}

void keep_release(struct keep *keep)
{
    base_free(AREA_TCP, keep->data);
    *keep = (struct keep){.data = NULL};
}

bool keep_resume(struct keep *keep, uint64_t come)
{
    if (come < keep->acked || come > keep->sent) return false;
    if (PLANTED_BUG(BUG_KEEP_ALL_AGAIN)) come = keep->acked;
    if (PLANTED_BUG(BUG_KEEP_NOTHING_AGAIN)) come = keep->sent;
    keep->acked = keep->sent = come;
    if (keep->lent) keep_return(keep);
    return true;
}
