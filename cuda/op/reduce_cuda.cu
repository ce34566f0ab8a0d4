// SPDX-License-Identifier: Apache-2.0
// Reductions over axes; broadcast_to, broadcast_axis and broadcast_like, whose gradients are reductions; argmax and
// argmin.
#include <cstring>
#include <utility>
#include <vector>

#include "cuda/op/rows.cuh"
#include "cuda/op/strided_cuda.hpp"
#include "device/kernel_table.hpp"
#include "kernels/reduction_group.hpp"
#include "op/compute_type.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

using namespace strided;

std::unique_ptr<Kernel> make_reduce(StepSpec &spec) {
  const Reduction reduction = reduction_of(spec.op, spec.attrs.get());
  const Shape &shape = spec.inputs[0].shape;
  const Shape kept = kept_shape(shape, axes_reduced_by(spec.op, spec.attrs.get(), shape));
  auto kernel = std::make_unique<StridedCuda>();
  kernel->add(spec, spec.inputs[0].dtype, {{reduction.of, 0}, {&shape, nullptr, nullptr}, shape, kept}, 0, reduction);
  return kernel;
}

// Multiplies the gradients of elements that are 0, where the functor leaves the head gradient, by the product of the
// other elements.
template <typename C>
class ProductBackwardCuda final : public Kernel {
 public:
  ProductBackwardCuda(const StepSpec &spec, const std::vector<bool> &reduced, bool skips_nan,
                      std::unique_ptr<Kernel> divide)
      : count_(spec.outputs[0].shape.size()),
        data_(spec.inputs[1].dtype),
        out_(spec.outputs[0].dtype),
        group_(spec.outputs[0].shape, reduced),
        skips_nan_(skips_nan),
        divide_(std::move(divide)) {}
  void run(const Args &args, const Lane &lane) const override {
    divide_->run(args, lane);
    const Elements data = elements_of(args.inputs[1], data_), to = elements_of(args.outputs[0], out_);
    const ReductionGroup group = group_;
    const bool skips_nan = skips_nan_;
    for_each(lane, count_, [=] __device__(int64_t i) {
      if (load<C>(data, i) != C(0)) return;
      const auto read = [&](int64_t at) { return load<C>(data, at); };
      store(to, i, load<C>(to, i) * product_of_others<C>(group, i, skips_nan, read));
    });
  }

 private:
  const int64_t count_;
  const Dtype data_, out_;
  const ReductionGroup group_;
  const bool skips_nan_;
  const std::unique_ptr<Kernel> divide_;
};

std::unique_ptr<Kernel> make_reduce_backward(StepSpec &spec) {
  const std::string op = spec.op.substr(std::strlen("_backward_"));
  const Shape &shape = spec.outputs[0].shape;
  const Shape kept = kept_shape(shape, axes_reduced_by(op, spec.attrs.get(), shape));
  const PointwiseCall call = reduction_gradient(op, spec.attrs.get(), shape, spec.inputs[0].shape);
  auto kernel = std::make_unique<StridedCuda>();
  kernel->add(spec, spec.outputs[0].dtype, {call, {&kept, &shape, &kept}, shape, shape}, 0);
  const bool skips_nan = call.code == PointwiseCode::kNanProdGrad;
  if (!skips_nan && call.code != PointwiseCode::kProdGrad) return kernel;
  return dispatch_compute(spec.outputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    using C = decltype(c);
    if constexpr (std::is_floating_point_v<C>) {
      return std::make_unique<ProductBackwardCuda<C>>(spec, axes_reduced_by(op, spec.attrs.get(), shape), skips_nan,
                                                      std::move(kernel));
    }
    return nullptr;
  });
}

std::unique_ptr<Kernel> make_broadcast(StepSpec &spec) {
  return make_repeated(spec, spec.inputs[0].shape, spec.outputs[0].shape);
}
std::unique_ptr<Kernel> make_broadcast_backward(StepSpec &spec) {
  return make_repeated_backward(spec, spec.outputs[0].shape, spec.inputs[0].shape);
}

