#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the named parts of the tests, all of them whatever fails, and closes with "N passed, N failed, N skipped".
#   run_tests.sh PART...      parts: layers headers abi capi libmxnet unit cpp golden golden-ops long sanitizers-long cudasim cudasim-long pages tool docs perl python rust go scala examples install contract
# $TEST_JOBS tests (2 unless given) run at a time; tests/check/programs.tsv says which run alone. A test fails when it takes
# longer than its budget: 60 seconds, or what programs.tsv says, times $TEST_BUDGET_FACTOR. The seconds of each test stand
# beside its result, and the 20 slowest are listed at the end.
# The verdict on each test is written to $BUILD/tests/results/PART.tsv: PROGRAM:TEST, a tab, and passed, failed or skipped.
# The Makefile calls it with BUILD, CC, CXX, PYTHON, CARGO, GO, CAPI, UNIT, CXX_TESTS, CUDASIM, PAGES, GOLDEN_RUNNER and MAKE in the environment.
set -uo pipefail
cd "$(dirname "$0")/../.."
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Too large an allocation is to fail as it does without a sanitizer, not to end the process.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tests/check/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=allocator_may_return_null=1:suppressions=$PWD/tests/check/tsan.supp:halt_on_error=0:second_deadlock_stack=1
if [[ -n ${SANITIZER:-} ]]; then export TEST_BUDGET_FACTOR=${TEST_BUDGET_FACTOR:-4}; fi
# ThreadSanitizer cannot see the barriers of libgomp: there a team is one thread, and what is tested are our own threads.
if [[ ${SANITIZER:-} == tsan ]]; then export OMP_THREAD_LIMIT=1; fi
# shellcheck source=tests/check/test_jobs.sh
. tests/check/test_jobs.sh
suite_start=$EPOCHSECONDS

has_python() { "$PYTHON" -c "import $1" 2>/dev/null; }

check_rules() { # check-asan and check-tsan leave out no program that proves a rule of the contract
  local program wrong=0
  while IFS= read -r program; do
    if cut -f 3 tests/contract/contract.tsv | grep -q "\b$program:"; then
      echo "programs.tsv: sanitizers leave out $program, which tests/contract names"
      wrong=1
    fi
  done < <(awk -F '\t' '$2 == "long-under-sanitizers" { print $1 }' tests/check/programs.tsv)
  ((wrong == 0)) && echo "check-rules: sanitizers leave out no program that proves a rule"
}

