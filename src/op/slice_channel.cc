// SPDX-License-Identifier: Apache-2.0
#include "op/slice_channel.hpp"

namespace cohort {
namespace {

void infer_shape(const SliceChannelAttrs &a, Shapes &in, Shapes &out) {
  Shape &data = in[0];
  Shape part;
  for (const Shape &s : out) unify(part, s, "output");
  if (!data.rank_known() && part.rank_known()) data = Shape::of_rank(part.rank() + (a.squeeze_axis ? 1 : 0));
  if (!data.rank_known()) return;
  const int axis = normalize_axis(a.axis, data.rank(), "axis");
  if (data[axis] != Shape::kUnknown &&
      (data[axis] % a.num_outputs != 0 || (a.squeeze_axis && data[axis] != a.num_outputs))) {
    throw Error(Code::kShape,
                text("data: expected ", a.squeeze_axis ? "" : "a multiple of ", a.num_outputs, " on axis ", axis,
                     ", found ", data),
                "data");
  }
  std::vector<int64_t> result(data.begin(), data.end());
  if (a.squeeze_axis) {
    result.erase(result.begin() + axis);
  } else if (data[axis] != Shape::kUnknown) {
    result[size_t(axis)] = data[axis] / a.num_outputs;
  }
  unify(part, Shape(result), "output");
  for (Shape &s : out) unify(s, part, "output");

  std::vector<int64_t> whole(part.begin(), part.end());
  if (a.squeeze_axis) {
    whole.insert(whole.begin() + axis, a.num_outputs);
  } else if (part[axis] != Shape::kUnknown) {
    whole[size_t(axis)] = part[axis] * a.num_outputs;
  }
  unify(data, Shape(whole), "data");
}

COHORT_OPERATOR(SliceChannel, SliceChannelAttrs)
    .alias("split")
    .doc("Splits data into equal parts along one axis.")
    .required(&SliceChannelAttrs::num_outputs, "num_outputs", "Number of parts.")
    .range(1, kMaxOutputs)
    .attr(&SliceChannelAttrs::axis, "axis", 1, "The axis; negative counts from the last.")
    .attr(&SliceChannelAttrs::squeeze_axis, "squeeze_axis", false,
          "Whether to remove the axis, which must have length 1 in each part.")
    .input("data", "The array to split.")
    .outputs([](const SliceChannelAttrs &a) { return int(a.num_outputs); })
    .numbers_one_output()
    .infer_shape(infer_shape)
    .gradient([](const SliceChannelAttrs &) { return Gradient::by_kernel({0}); })
    .follows()
    .names_only_input();

}  // namespace
}  // namespace cohort
