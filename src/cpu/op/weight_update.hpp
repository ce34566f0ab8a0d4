// SPDX-License-Identifier: Apache-2.0
// The functors of op/update_math.hpp as loops over the arrays of one weight, for kernels that update one or several
// weights.
#pragma once

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "op/update_math.hpp"

namespace cohort {

template <typename F, typename C>
struct UpdateBody {
  static void run(const C *w, const C *g, C *s0, C *s1, C *s2, C *out, int64_t count, const UpdateNumbers<C> *numbers) {
    const UpdateNumbers<C> n = *numbers;  // a copy: stores cannot alias it
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      C s[3];
      if constexpr (F::kStates > 0) s[0] = s0[i];
      if constexpr (F::kStates > 1) s[1] = s1[i];
      if constexpr (F::kStates > 2) s[2] = s2[i];
      out[i] = F::template of<C>(w[i], g[i], s, n);
      if constexpr (F::kStates > 0) s0[i] = s[0];
      if constexpr (F::kStates > 1) s1[i] = s[1];
      if constexpr (F::kStates > 2) s2[i] = s[2];
    }
  }
};

template <typename C>
using UpdateLoop = void (*)(const C *w, const C *g, C *s0, C *s1, C *s2, C *out, int64_t count,
                            const UpdateNumbers<C> *numbers);

// The update of one weight, and the indices of its arrays among the inputs.
template <typename C>
class WeightUpdateLoop {
 public:
  // Inputs: weight, gradient, states[, master weight], from `first` on; and output `output`.
  WeightUpdateLoop(const StepSpec &spec, UpdateLoop<C> loop, int num_states, bool master, int first, int output)
      : loop_(loop),
        num_states_(num_states),
        weight_(master ? first + 2 + num_states : first),
        grad_(first + 1),
        first_state_(first + 2),
        output_(output),
        master_(master),
        count_(spec.inputs[size_t(first)].shape.size()),
        load_grad_(load_block(spec.inputs[size_t(grad_)].dtype, dtype_of<C>())),
        load_weight_(load_block(spec.inputs[size_t(weight_)].dtype, dtype_of<C>())),
        store_weight_(store_block(dtype_of<C>(), spec.inputs[size_t(weight_)].dtype)),
        store_(store_block(dtype_of<C>(), spec.outputs[size_t(output)].dtype)) {
    direct_ = spec.outputs[size_t(output)].dtype == dtype_of<C>() && !master;
    for (int i = first; i < first + 2 + num_states; ++i)
      direct_ = direct_ && spec.inputs[size_t(i)].dtype == dtype_of<C>();
    for (int k = 0; k < num_states; ++k) {
      load_state_[k] = load_block(spec.inputs[size_t(first_state_ + k)].dtype, dtype_of<C>());
      store_state_[k] = store_block(dtype_of<C>(), spec.inputs[size_t(first_state_ + k)].dtype);
    }
  }

  void run(const Args &args, const Lane &lane, const UpdateNumbers<C> &numbers) const {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      if (direct_) {
        const auto state = [&](int k) {
          return k < num_states_ ? args.mutable_in<C>(first_state_ + k) + begin : nullptr;
        };
        loop_(args.in<C>(weight_) + begin, args.in<C>(grad_) + begin, state(0), state(1), state(2),
              args.out<C>(output_) + begin, end - begin, &numbers);
      } else {
        run_blocks(args, begin, end, numbers);
      }
    });
  }

  void copy_weight(const Args &args) const {  // without an update: copies the weight to the output
    C block[kPointwiseBlock];
    for (int64_t i = 0; i < count_; i += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, count_ - i);
      load_weight_(args.inputs[weight_], i, block, count);
      store_(block, args.outputs[output_], i, count);
    }
  }

 private:
  void run_blocks(const Args &args, int64_t begin, int64_t end, const UpdateNumbers<C> &numbers) const {
    C weight[kPointwiseBlock], grad[kPointwiseBlock], states[3][kPointwiseBlock];
    for (int64_t i = begin; i < end; i += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, end - i);
      load_weight_(args.inputs[weight_], i, weight, count);
      load_grad_(args.inputs[grad_], i, grad, count);
      for (int k = 0; k < num_states_; ++k) load_state_[k](args.inputs[first_state_ + k], i, states[k], count);
      loop_(weight, grad, states[0], states[1], states[2], weight, count, &numbers);
      for (int k = 0; k < num_states_; ++k) store_state_[k](states[k], args.inputs[first_state_ + k], i, count);
      if (master_) store_weight_(weight, args.inputs[weight_], i, count);
      store_(weight, args.outputs[output_], i, count);
    }
  }

  const UpdateLoop<C> loop_;
  const int num_states_, weight_, grad_, first_state_, output_;
  const bool master_;
  const int64_t count_;
  bool direct_;
  const LoadBlock load_grad_, load_weight_;
  const StoreBlock store_weight_, store_;
  LoadBlock load_state_[3] = {};
  StoreBlock store_state_[3] = {};
};

}  // namespace cohort
