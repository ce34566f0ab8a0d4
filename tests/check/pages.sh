#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the things Markdown pages name exist: functions and constants of the public headers, rules of the contract, files
# that are linked to.
#   pages.sh [PAGE...]    without pages: all that git tracks
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C
if (($#)); then pages=("$@"); else mapfile -t pages < <(git ls-files '*.md' 2>/dev/null || find . -name '*.md'); fi
# Environment variables of bindings are found in the code that reads them, macros of kernels in their headers.
mapfile -t readers < <(find bindings cuda \( -name '*.py' -o -name '*.rs' -o -name '*.pm' -o -name '*.hpp' \) -not -path '*/target/*')
known=$(cat include/cohort/*.h src/base/settings.hpp tests/capi/support/contexts.h "${readers[@]}" | grep -ohE '\b(cohort|COHORT)_[A-Za-z0-9_]+' | sort -u)
rules=$(tail -n +2 tests/contract/contract.tsv | cut -f 1)
chapters=$(cut -c 1-3 <<<"$rules" | sort -u | paste -sd '|')
num_wrong=0

missing() { # page, kind, pattern, what there is: complains of each word of the page that is not there
  local word
  while read -r word; do
    echo "$1: there is no $2 $word"
    num_wrong=$((num_wrong + 1))
  done < <(grep -ohE "$3" "$1" | sort -u | comm -23 - <(sort -u <<<"$4"))
}

for page in "${pages[@]}"; do
  missing "$page" "function" '\bcohort_[a-z0-9_]+\(\)' "$(sed 's/$/()/' <<<"$known")"
  missing "$page" "constant" '\bCOHORT_[A-Z0-9_]+[A-Z0-9]\b' "$known"
  missing "$page" "rule" "\\b($chapters)-[0-9]{2}\\b" "$rules"
  while read -r link; do
    if [[ ! -e $(dirname "$page")/$link ]]; then
      echo "$page: there is no file $link"
      num_wrong=$((num_wrong + 1))
    fi
  done < <(awk '/^ *```/ { code = !code } !code { gsub(/`[^`]*`/, ""); print }' "$page" | grep -oE '\]\([^)# ]+' | cut -c 3- | grep -v '^[a-z]*:')
done
if ((num_wrong)); then echo "pages: $num_wrong wrong in ${#pages[@]} pages" && exit 1; fi
echo "pages: all names and links in ${#pages[@]} pages are valid"
