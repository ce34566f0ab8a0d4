// SPDX-License-Identifier: Apache-2.0
// SoftmaxOutput: softmax forward, softmax minus the label backward; the rules of src/cpu/op/softmax_output_cpu.cc.
#include "cuda/op/row_vectors.cuh"
#include "device/kernel_table.hpp"
#include "op/float_math.hpp"
#include "op/softmax_output.hpp"

namespace cohort {
namespace {

// The classes of one sample lie `inner` elements apart: (outer, classes, inner).
struct ScoreExtent {
  int64_t outer, classes, inner;
  int64_t size() const { return outer * classes * inner; }
};

ScoreExtent extent_of(const SoftmaxOutputAttrs &attrs, const Shape &shape) {
  if (attrs.multi_output) return {shape[0], shape[1], shape.size(2, shape.rank())};
  if (attrs.preserve_shape) return {shape.size(0, shape.rank() - 1), shape[shape.rank() - 1], 1};
  return {shape[0], shape.size(1, shape.rank()), 1};
}

// scale[0] = grad_scale / the number of labels that are not ignored, which is at least 1. One block.
template <typename C>
__global__ void scale_by_valid(Elements label, int64_t labels, int64_t ignored, C grad_scale, C *scale) {
  COHORT_SHARED(int, counts, [kBlockThreads]);
  int count = 0;
  for (int64_t i = threadIdx.x; i < labels; i += blockDim.x) count += load_index(label, i) != ignored;
  counts[threadIdx.x] = count;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int64_t all = 0;
  for (int t = 0; t < kBlockThreads; ++t) all += counts[t];
  *scale = grad_scale / C(all > 0 ? all : 1);
}

template <typename C>
struct GradientNumbers {
  C scale, wanted, others;  // the targets for the label's class and for the others
  int64_t ignored;
  bool use_ignore;
};

// gradient = (output - target) * scale, zero for ignored samples; one thread per element. The scale is in device memory
// where `valid` says so.
template <typename C>
__global__ void softmax_gradient(Elements label, Elements output, Elements head, const C *valid, Elements gradient,
                                 ScoreExtent extent, GradientNumbers<C> n) {
  const C scale = valid ? *valid : n.scale;
  const int64_t count = extent.outer * extent.classes * extent.inner;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t outer = i / (extent.classes * extent.inner), within = i % extent.inner;
    const int64_t c = i / extent.inner % extent.classes;
    const int64_t k = load_index(label, outer * extent.inner + within);
    const bool ignored = n.use_ignore && k == n.ignored;
    const C value = ignored ? C(0) : (load<C>(output, i) - (c == k ? n.wanted : n.others)) * scale;
    store(gradient, i, head.data ? value * load<C>(head, i) : value);
  }
}

// The same where the label is a probability for each element.
template <typename C>
__global__ void softmax_difference(Elements label, Elements output, Elements head, C scale, Elements gradient,
                                   int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const C value = (load<C>(output, i) - load<C>(label, i)) * scale;
    store(gradient, i, head.data ? value * load<C>(head, i) : value);
  }
}

template <typename T>
struct SoftmaxOutputRows {
  using C = ComputeOf<T>;
  const T *x;
  T *y;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const T *const from = x + row * threads.length;
    const C top = threads.largest([](C value) { return value; }, from);
    const C sum = threads.sum([=](C value) { return pointwise::exp_of(value - top); }, from);
    threads.write(
        y + row * threads.length, [=](int64_t, C value) { return pointwise::exp_of(value - top) / sum; }, from);
  }
};

// softmax_gradient() for labels that are classes of rows.
template <typename T>
struct SoftmaxOutputGradientRows {
  using C = ComputeOf<T>;
  Elements label;
  const T *output, *head;
  const C *valid;
  T *gradient;
  GradientNumbers<C> n;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const C scale = valid ? *valid : n.scale;
    const int64_t k = load_index(label, row), first = row * threads.length;
    const GradientNumbers<C> numbers = n;
    const bool ignored = n.use_ignore && k == n.ignored;
    const auto value = [=](int64_t i, C y) {
      return ignored ? C(0) : (y - (i == k ? numbers.wanted : numbers.others)) * scale;
    };
    if (head) {
      threads.write(
          gradient + first, [=](int64_t i, C y, C by) { return value(i, y) * by; }, output + first, head + first);
    } else {
      threads.write(gradient + first, value, output + first);
    }
  }
};

template <typename C>
class SoftmaxOutputCuda final : public Kernel {
 public:
  explicit SoftmaxOutputCuda(StepSpec &spec)
      : extent_(extent_of(spec.attrs_as<SoftmaxOutputAttrs>(), spec.inputs[0].shape)), dtype_(spec.inputs[0].dtype) {}

