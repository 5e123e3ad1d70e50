/* allowed.h - NCCLX_TRANSPORTS: which transports may be used, and with whom. Both ranks of a pair come to the same. */
#ifndef PML_ALLOWED_H
#define PML_ALLOWED_H

#include "pml/internal.h"

#define ALL_TRANSPORTS 3
extern const struct transport *const all_transports[ALL_TRANSPORTS]; /* the best first */

/* ERR_ARG: there is none of this name. */
int transport_named(const char *name, const struct transport **transport);
/* ERR_CONFIG: the setting names a transport that does not exist. */
int allowed_check(const struct ncclx_rt *rt);
bool allowed_with(const struct ncclx_rt *rt, const struct transport *transport, int peer);
/* With some peers; with all of them. */
bool allowed_with_some(const struct ncclx_rt *rt, const struct transport *transport);
bool allowed_with_all(const struct ncclx_rt *rt, const struct transport *transport);

#endif
