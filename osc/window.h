/* window.h - a window as osc sees it; private to this folder.
 *
 * One path to each target and region is found when the target is first used: stores in memory that is mapped here (DIRECT), copies by the
 * kernel (COPY), lanes (LANES), or messages (MESSAGE, window_core.h). Direct puts and kernel copies are complete in the target's memory
 * when they return. Over lanes go puts, large gets and signals; the rest are messages, on the way that the signals' notices take, too.
 */
#ifndef OSC_WINDOW_H
#define OSC_WINDOW_H

#include "osc/atomic.h"
#include "osc/osc.h"
#include "osc/ticket.h"
#include "osc/window_core.h"

#include <stdatomic.h>

#define OSC_AM_ID 0
#define OSC_WINDOW_BUCKETS 64
#define OSC_MAX_SLOTS (UINT64_C(1) << 32)

/* In front of each rank's slots, zero at first: words that other ranks change. */
struct osc_control {
    uint32_t elements; /* the element lock, see atomic.h */
    char pad[60];
    struct ticket_lock lock;
    char lock_pad[64 - sizeof(struct ticket_lock)];
};

/* A place in the queue of a ticket lock; in osc.turns when progress waits for it. */
struct osc_turn {
    struct osc_turn *next;
    struct ticket_lock *lock;
    uint32_t ticket;
    int type, rank;
    bool waiting;
    void *owner;
    void (*granted)(struct osc_turn *turn);
};

/* What each rank tells the others when the window is made. */
struct osc_card {
    uint32_t version;
    int32_t status;  /* why this rank cannot take part; SUCCESS */
    uint64_t bytes, unit, slots;
    uint64_t control_offset; /* where the control words, and behind them the slots, are in the memory that control_card describes */
    uint32_t shared; /* 1: memory and control are one region, memory_card's */
    uint32_t reserved;
    struct pml_region_card memory_card, control_card;
};

/* Another rank's part of the window, as this rank reaches it. Made on first use. */
struct osc_target {
    char *memory;            /* DIRECT, else null */
    struct osc_control *control; /* null: signals, atomics and locks are messages */
    uint64_t *slots;         /* behind control, or null */
    uint64_t bytes, unit, slot_count;
    bool copied;             /* memory is reached by kernel copies */
    bool plain;              /* its memory is not shareable: elements change under the element lock only */
    bool held_back;          /* osc_epoch_admit first */
    bool giving_up;          /* a lock whose time was over still has its place in the queue */
    bool locking;            /* a thread of this rank waits for its lock */
    int locked;              /* WINDOW_SHARED, WINDOW_EXCLUSIVE, or 0 */
    bool unlocking;          /* its unlock has begun; where it has failed the target is held back, until it is repeated */
    struct osc_turn turn;
    bool put_open, get_open; /* puts or gets since the last call that orders them: what win_free calls "in flight" */
    int rank, peer;          /* in the window, in the job */
    int error;               /* the way to it failed: every later call says so */
    struct pml_region *memory_region, *control_region; /* the same one, or null */
    struct osc_target *next; /* targets used so far */
    const _Atomic uint32_t *sleeping; /* pml_sleeps: it has to be woken after a change of its slots; may be null */
    struct osc_request *requests, *last_request; /* of messages to it, in order */
    struct window_origin origin; /* of messages to it */
    struct pml_order *order;     /* puts and large gets go over lanes; null: they are messages, too */
};

/* What has to be over for something to be complete. */
struct osc_goal {
    uint64_t messages;
    struct pml_goal lanes;
};

/* An rput or rget by message. */
struct osc_request {
    struct ncclx_request base;
    struct osc_request *next;
    bool is_put;
    int rank;
    size_t bytes;
    struct osc_goal goal; /* complete here then */
};

/* What another rank's messages have done here. */
struct osc_incoming {
    struct window_target core;
    struct osc_turn turn;
    struct osc_window *window;
};

