#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests one operator: the golden cases of its families on the CPU and on a simulated GPU, its types beside MXNet's, and its
# gradients beside finite differences.
#   BUILD=build test_op.sh OPERATOR
set -uo pipefail
op=$1 status=0 tested=0
export COHORT_TEST_OP=$op
run() { # what is tested, command
  local what=$1 said
  shift
  if said=$("$@" 2>&1); then
    ((++tested))
    printf '%s, %s: %s\n' "$op" "$what" "$(tail -n 1 <<<"$said")"
  else
    printf '%s\n%s, %s: failed\n' "$said" "$op" "$what"
    status=1
  fi
}

mapfile -t families < <(grep -lE "\"ops\": \[[^]]*\"$op\"" tests/golden/ops/*.json)
for family in "${families[@]}"; do
  run "$(basename "$family")" "$BUILD/cohort-golden" "$family"
  if [[ -e $BUILD/cudasim/libcohort_cuda.so ]]; then
    COHORT_BACKEND_PATH=$(cd "$BUILD/cudasim" && pwd) run "$(basename "$family") on a simulated GPU" \
      "$BUILD/cohort-golden" --context 'gpu(0)' --lacking tests/cudasim/lacking.tsv "$family"
  else
    echo "$op: left out: a simulated GPU, for want of CUDA's headers"
  fi
done
if ((${#families[@]} == 0)); then echo "$op: no golden case names it"; fi
if grep -q "^$op	" tests/data/operators/types.tsv; then
  run types "$BUILD/tests/capi/test_operator_types"
  run 'finite differences' "$BUILD/tests/unit/test_finite_differences"
else
  echo "$op: tests/data/operators/types.tsv has no line of it"
fi
if ((tested == 0)); then echo "$op: nothing tests it; is it spelt as in tests/data/operators/types.tsv?" && status=1; fi
exit $status
