// SPDX-License-Identifier: Apache-2.0
// The activation functions one element at a time, for loops over element types that oneDNN lacks and for
// post-operations that could not be fused. C is float or double.
#pragma once

#include <cmath>
#include <vector>

#include "base/dtype.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel.hpp"
#include "op/activation.hpp"

namespace cohort {

// Calls fn(f) with the function of one element.
template <typename C, typename Fn>
void with_activation(int type, Fn &&fn) {
  switch (type) {
    case ActivationAttrs::kRelu:
      return fn([](C x) { return x < 0 ? C(0) : x; });  // a NaN stays
    case ActivationAttrs::kSigmoid:
      return fn([](C x) { return 1 / (1 + std::exp(-x)); });
    case ActivationAttrs::kTanh:
      return fn([](C x) { return std::tanh(x); });
    case ActivationAttrs::kSoftrelu:
      return fn([](C x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); });
    case ActivationAttrs::kSoftsign:
      return fn([](C x) { return x / (1 + std::abs(x)); });
  }
  throw Error(Code::kInternal, text("Activation: there is no type ", type));
}

// Does post-operations on `count` elements of `result` in place. Addends are args.inputs from `first_extra` on, and lie
// as the result does.
void apply_post_ops(const std::vector<PostOp> &post, Dtype dtype, void *result, int64_t count, const Args &args,
                    int first_extra, const Lane &lane);

}  // namespace cohort
