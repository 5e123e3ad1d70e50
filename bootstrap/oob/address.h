/* address.h - addresses of this host, and as the system has them. */
#ifndef BOOTSTRAP_OOB_ADDRESS_H
#define BOOTSTRAP_OOB_ADDRESS_H

#include "bootstrap/oob/oob.h"

#include <sys/socket.h>

/* The length, for bind and connect. */
socklen_t address_to_system(const struct oob_address *address, struct sockaddr_storage *storage);
/* False: neither IPv4 nor IPv6. IPv4 mapped into IPv6 becomes IPv4. */
bool address_from_system(const struct sockaddr *from, struct oob_address *address);
bool address_same_host(const struct oob_address *a, const struct oob_address *b); /* ports apart */
bool address_link_local(const struct oob_address *address);
bool address_loopback(const struct oob_address *address);

/* An address of an interface of this host that is up. */
struct address_here {
    struct oob_address address; /* port 0; the scope, if link-local */
    unsigned interface;
    char name[16];
    int rank; /* for ordering */
};

/* All of them; to be freed with base_free(AREA_BOOTSTRAP, ...). NCCLX_ERR_NO_MEM, NCCLX_ERR_LIMIT (of descriptors). */
int address_list_here(struct address_here **list, size_t *count);
/* From which address of ours packets to this one would go. False: there is no route. */
bool address_route(const struct oob_address *towards, struct oob_address *ours);

/* Networks as options.networks has them: "10.1.0.0/16,fd00::/8,eth0,192.0.2.1". Null: all are in. */
bool address_in_networks(const struct address_here *here, const char *networks);
/* NCCLX_ERR_ARG names the bad word. */
int address_check_networks(const char *networks);

/* Fewer and in order: what is worth telling others, the best first. `source`, from which the route goes, may be null.
 */
void address_order(struct address_here *list, size_t *count, const struct oob_address *source);

#endif
