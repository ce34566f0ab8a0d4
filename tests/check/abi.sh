#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the binary interface with the lists in tests/abi: programs that are already built depend on it.
#   symbols.txt  the exports of libcohort.so, each with its version; the same as the public headers declare
#   layouts.txt  size of each public struct and offset of each field, on 64-bit Linux; structs only grow at the end
# abi.sh --write makes both lists anew from headers; a line that vanishes or changes there breaks those programs.
set -euo pipefail
export LC_ALL=C
work=$BUILD/tests/abi
mkdir -p "$work"
status=0

# All headers without comments and line ends; macros are left as they are.
for header in include/cohort/*.h; do
  ${CC:-cc} -xc -std=c99 -w -fpreprocessed -dD -E -P "$header"
done | grep -v '^ *#' | tr '\n' ' ' >"$work/headers.txt"

# A declaration starts with COHORT_API; its name is the word before the first parenthesis.
sed 's/COHORT_API/\n&/g' "$work/headers.txt" | sed 's/COHORT_MUST_CHECK//' |
  sed -nE 's/^COHORT_API[^;(]*[ *](cohort_[a-z0-9_]+) *\(.*/\1 COHORT_0/p' | sort -u >"$work/declared.txt"

# A program that prints the layout of every struct with a body.
{
  printf '#include <stddef.h>\n#include <stdio.h>\n#include "cohort/cohort.h"\nint main(void) {\n'
  sed 's/typedef struct/\n&/g' "$work/headers.txt" |
    sed -nE 's/^typedef struct ([a-z0-9_]+) \{([^}]*)\}.*/\1;\2/p' | sort -u |
    while IFS= read -r line; do
      name=${line%%;*}
      printf '  printf("%s %%zu\\n", sizeof(%s));\n' "$name" "$name"
      sed -E 's/\[[^]]*\]//g; s/;/\n/g' <<<"${line#*;}" | sed -nE 's/.*[ *]([a-z0-9_]+) *$/\1/p' |
        while IFS= read -r field; do
          printf '  printf("%s.%s %%zu\\n", offsetof(%s, %s));\n' "$name" "$field" "$name" "$field"
        done
    done
  printf '  return 0;\n}\n'
} >"$work/layouts.c"
${CC:-cc} -std=c99 -Iinclude "$work/layouts.c" -o "$work/layouts"
"$work/layouts" >"$work/layouts.txt"

if [[ ${1:-} == --write ]]; then
  cp "$work/declared.txt" tests/abi/symbols.txt
  cp "$work/layouts.txt" tests/abi/layouts.txt
  exit 0
fi

same() { # what, its file, what, its file
  if ! diff -u "$2" "$4" >"$work/difference.txt"; then
    echo "abi: only $1: -, only $3: +"
    grep '^[-+][^-+]' "$work/difference.txt"
    status=1
  fi
}
nm -D --defined-only --with-symbol-versions "$BUILD/libcohort.so" |
  awk '$2 != "A" { sub(/@+/, " ", $3); print $3 }' | sort >"$work/exported.txt"
same "in tests/abi/symbols.txt" tests/abi/symbols.txt "exported by libcohort.so" "$work/exported.txt"
same "declared in include/cohort" "$work/declared.txt" "exported by libcohort.so" "$work/exported.txt"
same "in tests/abi/layouts.txt" tests/abi/layouts.txt "in the headers" "$work/layouts.txt"

for library in $(readelf -d "$BUILD/libcohort.so" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p'); do
  case $library in
    libdnnl.so.* | libre2.so.* | libminizip.so.* | libjpeg.so.* | libpng16.so.* | libgomp.so.* | libstdc++.so.* | libm.so.* | libgcc_s.so.* | libc.so.* | libpthread.so.* | libdl.so.* | \
      ld-linux*) ;;
    *)
      echo "abi: libcohort.so needs $library, which is none of what it is meant to need"
      status=1
      ;;
  esac
done
soname=$(readelf -d "$BUILD/libcohort.so" | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p')
if [[ ! $soname =~ ^libcohort\.so\.[0-9]+$ ]]; then
  echo "abi: the SONAME is '$soname', expected libcohort.so.N"
  status=1
fi
if ((status == 0)); then
  echo "abi: $(wc -l <"$work/exported.txt") functions and $(grep -vc '\.' "$work/layouts.txt") structs as listed"
fi
exit $status
