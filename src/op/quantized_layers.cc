// SPDX-License-Identifier: Apache-2.0
// Layers on quantized arrays (op/quantization.hpp): the inputs of the layer are followed by the bounds of each, and the
// output by its bounds.
#include "op/activation.hpp"
#include "op/concat.hpp"
#include "op/linear.hpp"
#include "op/quantization.hpp"

namespace cohort {
namespace {

bool is_bytes(Dtype t) { return t == Dtype::kInt8 || t == Dtype::kUint8; }

void check_bytes(Dtype t, const char *name) {
  if (t == Dtype::kNone || is_bytes(t)) return;
  throw Error(Code::kDtype, text(name, ": expected int8 or uint8, found ", t), name);
}

// The first num_own(...) inputs and the first output are those of the layer; the others are bounds.
template <typename A>
void with_bounds(OpBuilder<A> &op, std::function<void(const A &, Shapes &, Shapes &)> shapes,
                 std::function<void(const A &, Dtypes &, Dtypes &)> dtypes,
                 std::function<size_t(const A &, size_t num_inputs)> num_own) {
  const auto apply = [num_own](const A &a, auto &in, auto &out, const auto &infer, const auto &bound) {
    const size_t own = num_own(a, in.size());
    auto first = in, result = out;
    first.resize(own), result.resize(1);
    infer(a, first, result);
    std::copy(first.begin(), first.end(), in.begin());
    out[0] = result[0];
    for (size_t i = own; i < in.size(); ++i) unify(in[i], bound, "bound");
    for (size_t i = 1; i < out.size(); ++i) unify(out[i], bound, "bound");
  };
  op.outputs([](const A &) { return 3; })
      .output_names([](const A &) {
        return std::vector<std::string>{"output", "min_output", "max_output"};
      })
      .infer_shape([=](const A &a, Shapes &in, Shapes &out) { apply(a, in, out, shapes, Shape{1}); })
      .infer_dtype([=](const A &a, Dtypes &in, Dtypes &out) { apply(a, in, out, dtypes, Dtype::kFloat32); });
}

template <typename A>
void with_bounds(OpBuilder<A> &op, std::function<void(const A &, Shapes &, Shapes &)> shapes,
                 std::function<void(const A &, Dtypes &, Dtypes &)> dtypes, size_t num_own) {
  with_bounds<A>(op, shapes, dtypes, [num_own](const A &, size_t) { return num_own; });
}

// The shape inference of the float operator, which has the same attributes.
template <typename A>
std::function<void(const A &, Shapes &, Shapes &)> shapes_of(const char *op) {
  return [op](const A &a, Shapes &in, Shapes &out) {
    // Attrs does not own the attributes here; inference keeps no reference.
    get_op(op).infer_shape(Attrs(std::shared_ptr<A>(std::shared_ptr<void>(), const_cast<A *>(&a))), in, out);
  };
}

template <typename A>
void same_bytes(const A &, Dtypes &in, Dtypes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  check_bytes(in[0], "data");
}

// Inputs of an operator on one array.
template <typename A>
void bytes_with_bounds(OpBuilder<A> &op) {
  op.input("data", "int8 or uint8.")
      .input("min_data", "The lower bound of data.")
      .input("max_data", "Its upper bound.");
}

template <typename A>
void bounds_of_layer(OpBuilder<A> &op) {
  op.input("min_data", "The lower bound of data, one number.").input("max_data", "The upper bound of data.");
  op.input("min_weight", "The lower bound of weight, one number.").input("max_weight", "The upper bound of weight.");
  op.input_if("min_bias", has_bias<A>, "The lower bound of bias, one number.");
  op.input_if("max_bias", has_bias<A>, "The upper bound of bias.");
  op.gradient(Gradient());
}

// The number of inputs depends on whether there is a bias.
template <typename A>
void infer_layer(OpBuilder<A> &op, const char *layer) {
  with_bounds<A>(
      op, shapes_of<A>(layer),
      [](const A &, Dtypes &in, Dtypes &out) {
        check_bytes(in[0], "data");
        for (size_t i = 1; i < in.size(); ++i) unify(in[i], Dtype::kInt8, "weight");
        unify(out[0], Dtype::kInt32, "output");
      },
      [](const A &a, size_t) -> size_t { return a.no_bias ? 2 : 3; });
}

void define_products() {
  {
    OpBuilder<ConvolutionAttrs> op("_contrib_quantized_conv");
    op.doc("Quantized Convolution with int32 output.")
        .required(&ConvolutionAttrs::kernel, "kernel", "Filter size: (w,), (h, w) or (d, h, w).")
        .attr(&ConvolutionAttrs::stride, "stride", Tuple(), "Step of the filter along each axis; default 1.")
        .attr(&ConvolutionAttrs::dilate, "dilate", Tuple(),
              "Distance between filter elements along each axis; default 1.")
        .attr(&ConvolutionAttrs::pad, "pad", Tuple(), "Zeros added on both sides of each axis; default 0.")
        .check(check_filters<ConvolutionAttrs>);
    define_filters(op, {"Number of filters.", "Filters, int8, shaped as in Convolution.", "1024", false});
    bounds_of_layer(op);
    infer_layer(op, "Convolution");
  }
  {
    using A = FullyConnectedAttrs;
    OpBuilder<A> op("_contrib_quantized_fully_connected");
    op.doc("Quantized FullyConnected with int32 output.")
        .required(&A::num_hidden, "num_hidden", "Number of outputs per sample.")
        .range(1)
        .attr(&A::no_bias, "no_bias", false, "Whether there is no bias.")
        .attr(&A::flatten, "flatten", true, "Whether to flatten all axes of data except the first into one.")
        .input("data", "int8 or uint8.")
        .input("weight", "Weights, int8, (num_hidden, features).")
        .input_if("bias", has_bias<A>, "Bias, int8, (num_hidden,).");
    bounds_of_layer(op);
    infer_layer(op, "FullyConnected");
  }
}

void define_shapes() {
  {
    using A = PoolingAttrs;
    OpBuilder<A> op("_contrib_quantized_pooling");
    define_pooling(op)
        .doc("Quantized pooling (pool_type max or avg); the output has the range of data.")
        .check([](A &a) {
          if (a.pool_type != A::kMax && a.pool_type != A::kAvg) {
            throw Error(Code::kInvalidArgument, "attribute 'pool_type': expected 'max' or 'avg', found another one",
                        "pool_type");
          }
          if (channels_last(a.layout)) {
            throw Error(Code::kInvalidArgument, "attribute 'layout': expected channels before the spatial axes",
                        "layout");
          }
          get_op("Pooling").check_attrs(&a);
        });
    bytes_with_bounds(op);
    with_bounds<A>(op, shapes_of<A>("Pooling"), same_bytes<A>, 1);
  }
  {
    using A = QuantizedActAttrs;
    OpBuilder<A> op("_contrib_quantized_act");
    op.doc("Quantized relu; the output has the range of data.")
        .required_choice(&A::act_type, "act_type",
                         {{"relu", int32_t(ActivationAttrs::kRelu)},
                          {"sigmoid", int32_t(ActivationAttrs::kSigmoid)},
                          {"softrelu", int32_t(ActivationAttrs::kSoftrelu)},
                          {"softsign", int32_t(ActivationAttrs::kSoftsign)},
                          {"tanh", int32_t(ActivationAttrs::kTanh)}},
                         "The function; only relu.")
        .check([](A &a) {
          if (a.act_type == int32_t(ActivationAttrs::kRelu)) return;
          throw Error(Code::kInvalidArgument, "attribute 'act_type': expected 'relu', found another one", "act_type");
        });
    bytes_with_bounds(op);
    with_bounds<A>(
        op, [](const A &, Shapes &in, Shapes &out) { infer_same_shape(Attrs(), in, out); }, same_bytes<A>, 1);
  }
  {
    using A = NoAttrs;
    OpBuilder<A> op("_contrib_quantized_flatten");
    op.doc("Flatten of quantized arrays; accepts other types, too.");
    bytes_with_bounds(op);
    with_bounds<A>(
        op, shapes_of<A>("Flatten"), [](const A &, Dtypes &in, Dtypes &out) { infer_same_dtype(Attrs(), in, out); }, 1);
  }
  {
    using A = QuantizedConcatAttrs;
    OpBuilder<A> op("_contrib_quantized_concat");
    op.doc("Quantized Concat in the widest of the ranges; int8 if any input is.")
        .required(&A::num_args, "num_args", "The number of arrays.")
        .attr(&A::dim, "dim", 1, "The axis; negative counts from the last.")
        .check([](A &a) {
          if (a.num_args >= 1 && a.num_args <= kMaxInputs / 3) return;
          throw Error(Code::kInvalidArgument,
                      text("attribute 'num_args': expected 1 to ", kMaxInputs / 3, ", found ", a.num_args), "num_args");
        });
    // The arrays, then the bounds of each in turn: three inputs per array counted by num_args.
    op.variadic("arg", kNumInputsAttr, "The arrays to join, then the lower and upper bound of each in turn.")
        .input_names([](const A &a, int index, int) {
          const int bound = index - a.num_args;
          return bound < 0 ? text("arg", index) : text("arg", bound / 2, bound % 2 == 0 ? "_min" : "_max");
        });
    with_bounds<A>(
        op,
        [](const A &a, Shapes &in, Shapes &out) {
          if (int64_t(in.size()) != a.num_args) {
            throw Error(Code::kShape, text("expected ", 3 * a.num_args, " inputs, three for each of ", a.num_args,
                                           " arrays, found others"));
          }
          ConcatAttrs concat{a.dim};
          get_op("Concat").infer_shape(Attrs(std::make_shared<ConcatAttrs>(concat)), in, out);
        },
        [](const A &, Dtypes &in, Dtypes &out) {
          bool known = true, is_signed = false;
          for (const Dtype t : in) {
            check_bytes(t, "data");
            known = known && t != Dtype::kNone;
            is_signed = is_signed || t == Dtype::kInt8;
          }
          if (known) unify(out[0], is_signed ? Dtype::kInt8 : Dtype::kUint8, "output");
        },
        [](const A &, size_t num_inputs) { return num_inputs / 3; });
  }
}

// Two arrays of one shape, and their bounds.
OpBuilder<QuantizeAttrs> pair(const char *name, const char *doc) {
  OpBuilder<QuantizeAttrs> op(name);
  op.doc(doc).input("lhs", "int8 or uint8.").input("rhs", "int8 or uint8.");
  op.input("lhs_min", "The lower bound of lhs, one number.").input("lhs_max", "The upper bound of lhs.");
  op.input("rhs_min", "The lower bound of rhs, one number.").input("rhs_max", "The upper bound of rhs.");
  return op
      .attr(&QuantizeAttrs::min_calib_range, "min_calib_range", std::nullopt,
            "The lower bound of a quantized output; None: the output is int32.")
      .attr(&QuantizeAttrs::max_calib_range, "max_calib_range", std::nullopt,
            "The upper bound of a quantized output; None: the output is int32.");
}

void define_others() {
  const auto shapes = [](const QuantizeAttrs &, Shapes &in, Shapes &out) { infer_same_shape(Attrs(), in, out); };
  const auto check_pair = [](const Dtypes &in) {
    check_bytes(in[0], "lhs");
    check_bytes(in[1], "rhs");
    return in[0] != Dtype::kNone && in[1] != Dtype::kNone;
  };
  {
    auto op = pair("_contrib_quantized_elemwise_add",
                   "Quantized lhs + rhs, as int32 or quantized with the range of the attributes.");
    with_bounds<QuantizeAttrs>(
        op, shapes,
        [check_pair](const QuantizeAttrs &a, Dtypes &in, Dtypes &out) {
          if (!check_pair(in)) return;
          const bool is_signed = in[0] == Dtype::kInt8 || in[1] == Dtype::kInt8;
          unify(out[0], !a.calibrated() ? Dtype::kInt32 : is_signed ? Dtype::kInt8 : Dtype::kUint8, "output");
        },
        2);
  }
  {
    using A = QuantizeAttrs;
    auto op = pair("_contrib_quantized_elemwise_mul",
                   "Quantized lhs * rhs, as int32, as int8 with the range of the attributes, or as float32.");
    op.attr(&A::enable_float_output, "enable_float_output", false, "Whether the output is float32, without bounds.");
    const auto dtypes = [check_pair](const A &a, Dtypes &in, Dtypes &out) {
      check_pair(in);
      unify(out[0], a.enable_float_output ? Dtype::kFloat32 : a.calibrated() ? Dtype::kInt8 : Dtype::kInt32, "output");
    };
    with_bounds<A>(op, shapes, dtypes, 2);
    op.outputs([](const A &a) { return a.enable_float_output ? 1 : 3; }).output_names([](const A &a) {
      return a.enable_float_output ? std::vector<std::string>{"output"}
                                   : std::vector<std::string>{"output", "min_output", "max_output"};
    });
  }
  {
    using A = QuantizedEmbeddingAttrs;
    OpBuilder<A> op("_contrib_quantized_embedding");
    op.doc("Selects quantized rows by index; an index out of range selects the nearest row.")
        .required(&A::input_dim, "input_dim", "The number of rows.")
        .range(1)
        .required(&A::output_dim, "output_dim", "The length of a row.")
        .range(1)
        .attr(&A::dtype, "dtype", Dtype::kFloat32, "Ignored.")
        .ignored("sparse_grad", "boolean", "0", "Ignored.")
        .input("data", "Indices, any shape.")
        .input("weight", "Rows, int8.")
        .input("min_weight", "The lower bound of weight.")
        .input("max_weight", "The upper bound of weight.");
    with_bounds<A>(
        op,
        [](const A &a, Shapes &in, Shapes &out) {
          unify(in[1], Shape{a.input_dim, a.output_dim}, "weight");
          if (!in[0].rank_known()) return;
          std::vector<int64_t> lengths(in[0].begin(), in[0].end());
          lengths.push_back(a.output_dim);
          unify(out[0], Shape(lengths), "output");
        },
        [](const A &, Dtypes &in, Dtypes &out) {
          if (in[0] == Dtype::kNone) in[0] = Dtype::kFloat32;
          unify(in[1], Dtype::kInt8, "weight");
          unify(out[0], Dtype::kInt8, "output");
        },
        2);
  }
}

void define_norm() {
  using A = QuantizedBatchNormAttrs;
  OpBuilder<A> op("_contrib_quantized_batch_norm");
  op.doc(
        "Quantized BatchNorm by the moving statistics, as int8 with the range of the attributes. uint8 data loses its "
        "last bit.")
      .attr(&A::eps, "eps", double(1e-3f), "Added to the variance.")
      .ignored("momentum", "float", "0.899999976", "Ignored.")
      .ignored("fix_gamma", "boolean", "1", "Ignored: gamma is read.")
      .ignored("use_global_stats", "boolean", "0", "Ignored.")
      .ignored("output_mean_var", "boolean", "0", "Ignored.")
      .attr(&A::axis, "axis", 1, "The axis of the channels; negative counts from the last.")
      .ignored("cudnn_off", "boolean", "0", "Ignored.")
      .attr(&A::min_calib_range, "min_calib_range", std::nullopt, "The lower bound of the output.")
      .attr(&A::max_calib_range, "max_calib_range", std::nullopt, "The upper bound of the output.")
      .check([](A &a) {
        if (a.min_calib_range && a.max_calib_range) return;
        throw Error(Code::kInvalidArgument,
                    "attributes 'min_calib_range' and 'max_calib_range': expected both, found none", "min_calib_range");
      })
      .input("data", "int8 or uint8, channels on one of its axes.")
      .input("gamma", "Scale, one per channel.")
      .input("beta", "Offset, one per channel.")
      .aux("moving_mean", "Moving mean, one per channel.")
      .init("[\"zero\", {}]")
      .aux("moving_var", "Moving variance, one per channel.")
      .init("[\"one\", {}]")
      .input("min_data", "The lower bound of data, one number.")
      .input("max_data", "The upper bound of data.");
  with_bounds<A>(
      op,
      [](const A &a, Shapes &in, Shapes &out) {
        unify(in[0], out[0], "data");
        unify(out[0], in[0], "output");
        if (!in[0].rank_known()) return;
        int64_t &length = in[0][normalize_axis(a.axis, in[0].rank(), "axis")];
        Shape channels{length};
        for (size_t i = 1; i < 5; ++i) unify(in[i], channels, "input of a channel"), channels = in[i];
        if (length == Shape::kUnknown) length = channels[0];
      },
      [](const A &, Dtypes &in, Dtypes &out) {
        check_bytes(in[0], "data");
        for (size_t i = 1; i < 5; ++i) unify(in[i], Dtype::kFloat32, "input of a channel");
        unify(out[0], Dtype::kInt8, "output");
      },
      5);
}

[[maybe_unused]] const bool defined = [] {
  define_products();
  define_norm();
  define_shapes();
  define_others();
  return true;
}();

}  // namespace
}  // namespace cohort
