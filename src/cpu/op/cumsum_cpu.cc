// SPDX-License-Identifier: Apache-2.0
#include "op/cumsum.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Cumulative sums along the middle axis of (outer, length, inner), floats in double; for the backward step from the
// last element to the first. One thread computes a line, or a block of neighbouring lines.
template <typename C, bool kBackward>
class RunningSums final : public Kernel {
 public:
  explicit RunningSums(const StepSpec &spec)
      : load_(load_block(spec.inputs[0].dtype, dtype_of<C>())),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {
    const Shape &data = (kBackward ? spec.outputs : spec.inputs)[0].shape;
    const auto &a = spec.attrs_as<CumsumAttrs>();
    length_ = data.size();
    if (a.axis) {
      const int axis = normalize_axis(*a.axis, data.rank(), "axis");
      outer_ = data.size(0, axis);
      length_ = data[axis];
      inner_ = data.size(axis + 1, data.rank());
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t blocks = (inner_ + kPointwiseBlock - 1) / kPointwiseBlock;
    const int64_t elements = length_ * std::min(inner_, kPointwiseBlock);
    parallel_for(lane, outer_ * blocks, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(elements, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     if (inner_ == 1) {
                       line(args, i * length_);
                     } else {
                       lines(args, i / blocks * length_ * inner_, i % blocks * kPointwiseBlock);
                     }
                   }
                 });
  }

 private:
  void lines(const Args &args, int64_t base, int64_t first) const {
    const int64_t width = std::min(kPointwiseBlock, inner_ - first);
    C sums[kPointwiseBlock] = {}, row[kPointwiseBlock];
    for (int64_t n = 0; n < length_; ++n) {
      const int64_t at = base + (kBackward ? length_ - 1 - n : n) * inner_ + first;
      load_(args.inputs[0], at, row, width);
      for (int64_t i = 0; i < width; ++i) sums[i] = pointwise::add(sums[i], row[i]);
      store_(sums, args.outputs[0], at, width);
    }
  }
  void line(const Args &args, int64_t base) const {
    C sum = 0, block[kPointwiseBlock];
    for (int64_t done = 0; done < length_; done += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, length_ - done);
      const int64_t at = base + (kBackward ? length_ - done - count : done);
      load_(args.inputs[0], at, block, count);
      for (int64_t n = 0; n < count; ++n) {
        C &element = block[kBackward ? count - 1 - n : n];
        element = sum = pointwise::add(sum, element);
      }
      store_(block, args.outputs[0], at, count);
    }
  }

  int64_t outer_ = 1, length_ = 1, inner_ = 1;
  const LoadBlock load_;
  const StoreBlock store_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_running_sums(StepSpec &spec) {
  if (dtype_is_float((kBackward ? spec.inputs : spec.outputs)[0].dtype)) {
    return std::make_unique<RunningSums<double, kBackward>>(spec);
  }
  return std::make_unique<RunningSums<int64_t, kBackward>>(spec);
}

COHORT_KERNEL_BY(cpu, _np_cumsum, make_running_sums<false>);
COHORT_KERNEL_BY(cpu, _backward__np_cumsum, make_running_sums<true>);

}  // namespace
}  // namespace cohort
