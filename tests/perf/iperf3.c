/* iperf3.c - what iperf3(1) moves in one direction, in turns with the others.
 *
 *     perf-iperf3 TEST LEAST MOST MILLISECONDS FILE JOB COUNT STREAMS [HOST]
 *
 * prints lines like kernel.c's, of library "iperf3", at sizes from 1 MiB on: the time of so many bytes at the rate that
 * iperf3 says its server has received at, over so many streams. Its server runs on HOST, started by ssh, or here. The
 * other arguments are kernel.c's.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define LEAST_BYTES ((size_t)1 << 20)
/* Of one run: what a connection needs to find its speed counts as little. */
#define RUN_BYTES ((size_t)256 << 20)
#define PORTS_TRIED 20

struct iperf {
    const char *host; /* where the server is */
    bool is_far;
    unsigned port, streams;
    pid_t server;   /* or the ssh that has started it */
    int hold, says; /* the server ends when the first is closed; its output */
    struct turns turns;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Ends the server when its input ends, whatever becomes of us. */
static void become_server(const struct iperf *iperf, int in, int out)
{
    char script[256];
    dup2(in, 0);
    dup2(out, 1);
    snprintf(script, sizeof script, "iperf3 -s -p %u --forceflush 2>&1 & server=$!; read end; kill $server",
             iperf->port);
    if (iperf->is_far)
        execlp("ssh", "ssh", iperf->host, script, (char *)NULL);
    else
        execlp("sh", "sh", "-c", script, (char *)NULL);
    fail("the server");
}

static void end_server(struct iperf *iperf)
{
    close(iperf->hold);
    close(iperf->says);
    waitpid(iperf->server, NULL, 0);
}

/* What it says, to its end or to "listening". */
static bool listens(const struct iperf *iperf)
{
    char said[1024];
    size_t length = 0;
    while (length < sizeof said - 1) {
        ssize_t more = read(iperf->says, said + length, sizeof said - 1 - length);
        if (more <= 0) return false;
        said[length += (size_t)more] = 0;
        if (strstr(said, "listening")) return true;
        if (strstr(said, "error")) return false; /* the port is another's */
    }
    return false;
}

static bool start_server(struct iperf *iperf)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) fail("pipe");
    iperf->server = fork();
    if (iperf->server < 0) fail("fork");
    if (!iperf->server) become_server(iperf, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    iperf->hold = in[1];
    iperf->says = out[0];
    if (!listens(iperf)) {
        end_server(iperf);
        return false;
    }
    fcntl(iperf->says, F_SETFL, O_NONBLOCK);
    return true;
}

static void start_some_server(struct iperf *iperf)
{
    for (unsigned i = 0; i < PORTS_TRIED; i++) {
        iperf->port =
            20000 + ((unsigned)getpid() * PORTS_TRIED + i) % 12000; /* below those that are given to clients */
        if (start_server(iperf)) return;
    }
    fprintf(stderr, "perf-iperf3: no server on %s\n", iperf->host);
    exit(1);
}

/* Bytes in a second, as the receiver counts them. */
static double rate_of(const char *report)
{
    static const char sum[] = "\"sum_received\"", rate[] = "\"bits_per_second\":";
    const char *at = strstr(report, sum);
    at = at ? strstr(at, rate) : NULL;
    return at ? strtod(at + sizeof rate - 1, NULL) / 8 : 0;
}

static double run_client(const struct iperf *iperf, size_t bytes)
{
    static char report[1 << 20];
    char command[512], rest[4096];
    while (read(iperf->says, rest, sizeof rest) > 0) {
    } /* so that the server is not held up */
    snprintf(command, sizeof command, "iperf3 -J -c %s -p %u -P %u -n %zu%s </dev/null", iperf->host, iperf->port,
             iperf->streams, bytes, sysconf(_SC_NPROCESSORS_ONLN) > 1 ? " -A 0,1" : "");
    FILE *output = popen(command, "r");
    size_t length = output ? fread(report, 1, sizeof report - 1, output) : 0;
    report[length] = 0;
    if (output) pclose(output);
    double rate = rate_of(report);
    if (rate > 0) return rate;
    fprintf(stderr, "perf-iperf3: %s: %.1000s\n", command, report);
    exit(1);
}

static void measure(struct iperf *iperf, const char *test, size_t bytes, double seconds)
{
    size_t run = (size_t)(seconds * 2e9);
    double sample[BATCHES];
    if (run < RUN_BYTES) run = RUN_BYTES;
    for (int batch = -1; batch < BATCHES; batch++) { /* as many turns as the others have */
        turns_begin(&iperf->turns, NULL);
        if (batch >= 0 && bytes >= LEAST_BYTES) sample[batch] = (double)bytes / run_client(iperf, run) * 1e6;
        turns_end(&iperf->turns, 1);
    }
    if (bytes < LEAST_BYTES) return;
    printf("iperf3 %s 2 %zu", test, bytes);
    for (int batch = 0; batch < BATCHES; batch++) printf(" %.4f", sample[batch]);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc < 9) {
        fprintf(stderr, "usage: perf-iperf3 TEST LEAST MOST MILLISECONDS FILE JOB COUNT STREAMS [HOST]\n");
        return 2;
    }
    struct iperf iperf = {
        .host = argc > 9 ? argv[9] : "127.0.0.1", .is_far = argc > 9, .streams = (unsigned)atoi(argv[8])};
    size_t least = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    double seconds = atof(argv[4]) / 1e3 / BATCHES;
    if (turns_open(&iperf.turns, 3, argv + 5)) return 1;
    start_some_server(&iperf);
    turns_arrive(&iperf.turns, 1);
    for (size_t bytes = least; bytes && bytes <= most; bytes *= 2) measure(&iperf, argv[1], bytes, seconds);
    turns_leave(&iperf.turns, 1);
    end_server(&iperf);
    return 0;
}
