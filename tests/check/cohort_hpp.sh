#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that cohort.hpp includes all its parts, that these call every function that the library exports, but for the
# initialisers of option structs, which the _INIT macros stand in for, and that everything in them is in the inline namespace.
set -euo pipefail
cd "$(dirname "$0")/../.."
header=include/cohort/cohort.hpp
code=
for part in include/cohort/cpp_*.hpp; do
  code+=$(${CXX:-g++} -fpreprocessed -dD -E -P -x c++ "$part") # without comments
  grep -q "^#include \"${part#include/}\"$" "$header" || { echo "$header: does not include $part" && exit 1; }
  if [[ $(grep -c '^inline namespace abi0 {$' "$part") != 1 || $(grep -c '^namespace cohort {$' "$part") != 1 ]]; then
    echo "$part: not all is in cohort::abi0, so that names may be those of the library's own classes" && exit 1
  fi
done
num_missing=0
while read -r function; do
  if ! grep -q "\b$function\b" <<<"$code"; then
    echo "$header: nothing calls $function()"
    num_missing=$((num_missing + 1))
  fi
done < <(cut -d ' ' -f 1 tests/abi/symbols.txt | grep -vE '_(options|op)_init$')
if ((num_missing)); then exit 1; fi
echo "cohort-hpp: all functions are called"
