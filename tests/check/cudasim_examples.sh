#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the examples on simulated GPUs: a short training, whose loss must fall.
set -euo pipefail
out=$BUILD/tests/cudasim_examples
mkdir -p "$out"
for contexts in 'gpu(0)' 'gpu(0),gpu(1),cpu(0)'; do
  accuracy=$("$BUILD"/examples/train_digits --epochs 1 --contexts "$contexts" --out "$out/digits" | sed -n 's/^test accuracy: //p')
  awk -v found="$accuracy" 'BEGIN { exit !(found > 0.7) }' || {
    echo "cudasim-examples: after an epoch on $contexts, train_digits is at a test accuracy of '$accuracy', expected 0.7"
    exit 1
  }
  head -c 5000 LICENSE >"$out/text"
  "$BUILD"/examples/char_lm --text "$out/text" --mode lines --cell unrolled --buckets 24,48,80 --hidden 16 --batch 12 \
    --epochs 3 --sample 20 --contexts "$contexts" >"$out/lm.txt"
  awk '/^epoch/ { if (last && $NF >= last) exit 1; last = $NF; ++epochs } END { exit epochs != 3 }' "$out/lm.txt" || {
    cat "$out/lm.txt"
    echo "cudasim-examples: on $contexts, perplexity of char_lm does not fall in each of 3 epochs"
    exit 1
  }
done
echo "cudasim-examples: train_digits and char_lm learn on simulated gpu(0), and on gpu(0),gpu(1),cpu(0)"
