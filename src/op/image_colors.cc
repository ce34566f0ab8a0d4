// SPDX-License-Identifier: Apache-2.0
#include "op/image_colors.hpp"

#include <limits>

namespace cohort {
namespace {

template <typename A>
OpBuilder<A> color(const char *name, const char *doc) {
  OpBuilder<A> op(name);
  op.alias(("_npx_" + std::string(name)).c_str())
      .doc(doc)
      .input("data", "An image, (height, width, channels), of 1 or 3 channels.")
      .inplace(0, 0)
      .infer_shape([](const A &, Shapes &in, Shapes &out) {
        infer_same_shape(Attrs(), in, out);
        const Shape &s = in[0];
        if (!s.rank_known()) return;
        if (s.rank() != 3 || (s[2] != Shape::kUnknown && s[2] != 1 && s[2] != 3)) {
          throw Error(Code::kShape, text("data: expected (height, width, 1 or 3 channels), found ", s), "data");
        }
      });
  return op;
}

constexpr double kMost = std::numeric_limits<float>::max();  // not infinite

void factor(const char *name, const char *doc) {
  color<ColorFactorAttrs>(name, doc)
      .required(&ColorFactorAttrs::min_factor, "min_factor", "The least factor.")
      .range(0, kMost)
      .required(&ColorFactorAttrs::max_factor, "max_factor", "The largest factor.")
      .range(0, kMost)
      .random();
}

const Gradient of_a_sum{
    Gradient::Kind::kPassThrough, {0}, true, {}, {}};  // data plus a term that does not depend on it

[[maybe_unused]] const bool defined = [] {
  factor("_image_random_brightness", "Multiplies data by a random factor.");
  factor("_image_random_contrast", "Scales the distance of data from the mean of its grey image by a random factor.");
  factor("_image_random_saturation", "Scales the distance of data from its grey image by a random factor.");
  factor("_image_random_hue", "Rotates the hue of data by a random fraction of the circle.");
  color<ColorJitterAttrs>("_image_random_color_jitter",
                          "Random brightness, contrast, saturation and hue, in a random order.")
      .required(&ColorJitterAttrs::brightness, "brightness", "Largest deviation of the factor from 1.")
      .range(0, kMost)
      .required(&ColorJitterAttrs::contrast, "contrast", "Largest deviation of the factor from 1.")
      .range(0, kMost)
      .required(&ColorJitterAttrs::saturation, "saturation", "Largest deviation of the factor from 1.")
      .range(0, kMost)
      .required(&ColorJitterAttrs::hue, "hue", "Largest fraction of the circle.")
      .range(0, kMost)
      .random();
  color<LightingAttrs>("_image_adjust_lighting", "Adds multiples of the principal components of ImageNet's colours.")
      .required(&LightingAttrs::alpha, "alpha", "The multiple of each of the three components.")
      .check([](LightingAttrs &a) {
        if (a.alpha.size() == 3) return;
        throw Error(Code::kInvalidArgument, text("attribute 'alpha': expected 3 numbers, found ", a.alpha.size()),
                    "alpha");
      })
      .gradient(of_a_sum);
  color<LightingAttrs>("_image_random_lighting",
                       "Adds random multiples of the principal components of ImageNet's colours.")
      .attr(&LightingAttrs::alpha_std, "alpha_std", 0.05f, "The standard deviation of the multiples.")
      .random()
      .gradient(of_a_sum);
  return true;
}();

}  // namespace
}  // namespace cohort
