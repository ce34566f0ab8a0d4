// SPDX-License-Identifier: Apache-2.0
#include "operator_case.hpp"

#include <algorithm>
#include <utility>

#include "compare.hpp"

namespace golden {
namespace {

// The initial content of gradient buffers with grad_req write, which backward must overwrite.
constexpr double kStale = 7.5;

// One of the ways in which --parts runs a case.
struct RunVariant {
  int output = -1;       // the only output to bind; -1: all
  bool is_train = true;  // false: inference even if the case trains
  // Two negations before each input and behind each output, for the operator to be fused with; bound with
  // backward_once.
  bool among_pointwise = false;
  bool unfused = false;  // a monitor on every node prevents fusion
};

class OperatorCase {
 public:
  OperatorCase(const GoldenCase &golden_case, const Settings &settings)
      : own_description_(golden_case.family ? Value() : read_json(golden_case.path + "/case.json")),
        description_(golden_case.family ? golden_case.family->description(golden_case.name_in_family())
                                        : own_description_),
        files_(golden_case, {{"inputs", "inputs.params"}, {"expected", "expected.params"}}),
        symbol_path_(golden_case.path + "/symbol.json"),
        context_(context_of("cpu(0)", settings)),
        partial_runs_(settings.partial_runs),
        num_runs_(settings.num_runs),
        tolerance_{description_.number("rtol", 0), description_.number("atol", 0)} {
    if (!exists(context_)) throw NoDevice();
  }

  std::vector<std::string> run() {
    const std::string &kind = description_.at("kind").as_text();
    if (kind == "symbol" && partial_runs_)
      run_variants();
    else if (kind == "symbol")
      run_symbol();
    else if (kind == "imperative")
      run_imperative();
    else
      throw BadCase("there is no kind of case '" + kind + "'");
    return failures_;
  }

 private:
  // A symbol bound to copies of the case's inputs.
  struct BoundSymbol {
    std::vector<NDArray> args, grads, aux;
    Executor executor;
  };

  NDArray input(const std::string &name) { return files_.array("inputs", name).copy(context_); }

  void compare_with(const std::string &expected_name, const NDArray &found) {
    if (!found)
      failures_.push_back(expected_name + ": expected an array, found null");
    else
      compare_arrays(read_array(files_.array("expected", expected_name)), read_array(found), expected_name, tolerance_,
                     failures_);
  }

  // From the description, where a family holds it, or from the file beside it.
  Symbol load_symbol() const {
    const Value *symbol = description_.find("symbol");
    return symbol ? Symbol::from_json(to_json(*symbol)) : Symbol::load(symbol_path_);
  }

  void compare_names(const char *what, const std::vector<std::string> &expected,
                     const std::vector<std::string> &found) {
    compare(Value::texts(expected), Value::texts(found), what, tolerance_, nullptr, failures_);
  }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const Value &output : description_.at("outputs").items()) names.push_back(output.at("name").as_text());
    return names;
  }

  BoundSymbol bind(const Symbol &symbol, const std::vector<std::string> &args, const std::vector<std::string> &aux,
                   const std::string &only_gradient = "", bool backward_once = false) {
    BoundSymbol bound;
    ExecutorOptions options;
    options.backward_once = backward_once;
    std::vector<int32_t> grad_req;
    for (const std::string &name : args) {
      bound.args.push_back(input("arg:" + name));
      const bool wanted = only_gradient.empty() || name == only_gradient;
      const std::string word = wanted ? description_.at("grad_req").at(name).as_text() : "null";
      NDArray grad;
      if (word == "add") {
        grad = input("grad:" + name);
      } else if (word == "write") {
        const NDArray &arg = bound.args.back();
        grad = NDArray::full(arg.shape(), kStale, arg.dtype(), context_);
      }
      grad_req.push_back(!grad ? COHORT_GRAD_NULL : word == "add" ? COHORT_GRAD_ADD : COHORT_GRAD_WRITE);
      bound.grads.push_back(std::move(grad));
    }
    for (const std::string &name : aux) bound.aux.push_back(input("aux:" + name));
    bound.executor = Executor::bind(symbol, context_, bound.args, bound.grads, grad_req, bound.aux, options);
    return bound;
  }

