#!/bin/bash
# launcher_display.t - what a user is shown of jobs on several hosts: maps, processes, progress, and where ranks are.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
TEST_TIMEOUT=90
# Every host is this machine; c takes its time.
cat >"$scratch/agent" <<'EOS'
#!/bin/sh
[ "$1" = c ] && sleep "${SLOW-0}"
shift
exec sh -c "$*"
EOS
chmod +x "$scratch/agent"
many=(--rsh-agent "$scratch/agent")
said() { grep -c "$1" <<<"$err"; }

# ---- Hosts ---------------------------------------------------------------------------------------------------------

printf 'a slots=2\r\n# out of order\r\n^b\r\nb\r\nc:1' >"$scratch/hosts"
job "the hosts of a hostfile" 0 "${many[@]}" --hostfile "$scratch/hosts" --display allocation,map true
is "are used" 1 "$(said 'allocation of 2 hosts with 3 slots')"
like "with a rank for each slot" "rank 1: node a, .*rank 2: node c, " "${err//$'\n'/ }"
job "--host picks some" 0 "${many[@]}" --hostfile "$scratch/hosts" --host c --display map true
is "and no other" "1 0" "$(said 'node c:') $(said 'node a:')"
new_mark
out=$(TMPDIR=$mark timeout 60 ncclxrun "${many[@]}" --hostfile - --display map -n 2 true <"$scratch/hosts" 2>&1)
like "a hostfile may be standard input" "rank 1: node a" "$out"
nothing_left "and nothing is left"
NCCLX_HOSTFILE=$scratch/hosts job "or in the environment" 0 "${many[@]}" --display map true
is "as a default" 1 "$(said 'map of 3 ranks on 2 nodes')"
printf 'a\nb slots=many\n' >"$scratch/bad"
job "a mistake in it" 2 "${many[@]}" --hostfile "$scratch/bad" true
is "is named with its line" "ncclxrun: $scratch/bad:2: 'slots=many' is not a number" "$err"
job "a file that is not there" 2 -q --hostfile "$scratch/none" true
is "is an error, also with --quiet" "ncclxrun: --hostfile: $scratch/none: No such file or directory" "$err"
truncate -s 100M "$scratch/large"
job "a file of 100 MB" 2 --hostfile "$scratch/large" true
like "is none of hosts" "larger than 16 MiB" "$err"

# ---- GPUs ----------------------------------------------------------------------------------------------------------

show='echo $PMIX_RANK:$CUDA_VISIBLE_DEVICES:${CUDA_DEVICE_ORDER-}'
CUDA_VISIBLE_DEVICES=2,GPU-0a job "ranks by GPU" 0 --map-by gpu -n 3 sh -c "$show"
is "see one each, of those that the user may see" "0:2:,1:GPU-0a:,2:2:" "$(sort <<<"$out" | paste -sd,)"
printf 'a gpus=2\nb gpus=1\n' >"$scratch/gpus"
job "GPUs of hosts" 0 "${many[@]}" --hostfile "$scratch/gpus" --map-by gpu sh -c "$show"
is "are as many as their list says" "0:0:PCI_BUS_ID,1:1:PCI_BUS_ID,2:0:PCI_BUS_ID" "$(sort <<<"$out" | paste -sd,)"
CUDA_VISIBLE_DEVICES= job "where there is none" 2 --map-by gpu true
like "that is said" "cannot be mapped by GPU" "$err"
CUDA_VISIBLE_DEVICES=5 job "without --map-by gpu" 0 -n 1 sh -c "$show"
is "nothing is changed" "0:5:" "$out"

# ---- Progress ------------------------------------------------------------------------------------------------------

job "a start that is fast" 0 "${many[@]}" --host a,b,c -n 3 true
is "is not talked about" "" "$err"
job "unless that is asked for" 0 "${many[@]}" --host a,b,c -n 3 --show-progress true
like "from its beginning to its end" "0 of 3 hosts are here after 0\.0 s; waiting for a, b and c.*3 ranks run on 3 hosts after" "${err//$'\n'/ }"
export SLOW=4
job "a start that waits for a host" 0 "${many[@]}" --host a,b,c -n 3 --show-progress true
like "says for which" "2 of 3 hosts are here after [0-9.]* s; waiting for c" "$err"
if command -v script >/dev/null; then
    new_mark
    out=$(TMPDIR=$mark timeout 60 script -qec "ncclxrun --rsh-agent $scratch/agent --host a,b,c -n 3 true" /dev/null </dev/null)
    like "a terminal is told without being asked" "2 of 3 hosts are here after [0-9.]* s; waiting for c" "$out"
    like "and how it went on" "3 ranks run on 3 hosts after" "$out"
    nothing_left "a job of a terminal leaves nothing"
else
    skip "a terminal is told without being asked" "script is not installed"
fi
job "a start that takes too long" 124 "${many[@]}" --host a,b,c -n 3 --timeout 2.5 true
like "tells what is missing" "--timeout.*2 of 3 hosts are here after .*waiting for c" "${err//$'\n'/ }"
unset SLOW

# ---- Where ranks are -----------------------------------------------------------------------------------------------

job "--timeout" 124 "${many[@]}" --host a:2,b:1 --timeout 2 -n 3 sh -c 'sleep 60'
is "lists the processes of each host" 2 "$(said 'on [ab]: rank [02] is process [0-9]')"
is "and what they do" 3 "$(said 'rank [012] on [ab]: not in the library: process [0-9]* (sh), which sleeps')"
job "--timeout in the library" 124 --timeout 3 -n 2 "$mp/life" receive 1
like "tells the call" "rank 1 on [^:]*: in ncclx_recv" "$err"
is "and says of no rank that it is elsewhere" 0 "$(said 'not in the library')"
job "--display pids" 0 "${many[@]}" --host a:1,b:1 --display pids -n 2 sh -c 'echo $PMIX_RANK $$; sleep 1'
is "names processes" "$(sort <<<"$out")" "$(sed -n 's/.*rank \([01]\) on [ab] is process \([0-9]*\).*/\1 \2/p' <<<"$err" | sort)"
job "--display pids with a host that has no ranks" 0 "${many[@]}" --host a:1,b:1 --display pids -n 1 sleep 1
is "names each process once" 1 "$(said 'is process')"
done_testing
