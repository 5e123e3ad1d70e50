/* cg_halo.c - see cg_halo.h. */
#include "cg_halo.h"

#include <stdlib.h>
#include <string.h>

#define TAG_NEEDS 3
#define WISH_HEAD 2 /* words in front of the list of elements: their place in the halo, and the size of the halo */

/* Elements of the halo are grouped by owner: one neighbour each. */
static void find_senders(struct halo *halo, uint64_t *needs)
{
    const struct system *system = halo->system;
    for (uint64_t i = 0; i < system->halo; i++) needs[system_owner(system, system->halo_column[i])]++;
    halo->from = need((size_t)system->size, sizeof *halo->from);
    uint64_t first = 0;
    for (int r = 0; r < system->size; r++) {
        if (!needs[r]) continue;
        halo->from[halo->from_count++] = (struct halo_neighbour){.rank = r, .first = first, .count = needs[r]};
        first += needs[r];
    }
}

static void find_receivers(struct halo *halo, const uint64_t *gives)
{
    halo->to = need((size_t)halo->system->size, sizeof *halo->to);
    for (int r = 0; r < halo->system->size; r++) {
        if (!gives[r]) continue;
        halo->to[halo->to_count++] = (struct halo_neighbour){.rank = r, .first = halo->given, .count = gives[r]};
        halo->given += gives[r];
    }
}

/* The list that tells an owner which of its elements this rank needs. */
static uint64_t *make_wish(const struct system *system, const struct halo_neighbour *owner)
{
    uint64_t *wish = need(owner->count + WISH_HEAD, sizeof *wish);
    wish[0] = owner->first;
    wish[1] = system->halo;
    for (uint64_t i = 0; i < owner->count; i++)
        wish[WISH_HEAD + i] = system->halo_column[owner->first + i] - system->bound[owner->rank];
    return wish;
}

static void exchange_wishes(struct halo *halo)
{
    const struct system *system = halo->system;
    ncclx_request_t *requests = need((size_t)halo->from_count, sizeof *requests);
    uint64_t **wishes = need((size_t)halo->from_count, sizeof *wishes);
    for (int i = 0; i < halo->from_count; i++) {
        wishes[i] = make_wish(system, &halo->from[i]);
        ncclx_isend(wishes[i], halo->from[i].count + WISH_HEAD, NCCLX_UINT64, halo->from[i].rank, TAG_NEEDS, system->comm, &requests[i]);
    }
    halo->element = need(halo->given, sizeof *halo->element);
    for (int i = 0; i < halo->to_count; i++) {
        struct halo_neighbour *to = &halo->to[i];
        uint64_t *wish = need(to->count + WISH_HEAD, sizeof *wish);
        ncclx_recv(wish, to->count + WISH_HEAD, NCCLX_UINT64, to->rank, TAG_NEEDS, system->comm, NCCLX_STATUS_IGNORE);
        to->place = wish[0];
        to->whole = wish[1];
        memcpy(halo->element + to->first, wish + WISH_HEAD, to->count * sizeof *wish);
        free(wish);
    }
    ncclx_waitall((size_t)halo->from_count, requests, NCCLX_STATUSES_IGNORE);
    for (int i = 0; i < halo->from_count; i++) free(wishes[i]);
    free(wishes);
    free(requests);
}

static void make_window(struct halo *halo)
{
    const struct system *system = halo->system;
    char slots[32];
    ncclx_info_t info;
    void *memory;
    snprintf(slots, sizeof slots, "%d", 2 * system->size);
    ncclx_info_create(&info);
    ncclx_info_set(info, "ncclx_signal_slots", slots);
    ncclx_win_allocate(2 * system->halo * sizeof(double), sizeof(double), info, system->comm, &memory, &halo->window);
    ncclx_info_free(&info);
    halo->arriving = memory;
    halo->staged = need(2 * halo->given, sizeof *halo->staged);
}

void halo_create(struct halo *halo, const struct system *system)
{
    uint64_t *needs = need((size_t)system->size, sizeof *needs), *gives = need((size_t)system->size, sizeof *gives);
    *halo = (struct halo){.system = system};
    find_senders(halo, needs);
    ncclx_coll_alltoall(needs, gives, 1, NCCLX_UINT64, system->comm);
    find_receivers(halo, gives);
    free(needs);
    free(gives);
    exchange_wishes(halo);
    make_window(halo);
}

static void give(struct halo *halo, const struct halo_neighbour *to, const double *vector)
{
    const struct system *system = halo->system;
    const uint64_t half = halo->exchanges % 2;
    double *staged = halo->staged + half * halo->given + to->first;
    /* Taken two exchanges ago: both the half over there and the staged copy here are free. */
    if (halo->exchanges >= 2)
        ncclx_win_wait_signal(halo->window, (size_t)(system->size + to->rank), NCCLX_CMP_GE, halo->exchanges - 1, -1, NULL);
    for (uint64_t i = 0; i < to->count; i++) staged[i] = vector[halo->element[to->first + i]];
    ncclx_win_put_signal(staged, to->count, NCCLX_DOUBLE, to->rank, half * to->whole + to->place, halo->window, (size_t)system->rank,
                         NCCLX_SIGNAL_ADD, 1);
    halo->puts++;
    halo->bytes_put += to->count * sizeof *staged;
}

void halo_exchange(struct halo *halo, double *vector)
{
    const struct system *system = halo->system;
    for (int i = 0; i < halo->to_count; i++) give(halo, &halo->to[i], vector);
    const double *arrived = halo->arriving + (halo->exchanges % 2) * system->halo;
    halo->exchanges++;
    for (int i = 0; i < halo->from_count; i++) {
        const struct halo_neighbour *from = &halo->from[i];
        ncclx_win_wait_signal(halo->window, (size_t)from->rank, NCCLX_CMP_GE, halo->exchanges, -1, NULL);
        memcpy(vector + system->own + from->first, arrived + from->first, from->count * sizeof *vector);
        ncclx_win_signal(from->rank, halo->window, (size_t)(system->size + system->rank), NCCLX_SIGNAL_ADD, 1);
    }
}

void halo_free(struct halo *halo)
{
    ncclx_win_free(&halo->window);
    free(halo->staged);
    free(halo->element);
    free(halo->from);
    free(halo->to);
}
