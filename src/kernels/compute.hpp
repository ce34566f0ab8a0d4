// SPDX-License-Identifier: Apache-2.0
// A kernel that computes in float or double whatever the types of its arrays: those of another type are converted as a
// whole, through the scratch memory. For operators where speed in 16-bit floats and integers does not matter. Bodies of
// all backends are written with what their file includes before (cpu/op/compute_kernel.hpp, cuda/op/compute.cuh):
//   parallel_for(lane, count, grain, COHORT_BODY(int64_t begin, int64_t end) {...}): work by ranges; the body has
//   copies
//     of what is around it, members included, and calls nothing but functions that are COHORT_HOST_DEVICE
//   each_place(lane, rows, columns, COHORT_LOOP_BODY(int64_t row, int64_t column) {...}): the same, a place at a time
//   each_together(lane, count, work, COHORT_BODY(int64_t i) {...}): a thing at a time, by threads that work on it
//     together: share_out(n, [&](int64_t begin, int64_t end) {...}) in it is work by ranges, all of it done when it
//     returns; sum_together<C>(n, fn) is the sum of fn(i), in one order; meet() waits until all are there; all else is
//     done by each of them alike
//   each_in_room(lane, count, work, COHORT_BODY(int64_t i, int64_t room) {...}): the same; things that are worked on at
//     once have other rooms, whose numbers are below rooms(spec, count, work)
//   COHORT_FAILS(...): the run fails with this text; where a kernel cannot fail, nothing happens
//   COHORT_VECTOR_LOOP before a loop: no iteration reads or writes what another one writes
//   multiply_each(): products of matrices
#pragma once

#include <memory>
#include <vector>

#include "device/run_value.hpp"
#include "op/compute_type.hpp"

namespace cohort {

// All of an array, to and from the type in which is computed.
void widen(const Lane &lane, const void *from, Dtype dtype, float *to, int64_t count);
void widen(const Lane &lane, const void *from, Dtype dtype, double *to, int64_t count);
void narrow(const Lane &lane, const float *from, void *to, Dtype dtype, int64_t count);
void narrow(const Lane &lane, const double *from, void *to, Dtype dtype, int64_t count);

// Elements of scratch memory with which the memory of a thread, or what is aligned in another way, begins anew.
constexpr int64_t whole_lines(int64_t elements) { return (elements + 15) / 16 * 16; }

// The arrays of a body, which copies of it take along.
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

// Whether a body keeps something from its forward to its backward step.
template <typename Body, typename = void>
struct Keeps : std::false_type {};
template <typename Body>
struct Keeps<Body, std::void_t<decltype(&Body::saved_bytes)>> : std::true_type {};

// Body<C> is made from (StepSpec &) and has
//   size_t extra() const;  elements of C of scratch memory that it wants for itself
//   void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const;
// where unwanted outputs are null. One that keeps something (Gradient::with_forward) has
//   size_t saved_bytes() const;  of the forward step
// too, and its run takes void *saved behind extra, null in a forward step that no backward step follows.
template <typename C, typename Body>
class ComputeKernel final : public Kernel {
 public:
  explicit ComputeKernel(StepSpec &spec) : body_(spec) {
    extra_ = int64_t(body_.extra());
    int64_t total = whole_lines(extra_);
    const auto add = [&](std::vector<Place> *places, const TensorSpec &t) {
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
  struct Place {
    int64_t at;  // in the scratch memory; -1: where it is
    int64_t count;
    Dtype dtype;
  };
  const Body body_;
  int64_t extra_ = 0;
  std::vector<Place> inputs_, outputs_;
};

// 16-bit floats in float, integers in double.
template <template <typename> class Body>
std::unique_ptr<Kernel> make_compute(StepSpec &spec) {
  const Dtype dtype = spec.inputs.empty() ? spec.outputs[0].dtype : spec.inputs[0].dtype;
  return dispatch_compute(dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    using C = decltype(c);
    if constexpr (std::is_floating_point_v<C>) return std::make_unique<ComputeKernel<C, Body<C>>>(spec);
    return nullptr;
  });
}

}  // namespace cohort
