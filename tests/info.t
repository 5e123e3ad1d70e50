#!/bin/bash
# ncclx-info: its answers, and what it says to those who ask wrongly.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
info=$top_builddir/runtime/ncclx-info
export HOME=$scratch
unset XDG_CONFIG_HOME

runs "--version" 0 "$info" --version
like "names the version" "^ncclx [0-9]+\.[0-9]+\.[0-9]+$" "$out"
runs "without an option" 0 "$info"
like "says what works" "shared segments: " "$out"
like "tries cross-memory attach" "cross-memory attach: (allowed|refused)" "$out"
like "looks for libibverbs" "verbs: libibverbs.so.1 (not )?found" "$out"
runs "--topo of ranks" 0 ncclxrun -n 4 sh -c '"$0" --topo >"$1.$PMIX_RANK"' "$info" "$scratch/topo"
like "tells how far the others are" "from rank 2:.  self +1 rank: 2.  node +3 ranks: 0-1 3" "$(cat "$scratch/topo.2")"
runs "--topo" 0 "$info" --topo
like "draws cores" "core 0" "$out"

runs "--config" 0 env NCCLX_TIMEOUT=1.5 "$info" --config
like "shows a value and its source" "NCCLX_TIMEOUT = 1.5  \(environment; default 0\)" "$out"
like "shows a default" "NCCLX_ERRORS = fatal  \(default\)" "$out"
mkdir -p "$scratch/.config"
printf '# mine\r\nTIMEOUT = 7\r\nSPIN=3' >"$scratch/.config/ncclx.conf"
runs "--config with a user's file" 0 env NCCLX_SPIN=4 "$info" --config
like "a file counts" "NCCLX_TIMEOUT = 7  \(user file" "$out"
like "the environment counts more" "NCCLX_SPIN = 4  \(environment" "$out"
printf '\nTIMEOUT = soon\n' >"$scratch/.config/ncclx.conf"
runs "a bad file" 2 "$info" --config
is "names file, line and what is valid" \
    "ncclx-info: $scratch/.config/ncclx.conf:2: NCCLX_TIMEOUT is \"soon\"; valid is seconds from 0 to 1e+09, such as 2 or 0.5" "$err"
rm "$scratch/.config/ncclx.conf"
runs "a name that is a slip" 0 env NCCLX_TIMOUT=3 "$info" --config
like "is warned about" "NCCLX_TIMOUT is ignored; did you mean NCCLX_TIMEOUT\?" "$err"

runs "--coll" 0 "$info" --coll --ranks 5
like "lists algorithms" "Algorithms for 5 ranks.*allreduce" "${out//$'\n'/ }"

