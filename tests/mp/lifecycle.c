/* Start and end. lifecycle [CASE]: without one, what every program may do; with one, a way of going wrong. */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int flag_of(int (*function)(int *))
{
    int flag = -1;
    OK(function(&flag));
    return flag;
}

/* A child is no rank: it is told so by every call, and its end disturbs nobody. */
static void child_is_no_rank(void)
{
    int status, ignored;
    pid_t child = fork();
    if (child == 0) {
        int refused = ncclx_comm_rank(NCCLX_COMM_WORLD, &ignored) == NCCLX_ERR_FORKED &&
                      ncclx_coll_barrier(NCCLX_COMM_WORLD) == NCCLX_ERR_FORKED &&
                      ncclx_finalize() == NCCLX_ERR_FORKED && ncclx_init(NULL, NULL) == NCCLX_ERR_FORKED &&
                      strstr(ncclx_error_detail(), "fork");
        _exit(refused ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
}

static void before(void)
{
    int major, minor, patch, ignored;
    CHECK(flag_of(ncclx_initialized) == 0 && flag_of(ncclx_finalized) == 0);
    FAILS(ncclx_comm_rank(NCCLX_COMM_WORLD, &ignored), NCCLX_ERR_NOT_INITIALIZED);
    FAILS(ncclx_finalize(), NCCLX_ERR_NOT_INITIALIZED);
    FAILS(ncclx_wait(NULL, NULL), NCCLX_ERR_NOT_INITIALIZED);
    OK(ncclx_version(&major, &minor, &patch));
    CHECK(major == NCCLX_VERSION_MAJOR && minor == NCCLX_VERSION_MINOR && patch == NCCLX_VERSION_PATCH);
    double start = ncclx_wtime();
    CHECK(ncclx_wtime() >= start && ncclx_wtick() > 0 && ncclx_wtick() < 1);
}

static void after(void)
{
    int ignored;
    CHECK(flag_of(ncclx_initialized) == 1 && flag_of(ncclx_finalized) == 1);
    FAILS(ncclx_comm_rank(NCCLX_COMM_WORLD, &ignored), NCCLX_ERR_NOT_INITIALIZED);
    FAILS(ncclx_finalize(), NCCLX_ERR_NOT_INITIALIZED);
    FAILS(ncclx_init(NULL, NULL), NCCLX_ERR_NOT_INITIALIZED);
}

/* Objects that the program leaves end with the job. */
static void leave_objects(void)
{
    ncclx_comm_t comm;
    ncclx_group_t group;
    ncclx_info_t info;
    ncclx_win_t win;
    void *base;
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    OK(ncclx_comm_group(comm, &group));
    OK(ncclx_info_create(&info));
    OK(ncclx_win_allocate(4096, 1, NCCLX_INFO_NULL, comm, &base, &win));
}

/* The value of a variable, or null, to be put back. */
static char *taken(const char *name)
{
    const char *value = getenv(name);
    return value ? strdup(value) : NULL;
}

static void put_back(const char *name, char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
    free(value);
}

/* A start that failed for the configuration can be tried again, before and after the process manager knows of it. */
static void refused_start(void)
{
    char *spin = taken("NCCLX_SPIN"), *transports = taken("NCCLX_TRANSPORTS");
    setenv("NCCLX_ERRORS", "return", 1);
    setenv("NCCLX_SPIN", "often", 1);
    FAILS(ncclx_init(NULL, NULL), NCCLX_ERR_CONFIG);
    CHECK(strstr(ncclx_error_detail(), "NCCLX_SPIN") && flag_of(ncclx_initialized) == 0);
    FAILS(ncclx_init_thread(NULL, NULL, 9, NULL), NCCLX_ERR_ARG);
    put_back("NCCLX_SPIN", spin);
    setenv("NCCLX_TRANSPORTS", "carrier-pigeon", 1);
    for (int i = 0; i < 2; i++) FAILS(ncclx_init(NULL, NULL), NCCLX_ERR_CONFIG);
    CHECK(strstr(ncclx_error_detail(), "carrier-pigeon") && flag_of(ncclx_initialized) == 0);
    put_back("NCCLX_TRANSPORTS", transports);
    unsetenv("NCCLX_ERRORS");
}

static void normal(void)
{
    char host[NCCLX_MAX_HOST_NAME], cut[3];
    before();
    refused_start();
    OK(ncclx_init(NULL, NULL));
    CHECK(flag_of(ncclx_initialized) == 1 && flag_of(ncclx_finalized) == 0);
    OK(ncclx_host_name(host, sizeof host));
    OK(ncclx_host_name(cut, sizeof cut));
    CHECK(host[0] && strlen(cut) <= 2 && strncmp(host, cut, 2) == 0);
    child_is_no_rank();
    leave_objects();
    OK(ncclx_finalize());
    after();
}

static int wrong(const char *how)
{
    int rank, size;
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    int last = rank == size - 1;
    if (strcmp(how, "fatal") == 0 && last) ncclx_send(NULL, 1, NCCLX_INT32, 0, 0, NCCLX_COMM_WORLD);
    if (strcmp(how, "abort") == 0 && last) ncclx_abort(NCCLX_COMM_WORLD, 7);
    if (strcmp(how, "abort-0") == 0 && last) ncclx_abort(NCCLX_COMM_SELF, 0);
    if (strcmp(how, "timeout") == 0 && last)
        ncclx_recv(&rank, 1, NCCLX_INT32, 0, 3, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE);
    if (strcmp(how, "return") == 0) FAILS(ncclx_send(NULL, 1, NCCLX_INT32, 0, 0, NCCLX_COMM_WORLD), NCCLX_ERR_BUFFER);
    else if (strcmp(how, "twice") == 0) ncclx_init(NULL, NULL);
    else OK(ncclx_coll_barrier(NCCLX_COMM_WORLD)); /* the others wait for one that does not come */
    OK(ncclx_finalize());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return wrong(argv[1]);
    normal();
    return 0;
}
