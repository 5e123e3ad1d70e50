#!/bin/bash
# ncclx-perf and its report: that they measure what they say, never how fast.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
perf=$top_builddir/tests/perf/ncclx-perf
report=$top_builddir/tests/perf/report

# Three rounds in which the fastest peer takes twice, three times and twice as long.
cat >"$scratch/lines" <<'LINES'
ncclx latency 2 8 1.0 1.0 1.0
mpich latency 2 8 4.0 2.0 2.0
openmpi latency 2 8 9.0 9.0 9.0
ncclx latency 2 8 1.0 1.0 1.0
mpich latency 2 8 8.0 8.0 8.0
openmpi latency 2 8 3.0 3.0 3.0
a line that is none
ncclx latency 2 8 2.0 2.0 2.0
mpich latency 2 8 4.0 4.0 4.0
openmpi latency 2 8 5.0 5.0 5.0
ncclx barrier 2 0 1.5
floor latency 2 8 0.5
LINES
"$report" --json "$scratch/json" --svg "$scratch/svg" <"$scratch/lines" >"$scratch/text"
like "the ratio is the median over rounds of the fastest peer's" ' 8 +1\.000 +4\.000 +5\.000 +0\.500 +2\.00 \[2\.00, 3\.00\]' \
    "$(cat "$scratch/text")"
like "a test without peers has no ratio" ' 0 +1\.500 +- +- +-$' "$(cat "$scratch/text")"
like "the JSON says the same" '"ncclx_us": 1\.0000, "mpich_us": 4\.0000, "openmpi_us": 5\.0000, "floor_us": 0\.5000, "ratio": 2\.0000' \
    "$(cat "$scratch/json")"
is "the plot has one line" 1 "$(grep -c '<polyline' "$scratch/svg")"

like "a ratio is taken batch by batch" ' 16 +9\.000 +18\.000 +2\.00 \[2\.00, 2\.00\]' \
    "$(printf '%s\n' 'ncclx put 2 16 1 9 50' 'mpich put 2 16 2 18 100' | "$report")"
like "and with iperf3, with an interval" 'at least 80 % \[50, 90\] of the bandwidth of iperf3 .at 1048576 bytes' \
    "$(printf '%s\n' 'ncclx bandwidth 2 1048576 10' 'ncclx bandwidth 2 1048576 10' 'ncclx bandwidth 2 1048576 10' 'iperf3 bandwidth 2 1048576 8' \
        'iperf3 bandwidth 2 1048576 5' 'iperf3 bandwidth 2 1048576 9' 'ncclx bandwidth 2 524288 10' 'iperf3 bandwidth 2 524288 1' | "$report")"
like "large messages are compared with one copy" 'at least 80 % \[80, 80\] of the bandwidth of one copy .at 1048576 bytes' \
    "$(printf '%s\n' 'ncclx put 2 1048576 10 10' 'copy put 2 1048576 8 8' 'ncclx put 2 2097152 20 20' 'copy put 2 2097152 20 20' | "$report")"

# Ratios of 1, 2, ... Of nine rounds the second to the eighth hold the median with 96.1 %, the third to the seventh with 82 %: 95 % lies
# between them. Six make 96.9 %; four, 87.5 %; one, nothing.
rounds() { for ((i = 1; i <= $1; i++)); do printf '%s\n' "ncclx put 2 8 1" "mpich put 2 8 $i"; done | "$report"; }
like "the interval of nine rounds lies just inside the second and the eighth" 'ncclx \[95 %\].* 5\.00 \[2\.23, 7\.77\]' "$(rounds 9 | tr '\n' ' ')"
like "that of six just inside all" 'ncclx \[95 %\].* 3\.50 \[1\.36, 5\.64\]' "$(rounds 6 | tr '\n' ' ')"
like "four rounds make no 95 %" 'ncclx \[88 %\].* 2\.50 \[1\.00, 4\.00\]' "$(rounds 4 | tr '\n' ' ')"
like "one makes nothing" 'ncclx \[0 %\].* 1\.00 \[1\.00, 1\.00\]' "$(rounds 1 | tr '\n' ' ')"

