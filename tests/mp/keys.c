/* keys.c - the process manager's side of a job, below the public interface: keys of ranks, nodes, and the memory that they share. */
#include "config.h"

#include "bootstrap/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ncclx_rt rt;

static void check(int line, const char *what, int good)
{
    if (good) return;
    fprintf(stderr, "%s:%d: rank %d: failed: %s; last detail: %s\n", __FILE__, line, rt.job.rank, what, base_error_detail());
    bootstrap_abort(&rt, 99, "a check failed");
    exit(99);
}
#define CHECK(condition) check(__LINE__, #condition, (condition) != 0)

static void keys_of_every_rank(void)
{
    char mine[64], expected[64];
    void *value;
    size_t bytes;
    snprintf(mine, sizeof mine, "card of %d", rt.job.rank);
    CHECK(!bootstrap_put(&rt, "card", mine, strlen(mine)));
    CHECK(!bootstrap_commit(&rt));
    for (int rank = 0; rank < rt.job.size; rank++) {
        snprintf(expected, sizeof expected, "card of %d", rank);
        CHECK(!bootstrap_get(&rt, rank, "card", &value, &bytes, 30000));
        CHECK(bytes == strlen(expected) && !memcmp(value, expected, bytes));
        base_free(AREA_BOOTSTRAP, value);
    }
}

static void key_that_never_comes(void)
{
    void *value;
    size_t bytes;
    uint64_t begin = base_clock_ns();
    CHECK(bootstrap_get(&rt, (rt.job.rank + 1) % rt.job.size, "never", &value, &bytes, 300) == NCCLX_ERR_TIMEOUT);
    CHECK(base_clock_ns() - begin >= 250000000);
}

/* Committed after others have asked for it, by a rank that has committed other keys before. */
static void key_that_comes_late(void)
{
    static const char late[100000] = "late";
    int last = rt.job.size - 1;
    void *value;
    size_t bytes;
    if (rt.job.rank == last) {
        usleep(300000);
        CHECK(!bootstrap_put(&rt, "late", late, sizeof late));
        CHECK(!bootstrap_commit(&rt));
        return;
    }
    CHECK(!bootstrap_get(&rt, last, "late", &value, &bytes, 60000));
    CHECK(bytes == sizeof late && !memcmp(value, late, bytes));
    base_free(AREA_BOOTSTRAP, value);
}

static void nodes(void)
{
    int mine, node;
    CHECK(!bootstrap_node_of(&rt, rt.job.rank, &mine));
    for (int rank = 0; rank < rt.job.size; rank++) {
        const int *ranks;
        int count, found = 0;
        CHECK(!bootstrap_node_of(&rt, rank, &node));
        CHECK((node == mine) == (base_job_local_index(&rt.job, rank) >= 0));
        CHECK(!bootstrap_node_ranks(&rt, rank, &ranks, &count));
        for (int i = 0; i < count; i++) found += ranks[i] == rank;
        CHECK(found == 1);
    }
}

/* Each rank writes its number into the memory of its node, and finds those of all others in theirs. */
static void shared_memory(void)
{
    size_t bytes = (size_t)rt.job.size * sizeof(int);
    int fd;
    CHECK(!bootstrap_node_segment(&rt, &fd));
    CHECK(!ftruncate(fd, (off_t)bytes));
    int *numbers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(numbers != MAP_FAILED);
    close(fd);
    numbers[rt.job.rank] = rt.job.rank + 1;
    CHECK(!bootstrap_fence(&rt));
    for (int rank = 0; rank < rt.job.size; rank++) {
        CHECK(!bootstrap_segment_of(&rt, rank, &fd)); /* here all nodes are one machine */
        int *theirs = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(theirs != MAP_FAILED);
        CHECK(theirs[rank] == rank + 1);
        munmap(theirs, bytes);
        close(fd);
    }
    munmap(numbers, bytes);
}

int main(void)
{
    CHECK(!base_rt_init(&rt, NULL));
    if (bootstrap_init(&rt)) {
        printf("%s\n", base_error_detail());
        return 98;
    }
    base_rt_configure(&rt);
    keys_of_every_rank();
    key_that_never_comes();
    key_that_comes_late();
    nodes();
    shared_memory();
    for (int i = 0; i < 50; i++) CHECK(!bootstrap_fence(&rt));
    printf("rank %d of %d on %s\n", rt.job.rank, rt.job.size, rt.job.node_name);
    fflush(stdout);
    CHECK(!bootstrap_finalize(&rt));
    base_rt_release(&rt);
    return 0;
}
