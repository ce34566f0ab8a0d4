// SPDX-License-Identifier: Apache-2.0
// An operator: names, attributes, inputs and outputs, inference and gradient, as data without kernels. Each
// file in this folder defines an operator or a family with COHORT_OPERATOR; symbol, plan, executor and the boundary
// read the registry.
#pragma once

#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/attributes.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/shape.hpp"
#include "op/subgraph.hpp"

namespace cohort {

using Tuple = std::vector<int64_t>;  // an attribute such as kernel=(5, 5)

// The parsed attributes of one node: a shared struct of its operator's type, immutable after parsing.
class Attrs {
 public:
  Attrs() = default;
  template <typename T>
  explicit Attrs(std::shared_ptr<T> value) : value_(std::move(value)) {}
  // T must be the struct with which the operator was defined.
  template <typename T>
  const T &get() const {
    return *static_cast<const T *>(value_.get());
  }
  const std::shared_ptr<const void> &pointer() const { return value_; }

 private:
  std::shared_ptr<const void> value_;
};

struct NoAttrs {};

constexpr int kMaxOutputs = 65536;  // per node; bounds counts given by attributes in untrusted text
constexpr int kMaxInputs = 65536;   // likewise

// One attribute, for parsing and for reflection.
struct AttrField {
  std::string name;
  std::string type;  // in MXNet's format: "int", "float", "boolean", "Shape(tuple)", "{'max', 'avg'}", "int or None"
  bool required = false;
  std::string default_text;  // as MXNet prints it; meaningless if required
  std::string doc;
  // Into the operator's struct; throws kInvalidArgument.
  std::function<void(void *target, const std::string &text)> parse;
  // The numbers the struct holds for the attribute; empty: none.
  std::function<std::vector<double>(const void *)> numbers = {};
  double low = -HUGE_VAL, high = HUGE_VAL;  // allowed range of each number

  // Parses the text; throws kInvalidArgument, also if out of range.
  void set(void *target, const std::string &text) const;
};

struct InputField {
  std::string name;
  std::string doc;
  std::function<bool(const Attrs &)> present;  // empty: always
  bool aux = false;                            // an auxiliary state; these come last, with few exceptions
  std::string init = {};                       // `__init__` of a variable created for this input (SYM-08)
};

// The inputs and outputs of a node's backward step. Inputs of the kernel "_backward_NAME", in order: the gradients of
// the visible outputs (if head_grads), then the listed inputs, then the listed outputs. Outputs: one gradient per entry
// of `of`. It can also read what the forward kernel saved (StepSpec::saved_bytes).
struct Gradient {
  enum class Kind {
    kNone,         // no gradient flows back: inputs get zero gradients
    kKernel,       // a "_backward_NAME" step
    kPassThrough,  // each input in `of` gets the head gradient itself (elemwise_add, _copy), reshaped for views
  };
  Kind kind = Kind::kNone;
  // Inputs that get a gradient; others get none (labels, indices). Variadic operators: empty means all.
  std::vector<int> of;
  bool head_grads = true;
  std::vector<int> inputs;
  std::vector<int> outputs;
  bool with_forward = false;     // the step reads what the forward kernel saved, or queries that kernel
  std::vector<int> writes = {};  // inputs of the operator that the step overwrites

  bool reads_head_grads() const { return kind == Kind::kPassThrough || (kind == Kind::kKernel && head_grads); }

