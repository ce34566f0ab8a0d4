#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that bindings/abi.json and the files made from it match the headers and that a C compiler agrees, and that the tool
# stops at an ambiguous declaration instead of guessing.
set -euo pipefail
work=$BUILD/tests/described
rm -rf "$work"
mkdir -p "$work"
perl bindings/tools/abi.pl --check
perl bindings/tools/abi.pl --proof >"$work/proof.c"
${CC:-cc} -std=gnu99 -Wall -Wextra -Werror -Iinclude "$work/proof.c" -o "$work/proof" -L"$BUILD" -lcohort \
  -Wl,-rpath-link,"$BUILD" -Wl,-rpath,"$(cd "$BUILD" && pwd)"
"$work/proof"

# Changes one declaration in a copy of the headers: the tool has to name the missing note.
refuses() { # words of its message, header, sed command
  rm -rf "$work/copy"
  mkdir -p "$work/copy/bindings"
  cp -r include "$work/copy"
  cp -r bindings/tools bindings/abi.notes "$work/copy/bindings"
  sed -i "$3" "$work/copy/$2"
  if cmp -s "$2" "$work/copy/$2"; then echo "described: '$3' changes nothing" && exit 1; fi
  if perl "$work/copy/bindings/tools/abi.pl" --proof >/dev/null 2>"$work/said.txt" || ! grep -q "$1" "$work/said.txt"; then
    echo "described: after '$3' of $2 expected '$1', found: $(cat "$work/said.txt")" && exit 1
  fi
}
refuses 'how many' bindings/abi.notes '/^cohort_executor_bind.grads /d'
refuses 'the tag @may_be_null' include/cohort/arrays.h 's/@gives_null/@may_be_null/'
refuses '@nullable, but it is no pointer' include/cohort/descs.h 's/@param num_axes  /&@nullable /'
refuses '@gives_null, but no pointer' include/cohort/arrays.h 's/@param name   @nullable/@param name   @gives_null/'
refuses 'there is no cohort_arrays_lod' include/cohort/arrays.h 's/@as cohort_arrays_load()/@as cohort_arrays_lod()/'
refuses 'describes no is_train' include/cohort/manager.h 's/@as cohort_group_run()/@as cohort_group_wait()/'
refuses 'whose is it' bindings/abi.notes '/^cohort_ndarray_data.out_data /d'
refuses 'not called out_' bindings/abi.notes '/^cohort_ndarray_wrap.data  *direction/d'
refuses 'nothing at cohort_arrays_count.arrays that needs a note' bindings/abi.notes '$a cohort_arrays_count.arrays count num'
refuses 'which it does not take' include/cohort/arrays.h 's/@param context  /@param places  /'
refuses 'what is a .float.' include/cohort/ndarray.h 's/double high/float high/'
refuses "what is 'COHORT_EXTERN" include/cohort/arrays.h 's/^COHORT_API void/COHORT_EXTERN void/'
echo "described: $(grep -c '"params": \[' bindings/abi.json) functions and callbacks as bindings/abi.json has them"
