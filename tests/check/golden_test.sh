#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that cohort-golden detects errors: changed cases of tests/golden have to fail with the right message.
#   golden_test.sh RUNNER
set -eu
runner=$1
golden=$(cd "$(dirname "$0")/../golden" && pwd)
data=$(cd "$(dirname "$0")/../data/golden" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "golden_test: $*"
  exit 1
}

# Runs a changed case, which must fail. Arguments: what is tested, words the output has, a sed script for a file, and the
# file: one of a case's folder, or the JSON file of a family, of which the case named last is run.
expect() {
  local what=$1 words=$2 script=$3 whole=$4 filter=${5:-} status=0 output copy=$work/case
  [[ $whole == /* ]] || whole=$golden/$whole
  rm -rf "$copy"
  if [[ $filter ]]; then
    mkdir "$copy"
    cp "${whole%.json}".{json,params} "$copy"
  else
    cp -r "$(dirname "$whole")" "$copy"
  fi
  sed -i "$script" "$copy/$(basename "$whole")"
  if cmp -s "$whole" "$copy/$(basename "$whole")"; then fail "$what: nothing was changed"; fi
  output=$("$runner" --filter "$filter" "$copy" 2>&1) || status=$?
  [[ $status == 1 && $output == *"0 passed, 1 failed, 0 skipped"* ]] || fail "$what: did not fail: $output"
  [[ $output == *"$words"* ]] || fail "$what: does not say '$words': $output"
}

mlp=group/mlp_2dev/scenario.json
errors=group/errors_group/scenario.json
pointwise=ops/pointwise.json relu=$data/relu-folder
expect 'an integer' 'batch_size: expected 9, found 8' '0,/"batch_size": 8/s//"batch_size": 9/' $mlp
expect 'a list' 'arguments: expected' '0,/"fc1_bias", /s///' $mlp
expect 'a name' 'outputs[0]: expected "other_output", found "softmax_output"' \
  's/"outputs": \["softmax_output"\]/"outputs": ["other_output"]/' $mlp
expect 'a value' 'worst at (' 's/"rtol": 0.0002/"rtol": 0/g; s/"atol": [0-9.e-]*/"atol": 0/g; s/s005.values/s012.values/' $mlp
expect 'a shape' 'float32 (4, 4), found float32 (8, 4)' 's/expected\/s005.values.0/expected\/s006.values.0.0/' $mlp
expect 'a class of error' 'expected an error of class name' 's/"class": "too_many_slices"/"class": "unknown_input"/' $errors
expect 'an error that does not come' 'found success' \
  '0,/"op": "backward"/s//"op": "backward", "expect": {"error": {"class": "no_labels"}}/' $mlp
expect 'a step of no name' "there is no step 'waltz'" '0,/"op": "backward"/s//"op": "waltz"/' $mlp
expect 'an array that is not there' "has no array 's999'" '0,/expected\/s005.values.0/s//expected\/s999/' $mlp
expect 'text that is no JSON' 'scenario.json' '1s/^/}/' $mlp
expect 'values of an operator' 'output:0: expected ' 's/"op": "relu"/"op": "sigmoid"/' $pointwise 001-relu-f32
expect 'an output name' 'relu0_output' 's/relu0_output/relu1_output/' $pointwise 001-relu-f32
expect 'an array that the family lacks' "has no array '001-relu-f32/inputs/arg:other'" 's/"data"/"other"/g' $pointwise 001-relu-f32
expect 'values of an operator in a folder' 'output:0: expected ' 's/"op": "relu"/"op": "sigmoid"/' "$relu/symbol.json"
expect 'an output name in a folder' 'relu0_output' 's/relu0_output/relu1_output/' "$relu/case.json"
ssd=models/ssd-train
expect 'an inferred shape' 'shapes: conv0_output[1]: expected 9, found 8' 's/"conv0_output": \[2, 8/"conv0_output": [2, 9/' $ssd/shapes.json
expect 'the formula' 'inputs_crc32: expected' 's/"seed": 101/"seed": 7/' $ssd/model.json
expect 'an output of a model' 'eval: eval:2: expected ' 's/"negative_mining_ratio": "3"/"negative_mining_ratio": "2"/' $ssd/symbol.json
expect 'the operator that differs' 'eval: relu0_output is the first that differs' 's/"act_type": "relu"/"act_type": "tanh"/' $ssd/symbol.json
expect 'a digest of a gradient' 'train: gradient of conv0_bias: digest error' 's/"conv0_bias": \[0.4/"conv0_bias": [0.5/' \
  $ssd/expected.json
expect 'a loss' 'train: loss: expected 53.5' 's/"loss": 53.4[0-9]*/"loss": 53.5/' $ssd/expected.json
expect 'a loss of a device' 'split2: loss of device 0: expected 9' 's/"losses": \[[0-9.]*/"losses": [9/' $ssd/expected.json
expect 'steps of an optimizer' 'sgd: loss of step 2: expected ' 's/"momentum": 0.9/"momentum": 0.8/' models/mlp/model.json
expect 'a state' 'train: state dbn2_moving_mean: digest error' 's/"dbn2_moving_mean": \[0/"dbn2_moving_mean": [1/' \
  models/dcgan-discriminator/expected.json
adamax=optimizers/adamax-schedule/optimizer.json
expect 'a weight' 'weight:1:fc_weight: expected ' 's/"learning_rate": "0.1"/"learning_rate": "0.2"/' $adamax
expect 'a learning rate' 'weight:3:fc_weight: expected ' 's/"factor": "0.5"/"factor": "0.6"/' $adamax
expect 'a state of an optimizer' 'state:largest:fc_weight: expected ' 's/^  "mean",$/  "largest",/' $adamax

# The same case from a family, by four paths, and from a folder.
mkdir "$work/both"
cp -r "$relu" "$work/both/relu-folder"
cp "$golden"/ops/softmax.{json,params} "$work/both"
for path in "$golden"/ops/001-relu-f32{,/} "$golden/$pointwise" "$golden/ops" "$relu" "$work/both"; do
  output=$("$runner" --filter relu-f "$path" 2>&1) || fail "$path: $output"
  [[ $output == "1 passed, 0 failed, 0 skipped" ]] || fail "$path: $output"
done
[[ $("$runner" --list "$work/both" | wc -l) == 23 ]] || fail "a folder of a family and a folder: $("$runner" --list "$work/both")"

list() { # name of a case, words of its summary
  local line
  line=$("$runner" --list --verbose "$golden/$1")
  [[ $line == "$1	"*"$2"* ]] || fail "the list does not say '$2': $line"
}

list group/mlp_2dev 'devices2'
list ops/1458-quantized_batch_norm-int8 '_contrib_quantized_batch_norm '
list optimizers/adamax-schedule 'adamax learning_rate=0.1 | schedule name=factor step=2 factor=0.5'
list models/lenet 'MXNET 1.9.1 example/image-classification/symbols/lenet.py [eval train, batch 4'

refuse() { # what is tested, words the output has, arguments of the runner
  local what=$1 words=$2 status=0 output
  shift 2
  output=$("$runner" "$@" 2>&1) || status=$?
  [[ $status == 2 && $output == *"$words"* ]] || fail "$what: status $status, $output"
}

refuse 'no case' 'there is no case to run' "$work" --filter no_such_case
refuse 'no such path' 'is no folder, no family of cases and no case' "$golden/ops/no_such_case"
refuse 'a family without arrays' 'is no folder, no family of cases and no case' "$work/both/relu-folder/symbol.json"
mv "$work/both/relu-folder" "$work/both/$("$runner" --list "$golden/ops/softmax.json" | sed -n '1s,.*/,,p')"
refuse 'a case twice' 'there are two cases ' "$work/both"
sed -i 's/cohort-golden-operators-1/cohort-golden-operators-9/' "$work/both/softmax.json"
refuse 'a family of another format' "format 'cohort-golden-operators-9'" "$work/both"
echo "golden_test: passed"
