// SPDX-License-Identifier: Apache-2.0
// Kernels of the element-wise rules of op/pointwise.hpp, forward and backward, for all types.
#include <cmath>

#include "cpu/op/elementwise.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/pointwise.hpp"

namespace cohort {
namespace {

template <typename C>
struct LoopCall {
  PointwiseLoop<C> loop;
  int operands[3];
  int output;
  C s, t;
};

// Computes a range of elements call by call, the last output first, because the first one may share memory with an
// input.
template <typename C>
class Elementwise final : public Kernel {
 public:
  Elementwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls)
      : count_(spec.outputs[0].shape.size()), compute_(dtype_of<C>()) {
    const bool whole = !dtype_is_float(spec.outputs[0].dtype);  // integers use the integral part of scalars
    const auto number = [=](double value) { return cast_element<C>(whole ? std::trunc(value) : value); };
    for (int i = int(calls.size()); i-- > 0;) {
      if (!spec.wanted.empty() && !spec.wanted[size_t(i)]) continue;
      const PointwiseCall &call = calls[size_t(i)];
      calls_.push_back({pointwise_loop<C>(call.code), {call.a, call.b, call.c}, i, number(call.s), number(call.t)});
      expensive_ = expensive_ || !pointwise_in_integers(call.code);
    }
    for (const TensorSpec &in : spec.inputs) {
      direct_ = direct_ && in.dtype == compute_;
      load_.push_back(load_block(in.dtype, compute_));
    }
    for (const TensorSpec &out : spec.outputs) {
      direct_ = direct_ && out.dtype == compute_;
      store_.push_back(store_block(compute_, out.dtype));
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, expensive_ ? kExpensiveGrain : kCheapGrain, [&](int64_t begin, int64_t end) {
      if (!direct_) return run_converted(args, begin, end);
      if (calls_.size() == 1) return run_direct(args, calls_[0], begin, end - begin);
      for (int64_t i = begin; i < end; i += kSharedBlock) {
        for (const LoopCall<C> &call : calls_) run_direct(args, call, i, std::min(kSharedBlock, end - i));
      }
    });
  }

 private:
  static constexpr int64_t kSharedBlock = 2048;  // calls that read the same operands find them in the cache

  static void run_direct(const Args &args, const LoopCall<C> &call, int64_t begin, int64_t count) {
    const auto operand = [&](int i) { return call.operands[i] < 0 ? nullptr : args.in<C>(call.operands[i]) + begin; };
    call.loop(operand(0), operand(1), operand(2), call.s, call.t, args.out<C>(call.output) + begin, count);
  }

  void run_converted(const Args &args, int64_t begin, int64_t end) const {
    C blocks[3][kPointwiseBlock];
    for (int64_t i = begin; i < end; i += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, end - i);
      for (const LoopCall<C> &call : calls_) {
        for (int k = 0; k < 3; ++k) {
          const int input = call.operands[k];
          if (input >= 0) load_[size_t(input)](args.inputs[input], i, blocks[k], count);
        }
        call.loop(blocks[0], blocks[1], blocks[2], call.s, call.t, blocks[0], count);
        store_[size_t(call.output)](blocks[0], args.outputs[call.output], i, count);
      }
    }
  }

  const int64_t count_;
  const Dtype compute_;
  bool direct_ = true;  // all arrays have the type of computation
  bool expensive_ = false;
  std::vector<LoopCall<C>> calls_;
  std::vector<LoadBlock> load_;
  std::vector<StoreBlock> store_;
};

std::unique_ptr<Kernel> make_rule(StepSpec &spec) {
  const PointwiseRule &rule = *find_pointwise_rule(spec.op);
  std::vector<PointwiseCall> calls;
  if (spec.op == rule.name) {
    calls.push_back(rule.forward_call(spec.attrs.get()));
  } else {
    for (size_t i = 0; i < rule.backward.size(); ++i) calls.push_back(rule.backward_call(spec.attrs.get(), int(i)));
  }
  return make_elementwise(spec, calls);
}

const bool registered = [] {
  for (const auto &rule : pointwise_rules()) {
    if (rule->form != PointwiseRule::Form::kElementwise) continue;
    cpu_kernels().add(rule->name, make_rule);
    if (!rule->backward.empty()) cpu_kernels().add(rule->backward_name, make_rule);
  }
  return true;
}();

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls) {
  bool integer = true;
  for (const PointwiseCall &call : calls) integer = integer && pointwise_in_integers(call.code);
  return dispatch_compute(spec.outputs[0].dtype, integer, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<Elementwise<decltype(c)>>(spec, calls);
  });
}

}  // namespace cohort
