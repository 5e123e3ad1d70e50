#!/bin/bash
# mixed.t - all programs between ranks of one host of which all pairs, or half of them, use sockets.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/every.sh"
TEST_TIMEOUT=120
one_host() { runs "$1" "$2" ncclxrun -n "$3" "${@:4}"; }

if is_sanitized; then parts=(odd even); else parts=(all all); fi
NCCLX_TRANSPORTS=tcp every one_host tcp ${parts[0]}
NCCLX_TRANSPORTS=mix every one_host "shm tcp" ${parts[1]}

# A pair of a window needs messages, and its neighbours do not.
NCCLX_TRANSPORTS=mix NCCLX_LOG=warn,osc:info runs "a pair unlike its neighbours" 0 ncclxrun -n 8 "$top_builddir/tests/mp/window" unlike
like "says so" 'rank 2 of a window is not reached as others are' "$err"
is "and its operations wait for no calls" "ok 8" "$out"

# The last rank stops; rank 0 reaches it by sockets, and others by shared memory.
if ! is_sanitized; then
    NCCLX_TRANSPORTS=mix NCCLX_TIMEOUT=0.2 NCCLX_ERRORS=return NCCLX_LOG=info runs "NCCLX_TIMEOUT ends every call that waits" 42 \
        ncclxrun -n 4 "$top_builddir/tests/mp/deadline" messages
    like "also for one behind a socket" 'rank 0 on [^ ]*: tcp: info: connected to rank 3' "$err"
fi
done_testing
