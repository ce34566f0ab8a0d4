// SPDX-License-Identifier: Apache-2.0
// A kernel that computes in float or double whatever the types of its arrays: those of another type are converted as a
// whole, through the scratch memory. For operators where speed in 16-bit floats and integers does not matter.
#pragma once

#include <memory>
#include <vector>

#include "cpu/op/pointwise_loops.hpp"
#include "device/kernel.hpp"

namespace cohort {

// Elements of scratch memory with which the memory of a thread, or what is aligned in another way, begins anew.
constexpr int64_t whole_lines(int64_t elements) { return (elements + 15) / 16 * 16; }

// Body<C> is made from (StepSpec &) and has
//   size_t extra() const;  elements of C of scratch memory that it wants for itself
//   void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const;  unwanted outputs are null
template <typename C, typename Body>
class ComputeKernel final : public Kernel {
 public:
  explicit ComputeKernel(StepSpec &spec) : body_(spec) {
    extra_ = int64_t(body_.extra());
    int64_t total = extra_;
    const auto add = [&](std::vector<Place> *places, const TensorSpec &t) {
      const bool direct = t.dtype == dtype_of<C>();
      places->push_back({direct ? -1 : total, t.shape.size(), load_block(t.dtype, dtype_of<C>()),
                         store_block(dtype_of<C>(), t.dtype)});
      if (!direct) total += whole_lines(places->back().count);
    };
    for (const TensorSpec &t : spec.inputs) add(&inputs_, t);
    for (const TensorSpec &t : spec.outputs) add(&outputs_, t);
    spec.scratch_bytes = size_t(total) * sizeof(C);
    if (inputs_.size() > kMost || outputs_.size() > kMost) {
      throw Error(Code::kUnsupported, text(spec.op, ": expected at most ", kMost, " inputs and outputs"));
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    C *const scratch = static_cast<C *>(args.scratch);
    const C *in[kMost] = {};
    C *out[kMost] = {};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].at < 0) {
        in[i] = args.in<C>(int(i));
      } else {
        inputs_[i].load(args.inputs[i], 0, scratch + inputs_[i].at, inputs_[i].count);
        in[i] = scratch + inputs_[i].at;
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (args.outputs[i]) out[i] = outputs_[i].at < 0 ? args.out<C>(int(i)) : scratch + outputs_[i].at;
    }
    body_.run(in, out, scratch, lane);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (out[i] && outputs_[i].at >= 0) outputs_[i].store(out[i], args.outputs[i], 0, outputs_[i].count);
    }
  }

 private:
  static constexpr size_t kMost = 16;
  struct Place {
    int64_t at;  // in the scratch memory; -1: where it is
    int64_t count;
    LoadBlock load;
    StoreBlock store;
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
