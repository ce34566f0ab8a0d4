// SPDX-License-Identifier: Apache-2.0
// Decides which samples of a batch go to which device (contract sections 1 and 2). Used by group, and by the API layer
// for cohort_split_slices().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace cohort {

// The values are those of COHORT_ROUNDING_*.
enum class Rounding : int32_t { kHalfUp = 0, kHalfEven = 1, kBalanced = 2 };
Rounding make_rounding(int32_t code);  // kInvalidArgument

// Samples [begin, end) along a batch axis.
struct BatchSlice {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const BatchSlice &other) const { return begin == other.begin && end == other.end; }
  bool operator!=(const BatchSlice &other) const { return !(*this == other); }
};

// WRK-01..06: one slice per device, contiguous from 0. An empty workload means equal shares. kInvalidArgument if a
// slice would be empty, a workload is not positive and finite, or their number is not num_devices.
std::vector<BatchSlice> split_batch(int64_t batch_size, const std::vector<double> &workload, size_t num_devices,
                                    Rounding rounding);

// WRK-07: checks slices given by the caller: one per device, not empty, ascending, contiguous from 0. kInvalidArgument.
void check_slices(const std::vector<BatchSlice> &slices, size_t num_devices);

// Describes one array of a batch to a group (DSC-01).
struct DataDesc {
  std::string name;
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  std::string layout = "NCHW";

  bool operator==(const DataDesc &other) const {
    return name == other.name && shape == other.shape && dtype == other.dtype && layout == other.layout;
  }
  bool operator!=(const DataDesc &other) const { return !(*this == other); }
};
using DataDescs = std::vector<DataDesc>;

// DSC-02: index of the first 'N', -1 without one.
int batch_axis(const std::string &layout);

// The batch axis of each descriptor. If *batch_size is 0, sets it from the first batched one, else checks against it
// (DSC-03..05, 08: kShape naming the descriptor). It stays 0 if none is batched.
std::vector<int> batch_axes(const DataDescs &descs, int64_t *batch_size);

// DSC-06: the same descriptors for one slice. Those with axis -1 stay as they are.
DataDescs slice_descs(const DataDescs &descs, const std::vector<int> &axes, const BatchSlice &slice);

}  // namespace cohort
