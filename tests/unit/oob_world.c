/* oob_world.c - endpoints driven by hand. */
#include "tests/unit/oob_world.h"

#include "bootstrap/oob/address.h"
#include "runtime/base/base.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the headers it needs */
#include <cmocka.h>

#define MS UINT64_C(1000000)

struct oob_identity world_identity(uint32_t position)
{
    struct oob_identity identity = {
        .job = "job.1", .position = position, .positions = 100, .trust = OOB_SECRET, .release = "1.0"};
    memset(identity.secret, 5, sizeof identity.secret);
    return identity;
}

static void keep_line(void *arg, const char *line)
{
    struct end *end = arg;
    if (end->line_count < WORLD_LINES) snprintf(end->lines[end->line_count++], sizeof end->lines[0], "%s", line);
}

void world_open(struct world *world, struct end *end, const struct oob_identity *identity,
                const struct oob_options *options)
{
    struct oob_options mine = options ? *options : (struct oob_options){0};
    memset(end, 0, sizeof *end);
    mine.say = keep_line;
    mine.say_arg = end;
    if (!world->now) world->now = MS;
    assert_int_equal(oob_create(identity, &mine, &end->oob), NCCLX_SUCCESS);
    assert_true(world->end_count < WORLD_ENDS);
    world->ends[world->end_count++] = end;
}

void world_close(struct world *world)
{
    for (int i = 0; i < world->end_count; i++) {
        struct end *end = world->ends[i];
        for (int j = 0; j < end->event_count; j++)
            if (end->events[j].fd >= 0) close(end->events[j].fd);
        oob_destroy(end->oob);
    }
    world->end_count = 0;
}

struct oob_address world_loopback(int family, uint16_t port)
{
    struct oob_address address = {.family = (uint8_t)family, .port = port};
    if (family == 4)
        memcpy(address.bytes, (const uint8_t[]){127, 0, 0, 1}, 4);
    else
        address.bytes[15] = 1;
    return address;
}

uint16_t world_port(const struct end *end)
{
    struct oob_addresses addresses;
    struct oob_address loopback = world_loopback(4, 9);
    assert_int_equal(oob_addresses(end->oob, &loopback, &addresses), NCCLX_SUCCESS);
    return addresses.list[0].port;
}

struct oob_addresses world_addresses(const struct end *end, int family)
{
    return (struct oob_addresses){.count = 1, .list = {world_loopback(family, world_port(end))}};
}

static void take_events(struct end *end)
{
    struct oob_event event;
    while (oob_next(end->oob, &event)) {
        if (event.kind == OOB_WANT_KEY) {
            oob_give_key(end->oob, event.id, end->keys ? end->keys(event.peer) : NULL);
            continue;
        }
        assert_true(end->event_count < WORLD_EVENTS);
        end->events[end->event_count++] = event;
    }
}

void world_round(struct world *world)
{
    for (int i = 0; i < world->end_count; i++) {
        struct pollfd poll_fd = {.fd = oob_fd(world->ends[i]->oob), .events = POLLIN};
        poll(&poll_fd, 1, 1);
        oob_dispatch(world->ends[i]->oob, world->now);
        take_events(world->ends[i]);
    }
}

int world_until(struct world *world, int most, bool (*condition)(const void *), const void *context)
{
    for (int round = 0; round <= most; round++) {
        if (condition(context)) return round;
        world_round(world);
    }
    return -1;
}

void world_pass(struct world *world, uint64_t milliseconds)
{
    for (int step = 0; step < 10; step++) {
        world->now += milliseconds * MS / 10;
        world_round(world);
    }
}

bool world_has_event(const void *end)
{
    return ((const struct end *)end)->event_count > 0;
}

int world_count_lines(const struct end *end, const char *text)
{
    int count = 0;
    for (int i = 0; i < end->line_count; i++) count += strstr(end->lines[i], text) != NULL;
    return count;
}

int world_stranger(int family, uint16_t port)
{
    struct oob_address address = world_loopback(family, port);
    struct sockaddr_storage storage;
    socklen_t length = address_to_system(&address, &storage);
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&storage, length), 0);
    return fd;
}

bool world_was_dropped(int fd)
{
    char data[4096];
    ssize_t got;
    while ((got = recv(fd, data, sizeof data, MSG_DONTWAIT)) > 0)
        ;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

int world_listening(struct oob_address address)
{
    struct sockaddr_storage storage;
    socklen_t length = address_to_system(&address, &storage);
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&storage, length) && !listen(fd, 5)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

uint16_t world_bound_port(int fd)
{
    struct oob_address address;
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
    assert_true(address_from_system((struct sockaddr *)&storage, &address));
    return address.port;
}

int world_open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}