test_headers() {
  local header
  for header in include/cohort/*.h include/mxnet/*.h; do
    check "$header as C99" tests/check/header.sh "$header" "$CC" -xc -std=c99
    check "$header as C++17" tests/check/header.sh "$header" "$CXX" -xc++ -std=c++17
  done
  local hpp=include/cohort/cohort.hpp part clang
  for part in include/cohort/cpp_*.hpp; do check "$part as C++17" tests/check/header.sh "$part" "$CXX" -xc++ -std=c++17; done
  check "$hpp as C++17" tests/check/header.sh $hpp "$CXX" -xc++ -std=c++17
  check "$hpp as C++20" tests/check/header.sh $hpp "$CXX" -xc++ -std=c++20
  clang=$(command -v clang++-14 clang++ | head -n 1)
  [[ -z $clang ]] || check "$hpp by clang" tests/check/header.sh $hpp "$clang" -xc++ -std=c++17
  check cohort-hpp tests/check/cohort_hpp.sh
}

not_on_gpus() { # program or model: whether simulated GPUs leave it out
  grep -q "^$1	" tests/cudasim/long.tsv
}

over_contexts() { # programs and models on the contexts of $COHORT_TEST_CONTEXTS, which are simulated
  local test model
  for test in ${CAPI:-}; do not_on_gpus "${test##*/}" || on_this_seed program "$test"; done
  for model in tests/golden/models/*/; do
    not_on_gpus "models/$(basename "$model")" ||
      on_this_seed golden "${model%/}" --context "$COHORT_TEST_CONTEXTS" --limit 600
  done
}

on_this_seed() { # a job: with the first seed all, with others those that programs.tsv marks
  if ((${CUDASIM_SEED:-1} == 1)) || ruled "$(label "$2")" second-seed; then job "$@"; fi
}

test_cudasim() {
  local test runs
  export CUDASIM_SEED
  COHORT_BACKEND_PATH=$(cd "$BUILD/cudasim" && pwd)
  export COHORT_BACKEND_PATH
  kind='simulated '
  for CUDASIM_SEED in 1 2; do # an odd seed runs some queued work at each call, an even one only when somebody waits
    for test in $CUDASIM "$BUILD"/tests/capi/test_{gpu,gpu_images,gpu_transforms,device_memory}; do
      on_this_seed program "$test"
    done
    on_this_seed golden tests/golden/group --context 'gpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
    runs=$((CUDASIM_SEED == 2 ? 4 : 1)) # the fourth time by graphs
    on_this_seed golden tests/golden/ops --runs $runs --context 'gpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
    on_this_seed golden tests/golden/optimizers --context 'gpu(0)' --limit 600
    on_this_seed golden tests/golden/group --context 'gpu(0),gpu(1),cpu(0)' --lacking tests/cudasim/lacking.tsv --limit 600
    export COHORT_TEST_CONTEXTS='gpu(0),gpu(1)'
    if ((CUDASIM_SEED == 1)); then COHORT_TEST_CONTEXTS='gpu(0),gpu(1),cpu(0)'; fi
    over_contexts
    unset COHORT_TEST_CONTEXTS
  done
  job check cudasim-examples tests/check/cudasim_examples.sh
  job check cudasim-faults tests/check/cudasim_faults.sh
  job check cuda-test tests/check/cuda_test.sh
  kind=
  unset COHORT_BACKEND_PATH CUDASIM_SEED
}

test_cudasim_long() {
  local name when test
  kind='simulated '
  export COHORT_BACKEND_PATH=$PWD/$BUILD/cudasim COHORT_TEST_CONTEXTS='gpu(0),gpu(1)' TEST_BUDGET_FACTOR=50
  while IFS=$'\t' read -r name when _; do
    if [[ $when != long ]]; then continue; fi
    if [[ $name == models/* ]]; then job golden "tests/golden/$name" --context 'gpu(0)' --limit 3000; else job program "$BUILD/tests/capi/$name"; fi
  done <tests/cudasim/long.tsv
  export CUDASIM_SEED=2 # the tests that make test leaves out with the second seed
  for test in $CUDASIM ${CAPI:-}; do
    not_on_gpus "${test##*/}" || ruled "$(label "$test")" second-seed || job program "$test"
  done
  for test in tests/golden/{models/*,optimizers}; do
    not_on_gpus "${test#tests/golden/}" || ruled "$(label "$test")" second-seed || job golden "$test" --context 'gpu(0)' --limit 3000
  done
  unset CUDASIM_SEED
  export COHORT_TEST_CONTEXTS='gpu(0)' # what check-cuda has where there is one GPU
  over_contexts
  kind=
  drain
  unset COHORT_BACKEND_PATH COHORT_TEST_CONTEXTS TEST_BUDGET_FACTOR
}

test_python() {
  local test name
  if has_python 'build.env, wheel'; then
    job check python-wheel tests/check/python_wheel.sh "$PYTHON"
  else
    job left_out python-wheel "$PYTHON has no build (make test-python installs it)"
  fi
  if has_python mypy; then
    job check python-types env -C bindings/python "$PYTHON" -m mypy --cache-dir "$TMPDIR/mypy"
  else
    job left_out python-types "$PYTHON has no mypy (make test-python installs it)"
  fi
  # Another version lays out another way.
  if "$PYTHON" -m black --version 2>/dev/null | grep -q ' 23\.'; then
    job check python-format env -C bindings/python "$PYTHON" -m black --check --extend-exclude '_abi(_functions)?\.py' src tests examples setup.py
  else
    job left_out python-format "$PYTHON has no black 23 (make test-python installs it)"
  fi
  for test in bindings/python/tests/test_*.py; do
    name=${test##*/test_}
    job tap "python/${name%.py}" env COHORT_LIB="$BUILD" PYTHONPATH=bindings/python/src PYTHONDONTWRITEBYTECODE=1 \
      "$PYTHON" bindings/python/tests/run_tap.py "$test"
  done
}

# The compiler beside cargo, whatever comes first in PATH; nothing is looked for on a network.
cargo_here() {
  local here
  here=$(cd "$BUILD" && pwd)
  env -C bindings/rust PATH="$(dirname "$CARGO"):$PATH" COHORT_LIB="$here" LD_LIBRARY_PATH="$here" CARGO_TARGET_DIR="$here/rust" "$CARGO" "$@"
}

