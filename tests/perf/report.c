/* report.c - reads the lines of interleaved benchmark runs and prints medians, ratios and their spread.
 *
 *     report [--json FILE] [--svg FILE] < LINES
 *
 * A line is what kernel.c prints: LIBRARY TEST RANKS BYTES MICROSECONDS... The k-th line of each (library, test, ranks,
 * bytes) belongs to round k, and the k-th batch of each line was measured in the same moment. The ratio of a round is
 * that of the peer with the smallest median, the median over batches of its time over ncclx's, so that a machine whose
 * speed changes does not count. The interval is that of the median over rounds, 95 %, from the rounds' order, with no assumption
 * on how they are distributed, interpolated between two ranks (Hettmansperger and Sheather 1986). Fewer than six rounds do not
 * give 95 %: then it is all of them, and what that is worth stands in its place.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIBRARIES 8
#define MAX_ROUNDS 64
#define MAX_POINTS 1024
#define MAX_BATCHES 16
#define CONFIDENCE 0.95
#define LARGE_BYTES (1 << 20) /* from here on speed is compared with one copy's */

struct middle {
    double median, low, high;
    double confidence; /* that the interval holds the true median */
};

struct series {
    double round[MAX_ROUNDS]; /* medians */
    double batch[MAX_ROUNDS][MAX_BATCHES];
    int batches[MAX_ROUNDS];
    int rounds;
};

struct point {
    char test[32];
    int ranks;
    unsigned long long bytes;
    struct series series[MAX_LIBRARIES];
    struct middle ratio; /* 0: no peer */
};

static char library[MAX_LIBRARIES][16];
static int libraries;
static struct point points[MAX_POINTS];
static int point_count;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[MAX_ROUNDS > MAX_BATCHES ? MAX_ROUNDS : MAX_BATCHES];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* -1: unknown. */
static int library_index(const char *name)
{
    for (int i = 0; i < libraries; i++)
        if (!strcmp(library[i], name)) return i;
    return -1;
}

static int library_make(const char *name)
{
    int index = library_index(name);
    if (index >= 0 || libraries == MAX_LIBRARIES) return index;
    snprintf(library[libraries], sizeof library[0], "%s", name);
    return libraries++;
}

static struct point *point_of(const char *test, int ranks, unsigned long long bytes)
{
    for (int i = 0; i < point_count; i++)
        if (!strcmp(points[i].test, test) && points[i].ranks == ranks && points[i].bytes == bytes) return &points[i];
    if (point_count == MAX_POINTS) return NULL;
    struct point *point = &points[point_count++];
    snprintf(point->test, sizeof point->test, "%s", test);
    point->ranks = ranks;
    point->bytes = bytes;
    return point;
}

static void read_line(char *line)
{
    char name[16], test[32];
    int ranks, used;
    unsigned long long bytes;
    double sample[MAX_BATCHES];
    int samples = 0;
    if (sscanf(line, "%15s %31s %d %llu%n", name, test, &ranks, &bytes, &used) < 4) return;
    for (char *at = line + used; samples < MAX_BATCHES; samples++) {
        char *end;
        sample[samples] = strtod(at, &end);
        if (end == at) break;
        at = end;
    }
    int index = library_make(name);
    struct point *point = point_of(test, ranks, bytes);
    if (!samples || index < 0 || !point || point->series[index].rounds == MAX_ROUNDS) return;
    struct series *series = &point->series[index];
    memcpy(series->batch[series->rounds], sample, (size_t)samples * sizeof *sample);
    series->batches[series->rounds] = samples;
    series->round[series->rounds++] = median(sample, samples);
}

/* The others are measures, not libraries. */
static int is_peer(int index)
{
    static const char *const measures[] = {"ncclx", "floor", "copy", "socket", "iperf3"};
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        if (!strcmp(library[index], measures[i])) return 0;
    return 1;
}

/* How often as long as `ours` another takes, in round r. */
static double round_ratio(const struct series *other, const struct series *ours, int r)
{
    double ratio[MAX_BATCHES];
    int batches = ours->batches[r];
    if (other->batches[r] != batches) return other->round[r] / ours->round[r];
    for (int i = 0; i < batches; i++) ratio[i] = other->batch[r][i] / ours->batch[r][i];
    return median(ratio, batches);
}

/* That the median lies between the values of rank k and count + 1 - k: a toss of `count` coins shows at least k of each side. */
static double coverage(int count, int k)
{
    double outside = 0, chance = exp2(-count); /* of exactly i */
    for (int i = 0; i < k; i++) {
        outside += 2 * chance;
        chance = chance * (count - i) / (i + 1);
    }
    return outside < 1 ? 1 - outside : 0;
}

