#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the files that tests/check/cuda.sh needs, with the system libraries they depend on, except NVIDIA's and those of the
# C and C++ compilers: for a machine with a GPU on which nothing else is installed. There: tar xf; tests/check/cuda.sh
#   BUILD=build tests/check/cuda_archive.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
made=$(cd "$BUILD" && pwd)/check-cuda-archive
rm -rf "$made"
mkdir -p "$made/build/lib" "$made/build/tests/capi" "$made"/tests/{check,golden,bench,cudasim} "$made/examples"
cp -P "$BUILD"/libcohort.so* "$BUILD"/libcohort_cuda.so "$BUILD"/cohort{,-golden,-bench} "$made/build"
for test in "$BUILD"/tests/capi/test_*; do [[ ! -x $test ]] || cp "$test" "$made/build/tests/capi"; done
find "$made/build" -type f -exec strip {} +
ldd "$made"/build/libcohort.so "$made"/build/cohort-golden "$made"/build/tests/capi/test_gpu |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
  case ${library##*/} in
    libcohort.so* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libgcc_s.so* | libstdc++.so* | libcublas*) ;;
    *) cp "$library" "$made/build/lib" ;;
  esac
done
cp tests/check/cuda.sh "$made/tests/check"
cp -r tests/golden/{group,models,ops,optimizers} "$made/tests/golden"
cp -r tests/bench/{symbols,workloads_torch.py} "$made/tests/bench"
cp tests/cudasim/{lacking,long}.tsv "$made/tests/cudasim"
cp LICENSE "$made" # a text for a language model
cp -r tests/data "$made/tests"
cp -r examples/data "$made/examples"
tar -C "$made" -cJf "$BUILD/check-cuda.tar.xz" .
rm -rf "$made"
echo "check-cuda-archive: $BUILD/check-cuda.tar.xz, $(($(stat -c %s "$BUILD/check-cuda.tar.xz") >> 20)) MB; where it is unpacked: tests/check/cuda.sh"
