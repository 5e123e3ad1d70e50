/* The cores of authenticated sockets in virtual time: callers try lists of addresses, of which some lead to the wrong
 * host, to another job, to somebody silent or to a forger; hosts have few places for strangers, and get visits of
 * silent and loud ones, of recordings and of wrong keys; streams come in random pieces, late, with a bit changed, or
 * not at all.
 *
 * What must hold: only callers of the job get in, where they wanted to, with keys that both ends have; each gets in
 * while others disturb; who is a stranger still has a bounded time, and goes before others do; nothing that was
 * recorded is worth anything; the bytes after the handshake arrive as they were sent, once, or not. */
#include "bootstrap/oob/guests.h"
#include "bootstrap/oob/shake.h"
#include "bootstrap/oob/tries.h"
#include "runtime/base/base.h"
#include "tests/sim/engine.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define CALLERS 3
#define ADDRESSES 7
#define PLACES 8
#define STRANGER_NS (5000 * MS)
#define RECORDS 3 /* sealed, sent after each handshake */
#define RECORD_DATA 10
#define RECORD_BYTES (RECORD_DATA + OOB_RECORD_EXTRA)
#define STREAM_BYTES 4096
#define HANDSHAKE_UP (SHAKE_HELLO_BYTES + SHAKE_CONFIRM_BYTES)

/* What is behind an address. The first three are real acceptors. */
enum behind { RIGHT, ELSEWHERE, OTHER_JOB, SILENT, CLOSED, FORGED_ANSWER, FORGED_REFUSAL, BEHIND_COUNT };
#define HOSTS 3

/* Who comes. Strangers send what they have, and listen to nothing. */
enum visitor { CALLER, MUTE, GARBAGE, REPLAY, WRONG_KEY, VISITOR_COUNT };

struct world;

struct stream {
    unsigned char data[STREAM_BYTES];
    size_t have, used;
};

struct connection {
    struct connection *next; /* of all */
    struct world *world;
    enum visitor visitor;
    enum behind behind;
    struct caller *caller; /* of CALLER */
    struct host *host;     /* of a real acceptor */
    struct sim_channel *up, *down;
    struct shake connector, acceptor;
    struct stream to_host, to_caller;
    bool host_open, caller_open, admitted, accepted;
    bool disturbed;   /* a bit was changed, or a record repeated, or it was cut, or the host dropped it */
    bool changed;     /* a bit of the handshake was */
    size_t change_at; /* in the stream up; SIZE_MAX: nowhere */
    size_t sent_up;
    int place;
    uint64_t until;
    int records_in;
};

struct host {
    struct world *world;
    struct shake_self self;
    struct guests guests;
    struct guest list[PLACES];
    struct connection *at[PLACES];
    bool has_recording;
    unsigned char recording[HANDSHAKE_UP];
};

enum outcome { LOOKING, CONNECTED, REFUSED, GIVEN_UP };

struct caller {
    struct world *world;
    struct shake_self self;
    struct tries tries;
    enum behind addresses[ADDRESSES];
    size_t count;
    unsigned rounds, disturbances;
    uint64_t began, ended;
    struct connection *now;
    enum outcome outcome;
};

struct world {
    struct sim *sim;
    enum oob_trust trust;
    bool other_version; /* of the host that is looked for */
    struct connection *connections;
    bool calm; /* nobody disturbs: then times are known */
    unsigned strangers_left;
    struct host hosts[HOSTS];
    struct caller callers[CALLERS];
    size_t caller_count;
};

static const struct tries_limits limits = {
    .try_ns = 2000 * MS, .pause_ns = 50 * MS, .pause_most_ns = 2000 * MS, .all_ns = 60000 * MS};

static void random_bytes(struct sim *sim, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)sim_random(sim, 256);
}

/* ---- Streams ---- */

