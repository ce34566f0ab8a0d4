// SPDX-License-Identifier: Apache-2.0
#include "op/checked_length.hpp"
#include "op/op.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(khatri_rao, NoAttrs)
    .doc("Khatri-Rao product: products of every row of a matrix with every row of the next, column by column.")
    .variadic("arg", "num_args", "Matrices with the same number of columns.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      if (in.empty()) throw Error(Code::kInvalidArgument, "khatri_rao: expected at least one input, found none");
      Shape columns = Shape::of_rank(2);
      unify(columns, Shape{Shape::kUnknown, out[0].rank_known() && out[0].rank() == 2 ? out[0][1] : Shape::kUnknown},
            "args");
      for (size_t i = 0; i < in.size(); ++i) {
        const std::string name = text("args", i);
        unify(in[i], columns, name.c_str());
        columns[1] = in[i][1];
      }
      int64_t rows = 1;
      for (Shape &shape : in) {
        shape[1] = columns[1];
        rows = rows == Shape::kUnknown || shape[0] == Shape::kUnknown ? Shape::kUnknown : checked_times(rows, shape[0]);
      }
      unify(out[0], Shape{rows, columns[1]}, "output");
    });

}  // namespace
}  // namespace cohort
