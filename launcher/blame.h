/* blame.h - why a job fails: one cause, one exit status. Pure.
 *
 * When one process dies, others soon fail of it, and what they say may be faster than the report of the death: it comes
 * over another way, or from a closed connection between ranks. So a cause that may have followed from another is not
 * told at once, but when a moment has passed or the job has ended; if what it may have followed from is known by then,
 * that is told instead. Otherwise the first cause stands. Where a death is known to come, the moment has no end.
 */
#ifndef LAUNCHER_BLAME_H
#define LAUNCHER_BLAME_H

#include <stdbool.h>
#include <stdint.h>

enum blame_kind {
    BLAME_FOLLOWER, /* it may have followed from a failure that we do not know of yet: a rank's own word */
    BLAME_ORIGIN,   /* others may have followed from it: a death, a lost daemon */
    BLAME_OTHER     /* neither: a wish of the user's, a time limit */
};

struct blame {
    int status; /* of the job; -1: nothing has failed */
    enum blame_kind kind;
    bool told;
    bool death_comes;
    uint64_t tell_at;
    char text[2048]; /* may be empty: nothing is to be told */
};

void blame_open(struct blame *blame);
/* `text` may be null. */
void blame_take(struct blame *blame, enum blame_kind kind, int status, const char *text, uint64_t now);
/* How somebody has died will be told soon, however busy the machine is. */
void blame_expect(struct blame *blame);
/* What is to be told now, once; null: nothing. */
const char *blame_tell(struct blame *blame, bool job_has_ended, uint64_t now);
/* When blame_tell is wanted; UINT64_MAX: never. */
uint64_t blame_deadline(const struct blame *blame);

#endif
