// SPDX-License-Identifier: Apache-2.0
// FullyConnected: Y = X W^T + b, with X (rows, in), W (out, in), Y (rows, out), all row-major.
//
// float32 and bfloat16 in training: matrix products on row-major arrays. Measured with oneDNN 2.6 at the sizes of an
// MLP, its matmul is within a tenth of inner_product on blocked weights, whose reorder costs more than that. Constant
// weights (inference) are reordered once for inner_product. One or two rows are fastest by sgemm: for a small weight
// most of the time is the cost of a call, and a large one sgemm reads 1.4 times as fast as matmul, which transposes
// it first. float64: products of our own.
#include "op/fully_connected.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/dnnl_post_ops.hpp"
#include "cpu/op/gemm.hpp"
#include "cpu/op/in_float32.hpp"
#include "cpu/op/plain_post_ops.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linear_inputs.hpp"

namespace cohort {
namespace {

using namespace dnn;

struct LayerProduct {
  int64_t rows, in, out;
  bool has_bias;
  Dtype dtype;
  double operations() const { return 2.0 * double(rows) * double(in) * double(out); }
};

LayerProduct product_of(const FullyConnectedAttrs &a, const TensorSpec &data, const TensorSpec &weight) {
  LayerProduct p;
  p.out = weight.shape[0];
  p.in = weight.shape[1];
  p.rows = a.flatten ? data.shape[0] : data.shape.size(0, data.shape.rank() - 1);
  p.has_bias = !a.no_bias;
  p.dtype = data.dtype;
  return p;
}

LayerProduct forward_product(const StepSpec &spec) {
  return product_of(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[0], spec.inputs[1]);
}
LayerProduct backward_product(const StepSpec &spec) {
  return product_of(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[1], spec.inputs[2]);
}

bool is_row(const LayerProduct &p) { return p.dtype == Dtype::kFloat32 && p.rows == 1; }
bool is_few_rows(const LayerProduct &p) { return p.dtype == Dtype::kFloat32 && p.rows <= 2; }
// Whether so few operations on so few rows are needed that the cost of a primitive's call is noticeable.
bool is_tiny(const LayerProduct &p) { return is_few_rows(p) && p.operations() <= 65536; }

Desc matrix(const LayerProduct &p, int64_t rows, int64_t columns) { return row_major({rows, columns}, p.dtype); }
Desc transposed(const LayerProduct &p, int64_t rows, int64_t columns) {
  return ordered({rows, columns}, p.dtype, {1, 0});
}

// Makes a call for A (rows, inner) times B (inner, columns); operands name the buffers.
std::optional<DnnlCall> product_call(const Desc &a, const Desc &b, const Desc &bias, const Desc &c,
                                     const primitive_attr &attr, std::vector<DnnlArg> operands, StepSpec &spec) {
  const auto pd = attempt([&] { return forward_desc<dnnl::matmul>(engine(), attr, a, b, bias, c); });
  if (!pd || is_reference(*pd)) return std::nullopt;
  return DnnlCall(*pd, name_of(spec), std::move(operands), spec);
}

class FullyConnectedForward final : public Kernel {
 public:
  FullyConnectedForward(StepSpec &spec, const LayerProduct &p, int num_threads)
      : product_(p), post_(spec.post), num_threads_(num_threads) {
    for (TensorSpec &input : spec.inputs) input.layout = nullptr;
    if (is_few_rows(p)) return;
    const bool blocked = !spec.is_train && spec.constant.size() > 1 && spec.constant[1];
    if ((blocked && make_inner_product(spec)) || make_matmul(spec)) post_.clear();
  }

  bool is_made() const { return call_ || product_.dtype == Dtype::kFloat32; }

  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    if (call_) {
      call_.run(args);
      return;
    }
    const LayerProduct &p = product_;
    float *const y = args.out<float>(0);
    for (int64_t row = 0; p.has_bias && row < p.rows; ++row) {
      std::memcpy(y + row * p.out, args.in<float>(2), size_t(p.out) * sizeof(float));
    }
    COHORT_DNN_CHECK(dnnl_sgemm('N', 'T', p.rows, p.out, p.in, 1.0f, args.in<float>(0), p.in, args.in<float>(1), p.in,
                                p.has_bias ? 1.0f : 0.0f, y, p.out),
                     "FullyConnected");
    apply_post_ops(post_, Dtype::kFloat32, y, p.rows * p.out, args, p.has_bias ? 3 : 2, lane);
  }

