/* link.h - frames over a connected socket, inside an event loop: as they are between processes of one host, sealed
 * between hosts. One thread. */
#ifndef LAUNCHER_LINK_H
#define LAUNCHER_LINK_H

#include "bootstrap/oob/oob.h"
#include "launcher/frame.h"

#include <event2/event.h>

/* Above this many unsent bytes a sender stops making more; below the second it goes on. */
#define LINK_HIGH_WATER (1u << 20)
#define LINK_LOW_WATER (1u << 18)

struct link;

struct link_events {
    /* A frame came; a code other than NCCLX_SUCCESS (with its detail recorded) breaks the link. */
    int (*frame)(void *arg, const struct frame *frame);
    /* Fell to LINK_LOW_WATER after having been above LINK_HIGH_WATER. */
    void (*drained)(void *arg);
    /* The other side is gone, or broke the protocol: message is null at an orderly end. */
    void (*closed)(void *arg, const char *message);
};

/* Takes the descriptor over. Without keys nothing is sealed. Null when memory is short. */
struct link *link_open(struct event_base *base, int fd, const struct oob_keys *keys, const struct link_events *events,
                       void *arg);
/* What is not sent yet is lost. Also from the handlers above; none is called any more. */
void link_close(struct link *link);
/* Finishes, sends and releases the frame. Errors of memory are kept for `closed`, which comes from the loop. */
void link_send(struct link *link, struct frame_writer *writer);
/* A frame without fields. */
void link_send_empty(struct link *link, uint8_t type);
/* A whole frame: one that came over another link, or was made elsewhere. */
void link_send_whole(struct link *link, const void *data, size_t bytes);
size_t link_unsent(const struct link *link);
/* Stops or goes on with taking frames in. */
void link_pause(struct link *link, bool pause);
/* Sends what is left, waiting at most this long for the other side. */
void link_flush(struct link *link, int timeout_ms);

#endif
