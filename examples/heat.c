/* heat.c - a plate with a heater in the shape of a word, in a cold bath: the heat equation in two dimensions, step by step,
 * until nothing changes any more, and a picture of the temperatures.
 *
 * Shows: halo rows by put_signal on a window while the rest is computed (heat_strip.c), a stop that all ranks agree on, and
 * results that have the same bits on any number of ranks.
 *
 *     ncclxcc -O3 -ffp-contract=off heat.c heat_picture.c heat_plate.c heat_strip.c -lm -o heat
 *     ncclxrun -n 4 ./heat --size 720 300 --out heat.png
 *
 * With -DHEAT_PNG -lpng16 the picture is a PNG, without it a PPM. Exits with 0 when the heat that was supplied is what the
 * plate has gained and lost, and the picture is written; else 1; 2 for wrong use.
 */
#include "heat_picture.h"
#include "heat_strip.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_PER_CHECK 50    /* between looks at whether the plate still changes */
#define MOST_CELLS 1000000    /* along one side */
#define MOST_IMBALANCE 1e-9   /* relative: rounding is far below it, a lost row of cells far above */
#define TAG_PICTURE 1

struct options {
    struct plate plate;
    uint64_t steps;
    double until;
    const char *out;
    bool help;
};

static const char usage[] = "usage: heat [--size NX NY] [--steps N] [--until CHANGE] [--out FILE]\n"
                            "Heats a plate in a cold bath, and writes a picture of its temperatures.\n"
                            "  --size NX NY    cells of the plate (default 720 300)\n"
                            "  --steps N       at most so many steps (default 3000)\n"
                            "  --until CHANGE  stop when no cell changes by more in a step (default 1e-7)\n"
                            "  --out FILE      the picture, .png or .ppm (default heat.png)\n"
                            "  --help          print this text\n";

/* ---- Options ------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end;
    if (!text || text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !*end && !errno && *number >= least && *number <= most;
}

static bool parse_change(const char *text, double *change)
{
    char *end;
    if (!text) return false;
    *change = strtod(text, &end);
    return end != text && !*end && *change >= 0 && isfinite(*change);
}

static bool parse_size(const char *nx, const char *ny, struct plate *plate)
{
    uint64_t x, y;
    if (!parse_number(nx, 1, MOST_CELLS, &x) || !parse_number(ny, 1, MOST_CELLS, &y)) return false;
    *plate = (struct plate){.nx = (size_t)x, .ny = (size_t)y};
    return true;
}

static bool parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.plate = {720, 300}, .steps = 3000, .until = 1e-7, .out = "heat.png"};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL, *second = value && i + 2 < argc ? argv[i + 2] : NULL;
        if (!strcmp(argv[i], "--help")) {
            options->help = true;
            return true;
        }
        if (!strcmp(argv[i], "--size") && parse_size(value, second, &options->plate)) i += 2;
        else if (!strcmp(argv[i], "--steps") && parse_number(value, 0, UINT64_MAX, &options->steps)) i++;
        else if (!strcmp(argv[i], "--until") && parse_change(value, &options->until)) i++;
        else if (!strcmp(argv[i], "--out") && value) options->out = argv[++i];
        else return false;
    }
    return true;
}

/* ---- The heat's balance, and a fingerprint of all temperatures ------------------------------------------------- */

struct balance {
    double at_start, stored, supplied, lost;
    uint64_t fingerprint; /* the same for the same bits in every cell */
};

/* FNV-1a. */
static uint64_t hash(uint64_t state, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) state = (state ^ byte[i]) * UINT64_C(1099511628211);
    return state;
}

static double stored_in(const double *row, size_t nx)
{
    double sum = 0;
    for (size_t x = 0; x < nx; x++) sum += row[x];
    return sum;
}

/* Row by row at rank 0, then in the order of rows: sums whose order does not depend on the number of ranks. Each entry
 * comes from one rank, and is added to zeros. */
static void take_balance(const struct strip *strip, struct balance *balance)
{
    const size_t ny = strip->plate.ny, nx = strip->plate.nx;
    double *sums = need(4 * ny, sizeof *sums);
    uint64_t *prints = need(ny, sizeof *prints), all = UINT64_C(14695981039346656037);
    for (size_t row = 0; row < strip->rows; row++) {
        double *sum = sums + 4 * (strip->first + row);
        sum[0] = (double)(strip->heater_from[row + 1] - strip->heater_from[row]); /* at 1, the rest at 0 */
        sum[1] = stored_in(strip_row(strip, row), nx);
        sum[2] = strip->supplied[row];
        sum[3] = strip->lost[row];
        prints[strip->first + row] = hash(all, strip_row(strip, row), nx * sizeof(double));
    }
    const void *own_sums = strip->rank ? (const void *)sums : NCCLX_IN_PLACE;
    const void *own_prints = strip->rank ? (const void *)prints : NCCLX_IN_PLACE;
    ncclx_coll_reduce(own_sums, sums, 4 * ny, NCCLX_DOUBLE, NCCLX_SUM, 0, strip->comm);
    ncclx_coll_reduce(own_prints, prints, ny, NCCLX_UINT64, NCCLX_SUM, 0, strip->comm);
    *balance = (struct balance){.fingerprint = hash(all, prints, ny * sizeof *prints)};
    for (size_t y = 0; y < ny; y++) {
        balance->at_start += sums[4 * y];
        balance->stored += sums[4 * y + 1];
        balance->supplied += sums[4 * y + 2];
        balance->lost += sums[4 * y + 3];
    }
    free(sums);
    free(prints);
}

