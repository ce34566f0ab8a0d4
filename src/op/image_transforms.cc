// SPDX-License-Identifier: Apache-2.0
#include "op/image_transforms.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

constexpr int64_t kUnknown = Shape::kUnknown;
constexpr int32_t kMostPixels = 1 << 20;  // per side

// The axis of the height in (height, width, channels) and (batch, height, width, channels).
int height_axis(const Shape &s, bool batches = true) {
  if (s.rank() == 3 || (batches && s.rank() == 4)) return s.rank() - 3;
  throw Error(
      Code::kShape,
      text("data: expected (height, width, channels)", batches ? " with or without a batch axis" : "", ", found ", s),
      "data");
}

void infer_tensor(const NoAttrs &, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  const int axis = height_axis(in[0]);
  Shape moved = in[0];
  moved[axis] = in[0][axis + 2];
  moved[axis + 1] = in[0][axis];
  moved[axis + 2] = in[0][axis + 1];
  unify(out[0], moved, "output");
}

void infer_normalized(const ImageNormalizeAttrs &a, Shapes &in, Shapes &out) {
  infer_same_shape(Attrs(), in, out);
  if (!in[0].rank_known()) return;
  const int64_t channels = in[0][height_axis(in[0])];
  if (channels != kUnknown && channels != 1 && channels != 3) {
    throw Error(Code::kShape, text("data: expected 1 or 3 channels before height and width, found ", in[0]), "data");
  }
  for (const auto &[name, list] : {std::pair("mean", &a.mean), std::pair("std", &a.std)}) {
    const auto num = int64_t(list->size());
    // MXNet's defaults have four numbers.
    if (channels == kUnknown || num == 1 || num == channels || num == 4) continue;
    throw Error(Code::kShape, text("attribute '", name, "': expected 1 or ", channels, " numbers, found ", num), name);
  }
}

void infer_cropped(const ImageCropAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  const int axis = height_axis(in[0]);
  Shape cropped = in[0];
  const auto part = [&](int at, int64_t first, int64_t length, const char *name) {
    if (in[0][at] != kUnknown && (first < 0 || length < 1 || first + length > in[0][at])) {
      throw Error(Code::kShape,
                  text("attribute '", name, "': expected a window inside ", in[0][at], " pixels, found ", length,
                       " from ", first),
                  name);
    }
    cropped[at] = length;
  };
  part(axis, a.y, a.height, "height");
  part(axis + 1, a.x, a.width, "width");
  unify(out[0], cropped, "output");
}

void infer_resized(const ImageResizeAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  const int axis = height_axis(in[0]);
  const int64_t height = in[0][axis], width = in[0][axis + 1];
  int64_t new_width = a.size[0], new_height = a.size.back();
  if (a.size.size() == 1 && a.keep_ratio) {
    if (height == kUnknown || width == kUnknown || height == 0 || width == 0) return;
    if (height > width) {
      new_height = checked_times(height, new_width) / width;
    } else {
      new_width = checked_times(width, new_height) / height;
    }
  }
  Shape resized = in[0];
  resized[axis] = new_height;
  resized[axis + 1] = new_width;
  unify(out[0], resized, "output");
}

COHORT_OPERATOR(_image_to_tensor, NoAttrs)
    .alias("_npx__image_to_tensor")
    .doc("Moves channels before height and width, as float32 divided by 255.")
    .input("data", "(height, width, channels), or a batch of them.")
    .names_only_input()
    .infer_shape(infer_tensor)
    .infer_dtype([](const NoAttrs &, Dtypes &, Dtypes &out) { unify(out[0], Dtype::kFloat32, "output"); })
    .gradient(Gradient::by_kernel({0}));

COHORT_OPERATOR(_image_normalize, ImageNormalizeAttrs)
    .alias("_npx__image_normalize")
    .doc("(data - mean) / std, channel by channel.")
    .attr(&ImageNormalizeAttrs::mean, "mean", std::vector<float>{0, 0, 0, 0},
          "One for all channels, or one per channel.")
    .attr(&ImageNormalizeAttrs::std, "std", std::vector<float>{1, 1, 1, 1}, "One for all channels, or one per channel.")
    .check([](ImageNormalizeAttrs &a) {
      if (a.mean.empty() || a.std.empty()) {
        throw Error(Code::kInvalidArgument, "attributes 'mean' and 'std': expected numbers, found none",
                    a.mean.empty() ? "mean" : "std");
      }
    })
    .input("data", "(channels, height, width), or a batch of them, of 1 or 3 channels.")
    .names_only_input()
    .inplace(0, 0)
    .infer_shape(infer_normalized)
    .gradient(Gradient::by_kernel({0}));

