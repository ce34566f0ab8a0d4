// SPDX-License-Identifier: Apache-2.0
#include "op/quantization.hpp"

namespace cohort {
namespace {

void unify_ranges(Shapes &shapes, size_t first) {
  for (size_t i = first; i < shapes.size(); ++i) unify(shapes[i], Shape{1}, "bound");
}
void unify_ranges(Dtypes &dtypes, size_t first) {
  for (size_t i = first; i < dtypes.size(); ++i) unify(dtypes[i], Dtype::kFloat32, "bound");
}

template <typename A>
OpBuilder<A> quantizes(const char *name, const char *doc) {
  OpBuilder<A> op(name);
  op.doc(doc)
      .input("data", "Any shape.")
      .outputs([](const A &) { return 3; })
      .infer_shape([](const A &, Shapes &in, Shapes &out) {
        unify(in[0], out[0], "data");
        unify(out[0], in[0], "output");
        unify_ranges(in, 1);
        unify_ranges(out, 1);
      });
  return op;
}

OpBuilder<QuantizeAttrs> &with_calibration(OpBuilder<QuantizeAttrs> &op) {
  return op
      .attr(&QuantizeAttrs::min_calib_range, "min_calib_range", std::nullopt,
            "The smallest number to represent; None: the minimum of data.")
      .attr(&QuantizeAttrs::max_calib_range, "max_calib_range", std::nullopt,
            "The largest number to represent; None: the maximum of data.");
}

OpBuilder<QuantizeAttrs> &with_type(OpBuilder<QuantizeAttrs> &op) {
  return op.choice(&QuantizeAttrs::out_type, "out_type",
                   {{"auto", QuantizedType::kAuto}, {"int8", QuantizedType::kInt8}, {"uint8", QuantizedType::kUint8}},
                   QuantizedType::kInt8, "The quantized type; auto: uint8 if the range has no negative numbers.");
}

void infer_quantized(const QuantizeAttrs &a, Dtypes &, Dtypes &out) {
  unify(out[0], a.dtype(), "output");
  unify_ranges(out, 1);
}

[[maybe_unused]] const bool defined = [] {
  quantizes<QuantizeAttrs>("_contrib_quantize", "Quantizes data with the given range.")
      .input("min_range", "The smallest number to represent.")
      .input("max_range", "The largest number to represent.")
      .choice(&QuantizeAttrs::out_type, "out_type", {{"int8", QuantizedType::kInt8}, {"uint8", QuantizedType::kUint8}},
              QuantizedType::kUint8, "The quantized type.")
      .infer_dtype([](const QuantizeAttrs &a, Dtypes &in, Dtypes &out) {
        for (size_t i = 0; i < in.size(); ++i) unify(in[i], Dtype::kFloat32, i);
        infer_quantized(a, in, out);
      });
  {
    auto op = quantizes<QuantizeAttrs>(
        "_contrib_quantize_v2",
        "Quantizes data with the range of the attributes or its own; quantized data is unchanged.");
    with_calibration(with_type(op)).names_only_input().infer_dtype([](const QuantizeAttrs &a, Dtypes &in, Dtypes &out) {
      if (in[0] == Dtype::kInt8 || in[0] == Dtype::kUint8) {
        unify(out[0], in[0], "output");
        return unify_ranges(out, 1);
      }
      unify(in[0], Dtype::kFloat32, "data");
      infer_quantized(a, in, out);
    });
  }
  {
    auto op = quantizes<QuantizeAttrs>(
        "_contrib_quantize_asym",
        "Quantizes data to uint8 as data * scale + shift, chosen so that all values are used.");
    with_calibration(op)
        .output_names([](const QuantizeAttrs &) {
          return std::vector<std::string>{"output", "scale", "shift"};
        })
        .infer_dtype([](const QuantizeAttrs &, Dtypes &in, Dtypes &out) {
          unify(in[0], Dtype::kFloat32, "data");
          unify(out[0], Dtype::kUint8, "output");
          unify_ranges(out, 1);
        });
  }
  {
    auto op = quantizes<QuantizeAttrs>(
        "_contrib_requantize", "Converts int32 data to int8 or uint8 with the range of the attributes or its own.");
    op.input("min_range", "The lower bound of data.").input("max_range", "The upper bound of data.");
    with_calibration(with_type(op)).infer_dtype([](const QuantizeAttrs &a, Dtypes &in, Dtypes &out) {
      unify(in[0], Dtype::kInt32, "data");
      unify_ranges(in, 1);
      infer_quantized(a, in, out);
    });
  }
  return true;
}();

COHORT_OPERATOR(_contrib_dequantize, NoAttrs)
    .doc("Converts quantized data back to float32.")
    .ignored("out_type", "{'float32'}", "'float32'", "The type of the output; only float32.")
    .input("data", "int8 or uint8.")
    .input("min_range", "The lower bound of data.")
    .input("max_range", "The upper bound of data.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "data");
      unify(out[0], in[0], "output");
      unify_ranges(in, 1);
    })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      if (in[0] != Dtype::kNone && in[0] != Dtype::kInt8 && in[0] != Dtype::kUint8 && in[0] != Dtype::kInt32) {
        throw Error(Code::kDtype, text("data: expected int8, uint8 or int32, found ", in[0]), "data");
      }
      unify_ranges(in, 1);
      unify(out[0], Dtype::kFloat32, "output");
    });

COHORT_OPERATOR(_contrib_calibrate_entropy, CalibrateAttrs)
    .doc(
        "The threshold at which a clipped histogram, reduced to few bins, has the smallest divergence from the "
        "original.")
    .attr(&CalibrateAttrs::num_quantized_bins, "num_quantized_bins", 255, "The number of bins after the reduction.")
    .range(1, 1 << 20)
    .input("hist", "Counts of an odd number of bins centred at 0.")
    .input("hist_edges", "The edges of the bins, one more than bins.")
    .outputs([](const CalibrateAttrs &) { return 2; })
    .output_names([](const CalibrateAttrs &) {
      return std::vector<std::string>{"threshold", "divergence"};
    })
    .infer_shape([](const CalibrateAttrs &a, Shapes &in, Shapes &out) {
      unify(in[0], Shape::of_rank(1), "hist");
      unify(in[1], Shape::of_rank(1), "hist_edges");
      const int64_t bins = in[0][0];
      if (bins != Shape::kUnknown) {
        if (bins % 2 == 0 || bins < a.num_quantized_bins) {
          throw Error(Code::kShape,
                      text("hist: expected an odd number of bins, at least ", a.num_quantized_bins, ", found ", in[0]),
                      "hist");
        }
        unify(in[1], Shape{bins + 1}, "hist_edges");
      }
      for (Shape &s : out) unify(s, Shape{1}, "output");
    })
    .infer_dtype([](const CalibrateAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[0], in[1], "hist");
      unify(in[1], in[0], "hist_edges");
      for (Dtype &t : out) unify(t, Dtype::kFloat32, "output");
    });

}  // namespace
}  // namespace cohort
