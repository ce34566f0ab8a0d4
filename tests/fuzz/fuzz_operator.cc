// SPDX-License-Identifier: Apache-2.0
// Operators applied to arrays of any shape, with any attributes: lines of "OPERATOR KEY=VALUE ...", then one line for
// each input, "LENGTH,LENGTH,...".
#include <algorithm>

#include "fuzz.hpp"

namespace {

std::vector<std::string> parts(const std::string &source, char by) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= source.size();) {
    const size_t end = std::min(source.find(by, begin), source.size());
    found.push_back(source.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 2000) return 0;
  const std::vector<std::string> lines = parts(std::string(reinterpret_cast<const char *>(data), size), '\n');
  const std::vector<std::string> words = parts(lines[0], ' ');
  if (words[0] == "_cvimread" || words[0] == "Custom") return 0;  // files, and what nobody has registered
  std::vector<std::string> texts;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = std::min(words[i].find('='), words[i].size());
    texts.push_back(words[i].substr(0, equals));
    texts.push_back(words[i].substr(std::min(equals + 1, words[i].size())));
  }
  std::vector<const char *> keys, values;
  for (size_t i = 0; i < texts.size(); i += 2) {
    keys.push_back(texts[i].c_str());
    values.push_back(texts[i + 1].c_str());
  }
  std::vector<cohort_ndarray *> inputs;
  for (size_t i = 1; i < lines.size() && inputs.size() < 6; ++i) {
    if (lines[i].empty()) continue;
    std::vector<int64_t> shape;
    double elements = 1;
    for (const std::string &length : parts(lines[i], ',')) {
      shape.push_back(std::strtol(length.c_str(), nullptr, 10) & 63);
      elements *= double(shape.back());
    }
    cohort_ndarray *array = nullptr;
    if (elements > 4096) continue;
    if (good(cohort_ndarray_zeros(shape.data(), int32_t(shape.size()), COHORT_DTYPE_FLOAT32, nullptr, &array)))
      inputs.push_back(array);
  }
  cohort_arrays *results = nullptr;
  if (good(cohort_operator_invoke(words[0].c_str(), keys.data(), values.data(), keys.size(), inputs.data(),
                                  inputs.size(), nullptr, 0, nullptr, &results))) {
    wait_for(results);
  }
  for (cohort_ndarray *input : inputs) cohort_ndarray_free(input);
  expect_no_handles();
  return 0;
}
