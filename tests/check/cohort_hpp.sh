#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that include/cohort/cohort.hpp calls every function that the library exports, but for the initialisers of option
# structs, which the _INIT macros stand in for, and that everything in it is in the inline namespace.
set -euo pipefail
cd "$(dirname "$0")/../.."
header=include/cohort/cohort.hpp
code=$(${CXX:-g++} -fpreprocessed -dD -E -P -x c++ "$header") # without comments
num_missing=0
while read -r function; do
  if ! grep -q "\b$function\b" <<<"$code"; then
    echo "$header: nothing calls $function()"
    num_missing=$((num_missing + 1))
  fi
done < <(cut -d ' ' -f 1 tests/abi/symbols.txt | grep -vE '_(options|op)_init$')
if ((num_missing)); then exit 1; fi
if [[ $(grep -c '^inline namespace abi0 {$' "$header") != 1 || $(grep -c '^namespace cohort {$' "$header") != 1 ]]; then
  echo "$header: not all is in cohort::abi0, so that names may be those of the library's own classes" && exit 1
fi
echo "cohort-hpp: all functions are called"
