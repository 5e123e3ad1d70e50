/* words.c - see words.h. */
#include "launcher/words.h"

#include "runtime/base/base.h"

#include <string.h>

/* Copies one word to `to`, without its quotes; returns where it ended, or null when a quote does not end. */
static const char *copy_word(const char *at, char **to)
{
    char quote = 0;
    for (; *at && (quote || !strchr(" \t\n", *at)); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"') {
            quote = quote ? 0 : *at;
        } else if (*at == '\\' && quote != '\'' && at[1] && (!quote || strchr("\"\\$`", at[1]))) {
            *(*to)++ = *++at;
        } else {
            *(*to)++ = *at;
        }
    }
    *(*to)++ = 0;
    return quote ? NULL : at;
}

int words_split(const char *text, char ***out)
{
    size_t most = strlen(text) / 2 + 2, count = 0;
    /* One block: the array, then the words, of which each takes no more than it does in the text. */
    char **words = base_calloc(AREA_LAUNCHER, 1, most * sizeof *words + strlen(text) + 1);
    *out = words;
    if (!words) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a command");
    char *to = (char *)(words + most);
    for (const char *at = text; at;) {
        at += strspn(at, " \t\n");
        if (!*at) break;
        words[count++] = to;
        at = copy_word(at, &to);
        if (!at) count = 0;
    }
    if (count) return NCCLX_SUCCESS;
    base_free(AREA_LAUNCHER, words);
    *out = NULL;
    return base_error(NCCLX_ERR_ARG, "'%.100s' is not a command: it is empty, or a quote in it does not end", text);
}

char *words_quote(const char *word)
{
    char *quoted = base_alloc(AREA_LAUNCHER, 4 * strlen(word) + 3), *to = quoted;
    if (!quoted) return NULL;
    *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') to = (char *)memcpy(to, "'\\'", 3) + 3; /* ends the quotes, and begins them again */
        *to++ = *word;
    }
    *to++ = '\'';
    *to = 0;
    return quoted;
}
