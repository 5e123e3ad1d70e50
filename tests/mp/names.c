/* names.c - what the launcher's PMIx server does for programs that use PMIx themselves: publish, look up, unpublish.
 * Each rank publishes two names, finds those of all, and none after they were taken back. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pmix_proc_t self;
static int failures;

static void check(int good, const char *what, int status)
{
    if (good) return;
    fprintf(stderr, "rank %u: %s: %s\n", self.rank, what, PMIx_Error_string(status));
    failures++;
}

static void fence(void)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    int status = PMIx_Fence(&all, 1, NULL, 0);
    check(status == PMIX_SUCCESS, "a fence", status);
}

static void publish(void)
{
    pmix_info_t info[2];
    char name[64], text[64];
    uint32_t number = 1000 + self.rank;
    snprintf(name, sizeof name, "text of %u", self.rank);
    snprintf(text, sizeof text, "I am %u", self.rank);
    PMIX_INFO_LOAD(&info[0], name, text, PMIX_STRING);
    snprintf(name, sizeof name, "number of %u", self.rank);
    PMIX_INFO_LOAD(&info[1], name, &number, PMIX_UINT32);
    int status = PMIx_Publish(info, 2);
    check(status == PMIX_SUCCESS, "publishing two names", status);
    status = PMIx_Publish(info, 2);
    check(status == PMIX_ERR_DUPLICATE_KEY, "publishing them again", status);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}

static void look_up(uint32_t rank, int there)
{
    pmix_pdata_t data[2];
    char text[64];
    PMIX_PDATA_CONSTRUCT(&data[0]);
    PMIX_PDATA_CONSTRUCT(&data[1]);
    snprintf(data[0].key, sizeof data[0].key, "number of %u", rank);
    snprintf(data[1].key, sizeof data[1].key, "text of %u", rank);
    snprintf(text, sizeof text, "I am %u", rank);
    int status = PMIx_Lookup(data, 2, NULL, 0);
    if (there) {
        check(status == PMIX_SUCCESS, "looking two names up", status);
        check(data[0].value.type == PMIX_UINT32 && data[0].value.data.uint32 == 1000 + rank, "a number", status);
        check(data[1].value.type == PMIX_STRING && !strcmp(data[1].value.data.string, text), "a text", status);
        check(data[0].proc.rank == rank && data[1].proc.rank == rank, "its owner", status);
    } else {
        check(status == PMIX_ERR_NOT_FOUND, "looking for what is not there", status);
    }
    PMIX_PDATA_DESTRUCT(&data[0]);
    PMIX_PDATA_DESTRUCT(&data[1]);
}

static uint32_t job_size(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    int status = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
    check(status == PMIX_SUCCESS, "the size of the job", status);
    uint32_t size = value ? value->data.uint32 : 0;
    PMIX_VALUE_RELEASE(value);
    return size;
}

int main(void)
{
    int status = PMIx_Init(&self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_Init: %s\n", PMIx_Error_string(status));
        return 1;
    }
    uint32_t size = job_size();
    char first[64], *mine[] = {first, NULL};
    publish();
    fence();
    for (uint32_t rank = 0; rank < size; rank++) look_up(rank, 1);
    fence();
    snprintf(first, sizeof first, "text of %u", (self.rank + 1) % size);
    status = size > 1 ? PMIx_Unpublish(mine, NULL, 0) : PMIX_ERR_NOT_FOUND; /* another's, which stays */
    check(status == PMIX_ERR_NOT_FOUND, "taking another's name back", status);
    fence();
    look_up((self.rank + 1) % size, 1);
    fence();
    status = PMIx_Unpublish(NULL, NULL, 0);
    check(status == PMIX_SUCCESS, "taking all names back", status);
    fence();
    for (uint32_t rank = 0; rank < size; rank++) look_up(rank, 0);
    status = PMIx_Finalize(NULL, 0);
    check(status == PMIX_SUCCESS, "PMIx_Finalize", status);
    return failures != 0;
}