 private:
  bool make_inner_product(StepSpec &spec) {
    const LayerProduct &p = product_;
    const Desc data = matrix(p, p.rows, p.in), result = matrix(p, p.rows, p.out), plain_weight = matrix(p, p.out, p.in);
    const Desc bias = p.has_bias ? row_major({p.out}, p.dtype) : Desc();
    std::vector<DnnlArg> operands;
    const primitive_attr attr = attributes(post_ops_of(spec, p.has_bias ? 3 : 2, result, result, operands));
    const auto pd = attempt([&] {
      return forward_desc<dnnl::inner_product_forward>(engine(), attr, prop_kind::forward_inference, data,
                                                       any_of({p.out, p.in}, p.dtype), bias, result);
    });
    if (!pd || is_reference(*pd)) return false;
    operands.push_back({DNNL_ARG_SRC, data, BufferRef::input(0)});
    operands.push_back({DNNL_ARG_WEIGHTS, pd->weights_desc(), BufferRef::input(1)});
    if (p.has_bias) operands.push_back({DNNL_ARG_BIAS, bias, BufferRef::input(2)});
    operands.push_back({DNNL_ARG_DST, result, BufferRef::output(0)});
    spec.inputs[1].layout = layout_of(pd->weights_desc(), plain_weight);
    call_ = DnnlCall(*pd, name_of(spec), std::move(operands), spec);
    return true;
  }

  bool make_matmul(StepSpec &spec) {
    const LayerProduct &p = product_;
    const Desc data = matrix(p, p.rows, p.in), weight = transposed(p, p.in, p.out), result = matrix(p, p.rows, p.out);
    const Desc bias = p.has_bias ? matrix(p, 1, p.out) : Desc();
    std::vector<DnnlArg> operands;
    const primitive_attr attr = attributes(post_ops_of(spec, p.has_bias ? 3 : 2, result, result, operands));
    operands.push_back({DNNL_ARG_SRC, data, BufferRef::input(0)});
    operands.push_back({DNNL_ARG_WEIGHTS, weight, BufferRef::input(1)});
    if (p.has_bias) operands.push_back({DNNL_ARG_BIAS, bias, BufferRef::input(2)});
    operands.push_back({DNNL_ARG_DST, result, BufferRef::output(0)});
    auto call = product_call(data, weight, bias, result, attr, std::move(operands), spec);
    if (call) call_ = std::move(*call);
    return bool(call_);
  }

  const LayerProduct product_;
  std::vector<PostOp> post_;  // post-operations that no primitive does
  const int num_threads_;
  DnnlCall call_;
};

// sums[j] = sum over i of values[i][j], with rows in order.
template <typename T>
void sum_rows(const T *values, int64_t rows, int64_t columns, T *sums, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  parallel_for(lane, columns, 1 + 65536 / std::max<int64_t>(rows, 1), [=](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 256;
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t count = std::min(kBlock, end - first);
      Sum block[kBlock] = {};
      for (int64_t i = 0; i < rows; ++i) {
        const T *const row = values + i * columns + first;
        for (int64_t j = 0; j < count; ++j) block[j] += cast_element<Sum>(row[j]);
      }
      for (int64_t j = 0; j < count; ++j) sums[first + j] = cast_element<T>(block[j]);
    }
  });
}

// sums[j] = sum over i of factors[i] rows[i][j], for j in [begin, end): reads each row once, four rows at a time.
struct WeightedRows {
  static void run(const float *factors, const float *rows, int64_t count, int64_t columns, int64_t begin, int64_t end,
                  float *sums) {
    std::fill(sums + begin, sums + end, 0.0f);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const float *const at = rows + i * columns, *const f = factors + i;
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t j = begin; j < end; ++j) {
        sums[j] += (f[0] * at[j] + f[1] * at[columns + j]) + (f[2] * at[2 * columns + j] + f[3] * at[3 * columns + j]);
      }
    }
    for (; i < count; ++i) {
      for (int64_t j = begin; j < end; ++j) sums[j] += factors[i] * rows[i * columns + j];
    }
  }
};

