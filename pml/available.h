/* available.h - how much memory this process may still take. */
#ifndef PML_AVAILABLE_H
#define PML_AVAILABLE_H

#include <stdint.h>

/* The least of what the machine has free and what the process' control groups (version 2) allow; UINT64_MAX when
 * neither can be read. An anonymous file has no limit of its own: without this question, allocating too much of one ends
 * with the kernel killing somebody. */
uint64_t available_memory(void);

#endif
