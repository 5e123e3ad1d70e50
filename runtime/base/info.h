/* info.h - info objects: (key, value) hints in order of insertion. The caller keeps threads apart. */
#ifndef BASE_INFO_H
#define BASE_INFO_H

#include "runtime/ncclx.h"

/* Each is the body of the function of ncclx.h with the same name; errors are recorded with base_error. */
int base_info_create(ncclx_info_t *info);
int base_info_dup(ncclx_info_t info, ncclx_info_t *out);
int base_info_set(ncclx_info_t info, const char *key, const char *value);
int base_info_get(ncclx_info_t info, const char *key, char *value, size_t bytes, int *found);
int base_info_delete(ncclx_info_t info, const char *key);
int base_info_nkeys(ncclx_info_t info, size_t *count);
int base_info_nthkey(ncclx_info_t info, size_t n, char *key);
int base_info_free(ncclx_info_t *info);
/* For those who read hints: the value, or null without the key or for NCCLX_INFO_NULL. */
const char *base_info_find(ncclx_info_t info, const char *key);

#endif
