/* environment.h - the variables a rank gets: the user's, byte for byte, less those of an outer process manager, plus
 * what was set with -x. Pure. */
#ifndef LAUNCHER_ENVIRONMENT_H
#define LAUNCHER_ENVIRONMENT_H

#include <stdbool.h>

/* A variable of an outer PMIx, PMI or job step, which would mislead ranks of this job. */
bool environment_is_foreign(const char *entry);
/* A new array, ending with null, of pointers into its arguments; later settings win, and "=NAME" leaves it out. Null
 * when memory is short; to be freed with base_free(AREA_LAUNCHER, ...). */
char **environment_compose(char *const *inherited, const char *const *settings, int setting_count);
/* Sets NAME=value in a list that ends with null and has room for one more entry. */
void environment_set(char **list, const char *setting);
/* The variables that ncclxd itself runs with: nothing of the user's that changes which libraries it loads or how its
 * PMIx server works. */
bool environment_for_daemon(const char *entry);

#endif
