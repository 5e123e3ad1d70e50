/* trouble.h - a test aid: lanes that delay what comes, and break, at random; and connections that do. NCCLX_LANE_TROUBLE turns it on. */
#ifndef PML_TCP_TROUBLE_H
#define PML_TCP_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_trouble {
    uint64_t random; /* state; 0: no trouble */
    uint64_t delay_ns;
    uint64_t looks; /* that find something, after which a lane breaks, on average; 0: never */
    uint64_t control_looks; /* alike, of the socket that carries packets */
};

/* Of one lane. */
struct tcp_bad_luck {
    uint64_t held_until;
    uint64_t left; /* looks; 0: it does not break */
};

/* "SEED:MICROSECONDS:LOOKS" or "SEED:MICROSECONDS:LOOKS:LOOKS", or empty. NCCLX_ERR_CONFIG. */
int tcp_trouble_parse(const char *text, struct tcp_trouble *trouble);
void tcp_trouble_begin(struct tcp_trouble *trouble, struct tcp_bad_luck *luck);
void tcp_trouble_begin_control(struct tcp_trouble *trouble, struct tcp_bad_luck *luck);
/* Not yet. */
bool tcp_trouble_holds(const struct tcp_trouble *trouble, const struct tcp_bad_luck *luck);
/* Something was found. True: the lane breaks now, with what is in its socket. */
bool tcp_trouble_breaks(struct tcp_trouble *trouble, struct tcp_bad_luck *luck, int fd);

#endif
