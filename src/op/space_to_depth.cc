// SPDX-License-Identifier: Apache-2.0
#include "op/space_to_depth.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

void expect_images(const Shape &data) {
  if (data.rank() != 4) throw Error(Code::kShape, text("data: expected 4 axes, found ", data), "data");
}
void expect_multiple(const Shape &data, int axis, int64_t of) {
  if (data[axis] % of != 0) {
    throw Error(Code::kShape, text("data: expected a multiple of ", of, " on axis ", axis, ", found ", data), "data");
  }
}

OpBuilder<BlockAttrs> blocked(const char *name, const char *doc) {
  OpBuilder<BlockAttrs> op(name);
  op.doc(doc)
      .required(&BlockAttrs::block_size, "block_size", "The height and width of a block.")
      .range(1, 32768)
      .input("data", "Images, (N, C, H, W).")
      .names_only_input()
      .gradient(Gradient::by_kernel({0}));
  return op;
}

[[maybe_unused]] const bool defined = [] {
  blocked("space_to_depth", "Moves the pixels of each block into channels.")
      .infer_shape([](const BlockAttrs &a, Shapes &in, Shapes &out) {
        if (!in[0].known()) return;
        expect_images(in[0]);
        const int64_t b = a.block_size;
        for (int axis : {2, 3}) expect_multiple(in[0], axis, b);
        unify(out[0], Shape{in[0][0], checked_times(in[0][1], b * b), in[0][2] / b, in[0][3] / b}, "output");
      });
  blocked("depth_to_space", "Moves channels into the pixels of blocks; the inverse of space_to_depth.")
      .infer_shape([](const BlockAttrs &a, Shapes &in, Shapes &out) {
        if (!in[0].known()) return;
        expect_images(in[0]);
        const int64_t b = a.block_size;
        expect_multiple(in[0], 1, b * b);
        unify(out[0], Shape{in[0][0], in[0][1] / (b * b), checked_times(in[0][2], b), checked_times(in[0][3], b)},
              "output");
      });
  return true;
}();

}  // namespace
}  // namespace cohort
