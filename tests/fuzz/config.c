/* config.c - ncclx.conf and the values of variables, from anyone who can write the user's files or environment. */
#include "runtime/base/base.h"
#include "runtime/base/config.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "config";

static void check(int code)
{
    if (code != NCCLX_SUCCESS && code != NCCLX_ERR_CONFIG && code != NCCLX_ERR_NO_MEM) abort();
    if (code && !*base_error_detail()) abort(); /* an error says what is wrong */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct base_config config;
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;

    base_log_configure("none"); /* no warnings about names, thousands of times */
    if (base_config_load(&config, NULL)) abort();
    check(base_config_parse_file(&config, "fuzz", (const char *)data, bytes, CONFIG_FROM_USER_FILE));
    for (int id = 0; id < CONFIG_COUNT; id++) {
        const struct base_config_entry *entry = &base_config_table()[id];
        const struct base_config_value *value = &config.value[id];
        int64_t number = 0;
        if (!value->text) abort();
        if (entry->type != CONFIG_STRING && base_config_parse(entry, "", value->text, &number)) abort(); /* what was taken is valid */
        check(base_config_parse(entry, "", text, &number));
    }
    base_config_nearest(text);
    base_config_release(&config);
    check(base_log_configure(text));
    free(text);
    return 0;
}
