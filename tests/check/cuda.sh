#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that only a real GPU can show, within ten minutes, from a build folder that is there already: nothing is built.
# Tests and goldens on gpu(0), and on all GPUs where there are several; a chosen set under compute-sanitizer; then what a
# step takes, beside PyTorch's where there is that. One report: $BUILD/check-cuda/report.txt.
#   BUILD=build PYTHON=python3 tests/check/cuda.sh
# Exit status 1: something failed; 2: nothing could be run, and the last line says why.
set -uo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
seconds=${CHECK_CUDA_SECONDS:-570}
out=$BUILD/check-cuda
report=$out/report.txt
unset COHORT_BACKEND_PATH # which leads to the simulated one
golden=$BUILD/cohort-golden
bench=$BUILD/cohort-bench
lacking=tests/cudasim/lacking.tsv
failed=()

give_up() {
  echo "check-cuda: $1" >&2
  exit 2
}
left() { echo $((seconds - SECONDS)); }

[[ -d $BUILD ]] || give_up "there is no $BUILD; build with 'make all test-programs' where there is nvcc, and bring the folder"
for needed in "$golden" "$bench" "$BUILD/tests/capi/test_gpu" "$BUILD/tests/capi/test_device_memory" "$BUILD/libcohort_cuda.so"; do
  [[ -e $needed ]] || give_up "$needed is missing; 'make all test-programs' makes it where there is nvcc"
done
mkdir -p "$out"
# The first case of all on gpu(0): it is skipped where there is none, and says why.
probe=$("$golden" --context 'gpu(0)' --verbose tests/golden/group/exec_simple_bind 2>&1)
grep -q '^1 passed' <<<"$probe" || give_up "gpu(0) cannot be used: $(grep -v ' passed, ' <<<"$probe" | head -n 1)"

say() { printf '%s\n' "$*" | tee -a "$report"; }
# Name, most seconds, command. What it says goes to a log, its last line to the report.
part() {
  local name=$1 most=$2 status=0 begun=$SECONDS log
  log=$out/${1//[^A-Za-z0-9]/_}.log
  shift 2
  if (($(left) < 5)); then
    failed+=("$name")
    say "$name: not run, the time is over"
    return
  fi
  timeout -k 5 "$((most < $(left) ? most : $(left)))" "$@" >"$log" 2>&1 || status=$?
  if ((status)); then failed+=("$name"); fi
  say "$name: $( ((status)) && echo "FAILED ($status)" || echo passed), $((SECONDS - begun)) s: $(tail -n 1 "$log")"
}

: >"$report"
say "check-cuda, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo 'nvidia-smi says nothing')"

part "capi test_gpu" 60 "$BUILD/tests/capi/test_gpu"
part "capi test_device_memory" 60 "$BUILD/tests/capi/test_device_memory"
part "goldens ops gpu(0)" 150 "$golden" --context 'gpu(0)' --lacking $lacking --in-process tests/golden/ops
part "goldens group gpu(0)" 60 "$golden" --context 'gpu(0)' --lacking $lacking --in-process tests/golden/group
part "goldens optimizers gpu(0)" 30 "$golden" --context 'gpu(0)' --in-process tests/golden/optimizers
part "goldens models gpu(0)" 60 "$golden" --context 'gpu(0)' --lacking $lacking --in-process tests/golden/models
part "goldens group gpu(0),cpu(0)" 60 "$golden" --context 'gpu(0),cpu(0)' --lacking $lacking --in-process tests/golden/group
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
if ((gpus > 1)); then # sums by NCCL
  part "goldens group all GPUs" 60 "$golden" --context "$(seq -s, -f 'gpu(%g)' 0 $((gpus - 1)))" --lacking $lacking --in-process tests/golden/group
fi

sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}"/bin/compute-sanitizer 2>/dev/null)
if [[ -n $sanitizer ]]; then
  for tool in memcheck racecheck initcheck synccheck; do
    part "$tool test_gpu" 60 "$sanitizer" --tool $tool --error-exitcode 9 "$BUILD/tests/capi/test_gpu"
    part "$tool lenet" 60 "$sanitizer" --tool $tool --error-exitcode 9 "$golden" --context 'gpu(0)' --in-process tests/golden/models/lenet
    for kind in softmax reduce take topk; do
      part "$tool $kind" 30 "$sanitizer" --tool $tool --error-exitcode 9 \
        "$golden" --context 'gpu(0)' --lacking $lacking --in-process --filter $kind tests/golden/ops
    done
  done
else
  say "compute-sanitizer: not run, there is none here"
fi

for workload in W1 W2 W3; do
  for mode in train infer; do
    part "bench $workload $mode" 40 "$bench" --workload $workload --mode $mode --device gpu --symbols tests/bench/symbols
  done
done
if "${PYTHON:-python3}" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  part "bench PyTorch" 60 "${PYTHON:-python3}" tests/bench/workloads_torch.py
  sed 's/^/  /' "$out"/bench_PyTorch.log >>"$report"
else
  say "PyTorch: not run, ${PYTHON:-python3} has none that sees a GPU"
fi

say "in all: $SECONDS s, ${#failed[@]} failed${failed[*]:+: $(printf '%s; ' "${failed[@]}")}"
echo "check-cuda: see $report and the logs beside it"
((${#failed[@]} == 0))
