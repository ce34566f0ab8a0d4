#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the parts of the tests that are named, all of them whatever fails, and closes with "N passed, N failed, N skipped".
#   run_tests.sh PART...      parts: layers clang headers abi capi unit golden long cudasim cudasim-long pages tool docs perl python rust go scala examples install contract
# What became of each test is written to $BUILD/tests/results/PART.tsv: PROGRAM:TEST, a tab, and passed, failed or skipped.
# The Makefile calls it with BUILD, CC, CXX, PYTHON, CARGO, GO, CAPI, UNIT, CUDASIM, PAGES, GOLDEN_RUNNER and MAKE in the environment.
set -uo pipefail
cd "$(dirname "$0")/../.."
logs=$BUILD/tests/logs
results=$BUILD/tests/results
mkdir -p "$logs" "$results" "$BUILD/tests/tmp"
export TMPDIR="$PWD/$BUILD/tests/tmp"
[[ $BUILD != /* ]] || export TMPDIR=$BUILD/tests/tmp
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Too large an allocation is to fail as it does without a sanitizer, not to end the process.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tests/check/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=allocator_may_return_null=1:suppressions=$PWD/tests/check/tsan.supp:halt_on_error=0:second_deadlock_stack=1
# ThreadSanitizer cannot see the barriers of libgomp: there a team is one thread, and what is tested are our own threads.
if [[ ${SANITIZER:-} == tsan ]]; then export OMP_THREAD_LIMIT=1; fi

passed=0 failed=0 skipped=0 failures=()
kind=  # what stands before the names of programs that run in another way than usual

add() { # name, exit status, number passed, failed, skipped
  if (($2 != 0 && $4 == 0)); then set -- "$1" "$2" "$3" 1 "$5"; fi
  passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + $5))
  if (($4)); then failures+=("$1"); fi
}

check() { # name, command: one test that passes with its exit status
  local name=$1 log=$logs/${1//[\/ ]/_}.log status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  if ((status)); then cat "$log"; else tail -n 1 "$log"; fi
  add "$name" "$status" "$((status == 0))" 0 0
  printf 'check:%s\t%s\n' "${name// /_}" "$( ((status)) && echo failed || echo passed)" >>"$result"
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

program() { # one program of CMocka tests, or of tests/unit
  local name=$kind${1#"$BUILD"/tests/} status=0 counts
  local log=$logs/${name//\//_}.log
  timeout "${TEST_LIMIT:-600}" "$1" >"$log" 2>&1 || status=$?
  read -r -a counts < <(verdicts "$log" | count_verdicts)
  verdicts "$log" | note_verdicts "$name" "$status"
  if ((status == 0 && counts[0] + counts[1] + counts[2] == 0)); then
    echo "ran no test at all" >>"$log"
    status=1
  fi
  if ((status || counts[1])); then cat "$log"; fi
  if ((status == 124)); then echo "$name: ran longer than ${TEST_LIMIT:-600} s"; fi
  printf '%s: %d passed, %d failed, %d skipped%s\n' "$name" "${counts[@]}" \
    "$( ((status == 0)) || printf ' (exit status %d)' "$status")"
  add "$name" "$status" "${counts[@]}"
}

# The log has lines of the cases that did not pass, each from the name of the case.
case_verdicts() { # folder, log
  "$GOLDEN_RUNNER" --list "$1" | awk -v OFS='\t' '
    NR == FNR { at = index($0, ": "); if (at) verdict[substr($0, 1, at - 1)] = /^[^:]*: skipped, / ? "skipped" : "failed"; next }
    { print substr($0, index($0, "/") + 1), $0 in verdict ? verdict[$0] : "passed" }' "$2" -
}

golden() { # one folder of golden cases, options of the runner
  local status=0 name=$kind$1${2:+ $2}${3:+ $3} log counts
  log=$logs/golden_${name//[^a-z0-9]/_}.log
  "$GOLDEN_RUNNER" "${@:2}" "$1" >"$log" 2>&1 || status=$?
  read -r -a counts < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped.*/\1 \2 \3/p' "$log" | tail -n 1)
  if ((${#counts[@]} != 3)); then counts=(0 1 0); fi
  (($# > 1)) || case_verdicts "$1" "$log" | note_verdicts "${1#tests/}" "$status"
  if ((status || counts[1])); then cat "$log"; fi
  printf '%s: %d passed, %d failed, %d skipped\n' "$name" "${counts[@]}"
  add "$name" "$status" "${counts[@]}"
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

tap() { # name, command that writes TAP
  local name=$1 status=0 counts
  local log=$logs/${name//\//_}.log
  shift
  timeout "${TEST_LIMIT:-600}" "$@" >"$log" 2>&1 || status=$?
  read -r -a counts < <(tap_verdicts "$log" | count_verdicts)
  tap_verdicts "$log" | note_verdicts "$name" "$status"
  if ((status == 0 && counts[0] + counts[1] + counts[2] == 0)); then
    echo "ran no test at all" >>"$log"
    status=1
  fi
  if ((status || counts[1])); then cat "$log"; fi
  if ((status == 124)); then echo "$name: ran longer than ${TEST_LIMIT:-600} s"; fi
  printf '%s: %d passed, %d failed, %d skipped%s\n' "$name" "${counts[@]}" \
    "$( ((status == 0)) || printf ' (exit status %d)' "$status")"
  add "$name" "$status" "${counts[@]}"
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

rust_tests() { # the function that runs cargo
  local status=0 counts log=$logs/rust.log
  timeout "${TEST_LIMIT:-600}" bash -c "$(declare -f "$1"); here='$here' CARGO='$CARGO'; $1 test --offline" >"$log" 2>&1 || status=$?
  read -r -a counts < <(rust_verdicts "$log" | count_verdicts)
  rust_verdicts "$log" | note_verdicts rust "$status"
  if ((status == 0 && counts[0] + counts[1] + counts[2] == 0)); then
    echo "ran no test at all" >>"$log"
    status=1
  fi
  if ((status || counts[1])); then cat "$log"; fi
  printf 'rust: %d passed, %d failed, %d skipped%s\n' "${counts[@]}" "$( ((status == 0)) || printf ' (exit status %d)' "$status")"
  add rust "$status" "${counts[@]}"
}

left_out() { # program or model, on simulated GPUs
  grep -q "^$1	" tests/cudasim/long.tsv
}

over_contexts() { # those of $COHORT_TEST_CONTEXTS, which are simulated
  for test in ${CAPI:-}; do left_out "${test##*/}" || program "$test"; done
  for model in tests/golden/models/*/; do
    left_out "models/$(basename "$model")" || golden "${model%/}" --context "$COHORT_TEST_CONTEXTS" --limit 600
  done
}

for part in "$@"; do
  result=$results/$part.tsv
  : >"$result"
  case $part in
    layers)
      check check-layers tests/check/layers.sh
      check layers-test tests/check/layers_test.sh
      check runner-test tests/check/run_tests_test.sh
      check contract-test tests/check/contract_test.sh
      ;;
    clang)
      ${MAKE:-make} --no-print-directory BUILD="$BUILD" check-clang >"$logs/clang.log" 2>&1
      status=$?
      if ((status)); then cat "$logs/clang.log"; else tail -n 1 "$logs/clang.log"; fi
      if grep -q '^check-clang: skipped' "$logs/clang.log"; then add clang 0 0 0 1; else add clang "$status" "$((status == 0))" 0 0; fi
      ;;
    headers)
      before=$passed
      for header in include/cohort/*.h; do
        check "$header as C99" tests/check/header.sh "$header" "$CC" -xc -std=c99
        check "$header as C++17" tests/check/header.sh "$header" "$CXX" -xc++ -std=c++17
      done
      echo "headers: $((passed - before)) times compiled by themselves, as C99 and as C++17"
      ;;
    abi)
      [[ ! -e $BUILD/libcohort.so ]] || check abi tests/check/abi.sh
      [[ ! -e $BUILD/libcohort.so ]] || check described tests/check/described.sh
      ;;
    capi) for test in ${CAPI:-}; do program "$test"; done ;;
    unit) for test in ${UNIT:-}; do program "$test"; done ;;
    golden)
      [[ -z ${GOLDEN_RUNNER:-} ]] || check golden-test tests/check/golden_test.sh "$GOLDEN_RUNNER"
      for folder in tests/golden/*/; do
        if [[ -n ${GOLDEN_RUNNER:-} && -e $folder/INDEX.tsv ]]; then golden "${folder%/}"; fi
      done
      if [[ -n ${GOLDEN_RUNNER:-} && -e tests/golden/ops/INDEX.tsv ]]; then golden tests/golden/ops --parts; fi
      ;;
    cudasim)
      if [[ -z ${CUDASIM:-} ]]; then
        echo "cudasim: skipped, there are no headers of CUDA here, or no simulator for this machine"
        add cudasim 0 0 0 1
        continue
      fi
      export CUDASIM_SEED
      COHORT_BACKEND_PATH=$(cd "$BUILD/cudasim" && pwd)
      export COHORT_BACKEND_PATH
      kind='simulated '
      for CUDASIM_SEED in 1 2; do # which of them waits (cudasim.h)
        for test in $CUDASIM "$BUILD"/tests/capi/test_{gpu,gpu_images,gpu_transforms,device_memory}; do program "$test"; done
        golden tests/golden/group --context 'gpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
        runs=$((CUDASIM_SEED == 2 ? 4 : 1)) # the fourth time by graphs
        golden tests/golden/ops --runs $runs --context 'gpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
        golden tests/golden/optimizers --context 'gpu(0)' --limit 600
        golden tests/golden/group --context 'gpu(0),gpu(1),cpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
        export COHORT_TEST_CONTEXTS='gpu(0),gpu(1)'
        if ((CUDASIM_SEED == 1)); then COHORT_TEST_CONTEXTS='gpu(0),gpu(1),cpu(0)'; fi
        over_contexts
        unset COHORT_TEST_CONTEXTS
      done
      check cudasim-examples tests/check/cudasim_examples.sh
      check cudasim-faults tests/check/cudasim_faults.sh
      check cuda-test tests/check/cuda_test.sh
      kind=
      unset COHORT_BACKEND_PATH
      ;;
    long)
      for test in ${LONG:-}; do TEST_LIMIT=3000 program "$test"; done
      ;;
    cudasim-long)
      if [[ -z ${CUDASIM:-} ]]; then
        echo "cudasim-long: skipped, there are no headers of CUDA here, or no simulator for this machine"
        add cudasim-long 0 0 0 1
        continue
      fi
      kind='simulated '
      export COHORT_BACKEND_PATH=$PWD/$BUILD/cudasim COHORT_TEST_CONTEXTS='gpu(0),gpu(1)' TEST_LIMIT=3000
      while IFS=$'\t' read -r name when _; do
        if [[ $when != long ]]; then continue; fi
        if [[ $name == models/* ]]; then golden "tests/golden/$name" --context 'gpu(0)' --limit 3000; else program "$BUILD/tests/capi/$name"; fi
      done <tests/cudasim/long.tsv
      export COHORT_TEST_CONTEXTS='gpu(0)' # what check-cuda has where there is one GPU
      over_contexts
      kind=
      unset COHORT_BACKEND_PATH COHORT_TEST_CONTEXTS TEST_LIMIT
      ;;
    pages)
      check pages-words tests/check/pages.sh
      check pages-test tests/check/pages_test.sh
      [[ -z ${PAGES:-} ]] || program "$PAGES"
      ;;
    tool)
      if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
        echo "tool: left out, $PYTHON has no NumPy (make deps installs it)"
        add tool 0 0 0 1
        continue
      fi
      PYTHONDONTWRITEBYTECODE=1 TEST_LIMIT=300 tap tool "$PYTHON" bindings/python/tests/run_tap.py tests/check/test_tool.py
      ;;
    docs)
      if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
        echo "docs: left out, $PYTHON has no NumPy (make deps installs it)"
        add docs 0 0 0 1
        continue
      fi
      PYTHONDONTWRITEBYTECODE=1 tap docs "$PYTHON" bindings/python/tests/run_tap.py tests/check/test_reference.py
      ;;
    perl)
      check perl-dist tests/check/perl_dist.sh
      for test in bindings/perl/t/*.t; do
        name=${test##*/}
        COHORT_LIB=$BUILD TEST_LIMIT=120 tap "perl/${name%.t}" prove --verbose --norc -Ibindings/perl/lib "$test"
      done
      ;;
    python)
      if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
        echo "python: left out, $PYTHON has no NumPy (make test-python installs it)"
        add python 0 0 0 1
        continue
      fi
      if "$PYTHON" -c 'import build.env, wheel' 2>/dev/null; then
        check python-wheel tests/check/python_wheel.sh "$PYTHON"
      else
        echo "python-wheel: left out, $PYTHON has no build (make test-python installs it)"
        add python-wheel 0 0 0 1
      fi
      if "$PYTHON" -m mypy --version >/dev/null 2>&1; then
        check python-types env -C bindings/python "$PYTHON" -m mypy --cache-dir "$TMPDIR/mypy"
      else
        echo "python-types: left out, $PYTHON has no mypy (make test-python installs it)"
        add python-types 0 0 0 1
      fi
      # Another version lays out another way.
      if "$PYTHON" -m black --version 2>/dev/null | grep -q ' 23\.'; then
        check python-format env -C bindings/python "$PYTHON" -m black --check --extend-exclude '_abi(_functions)?\.py' src tests examples setup.py
      else
        echo "python-format: left out, $PYTHON has no black 23 (make test-python installs it)"
        add python-format 0 0 0 1
      fi
      for test in bindings/python/tests/test_*.py; do
        name=${test##*/test_}
        COHORT_LIB=$BUILD PYTHONPATH=bindings/python/src PYTHONDONTWRITEBYTECODE=1 TEST_LIMIT=120 \
          tap "python/${name%.py}" "$PYTHON" bindings/python/tests/run_tap.py "$test"
      done
      ;;
    rust)
      if ! "$CARGO" --version >/dev/null 2>&1; then
        echo "rust: left out, there is no $CARGO (make test-rust installs it)"
        add rust 0 0 0 1
        continue
      fi
      here=$(cd "$BUILD" && pwd)
      # The compiler beside cargo, whatever comes first in PATH; nothing is looked for on a network.
      rust() { (cd bindings/rust && PATH="$(dirname "$CARGO"):$PATH" COHORT_LIB=$here LD_LIBRARY_PATH=$here CARGO_TARGET_DIR=$here/rust "$CARGO" "$@"); }
      rust_sources() { rust fmt --check && rust clippy --offline --all-targets -q -- -D warnings && echo "rust-sources: as rustfmt and clippy want them"; }
      if PATH="$(dirname "$CARGO"):$PATH" cargo-clippy --version >/dev/null 2>&1; then
        check rust-sources rust_sources
      else
        echo "rust-sources: left out, there is no clippy (make test-rust installs it)"
        add rust-sources 0 0 0 1
      fi
      check rust-crates tests/check/rust_crates.sh "$CARGO"
      rust_tests rust
      ;;
    go)
      if ! "$GO" version >/dev/null 2>&1; then
        echo "go: left out, there is no $GO (make test-go installs it)"
        add go 0 0 0 1
        continue
      fi
      here=$(cd "$BUILD" && pwd)
      mkdir -p "$here/go"
      printf 'Name: cohort\nDescription: as built\nVersion: 0\nCflags: -I%s\nLibs: -L%s -lcohort\n' "$PWD/include" "$here" >"$here/go/cohort.pc"
      # Nothing is looked for on a network; what Go keeps is kept in the build.
      go_vars=(PKG_CONFIG_PATH="$here/go" LD_LIBRARY_PATH="$here" GOCACHE="$here/go/cache" GOPATH="$here/go/path" GO111MODULE=on
        GOFLAGS= GOPROXY=off GOTOOLCHAIN=local GODEBUG=cgocheck=2)
      go_sources() {
        local wrong
        wrong=$("$(dirname "$("$GO" env GOROOT)/bin/go")/gofmt" -l bindings/go) && [[ -z $wrong ]] || { echo "not as gofmt wants it: $wrong" && return 1; }
        env -C bindings/go "${go_vars[@]}" "$GO" vet ./... && echo "go-sources: as gofmt and vet want them"
      }
      check go-sources go_sources
      check go-package env "${go_vars[@]}" tests/check/go_package.sh "$GO"
      TEST_LIMIT=300 tap go env -C bindings/go "${go_vars[@]}" ./run_tap.sh "$GO"
      ;;
    scala)
      java=/usr/bin/java jars=/usr/share/java out=$(cd "$BUILD" && pwd)/scala
      if [[ ! -x ${java}c || ! -e $jars/jna.jar ]]; then
        echo "java: left out, there is no JDK with JNA of Debian's here (make test-scala installs them)"
        add java 0 0 0 1
        continue
      fi
      if [[ ! -x /usr/bin/scalac || ! -e $jars/junit4.jar ]]; then
        check java-build bindings/scala/build.sh "$out" --java
        echo "scala: left out, there is no Scala with JUnit of Debian's here (make test-scala installs them)"
        add scala 0 0 0 1
      else
        check scala-build "${MAKE:-make}" --no-print-directory BUILD="$BUILD" "$BUILD/scala/cohort_2.11.jar"
      fi
      COHORT_LIB=$BUILD TEST_LIMIT=120 tap java/abi "$java" -cp "$out/tests:$out/cohort-abi.jar:$jars/jna.jar" cohort.abi.AbiTest
      if [[ ! -e $out/cohort_2.11.jar ]]; then continue; fi
      check scala-doc bindings/scala/doc.sh "$out"
      check scala-jars tests/check/scala_jars.sh "$java"
      mkdir -p "$out/run" # for the files that examples read and write
      scala_tests=$(cd bindings/scala/src/test/scala/cohort/test && echo *Test.scala)
      classes=$out/scala:$out/cohort-abi.jar:$jars/jna.jar:$jars/junit4.jar:$jars/hamcrest-core.jar:$jars/scala-library.jar
      COHORT_LIB=$(cd "$BUILD" && pwd) TEST_LIMIT=300 tap scala env -C "$out/run" "$java" -Xmx512m -Dcohort.root="$PWD" -cp "$classes" \
        cohort.test.RunTap ${scala_tests//.scala/}
      ;;
    examples) [[ ! -e tests/check/examples.sh ]] || check examples tests/check/examples.sh ;;
    install) [[ ! -e $BUILD/libcohort.so ]] || check install tests/check/install.sh ;;
    contract) check contract tests/check/contract.sh tests/contract tests/abi/symbols.txt "$results" ;;
    *) echo "run_tests.sh: there is no part $part" >&2 && exit 2 ;;
  esac
done

if ((${#failures[@]})); then printf 'failed: %s\n' "${failures[@]}"; fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
