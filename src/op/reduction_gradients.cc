// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions, softmax and related operators, and normalisations, as graphs. Each reads what the backward
// kernel of its operator reads.
#include <algorithm>

#include "op/batch_norm.hpp"
#include "op/gradient_graph.hpp"
#include "op/group_norm.hpp"
#include "op/l2_normalization.hpp"
#include "op/layer_norm.hpp"
#include "op/linalg.hpp"
#include "op/lrn.hpp"
#include "op/moments.hpp"
#include "op/reduce.hpp"
#include "op/softmax.hpp"

namespace cohort {
namespace {

using V = GraphValue;
using G = GradientGraph;

// ---- reductions --------------------------------------------------------------------------------------------------

// Reshapes a value to keep the reduced axes at length 1, so that it broadcasts with data.
V kept(G &g, V value) {
  const auto &a = g.attrs<ReduceAttrs>();
  const Shape &data = g.input_shape(0);
  return g.reshape(value, kept_shape(data, axes_to_reduce(a.axis, a.exclude, data.rank())));
}

// The slope of a product in each x, which holds no NaN. Where x is not 0 it is the product divided by x. Where x is the
// only zero it is the product of all others. Of two zeros, the slope in one is the other times the product of all
// others: 0 itself, but not if it is differentiated again. Gradients of third and higher order lack terms of three
// zeros.
V product_slope(G &g, V x) {
  AttrMap keep_axes = g.what().attrs;
  keep_axes["keepdims"] = "1";
  const auto over_axes = [&](const char *op, V of) { return g.apply(op, {of}, keep_axes); };
  const auto where = [&](V condition, V yes, V no) { return g.apply("where", {condition, yes, no}); };
  const V zero = with_scalar("_equal_scalar", x, 0.0);
  const V nonzero = where(zero, apply1("ones_like", x), x), zeros = where(zero, x, apply1("zeros_like", x));
  const V num_zeros = over_axes("sum", zero);
  const V other_zeros = with_scalar("_equal_scalar", num_zeros, 1.0) +
                        with_scalar("_equal_scalar", num_zeros, 2.0) * (over_axes("sum", zeros) - zeros);
  return where(zero, over_axes("prod", nonzero) * other_zeros, kept(g, g.output(0)) / nonzero);
}

void of_prod(G &g) {
  if (g.head()) g.give(0, kept(g, g.head()) * product_slope(g, g.input(0)));
}

void of_extremum(G &g) {
  if (g.head()) g.give(0, kept(g, g.head()) * apply2("broadcast_equal", g.input(0), kept(g, g.output(0))));
}

// 1 for numbers, 0 for NaN, which reductions treat as the neutral element.
V is_number(V a) { return a.graph().apply("_equal", {a, a}); }

void of_nansum(G &g) {
  if (g.head()) g.give(0, kept(g, g.head()) * is_number(g.input(0)));
}

void of_nanprod(G &g) {
  if (!g.head()) return;
  const V number = is_number(g.input(0)), ones = apply1("ones_like", g.input(0));
  const V slope = kept(g, g.head()) * product_slope(g, g.apply("where", {number, g.input(0), ones}));
  g.give(0, g.apply("where", {number, slope, apply1("zeros_like", slope)}));
}

void of_square_sum(G &g) {
  if (g.head()) g.give(0, kept(g, g.head()) * g.input(0) * 2.0);
}

void of_norm(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<NormAttrs>();
  const Shape &data = g.input_shape(0);
  const Shape wide = kept_shape(data, axes_to_reduce(a.axis, false, data.rank()));
  V head = g.reshape(g.head(), wide);
  if (a.ord == 1) {
    if (a.out_dtype != Dtype::kNone) head = g.apply("Cast", {head}, {{"dtype", dtype_name(g.input_type(0).dtype)}});
    return g.give(0, head * apply1("sign", g.input(0)));
  }
  V norm = g.reshape(g.output(0), wide);
  if (a.out_dtype != Dtype::kNone) {
    const AttrMap type{{"dtype", dtype_name(g.input_type(0).dtype)}};
    head = g.apply("Cast", {head}, type);
    norm = g.apply("Cast", {norm}, type);
  }
  g.give(0, head / (norm + with_scalar("_equal_scalar", norm, 0.0)) * g.input(0));  // zeros if the norm is 0
}

// rhs contributes only its shape.
void of_adjoint_of_broadcast_like(G &g) {
  if (g.head()) g.give(0, g.apply("broadcast_like", {g.head(), g.input(0)}));
}

// Gradients of mean and variance. The mean is read as output 0, so a second gradient also flows through that output.
void of_moments(G &g) {
  const auto &a = g.attrs<MomentsAttrs>();
  const Shape &data = g.input_shape(0);
  const Shape wide = kept_shape(data, axes_to_reduce(a.axes, false, data.rank(), "axes"));
  if ((!g.head(0) && !g.head(1)) || data.size() == 0) return differentiate_once(g);
  const double count = double(data.size()) / double(wide.size());
  V slope;
  if (g.head(0)) slope = g.apply("broadcast_like", {g.reshape(g.head(0), wide) / count, g.input(0)});
  if (g.head(1)) {
    slope = slope + (g.input(0) - g.reshape(g.output(0), wide)) * (g.reshape(g.head(1), wide) * (2 / count));
  }
  g.give(0, slope);
}

// ---- softmax -----------------------------------------------------------------------------------------------------

V sum_along(V a, const std::string &axis) { return a.graph().apply("sum", {a}, {{"axis", axis}, {"keepdims", "1"}}); }

// y (h - sum(y h)), in the type of data.
V softmax_slope(V h, V y, const std::string &axis) {
  const V weighted = y * h;
  return weighted - y * sum_along(weighted, axis);
}

void of_softmax(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<SoftmaxAttrs>();
  const bool is_scalar = g.input(0).shape().rank() == 0;
  const std::string axis = is_scalar ? "None" : std::to_string(a.axis), &name = g.what().op->name;
  V slope;
  if (name == "log_softmax") {
    slope = g.head() - apply1("exp", g.output(0)) * sum_along(g.head(), axis);
  } else {
    slope = softmax_slope(g.head(), g.output(0), axis);
  }
  if (name == "softmin") slope = -slope;
  if (a.temperature) slope = slope / *a.temperature;
  if (g.output_type(0).dtype != g.input_type(0).dtype) {
    slope = g.apply("Cast", {slope}, {{"dtype", dtype_name(g.input_type(0).dtype)}});
  }
  g.give(0, slope);
}

void of_softmax_activation(G &g) {
  if (!g.head()) return;
  const bool channel = g.attrs<SoftmaxActivationAttrs>().mode == SoftmaxActivationAttrs::kChannel;
  g.give(0, softmax_slope(g.head(), g.output(0), channel ? "1" : "-1"));
}

void of_softmax_cross_entropy(G &g) {
  if (!g.head()) return;
  const V data = g.input(0);
  const AttrMap classes{{"depth", std::to_string(data.shape()[1])}, {"dtype", dtype_name(g.input_type(0).dtype)}};
  g.give(0, g.head() * (g.apply("softmax", {data}) - g.apply("one_hot", {g.input(1)}, classes)));
}

// ---- normalisations ----------------------------------------------------------------------------------------------

V mean_over(V a, const std::string &axes) { return a.graph().apply("mean", {a}, {{"axis", axes}, {"keepdims", "1"}}); }

// Gradients of (x - mean) / sqrt(var + eps) * gamma + beta. `gamma` broadcasts with x and h.
void give_normalised(G &g, V x, V h, V gamma, const std::string &axes, double eps, bool by_gamma = true) {
  const V centred = x - mean_over(x, axes), scale = apply1("rsqrt", mean_over(centred * centred, axes) + eps);
  const V unit = centred * scale, weighted = h * gamma;
  const V slope = (weighted - mean_over(weighted, axes) - unit * mean_over(weighted * unit, axes)) * scale;
  g.give(0, g.reshape(slope, g.input_shape(0)));
  if (by_gamma) g.give(1, g.reshape(g.sum_to(h * unit, gamma.shape()), g.input_shape(1)));
  g.give(2, g.reshape(g.sum_to(h, gamma.shape()), g.input_shape(1)));
}

// The shape of one number per index of the axis that broadcasts with the data: its length is data's, all others are 1.
Shape along_axis(const Shape &data, int axis) {
  Shape wide(std::vector<int64_t>(size_t(data.rank()), 1));
  wide[axis] = data[axis];
  return wide;
}

Tuple axes_but(const Shape &data, int axis) {
  Tuple axes;
  for (int i = 0; i < data.rank(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

void of_layer_norm(G &g) {
  const auto &a = g.attrs<LayerNormAttrs>();
  if (a.output_mean_var) return differentiate_once(g);
  if (!g.head()) return;
  const Shape &data = g.input_shape(0);
  const int axis = normalize_axis(a.axis, data.rank(), "LayerNorm");
  give_normalised(g, g.input(0), g.head(), g.reshape(g.input(1), along_axis(data, axis)), std::to_string(axis),
                  double(a.eps));
}

void of_group_norm(G &g) {  // and InstanceNorm
  const auto &a = g.attrs<GroupNormAttrs>();
  if (a.output_mean_var) return differentiate_once(g);
  if (!g.head()) return;
  const Shape &data = g.input_shape(0);
  const int64_t groups = g.input_shape(1)[0], size = data.size();
  if (size == 0) return differentiate_once(g);
  const Shape rows{data[0], groups, size / (data[0] * groups)};
  give_normalised(g, g.reshape(g.input(0), rows), g.reshape(g.head(), rows), g.reshape(g.input(1), Shape{1, groups, 1}),
                  "2", double(a.eps));
}

// With the statistics of the batch.
void of_batch_norm(G &g) {
  const auto &a = g.attrs<BatchNormAttrs>();
  if (!g.what().is_train || a.use_global_stats || a.output_mean_var) return differentiate_once(g);
  if (!g.head()) return;
  const Shape &data = g.input_shape(0);
  const int channels = normalize_axis(a.axis, data.rank(), "BatchNorm");
  const Shape wide = along_axis(data, channels);
  const Tuple axes = axes_but(data, channels);
  const V gamma = g.reshape(g.input(1), wide);
  give_normalised(g, g.input(0), g.head(), a.fix_gamma ? apply1("ones_like", gamma) : gamma, print_tuple(axes), a.eps,
                  !a.fix_gamma);
}

// The backward step with moving statistics is linear in the head gradient and in x: it computes (x - mean) * scale. Its
// result for a head gradient of ones gives the scale and, through the gradient of gamma, the mean.
void of_backward_batch_norm(G &g) {
  const auto &a = g.attrs<BatchNormAttrs>();
  const bool by_moving = !g.what().is_train || a.use_global_stats;
  if (!by_moving || a.output_mean_var || g.input_type(1).dtype != g.input_type(2).dtype) refuse_second_gradient(g);
  const V h = g.input(0), x = g.input(1), gamma = g.input(2), by_x = g.head(0), by_gamma = g.head(1),
          by_beta = g.head(2);
  const Shape &data = g.input_shape(1);
  const int channels = normalize_axis(a.axis, data.rank(), "BatchNorm");
  const Shape wide = along_axis(data, channels);
  const Tuple axes = axes_but(data, channels);
  if (data.size() == 0) return;
  const auto widen = [&](V value) { return value ? g.reshape(value, wide) : value; };
  const std::vector<V> ones = g.apply_backward({apply1("ones_like", h), x, apply1("ones_like", gamma)},
                                               {g.output_type(0), g.output_type(1), g.output_type(2)});
  const V scale = ones[0], of_beta = widen(by_beta) * apply1("ones_like", h);
  g.give(0, (a.fix_gamma ? by_x * scale : by_x * scale * widen(gamma)) + of_beta);
  if (a.fix_gamma) return;
  g.give(2, g.reshape(g.sum_to(by_x * h * scale, wide), g.input_shape(2)));
  if (!by_gamma) return;
  const V unit =
      (x - mean_over(x, print_tuple(axes))) * scale + widen(ones[1]) * (double(wide.size()) / double(data.size()));
  g.give(0, widen(by_gamma) * unit);
  g.give(1, widen(by_gamma) * h * scale);
}

// x * norm^-beta, where norm contains the sum of squares over channels, computed as a pooling with channels as rows.
void of_lrn(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<LrnAttrs>();
  const Shape &data = g.input_shape(0);
  if (data.size() == 0) return differentiate_once(g);
  const int64_t reach = (a.nsize - 1) / 2;
  const AttrMap window{
      {"kernel", print_tuple({2 * reach + 1, 1})}, {"pad", print_tuple({reach, 0})}, {"pool_type", "sum"}};
  const auto sums = [&](V value) {
    const V rows = g.reshape(value, Shape{data[0], 1, data[1], data[2] * data[3]});
    return g.reshape(g.apply("Pooling", {rows}, window), data);
  };
  const double factor = double(a.alpha) / double(a.nsize), beta = double(a.beta);
  const V x = g.input(0), h = g.head();
  const V norm = sums(x * x) * factor + double(a.knorm), power = with_scalar("_power_scalar", norm, -beta);
  g.give(0, h * power - x * sums(h * x * power / norm) * (2 * factor * beta));
}

void of_l2_normalization(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<L2NormalizationAttrs>();
  const Shape &data = g.input_shape(0);
  Tuple axes;
  for (int axis = 1; axis < data.rank(); ++axis) {
    if (a.mode == L2NormalizationAttrs::kInstance || (a.mode == L2NormalizationAttrs::kChannel) == (axis == 1)) {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) return differentiate_once(g);
  const std::string over = print_tuple(axes);
  const V scale = apply1("rsqrt", sum_along(apply1("square", g.input(0)), over) + double(a.eps));
  const V unit = g.input(0) * scale;
  g.give(0, (g.head() - unit * sum_along(unit * g.head(), over)) * scale);
}

// ---- others ------------------------------------------------------------------------------------------------------

// alpha (h + h^T) A; transposed: alpha A (h + h^T).
void of_syrk(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<LinalgSyrkAttrs>();
  const V sum = g.head() + g.apply("SwapAxis", {g.head()}, {{"dim1", "-1"}, {"dim2", "-2"}});
  const V product =
      a.transpose ? g.apply("_linalg_gemm2", {g.input(0), sum}) : g.apply("_linalg_gemm2", {sum, g.input(0)});
  g.give(0, product * a.alpha);
}

[[maybe_unused]] const bool defined = [] {
  define_gradient("prod", of_prod);
  define_gradient("max", of_extremum);
  define_gradient("min", of_extremum);
  define_gradient("nansum", of_nansum);
  define_gradient("nanprod", of_nanprod);
  define_gradient("_square_sum", of_square_sum);
  define_gradient("norm", of_norm);
  define_backward_gradient("broadcast_like", of_adjoint_of_broadcast_like);
  for (const char *name : {"softmax", "softmin", "log_softmax"}) define_gradient(name, of_softmax);
  define_gradient("SoftmaxActivation", of_softmax_activation);
  define_gradient("softmax_cross_entropy", of_softmax_cross_entropy);
  define_gradient("_linalg_syrk", of_syrk);
  define_gradient("BatchNorm", of_batch_norm);
  define_backward_gradient("BatchNorm", of_backward_batch_norm);
  define_gradient("LRN", of_lrn);
  define_gradient("moments", of_moments);
  define_gradient("LayerNorm", of_layer_norm);
  define_gradient("GroupNorm", of_group_norm);
  define_gradient("InstanceNorm", of_group_norm);
  define_gradient("L2Normalization", of_l2_normalization);
  return true;
}();

}  // namespace
}  // namespace cohort
