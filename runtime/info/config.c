/* config.c - ncclx-info --config. */
#include "runtime/info/info.h"

#include <stdio.h>

void info_config(const struct base_config *config)
{
    for (int id = 0; id < CONFIG_COUNT; id++) {
        char valid[512];
        const struct base_config_entry *entry = &base_config_table()[id];
        const struct base_config_value *value = &config->value[id];
        base_config_describe_valid(entry, valid, sizeof valid);
        printf("%s = %s  (%s", entry->name, value->text, base_config_source_name(value->source));
        if (value->source != CONFIG_FROM_DEFAULT) printf("; default %s", *entry->initial ? entry->initial : "empty");
        printf(")\n    %s\n    valid: %s\n", entry->doc, valid);
    }
}

void info_config_table(void)
{
    for (int id = 0; id < CONFIG_COUNT; id++) {
        const struct base_config_entry *entry = &base_config_table()[id];
        printf("%s %s\n", entry->name, *entry->initial ? entry->initial : "empty");
    }
}
