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

is_sanitized || NCCLX_TRANSPORTS=mix partings one_host "shm tcp" connecting sending fence # tcp_death.t has all
done_testing
