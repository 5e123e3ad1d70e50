#!/bin/bash
# huge.t - messages, puts and gets of 2^31 and 2^32 + 1 bytes, by each way that they can take, with NCCLX_TEST_LONG=1 and memory for
# them; else of some megabytes.
. "$(dirname "$0")/lib.sh"
program=$top_builddir/tests/mp/huge
TEST_TIMEOUT=60
sizes=3000001
if [ -n "${NCCLX_TEST_LONG:-}" ]; then
    sizes+=" 2147483648 4294967297"
    TEST_TIMEOUT=600
fi

# transfers NAME SETTING...: two ranks hold a buffer each.
transfers() {
    local name=$1 bytes; shift
    for bytes in $sizes; do
        if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt $((2 * bytes / 1024 + (2 << 20))) ]; then
            skip "$bytes bytes, $name" "memory is short"
            continue
        fi
        runs "$bytes bytes, $name" 0 env "$@" ncclxrun -n 2 "$program" "$bytes"
        is "all of them, $name" "ok $bytes" "$out"
    done
}
transfers "over sockets" NCCLX_TRANSPORTS=tcp
transfers "over sockets, copied" NCCLX_TRANSPORTS=tcp NCCLX_PROTOCOL=copy
transfers "in shared memory" NCCLX_TRANSPORTS=shm
transfers "in shared memory, by messages" NCCLX_TRANSPORTS=shm NCCLX_SHM_DIRECT=off
transfers "in shared memory, by the owner" NCCLX_TRANSPORTS=shm NCCLX_SHM_DIRECT=off NCCLX_SHM_CMA=off
transfers "in shared memory, copied" NCCLX_TRANSPORTS=shm NCCLX_PROTOCOL=copy NCCLX_SHM_DIRECT=off
done_testing
