#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one fuzzer: run.sh FUZZER CORPUS SECONDS. The corpus starts with files of the other tests, and keeps what the run
# finds; an input that fails is written beside the fuzzer.
set -eu
fuzzer=$1 corpus=$2 seconds=$3
mkdir -p "$corpus"
seeds=$corpus.seeds
mkdir -p "$seeds"
case $(basename "$fuzzer") in
  fuzz_params) find tests/data tests/golden/models -name '*.params' -size -40k ;;
  fuzz_npz) find tests/data/npy -type f ;;
  fuzz_symbol | fuzz_bind) find tests/data/symbol tests/golden/models -name '*.json' -size -20k ;;
  fuzz_image) find tests/data/images -name '*.jpg' -o -name '*.png' ;;
esac | while read -r file; do cp "$file" "$seeds/$(echo "$file" | tr / _)"; done
case $(basename "$fuzzer") in
  fuzz_states) "$fuzzer" --write-seeds "$seeds" ;;
  fuzz_operator)  # the calls of the test of types: operator, attributes, shapes
    awk -F '\t' -v to="$seeds" '/^[^#-]/ {
      gsub(";", " ", $2); file = to "/" NR
      print $1 ($2 == "-" ? "" : " " $2) > file
      for (i = 1; i <= split($3, inputs, "|"); ++i) { sub(":.*", "", inputs[i]); gsub("x", ",", inputs[i]); print inputs[i] > file }
      close(file)
    }' tests/data/operators/types.tsv ;;
esac
ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1} exec "$fuzzer" -max_total_time="$seconds" -timeout=30 \
  -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=65536 -artifact_prefix="$fuzzer-" "$corpus" "$seeds"
