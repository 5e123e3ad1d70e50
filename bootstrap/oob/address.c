/* address.c - addresses as text, as the system has them, and in order. */
#include "config.h"

#include "bootstrap/oob/address.h"

#include "runtime/base/base.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

socklen_t address_to_system(const struct oob_address *address, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof *storage);
    if (address->family == 4) {
        struct sockaddr_in *four = (struct sockaddr_in *)storage;
        four->sin_family = AF_INET;
        four->sin_port = htons(address->port);
        memcpy(&four->sin_addr, address->bytes, sizeof four->sin_addr);
        return sizeof *four;
    }
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)storage;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(address->port);
    six->sin6_scope_id = address->scope;
    memcpy(&six->sin6_addr, address->bytes, sizeof six->sin6_addr);
    return sizeof *six;
}

bool address_from_system(const struct sockaddr *from, struct oob_address *address)
{
    memset(address, 0, sizeof *address);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)from;
        address->family = 4;
        address->port = ntohs(four->sin_port);
        memcpy(address->bytes, &four->sin_addr, sizeof four->sin_addr);
        return true;
    }
    if (from->sa_family != AF_INET6) return false;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    address->port = ntohs(six->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        address->family = 4;
        memcpy(address->bytes, six->sin6_addr.s6_addr + 12, 4);
        return true;
    }
    address->family = 6;
    memcpy(address->bytes, &six->sin6_addr, sizeof six->sin6_addr);
    if (address_link_local(address)) address->scope = six->sin6_scope_id;
    return true;
}

bool address_same_host(const struct oob_address *a, const struct oob_address *b)
{
    return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof a->bytes) && a->scope == b->scope;
}

bool address_link_local(const struct oob_address *address)
{
    if (address->family == 4) return address->bytes[0] == 169 && address->bytes[1] == 254;
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

bool address_loopback(const struct oob_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127 : !memcmp(address->bytes, one, sizeof one);
}

/* ---- Text ---- */

const char *oob_address_text(const struct oob_address *address, char text[OOB_ADDRESS_TEXT])
{
    char number[INET6_ADDRSTRLEN], scope[16] = "";
    inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, number, sizeof number);
    if (address->scope) snprintf(scope, sizeof scope, "%%%u", address->scope);
    if (address->family == 4)
        snprintf(text, OOB_ADDRESS_TEXT, "%s:%u", number, address->port);
    else
        snprintf(text, OOB_ADDRESS_TEXT, "[%s%s]:%u", number, scope, address->port);
    return text;
}

void oob_addresses_format(const struct oob_addresses *addresses, char *text, size_t room)
{
    size_t used = 0;
    if (room) *text = 0;
    for (size_t i = 0; i < addresses->count; i++) {
        struct oob_address address = addresses->list[i];
        char word[OOB_ADDRESS_TEXT];
        address.scope = 0;
        size_t length = strlen(oob_address_text(&address, word));
        if (used + length + (i > 0) >= room) return;
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? "," : "", word);
    }
}

/* A port of 1 to 65535, and nothing else. */
static bool parse_port(const char *text, uint16_t *port)
{
    unsigned value = 0;
    if (!isdigit((unsigned char)*text)) return false;
    for (; isdigit((unsigned char)*text) && value <= 65535; text++) value = value * 10 + (unsigned)(*text - '0');
    *port = (uint16_t)value;
    return !*text && value >= 1 && value <= 65535;
}

/* The word is changed. */
static bool parse_address(char *word, struct oob_address *address)
{
    char *colon = strrchr(word, ':');
    memset(address, 0, sizeof *address);
    if (!colon || !parse_port(colon + 1, &address->port)) return false;
    *colon = 0;
    if (*word != '[') {
        address->family = 4;
        return inet_pton(AF_INET, word, address->bytes) == 1;
    }
    if (colon[-1] != ']') return false;
    colon[-1] = 0;
    address->family = 6;
    return inet_pton(AF_INET6, word + 1, address->bytes) == 1;
}

