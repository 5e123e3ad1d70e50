/* blame.c - see blame.h. */
#include "config.h"

#include "launcher/blame.h"

#include "runtime/base/base.h"

#include <stdio.h>

/* Longer than a daemon waits for the agent of another one whose connection has closed (wiring.c). */
#define BLAME_WAIT_NS (3 * BASE_NS_PER_S / 2)

void blame_open(struct blame *blame)
{
    *blame = (struct blame){.status = -1, .kind = BLAME_OTHER, .tell_at = UINT64_MAX};
}

void blame_take(struct blame *blame, enum blame_kind kind, int status, const char *text, uint64_t now)
{
    bool first = blame->status < 0;
    bool better = kind == BLAME_ORIGIN && blame->kind == BLAME_FOLLOWER && !blame->told;
    if (!first && !better) return;
    blame->status = status;
    blame->kind = kind;
    blame->tell_at = kind != BLAME_FOLLOWER ? now : blame->death_comes ? UINT64_MAX : now + BLAME_WAIT_NS;
    snprintf(blame->text, sizeof blame->text, "%s", text ? text : "");
}

void blame_expect(struct blame *blame)
{
    blame->death_comes = true;
    if (blame->kind == BLAME_FOLLOWER) blame->tell_at = UINT64_MAX;
}

const char *blame_tell(struct blame *blame, bool job_has_ended, uint64_t now)
{
    if (blame->status < 0 || blame->told || (!job_has_ended && now < blame->tell_at)) return NULL;
    blame->told = true;
    blame->tell_at = UINT64_MAX;
    return *blame->text ? blame->text : NULL;
}

uint64_t blame_deadline(const struct blame *blame)
{
    return blame->tell_at;
}
