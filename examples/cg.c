/* cg.c - solves A x = b by conjugate gradients with a Jacobi preconditioner, rows split over the ranks.
 *
 * Shows: a distributed sparse matrix, halos by put_signal on a window (cg_halo.c), dot products by all-reduce, point-to-point set-up.
 * A is a Matrix Market file, symmetric positive definite; b = A * (1, 1, ..., 1), so the answer is known.
 *
 *     ncclxcc cg.c cg_halo.c cg_system.c matrix_market.c -lm -o cg
 *     ncclxrun -n 4 ./cg data/1138_bus.mtx
 *
 * Exits with 0 when the residual ||b - A x|| / ||b||, computed anew from x at the end, is at most the tolerance; else 1; 2 for wrong use.
 */
#include "cg_halo.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *path;
    double tolerance;
    uint64_t most_iterations; /* 0: ten times the order of the matrix */
    bool stats, help;
};

/* A solve's vectors have `own` elements; those that are multiplied have room for the halo behind them. */
struct solver {
    const struct system *system;
    struct halo halo;
    double *b, *x, *r, *z, *p, *q;
    double norm_b;
    uint64_t iterations, restarts;
};

static const char usage[] = "usage: cg [-t TOLERANCE] [-i ITERATIONS] [--stats] MATRIX.mtx\n"
                            "Solves A x = A * (1, ..., 1) by conjugate gradients; A is a symmetric positive definite Matrix Market file.\n"
                            "  -t TOLERANCE   largest ||b - A x|| / ||b|| of the result (default 1e-12)\n"
                            "  -i ITERATIONS  give up after so many (default: ten times the order of A)\n"
                            "  --stats        print what the ranks put into each other's windows\n"
                            "  --help         print this text\n";

static bool parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.tolerance = 1e-12};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;
        errno = 0;
        if (!strcmp(argv[i], "--help")) {
            options->help = true;
            return true;
        } else if (!strcmp(argv[i], "--stats")) {
            options->stats = true;
        } else if (!strcmp(argv[i], "-t") && value) {
            options->tolerance = strtod(value, &end);
            if (end == value || *end || !(options->tolerance > 0) || !isfinite(options->tolerance)) return false;
            i++;
        } else if (!strcmp(argv[i], "-i") && value) {
            options->most_iterations = strtoull(value, &end, 10);
            if (value[0] < '0' || value[0] > '9' || *end || errno || options->most_iterations == 0) return false;
            i++;
        } else if (argv[i][0] != '-' && !options->path) {
            options->path = argv[i];
        } else {
            return false;
        }
    }
    return options->path != NULL;
}

/* ---- Vectors ------------------------------------------------------------------------------------------------- */

static double local_dot(const struct system *system, const double *a, const double *b)
{
    double sum = 0;
    for (uint64_t i = 0; i < system->own; i++) sum += a[i] * b[i];
    return sum;
}

static double dot(const struct system *system, const double *a, const double *b)
{
    double sum = local_dot(system, a, b);
    ncclx_coll_allreduce(NCCLX_IN_PLACE, &sum, 1, NCCLX_DOUBLE, NCCLX_SUM, system->comm);
    return sum;
}

static void multiply(struct solver *solver, double *vector, double *result)
{
    halo_exchange(&solver->halo, vector);
    system_multiply(solver->system, vector, result);
}

/* r = b - A x, computed anew; its norm relative to b's. */
static double true_residual(struct solver *solver)
{
    const struct system *system = solver->system;
    multiply(solver, solver->x, solver->q);
    for (uint64_t i = 0; i < system->own; i++) solver->r[i] = solver->b[i] - solver->q[i];
    return sqrt(dot(system, solver->r, solver->r)) / solver->norm_b;
}

static double largest_error(const struct solver *solver)
{
    double error = 0;
    for (uint64_t i = 0; i < solver->system->own; i++) error = fmax(error, fabs(solver->x[i] - 1));
    ncclx_coll_allreduce(NCCLX_IN_PLACE, &error, 1, NCCLX_DOUBLE, NCCLX_MAX, solver->system->comm);
    return error;
}

/* ---- Conjugate gradients ------------------------------------------------------------------------------------- */

static void solver_create(struct solver *solver, const struct system *system)
{
    const size_t own = system->own, with_halo = own + system->halo;
    *solver = (struct solver){.system = system};
    halo_create(&solver->halo, system);
    solver->x = need(with_halo, sizeof(double));
    solver->p = need(with_halo, sizeof(double));
    solver->b = need(own, sizeof(double));
    solver->r = need(own, sizeof(double));
    solver->z = need(own, sizeof(double));
    solver->q = need(own, sizeof(double));
    for (size_t i = 0; i < own; i++) solver->p[i] = 1;
    multiply(solver, solver->p, solver->b);
    solver->norm_b = sqrt(dot(system, solver->b, solver->b));
}

