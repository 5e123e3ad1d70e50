/* scratch.c - making and removing the private directory. */
#include "config.h"

#include "launcher/scratch.h"

#include "runtime/base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SCRATCH_PARENTS 3
#define SCRATCH_MAX_DEPTH 16
#define SCRATCH_LEAST_BYTES (8u << 20) /* 600 ranks take 0.1 MiB */
#define SCRATCH_PREFIX "ncclx-"        /* of the names of jobs */
#define SCRATCH_STALE_SECONDS 60       /* one that is younger may not be locked yet */

/* PMIx maps files here: on a full file system that would be SIGBUS, not an error. */
static bool has_room(const char *directory)
{
    struct statvfs status;
    if (statvfs(directory, &status)) return false;
    return (uint64_t)status.f_bavail * status.f_frsize >= SCRATCH_LEAST_BYTES;
}

/* Where it may be, the best first. */
static const char *parent_directory(int index)
{
    const char *temporary = getenv("TMPDIR");
    const char *parents[SCRATCH_PARENTS] = {"/dev/shm", temporary && *temporary == '/' ? temporary : "/tmp", "/tmp"};
    return parents[index];
}

void scratch_name(const char *job, int position, char *name, size_t bytes)
{
    if (position > 0)
        snprintf(name, bytes, "%s.%d", job, position);
    else
        snprintf(name, bytes, "%s", job);
}

/* Whoever uses a directory holds a lock on it, which ends with the last of them, however that ends. On a file system
 * without locks nothing is taken for stale. */
static bool lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) flock(fd, LOCK_SH | LOCK_NB);
    return fd >= 0;
}

static bool is_stale(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    bool stale = !fstat(fd, &status) && status.st_uid == geteuid() &&
                 status.st_mtime < time(NULL) - SCRATCH_STALE_SECONDS && !flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    return stale;
}

/* What jobs have left of which every process that could clean up was killed at the same time. */
static void remove_stale(const char *parent)
{
    char path[PATH_MAX];
    DIR *directory = opendir(parent);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (!strncmp(entry->d_name, SCRATCH_PREFIX, sizeof SCRATCH_PREFIX - 1) &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path && is_stale(path))
            scratch_remove(path);
    if (directory) closedir(directory);
}

int scratch_make(const char *job, char *path, size_t bytes)
{
    int error = ENOENT;
    for (int i = 0; i < SCRATCH_PARENTS; i++) {
        int length = snprintf(path, bytes, "%s/%s", parent_directory(i), job);
        if (length < 0 || (size_t)length >= bytes) continue;
        if (!has_room(parent_directory(i))) {
            error = ENOSPC;
            continue;
        }
        remove_stale(parent_directory(i));
        if (mkdir(path, 0700) == 0) {
            if (chmod(path, 0700) == 0 && lock(path)) return NCCLX_SUCCESS; /* whatever the umask is */
            rmdir(path);
        }
        error = errno;
    }
    return base_error(NCCLX_ERR_LIMIT, "no directory for %u MiB of files can be made in /dev/shm, %s or /tmp: %s",
                      SCRATCH_LEAST_BYTES >> 20, parent_directory(1), strerror(error));
}

/* Empties the directory behind fd, which is closed. */
static void empty_directory(int fd, int depth)
{
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (unlinkat(dirfd(directory), entry->d_name, 0) == 0 || depth == SCRATCH_MAX_DEPTH) continue;
        int inner = openat(dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0) continue;
        empty_directory(inner, depth + 1);
        unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
    }
    closedir(directory);
}

void scratch_remove(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &status) || status.st_uid != geteuid() || (status.st_mode & 077)) {
        close(fd);
        return;
    }
    empty_directory(fd, 0);
    rmdir(path);
}

void scratch_remove_job(const char *job)
{
    char path[PATH_MAX];
    for (int i = 0; i < SCRATCH_PARENTS; i++)
        if (snprintf(path, sizeof path, "%s/%s", parent_directory(i), job) < (int)sizeof path) scratch_remove(path);
}