COHORT_OPERATOR(_image_crop, ImageCropAttrs)
    .alias("_npx__image_crop")
    .doc("Crops a window of data.")
    .required(&ImageCropAttrs::x, "x", "The first column.")
    .required(&ImageCropAttrs::y, "y", "The first row.")
    .required(&ImageCropAttrs::width, "width", "The number of columns.")
    .required(&ImageCropAttrs::height, "height", "The number of rows.")
    .input("data", "(height, width, channels), or a batch of them.")
    .infer_shape(infer_cropped)
    .gradient(Gradient::by_kernel({0}));

OpBuilder<NoAttrs> flip(const char *name, const char *doc) {
  OpBuilder<NoAttrs> op((std::string("_image_") + name).c_str());
  op.alias((std::string("_npx__image_") + name).c_str())
      .doc(doc)
      .input("data", "(height, width, channels).")
      .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
        infer_same_shape(Attrs(), in, out);
        if (in[0].rank_known()) height_axis(in[0], false);
      });
  return op;
}

[[maybe_unused]] const bool defined = [] {
  flip("flip_left_right", "Reverses the order of columns.").gradient(Gradient::by_kernel({0}));
  flip("flip_top_bottom", "Reverses the order of rows.").gradient(Gradient::by_kernel({0}));
  flip("random_flip_left_right", "Reverses the order of columns with probability 1/2.").random();
  flip("random_flip_top_bottom", "Reverses the order of rows with probability 1/2.").random();
  return true;
}();

COHORT_OPERATOR(_image_resize, ImageResizeAttrs)
    .alias("_npx__image_resize")
    .doc("Resizes data.")
    .attr(&ImageResizeAttrs::size, "size", Tuple(), "(width, height), or one number for both.")
    .range(1, kMostPixels)
    .attr(&ImageResizeAttrs::keep_ratio, "keep_ratio", false,
          "Whether a single size is the length of the shorter side, and the longer side keeps the ratio.")
    .attr(&ImageResizeAttrs::interp, "interp", 1,
          "Interpolation: 0 nearest, 1 linear, 2 cubic, 3 area means, 4 Lanczos.")
    .range(0, 4)
    .check([](ImageResizeAttrs &a) {
      if (a.size.empty() || a.size.size() > 2) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'size': expected one or two numbers, found ", print_tuple(a.size)), "size");
      }
    })
    .input("data", "(height, width, channels), or a batch of them.")
    .infer_shape(infer_resized);

COHORT_OPERATOR(_cvimresize, ImageResizeAttrs)
    .alias("_npi_cvimresize")
    .doc("Resizes src.")
    .required(&ImageResizeAttrs::w, "w", "The width.")
    .range(1, kMostPixels)
    .required(&ImageResizeAttrs::h, "h", "The height.")
    .range(1, kMostPixels)
    .attr(&ImageResizeAttrs::interp, "interp", 1,
          "Interpolation: 0 nearest, 1 linear, 2 cubic, 3 area means, 4 Lanczos.")
    .range(0, 4)
    .input("src", "(height, width, channels).")
    .infer_shape([](const ImageResizeAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      height_axis(in[0], false);
      unify(out[0], Shape{a.h, a.w, in[0][2]}, "output");
    });

COHORT_OPERATOR(_cvcopyMakeBorder, ImageBorderAttrs)
    .alias("_npi_cvcopyMakeBorder")
    .doc("Adds a border around src.")
    .required(&ImageBorderAttrs::top, "top", "Rows above.")
    .range(0, kMostPixels)
    .required(&ImageBorderAttrs::bot, "bot", "Rows below.")
    .range(0, kMostPixels)
    .required(&ImageBorderAttrs::left, "left", "Columns on the left.")
    .range(0, kMostPixels)
    .required(&ImageBorderAttrs::right, "right", "Columns on the right.")
    .range(0, kMostPixels)
    .attr(
        &ImageBorderAttrs::type, "type", 0,
        "Border: 0 constant, 1 repeated edge, 2 reflected including the edge, 3 wrapped, 4 reflected without the edge.")
    .range(0, 4)
    .attr(&ImageBorderAttrs::value, "value", 0.0, "The constant.")
    .attr(&ImageBorderAttrs::values, "values", std::vector<double>(), "The constant per channel.")
    .input("src", "(height, width, channels).")
    .infer_shape([](const ImageBorderAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      height_axis(in[0], false);
      const int64_t height = in[0][0], width = in[0][1];
      if (a.type != ImageBorderAttrs::kConstant && (height == 0 || width == 0)) {
        throw Error(Code::kShape, text("src: expected pixels, found ", in[0]), "src");
      }
      unify(out[0],
            Shape{height == kUnknown ? kUnknown : height + a.top + a.bot,
                  width == kUnknown ? kUnknown : width + a.left + a.right, in[0][2]},
            "output");
    });

}  // namespace
}  // namespace cohort
