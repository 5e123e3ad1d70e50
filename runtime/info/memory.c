/* memory.c - ncclx-info --memory: what a rank holds after its start, after it has met the others, and after large data.
 *
 * Connections are made when they are used, so ranks send each other a small message, and a large one, and rank 0 tells what
 * each has cost it. */
#include "runtime/info/info.h"
#include "pml/pml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WORLD NCCLX_COMM_WORLD
#define SMALL ((size_t)8)
#define LARGE ((size_t)4 << 20) /* more than goes at once on any way: zero-copy, or over lanes */
/* What was opened with a message may still be opening when that is there: figures that stay the same so long are final. */
#define QUIET_NS UINT64_C(200000000)
#define QUIET_MOST_NS UINT64_C(2000000000)

static const char *const transports[] = {"shm", "tcp"};
#define TRANSPORTS (sizeof transports / sizeof transports[0])

struct moment {
    const char *title;
    struct base_area_usage area[AREA_COUNT];
    struct pml_holdings by[TRANSPORTS];
    uint64_t resident, descriptors;
};
#define MOMENTS 3

struct job {
    struct ncclx_rt *rt;
    int rank, size;
};

/* ---- What there is ---- */

static uint64_t bytes_of(const struct pml_holdings *holdings)
{
    uint64_t bytes = 0;
    for (int i = 0; i < PML_MEMORY_KINDS; i++) bytes += holdings->bytes[i];
    return bytes;
}

static uint64_t bytes_of_areas(const struct moment *moment)
{
    uint64_t bytes = 0;
    for (int area = 0; area < AREA_COUNT; area++) bytes += moment->area[area].bytes;
    return bytes;
}

static uint64_t resident_bytes(void)
{
    unsigned long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int look(const struct job *job, struct moment *moment)
{
    int error = NCCLX_SUCCESS;
    for (int area = 0; area < AREA_COUNT; area++) base_area_usage((enum base_area)area, &moment->area[area]);
    base_rt_lock(job->rt);
    for (size_t i = 0; i < TRANSPORTS && !error; i++) error = pml_get_holdings(job->rt, transports[i], -1, &moment->by[i]);
    base_rt_unlock(job->rt);
    moment->resident = resident_bytes();
    moment->descriptors = base_process_descriptors(0);
    return error;
}

/* While others may still be at work. */
static int look_when_quiet(const struct job *job, struct moment *moment)
{
    uint64_t begin = base_clock_ns(), since = begin;
    struct pml_holdings last[TRANSPORTS];
    int error = look(job, moment), found;
    for (uint64_t now = begin; !error && now - since < QUIET_NS && now - begin < QUIET_MOST_NS; now = base_clock_ns()) {
        memcpy(last, moment->by, sizeof last);
        error = ncclx_iprobe(NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, WORLD, &found, NCCLX_STATUS_IGNORE);
        if (!error) error = look(job, moment);
        if (memcmp(last, moment->by, sizeof last)) since = now;
    }
    return error;
}

/* ---- What makes it grow ---- */

/* With each other rank, in turns, so that no rank is asked by all at once. */
static int exchange(const struct job *job, size_t bytes)
{
    char *out = calloc(1, bytes), *in = calloc(1, bytes);
    int error = out && in ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "no memory for messages of %zu bytes", bytes);
    for (int step = 1; step < job->size && !error; step++) {
        int to = (job->rank + step) % job->size, from = (job->rank + job->size - step) % job->size;
        error = ncclx_sendrecv(out, bytes, in, bytes, NCCLX_BYTE, to, 0, from, 0, WORLD, NCCLX_STATUS_IGNORE);
    }
    free(out);
    free(in);
    return error;
}

/* Returns how many moments there are. */
static int measure(const struct job *job, struct moment *moment, int *count)
{
    moment[0].title = "start";
    int error = look(job, &moment[0]);
    *count = 1;
    if (job->size == 1) return error;
    moment[1].title = "messages";
    if (!error) error = exchange(job, SMALL);
    if (!error) error = look_when_quiet(job, &moment[1]);
    moment[2].title = "large data";
    if (!error) error = exchange(job, LARGE);
    if (!error) error = look_when_quiet(job, &moment[2]);
    *count = MOMENTS;
    return error;
}