static void send_up(struct connection *connection, const void *data, size_t bytes)
{
    unsigned char copy[STREAM_BYTES];
    memcpy(copy, data, bytes);
    if (connection->change_at - connection->sent_up < bytes) {
        copy[connection->change_at - connection->sent_up] ^=
            (unsigned char)(1u << sim_random(connection->world->sim, 8));
        connection->disturbed = true;
        connection->changed = connection->change_at < HANDSHAKE_UP;
    }
    connection->sent_up += bytes;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = 1 + sim_random(connection->world->sim, bytes - at);
        sim_channel_send(connection->up, copy + at, piece);
    }
}

static void send_down(struct connection *connection, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = 1 + sim_random(connection->world->sim, bytes - at);
        sim_channel_send(connection->down, from + at, piece);
    }
}

static void add(struct sim *sim, struct stream *stream, const void *data, size_t bytes)
{
    if (bytes > sizeof stream->data - stream->have) {
        sim_fail(sim, "a stream is longer than anybody writes");
        return;
    }
    memcpy(stream->data + stream->have, data, bytes);
    stream->have += bytes;
}

/* As a driver does: gives what is wanted of what is there. False: nothing to give. */
static bool give(struct stream *stream, struct shake *shake)
{
    size_t bytes = shake_wanted(shake);
    if (bytes > stream->have - stream->used) bytes = stream->have - stream->used;
    if (!bytes) return false;
    shake_receive(shake, stream->data + stream->used, bytes);
    stream->used += bytes;
    return true;
}

/* ---- Hosts ---- */

static void host_close(struct connection *connection)
{
    struct host *host = connection->host;
    if (!connection->host_open) return;
    connection->host_open = false;
    sim_channel_send(connection->down, NULL, 0);
    if (!connection->admitted) return;
    if (sim_now(connection->world->sim) > connection->until)
        sim_fail(connection->world->sim, "a stranger stayed longer than it may");
    guests_release(&host->guests, connection->place);
    host->at[connection->place] = NULL;
    connection->admitted = false;
}

/* The sealed records of the caller, in order and as they were. */
static void read_records(struct connection *connection)
{
    struct stream *stream = &connection->to_host;
    unsigned char data[RECORD_DATA];
    while (stream->have - stream->used >= RECORD_BYTES) {
        struct oob_seal seal;
        oob_seal_begin(&seal, connection->acceptor.keys.receive);
        if (!PLANTED_BUG(BUG_OOB_RECORD_NUMBER)) seal.count = (uint64_t)connection->records_in;
        if (oob_unseal(&seal, stream->data + stream->used, RECORD_BYTES, data)) {
            if (!connection->disturbed) sim_fail(connection->world->sim, "an honest record cannot be opened");
            host_close(connection);
            return;
        }
        stream->used += RECORD_BYTES;
        if (data[0] != connection->records_in++) sim_fail(connection->world->sim, "a record came twice, or too early");
    }
}

static void host_accepts(struct connection *connection)
{
    struct sim *sim = connection->world->sim;
    const struct caller *caller = connection->caller;
    if (connection->visitor != CALLER) {
        sim_fail(sim, "a stranger of kind %d got in", (int)connection->visitor);
        return;
    }
    connection->accepted = true;
    if (connection->behind != RIGHT)
        sim_fail(sim, "a caller got in where it did not want to (%d)", (int)connection->behind);
    else if (connection->world->other_version)
        sim_fail(sim, "a caller of another version got in");
    else if (connection->changed)
        sim_fail(sim, "a handshake with a changed bit ended well");
    else if (connection->acceptor.peer != caller->self.position ||
             connection->acceptor.tag != caller->self.position + 7u)
        sim_fail(sim, "the acceptor believes somebody else has come");
    else if (memcmp(connection->acceptor.keys.receive, connection->connector.keys.send, OOB_KEY_BYTES) != 0 ||
             memcmp(connection->acceptor.keys.send, connection->connector.keys.receive, OOB_KEY_BYTES) != 0)
        sim_fail(sim, "the ends have different keys");
    if (!connection->host->has_recording) {
        connection->host->has_recording = true;
        memcpy(connection->host->recording, connection->to_host.data, HANDSHAKE_UP);
    }
    guests_release(&connection->host->guests, connection->place);
    connection->host->at[connection->place] = NULL;
    connection->admitted = false;
}

