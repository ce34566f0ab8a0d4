#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests layers.sh: each line makes files in an empty tree, and says what the check has to complain of.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
status=0

expect() { # words of the complaint, or "passed"; path; the line in that file; more pairs of path and line
  local words=$1 found
  shift
  rm -rf "${tree:?}"/*
  while (($#)); do
    mkdir -p "$tree/$(dirname "$1")"
    printf '// SPDX-License-Identifier: Apache-2.0\n%s\n' "$2" >"$tree/$1"
    shift 2
  done
  found=$("$here/layers.sh" "$tree" 2>&1 || true)
  if [[ $found != *"$words"* ]]; then
    printf 'layers_test: expected "%s", found:\n%s\n' "$words" "$found"
    status=1
  fi
}

expect "passed" src/group/group.cc '#include "executor/executor.hpp"'
expect "passed" src/plan/plan.cc '#include "op/registry.hpp"'
expect "passed" src/plan/plan.cc '#include "plan.hpp"' src/plan/plan.hpp ''
expect "passed" cuda/stream.cu '#include "device/device.hpp"'
expect "passed" src/cpu/op/softmax_cpu.cc '#include <dnnl.hpp>'
expect "passed" src/api/api_group.cc '#include "cohort/group.h"'
expect "passed" src/tool/tool.cc '#include "cohort/group.h"' src/tool/plot.cc '#include "tool/tool.hpp"'
expect "passed" src/tool/tool.hpp '#include <nlohmann/json_fwd.hpp>'
expect "tool must not include base/error.hpp" src/tool/tool.cc '#include "base/error.hpp"'
expect "group must not include tool/tool.hpp" src/group/group.cc '#include "tool/tool.hpp"'
expect "plan must not include executor/executor.hpp" src/plan/plan.cc '#include "executor/executor.hpp"'
expect "base must not include device/device.hpp" src/base/error.hpp '#include "device/device.hpp"'
expect "optimizer must not include executor/executor.hpp" src/optimizer/sgd.cc '#include "executor/executor.hpp"'
expect "executor must not include group/group.hpp" src/executor/executor.cc '#  include "group/group.hpp"'
expect "cpu must not include plan/plan.hpp" src/cpu/team.cc '#include "plan/plan.hpp"'
expect "cuda must not include ndarray/ndarray.hpp" cuda/stream.cu '#include "ndarray/ndarray.hpp"'
expect "device must not include cpu/team.hpp" src/device/device.cc '#include "cpu/team.hpp"'
expect "plan must not include the public cohort/group.h" src/plan/plan.cc '#include "cohort/group.h"'
expect "own includes are written from src/" src/plan/plan.cc '#include "../group/group.hpp"'
expect "which is not beside it" src/plan/plan.cc '#include "group.hpp"'
expect "which is in no room" src/plan/plan.cc '#include "engine/engine.hpp"'
expect "src/engine is no room" src/engine/engine.cc ''
expect "only src/cpu includes oneDNN" src/op/convolution.cc '#include <oneapi/dnnl/dnnl.hpp>'
expect "only name_pattern.cc includes RE2" src/op/convolution.cc '#include <re2/re2.h>'
expect "only npz.cc includes minizip" src/ndarray/npy.cc '#include <minizip/unzip.h>'
expect "only image_file.cc includes libjpeg and libpng" src/cpu/op/image_decode_cpu.cc '#include <jpeglib.h>'
expect "only parallel.hpp includes OpenMP" src/cpu/op/softmax_cpu.cc '#include <omp.h>'
expect "only cuda/ includes cuda_runtime.h" src/device/device.cc '#include <cuda_runtime.h>'
expect "headers do not include nlohmann/json" src/symbol/json.hpp '#include <nlohmann/json.hpp>'
expect "file names are lower_snake" src/plan/MemoryPass.cc ''
expect "file names are unique" src/plan/memory.cc '' src/device/memory.cc ''
expect "src/ holds .hpp and .cc files" src/plan/plan.h ''
expect "files of the boundary are called api_" src/api/group.cc ''
expect "kernel files carry their backend: *_cpu.cc" src/cpu/op/softmax.cc ''
expect "kernel files carry their backend: *_cuda.cu" cuda/op/softmax.cu ''
rm -rf "${tree:?}"/* && mkdir -p "$tree/src/plan" && echo 'int x;' >"$tree/src/plan/plan.cc"
if [[ $("$here/layers.sh" "$tree") != *"no SPDX line"* ]]; then echo "layers_test: a missing SPDX line is not seen" && status=1; fi
if ((status == 0)); then echo "layers_test: passed"; fi
exit $status
