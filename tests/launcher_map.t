#!/bin/bash
# launcher_map.t - where ranks go: every case of tests/map_cases, in which nothing is started.
#
# A file of cases says, in this order and as often as it likes:
#     hosts                       the lines behind it, indented, are the hostfile
#     set NAME=VALUE              of the environment, until the next hosts
#     OPTIONS -> NODE: RANK RANK | NODE: RANK
#     OPTIONS -> ! WORDS          it is an error that says these words
# The last program may be left out. A rank is written RANK[/PROGRAM][@CPUS][*GPU]: the program when there are several, the cpus when
# the options have --bind-to or --display map, the GPU when it has one. Nodes without ranks are left out.
#
# launcher_map.t FILE prints the file with what comes out, for new cases: to be read before it is believed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cases=$top_srcdir/tests/map_cases
for name in ${!SLURM_*}; do unset "$name"; done
unset CUDA_VISIBLE_DEVICES
export HWLOC_SYNTHETIC="core:2 pu:1" # this machine, and every host that is not described
ln -s "$cases"/*.xml "$scratch"

# The map that ncclxrun prints, as a case writes it.
compact() {
    awk -v programs="$1" -v cpus="$2" '
        /^  node / { name = $2; sub(/:$/, "", name); nodes[++count] = name }
        /^  rank / {
            rank = $2; sub(/:$/, "", rank); node = $4; sub(/,$/, "", node)
            if (programs && match($0, /program [0-9]+/)) rank = rank "/" substr($0, RSTART + 8, RLENGTH - 8)
            if (cpus && match($0, /cpus [0-9,-]+/)) { list = substr($0, RSTART + 5, RLENGTH - 5); sub(/,$/, "", list); rank = rank "@" list }
            if (match($0, /GPU .*/)) rank = rank "*" substr($0, RSTART + 4)
            ranks[node] = ranks[node] " " rank
        }
        END { for (i = 1; i <= count; i++) if (nodes[i] in ranks) { printf "%s%s:%s", between, nodes[i], ranks[nodes[i]]; between = " | " } }'
}

# result OPTIONS: the map, or "! ERROR"
result() {
    local options programs= cpus= hostfile=()
    eval "options=($1)" # quotes as in a shell
    [[ " $1 " == *" : "* ]] && programs=1
    [[ $1 == *--bind-to* || $1 == *"--display map"* ]] && cpus=1
    [ -s "$scratch/hosts" ] && hostfile=(--hostfile hosts)
    if (cd "$scratch" && exec env ${settings[@]+"${settings[@]}"} ncclxrun --dry-run ${hostfile[@]+"${hostfile[@]}"} "${options[@]}" program) \
        >"$scratch/map" 2>"$scratch/error" </dev/null
    then compact "$programs" "$cpus" <"$scratch/map"
    else echo "! $(sed 's/^ncclxrun: //' "$scratch/error")"; fi
}

# read_cases FILE CALL: calls CALL with each line, and its options and result if it is a case.
read_cases() {
    local line inside=
    settings=()
    : >"$scratch/hosts"
    while IFS= read -r line; do
        case $line in
        hosts) inside=1; settings=(); : >"$scratch/hosts" ;;
        "    "*) [ -n "$inside" ] && echo "${line#    }" >>"$scratch/hosts" ;;
        "set "*) settings+=("${line#set }") ;;
        *" -> "*) "$2" "$line" "${line%% -> *}" "${line#* -> }"; continue ;;
        esac
        "$2" "$line"
    done <"$1"
}

write_case() {
    [ $# -gt 1 ] || { echo "$1"; return; }
    echo "$2 -> $(result "$2")"
}
check_case() {
    [ $# -gt 1 ] || return 0
    local got; got=$(result "$2")
    case $3 in
    "! "*) if [[ $got == "! "*"${3#! }"* ]]; then pass "$file: $2"; else fail "$file: $2" "expected: $3" "     got: $got"; fi ;;
    *) is "$file: $2" "$3" "$got" ;;
    esac
}

if [ $# -gt 0 ]; then read_cases "$1" write_case; exit; fi
for path in "$cases"/*.cases; do
    file=$(basename "$path" .cases)
    read_cases "$path" check_case
done
if [ "$tests_run" -ge 300 ]; then pass "there are hundreds of cases"; else fail "there are hundreds of cases" "$tests_run"; fi
done_testing
