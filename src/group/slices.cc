// SPDX-License-Identifier: Apache-2.0
#include "group/slices.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace cohort {
namespace {

std::string list_text(const std::vector<double> &values) {
  TextStream out;
  out << '[';
  for (size_t i = 0; i < values.size() && i < 16; ++i) out << (i ? ", " : "") << values[i];
  if (values.size() > 16) out << ", ...";
  out << ']';
  return out.str();
}

[[noreturn]] void fail(const std::string &what, int64_t batch_size, size_t num_devices,
                       const std::vector<double> &workload) {
  throw Error(Code::kInvalidArgument,
              text("a batch of ", batch_size, " over ", num_devices, " contexts with workloads ", list_text(workload),
                   ": ", what),
              "workload");
}

// Not nearbyint(), which follows the host's rounding mode.
double round_half_even(double x) {
  const double below = std::floor(x), part = x - below;
  if (part != 0.5) return part > 0.5 ? below + 1 : below;
  return std::fmod(below, 2.0) == 0 ? below : below + 1;
}

// The exact shares of the batch. Weights so large that sums or products overflow are scaled down first: only their
// ratios matter (WRK-08).
std::vector<double> shares_of(int64_t batch_size, std::vector<double> weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest > 1e200) {
    for (double &w : weights) w /= largest;
  }
  double total = 0;
  for (double w : weights) total += w;
  for (double &w : weights) w = w * double(batch_size) / total;
  return weights;
}

// Sizes of at least one sample each, nearest to the shares: a missing sample goes to the device that lacks most.
std::vector<int64_t> balanced_sizes(int64_t batch_size, const std::vector<double> &shares) {
  std::vector<int64_t> sizes;
  const uint64_t whole = uint64_t(batch_size);
  uint64_t sum = 0;  // shares of batches near 2^63 are rounded to doubles: together they may be more than that
  for (double share : shares) {
    sizes.push_back(share >= double(batch_size) ? batch_size : std::max<int64_t>(1, int64_t(std::floor(share))));
    sum += uint64_t(sizes.back());
  }
  const auto missing = [&](size_t i) { return shares[i] - double(sizes[i]); };
  for (; sum < whole; ++sum) {
    size_t best = 0;
    for (size_t i = 1; i < sizes.size(); ++i)
      if (missing(i) > missing(best)) best = i;
    ++sizes[best];
  }
  for (; sum > whole; --sum) {
    size_t best = sizes.size();
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] > 1 && (best == sizes.size() || missing(i) <= missing(best))) best = i;
    --sizes[best];
  }
  return sizes;
}

// WRK-01. A size is at most the batch, so that it fits an int64_t.
std::vector<int64_t> rounded_sizes(int64_t batch_size, const std::vector<double> &shares, Rounding rounding) {
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  for (double share : shares) {
    const double rounded = rounding == Rounding::kHalfEven ? round_half_even(share) : std::floor(share + 0.5);
    sizes.push_back(rounded >= double(batch_size) ? batch_size : int64_t(rounded));
    sum = std::min(sum + sizes.back(), batch_size);
  }
  sizes.back() += batch_size - sum;
  return sizes;
}

}  // namespace

Rounding make_rounding(int32_t code) {
  if (code < 0 || code > int32_t(Rounding::kBalanced)) {
    throw Error(Code::kInvalidArgument,
                text("rounding: expected 0 (half up), 1 (half even) or 2 (balanced), found ", code), "rounding");
  }
  return Rounding(code);
}