  size_t compare_outputs(const Executor &executor, const std::string &prefix) {
    const std::vector<NDArray> outputs = executor.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = prefix + std::to_string(i);
      if (prefix == "eval:" && !files_.has("expected", name)) continue;  // not stored: equal to output:I
      compare_with(name, outputs[i]);
    }
    return outputs.size();
  }

  bool wants_gradient() const {
    for (const Value &word : description_.at("grad_req").items())
      if (word.as_text() != "null") return true;
    return false;
  }

  void queue_backward(BoundSymbol &bound, size_t num_outputs) {
    std::vector<NDArray> head_grads;
    if (!description_.at("loss_head").as_bool())
      for (size_t i = 0; i < num_outputs; ++i) {
        const std::string name = "head:" + std::to_string(i);
        head_grads.push_back(files_.has("inputs", name) ? input(name) : NDArray());
      }
    bound.executor.backward(head_grads);
  }

  void run_backward(BoundSymbol &bound, const std::vector<std::string> &args, size_t num_outputs) {
    queue_backward(bound, num_outputs);
    for (size_t i = 0; i < args.size(); ++i)
      if (bound.grads[i]) compare_with("grad:" + args[i], bound.grads[i]);
  }

  // Runs the case num_runs - 1 times without comparing, and restores all arrays after each run.
  void run_uncompared(BoundSymbol &bound, const std::vector<std::string> &args, const std::vector<std::string> &aux) {
    for (int run = 1; run < num_runs_; ++run) {
      bound.executor.forward(description_.at("is_train").as_bool());
      if (wants_gradient()) queue_backward(bound, bound.executor.num_arrays(COHORT_EXECUTOR_OUTPUTS));
      const auto restore = [&](const std::string &name, NDArray &array) {
        files_.array("inputs", name).copy_to(array);
      };
      for (size_t i = 0; i < args.size(); ++i) {
        restore("arg:" + args[i], bound.args[i]);
        if (!bound.grads[i]) continue;
        if (description_.at("grad_req").at(args[i]).as_text() == "add")
          restore("grad:" + args[i], bound.grads[i]);
        else
          bound.grads[i].fill(kStale);
      }
      for (size_t i = 0; i < aux.size(); ++i) restore("aux:" + aux[i], bound.aux[i]);
    }
  }

  // A state without an expected array must keep its value, except after a training pass without gradients, which leaves
  // it unspecified.
  void compare_states(const BoundSymbol &bound, const std::vector<std::string> &aux) {
    for (size_t i = 0; i < aux.size(); ++i) {
      const std::string name = "aux:" + aux[i];
      if (files_.has("expected", name))
        compare_with(name, bound.aux[i]);
      else if (wants_gradient() || !description_.at("is_train").as_bool())
        compare_arrays(read_array(files_.array("inputs", name)), read_array(bound.aux[i]), name, tolerance_, failures_);
    }
  }

  // Applies an operator at once. Returns its outputs: `outputs`, or new arrays if that is empty.
  std::vector<NDArray> apply(const std::string &op, const Value &attrs, const std::vector<NDArray> &inputs,
                             const std::vector<NDArray> &outputs, bool is_train) {
    Attrs settings;
    for (const std::string &key : attrs.keys()) settings.emplace_back(key, attrs.at(key).as_text());
    InvokeOptions options;
    options.context = context_;
    options.is_train = is_train;
    if (outputs.empty()) return invoke(op, inputs, settings, options);
    invoke_into(outputs, op, inputs, settings, options);
    return outputs;
  }

  // Applies the operators of the graph at once, one by one: outputs must equal those of the bound graph. Operators with
  // subgraphs cannot be applied at once; a graph that contains one is left out.
  void run_by_single_operators(const Symbol &symbol, const std::vector<std::string> &aux) {
    const Value graph = parse_json(symbol.to_json(), symbol_path_);
    std::vector<std::vector<NDArray>> outputs;  // of each node
    for (const Value &node : graph.at("nodes").items()) {
      const std::string &op = node.at("op").as_text(), &name = node.at("name").as_text();
      if (node.find("subgraphs")) return;
      outputs.emplace_back();
      if (op == "null") {
        const bool is_aux = std::count(aux.begin(), aux.end(), name) > 0;
        outputs.back().push_back(input((is_aux ? "aux:" : "arg:") + name));
        continue;
      }
      std::vector<NDArray> inputs;
      for (const Value &entry : node.at("inputs").items()) {
        const std::vector<int64_t> source = entry.as_integers();  // node, output
        inputs.push_back(outputs[size_t(source[0])][size_t(source[1])]);
      }
      const Value *attrs = node.find("attrs");
      outputs.back() = apply(op, attrs ? *attrs : Value::object(), inputs, {}, description_.at("is_train").as_bool());
    }
    size_t index = 0;
    for (const Value &head : graph.at("heads").items()) {
      const std::vector<int64_t> source = head.as_integers();
      compare_with("output:" + std::to_string(index++), outputs[size_t(source[0])][size_t(source[1])]);
    }
  }

  void run_symbol() {
    const Symbol symbol = load_symbol();
    const std::vector<std::string> args = description_.at("arguments").as_texts(),
                                   aux = description_.at("auxiliary_states").as_texts();
    compare_names("arguments", args, symbol.list_arguments());
    compare_names("auxiliary states", aux, symbol.list_aux());
    compare_names("outputs", output_names(), symbol.list_outputs());
    if (!failures_.empty()) return;

    BoundSymbol bound = bind(symbol, args, aux);
    run_uncompared(bound, args, aux);
    bound.executor.forward(description_.at("is_train").as_bool());
    const size_t num_outputs = compare_outputs(bound.executor, "output:");
    if (wants_gradient()) run_backward(bound, args, num_outputs);
    compare_states(bound, aux);
    if (description_.flag("has_eval", false)) {
      BoundSymbol again = bind(symbol, args, aux);
      again.executor.forward(false);
      compare_outputs(again.executor, "eval:");
    }
    if (failures_.empty()) run_by_single_operators(symbol, aux);
  }

  static Symbol doubly_negative(const Symbol &symbol) {
    return Symbol::create("negative", "", {}, {Symbol::create("negative", "", {}, {symbol})});
  }

  // Whether an array has a floating dtype: only those are negated.
  bool is_float(const std::string &set, const std::string &name) {
    const cohort_dtype dtype = files_.array(set, name).dtype();
    return dtype == COHORT_DTYPE_FLOAT32 || dtype == COHORT_DTYPE_FLOAT64 || dtype == COHORT_DTYPE_FLOAT16;
  }

  Symbol symbol_of(const RunVariant &variant) {
    Symbol symbol = load_symbol();
    if (variant.output >= 0) symbol = symbol.output(size_t(variant.output));
    if (!variant.among_pointwise) return symbol;
    std::vector<std::string> names;
    std::vector<Symbol> inputs;
    for (const std::string &name : symbol.list_arguments()) {
      if (!is_float("inputs", "arg:" + name)) continue;
      names.push_back(name);
      inputs.push_back(doubly_negative(Symbol::variable(name)));
    }
    if (!names.empty()) symbol = symbol.compose(inputs, names);
    if (description_.at("loss_head").as_bool()) return symbol;
    std::vector<Symbol> heads;
    const size_t num_outputs = symbol.list_outputs().size();
    for (size_t i = 0; i < num_outputs; ++i) {
      Symbol head = symbol.output(i);
      const size_t expected = variant.output >= 0 ? size_t(variant.output) : i;
      if (is_float("expected", "output:" + std::to_string(expected))) head = doubly_negative(head);
      heads.push_back(std::move(head));
    }
    return Symbol::group(heads);
  }

  // Outputs and gradients must equal those of the whole case. With one of several outputs bound, gradients differ and
  // are not compared.
  void run_variant(const RunVariant &variant, const std::string &only_gradient) {
    const Symbol symbol = symbol_of(variant);
    const std::vector<std::string> args = symbol.list_arguments();
    BoundSymbol bound = bind(symbol, args, symbol.list_aux(), only_gradient, variant.among_pointwise);
    Executor &executor = bound.executor;
    if (variant.unfused) executor.set_monitor([](const std::string &, const NDArray &) {}, true);
    const bool is_train = variant.is_train && description_.at("is_train").as_bool();
    executor.forward(is_train);
    const std::vector<NDArray> outputs = executor.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string number = std::to_string(variant.output >= 0 ? variant.output : int(i));
      if (is_train == description_.at("is_train").as_bool()) compare_with("output:" + number, outputs[i]);
    }
    if (is_train && wants_gradient()) {
      std::vector<NDArray> head_grads;
      for (size_t i = 0; !description_.at("loss_head").as_bool() && i < outputs.size(); ++i) {
        const std::string name = "head:" + std::to_string(variant.output >= 0 ? variant.output : int(i));
        head_grads.push_back(files_.has("inputs", name) ? input(name) : NDArray());
      }
      executor.backward(head_grads);
      for (size_t i = 0; i < args.size(); ++i)
        if (bound.grads[i] && variant.output < 0) compare_with("grad:" + args[i], bound.grads[i]);
    }
    executor.wait();
  }

  void run_variants() {
    const std::vector<std::string> args = description_.at("arguments").as_texts();
    std::vector<std::string> gradients = {""};
    if (args.size() > 1)
      for (const std::string &name : args)
        if (description_.at("grad_req").at(name).as_text() != "null") gradients.push_back(name);
    const int num_outputs = int(description_.at("outputs").items().size());
    for (int output = num_outputs > 1 ? -1 : 0; output < num_outputs; ++output) {
      for (const std::string &gradient : gradients) {
        for (const auto &[among_pointwise, unfused] :
             {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
          RunVariant variant;
          variant.output = num_outputs > 1 ? output : -1;
          variant.among_pointwise = among_pointwise;
          variant.unfused = unfused;
          const std::string prefix = (gradient.empty() ? "" : "gradient of " + gradient + " alone, ") +
                                     (variant.output < 0 ? "" : "output " + std::to_string(output) + " alone, ") +
                                     (among_pointwise ? "fused with others, "
                                      : unfused       ? "not fused, "
                                                      : "");
          for (variant.is_train = true;; variant.is_train = false) {
            try_variant(variant, gradient, prefix);
            if (!variant.is_train || !description_.at("is_train").as_bool()) break;
          }
        }
      }
    }
  }

  void try_variant(const RunVariant &variant, const std::string &gradient, const std::string &prefix) {
    const size_t before = failures_.size();
    try {
      run_variant(variant, gradient);
    } catch (const Error &error) {
      failures_.push_back(error.what());
    }
    for (size_t i = before; i < failures_.size(); ++i) failures_[i].insert(0, prefix);
  }

  void run_imperative() {
    std::vector<NDArray> inputs, outputs;
    const std::vector<std::string> args = description_.at("arguments").as_texts();
    for (const std::string &name : args) inputs.push_back(input("arg:" + name));
    for (const std::string &name : description_.get("out_like").as_texts()) {
      const NDArray like = input("arg:" + name);
      outputs.push_back(NDArray::zeros(like.shape(), like.dtype(), context_));
    }
    const std::vector<NDArray> results =
        apply(description_.at("op").as_text(), description_.at("attrs"), inputs, outputs, false);
    const size_t num = results.size();
    if (num != description_.at("outputs").items().size())
      failures_.push_back("outputs: expected " + std::to_string(description_.at("outputs").items().size()) +
                          ", found " + std::to_string(num));
    for (size_t i = 0; i < num && failures_.empty(); ++i) compare_with("output:" + std::to_string(i), results[i]);
    for (const std::string &name : description_.get("mutates").as_texts()) {
      const size_t index = std::find(args.begin(), args.end(), name) - args.begin();
      if (index == args.size()) throw BadCase("mutates names '" + name + "', which is not an argument");
      compare_with("arg:" + name, inputs[index]);
    }
  }

  const Value own_description_;  // null for a case in a family
  const Value &description_;     // that one, or the family's
  CaseFiles files_;
  std::string symbol_path_;
  Context context_;
  bool partial_runs_;
  const int num_runs_;
  Tolerance tolerance_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> run_operator_case(const GoldenCase &golden_case, const Settings &settings) {
  return OperatorCase(golden_case, settings).run();
}

}  // namespace golden
