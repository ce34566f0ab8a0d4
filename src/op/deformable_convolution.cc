// SPDX-License-Identifier: Apache-2.0
#include "op/deformable_convolution.hpp"

#include "op/checked_length.hpp"
#include "op/linear.hpp"

namespace cohort {
namespace {

using A = DeformableConvolutionAttrs;
constexpr int64_t kAny = Shape::kUnknown;

void check(A &a) {
  if (a.kernel.size() != 2) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'kernel': expected height and width, found ", print_tuple(a.kernel)), "kernel");
  }
  check_filters(a);
}

void infer(const A &a, Shapes &in, Shapes &out, bool modulated) {
  const size_t weight = modulated ? 3 : 2;
  unify(in[0], Shape::of_rank(4), "data");
  unify(out[0], Shape{in[0][0], a.num_filter, kAny, kAny}, "output");
  if (in[0][1] != kAny && (in[0][1] % a.num_group != 0 || in[0][1] % a.num_deformable_group != 0)) {
    throw Error(Code::kShape,
                text("data: expected a multiple of num_group = ", a.num_group,
                     " and of "
                     "num_deformable_group = ",
                     a.num_deformable_group, " channels, found ", in[0]),
                "data");
  }
  if (!a.no_bias) unify(in[weight + 1], Shape{a.num_filter}, "bias");
  unify(in[weight], Shape{a.num_filter, in[0][1] == kAny ? kAny : in[0][1] / a.num_group, a.kernel[0], a.kernel[1]},
        "weight");
  for (int i = 0; i < 2; ++i) {
    const size_t k = size_t(i);
    const int64_t span = a.dilate[k] * (a.kernel[k] - 1) + 1, length = in[0][2 + i];
    if (length == kAny) continue;
    if (length == 0) throw Error(Code::kShape, text("data: expected images with elements, found ", in[0]), "data");
    if (length + 2 * a.pad[k] < span) {
      throw Error(Code::kShape,
                  text("data: expected a padded length of at least ", span, " for kernel ", print_tuple(a.kernel),
                       ", found ", in[0]),
                  "data");
    }
    Shape result = Shape::of_rank(4);
    result[2 + i] = (length + 2 * a.pad[k] - span) / a.stride[k] + 1;
    unify(out[0], result, "output");
  }
  const int64_t places = checked_times(checked_times(a.kernel[0], a.kernel[1]), a.num_deformable_group);
  const auto follow = [&](size_t i, int64_t channels, const char *name) {
    unify(in[i], Shape{out[0][0], channels, out[0][2], out[0][3]}, name);
    unify(out[0], Shape{in[i][0], kAny, in[i][2], in[i][3]}, "output");
  };
  follow(1, checked_times(places, 2), "offset");
  if (modulated) follow(2, places, "mask");
  unify(in[1], Shape{out[0][0], kAny, out[0][2], out[0][3]}, "offset");
  // Infers in the other direction: the batch always, lengths if the stride is 1.
  if (in[0][0] == kAny) in[0][0] = out[0][0];
  for (int i = 0; i < 2; ++i) {
    const size_t k = size_t(i);
    if (in[0][2 + i] == kAny && out[0][2 + i] != kAny && a.stride[k] == 1) {
      in[0][2 + i] = out[0][2 + i] + a.dilate[k] * (a.kernel[k] - 1) - 2 * a.pad[k];
    }
  }
}

Gradient gradient(const A &a, bool modulated) {
  const int weight = modulated ? 3 : 2;
  std::vector<int> inputs, of;
  for (int i = 0; i <= weight; ++i) inputs.push_back(i);
  of = inputs;
  if (!a.no_bias) of.push_back(weight + 1);
  return Gradient::by_kernel(of, inputs);
}

OpBuilder<A> deformable(const char *name, bool modulated) {
  OpBuilder<A> op(name);
  op.required(&A::kernel, "kernel", "Filter size: (h, w).")
      .attr(&A::stride, "stride", Tuple(), "Step of the filter along each axis; default 1.")
      .attr(&A::dilate, "dilate", Tuple(), "Distance between filter elements along each axis; default 1.")
      .attr(&A::pad, "pad", Tuple(), "Zeros added on both sides of each axis; default 0.")
      .required(&A::num_filter, "num_filter", "Number of filters, the channels of the output.")
      .range(1)
      .shown_as(modulated ? "int (non-negative)" : "int")
      .attr(&A::num_group, "num_group", 1, "Number of groups of channels convolved separately.")
      .range(1)
      .shown_as(modulated ? "int (non-negative)" : "int")
      .attr(&A::num_deformable_group, "num_deformable_group", 1, "Number of groups of channels with separate offsets.")
      .range(1)
      .shown_as(modulated ? "int (non-negative)" : "int")
      .ignored("workspace", "long (non-negative)", "1024", "Ignored.")
      .attr(&A::no_bias, "no_bias", false, "Whether there is no bias.");
  if (modulated) op.ignored("im2col_step", "int (non-negative)", "64", "Ignored.");
  op.choice(&A::layout, "layout", layout_words(LayoutWords::kChannelsSecond), ImageLayout::kNone,
            "Layout of data and output; None: channels before the spatial axes.")
      .check(check)
      .input("data", "Images, (batch, channels, height, width).")
      .input(
          "offset",
          "Offset of each filter element, y before x: (batch, 2 * num_deformable_group * elements of a filter, height "
          "and width of the output).");
  if (modulated) {
    op.input("mask",
             "Weight of each filter element: (batch, num_deformable_group * elements of a filter, height and width of "
             "the output).");
  }
  op.input("weight", "Filters, (num_filter, channels / num_group, h, w).")
      .input_if("bias", has_bias<A>, "Bias, (num_filter,).")
      .infer_shape([modulated](const A &a, Shapes &in, Shapes &out) { infer(a, in, out, modulated); })
      .same_float()
      .gradient([modulated](const A &a) { return gradient(a, modulated); })
      .flops([modulated](const A &, const Shapes &in, const Shapes &out) {
        const Shape &weight = in[modulated ? 3 : 2];
        return 2 * double(out[0].size()) * double(weight.size(1, weight.rank()));
      });
  return op;
}

[[maybe_unused]] const bool defined = [] {
  deformable("_contrib_DeformableConvolution", false)
      .doc("Convolves data with num_filter filters whose elements are shifted at each position of the output.");
  deformable("_contrib_ModulatedDeformableConvolution", true)
      .doc(
          "Convolves data with num_filter filters whose elements are shifted and weighted at each position of the "
          "output.");
  return true;
}();

}  // namespace
}  // namespace cohort
