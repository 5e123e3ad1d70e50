/* Communicators over any number of ranks: dup, split, split_type, create_group, compare, free, names, and that messages
 * stay on theirs. */
#include "check.h"

#include <pthread.h>
#include <string.h>

static int rank, size;

/* The ranks of comm, in its order, as ranks of COMM_WORLD. */
static void members(ncclx_comm_t comm, int *world)
{
    ncclx_group_t all, part;
    int count;
    OK(ncclx_comm_size(comm, &count));
    OK(ncclx_comm_group(NCCLX_COMM_WORLD, &all));
    OK(ncclx_comm_group(comm, &part));
    int *ranks = malloc((size_t)count * sizeof *ranks);
    for (int i = 0; i < count; i++) ranks[i] = i;
    OK(ncclx_group_translate(part, (size_t)count, ranks, all, world));
    OK(ncclx_group_free(&all));
    OK(ncclx_group_free(&part));
    free(ranks);
}

/* Every member sends its rank to the next; a communicator that works delivers them. */
static void use(ncclx_comm_t comm)
{
    int me, count, from = -1;
    ncclx_status_t status;
    OK(ncclx_comm_rank(comm, &me));
    OK(ncclx_comm_size(comm, &count));
    int next = (me + 1) % count, previous = (me + count - 1) % count;
    OK(ncclx_sendrecv(&me, 1, &from, 1, NCCLX_INT32, next, 5, previous, 5, comm, &status));
    CHECK(from == previous && status.source == previous && status.tag == 5 && status.bytes == sizeof from);
}

static void duplicates(void)
{
    ncclx_comm_t copy, copy2, self;
    int result;
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &copy));
    OK(ncclx_comm_dup(copy, &copy2));
    OK(ncclx_comm_compare(copy, copy2, &result));
    CHECK(result == NCCLX_CONGRUENT);
    OK(ncclx_comm_compare(copy, copy, &result));
    CHECK(result == NCCLX_IDENT);
    OK(ncclx_comm_compare(NCCLX_COMM_WORLD, copy, &result));
    CHECK(result == NCCLX_CONGRUENT);
    use(copy);
    use(copy2);
    OK(ncclx_comm_dup(NCCLX_COMM_SELF, &self));
    OK(ncclx_comm_compare(self, NCCLX_COMM_SELF, &result));
    CHECK(result == NCCLX_CONGRUENT);
    OK(ncclx_comm_compare(self, NCCLX_COMM_WORLD, &result));
    CHECK(result == (size == 1 ? NCCLX_CONGRUENT : NCCLX_UNEQUAL));
    use(self);
    OK(ncclx_comm_free(&self));
    OK(ncclx_comm_free(&copy2));
    OK(ncclx_comm_free(&copy));
    CHECK(copy == NCCLX_COMM_NULL);
}

/* The same tag on two communicators and on COMM_WORLD: each receive gets the message of its own. */
static void messages_stay_on_their_communicator(void)
{
    ncclx_comm_t a, b;
    ncclx_request_t requests[3];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int sent[3] = {100 + rank, 200 + rank, 300 + rank}, got[3] = {-1, -1, -1};
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &a));
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &b));
    OK(ncclx_irecv(&got[2], 1, NCCLX_INT32, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, b, &requests[2]));
    OK(ncclx_irecv(&got[1], 1, NCCLX_INT32, previous, 1, a, &requests[1]));
    OK(ncclx_irecv(&got[0], 1, NCCLX_INT32, NCCLX_ANY_SOURCE, 1, NCCLX_COMM_WORLD, &requests[0]));
    OK(ncclx_send(&sent[0], 1, NCCLX_INT32, next, 1, NCCLX_COMM_WORLD));
    OK(ncclx_send(&sent[1], 1, NCCLX_INT32, next, 1, a));
    OK(ncclx_send(&sent[2], 1, NCCLX_INT32, next, 1, b));
    OK(ncclx_waitall(3, requests, NCCLX_STATUSES_IGNORE));
    CHECK(got[0] == 100 + previous && got[1] == 200 + previous && got[2] == 300 + previous);
    OK(ncclx_comm_free(&a));
    OK(ncclx_comm_free(&b));
}

/* Three colors and none, the order reversed by key. */
static void splits(void)
{
    ncclx_comm_t part;
    int color = rank % 4 == 3 ? NCCLX_UNDEFINED : rank % 4, count, me, at = 0;
    int *world = malloc((size_t)size * sizeof *world);
    OK(ncclx_comm_split(NCCLX_COMM_WORLD, color, -rank, &part));
    if (color == NCCLX_UNDEFINED) {
        CHECK(part == NCCLX_COMM_NULL);
        free(world);
        return;
    }
    OK(ncclx_comm_rank(part, &me));
    OK(ncclx_comm_size(part, &count));
    members(part, world);
    for (int i = size - 1; i >= 0; i--)
        if (i % 4 == color) CHECK(world[at++] == i);
    CHECK(at == count && world[me] == rank);
    use(part);
    OK(ncclx_comm_free(&part));
    free(world);
}

