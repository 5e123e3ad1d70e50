/* cg_system.c - see cg_system.h. */
#include "cg_system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAG_COLUMNS 1
#define TAG_VALUES 2

void *need(size_t count, size_t bytes)
{
    void *block = calloc(count ? count : 1, bytes);
    if (block) return block;
    fprintf(stderr, "cg: no memory for %zu elements of %zu bytes\n", count, bytes);
    ncclx_abort(NCCLX_COMM_WORLD, 1);
    abort();
}

static int by_place(const void *a, const void *b)
{
    const struct matrix_entry *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

/* ---- Rank 0: from entries to rows --------------------------------------------------------------------------- */

/* Entries with the same place are added up, as the format wants. */
static void to_rows(struct matrix_market *matrix, struct rows *rows)
{
    qsort(matrix->entries, matrix->count, sizeof *matrix->entries, by_place);
    rows->count = matrix->rows;
    rows->start = need(rows->count + 1, sizeof *rows->start);
    rows->column = need(matrix->count, sizeof *rows->column);
    rows->value = need(matrix->count, sizeof *rows->value);
    uint64_t used = 0, row = 0;
    for (uint64_t i = 0; i < matrix->count; i++) {
        const struct matrix_entry *entry = &matrix->entries[i];
        if (i && by_place(entry, entry - 1) == 0) {
            rows->value[used - 1] += entry->value;
            continue;
        }
        while (row < entry->row) rows->start[++row] = used;
        rows->column[used] = entry->column;
        rows->value[used++] = entry->value;
    }
    while (row < rows->count) rows->start[++row] = used;
}

static double diagonal_of(const struct rows *rows, uint64_t row, uint64_t column)
{
    for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++)
        if (rows->column[i] == column) return rows->value[i];
    return 0;
}

static bool read_matrix(const char *path, struct rows *rows, char *why, size_t why_bytes)
{
    struct matrix_market matrix;
    char detail[256];
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = matrix_market_read(file, &matrix, detail, sizeof detail);
    fclose(file);
    if (!good) {
        snprintf(why, why_bytes, "%s: %s", path, detail);
        return false;
    }
    if (matrix.rows != matrix.columns || matrix.count < matrix.rows) { /* the latter before memory for so many rows is asked for */
        snprintf(why, why_bytes, matrix.rows != matrix.columns ? "%s: the matrix is not square" : "%s: a row of the matrix is empty", path);
        matrix_market_free(&matrix);
        return false;
    }
    to_rows(&matrix, rows);
    matrix_market_free(&matrix);
    for (uint64_t i = 0; i < rows->count; i++) {
        if (diagonal_of(rows, i, i) > 0) continue;
        snprintf(why, why_bytes, "%s: the diagonal of row %llu is not positive, so the matrix is not positive definite", path,
                 (unsigned long long)i + 1);
        return false;
    }
    return true;
}

static void rows_free(struct rows *rows)
{
    free(rows->start);
    free(rows->column);
    free(rows->value);
    *rows = (struct rows){.count = 0};
}

/* ---- All ranks: split ---------------------------------------------------------------------------------------- */

