#!/bin/bash
# What is installed works from any place: the wrappers and pkg-config compile programs that run, after the tree has been moved.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cc=$top_builddir/runtime/ncclxcc
cxx=$top_builddir/runtime/ncclxcxx
TEST_TIMEOUT=120

cat >"$scratch/hello.c" <<'C'
#include <ncclx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank = -1, size = -1;
    if (ncclx_init(&argc, &argv) || ncclx_comm_rank(NCCLX_COMM_WORLD, &rank) || ncclx_comm_size(NCCLX_COMM_WORLD, &size)) return 1;
    printf("%s %d/%d\n", GREETING, rank, size);
    return ncclx_finalize();
}
C
cp "$scratch/hello.c" "$scratch/hello.cpp"
flags=(-Wall -Wextra -Wpedantic -Werror '-DGREETING="it'\''s a $HOME"')
greeting="it's a \$HOME 0/1"

# ---- The wrapper itself -----------------------------------------------------------------------------------------

runs "--version" 0 "$cc" --version
like "it names itself and the version" '^ncclxcc \(ncclx\) [0-9]+\.[0-9]+\.[0-9]+$' "$out"
runs "--help" 0 "$cc" --help
like "help goes to standard output" "^usage: ncclxcc" "$out"
runs "no arguments are an error" 2 "$cc"
like "which says what to do" "ncclxcc --help" "$err"
NCCLX_CC="other -m64" runs "--show runs nothing" 0 "$cc" --show -o x "a b.c" "it's" ''
like "the compiler can be another, with arguments" "^other -m64 -I/" "$out"
like "words are quoted" " -o x 'a b.c' 'it'\\\\''s' '' -L/" "$out"
like "libraries come last" " -L/[^ ]* -lncclx -Wl,-rpath,/[^ ]*$" "$out"
runs "--show -c" 0 "$cc" --show -c x.c
is "nothing to link without linking" "" "$(grep -o -e -lncclx <<<"$out")"
runs "a compiler's failure is the wrapper's" 1 "$cc" -c "$scratch/missing.c"
runs "the compiler's own version" 0 "$cc" -dumpversion

# ---- Uninstalled ------------------------------------------------------------------------------------------------

runs "C compiles in the build folder" 0 "$cc" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c"
runs "and runs" 0 "$scratch/hello"
is "with arguments as given" "$greeting" "$out"
ln -s "$cc" "$scratch/link"
runs "a link to the wrapper works" 0 "$scratch/link" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c"

# ---- Installed and moved ----------------------------------------------------------------------------------------

prefix=$("$top_builddir/config.status" --config >/dev/null 2>&1; sed -n 's/^prefix = //p' "$top_builddir/Makefile")
runs "make install" 0 make -C "$top_builddir" -s install DESTDIR="$scratch/stage"
moved=$scratch/elsewhere
mv "$scratch/stage$prefix" "$moved" || fail "the installed tree is under $prefix"
library=$(dirname "$(find "$moved" -name libncclx.so.0 | head -1)")

runs "C compiles after the move" 0 "$moved/bin/ncclxcc" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c"
runs "and runs" 0 "$scratch/hello"
is "alone as a job of one" "$greeting" "$out"
is "with the moved library" "$library/libncclx.so.0" "$(ldd "$scratch/hello" | sed -n 's/.*libncclx.so.0 => \([^ ]*\).*/\1/p')"
runs "the moved launcher starts it" 0 "$moved/bin/ncclxrun" -n 2 "$scratch/hello"
is "as a job of two" "it's a \$HOME 0/2
it's a \$HOME 1/2" "$(sort <<<"$out")"

if command -v "${CXX:-c++}" >/dev/null; then
    runs "C++ compiles after the move" 0 "$moved/bin/ncclxcxx" "${flags[@]}" -o "$scratch/hello++" "$scratch/hello.cpp"
    runs "and runs" 0 "$scratch/hello++"
    is "with the same output" "$greeting" "$out"
else
    skip "C++ compiles after the move" "no C++ compiler"
fi

export PKG_CONFIG_PATH=$library/pkgconfig
pc=$(pkg-config --cflags --libs ncclx)
like "pkg-config finds the moved tree" "$moved" "$(realpath -m "${pc#-I}" | head -1)"
# shellcheck disable=SC2086 # several words
runs "pkg-config's flags compile" 0 "${CC:-cc}" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c" $pc
LD_LIBRARY_PATH=$library runs "and the program runs" 0 "$scratch/hello"
# shellcheck disable=SC2046 # several words
runs "pkg-config --static asks for nothing that is not there" 0 \
    "${CC:-cc}" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c" $(pkg-config --static --cflags --libs ncclx)
if [ -e "$library/libncclx.a" ]; then
    # shellcheck disable=SC2046 # several words
    runs "and suffices for the static library" 0 "${CC:-cc}" "${flags[@]}" -o "$scratch/hello" "$scratch/hello.c" \
        $(pkg-config --static --cflags --libs ncclx | sed "s|-lncclx|$library/libncclx.a|")
    runs "with which the program runs" 0 "$scratch/hello"
    is "without the shared one" "" "$(ldd "$scratch/hello" | grep libncclx)"
else
    skip "and suffices for the static library" "configured without it"
fi
is "pkg-config knows the version" "$("$cc" --version | sed 's/.* //')" "$(pkg-config --modversion ncclx)"

# ---- What else is installed -------------------------------------------------------------------------------------

exported=$(nm -D --defined-only "$library/libncclx.so.0" | sed 's/.* //; s/@.*//' | grep -v '^NCCLX_' | sort)
declared=$(grep -o '__typeof__(ncclx_[a-z0-9_]*) pncclx_[a-z0-9_]*' "$moved/include/ncclx.h" | sed 's/.*(//; s/) /\n/' | sort)
is "the library exports what the header declares, and nothing else" "$declared" "$exported"
is "the ncclx_ names are weak, so that a tool can replace them" "" \
    "$(nm -D --defined-only "$library/libncclx.so.0" | sed -n 's/.* T \(ncclx_[^@]*\).*/\1/p')"
if [ -f "$library/libncclx.a" ]; then
    is "nor does the static library" "$declared" "$(nm -g --defined-only "$library/libncclx.a" | awk 'NF == 3 { print $3 }' | sort)"
    # A program may use names that the library uses inside.
    cp "$scratch/hello.c" "$scratch/clash.c"
    for name in topo pml coll osc runtime bootstrap; do
        printf 'int %s_init(void);\nint %s_init(void) { return 1; }\n' $name $name
    done >>"$scratch/clash.c"
    # shellcheck disable=SC2046 # several words
    runs "a program with the same names links with it" 0 "${CC:-cc}" "${flags[@]}" -I"$moved/include" -o "$scratch/clash" \
        "$scratch/clash.c" "$library/libncclx.a" $(pkg-config --libs pmix hwloc) -lm -lpthread
    runs "and runs" 0 ncclxrun -n 2 "$scratch/clash"
else
    skip "nor does the static library" "it is not built"
fi
lacking=
for name in $(grep '^ncclx' <<<"$declared"); do [ -s "$moved/share/man/man3/$name.3" ] || lacking+=" $name"; done
is "each function has an installed page" "" "$lacking"
done_testing
