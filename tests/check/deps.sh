#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, with apt, the packages of the build and the tests that this machine lacks. Does nothing if none is missing.
#   deps.sh [--build | --python | --rust | --go | --scala | --ci]
#     --build: those of the build only; --python and the like: those of a whole test of that binding;
#     --ci: a compiler cache, clang with OpenMP and its sanitizers, lld, clang-format
set -eu

# package | something that shows that it is installed, from whatever source: a command, a header that the compiler finds, a
# jar, a Perl module, a module of the system's Python, or clang:FILE, a file of clang's own
needs='g++ g++
make make
pkg-config pkg-config
libdnnl-dev dnnl.hpp
libre2-dev re2/re2.h
libminizip-dev minizip/unzip.h
libjpeg62-turbo-dev jpeglib.h
libpng-dev png.h
nlohmann-json3-dev nlohmann/json.hpp'
[[ ${1:-} == --build ]] || needs+='
libcmocka-dev cmocka.h
perl prove
libffi-platypus-perl FFI/Platypus.pm
libffi-checklib-perl FFI/CheckLib.pm
pdl PDL.pm
python3 python3
python3-numpy numpy.py'
[[ ${1:-} != --rust ]] || needs+='
cargo /usr/bin/cargo
rustc /usr/bin/rustc
rustfmt /usr/bin/cargo-fmt
rust-clippy /usr/bin/cargo-clippy'
[[ ${1:-} != --go ]] || needs+='
golang-go /usr/bin/go'
[[ ${1:-} != --scala ]] || needs+='
default-jdk-headless /usr/bin/javac
libjna-java /usr/share/java/jna.jar
scala /usr/bin/scalac
junit4 /usr/share/java/junit4.jar'
[[ ${1:-} != --ci ]] || needs+='
ccache ccache
clang clang
clang-format clang-format
lld ld.lld
libomp-dev clang:omp.h
libclang-rt-14-dev clang:asan'
[[ ${1:-} != --python ]] || needs+='
python3-build build.env.py
python3-wheel wheel.py
python3-venv venv.py
mypy mypy.py
black black.py'

has_header() {
  local folder
  for folder in /usr/include /usr/local/include ${CPATH:+$(tr ':' ' ' <<<"$CPATH")}; do
    if [[ -e $folder/$1 ]]; then return 0; fi
  done
  return 1
}

missing=()
while read -r package sign; do
  case $sign in
    clang:omp.h) echo '#include <omp.h>' | clang -fopenmp -fsyntax-only -xc - 2>/dev/null ;;
    clang:asan) [[ -e $(clang -print-file-name=libclang_rt.asan-x86_64.a 2>/dev/null) ]] ;;
    *.h*) has_header "$sign" ;;
    *.py) "${PYTHON:-$(ls /usr/bin/python3 2>/dev/null || echo python3)}" -c "import ${sign%.py}" 2>/dev/null ;;
    *.jar) [[ -e $sign ]] ;;
    *.pm) perl -e 'require $ARGV[0]' "$sign" 2>/dev/null ;;
    *) command -v "$sign" >/dev/null ;;
  esac || missing+=("$package")
done <<<"$needs"
if ((${#missing[@]} == 0)); then exit 0; fi

echo "missing: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "deps: there is no apt-get here; please install what stands for these Debian packages yourself" >&2
  exit 1
fi
as_root=()
if [[ $(id -u) != 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "deps: neither root nor sudo; please run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
