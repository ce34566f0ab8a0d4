#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a staging folder and builds and runs the README's C program from there, linked to the shared library and to the
# static one, with no more than what pkg-config says.
set -euo pipefail
stage=$PWD/$BUILD/tests/stage
[[ $BUILD != /* ]] || stage=$BUILD/tests/stage
rm -rf "$stage"
${MAKE:-make} --no-print-directory BUILD="$BUILD" PREFIX=/opt/cohort DESTDIR="$stage" install >"$BUILD/tests/install.txt"

for file in include/cohort/cohort.h lib/libcohort.so lib/libcohort.a lib/pkgconfig/cohort.pc; do
  if [[ ! -e $stage/opt/cohort/$file ]]; then echo "install: $file is not there" && exit 1; fi
done

export PKG_CONFIG_PATH=$stage/opt/cohort/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
program=$BUILD/tests/readme
awk '/^```c$/ { take = 1; next } /^```/ { if (take) exit } take' README.md >"$program.c"
# shellcheck disable=SC2046  # flags are words
${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror "$program.c" -o "$program" $(pkg-config --cflags --libs cohort) -lm \
  -Wl,-rpath,"$stage/opt/cohort/lib"
"$program"
# shellcheck disable=SC2046
${CC:-cc} -std=c99 "$program.c" -o "$program-static" $(pkg-config --cflags cohort) "$stage/opt/cohort/lib/libcohort.a" \
  $(pkg-config --static --libs-only-l cohort | sed 's/-lcohort//') -lm
"$program-static" | cmp - <("$program")
echo "install: the README's program runs with what was installed"
