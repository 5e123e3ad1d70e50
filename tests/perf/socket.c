/* socket.c - what one TCP connection between two processes does by itself.
 *
 *     perf-socket TEST LEAST MOST [MILLISECONDS [FILE JOB COUNT [HOST]]]
 *
 * prints lines like kernel.c's, of library "socket". TEST "latency": half the time of a round trip; any other: one of those in
 * flight, which the other side answers together with one byte. Both sides wait as ncclx does, with reads that do not
 * block, and bring no header, no matching and no second copy. With HOST the other side runs there, started by ssh; the
 * file, which both map, has to be the same. The other arguments are kernel.c's.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct bare {
    bool is_latency, leads; /* leads: sends first, and prints */
    int fd;
    char *in, *out;
    struct turns turns;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void send_all(const struct bare *bare, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t more = send(bare->fd, bare->in + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (more < 0 && errno != EAGAIN) fail("send");
        sent += more > 0 ? (size_t)more : 0;
    }
}

static void receive_all(const struct bare *bare, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t more = recv(bare->fd, bare->out + got, bytes - got, MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN)) fail("recv");
        got += more > 0 ? (size_t)more : 0;
    }
}

static void step(const struct bare *bare, size_t bytes)
{
    int messages = bare->is_latency ? 1 : in_flight(bytes);
    size_t answer = bare->is_latency ? bytes : 1;
    for (int i = 0; i < messages; i++) {
        if (bare->leads) send_all(bare, bytes);
        else receive_all(bare, bytes);
    }
    if (bare->leads) receive_all(bare, answer);
    else send_all(bare, answer);
}

static void measure(struct bare *bare, const char *test, size_t bytes, double seconds)
{
    /* Both sides compute the same number of steps: from an assumed 1.5 GB/s and 8 us. */
    double message = 8e-6 + (double)bytes / 1.5e9, sample[BATCHES];
    int per_step = bare->is_latency ? 2 : in_flight(bytes);
    long steps = (long)(seconds / (per_step * message)) + 1;
    for (int batch = -1; batch < BATCHES; batch++) { /* the first one warms up */
        turns_begin(&bare->turns, NULL);
        step(bare, bytes); /* caches are full of what others did */
        double start = now();
        for (long i = 0; i < steps; i++) step(bare, bytes);
        if (batch >= 0) sample[batch] = (now() - start) / (double)steps / per_step * 1e6;
        turns_end(&bare->turns, bare->leads);
    }
    if (!bare->leads) return;
    printf("socket %s 2 %zu", test, bytes);
    for (int batch = 0; batch < BATCHES; batch++) printf(" %.4f", sample[batch]);
    printf("\n");
}

/* ---- The connection ---- */

static int listen_here(char *port, size_t bytes)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, 1) ||
        getsockname(fd, (struct sockaddr *)&address, &length))
        fail("no socket to listen on");
    snprintf(port, bytes, "%u", ntohs(address.sin6_port));
    return fd;
}

static int connect_to(const char *host, const char *port)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(host, port, &wanted, &found), fd = -1;
    if (error) {
        fprintf(stderr, "perf-socket: %s: %s\n", host, gai_strerror(error));
        exit(1);
    }
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connect(fd, at->ai_addr, at->ai_addrlen)) break;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0) fail("no connection to the one that leads");
    return fd;
}

/* The same program with the same arguments on another host; HOST is replaced by what it has to connect to. */
static void become_remote(char **argv, const char *port)
{
    char program[4096], folder[4096], here[256], joined[300];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || !getcwd(folder, sizeof folder) || gethostname(here, sizeof here)) fail("this program");
    program[length] = 0;
    snprintf(joined, sizeof joined, "%s:%s", here, port);
    execlp("ssh", "ssh", argv[8], "cd", folder, "&&", "exec", program, argv[1], argv[2], argv[3], argv[4], argv[5], argv[6],
           argv[7], joined, (char *)NULL);
    fail("ssh");
}

/* Makes both sides. */
static void connect_both(struct bare *bare, int argc, char **argv)
{
    char port[16], *colon = argc > 8 ? strchr(argv[8], ':') : NULL;
    int one = 1;
    if (colon) {
        *colon = 0;
        bare->fd = connect_to(argv[8], colon + 1);
    } else {
        int listener = listen_here(port, sizeof port);
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!child && argc > 8) become_remote(argv, port);
        bare->leads = child != 0;
        bare->fd = child ? accept(listener, NULL, NULL) : connect_to("127.0.0.1", port);
        if (bare->fd < 0) fail("accept");
        close(listener);
    }
    pin(bare->leads ? 0 : 1);
    setsockopt(bare->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int main(int argc, char **argv)
{
    struct bare bare = {.is_latency = argc > 1 && !strcmp(argv[1], "latency")};
    if (argc < 4) {
        fprintf(stderr, "usage: perf-socket TEST LEAST MOST [MILLISECONDS [FILE JOB COUNT [HOST]]]\n");
        return 2;
    }
    size_t least = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    double seconds = (argc > 4 ? atof(argv[4]) : 100) / 1e3 / BATCHES;
    connect_both(&bare, argc, argv);
    bare.in = make_buffer(most + 1); /* each side has its own */
    bare.out = make_buffer(most + 1);
    if (!bare.in || !bare.out) return 1;
    if (turns_open(&bare.turns, argc - 5, argv + 5)) return 1;
    turns_arrive(&bare.turns, bare.leads);
    for (size_t bytes = least; bytes && bytes <= most; bytes *= 2) measure(&bare, argv[1], bytes, seconds);
    turns_leave(&bare.turns, bare.leads);
    close(bare.fd);
    if (bare.leads) wait(NULL);
    return 0;
}
