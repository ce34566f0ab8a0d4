// SPDX-License-Identifier: Apache-2.0
// Kernels that are written once for all backends, as templates of the backend. A backend is a class, CpuBackend
// (cpu/op/cpu_backend.hpp) or CudaBackend (cuda/op/cuda_backend.cuh), with these static members:
//
//   parallel_for(lane, count, grain, body)
//     calls body(begin, end) for ranges that cover [0, count), none much shorter than `grain`, which is a multiple or
//     fraction of kCheapGrain or kExpensiveGrain
//   parallel_for_2d(lane, rows, columns, body)
//     calls body(row, column)
//   for_each_block(lane, count, work, body)
//     calls body(i) for each i < count, of about `work` operations. A block of threads executes body(i) together: each
//     thread executes all of it, except for what these functions divide among the threads of the block:
//       block_for(n, fn)      calls fn(begin, end) for ranges that cover [0, n); all are done when it returns
//       block_sum<C>(n, fn)   the sum of fn(i) for i < n, in a fixed order
//       gemm(...)             c = op(a) op(b) + beta c
//       block_sync()          waits for the other threads of the block
//   for_each_block_with_slot(lane, count, work, body)
//     calls body(i, slot). Blocks that run at the same time have different slots, numbers below
//     num_slots(spec, count, work): each slot has its own part of the scratch memory
//   batched_gemm(lane, count, ...)
//     computes products of matrices that lie one behind another
//   fail(...)
//     makes the run fail with this text; on CUDA, where a kernel cannot fail, it returns
//
// Bodies are lambdas, [=] COHORT_DEVICE(...) {...} or [=, *this] COHORT_DEVICE(...) {...}. They are copied to the
// device, and may only call functions that are COHORT_DEVICE or COHORT_HOST_DEVICE.
//
// ComputeKernel runs a body in float or double whatever the types of the arrays: it converts arrays of another type as
// a whole, through scratch memory. It is for operators whose speed in 16-bit floats and integers does not matter.
#pragma once

#include <memory>
#include <vector>

#include "device/run_value.hpp"
#include "kernels/loop_hints.hpp"
#include "op/compute_type.hpp"

#ifdef __CUDACC__
#define COHORT_DEVICE __device__
#else
#define COHORT_DEVICE
#endif

namespace cohort {

// Convert whole arrays to and from the type in which a kernel computes.
void widen(const Lane &lane, const void *from, Dtype dtype, float *to, int64_t count);
void widen(const Lane &lane, const void *from, Dtype dtype, double *to, int64_t count);
void narrow(const Lane &lane, const float *from, void *to, Dtype dtype, int64_t count);
void narrow(const Lane &lane, const double *from, void *to, Dtype dtype, int64_t count);

// `elements`, rounded up to whole cache lines: so much scratch memory keeps what follows it aligned, and threads off
// each other's lines.
constexpr int64_t whole_lines(int64_t elements) { return (elements + 15) / 16 * 16; }

// Pointers to the arrays of a kernel, by value: lambdas that capture it carry them to the device.
template <typename Element>
struct BodyArrays {
  static constexpr size_t kMost = 16;
  Element *at[kMost] = {};
  COHORT_HOST_DEVICE Element *operator[](int64_t i) const { return at[i]; }
  operator Element * const *() const { return at; }
};
template <typename C>
using BodyInputs = BodyArrays<const C>;
template <typename C>
using BodyOutputs = BodyArrays<C>;

template <typename C>
COHORT_HOST_DEVICE inline void fill_elements(C *to, int64_t count, C value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}
template <typename C>
COHORT_HOST_DEVICE inline void copy_elements(const C *from, int64_t count, C *to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
template <typename C>
COHORT_HOST_DEVICE inline void swap_elements(C *a, C *b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const C kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

// Whether a body saves something in its forward step for its backward step.
template <typename Body, typename = void>
struct Keeps : std::false_type {};
template <typename Body>
struct Keeps<Body, std::void_t<decltype(&Body::saved_bytes)>> : std::true_type {};

// Body<C> is constructed from (StepSpec &) and has
// size_t extra() const: the elements of C that it wants as scratch memory of its own
// void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const
// Unwanted outputs are null. A body that saves something (Gradient::with_forward) also has
// size_t saved_bytes() const: of the forward step
// and its run() takes void *saved behind extra, which is null in a forward step that no backward step follows.
template <typename C, typename Body>
class ComputeKernel final : public Kernel {
 public:
  explicit ComputeKernel(StepSpec &spec) : body_(spec) {
    extra_ = int64_t(body_.extra());
    int64_t total = whole_lines(extra_);
    const auto add = [&](std::vector<ConvertedArray> *places, const TensorSpec &t) {
      const bool direct = t.dtype == dtype_of<C>();
      places->push_back({direct ? -1 : total, t.shape.size(), t.dtype});
      if (!direct) total += whole_lines(places->back().count);
    };
    for (const TensorSpec &t : spec.inputs) add(&inputs_, t);
    for (const TensorSpec &t : spec.outputs) add(&outputs_, t);
    spec.scratch_bytes = size_t(total) * sizeof(C);
    if constexpr (Keeps<Body>::value) {
      if (spec.keep_for_backward) spec.saved_bytes = body_.saved_bytes();
    }
    constexpr size_t kMost = BodyInputs<C>::kMost;
    if (inputs_.size() > kMost || outputs_.size() > kMost) {
      throw Error(Code::kUnsupported, text(spec.op, ": expected at most ", kMost, " inputs and outputs"));
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    C *const scratch = static_cast<C *>(args.scratch);
    BodyInputs<C> in;
    BodyOutputs<C> out;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].at >= 0) {
        widen(lane, args.inputs[i], inputs_[i].dtype, scratch + inputs_[i].at, inputs_[i].count);
      }
      in.at[i] = inputs_[i].at < 0 ? args.in<C>(int(i)) : scratch + inputs_[i].at;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (args.outputs[i]) out.at[i] = outputs_[i].at < 0 ? args.out<C>(int(i)) : scratch + outputs_[i].at;
    }
    if constexpr (Keeps<Body>::value) {
      body_.run(in, out, scratch, args.saved, lane);
    } else {
      body_.run(in, out, scratch, lane);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (out.at[i] && outputs_[i].at >= 0) {
        narrow(lane, out.at[i], args.outputs[i], outputs_[i].dtype, outputs_[i].count);
      }
    }
  }

 private:
  struct ConvertedArray {
    int64_t at;  // in the scratch memory; -1: the array is used in place
    int64_t count;
    Dtype dtype;
  };
  const Body body_;
  int64_t extra_ = 0;
  std::vector<ConvertedArray> inputs_, outputs_;
};

// Computes 16-bit floats in float, and integers in double.
template <template <typename> class Body>
std::unique_ptr<Kernel> make_compute(StepSpec &spec) {
  const Dtype dtype = spec.inputs.empty() ? spec.outputs[0].dtype : spec.inputs[0].dtype;
  return dispatch_compute(dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    using C = decltype(c);
    if constexpr (std::is_floating_point_v<C>) return std::make_unique<ComputeKernel<C, Body<C>>>(spec);
    return nullptr;
  });
}

template <typename Backend, template <typename, typename> class Body>
struct BodyOn {
  template <typename C>
  using Of = Body<Backend, C>;
};
template <typename Backend, template <typename, typename> class Body>
std::unique_ptr<Kernel> make_compute(StepSpec &spec) {
  return make_compute<BodyOn<Backend, Body>::template Of>(spec);
}

}  // namespace cohort
