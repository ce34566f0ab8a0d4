// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/activation_math.hpp"

namespace cohort {
namespace {

template <typename T>
void apply(const PostOp &op, T *result, const T *addend, int64_t count, const Lane &lane) {
  using C = typename Accumulator<T>::type;
  if (op.kind == PostOp::Kind::kSum) {
    parallel_for(lane, count, 8192, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        result[i] = cast_element<T>(cast_element<C>(result[i]) + cast_element<C>(addend[i]));
      }
    });
    return;
  }
  const auto apply_each = [&](auto f) {
    parallel_for(lane, count, 2048, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) result[i] = cast_element<T>(f(cast_element<C>(result[i])));
    });
  };
  if (op.kind == PostOp::Kind::kClip) {
    const C low = C(op.low), high = C(op.high);
    return apply_each([=](C x) { return x < low ? low : x > high ? high : x; });
  }
  with_activation<C>(op.activation, apply_each);
}

}  // namespace

void apply_post_ops(const std::vector<PostOp> &post, Dtype dtype, void *result, int64_t count, const Args &args,
                    int first_extra, const Lane &lane) {
  for (const PostOp &op : post) {
    const void *addend = op.kind == PostOp::Kind::kSum ? args.in<void>(first_extra++) : nullptr;
    dispatch_float(dtype, "post-operation", [&](auto type) {
      using T = decltype(type);
      apply(op, static_cast<T *>(result), static_cast<const T *>(addend), count, lane);
    });
  }
}

}  // namespace cohort
