// SPDX-License-Identifier: Apache-2.0
// dot and batch_dot: bfloat16 on oneDNN where the processor has instructions for it, all else by gemm().
#include "op/dot.hpp"

#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/narrow_product.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

template <typename C, bool kBatched>
class Forward {
 public:
  explicit Forward(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        extent_(dot_extent(attrs_, spec.inputs[0].shape, spec.inputs[1].shape, kBatched)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const DotExtent &e = extent_;
    CpuBackend::batched_gemm(lane, e.batch, attrs_.transpose_a, attrs_.transpose_b, e.m, e.n, e.k, in[0], in[1],
                             out[0]);
  }

 private:
  const DotAttrs attrs_;
  const DotExtent extent_;
};

template <typename C, bool kBatched>
class Backward {
 public:
  explicit Backward(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        extent_(dot_extent(attrs_, spec.inputs[1].shape, spec.inputs[2].shape, kBatched)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const C *const head = in[0], *const a = in[1], *const b = in[2];
    const bool ta = attrs_.transpose_a, tb = attrs_.transpose_b;
    const DotExtent &e = extent_;
    if (out[0] && ta) CpuBackend::batched_gemm(lane, e.batch, tb, true, e.k, e.m, e.n, b, head, out[0]);
    if (out[0] && !ta) CpuBackend::batched_gemm(lane, e.batch, false, !tb, e.m, e.k, e.n, head, b, out[0]);
    if (out[1] && tb) CpuBackend::batched_gemm(lane, e.batch, true, ta, e.n, e.k, e.m, head, a, out[1]);
    if (out[1] && !tb) CpuBackend::batched_gemm(lane, e.batch, !ta, false, e.k, e.n, e.m, a, head, out[1]);
  }

 private:
  const DotAttrs attrs_;
  const DotExtent extent_;
};

template <typename C>
using DotForward = Forward<C, false>;
template <typename C>
using DotBackward = Backward<C, false>;
template <typename C>
using BatchDotForward = Forward<C, true>;
template <typename C>
using BatchDotBackward = Backward<C, true>;

// Up to two products as oneDNN calls.
class NarrowProducts final : public Kernel {
 public:
  explicit NarrowProducts(int num_threads) : num_threads_(num_threads) {}
  // Whether oneDNN has an implementation.
  bool add(const dnn::NarrowProduct &p, dnn::BufferRef a, dnn::BufferRef b, dnn::BufferRef c, StepSpec &spec) {
    std::optional<dnn::DnnlCall> call = dnn::narrow_product(p, spec.inputs[0].dtype, a, b, c, 1, spec);
    if (call) calls_.push_back(std::move(*call));
    return bool(call);
  }
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    for (const dnn::DnnlCall &call : calls_) call.run(args);
  }

 private:
  const int num_threads_;
  std::vector<dnn::DnnlCall> calls_;
};

double operations(const DotExtent &e) { return 2.0 * double(e.batch) * double(e.m) * double(e.n) * double(e.k); }

template <bool kBatched>
std::unique_ptr<Kernel> make_narrow_forward(StepSpec &spec) {
  const auto &a = spec.attrs_as<DotAttrs>();
  const DotExtent e = dot_extent(a, spec.inputs[0].shape, spec.inputs[1].shape, kBatched);
  const int num_threads = dnn::threads_for_work(spec, operations(e));
  const ThreadsScope threads(num_threads);
  auto kernel = std::make_unique<NarrowProducts>(num_threads);
  using dnn::BufferRef;
  const bool made = kernel->add({e.batch, a.transpose_a, a.transpose_b, e.m, e.n, e.k}, BufferRef::input(0),
                                BufferRef::input(1), BufferRef::output(0), spec);
  return made ? std::move(kernel) : nullptr;
}

template <bool kBatched>
std::unique_ptr<Kernel> make_narrow_backward(StepSpec &spec) {
  const auto &attrs = spec.attrs_as<DotAttrs>();
  const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
  const DotExtent e = dot_extent(attrs, spec.inputs[1].shape, spec.inputs[2].shape, kBatched);
  const int num_threads = dnn::threads_for_work(spec, operations(e));
  const ThreadsScope threads(num_threads);
  auto kernel = std::make_unique<NarrowProducts>(num_threads);
  using dnn::BufferRef;
  const BufferRef head = BufferRef::input(0), a = BufferRef::input(1), b = BufferRef::input(2);
  StepSpec answered = spec;
  const auto add = [&](const dnn::NarrowProduct &p, BufferRef left, BufferRef right, int output) {
    return kernel->add(p, left, right, BufferRef::output(output), answered);
  };
  bool made = true;
  if (spec.wanted[0] && ta) made = made && add({e.batch, tb, true, e.k, e.m, e.n}, b, head, 0);
  if (spec.wanted[0] && !ta) made = made && add({e.batch, false, !tb, e.m, e.k, e.n}, head, b, 0);
  if (spec.wanted[1] && tb) made = made && add({e.batch, true, ta, e.n, e.k, e.m}, head, a, 1);
  if (spec.wanted[1] && !tb) made = made && add({e.batch, !ta, false, e.k, e.n, e.m}, a, head, 1);
  if (!made) return nullptr;
  spec = std::move(answered);
  return kernel;
}

#define COHORT_NARROW_KERNEL(op, ...) \
  COHORT_KERNEL_BY(cpu, op, __VA_ARGS__).named("onednn").one_dtype({Dtype::kBfloat16}).when(dnn::refuses_layer)

COHORT_NARROW_KERNEL(dot, make_narrow_forward<false>);
COHORT_NARROW_KERNEL(_backward_dot, make_narrow_backward<false>);
COHORT_NARROW_KERNEL(batch_dot, make_narrow_forward<true>);
COHORT_NARROW_KERNEL(_backward_batch_dot, make_narrow_backward<true>);

COHORT_KERNEL_BY(cpu, dot, make_compute<DotForward>);
COHORT_KERNEL_BY(cpu, _backward_dot, make_compute<DotBackward>);
COHORT_KERNEL_BY(cpu, batch_dot, make_compute<BatchDotForward>);
COHORT_KERNEL_BY(cpu, _backward_batch_dot, make_compute<BatchDotBackward>);

}  // namespace
}  // namespace cohort
