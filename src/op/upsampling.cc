// SPDX-License-Identifier: Apache-2.0
#include "op/upsampling.hpp"

namespace cohort {
namespace {

using A = UpSamplingAttrs;
constexpr int64_t kUnknown = Shape::kUnknown;

int64_t times(int64_t a, int64_t b) { return a == kUnknown ? a : a * b; }

void infer_nearest(const A &a, Shapes &in, Shapes &out) {
  for (Shape &s : in) {
    unify(s, Shape::of_rank(4), "arg");
    unify(s, Shape{in[0][0], kUnknown, kUnknown, kUnknown}, "arg");
  }
  Shape result{in[0][0], a.sums ? in[0][1] : 0, times(in[0][2], a.scale), times(in[0][3], a.scale)};
  for (const Shape &s : in) {
    for (int axis = 2; axis < 4; ++axis) {
      if (s[axis] == kUnknown || result[axis] == kUnknown) continue;
      if (s[axis] == 0 ? result[axis] != 0 : result[axis] % s[axis] != 0) {
        throw Error(Code::kShape, text("arg: expected lengths that divide those of the output ", result, ", found ", s),
                    "arg");
      }
    }
    if (a.sums) {
      unify(result, Shape{kUnknown, s[1], kUnknown, kUnknown}, "arg");
    } else {
      result[1] = s[1] == kUnknown || result[1] == kUnknown ? kUnknown : result[1] + s[1];
    }
  }
  unify(out[0], result, "output");
}

void infer_bilinear(const A &a, Shapes &in, Shapes &out) {
  unify(in[0], Shape::of_rank(4), "data");
  unify(in[1], Shape{in[0][1], 1, a.kernel(), a.kernel()}, "weight");
  unify(out[0], Shape{in[0][0], in[0][1], times(in[0][2], a.scale), times(in[0][3], a.scale)}, "output");
}

COHORT_OPERATOR(UpSampling, UpSamplingAttrs)
    .doc("Enlarges images by an integer factor.")
    .variadic("arg", "num_args", "Images whose elements are repeated, (batch, channels, height, width).")
    .input_if(
        "data", [](const A &a) { return a.bilinear; }, "Images, (batch, channels, height, width).")
    .input_if(
        "weight", [](const A &a) { return a.bilinear; }, "Filters, (channels, 1, k, k) with k = 2 scale - scale % 2.")
    .init("[\"bilinear\", {}]")
    .required(&A::scale, "scale", "The factor.")
    .range(1, 1000)
    .attr(&A::num_filter, "num_filter", 0, "The number of channels, for bilinear; ignored, taken from data.")
    .required_choice(&A::bilinear, "sample_type", {{"bilinear", true}, {"nearest", false}},
                     "Whether to repeat elements or to interpolate.")
    .choice(&A::sums, "multi_input_mode", {{"concat", false}, {"sum", true}}, false,
            "How several inputs are combined: concatenated along the channels, or added.")
    .ignored("workspace", "long (non-negative)", "512", "Ignored.")
    .infer_shape([](const A &a, Shapes &in, Shapes &out) {
      if (in.empty()) throw Error(Code::kInvalidArgument, "expected at least one input, found none", "num_args");
      if (!in[0].rank_known()) return;
      (a.bilinear ? infer_bilinear : infer_nearest)(a, in, out);
    })
    .gradient([](const A &a) {
      return a.bilinear ? Gradient::by_kernel({}, {0, 1}) : Gradient::by_kernel({});
    });

}  // namespace
}  // namespace cohort
