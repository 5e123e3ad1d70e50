/* exchange.c - a rank that uses PMIx itself, on however many hosts:
 *
 *   exchange hello               meets the others in a fence
 *   exchange keys BYTES          puts a key of so many bytes; after a fence without data every rank reads the key of every other
 *   exchange collect BYTES       the same after a fence that brings all keys to every host
 *   exchange die WHEN RANK [SIGNAL]   RANK dies by SIGNAL (default 9): before-init, before, inside or after the fence, where the others wait
 *   exchange wait RANK           RANK never comes to the fence */
#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t self, everyone;
static uint32_t size;

static void fail(const char *what, int status)
{
    fprintf(stderr, "rank %u: failed: %s: %s\n", self.rank, what, PMIx_Error_string(status));
    PMIx_Abort(99, "a check failed", NULL, 0);
    exit(99);
}

static void must(const char *what, int status)
{
    if (status != PMIX_SUCCESS) fail(what, status);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fence(int collect)
{
    pmix_info_t info;
    bool yes = true;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    must("a fence", PMIx_Fence(&everyone, 1, collect ? &info : NULL, collect ? 1 : 0));
    PMIX_INFO_DESTRUCT(&info);
}

static uint32_t job_value(const char *key, uint32_t otherwise)
{
    pmix_value_t *value = NULL;
    uint32_t number = otherwise;
    if (PMIx_Get(&everyone, key, NULL, 0, &value) == PMIX_SUCCESS) number = value->data.uint32;
    if (value) PMIX_VALUE_RELEASE(value);
    return number;
}

/* Differs in every byte's neighbourhood and between ranks. */
static unsigned char byte_of(uint32_t rank, size_t i)
{
    return (unsigned char)((i * 2654435761u >> 11) ^ (i >> 3) ^ (rank * 37));
}

static void put(size_t bytes)
{
    pmix_value_t value;
    char *data = malloc(bytes + 1);
    if (!data) fail("memory", PMIX_ERR_NOMEM);
    for (size_t i = 0; i < bytes; i++) data[i] = (char)byte_of(self.rank, i);
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = data;
    value.data.bo.size = bytes;
    must("a put", PMIx_Put(PMIX_GLOBAL, "test.key", &value));
    must("a commit", PMIx_Commit());
    free(data);
}

static void read_all(size_t bytes)
{
    for (uint32_t step = 1; step <= size; step++) {
        pmix_proc_t other;
        pmix_value_t *value = NULL;
        uint32_t rank = (self.rank + step) % size;
        PMIX_LOAD_PROCID(&other, self.nspace, rank);
        must("reading another rank's key", PMIx_Get(&other, "test.key", NULL, 0, &value));
        int good = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == bytes;
        for (size_t i = 0; good && i < bytes; i++) good = (unsigned char)value->data.bo.bytes[i] == byte_of(rank, i);
        if (!good) fail("a key's bytes", PMIX_ERROR);
        PMIX_VALUE_RELEASE(value);
    }
}

/* After all keys were collected, a rank of another host need not be asked. PMIx' own server waits 2 s for one of its own host, unless told not to. */
static void absent_key(void)
{
    pmix_info_t info;
    pmix_value_t *value = NULL;
    pmix_proc_t other;
    bool at_once = job_value(PMIX_LOCAL_SIZE, size) == size;
    double begin = now();
    PMIX_LOAD_PROCID(&other, self.nspace, (self.rank + size / 2) % size);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &at_once, PMIX_BOOL);
    int status = PMIx_Get(&other, "test.absent", &info, 1, &value);
    if (status != PMIX_ERR_NOT_FOUND) fail("an absent key", status);
    if (now() - begin > 5) fail("an absent key takes too long", PMIX_ERR_TIMEOUT);
}

static void done(pmix_status_t status, void *arg)
{
    (void)arg;
    (void)status;
}

static void die(const char *when, int signal_number)
{
    if (!strcmp(when, "inside")) {
        must("beginning a fence", PMIx_Fence_nb(&everyone, 1, NULL, 0, done, NULL));
        usleep(300000);
    } else if (!strcmp(when, "after")) {
        fence(0);
    }
    raise(signal_number);
}

int main(int argc, char **argv)
{
    char host[256] = "";
    const char *action = argc > 1 ? argv[1] : "hello", *own = getenv("PMIX_RANK");
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 0;
    int dies = argc > 3 && !strcmp(action, "die"), signal_number = argc > 4 ? atoi(argv[4]) : SIGKILL;
    if (dies && !strcmp(argv[2], "before-init") && own && atoi(own) == atoi(argv[3])) raise(signal_number);
    int status = PMIx_Init(&self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_Init: %s\n", PMIx_Error_string(status));
        return 71;
    }
    PMIX_LOAD_PROCID(&everyone, self.nspace, PMIX_RANK_WILDCARD);
    size = job_value(PMIX_JOB_SIZE, 0);
    if (dies && self.rank == (uint32_t)atoi(argv[3])) die(argv[2], signal_number);
    if (!strcmp(action, "wait") && self.rank == (uint32_t)bytes) pause();
    if (!strcmp(action, "keys") || !strcmp(action, "collect")) put(bytes);
    fence(!strcmp(action, "collect"));
    if (dies && !strcmp(argv[2], "after")) fence(0);
    if (!strcmp(action, "keys") || !strcmp(action, "collect")) read_all(bytes);
    if (!strcmp(action, "collect")) absent_key();
    fence(0);
    gethostname(host, sizeof host - 1);
    printf("rank %u of %u on %s, one of %u there\n", self.rank, size, host, job_value(PMIX_LOCAL_SIZE, 0));
    fflush(stdout);
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