static void solver_free(struct solver *solver)
{
    double *vectors[] = {solver->b, solver->x, solver->r, solver->z, solver->p, solver->q};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) free(vectors[i]);
    halo_free(&solver->halo);
}

/* z = r / diag(A); sums become r*z and r*r, in one all-reduce. */
static void precondition(struct solver *solver, double sums[2])
{
    const struct system *system = solver->system;
    for (uint64_t i = 0; i < system->own; i++) solver->z[i] = solver->r[i] * system->inverse_diagonal[i];
    sums[0] = local_dot(system, solver->r, solver->z);
    sums[1] = local_dot(system, solver->r, solver->r);
    ncclx_coll_allreduce(NCCLX_IN_PLACE, sums, 2, NCCLX_DOUBLE, NCCLX_SUM, system->comm);
}

/* Iterates from the residual in r until the recurrence's residual reaches the tolerance. False: not positive definite. */
static bool iterate(struct solver *solver, double tolerance, uint64_t most)
{
    const struct system *system = solver->system;
    double sums[2];
    precondition(solver, sums);
    memcpy(solver->p, solver->z, system->own * sizeof(double));
    while (solver->iterations < most && sqrt(sums[1]) > tolerance * solver->norm_b) {
        multiply(solver, solver->p, solver->q);
        const double curvature = dot(system, solver->p, solver->q);
        if (!(curvature > 0)) return false;
        const double alpha = sums[0] / curvature, before = sums[0];
        for (uint64_t i = 0; i < system->own; i++) {
            solver->x[i] += alpha * solver->p[i];
            solver->r[i] -= alpha * solver->q[i];
        }
        precondition(solver, sums);
        const double beta = sums[0] / before;
        for (uint64_t i = 0; i < system->own; i++) solver->p[i] = solver->z[i] + beta * solver->p[i];
        solver->iterations++;
    }
    return true;
}

/* The recurrence's residual drifts away from the true one by rounding: restart from the true one until that is small enough, or until a
 * restart no longer helps. Returns the true residual. */
static double solve(struct solver *solver, double tolerance, uint64_t most, bool *definite)
{
    double residual = true_residual(solver), before;
    *definite = true;
    do {
        before = residual;
        *definite = iterate(solver, tolerance / 2, most); /* half: what rounding adds must not cost a restart */
        residual = true_residual(solver);
        solver->restarts++;
    } while (*definite && residual > tolerance && residual < before * 0.9 && solver->iterations < most);
    return residual;
}

/* ---- Main ---------------------------------------------------------------------------------------------------- */

static void report_stats(const struct solver *solver)
{
    uint64_t sums[2] = {solver->halo.puts, solver->halo.bytes_put};
    ncclx_coll_allreduce(NCCLX_IN_PLACE, sums, 2, NCCLX_UINT64, NCCLX_SUM, solver->system->comm);
    if (solver->system->rank == 0)
        printf("puts        %llu, %llu bytes between ranks\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
}

static bool run(const struct system *system, const struct options *options)
{
    struct solver solver;
    bool definite;
    const uint64_t most = options->most_iterations ? options->most_iterations : 10 * system->order;
    solver_create(&solver, system);
    const double start = ncclx_wtime();
    const double residual = solve(&solver, options->tolerance, most, &definite);
    const double seconds = ncclx_wtime() - start, error = largest_error(&solver);
    const bool converged = residual <= options->tolerance;
    if (system->rank == 0) {
        printf("matrix      %s: %llu rows, %llu nonzeros\n", options->path, (unsigned long long)system->order,
               (unsigned long long)system->nonzeros);
        printf("ranks       %d\n", system->size);
        printf("iterations  %llu\n", (unsigned long long)solver.iterations);
        printf("time        %.6f s\n", seconds);
        printf("residual    %.3e   ||b - A x|| / ||b||, recomputed\n", residual);
        printf("error       %.3e   max |x - 1|\n", error);
        if (!converged) fflush(stdout);
        if (!definite) fprintf(stderr, "cg: not converged: the matrix is not positive definite\n");
        else if (!converged) fprintf(stderr, "cg: not converged to %.1e after %llu iterations\n", options->tolerance,
                                     (unsigned long long)solver.iterations);
    }
    if (options->stats) report_stats(&solver);
    solver_free(&solver);
    return converged;
}

int main(int argc, char **argv)
{
    struct options options;
    struct system system;
    char why[512] = "";
    int rank, status = 1;

    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    const bool good = parse(argc, argv, &options);
    if (!good || options.help) {
        if (rank == 0) fputs(usage, good ? stdout : stderr);
        status = good ? 0 : 2;
    } else if (system_load(&system, options.path, NCCLX_COMM_WORLD, why, sizeof why)) {
        status = run(&system, &options) ? 0 : 1;
        system_free(&system);
    } else if (rank == 0) {
        fprintf(stderr, "cg: %s\n", why);
    }
    ncclx_finalize();
    return status;
}
