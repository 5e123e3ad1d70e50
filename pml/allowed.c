/* allowed.c - see allowed.h. */
#include "pml/allowed.h"

#include <string.h>

const struct transport *const all_transports[ALL_TRANSPORTS] = {&transport_self, &transport_shm, &transport_tcp};

int transport_named(const char *name, const struct transport **transport)
{
    for (int i = 0; i < ALL_TRANSPORTS; i++) {
        *transport = all_transports[i];
        if (!strcmp((*transport)->name, name)) return NCCLX_SUCCESS;
    }
    return base_error(NCCLX_ERR_ARG, "there is no transport \"%s\"", name);
}

/* In place of a list of names, for tests: half of the pairs may not use shm. */
#define MIX "mix"

static const char *setting(const struct ncclx_rt *rt)
{
    const char *list = rt->config.value[CONFIG_TRANSPORTS].text;
    return list ? list : "";
}

/* Whether the list goes on with this name. */
static bool begins_with(const char *list, const struct transport *transport)
{
    size_t length = strlen(transport->name);
    return strcspn(list, ",") == length && !strncmp(list, transport->name, length);
}

static bool is_mix(const struct ncclx_rt *rt)
{
    return !strcmp(setting(rt), MIX);
}

/* Each rank has neighbours of both kinds, so that the way changes all along a ring or a tree. */
static bool mix_allows(const struct transport *transport, int a, int b)
{
    return transport != &transport_shm || ((unsigned)a + (unsigned)b) / 2 % 2 == 0;
}

bool allowed_with_some(const struct ncclx_rt *rt, const struct transport *transport)
{
    const char *list = setting(rt);
    if (!*list || is_mix(rt)) return true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (begins_with(at, transport)) return true;
    return false;
}

bool allowed_with_all(const struct ncclx_rt *rt, const struct transport *transport)
{
    return allowed_with_some(rt, transport) && !is_mix(rt);
}

bool allowed_with(const struct ncclx_rt *rt, const struct transport *transport, int peer)
{
    if (transport == &transport_self) return true; /* whatever is set; it reaches nobody else */
    if (is_mix(rt)) return mix_allows(transport, rt->job.rank, peer);
    return allowed_with_some(rt, transport);
}

int allowed_check(const struct ncclx_rt *rt)
{
    const char *list = setting(rt);
    if (is_mix(rt)) return NCCLX_SUCCESS;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        bool known = false;
        for (int i = 0; i < ALL_TRANSPORTS; i++) known = known || begins_with(at, all_transports[i]);
        if (!known)
            return base_error(NCCLX_ERR_CONFIG,
                              "NCCLX_TRANSPORTS=%s: there is no transport \"%.*s\"; there are self, shm and tcp", list,
                              (int)strcspn(at, ","), at);
    }
    return NCCLX_SUCCESS;
}
