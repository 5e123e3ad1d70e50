#!/bin/bash
# The library exports what the header declares and nothing else; the header compiles alone in C and C++.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
header=$top_srcdir/runtime/ncclx.h
library=$top_builddir/.libs/libncclx.so
command -v nm >/dev/null || skip_all "nm is missing"

declared=$(${CC:-cc} -E -P "$header" | tr -d '\n' | grep -oE '\bncclx_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
expected=$( (echo "$declared"; sed 's/^/p/' <<<"$declared") | sort)
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
is "every symbol has version NCCLX_0" "" "$(grep -v '@@NCCLX_0$' <<<"$exported" | grep -v '^NCCLX_0')"
is "exported functions are those of the header and their twins" "$expected" "$(sed -n 's/@@NCCLX_0$//p' <<<"$exported" | sort)"
is "the names of the header are weak" "$declared" \
    "$(nm -D --defined-only "$library" | awk '$2 == "W" { print $3 }' | sed 's/@@.*//' | sort)"
like "SONAME" 'libncclx\.so\.0$' "$(readlink -f "$library" | sed 's/\.0\.0$//')"
is "the header names a twin for every function" "$declared" \
    "$(grep -o 'extern __typeof__(ncclx_[a-z0-9_]*) pncclx_[a-z0-9_]*;' "$header" | sed 's/.*(//; s/).*//' | sort)"

# Collectives are called by coll_call.c, in each form.
untested() {
    local name call
    for name in $declared; do
        call=$(sed -n 's/^ncclx_coll_\(i\|\)\([a-z_]*\)$/\2/p' <<<"$name" | sed 's/_init$//')
        grep -qw "$name" "$top_srcdir"/tests/mp/*.c "$top_srcdir"/tests/unit/*.c || { [ -n "$call" ] && grep -q "IN_FORM($call," "$top_srcdir/tests/mp/coll_call.c"; } || echo "$name"
    done
}
is "every function is called by a test" "" "$(untested)"

echo '#include <ncclx.h>' >"$scratch/alone.c"
cp "$scratch/alone.c" "$scratch/alone.cc"
compiles() { # compiles COMPILER ARGUMENT...
    command -v "$1" >/dev/null || { skip "$*" "$1 is missing"; return; }
    runs "$*" 0 "$1" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$top_srcdir/runtime" "${@:2}"
}
for standard in gnu11 c11 gnu17; do
    compiles gcc -std=$standard "$scratch/alone.c"
    compiles clang -std=$standard "$scratch/alone.c"
done
for standard in gnu++11 c++17 c++20; do
    compiles g++ -std=$standard "$scratch/alone.cc"
    compiles clang++ -std=$standard "$scratch/alone.cc"
done
done_testing