rust_sources() {
  cargo_here fmt --check && cargo_here clippy --offline --all-targets -q -- -D warnings && echo "rust-sources: as rustfmt and clippy want them"
}

rust_tests() {
  local here
  here=$(cd "$BUILD" && pwd)
  verdicts_of rust rust_verdicts env -C bindings/rust PATH="$(dirname "$CARGO"):$PATH" COHORT_LIB="$here" LD_LIBRARY_PATH="$here" \
    CARGO_TARGET_DIR="$here/rust" "$CARGO" test --offline --no-fail-fast
}

test_rust() { # one after the other: they share a folder that cargo locks
  if PATH="$(dirname "$CARGO"):$PATH" cargo-clippy --version >/dev/null 2>&1; then
    check rust-sources rust_sources
  else
    left_out rust-sources "there is no clippy (make test-rust installs it)"
  fi
  check rust-crates tests/check/rust_crates.sh "$CARGO"
  rust_tests
}

test_go() {
  local here
  here=$(cd "$BUILD" && pwd)
  mkdir -p "$here/go"
  printf 'Name: cohort\nDescription: as built\nVersion: 0\nCflags: -I%s\nLibs: -L%s -lcohort\n' "$PWD/include" "$here" >"$here/go/cohort.pc"
  # Nothing is looked for on a network; what Go keeps is kept in the build.
  local go_vars=(PKG_CONFIG_PATH="$here/go" LD_LIBRARY_PATH="$here" GOCACHE="$here/go/cache" GOPATH="$here/go/path" GO111MODULE=on
    GOFLAGS= GOPROXY=off GOTOOLCHAIN=local GODEBUG=cgocheck=2)
  go_sources() {
    local wrong
    wrong=$("$(dirname "$("$GO" env GOROOT)/bin/go")/gofmt" -l bindings/go) && [[ -z $wrong ]] || { echo "not as gofmt wants it: $wrong" && return 1; }
    env -C bindings/go "${go_vars[@]}" "$GO" vet ./... && echo "go-sources: as gofmt and vet want them"
  }
  check go-sources go_sources
  check go-package env "${go_vars[@]}" tests/check/go_package.sh "$GO"
  tap go env -C bindings/go "${go_vars[@]}" ./run_tap.sh "$GO"
}

