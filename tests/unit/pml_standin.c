/* pml_standin.c - see pml_standin.h. */
#include "tests/unit/pml_standin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SHAREABLE_MAX 64

struct pml_standin pml_standin;
static void *shareable[SHAREABLE_MAX];
static pthread_mutex_t shareable_guard = PTHREAD_MUTEX_INITIALIZER;

static void must(bool good)
{
    if (!good) abort();
}

static int shareable_index(const void *start)
{
    for (int i = 0; i < SHAREABLE_MAX; i++)
        if (shareable[i] == start) return i;
    return -1;
}

int pml_mem_alloc(struct ncclx_rt *rt, size_t bytes, void **ptr)
{
    (void)rt;
    *ptr = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*ptr) return base_error(NCCLX_ERR_NO_MEM, "stand-in: no memory");
    memset(*ptr, 0, bytes);
    pthread_mutex_lock(&shareable_guard);
    shareable[shareable_index(NULL)] = *ptr;
    pthread_mutex_unlock(&shareable_guard);
    return NCCLX_SUCCESS;
}

int pml_mem_free(struct ncclx_rt *rt, void *ptr)
{
    (void)rt;
    pthread_mutex_lock(&shareable_guard);
    shareable[shareable_index(ptr)] = NULL;
    pthread_mutex_unlock(&shareable_guard);
    free(ptr);
    return NCCLX_SUCCESS;
}

int pml_region_card(struct ncclx_rt *rt, void *base, size_t bytes, struct pml_region_card *card)
{
    (void)rt;
    pthread_mutex_lock(&shareable_guard);
    *card = (struct pml_region_card){{(uintptr_t)base, bytes, shareable_index(base) >= 0}};
    pthread_mutex_unlock(&shareable_guard);
    return NCCLX_SUCCESS;
}

void pml_region_hide(struct ncclx_rt *rt, const struct pml_region_card *card)
{
    (void)rt;
    (void)card;
}

int pml_region_open(const struct ncclx_comm *comm, struct pml_region_card *card, size_t bytes)
{
    (void)comm;
    must(bytes <= card->word[1]);
    card->word[3] = bytes;
    return NCCLX_SUCCESS;
}

bool pml_region_shareable(const struct pml_region_card *card)
{
    return card->word[2];
}

int pml_region_attach(struct ncclx_rt *rt, int peer, const struct pml_region_card *card, struct pml_region **region)
{
    if (pml_standin.attaching) pml_standin.attaching(rt, peer);
    enum pml_access access = card->word[2] ? pml_standin.shareable : pml_standin.plain;
    *region = calloc(1, sizeof **region);
    must(*region != NULL);
    **region = (struct pml_region){.access = access, .address = card->word[0], .bytes = card->word[1], .peer = peer};
    if (access == PML_ACCESS_LANES && !card->word[3]) (*region)->access = PML_ACCESS_MESSAGE;
    if (access == PML_ACCESS_LANES) (*region)->bytes = card->word[1];
    (*region)->key = card->word[3];
    if (access == PML_ACCESS_DIRECT) (*region)->pointer = (char *)(uintptr_t)card->word[0];
    atomic_fetch_add(&pml_standin.regions_open, 1);
    return NCCLX_SUCCESS;
}

void pml_region_detach(struct ncclx_rt *rt, struct pml_region *region)
{
    (void)rt;
    atomic_fetch_sub(&pml_standin.regions_open, 1);
    free(region);
}

int pml_region_write(struct ncclx_rt *rt, struct pml_region *region, size_t offset, const void *from, size_t bytes)
{
    (void)rt;
    must(region->access == PML_ACCESS_COPY && offset <= region->bytes && bytes <= region->bytes - offset);
    memcpy((char *)(uintptr_t)region->address + offset, from, bytes);
    return NCCLX_SUCCESS;
}

int pml_region_read(struct ncclx_rt *rt, struct pml_region *region, size_t offset, void *to, size_t bytes)
{
    (void)rt;
    must(region->access == PML_ACCESS_COPY && offset <= region->bytes && bytes <= region->bytes - offset);
    memcpy(to, (char *)(uintptr_t)region->address + offset, bytes);
    return NCCLX_SUCCESS;
}

const _Atomic uint32_t *pml_sleeper(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
    return NULL;
}

void pml_wake(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
}