static void host_go(struct connection *connection);

static void key_found(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    (void)sim;
    (void)a;
    (void)b;
    if (!connection->host_open || connection->acceptor.state != SHAKE_WANTS_KEY) return;
    const unsigned char *key = NULL;
    for (size_t i = 0; i < connection->world->caller_count; i++) {
        const struct shake_self *self = &connection->world->callers[i].self;
        if (self->position == connection->acceptor.peer) key = self->public_key;
    }
    shake_give_key(&connection->acceptor, key);
    host_go(connection);
}

static void host_say(struct connection *connection)
{
    size_t bytes;
    const void *data = shake_output(&connection->acceptor, &bytes);
    if (!bytes) return;
    send_down(connection, data, bytes);
    shake_sent(&connection->acceptor, bytes);
}

static void host_go(struct connection *connection)
{
    struct sim *sim = connection->world->sim;
    struct shake *shake = &connection->acceptor;
    while (connection->host_open && !connection->accepted) {
        bool given = give(&connection->to_host, shake);
        if (shake->proven && shake->state == SHAKE_TALKING) {
            guests_standing(&connection->host->guests, connection->place, GUEST_PROVEN);
            if (connection->visitor != CALLER && connection->visitor != REPLAY)
                sim_fail(sim, "a stranger of kind %d, without a key, got an answer", (int)connection->visitor);
        }
        host_say(connection);
        if (shake->state == SHAKE_DONE) host_accepts(connection);
        if (shake->state == SHAKE_FAILED) host_close(connection);
        if (!given) break;
        if (shake->state == SHAKE_WANTS_KEY) sim_after(sim, sim_random(sim, 3 * MS), key_found, connection, 0, 0);
    }
    if (connection->host_open && connection->accepted) read_records(connection);
}

static void check_victim(struct host *host, int victim)
{
    struct sim *sim = host->world->sim;
    if (host->list[victim].standing == GUEST_PROVEN &&
        host->at[victim]->until > sim_now(sim) + STRANGER_NS - GUEST_GRACE)
        sim_fail(sim, "who has shown a key had to go at once");
    for (int i = 0; i < PLACES; i++) {
        if (!host->list[i].standing || i == victim) continue;
        if (host->list[i].standing < host->list[victim].standing)
            sim_fail(sim, "who has shown a key had to go before one who has not");
        else if (host->list[i].standing == host->list[victim].standing && host->at[i]->until < host->at[victim]->until)
            sim_fail(sim, "a stranger had to go before an older one");
    }
}

static void look_at_guests(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct host *host = context;
    int place;
    (void)a;
    (void)b;
    while ((place = guests_expired(&host->guests, sim_now(sim))) >= 0) {
        host->at[place]->disturbed = true;
        host_close(host->at[place]);
    }
}

/* False: there is no place, and nobody has to go. */
static bool admit(struct connection *connection)
{
    struct host *host = connection->host;
    struct sim *sim = connection->world->sim;
    unsigned char random[OOB_KEY_BYTES];
    int victim;
    connection->until = sim_now(sim) + STRANGER_NS;
    while ((connection->place = guests_admit(&host->guests, sim_now(sim), connection->until)) < 0) {
        victim = guests_victim(&host->guests, sim_now(sim));
        if ((victim < 0) != (guests_room_at(&host->guests, sim_now(sim)) > 0)) sim_fail(sim, "is there room or not?");
        if (victim < 0) return false;
        check_victim(host, victim);
        host->at[victim]->disturbed = true;
        host_close(host->at[victim]);
    }
    connection->admitted = true;
    host->at[connection->place] = connection;
    random_bytes(sim, random, sizeof random);
    shake_accept(&connection->acceptor, &host->self, random);
    sim_after(sim, STRANGER_NS, look_at_guests, host, 0, 0);
    return true;
}

static void host_wakes(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    (void)a;
    (void)b;
    if (!connection->host_open) return;
    if (connection->admitted || connection->accepted || admit(connection))
        host_go(connection);
    else /* waits outside */
        sim_after(sim, 5 * MS, host_wakes, connection, 0, 0);
}

