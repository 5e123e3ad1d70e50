/* cpulist.c - lists of cpus as text. hwloc's own parser takes far more than such lists. */
#include "topo/cpulist.h"

#define CPU_MAX 65535u /* Linux stops at 8192 */

/* Digits only: no sign, no blank. */
static bool number(const char **text, unsigned *value)
{
    const char *c = *text;
    if (*c < '0' || *c > '9') return false;
    for (*value = 0; *c >= '0' && *c <= '9'; c++) {
        *value = *value * 10 + (unsigned)(*c - '0');
        if (*value > CPU_MAX) return false;
    }
    *text = c;
    return true;
}

bool topo_cpulist_parse(const char *text, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    for (;; text++) {
        unsigned first, last;
        if (!number(&text, &first)) return false;
        last = first;
        if (*text == '-') {
            text++;
            if (!number(&text, &last) || last < first) return false;
        }
        if (hwloc_bitmap_set_range(set, first, (int)last)) return false;
        if (!*text) return true;
        if (*text != ',') return false;
    }
}
