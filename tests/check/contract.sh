#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that each rule of the specification is proven by tests that ran: the table that tests/contract/README.md describes.
#   contract.sh FOLDER SYMBOLS RESULTS
#     FOLDER   tests/contract: README.md, the pages in the order in which it links them, contract.tsv
#     SYMBOLS  tests/abi/symbols.txt: the library's exports, which the part abi of the tests compares with the library
#     RESULTS  the folder of files that run_tests.sh writes: PROGRAM:TEST, a tab, and passed, failed or skipped
set -euo pipefail
export LC_ALL=C
folder=$1 symbols=$2 results=$3
status=0

mapfile -t pages < <(grep -oE '\]\([a-z_]+\.md\)' "$folder/README.md" | tr -d '[]()' | awk '!seen[$0]++')
for page in "$folder"/*.md; do
  name=$(basename "$page")
  if [[ $name != README.md && " ${pages[*]} " != *" $name "* ]]; then
    echo "contract: README.md does not link $name"
    status=1
  fi
done
present=()
for page in "${pages[@]}"; do
  if [[ -e $folder/$page ]]; then
    present+=("$folder/$page")
  else
    echo "contract: README.md links $page, which is not there"
    status=1
  fi
done
shopt -s nullglob
ran=("$results"/*.tsv)
if ((${#ran[@]} == 0)); then
  echo "contract: no results of tests in $results; run make test first"
  exit 1
fi

awk -F '\t' '
  function complain(text) { print "contract: " text; bad = 1 }

  kind == "results" { verdict[$1] = $2; next }
  kind == "symbols" { split($0, words, " "); exported[words[1]] = 1; next }
  kind == "page" {
    if (!match($0, /^- \*\*[A-Z][A-Z][A-Z]-[0-9][0-9]\*\*/)) next
    id = substr($0, 5, 6)
    if (id in page_of) complain(id " is described twice, in " page_of[id] " and " FILENAME)
    page_of[id] = FILENAME
    place[id] = ++num_places
    next
  }
  FNR == 1 {
    if ($0 != "id\tprovided by\tproven by") complain("the first line of the table is not \"id, provided by, proven by\"")
    next
  }
  {
    id = $1
    if (NF > 3) complain(id " has " NF " columns")
    if (id in provided) complain(id " is twice in the table")
    else order[++num] = id
    provided[id] = $2
    proven[id] = $3
  }

  # 0: all passed; 1: some need a GPU, the others passed; 2: not proven.
  function look_at(id,    i, count, tests, gpu, state) {
    count = split(proven[id], tests, " ")
    for (i = 1; i <= count; ++i) {
      if (tests[i] == "gpu") gpu = 1
      else if (!(tests[i] in verdict)) { complain(id ": " tests[i] " does not exist or was not run"); state = 2 }
      else if (verdict[tests[i]] == "skipped" && gpu) state = state > 1 ? state : 1
      else if (verdict[tests[i]] != "passed") { complain(id ": " tests[i] " has " verdict[tests[i]]); state = 2 }
    }
    if (count > gpu) return state + 0
    complain(id " has no test")
    return 2
  }
  function look_at_functions(id,    i, count, names) {
    if (provided[id] == "-") return
    count = split(provided[id], names, " ")
    if (!count) complain(id ": no function is named")
    for (i = 1; i <= count; ++i)
      if (!(names[i] in exported)) complain(id ": " names[i] " is not exported")
  }

  END {
    for (id in page_of) if (!(id in provided)) complain(id " is in " page_of[id] " and not in the table")
    for (i = 1; i <= num; ++i) {
      id = order[i]
      if (!(id in page_of)) complain(id " is on no page")
      else if (place[id] < last) complain(id " is not where the pages have it")
      else last = place[id]
      look_at_functions(id)
      state = look_at(id)
      if (state == 0) ++num_proven
      if (state == 1) { ++num_gpu; gpu_ids = gpu_ids " " id }
    }
    printf "%d of %d contract ids proven%s\n", num_proven, num, num_gpu ? ", " num_gpu " open: needs a GPU:" gpu_ids : ""
    exit bad
  }' kind=results "${ran[@]}" kind=symbols "$symbols" kind=page ${present[@]+"${present[@]}"} kind=table "$folder/contract.tsv" || status=1
exit $status
