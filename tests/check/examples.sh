#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the examples: they end well and leave what they promise.
set -euo pipefail
out=$BUILD/tests/digits
rm -rf "$out"
digits=$BUILD/examples/train_digits
"$digits" --help | grep -q -- '--workload'

"$digits" --epochs 6 --out "$out" >"$out.txt"
cat "$out.txt"
if [[ $(tail -n 1 "$out.txt") != "test accuracy: 0.9"* ]]; then
  echo "examples: after 6 epochs train_digits is not at a test accuracy of 0.9" && exit 1
fi
if (($(grep -c '^epoch' "$out.txt") != 6)); then echo "examples: train_digits prints no line for each epoch" && exit 1; fi
for file in digits-symbol.json digits-0006.params learning_curve.svg; do
  if [[ ! -s $out/$file ]]; then echo "examples: train_digits left no $file" && exit 1; fi
done
grep -q '</svg>' "$out/learning_curve.svg"

# The same seed gives the same network to the last bit, another split of the batch over the devices nearly the same one.
"$digits" --epochs 2 --out "$out/a" >/dev/null
"$digits" --epochs 2 --out "$out/b" >/dev/null
cmp "$out/a/digits-0002.params" "$out/b/digits-0002.params"
"$digits" --epochs 6 --contexts 'cpu(0),cpu(1),cpu(2)' --workload 2,1,1 --batch 50 --out "$out/c" |
  grep -q '^test accuracy: 0\.9'

if "$digits" --contexts 'tpu(0)' --out "$out/d" 2>"$out.err"; then echo "examples: tpu(0) is a context" && exit 1; fi
grep -q 'tpu' "$out.err"
echo "examples: train_digits learns, saves, reloads, and repeats itself bit by bit"

# Layers on different devices: the LSTM learns to add, and is the same to the last bit as on one device.
adder=$BUILD/examples/lstm_model_parallel
"$adder" --help | grep -q -- '--layers'
"$adder" | tee "$out.txt"
for line in '^parameters: the same to the last bit$' '^sums right: 1\.0000$'; do
  if ! grep -q "$line" "$out.txt"; then echo "examples: lstm_model_parallel does not print $line" && exit 1; fi
done
"$adder" --layers 3 --contexts 'cpu(0),cpu(1),cpu(2)' --steps 20 | grep -q '^parameters: the same to the last bit$'
echo "examples: lstm_model_parallel learns to add, and its layers may sit anywhere"
