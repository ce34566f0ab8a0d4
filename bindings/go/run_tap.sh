#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the Go binding, in this folder, and writes their results as TAP.
#   run_tap.sh GO
set -uo pipefail
"$1" test -count=1 -v ./... 2>&1 | awk '
  /^ *--- (PASS|FAIL|SKIP): / {
    printf "%sok %d - %s%s\n", $2 == "FAIL:" ? "not " : "", ++num, $3, $2 == "SKIP:" ? " # skip" : ""
    next
  }
  { print "# " $0 }'
exit "${PIPESTATUS[0]}"
