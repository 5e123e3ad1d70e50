/* front_mpir.h - what parallel debuggers read from a launcher's memory to find the processes of a job: "The MPIR
 * Process Acquisition Interface", version 1.1. The names are that document's. */
#ifndef LAUNCHER_FRONT_MPIR_H
#define LAUNCHER_FRONT_MPIR_H

struct front;

typedef struct {
    char *host_name;
    char *executable_name;
    int pid;
} MPIR_PROCDESC;

#define MPIR_DEBUG_SPAWNED 1

extern MPIR_PROCDESC *MPIR_proctable;
extern int MPIR_proctable_size;
extern volatile int MPIR_debug_state;
/* Set by a debugger that has started the launcher: ranks wait in ncclx_init until it has attached to them. */
extern volatile int MPIR_being_debugged;
extern int MPIR_partial_attach_ok;
/* A debugger stops here when the table is complete. */
void MPIR_Breakpoint(void);

/* All ranks of the user's job run: fills the table and says so. Those of other jobs are not in it. */
void front_mpir_publish(const struct front *front);

#endif
