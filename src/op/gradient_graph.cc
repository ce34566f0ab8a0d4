// SPDX-License-Identifier: Apache-2.0
#include "op/gradient_graph.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace cohort {

using Value = GradientGraph::Value;
using Values = GradientGraph::Values;

GradientGraph::GradientGraph(const Application &what, std::vector<TensorType> inputs, std::vector<TensorType> outputs,
                             const std::vector<bool> &has_head)
    : what_(what),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      has_head_(has_head),
      given_(inputs_.size(), -1) {}

Value GradientGraph::add(From from, int index, int output, TensorType type) {
  values_.push_back({from, index, output, std::move(type)});
  return Value(this, int(values_.size()) - 1);
}

Value GradientGraph::leaf(From from, int index, const TensorType &type) {
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].from == from && values_[v].index == index) return Value(this, int(v));
  }
  return add(from, index, 0, type);
}

Value GradientGraph::head(int output) {
  return has_head_[size_t(output)] ? leaf(From::kHead, output, outputs_[size_t(output)]) : Value();
}
Value GradientGraph::input(int index) { return leaf(From::kInput, index, inputs_[size_t(index)]); }
Value GradientGraph::output(int index) { return leaf(From::kOutput, index, outputs_[size_t(index)]); }

Values GradientGraph::add_node(Node node, const std::vector<TensorType> &types) {
  node.what.is_train = what_.is_train;
  Values results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(add(From::kNode, int(nodes_.size()), int(i), types[i]));
    node.outputs.push_back(results.back().id());
  }
  nodes_.push_back(std::move(node));
  return results;
}

Values GradientGraph::apply_all(const std::string &name, const Values &inputs, const AttrMap &attrs) {
  Node node;
  node.what.op = &get_op(name);
  node.what.attrs = attrs;
  node.what.parsed = node.what.op->parse(attrs);
  Shapes in_shapes, out_shapes(size_t(node.what.op->num_outputs(node.what.parsed)));
  Dtypes in_dtypes, out_dtypes(out_shapes.size(), Dtype::kNone);
  for (const Value &value : inputs) {
    node.inputs.push_back(value.id());
    in_shapes.push_back(values_[size_t(value.id())].type.shape);
    in_dtypes.push_back(values_[size_t(value.id())].type.dtype);
  }
  node.what.op->infer_shape(node.what.parsed, in_shapes, out_shapes);
  node.what.op->infer_dtype(node.what.parsed, in_dtypes, out_dtypes);
  std::vector<TensorType> types;
  const size_t visible = size_t(node.what.op->num_visible(node.what.parsed));
  for (size_t i = 0; i < visible; ++i) types.push_back({out_shapes[i], out_dtypes[i]});
  return add_node(std::move(node), types);
}

Values GradientGraph::apply_backward(const Values &inputs, const std::vector<TensorType> &outputs) {
  Node node;
  node.what = what_;
  node.what.backward = true;
  for (const Value &value : inputs) node.inputs.push_back(value.id());
  return add_node(std::move(node), outputs);
}

Value GradientGraph::apply_backward_of(const std::string &op, const Values &inputs, const TensorType &output) {
  Node node;
  node.what.op = &get_op(op);
  node.what.backward = true;
  node.what.parsed = node.what.op->parse({});
  for (const Value &value : inputs) node.inputs.push_back(value.id());
  return add_node(std::move(node), {output}).front();
}

Value GradientGraph::zeros(const TensorType &type) {
  const std::vector<int64_t> lengths(type.shape.begin(), type.shape.end());
  return apply("_zeros", {}, {{"shape", print_tuple(lengths)}, {"dtype", dtype_name(type.dtype)}});
}

void GradientGraph::give(int input, Value gradient) {
  if (!gradient) return;
  int &given = given_[size_t(input)];
  given = given < 0 ? gradient.id() : (Value(this, given) + gradient).id();
}

Value GradientGraph::reshape(Value value, const Shape &shape) {
  if (!value || value.shape() == shape) return value;
  const std::vector<int64_t> lengths(shape.begin(), shape.end());
  return apply("Reshape", {value}, {{"shape", print_tuple(lengths)}});
}

Value GradientGraph::sum_to(Value value, const Shape &shape) {
  if (!value || value.shape() == shape) return value;
  const int lead = value.shape().rank() - shape.rank();
  Tuple axes;
  for (int axis = 0; axis < value.shape().rank(); ++axis) {
    if (axis < lead || shape[axis - lead] != value.shape()[axis]) axes.push_back(axis);
  }
  if (!axes.empty()) value = apply("sum", {value}, {{"axis", print_tuple(axes)}, {"keepdims", "1"}});
  return reshape(value, shape);
}

// ---- arithmetic --------------------------------------------------------------------------------------------------

