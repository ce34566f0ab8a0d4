#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all checks that need a real GPU, within ten minutes, from an existing build folder: nothing is built.
# First it lists the hardware and software; then it runs tests and goldens, several at a time, on gpu(0), and on all GPUs if
# there are several; then it measures step times, one at a time, also PyTorch's if that is installed; then a selection runs
# under compute-sanitizer while time remains. Each part is added to $BUILD/check-cuda/report.txt as it ends.
#   BUILD=build PYTHON=python3 tests/check/cuda.sh
# Exit status 1: something failed; 2: nothing could be run; the report says why.
# `make check-cuda-archive` packs everything this needs for a machine on which nothing is installed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
seconds=${CHECK_CUDA_SECONDS:-570}
jobs=${CHECK_CUDA_JOBS:-$(($(nproc) < 6 ? $(nproc) : 6))}
out=${BUILD:=build}/check-cuda
report=$out/report.txt
unset COHORT_BACKEND_PATH # it would select the simulated backend
golden=$BUILD/cohort-golden
bench=$BUILD/cohort-bench
lacking=tests/cudasim/lacking.tsv
rm -rf "$out"
mkdir -p "$out" || exit 2
: >"$report"

say() { printf '%s\n' "$*" | tee -a "$report"; }
give_up() {
  say "check-cuda: nothing could be run: $1"
  exit 2
}
left() { echo $((until - SECONDS)); }
until=$((seconds * 6 / 10)) # limit of the tests; speed gets the next quarter, compute-sanitizer the rest
finish() {
  local num
  wait
  num=$(grep -c ': FAILED\|: not run, ' "$report")
  say "in all: $SECONDS s, $num failed or not run"
  echo "check-cuda: see $report and the logs beside it"
  ((num == 0))
}
trap 'say "stopped from outside"; kill $(jobs -p) 2>/dev/null; finish; exit 1' INT TERM

# Name, limit in seconds, command. The output goes to a log, its last line to the report, and more lines if it failed.
part() {
  local name=$1 most=$2 status=0 begun=$SECONDS log text
  log=$out/${1//[^A-Za-z0-9]/_}.log
  shift 2
  if (($(left) < 5)); then
    say "$name: not run, the time is over"
    return
  fi
  timeout -k 5 "$((most < $(left) ? most : $(left)))" "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) text=passed ;;
    124 | 137) text="FAILED (it, or all, took too long)" ;;
    *) text="FAILED ($status)" ;;
  esac
  text="$name: $text, $((SECONDS - begun)) s: $(tail -n 1 "$log" | cut -c 1-300)"
  if ((status)); then
    text+=$'\n'$(grep -a 'FAILED\|Error\|error\|expected\|Invalid\|hazard\|cudasim:' "$log" | head -n 6 | cut -c 1-300 | sed 's/^/    /')
  fi
  say "$text"
}
# The same in the background.
together() {
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
  part "$@" &
}

# ---- hardware and software

say "check-cuda, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(nproc) processors, $(uname -r)"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>/dev/null || echo 'nvidia-smi says nothing')"
[[ -e $BUILD/libcohort_cuda.so && -x $golden ]] ||
  give_up "there is no $BUILD/libcohort_cuda.so or no $golden; 'make all test-programs' makes them where there is nvcc"

# Python with a PyTorch that sees the GPU: the one that is named, or the first one in PATH.
torch=
for python in "${PYTHON:-python3}" python3 $(ls -d /opt/*/bin/python3 /opt/*/.venv/bin/python3 2>/dev/null); do
  if timeout 60 "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    torch=$python
    break
  fi
done

# Libraries: those packed with the build, and NVIDIA's, which may be in a toolkit or in Python packages.
host_libraries=${LD_LIBRARY_PATH:-}
search() { # a file's name, and a limit in seconds for a search of the whole disk: prints the folder it is in
  local folder
  for folder in "${CUDA_HOME:-/none}"/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib \
    $("${torch:-python3}" -c 'import sys; print("\n".join(p for p in sys.path if p))' 2>/dev/null | sed 's|$|/nvidia/*/lib|'); do
    if [[ -e $folder/$1 ]]; then echo "$folder" && return; fi
  done
  folder=$(ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }')
  [[ -n $folder ]] || folder=$(timeout "$2" find / -xdev -name "$1" 2>/dev/null | head -n 1)
  [[ -z $folder ]] || dirname "$folder"
}
folders=
if [[ -d $BUILD/lib ]]; then folders=$(cd "$BUILD/lib" && pwd); fi
cublas=$(ldd "$BUILD/libcohort_cuda.so" | sed -n 's/^\s*\(libcublasLt[^ ]*\) .*/\1/p')
for name in "${cublas:-libcublasLt.so}" "libnvrtc.so.${cublas##*.}" libnccl.so.2 libcudnn.so.9; do
  found=$(search "$name" "$([[ $name == libcublas* ]] && echo 20 || echo 3)")
  say "$name: ${found:-not found}"
  if [[ -n $found && :$folders: != *:$found:* ]]; then folders+=${folders:+:}$found; fi
