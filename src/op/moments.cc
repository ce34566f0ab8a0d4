// SPDX-License-Identifier: Apache-2.0
#include "op/moments.hpp"

#include "op/reduce.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(moments, MomentsAttrs)
    .doc("The mean and the (biased) variance over axes.")
    .attr(&MomentsAttrs::axes, "axes", std::nullopt, "The axes, at least one; negative ones count from the last.")
    .attr(&MomentsAttrs::keepdims, "keepdims", false, "Whether reduced axes are kept with length 1.")
    .check([](MomentsAttrs &a) {
      if (!a.axes || a.axes->empty()) {
        throw Error(Code::kInvalidArgument, "attribute 'axes': expected at least one axis, found none", "axes");
      }
    })
    .input("data", "Any shape.")
    .names_only_input()
    .outputs([](const MomentsAttrs &) { return 2; })
    .infer_shape([](const MomentsAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      const std::vector<bool> reduced = axes_to_reduce(a.axes, false, in[0].rank(), "axes");
      for (Shape &shape : out) unify(shape, reduced_shape(in[0], reduced, a.keepdims), "output");
    })
    .gradient([](const MomentsAttrs &) { return Gradient::by_kernel({0}, {0}, {0}); });

}  // namespace
}  // namespace cohort