test_scala() {
  local java=/usr/bin/java jars=/usr/share/java out tests classes
  out=$(cd "$BUILD" && pwd)/scala
  if [[ ! -x /usr/bin/scalac || ! -e $jars/junit4.jar ]]; then
    check java-build bindings/scala/build.sh "$out" --java
    left_out scala "there is no Scala with JUnit of Debian's here (make test-scala installs them)"
  else
    check scala-build "${MAKE:-make}" --no-print-directory BUILD="$BUILD" "$BUILD/scala/cohort_2.11.jar"
  fi
  tap java/abi env COHORT_LIB="$BUILD" "$java" -cp "$out/tests:$out/cohort-abi.jar:$jars/jna.jar" cohort.abi.AbiTest
  if [[ ! -e $out/cohort_2.11.jar ]]; then return; fi
  check scala-doc bindings/scala/doc.sh "$out"
  check scala-jars tests/check/scala_jars.sh "$java"
  mkdir -p "$out/run" # for the files that examples read and write
  tests=$(cd bindings/scala/src/test/scala/cohort/test && echo *Test.scala)
  classes=$out/scala:$out/cohort-abi.jar:$jars/jna.jar:$jars/junit4.jar:$jars/hamcrest-core.jar:$jars/scala-library.jar
  # shellcheck disable=SC2086  # names of tests are words
  tap scala env -C "$out/run" COHORT_LIB="$(cd "$BUILD" && pwd)" "$java" -Xmx512m -Dcohort.root="$PWD" -cp "$classes" \
    cohort.test.RunTap ${tests//.scala/}
}

for part in "$@"; do
  : >"$results/$part.tsv"
  case $part in
    layers)
      job check check-layers tests/check/layers.sh
      job check layers-test tests/check/layers_test.sh
      job check check-words tests/check/words.sh
      job check words-test tests/check/words_test.sh
      job check check-rules check_rules
      job check contributing tests/check/contributing.sh
      job check runner-test tests/check/run_tests_test.sh
      job check contract-test tests/check/contract_test.sh
      ;;
    headers) job test_headers ;;
    abi)
      [[ ! -e $BUILD/libcohort.so ]] || job check abi tests/check/abi.sh
      [[ ! -e $BUILD/libcohort.so ]] || job check described tests/check/described.sh
      [[ ! -e $BUILD/libcohort.so ]] || job check exports-libc tests/check/exports_libc.sh
      ;;
    capi | libmxnet | unit | cpp)
      if [[ $part == libmxnet && -e $BUILD/libmxnet.so && -z ${SANITIZER:-} ]]; then
        job check libmxnet-exports tests/check/libmxnet_exports.sh "$BUILD/libmxnet.so"
      fi
      case $part in
        capi) tests=${CAPI:-} ;;
        libmxnet) tests=${LIBMXNET:-} ;;
        unit) tests=${UNIT:-} ;;
        cpp) tests=${CXX_TESTS:-} ;;
      esac
      for test in $tests; do
        if [[ -n ${SANITIZER:-} ]] && ruled "$(label "$test")" long-under-sanitizers; then continue; fi
        job program "$test"
      done
      ;;
    sanitizers-long) # what check-asan and check-tsan leave out
      for test in ${CAPI:-} ${UNIT:-}; do
        if ruled "$(label "$test")" long-under-sanitizers; then job program "$test"; fi
      done
      ;;
    golden)
      if [[ -z ${GOLDEN_RUNNER:-} ]]; then continue; fi
      job check golden-test tests/check/golden_test.sh "$GOLDEN_RUNNER"
      for folder in tests/golden/{group,models,ops,optimizers}; do job golden "$folder"; done
      job golden tests/golden/ops --parts
      ;;
    golden-ops) job golden tests/golden/ops ;;
    cudasim | cudasim-long)
      if [[ -z ${CUDASIM:-} ]]; then
        job left_out "$part" "there are no headers of CUDA here, or no simulator for this machine"
      else
        "test_${part/-/_}"
      fi
      ;;
    long) for test in ${LONG:-}; do job program "$test"; done ;;
    pages)
      job check pages-words tests/check/pages.sh
      job check pages-test tests/check/pages_test.sh
      [[ -z ${PAGES:-} ]] || job program "$PAGES"
      ;;
    tool | docs)
      if ! has_python numpy; then
        job left_out "$part" "$PYTHON has no NumPy (make deps installs it)"
      else
        job tap "$part" env PYTHONDONTWRITEBYTECODE=1 "$PYTHON" bindings/python/tests/run_tap.py \
          "tests/check/test_$([[ $part == tool ]] && echo tool || echo reference).py"
      fi
      ;;
    perl)
      job check perl-dist tests/check/perl_dist.sh
      for test in bindings/perl/t/*.t; do
        name=${test##*/}
        job tap "perl/${name%.t}" env COHORT_LIB="$BUILD" prove --verbose --norc -Ibindings/perl/lib "$test"
      done
      ;;
    python) if has_python numpy; then test_python; else job left_out python "$PYTHON has no NumPy (make test-python installs it)"; fi ;;
    rust)
      if "$CARGO" --version >/dev/null 2>&1; then job test_rust; else job left_out rust "there is no $CARGO (make test-rust installs it)"; fi
      ;;
    go) if "$GO" version >/dev/null 2>&1; then job test_go; else job left_out go "there is no $GO (make test-go installs it)"; fi ;;
    scala)
      if [[ -x /usr/bin/javac && -e /usr/share/java/jna.jar ]]; then
        job test_scala
      else
        job left_out java "there is no JDK with JNA of Debian's here (make test-scala installs them)"
      fi
      ;;
    examples) [[ ! -e tests/check/examples.sh ]] || job check examples tests/check/examples.sh ;;
    install) [[ ! -e $BUILD/libcohort.so ]] || job check install tests/check/install.sh ;;
    contract)
      drain # it reads what the others have found
      job check contract tests/check/contract.sh tests/contract tests/abi/symbols.txt "$results"
      ;;
    *) echo "run_tests.sh: there is no part $part" >&2 && exit 2 ;;
  esac
done
drain

echo "the slowest, in seconds:"
sort -rn "$jobs/times" 2>/dev/null | head -n 20 | awk -F '\t' '{ printf "%8.1f  %s\n", $1 / 1000, $2 }'
if ((${#failures[@]})); then printf 'failed: %s\n' "${failures[@]}"; fi
echo "tests took $((EPOCHSECONDS - suite_start)) s"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
