// SPDX-License-Identifier: Apache-2.0
// Coordinates and shapes as numbers.
#include "cuda/op/axis_lengths.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/coordinates.hpp"

namespace cohort {
namespace {

AxisLengths lengths_of(const Tuple &shape, const char *op) {
  AxisLengths axes;
  for (int64_t length : shape) axes.add(length, 0, op);
  return axes;
}

// Row i of the coordinates begins at i * count.
template <bool kUnravel>
class RavelCuda final : public Kernel {
 public:
  explicit RavelCuda(const StepSpec &spec)
      : axes_(lengths_of(spec.attrs_as<RavelAttrs>().shape, spec.op.c_str())),
        count_((kUnravel ? spec.inputs : spec.outputs)[0].shape.size()),
        in_(spec.inputs[0].dtype),
        out_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], in_), to = elements_of(args.outputs[0], out_);
    const AxisLengths axes = axes_;
    const int64_t count = count_;
    for_each(lane, count, [=] __device__(int64_t i) {
      if (kUnravel) {
        int64_t flat = load_index(from, i);
        for (int64_t axis = axes.num_axes - 1; axis > 0; --axis) {
          store(to, axis * count + i, flat % axes.lengths[axis]);
          flat /= axes.lengths[axis];
        }
        store(to, i, flat);
      } else {
        uint64_t flat = 0;  // unsigned: coordinates may be anything
        for (int64_t axis = 0; axis < axes.num_axes; ++axis) {
          flat = flat * uint64_t(axes.lengths[axis]) + uint64_t(load_index(from, axis * count + i));
        }
        store(to, i, int64_t(flat));
      }
    });
  }

 private:
  const AxisLengths axes_;
  const int64_t count_;
  const Dtype in_, out_;
};

class IndexArrayCuda final : public Kernel {
 public:
  explicit IndexArrayCuda(const StepSpec &spec) : count_(spec.inputs[0].shape.size()) {
    const Shape &data = spec.inputs[0].shape;
    for (int axis : asked_axes(spec.attrs_as<IndexArrayAttrs>(), data.rank())) {
      axes_.add(data[axis], data.size(axis + 1, data.rank()), "_contrib_index_array");
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const AxisLengths axes = axes_;
    int64_t *const out = args.out<int64_t>(0);
    for_each(lane, count_ * axes.num_axes, [=] __device__(int64_t i) {
      const int64_t axis = i % axes.num_axes;
      out[i] = i / axes.num_axes / axes.strides[axis] % axes.lengths[axis];
    });
  }

 private:
  AxisLengths axes_;
  const int64_t count_;
};

// Writes numbers that are known at bind.
class KnownCuda final : public Kernel {
 public:
  explicit KnownCuda(const AxisLengths &numbers) : numbers_(numbers) {}
  void run(const Args &args, const Lane &lane) const override {
    const AxisLengths numbers = numbers_;
    int64_t *const out = args.out<int64_t>(0);
    for_each(lane, numbers.num_axes, [=] __device__(int64_t i) { out[i] = numbers.lengths[i]; });
  }

 private:
  const AxisLengths numbers_;
};
std::unique_ptr<Kernel> make_shape_array(StepSpec &spec) {
  const Shape &shape = spec.inputs[0].shape;
  return std::make_unique<KnownCuda>(lengths_of(Tuple(shape.begin(), shape.end()), "shape_array"));
}
std::unique_ptr<Kernel> make_size_array(StepSpec &spec) {
  return std::make_unique<KnownCuda>(lengths_of({spec.inputs[0].shape.size()}, "size_array"));
}

COHORT_KERNEL(cuda, _ravel_multi_index, RavelCuda<false>);
COHORT_KERNEL(cuda, _unravel_index, RavelCuda<true>);
COHORT_KERNEL(cuda, _contrib_index_array, IndexArrayCuda);
COHORT_KERNEL_BY(cuda, shape_array, make_shape_array);
COHORT_KERNEL_BY(cuda, size_array, make_size_array);

}  // namespace
}  // namespace cohort