COHORT_KERNEL_BY(cuda, broadcast_to, make_broadcast);
COHORT_KERNEL_BY(cuda, broadcast_axis, make_broadcast);
COHORT_KERNEL_BY(cuda, broadcast_like, make_broadcast);
COHORT_KERNEL_BY(cuda, _backward_broadcast_to, make_broadcast_backward);
COHORT_KERNEL_BY(cuda, _backward_broadcast_axis, make_broadcast_backward);
COHORT_KERNEL_BY(cuda, _backward_broadcast_like, make_broadcast_backward);

const bool registered = [] {
  for (const std::string &op : reducing_operators()) {
    cuda_kernels().add(op, make_reduce);
    cuda_kernels().add("_backward_" + op, make_reduce_backward);
  }
  return true;
}();

// ---- argmax, argmin, argmax_channel: the first extremum. The parts of a line take its elements in turn. All start
// from the first element, so that the result is a NaN only if that is the first element.

template <typename C, bool kLargest>
class ArgReduceCuda final : public Kernel {
 public:
  ArgReduceCuda(StepSpec &spec, std::optional<int32_t> axis)
      : e_{1, spec.inputs[0].shape.size(), 1}, in_(spec.inputs[0].dtype), out_(spec.outputs[0].dtype) {
    const Shape &shape = spec.inputs[0].shape;
    if (axis) e_ = rows_along(shape, normalize_axis(*axis, shape.rank(), spec.op.c_str()));
    parts_ = parts_of_rows(e_);
    if (parts_ > 1) spec.scratch_bytes = size_t(e_.rows() * parts_) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], in_), to = elements_of(args.outputs[0], out_);
    const RowExtent e = e_;
    const int64_t parts = parts_;
    int64_t *const found = parts > 1 ? static_cast<int64_t *>(args.scratch) : nullptr;
    for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
      const int64_t row = i / parts;
      int64_t best = 0;
      C top = e.length > 0 ? load<C>(from, e.start(row)) : C(0);
      for (int64_t k = i % parts; k < e.length; k += parts) {
        const C value = load<C>(from, e.start(row) + k * e.inner);
        if (kLargest ? value > top : value < top) top = value, best = k;
      }
      if (found) {
        found[i] = best;
      } else {
        store(to, row, best);
      }
    });
    if (!found) return;
    for_each(lane, e.rows(), [=] __device__(int64_t row) {
      int64_t best = 0;
      C top = load<C>(from, e.start(row));
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t k = found[row * parts + part];
        const C value = load<C>(from, e.start(row) + k * e.inner);
        if ((kLargest ? value > top : value < top) || (value == top && k < best)) top = value, best = k;
      }
      store(to, row, best);
    });
  }

 private:
  RowExtent e_;
  const Dtype in_, out_;
  int64_t parts_ = 1;
};

template <bool kLargest>
std::unique_ptr<Kernel> make_arg(StepSpec &spec, std::optional<int32_t> axis) {
  if (dtype_is_float(spec.inputs[0].dtype)) return std::make_unique<ArgReduceCuda<double, kLargest>>(spec, axis);
  return std::make_unique<ArgReduceCuda<int64_t, kLargest>>(spec, axis);
}
std::unique_ptr<Kernel> make_argmax(StepSpec &spec) {
  return make_arg<true>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmin(StepSpec &spec) {
  return make_arg<false>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmax_channel(StepSpec &spec) { return make_arg<true>(spec, 1); }

COHORT_KERNEL_BY(cuda, argmax, make_argmax);
COHORT_KERNEL_BY(cuda, argmin, make_argmin);
COHORT_KERNEL_BY(cuda, argmax_channel, make_argmax_channel);

}  // namespace
}  // namespace cohort