static struct middle middle_of(const double *values, int count)
{
    double sorted[MAX_ROUNDS], all = coverage(count, 1);
    int k = 1;
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    if (all < CONFIDENCE) return (struct middle){median(values, count), sorted[0], sorted[count - 1], all};
    while (coverage(count, k + 1) >= CONFIDENCE) k++;
    double wide = coverage(count, k), narrow = coverage(count, k + 1);
    double part = (wide - CONFIDENCE) / (wide - narrow);
    double inner = (count - k) * part / (k + (count - 2 * k) * part); /* how much the narrower one counts */
    return (struct middle){.median = median(values, count),
                           .low = (1 - inner) * sorted[k - 1] + inner * sorted[k],
                           .high = (1 - inner) * sorted[count - k] + inner * sorted[count - k - 1],
                           .confidence = CONFIDENCE};
}

static void compare(struct point *point)
{
    int ours = library_index("ncclx"), rounds = MAX_ROUNDS, peers = 0;
    double ratio[MAX_ROUNDS];
    if (ours < 0) return;
    for (int l = 0; l < libraries; l++) {
        if (!point->series[l].rounds || (l != ours && !is_peer(l))) continue;
        peers += is_peer(l);
        if (point->series[l].rounds < rounds) rounds = point->series[l].rounds;
    }
    if (!peers || !point->series[ours].rounds) return;
    for (int r = 0; r < rounds; r++) {
        int best = -1;
        for (int l = 0; l < libraries; l++)
            if (is_peer(l) && point->series[l].rounds && (best < 0 || point->series[l].round[r] < point->series[best].round[r]))
                best = l;
        ratio[r] = round_ratio(&point->series[best], &point->series[ours], r);
    }
    point->ratio = middle_of(ratio, rounds);
}

/* Of large messages from points[begin] on: the bandwidth as a share of that of `floor`, the smallest over sizes. */
static void print_share(int begin, int end, const char *floor, const char *words)
{
    int ours = library_index("ncclx"), other = library_index(floor), measured = 0;
    struct middle least = {.median = INFINITY};
    unsigned long long at = 0;
    for (int i = begin; i < end && ours >= 0 && other >= 0; i++) {
        const struct series *mine = &points[i].series[ours], *theirs = &points[i].series[other];
        double share[MAX_ROUNDS];
        if (points[i].bytes < LARGE_BYTES || !mine->rounds || mine->rounds != theirs->rounds) continue;
        for (int r = 0; r < mine->rounds; r++) share[r] = round_ratio(theirs, mine, r);
        struct middle middle = middle_of(share, mine->rounds);
        if (middle.median < least.median) least = middle, at = points[i].bytes;
        measured = 1;
    }
    if (measured)
        printf("  from 1 MiB on at least %.0f %% [%.0f, %.0f] of the bandwidth of %s (at %llu bytes)\n", least.median * 100, least.low * 100,
               least.high * 100, words, at);
}

/* How much longer than over a bare socket, where that is least and most. */
static void print_socket_ratio(int begin, int end)
{
    int ours = library_index("ncclx"), bare = library_index("socket");
    const struct point *least_at = NULL, *most_at = NULL;
    struct middle least = {.median = INFINITY}, most = {0};
    double ratio[MAX_ROUNDS];
    for (int i = begin; i < end && ours >= 0 && bare >= 0; i++) {
        const struct series *mine = &points[i].series[ours], *other = &points[i].series[bare];
        if (!mine->rounds || mine->rounds != other->rounds) continue;
        for (int r = 0; r < mine->rounds; r++) ratio[r] = 1 / round_ratio(other, mine, r);
        struct middle middle = middle_of(ratio, mine->rounds);
        if (middle.median < least.median) least = middle, least_at = &points[i];
        if (middle.median > most.median) most = middle, most_at = &points[i];
    }
    if (most_at)
        printf("  %.2f [%.2f, %.2f] (at %llu bytes) to %.2f [%.2f, %.2f] (at %llu bytes) times the time of a bare socket\n", least.median,
               least.low, least.high, least_at->bytes, most.median, most.low, most.high, most_at->bytes);
}

static int same_line(const struct point *a, const struct point *b)
{
    return !strcmp(a->test, b->test) && a->ranks == b->ranks;
}

/* Of the lines of one test from points[begin] on. */
static double least_confidence(int begin)
{
    double least = CONFIDENCE;
    for (int i = begin; i < point_count && same_line(&points[begin], &points[i]); i++)
        if (points[i].ratio.median > 0 && points[i].ratio.confidence < least) least = points[i].ratio.confidence;
    return least;
}

