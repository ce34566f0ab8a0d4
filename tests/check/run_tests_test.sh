#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The runner counts what happened: here with programs that only say what a program of CMocka tests would say.
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
# All tests passed and the program failed all the same, as with a leak that the sanitizer finds at the end.
expect '1 passed, 1 failed, 0 skipped' 1 'a: failed' <<'EOT'
printf '[ RUN      ] a\n[       OK ] a\n'
exit 23
EOT
expect '0 passed, 1 failed, 0 skipped' 1 '' <<'EOT'
echo "no test in here"
EOT
# The lines of TAP: the counts are those of the tests that are not indented. `prove` repeats them with --verbose.
expect_tap() { # the closing line, the exit status, the results it writes; standard input: a test of Perl's
  local found code=0
  mkdir -p "$work/bindings/perl/t" "$work/tests/check"
  cp "$here/run_tests.sh" "$work/tests/check"
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
