#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests pages.sh and pages.awk.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

compile() { # standard input: a page
  cat >"$work/page.md"
  awk -f tests/check/pages.awk bindings/from-mxnet/README.md tests/check/pages_setup.c "$work/page.md" >"$work/page.c"
  ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror ${CFLAGS:-} -Iinclude "$work/page.c" -o "$work/page" -L"$BUILD" \
    -lcohort -Wl,-rpath,"$(realpath "$BUILD")" 2>&1
}

expect() { # words that must be in the text, the text
  if [[ $2 != *"$1"* ]]; then
    printf 'pages_test: expected "%s", found:\n%s\n' "$1" "$2"
    status=1
  fi
}

good='assert(class_of(NULL) == COHORT_SUCCESS);
OK(cohort_wait_all());'
found=$(compile <<<$'```c\n'"$good"$'\nint64_t batch = cohort_group_batch_size(group);\n```' || true)
expect "page.md:4" "$found"
compile <<EOT
\`\`\`c
$good
\`\`\`
\`\`\`c
OK(cohort_group_array(group, COHORT_GROUP_PARAMS, 9, 0, &array));
\`\`\`
\`\`\`c
assert(1 + 1 == 3);
\`\`\`
\`\`\`c
OK(cohort_ndarray_share(data[0], &array));
OK(cohort_ndarray_share(data[0], &array));
\`\`\`
EOT
found=$("$work/page" || true)
expect "       OK ] page:1" "$found"
expect "[  FAILED  ] page:5" "$found"
expect "page.md:6: cohort_group_array" "$found"
expect "page.md:9: it is not so that 1 + 1 == 3" "$found"
expect "page:11: 1 handles are left" "$found"

printf '`cohort_group_of()` `COHORT_GROUP_OF` [a file](of/ours.md) `cohort_wait_all()` GRP-01 GRP-99 CRC-32\n' >"$work/words.md"
found=$(tests/check/pages.sh "$work/words.md" || true)
expect "no function cohort_group_of()" "$found"
expect "no constant COHORT_GROUP_OF" "$found"
expect "no file of/ours.md" "$found"
expect "no rule GRP-99" "$found"
expect "4 wrong in 1 pages" "$found"
printf '`read[T](a)` [`read`](of/ours.md)\n```go\nread[T](b)\n```\n' >"$work/code.md" # in code, brackets are no links
expect "code.md: there is no file of/ours.md
pages: 1 wrong in 1 pages" "$(tests/check/pages.sh "$work/code.md" || true)"
if ((status == 0)); then echo "pages_test: passed"; fi
exit $status
