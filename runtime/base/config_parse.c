/* config_parse.c - text to value, for each type of the configuration table. */
#include "runtime/base/config.h"

#include "runtime/base/error.h"
#include "runtime/ncclx.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NS_PER_S INT64_C(1000000000)
#define SECOND_DIGITS 9 /* of a fraction: nanoseconds */

/* Digits from *at on, which moves behind them. False without a digit or when the number does not fit. */
static bool parse_digits(const char **at, int64_t *number)
{
    const char *start = *at;
    *number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, **at - '0', number)) return false;
    }
    return *at > start;
}

static bool parse_int(const char *text, int64_t *number)
{
    bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    if (!parse_digits(&text, number) || *text) return false;
    if (negative) *number = -*number;
    return true;
}

static bool parse_size(const char *text, int64_t *number)
{
    if (!parse_digits(&text, number)) return false;
    int shift = 0;
    if (*text == 'K' || *text == 'k') shift = 10;
    else if (*text == 'M' || *text == 'm') shift = 20;
    else if (*text == 'G' || *text == 'g') shift = 30;
    if (shift) text++;
    return !*text && !__builtin_mul_overflow(*number, INT64_C(1) << shift, number);
}

/* Digits past the ninth are read and dropped. */
static bool parse_seconds(const char *text, int64_t *number)
{
    int64_t fraction = 0;
    if (!parse_digits(&text, number) || __builtin_mul_overflow(*number, NS_PER_S, number)) return false;
    if (*text == '.') {
        int digits = 0;
        for (text++; *text >= '0' && *text <= '9'; text++, digits++)
            if (digits < SECOND_DIGITS) fraction = fraction * 10 + (*text - '0');
        if (!digits) return false;
        for (; digits < SECOND_DIGITS; digits++) fraction *= 10;
    }
    return !*text && !__builtin_add_overflow(*number, fraction, number);
}

static bool parse_bool(const char *text, int64_t *number)
{
    static const char *const word[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        if (strcasecmp(text, word[i])) continue;
        *number = (int64_t)(i % 2);
        return true;
    }
    return false;
}

static bool parse_enum(const char *choices, const char *text, int64_t *number)
{
    size_t length = strlen(text);
    for (int64_t index = 0;; index++) {
        size_t width = strcspn(choices, "|");
        if (width == length && !strncasecmp(choices, text, width)) {
            *number = index;
            return true;
        }
        if (!choices[width]) return false;
        choices += width + 1;
    }
}

/* "one of fatal, return". */
static void describe_choices(const char *choices, char *text, size_t bytes)
{
    size_t length = (size_t)snprintf(text, bytes, "one of ");
    for (; *choices && length + 3 < bytes; choices++) {
        text[length++] = *choices == '|' ? ',' : *choices;
        if (*choices == '|') text[length++] = ' ';
    }
    text[length] = 0;
}

void base_config_describe_valid(const struct base_config_entry *entry, char *text, size_t bytes)
{
    switch (entry->type) {
    case CONFIG_BOOL: snprintf(text, bytes, "1, yes, on, true, 0, no, off or false"); break;
    case CONFIG_INT: snprintf(text, bytes, "a whole number from %.0f to %.0f", entry->low, entry->high); break;
    case CONFIG_SIZE:
        snprintf(text, bytes, "a number of bytes from %.0f to %.0f, with K, M or G for 1024, 1024^2, 1024^3", entry->low, entry->high);
        break;
    case CONFIG_SECONDS: snprintf(text, bytes, "seconds from %.9g to %.9g, such as 2 or 0.5", entry->low, entry->high); break;
    case CONFIG_ENUM: describe_choices(entry->choices, text, bytes); break;
    case CONFIG_STRING: snprintf(text, bytes, "any text"); break;
    }
}

static bool parse(const struct base_config_entry *entry, const char *text, int64_t *number)
{
    switch (entry->type) {
    case CONFIG_BOOL: return parse_bool(text, number);
    case CONFIG_INT: return parse_int(text, number) && (double)*number >= entry->low && (double)*number <= entry->high;
    case CONFIG_SIZE: return parse_size(text, number) && (double)*number >= entry->low && (double)*number <= entry->high;
    case CONFIG_SECONDS:
        return parse_seconds(text, number) && (double)*number >= entry->low * 1e9 && (double)*number <= entry->high * 1e9;
    case CONFIG_ENUM: return parse_enum(entry->choices, text, number);
    case CONFIG_STRING: *number = 0; return true;
    }
    return false;
}

int base_config_parse(const struct base_config_entry *entry, const char *where, const char *text, int64_t *number)
{
    char valid[512];
    if (parse(entry, text, number)) return NCCLX_SUCCESS;
    base_config_describe_valid(entry, valid, sizeof valid);
    return base_error(NCCLX_ERR_CONFIG, "%s%s is \"%.80s\"; valid is %s", where, entry->name, text, valid);
}