# Jobs that take turns: two, and one whose partner has ended without a word.
floor=$top_builddir/tests/perf/perf-floor
no_turns() { truncate -s 0 "$scratch/turns"; truncate -s 4096 "$scratch/turns"; }
in_turns() { # in_turns NAME PROGRAM COLUMN FIRST SECOND: two jobs of it, with these tests
    no_turns
    timeout 30 "$2" "$4" 4 64 5 "$scratch/turns" 0 2 >"$scratch/first" &
    runs "$1" 0 timeout 30 "$2" "$5" 4 64 5 "$scratch/turns" 1 2
    is "has measured each size" 5 "$(grep -c "^$3 $5 2 " <<<"$out")"
    wait $!
    is "so has the other" "0 5" "$? $(grep -c "^$3 $4 2 " "$scratch/first")"
}
in_turns "a job in turns" "$floor" copy put get
no_turns
printf '\1' | dd of="$scratch/turns" bs=1 seek=21 conv=notrunc status=none
runs "a job whose partner is gone" 0 timeout 30 "$floor" latency 4 64 5 "$scratch/turns" 0 2

# The bare socket, which takes turns too; and what ncclx needs beside it.
no_turns
printf '\1' | dd of="$scratch/turns" bs=1 seek=20 conv=notrunc status=none
runs "a job that is given up ends" 1 timeout 30 "$floor" latency 4 64 5 "$scratch/turns" 0 2
in_turns "a bare socket in turns" "$top_builddir/tests/perf/perf-socket" socket latency bandwidth
like "ncclx is compared with it" '1\.50 \[1\.50, 1\.50\] \(at 8 bytes\) to 2\.00 \[2\.00, 2\.00\] \(at 16 bytes\) times' \
    "$(printf '%s\n' 'ncclx latency 2 8 3 3' 'socket latency 2 8 2 2' 'ncclx latency 2 16 8 8' 'socket latency 2 16 4 4' | "$report")"

# A path without compilers of peers: ncclx alone.
mkdir "$scratch/bin"
for tool in bash dirname readlink nproc seq shuf sed cat mkdir timeout tee date printf env rm dd sleep truncate; do
    ln -s "$(command -v "$tool")" "$scratch/bin/$tool" 2>/dev/null
done
runs "all tests run" 0 env PATH="$scratch/bin" "$perf" --rounds 1 --ms 1 --least 4 --most 4096 --out "$scratch/results"
for test in $("$perf" --list); do
    like "$test was measured on two ranks" "(^|"$'\n'")$test, 2 ranks" "$out"
done
runs "tests over TCP run" 0 env PATH="$scratch/bin" "$perf" --tcp --rounds 1 --ms 1 --least 4 --most 4096 --out "$scratch/results" latency bandwidth
like "beside a bare socket" 'bytes +(ncclx +socket|socket +ncclx)' "$out"
# Two hosts, which see /run/cluster/shared.
if ! "$top_srcdir/tests/hosts-cluster" 2 true 2>"$scratch/err"; then
    skip "tests between hosts run" "$(cat "$scratch/err")"
else
    runs "tests between hosts run" 0 env NCCLX_LOG=warn,pml:info "$top_srcdir/tests/hosts-cluster" 2 "$perf" \
        --hosts h1,h2 --network net0 --rounds 1 --ms 1 --least 524288 --most 1048576 --out /run/cluster/shared/results bandwidth
    like "on both" 'rank 0 on h1: pml: info: passed by tcp: [0-9]{6,}' "$err"
    like "on the other, too" 'rank 1 on h2: pml: info: passed by tcp: ' "$err"
    unlike "by nothing else" 'passed by shm' "$err"
    like "beside a bare socket" ' 524288 .* 1048576 .*times the time of a bare socket' "$(tr '\n' ' ' <<<"$out")"
    if command -v iperf3 >/dev/null; then
        like "and iperf3" 'from 1 MiB on at least [0-9]+ % \[[0-9]+, [0-9]+\] of the bandwidth of iperf3' "$out"
    else
        skip "and iperf3" "iperf3 is not installed"
        like "whose absence is said" 'without iperf3' "$err"
    fi