static void print_text(void)
{
    const char *test = "";
    int ranks = 0, begin = 0;
    double log_sum = 0;
    int compared = 0;
    for (int i = 0; i <= point_count; i++) {
        struct point *point = &points[i];
        if (i == point_count || strcmp(point->test, test) || point->ranks != ranks) {
            if (compared) printf("  geometric mean of the ratios: %.2f\n", exp(log_sum / compared));
            print_share(begin, i, "copy", "one copy");
            print_share(begin, i, "iperf3", "iperf3");
            print_socket_ratio(begin, i);
            if (i == point_count) break;
            begin = i;
            test = point->test;
            ranks = point->ranks;
            log_sum = compared = 0;
            printf("\n%s, %d ranks, microseconds (medians)\n%12s", test, ranks, "bytes");
            for (int l = 0; l < libraries; l++) printf("%12s", library[l]);
            printf("   best peer / ncclx [%.0f %%]\n", 100 * least_confidence(i));
        }
        printf("%12llu", point->bytes);
        for (int l = 0; l < libraries; l++) {
            if (point->series[l].rounds)
                printf("%12.3f", median(point->series[l].round, point->series[l].rounds));
            else
                printf("%12s", "-");
        }
        if (point->ratio.median > 0) {
            printf("   %6.2f [%.2f, %.2f]", point->ratio.median, point->ratio.low, point->ratio.high);
            log_sum += log(point->ratio.median);
            compared++;
        }
        printf("\n");
    }
}

static void print_json(FILE *file)
{
    fprintf(file, "[\n");
    for (int i = 0; i < point_count; i++) {
        struct point *point = &points[i];
        fprintf(file, "  {\"test\": \"%s\", \"ranks\": %d, \"bytes\": %llu", point->test, point->ranks, point->bytes);
        for (int l = 0; l < libraries; l++)
            if (point->series[l].rounds)
                fprintf(file, ", \"%s_us\": %.4f", library[l], median(point->series[l].round, point->series[l].rounds));
        if (point->ratio.median > 0)
            fprintf(file, ", \"ratio\": %.4f, \"ratio_low\": %.4f, \"ratio_high\": %.4f, \"confidence\": %.4f", point->ratio.median,
                    point->ratio.low, point->ratio.high, point->ratio.confidence);
        fprintf(file, "}%s\n", i + 1 < point_count ? "," : "");
    }
    fprintf(file, "]\n");
}

/* Ratio against size, both logarithmic, one line a test; above the grey line ncclx is the faster. */
#define SVG_WIDTH 900
#define SVG_HEIGHT 520
#define SVG_LEFT 60
#define SVG_BOTTOM 470
#define SVG_MOST 28 /* of the logarithm of the size */

static double svg_x(double bytes)
{
    return SVG_LEFT + log2(bytes + 1) / SVG_MOST * (SVG_WIDTH - SVG_LEFT - 180);
}

static double svg_y(double ratio)
{
    double y = SVG_BOTTOM - (log2(ratio) + 2) / 7 * (SVG_BOTTOM - 30); /* from 1/4 to 32 */
    return y < 20 ? 20 : y;
}

static void print_svg(FILE *file)
{
    static const char *const color[] = {"#1b6ca8", "#c8553d", "#2a9d62", "#8e5ea2",
                                        "#d99a2b", "#4d4d4d", "#17a2a2", "#b5477a"};
    int lines = 0;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            SVG_WIDTH, SVG_HEIGHT);
    fprintf(file,
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"16\">best peer's time / "
            "ncclx's time</text>\n",
            SVG_LEFT);
    for (int e = -2; e <= 5; e++) {
        double y = svg_y(exp2(e));
        fprintf(
            file,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/><text x=\"20\" y=\"%.1f\">%g</text>\n",
            SVG_LEFT, SVG_WIDTH - 170, y, y, e ? "#eeeeee" : "#888888", y + 4, exp2(e));
    }
    for (int e = 0; e <= SVG_MOST; e += 4)
        fprintf(file, "<text x=\"%.1f\" y=\"%d\">2^%d B</text>\n", svg_x(exp2(e)), SVG_BOTTOM + 20, e);
    for (int begin = 0, end; begin < point_count; begin = end) {
        int drawn = 0;
        const char *stroke = color[lines % 8], *dash = lines / 8 % 2 ? " stroke-dasharray=\"7 4\"" : "";
        for (end = begin; end < point_count && same_line(&points[begin], &points[end]); end++) {
            if (points[end].ratio.median <= 0) continue;
            if (!drawn++)
                fprintf(file, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\"%s points=\"", stroke, dash);
            fprintf(file, "%.1f,%.1f ", svg_x((double)points[end].bytes), svg_y(points[end].ratio.median));
        }
        if (!drawn) continue;
        fprintf(file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s%s, %d ranks</text>\n", SVG_WIDTH - 165,
                30 + 16 * lines, stroke, *dash ? "- " : "", points[begin].test, points[begin].ranks);
        lines++;
    }
    fprintf(file, "</svg>\n");
}

static int write_file(const char *path, void (*print)(FILE *))
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 1;
    }
    print(file);
    return fclose(file) != 0;
}

int main(int argc, char **argv)
{
    static char line[4096];
    int failed = 0;
    while (fgets(line, sizeof line, stdin)) read_line(line);
    for (int i = 0; i < point_count; i++) compare(&points[i]);
    print_text();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--json"))
            failed |= write_file(argv[i + 1], print_json);
        else if (!strcmp(argv[i], "--svg"))
            failed |= write_file(argv[i + 1], print_svg);
        else
            return fprintf(stderr, "report: unknown option %s\n", argv[i]), 2;
    }
    return failed;
}
