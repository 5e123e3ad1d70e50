/* base - what every other folder stands on: errors, logging, the configuration table, memory areas, types and
 * operations, requests, waiting, and the descriptions of a job, a communicator and a rank.
 *
 * Owns: struct ncclx_rt (one rank) and struct ncclx_process (what is per process).
 * Never: talks to a peer, a daemon or a device; includes a header of another folder.
 * Threads: functions that take a struct ncclx_rt are called with its lock held (see rt.h); error, log, memory and clock
 * functions may be called from any thread.
 */
#ifndef BASE_H
#define BASE_H

#include "runtime/ncclx.h"

#include "runtime/base/area.h"
#include "runtime/base/clock.h"
#include "runtime/base/comm.h"
#include "runtime/base/config.h"
#include "runtime/base/copy.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/info.h"
#include "runtime/base/job.h"
#include "runtime/base/log.h"
#include "runtime/base/op.h"
#include "runtime/base/process.h"
#include "runtime/base/request.h"
#include "runtime/base/rt.h"
#include "runtime/base/type.h"
#include "runtime/base/wait.h"

#endif
