/* limits.c - how much data a connection keeps in flight, by the distance of its peer. */
#include "pml/dqplb/private.h"

#include <errno.h>
#include <stdlib.h>

static bool read_number(const char **text, unsigned long most, unsigned long *number)
{
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    *number = strtoul(*text, &end, 10);
    *text = end;
    return !errno && *number >= 1 && *number <= most;
}

int dqplb_limits_parse(const char *text, struct dqplb_limits *limits)
{
    unsigned long lanes, outstanding, segment, unit = 1;
    const char *at = text;
    bool read = read_number(&at, DQPLB_MAX_LANES, &lanes) && *at++ == ':' &&
                read_number(&at, DQPLB_MAX_OUTSTANDING, &outstanding) && *at++ == ':' &&
                read_number(&at, UINT32_MAX, &segment);
    if (read && (*at == 'K' || *at == 'M')) unit = *at++ == 'K' ? 1UL << 10 : 1UL << 20;
    if (!read || *at || segment > (1UL << 30) / unit)
        return base_error(
            NCCLX_ERR_ARG,
            "'%.100s' is not lanes:outstanding:segment, with at most %d lanes of %d segments of 1 byte to "
            "1 GiB, as 8:16:512K",
            text, DQPLB_MAX_LANES, DQPLB_MAX_OUTSTANDING);
    *limits = (struct dqplb_limits){
        .lanes = (unsigned)lanes, .outstanding = (unsigned)outstanding, .segment = segment * unit};
    return NCCLX_SUCCESS;
}