done
export LD_LIBRARY_PATH=$folders${host_libraries:+:$host_libraries}
missing=$(ldd "$golden" "$BUILD/libcohort_cuda.so" 2>&1 | grep 'not found' | sort -u)
[[ -z $missing ]] || give_up "libraries are missing, which 'make check-cuda-archive' packs: $missing"
mkdir -p "$out/cache"
COHORT_CUDA_CACHE=$(cd "$out/cache" && pwd) # shared, so that programs compiled by one process are found by the next
export COHORT_CUDA_CACHE
# A single case on gpu(0) first: without a GPU it is skipped, and says why.
probe=$(timeout 120 "$golden" --context 'gpu(0)' --verbose tests/golden/group/exec_simple_bind 2>&1)
say "first case on gpu(0), $SECONDS s: $(tail -n 1 <<<"$probe")"
if grep -q ' 1 skipped' <<<"$probe"; then
  why=$(timeout 60 "$BUILD"/cohort bench tests/bench/symbols/tiny_mlp.json --shape data=1,8 --context 'gpu(0)' 2>&1 | tail -n 1)
  give_up "gpu(0) cannot be used: $why"
fi
grep -q '^1 passed' <<<"$probe" || say "first case: FAILED"$'\n'"$(head -n 20 <<<"$probe" | sed 's/^/    /')"

# ---- tests and goldens

for test in test_gpu test_gpu_images test_gpu_transforms test_device_memory; do together "capi $test" 90 "$BUILD/tests/capi/$test"; done
together "goldens ops gpu(0)" 240 "$golden" --limit 60 --context 'gpu(0)' --lacking $lacking tests/golden/ops
together "goldens ops gpu(0) by graphs" 240 "$golden" --limit 60 --runs 4 --context 'gpu(0)' --lacking $lacking tests/golden/ops
together "goldens group gpu(0)" 120 "$golden" --limit 60 --context 'gpu(0)' --lacking $lacking tests/golden/group
together "goldens models gpu(0)" 180 "$golden" --limit 60 --context 'gpu(0)' --lacking $lacking tests/golden/models
together "goldens optimizers gpu(0)" 60 "$golden" --limit 60 --context 'gpu(0)' tests/golden/optimizers
together "goldens group gpu(0),cpu(0)" 120 "$golden" --limit 60 --context 'gpu(0),cpu(0)' --lacking $lacking tests/golden/group
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
contexts='gpu(0)'
if ((gpus > 1)); then # sums by NCCL
  contexts=$(seq -s, -f 'gpu(%g)' 0 $((gpus - 1)))
  together "goldens group all GPUs" 120 "$golden" --limit 60 --context "$contexts" --lacking $lacking tests/golden/group
fi
for test in "$BUILD"/tests/capi/test_*; do # tests that are about contexts ran above, or cannot run on a GPU
  name=${test##*/}
  if [[ ! -x $test || $test == *.* ]] || grep -q "^$name	never" tests/cudasim/long.tsv; then continue; fi
  together "capi $name $contexts" 90 env COHORT_TEST_CONTEXTS="$contexts" "$test"
done
wait

# ---- speed

until=$((seconds * 85 / 100))
for workload in W1 W2 W3; do
  for mode in train infer; do
    part "bench $workload $mode" 40 "$bench" --workload $workload --mode $mode --device gpu --threads 4 --roofline --symbols tests/bench/symbols
  done
done
# Large workloads, once: in bfloat16 and, if they are in float32, with TF32.
for workload in 'W4 --batch 256 --compute-dtype bfloat16' 'W4 --batch 256 --tf32' W5 'W5 --compute-dtype bfloat16' W8 'W8 --compute-dtype bfloat16'; do
  # shellcheck disable=SC2086
  part "bench $workload train" 30 "$bench" --workload $workload --mode train --device gpu --threads 4 --repeats 3 --roofline --symbols tests/bench/symbols
done
part "bench W3 train step by step" 40 env COHORT_CUDA_GRAPHS=0 "$bench" --workload W3 --mode train --device gpu --threads 4 --symbols tests/bench/symbols
if [[ -n $torch ]]; then
  part "bench PyTorch" 100 env LD_LIBRARY_PATH="$host_libraries" "$torch" tests/bench/workloads_torch.py
  sed 's/^/  /' "$out"/bench_PyTorch.log | tee -a "$report"
else
  say "PyTorch: there is none here that sees a GPU"
fi

# ---- compute-sanitizer, where there is one

until=$seconds
sanitizer=$(command -v compute-sanitizer || find "${CUDA_HOME:-/usr/local/cuda}"/bin /usr/local/cuda*/bin -name compute-sanitizer 2>/dev/null | head -n 1)
refused=
if [[ -n $sanitizer ]]; then # some machines do not allow it to use their GPUs
  refused=$({ timeout 30 "$sanitizer" "$golden" --context 'gpu(0)' --in-process tests/golden/group/exec_simple_bind || true; } 2>&1 |
    grep -i -m 1 'device not supported')
fi
if [[ -n $refused ]]; then
  say "compute-sanitizer: it cannot look at this GPU: $refused"
elif [[ -n $sanitizer ]]; then
  for tool in memcheck racecheck initcheck synccheck; do
    for kind in sum softmax FullyConnected Convolution BatchNorm Embedding topk linalg; do
      together "$tool $kind" 90 "$sanitizer" --tool $tool --error-exitcode 9 \
        "$golden" --context 'gpu(0)' --lacking $lacking --in-process --filter $kind tests/golden/ops
    done
    together "$tool test_gpu" 120 "$sanitizer" --tool $tool --error-exitcode 9 "$BUILD/tests/capi/test_gpu"
    together "$tool lenet" 120 "$sanitizer" --tool $tool --error-exitcode 9 "$golden" --context 'gpu(0)' --in-process tests/golden/models/lenet
  done
else
  say "compute-sanitizer: there is none here"
fi
finish
