/* turns.h - several jobs that measure in turns on the same cores, batch by batch, so that a machine whose speed changes
 * from second to second changes it for all of them.
 *
 * They share a file: whose turn it is, and a byte for each job that has arrived, left, or ended (which ncclx-perf
 * writes). Every process of a job waits for its job's turn asleep; one of them passes it on. Those of a job that has ended without
 * them end.
 */
#ifndef PERF_TURNS_H
#define PERF_TURNS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS_JOBS 8

struct turns_file {
    _Atomic uint32_t now; /* counts turns; that of job now % count */
    _Atomic uint8_t arrived[TURNS_JOBS], left[TURNS_JOBS], gone[TURNS_JOBS];
    char pad[4096 - 4 - 3 * TURNS_JOBS];
};

struct turns {
    struct turns_file *file; /* null: alone */
    unsigned job, count;
    uint32_t next; /* turns before this one are over */
};

/* arguments: FILE JOB COUNT, or none. */
static inline int turns_open(struct turns *turns, int argc, char **argv)
{
    *turns = (struct turns){0};
    if (argc < 3) return 0;
    turns->job = (unsigned)atoi(argv[1]);
    turns->count = (unsigned)atoi(argv[2]);
    int fd = open(argv[0], O_RDWR | O_CLOEXEC);
    if (fd < 0 || turns->count < 1 || turns->count > TURNS_JOBS || turns->job >= turns->count) return -1;
    void *mapping = mmap(NULL, sizeof *turns->file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapping == MAP_FAILED) return -1;
    turns->file = mapping;
    return 0;
}

static inline void turns_wake(struct turns *turns)
{
    syscall(SYS_futex, &turns->file->now, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Until `now` is no longer `seen`, or a moment: what comes without a wake-up is found then. */
static inline void turns_sleep(struct turns *turns, uint32_t seen)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    syscall(SYS_futex, &turns->file->now, FUTEX_WAIT, seen, &moment, NULL, 0);
    if (turns->file->gone[turns->job]) exit(1);
}

static inline int turns_absent(const struct turns *turns, unsigned job)
{
    return turns->file->left[job] || turns->file->gone[job];
}

/* Ends turn `now`: the next one is that of the next job that is still there. */
static inline void turns_pass(struct turns *turns, uint32_t now)
{
    uint32_t next = now + 1;
    while (next - now < turns->count && turns_absent(turns, next % turns->count)) next++;
    if (atomic_compare_exchange_strong(&turns->file->now, &now, next)) turns_wake(turns);
}

static inline int turns_all(const struct turns *turns, const _Atomic uint8_t *flags)
{
    for (unsigned job = 0; job < turns->count; job++)
        if (!flags[job] && !turns->file->gone[job]) return 0;
    return 1;
}

/* First, by every process; leader: of its job. */
static inline void turns_arrive(struct turns *turns, int leader)
{
    if (!turns->file) return;
    if (leader) turns->file->arrived[turns->job] = 1;
    while (!turns_all(turns, turns->file->arrived)) turns_sleep(turns, atomic_load(&turns->file->now));
}

/* idle: called now and then while other jobs have their turns; a library may have something left to send. */
static inline void turns_begin(struct turns *turns, void (*idle)(void))
{
    if (!turns->file) return;
    for (;;) {
        uint32_t now = atomic_load(&turns->file->now);
        if (now >= turns->next && now % turns->count == turns->job) break;
        if (turns_absent(turns, now % turns->count)) turns_pass(turns, now);
        else turns_sleep(turns, now);
        if (idle) idle();
    }
    turns->next = atomic_load(&turns->file->now) + 1;
}

/* By every process, when the last of its job is through. */
static inline void turns_end(struct turns *turns, int leader)
{
    if (turns->file && leader) turns_pass(turns, turns->next - 1);
}

/* Last, by every process: ending a job takes time, too. */
static inline void turns_leave(struct turns *turns, int leader)
{
    if (!turns->file) return;
    if (leader) {
        turns->file->left[turns->job] = 1;
        turns_wake(turns);
    }
    while (!turns_all(turns, turns->file->left)) turns_sleep(turns, atomic_load(&turns->file->now));
}

#endif
