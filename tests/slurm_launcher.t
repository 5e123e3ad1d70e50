#!/bin/bash
# slurm_launcher.t - ncclxrun in an allocation of Slurm's: its daemons come by srun, on the nodes and in the number that Slurm has given.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mp=$top_builddir/tests/mp

if [ -z "${INSIDE_SLURM-}" ]; then
    reason=$("$top_srcdir/tests/slurm-cluster" true 2>&1); status=$?
    [ $status = 77 ] && skip_all "$reason"
    rm -rf "$scratch" # exec runs no trap
    INSIDE_SLURM=inside exec "$top_srcdir/tests/slurm-cluster" -n 4 "${BASH_SOURCE[0]}"
fi

TEST_TIMEOUT=90
# Slurm gives the nodes of this one machine no names of their own, but each daemon knows which it is.
where='echo $PMIX_RANK $PMIX_HOSTNAME'
nodes() { sort -n <<<"$out" | paste -sd,; }
# What our jobs have left: processes of this cluster that are not Slurm's own.
left() { grep -lzsxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ | sed 's/environ$/comm/' | xargs grep -sx 'ncclxd\|ncclxrun\|sleep\|exchange\|spawn'; }
nothing_left() { local i; for ((i = 0; i < 50; i++)); do [ -z "$(left)" ] && { pass "$1"; return; }; sleep 0.1; done; fail "$1" "$(left)"; }
# allocated NAME STATUS "OPTIONS OF salloc" ARGUMENTS OF ncclxrun...
allocated() {
    local name=$1 want=$2 options=$3; shift 3
    # shellcheck disable=SC2086 # a list of words
    runs "$name" "$want" salloc -Q $options ncclxrun "$@"
    nothing_left "$name: nothing is left"
}

allocated "an allocation of three nodes with two tasks each" 0 "-N3 --ntasks-per-node=2" sh -c "$where"
like "gives each of them two ranks" "^0 (n[1-4]),1 \1,2 (n[1-4]),3 \2,4 (n[1-4]),5 \3$" "$(nodes)"
allocated "the keys of every rank are read by every other" 0 "-N4 --ntasks-per-node=2" "$mp/exchange" keys 1000
is "on four nodes" 8 "$(grep -c 'of 8 on' <<<"$out")"
allocated "a fence that collects" 0 "-N4 --ntasks-per-node=4" "$mp/exchange" collect 100000
is "of sixteen ranks" 16 "$(grep -c 'of 16 on' <<<"$out")"
allocated "fewer ranks than tasks" 0 "-N4 --ntasks-per-node=2" -n 3 sh -c "$where"
is "fill the first nodes" 3 "$(grep -c '^[012] n' <<<"$out")"
allocated "ranks that spawn, and meet their children on all nodes" 0 "-N4 --ntasks-per-node=1" "$mp/spawn" meet 7 + run 3 sh -c "$where"
is "which have nodes of Slurm's" 3 "$(grep -c '^[0-2] n[1-4]$' <<<"$out")"
allocated "a spawned rank that fails" 5 "-N3 --ntasks-per-node=1" "$mp/spawn" hold 3 sh -c '[ $PMIX_RANK = 2 ] && exit 5; exec sleep 100'
like "is named with its job and node" "rank 2 of ncclx-[^ ]*[.]1 on n[1-4] .*status 5" "$err"
allocated "a rank that fails" 5 "-N3 --ntasks-per-node=2" sh -c '[ $PMIX_RANK = 5 ] && exit 5; exec sleep 100'
like "is named with its node" "rank 5 on n[1-4] .*status 5" "$err"
allocated "a rank that is killed before a fence" 137 "-N3 --ntasks-per-node=2" "$mp/exchange" die before 4
like "is named, too" "rank 4 on n[1-4] .*SIGKILL" "$err"
allocated "a time limit" 124 "-N3 --ntasks-per-node=1" --timeout 2 --kill-grace 1 sleep 100

cat >"$scratch/job" <<'TEXT'
#!/bin/bash
ncclxrun "$@"
echo "status $?"
TEXT
sbatch -W -N2 --ntasks-per-node=2 -o "$scratch/batch" "$scratch/job" "$mp/exchange" keys 1000 >/dev/null 2>&1
is "a batch job's script starts it on all nodes of the job" "4 status 0" "$(grep -c 'of 4 on' "$scratch/batch") $(tail -1 "$scratch/batch")"
sbatch -W -N2 --ntasks-per-node=2 -o "$scratch/batch" "$scratch/job" sh -c 'exit 6' >/dev/null 2>&1
is "and gets its status" "status 6" "$(tail -1 "$scratch/batch")"
sbatch -N2 --ntasks-per-node=2 -o "$scratch/batch" "$scratch/job" sh -c 'echo ready; exec sleep 1000' >/dev/null 2>&1
for ((i = 0; i < 300; i++)); do [ "$(grep -sc ready "$scratch/batch")" = 4 ] && break; sleep 0.1; done
is "a job that runs" 4 "$(grep -sc ready "$scratch/batch")"
like "has daemons and ranks" "ncclxd.*sleep|sleep.*ncclxd" "$(left | paste -sd,)"
scancel -u root
nothing_left "leaves nothing when it is cancelled"

runs "in a step of one task it is the launcher of the whole allocation" 0 salloc -Q -N2 --ntasks-per-node=2 srun --mpi=none -N1 -n1 ncclxrun sh -c "$where"
is "all the same" 4 "$(grep -c '^[0-3] n[1-4]$' <<<"$out")"

done_testing
