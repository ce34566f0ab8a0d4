// SPDX-License-Identifier: Apache-2.0
#include "op/image_decode.hpp"

namespace cohort {
namespace {

using A = ImageDecodeAttrs;

OpBuilder<A> decoder(const char *name, const char *alias, const char *doc, bool of_file = false) {
  OpBuilder<A> op(name);
  if (of_file) op.required(&A::filename, "filename", "The file's name.");
  return op.alias(alias)
      .doc(doc)
      .attr(&A::flag, "flag", 1, "1: three channels; 0: one channel, grey.")
      .range(0, 1)
      .attr(&A::to_rgb, "to_rgb", true, "Whether red comes first; otherwise blue.")
      .infer_shape([](const A &a, Shapes &, Shapes &out) {
        unify(out[0], Shape{Shape::kUnknown, Shape::kUnknown, a.flag == 0 ? 1 : 3}, "output");
      })
      .infer_dtype([](const A &, Dtypes &in, Dtypes &out) {
        for (Dtype &dtype : in) unify(dtype, Dtype::kUint8, "buf");
        unify(out[0], Dtype::kUint8, "output");
      });
}

[[maybe_unused]] const auto &kDecode =
    decoder("_cvimdecode", "_npi_cvimdecode", "Decodes a JPEG or PNG image to pixels (height, width, channels).")
        .input("buf", "The bytes of the file.");
[[maybe_unused]] const auto &kRead =
    decoder("_cvimread", "_npi_cvimread", "Reads a JPEG or PNG file to pixels (height, width, channels).",
            /* of_file */ true);

}  // namespace
}  // namespace cohort