void oob_addresses_prove(struct oob_addresses *addresses, const struct oob_address *seen)
{
    for (size_t i = 0; i < addresses->count; i++) {
        if (!address_same_host(&addresses->list[i], seen)) continue;
        struct oob_address first = addresses->list[i];
        memmove(addresses->list + 1, addresses->list, i * sizeof *addresses->list);
        addresses->list[0] = first;
        addresses->proven = true;
        return;
    }
}

int oob_addresses_parse(const char *text, struct oob_addresses *addresses)
{
    char word[OOB_ADDRESS_TEXT];
    addresses->count = 0;
    addresses->proven = false;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        bool good = length < sizeof word && addresses->count < OOB_MAX_ADDRESSES;
        if (good) {
            memcpy(word, at, length);
            word[length] = 0;
            good = parse_address(word, &addresses->list[addresses->count]);
        }
        if (!good)
            return base_error(NCCLX_ERR_ARG, "\"%.*s\" is no address with a port in a list of up to %d", (int)length,
                              at, OOB_MAX_ADDRESSES);
        addresses->count++;
        at += length;
        if (!*at) return NCCLX_SUCCESS;
    }
}

int oob_ports_parse(const char *text, uint16_t *low, uint16_t *high)
{
    char first[8];
    size_t length = strcspn(text, "-");
    snprintf(first, sizeof first, "%.*s", (int)(length < 7 ? length : 7), text);
    if (!text[length] || !parse_port(first, low) || !parse_port(text + length + 1, high) || *low > *high)
        return base_error(NCCLX_ERR_ARG, "\"%.40s\" is no range of ports, LOW-HIGH, from 1 to 65535", text);
    return NCCLX_SUCCESS;
}

int oob_resolve(const char *host, uint16_t port, struct oob_addresses *addresses)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, &hints, &found);
    addresses->count = 0;
    if (code) return base_error(NCCLX_ERR_UNREACHABLE, "the address of host %s: %s", host, gai_strerror(code));
    for (struct addrinfo *info = found; info && addresses->count < OOB_MAX_ADDRESSES; info = info->ai_next) {
        struct oob_address *address = &addresses->list[addresses->count];
        if (!address_from_system(info->ai_addr, address)) continue;
        address->port = port;
        addresses->count++;
    }
    freeaddrinfo(found);
    return addresses->count ? NCCLX_SUCCESS
                            : base_error(NCCLX_ERR_UNREACHABLE, "host %s has no address of IPv4 or IPv6", host);
}

/* ---- Order ---- */

static int rank_of(const struct address_here *here, const struct oob_address *source, unsigned source_interface)
{
    if (source && address_same_host(&here->address, source)) return 0;
    if (address_loopback(&here->address)) return 6;
    if (address_link_local(&here->address)) return here->address.family == 6 ? 4 : 5;
    if (source_interface && here->interface == source_interface) return 1;
    return here->address.family == 4 ? 2 : 3;
}

static int by_rank(const void *a, const void *b)
{
    const struct address_here *one = a, *other = b;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    if (one->address.family != other->address.family) return one->address.family < other->address.family ? -1 : 1;
    if (one->interface != other->interface) return one->interface < other->interface ? -1 : 1;
    return memcmp(one->address.bytes, other->address.bytes, sizeof one->address.bytes);
}

static void drop_repeated(struct address_here *list, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        bool again = false;
        for (size_t j = 0; j < kept && !again; j++) again = address_same_host(&list[j].address, &list[i].address);
        if (!again) list[kept++] = list[i];
    }
    *count = kept;
}

void address_order(struct address_here *list, size_t *count, const struct oob_address *source)
{
    unsigned interface = 0;
    bool outside = false;
    for (size_t i = 0; i < *count; i++) {
        if (source && address_same_host(&list[i].address, source)) interface = list[i].interface;
        outside = outside || !address_loopback(&list[i].address);
    }
    for (size_t i = 0; i < *count; i++) list[i].rank = rank_of(&list[i], source, interface);
    qsort(list, *count, sizeof *list, by_rank);
    drop_repeated(list, count);
    while (outside && *count && list[*count - 1].rank == 6) --*count;
}
