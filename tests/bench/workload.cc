// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

#include <cmath>

#include "random_state.hpp"

namespace bench {
namespace {

const std::vector<Workload> &workloads() {
  static const std::vector<Workload> all = {
      {"W1", "", "mlp", "mlp", {784}, 64, 64, 10, Rule::kSgd, 500, 1000, false},
      {"W2", "", "lenet", "lenet", {1, 28, 28}, 64, 64, 10, Rule::kSgd, 100, 200, false},
      {"W3", "", "resnet20", "resnet20", {3, 32, 32}, 128, 128, 10, Rule::kSgdWithDecay, 5, 15, false},
      {"W4", "", "resnet50", "resnet50", {3, 224, 224}, 16, 32, 1000, Rule::kSgdWithDecay, 2, 2, false},
      {"W5", "fused", "lstm", "lstm_fused", {35}, 32, 32, kWords, Rule::kPlainSgd, 8, 12, false, Task::kWords},
      {"W5", "unroll", "lstm", "", {35}, 32, 32, kWords, Rule::kPlainSgd, 8, 12, false, Task::kWords, Form::kUnrolled},
      {"W5", "bucket", "lstm", "", {40}, 32, 32, kWords, Rule::kPlainSgd, 8, 12, false, Task::kWords, Form::kBuckets},
      {"W6", "", "mobilenet_v2", "mobilenet_v2", {3, 224, 224}, 16, 1, 1000, Rule::kSgdWithDecay, 2, 50, true},
      {"W7", "", "mlp", "mlp", {784}, 64, 64, 10, Rule::kSgd, 300, 500, false},
      {"W8", "", "transformer", "transformer", {128, 512}, 16, 16, 0, Rule::kAdam, 5, 15, false, Task::kNumbers},
      {"W9", "mlp", "tiny", "tiny_mlp", {32}, 1, 1, 10, Rule::kSgd, 2000, 5000, true},
      {"W9", "chain", "tiny", "tiny_chain", {32}, 1, 1, 0, Rule::kSgd, 2000, 5000, true},
      {"W10",
       "",
       "resnet50",
       "resnet50",
       {3, 224, 224},
       4,
       4,
       1000,
       Rule::kSgdWithDecay,
       3,
       3,
       false,
       Task::kClasses,
       Form::kParams},
      {"W11",
       "",
       "resnet50",
       "resnet50",
       {3, 224, 224},
       1,
       1,
       1000,
       Rule::kSgdWithDecay,
       1,
       1,
       true,
       Task::kClasses,
       Form::kStart},
      {"W12", "", "", "", {}, 1, 1, 0, Rule::kSgd, 20, 20, true, Task::kClasses, Form::kApplied},
  };
  return all;
}

bool starts_with(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

bool ends_with(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

size_t product(const std::vector<int64_t> &shape, size_t from = 0) {
  size_t size = 1;
  for (size_t axis = from; axis < shape.size(); ++axis) size *= size_t(shape[axis]);
  return size;
}

// The vector of the RNN operator: the weights of all layers, then their biases.
std::vector<float> packed_lstm() {
  std::vector<float> all;
  for (const char *what : {"weight", "bias"}) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (const char *part : {"i2h", "h2h"}) {
        const std::string name = "lstm_l" + std::to_string(layer) + "_" + part + "_" + what;
        const bool weight = what[0] == 'w';
        const std::vector<float> piece =
            first_value(name, weight ? std::vector<int64_t>{4 * kHidden, kHidden} : std::vector<int64_t>{4 * kHidden});
        all.insert(all.end(), piece.begin(), piece.end());
      }
    }
  }
  return all;
}

Batch make_sentences(int64_t batch, int64_t length) {
  const std::vector<float> words =
      stream("tokens" + std::to_string(length)).randint(size_t(batch * (length + 1)), uint32_t(kWords));
  Batch made;
  made.data_shape = made.label_shape = {batch, length};
  for (int64_t row = 0; row < batch; ++row) {
    const auto first = words.begin() + row * (length + 1);
    made.data.insert(made.data.end(), first, first + length);
    made.label.insert(made.label.end(), first + 1, first + length + 1);  // the next word
  }
  return made;
}

}  // namespace

const Workload *find_workload(const std::string &name, const std::string &variant) {
  for (const Workload &workload : workloads())
    if (name == workload.name && (variant.empty() || variant == workload.variant)) return &workload;
  return nullptr;
}

std::string list_workloads() {
  std::string list;
  for (const Workload &workload : workloads()) {
    const std::string variant = workload.variant;
    list += (list.empty() ? "" : ", ") + std::string(workload.name) + (variant.empty() ? "" : " " + variant);
  }
  return list;
}

std::vector<float> first_value(const std::string &name, const std::vector<int64_t> &shape) {
  const size_t size = product(shape);
  const auto uniform = [&](double half_width) { return stream(name).uniform(size, -half_width, half_width); };
  if (name == "lstm_parameters") return packed_lstm();
  // The last batch norm of a residual unit is small, so that the sum stays tame.
  if (ends_with(name, "bnl_gamma")) return std::vector<float>(size, 0.2f);
  if (ends_with(name, "_gamma")) return std::vector<float>(size, 1.0f);
  if (ends_with(name, "_beta")) return std::vector<float>(size, 0.0f);
  if (ends_with(name, "_moving_var")) return stream(name).uniform(size, 0.5, 1.5);
  if (ends_with(name, "_moving_mean") || starts_with(name, "embed_") || starts_with(name, "lstm_")) return uniform(0.1);
  if (ends_with(name, "_bias")) return uniform(0.05);
  if (shape.size() == 4) return uniform(std::sqrt(6.0 / double(product(shape, 1))));
  return uniform(std::sqrt(3.0 / double(shape.back())));
}

Batch make_batch(const Workload &workload, int64_t batch, int64_t length) {
  if (workload.task == Task::kWords) return make_sentences(batch, length > 0 ? length : workload.sample[0]);
  const std::string model = workload.model;
  Batch made;
  made.data_shape = workload.sample;
  made.data_shape.insert(made.data_shape.begin(), batch);
  made.data = stream(model + ".data").standard_normal(product(made.data_shape));
  if (workload.task == Task::kNumbers) {
    made.label_shape = made.data_shape;
    made.label = stream(model + ".label").standard_normal(product(made.label_shape));
  } else if (workload.has_label()) {
    made.label_shape = {batch};
    made.label = stream(model + ".label").randint(size_t(batch), uint32_t(workload.num_classes));
  }
  return made;
}

}  // namespace bench
