// SPDX-License-Identifier: Apache-2.0
#include "op/ordering.hpp"

#include "op/dtype_words.hpp"

namespace cohort {

OrderedAxis ordered_axis(const OrderAttrs &a, const Shape &data) {
  OrderedAxis o;
  if (a.axis) {
    const int axis = normalize_axis(*a.axis, data.rank(), "axis");
    o.outer = data.size(0, axis);
    o.length = data[axis];
    o.inner = data.size(axis + 1, data.rank());
  } else {
    o.length = data.size();
  }
  if (a.k > o.length) {
    throw Error(Code::kInvalidArgument, text("attribute 'k': expected at most ", o.length, ", found ", a.k), "k");
  }
  o.kept = a.k < 1 ? o.length : a.k;
  return o;
}

namespace {

using Result = OrderAttrs::Result;
const DtypeWords kIndexTypes =
    dtype_words({Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8});

void infer_ordered_shape(const OrderAttrs &a, Shapes &in, Shapes &out) {
  if (a.ret_typ == Result::kMask) return infer_same_shape(Attrs(), in, out);
  if (!in[0].known()) return;
  const OrderedAxis o = ordered_axis(a, in[0]);
  Shape result{o.kept};
  if (a.axis) {
    result = in[0];
    result[normalize_axis(*a.axis, result.rank(), "axis")] = o.kept;
  }
  for (Shape &shape : out) unify(shape, result, "output");
}

void infer_ordered_dtype(const OrderAttrs &a, Dtypes &in, Dtypes &out) {
  if (a.ret_typ == Result::kIndices || a.ret_typ == Result::kBoth) unify(out.back(), a.dtype, "output");
  if (a.ret_typ == Result::kIndices) return;
  unify(out[0], in[0], "output");
  unify(in[0], out[0], "data");
}

// Indices and masks have no gradient.
Gradient gradient_of_values(const OrderAttrs &a) {
  return a.gives_values() ? Gradient::by_kernel({0}).beside_forward() : Gradient();
}

OpBuilder<OrderAttrs> ordering(const char *name, const char *doc, Result result) {
  OpBuilder<OrderAttrs> op(name);
  op.doc(doc)
      .attr(&OrderAttrs::axis, "axis", -1, "The axis; negative counts from the last; None: the flattened array.")
      .check([result](OrderAttrs &a) {
        a.ret_typ = result;
        a.k = 0;
      })
      .input("data", "Any shape.")
      .infer_shape(infer_ordered_shape)
      .infer_dtype(infer_ordered_dtype);
  return op;
}

[[maybe_unused]] const bool defined = [] {
  ordering("sort", "Sorts the elements along an axis.", Result::kValue)
      .alias("_npi_sort")
      .attr(&OrderAttrs::is_ascend, "is_ascend", true, "Whether to sort in ascending order.")
      .output_names([](const OrderAttrs &) { return std::vector<std::string>{"output0"}; })
      .gradient(gradient_of_values);
  ordering("argsort", "The indices that sort the elements along an axis.", Result::kIndices)
      .alias("_npi_argsort")
      .attr(&OrderAttrs::is_ascend, "is_ascend", true, "Whether to sort in ascending order.")
      .choice(&OrderAttrs::dtype, "dtype", kIndexTypes, Dtype::kFloat32, "The type of the indices.");
  return true;
}();

COHORT_OPERATOR(topk, OrderAttrs)
    .alias("_npx_topk")
    .doc("The k largest or smallest elements along an axis, in order.")
    .attr(&OrderAttrs::axis, "axis", -1, "The axis; negative counts from the last; None: the flattened array.")
    .attr(&OrderAttrs::k, "k", 1, "The number of elements; less than 1: all.")
    .choice(
        &OrderAttrs::ret_typ, "ret_typ",
        {{"both", Result::kBoth}, {"indices", Result::kIndices}, {"mask", Result::kMask}, {"value", Result::kValue}},
        Result::kIndices,
        "Return the elements, their indices, both, or a mask in the shape of data with 1 at their positions.")
    .attr(&OrderAttrs::is_ascend, "is_ascend", false, "Whether to return the smallest elements.")
    .choice(&OrderAttrs::dtype, "dtype", kIndexTypes, Dtype::kFloat32, "The type of the indices.")
    .input("data", "Any shape.")
    .outputs([](const OrderAttrs &a) { return a.ret_typ == Result::kBoth ? 2 : 1; })
    .output_names([](const OrderAttrs &a) -> std::vector<std::string> {
      if (a.ret_typ == Result::kBoth) return {"output0", "output1"};
      return {a.ret_typ == Result::kValue ? "output0" : "output"};
    })
    .infer_shape(infer_ordered_shape)
    .infer_dtype(infer_ordered_dtype)
    .gradient(gradient_of_values);

}  // namespace
}  // namespace cohort