GraphValue apply1(const char *op, GraphValue a) { return a ? a.graph().apply(op, {a}) : a; }

GraphValue apply2(const char *broadcast_op, GraphValue a, GraphValue b) {
  return a && b ? a.graph().apply(broadcast_op, {a, b}) : GraphValue();
}

GraphValue with_scalar(const char *op, GraphValue a, double scalar) {
  return a ? a.graph().apply(op, {a}, {{"scalar", print_float(scalar, 17)}}) : a;
}

namespace {

GraphValue binary(const char *elementwise, const char *broadcast, GraphValue a, GraphValue b) {
  return a.graph().apply(a.shape() == b.shape() ? elementwise : broadcast, {a, b});
}

}  // namespace

GraphValue operator-(GraphValue a) { return apply1("negative", a); }
GraphValue operator+(GraphValue a, GraphValue b) {
  return !a ? b : !b ? a : binary("elemwise_add", "broadcast_add", a, b);
}
GraphValue operator-(GraphValue a, GraphValue b) {
  return !a ? -b : !b ? a : binary("elemwise_sub", "broadcast_sub", a, b);
}
GraphValue operator*(GraphValue a, GraphValue b) {
  return !a || !b ? GraphValue() : binary("elemwise_mul", "broadcast_mul", a, b);
}
GraphValue operator/(GraphValue a, GraphValue b) { return !a ? a : binary("elemwise_div", "broadcast_div", a, b); }
GraphValue operator+(GraphValue a, double b) { return with_scalar("_plus_scalar", a, b); }
GraphValue operator-(GraphValue a, double b) { return with_scalar("_minus_scalar", a, b); }
GraphValue operator-(double a, GraphValue b) { return with_scalar("_rminus_scalar", b, a); }
GraphValue operator*(GraphValue a, double b) { return with_scalar("_mul_scalar", a, b); }
GraphValue operator/(GraphValue a, double b) { return with_scalar("_div_scalar", a, b); }

// ---- definitions -------------------------------------------------------------------------------------------------

namespace {

// Filled before main by the definitions in this folder, read-only afterwards.
std::unordered_map<std::string, GradientFunction> &functions(bool backward) {
  static auto *const all = new std::unordered_map<std::string, GradientFunction>[2];
  return all[backward];
}

}  // namespace

void define_gradient(const std::string &op, GradientFunction function) { functions(false)[op] = function; }
void define_backward_gradient(const std::string &op, GradientFunction function) { functions(true)[op] = function; }

void refuse_second_gradient(const GradientGraph &graph) {
  throw Error(Code::kUnsupported,
              text("operator ", graph.what().name(), ", the gradient of ", graph.what().op->name,
                   ", has no gradient itself: it cannot be differentiated twice"),
              graph.what().op->name);
}

void differentiate(GradientGraph &graph) {
  const auto &defined = functions(graph.what().backward);
  const auto found = defined.find(graph.what().op->name);
  if (found != defined.end()) return found->second(graph);
  if (graph.what().backward) refuse_second_gradient(graph);
  differentiate_once(graph);
}

void differentiate_once(GradientGraph &g) {
  const Op &op = *g.what().op;
  const Gradient gradient = op.gradient_of(g.what().parsed);
  if (gradient.kind == Gradient::Kind::kNone) return;
  const std::vector<int> of = inputs_with_gradient(op, gradient, size_t(g.num_inputs()));
  if (gradient.kind == Gradient::Kind::kPassThrough) {
    for (int k : of) g.give(k, g.reshape(g.head(), g.input_shape(k)));
    return;
  }
  Values inputs;
  if (gradient.head_grads) {
    bool any = false;
    for (int j = 0; j < op.num_visible(g.what().parsed); ++j) any = any || g.head(j);
    if (!any) return;
    for (int j = 0; j < op.num_visible(g.what().parsed); ++j) {
      inputs.push_back(g.head(j) ? g.head(j) : g.zeros(g.output_type(j)));
    }
  }
  for (int i : gradient.inputs) {
    if (i < g.num_inputs()) inputs.push_back(g.input(i));
  }
  for (int j : gradient.outputs) inputs.push_back(g.output(j));
  std::vector<TensorType> types;
  for (int k : of) types.push_back(g.input_type(k));
  const Values made = g.apply_backward(inputs, types);
  for (size_t i = 0; i < of.size(); ++i) g.give(of[i], made[i]);
}

std::vector<int> inputs_with_gradient(const Op &op, const Gradient &gradient, size_t num_inputs) {
  std::vector<int> of = gradient.of;
  if (of.empty() && !op.variadic.empty()) {
    of.resize(num_inputs);
    std::iota(of.begin(), of.end(), 0);
  }
  of.erase(std::remove_if(of.begin(), of.end(), [&](int k) { return size_t(k) >= num_inputs; }), of.end());
  return of;
}

}  // namespace cohort