  // A "_backward_NAME" step that reads head gradients and the listed inputs and outputs.
  static Gradient by_kernel(std::vector<int> of, std::vector<int> inputs = {}, std::vector<int> outputs = {}) {
    return {Kind::kKernel, std::move(of), true, std::move(inputs), std::move(outputs)};
  }
  Gradient beside_forward() const {
    Gradient g = *this;
    return g.with_forward = true, g;
  }
  Gradient without_head_grads() const {
    Gradient g = *this;
    return g.head_grads = false, g;
  }
};

// A layer whose output is linear in a weight (input 1) and an optional bias (input 2): row c of the weight and element
// c of the bias produce channel c of the output. A channel scaling after the layer can therefore be folded into both.
struct LinearLayer {
  int channel_axis = 1;  // of the output
  bool has_bias = false;
  Attrs with_bias;  // the same layer with a bias
};

// An operator that, at inference, maps each channel of input 0 to scale * x + shift, both computed from its other
// inputs.
struct ChannelScaling {
  int channel_axis = 1;  // negative: from the last
  // kernel: (weight[, bias] of a LinearLayer, other inputs) -> (weight, bias) of the folded layer.
  const char *fold = "";
  Attrs fold_attrs;
};

struct PointwiseRule;

// Attribute key for the number of inputs of variadic operators that have no such attribute in MXNet. Callers may set
// it; nodes do not keep it.
inline constexpr char kNumInputsAttr[] = "__num_inputs__";

struct Op {
  std::string name;                  // MXNet's own
  std::vector<std::string> aliases;  // further names in files and calls
  std::string doc;
  std::vector<AttrField> attrs;
  std::vector<InputField> inputs;  // for a variadic operator the first is the prefix of their names; see input_fields()
  // If set, the inputs depend on the attributes, and this replaces the list above.
  std::function<const std::vector<InputField> &(const Attrs &)> own_inputs;
  std::string variadic;  // attribute that holds the number of inputs ("num_args"); empty: fixed inputs
  // Whether the operator has an attribute for the count in MXNet.
  bool has_count_attr() const { return !variadic.empty() && variadic != kNumInputsAttr; }
  // Names of variadic inputs; empty: prefix and number.
  std::function<std::string(const Attrs &, int index, int count)> name_input;
  std::function<std::shared_ptr<void>()> new_attrs;  // creates the attribute struct with its defaults
  // Names of sub-graphs given before the inputs: "cond", "func"; they count as inputs.
  std::vector<const char *> subgraphs;
  std::function<void(void *, const Subgraphs &, int num_args)> set_subgraphs;  // called before check_attrs
  std::function<const Subgraphs &(const Attrs &)> subgraphs_of;                // empty: the operator has none
  // Handles unknown attributes; empty: they are errors.
  std::function<void(void *, const std::string &key, const std::string &value)> other_attrs;
  std::function<void(void *)> check_attrs;  // checks all attributes together; may complete them

  std::function<int(const Attrs &)> count_outputs;  // empty: 1
  std::function<int(const Attrs &)> count_visible;  // empty: all; outputs beyond this count are internal
  std::function<std::vector<std::string>(const Attrs &)> name_outputs;  // empty: "output", or "output0", "output1", ...
  bool numbers_one_output = false;                                      // a single output is also named "output0"

  // Complete in and out in both directions as far as possible; unknown parts stay kUnknown. Throw kShape or kDtype with
  // expected and found on a contradiction; the caller adds the node's name. Auxiliary states are the last inputs.
  std::function<void(const Attrs &, Shapes &in, Shapes &out)> infer_shape;
  std::function<void(const Attrs &, Dtypes &in, Dtypes &out)> infer_dtype;  // empty: all have one type

  std::function<Gradient(const Attrs &)> gradient;  // empty: Kind::kNone
  bool loss = false;                                // starts a gradient itself; see is_loss()
  bool adds_penalty = false;                        // its gradient has a term that no factor of head gradients reaches
  bool view = false;  // output 0 is input 0 in another shape, without work or copy (Reshape, Flatten)
  std::vector<std::pair<int, int>> inplace;           // (input, output) pairs that may share memory
  std::vector<std::pair<int, int>> backward_inplace;  // likewise for the backward kernel
  std::vector<int> mutates;  // inputs the forward kernel writes (auxiliary states, weights of an update); see mutated()
  bool random = false;       // its kernels draw from Args::random
  std::function<bool(const Attrs &)> draws;  // whether a random operator draws with these attributes; empty: always
  bool syncs_batch = false;                  // in training, its kernels combine results across the devices of a group
  bool stateful = false;  // its kernels hold state of one node: plans that contain it are never shared
  // If set, depends on the attributes and replaces `mutates`.
  std::function<std::vector<int>(const Attrs &, PassKind)> own_mutates;

  // Ways in which the plan may transform a node instead of running it as it is. Unset: none.
  const PointwiseRule *pointwise = nullptr;      // element-wise functors (op/pointwise.hpp)
  std::function<int(const Attrs &)> activation;  // applies an ActivationAttrs::Type (op/activation.hpp) to each element
  bool sum = false;                              // output = input 0 + input 1, all of one shape
  std::function<LinearLayer(const Attrs &)> linear_layer;
  // has_bias: whether the layer before it has a bias.
  std::function<ChannelScaling(const Attrs &, bool has_bias)> channel_scaling;
  // Additions and multiplications of the forward step; set if there are more than a few per element.
  std::function<double(const Attrs &, const Shapes &in, const Shapes &out)> flops;
  // How the operator behaves if the network computes in a narrower type than its arrays (PlanRequest::compute_dtype).
  enum class Precision : uint8_t {
    kOwn,      // keeps the network's types: sums, norms, losses and others that need the precision
    kNarrow,   // computes in the narrow type: matrix products, which take most of the time
    kFollows,  // accepts narrow inputs as they are: loses no further precision and moves half the bytes
  } precision = Precision::kOwn;
  bool names_only_input = false;  // for monitors (MON-04), a single input is named by its own name, not "input0"

