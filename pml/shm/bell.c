/* bell.c - waking a rank that sleeps on its sockets, too. Nothing waits for a futex and for sockets: so it polls, and whoever
 * wakes it writes a byte into a pipe of its, which is found in /proc. Where that cannot be opened, as from another namespace
 * of processes, the rank wakes by itself after a moment. */
#include "config.h"

#include "pml/shm/shm.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void bell_init(struct shm_bell *bell)
{
    bell->in = bell->out = -1;
    bell->sleepers = 0;
}

void bell_open(struct shm *shm)
{
    struct shm_bell *bell = &shm->bell;
    struct stat facts;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return;
    bell->out = ends[0];
    bell->in = ends[1];
    bool owned = !base_process_own_fd(bell->in) && !base_process_own_fd(bell->out);
    if (owned && !fstat(bell->in, &facts)) shm->mailbox->bell_inode = facts.st_ino;
    else bell_close(bell);
}

void bell_close(struct shm_bell *bell)
{
    base_process_close(bell->in);
    base_process_close(bell->out);
    bell_init(bell);
}

/* The pid may be another process' here, and the number another file's: a pipe is known by its inode. Opened both ways, as a pipe
 * that nobody reads any more would end this process. */
void bell_ring(const struct shm_mailbox *mailbox)
{
    char path[64];
    struct stat facts;
    uint32_t bell = atomic_load(&mailbox->bell);
    if (!bell) return;
    snprintf(path, sizeof path, "/proc/%d/fd/%u", (int)mailbox->pid, bell - 1);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    if (!fstat(fd, &facts) && S_ISFIFO(facts.st_mode) && facts.st_ino == mailbox->bell_inode) (void)!write(fd, "", 1);
    close(fd);
}

/* With the rank's lock. Several threads may sleep: all wake, and the last one takes the bytes away. */
static void leave(struct shm *shm)
{
    char bytes[64];
    if (--shm->bell.sleepers) return;
    atomic_store(&shm->mailbox->bell, 0);
    while (read(shm->bell.out, bytes, sizeof bytes) == (ssize_t)sizeof bytes) continue;
}

enum shm_woken shm_block_on(struct shm *shm, int sockets, uint64_t ns)
{
    struct ncclx_rt *rt = shm->pml->rt;
    struct timespec time = {.tv_sec = (time_t)(ns / BASE_NS_PER_S), .tv_nsec = (long)(ns % BASE_NS_PER_S)};
    struct pollfd all[2] = {{.fd = sockets, .events = POLLIN}, {.fd = shm->bell.out, .events = POLLIN}};
    base_rt_lock(rt);
    shm->bell.sleepers++;
    atomic_store(&shm->mailbox->bell, (uint32_t)shm->bell.in + 1);
    base_rt_unlock(rt);
    int found = shm_may_sleep(shm, &(uint32_t){0}) ? ppoll(all, 2, &time, NULL) : 0;
    base_rt_lock(rt);
    leave(shm);
    base_rt_unlock(rt);
    if (found > 0 && all[0].revents) return WOKEN_BY_SOCKET;
    return found > 0 ? WOKEN_BY_BELL : WOKEN_NOT;
}
