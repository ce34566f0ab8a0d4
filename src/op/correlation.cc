// SPDX-License-Identifier: Apache-2.0
#include "op/correlation.hpp"

namespace cohort {
namespace {

using A = CorrelationAttrs;

void infer_shape(const A &a, Shapes &in, Shapes &out) {
  unify(in[0], in[1], "data1");
  unify(in[1], in[0], "data2");
  if (!in[0].rank_known()) return;
  unify(in[0], Shape::of_rank(4), "data1");
  const int64_t wide = 2 * a.reach() + 1;
  Shape result{in[0][0], wide * wide, Shape::kUnknown, Shape::kUnknown};
  for (int axis = 2; axis < 4; ++axis) {
    if (in[0][axis] == Shape::kUnknown) continue;
    const int64_t room = in[0][axis] + 2 * int64_t(a.pad_size) - 2 * a.border();
    if (room < 1) {
      throw Error(Code::kShape,
                  text("data1: expected padded lengths above ", 2 * a.border(),
                       " for this kernel_size and max_displacement, found ", in[0], " with pad_size ", a.pad_size),
                  "data1");
    }
    result[axis] = (room + a.stride1 - 1) / a.stride1;
  }
  unify(out[0], result, "output");
}

COHORT_OPERATOR(Correlation, CorrelationAttrs)
    .doc("Correlation of the patches around each position of data1 with displaced patches of data2.")
    .attr(&A::kernel_size, "kernel_size", 1, "Size of a patch; odd.")
    .range(1, 1 << 20)
    .attr(&A::max_displacement, "max_displacement", 1, "The largest displacement.")
    .range(0, 1 << 20)
    .attr(&A::stride1, "stride1", 1, "Distance between positions in data1.")
    .range(1, 1 << 20)
    .attr(&A::stride2, "stride2", 1, "Distance between displacements.")
    .range(1, 1 << 20)
    .attr(&A::pad_size, "pad_size", 0, "Zeros around the images.")
    .range(0, 1 << 20)
    .attr(&A::is_multiply, "is_multiply", true,
          "Whether elements are multiplied; otherwise absolute differences are taken.")
    .check([](A &a) {
      if (a.kernel_size % 2 == 1) return;
      throw Error(Code::kInvalidArgument,
                  text("attribute 'kernel_size': expected an odd number, found ", a.kernel_size), "kernel_size");
    })
    .input("data1", "Images, (batch, channels, height, width).")
    .input("data2", "Images to compare with, of the same shape.")
    .infer_shape(infer_shape)
    .same_float()
    .gradient(Gradient::by_kernel({0, 1}, {0, 1}));

}  // namespace
}  // namespace cohort
