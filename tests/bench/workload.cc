// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

#include <cmath>

#include "random_state.hpp"

namespace bench {
namespace {

const std::vector<Workload> &workloads() {
  static const std::vector<Workload> all = {
      {"W1", "", "mlp", "mlp", {784}, 64, 64, 10, 0, 500, 1000, false},
      {"W2", "", "lenet", "lenet", {1, 28, 28}, 64, 64, 10, 0, 100, 200, false},
      {"W3", "", "resnet20", "resnet20", {3, 32, 32}, 128, 128, 10, 1e-4, 5, 15, false},
      {"W7", "", "mlp", "mlp", {784}, 64, 64, 10, 0, 300, 500, false},
      {"W9", "mlp", "tiny", "tiny_mlp", {32}, 1, 1, 10, 0, 2000, 5000, true},
      {"W9", "chain", "tiny", "tiny_chain", {32}, 1, 1, 0, 0, 2000, 5000, true},
      {"W12", "", "", "", {}, 1, 1, 0, 0, 20, 20, true},
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

std::vector<float> batch_data(const Workload &workload, int64_t batch) {
  return stream(std::string(workload.model) + ".data").standard_normal(size_t(batch) * product(workload.sample));
}

std::vector<float> batch_label(const Workload &workload, int64_t batch) {
  return stream(std::string(workload.model) + ".label").randint(size_t(batch), uint32_t(workload.num_classes));
}

}  // namespace bench