static void host_receives(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct connection *connection = context;
    if (!connection->host_open) return;
    if (!bytes) {
        host_close(connection);
        return;
    }
    add(sim, &connection->to_host, data, bytes);
    if (connection->admitted && sim_chance(sim, 1, 4)) /* busy: then more is there at once */
        sim_after(sim, sim_random(sim, 6 * MS), host_wakes, connection, 0, 0);
    else
        host_wakes(sim, connection, 0, 0);
}

/* ---- What is no host ---- */

static void impostor_receives(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct connection *connection = context;
    unsigned char frame[SHAKE_ANSWER_BYTES] = {'N', 'X', 'O', 'B', OOB_VERSION, 0};
    if (!connection->host_open) return;
    if (bytes) add(sim, &connection->to_host, data, bytes);
    if (connection->behind == CLOSED || !bytes) {
        host_close(connection);
        return;
    }
    if (connection->behind == SILENT || connection->to_host.have < SHAKE_HELLO_BYTES || connection->accepted) return;
    connection->accepted = true; /* has spoken */
    size_t total = connection->behind == FORGED_ANSWER ? SHAKE_ANSWER_BYTES : SHAKE_REFUSE_BYTES;
    random_bytes(sim, frame + SHAKE_HEADER_BYTES, sizeof frame - SHAKE_HEADER_BYTES);
    frame[6] = connection->behind == FORGED_ANSWER ? SHAKE_ANSWER : SHAKE_REFUSE;
    frame[7] = (unsigned char)connection->world->trust;
    frame[8] = (unsigned char)(total - SHAKE_HEADER_BYTES);
    frame[SHAKE_HEADER_BYTES] = connection->behind == FORGED_ANSWER ? frame[SHAKE_HEADER_BYTES] : SHAKE_VERSION;
    send_down(connection, frame, total);
}

/* ---- Callers ---- */

static void caller_step(struct caller *caller);

static void caller_closes(struct connection *connection)
{
    if (!connection->caller_open) return;
    connection->caller_open = false;
    sim_channel_send(connection->up, NULL, 0);
}

static void caller_ends(struct caller *caller, enum outcome outcome)
{
    caller->outcome = outcome;
    caller->ended = sim_now(caller->world->sim);
    caller->tries.state = TRIES_OVER;
}

static void send_records(struct connection *connection)
{
    struct oob_seal seal;
    unsigned char data[RECORD_DATA] = {0}, record[RECORD_BYTES];
    oob_seal_begin(&seal, connection->connector.keys.send);
    for (int i = 0; i < RECORDS; i++) {
        data[0] = (unsigned char)i;
        oob_seal(&seal, data, sizeof data, record);
        send_up(connection, record, sizeof record);
        if (connection->world->calm || !sim_chance(connection->world->sim, 1, 10)) continue;
        connection->disturbed = true; /* somebody repeats it */
        sim_channel_send(connection->up, record, sizeof record);
    }
}

static void caller_fails(struct caller *caller)
{
    if (!caller->now) return;
    caller_closes(caller->now);
    caller->now = NULL;
    tries_failed(&caller->tries, sim_now(caller->world->sim));
    caller_step(caller);
}

static void caller_say(struct connection *connection)
{
    size_t bytes;
    const void *data = shake_output(&connection->connector, &bytes);
    if (!bytes) return;
    send_up(connection, data, bytes);
    shake_sent(&connection->connector, bytes);
}

static void caller_receives(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct connection *connection = context;
    struct caller *caller = connection->caller;
    struct shake *shake = &connection->connector;
    if (!connection->caller_open || connection->visitor != CALLER || caller->now != connection) return;
    if (bytes) add(sim, &connection->to_caller, data, bytes);
    while (give(&connection->to_caller, shake)) caller_say(connection);
    if (shake->state == SHAKE_DONE) {
        if (connection->behind != RIGHT)
            sim_fail(sim, "a caller believes that kind %d is whom it looks for", (int)connection->behind);
        send_records(connection);
        caller->now = NULL;
        caller_ends(caller, CONNECTED);
    } else if (shake->state == SHAKE_FAILED && shake->told && shake->proven) {
        caller->now = NULL;
        caller_closes(connection);
        caller_ends(caller, REFUSED);
    } else if (shake->state == SHAKE_FAILED || !bytes) {
        caller_fails(caller);
    }
}

