#!/bin/bash
# slurm.t - the same programs under another process manager: a real Slurm of four nodes, srun --mpi=pmix.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/every.sh"
mp=$top_builddir/tests/mp
examples=$top_builddir/examples

if [ -z "${INSIDE_SLURM-}" ]; then
    reason=$("$top_srcdir/tests/slurm-cluster" true 2>&1); status=$?
    [ $status = 77 ] && skip_all "$reason"
    rm -rf "$scratch" # exec runs no trap
    INSIDE_SLURM=inside exec "$top_srcdir/tests/slurm-cluster" -n 4 "${BASH_SOURCE[0]}"
fi

TEST_TIMEOUT=90
# -K: a rank that fails ends the step. Under another name on every node there is one machine.
step() { local name=$1 want=$2; shift 2; runs "$name" "$want" srun -K --mpi=pmix "$@"; }

step "four ranks on two nodes" 0 -N2 -n4 --ntasks-per-node=2 "$mp/life"
is "are one job" "rank 0 of 4,rank 1 of 4,rank 2 of 4,rank 3 of 4" "$(sort <<<"$out" | paste -sd,)"
step "seven ranks, dealt unevenly" 0 -N2 -n7 --distribution=cyclic "$mp/life"
is "are one job" 7 "$(sort -u <<<"$out" | grep -c 'of 7$')"
step "one node" 0 -N1 -n3 "$mp/life"
is "is one job" 3 "$(sort -u <<<"$out" | grep -c 'of 3$')"
step "one rank" 0 -N1 -n1 "$mp/life"
is "is a job of one" "rank 0 of 1" "$out"

step "keys, nodes and memory of four ranks on two nodes" 0 -N2 -n4 --ntasks-per-node=2 "$mp/keys"
is "as Slurm calls them" "2 2" "$(sed 's/.* on //' <<<"$out" | sort | uniq -c | awk '{ print $1 }' | paste -sd' ')"
step "of five, dealt one by one" 0 -N2 -n5 --distribution=cyclic "$mp/keys"

# Four ranks share the processors of one machine, which no node of Slurm's knows: they yield.
export NCCLX_SPIN=0
step "conjugate gradients of four ranks on two nodes" 0 -N2 -n4 --ntasks-per-node=2 "$examples/cg" "$top_srcdir/examples/data/1138_bus.mtx"
like "are one job of four" "ranks +4"$'\n' "$out"
is "with one result" 1 "$(grep -c '^residual' <<<"$out")"
like "that is right" "residual +[0-9.]+e-1[0-9] " "$out"

# Shared memory is forbidden: sockets between nodes.
export NCCLX_TRANSPORTS=tcp
a_rank_a_node() { step "$1" "$2" -N"$3" -n"$3" "${@:4}"; }
if is_sanitized; then every a_rank_a_node tcp even; else every a_rank_a_node tcp all; fi
# Without -K, with which Slurm kills the others at once; its own status is not that of the rank that was killed.
one_goes() {
    local name=$1 want=$2 status
    timeout -k 5 60 srun --mpi=pmix -N"$3" -n"$3" "${@:4}" >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
    if [ $status = "$want" ] || { [ "$want" = 137 ] && [ $status != 0 ] && [ $status != 124 ]; }; then pass "$name"
    else fail "$name" "status $status, expected $want" "$err" "$out"; fi
}
is_sanitized || partings one_goes tcp authenticated receiving signal
unset NCCLX_SPIN NCCLX_TRANSPORTS

# srun's own status is not always that of the rank that failed first.
for how in "exit 1 9" "signal 3 9" "exit-before-init 1 9"; do
    timeout -k 5 60 srun -K --mpi=pmix -N2 -n4 "$mp/life" $how >"$scratch/out" 2>&1 </dev/null; status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ]; then pass "a rank that dies ends the step ($how)"
    else fail "a rank that dies ends the step ($how)" "status $status" "$(cat "$scratch/out")"; fi
done
# Without -K Slurm lets the others wait for a rank that died before it joined: the ranks of its node see it.
for how in "signal-before-init 5 9" "exit-before-init 14 0" "exit-before-init 0 3"; do
    rank=$(cut -d" " -f2 <<<"$how"); begin=$SECONDS
    timeout -k 5 60 srun --mpi=pmix -N4 -n16 --ntasks-per-node=4 "$mp/life" $how >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ] && [ $((SECONDS - begin)) -lt 30 ]; then pass "a rank that dies before a fence ends the job, without -K ($how)"
    else fail "a rank that dies before a fence ends the job, without -K ($how)" "status $status" "$(cat "$scratch/err")"; fi
    is "and is named with its host, once" 1 "$(grep -c "^ncclx: rank $rank on n$((rank / 4 + 1)).* died without leaving the job" "$scratch/err")"
done
# Alone on its node it is missed by nobody, but Slurm knows: soon, if it has seen the rank before, or after a minute.
alone() { # alone RANK SECONDS_OF_ITS_LIFE BOUND
    local begin=$SECONDS
    timeout -k 5 120 srun --mpi=pmix -N4 -n4 --ntasks-per-node=1 sh -c "[ \$SLURM_PROCID != $1 ] || { sleep $2; exit 0; }; exec $mp/life" \
        >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ] && [ $((SECONDS - begin)) -lt $3 ]; then pass "so does rank $1 that was alone on its node for $2 s"
    else fail "so does rank $1 that was alone on its node for $2 s" "status $status after $((SECONDS - begin)) s" "$(cat "$scratch/err")"; fi
    is "and is named with its host, too" 1 "$(grep -c "^ncclx: rank $1 on n$(($1 + 1)) died without leaving the job, as Slurm says" "$scratch/err")"
}
if PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q 'libslurm\.so\.'; then
    alone 3 4 30
    [ -z "${NCCLX_TEST_LONG:-}" ] || alone 0 0 110
