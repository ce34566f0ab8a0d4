// SPDX-License-Identifier: Apache-2.0
#include "model_measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model_values.hpp"

namespace golden {
namespace {

constexpr uint32_t kDotSeed = 3334;
constexpr int kElements = 8;

int64_t element_index(uint32_t k, int64_t size) {
  return int64_t((uint64_t{formula_bits(k + 1, 0, 0)} * uint64_t(size)) >> 32);
}

double relative(double difference, double scale) { return difference == 0 ? 0 : std::fabs(difference) / scale; }

void check_size(const HostArray &array, int64_t size, const std::string &what) {
  if (array.size() != size)
    throw BadCase("loss: " + what + " has " + std::to_string(array.size()) + " elements, not " + std::to_string(size));
}

double cross_entropy(const Value &loss, const HostArray &output, const HostArray &label) {
  const size_t axis = static_cast<size_t>(loss.number("axis", 1));
  if (axis >= output.shape.size()) throw BadCase("loss: no axis " + std::to_string(axis) + " in " + loss.describe());
  int64_t outer = 1, inner = 1;
  const int64_t classes = output.shape[axis];
  for (size_t i = 0; i < axis; ++i) outer *= output.shape[i];
  for (size_t i = axis + 1; i < output.shape.size(); ++i) inner *= output.shape[i];
  check_size(label, outer * inner, "label");
  const double ignored = loss.number("ignore", std::numeric_limits<double>::quiet_NaN());
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < outer * inner; ++i) {
    const double which = label.real(i);
    if (which == ignored) continue;
    if (!(which >= 0 && which < double(classes))) throw BadCase("loss: label " + number_text(which));
    sum -= std::log(output.real((i / inner * classes + int64_t(which)) * inner + i % inner));
    ++count;
  }
  return sum / double(count);
}

}  // namespace

std::vector<double> digest_of(const HostArray &array) {
  const int64_t size = array.size();
  double squares = 0, absolutes = 0, largest = 0, sum = 0, dot = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double x = array.real(i);
    squares += x * x;
    absolutes += std::fabs(x);
    largest = std::isnan(x) ? x : std::max(largest, std::fabs(x));
    sum += x;
    dot += x * formula_unit(kDotSeed, 0, static_cast<uint32_t>(i));
  }
  std::vector<double> digest = {std::sqrt(squares), absolutes, largest, sum, dot};
  for (uint32_t k = 0; size > 0 && k < kElements; ++k) digest.push_back(array.real(element_index(k, size)));
  return digest;
}

double digest_error(const std::vector<double> &expected, const std::vector<double> &found) {
  enum { kNorm, kAbsolutes, kLargest, kSum, kDot, kFirstElement };
  if (expected.size() < kFirstElement || found.size() < kFirstElement) throw BadCase("a digest has too few numbers");
  double worst = 0;
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    if (i == kAbsolutes) continue;  // only the scale of kSum
    const double scale = i == kNorm || i == kDot ? expected[kNorm]
                         : i == kSum             ? expected[kAbsolutes]
                                                 : expected[kLargest];
    const double error = relative(found[i] - expected[i], scale);
    if (!(error <= worst)) worst = error;
    if (std::isnan(worst)) return worst;
  }
  return worst;
}

void DigestErrors::add(const std::string &name, const std::vector<double> &expected, const HostArray &found) {
  entries_.push_back({name, digest_error(expected, digest_of(found))});
}

void DigestErrors::report(const std::string &what, const Value &tolerance, std::vector<std::string> &failures) const {
  const double rtol = tolerance.at("rtol").as_real(), rtol_all = tolerance.at("rtol_all").as_real();
  const auto beyond = [&](double limit) {
    return size_t(std::count_if(entries_.begin(), entries_.end(), [=](const Entry &e) { return !(e.error <= limit); }));
  };
  const size_t num_exceptions = std::max<size_t>(entries_.size() / 20, 1);
  const double limit = beyond(rtol) > num_exceptions ? rtol : rtol_all;
  for (const Entry &entry : entries_)
    if (!(entry.error <= limit))
      failures.push_back(what + ' ' + entry.name + ": digest error " + number_text(entry.error) + ", at most " +
                         number_text(limit) + " is allowed (" + std::to_string(beyond(limit)) + " of " +
                         std::to_string(entries_.size()) + " exceed it)");
}

double loss_of(const Value &loss, const std::vector<HostArray> &outputs, const std::vector<NamedArray> &inputs) {
  const std::string &kind = loss.at("kind").as_text();
  const size_t index = static_cast<size_t>(loss.at("output").as_integer());
  if (index >= outputs.size()) throw BadCase("loss: there is no output " + std::to_string(index));
  const HostArray &output = outputs[index];
  const int64_t size = output.size();
  double sum = 0;
  if (kind == "sum" || kind == "mean") {
    for (int64_t i = 0; i < size; ++i) sum += output.real(i);
    return kind == "sum" ? sum : sum / double(size);
  }
  const std::string &label_name = loss.at("label").as_text();
  const auto label =
      std::find_if(inputs.begin(), inputs.end(), [&](const NamedArray &input) { return input.name == label_name; });
  if (label == inputs.end()) throw BadCase("loss: there is no input '" + label_name + "'");
  if (kind == "cross_entropy") return cross_entropy(loss, output, label->array);
  check_size(label->array, size, "label");
  for (int64_t i = 0; i < size; ++i) {
    const double o = output.real(i), y = label->array.real(i);
    if (kind == "logistic")
      sum -= y * std::log(o) + (1 - y) * std::log(1 - o);
    else if (kind == "squared")
      sum += (o - y) * (o - y);
    else if (kind == "mae")
      sum += std::fabs(o - y);
    else
      throw BadCase("there is no loss '" + kind + "'");
  }
  return sum / double(size);
}

HostArray slice_of(const HostArray &array, size_t axis, int64_t begin, int64_t end) {
  HostArray slice = array;
  if (axis >= array.shape.size()) throw BadCase("no axis " + std::to_string(axis) + " in " + shape_text(array.shape));
  slice.shape[axis] = end - begin;
  slice.bytes.clear();
  size_t inner = array.bytes.size() / static_cast<size_t>(array.size());
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= array.shape[i];
  for (size_t i = axis + 1; i < array.shape.size(); ++i) inner *= static_cast<size_t>(array.shape[i]);
  for (int64_t i = 0; i < outer; ++i) {
    const auto line = array.bytes.begin() + i * array.shape[axis] * int64_t(inner);
    slice.bytes.insert(slice.bytes.end(), line + begin * int64_t(inner), line + end * int64_t(inner));
  }
  return slice;
}

void blank_rows(HostArray &detections) {
  if (detections.dtype != COHORT_DTYPE_FLOAT32 || detections.shape.empty())
    throw BadCase("detections are not float32 or have no axes");
  const int64_t width = detections.shape.back();
  for (int64_t row = 0; row < detections.size(); row += width) {
    if (detections.real(row) != -1) continue;
    const float blank = -1;
    for (int64_t i = row; i < row + width; ++i)
      std::memcpy(detections.bytes.data() + size_t(i) * sizeof(float), &blank, sizeof(blank));
  }
}

}  // namespace golden