struct osc_window {
    struct ncclx_win face; /* first: what runtime/ sees */
    char *base;
    uint64_t bytes, unit, slot_count;
    struct osc_control *control;
    uint64_t *slots;
    bool plain;    /* base is not shareable memory */
    struct pml_region_card own_card; /* of base; all zero: none */
    bool agreed, answered; /* whether all ranks answer messages while they compute is known; they, or at least this one, do */
    void *segment; /* memory of pml_mem_alloc that the window owns: the window's own memory if it allocated it, control, slots */
    bool locked;   /* between lock_all and unlock_all */
    int locks;     /* targets locked, also by lock_all */
    struct ncclx_plan *plans;
    uint8_t *access; /* between start and complete: by rank, 1 for members of the group */
    struct ncclx_request **exposure; /* between post and wait: receives of "complete" */
    int exposed_to;
    struct osc_card *cards;          /* of every rank */
    struct osc_target **targets;     /* by rank; null until used */
    struct osc_target *used;
    struct osc_incoming **incoming;  /* by rank: messages from it; null until one comes */
    int *verdicts;                   /* by rank: room for agreements, so that none fails for want of memory */
    struct osc_window *next;         /* in its bucket */
};

struct osc {
    struct osc_window *buckets[OSC_WINDOW_BUCKETS]; /* by context of their communicator */
    struct window_operation *free_operations;
    struct osc_turn *turns;
    bool polling;     /* for turns */
};

/* window.c: messages are answered while the program computes. */
void osc_window_answer(struct osc_window *window);

/* ---- targets.c: windows by id, targets on first use ---------------------------------------------------------- */

struct osc_window *osc_window_find(struct osc *osc, uint64_t id);
void osc_window_add(struct osc *osc, struct osc_window *window);
void osc_window_remove(struct osc *osc, struct osc_window *window);
int osc_target_attach(struct osc_window *window, int rank, struct osc_target **target);
/* epochs.c: lets an operation to a target that is held back begin, or says why not. */
int osc_epoch_admit(struct osc_window *window, struct osc_target *target);
void osc_targets_detach(struct osc_window *window);

/* Then some operations are messages; else none is. */
static inline bool osc_target_needs_messages(const struct osc_target *target)
{
    return target->control == NULL;
}

/* The code with which the way to it failed, or SUCCESS. */
static inline int osc_message_failed(const struct osc_target *target)
{
    return target->error || !target->order ? target->error : pml_order_error(target->order);
}

static inline struct osc_window *osc_window_of(struct ncclx_win *win)
{
    return (struct osc_window *)win;
}

static inline uint64_t osc_window_id(const struct osc_window *window)
{
    return window->face.comm->context;
}

/* Whatever the epoch. */
static inline int osc_target_look_up(struct osc_window *window, int rank, struct osc_target **target)
{
    if (__builtin_expect(rank >= 0 && rank < window->face.comm->size && window->targets[rank] != NULL, 1)) {
        *target = window->targets[rank];
        return NCCLX_SUCCESS;
    }
    return osc_target_attach(window, rank, target);
}

/* For an operation that begins now. */
static inline int osc_target_find(struct osc_window *window, int rank, struct osc_target **target)
{
    int error = osc_target_look_up(window, rank, target);
    if (__builtin_expect(error, 0)) return error;
    return __builtin_expect((*target)->held_back, 0) ? osc_epoch_admit(window, *target) : NCCLX_SUCCESS;
}

/* ---- access.c ------------------------------------------------------------------------------------------------- */

/* The offset of `bytes` at a displacement in the target's window, or ERR_RANGE. */
int osc_bad_range(const struct osc_target *target, size_t displacement, size_t bytes) __attribute__((cold));
static inline int osc_check_range(const struct osc_target *target, size_t displacement, size_t bytes, uint64_t *offset)
{
    if (__builtin_expect(!__builtin_mul_overflow((uint64_t)displacement, target->unit, offset) &&
                             window_within(*offset, bytes, target->bytes), 1))
        return NCCLX_SUCCESS;
    return osc_bad_range(target, displacement, bytes);
}
int osc_check_slot(uint64_t slots, size_t slot);
int osc_check_signal(const struct osc_target *target, const struct osc_signal *signal);
/* A put that may be checked and started apart from its signal. */
int osc_put_bytes(struct osc_window *window, struct osc_target *target, const void *origin, size_t bytes, uint64_t offset);
int osc_get_bytes(struct osc_window *window, struct osc_target *target, void *origin, size_t bytes, uint64_t offset);

/* ---- sync.c ---------------------------------------------------------------------------------------------------- */