/* Epochs between groups are for tests of several processes. */
int pml_isend(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag,
              struct ncclx_request **request)
{
    (void)comm, (void)space, (void)buf, (void)bytes, (void)dest, (void)tag, (void)request;
    return NCCLX_ERR_UNSUPPORTED;
}

int pml_irecv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag,
              struct ncclx_request **request)
{
    (void)comm, (void)space, (void)buf, (void)bytes, (void)source, (void)tag, (void)request;
    return NCCLX_ERR_UNSUPPORTED;
}

void pml_count_direct(struct pml_region *region, size_t put_bytes, size_t get_bytes)
{
    (void)region, (void)put_bytes, (void)get_bytes;
}

int pml_am_register(struct ncclx_rt *rt, unsigned id, pml_am_fn function, void *arg)
{
    must(id < 8 && arg == rt->osc);
    pml_standin.arrived = function;
    return NCCLX_SUCCESS;
}

size_t pml_am_max(struct ncclx_rt *rt, int peer)
{
    (void)rt, (void)peer;
    return PML_STANDIN_AM_MAX;
}

int pml_am_send(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                size_t bytes)
{
    must(id == OSC_AM_ID && header_bytes <= PML_AM_HEADER_MAX && bytes <= PML_STANDIN_AM_MAX && peer != rt->job.rank);
    pml_standin.send(rt, peer, header, header_bytes, data, bytes);
    return NCCLX_SUCCESS;
}

int pml_am_answer(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                  size_t bytes)
{
    return pml_am_send(rt, peer, id, header, header_bytes, data, bytes);
}

void pml_peer_breach(struct ncclx_rt *rt, int peer, const char *what)
{
    (void)what;
    must(peer >= 0 && peer != rt->job.rank);
    atomic_fetch_add(&pml_standin.breaches, 1);
}

/* ---- Lanes: as late as may be, and in the opposite order ---- */

struct move {
    struct move *next;
    char *to;
    const char *from;
    size_t bytes;
};

struct pml_order {
    struct ncclx_rt *rt;
    struct pml_region *region;
    struct move *moves;
};

int pml_order_make(struct ncclx_rt *rt, struct pml_region *region, void (*changed)(void *arg), void *arg,
                   struct pml_order **order)
{
    (void)changed, (void)arg;
    *order = calloc(1, sizeof **order);
    must(*order != NULL && region->access == PML_ACCESS_LANES);
    (*order)->rt = rt;
    (*order)->region = region;
    return NCCLX_SUCCESS;
}

static void move_all(struct pml_order *order)
{
    while (order->moves) {
        struct move *move = order->moves;
        order->moves = move->next;
        memcpy(move->to, move->from, move->bytes);
        free(move);
    }
}

void pml_order_leave(struct pml_order *order)
{
    if (!order) return;
    move_all(order);
    free(order);
}

static void keep(struct pml_order *order, char *to, const char *from, size_t bytes)
{
    struct move *move = calloc(1, sizeof *move);
    must(move != NULL);
    *move = (struct move){.next = order->moves, .to = to, .from = from, .bytes = bytes};
    order->moves = move;
}

static char *place(const struct pml_order *order, size_t offset, size_t bytes)
{
    must(offset <= order->region->key && bytes <= order->region->key - offset);
    return (char *)(uintptr_t)order->region->address + offset;
}

int pml_order_put(struct pml_order *order, size_t offset, const void *from, size_t bytes, const struct pml_signal *signal)
{
    if (bytes) keep(order, place(order, offset, bytes), from, bytes);
    if (!signal) return NCCLX_SUCCESS;
    move_all(order);
    pml_standin.send_signal(order->rt, order->region->peer, signal);
    return NCCLX_SUCCESS;
}

int pml_order_get(struct pml_order *order, size_t offset, void *to, size_t bytes)
{
    keep(order, to, place(order, offset, bytes), bytes);
    return NCCLX_SUCCESS;
}

int pml_order_flush(struct pml_order *order, struct pml_goal *goal)
{
    move_all(order);
    *goal = (struct pml_goal){0, 0};
    return NCCLX_SUCCESS;
}

bool pml_order_reached(const struct pml_order *order, const struct pml_goal *goal)
{
    (void)goal;
    return !order->moves;
}

int pml_order_error(const struct pml_order *order)
{
    (void)order;
    return NCCLX_SUCCESS;
}

void pml_signal_register(struct ncclx_rt *rt, pml_signal_fn function, void *arg)
{
    must(arg == rt->osc);
    pml_standin.signalled = function;
}