/* The network breaks: what is under way is lost, and both ends learn of it. */
static void cut(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct connection *connection = context;
    (void)a;
    (void)b;
    sim_channel_cut(connection->up);
    sim_channel_cut(connection->down);
    connection->disturbed = true;
    if (connection->host && (connection->admitted || connection->accepted)) host_close(connection);
    if (connection->caller && connection->caller->now == connection) caller_receives(sim, connection, NULL, 0);
}

static struct connection *connect_to(struct world *world, enum behind behind, enum visitor visitor)
{
    struct connection *connection = sim_alloc(world->sim, sizeof *connection);
    connection->next = world->connections;
    world->connections = connection;
    connection->world = world;
    connection->behind = behind;
    connection->visitor = visitor;
    connection->host = behind < HOSTS ? &world->hosts[behind] : NULL;
    connection->change_at = SIZE_MAX;
    connection->host_open = connection->caller_open = true;
    connection->up = sim_channel_create(world->sim, MS / 10, 5 * MS,
                                        connection->host ? host_receives : impostor_receives, connection);
    connection->down = sim_channel_create(world->sim, MS / 10, 5 * MS, caller_receives, connection);
    return connection;
}

static void caller_opens(struct caller *caller)
{
    struct world *world = caller->world;
    struct sim *sim = world->sim;
    unsigned char random[OOB_KEY_BYTES];
    enum behind behind = caller->addresses[caller->tries.next];
    struct connection *connection = connect_to(world, behind, CALLER);
    connection->caller = caller;
    caller->now = connection;
    if (!world->calm && !caller->disturbances && sim_chance(sim, 1, 4)) {
        caller->disturbances++;
        if (sim_chance(sim, 1, 2))
            connection->change_at = sim_random(sim, HANDSHAKE_UP + RECORDS * RECORD_BYTES);
        else
            sim_after(sim, sim_random(sim, 20 * MS), cut, connection, 0, 0);
    }
    random_bytes(sim, random, sizeof random);
    shake_connect(&connection->connector, &caller->self, 0, world->hosts[0].self.public_key, caller->self.position + 7u,
                  random);
    caller_say(connection);
}

/* Rounds may not follow each other faster than the growing pauses. */
static void check_pause(struct caller *caller)
{
    uint64_t least = 0, pause = limits.pause_ns;
    if (caller->tries.next) return;
    for (unsigned i = 0; i < caller->rounds; i++, pause *= 2) {
        if (pause > limits.pause_most_ns) pause = limits.pause_most_ns;
        least += pause / 2;
    }
    caller->rounds++;
    if (sim_now(caller->world->sim) - caller->began < least) sim_fail(caller->world->sim, "a round came too early");
}

static void caller_time(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim;
    (void)a;
    (void)b;
    caller_step(context);
}

static void caller_step(struct caller *caller)
{
    struct sim *sim = caller->world->sim;
    while (!sim_failed(sim)) {
        enum tries_action action = tries_step(&caller->tries, sim_now(sim));
        if (action == TRIES_WAIT) break;
        if (action == TRIES_OPEN) {
            check_pause(caller);
            caller_opens(caller);
            continue;
        }
        if (caller->now) caller_closes(caller->now);
        caller->now = NULL;
        if (action == TRIES_GIVE_UP) caller_ends(caller, GIVEN_UP);
    }
    uint64_t deadline = tries_deadline(&caller->tries);
    if (deadline != UINT64_MAX) sim_after(sim, deadline - sim_now(sim), caller_time, caller, 0, 0);
}

/* ---- Strangers ---- */

static void hang_up(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim;
    (void)a;
    (void)b;
    caller_closes(context);
}