int osc_flush_target(struct osc_window *window, struct osc_target *target, const char *call);
int osc_flush_targets(struct osc_window *window, const char *call);

/* ---- epochs.c -------------------------------------------------------------------------------------------------- */

bool osc_epoch_holds_back(const struct osc_window *window, int rank);
/* "between ... and ...", or null. */
const char *osc_epoch_name(const struct osc_window *window);
void osc_epochs_release(struct osc_window *window);

/* ---- locks.c --------------------------------------------------------------------------------------------------- */

/* While another thread of this rank locks it, waits for that one; whose lock is this one's, too. */
int osc_target_lock(struct osc_window *window, struct osc_target *target, int type, const char *call);
/* May be repeated when it, or the flush behind it, has failed. */
int osc_target_unlock_start(struct osc_window *window, struct osc_target *target);
void osc_target_unlock_finish(struct osc_window *window, struct osc_target *target);
/* LOCKED may have come: one that nobody waits for any more is given back. */
void osc_target_lock_came(struct osc_window *window, struct osc_target *target);
/* For a rank that locks by message. */
int osc_lock_for(struct osc_window *window, struct osc_incoming *from, int rank, int type);
void osc_unlock_for(struct osc_incoming *from);
void osc_turn_forget(struct ncclx_rt *rt, struct osc_turn *turn);
void osc_turns_stop(struct ncclx_rt *rt);

/* ---- requests.c ----------------------------------------------------------------------------------------------- */

/* Completes those whose time has come, or all when the way to the target has failed. */
void osc_requests_advance(struct osc_target *target);
void osc_requests_drop(struct osc_target *target);

/* ---- messages.c: the driver of window_core over active messages --------------------------------------------- */

/* Runs in progress, of this or the agent's thread, under the lock. */
void osc_message_arrived(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data,
                         size_t bytes, void *arg);
/* Queues an operation described by `model` and sends what may be sent. */
int osc_message_submit(struct osc_window *window, struct osc_target *target, const struct window_operation *model);
/* Asks for the acknowledgement of everything so far; failures show in the flush that follows. */
void osc_message_flush_start(struct osc_window *window, struct osc_target *target);
/* What all operations so far have to wait for. */
int osc_message_goal(struct osc_target *target, struct osc_goal *goal);
/* here: their buffers are free again. */
bool osc_message_reached(const struct osc_target *target, const struct osc_goal *goal, bool here);
/* Messages of all operations so far are on their way, so that what goes on the same way comes after them. */
int osc_message_settle(struct osc_window *window, struct osc_target *target, const char *call);
/* pml_signal_fn. */
void osc_signal_arrived(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg);
/* Until every operation to the target is complete there, or (here) its buffers are free again. */
int osc_message_flush(struct osc_window *window, struct osc_target *target, bool here, const char *call);
/* Operations to it are complete without its calls from its next call on. */
void osc_message_ask_for_agent(struct osc_window *window, struct osc_target *target);
/* Tells a rank that the lock it asked for with message `sequence` is its own. */
void osc_message_granted(struct osc_window *window, int rank, uint64_t sequence);
/* Gives up what was never sent. */
void osc_message_drop(struct osc_window *window, struct osc_target *target);
void osc_operations_release(struct osc *osc);

/* ---- Memory -------------------------------------------------------------------------------------------------- */

/* From here on copies are pml's, which knows how to share them out. */
#define OSC_LARGE ((size_t)65536)

/* Copies into or out of memory that another rank may look at meanwhile: a whole aligned word is never seen half written. */
static inline void osc_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 8 && ((uintptr_t)to | (uintptr_t)from) % 8 == 0)
        __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    else if (bytes == 4 && ((uintptr_t)to | (uintptr_t)from) % 4 == 0)
        __atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    else
        __builtin_memmove(to, from, bytes);
}

/* Every way raises slots with these instructions, so ways mix. Release: the data of this origin before it is visible first. */
static inline void osc_slot_raise(uint64_t *slot, ncclx_signal_op_t op, uint64_t value)
{
    if (op == NCCLX_SIGNAL_ADD) __atomic_fetch_add(slot, value, __ATOMIC_RELEASE);
    else __atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

static inline uint64_t osc_slot_read(const uint64_t *slot)
{
    return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

#endif
