#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares CONTRIBUTING.md with the tree: the section of each example must link to every file of src, cuda, include and bindings/tools
# that names the example, all links must lead to files, and the targets of make that the page names must exist.
#   contributing.sh [PAGE]
set -euo pipefail
cd "$(dirname "$0")/../.."
page=${1:-CONTRIBUTING.md}
num_wrong=0
complain() {
  echo "$page: $*"
  num_wrong=$((num_wrong + 1))
}

# Lists the files that contain a name in any case (adamax, Adamax), or the update operators of an optimizer (_adamax_update).
files_with() { grep -rliwE --exclude="*.md" "_?(mp_)?$1(_update)?" src cuda include bindings/tools | LC_ALL=C sort; }

num_examples=0
while IFS=$'\t' read -r example links; do
  num_examples=$((num_examples + 1))
  mapfile -t found < <(files_with "$example")
  if ((${#found[@]} < 3)); then complain "$example: only ${#found[@]} files name it"; fi
  for file in "${found[@]}"; do
    if [[ " $links " != *" $file "* ]]; then complain "$example: the list lacks $file"; fi
  done
  for file in $links; do
    if [[ ! -e $file ]]; then complain "$example: there is no $file"; fi
  done
done < <(awk '
  function section() { if (example != "") print example "\t" links; example = links = "" }
  /^## / { section() }
  /^Example: `/ { section(); split($0, part, "`"); example = part[2]; next }
  example != "" {
    while (match($0, /\]\([^)]*\)/)) { links = links " " substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH) }
  }
  END { section() }' "$page")
if ((num_examples == 0)); then complain "has no example"; fi

targets=$(sed -nE 's/^([A-Za-z$(){} _-]+):([^=].*)?$/\1/p' Makefile | tr ' ' '\n')
while read -r target; do
  [[ $target == build/* ]] || grep -qx -- "$target" <<<"$targets" || complain "there is no make $target"
done < <(grep -ohE '(^    |`)make [a-z][a-z/_-]*' "$page" | sed 's/.*make //' | sort -u)

if ((num_wrong)); then exit 1; fi
echo "contributing: $num_examples lists name the files that there are"
