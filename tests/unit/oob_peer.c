/* oob_peer.c - one end of authenticated sockets as a program, for scripts that put the ends on different hosts.
 *
 *   oob_peer addresses TOWARDS            where it could be reached from there
 *   oob_peer listen POSITION PORT         says where, then who was let in or dropped, until its input ends
 *   oob_peer connect POSITION PEER MS ADDRESSES   says over which address, or why not
 *   oob_peer measure COUNT                handshakes over loopback, one after the other and 32 at a time
 */
#include "bootstrap/oob/oob.h"
#include "runtime/base/base.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

static struct oob *open_end(uint32_t position, uint16_t port)
{
    struct oob *oob;
    struct oob_identity identity = {.job = "test", .position = position, .positions = 1000, .trust = OOB_SECRET};
    struct oob_options options = {.port_low = port, .port_high = port};
    memset(identity.secret, 1, sizeof identity.secret);
    if (oob_create(&identity, &options, &oob)) {
        printf("failed: %s\n", base_error_detail());
        exit(1);
    }
    return oob;
}

/* False: there is input, or its end. */
static bool turn(struct oob *oob, bool watch_input)
{
    struct pollfd fds[2] = {{.fd = oob_fd(oob), .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    uint64_t now = base_clock_ns(), deadline = oob_deadline(oob);
    int wait = deadline <= now ? 0 : deadline - now > 1000 * NS_PER_MS ? 1000 : (int)((deadline - now) / NS_PER_MS) + 1;
    poll(fds, watch_input ? 2 : 1, wait);
    oob_dispatch(oob, base_clock_ns());
    return !watch_input || !fds[1].revents;
}

static int fail(void)
{
    printf("failed: %s\n", base_error_detail());
    return 1;
}

static int show_addresses(struct oob *oob, const char *towards)
{
    struct oob_addresses addresses, other;
    char text[OOB_MAX_ADDRESSES * OOB_ADDRESS_TEXT];
    if (towards && oob_resolve(towards, 1, &other)) return fail();
    if (oob_addresses(oob, towards ? &other.list[0] : NULL, &addresses)) return fail();
    oob_addresses_format(&addresses, text, sizeof text);
    printf("%s\n", text);
    fflush(stdout);
    return 0;
}

static int listen_on(uint32_t position, uint16_t port)
{
    struct oob *oob = open_end(position, port);
    struct oob_event event;
    char text[OOB_ADDRESS_TEXT];
    if (oob_listen(oob)) return fail();
    if (show_addresses(oob, NULL)) return 1;
    while (turn(oob, true)) {
        while (oob_next(oob, &event)) {
            if (event.kind != OOB_ACCEPTED) continue;
            printf("accepted %u from %s\n", event.peer, oob_address_text(&event.address, text));
            fflush(stdout);
            close(event.fd);
        }
    }
    oob_destroy(oob);
    return 0;
}

static int connect_to(uint32_t position, uint32_t peer, uint32_t milliseconds, const char *list)
{
    struct oob *oob = open_end(position, 0);
    struct oob_addresses addresses;
    struct oob_event event;
    char text[OOB_ADDRESS_TEXT];
    uint64_t id, begin = base_clock_ns();
    if (oob_addresses_parse(list, &addresses) || oob_connect(oob, peer, NULL, &addresses, 0, milliseconds, begin, &id))
        return fail();
    while (!oob_next(oob, &event)) turn(oob, false);
    if (event.kind == OOB_CONNECTED) {
        printf("connected over %s\n", oob_address_text(&event.address, text));
        close(event.fd);
    } else {
        printf("failed: %s\n", event.text);
    }
    fprintf(stderr, "# after %.1f ms\n", (double)(base_clock_ns() - begin) / 1e6);
    oob_destroy(oob);
    return event.kind != OOB_CONNECTED;
}

/* ---- How long it takes ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void accept_for_ever(struct oob *oob)
{
    struct oob_event event;
    for (;;) {
        turn(oob, false);
        while (oob_next(oob, &event))
            if (event.fd >= 0) close(event.fd);
    }
}

/* Seconds for `count` connections, so many under way at a time. */
static double connect_many(struct oob *oob, const struct oob_addresses *addresses, int count, int at_a_time)
{
    struct oob_event event;
    uint64_t id, begin = base_clock_ns();
    int begun = 0, done = 0;
    while (done < count) {
        for (; begun < count && begun - done < at_a_time; begun++)
            if (oob_connect(oob, 0, NULL, addresses, 0, 0, base_clock_ns(), &id)) exit(fail());
        turn(oob, false);
        for (; oob_next(oob, &event); done++) {
            if (event.kind != OOB_CONNECTED) exit(1);
            close(event.fd);
        }
    }
    return (double)(base_clock_ns() - begin) / 1e9;
}

static int measure(int count)
{
    struct oob *acceptor = open_end(0, 0);
    struct oob_addresses addresses, loopback;
    if (oob_listen(acceptor) || oob_resolve("127.0.0.1", 9, &loopback) ||
        oob_addresses(acceptor, &loopback.list[0], &addresses))
        return fail();
    addresses.count = 1;
    pid_t child = fork();
    if (child == 0) accept_for_ever(acceptor);
    struct oob *connector = open_end(1, 0);
    double *each = calloc((size_t)count, sizeof *each);
    if (child < 0 || !each) return 1;
    connect_many(connector, &addresses, 10, 1);
    for (int i = 0; i < count; i++) each[i] = connect_many(connector, &addresses, 1, 1);
    qsort(each, (size_t)count, sizeof *each, compare);
    printf("one after the other: median %.0f us, least %.0f us\n", each[count / 2] * 1e6, each[0] * 1e6);
    printf("32 at a time: %.0f a second\n", count / connect_many(connector, &addresses, count, 32));
    free(each);
    oob_destroy(connector);
    oob_destroy(acceptor);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "addresses") && argc <= 3) {
        struct oob *oob = open_end(0, 0);
        int code = oob_listen(oob) ? fail() : show_addresses(oob, argc == 3 ? argv[2] : NULL);
        oob_destroy(oob);
        return code;
    }
    if (!strcmp(what, "listen") && argc == 4) return listen_on((uint32_t)atoi(argv[2]), (uint16_t)atoi(argv[3]));
    if (!strcmp(what, "connect") && argc == 6)
        return connect_to((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]), argv[5]);
    if (!strcmp(what, "measure") && argc == 3 && atoi(argv[2]) > 0) return measure(atoi(argv[2]));
    fprintf(stderr, "see the first lines of the source\n");
    return 2;
}
