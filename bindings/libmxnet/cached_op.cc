// SPDX-License-Identifier: Apache-2.0
// Cached operators: a graph that is applied to arrays as if it were one operator. The graph's operators are applied one
// by one, so that each is recorded, draws its own random numbers, and has a gradient of its gradient. A graph with
// operators that run graphs, such as loops, which arrays alone cannot be applied to, runs in an executor.
#include <algorithm>

#include "executor_handle.hpp"
#include "ndarray_views.hpp"
#include "symbol_graph.hpp"

namespace cohort_mxnet {

namespace {

struct CachedNode {
  const Operator *op = nullptr;  // null: a variable
  TextAttrs attrs;
  std::vector<std::pair<size_t, size_t>> inputs;
  size_t last_reader = 0;  // the node after which its outputs are not needed any more
};

class CachedOp : public Object {
 public:
  static constexpr Kind kKind = Kind::kCachedOp;
  static constexpr const char *kName = "a CachedOp";

  explicit CachedOp(cohort::Symbol symbol) : Object(kKind), symbol_(std::move(symbol)) {
    const Graph graph = graph_of(symbol_);
    heads_ = graph.heads;
    for (const GraphNode &node : graph.nodes) {
      CachedNode cached;
      if (node.op == "null") {
        ++num_inputs_;
      } else {
        cached.op = find_operator(node.op);
        if (!cached.op) fail("there is no operator '" + node.op + "'");
      }
      cached.attrs = node.attrs;
      cached.inputs = node.inputs;
      has_graphs_ |= node.has_graphs;
      for (const auto &input : node.inputs) nodes_.at(input.first).last_reader = nodes_.size();
      nodes_.push_back(std::move(cached));
    }
    for (const auto &head : heads_) nodes_.at(head.first).last_reader = nodes_.size();
    const std::vector<std::string> aux = symbol_.list_aux();
    for (const std::string &name : symbol_.names(COHORT_SYMBOL_INPUTS))
      is_aux_.push_back(std::find(aux.begin(), aux.end(), name) != aux.end());
  }

  ArrayList apply(const ArrayList &inputs) const {
    if (inputs.size() != num_inputs_)
      fail("a cached operator: expected " + std::to_string(num_inputs_) + " inputs, found " +
           std::to_string(inputs.size()));
    return has_graphs_ ? apply_as_whole(inputs) : apply_each(inputs);
  }

 private:
  ArrayList apply_each(const ArrayList &inputs) const {
    std::vector<ArrayList> values(nodes_.size());
    std::vector<std::vector<size_t>> done_after(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].last_reader < nodes_.size()) done_after[nodes_[i].last_reader].push_back(i);
    const cohort_context context = inputs.empty() ? cohort_context{COHORT_DEVICE_CPU, 0} : inputs[0]->context();
    size_t next_input = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const CachedNode &node = nodes_[i];
      if (!node.op) {
        values[i] = {inputs[next_input++]};
        continue;
      }
      ArrayList node_inputs;
      for (const auto &[from, output] : node.inputs) node_inputs.push_back(values.at(from).at(output));
      values[i] = apply_operator(*node.op, node.attrs, node_inputs, {}, context);
      for (const size_t done : done_after[i]) values[done].clear();
    }
    ArrayList outputs;
    for (const auto &[from, output] : heads_) {
      const std::shared_ptr<NDArray> &value = values.at(from).at(output);
      // An input that is an output as well is copied: the host gets an array of its own.
      outputs.push_back(nodes_[from].op ? view_of(*value, value->share()) : apply_operator("_copy", {value}, {}).at(0));
    }
    return outputs;
  }