class FullyConnectedBackward final : public Kernel {
 public:
  FullyConnectedBackward(StepSpec &spec, const LayerProduct &p, int num_threads)
      : product_(p), wanted_(spec.wanted), num_threads_(num_threads) {
    spec.unread = unread_by_linear(wanted_[1], wanted_[0]);
    if (is_tiny(p)) return;
    const Desc head = matrix(p, p.rows, p.out), data = matrix(p, p.rows, p.in), weight = matrix(p, p.out, p.in);
    if (wanted_[0] && !is_row(p)) {
      auto call = product_call(head, weight, Desc(), data, attributes(),
                               {{DNNL_ARG_SRC, head, BufferRef::input(0)},
                                {DNNL_ARG_WEIGHTS, weight, BufferRef::input(2)},
                                {DNNL_ARG_DST, data, BufferRef::output(0)}},
                               spec);
      if (call) by_data_ = std::move(*call);
    }
    if (wanted_[1]) {
      const Desc transposed_result = transposed(p, p.out, p.rows);
      auto call = product_call(transposed_result, data, Desc(), weight, attributes(),
                               {{DNNL_ARG_SRC, transposed_result, BufferRef::input(0)},
                                {DNNL_ARG_WEIGHTS, data, BufferRef::input(1)},
                                {DNNL_ARG_DST, weight, BufferRef::output(1)}},
                               spec);
      if (call) by_weight_ = std::move(*call);
    }
  }

  bool is_made() const {
    const bool all = (by_data_ || !wanted_[0]) && (by_weight_ || !wanted_[1]);
    return all || product_.dtype == Dtype::kFloat32;
  }

  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    const LayerProduct &p = product_;
    const float *const head = args.in<float>(0);
    if (by_data_) {
      by_data_.run(args);
    } else if (wanted_[0] && is_row(p)) {
      parallel_for(lane, p.in, 1 + 65536 / p.out, [&](int64_t begin, int64_t end) {
        weighted_rows_(head, args.in<float>(2), p.out, p.in, begin, end, args.out<float>(0));
      });
    } else if (wanted_[0]) {
      COHORT_DNN_CHECK(dnnl_sgemm('N', 'N', p.rows, p.in, p.out, 1.0f, head, p.out, args.in<float>(2), p.in, 0.0f,
                                  args.out<float>(0), p.in),
                       "_backward_FullyConnected");
    }
    if (by_weight_) {
      by_weight_.run(args);
    } else if (wanted_[1]) {
      COHORT_DNN_CHECK(dnnl_sgemm('T', 'N', p.out, p.in, p.rows, 1.0f, head, p.out, args.in<float>(1), p.in, 0.0f,
                                  args.out<float>(1), p.in),
                       "_backward_FullyConnected");
    }
    if (!p.has_bias || !wanted_[2]) return;
    dispatch_float(p.dtype, "_backward_FullyConnected", [&](auto type) {
      using T = decltype(type);
      sum_rows(args.in<T>(0), p.rows, p.out, args.out<T>(2), lane);
    });
  }

 private:
  const LayerProduct product_;
  const std::vector<bool> wanted_;
  const int num_threads_;
  void (*const weighted_rows_)(const float *, const float *, int64_t, int64_t, int64_t, int64_t,
                               float *) = best_version<WeightedRows>();
  DnnlCall by_data_, by_weight_;
};

class PlainFullyConnected final : public Kernel {
 public:
  explicit PlainFullyConnected(StepSpec &spec)
      : product_(forward_product(spec)), post_(spec.post), dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    if (dtype_ == Dtype::kFloat64) {
      multiply<double>(args, lane);
    } else {
      multiply<float>(args, lane);
    }
    apply_post_ops(post_, dtype_, args.out<void>(0), product_.rows * product_.out, args, product_.has_bias ? 3 : 2,
                   lane);
  }

 private:
  template <typename T>
  void multiply(const Args &args, const Lane &lane) const {
    const LayerProduct p = product_;
    const T *x = args.in<T>(0), *w = args.in<T>(1), *b = p.has_bias ? args.in<T>(2) : nullptr;
    T *y = args.out<T>(0);
    for (int64_t i = 0; b && i < p.rows; ++i) std::copy_n(b, p.out, y + i * p.out);
    gemm(lane, false, true, p.rows, p.out, p.in, x, w, b ? T(1) : T(0), y);
  }

  const LayerProduct product_;
  const std::vector<PostOp> post_;
  const Dtype dtype_;
};

