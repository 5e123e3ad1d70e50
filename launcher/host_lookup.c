/* host_lookup.c - see host_lookup.h. The name service may take minutes, and a call of it cannot be given up: a process
 * of its own makes the calls, which can. */
#include "config.h"

#include "launcher/host_lookup.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOKUP_THREADS 16
#define LOOKUP_MAX_FOUND 4096

static bool take_address(const struct sockaddr *socket, struct hosts_address *address)
{
    if (socket->sa_family == AF_INET6) {
        memcpy(address->bytes, &((const struct sockaddr_in6 *)(const void *)socket)->sin6_addr, 16);
        return true;
    }
    if (socket->sa_family != AF_INET) return false;
    memset(address->bytes, 0, 10);
    memset(address->bytes + 10, 0xff, 2);
    memcpy(address->bytes + 12, &((const struct sockaddr_in *)(const void *)socket)->sin_addr, 4);
    return true;
}

int host_lookup_self(struct host_lookup *lookup)
{
    struct ifaddrs *interfaces = NULL;
    int count = 0;
    memset(lookup, 0, sizeof *lookup);
    if (gethostname(lookup->own_name, sizeof lookup->own_name))
        snprintf(lookup->own_name, sizeof lookup->own_name, "localhost");
    lookup->own_name[sizeof lookup->own_name - 1] = 0;
    lookup->facts.own_name = lookup->own_name;
    if (getifaddrs(&interfaces)) return NCCLX_SUCCESS; /* names and loopback remain */
    for (struct ifaddrs *at = interfaces; at; at = at->ifa_next) count++;
    lookup->own = base_calloc(AREA_LAUNCHER, (size_t)count + 1, sizeof *lookup->own);
    for (struct ifaddrs *at = interfaces; at && lookup->own; at = at->ifa_next)
        if (at->ifa_addr && take_address(at->ifa_addr, &lookup->own[lookup->facts.own_count]))
            lookup->facts.own_count++;
    freeifaddrs(interfaces);
    lookup->facts.own = lookup->own;
    return lookup->own ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "memory is short for this machine's addresses");
}

/* ---- The process that asks --------------------------------------------------------------------------------------- */

struct questions {
    const struct hosts *hosts;
    atomic_int next;
    int pipe;
};

/* Writes each answer whole: a record is smaller than what a pipe takes at once. */
static void *ask(void *arg)
{
    struct questions *questions = arg;
    for (int host; (host = atomic_fetch_add(&questions->next, 1)) < questions->hosts->count;) {
        const struct hosts_entry *entry = &questions->hosts->entries[host];
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
        if (entry->address || getaddrinfo(entry->key, NULL, &hints, &list)) continue;
        for (struct addrinfo *at = list; at; at = at->ai_next) {
            struct hosts_found found;
            memset(&found, 0, sizeof found);
            found.host = host;
            if (take_address(at->ai_addr, &found.address) && write(questions->pipe, &found, sizeof found) < 0) break;
        }
        freeaddrinfo(list);
    }
    return NULL;
}

static void ask_all(const struct hosts *hosts, int pipe_fd)
{
    static struct questions questions;
    pthread_t threads[LOOKUP_THREADS];
    int started = 0;
    questions.hosts = hosts;
    questions.pipe = pipe_fd;
    while (started < LOOKUP_THREADS && started < hosts->count &&
           !pthread_create(&threads[started], NULL, ask, &questions))
        started++;
    if (!started) ask(&questions);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* ---- The one that waits ------------------------------------------------------------------------------------------ */

/* True when all answers are there. */
static bool take_answers(struct host_lookup *lookup, int pipe_fd)
{
    uint64_t end = base_clock_ns() + HOST_LOOKUP_MS * (BASE_NS_PER_S / 1000);
    for (;;) {
        uint64_t now = base_clock_ns();
        struct pollfd wait = {.fd = pipe_fd, .events = POLLIN};
        if (now >= end) return false;
        int ready = poll(&wait, 1, (int)((end - now) / (BASE_NS_PER_S / 1000)) + 1);
        if (ready <= 0) continue;
        struct hosts_found found;
        ssize_t bytes = read(pipe_fd, &found, sizeof found);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes != (ssize_t)sizeof found) return bytes == 0;
        if (lookup->facts.found_count < LOOKUP_MAX_FOUND) lookup->found[lookup->facts.found_count++] = found;
    }
}

int host_lookup_names(struct host_lookup *lookup, const struct hosts *hosts)
{
    int ends[2];
    lookup->found = base_calloc(AREA_LAUNCHER, LOOKUP_MAX_FOUND, sizeof *lookup->found);
    if (!lookup->found) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the addresses of hosts");
    lookup->facts.found = lookup->found;
    if (pipe2(ends, 0)) return base_error(NCCLX_ERR_LIMIT, "no pipe for looking hosts up: %s", strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (getppid() == parent) ask_all(hosts, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (child > 0) lookup->late = !take_answers(lookup, ends[0]);
    close(ends[0]);
    if (child < 0) return NCCLX_SUCCESS; /* names are compared as text then */
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return NCCLX_SUCCESS;
}

void host_lookup_release(struct host_lookup *lookup)
{
    base_free(AREA_LAUNCHER, lookup->own);
    base_free(AREA_LAUNCHER, lookup->found);
    memset(lookup, 0, sizeof *lookup);
}
