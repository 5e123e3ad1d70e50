/* driver.c - runs a fuzzer over its corpus and over changes of it, the same ones each time: a short test that needs no clang.
 *
 * A fuzzer is a file that defines LLVMFuzzerTestOneInput and fuzz_name. `make fuzz FUZZER=NAME` builds it with clang's libFuzzer instead.
 *     FUZZ_RUNS=N  changed inputs (default 20000)     FUZZ_SEED=N  other ones (default 1)
 * A finding prints the input; FUZZ_INPUT=FILE runs one input alone.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES 4096
#define MAX_SEEDS 256

struct input {
    size_t bytes;
    uint8_t data[MAX_BYTES];
};

static struct input *seeds;
static size_t seed_count;
static struct input current;
static uint64_t state;

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(void)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(next_random() % limit) : 0;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static int read_input(const char *path, struct input *input)
{
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    input->bytes = fread(input->data, 1, MAX_BYTES, file);
    fclose(file);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_corpus(void)
{
    const char *source = getenv("top_srcdir");
    char folder[1024], path[2048];
    struct dirent **entries;
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", source ? source : ".", fuzz_name);
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && seed_count < MAX_SEEDS && !read_input(path, &seeds[seed_count])) seed_count++;
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

/* Numbers at which lengths and counts go wrong. */
static const uint64_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX >> 1, UINT64_MAX};

static void replace_number(struct input *input)
{
    size_t width = (size_t)1 << below(4);
    uint64_t value = edges[below(sizeof edges / sizeof edges[0])];
    if (input->bytes < width) return;
    memcpy(input->data + below(input->bytes - width + 1), &value, width); /* little-endian, as our formats are on our machines */
}

static void insert_bytes(struct input *input, const uint8_t *data, size_t bytes)
{
    size_t at = below(input->bytes + 1);
    if (bytes > MAX_BYTES - input->bytes) bytes = MAX_BYTES - input->bytes;
    memmove(input->data + at + bytes, input->data + at, input->bytes - at);
    memcpy(input->data + at, data, bytes);
    input->bytes += bytes;
}

static void remove_bytes(struct input *input)
{
    size_t at = below(input->bytes), bytes = 1 + below(8);
    if (bytes > input->bytes - at) bytes = input->bytes - at;
    memmove(input->data + at, input->data + at + bytes, input->bytes - at - bytes);
    input->bytes -= bytes;
}

static void change(struct input *input)
{
    uint8_t random[16];
    for (size_t i = 0; i < sizeof random; i++) random[i] = (uint8_t)next_random();
    switch (below(7)) {
    case 0:
        if (input->bytes) input->data[below(input->bytes)] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        if (input->bytes) input->data[below(input->bytes)] = random[0];
        break;
    case 2: insert_bytes(input, random, 1 + below(sizeof random)); break;
    case 3: remove_bytes(input); break;
    case 4: replace_number(input); break;
    case 5: input->bytes = below(input->bytes + 1); break;
    default:
        if (seed_count) { /* a piece of another seed */
            const struct input *other = &seeds[below(seed_count)];
            size_t from = below(other->bytes + 1);
            insert_bytes(input, other->data + from, below(other->bytes - from + 1));
        }
    }
}

/* The process is about to die on this input: says which. */
static void show_current(int number)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * MAX_BYTES + 32];
    size_t length = 0;
    for (const char *at = "# finding on the input (hex) "; *at; at++) text[length++] = *at;
    for (size_t i = 0; i < current.bytes && length + 3 < sizeof text; i++) {
        text[length++] = digits[current.data[i] >> 4];
        text[length++] = digits[current.data[i] & 15];
    }
    text[length++] = '\n';
    if (write(STDERR_FILENO, text, length) < 0) _exit(1);
    if (number) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void show_at_death(void)
{
    show_current(0);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void run_current(void)
{
    /* A copy of just this size, so that a read past the end is seen by the address sanitizer. */
    uint8_t *exact = malloc(current.bytes ? current.bytes : 1);
    if (!exact) abort();
    memcpy(exact, current.data, current.bytes);
    LLVMFuzzerTestOneInput(exact, current.bytes);
    free(exact);
}

static int run_one(const char *path)
{
    if (read_input(path, &current)) return fprintf(stderr, "cannot read %s\n", path), 1;
    run_current();
    return 0;
}

int main(void)
{
    const char *one = getenv("FUZZ_INPUT");
    uint64_t runs = number_from("FUZZ_RUNS", 20000);
    if (one) return run_one(one);
    seeds = calloc(MAX_SEEDS, sizeof *seeds);
    if (!seeds) return 1;
    state = number_from("FUZZ_SEED", 1);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(show_at_death);
    signal(SIGSEGV, show_current);
    signal(SIGABRT, show_current);
    read_corpus();
    printf("1..2\n");
    for (size_t i = 0; i < seed_count; i++) {
        current = seeds[i];
        run_current();
    }
    printf("%s 1 - %s: %zu inputs of the corpus\n", seed_count ? "ok" : "not ok", fuzz_name, seed_count);
    for (uint64_t run = 0; run < runs; run++) {
        current.bytes = 0;
        if (seed_count && below(16)) current = seeds[below(seed_count)];
        for (size_t changes = 1 + below(6); changes; changes--) change(&current);
        run_current();
    }
    printf("ok 2 - %s: %" PRIu64 " changed inputs\n", fuzz_name, runs);
    free(seeds);
    return seed_count ? 0 : 1;
}
