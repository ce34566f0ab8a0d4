// SPDX-License-Identifier: Apache-2.0
// Kernels of the broadcasting rules of op/pointwise.hpp. A gradient is the functor's result, summed over the axes
// along which its operand was repeated.
#include "cpu/op/broadcast_operand.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "cpu/op/reduce_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/pointwise.hpp"

namespace cohort {
namespace {

// A functor on operands that are broadcast to one shape, block by block.
template <typename C>
class BroadcastCall {
 public:
  BroadcastCall(const PointwiseCall &call, const StepSpec &spec, const Shape &shape)
      : loop_(pointwise_loop<C>(call.code)), s_(cast_element<C>(call.s)), t_(cast_element<C>(call.t)) {
    for (int input : {call.a, call.b, call.c}) {
      if (input < 0) continue;
      const TensorSpec &tensor = spec.inputs[size_t(input)];
      inputs_.push_back(input);
      operands_.emplace_back(tensor.shape, tensor.dtype, shape, dtype_of<C>());
    }
  }
  // How many elements run() computes at once, from `begin` on.
  int64_t most(int64_t begin) const {
    int64_t in_place = std::numeric_limits<int64_t>::max();
    for (const BroadcastOperand &operand : operands_) in_place = std::min(in_place, operand.in_place(begin));
    return std::max(in_place, kPointwiseBlock);
  }
  void run(const Args &args, int64_t begin, int64_t count, C *out) const {  // count <= most(begin)
    C buffers[3][kPointwiseBlock];
    const C *operands[3] = {nullptr, nullptr, nullptr};
    for (size_t i = 0; i < operands_.size(); ++i) {
      operands[i] = operands_[i].template block<C>(args.inputs[inputs_[i]], begin, count, buffers[i]);
    }
    loop_(operands[0], operands[1], operands[2], s_, t_, out, count);
  }
  template <typename>
  const C *block(const Args &args, int64_t begin, int64_t count, C *buffer) const {  // as a source of reductions
    run(args, begin, count, buffer);
    return buffer;
  }

 private:
  const PointwiseLoop<C> loop_;
  const C s_, t_;
  std::vector<int> inputs_;
  std::vector<BroadcastOperand> operands_;
};

template <typename C>
class Forward final : public Kernel {
 public:
  Forward(const StepSpec &spec, const PointwiseCall &call, int output)
      : call_(call, spec, spec.outputs[size_t(output)].shape),
        output_(output),
        count_(spec.outputs[size_t(output)].shape.size()),
        direct_(spec.outputs[size_t(output)].dtype == dtype_of<C>()),
        store_(store_block(dtype_of<C>(), spec.outputs[size_t(output)].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      C block[kPointwiseBlock];
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min(direct_ ? call_.most(i) : kPointwiseBlock, end - i);
        call_.run(args, i, count, direct_ ? args.out<C>(output_) + i : block);
        if (!direct_) store_(block, args.outputs[output_], i, count);
      }
    });
  }

 private:
  const BroadcastCall<C> call_;
  const int output_;
  const int64_t count_;
  const bool direct_;
  const StoreBlock store_;
};

template <typename C>
class SummedGradient final : public Kernel {
 public:
  SummedGradient(const StepSpec &spec, const PointwiseCall &call, int output)
      : output_(output),
        reducer_(spec.inputs[0].shape, reduced_axes(spec.inputs[0].shape, spec.outputs[size_t(output)].shape),
                 spec.outputs[size_t(output)].dtype, reduce::Finish::kNone,
                 BroadcastCall<C>(call, spec, spec.inputs[0].shape)) {}
  size_t scratch_bytes() const { return reducer_.scratch_bytes(); }
  void run(const Args &args, const Lane &lane) const override { reducer_.run(args, output_, lane); }

 private:
  const int output_;
  const reduce::AxisReducer<C, reduce::Sum<C>, BroadcastCall<C>> reducer_;
};

class Several final : public Kernel {
 public:
  explicit Several(std::vector<std::unique_ptr<Kernel>> kernels) : kernels_(std::move(kernels)) {}
  void run(const Args &args, const Lane &lane) const override {
    for (const auto &kernel : kernels_) kernel->run(args, lane);
  }

 private:
  const std::vector<std::unique_ptr<Kernel>> kernels_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const PointwiseCall call = find_pointwise_rule(spec.op)->forward_call(spec.attrs.get());
  return dispatch_compute(
      spec.outputs[0].dtype, pointwise_in_integers(call.code),
      [&](auto c) -> std::unique_ptr<Kernel> { return std::make_unique<Forward<decltype(c)>>(spec, call, 0); });
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const PointwiseRule &rule = *find_pointwise_rule(spec.op);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (size_t i = 0; i < rule.backward.size(); ++i) {
    if (!spec.wanted.empty() && !spec.wanted[i]) continue;
    const PointwiseCall call = rule.backward_call(spec.attrs.get(), int(i));
    kernels.push_back(dispatch_compute(spec.outputs[i].dtype, pointwise_in_integers(call.code),
                                       [&](auto c) -> std::unique_ptr<Kernel> {
                                         using C = decltype(c);
                                         // another rank of the same size only has leading axes of length 1
                                         if (spec.outputs[i].shape.size() == spec.inputs[0].shape.size()) {
                                           return std::make_unique<Forward<C>>(spec, call, int(i));
                                         }
                                         auto kernel = std::make_unique<SummedGradient<C>>(spec, call, int(i));
                                         spec.scratch_bytes = std::max(spec.scratch_bytes, kernel->scratch_bytes());
                                         return kernel;
                                       }));
  }
  return std::make_unique<Several>(std::move(kernels));
}

const bool registered = [] {
  for (const auto &rule : pointwise_rules()) {
    if (rule->form != PointwiseRule::Form::kBroadcast) continue;
    cpu_kernels().add(rule->name, make_forward);
    if (!rule->backward.empty()) cpu_kernels().add(rule->backward_name, make_backward);
  }
  return true;
}();

}  // namespace
}  // namespace cohort
