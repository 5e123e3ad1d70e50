#!/bin/bash
# Messages between processes on every number of ranks, and every way they can take.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
program=$top_builddir/tests/mp/p2p
export TEST_TIMEOUT=120

for n in 1 2 3 4 5 7 8 16; do
    runs "$n ranks" 0 ncclxrun -n $n "$program"
    is "$n ranks say nothing" "" "$out$err"
done
for n in 2 5; do
    runs "$n ranks without single copies" 0 env NCCLX_SHM_CMA=off ncclxrun -n $n "$program"
    runs "$n ranks without direct access" 0 env NCCLX_SHM_DIRECT=off ncclxrun -n $n "$program"
    runs "$n ranks, smallest rings" 0 env NCCLX_SHM_RING=4K NCCLX_SHM_CMA=off ncclxrun -n $n "$program"
    runs "$n ranks, hardly anything unexpected" 0 env NCCLX_UNEXPECTED_LIMIT=4K ncclxrun -n $n "$program"
    runs "$n ranks, all but the smallest by rendezvous" 0 env NCCLX_EAGER_LIMIT=1 ncclxrun -n $n "$program"
    runs "$n ranks, all that fits in a ring eager" 0 env NCCLX_EAGER_LIMIT=1G ncclxrun -n $n "$program"
    runs "$n ranks, an agent thread" 0 env NCCLX_PROGRESS=thread ncclxrun -n $n "$program"
done
runs "a file size limit below the segment is an error" 1 ncclxrun -n 2 sh -c "ulimit -f 100; exec $program"
like "that names limit and remedy" 'NCCLX_ERR_LIMIT: .*ulimit -f.*raise it' "$err"
runs "a transport that does not exist is an error" 1 env NCCLX_TRANSPORTS=shm,carrier ncclxrun -n 2 "$program"
like "that names it" 'NCCLX_ERR_CONFIG: .*"carrier"' "$err"
runs "a peer that no chosen transport reaches is an error" 1 env NCCLX_TRANSPORTS=self ncclxrun -n 2 "$program"
like "that names the peer" 'NCCLX_ERR_UNREACHABLE: no transport reaches rank [01]' "$err"
runs "a job of one without a launcher" 0 "$program"
done_testing