  int num_outputs(const Attrs &a) const { return count_outputs ? count_outputs(a) : 1; }
  int num_visible(const Attrs &a) const { return count_visible ? count_visible(a) : num_outputs(a); }
  Gradient gradient_of(const Attrs &a) const { return gradient ? gradient(a) : Gradient(); }
  // Ignores head gradients and starts its own gradient (BWD-03).
  bool is_loss(const Attrs &a) const { return loss && !gradient_of(a).reads_head_grads(); }
  // For a variadic operator: the number of inputs from the attribute, or num_given without one; otherwise 0. Throws
  // kInvalidArgument. Used for nodes that are composed, read from a file or applied at once.
  int count_args(const AttrMap &source, size_t num_given) const;
  // Names of this node's inputs. num_args is the result of count_args().
  std::vector<std::string> input_names(const Attrs &a, int num_args) const;
  const std::vector<InputField> &declared_inputs(const Attrs &a) const { return own_inputs ? own_inputs(a) : inputs; }
  std::vector<const InputField *> input_fields(const Attrs &a, int num_args) const;  // one per input, in the same order
  std::vector<std::string> output_names(const Attrs &a) const;
  std::string output_name(const Attrs &a, int index) const;  // one of them, avoiding the whole list where possible
  int num_inputs(const Attrs &a, int num_args) const { return int(input_names(a, num_args).size()); }
  int num_aux(const Attrs &a) const;
  // Inputs of this node that a forward kernel writes: in inference, without the auxiliary states.
  std::vector<int> mutated(const Attrs &a, size_t num_inputs, PassKind pass = PassKind::kTraining) const;
  // Inputs of its backward step that the step writes.
  std::vector<int> mutated_backward(const Attrs &a, size_t num_inputs) const;
  // True for the operator itself or for one in its sub-graphs.
  bool is_random(const Attrs &a) const {
    return (random && (!draws || draws(a))) || any_subgraph(a, &Subgraph::is_random);
  }
  bool is_stateful(const Attrs &a) const { return stateful || any_subgraph(a, &Subgraph::is_stateful); }
  // Parses text into the struct. Keys of the form __x__ are skipped. Any other unknown key (kName; the message lists
  // the operator's attributes: SYM-07), a missing required one (kName), bad text (kInvalidArgument) or a wrong number
  // of sub-graphs (kInvalidArgument) is an error.
  Attrs parse(const AttrMap &source, const Subgraphs &given = {}) const;

 private:
  bool any_subgraph(const Attrs &a, bool (Subgraph::*is)() const) const;
};

// Operators by name and alias. Filled before main, read-only afterwards. Reading throws kInternal if a name was given
// twice.
class OpRegistry {
 public:
  Op &add(Op op);  // may be modified until the first look-up
  const Op *find(const std::string &name) const;
  const std::map<std::string, const Op *> &names() const;  // names and aliases
  const std::deque<Op> &ops() const { return ops_; }

 private:
  std::deque<Op> ops_;  // a deque: builders hold references
  mutable std::once_flag once_;
  mutable std::map<std::string, const Op *> names_;
  mutable std::string duplicates_;  // names given twice, if any
};
OpRegistry &op_registry();

// By name or alias; null if there is no such operator.
const Op *find_op(const std::string &name);
const Op &get_op(const std::string &name);  // throws kName
std::vector<const Op *> list_ops();         // ordered by name

// ---- helpers for inference -----------------------------------------------------------------------------------------

// Merges `known` into `shape`; throws kShape "NAME: expected (..), found (..)".
void unify(Shape &shape, const Shape &known, const char *name);
void unify(Dtype &dtype, Dtype known, const char *name);
// For unnamed inputs, identified by index in messages.
void unify(Shape &shape, const Shape &known, size_t input);
void unify(Dtype &dtype, Dtype known, size_t input);
// Merges the shape of input number `input` into `all`.
void join(Shape &all, const Shape &shape, size_t input);
void infer_same_shape(const Attrs &, Shapes &in, Shapes &out);  // every input and output has one shape
void infer_same_dtype(const Attrs &, Dtypes &in, Dtypes &out);
void infer_same_float(const Attrs &, Dtypes &in, Dtypes &out);  // likewise, and a floating type

// ---- building an operator ------------------------------------------------------------------------------------------

namespace detail {
template <typename F>
struct FieldType {  // how a C++ field type is parsed and named; specialised in op_fields.hpp
  static_assert(!std::is_same_v<F, F>, "no attribute has this type");
};
}  // namespace detail

// COHORT_OPERATOR(softmax, SoftmaxAttrs).doc("..").attr(&SoftmaxAttrs::axis, "axis", -1, "..").input("data", "..")...
template <typename A>
class OpBuilder {
 public:
  explicit OpBuilder(const char *name) : op_(op_registry().add(Op())) {
    op_.name = name;
    op_.new_attrs = [] { return std::shared_ptr<void>(std::make_shared<A>()); };
    op_.infer_dtype = infer_same_dtype;
  }
  OpBuilder &alias(const char *name) { return op_.aliases.emplace_back(name), *this; }
  OpBuilder &doc(const char *doc) { return op_.doc = doc, *this; }

