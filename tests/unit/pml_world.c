/* pml_world.c - several ranks in one process. */
#include "config.h"

#include "tests/unit/pml_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 1000000

static void must(bool ok, const char *what)
{
    if (ok) return;
    printf("Bail out! %s: %s\n", what, base_error_detail());
    exit(1);
}

static void make_job(struct ncclx_rt *rt, int rank, int size)
{
    rt->job.rank = rank;
    rt->job.size = size;
    rt->job.local_rank = rank;
    rt->job.local_size = size;
    rt->job.local_ranks = base_calloc(AREA_BOOTSTRAP, (size_t)size, sizeof(int));
    must(rt->job.local_ranks != NULL, "memory");
    for (int i = 0; i < size; i++) rt->job.local_ranks[i] = i;
    snprintf(rt->job.node_name, sizeof rt->job.node_name, "here");
}

static void open_on(struct world *world, int size, char **environment, int segment)
{
    static char *nothing[] = {NULL};
    memset(world, 0, sizeof *world);
    world->size = size;
    for (int i = 0; i < size; i++) {
        struct ncclx_rt *rt = &world->rt[i];
        must(!base_rt_init(rt, environment ? environment : nothing), "base_rt_init");
        make_job(rt, i, size);
        base_rt_configure(rt);
        must(!pml_init_on(rt, segment < 0 ? -1 : fcntl(segment, F_DUPFD_CLOEXEC, 0)), "pml_init_on");
        world->comm[i] = (struct ncclx_comm){.rt = rt, .context = 4, .rank = i, .size = size, .name = "test"};
        must(!pml_comm_attach(&world->comm[i]), "pml_comm_attach");
    }
}

void world_open(struct world *world, int size, char **environment)
{
    int segment = memfd_create("test", MFD_CLOEXEC);
    must(segment >= 0, "memfd_create");
    open_on(world, size, environment, segment);
    close(segment);
}

void world_open_apart(struct world *world, int size, char **environment)
{
    open_on(world, size, environment, -1);
}

void world_close(struct world *world)
{
    for (int i = 0; i < world->size; i++) {
        pml_comm_detach(&world->comm[i]);
        pml_finalize(&world->rt[i]);
        base_rt_release(&world->rt[i]);
    }
}

void world_progress(struct world *world)
{
    for (int i = 0; i < world->size; i++) base_progress(&world->rt[i]);
}

int world_wait(struct world *world, struct ncclx_request *request)
{
    for (int i = 0; i < ROUNDS && !request->complete; i++) world_progress(world);
    must(request->complete, "a request never completed");
    return request->status.error;
}
