#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No program or shared object of ours exports a function with a name of libc's or libm's. The dynamic linker would call
# ours in place of libc's in every library of the process: a CUDA driver that calls bind() would call a test's bind().
# A linker exports each global function of a program whose name a library it links defines or uses, so a function that
# is neither static nor in a namespace is enough.
#   exports_libc.sh [FOLDER...]    FOLDER: searched for programs and shared objects; $BUILD by default. Builds with
#                                  sanitizers, which bring names of libc's, are left out.
# Programs may replace malloc() and its family, which libc provides for.
set -euo pipefail
export LC_ALL=C
if (($# == 0)); then set -- "${BUILD:-build}"; fi

libraries=()
for name in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
  library=$(${CC:-cc} -print-file-name=$name)
  [[ ! -e $library ]] || libraries+=("$library")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

functions() { # FILE...: the functions in their dynamic symbol tables, without versions
  nm -D --defined-only "$@" 2>/dev/null | awk 'NF == 3 && $2 ~ /^[TWi]$/ { sub(/@.*/, "", $3); print $3 }'
}

printf '%s\n' malloc calloc realloc free memalign aligned_alloc posix_memalign valloc pvalloc malloc_usable_size |
  sort >"$work/replaceable"
functions "${libraries[@]}" | sort -u | comm -23 - "$work/replaceable" >"$work/reserved"
if [[ ! -s $work/reserved ]]; then
  echo "exports-libc: no functions were found in ${libraries[*]:-libc}"
  exit 1
fi

num_files=0 status=0
while IFS= read -r -d '' file; do
  [[ $(head -c 4 "$file" | tr -d '\0') == $'\177ELF' ]] || continue
  num_files=$((num_files + 1))
  found=$(functions "$file" | sort -u | comm -12 - "$work/reserved")
  [[ -n $found ]] || continue
  status=1
  for name in $found; do echo "$file: exports $name(), which is a function of libc: make it static, or rename it"; done
done < <(find "$@" \( -name asan -o -name tsan \) -prune -o -type f \( -perm -u+x -o -name '*.so' -o -name '*.so.*' \) ! -name '*.o' -print0 | sort -z)
if ((num_files == 0)); then
  echo "exports-libc: no program was found in $*"
  exit 1
fi
if ((status == 0)); then echo "exports-libc: $num_files programs and shared objects passed"; fi
exit $status
