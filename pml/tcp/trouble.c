/* trouble.c - see trouble.h. */
#include "pml/tcp/trouble.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <sys/socket.h>

int tcp_trouble_parse(const char *text, struct tcp_trouble *trouble)
{
    unsigned seed, delay, looks, control = 0;
    int length = 0, more = 0;
    *trouble = (struct tcp_trouble){.random = 0};
    if (!text || !*text) return NCCLX_SUCCESS;
    bool good = sscanf(text, "%9u:%9u:%9u%n", &seed, &delay, &looks, &length) == 3;
    if (good && text[length]) good = sscanf(text + length, ":%9u%n", &control, &more) == 1 && !text[length + more];
    if (!good)
        return base_error(NCCLX_ERR_CONFIG,
                          "NCCLX_LANE_TROUBLE is \"%.100s\"; it is seed:microseconds:looks, as 1:200:1000, and may be "
                          "followed by :looks for the connection itself",
                          text);
    *trouble = (struct tcp_trouble){.random = (UINT64_C(0x9e3779b97f4a7c15) * (seed + 1)) | 1,
                                    .delay_ns = UINT64_C(1000) * delay,
                                    .looks = looks,
                                    .control_looks = control};
    return NCCLX_SUCCESS;
}

/* xorshift64* */
static uint64_t draw(struct tcp_trouble *trouble, uint64_t below)
{
    trouble->random ^= trouble->random >> 12;
    trouble->random ^= trouble->random << 25;
    trouble->random ^= trouble->random >> 27;
    return below ? (trouble->random * UINT64_C(0x2545f4914f6cdd1d) >> 16) % below : 0;
}

static void begin(struct tcp_trouble *trouble, uint64_t looks, struct tcp_bad_luck *luck)
{
    *luck = (struct tcp_bad_luck){0, 0};
    if (looks) luck->left = 1 + draw(trouble, 2 * looks);
}

void tcp_trouble_begin(struct tcp_trouble *trouble, struct tcp_bad_luck *luck)
{
    begin(trouble, trouble->looks, luck);
}

void tcp_trouble_begin_control(struct tcp_trouble *trouble, struct tcp_bad_luck *luck)
{
    begin(trouble, trouble->control_looks, luck);
}

bool tcp_trouble_holds(const struct tcp_trouble *trouble, const struct tcp_bad_luck *luck)
{
    return trouble->delay_ns && base_clock_ns() < luck->held_until;
}

bool tcp_trouble_breaks(struct tcp_trouble *trouble, struct tcp_bad_luck *luck, int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (trouble->delay_ns) luck->held_until = base_clock_ns() + draw(trouble, trouble->delay_ns);
    if (!luck->left || --luck->left) return false;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* its end takes what has not been read */
    return true;
}
