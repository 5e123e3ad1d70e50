#!/bin/bash
# coll.t - collectives between processes: by automatic choice on every number of ranks, and with each algorithm asked for.
. "$(dirname "$0")/lib.sh"
program=$top_builddir/tests/mp/coll
blocks=$top_builddir/tests/mp/coll_blocks # those whose blocks may differ from rank to rank, and scans
TEST_TIMEOUT=120

for ranks in 1 2 3 4 5 7 8 16; do
    if [ $ranks -lt 16 ]; then counts=8; else counts=6; fi
    runs "automatic choice, $ranks ranks" 0 ncclxrun -n $ranks "$program" $counts
    runs "blocks, automatic choice, $ranks ranks" 0 ncclxrun -n $ranks "$blocks" $((ranks < 8 ? 7 : ranks < 16 ? 5 : 3))
done

# The first algorithm of each collective together, then the second, and so on; a shorter list goes round.
barrier=(shared dissemination tree)
bcast=(shared binomial scatter_allgather pipeline kary)
reduce=(shared binomial rabenseifner)
allreduce=(shared recursive_doubling rabenseifner ring reduce_bcast)
allgather=(shared ring bruck recursive_doubling bidirectional_ring)
alltoall=(shared pairwise bruck direct)
for ((i = 0; i < 5; i++)); do
    chosen=()
    for name in barrier bcast reduce allreduce allgather alltoall; do
        declare -n list=$name
        chosen+=("NCCLX_COLL_${name^^}=${list[i % ${#list[@]}]}")
    done
    for ranks in 2 3 4 7; do
        runs "${list[i % ${#list[@]}]} and others, $ranks ranks" 0 env "${chosen[@]}" ncclxrun -n $ranks "$program" 7
    done
done

reduce_scatter=(shared halving ring direct)
reduce_scatter_block=(shared ring direct halving)
allgatherv=(shared recursive_doubling ring bidirectional_ring)
gather=(shared binomial linear)
scatter=(shared linear binomial)
alltoallv=(shared pairwise direct)
scan=(shared recursive_doubling pipeline)
exscan=(shared pipeline recursive_doubling)
for ((i = 0; i < 4; i++)); do
    chosen=()
    for name in reduce_scatter reduce_scatter_block allgatherv gather scatter alltoallv scan exscan; do
        declare -n list=$name
        chosen+=("NCCLX_COLL_${name^^}=${list[i % ${#list[@]}]}")
    done
    for ranks in 2 3 4 7; do
        runs "blocks, ${reduce_scatter[i]} and others, $ranks ranks" 0 env "${chosen[@]}" ncclxrun -n $ranks "$blocks" 5
    done
done

for ranks in 2 3; do runs "blocks, large, $ranks ranks" 0 ncclxrun -n $ranks "$blocks" large; done

# Where peers' memory cannot be mapped, messages do it all.
runs "no direct access" 0 env NCCLX_SHM_DIRECT=off ncclxrun -n 3 "$program" 6

runs "different arguments are reported" 0 env NCCLX_COLL_BCAST=binomial NCCLX_TIMEOUT=30 ncclxrun -n 2 "$program" mismatch
done_testing