  // An optional attribute with its default; default_text is derived from the value unless MXNet prints it differently.
  template <typename F, typename V>
  OpBuilder &attr(F A::*field, const char *name, V value, const char *doc);
  template <typename F>
  OpBuilder &required(F A::*field, const char *name, const char *doc);
  // An enumeration: an int or enum field with its words, in MXNet's order.
  template <typename F>
  OpBuilder &choice(F A::*field, const char *name, std::vector<std::pair<const char *, F>> words, F value,
                    const char *doc);
  template <typename F>
  OpBuilder &required_choice(F A::*field, const char *name, std::vector<std::pair<const char *, F>> words,
                             const char *doc);
  // Accepted for MXNet's sake and ignored (workspace, cudnn_tune): any text is allowed.
  OpBuilder &ignored(const char *name, const char *type, const char *default_text, const char *doc);
  // Allowed range of the preceding attribute: low <= value <= high. None remains allowed.
  OpBuilder &range(double low, double high = HUGE_VAL) {
    return op_.attrs.back().low = low, op_.attrs.back().high = high, *this;
  }
  // The type that reflection shows for the preceding attribute, if different from the field's.
  OpBuilder &shown_as(const char *type) { return op_.attrs.back().type = type, *this; }
  OpBuilder &check(std::function<void(A &)> fn) {
    return op_.check_attrs = [fn](void *a) { fn(*static_cast<A *>(a)); }, *this;
  }