runs "--memory" 0 "$info" --memory
like "shows the memory of a job of one" "in a job of 1 .* base +[1-9][0-9]* +[1-9][0-9]* .*no connections" "${out//$'\n'/ }"
# row TRANSPORT NAME: the three figures of a row, after the start, messages, and large data.
row() { awk -v by="connections by $1" -v name="  $2 " 'NF == 0 { on = 0 } index($0, by) == 1 { on = 1 } on && index($0, name) == 1 { print $(NF-2), $(NF-1), $NF }' <<<"$out"; }
# grown AREA...: by so many bytes, from the start to the end.
grown() { awk -v areas=" $* " 'NF == 0 { exit } /^bytes of an area/ { on = 1 } on && index(areas, " " $1 " ") { sum += $4 - $2 } END { print sum }' <<<"${out#*$'\n\n'}"; }
runs "--memory of ranks that share memory" 0 ncclxrun -n 3 "$info" --memory
is "counts connections" "0 2 2" "$(row shm peers)"
is "without descriptors" "0 0 0" "$(row shm descriptors)"
like "with their rings" "^0 [1-9][0-9]{4,} [1-9][0-9]{4,}$" "$(row shm 'bytes of rings')"
like "and none of the others" "connections by tcp +none" "$out"
lanes() { # lanes LIMITS LANES: of four ranks, of which each opens LANES to each other, the fast one among them
    NCCLX_TRANSPORTS=tcp NCCLX_DQPLB_NODE=$1 runs "--memory of ranks with sockets, $1" 0 ncclxrun -n 4 "$info" --memory
    is "counts connections" "0 3 3" "$(row tcp peers)"
    is "that are open" "0 3 3,0 0 0" "$(row tcp open),$(row tcp resting)"
    is "their lanes" "0 0 $((3 * 2 * $2))" "$(row tcp lanes)"
    is "and their sockets" "0 3 $((3 + 3 * 2 * $2))" "$(row tcp descriptors)"
    like "no others" "connections by shm +none" "$out"
    read -r _ small large <<<"$(row tcp 'bytes of all')"
    if [ "$small" -gt 0 ] && [ "$large" -gt "$small" ]; then pass "bytes grow with what is used"; else fail "bytes grow with what is used" "$out"; fi
    is "a peer has its third of them" "0 $((small / 3)) $((large / 3))" "$(row tcp 'bytes a peer')"
    if [ "$large" -le "$(grown pml tcp)" ] && [ "$large" -gt $(($(grown pml tcp) / 2)) ]; then pass "as areas say, too"
    else fail "as areas say, too" "$large of $(grown pml tcp)" "$out"; fi
    is "each peer has a line, or shares it" "tcp open $((2 * $2)) $((1 + 2 * $2))" \
        "$(awk 'NF == 0 { on = 0 } on { print $2, $3, $4, $5 } /^peer / { on = 1 }' <<<"$out" | sort -u)"
}
lanes 1:4:64K 2
lanes 3:4:64K 4
NCCLX_TRANSPORTS=tcp runs "--memory after large data over lanes" 0 ncclxrun -n 2 "$info" --memory
like "shows the path: round trip, rate, window" 'path to +round trip us +MB/s +window.1 +[0-9.]+ +[0-9.]+ +[1-9][0-9]*' "${out//$'\n'/.}"
# The window is between two segments a lane and all of the limits: where these are the same, each number of them shows.
for limits in 1:1:1000=1000 1:2:1000=2000 1:2:3000=6000 3:2:1K=6144; do
    NCCLX_TRANSPORTS=tcp NCCLX_DQPLB_NODE=${limits%=*} runs "--memory with limits ${limits%=*}" 0 ncclxrun -n 2 "$info" --memory
    is "the window is theirs" "${limits#*=}" "$(awk '/^path to/ { getline; print $NF }' <<<"$out")"
done
NCCLX_TRANSPORTS=tcp NCCLX_DQPLB_ADAPT=off runs "--memory of ranks that do not measure it" 0 ncclxrun -n 2 "$info" --memory
if [[ $out == *"path to"* ]]; then fail "shows none" "$out"; else pass "shows none"; fi
NCCLX_TRANSPORTS=mix runs "--memory of ranks with both" 0 ncclxrun -n 4 "$info" --memory
is "counts both" "0 1 1,0 2 2" "$(row shm peers),$(row tcp peers)"
NCCLX_TRANSPORTS=tcp runs "--memory where descriptors are few" 0 ncclxrun -n 7 bash -c "ulimit -n 32 && exec '$info' --memory"
like "counts connections that rest" "^0 [1-9] [1-9]$" "$(row tcp resting)"
like "beside those that are open" "^0 [1-4] [1-4]$" "$(row tcp open)"

# wrong NAME TEXT ARGUMENT...: status 2, one or two lines that name what is wrong, and no answer.
wrong() {
    local name=$1 text=$2; shift 2
    runs "$name" 2 "$info" "$@"
    like "$name is named" "$text" "$err"
    is "$name: no answer, few lines" "0 1" "${#out} $(($(wc -l <<<"$err") <= 2))"
}
wrong "an unknown option" "unrecognized option '--tpo'" --tpo
wrong "an argument" "not here" here
wrong "an unknown form of --config" "=list" --config=list
for bad in 0 -1 x 5x '' 100000001 99999999999999999999; do wrong "--ranks '$bad'" "--ranks takes a number" --coll --ranks "$bad"; done
wrong "--ranks without a number" "requires an argument" --ranks
runs "a bad variable" 2 env NCCLX_SHM_RING=1K "$info" --config
like "is named" 'NCCLX_SHM_RING is "1K"; valid is' "$err"
if [ -w /dev/full ]; then
    "$info" --version >/dev/full 2>"$scratch/err"
    is "output that cannot be written is an error" 1 $?
else
    skip "output that cannot be written is an error" "no /dev/full"
fi
done_testing