fi

# Libraries of which one hangs in its turn, one ends before it, and one after all have measured does not end. perf-floor stands for the last.
stage=$scratch/build/tests/perf
mkdir -p "$stage" "$scratch/hanging"
ln -s "$top_builddir"/{launcher,runtime,.libs} "$scratch/build"
ln -s "$top_builddir"/tests/perf/{perf-floor,perf-ncclx,perf-watch,report,.libs} "$stage"
cp "$perf" "$stage"
cat >"$scratch/hanging/mpiexec.hydra" <<'TEXT'
#!/bin/bash
while [[ $1 != */perf-mpich && $1 != */perf-openmpi ]]; do shift; done
exec "$@"
TEXT
cat >"$stage/perf-mpich" <<'TEXT'
#!/bin/bash
[ "$MPICH_DOES" = start_not ] || printf '\1' | dd of="$5" bs=1 seek=$((4 + $6)) conv=notrunc status=none # struct turns_file's arrived
[ "$MPICH_DOES" = die ] || exec sleep 1000
exit 3
TEXT
cat >"$stage/perf-openmpi" <<'TEXT'
#!/bin/bash
"$(dirname "$0")/perf-floor" "$@"
exec sleep 1000
TEXT
chmod +x "$scratch/hanging/mpiexec.hydra" "$stage/perf-mpich" "$stage/perf-openmpi"
hangs() { # hangs NAME: what the stand-in of MPICH does is MPICH_DOES
    runs "$1" 0 env PATH="$scratch/hanging:$scratch/bin" "$stage/ncclx-perf" --rounds 1 --ms 1 --least 8 --most 16 --patience 4 \
        --out "$scratch/results" latency
    like "the others measure on" ' 8 .* 16 +[0-9.]+' "$(tr '\n' ' ' <<<"$out")"
}
export MPICH_DOES=die
hangs "a library that dies"
like "is named" 'mpich, latency ended with status 3' "$err"
ln -s mpiexec.hydra "$scratch/hanging/mpirun.openmpi"
export MPICH_DOES=hang
hangs "a library that keeps its turn, and one that does not end"
like "the first is ended" 'mpich, latency: it kept its turn for 4 s, and is ended' "$err"
like "the second, too" 'openmpi, latency: it measured, but did not end for 4 s, and is ended' "$err"
like "with what it has measured" ' floor ' "$out"
rm "$scratch/hanging/mpirun.openmpi"
export MPICH_DOES=start_not
hangs "a library that does not start"
like "is ended" 'mpich, latency: it did not start for 4 s, and is ended' "$err"
is "nothing of them is left" "" "$(pgrep -f '^sleep 1000$')"
unset MPICH_DOES

runs "hosts are counted" 2 "$perf" --hosts h1,h2,h3 latency
runs "start is measured" 0 env PATH="$scratch/bin" "$perf" --start --ranks 3 --rounds 2 --out "$scratch/results"
is "once a round" 2 "$(grep -c '^ncclx start 3 0 [1-9]' "$scratch/results/lines.txt")"
runs "a setting is compared with none" 0 env NCCLX_TRANSPORTS=tcp "$perf" --rounds 1 --ms 1 --least 524288 --most 1048576 \
    --variant NCCLX_PROTOCOL=copy --variant NCCLX_LOG=warn,pml:info --out "$scratch/results" latency put
like "with a ratio, and without other libraries" 'bytes +(ncclx +variant|variant +ncclx) +best.* 524288 +[0-9.]+ +[0-9.]+ +[0-9.]+ \[' "$(tr '\n' ' ' <<<"$out")"
like "it is in force" 'large messages to rank [01] are copied' "$err"
like "it is named" 'variant is ncclx with NCCLX_PROTOCOL=copy NCCLX_LOG' "$err"
runs "an unknown test is refused" 2 "$perf" speed
like "by name" "unknown test speed" "$err"
for bad in "--rounds 0" "--rounds x" "--ranks 1" "--least" "--wrong" "--ms -1" "--variant" "--variant copy" "--patience 0"; do
    runs "$bad is refused" 2 "$perf" $bad
done
done_testing
