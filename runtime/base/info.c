/* info.c - info objects, as a list: they hold a handful of keys. */
#include "runtime/base/info.h"

#include "runtime/base/area.h"
#include "runtime/base/error.h"

#include <stdio.h>
#include <string.h>

struct entry {
    struct entry *next;
    char *value;
    char key[]; /* with its zero */
};

struct ncclx_info {
    struct entry *first;
    size_t count;
};

static int check_info(ncclx_info_t info)
{
    return info ? NCCLX_SUCCESS : base_error(NCCLX_ERR_INFO, "the info object is NCCLX_INFO_NULL");
}

static int check_key(const char *key)
{
    if (!key || !*key) return base_error(NCCLX_ERR_INFO, "the key is empty");
    if (strnlen(key, NCCLX_MAX_INFO_KEY + 1) > NCCLX_MAX_INFO_KEY)
        return base_error(NCCLX_ERR_INFO, "the key is longer than NCCLX_MAX_INFO_KEY, %d bytes", NCCLX_MAX_INFO_KEY);
    return NCCLX_SUCCESS;
}

static int check_value(const char *value)
{
    if (!value) return base_error(NCCLX_ERR_INFO, "the value is a null pointer");
    if (strnlen(value, NCCLX_MAX_INFO_VALUE + 1) > NCCLX_MAX_INFO_VALUE)
        return base_error(NCCLX_ERR_INFO, "the value is longer than NCCLX_MAX_INFO_VALUE, %d bytes", NCCLX_MAX_INFO_VALUE);
    return NCCLX_SUCCESS;
}

static int no_memory(void)
{
    return base_error(NCCLX_ERR_NO_MEM, "no memory for an info object");
}

/* Where the pointer to the key's entry is, or to the end of the list. */
static struct entry **locate(ncclx_info_t info, const char *key)
{
    struct entry **at = &info->first;
    while (*at && strcmp((*at)->key, key)) at = &(*at)->next;
    return at;
}

const char *base_info_find(ncclx_info_t info, const char *key)
{
    const struct entry *found = info ? *locate(info, key) : NULL;
    return found ? found->value : NULL;
}

int base_info_create(ncclx_info_t *info)
{
    if (!info) return base_error(NCCLX_ERR_ARG, "nowhere to put the info object: a null pointer");
    *info = base_calloc(AREA_BASE, 1, sizeof **info);
    return *info ? NCCLX_SUCCESS : no_memory();
}

static void release_entry(struct entry *entry)
{
    base_free(AREA_BASE, entry->value);
    base_free(AREA_BASE, entry);
}

int base_info_set(ncclx_info_t info, const char *key, const char *value)
{
    int error = check_info(info);
    if (!error) error = check_key(key);
    if (!error) error = check_value(value);
    if (error) return error;
    char *copy = base_strdup(AREA_BASE, value);
    if (!copy) return no_memory();
    struct entry **at = locate(info, key);
    if (*at) {
        base_free(AREA_BASE, (*at)->value);
        (*at)->value = copy;
        return NCCLX_SUCCESS;
    }
    size_t bytes = strlen(key) + 1;
    struct entry *entry = base_alloc(AREA_BASE, sizeof *entry + bytes);
    if (!entry) {
        base_free(AREA_BASE, copy);
        return no_memory();
    }
    entry->next = NULL;
    entry->value = copy;
    memcpy(entry->key, key, bytes);
    *at = entry;
    info->count++;
    return NCCLX_SUCCESS;
}

int base_info_dup(ncclx_info_t info, ncclx_info_t *out)
{
    int error = check_info(info);
    if (!error) error = base_info_create(out);
    if (error) return error;
    for (const struct entry *entry = info->first; entry && !error; entry = entry->next) error = base_info_set(*out, entry->key, entry->value);
    if (error) base_info_free(out);
    return error;
}

int base_info_get(ncclx_info_t info, const char *key, char *value, size_t bytes, int *found)
{
    int error = check_info(info);
    if (!error) error = check_key(key);
    if (error) return error;
    if (!found) return base_error(NCCLX_ERR_ARG, "nowhere to put the answer: found is a null pointer");
    if (bytes && !value) return base_error(NCCLX_ERR_BUFFER, "value is a null pointer, bytes is %zu", bytes);
    const char *text = base_info_find(info, key);
    *found = text != NULL;
    if (text && bytes) snprintf(value, bytes, "%s", text);
    return NCCLX_SUCCESS;
}

int base_info_delete(ncclx_info_t info, const char *key)
{
    int error = check_info(info);
    if (!error) error = check_key(key);
    if (error) return error;
    struct entry **at = locate(info, key);
    struct entry *entry = *at;
    if (!entry) return base_error(NCCLX_ERR_INFO, "the info object has no key \"%s\"", key);
    *at = entry->next;
    release_entry(entry);
    info->count--;
    return NCCLX_SUCCESS;
}

int base_info_nkeys(ncclx_info_t info, size_t *count)
{
    int error = check_info(info);
    if (error) return error;
    if (!count) return base_error(NCCLX_ERR_ARG, "nowhere to put the number of keys: a null pointer");
    *count = info->count;
    return NCCLX_SUCCESS;
}

int base_info_nthkey(ncclx_info_t info, size_t n, char *key)
{
    int error = check_info(info);
    if (error) return error;
    if (!key) return base_error(NCCLX_ERR_BUFFER, "nowhere to put the key: a null pointer");
    if (n >= info->count) return base_error(NCCLX_ERR_INFO, "key %zu of an info object with %zu keys", n, info->count);
    const struct entry *entry = info->first;
    while (n--) entry = entry->next;
    memcpy(key, entry->key, strlen(entry->key) + 1);
    return NCCLX_SUCCESS;
}

int base_info_free(ncclx_info_t *info)
{
    int error = check_info(info ? *info : NULL);
    if (error) return error;
    for (struct entry *entry = (*info)->first, *next; entry; entry = next) {
        next = entry->next;
        release_entry(entry);
    }
    base_free(AREA_BASE, *info);
    *info = NULL;
    return NCCLX_SUCCESS;
}
