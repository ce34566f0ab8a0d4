#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a staging folder, then builds and runs the README's C programs from there with the README's commands, linked to
# the shared library and to the static one.
set -euo pipefail
stage=$PWD/$BUILD/tests/stage
[[ $BUILD != /* ]] || stage=$BUILD/tests/stage
rm -rf "$stage"
${MAKE:-make} --no-print-directory BUILD="$BUILD" PREFIX=/opt/cohort DESTDIR="$stage" install >"$BUILD/tests/install.txt"

for file in bin/cohort share/man/man1/cohort.1 share/bash-completion/completions/cohort include/cohort/cohort.h include/cohort/cohort.hpp include/cohort/cpp_base.hpp lib/libcohort.so lib/libcohort.a lib/pkgconfig/cohort.pc; do
  if [[ ! -e $stage/opt/cohort/$file ]]; then echo "install: $file is not there" && exit 1; fi
done

export PKG_CONFIG_PATH=$stage/opt/cohort/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
program=$BUILD/tests/readme
block() { awk -v wanted="$1" '/^```c$/ { take = ++blocks == wanted; next } /^```/ { take = 0 } take' README.md; }
block 1 >"$program-predict.c"
block 2 >"$program.c"
for one in "$program-predict" "$program"; do
  # shellcheck disable=SC2046  # flags are words
  ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror "$one.c" -o "$one" $(pkg-config --cflags --libs cohort) -lm \
    -Wl,-rpath,"$stage/opt/cohort/lib"
done
"$program"
# The README's command without its compiler and program: the part in parentheses is run, and prints the flags.
static=$(sed -n 's/.*`cc program\.c $(\(pkg-config --static .*\))`.*/\1/p' README.md)
# shellcheck disable=SC2046
${CC:-cc} "$program.c" -o "$program-static" $(eval "$static")
if [[ $(ldd "$program-static") == *libcohort* ]]; then echo "install: linked statically, it wants libcohort.so" && exit 1; fi
"$program-static" | cmp - <("$program")

# A C++ program prints the same. Linked statically, it has the classes of cohort.hpp and the library's own in one program.
for flags in "$(pkg-config --cflags --libs cohort)" "$(eval "$static")"; do
  # shellcheck disable=SC2086
  ${CXX:-c++} -std=c++17 -pedantic -Wall -Wextra -Werror tests/cpp/cpp_line.cc -o "$program-cpp" $flags -Wl,-rpath,"$stage/opt/cohort/lib"
  "$program-cpp" | cmp - <("$program")
done

# The tool must find the library that it was installed with.
version=$(env -u LD_LIBRARY_PATH "$stage/opt/cohort/bin/cohort" --version)
if [[ $version != "cohort $(pkg-config --modversion cohort)" ]]; then echo "install: cohort --version says '$version'" && exit 1; fi
if [[ $(ldd "$stage/opt/cohort/bin/cohort") != *"$stage/opt/cohort/"* ]]; then echo "install: the tool uses another library" && exit 1; fi
if ! grep -q "Cohort $(pkg-config --modversion cohort)\"" "$stage/opt/cohort/share/man/man1/cohort.1"; then
  echo "install: the page for man names no version" && exit 1
fi

digits=$BUILD/tests/install_digits
mkdir -p "$digits"
"$BUILD/examples/train_digits" --epochs 2 --out "$digits" >/dev/null
"$program-predict" "$digits/digits" 2 >"$digits/said.txt"
if (($(grep -cE '^[0-9]: [01]\.[0-9]{3}$' "$digits/said.txt") != 10)); then
  cat "$digits/said.txt"
  echo "install: the README's program does not predict" && exit 1
fi
if [[ $("$program-predict" "$digits/nothing" 2) != *nothing* ]]; then echo "install: it predicts from nothing" && exit 1; fi
echo "install: the README's programs run with what was installed"
