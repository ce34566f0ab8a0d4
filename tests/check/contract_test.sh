#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests contract.sh: it must detect each single change in a small contract that is otherwise valid.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

fresh() {
  rm -rf "${work:?}"/*
  mkdir -p "$work/contract" "$work/results"
  printf -- 'Chapters: [one](one.md), [two](two.md).\n' >"$work/contract/README.md"
  printf -- '- **AAA-01** A rule.\n- **AAA-02** Another, see AAA-01.\n' >"$work/contract/one.md"
  printf -- '- **BBB-01** A rule for a GPU.\n' >"$work/contract/two.md"
  printf 'id\tprovided by\tproven by\n' >"$work/contract/contract.tsv"
  printf 'AAA-01\tcohort_a\tcapi/test_a:x\nAAA-02\t-\tcapi/test_a:y golden/group:z\nBBB-01\tcohort_b cohort_a\tcapi/test_a:x gpu capi/test_gpu:g\n' \
    >>"$work/contract/contract.tsv"
  printf 'cohort_a COHORT_0\ncohort_b COHORT_0\n' >"$work/symbols.txt"
  printf 'capi/test_a:x\tpassed\ncapi/test_a:y\tpassed\ncapi/test_gpu:g\tskipped\n' >"$work/results/capi.tsv"
  printf 'golden/group:z\tpassed\n' >"$work/results/golden.tsv"
}

expect() { # exit status, words of the output; then nothing, or a file and a sed script for it
  local found code=0
  fresh
  if (($# > 2)); then
    cp "$work/$3" "$work/before"
    sed -i "$4" "$work/$3"
    if cmp -s "$work/before" "$work/$3"; then echo "contract_test: '$4' changes nothing" && status=1; fi
  fi
  found=$("$here/contract.sh" "$work/contract" "$work/symbols.txt" "$work/results" 2>&1) || code=$?
  if [[ $code != "$1" || $found != *"$2"* ]]; then
    printf 'contract_test: %s: expected status %s and "%s", found status %s and:\n%s\n' "${4:-unchanged}" "$1" "$2" "$code" "$found"
    status=1
  fi
}

table=contract/contract.tsv
expect 0 '2 of 3 contract ids proven, 1 open: needs a GPU: BBB-01'
expect 0 '3 of 3 contract ids proven' results/capi.tsv 's/skipped/passed/'
expect 1 'BBB-01: capi/test_gpu:g has failed' results/capi.tsv 's/skipped/failed/'
expect 1 'AAA-01: capi/test_a:x has failed' results/capi.tsv '1s/passed/failed/'
expect 1 'AAA-01: capi/test_a:x has skipped' results/capi.tsv '1s/passed/skipped/'
expect 1 'AAA-02: golden/group:z does not exist or was not run' results/golden.tsv 's/:z/:other/'
expect 1 '1 of 3 contract ids proven' results/golden.tsv 's/passed/failed/'
expect 1 'AAA-01 has no test' $table 's/\tcapi.test_a:x$/\t/'
expect 1 'BBB-01 has no test' $table 's/\tcapi.*gpu.*/\tgpu/'
expect 1 'cohort_b is not exported' symbols.txt '/cohort_b/d'
expect 1 'AAA-01: no function is named' $table 's/^AAA-01\tcohort_a/AAA-01\t/'
expect 1 'AAA-02 is on no page' contract/one.md '/AAA-02\*/d'
expect 1 'AAA-02 is in ' $table '/^AAA-02/d'
expect 1 'AAA-01 is described twice' contract/two.md 's/BBB-01/AAA-01/'
expect 1 'AAA-01 is twice in the table' $table 's/^AAA-02/AAA-01/'
expect 1 'AAA-01 has 4 columns' $table '2s/$/\tmore/'
expect 1 'AAA-01 is not where the pages have it' $table '2{h;d};3G'
expect 1 'the first line of the table' $table '1d'
expect 1 'README.md does not link two.md' contract/README.md 's/, .two.*/./'
expect 1 'README.md links three.md' contract/README.md 's/two.md/three.md/'
fresh
rm "$work"/results/*
if "$here/contract.sh" "$work/contract" "$work/symbols.txt" "$work/results" >/dev/null; then
  echo "contract_test: passes without results" && status=1
fi
if ((status == 0)); then echo "contract_test: passed"; fi
exit $status