/* A communicator split again and again, down to one rank. */
static void splits_of_splits(void)
{
    ncclx_comm_t comm, half;
    int me, count;
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    OK(ncclx_comm_size(comm, &count));
    while (count > 1) {
        OK(ncclx_comm_rank(comm, &me));
        OK(ncclx_comm_split(comm, me < count / 2, me, &half));
        OK(ncclx_comm_free(&comm));
        comm = half;
        use(comm);
        OK(ncclx_comm_size(comm, &count));
    }
    OK(ncclx_comm_free(&comm));
}

/* As COMM_WORLD says; who is at an unknown distance counts as one in the zone. */
static int distance_of(int peer)
{
    int distance;
    OK(ncclx_comm_remote_class(NCCLX_COMM_WORLD, peer, &distance));
    return distance == NCCLX_DISTANCE_UNKNOWN ? NCCLX_DISTANCE_ZONE : distance;
}

/* Whoever is as near as that is in one part, here in the reverse order of ranks. */
static void splits_by_place(void)
{
    static const int types[] = {NCCLX_SPLIT_NODE, NCCLX_SPLIT_RACK, NCCLX_SPLIT_ZONE, NCCLX_SPLIT_BUILDING};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        ncclx_comm_t part;
        int me, count, distance;
        OK(ncclx_comm_split_type(NCCLX_COMM_WORLD, types[i], size - rank, &part));
        OK(ncclx_comm_rank(part, &me));
        OK(ncclx_comm_size(part, &count));
        int members = 0;
        for (int peer = size - 1; peer >= 0; peer--) {
            if (distance_of(peer) > types[i]) continue;
            CHECK(peer != rank || me == members);
            OK(ncclx_comm_remote_class(part, members, &distance));
            CHECK((distance == NCCLX_DISTANCE_UNKNOWN ? NCCLX_DISTANCE_ZONE : distance) == distance_of(peer));
            members++;
        }
        CHECK(count == members);
        use(part);
        OK(ncclx_comm_free(&part));
    }
    ncclx_comm_t none;
    OK(ncclx_comm_split_type(NCCLX_COMM_WORLD, NCCLX_UNDEFINED, 0, &none));
    CHECK(none == NCCLX_COMM_NULL);
}

/* The ranks first, first + 1, ... in reverse order make a communicator; the others take no part. */
static void create(int first, int tag)
{
    ncclx_group_t all, part;
    ncclx_comm_t comm;
    int range[1][3] = {{size - 1, first, -1}}, me;
    if (rank < first) return;
    OK(ncclx_comm_group(NCCLX_COMM_WORLD, &all));
    OK(ncclx_group_range_incl(all, 1, (const int (*)[3])range, &part));
    OK(ncclx_comm_create_group(NCCLX_COMM_WORLD, part, tag, &comm));
    OK(ncclx_comm_rank(comm, &me));
    CHECK(me == size - 1 - rank);
    use(comm);
    OK(ncclx_comm_free(&comm));
    OK(ncclx_group_free(&part));
    OK(ncclx_group_free(&all));
}

static void creates_from_groups(void)
{
    for (int first = 0; first < size; first++) create(first, 0);
    for (int first = size - 1; first >= 0; first--) create(first, first);
}

static void *create_all(void *arg)
{
    int thread = *(int *)arg;
    for (int first = 0; first < size; first++) create(first, thread);
    return NULL;
}

/* Two threads, the same groups, told apart by the tag alone. */
static void creates_from_two_threads(void)
{
    pthread_t other;
    int tags[2] = {1, 2};
    CHECK(pthread_create(&other, NULL, create_all, &tags[1]) == 0);
    create_all(&tags[0]);
    CHECK(pthread_join(other, NULL) == 0);
}

/* A communicator freed with a receive pending lives until that is complete; its handle does not. */
static void free_with_pending_operations(void)
{
    ncclx_comm_t comm, stale;
    ncclx_request_t request;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, got = -1;
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_irecv(&got, 1, NCCLX_INT32, previous, 3, comm, &request));
    OK(ncclx_send(&rank, 1, NCCLX_INT32, next, 3, comm));
    stale = comm;
    OK(ncclx_comm_free(&comm));
    FAILS(ncclx_comm_rank(stale, &got), NCCLX_ERR_COMM);
    OK(ncclx_wait(&request, NCCLX_STATUS_IGNORE));
    CHECK(got == previous);
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL));
}