/* The first row whose entries begin at or behind `entry`. */
static uint64_t row_at(const uint64_t *start, uint64_t rows, uint64_t entry)
{
    uint64_t low = 0, high = rows;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (start[middle] < entry) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void split(struct system *system, const uint64_t *start)
{
    const uint64_t size = (uint64_t)system->size, part = system->nonzeros / size, rest = system->nonzeros % size;
    system->bound = need((size_t)size + 1, sizeof *system->bound);
    for (uint64_t r = 1; r < size; r++) system->bound[r] = row_at(start, system->order, part * r + rest * r / size);
    system->bound[size] = system->order;
    system->own = system->bound[system->rank + 1] - system->bound[system->rank];
}

static void send_rows(const struct system *system, const struct rows *all)
{
    for (int r = 1; r < system->size; r++) {
        const uint64_t first = all->start[system->bound[r]], count = all->start[system->bound[r + 1]] - first;
        ncclx_send(all->column + first, count, NCCLX_UINT64, r, TAG_COLUMNS, system->comm);
        ncclx_send(all->value + first, count, NCCLX_DOUBLE, r, TAG_VALUES, system->comm);
    }
}

/* This rank's rows, columns still those of the whole matrix. */
static void take_rows(struct system *system, const struct rows *all, const uint64_t *start)
{
    struct rows *rows = &system->rows;
    const uint64_t first = system->bound[system->rank], base = start[first], count = start[first + system->own] - base;
    rows->count = system->own;
    rows->start = need(rows->count + 1, sizeof *rows->start);
    for (uint64_t i = 0; i <= rows->count; i++) rows->start[i] = start[first + i] - base;
    rows->column = need(count, sizeof *rows->column);
    rows->value = need(count, sizeof *rows->value);
    if (system->rank == 0) {
        memcpy(rows->column, all->column + base, count * sizeof *rows->column);
        memcpy(rows->value, all->value + base, count * sizeof *rows->value);
        send_rows(system, all);
    } else {
        ncclx_recv(rows->column, count, NCCLX_UINT64, 0, TAG_COLUMNS, system->comm, NCCLX_STATUS_IGNORE);
        ncclx_recv(rows->value, count, NCCLX_DOUBLE, 0, TAG_VALUES, system->comm, NCCLX_STATUS_IGNORE);
    }
}

/* ---- Each rank: local columns -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Elements of other ranks, each once, ascending: so they are grouped by their owners, too. */
static void find_halo(struct system *system)
{
    const struct rows *rows = &system->rows;
    const uint64_t first = system->bound[system->rank], count = rows->start[rows->count];
    uint64_t found = 0;
    system->halo_column = need(count, sizeof *system->halo_column);
    for (uint64_t i = 0; i < count; i++)
        if (rows->column[i] - first >= system->own) system->halo_column[found++] = rows->column[i]; /* below wraps to huge */
    qsort(system->halo_column, found, sizeof *system->halo_column, by_number);
    for (uint64_t i = 0; i < found; i++)
        if (i == 0 || system->halo_column[i] != system->halo_column[i - 1]) system->halo_column[system->halo++] = system->halo_column[i];
}

static void make_local(struct system *system)
{
    struct rows *rows = &system->rows;
    const uint64_t first = system->bound[system->rank];
    system->inverse_diagonal = need(system->own, sizeof *system->inverse_diagonal);
    for (uint64_t i = 0; i < rows->count; i++) system->inverse_diagonal[i] = 1 / diagonal_of(rows, i, first + i);
    find_halo(system);
    for (uint64_t i = 0; i < rows->start[rows->count]; i++) {
        uint64_t *column = &rows->column[i];
        if (*column - first < system->own) {
            *column -= first;
        } else {
            const uint64_t *place = bsearch(column, system->halo_column, system->halo, sizeof *place, by_number);
            *column = system->own + (uint64_t)(place - system->halo_column);
        }
    }
}

bool system_load(struct system *system, const char *path, ncclx_comm_t comm, char *why, size_t why_bytes)
{
    struct rows all = {.count = 0};
    uint64_t facts[3] = {0, 0, 0}; /* read well, order, nonzeros */

    *system = (struct system){.comm = comm};
    ncclx_comm_rank(comm, &system->rank);
    ncclx_comm_size(comm, &system->size);
    if (system->rank == 0 && read_matrix(path, &all, why, why_bytes)) {
        facts[0] = 1;
        facts[1] = all.count;
        facts[2] = all.start[all.count];
    }
    ncclx_coll_bcast(facts, 3, NCCLX_UINT64, 0, comm);
    if (!facts[0]) {
        rows_free(&all);
        return false;
    }
    system->order = facts[1];
    system->nonzeros = facts[2];

    uint64_t *start = system->rank == 0 ? all.start : need(system->order + 1, sizeof *start);
    ncclx_coll_bcast(start, system->order + 1, NCCLX_UINT64, 0, comm);
    split(system, start);
    take_rows(system, &all, start);
    if (system->rank != 0) free(start);
    rows_free(&all);
    make_local(system);
    return true;
}

void system_free(struct system *system)
{
    rows_free(&system->rows);
    free(system->bound);
    free(system->halo_column);
    free(system->inverse_diagonal);
}

void system_multiply(const struct system *system, const double *vector, double *result)
{
    const struct rows *rows = &system->rows;
    for (uint64_t row = 0; row < rows->count; row++) {
        double sum = 0;
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++) sum += rows->value[i] * vector[rows->column[i]];
        result[row] = sum;
    }
}

int system_owner(const struct system *system, uint64_t element)
{
    int low = 0, high = system->size - 1; /* the last rank whose bound is not above the element */
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (system->bound[middle] <= element) low = middle;
        else high = middle - 1;
    }
    return low;
}
