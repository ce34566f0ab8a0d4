// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/plain_post_ops.hpp"

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "op/pointwise.hpp"

namespace cohort {
namespace {

// Applies a post-operation to an element of the result and, for a sum, the addend.
PointwiseCall call_of(const PostOp &op) {
  if (op.kind == PostOp::Kind::kSum) return {PointwiseCode::kAdd, 0, 1};
  if (op.kind == PostOp::Kind::kClip) return {PointwiseCode::kClip, 0, -1, -1, op.low, op.high};
  return activation_call(op.activation);
}

// Converts 16-bit floats to C block by block.
template <typename C>
void apply(const PointwiseCall &call, Dtype dtype, void *result, const void *addend, int64_t count, const Lane &lane) {
  const auto loop = pointwise_loop<C>(call.code);
  const C s = C(call.s), t = C(call.t);
  parallel_for(lane, count, kExpensiveGrain, [&](int64_t begin, int64_t end) {
    if (dtype == dtype_of<C>()) {
      C *const to = static_cast<C *>(result) + begin;
      return loop(to, addend ? static_cast<const C *>(addend) + begin : nullptr, nullptr, s, t, to, end - begin);
    }
    const LoadBlock load = load_block(dtype, dtype_of<C>());
    const StoreBlock store = store_block(dtype_of<C>(), dtype);
    C block[kPointwiseBlock], added[kPointwiseBlock];
    for (int64_t i = begin; i < end; i += kPointwiseBlock) {
      const int64_t length = std::min(kPointwiseBlock, end - i);
      load(result, i, block, length);
      if (addend) load(addend, i, added, length);
      loop(block, added, nullptr, s, t, block, length);
      store(block, result, i, length);
    }
  });
}

}  // namespace

void apply_post_ops(const std::vector<PostOp> &post, Dtype dtype, void *result, int64_t count, const Args &args,
                    int first_extra, const Lane &lane) {
  for (const PostOp &op : post) {
    const void *addend = op.kind == PostOp::Kind::kSum ? args.in<void>(first_extra++) : nullptr;
    if (dtype == Dtype::kFloat64) {
      apply<double>(call_of(op), dtype, result, addend, count, lane);
    } else {
      apply<float>(call_of(op), dtype, result, addend, count, lane);
    }
  }
}

}  // namespace cohort
