/* choice.h - NCCLX_TRANSPORTS: which transports may be used, and with whom. Both ranks of a pair come to the same. */
#ifndef PML_CHOICE_H
#define PML_CHOICE_H

#include "pml/internal.h"

#define CHOICE_TRANSPORTS 3
extern const struct transport *const choice_transports[CHOICE_TRANSPORTS]; /* the best first */

/* ERR_ARG: there is none of this name. */
int choice_named(const char *name, const struct transport **transport);
/* ERR_CONFIG: the setting names a transport that does not exist. */
int choice_check(const struct ncclx_rt *rt);
bool choice_allows_peer(const struct ncclx_rt *rt, const struct transport *transport, int peer);
/* With some peers; with all of them. */
bool choice_allows(const struct ncclx_rt *rt, const struct transport *transport);
bool choice_allows_all(const struct ncclx_rt *rt, const struct transport *transport);

#endif