static void send_wrong_key(struct connection *connection)
{
    struct shake_self self = connection->world->callers[0].self;
    unsigned char random[OOB_KEY_BYTES];
    struct shake shake;
    size_t bytes;
    random_bytes(connection->world->sim, random, sizeof random);
    memcpy(self.secret, random, sizeof random);
    memcpy(self.private_key, random, sizeof random);
    shake_connect(&shake, &self, connection->host->self.position, connection->host->self.public_key, 1, random);
    const void *data = shake_output(&shake, &bytes);
    send_up(connection, data, bytes);
}

static void stranger_comes(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    unsigned char noise[200];
    enum visitor visitor = (enum visitor)(MUTE + sim_random(sim, VISITOR_COUNT - MUTE));
    struct host *host = &world->hosts[sim_chance(sim, 3, 4) ? RIGHT : ELSEWHERE];
    (void)a;
    (void)b;
    if (visitor == REPLAY && !host->has_recording) visitor = MUTE;
    if (visitor == WRONG_KEY && !sim_chance(sim, 1, 4)) visitor = MUTE; /* is much to compute */
    struct connection *connection = connect_to(world, (enum behind)(host - world->hosts), visitor);
    if (visitor == MUTE)
        send_up(connection, "NXOB", 1 + sim_random(sim, 4));
    else if (visitor == REPLAY)
        send_up(connection, host->recording, sim_chance(sim, 1, 2) ? SHAKE_HELLO_BYTES : HANDSHAKE_UP);
    else if (visitor == WRONG_KEY)
        send_wrong_key(connection);
    else {
        random_bytes(sim, noise, sizeof noise);
        if (sim_chance(sim, 1, 2)) memcpy(noise, "NXOB\1\0\1\1", sim_random(sim, 9));
        send_up(connection, noise, 1 + sim_random(sim, sizeof noise));
    }
    if (sim_chance(sim, 1, 3)) sim_after(sim, sim_random(sim, 100 * MS), hang_up, connection, 0, 0);
    if (--world->strangers_left) sim_after(sim, 2 * MS + sim_random(sim, 20 * MS), stranger_comes, world, 0, 0);
}

/* ---- The stage ---- */

static void set_self(struct world *world, struct shake_self *self, uint32_t position, const char *job)
{
    struct oob_identity identity = {
        .job = job, .position = position, .positions = 20, .trust = world->trust, .release = "1.0"};
    memset(identity.secret, 3, sizeof identity.secret);
    if (world->trust == OOB_CARDS) {
        random_bytes(world->sim, identity.private_key, sizeof identity.private_key);
        crypto_public(identity.public_key, identity.private_key);
    }
    shake_self_set(self, &identity);
}

static void begin_caller(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct caller *caller = context;
    (void)a;
    (void)b;
    caller->began = sim_now(sim);
    tries_begin(&caller->tries, caller->count, &limits, sim_now(sim), sim_random(sim, UINT64_MAX));
    caller_step(caller);
}

/* The right address is somewhere in the list. */
static void set_caller(struct world *world, size_t index)
{
    struct sim *sim = world->sim;
    struct caller *caller = &world->callers[index];
    unsigned silent = 0;
    caller->world = world;
    set_self(world, &caller->self, (uint32_t)(10 + index), "job.1");
    caller->count = 1 + sim_random(sim, ADDRESSES);
    for (size_t i = 0; i < caller->count; i++) {
        caller->addresses[i] = (enum behind)(ELSEWHERE + sim_random(sim, BEHIND_COUNT - ELSEWHERE));
        if (caller->addresses[i] == SILENT && silent++ == 2) caller->addresses[i] = CLOSED;
    }
    caller->addresses[sim_random(sim, caller->count)] = RIGHT;
    sim_after(sim, sim_random(sim, 50 * MS), begin_caller, caller, 0, 0);
}

