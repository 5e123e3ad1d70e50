/* segment.c - the memory that ranks of a node share: a memfd without a name in any file system, reached through its holder's
 * entry in /proc. A key says where: "/proc/PID/fd/N", or "/proc/PID/fd/N NAME" where NAME is what the memfd was called.
 *
 * A process of that number may be another one than the holder (another host, another pid namespace): NAME holds 128 random bits, and the
 * opened file must have it. */
#include "config.h"

#include "bootstrap/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define NAME_PREFIX "ncclx-"
#define NAME_BYTES 64
#define OFFER_TIMEOUT_MS 60000 /* until the first rank of a node has come so far; all start at once, but a node can be slow */

static int make_memory(int *fd, char *name, size_t bytes)
{
    uint64_t token[2];
    if (getrandom(token, sizeof token, 0) != sizeof token) return base_error(NCCLX_ERR_LIMIT, "no random numbers: %s", strerror(errno));
    snprintf(name, bytes, NAME_PREFIX "%016llx%016llx", (unsigned long long)token[0], (unsigned long long)token[1]);
    *fd = memfd_create(name, MFD_CLOEXEC);
    if (*fd >= 0) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_LIMIT, "cannot make shared memory: %s%s", strerror(errno), errno == EMFILE ? "; raise ulimit -n" : "");
}

/* The launcher's memory on a node. */
static int find_launchers(struct bootstrap *boot, const char *node, char **where)
{
    pmix_value_t *value;
    pmix_status_t status = bootstrap_job_value(boot, BOOTSTRAP_KEY_SEGMENT, node, &value);
    if (status != PMIX_SUCCESS)
        return base_error(NCCLX_ERR_BOOTSTRAP, "the launcher does not offer shared memory on node %s: %s", node, PMIx_Error_string(status));
    const char *text = bootstrap_value_text(value);
    *where = base_strdup(AREA_BOOTSTRAP, text ? text : "");
    PMIX_VALUE_RELEASE(value);
    return *where ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "no memory for the place of shared memory");
}

/* Each daemon knows of its own memory only. */
static int pass_on(struct bootstrap *boot)
{
    char *where;
    int error = find_launchers(boot, boot->rt->job.node_name, &where);
    if (error) return error;
    error = bootstrap_put(boot->rt, BOOTSTRAP_KEY_NEIGHBOUR, where, strlen(where));
    base_free(AREA_BOOTSTRAP, where);
    return error ? error : bootstrap_commit(boot->rt);
}

int bootstrap_segment_offer(struct bootstrap *boot)
{
    const struct base_job *job = &boot->rt->job;
    char name[NAME_BYTES], where[NAME_BYTES * 2];
    if (job->local_rank != 0 || job->size == 1) return NCCLX_SUCCESS;
    if (job->own_launcher) return job->local_size < job->size ? pass_on(boot) : NCCLX_SUCCESS;
    int error = make_memory(&boot->segment, name, sizeof name);
    if (!error) error = base_process_own_fd(boot->segment);
    if (error) return error;
    int length = snprintf(where, sizeof where, "/proc/%ld/fd/%d %s", (long)getpid(), boot->segment, name);
    error = bootstrap_put(boot->rt, BOOTSTRAP_KEY_SEGMENT, where, (size_t)length);
    return error ? error : bootstrap_commit(boot->rt);
}

void bootstrap_segment_release(struct bootstrap *boot)
{
    base_process_close(boot->segment);
    boot->segment = -1;
}

bool bootstrap_segment_parse(char *where, const char **name)
{
    int pid, fd, used = 0;
    char *blank = strchr(where, ' ');
    *name = "";
    if (blank) {
        *blank = 0;
        *name = blank + 1;
    }
    if (strspn(*name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(*name) || strlen(*name) >= NAME_BYTES) return false;
    if (where[strspn(where, "/procfd0123456789")]) return false; /* sscanf would take signs and blanks */
    return sscanf(where, "/proc/%9d/fd/%9d%n", &pid, &fd, &used) == 2 && !where[used] && pid > 0;
}

/* The file of a descriptor is the memory of that name; of any name when it is empty. */
static bool is_memory(int fd, const char *name)
{
    char self[64], want[NAME_BYTES + 32], have[NAME_BYTES + 32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, have, sizeof have - 1);
    if (length < 0) return false;
    have[length] = 0;
    if (!*name) return !strncmp(have, "/memfd:", 7);
    snprintf(want, sizeof want, "/memfd:%s (deleted)", name);
    return !strcmp(have, want);
}

int bootstrap_segment_open(char *where, int holder, int *fd)
{
    const char *name;
    char who[32];
    if (holder < 0) snprintf(who, sizeof who, "the launcher");
    else snprintf(who, sizeof who, "rank %d", holder);
    if (!bootstrap_segment_parse(where, &name))
        return base_error(NCCLX_ERR_BOOTSTRAP, "%s published shared memory at a place that is not ours", who);
    *fd = open(where, O_RDWR | O_CLOEXEC);
    if (*fd < 0) return base_error(NCCLX_ERR_UNREACHABLE, "cannot open the shared memory of %s, %s: %s", who, where, strerror(errno));
    if (is_memory(*fd, name)) return NCCLX_SUCCESS;
    close(*fd);
    return base_error(NCCLX_ERR_UNREACHABLE, "%s is not the shared memory of %s: that is on another host or in another container", where,
                      who);
}

static int open_launchers(struct bootstrap *boot, int *fd)
{
    char *where;
    int error = find_launchers(boot, boot->rt->job.node_name, &where);
    if (error) return error;
    error = bootstrap_segment_open(where, -1, fd);
    base_free(AREA_BOOTSTRAP, where);
    return error;
}

static int open_ranks(struct ncclx_rt *rt, int holder, int *fd)
{
    void *where;
    size_t bytes;
    const char *key = rt->job.own_launcher ? BOOTSTRAP_KEY_NEIGHBOUR : BOOTSTRAP_KEY_SEGMENT;
    int error = bootstrap_get(rt, holder, key, &where, &bytes, OFFER_TIMEOUT_MS);
    if (error) return error;
    error = bootstrap_segment_open(where, holder, fd);
    base_free(AREA_BOOTSTRAP, where);
    return error;
}

int bootstrap_node_segment(struct ncclx_rt *rt, int *fd)
{
    struct bootstrap *boot = rt->bootstrap;
    char name[NAME_BYTES];
    if (!boot || (rt->job.size == 1 && !rt->job.own_launcher)) return make_memory(fd, name, sizeof name);
    if (rt->job.own_launcher) return open_launchers(boot, fd);
    if (boot->segment < 0) return open_ranks(rt, rt->job.local_ranks[0], fd);
    *fd = fcntl(boot->segment, F_DUPFD_CLOEXEC, 3);
    return *fd < 0 ? base_error(NCCLX_ERR_LIMIT, "no descriptor for shared memory: %s; raise ulimit -n", strerror(errno)) : NCCLX_SUCCESS;
}

int bootstrap_segment_of(struct ncclx_rt *rt, int rank, int *fd)
{
    const int *ranks;
    int count;
    if (base_job_local_index(&rt->job, rank) >= 0) return bootstrap_node_segment(rt, fd);
    int error = bootstrap_node_ranks(rt, rank, &ranks, &count);
    return error ? error : open_ranks(rt, ranks[0], fd);
}
