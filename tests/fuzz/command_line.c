/* command_line.c - the options of ncclxrun, one word a line. */
#include "launcher/options.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "command_line";

#define MAX_WORDS 64

static void check_options(int count, char **words)
{
    struct options options;
    base_error_clear();
    if (options_parse(count, words, &options)) {
        if (!*base_error_detail()) abort(); /* a refusal says why */
        return;
    }
    if (options.action == OPTIONS_RUN && options.app_count < 1) abort();
    for (int i = 0; i < options.app_count && options.action == OPTIONS_RUN; i++)
        if (options.apps[i].argc < 1 || options.apps[i].ranks < 0 || options.apps[i].ranks > MAP_MAX_RANKS) abort();
    options_release(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char name[] = "ncclxrun", *words[MAX_WORDS + 2] = {name}, *rest, *word;
    int count = 1;
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    for (rest = text; count <= MAX_WORDS && (word = strsep(&rest, "\n")); count++) words[count] = word;
    check_options(count, words);
    free(text);
    return 0;
}