  ArrayList apply_as_whole(const ArrayList &inputs) const {
    const std::shared_ptr<SharedTape> shared = tape_for(inputs);
    const bool training = is_training();
    std::vector<cohort::NDArray> kept;
    std::vector<cohort_ndarray *> args, grads, aux;
    std::vector<size_t> gradient_of(inputs.size(), SIZE_MAX);
    const auto gradients = std::make_shared<std::vector<cohort::NDArray>>();
    for (size_t i = 0; i < inputs.size(); ++i) {
      kept.push_back(inputs[i]->share());
      if (is_aux_[i]) {
        aux.push_back(kept.back().get());
        continue;
      }
      args.push_back(kept.back().get());
      grads.push_back(nullptr);
      if (!shared || !inputs[i]->origin || inputs[i]->is_detached) continue;
      const cohort::Shape shape = inputs[i]->shape();
      const cohort_context context = inputs[i]->context();
      gradient_of[i] = gradients->size();
      gradients->push_back(cohort::make<cohort::NDArray>(
          cohort_ndarray_zeros, shape.data(), static_cast<int32_t>(shape.size()), inputs[i]->dtype(), &context));
      grads.back() = gradients->back().get();
    }
    const cohort_context context = inputs.empty() ? cohort_context{COHORT_DEVICE_CPU, 0} : inputs[0]->context();
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    options.seed = next_seed(context);
    cohort_executor *made = nullptr;
    cohort::check(cohort_executor_bind(symbol_.get(), &context, args.data(), args.size(), grads.data(), nullptr,
                                       aux.data(), aux.size(), &options, &made));
    const auto executor = std::make_shared<Executor>(nullptr, cohort::Executor(made), context, NodeGroups());
    cohort::check(cohort_executor_forward(made, training));
    ArrayList outputs;
    std::vector<cohort::NDArray> out_handles;
    for (cohort::NDArray &array : executor->arrays(COHORT_EXECUTOR_OUTPUTS)) {
      out_handles.push_back(NDArray::make_shared_handle(array));
      outputs.push_back(std::make_shared<NDArray>(std::move(array)));
    }
    if (!shared) return outputs;
    TapeUse use(shared);
    std::vector<cohort::NDArray> in_handles;
    for (const auto &input : inputs) in_handles.push_back(recorded_input(*input, shared));
    use.tape().function(
        in_handles, out_handles,
        [executor, gradients, gradient_of, training](const std::vector<cohort::NDArray> &head_grads) {
          const auto heads = cohort::detail::raw(cohort::Span<cohort::NDArray>(head_grads));
          cohort::check(cohort_executor_backward(executor->executor.get(), heads.data(), heads.size(), training));
          std::vector<cohort::NDArray> result;
          for (const size_t place : gradient_of)
            result.push_back(place == SIZE_MAX ? cohort::NDArray()
                                               : gradients->at(place).copy(gradients->at(place).context()));
          return result;
        });
    set_origin(outputs, inputs, shared);
    return outputs;
  }

  cohort::Symbol symbol_;
  std::vector<CachedNode> nodes_;
  std::vector<std::pair<size_t, size_t>> heads_;
  std::vector<bool> is_aux_;  // by input
  size_t num_inputs_ = 0;
  bool has_graphs_ = false;
};

}  // namespace

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

// The flags say how MXNet is to run the graph, and change no result.
int MXCreateCachedOpEX(SymbolHandle handle, int, const char **, const char **, CachedOpHandle *out, bool) {
  return guarded([&] {
    require(out, "out");
    cohort::Symbol symbol = from_handle<Symbol>(handle)->get();
    if (!symbol) fail("a symbol without outputs cannot be applied");
    *out = publish(std::make_shared<CachedOp>(std::move(symbol)));
  });
}

int MXCreateCachedOpEx(SymbolHandle handle, int num_flags, const char **keys, const char **vals, CachedOpHandle *out) {
  return MXCreateCachedOpEX(handle, num_flags, keys, vals, out, false);
}

int MXCreateCachedOp(SymbolHandle handle, CachedOpHandle *out) {
  return MXCreateCachedOpEX(handle, 0, nullptr, nullptr, out, false);
}

int MXFreeCachedOp(CachedOpHandle handle) {
  return guarded([&] { free_handle<CachedOp>(handle); });
}

int MXInvokeCachedOpEx(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                       NDArrayHandle **outputs, const int **out_stypes) {
  return guarded([&] {
    static thread_local std::vector<void *> handles;
    static thread_local std::vector<int> stypes;
    require(num_outputs, "num_outputs"), require(outputs, "outputs");
    if (num_inputs < 0) fail("a negative number of inputs");
    const auto cached = from_handle<CachedOp>(handle);
    ArrayList given;
    if (*outputs && *num_outputs > 0) given = ndarrays(*outputs, static_cast<size_t>(*num_outputs));
    const ArrayList made = cached->apply(ndarrays(inputs, static_cast<size_t>(num_inputs)));
    if (given.empty()) {
      NewHandles new_handles;
      for (const auto &array : made) new_handles.add(array);
      handles = new_handles.release();
      *outputs = handles.data();
      *num_outputs = static_cast<int>(handles.size());
    } else {
      if (given.size() != made.size())
        fail("a cached operator: expected " + std::to_string(made.size()) + " arrays for outputs, found " +
             std::to_string(given.size()));
      for (size_t i = 0; i < made.size(); ++i) apply_operator("_copyto", {made[i]}, {given[i]});
    }
    if (out_stypes) {
      stypes.assign(made.size(), COHORT_STORAGE_DEFAULT);
      *out_stypes = stypes.data();
    }
  });
}

int MXInvokeCachedOp(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                     NDArrayHandle **outputs) {
  return MXInvokeCachedOpEx(handle, num_inputs, inputs, num_outputs, outputs, nullptr);
}

}  // extern "C"