std::vector<BatchSlice> split_batch(int64_t batch_size, const std::vector<double> &workload, size_t num_devices,
                                    Rounding rounding) {
  if (num_devices == 0) throw Error(Code::kInvalidArgument, "contexts: expected at least one, found none", "contexts");
  if (!workload.empty() && workload.size() != num_devices) {
    throw Error(Code::kInvalidArgument,
                text("workload: expected one number for each of ", num_devices, " contexts, found ", workload.size()),
                "workload");
  }
  const std::vector<double> weights = workload.empty() ? std::vector<double>(num_devices, 1.0) : workload;
  for (double w : weights) {
    if (!std::isfinite(w)) fail("a workload is not finite", batch_size, num_devices, weights);
    if (!(w > 0)) fail("an empty split: a workload is not positive", batch_size, num_devices, weights);
  }
  if (batch_size == 0) throw Error(Code::kInvalidArgument, "the batch is empty: expected at least one sample", "batch");
  if (batch_size < 1 || uint64_t(batch_size) < num_devices) {
    fail("an empty split: there are fewer samples than contexts", batch_size, num_devices, weights);
  }
  const std::vector<double> shares = shares_of(batch_size, weights);
  const std::vector<int64_t> sizes = rounding == Rounding::kBalanced ? balanced_sizes(batch_size, shares)
                                                                     : rounded_sizes(batch_size, shares, rounding);
  std::vector<BatchSlice> slices;
  int64_t end = 0;
  for (size_t i = 0; i < num_devices; ++i) {
    const int64_t begin = end;
    end = begin + std::min(sizes[i], batch_size - begin);
    if (begin >= end)
      fail(text("an empty split: device ", i, " would get no samples"), batch_size, num_devices, weights);
    slices.push_back({begin, end});
  }
  return slices;
}

void check_slices(const std::vector<BatchSlice> &slices, size_t num_devices) {
  if (slices.size() != num_devices) {
    throw Error(Code::kInvalidArgument,
                text("slices: expected one for each of ", num_devices, " contexts, found ", slices.size()), "slices");
  }
  int64_t end = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].begin != end || slices[i].end <= slices[i].begin) {
      throw Error(Code::kInvalidArgument,
                  text("slices: expected slice ", i, " to begin at ", end, " and not to be empty, found [",
                       slices[i].begin, ", ", slices[i].end, ")"),
                  "slices");
    }
    end = slices[i].end;
  }
}

int batch_axis(const std::string &layout) {
  const size_t found = layout.find('N');
  return found == std::string::npos ? -1 : int(found);
}

std::vector<int> batch_axes(const DataDescs &descs, int64_t *batch_size) {
  std::vector<int> axes;
  int64_t size = *batch_size;
  for (const DataDesc &desc : descs) {
    const int axis = batch_axis(desc.layout);
    axes.push_back(axis);
    if (axis < 0) continue;
    if (axis >= desc.shape.rank()) {
      throw Error(Code::kShape,
                  text("'", desc.name, "': shape ", desc.shape, " has no axis ", axis,
                       ", which is the batch axis of layout '", desc.layout, "'"),
                  desc.name);
    }
    if (size == 0) size = desc.shape[axis];
    if (desc.shape[axis] != size) {
      throw Error(Code::kShape,
                  text("all data must have the same batch size: '", desc.name, "' of shape ", desc.shape, " has ",
                       desc.shape[axis], " on axis ", axis, ", expected ", size),
                  desc.name);
    }
    if (size < 1) {
      throw Error(Code::kInvalidArgument,
                  text("'", desc.name, "': expected at least one sample, found an empty batch of shape ", desc.shape),
                  desc.name);
    }
  }
  *batch_size = size;
  return axes;
}

DataDescs slice_descs(const DataDescs &descs, const std::vector<int> &axes, const BatchSlice &slice) {
  if (axes.size() != descs.size()) {
    throw Error(Code::kInvalidArgument,
                text("axes: expected one for each of ", descs.size(), " descriptors, found ", axes.size()), "axes");
  }
  DataDescs sliced = descs;
  for (size_t i = 0; i < descs.size(); ++i) {
    if (axes[i] < 0) continue;
    if (axes[i] >= descs[i].shape.rank()) {
      throw Error(Code::kShape, text("'", descs[i].name, "': shape ", descs[i].shape, " has no axis ", axes[i]),
                  descs[i].name);
    }
    sliced[i].shape[axes[i]] = slice.size();
  }
  return sliced;
}

}  // namespace cohort