else
    skip "nor one that was alone on its node" "there is no libslurm to ask Slurm with"
fi
step "one that comes late is not taken for dead" 0 -N4 -n4 --ntasks-per-node=1 sh -c '[ $SLURM_PROCID != 2 ] || sleep 5; exec '"$mp/life"
is "and all are there" 4 "$(grep -c 'of 4$' <<<"$out")"
for how in "signal 7 9" "exit 8 0"; do
    timeout -k 5 60 srun --mpi=pmix -N4 -n16 --ntasks-per-node=4 "$mp/life" $how >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ]; then pass "and so does one that dies after it ($how)"
    else fail "and so does one that dies after it ($how)" "status $status" "$(cat "$scratch/err")"; fi
done
# Slurm tells nobody of a death. Ranks of a node look after each other, whatever they wait for; sockets tell of a peer elsewhere; and
# of one that is elsewhere without a socket, as here all nodes are one machine, Slurm is asked.
dies() { # dies NODES TRANSPORTS PHASE SECONDS WHO_SAYS_WHAT
    local hour; hour=$(awk '{ print $1 + 3 }' /proc/uptime)
    NCCLX_TRANSPORTS=$2 NCCLX_ERRORS=return timeout -k 5 60 srun --mpi=pmix -N"$1" -n2 "$mp/death" "$3" "$hour" \
        >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ] && awk -v hour="$hour" -v most="$4" '{ exit $1 >= hour + most }' /proc/uptime; then pass "a peer by $2 on $1 nodes dies: $3"
    else fail "a peer by $2 on $1 nodes dies: $3" "status $status" "$(cat "$scratch/out" "$scratch/err")"; fi
    like "and is named" "$5" "$(cat "$scratch/out" "$scratch/err")"
}
dies 1 shm,self signal 2 'ncclx: rank 1 on n1 .*died without leaving the job; rank 0 saw it'
dies 1 shm,self test 2 'ncclx: rank 1 on n1 .*died without leaving the job; rank 0 saw it'
dies 1 shm,self iprobe 2 'ncclx: rank 1 on n1 .*died without leaving the job; rank 0 saw it'
dies 1 shm,self test_signal 2 'ncclx: rank 1 on n1 .*died without leaving the job; rank 0 saw it'
dies 2 tcp test 2 'NCCLX_ERR_PROC_FAILED.*rank 1 is lost'
dies 2 tcp collective 2 'NCCLX_ERR_PROC_FAILED.*rank 1 is lost'
dies 2 shm,self connected 30 'ncclx: rank 1 on n2 died without leaving the job, as Slurm says'
step "ncclx_abort ends it with its code" 7 -N2 -n4 "$mp/life" abort 2 7
like "and says who did" "rank 2 " "$err"

runs "without --mpi=pmix there is no server: each rank is a job of one" 0 srun --mpi=none -N2 -n2 "$mp/life"
is "of one" 2 "$(grep -c 'rank 0 of 1' <<<"$out")"
runs "a server that is gone is an error" 1 env PMIX_NAMESPACE=gone PMIX_RANK=0 PMIX_SERVER_URI41='gone.0;tcp4://127.0.0.1:9' "$mp/life"
like "that says so" "BOOTSTRAP.*cannot be reached" "$err"
exec {silent}< <(exec perl -MIO::Socket::INET -e '
$server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 8) or die;
$| = 1; print $server->sockport, "\n";
$kept = $server->accept; sleep 60')
listener=$!
read -r -u "$silent" port
NCCLX_TIMEOUT=2 runs "a server that takes the connection and says nothing is an error after NCCLX_TIMEOUT" 1 \
    env PMIX_NAMESPACE=silent PMIX_RANK=0 PMIX_SERVER_URI41="silent.0;tcp4://127.0.0.1:$port" "$mp/life"
like "that says so, too" "BOOTSTRAP.*cannot be reached: TIMEOUT" "$err"
kill "$listener"
runs "ncclxrun inside an allocation starts its own job" 0 srun --mpi=none -N1 -n1 "$top_builddir/launcher/ncclxrun" -n 2 "$mp/life"
is "of its own size" "rank 0 of 2,rank 1 of 2" "$(sort <<<"$out" | paste -sd,)"
runs "also inside a step that has a PMIx server" 0 srun --mpi=pmix -N1 -n1 "$top_builddir/launcher/ncclxrun" -n 2 "$mp/life"
is "of its own size" "rank 0 of 2,rank 1 of 2" "$(sort <<<"$out" | paste -sd,)"

# The allocation is the list of hosts, and srun starts the daemons.
runs "ncclxrun on all nodes of an allocation" 0 salloc -Q -N2 -n3 "$top_builddir/launcher/ncclxrun" sh -c 'echo $PMIX_RANK on $PMIX_HOSTNAME'
is "has a rank for each task" "0 on n1,1 on n1,2 on n2" "$(sort <<<"$out" | paste -sd,)"
runs "or on some of them" 0 salloc -Q -N2 -n3 "$top_builddir/launcher/ncclxrun" --host ^n1 -n 2 sh -c 'echo $PMIX_RANK on $PMIX_HOSTNAME'
is "as --host says" "0 on n2,1 on n2" "$(sort <<<"$out" | paste -sd,)"

done_testing