class PlainFullyConnectedBackward final : public Kernel {
 public:
  explicit PlainFullyConnectedBackward(StepSpec &spec)
      : product_(backward_product(spec)), wanted_(spec.wanted), dtype_(spec.inputs[0].dtype) {
    spec.unread = unread_by_linear(wanted_[1], wanted_[0]);
  }
  void run(const Args &args, const Lane &lane) const override {
    if (dtype_ == Dtype::kFloat64) {
      multiply<double>(args, lane);
    } else {
      multiply<float>(args, lane);
    }
  }

 private:
  template <typename T>
  void multiply(const Args &args, const Lane &lane) const {
    const LayerProduct p = product_;
    const T *dy = args.in<T>(0), *x = args.in<T>(1), *w = args.in<T>(2);
    if (wanted_[0]) gemm(lane, false, false, p.rows, p.in, p.out, dy, w, T(0), args.out<T>(0));
    if (wanted_[1]) gemm(lane, true, false, p.out, p.in, p.rows, dy, x, T(0), args.out<T>(1));
    if (p.has_bias && wanted_[2]) sum_rows(dy, p.rows, p.out, args.out<T>(2), lane);
  }

  const LayerProduct product_;
  const std::vector<bool> wanted_;
  const Dtype dtype_;
};

// Makes the kernel; null if oneDNN lacks a primitive that it needs.
template <typename K>
std::unique_ptr<Kernel> make_whole(StepSpec &spec, const LayerProduct &p, int num_threads) {
  StepSpec answered = spec;
  auto kernel = std::make_unique<K>(answered, p, num_threads);
  if (!kernel->is_made()) return nullptr;
  spec = std::move(answered);
  return kernel;
}

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const LayerProduct p = forward_product(spec);
  const int num_threads = threads_for_work(spec, p.operations());
  const ThreadsScope threads(num_threads);
  return make_whole<FullyConnectedForward>(spec, p, num_threads);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const LayerProduct p = backward_product(spec);
  const int num_threads = threads_for_work(spec, p.operations());
  const ThreadsScope threads(num_threads);
  return make_whole<FullyConnectedBackward>(spec, p, num_threads);
}

// An activation gives the same bits fused into the layer as in a step behind it (MON-11), because oneDNN computes
// both.
std::string refuses_curve(const StepSpec &spec) {
  const Dtype dtype = spec.inputs[0].dtype;
  const bool by_onednn = dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16;
  const bool curves = std::any_of(spec.post.begin(), spec.post.end(), [](const PostOp &op) {
    return op.kind == kActivation && op.activation != ActivationAttrs::kRelu;
  });
  return by_onednn && curves ? "rounds what follows a few rows otherwise than a step of its own" : "";
}

std::string refuses_forward(const StepSpec &spec) {
  const std::string reason = is_few_rows(forward_product(spec)) ? refuses_curve(spec) : "";
  return reason.empty() ? refuses_layer(spec) : reason;
}

COHORT_KERNEL_BY(cpu, FullyConnected, make_forward)
    .named("onednn")
    .dtypes(kLayerTypes)
    .when(refuses_forward)
    .fuses({kActivation, kClip, kSum})
    .any_layout();
COHORT_KERNEL_BY(cpu, FullyConnected, make_in_float32)
    .named("float32", /* tuned */ false)
    .dtypes(kNarrowTypes)
    .when(refuses_curve)
    .fuses({kActivation, kClip, kSum});
COHORT_KERNEL(cpu, FullyConnected, PlainFullyConnected)
    .dtypes(kWideFloatTypes)
    .when(refuses_curve)
    .fuses({kActivation, kClip, kSum});
COHORT_KERNEL_BY(cpu, _backward_FullyConnected, make_backward).named("onednn").dtypes(kLayerTypes).when(refuses_layer);
COHORT_KERNEL_BY(cpu, _backward_FullyConnected, make_in_float32)
    .named("float32", /* tuned */ false)
    .dtypes(kNarrowTypes);
COHORT_KERNEL(cpu, _backward_FullyConnected, PlainFullyConnectedBackward).dtypes(kWideFloatTypes);

}  // namespace
}  // namespace cohort
