#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that cohort-golden goes on after a case that has broken its GPU: of many cases only those fail that break it.
set -euo pipefail
status=0
output=$(CUDASIM_SEED=2 CUDASIM_BREAK=60 "$BUILD"/cohort-golden --context 'gpu(0)' --filter softmax tests/golden/ops 2>/dev/null) || status=$?
read -r passed failed < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, .*/\1 \2/p' <<<"$output")
((status == 1 && failed >= 2 && passed > 3 * failed)) || {
  echo "cudasim-faults: expected a few failures and exit status 1, found $status:"
  echo "$output"
  exit 1
}
if others=$(grep -v 'illegal memory access\|: and [0-9]* more$\|skipped, \| skipped$' <<<"$output"); then
  echo "cudasim-faults: expected failures by faults alone, found:"
  echo "$others"
  exit 1
fi
echo "cudasim-faults: behind each of $failed cases that broke their GPU others ran, $passed in all"
