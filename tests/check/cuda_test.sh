#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that cuda.sh completes its report on a simulated GPU that breaks at once, in less time than a whole run takes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/capi"
cp -P "$BUILD"/libcohort.so* "$BUILD"/cohort-golden "$BUILD/cudasim/libcohort_cuda.so" "$work"
cp "$BUILD"/tests/capi/test_{gpu,device_memory} "$work/tests/capi"
printf '#!/bin/sh\necho "========= Error: Device not supported"\nexit 1\n' >"$work/compute-sanitizer"
chmod +x "$work/compute-sanitizer"
status=0
PATH=$work:$PATH CUDASIM_BREAK=1 CHECK_CUDA_SECONDS=90 BUILD=$work PYTHON=false tests/check/cuda.sh >/dev/null 2>&1 || status=$?
report=$(cat "$work/check-cuda/report.txt")
for line in '^first case: FAILED' '^capi test_gpu: FAILED' '^goldens ops gpu(0): FAILED' '^bench W1 train: ' '^compute-sanitizer: it cannot look at this GPU: .*not supported' \
  '^in all: [0-9]* s, [0-9]* failed or not run'; do
  grep -q "$line" <<<"$report" || { echo "cuda-test: the report has no '$line':"$'\n'"$report" && exit 1; }
done
((status == 1)) || { echo "cuda-test: expected exit status 1, found $status" && exit 1; }
echo "cuda-test: check-cuda reports to its end whatever fails"
