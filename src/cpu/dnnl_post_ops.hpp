// SPDX-License-Identifier: Apache-2.0
// Activations as oneDNN's element-wise algorithms, and the post-operations of a StepSpec as those of a primitive.
#pragma once

#include <vector>

#include "cpu/dnnl_kernel.hpp"
#include "op/activation.hpp"

namespace cohort::dnn {

struct Eltwise {
  algorithm forward;
  float alpha;
};

// Throws kInternal for softsign, which oneDNN lacks.
inline Eltwise eltwise_of(int activation) {
  switch (activation) {
    case ActivationAttrs::kRelu:
      return {algorithm::eltwise_relu, 0};
    case ActivationAttrs::kSigmoid:
      return {algorithm::eltwise_logistic, 0};
    case ActivationAttrs::kTanh:
      return {algorithm::eltwise_tanh, 0};
    case ActivationAttrs::kSoftrelu:
      return {kSoftRelu, kSoftReluAlpha};
    default:
      throw Error(Code::kInternal, text("Activation: oneDNN has no type ", activation));
  }
}

// The post-operations that kernels on oneDNN fuse.
inline constexpr auto kActivation = PostOp::Kind::kActivation, kClip = PostOp::Kind::kClip, kSum = PostOp::Kind::kSum;

// A post-operation without an operand: not kSum.
inline void append_activation(dnnl::post_ops &post, const PostOp &op) {
  if (op.kind == kClip) return append_eltwise(post, algorithm::eltwise_clip, float(op.low), float(op.high));
  const Eltwise eltwise = eltwise_of(op.activation);
  append_eltwise(post, eltwise.forward, eltwise.alpha, 0);
}

// The post-operations of spec.post. Addends have the layout `dst` of the result; their arguments are appended to
// `operands`, and spec.inputs from `first_extra` on are requested in that layout.
inline dnnl::post_ops post_ops_of(StepSpec &spec, size_t first_extra, const Desc &dst, const Desc &plain,
                                  std::vector<DnnlArg> &operands) {
  dnnl::post_ops post;
  for (const PostOp &op : spec.post) {
    if (op.kind != kSum) {
      append_activation(post, op);
      continue;
    }
    spec.inputs[first_extra].layout = layout_of(dst, plain);
    operands.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1, dst, BufferRef::input(int(first_extra))});
    post.append_binary(algorithm::binary_add, dst);
    ++first_extra;
  }
  return post;
}

}  // namespace cohort::dnn
