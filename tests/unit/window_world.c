/* window_world.c - see window_world.h. */
#include "tests/unit/window_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- The stand-in -------------------------------------------------------------------------------------------- */

struct parcel {
    struct parcel *next;
    int source;
    bool is_signal;
    struct pml_signal signal;
    size_t header_bytes, bytes;
    char header[PML_AM_HEADER_MAX], data[PML_STANDIN_AM_MAX];
};

struct rank ranks[RANKS];
static pthread_barrier_t meeting;
static char exchange[RANKS][sizeof(struct osc_card)];

void expect_at(bool good, const char *condition, const char *file, int line)
{
    if (good) return;
    fflush(stdout);
    fprintf(stderr, "%s:%d: ways %d and %d: expected %s\n", file, line, pml_standin.shareable, pml_standin.plain, condition);
    _exit(1);
}

static void send(int peer, struct parcel *parcel)
{
    struct rank *to = &ranks[peer];
    pthread_mutex_lock(&to->guard);
    if (to->first) to->last->next = parcel;
    else to->first = parcel;
    to->last = parcel;
    pthread_mutex_unlock(&to->guard);
}

static void send_parcel(struct ncclx_rt *rt, int peer, const void *header, size_t header_bytes, const void *data, size_t bytes)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    parcel->source = rt->job.rank;
    parcel->header_bytes = header_bytes;
    parcel->bytes = bytes;
    memcpy(parcel->header, header, header_bytes);
    if (bytes) memcpy(parcel->data, data, bytes);
    send(peer, parcel);
}

static void post_signal(struct ncclx_rt *rt, int peer, const struct pml_signal *signal)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    parcel->source = rt->job.rank;
    parcel->is_signal = true;
    parcel->signal = *signal;
    send(peer, parcel);
}

int poll_messages(void *arg)
{
    struct rank *rank = arg;
    pthread_mutex_lock(&rank->guard);
    struct parcel *parcel = rank->first;
    if (parcel) rank->first = parcel->next;
    pthread_mutex_unlock(&rank->guard);
    if (!parcel) return 0;
    if (parcel->is_signal) pml_standin.signalled(&rank->rt, parcel->source, &parcel->signal, rank->rt.osc);
    else pml_standin.arrived(&rank->rt, parcel->source, parcel->header, parcel->header_bytes, parcel->data, parcel->bytes, rank->rt.osc);
    free(parcel);
    return 1;
}

int meet(struct ncclx_comm *comm)
{
    base_rt_unlock(comm->rt);
    pthread_barrier_wait(&meeting);
    base_rt_lock(comm->rt);
    return NCCLX_SUCCESS;
}

void meet_silently(void)
{
    pthread_barrier_wait(&meeting);
}

static int gather(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes)
{
    memcpy(exchange[comm->rank], mine, bytes);
    meet(comm);
    for (int i = 0; i < RANKS; i++) memcpy((char *)all + (size_t)i * bytes, exchange[i], bytes);
    return meet(comm);
}

static const struct base_comm_services services = {.barrier = meet, .allgather = gather};

/* ---- Running ranks ------------------------------------------------------------------------------------------- */

static void (*program)(struct rank *rank);

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    base_rt_lock(&rank->rt);
    program(rank);
    meet(&rank->comm);
    base_rt_unlock(&rank->rt);
    base_agent_stop(&rank->rt);
    return NULL;
}

static void start_rank(int i)
{
    static char *no_environment[] = {NULL};
    struct rank *rank = &ranks[i];
    memset(rank, 0, sizeof *rank);
    assert_int_equal(base_rt_init(&rank->rt, no_environment), NCCLX_SUCCESS);
    rank->rt.job.rank = i;
    rank->rt.job.size = RANKS;
    rank->rt.spin_limit = 1;
    pthread_mutex_init(&rank->guard, NULL);
    rank->comm = (struct ncclx_comm){
        .rt = &rank->rt, .context = 64, .rank = i, .size = RANKS, .services = &services, .name = "test"};
    assert_int_equal(osc_init(&rank->rt), NCCLX_SUCCESS);
    assert_int_equal(base_rt_add_poller(&rank->rt, poll_messages, rank), NCCLX_SUCCESS);
}

void run_with(void (*function)(struct rank *rank), enum pml_access of_shareable, enum pml_access of_plain)
{
    pml_standin.shareable = of_shareable;
    pml_standin.plain = of_plain;
    pml_standin.send = send_parcel;
    pml_standin.send_signal = post_signal;
    program = function;
    pthread_barrier_init(&meeting, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) start_rank(i);
    for (int i = 0; i < RANKS; i++) pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]);
    for (int i = 0; i < RANKS; i++) pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < RANKS; i++) {
        osc_finalize(&ranks[i].rt);
        base_rt_release(&ranks[i].rt);
    }
    pthread_barrier_destroy(&meeting);
    assert_int_equal(pml_standin.regions_open, 0);
    struct base_area_usage usage;
    base_area_usage(AREA_OSC, &usage);
    assert_int_equal(usage.bytes, 0);
}

void run_all_ways(void (*function)(struct rank *rank))
{
    run_with(function, PML_ACCESS_DIRECT, PML_ACCESS_COPY);
    run_with(function, PML_ACCESS_DIRECT, PML_ACCESS_MESSAGE);
    run_with(function, PML_ACCESS_COPY, PML_ACCESS_COPY);
    run_with(function, PML_ACCESS_MESSAGE, PML_ACCESS_MESSAGE);
    run_with(function, PML_ACCESS_LANES, PML_ACCESS_LANES);
}

int create(struct ncclx_comm *comm, void *memory, size_t bytes, size_t unit, size_t slots, void **base, struct ncclx_win **win)
{
    struct ncclx_win *made = NULL;
    int error = osc_win_reserve(comm, &made);
    if (!error) error = osc_win_create(made, comm, memory, bytes, unit, slots, base);
    if (!error) *win = made;
    return error;
}

struct ncclx_win *make_window(struct rank *rank, void *memory, size_t bytes, size_t unit, char **base)
{
    struct ncclx_win *win = NULL;
    void *allocated = NULL;
    EXPECT(create(&rank->comm, memory, bytes, unit, SLOTS, &allocated, &win) == NCCLX_SUCCESS);
    *base = allocated;
    return win;
}