static double imbalance(const struct balance *balance)
{
    const double all = balance->at_start + balance->supplied;
    return all > 0 ? fabs(all - balance->stored - balance->lost) / all : 0;
}

/* ---- The picture --------------------------------------------------------------------------------------------- */

/* At rank 0, one strip after another; the others have none. */
static unsigned char *gather_colours(const struct strip *strip)
{
    const size_t nx = strip->plate.nx;
    unsigned char *colours = need((strip->rank ? strip->rows : strip->plate.ny) * nx, 1);
    for (size_t row = 0; row < strip->rows; row++)
        for (size_t x = 0; x < nx; x++) colours[row * nx + x] = picture_colour(strip_row(strip, row)[x]);
    if (strip->rank) ncclx_send(colours, strip->rows * nx, NCCLX_BYTE, 0, TAG_PICTURE, strip->comm);
    for (int from = 1; from < strip->size && strip->rank == 0; from++) {
        size_t first, rows;
        strip_rows_of(strip, from, &first, &rows);
        ncclx_recv(colours + first * nx, rows * nx, NCCLX_BYTE, from, TAG_PICTURE, strip->comm, NCCLX_STATUS_IGNORE);
    }
    return colours;
}

static bool draw(const struct strip *strip, const char *name)
{
    char why[1024];
    unsigned char *colours = gather_colours(strip);
    const struct plate *plate = &strip->plate;
    const bool good = strip->rank || picture_write(name, colours, plate->nx, plate->ny, why, sizeof why);
    free(colours);
    if (good && strip->rank == 0) printf("picture      %s\n", name);
    if (!good) fprintf(stderr, "heat: %s\n", why);
    return good;
}

/* ---- Main ---------------------------------------------------------------------------------------------------- */

/* Returns the last change looked at; infinity before the first. */
static double run_steps(struct strip *strip, const struct options *options)
{
    double change = INFINITY;
    while (strip->steps < options->steps && change > options->until) {
        strip_step(strip);
        if (strip->steps % STEPS_PER_CHECK == 0) change = strip_change(strip);
    }
    return change;
}

static void report(const struct strip *strip, const struct balance *balance, double change, double seconds)
{
    const double cells = (double)strip->plate.nx * (double)strip->plate.ny;
    printf("ranks        %d\n", strip->size);
    printf("cells        %zu x %zu\n", strip->plate.nx, strip->plate.ny);
    printf("steps        %llu", (unsigned long long)strip->steps);
    if (isfinite(change)) printf(", in the end no cell changed by more than %.3g in one", change);
    printf("\ntime         %.6f s\n", seconds);
    printf("rate         %.3g cells/s\n", seconds > 0 ? cells * (double)strip->steps / seconds : 0);
    printf("heat         %.6g at the start + %.6g supplied = %.6g stored + %.6g lost\n", balance->at_start,
           balance->supplied, balance->stored, balance->lost);
    printf("imbalance    %.1e   of these sums, relative\n", imbalance(balance));
    printf("fingerprint  %016llx   of all temperatures\n", (unsigned long long)balance->fingerprint);
}

static bool run(const struct options *options, const char *picture)
{
    struct strip strip;
    struct balance balance;
    strip_create(&strip, &options->plate, NCCLX_COMM_WORLD);
    const double start = ncclx_wtime(), change = run_steps(&strip, options), seconds = ncclx_wtime() - start;
    take_balance(&strip, &balance);
    if (strip.rank == 0) report(&strip, &balance, change, seconds);
    const bool balanced = strip.rank || imbalance(&balance) <= MOST_IMBALANCE;
    if (!balanced) fprintf(stderr, "heat: the heat does not balance\n");
    const bool drawn = draw(&strip, picture);
    strip_free(&strip);
    return balanced && drawn;
}

/* What parse cannot know, in words for rank 0 to print; false: not to be run. */
static bool check(const struct options *options, int rank, int size, char *picture, size_t bytes)
{
    const char *wrong = NULL;
    if (options->plate.ny < (size_t)size) wrong = "the plate needs a row for each rank: more NY, or fewer ranks";
    else if (!picture_name(options->out, picture, bytes)) wrong = "the picture's name must end in .png or .ppm";
    if (rank == 0 && wrong) fprintf(stderr, "heat: %s\n", wrong);
    else if (rank == 0 && strcmp(picture, options->out)) fprintf(stderr, "heat: built without libpng: a PPM picture\n");
    return !wrong;
}

int main(int argc, char **argv)
{
    struct options options;
    char picture[4096];
    int rank, size, status = 2;

    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    const bool good = parse(argc, argv, &options);
    if (!good || options.help) {
        if (rank == 0) fputs(usage, good ? stdout : stderr);
        status = good ? 0 : 2;
    } else if (check(&options, rank, size, picture, sizeof picture)) {
        status = run(&options, picture) ? 0 : 1;
    }
    ncclx_finalize();
    return status;
}
