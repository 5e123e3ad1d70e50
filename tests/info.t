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
like "shows the memory of a job of one" "in a job of 1:.*base +[0-9]+ +[0-9]+ +[0-9]+" "${out//$'\n'/ }"

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
