// SPDX-License-Identifier: Apache-2.0
#include "op/coordinates.hpp"

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// ravel and unravel, in int64, a block of columns at a time: row i of the coordinates begins at i * count.
class RavelKernel : public Kernel {
 protected:
  RavelKernel(const StepSpec &spec, int64_t count)
      : count_(count),
        lengths_(spec.attrs_as<RavelAttrs>().shape),
        load_(load_indices(spec.inputs[0].dtype)),
        store_(store_block(Dtype::kInt64, spec.outputs[0].dtype)) {}
  template <typename Fn>
  void for_blocks(const Lane &lane, Fn &&fn) const {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kPointwiseBlock) fn(at, std::min(kPointwiseBlock, end - at));
    });
  }
  const int64_t count_;
  const Tuple lengths_;
  const LoadBlock load_;
  const StoreBlock store_;
};

class Ravel final : public RavelKernel {
 public:
  explicit Ravel(const StepSpec &spec) : RavelKernel(spec, spec.outputs[0].shape.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    for_blocks(lane, [&](int64_t at, int64_t count) {
      int64_t coordinates[kPointwiseBlock], flat[kPointwiseBlock];
      std::fill_n(flat, count, 0);
      for (size_t axis = 0; axis < lengths_.size(); ++axis) {
        load_(args.inputs[0], int64_t(axis) * count_ + at, coordinates, count);
        for (int64_t i = 0; i < count; ++i) {  // unsigned, so that coordinates may have any value
          flat[i] = int64_t(uint64_t(flat[i]) * uint64_t(lengths_[axis]) + uint64_t(coordinates[i]));
        }
      }
      store_(flat, args.outputs[0], at, count);
    });
  }
};

// rest = flat % length, flat = flat / length. In double below 2^51, where a quotient rounds to an integer only if it
// is one: such divisions vectorise.
struct Divide {
  static void run(int64_t *flat, int64_t length, int64_t *rest, int64_t count) {
    uint64_t all = uint64_t(length);
    for (int64_t i = 0; i < count; ++i) all |= uint64_t(flat[i] < 0 ? ~flat[i] : flat[i]);
    if (all >= uint64_t(1) << 51) {
      for (int64_t i = 0; i < count; ++i) {
        rest[i] = flat[i] % length;
        flat[i] /= length;
      }
      return;
    }
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const int64_t quotient = int64_t(double(flat[i]) / double(length));
      rest[i] = flat[i] - quotient * length;
      flat[i] = quotient;
    }
  }
};

class Unravel final : public RavelKernel {
 public:
  explicit Unravel(const StepSpec &spec) : RavelKernel(spec, spec.inputs[0].shape.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    for_blocks(lane, [&](int64_t at, int64_t count) {
      int64_t coordinates[kPointwiseBlock], flat[kPointwiseBlock];
      load_(args.inputs[0], at, flat, count);
      for (size_t axis = lengths_.size(); axis-- > 1;) {
        divide_(flat, lengths_[axis], coordinates, count);
        store_(coordinates, args.outputs[0], int64_t(axis) * count_ + at, count);
      }
      store_(flat, args.outputs[0], at, count);
    });
  }

 private:
  void (*const divide_)(int64_t *, int64_t, int64_t *, int64_t) = best_version<Divide>();
};

class IndexArray final : public Kernel {
 public:
  explicit IndexArray(const StepSpec &spec) : count_(spec.inputs[0].shape.size()) {
    const Shape &data = spec.inputs[0].shape;
    for (int axis : asked_axes(spec.attrs_as<IndexArrayAttrs>(), data.rank())) {
      axes_.push_back({data.size(axis + 1, data.rank()), data[axis]});
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t width = int64_t(axes_.size());
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      int64_t *out = args.out<int64_t>(0) + begin * width;
      for (int64_t i = begin; i < end; ++i) {
        for (const Axis &axis : axes_) *out++ = i / axis.stride % axis.length;
      }
    });
  }

 private:
  struct Axis {
    int64_t stride, length;
  };
  const int64_t count_;
  std::vector<Axis> axes_;
};

// Writes numbers that are known at bind.
class BindTimeConstant final : public Kernel {
 public:
  explicit BindTimeConstant(std::vector<int64_t> numbers) : numbers_(std::move(numbers)) {}
  void run(const Args &args, const Lane &) const override {
    std::copy(numbers_.begin(), numbers_.end(), args.out<int64_t>(0));
  }

 private:
  const std::vector<int64_t> numbers_;
};
std::unique_ptr<Kernel> make_shape_array(StepSpec &spec) {
  return std::make_unique<BindTimeConstant>(spec.inputs[0].shape.dims());
}
std::unique_ptr<Kernel> make_size_array(StepSpec &spec) {
  return std::make_unique<BindTimeConstant>(std::vector<int64_t>{spec.inputs[0].shape.size()});
}

COHORT_KERNEL(cpu, _ravel_multi_index, Ravel);
COHORT_KERNEL(cpu, _unravel_index, Unravel);
COHORT_KERNEL(cpu, _contrib_index_array, IndexArray);
COHORT_KERNEL_BY(cpu, shape_array, make_shape_array);
COHORT_KERNEL_BY(cpu, size_array, make_size_array);

}  // namespace
}  // namespace cohort
