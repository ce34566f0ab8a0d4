#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the examples: they must succeed and write the files that they promise.
set -euo pipefail
out=$BUILD/tests/digits
rm -rf "$out"
digits=$BUILD/examples/train_digits
# Reads all output before searching it: a program whose output pipe closes early fails.
says() { # pattern, command
  local said
  said=$("${@:2}") && grep -q -- "$1" <<<"$said"
}
says '--workload' "$digits" --help

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

# The same seed gives the same network to the last bit; another split of the batch over the devices gives nearly the same.
"$digits" --epochs 2 --out "$out/a" >/dev/null
"$digits" --epochs 2 --out "$out/b" >/dev/null
cmp "$out/a/digits-0002.params" "$out/b/digits-0002.params"
says '^test accuracy: 0\.9' "$digits" --epochs 6 --contexts 'cpu(0),cpu(1),cpu(2)' --workload 2,1,1 --batch 50 --out "$out/c"

if "$digits" --contexts 'tpu(0)' --out "$out/d" 2>"$out.err"; then echo "examples: tpu(0) is a context" && exit 1; fi
grep -q 'tpu' "$out.err"
echo "examples: train_digits learns, saves, reloads, and repeats itself bit by bit"

# The same network through MXNet's prediction interface: a stroke from top to bottom is a one.
classify=$BUILD/examples/classify_image
says '--shape' "$classify" --help
{ printf 'P5\n# a stroke\n8 8\n255\n' && for ((row = 0; row < 8; ++row)); do printf '\0\0\0\377\377\0\0\0'; done; } >"$out.pgm"
printf '%s\n' zero one two three four five six seven eight nine >"$out.names"
network=("$out/digits-symbol.json" "$out/digits-0006.params")
"$classify" --shape 1,8,8 --scale 0.00392157 --top 2 --names "$out.names" "${network[@]}" "$out.pgm" >"$out.txt"
cat "$out.txt"
if [[ $(head -n 1 "$out.txt") != "0."*"  1  one" || $(wc -l <"$out.txt") != 2 ]]; then
  echo "examples: classify_image does not find the one" && exit 1
fi
head -c 40 "$out.pgm" >"$out.cut.pgm"
for wrong in "$out.cut.pgm" "$out.names" "$out.none"; do
  if "$classify" --shape 1,8,8 "${network[@]}" "$wrong" 2>"$out.err"; then echo "examples: $wrong is a picture" && exit 1; fi
  grep -q "classify_image: $wrong: " "$out.err"
done
if "$classify" --shape 3,8,8 "${network[@]}" "$out.pgm" 2>"$out.err"; then echo "examples: digits have three channels" && exit 1; fi
echo "examples: classify_image finds the digit through MXNet's prediction interface"

# Layers on different devices: the LSTM learns to add, and is the same to the last bit as on one device.
adder=$BUILD/examples/lstm_model_parallel
says '--layers' "$adder" --help
"$adder" | tee "$out.txt"
for line in '^parameters: the same to the last bit$' '^sums right: 1\.0000$'; do
  if ! grep -q "$line" "$out.txt"; then echo "examples: lstm_model_parallel does not print $line" && exit 1; fi
done
says '^parameters: the same to the last bit$' "$adder" --layers 3 --contexts 'cpu(0),cpu(1),cpu(2)' --steps 20
echo "examples: lstm_model_parallel learns to add, and its layers may sit anywhere"

# Buckets: in all modes perplexity falls from epoch to epoch, and a text is generated.
lm=$BUILD/examples/char_lm
says '--switches' "$lm" --help
for how in '--mode stream --cell fused' '--mode lines --cell unrolled --buckets 32,64,80'; do
  # shellcheck disable=SC2086
  "$lm" $how --hidden 48 --epochs 4 --sample 60 | tee "$out.txt"
  awk '/^epoch/ { if (last && $NF >= last) exit 1; last = $NF; ++epochs } /^held-out perplexity/ { end = $NF; final = NR }
    /^memory: [34] buckets together/ { times = $(NF - 1) }
    END { exit !(epochs == 4 && final == NR && end == last && end < 20 && times >= 1 && times <= 1.1) }' "$out.txt" || {
    echo "examples: char_lm $how: perplexity falls in each of 4 epochs to below 20, memory of all buckets is at most 1.1 times that of the largest"
    exit 1
  }
done

# Returning to a bucket costs nothing: compares the medians of steps after another bucket and after the same one, measured in
# turn, over the fastest fifth. Other load on the machine may spoil a run; a real cost would show in every run.
for attempt in 1 2 3 4 5; do
  "$lm" --epochs 0 --sample 0 --hidden 64 --buckets 8,16,24 --switches 81 | tee "$out.txt"
  if awk '/^switching: at most/ { good = $11 > 0 && $11 <= 1.2 } END { exit !good }' "$out.txt"; then break; fi
  if ((attempt == 5)); then echo "examples: changing to a bucket seen before costs more than 1.2 times a step" && exit 1; fi
done
if (($(grep -c '^bucket' "$out.txt") != 3)); then echo "examples: char_lm does not measure each bucket" && exit 1; fi

# Two runs are the same to the last character.
for run in a b; do
  "$lm" --epochs 1 --hidden 32 --layers 2 --contexts 'cpu(0),cpu(1),cpu(2)' | sed 's/ *[0-9]* characters\/s//' >"$out.$run"
done
cmp "$out.a" "$out.b"
if "$lm" --text /no/such/text 2>"$out.err"; then echo "examples: char_lm learns from nothing" && exit 1; fi
grep -q '/no/such/text cannot be read.*--text' "$out.err"
echo "examples: char_lm learns in buckets that share their memory and are changed for next to nothing"
