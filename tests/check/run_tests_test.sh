#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the counts of run_tests.sh, with programs that only print what a program of CMocka tests would print.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

expect() { # the closing line, the exit status, the results it writes; standard input: a program
  local found code=0
  mkdir -p "$work/tests/capi"
  { echo '#!/bin/sh' && cat; } >"$work/tests/capi/fake"
  chmod +x "$work/tests/capi/fake"
  found=$(BUILD=$work CAPI=$work/tests/capi/fake "$here/run_tests.sh" capi 2>&1) || code=$?
  if [[ $(tail -n 1 <<<"$found") != "$1" || $code != "$2" ]]; then
    printf 'run_tests_test: expected "%s" and exit status %s, found status %s and:\n%s\n' "$1" "$2" "$code" "$found"
    status=1
  fi
  found=$(sed 's|^capi/fake:||; s|\t|: |' "$work/tests/results/capi.tsv" | paste -sd ' ')
  if [[ $found != "$3" ]]; then
    printf 'run_tests_test: expected the results "%s", found "%s"\n' "$3" "$found"
    status=1
  fi
}

expect '2 passed, 0 failed, 1 skipped' 0 'a: passed b: skipped c: passed' <<'EOT'
printf '[==========] Running 3 test(s).\n[ RUN      ] a\nsome text[       OK ] a\n[ RUN      ] b\n[  SKIPPED ] b\n'
printf '[ RUN      ] c\n[       OK ] c\n[  PASSED  ] 2 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] b\n'
EOT
expect '1 passed, 1 failed, 0 skipped' 1 'a: passed b: failed' <<'EOT'
printf '[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n[  ERROR   ] --- 1 != 2\n[  FAILED  ] b\n'
printf '[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] b\n'
exit 1
EOT
# Died in a test, before its verdict.
expect '1 passed, 1 failed, 0 skipped' 1 'a: passed b: failed' <<'EOT'
printf '[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n'
kill -9 $$
EOT
# All tests passed but the program failed, as with a leak that the sanitizer finds at the end.
expect '1 passed, 1 failed, 0 skipped' 1 'a: failed' <<'EOT'
printf '[ RUN      ] a\n[       OK ] a\n'
exit 23
EOT
expect '0 passed, 1 failed, 0 skipped' 1 '' <<'EOT'
echo "no test in here"
EOT
# How tests run beside each other: in a copy of the runner with rules of its own.
mkdir -p "$work/runner/tests/check"
cp "$here"/{run_tests.sh,test_jobs.sh} "$work/runner/tests/check"
printf 'capi/slow\tseconds=1\ta test\ncapi/lonely\talone\ta test\ncapi/numbers\tlong-under-sanitizers\ta test\n' >"$work/runner/tests/check/programs.tsv"
fake() { # name; standard input: what it does before it passes
  mkdir -p "$work/runner/tests/capi"
  { echo '#!/bin/sh' && cat && printf 'printf "[ RUN      ] a\\n[       OK ] a\\n"\n'; } >"$work/runner/tests/capi/$1"
  chmod +x "$work/runner/tests/capi/$1"
}
run_fakes() { # part, names of programs; the output of the runner
  local part=$1
  shift
  (cd "$work/runner" && BUILD=. CAPI="${*/#/./tests/capi/}" bash tests/check/run_tests.sh "$part" 2>&1 || true)
}
require() { # what is shown; standard input; patterns, each in it
  local output pattern
  output=$(cat)
  for pattern in "${@:2}"; do
    if ! grep -q -- "$pattern" <<<"$output"; then
      printf 'run_tests_test: %s: no "%s" in:\n%s\n' "$1" "$pattern" "$output"
      status=1
    fi
  done
}
cd "$work/runner"
# Each of the two waits until the other one has begun.
fake left <<<'touch left; for i in $(seq 100); do [ ! -e right ] || break; sleep 0.05; done; [ -e right ] || exit 1'
fake right <<<'touch right; for i in $(seq 100); do [ ! -e left ] || break; sleep 0.05; done; [ -e left ] || exit 1'
run_fakes capi left right | require 'two programs run at a time' '^2 passed, 0 failed, 0 skipped$'
fake busy <<<'touch at_work; sleep 0.5; rm at_work'
fake lonely <<<'for i in 1 2 3 4 5; do [ ! -e at_work ] || exit 1; sleep 0.1; done'
run_fakes capi busy lonely busy | require 'a program runs alone' '^3 passed, 0 failed, 0 skipped$'
fake slow <<<'sleep 5'
run_fakes capi slow | require 'a budget fails' 'capi/slow: ran longer than its budget of 1 s (tests/check/programs.tsv)' '^0 passed, 1 failed, 0 skipped$'
fake numbers <<<':'
run_fakes capi busy numbers | require 'seconds are told' '^capi/busy: 1 passed, 0 failed, 0 skipped, 0\.[5-9] s$' '^ *0\.[5-9]  capi/busy$'
SANITIZER=tsan run_fakes capi busy numbers | require 'long under ThreadSanitizer' '^1 passed, 0 failed, 0 skipped$'
SANITIZER=asan run_fakes sanitizers-long busy numbers | require 'what check-asan leaves out' '^capi/numbers: 1 passed' '^1 passed, 0 failed, 0 skipped$'
cd "$here/../.."

# The lines of TAP: the counts are those of the tests that are not indented. `prove` repeats them with --verbose.
expect_tap() { # the closing line, the exit status, the results it writes; standard input: a test of Perl's
  local found code=0
  mkdir -p "$work/bindings/perl/t" "$work/tests/check"
  cp "$here"/{run_tests.sh,test_jobs.sh,programs.tsv} "$work/tests/check"
  printf '#!/bin/sh\necho packed\n' >"$work/tests/check/perl_dist.sh"
  chmod +x "$work/tests/check/perl_dist.sh"
  cat >"$work/bindings/perl/t/fake.t"
  found=$(BUILD=$work/build "$work/tests/check/run_tests.sh" perl 2>&1) || code=$?
  if [[ $(tail -n 1 <<<"$found") != "$1" || $code != "$2" ]]; then
    printf 'run_tests_test: expected "%s" and exit status %s, found status %s and:\n%s\n' "$1" "$2" "$code" "$found"
    status=1
  fi
  found=$(sed -n 's|^perl/fake:||p' "$work/build/tests/results/perl.tsv" | sed 's|\t|: |' | paste -sd ' ')
  if [[ $found != "$3" ]]; then
    printf 'run_tests_test: expected the results "%s", found "%s"\n' "$3" "$found"
    status=1
  fi
}

expect_tap '3 passed, 0 failed, 1 skipped' 0 'a: passed b is so: passed c: skipped' <<'EOT'
print "ok 1 - a\n    ok 1 - inside\n    1..1\nok 2 - b is so\nok 3 - c # skip no time\n1..3\n";
EOT
expect_tap '2 passed, 1 failed, 0 skipped' 1 'a: passed b: failed' <<'EOT'
print "1..2\nok 1 - a\nnot ok 2 - b\n"; exit 1;
EOT
# Died before the last of its tests.
expect_tap '2 passed, 1 failed, 0 skipped' 1 'a: failed' <<'EOT'
$| = 1; print "1..2\nok 1 - a\n"; kill 9, $$;
EOT
expect_tap '1 passed, 1 failed, 0 skipped' 1 '' <<'EOT'
print "1..0 # SKIP nothing to do\n";
EOT

if ((status == 0)); then echo "run_tests_test: passed"; fi
exit $status