/* ---- The answer ---- */

struct table {
    const struct moment *moment;
    int count;
};

static void print_title(const struct table *table, const char *title, const char *more)
{
    printf("\n%-22s", title);
    for (int i = 0; i < table->count; i++) printf(" %12s", table->moment[i].title);
    printf("%s\n", more);
}

static void print_areas(const struct table *table)
{
    print_title(table, "bytes of an area", "    most ever");
    for (int area = 0; area < AREA_COUNT; area++) {
        printf("  %-20s", base_area_name((enum base_area)area));
        for (int i = 0; i < table->count; i++) printf(" %12" PRIu64, table->moment[i].area[area].bytes);
        printf(" %12" PRIu64 "\n", table->moment[table->count - 1].area[area].peak);
    }
    printf("  %-20s", "all");
    for (int i = 0; i < table->count; i++) printf(" %12" PRIu64, bytes_of_areas(&table->moment[i]));
    printf("\n");
    print_title(table, "the process", "");
    printf("  %-20s", "resident bytes");
    for (int i = 0; i < table->count; i++) printf(" %12" PRIu64, table->moment[i].resident);
    printf("\n  %-20s", "descriptors");
    for (int i = 0; i < table->count; i++) printf(" %12" PRIu64, table->moment[i].descriptors);
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY) printf(" of %llu", (unsigned long long)limit.rlim_cur);
    printf("\n");
}

enum figure { FIGURE_PEERS, FIGURE_OPEN, FIGURE_RESTING, FIGURE_LANES, FIGURE_DESCRIPTORS, FIGURE_BYTES, FIGURE_MEAN };

static uint64_t figure_of(const struct pml_holdings *holdings, enum figure figure)
{
    switch (figure) {
    case FIGURE_PEERS: return (uint64_t)holdings->peers;
    case FIGURE_OPEN: return (uint64_t)holdings->open;
    case FIGURE_RESTING: return (uint64_t)holdings->resting;
    case FIGURE_LANES: return (uint64_t)holdings->lanes;
    case FIGURE_DESCRIPTORS: return (uint64_t)holdings->descriptors;
    case FIGURE_BYTES: return bytes_of(holdings);
    case FIGURE_MEAN: return holdings->peers ? bytes_of(holdings) / (uint64_t)holdings->peers : 0;
    }
    return 0;
}

static void print_figure(const struct table *table, size_t transport, const char *name, enum figure figure)
{
    printf("  %-20s", name);
    for (int i = 0; i < table->count; i++) printf(" %12" PRIu64, figure_of(&table->moment[i].by[transport], figure));
    printf("\n");
}

static void print_transport(const struct table *table, size_t transport)
{
    static const char *const kind[PML_MEMORY_KINDS] = {"state", "keep", "receive", "lanes", "reorder", "chunks", "rings", "waiting"};
    char title[64];
    snprintf(title, sizeof title, "connections by %s", transports[transport]);
    if (!table->moment[table->count - 1].by[transport].peers) {
        printf("\n%-22s %12s\n", title, "none");
        return;
    }
    print_title(table, title, "");
    print_figure(table, transport, "peers", FIGURE_PEERS);
    print_figure(table, transport, "open", FIGURE_OPEN);
    print_figure(table, transport, "resting", FIGURE_RESTING);
    print_figure(table, transport, "lanes", FIGURE_LANES);
    print_figure(table, transport, "descriptors", FIGURE_DESCRIPTORS);
    for (int i = 0; i < PML_MEMORY_KINDS; i++) {
        printf("  bytes of %-11s", kind[i]);
        for (int m = 0; m < table->count; m++) printf(" %12" PRIu64, table->moment[m].by[transport].bytes[i]);
        printf("\n");
    }
    print_figure(table, transport, "bytes of all", FIGURE_BYTES);
    print_figure(table, transport, "bytes a peer", FIGURE_MEAN);
}

/* The transport's name; null: there is no connection to this rank. */
static const char *find_peer(const struct job *job, int peer, struct pml_holdings *one)
{
    for (size_t i = 0; i < TRANSPORTS; i++) {
        base_rt_lock(job->rt);
        int error = pml_get_holdings(job->rt, transports[i], peer, one);
        base_rt_unlock(job->rt);
        if (!error && one->peers) return transports[i];
    }
    return NULL;
}