static void names(void)
{
    char name[64], longer[100];
    ncclx_comm_t comm;
    OK(ncclx_comm_get_name(NCCLX_COMM_WORLD, name));
    CHECK(strcmp(name, "COMM_WORLD") == 0);
    OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &comm));
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    OK(ncclx_comm_set_name(comm, longer));
    OK(ncclx_comm_get_name(comm, name));
    CHECK(strlen(name) == 63 && memcmp(name, longer, 63) == 0);
    OK(ncclx_comm_free(&comm));
}

static void info_objects(void)
{
    ncclx_info_t info, copy;
    char key[NCCLX_MAX_INFO_KEY + 1], value[8];
    size_t count = 9;
    int found;
    OK(ncclx_info_create(&info));
    OK(ncclx_info_nkeys(info, &count));
    CHECK(count == 0);
    OK(ncclx_info_set(info, "second", "two"));
    OK(ncclx_info_set(info, "first", "one"));
    OK(ncclx_info_dup(info, &copy));
    OK(ncclx_info_set(info, "second", "another value"));
    OK(ncclx_info_nthkey(info, 1, key));
    CHECK(!strcmp(key, "first"));
    OK(ncclx_info_get(info, "second", value, sizeof value, &found));
    CHECK(found == 1 && !strcmp(value, "another")); /* cut */
    OK(ncclx_info_get(info, "third", NULL, 0, &found));
    CHECK(found == 0);
    OK(ncclx_info_delete(info, "second"));
    OK(ncclx_info_nkeys(info, &count));
    CHECK(count == 1);
    OK(ncclx_info_free(&info));
    CHECK(info == NCCLX_INFO_NULL);
    OK(ncclx_info_nkeys(copy, &count)); /* is one of its own */
    OK(ncclx_info_get(copy, "second", value, sizeof value, &found));
    CHECK(count == 2 && found == 1 && !strcmp(value, "two"));
    OK(ncclx_info_free(&copy));
}

/* The even ranks and those of the upper half. */
static void sets_of_groups(void)
{
    ncclx_group_t all, even, upper, both, either, rest;
    int evens[1][3] = {{0, size - 1, 2}}, uppers[1][3] = {{size / 2, size - 1, 1}}, count, place, in_both = 0;
    OK(ncclx_comm_group(NCCLX_COMM_WORLD, &all));
    OK(ncclx_group_range_incl(all, 1, (const int (*)[3])evens, &even));
    OK(ncclx_group_range_incl(all, 1, (const int (*)[3])uppers, &upper));
    OK(ncclx_group_intersection(even, upper, &both));
    OK(ncclx_group_union(even, upper, &either));
    OK(ncclx_group_difference(even, upper, &rest));
    for (int i = size / 2; i < size; i++) in_both += i % 2 == 0;
    OK(ncclx_group_size(both, &count));
    CHECK(count == in_both);
    OK(ncclx_group_size(rest, &count));
    CHECK(count == (size + 1) / 2 - in_both);
    OK(ncclx_group_size(either, &count));
    CHECK(count == (size + 1) / 2 + size - size / 2 - in_both);
    OK(ncclx_group_rank(both, &place));
    CHECK((place != NCCLX_UNDEFINED) == (rank % 2 == 0 && rank >= size / 2));
    OK(ncclx_group_rank(rest, &place));
    CHECK(rank % 2 == 0 && rank < size / 2 ? place == rank / 2 : place == NCCLX_UNDEFINED);
    ncclx_group_t *groups[] = {&all, &even, &upper, &both, &either, &rest};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (*groups[i] != NCCLX_GROUP_EMPTY) OK(ncclx_group_free(groups[i]));
}

/* Many communicators at once, made and freed in different orders. */
static void many(void)
{
    enum { COUNT = 40 };
    ncclx_comm_t comms[COUNT];
    for (int i = 0; i < COUNT; i++) OK(ncclx_comm_split(NCCLX_COMM_WORLD, rank % (1 + i % 3), 0, &comms[i]));
    for (int i = 0; i < COUNT; i += 7) use(comms[i]);
    for (int i = 0; i < COUNT; i += 2) OK(ncclx_comm_free(&comms[i]));
    for (int i = COUNT - 1; i > 0; i -= 2) OK(ncclx_comm_free(&comms[i]));
}

int main(void)
{
    int provided;
    OK(ncclx_init_thread(NULL, NULL, NCCLX_THREAD_MULTIPLE, &provided));
    CHECK(provided == NCCLX_THREAD_MULTIPLE);
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    duplicates();
    messages_stay_on_their_communicator();
    splits();
    splits_of_splits();
    splits_by_place();
    creates_from_groups();
    creates_from_two_threads();
    free_with_pending_operations();
    names();
    info_objects();
    sets_of_groups();
    many();
    OK(ncclx_finalize());
    return 0;
}
