// SPDX-License-Identifier: Apache-2.0
#include "group/loss_scale.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.hpp"
#include "executor/invoke.hpp"
#include "op/op_fields.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

[[noreturn]] void refuse(const Node &node, const char *what) {
  throw Error(Code::kUnsupported,
              text("loss_scale: node '", node.name, "' (", node.op->name, "): the gradient of ", what,
                   " cannot be scaled: bind without a loss scale"),
              node.name);
}

// Refuses losses inside a node: their gradients begin within the node's own backward step.
void refuse_losses(const Graph &body) {
  for (const auto &node : body.nodes)
    if (!node->is_variable() && node->op->is_loss(node->parsed)) refuse(*node, "a loss inside another node");
  refuse_unscaled(body);
}

}  // namespace

void check_loss_scale(double value, const char *what) {
  if (value >= kLeastLossScale && value <= kLargestLossScale) return;
  throw Error(Code::kInvalidArgument, text(what, ": expected a number from 2^-24 to 2^24, found ", value), what);
}

void refuse_unscaled(const Graph &graph) {
  for (const auto &node : graph.nodes) {
    if (node->is_variable()) continue;
    if (node->op->adds_penalty) refuse(*node, "its penalty");
    for (const auto &inside : node->subgraphs) refuse_losses(inside->graph());
  }
}

// Rescales its whole memory: groups with larger batches use more of it.
void GradientFactors::rescale_to(const NDArray &gradient, double factor) {
  const auto known = factor_of_.find(gradient.storage());
  if (known == factor_of_.end() || known->second == factor) return;
  const int64_t size = int64_t(gradient.storage()->bytes() / dtype_size(gradient.dtype()));
  const NDArray whole(gradient.storage(), 0, Shape{size}, gradient.dtype());
  invoke("_mul_scalar", {{"scalar", print_float(factor / known->second, 17)}}, {whole}, {whole}, gradient.context());
  known->second = factor;
}

void GradientFactors::begin_pass(const std::vector<std::shared_ptr<Executor>> &executors, double factor) {
  for (auto known = factor_of_.begin(); known != factor_of_.end();)
    known = known->first.expired() ? factor_of_.erase(known) : std::next(known);
  for (const auto &executor : executors) {
    for (size_t i = 0; i < executor->grads().size(); ++i) {
      const NDArray &gradient = executor->grads()[i];
      if (!gradient) continue;
      if (executor->grad_reqs()[i] == GradReq::kAdd) rescale_to(gradient, factor);
      factor_of_[gradient.storage()] = factor;
    }
  }
}

void GradientFactors::rescale_to(const std::vector<std::shared_ptr<Executor>> &executors, double factor) {
  for (const auto &executor : executors)
    for (const NDArray &gradient : executor->grads())
      if (gradient) rescale_to(gradient, factor);
}

bool are_finite(const std::vector<std::shared_ptr<Executor>> &executors, const std::vector<int> &arguments,
                size_t num_summed) {
  std::map<Context, std::vector<NDArray>> answers;
  const auto ask = [&](const std::vector<NDArray> &arrays) {
    const AttrMap attrs{{"num_arrays", std::to_string(arrays.size())}};
    const Context &context = arrays[0].context();
    answers[context].push_back(invoke("multi_all_finite", attrs, arrays, {}, context)[0]);
  };
  for (const std::shared_ptr<Executor> &executor : executors) {
    std::map<std::pair<Dtype, Context>, std::vector<NDArray>> alike;  // as the operator requires
    for (const int argument : arguments) {
      const std::vector<NDArray> &grads = executor->grads();
      if (size_t(argument) >= grads.size() || !grads[size_t(argument)]) continue;
      const NDArray &grad = grads[size_t(argument)];
      alike[{grad.dtype(), grad.context()}].push_back(grad);
    }
    for (const auto &[kind, arrays] : alike) {
      if (num_summed <= 1) {
        ask(arrays);
        continue;
      }
      const auto larger = [](const NDArray &a, const NDArray &b) { return a.size() < b.size(); };
      const int64_t largest = std::max_element(arrays.begin(), arrays.end(), larger)->size();
      const NDArray room = NDArray::create(Shape{largest}, kind.first, kind.second);  // holds one product at a time
      for (const NDArray &array : arrays) {
        const NDArray product(room.storage(), 0, array.shape(), kind.first);
        invoke("_mul_scalar", {{"scalar", std::to_string(num_summed)}}, {array}, {product}, kind.second);
        ask({product});
      }
    }
  }
  bool finite = true;
  for (const auto &[context, list] : answers) {  // each wait costs a round trip to the device: one for all answers
    const AttrMap attrs{{"num_args", std::to_string(list.size())}, {"dim", "0"}};
    const NDArray all = invoke("Concat", attrs, list, {}, context)[0].copy_to(Context());
    std::vector<float> values(list.size());
    all.read(values.data(), all.bytes());
    finite = finite && std::find(values.begin(), values.end(), 0.0f) == values.end();
  }
  return finite;
}

void count_update(LossScale *scale, bool is_good) {
  if (!is_good) {
    scale->value = std::max(kLeastLossScale, scale->value / 2);
    scale->num_good = 0;
    ++scale->num_skipped;
  } else if (++scale->num_good >= scale->window) {
    scale->value = std::min(kLargestLossScale, scale->value * 2);
    scale->num_good = 0;
  }
}

}  // namespace cohort