static void start(struct sim *sim)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    sim_set_user(sim, world);
    world->sim = sim;
    world->trust = sim_chance(sim, 1, 3) ? OOB_CARDS : OOB_SECRET;
    world->calm = sim_chance(sim, 1, 4);
    world->other_version = sim_chance(sim, 1, 8);
    for (int i = 0; i < HOSTS; i++) {
        struct host *host = &world->hosts[i];
        host->world = world;
        set_self(world, &host->self, i == ELSEWHERE ? 5 : 0, i == OTHER_JOB ? "job.2" : "job.1");
        guests_init(&host->guests, host->list, PLACES);
    }
    if (world->other_version) strcpy(world->hosts[RIGHT].self.release, "2.0");
    memcpy(world->hosts[OTHER_JOB].self.public_key, world->hosts[RIGHT].self.public_key, OOB_KEY_BYTES);
    memcpy(world->hosts[OTHER_JOB].self.private_key, world->hosts[RIGHT].self.private_key, OOB_KEY_BYTES);
    memcpy(world->hosts[ELSEWHERE].self.public_key, world->hosts[RIGHT].self.public_key, OOB_KEY_BYTES);
    memcpy(world->hosts[ELSEWHERE].self.private_key, world->hosts[RIGHT].self.private_key, OOB_KEY_BYTES);
    world->caller_count = 1 + sim_random(sim, CALLERS);
    for (size_t i = 0; i < world->caller_count; i++) set_caller(world, i);
    if (world->calm) return;
    world->strangers_left = (unsigned)(1 + sim_random(sim, sim_chance(sim, 1, 10) ? 200 : 20));
    sim_after(sim, sim_random(sim, 20 * MS), stranger_comes, world, 0, 0);
}

static void check_caller(struct world *world, const struct caller *caller)
{
    struct sim *sim = world->sim;
    enum outcome wanted = world->other_version ? REFUSED : CONNECTED;
    uint64_t silent = 0;
    if (caller->outcome != wanted) {
        sim_fail(sim, "a caller ended with outcome %d instead of %d", (int)caller->outcome, (int)wanted);
        return;
    }
    for (size_t i = 0; i < caller->count; i++) silent += caller->addresses[i] == SILENT;
    if (world->calm && caller->ended - caller->began > silent * limits.try_ns + ADDRESSES * 50 * MS)
        sim_fail(sim, "a caller took %llu ms though nobody disturbed",
                 (unsigned long long)((caller->ended - caller->began) / MS));
}

static void check_connection(struct sim *sim, const struct connection *connection)
{
    if (connection->visitor != CALLER || connection->behind != RIGHT || connection->disturbed) return;
    if (connection->connector.state != SHAKE_DONE) return;
    if (!connection->accepted)
        sim_fail(sim, "a caller was let in, and the host does not know");
    else if (connection->records_in != RECORDS)
        sim_fail(sim, "%d records of %d have come", connection->records_in, RECORDS);
}

static void finish(struct sim *sim)
{
    struct world *world = sim_user(sim);
    for (const struct connection *each = world->connections; each; each = each->next) check_connection(sim, each);
    for (size_t i = 0; i < world->caller_count; i++) check_caller(world, &world->callers[i]);
    for (int i = 0; i < HOSTS; i++)
        if (world->hosts[i].guests.count) sim_fail(sim, "strangers are left at the end");
}

static const enum planted_bug bugs[] = {
    BUG_OOB_HELLO_UNCHECKED,  BUG_OOB_ANSWER_UNCHECKED, BUG_OOB_CONFIRM_UNCHECKED, BUG_OOB_EPHEMERAL_REUSED,
    BUG_OOB_REFUSAL_BELIEVED, BUG_OOB_JOB_IGNORED,      BUG_OOB_WRONG_HOST,        BUG_OOB_VERSION_IGNORED,
    BUG_OOB_READS_AHEAD,      BUG_OOB_RECORD_NUMBER,    BUG_OOB_NEWEST_DROPPED,    BUG_OOB_PROVEN_DROPPED,
    BUG_OOB_ONE_ADDRESS,      BUG_OOB_NO_PAUSE,         BUG_OOB_TRY_UNLIMITED,     BUG_NONE};

int main(int argc, char **argv)
{
    const struct sim_scenario scenario = {
        .name = "sockets", .start = start, .finish = finish, .seeds = 10000, .bugs = bugs};
    if (crypto_load()) return 1;
    return sim_main(argc, argv, &scenario, 1);
}
