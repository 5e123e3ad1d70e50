/* cma.h - single copies between two processes by the kernel (cross-memory attach). */
#ifndef PML_SHM_CMA_H
#define PML_SHM_CMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0, or an errno value. Any size. */
int cma_read(pid_t pid, void *to, uint64_t address, size_t bytes);
int cma_write(pid_t pid, const void *from, uint64_t address, size_t bytes);

#endif
