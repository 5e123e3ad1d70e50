/* front_mpir.c - see front_mpir.h. */
#include "config.h"

#include "launcher/front_mpir.h"

#include "launcher/front.h"
#include "runtime/base/base.h"

MPIR_PROCDESC *MPIR_proctable;
int MPIR_proctable_size;
volatile int MPIR_debug_state;
volatile int MPIR_being_debugged;
int MPIR_partial_attach_ok = 1; /* ranks that it does not attach to go on by themselves */

__attribute__((noinline)) void MPIR_Breakpoint(void)
{
    __asm__ volatile(""); /* a call that is seen to do nothing would be left out */
}

void front_mpir_publish(const struct front *front)
{
    const struct map *map = &front->user.map;
    MPIR_PROCDESC *table = base_calloc(AREA_LAUNCHER, (size_t)map->rank_count, sizeof *table);
    if (!table) return; /* no debugger finds the ranks; the job is none the worse */
    for (int i = 0; i < map->rank_count; i++)
        table[i] = (MPIR_PROCDESC){.host_name = front->nodes[map->ranks[i].node].name,
                                   .executable_name = front->options.apps[map->ranks[i].app].argv[0],
                                   .pid = (int)front->user.pids[i]};
    MPIR_proctable = table;
    MPIR_proctable_size = map->rank_count;
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
    MPIR_Breakpoint();
}
