// SPDX-License-Identifier: Apache-2.0
// The gradient of an operator as a small graph of operators on its head gradients, inputs and outputs. The tape applies
// the graph, so the result can be differentiated again.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "op/op.hpp"

namespace cohort {

// An operator with its attributes, or its backward step treated as an operator: the inputs are those of the kernel
// "_backward_NAME" (see Gradient), the outputs the gradients. Backward steps are not in the registry, since users do
// not apply them by name and only their kernels know what they read.
struct Application {
  const Op *op = nullptr;
  bool backward = false;
  bool is_train = false;
  AttrMap attrs;
  Attrs parsed;

  std::string name() const { return backward ? "_backward_" + op->name : op->name; }
  std::vector<int> mutated(size_t num_inputs) const {  // inputs that it writes
    if (backward) return op->mutated_backward(parsed, num_inputs);
    return op->mutated(parsed, num_inputs, is_train ? PassKind::kTraining : PassKind::kInference);
  }
};

struct TensorType {
  Shape shape;
  Dtype dtype = Dtype::kNone;
};

class GradientGraph {
 public:
  // A value of the graph, or none, which counts as zero: sums skip it, and products with it are none.
  class Value {
   public:
    Value() = default;
    Value(GradientGraph *graph, int id) : graph_(graph), id_(id) {}
    explicit operator bool() const { return id_ >= 0; }
    GradientGraph &graph() const { return *graph_; }
    int id() const { return id_; }
    const Shape &shape() const { return graph_->values_[size_t(id_)].type.shape; }

   private:
    GradientGraph *graph_ = nullptr;
    int id_ = -1;
  };
  using Values = std::vector<Value>;

  enum class From { kHead, kInput, kOutput, kNode };
  struct ValueInfo {
    From from;
    int index;   // of the head, input, output or node
    int output;  // of a node
    TensorType type;
  };
  struct Node {
    Application what;
    std::vector<int> inputs, outputs;  // values
  };

  // For `what` applied to `inputs` giving `outputs`; has_head[i] tells whether a gradient flows back to output i.
  GradientGraph(const Application &what, std::vector<TensorType> inputs, std::vector<TensorType> outputs,
                const std::vector<bool> &has_head);
  GradientGraph(const GradientGraph &) = delete;
  GradientGraph &operator=(const GradientGraph &) = delete;

  // ---- for gradient definitions ----
  const Application &what() const { return what_; }
  template <typename A>
  const A &attrs() const {
    return what_.parsed.get<A>();
  }
  int num_inputs() const { return int(inputs_.size()); }
  int num_outputs() const { return int(outputs_.size()); }
  Value head(int output = 0);  // none if no gradient flows back
  // Values of the application. Only those that Gradient lists are kept; for a backward step, all inputs.
  Value input(int index);
  Value output(int index);
  const TensorType &input_type(int index) const { return inputs_[size_t(index)]; }
  const TensorType &output_type(int index) const { return outputs_[size_t(index)]; }
  const Shape &input_shape(int index) const { return inputs_[size_t(index)].shape; }
  Values apply_all(const std::string &op, const Values &inputs, const AttrMap &attrs = {});
  Value apply(const std::string &op, const Values &inputs, const AttrMap &attrs = {}) {
    return apply_all(op, inputs, attrs).front();
  }
  // Applies the operator's kernel "_backward_NAME" to all its inputs; `outputs` are the types of its outputs.
  Values apply_backward(const Values &inputs, const std::vector<TensorType> &outputs);
  // Applies the backward kernel of another operator that has no attributes and saves nothing in its forward pass.
  Value apply_backward_of(const std::string &op, const Values &inputs, const TensorType &output);
  Value zeros(const TensorType &type);
  void give(int input, Value gradient);  // adds to the gradient of an input

  Value reshape(Value value, const Shape &shape);
  Value sum_to(Value value, const Shape &shape);  // to a shape that broadcasts to the value's shape

  // ---- for the tape, which applies it ----
  const std::deque<ValueInfo> &values() const { return values_; }
  const std::vector<Node> &nodes() const { return nodes_; }     // in topological order
  const std::vector<int> &gradients() const { return given_; }  // per input; -1: none

 private:
  Value add(From from, int index, int output, TensorType type);
  Value leaf(From from, int index, const TensorType &type);
  Values add_node(Node node, const std::vector<TensorType> &types);

  const Application what_;
  const std::vector<TensorType> inputs_, outputs_;
  const std::vector<bool> has_head_;
  std::deque<ValueInfo> values_;  // a deque: references to shapes of values must stay valid
  std::vector<Node> nodes_;
  std::vector<int> given_;
};

using GraphValue = GradientGraph::Value;

GraphValue operator-(GraphValue a);
GraphValue operator+(GraphValue a, GraphValue b);  // operands of different shapes broadcast
GraphValue operator-(GraphValue a, GraphValue b);
GraphValue operator*(GraphValue a, GraphValue b);
GraphValue operator/(GraphValue a, GraphValue b);
GraphValue operator+(GraphValue a, double b);
GraphValue operator-(GraphValue a, double b);
GraphValue operator-(double a, GraphValue b);
GraphValue operator*(GraphValue a, double b);
GraphValue operator/(GraphValue a, double b);
GraphValue apply1(const char *op, GraphValue a);  // unary operator; none for none
GraphValue apply2(const char *broadcast_op, GraphValue a, GraphValue b);
GraphValue with_scalar(const char *op, GraphValue a, double scalar);

// ---- definitions -----------------------------------------------------------------------------------------------

using GradientFunction = void (*)(GradientGraph &);
// Defines the gradient of an operator, or of its backward step. Without one, an operator has the gradient that Gradient
// declares.
void define_gradient(const std::string &op, GradientFunction function);
void define_backward_gradient(const std::string &op, GradientFunction function);
// Throws kUnsupported for a backward step that has no gradient.
void differentiate(GradientGraph &graph);
[[noreturn]] void refuse_second_gradient(const GradientGraph &graph);
// Builds the gradient that Gradient declares from the plan's kernels: the head gradient itself, or one backward step.
void differentiate_once(GradientGraph &graph);
// Inputs that get a gradient, out of `num_inputs`.
std::vector<int> inputs_with_gradient(const Op &op, const Gradient &gradient, size_t num_inputs);

}  // namespace cohort
