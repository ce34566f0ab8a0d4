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

  NDArray input(const std::string &name) { return copy_of(files_.array("inputs", name).get(), context_); }

  void compare_with(const std::string &expected_name, const cohort_ndarray *found) {
    if (!found)
      failures_.push_back(expected_name + ": expected an array, found null");
    else
      compare_arrays(read_array(files_.array("expected", expected_name).get()), read_array(found), expected_name,
                     tolerance_, failures_);
  }

  // From the description, where a family holds it, or from the file beside it.
  Symbol load_symbol() const {
    const Value *symbol = description_.find("symbol");
    if (!symbol) return make<Symbol>(cohort_symbol_load, symbol_path_.c_str());
    const std::string text = to_json(*symbol);
    return make<Symbol>(cohort_symbol_from_json, text.data(), text.size());
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

  BoundSymbol bind(const cohort_symbol *symbol, const std::vector<std::string> &args,
                   const std::vector<std::string> &aux, const std::string &only_gradient = "",
                   cohort_bool backward_once = 0) {
    BoundSymbol bound;
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
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
        const cohort_ndarray *arg = bound.args.back().get();
        grad = zeros_like(arg, query<int32_t>(cohort_ndarray_dtype, arg), context_);
        check(cohort_ndarray_fill(grad.get(), kStale));
      }
      grad_req.push_back(!grad ? COHORT_GRAD_NULL : word == "add" ? COHORT_GRAD_ADD : COHORT_GRAD_WRITE);
      bound.grads.push_back(std::move(grad));
    }
    for (const std::string &name : aux) bound.aux.push_back(input("aux:" + name));
    bound.executor =
        make<Executor>(cohort_executor_bind, symbol, &context_, raw(bound.args).data(), bound.args.size(),
                       raw(bound.grads).data(), grad_req.data(), raw(bound.aux).data(), bound.aux.size(), &options);
    return bound;
  }

  size_t compare_outputs(const cohort_executor *executor, const std::string &prefix) {
    const size_t num = query<size_t>(cohort_executor_num_arrays, executor, COHORT_EXECUTOR_OUTPUTS);
    for (size_t i = 0; i < num; ++i) {
      const std::string name = prefix + std::to_string(i);
      if (prefix == "eval:" && !files_.has("expected", name)) continue;  // not stored: equal to output:I
      compare_with(name, make<NDArray>(cohort_executor_array, executor, COHORT_EXECUTOR_OUTPUTS, i).get());
    }
    return num;
  }

  bool wants_gradient() const {
    for (const Value &word : description_.at("grad_req").items())
      if (word.as_text() != "null") return true;
    return false;
  }

  void queue_backward(const BoundSymbol &bound, size_t num_outputs) {
    std::vector<NDArray> head_grads;
    if (!description_.at("loss_head").as_bool())
      for (size_t i = 0; i < num_outputs; ++i) {
        const std::string name = "head:" + std::to_string(i);
        head_grads.push_back(files_.has("inputs", name) ? input(name) : NDArray());
      }
    check(cohort_executor_backward(bound.executor.get(), head_grads.empty() ? nullptr : raw(head_grads).data(),
                                   head_grads.size(), 1));
  }

  void run_backward(const BoundSymbol &bound, const std::vector<std::string> &args, size_t num_outputs) {
    queue_backward(bound, num_outputs);
    for (size_t i = 0; i < args.size(); ++i)
      if (bound.grads[i]) compare_with("grad:" + args[i], bound.grads[i].get());
  }

  // Runs the case num_runs - 1 times without comparing, and restores all arrays after each run.
  void run_uncompared(const BoundSymbol &bound, const std::vector<std::string> &args,
                      const std::vector<std::string> &aux) {
    for (int run = 1; run < num_runs_; ++run) {
      check(cohort_executor_forward(bound.executor.get(), description_.at("is_train").as_bool()));
      if (wants_gradient())
        queue_backward(bound, query<size_t>(cohort_executor_num_arrays, bound.executor.get(), COHORT_EXECUTOR_OUTPUTS));
      const auto restore = [&](const std::string &name, const NDArray &array) {
        check(cohort_ndarray_copy_to(files_.array("inputs", name).get(), array.get()));
      };
      for (size_t i = 0; i < args.size(); ++i) {
        restore("arg:" + args[i], bound.args[i]);
        if (!bound.grads[i]) continue;
        if (description_.at("grad_req").at(args[i]).as_text() == "add")
          restore("grad:" + args[i], bound.grads[i]);
        else
          check(cohort_ndarray_fill(bound.grads[i].get(), kStale));
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
        compare_with(name, bound.aux[i].get());
      else if (wants_gradient() || !description_.at("is_train").as_bool())
        compare_arrays(read_array(files_.array("inputs", name).get()), read_array(bound.aux[i].get()), name, tolerance_,
                       failures_);
    }
  }

  // Applies an operator at once. Returns its outputs: `outputs`, or new arrays if that is empty.
  std::vector<NDArray> apply(const std::string &op, const Value &attrs, const std::vector<cohort_ndarray *> &inputs,
                             const std::vector<cohort_ndarray *> &outputs, bool is_train) {
    std::vector<std::string> values;
    for (const Value &value : attrs.items()) values.push_back(value.as_text());
    cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
    options.context = &context_;
    options.is_train = is_train;
    const auto results = make<Arrays>(cohort_operator_invoke, op.c_str(), c_strings(attrs.keys()).data(),
                                      c_strings(values).data(), values.size(), inputs.data(), inputs.size(),
                                      outputs.empty() ? nullptr : outputs.data(), outputs.size(), &options);
    std::vector<NDArray> list;
    for (size_t i = 0; i < query<size_t>(cohort_arrays_num, results.get()); ++i)
      list.push_back(make<NDArray>(cohort_arrays_get, results.get(), i));
    return list;
  }

  // Applies the operators of the graph at once, one by one: outputs must equal those of the bound graph. Operators with
  // subgraphs cannot be applied at once; a graph that contains one is left out.
  void run_by_single_operators(const cohort_symbol *symbol, const std::vector<std::string> &aux) {
    const Value graph = parse_json(query<const char *>(cohort_symbol_to_json, symbol), symbol_path_);
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
      std::vector<cohort_ndarray *> inputs;
      for (const Value &entry : node.at("inputs").items()) {
        const std::vector<int64_t> source = entry.as_integers();  // node, output
        inputs.push_back(outputs[size_t(source[0])][size_t(source[1])].get());
      }
      const Value *attrs = node.find("attrs");
      outputs.back() = apply(op, attrs ? *attrs : Value::object(), inputs, {}, description_.at("is_train").as_bool());
    }
    size_t index = 0;
    for (const Value &head : graph.at("heads").items()) {
      const std::vector<int64_t> source = head.as_integers();
      compare_with("output:" + std::to_string(index++), outputs[size_t(source[0])][size_t(source[1])].get());
    }
  }

  void run_symbol() {
    const Symbol symbol = load_symbol();
    const std::vector<std::string> args = description_.at("arguments").as_texts(),
                                   aux = description_.at("auxiliary_states").as_texts();
    compare_names("arguments", args, symbol_names(symbol.get(), COHORT_SYMBOL_ARGUMENTS));
    compare_names("auxiliary states", aux, symbol_names(symbol.get(), COHORT_SYMBOL_AUX));
    compare_names("outputs", output_names(), symbol_names(symbol.get(), COHORT_SYMBOL_OUTPUTS));
    if (!failures_.empty()) return;

    const BoundSymbol bound = bind(symbol.get(), args, aux);
    run_uncompared(bound, args, aux);
    check(cohort_executor_forward(bound.executor.get(), description_.at("is_train").as_bool()));
    const size_t num_outputs = compare_outputs(bound.executor.get(), "output:");
    if (wants_gradient()) run_backward(bound, args, num_outputs);
    compare_states(bound, aux);
    if (description_.flag("has_eval", false)) {
      const BoundSymbol again = bind(symbol.get(), args, aux);
      check(cohort_executor_forward(again.executor.get(), 0));
      compare_outputs(again.executor.get(), "eval:");
    }
    if (failures_.empty()) run_by_single_operators(symbol.get(), aux);
  }

  static Symbol doubly_negative(const cohort_symbol *symbol) {
    cohort_symbol *one = const_cast<cohort_symbol *>(symbol);
    const Symbol minus =
        make<Symbol>(cohort_symbol_create, "negative", nullptr, nullptr, nullptr, size_t(0), &one, nullptr, size_t(1));
    one = minus.get();
    return make<Symbol>(cohort_symbol_create, "negative", nullptr, nullptr, nullptr, size_t(0), &one, nullptr,
                        size_t(1));
  }

  // Whether an array has a floating dtype: only those are negated.
  bool is_float(const std::string &set, const std::string &name) {
    const int32_t dtype = query<int32_t>(cohort_ndarray_dtype, files_.array(set, name).get());
    return dtype == COHORT_DTYPE_FLOAT32 || dtype == COHORT_DTYPE_FLOAT64 || dtype == COHORT_DTYPE_FLOAT16;
  }

  Symbol symbol_of(const RunVariant &variant) {
    Symbol symbol = load_symbol();
    if (variant.output >= 0) symbol = make<Symbol>(cohort_symbol_output, symbol.get(), size_t(variant.output));
    if (!variant.among_pointwise) return symbol;
    std::vector<std::string> names;
    std::vector<Symbol> inputs;
    for (const std::string &name : symbol_names(symbol.get(), COHORT_SYMBOL_ARGUMENTS)) {
      if (!is_float("inputs", "arg:" + name)) continue;
      const Symbol variable = make<Symbol>(cohort_symbol_variable, name.c_str(), nullptr, nullptr, size_t(0));
      names.push_back(name);
      inputs.push_back(doubly_negative(variable.get()));
    }
    if (!names.empty()) {
      symbol = make<Symbol>(cohort_symbol_compose, symbol.get(), c_strings(names).data(), raw(inputs).data(),
                            names.size(), nullptr);
    }
    if (description_.at("loss_head").as_bool()) return symbol;
    std::vector<Symbol> heads;
    const size_t num_outputs = symbol_names(symbol.get(), COHORT_SYMBOL_OUTPUTS).size();
    for (size_t i = 0; i < num_outputs; ++i) {
      Symbol head = make<Symbol>(cohort_symbol_output, symbol.get(), i);
      const size_t expected = variant.output >= 0 ? size_t(variant.output) : i;
      if (is_float("expected", "output:" + std::to_string(expected))) head = doubly_negative(head.get());
      heads.push_back(std::move(head));
    }
    return make<Symbol>(cohort_symbol_group, raw(heads).data(), heads.size());
  }

  // Outputs and gradients must equal those of the whole case. With one of several outputs bound, gradients differ and
  // are not compared.
  void run_variant(const RunVariant &variant, const std::string &only_gradient) {
    const Symbol symbol = symbol_of(variant);
    const std::vector<std::string> args = symbol_names(symbol.get(), COHORT_SYMBOL_ARGUMENTS);
    const BoundSymbol bound =
        bind(symbol.get(), args, symbol_names(symbol.get(), COHORT_SYMBOL_AUX), only_gradient, variant.among_pointwise);
    cohort_executor *const executor = bound.executor.get();
    if (variant.unfused) {
      const cohort_monitor_fn ignore = [](const char *, cohort_ndarray *, void *) {};
      check(cohort_executor_set_monitor(executor, ignore, nullptr, 1));
    }
    const bool is_train = variant.is_train && description_.at("is_train").as_bool();
    check(cohort_executor_forward(executor, is_train));
    const size_t num_outputs = query<size_t>(cohort_executor_num_arrays, executor, COHORT_EXECUTOR_OUTPUTS);
    for (size_t i = 0; i < num_outputs; ++i) {
      const NDArray output = make<NDArray>(cohort_executor_array, executor, COHORT_EXECUTOR_OUTPUTS, i);
      const std::string number = std::to_string(variant.output >= 0 ? variant.output : int(i));
      if (is_train == description_.at("is_train").as_bool()) compare_with("output:" + number, output.get());
    }
    if (is_train && wants_gradient()) {
      std::vector<NDArray> head_grads;
      for (size_t i = 0; !description_.at("loss_head").as_bool() && i < num_outputs; ++i) {
        const std::string name = "head:" + std::to_string(variant.output >= 0 ? variant.output : int(i));
        head_grads.push_back(files_.has("inputs", name) ? input(name) : NDArray());
      }
      check(cohort_executor_backward(executor, head_grads.empty() ? nullptr : raw(head_grads).data(), head_grads.size(),
                                     1));
      for (size_t i = 0; i < args.size(); ++i)
        if (bound.grads[i] && variant.output < 0) compare_with("grad:" + args[i], bound.grads[i].get());
    }
    check(cohort_executor_wait(executor));
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
    } catch (const CallError &error) {
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
      outputs.push_back(zeros_like(like.get(), query<int32_t>(cohort_ndarray_dtype, like.get()), context_));
    }
    const std::vector<NDArray> results =
        apply(description_.at("op").as_text(), description_.at("attrs"), raw(inputs), raw(outputs), false);
    const size_t num = results.size();
    if (num != description_.at("outputs").items().size())
      failures_.push_back("outputs: expected " + std::to_string(description_.at("outputs").items().size()) +
                          ", found " + std::to_string(num));
    for (size_t i = 0; i < num && failures_.empty(); ++i) compare_with("output:" + std::to_string(i), results[i].get());
    for (const std::string &name : description_.get("mutates").as_texts()) {
      const size_t index = std::find(args.begin(), args.end(), name) - args.begin();
      if (index == args.size()) throw BadCase("mutates names '" + name + "', which is not an argument");
      compare_with("arg:" + name, inputs[index].get());
    }
  }

  const Value own_description_;  // null for a case in a family
  const Value &description_;     // that one, or the family's
  CaseFiles files_;
  std::string symbol_path_;
  cohort_context context_;
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
