/* matrix.c - Matrix Market files, which the cg example takes from anywhere. */
#include "examples/matrix_market.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

const char fuzz_name[] = "matrix";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct matrix_market matrix;
    char why[200] = "";
    FILE *file = bytes ? fmemopen((void *)(uintptr_t)data, bytes, "r") : NULL;
    if (!file) return 0;
    if (matrix_market_read(file, &matrix, why, sizeof why)) {
        for (uint64_t i = 0; i < matrix.count; i++)
            if (matrix.entries[i].row >= matrix.rows || matrix.entries[i].column >= matrix.columns) abort();
        matrix_market_free(&matrix);
    } else if (!*why) {
        abort(); /* a refusal says why */
    }
    fclose(file);
    return 0;
}
