/* endpoint.h - what the parts of the driver share: endpoint.c (tables, events, dispatch), listen.c (who comes),
 * connect.c (whom we look for), line.c (one socket with its handshake). */
#ifndef BOOTSTRAP_OOB_ENDPOINT_H
#define BOOTSTRAP_OOB_ENDPOINT_H

#include "bootstrap/oob/address.h"
#include "bootstrap/oob/guests.h"
#include "bootstrap/oob/shake.h"
#include "bootstrap/oob/tries.h"

#include <stdint.h>

enum item_kind { ITEM_FREE, ITEM_GUEST, ITEM_SEARCH, ITEM_LISTENER };

/* What an id stands for. The number of each use is in the upper half of an id, so that old ones lead to nothing. */
struct item {
    enum item_kind kind;
    uint32_t use;
    union {
        struct guest_line *guest;
        struct search *search;
        int listener;
        uint32_t next_free;
    };
};

/* A socket in its handshake. */
struct line {
    int fd;
    bool connecting;  /* connect() has not ended */
    uint32_t watched; /* what epoll waits for */
    struct oob_address address;
    struct shake shake;
};

struct guest_line {
    uint64_t id;
    int place;  /* in guests */
    bool asked; /* for a key */
    struct line line;
};

/* What became of an address. */
struct trouble {
    int error; /* errno, or 0: then what the other end is, or negative: it is silent */
    char text[128];
};

struct search {
    struct search *previous, *next;
    uint64_t id;
    uint32_t peer;
    uint64_t tag;
    bool has_key;
    unsigned char peer_key[OOB_KEY_BYTES];
    uint32_t limit_ms;
    struct tries tries;
    struct oob_address addresses[OOB_MAX_ADDRESSES];
    struct trouble troubles[OOB_MAX_ADDRESSES];
    bool open;
    size_t trying; /* the address that is */
    size_t telling; /* so many, the first ones, tell by refusing that nobody is there */
    bool taken;             /* a connection has come about, if no handshake */
    bool heard, there;       /* in this round one of those did something else than refuse; ... took a connection */
    unsigned refused_rounds; /* in the last so many rounds they all refused */
    struct line line;
};

struct listener {
    int fd;
    uint64_t id;
    struct oob_address address;
    bool wildcard, both; /* both: IPv6, and IPv4 too */
};

struct oob {
    struct shake_self self;
    struct oob_options options;
    bool was_short;   /* of descriptors */
    int epoll, spare; /* spare: a descriptor that is given up when there is no other */
    uint64_t now;     /* as of the last call that told it */

    struct item *items;
    uint32_t item_count, free_item; /* free_item: UINT32_MAX: none */

    struct listener listeners[OOB_MAX_ADDRESSES];
    size_t listener_count;
    bool listening_paused, room_again; /* room_again: somebody has left since */
    uint64_t listen_again;
    struct guests guests;
    struct guest *guest_list;
    struct guest_line **guest_lines;
    struct remarks remarks;
    struct search *searches;

    struct oob_event *events; /* a ring */
    size_t event_first, event_count, event_room;
};

/* ---- endpoint.c ---- */

/* 0: memory is short. */
uint64_t endpoint_add_item(struct oob *oob, struct item item);
struct item *endpoint_item(struct oob *oob, uint64_t id);
void endpoint_remove_item(struct oob *oob, uint64_t id);
/* Null: memory is short. Zeroed, with fd -1. */
struct oob_event *endpoint_add_event(struct oob *oob, enum oob_event_kind kind);
/* Takes a descriptor that has just been made, which no forked child holds from now on. -1 with errno: there is none, or memory is
 * short. */
int endpoint_own(int fd);
bool endpoint_watch(struct oob *oob, int fd, uint64_t id, uint32_t events, bool again);

/* ---- line.c ---- */

enum line_result {
    LINE_GOING,
    LINE_DONE,
    LINE_FAILED, /* see shake.trouble, or errno (not 0) in *error */
    LINE_LEAVING /* the refusal is sent; what comes is dropped until the end */
};

/* Closes, if open. */
void line_close(struct line *line);
/* Sends, receives and watches for what is missing, as far as that goes without waiting. *error is 0 where the other end
 * has ended the connection, or broken the protocol. */
enum line_result line_go(struct oob *oob, uint64_t id, struct line *line, int *error);
/* Fills in what both kinds of end have in common, and gives the socket away. */
void line_hand_over(struct oob *oob, struct line *line, struct oob_event *event);
void line_options(int fd);

/* ---- listen.c ---- */

void listen_ready(struct oob *oob, struct listener *listener);
void listen_guest(struct oob *oob, struct guest_line *guest);
/* Gives up one stranger, so that a descriptor becomes free. False: there is none. */
bool listen_make_room(struct oob *oob);
void listen_tick(struct oob *oob);
uint64_t listen_deadline(const struct oob *oob);
void listen_close(struct oob *oob);

/* ---- connect.c ---- */

void search_ready(struct oob *oob, struct search *search);
void search_tick(struct oob *oob);
uint64_t search_deadline(const struct oob *oob);
void search_end(struct oob *oob, struct search *search);

#endif
