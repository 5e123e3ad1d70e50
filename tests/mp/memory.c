/* memory.c - what a rank of a big job takes: `memory pmix` of a program that only starts, `memory ncclx` of one that also has met all others in a
 * barrier. Each rank prints its number, the job's size, and its own memory in KiB (its share of what it shares); rank 0 its daemon's, too. */
#include <ncclx.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int of_ncclx, rank, size;
static pmix_proc_t self, everyone;

static void must(const char *what, int good)
{
    if (good) return;
    fprintf(stderr, "rank %d: failed: %s\n", rank, what);
    exit(99);
}

/* "Pss: 123 kB" of /proc/PID/smaps_rollup, -1: not to be had. */
static long share_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld", &kib) == 1) break;
    if (file) fclose(file);
    return kib;
}

static void join(void)
{
    if (of_ncclx) {
        must("ncclx_init", !ncclx_init(NULL, NULL));
        must("its place", !ncclx_comm_rank(NCCLX_COMM_WORLD, &rank) && !ncclx_comm_size(NCCLX_COMM_WORLD, &size));
        return;
    }
    pmix_value_t *value = NULL;
    must("PMIx_Init", PMIx_Init(&self, NULL, 0) == PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&everyone, self.nspace, PMIX_RANK_WILDCARD);
    must("its place", PMIx_Get(&everyone, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS);
    rank = (int)self.rank;
    size = (int)value->data.uint32;
    PMIX_VALUE_RELEASE(value);
}

static void meet(void)
{
    must("meeting the others", of_ncclx ? !ncclx_coll_barrier(NCCLX_COMM_WORLD)
                                        : PMIx_Fence(&everyone, 1, NULL, 0) == PMIX_SUCCESS);
}

int main(int argc, char **argv)
{
    of_ncclx = argc > 1 && !strcmp(argv[1], "ncclx");
    join();
    meet();
    printf("rank %d of %d: %ld KiB\n", rank, size, share_kib(getpid()));
    if (rank == 0) printf("daemon: %ld KiB\n", share_kib(getppid()));
    fflush(stdout);
    meet();
    must("leaving", of_ncclx ? !ncclx_finalize() : PMIx_Finalize(NULL, 0) == PMIX_SUCCESS);
    return 0;
}