static bool describe_peer(const struct job *job, int peer, char *text, size_t bytes)
{
    struct pml_holdings one;
    const char *transport = find_peer(job, peer, &one);
    if (!transport) return false;
    snprintf(text, bytes, "%-9s %-7s %7d %11d %12" PRIu64, transport, one.open ? "open" : one.resting ? "resting" : "closed", one.lanes,
             one.descriptors, bytes_of(&one));
    return true;
}

/* Those in a row that are alike have one line. */
static void print_peers(const struct job *job)
{
    char text[2][128];
    printf("\n%-12s %-9s %-7s %7s %11s %12s\n", "peer", "transport", "state", "lanes", "descriptors", "bytes");
    for (int rank = 0, next; rank < job->size; rank = next) {
        char ranks[32];
        next = rank + 1;
        if (rank == job->rank || !describe_peer(job, rank, text[0], sizeof text[0])) continue;
        while (next < job->size && describe_peer(job, next, text[1], sizeof text[1]) && !strcmp(text[0], text[1])) next++;
        if (next == rank + 1) snprintf(ranks, sizeof ranks, "%d", rank);
        else snprintf(ranks, sizeof ranks, "%d-%d", rank, next - 1);
        printf("%-12s %s\n", ranks, text[0]);
    }
}

/* What large data has shown of the paths. */
static void print_paths(const struct job *job)
{
    struct pml_holdings one;
    bool any = false;
    for (int rank = 0; rank < job->size; rank++) {
        if (rank == job->rank || !find_peer(job, rank, &one) || !one.round_trip_ns) continue;
        if (!any) printf("\n%-12s %13s %10s %12s\n", "path to", "round trip us", "MB/s", "window");
        any = true;
        printf("%-12d %13.1f %10.1f %12" PRIu64 "\n", rank, (double)one.round_trip_ns / 1e3, (double)one.rate / 1e6, one.window);
    }
}

/* The areas of all ranks: which one holds least, and which most. */
static int compare_ranks(const struct job *job, uint64_t own, char *text, size_t bytes)
{
    uint64_t *all = calloc((size_t)job->size, sizeof *all);
    int least = 0, most = 0;
    int error = all ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "no memory for figures of %d ranks", job->size);
    if (!error) error = ncclx_coll_allgather(&own, all, 1, NCCLX_UINT64, WORLD);
    for (int i = 0; i < job->size && !error; i++) {
        if (all[i] < all[least]) least = i;
        if (all[i] > all[most]) most = i;
    }
    if (!error)
        snprintf(text, bytes, "areas of all ranks, at the end: rank %d holds least, %" PRIu64 " bytes, rank %d most, %" PRIu64 "\n", least,
                 all[least], most, all[most]);
    free(all);
    return error;
}

static int tell(const struct job *job)
{
    static struct moment moment[MOMENTS];
    struct table table = {.moment = moment};
    char compared[160] = "";
    int error = measure(job, moment, &table.count);
    if (!error && job->size > 1) error = compare_ranks(job, bytes_of_areas(&moment[table.count - 1]), compared, sizeof compared);
    if (error || job->rank > 0) return error;
    printf("memory of rank 0, in a job of %d\n", job->size);
    print_areas(&table);
    for (size_t i = 0; i < TRANSPORTS && job->size > 1; i++) print_transport(&table, i);
    if (job->size > 1) print_peers(job);
    if (job->size > 1) print_paths(job);
    printf("\n%s", job->size > 1 ? compared : "no connections: a job of several ranks has some, such as ncclxrun -n 4 ncclx-info --memory\n");
    return NCCLX_SUCCESS;
}

int info_memory(void)
{
    struct job job;
    int error = ncclx_init(NULL, NULL);
    if (error) return error;
    job.rt = ncclx_process.rt;
    error = ncclx_comm_rank(WORLD, &job.rank);
    if (!error) error = ncclx_comm_size(WORLD, &job.size);
    if (!error) error = tell(&job);
    int end_error = ncclx_finalize();
    return error ? error : end_error;
}
