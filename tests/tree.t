#!/bin/bash
# Rules of the house that no compiler checks: who includes whom, sizes of files, what may be said where.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$top_srcdir" || exit 1
nothing() { if [ -z "$2" ]; then pass "$1"; else fail "$1" "$2"; fi; }

folders="launcher bootstrap topo pml coll osc runtime"
mapfile -t sources < <(find $folders examples tests -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' | sort)
[ ${#sources[@]} -gt 10 ] || fail "the sources are there" "only ${#sources[@]} files found in $PWD"

# ---- Who includes whom ------------------------------------------------------------------------------------------

# The folders that a folder may use, besides itself and runtime/base; of each only its interface header. The exchange of
# keys, which only daemons use, and authenticated sockets, which not all need, have one of their own.
may_use() {
    case $1 in
    runtime/base) ;;
    topo | bootstrap) ;;
    pml) echo "topo bootstrap" ;;
    coll | osc) echo "pml topo bootstrap" ;;
    runtime) echo "coll osc pml topo bootstrap" ;;
    launcher) echo "topo bootstrap" ;;
    esac
}
# FILE: INCLUDED of each include of a header of ours that the rules forbid. Included paths begin at the root of the tree.
forbidden_includes() {
    local file=$1 folder=${1%%/*} included other
    case $file in runtime/base/*) folder=runtime/base ;; esac
    sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file" | while read -r included; do
        case $included in
        */*) ;;
        config.h) continue ;;
        *) echo "$file: \"$included\" is not a path from the root of the tree"; continue ;;
        esac
        other=${included%%/*}
        case $included in runtime/base/* | runtime/ncclx.h) continue ;; esac
        [ "$other" != "$folder" ] || continue
        if [ "$folder" = runtime/base ]; then echo "$file: base stands on nothing else, but uses $included"; continue; fi
        case " $(may_use "$folder") " in
        *" $other "*) [ "$included" = "$other/$other.h" ] || [[ "$folder $included" =~ ^(launcher bootstrap/kvx/kvx|(launcher|pml) bootstrap/oob/oob)\.h$ ]] || echo "$file: $included is private to $other" ;;
        *) echo "$file: $folder may not use $other" ;;
        esac
    done
}
nothing "folders use each other one way, by interface headers" "$(for file in "${sources[@]}"; do
    case $file in tests/* | examples/*) ;; *) forbidden_includes "$file" ;; esac; done)"
# keys.c speaks to bootstrap, which has no public face, ten.c asks pml what it holds, and deadline.c changes the deadline.
nothing "examples and programs of several ranks use the public interface only" \
    "$(grep -nE '^ *# *include *"(runtime/base|launcher|bootstrap|topo|pml|coll|osc)/' examples/*.[ch] examples/*/*.[ch] tests/mp/*.[ch] 2>/dev/null |
        grep -vE '^tests/mp/(keys\.c:.*"bootstrap/bootstrap|ten\.c:.*"pml/pml|deadline\.c:.*"runtime/base/base)\.h"')"

# CUDA and verbs stay in their corners; Slurm and hwloc types do, too.
stays_in() { # stays_in HEADER-REGEX FOLDER-REGEX
    grep -lE "^ *# *include *<$1" "${sources[@]}" | grep -vE "^($2)"
}
nothing "hwloc is known to topo and the launcher only" "$(stays_in 'hwloc' 'topo/|launcher/|tests/')"
nothing "PMIx is known to bootstrap and the launcher only" "$(stays_in 'pmix' 'bootstrap/|launcher/|tests/')"
nothing "libsodium is known to authenticated sockets only" "$(stays_in 'sodium' 'bootstrap/oob/')"

# ---- One code in every build --------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
nothing "the library has nothing that NDEBUG takes away, so that what tests show of one build holds for others" \
    "$(grep -rnE '\bassert(_perror)? *\(|\bassert\.h|\bNDEBUG\b' $folders --include='*.[ch]' --include='*.cc' --include='*.cu')"

# ---- Each file --------------------------------------------------------------------------------------------------

nothing "no file is longer than 800 lines" "$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 800')"
nothing "each file begins by saying what it is" "$(for file in "${sources[@]}"; do
    head -1 "$file" | grep -qE '^(/\*|//) ' || echo "$file"; done)"
nothing "each folder's interface says what the folder owns" "$(for folder in bootstrap topo pml coll osc; do
    sed '/\*\//q' "$folder/$folder.h" | grep -q 'Owns:' || echo "$folder/$folder.h"; done)"
nothing "no paths of somebody's machine" \
    "$(grep -rnE '/(home|Users|work)/[a-z]' --include='*.[ch]' --include='*.mk' --include='*.t' --include='*.am' --include='*.ac' \
        --include='*.md' --include='*.[137]' --include='*.sh' . 2>/dev/null | grep -vE '^\./(build|m4|autom4te)|tests/tree\.t')"
nothing "no unfinished business" "$(grep -nE '\b(TODO|FIXME|XXX|HACK)\b' "${sources[@]}")"
nothing "no blanks at ends of lines" "$(grep -nE '[[:blank:]]+$' "${sources[@]}")"
# Programs of several ranks that every.sh runs over every way, or says why it does not.
nothing "each program of several ranks is known to every.sh" "$(for file in tests/mp/*.c; do
    name=$(basename "$file" .c)
    grep -q "^mp_programs += tests/mp/$name\$" tests/mp/local.mk || continue
    sed -n '/^# Not here/,/^#$/p; /each [0-9]/p; /\/mp\//p' tests/every.sh | grep -qw "$name" || echo "$name"; done)"
nothing "each script can be executed" "$(for file in tests/*.t quickstart .ci/run; do [ -x "$file" ] || [ ! -e "$file" ] || echo "$file"; done)"
done_testing
