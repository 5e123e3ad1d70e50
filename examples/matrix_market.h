/* matrix_market.h - reads sparse matrices in the Matrix Market exchange format (math.nist.gov/MatrixMarket). */
#ifndef MATRIX_MARKET_H
#define MATRIX_MARKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct matrix_entry {
    uint64_t row, column; /* from 0 */
    double value;
};

struct matrix_market {
    uint64_t rows, columns;
    uint64_t count; /* of entries; a symmetric file's mirrored ones included */
    struct matrix_entry *entries;
};

/* Takes: coordinate; real, integer or pattern (every entry is 1); general or symmetric (lower triangle stored). On failure false,
 * and `why` says what is wrong in which line. Memory grows with what the file holds, not with what its header claims. */
bool matrix_market_read(FILE *file, struct matrix_market *matrix, char *why, size_t why_bytes);
void matrix_market_free(struct matrix_market *matrix);

#endif
