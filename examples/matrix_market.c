/* matrix_market.c - see matrix_market.h. */
#include "matrix_market.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_BYTES 1024 /* the format's longest line, its end not counted */

struct reader {
    FILE *file;
    uint64_t line; /* number of the line in `text` */
    char text[LINE_BYTES + 3];
    bool pattern, symmetric;
    uint64_t declared; /* entries that the size line promises */
    uint64_t room;     /* entries that fit into what is allocated */
    struct matrix_market *matrix;
    char *why;
    size_t why_bytes;
};

static bool refuse(const struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(const struct reader *reader, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(reader->why, reader->why_bytes, "line %llu: ", (unsigned long long)reader->line);
    if (used < 0 || (size_t)used >= reader->why_bytes) return false;
    va_start(arguments, format);
    vsnprintf(reader->why + used, reader->why_bytes - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Lines --------------------------------------------------------------------------------------------------- */

enum line_result { LINE_READ, LINE_END, LINE_BAD };

/* The next line, without white space at its end (so CRLF is as good as LF). */
static enum line_result next_line(struct reader *reader)
{
    reader->line++;
    if (!fgets(reader->text, sizeof reader->text, reader->file)) {
        if (!ferror(reader->file)) return LINE_END;
        refuse(reader, "cannot be read: %s", strerror(errno));
        return LINE_BAD;
    }
    size_t length = strlen(reader->text);
    bool whole = length && (reader->text[length - 1] == '\n' || feof(reader->file));
    while (length && isspace((unsigned char)reader->text[length - 1])) reader->text[--length] = 0;
    if (whole) return LINE_READ;
    refuse(reader, "longer than %d characters, or with a zero byte", LINE_BYTES);
    return LINE_BAD;
}

/* The next line that is neither blank nor a comment. */
static enum line_result next_content(struct reader *reader)
{
    for (;;) {
        enum line_result result = next_line(reader);
        if (result != LINE_READ) return result;
        const char *text = reader->text + strspn(reader->text, " \t");
        if (*text && *text != '%') return LINE_READ;
    }
}

/* ---- Numbers ------------------------------------------------------------------------------------------------- */

/* Digits only: no sign, no overflow. Moves *text behind them. */
static bool take_size(const char **text, uint64_t *number)
{
    *text += strspn(*text, " \t");
    const char *digit = *text;
    for (*number = 0; isdigit((unsigned char)*digit); digit++)
        if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
            __builtin_add_overflow(*number, (uint64_t)(*digit - '0'), number))
            return false;
    bool some = digit != *text && (*digit == 0 || *digit == ' ' || *digit == '\t');
    *text = digit;
    return some;
}

static bool take_value(const char **text, double *number)
{
    char *end;
    *number = strtod(*text, &end);
    bool some = end != *text;
    *text = end;
    return some && isfinite(*number);
}

static bool at_end(const char *text)
{
    return text[strspn(text, " \t")] == 0;
}

/* ---- Parts of the file --------------------------------------------------------------------------------------- */

static bool read_banner(struct reader *reader)
{
    char word[5][32], rest;
    enum line_result result = next_line(reader);
    if (result == LINE_BAD) return false;
    if (result == LINE_END) return refuse(reader, "the file is empty");
    int words = sscanf(reader->text, "%31s %31s %31s %31s %31s %c", word[0], word[1], word[2], word[3], word[4], &rest);
    if (words < 1 || strcasecmp(word[0], "%%MatrixMarket"))
        return refuse(reader, "not a Matrix Market file: it does not start with %%%%MatrixMarket");
    if (words != 5) return refuse(reader, "the first line needs five words: %%%%MatrixMarket matrix coordinate real general");
    if (strcasecmp(word[1], "matrix")) return refuse(reader, "'%s' is not 'matrix'", word[1]);
    if (strcasecmp(word[2], "coordinate")) return refuse(reader, "format '%s': only 'coordinate' is read", word[2]);
    reader->pattern = !strcasecmp(word[3], "pattern");
    if (!reader->pattern && strcasecmp(word[3], "real") && strcasecmp(word[3], "integer"))
        return refuse(reader, "entries '%s': only real, integer and pattern are read", word[3]);
    reader->symmetric = !strcasecmp(word[4], "symmetric");
    if (!reader->symmetric && strcasecmp(word[4], "general"))
        return refuse(reader, "symmetry '%s': only general and symmetric are read", word[4]);
    return true;
}

static bool read_sizes(struct reader *reader)
{
    struct matrix_market *matrix = reader->matrix;
    enum line_result result = next_content(reader);
    if (result == LINE_BAD) return false;
    if (result == LINE_END) return refuse(reader, "the file ends before its size line");
    const char *text = reader->text;
    if (!take_size(&text, &matrix->rows) || !take_size(&text, &matrix->columns) || !take_size(&text, &reader->declared) || !at_end(text))
        return refuse(reader, "the size line needs three numbers: rows columns entries");
    if (matrix->rows == 0 || matrix->columns == 0) return refuse(reader, "the matrix has no rows or no columns");
    if (matrix->rows > INT64_MAX || matrix->columns > INT64_MAX) return refuse(reader, "the matrix is too large");
    if (reader->symmetric && matrix->rows != matrix->columns) return refuse(reader, "a symmetric matrix has to be square");
    return true;
}

static bool add_entry(struct reader *reader, uint64_t row, uint64_t column, double value)
{
    struct matrix_market *matrix = reader->matrix;
    if (matrix->count == reader->room) {
        uint64_t room = reader->room ? reader->room * 2 : 1024, bytes;
        struct matrix_entry *grown = NULL;
        if (!__builtin_mul_overflow(room, (uint64_t)sizeof *grown, &bytes) && bytes <= SIZE_MAX)
            grown = realloc(matrix->entries, (size_t)bytes);
        if (!grown) return refuse(reader, "no memory for more than %llu entries", (unsigned long long)matrix->count);
        matrix->entries = grown;
        reader->room = room;
    }
    matrix->entries[matrix->count++] = (struct matrix_entry){.row = row, .column = column, .value = value};
    return true;
}

static bool read_entry(struct reader *reader)
{
    const struct matrix_market *matrix = reader->matrix;
    const char *text = reader->text;
    uint64_t row, column;
    double value = 1;
    if (!take_size(&text, &row) || !take_size(&text, &column)) return refuse(reader, "an entry starts with its row and column");
    if (!reader->pattern && !take_value(&text, &value)) return refuse(reader, "the entry has no value, or one that is not a finite number");
    if (!at_end(text)) return refuse(reader, "'%.40s' is left over behind the entry", text);
    if (row < 1 || row > matrix->rows || column < 1 || column > matrix->columns)
        return refuse(reader, "entry (%llu, %llu) is outside the matrix of %llu x %llu", (unsigned long long)row,
                      (unsigned long long)column, (unsigned long long)matrix->rows, (unsigned long long)matrix->columns);
    if (reader->symmetric && column > row)
        return refuse(reader, "entry (%llu, %llu) is above the diagonal; a symmetric file stores the lower triangle",
                      (unsigned long long)row, (unsigned long long)column);
    if (!add_entry(reader, row - 1, column - 1, value)) return false;
    return !reader->symmetric || row == column || add_entry(reader, column - 1, row - 1, value);
}

static bool read_entries(struct reader *reader)
{
    for (uint64_t i = 0; i < reader->declared; i++) {
        enum line_result result = next_content(reader);
        if (result == LINE_BAD) return false;
        if (result == LINE_END)
            return refuse(reader, "the file ends after %llu of %llu entries", (unsigned long long)i, (unsigned long long)reader->declared);
        if (!read_entry(reader)) return false;
    }
    enum line_result result = next_content(reader);
    if (result == LINE_READ) return refuse(reader, "more than the %llu entries of the size line", (unsigned long long)reader->declared);
    return result == LINE_END;
}

bool matrix_market_read(FILE *file, struct matrix_market *matrix, char *why, size_t why_bytes)
{
    struct reader reader = {.file = file, .matrix = matrix, .why = why, .why_bytes = why_bytes};
    *matrix = (struct matrix_market){.entries = NULL};
    if (why_bytes) why[0] = 0;
    if (read_banner(&reader) && read_sizes(&reader) && read_entries(&reader)) return true;
    matrix_market_free(matrix);
    return false;
}

void matrix_market_free(struct matrix_market *matrix)
{
    free(matrix->entries);
    *matrix = (struct matrix_market){.entries = NULL};
}