  // One warp per sample.
  void run(const Args &args, const Lane &lane) const override {
    if (extent_.size() == 0) return;
    const Elements x = elements_of(args.inputs[0], dtype_), y = elements_of(args.outputs[0], dtype_);
    const RowExtent e{extent_.outer, extent_.classes, extent_.inner};
    if (are_vectors(e, dtype_)) {
      return with_row_type(dtype_, [&](auto type) {
        using T = decltype(type);
        for_each_row_of_vectors<T>(lane, e.rows(), e.length, {x.data, y.data},
                                   SoftmaxOutputRows<T>{static_cast<const T *>(x.data), static_cast<T *>(y.data)});
      });
    }
    for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
      const int64_t first = e.start(row);
      const auto value = [=](int64_t i) { return load<C>(x, first + i * e.inner); };
      const C top = largest_along<C>(e.length, value);
      const C sum = sum_along<C>(e.length, [=](int64_t i) { return pointwise::exp_of(value(i) - top); });
      each_along(e.length, [=](int64_t i) { store(y, first + i * e.inner, pointwise::exp_of(value(i) - top) / sum); });
    });
  }

 private:
  const ScoreExtent extent_;
  const Dtype dtype_;
};

// Inputs: the head gradient if out_grad, label, output.
template <typename C>
class SoftmaxOutputBackwardCuda final : public Kernel {
 public:
  explicit SoftmaxOutputBackwardCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<SoftmaxOutputAttrs>()),
        extent_(extent_of(attrs_, spec.outputs[0].shape)),
        labels_(spec.inputs[attrs_.out_grad ? 1 : 0].shape.size()),
        label_(spec.inputs[attrs_.out_grad ? 1 : 0].dtype),
        dtype_(spec.outputs[0].dtype),
        probabilities_(spec.inputs[attrs_.out_grad ? 1 : 0].shape == spec.outputs[0].shape),
        counts_(!probabilities_ && attrs_.normalization == SoftmaxOutputAttrs::kValid) {
    if (counts_) spec.scratch_bytes = sizeof(C);
    const bool smooth = attrs_.smooth_alpha > 0 && !attrs_.multi_output && extent_.classes > 1;
    numbers_.others = smooth ? C(attrs_.smooth_alpha) / C(extent_.classes - 1) : C(0);
    numbers_.wanted = C(1) - (smooth ? C(attrs_.smooth_alpha) : C(0));
    numbers_.ignored = to_index(attrs_.ignore_label);
    numbers_.use_ignore = attrs_.use_ignore;
    const bool by_labels = attrs_.normalization == SoftmaxOutputAttrs::kBatch;
    const double divisor = by_labels ? double(labels_) : attrs_.multi_output ? double(extent_.inner) : 1;
    numbers_.scale = probabilities_ ? C(attrs_.grad_scale) : C(attrs_.grad_scale) / C(divisor);
  }

  void run(const Args &args, const Lane &lane) const override {
    if (extent_.size() == 0) return;
    const int first = attrs_.out_grad ? 1 : 0;
    const Elements head = elements_of(first ? args.inputs[0] : nullptr, dtype_);
    const Elements label = elements_of(args.inputs[first], label_),
                   output = elements_of(args.inputs[first + 1], dtype_);
    const Elements gradient = elements_of(args.outputs[0], dtype_);
    const Grid grid = flat_grid(extent_.size());
    if (probabilities_) {
      return launch(softmax_difference<C>, grid, lane.stream, label, output, head, numbers_.scale, gradient,
                    extent_.size());
    }
    C *const valid = counts_ ? static_cast<C *>(args.scratch) : nullptr;
    if (counts_) {
      launch(scale_by_valid<C>, {dim3(1), dim3(kBlockThreads)}, lane.stream, label, labels_, numbers_.ignored,
             C(attrs_.grad_scale), valid);
    }
    if (are_vectors({extent_.outer, extent_.classes, extent_.inner}, dtype_)) {
      return with_row_type(dtype_, [&](auto type) {
        using T = decltype(type);
        if constexpr (std::is_same_v<ComputeOf<T>, C>) {
          for_each_row_of_vectors<T>(lane, extent_.outer, extent_.classes, {output.data, head.data, gradient.data},
                                     SoftmaxOutputGradientRows<T>{label, static_cast<const T *>(output.data),
                                                                  static_cast<const T *>(head.data), valid,
                                                                  static_cast<T *>(gradient.data), numbers_});
        }
      });
    }
    launch(softmax_gradient<C>, grid, lane.stream, label, output, head, valid, gradient, extent_, numbers_);
  }

 private:
  const SoftmaxOutputAttrs attrs_;
  const ScoreExtent extent_;
  const int64_t labels_;
  const Dtype label_, dtype_;
  const bool probabilities_, counts_;  // label has the shape of data; the scale depends on the labels
  GradientNumbers<C> numbers_{};
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

COHORT_KERNEL_BY(cuda, SoftmaxOutput, make<SoftmaxOutputCuda>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_SoftmaxOutput, make<SoftmaxOutputBackwardCuda>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
