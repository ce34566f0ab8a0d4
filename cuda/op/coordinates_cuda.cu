// SPDX-License-Identifier: Apache-2.0
// Coordinates and shapes as numbers, comparisons and counts of whole arrays, and products of rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/allclose.hpp"
#include "op/coordinates.hpp"
#include "op/fold_batch_norm.hpp"
#include "op/histogram.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

struct AxisLengths {
  int64_t num_axes = 0, lengths[kMaxAxes] = {}, strides[kMaxAxes] = {};
  void add(int64_t length, int64_t stride, const char *op) {
    if (num_axes == kMaxAxes) throw Error(Code::kUnsupported, text(op, " of more than ", kMaxAxes, " lengths"));
    lengths[num_axes] = length;
    strides[num_axes++] = stride;
  }
};

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

// Numbers that are known at bind.
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

class AllcloseCuda final : public Kernel {
 public:
  explicit AllcloseCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<AllcloseAttrs>()),
        count_(spec.inputs[0].shape.size()),
        dtypes_{spec.inputs[0].dtype, spec.inputs[1].dtype} {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements a = elements_of(args.inputs[0], dtypes_[0]), b = elements_of(args.inputs[1], dtypes_[1]);
    uint8_t *const out = args.out<uint8_t>(0);
    const double absolute = double(attrs_.atol), relative = double(attrs_.rtol);
    const bool equal_nan = attrs_.equal_nan;
    for_each(lane, 1, [=] __device__(int64_t) { *out = 1; });
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double x = load<double>(a, i), y = load<double>(b, i);
      const bool both_nan = x != x && y != y;
      const bool near = x == y || (isfinite(y) && fabs(x - y) <= absolute + relative * fabs(y));
      if (!near && !(equal_nan && both_nan)) *out = 0;  // all that write, write this
    });
  }

 private:
  const AllcloseAttrs attrs_;
  const int64_t count_;
  const Dtype dtypes_[2];
};
COHORT_KERNEL(cuda, _contrib_allclose, AllcloseCuda);

// Edges are compared as they stand in the second output, rounded to its type. Each element is counted in its bin: whole
// numbers, whose sum does not depend on the order.
class HistogramCuda final : public Kernel {
 public:
  explicit HistogramCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<HistogramAttrs>()),
        count_(spec.inputs[0].shape.size()),
        bins_(spec.outputs[0].shape[0]),
        data_(spec.inputs[0].dtype),
        given_(spec.inputs.size() > 1 ? spec.inputs[1].dtype : Dtype::kNone),
        edges_(spec.outputs[1].dtype) {
    spec.scratch_bytes = size_t(bins_ + 1) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[0], data_);
    // Where nobody wants the edges they are rounded in scratch memory.
    const Elements edges = elements_of(args.outputs[1] ? args.outputs[1] : args.scratch, edges_);
    const Elements given = elements_of(attrs_.bin_cnt ? nullptr : args.inputs[1], given_);
    const int64_t bins = bins_;
    const double low = attrs_.low, high = attrs_.high;
    for_each(lane, bins + 1, [=] __device__(int64_t i) {
      const double edge = i == bins ? high : low + double(i) * (high - low) / double(bins);
      store(edges, i, given.data ? load<double>(given, i) : edge);
    });
    int64_t *const counts = args.out<int64_t>(0);
    if (!counts) return;
    zero_bytes(lane, counts, size_t(bins) * sizeof(int64_t));
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double first = load<double>(edges, 0), last = load<double>(edges, bins);
      const double x = load<double>(data, i);
      if (!(x >= first && x <= last)) return;  // NaN is in no bin
      int64_t begin = 0, end = bins + 1;
      while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        if (x < load<double>(edges, middle)) {
          end = middle;
        } else {
          begin = middle + 1;
        }
      }
      const int64_t own = begin - 1 < 0 ? 0 : begin - 1 < bins ? begin - 1 : bins - 1;
      atomicAdd(reinterpret_cast<unsigned long long *>(counts) + own, 1ull);
    });
  }

 private:
  const HistogramAttrs attrs_;
  const int64_t count_, bins_;
  const Dtype data_, given_, edges_;
};
COHORT_KERNEL(cuda, _histogram, HistogramCuda);

// Row r of the output is the product of one row of each input: the digits of r, the last input's fastest.
template <typename C>
class KhatriRaoCuda final : public Kernel {
 public:
  explicit KhatriRaoCuda(const StepSpec &spec)
      : rows_(spec.outputs[0].shape[0]), columns_(spec.outputs[0].shape[1]), dtype_(spec.outputs[0].dtype) {
    for (const TensorSpec &in : spec.inputs) lengths_.add(in.shape[0], 0, "khatri_rao");
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements out = elements_of(args.outputs[0], dtype_);
    const AxisLengths lengths = lengths_;
    const int64_t columns = columns_;
    for (int64_t i = lengths.num_axes; i-- > 0;) {
      const Elements x = elements_of(args.inputs[i], dtype_);
      int64_t each = 1;  // rows of the output for each of this input
      for (int64_t k = i + 1; k < lengths.num_axes; ++k) each *= lengths.lengths[k];
      const int64_t length = lengths.lengths[i];
      const bool first = i + 1 == lengths.num_axes;
      for_each(lane, rows_ * columns, [=] __device__(int64_t at) {
        const C factor = load<C>(x, at / columns / each % length * columns + at % columns);
        store(out, at, first ? factor : pointwise::mul(load<C>(out, at), factor));
      });
    }
  }

 private:
  const int64_t rows_, columns_;
  const Dtype dtype_;
  AxisLengths lengths_;
};
std::unique_ptr<Kernel> make_khatri_rao(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<KhatriRaoCuda<decltype(c)>>(spec);
  });
}
COHORT_KERNEL_BY(cuda, khatri_rao, make_khatri_rao);

class FoldBatchNormCuda final : public Kernel {
 public:
  explicit FoldBatchNormCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<FoldBatchNormAttrs>()),
        channels_(spec.inputs[0].shape[0]),
        row_(spec.inputs[0].shape.size() / std::max<int64_t>(1, channels_)) {}
  void run(const Args &args, const Lane &lane) const override {
    const int first = attrs_.has_bias ? 2 : 1;
    const float *const weight = args.in<float>(0), *const bias = attrs_.has_bias ? args.in<float>(1) : nullptr;
    const float *const gamma = attrs_.fix_gamma ? nullptr : args.in<float>(first), *const beta =
                                                                                       args.in<float>(first + 1);
    const float *const mean = args.in<float>(first + 2), *const variance = args.in<float>(first + 3);
    float *const new_weight = args.out<float>(0), *const new_bias = args.out<float>(1);
    const double eps = attrs_.eps;
    const int64_t row = row_;
    for_each(lane, channels_ * row, [=] __device__(int64_t i) {
      const int64_t c = i / row;
      const float scale = float((gamma ? double(gamma[c]) : 1.0) / sqrt(double(variance[c]) + eps));
      new_weight[i] = weight[i] * scale;
    });
    for_each(lane, channels_, [=] __device__(int64_t c) {
      const float scale = float((gamma ? double(gamma[c]) : 1.0) / sqrt(double(variance[c]) + eps));
      new_bias[c] = ((bias ? bias[c] : 0.0f) - mean[c]) * scale + beta[c];
    });
  }

 private:
  const FoldBatchNormAttrs attrs_;
  const int64_t channels_, row_;
};
COHORT_KERNEL(cuda, _fold_batch_norm, FoldBatchNormCuda).one_dtype({Dtype::kFloat32});

}  // namespace
}  // namespace cohort
