#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests words.sh: each line makes a small tree and says what the check has to complain of. Backslash escapes stand for characters
# of a file that this file must not contain itself: \043 is a number sign, \145 the letter e.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
status=0

run() { "$here/words.sh" -C "$tree" "$@" 2>&1 || true; }

complain() { # expected, found
  printf 'words_test: expected "%s", found:\n%s\n' "$1" "$2"
  status=1
}

expect() { # expected output; path; contents of that file, with escapes; more pairs of path and contents
  local expected found
  expected=$(printf '%b' "$1")
  shift
  rm -rf "${tree:?}"/*
  while (($#)); do
    mkdir -p "$tree/$(dirname "$1")"
    printf '%b\n' "$2" >"$tree/$1"
    shift 2
  done
  found=$(run)
  [[ $found == *"$expected"* ]] || complain "$expected" "$found"
}

expect 'src/plan/a.cc:1: the comment begins with "What"' src/plan/a.cc '// What a step takes.'
expect 'src/plan/a.cc:2: the comment begins with "Of"' src/plan/a.cc 'int x;\n/** Of a step. */\nint y;'
expect 'src/plan/a.cc:1: the comment begins with "Who"' src/plan/a.cc 'int x;  // Who waits, waits here.'
expect 'src/plan/a.cc:1: the comment begins with "Whose"' src/plan/a.cc '/* Whose turn it is. */'
expect 'src/plan/a.cc:1: the comment begins with "That of"' src/plan/a.cc '// That of the group.'
expect 'src/plan/a.cc:3: the comment begins with "What"' src/plan/a.cc '// Fine.\n//\n// What is in a paragraph of its own.'
expect 'src/plan/a.cc:2: the comment begins with "Of"' src/plan/a.cc 'int x;  // the count\n// Of another column.'
expect 'src/plan/a.cc:4: the comment begins with "What"' src/plan/a.cc 'char q = 39, n = 1;\nauto s = R"(\n"quote)";\n// What follows a raw string.'
expect 'a.rs:2: the comment begins with "Of"' a.rs "fn f<'a>(x: &'a str) {}\n/// Of lifetimes."
expect 'a.go:1: the comment begins with "What"' a.go '// What a package is for.'
expect 'a.scala:1: the comment begins with "What"' a.scala '/** What an object holds. */'
expect 'a.py:1: the comment begins with "What"' a.py '"""What a module holds."""'
expect 'a.py:2: the comment begins with "Of"' a.py 'x = 1\ny = 2  \043 Of y.'
expect 'a.sh:1: the comment begins with "Of"' a.sh '\043 Of the shell.'
expect 'a.pm:5: the comment begins with "What"' a.pm '=head2 read\n\nReads.\n\nWhat comes out is an array.\n\n=cut'
expect 'passed' a.pm '=head2 read\n\nReads.\nWhat is in one paragraph is one comment.\n\n    What verbatim text says.\n\n=cut'
expect 'passed' src/plan/a.cc '// What takes the most memory? The step with the largest arrays.'
expect 'passed' src/plan/a.cc '// The sum\n// Of a line that goes on is no fragment.'
expect 'passed' src/plan/a.cc 'int x;  // the sum\n        // Of a line that goes on.'
expect 'passed' src/plan/a.cc 'const char *s = "// Of a string";\nauto r = R"(// What is in a raw string)";'
expect 'passed' src/plan/a.cc '// Whatever fails, the others run.'
expect 'README.md:2: the word "Who\145ver"' README.md 'Fine.\nWho\145ver waits.'
expect 'passed' LICENSE 'Who\145ver waits.' tests/golden/a.json 'who\145ver' tests/data/a.txt 'who\145ver' examples/data/a.txt 'who\145ver'
expect 'tests/golden/a.cc:1: the word "who\145ver"' tests/golden/a.cc '// For who\145ver asks.'
expect 'src/plan/a.cc:1: the type "Value" is also in src/tool/b.hpp:2' src/plan/a.cc 'struct Value {' src/tool/b.hpp '\nclass Value final : public Node {'
expect 'cuda/op/a.cu:2: the type "Value" is also in src/cpu/op/b.cc:1' cuda/op/a.cu 'template <typename T>\nstruct Value {' src/cpu/op/b.cc 'enum class Value : int {'
expect 'src/plan/a.cc:1: the type "Value" is also in src/tool/b.cc:1' src/plan/a.cc 'struct Value\n    : Node {' src/tool/b.cc 'struct alignas(64) Value {'
expect 'passed' src/plan/a.cc 'struct Value {' src/plan/b.cc 'struct Value {'
expect 'passed' src/plan/a.cc 'struct Value {' src/tool/b.cc 'struct Value;'
expect 'passed' src/plan/a.cc 'struct Value {' src/tool/b.cc 'class Network {\n  struct Value {'
expect 'passed' src/plan/a.cc 'struct Value {' tests/unit/b.cc 'struct Value {'
expect 'passed' src/plan/a.cc 'struct hash<Value> {' src/tool/b.cc 'struct hash<Value> {'
expect 'src/plan/a.cc:2: the type "Place"' src/plan/a.cc '\n  struct Place {'
expect 'src/plan/a.hpp:1: the type "Pass"' src/plan/a.hpp 'class Pass;'
expect 'tests/unit/a.cc:1: the type "Part"' tests/unit/a.cc 'using Part = int;'
expect 'a.py:1: the type "Look"' a.py 'class Look:'
expect 'a.go:1: the type "Look"' a.go 'type Look struct {'
expect 'passed' src/plan/a.cc 'struct Placement {\n  // a struct Place would be refused\n};'

# With a path it complains of that path alone, but reads the types of all folders.
rm -rf "${tree:?}"/* && mkdir -p "$tree/src/plan" "$tree/src/tool"
printf '// What a.\nstruct Value {\n' >"$tree/src/plan/a.cc"
cp "$tree/src/plan/a.cc" "$tree/src/tool/b.cc"
found=$(run src/plan)
[[ $found == *'2 wrong in 1 files'* ]] || complain '2 wrong in 1 files' "$found"
[[ $found != *'src/tool/b.cc:1: the comment'* ]] || complain 'nothing of src/tool' "$found"

# Subjects of commits
rm -rf "${tree:?}"/*
git_in_tree() { git -C "$tree" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false "$@"; }
long=$(printf 'plan: %067d' 0)
found=$(run)
[[ $found == *'are left out'* ]] || complain 'subjects are left out' "$found"
git_in_tree init -q
git_in_tree commit -q --allow-empty -m "$long, before the base"
base=$(git_in_tree rev-parse HEAD)
git_in_tree commit -q --allow-empty -m "${long%0}" -m "$long in the body is fine"
found=$(run -b "$base")
[[ $found == *passed* && $found != *subject* ]] || complain 'passed' "$found"
git_in_tree commit -q --allow-empty -m "$long"
found=$(run -b "$base")
[[ $found == *'the subject has 73 characters, more than 72: plan: 0'* ]] || complain 'the subject has 73 characters' "$found"
if "$here/words.sh" -C "$tree" -b "$base" >"$tree/output"; then complain 'a failure' "$(cat "$tree/output")"; fi
found=$(run -b "$base" .)
[[ $found != *subject* ]] || complain 'no subjects with a path' "$found"
found=$(run -b 0123456789012345678901234567890123456789)
[[ $found == *'are left out'* ]] || complain 'subjects are left out' "$found"

if ((status == 0)); then echo "words_test: passed"; fi
exit $status