  OpBuilder &input(const char *name, const char *doc) {
    return op_.inputs.push_back({name, doc, nullptr, false}), *this;
  }
  OpBuilder &input_if(const char *name, std::function<bool(const A &)> present, const char *doc) {
    return op_.inputs.push_back({name, doc, [present](const Attrs &a) { return present(a.get<A>()); }, false}), *this;
  }
  OpBuilder &aux(const char *name, const char *doc) { return op_.inputs.push_back({name, doc, nullptr, true}), *this; }
  OpBuilder &init(const char *json) { return op_.inputs.back().init = json, *this; }  // of the last input named
  // Inputs PREFIX0, PREFIX1, ...; the attribute COUNT holds their number, and is filled in from the given inputs if
  // absent.
  OpBuilder &variadic(const char *prefix, const char *count, const char *doc) {
    op_.inputs.push_back({prefix, doc, nullptr, false});
    return op_.variadic = count, *this;
  }
  OpBuilder &input_names(std::function<std::string(const A &, int index, int count)> name) {
    op_.name_input = [name](const Attrs &a, int index, int count) { return name(a.get<A>(), index, count); };
    return *this;
  }
  OpBuilder &own_inputs(std::function<const std::vector<InputField> &(const A &)> fn) {
    op_.own_inputs = [fn](const Attrs &a) -> const std::vector<InputField> & { return fn(a.get<A>()); };
    return *this;
  }
  // Field `given` receives the sub-graphs with these names; `num_args` receives their number plus that of the inputs.
  OpBuilder &subgraphs(std::vector<const char *> names, Subgraphs A::*given, int A::*num_args) {
    op_.subgraphs = std::move(names);
    op_.set_subgraphs = [given, num_args](void *a, const Subgraphs &inside, int count) {
      static_cast<A *>(a)->*given = inside;
      static_cast<A *>(a)->*num_args = count;
    };
    return op_.subgraphs_of = [given](const Attrs &a) -> const Subgraphs & { return a.get<A>().*given; }, *this;
  }
  OpBuilder &own_mutates(std::function<std::vector<int>(const A &, PassKind)> fn) {
    return op_.own_mutates = [fn](const Attrs &a, PassKind pass) { return fn(a.get<A>(), pass); }, *this;
  }
  OpBuilder &other_attrs(std::function<void(A &, const std::string &, const std::string &)> fn) {
    op_.other_attrs = [fn](void *a, const std::string &key, const std::string &value) {
      fn(*static_cast<A *>(a), key, value);
    };
    return *this;
  }
  OpBuilder &outputs(std::function<int(const A &)> count, std::function<int(const A &)> visible = nullptr) {
    op_.count_outputs = [count](const Attrs &a) { return count(a.get<A>()); };
    if (visible) op_.count_visible = [visible](const Attrs &a) { return visible(a.get<A>()); };
    return *this;
  }
  OpBuilder &output_names(std::function<std::vector<std::string>(const A &)> names) {
    return op_.name_outputs = [names](const Attrs &a) { return names(a.get<A>()); }, *this;
  }
  OpBuilder &numbers_one_output() { return op_.numbers_one_output = true, *this; }
  OpBuilder &infer_shape(std::function<void(const A &, Shapes &, Shapes &)> fn) {
    return op_.infer_shape = [fn](const Attrs &a, Shapes &in, Shapes &out) { fn(a.get<A>(), in, out); }, *this;
  }
  OpBuilder &same_float() { return op_.infer_dtype = infer_same_float, *this; }
  OpBuilder &same_shape() { return op_.infer_shape = infer_same_shape, *this; }
  OpBuilder &infer_dtype(std::function<void(const A &, Dtypes &, Dtypes &)> fn) {
    return op_.infer_dtype = [fn](const Attrs &a, Dtypes &in, Dtypes &out) { fn(a.get<A>(), in, out); }, *this;
  }
  OpBuilder &gradient(Gradient fixed) {
    return op_.gradient = [fixed](const Attrs &) { return fixed; }, *this;
  }
  OpBuilder &gradient(std::function<Gradient(const A &)> fn) {
    return op_.gradient = [fn](const Attrs &a) { return fn(a.get<A>()); }, *this;
  }
  OpBuilder &loss() { return op_.loss = true, *this; }
  OpBuilder &adds_penalty() { return op_.adds_penalty = true, *this; }
  OpBuilder &view() { return op_.view = true, *this; }
  OpBuilder &inplace(int input, int output) { return op_.inplace.emplace_back(input, output), *this; }
  OpBuilder &backward_inplace(int input, int output) { return op_.backward_inplace.emplace_back(input, output), *this; }
  OpBuilder &mutates(std::vector<int> inputs) { return op_.mutates = std::move(inputs), *this; }
  OpBuilder &random() { return op_.random = true, *this; }
  OpBuilder &random(std::function<bool(const A &)> draws) {
    return op_.draws = [draws](const Attrs &a) { return draws(a.get<A>()); }, random();
  }
  OpBuilder &syncs_batch() { return op_.syncs_batch = true, *this; }
  OpBuilder &stateful() { return op_.stateful = true, *this; }
  OpBuilder &activation(std::function<int(const A &)> type) {
    return op_.activation = [type](const Attrs &a) { return type(a.get<A>()); }, *this;
  }
  OpBuilder &pointwise(const PointwiseRule &rule) { return op_.pointwise = &rule, *this; }
  OpBuilder &sum() { return op_.sum = true, *this; }
  OpBuilder &linear_layer(std::function<LinearLayer(const A &)> fn) {
    return op_.linear_layer = [fn](const Attrs &a) { return fn(a.get<A>()); }, *this;
  }
  OpBuilder &channel_scaling(std::function<ChannelScaling(const A &, bool)> fn) {
    return op_.channel_scaling = [fn](const Attrs &a, bool has_bias) { return fn(a.get<A>(), has_bias); }, *this;
  }
  OpBuilder &flops(std::function<double(const A &, const Shapes &in, const Shapes &out)> fn) {
    return op_.flops = [fn](const Attrs &a, const Shapes &in, const Shapes &out) { return fn(a.get<A>(), in, out); },
           *this;
  }
  OpBuilder &narrow() { return op_.precision = Op::Precision::kNarrow, *this; }
  OpBuilder &follows() { return op_.precision = Op::Precision::kFollows, *this; }
  OpBuilder &names_only_input() { return op_.names_only_input = true, *this; }

 private:
  Op &op_;
};

#define COHORT_CONCAT_(a, b) a##b
#define COHORT_CONCAT(a, b) COHORT_CONCAT_(a, b)
// Use at namespace scope, inside an unnamed namespace.
#define COHORT_OPERATOR(name, attrs) \
  [[maybe_unused]] const auto &COHORT_CONCAT(kOperator, __COUNTER__) = ::cohort::OpBuilder<attrs>(#name)

}  // namespace cohort

#include "op/op_fields.hpp"
