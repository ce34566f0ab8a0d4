# SPDX-License-Identifier: Apache-2.0
# How run_tests.sh runs tests: several at a time, each with a budget of seconds, and what it reads off their output.
# Sourced by it, in the top folder of the project, with BUILD in the environment.
#   job FUNCTION NAME...   runs `check`, `program`, `golden`, `tap` or another function beside other jobs
# A job writes lines "name, passed, failed, skipped, milliseconds" to $counts and "PROGRAM:TEST, verdict" to $result;
# both are collected, and its output is printed, when it ends.
logs=$BUILD/tests/logs
results=$BUILD/tests/results
jobs=$BUILD/tests/jobs
rm -rf "$jobs"
mkdir -p "$logs" "$results" "$jobs" "$BUILD/tests/tmp"
export TMPDIR="$PWD/$BUILD/tests/tmp"
[[ $BUILD != /* ]] || export TMPDIR=$BUILD/tests/tmp

passed=0 failed=0 skipped=0 failures=()
kind=  # stands before the names of programs that run in another way than usual
part=
declare -A running=() rules=() part_of=()
last_job=0

# tests/check/programs.tsv: name, rule, reason. Rules: alone; seconds=N; long-under-sanitizers; second-seed.
while IFS=$'\t' read -r name rule _; do
  if [[ -n $name && $name != \#* ]]; then rules[$name]+=" $rule"; fi
done <tests/check/programs.tsv
ruled() { [[ " ${rules[$1]-} " == *" $2 "* ]]; } # name, rule

label() { printf '%s' "$kind${1#"$BUILD"/tests/}"; } # a program's path, or the name of a test

budget() { # name: seconds that the test may take
  local seconds=60
  if [[ ${rules[$1]-} =~ seconds=([0-9]+) ]]; then seconds=${BASH_REMATCH[1]}; fi
  echo $((seconds * ${TEST_BUDGET_FACTOR:-1}))
}

# Called by a job when a test has ended: adds it to the counts and prints its line.
ended() { # name, start in microseconds, exit status, number passed, failed, skipped
  local ms=$(((${EPOCHREALTIME/[.,]/} - $2) / 1000)) found=$5
  if (($3 != 0 && found == 0)); then found=1; fi
  printf '%s\t%d\t%d\t%d\t%d\n' "$1" "$4" "$found" "$6" "$ms" >>"$counts"
  if (($3 == 124)); then echo "$1: ran longer than its budget of $(budget "$1") s (tests/check/programs.tsv)"; fi
  printf '%s: %d passed, %d failed, %d skipped, %d.%d s%s\n' "$1" "$4" "$found" "$6" $((ms / 1000)) $((ms % 1000 / 100)) \
    "$( (($3 == 0)) || printf ' (exit status %d)' "$3")"
}

left_out() { # name, reason: counts as skipped
  printf '%s\t0\t0\t1\t0\n' "$1" >>"$counts"
  echo "$1: left out, $2"
}

spawn() {
  local files=$jobs/$((++last_job))
  : >"$files.counts" >"$files.tsv"
  (counts=$files.counts result=$files.tsv && "$@") >"$files.log" 2>&1 </dev/null &
  running[$!]=$last_job part_of[$last_job]=$part
}

reap() { # waits for one job, prints what it has printed, and adds up what it has counted
  local pid name p f s ms any=
  wait -n -p pid "${!running[@]}"
  local number=${running[$pid]} files=$jobs/${running[$pid]}
  unset "running[$pid]"
  cat "$files.log"
  cat "$files.tsv" >>"$results/${part_of[$number]}.tsv"
  while IFS=$'\t' read -r name p f s ms; do
    any=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if ((f)); then failures+=("$name"); fi
    printf '%d\t%s\n' "$ms" "$name" >>"$jobs/times"
  done <"$files.counts"
  if [[ -z $any ]]; then
    failed=$((failed + 1)) failures+=("a job of ${part_of[$number]}")
    echo "a job of the part ${part_of[$number]} ended without a result"
  fi
}

drain() { while ((${#running[@]})); do reap; done; }

job() { # function and its arguments, of which the first names the test
  local name
  name=$(label "${2:-$1}")
  if ruled "$name" alone; then
    drain
    spawn "$@"
    drain
  else
    while ((${#running[@]} >= ${TEST_JOBS:-2})); do reap; done
    spawn "$@"
  fi
}

check() { # name, command: one test that passes with its exit status
  local name=$1 log=$logs/${1//[\/ ]/_}.log status=0 start=${EPOCHREALTIME/[.,]/}
  shift
  if [[ $(type -t "$1") == function ]]; then
    "$@" >"$log" 2>&1 || status=$?
  else
    timeout "$(budget "$name")" "$@" >"$log" 2>&1 || status=$?
  fi
  if ((status)); then cat "$log"; else tail -n 1 "$log"; fi
  printf 'check:%s\t%s\n' "${name// /_}" "$( ((status)) && echo failed || echo passed)" >>"$result"
  ended "$name" "$start" "$status" "$((status == 0))" 0 0
}

# Test and verdict from the lines about each test, by name: the summary repeats some of them. A test that began and never
# ended (the program died) has failed.
verdicts() {
  awk -v OFS='\t' '
    function close_open(verdict) { if (open != "") print open, verdict; open = "" }
    match($0, /\[ RUN      \] /) { close_open("failed"); open = substr($0, RSTART + RLENGTH); next }
    open == "" { next }
    match($0, /\[       OK \] /) && substr($0, RSTART + RLENGTH) == open { close_open("passed") }
    match($0, /\[  SKIPPED \] /) && substr($0, RSTART + RLENGTH) == open { close_open("skipped") }
    match($0, /\[  (FAILED|ERROR) *\] /) && substr($0, RSTART + RLENGTH) == open { close_open("failed") }
    END { close_open("failed") }' "$1"
}

# Adds PROGRAM:TEST and verdict to the results. Nobody knows which test a program failed for that failed after its last
# one (a leak): then none of them has passed.
note_verdicts() { # program, exit status; standard input: what verdicts or case_verdicts say
  awk -v OFS='\t' -v program="$1" -v status="$2" -F '\t' '
    { test[NR] = $1; verdict[NR] = $2; failed += $2 == "failed" }
    END {
      for (i = 1; i <= NR; ++i) print program ":" test[i], status && !failed && verdict[i] == "passed" ? "failed" : verdict[i]
    }' >>"$result"
}

count_verdicts() {
  awk -F '\t' '{ ++count[$2] } END { print count["passed"] + 0, count["failed"] + 0, count["skipped"] + 0 }'
}

# Runs a command that prints verdicts, which a function reads off its log.
verdicts_of() { # name, function that reads the log, command
  local name=$1 reader=$2 status=0 counts_of start=${EPOCHREALTIME/[.,]/}
  local log=$logs/${name//[\/ ]/_}${CUDASIM_SEED:+_$CUDASIM_SEED}.log
  shift 2
  timeout "$(budget "$name")" "$@" >"$log" 2>&1 || status=$?
  read -r -a counts_of < <("$reader" "$log" | count_verdicts)
  "$reader" "$log" | note_verdicts "$name" "$status"
  if ((status == 0 && counts_of[0] + counts_of[1] + counts_of[2] == 0)); then
    echo "ran no test at all" >>"$log"
    status=1
  fi
  if ((status || counts_of[1])); then cat "$log"; fi
  ended "$name" "$start" "$status" "${counts_of[@]}"
}

program() { verdicts_of "$(label "$1")" verdicts "$1"; } # a program of CMocka tests, or of tests/unit

tap() { verdicts_of "$1" tap_verdicts "${@:2}"; } # name, command that writes TAP

# The log has lines of the cases that did not pass, each from the name of the case.
case_verdicts() { # folder, log
  "$GOLDEN_RUNNER" --list "$1" | awk -v OFS='\t' '
    NR == FNR { at = index($0, ": "); if (at) verdict[substr($0, 1, at - 1)] = /^[^:]*: skipped, / ? "skipped" : "failed"; next }
    { print substr($0, index($0, "/") + 1), $0 in verdict ? verdict[$0] : "passed" }' "$2" -
}

golden() { # one folder of golden cases, options of the runner
  local status=0 name=$kind$1${2:+ $2}${3:+ $3} log counts_of start=${EPOCHREALTIME/[.,]/}
  log=$logs/golden_${name//[^a-z0-9]/_}${CUDASIM_SEED:+_$CUDASIM_SEED}.log
  timeout "$(budget "$kind$1")" "$GOLDEN_RUNNER" "${@:2}" "$1" >"$log" 2>&1 || status=$?
  read -r -a counts_of < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped.*/\1 \2 \3/p' "$log" | tail -n 1)
  if ((${#counts_of[@]} != 3)); then counts_of=(0 1 0); fi
  (($# > 1)) || case_verdicts "$1" "$log" | note_verdicts "${1#tests/}" "$status"
  if ((status || counts_of[1])); then cat "$log"; fi
  ended "$name" "$start" "$status" "${counts_of[@]}"
}

# Test and verdict from the lines of TAP that are not indented.
tap_verdicts() {
  awk -v OFS='\t' '
    /^(not )?ok / {
      verdict = /^not / ? "failed" : "passed"
      sub(/^(not )?ok [0-9]*( - )?/, "")
      if (sub(/ *# (skip|SKIP).*/, "")) verdict = "skipped"
      print $0, verdict
    }' "$1"
}

rust_verdicts() { # test and verdict from what cargo writes
  awk -v OFS='\t' '
    /^test .* \.\.\. (ok|FAILED|ignored)$/ {
      verdict = $NF == "ok" ? "passed" : $NF == "ignored" ? "skipped" : "failed"
      sub(/^test /, ""); sub(/ \.\.\. [A-Za-z]+$/, "")
      gsub(/_/, " ")
      print $0, verdict
    }' "$1"
}
