// SPDX-License-Identifier: Apache-2.0
#include "op/im2col.hpp"

#include <algorithm>

#include "op/checked_length.hpp"

namespace cohort {

std::vector<WindowAxis> window_axes(const WindowAttrs &a, const std::vector<int64_t> &lengths) {
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < a.kernel.size(); ++i) {
    const WindowAxis axis = {lengths[i], a.kernel[i], a.stride[i], a.dilate[i], a.pad[i]};
    const int64_t window = axis.dilate * (axis.kernel - 1) + 1, most = axis.length + 2 * axis.pad;
    if (window > most) {
      throw Error(
          Code::kShape,
          text("attribute 'kernel': expected a window of at most ", most, " on spatial axis ", i, ", found ", window),
          "kernel");
    }
    axes.push_back(axis);
  }
  return axes;
}

namespace {

constexpr int64_t kMost = 1 << 20;  // limit of an entry of kernel, stride, dilate or pad

// Fills in omitted attributes.
void check_windows(WindowAttrs &a) {
  const auto expect = [&](Tuple &tuple, const char *name, int64_t missing, int64_t low) {
    if (tuple.empty()) tuple.assign(a.kernel.size(), missing);
    const bool good = tuple.size() == a.kernel.size() && !tuple.empty() && tuple.size() <= 3 &&
                      std::all_of(tuple.begin(), tuple.end(), [=](int64_t n) { return n >= low && n <= kMost; });
    if (!good) {
      throw Error(Code::kInvalidArgument,
                  text("attribute '", name, "': expected a number from ", low, " to ", kMost,
                       " for each of one to three spatial axes, found ", print_tuple(tuple)),
                  name);
    }
  };
  expect(a.kernel, "kernel", 1, 1);
  expect(a.stride, "stride", 1, 1);
  expect(a.dilate, "dilate", 1, 1);
  expect(a.pad, "pad", 0, 0);
}

int64_t product(const Tuple &numbers) {
  int64_t all = 1;
  for (int64_t n : numbers) all = checked_times(all, n);
  return all;
}
int64_t count_windows(const std::vector<WindowAxis> &axes) {
  int64_t all = 1;
  for (const WindowAxis &axis : axes) all = checked_times(all, axis.windows());
  return all;
}

void infer_columns(const WindowAttrs &a, Shapes &in, Shapes &out) {
  const Shape &data = in[0];
  if (!data.known()) return;
  if (size_t(data.rank()) != a.kernel.size() + 2) {
    throw Error(Code::kShape, text("data: expected ", a.kernel.size() + 2, " axes, found ", data), "data");
  }
  const int64_t windows = count_windows(window_axes(a, {data.begin() + 2, data.end()}));
  unify(out[0], Shape{data[0], checked_times(data[1], product(a.kernel)), windows}, "output");
}

void infer_images(const WindowAttrs &a, Shapes &in, Shapes &out) {
  const Shape &data = in[0];
  if (!data.known()) return;
  const int64_t windows = count_windows(window_axes(a, a.output_size)), kernel = product(a.kernel);
  if (data.rank() != 3 || data[2] != windows || data[1] % kernel != 0) {
    throw Error(Code::kShape, text("data: expected (N, a multiple of ", kernel, ", ", windows, "), found ", data),
                "data");
  }
  std::vector<int64_t> result = {data[0], data[1] / kernel};
  result.insert(result.end(), a.output_size.begin(), a.output_size.end());
  unify(out[0], Shape(result), "output");
}

void add_windows(OpBuilder<WindowAttrs> &op) {
  op.required(&WindowAttrs::kernel, "kernel", "The lengths of a window.")
      .names_only_input()
      .attr(&WindowAttrs::stride, "stride", Tuple(), "The distance between windows; default 1.")
      .attr(&WindowAttrs::dilate, "dilate", Tuple(), "The distance between elements of a window; default 1.")
      .attr(&WindowAttrs::pad, "pad", Tuple(), "Zeros on both sides of an axis; default 0.")
      .gradient(Gradient::by_kernel({0}));
}

[[maybe_unused]] const bool defined = [] {
  OpBuilder<WindowAttrs> columns("im2col"), images("col2im");
  columns.doc("The elements of each window of a convolution, as columns.")
      .check(check_windows)
      .input("data", "Images, (N, C, spatial axes).")
      .infer_shape(infer_columns);
  add_windows(columns);
  images.doc("The adjoint of im2col: adds the elements of columns to the positions from which im2col reads them.")
      .required(&WindowAttrs::output_size, "output_size", "The spatial lengths of the images.")
      .check([](WindowAttrs &a) {
        check_windows(a);
        if (a.output_size.size() != a.kernel.size() ||
            std::any_of(a.output_size.begin(), a.output_size.end(), [](int64_t n) { return n < 1 || n > 1 << 30; })) {
          throw Error(Code::kInvalidArgument,
                      text("attribute 'output_size': expected ", a.kernel.size(), " numbers of at least 1, found ",
                           print_tuple(a.output_size)),
                      "output_size");
        }
      })
      .input("data", "Columns, (N, C * elements of a window, windows).")
      .infer_shape(infer_images);
  add_windows(images);
  return true;
}();

}  // namespace
}  // namespace cohort
