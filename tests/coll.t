#!/bin/bash
# coll.t - collectives between processes: mp/grid.c's calls with each algorithm, about the limits of `ncclx-info --coll` and of
# the memory that ranks share, and mp/coll.c's.
#
# By default a sample of the grid. NCCLX_TEST_LONG=1 runs all of it, up to a million elements, which takes an hour or more; then
# `tests/coll.t RANKS [ALGORITHM...]` runs some of it: that many ranks, with the first, second ... algorithm of each collective
# (0: the automatic choice). More than 8 ranks take several jobs for each, to stay within minutes.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=120
long=${NCCLX_TEST_LONG:-}
unset NCCLX_TEST_LONG # no variable of the library
MOST_ALGORITHMS=7
calls=0
every=20 every_ordered=1 # one case in so many of the grid
is_sanitized && every=80 every_ordered=4

# Limits that are no algorithm's: a small and a large slot of shared memory, with few and with many ranks; rings of pml; the
# pieces of pipelines.
other_limits=all=6144,8192,16384,32768,65536,131072

# algorithms_of N: NCCLX_COLL_<NAME>=<the Nth algorithm>, of each collective; a shorter list goes round. 0: nothing.
algorithms_of() {
    local ranks
    [ "$1" -gt 0 ] || return 0
    for ranks in 2 4 8 17; do "$top_builddir/runtime/ncclx-info" --coll --ranks $ranks; done | awk -v n="$1" '
        /^[a-z_]+(,|$)/ { name = $1; sub(",", "", name); if (!heard[name]++) names[++known] = name }
        /^  [a-z_]+ / && !seen[name, $1]++ { list[name, count[name]++] = $1 }
        END { for (i = 1; i <= known; i++)
                  if (count[names[i]]) printf "NCCLX_COLL_%s=%s\n", toupper(names[i]), list[names[i], (n - 1) % count[names[i]]] }'
}

# limits_of RANKS: NAME=BYTES,... of each collective.
limits_of() {
    "$top_builddir/runtime/ncclx-info" --coll --ranks "$1" | awk '
        /^[a-z_]+(,|$)/ { name = $1; sub(",", "", name) }
        { for (i = 1; i < NF; i++) if ($i == "to" && $(i + 2) ~ /^bytes/ && !seen[name, $(i + 1)]++)
              limits[name] = limits[name] (limits[name] == "" ? "" : ",") $(i + 1) }
        END { for (name in limits) print name "=" limits[name] }'
}

# grid NAME RANKS ARGUMENTS...: $chosen is in its environment
grid() {
    local name=$1 ranks=$2; shift 2
    runs "$name, $ranks ranks" 0 env "${chosen[@]}" ncclxrun -n "$ranks" "$mp/grid" "$@"
    [[ $out =~ ^[0-9]+$ ]] || { fail "$name, $ranks ranks: counts its calls" "$out"; return; }
    calls=$((calls + out))
    [ -z "$long" ] || diag "$name, $ranks ranks: $out calls in ${SECONDS} s"
}

# part RANKS ALGORITHM OPTIONS...
part() {
    local ranks=$1 algorithm=$2 chosen limits; shift 2
    mapfile -t chosen < <(algorithms_of "$algorithm")
    mapfile -t limits < <(limits_of "$ranks")
    grid "algorithm $algorithm of each" "$ranks" "$@" "${limits[@]}" $other_limits
}

# ordered RANKS ALGORITHM: an operation that is not commutative
ordered() {
    local chosen
    mapfile -t chosen < <(algorithms_of "$2")
    grid "ordered, algorithm $2 of each" "$1" -o 4 -e $every_ordered
}

if [ -n "$long" ]; then
    TEST_TIMEOUT=3000
    for ranks in ${1:-1 2 3 4 5 6 7 8 9 16}; do
        numbers=${*:2}
        for algorithm in ${numbers:-$(seq 0 $MOST_ALGORITHMS)}; do
            jobs=$((ranks > 8 ? 8 : 1))
            for ((job = 0; job < jobs; job++)); do part "$ranks" "$algorithm" -m -e $jobs -p $job; done
        done
    done
    [ $# -eq 0 ] || { diag "$calls calls"; done_testing; }
    for ranks in {10..15} 17; do
        for algorithm in $(seq 0 $MOST_ALGORITHMS); do ordered "$ranks" "$algorithm"; done
    done
fi

is "an algorithm is found for each collective" 16 "$(algorithms_of 1 | wc -l)"
is "limits are found" yes "$(limits_of 4 | grep -q '^allreduce=[0-9]*,' && echo yes)"

for algorithm in $(seq 0 $MOST_ALGORITHMS); do
    for ranks in $([ "$algorithm" -le 5 ] && echo 2 4) 3 7; do part $ranks "$algorithm" -e $every -p "$algorithm"; done # few lists are longer
done
for ranks in 1 5 8; do part $ranks 0 -e $every; done
part 16 0 -e 200
chosen=(NCCLX_COLL_BARRIER=shared_tree NCCLX_COLL_BCAST=shared_tree) # several levels
grid "trees in shared memory" 17 -e 10 bcast=6144,8192,32768,65536
for ranks in {1..17}; do ordered "$ranks" $((ranks % (MOST_ALGORITHMS + 1))); done
chosen=()
for ranks in 2 3 5 $([ -n "$long" ] && echo 8 16); do grid "sparse alltoallv" "$ranks" -r 200; done
diag "$calls calls"

for ranks in 1 2 3 4 5 8; do runs "several at a time, $ranks ranks" 0 ncclxrun -n $ranks "$mp/coll"; done
for ranks in 2 3; do runs "blocks beyond 2^32 elements, $ranks ranks" 0 ncclxrun -n $ranks "$mp/coll" far; done

# Where peers' memory cannot be mapped, messages do it all.
chosen=(NCCLX_SHM_DIRECT=off)
grid "no direct access" 3 -e 8
runs "several at a time, no direct access" 0 env NCCLX_SHM_DIRECT=off ncclxrun -n 3 "$mp/coll"

runs "different arguments are reported" 0 env NCCLX_COLL_BCAST=binomial NCCLX_TIMEOUT=30 ncclxrun -n 2 "$mp/coll" mismatch
done_testing
