/* spawn.h - what a rank asks for with PMIx_Spawn, as a structure and as bytes, and the answer. Pure. What comes from a
 * rank is bounded when it is written, what comes from a daemon is checked when it is read. */
#ifndef LAUNCHER_SPAWN_H
#define LAUNCHER_SPAWN_H

#include "launcher/frame.h"
#include "launcher/map.h"

#include <stdint.h>

#define SPAWN_MAX_APPS 128
#define SPAWN_MAX_BYTES (1 << 20) /* of a request; the arguments of one program may be that long on most systems */
#define SPAWN_MAX_NAME 255        /* of a job, and of what maps and binds */

enum spawn_edit_kind {
    SPAWN_SET,
    SPAWN_ADD, /* unless it is there */
    SPAWN_UNSET,
    SPAWN_PREPEND,
    SPAWN_APPEND,
    SPAWN_EDIT_KINDS
};

/* A change of the environment. */
struct spawn_edit {
    enum spawn_edit_kind kind;
    const char *name, *value; /* value: null only of SPAWN_UNSET */
    char separator;           /* of SPAWN_PREPEND and SPAWN_APPEND */
};

struct spawn_app {
    char **argv;           /* ends with null */
    const char *directory; /* null: the launcher's */
    int ranks;
    struct spawn_edit *edits;
    int edit_count;
};

struct spawn_request {
    int caller;                   /* the number of the rank that asks */
    uint64_t token;               /* its daemon's, for the answer */
    bool notify;                  /* of the end of the job */
    const char *hosts;            /* "a,b"; null: all there are */
    const char *map_by, *bind_to; /* as the options of ncclxrun take them; null: as the options of ncclxrun were */
    struct spawn_app *apps;
    int app_count;
    void *storage; /* what the texts point into, when read */
};

enum spawn_status {
    SPAWN_DONE,
    SPAWN_FAILED, /* a limit, memory, descriptors */
    SPAWN_BAD_REQUEST,
    SPAWN_NOT_SUPPORTED,
    SPAWN_NO_ROOM, /* --no-oversubscribe, or fewer places than --map-by asks for */
    SPAWN_NO_HOST,
    SPAWN_NO_PROGRAM,
    SPAWN_NOT_EXECUTABLE,
    SPAWN_NO_DIRECTORY,
    SPAWN_ENDING, /* everything is being ended */
    SPAWN_STATUS_COUNT
};

struct spawn_answer {
    int caller;
    uint64_t token;
    enum spawn_status status;
    const char *job; /* of SPAWN_DONE */
};

/* The writer's own limits are the caller's to check: frame_finish, and SPAWN_MAX_BYTES. */
void spawn_write_request(struct frame_writer *writer, const struct spawn_request *request);
/* Copies. NCCLX_ERR_TRANSPORT, NCCLX_ERR_NO_MEM. */
int spawn_read_request(const struct frame *frame, struct spawn_request *request);
void spawn_release_request(struct spawn_request *request);
void spawn_write_answer(struct frame_writer *writer, const struct spawn_answer *answer);
/* The job's name points into the frame. */
int spawn_read_answer(const struct frame *frame, struct spawn_answer *answer);

/* What a daemon's exit status of a start that failed means. */
enum spawn_status spawn_status_of(int exit_status);

/* The settings ("NAME=value", or "=NAME" to leave it out) that these edits, in order, come to in this environment: an
 * array of `edit_count` at most, with room for one more. Texts and array are to be freed with spawn_release_settings.
 * Null: memory is short. */
char **spawn_settle(const struct spawn_app *app, char *const *environment, int *count);
void spawn_release_settings(char **settings, int count);

/* Is this name in "a,b,c"? */
bool spawn_lists_host(const char *hosts, const char *name);

#endif
