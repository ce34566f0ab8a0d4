// SPDX-License-Identifier: Apache-2.0
// One backward pass along a tape, which visits records by number, from the newest. By the time a record is visited, all
// records that read its outputs have added their gradients. A few gradients of an output are summed then. Many are
// added to a running sum as they come, so that they do not all take memory at once; the sum is in float32 if they are
// in 16 bits, and so is rounded once, like that of a few.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "executor/invoke.hpp"
#include "tape/tape.hpp"

namespace cohort {
namespace {

constexpr size_t kFewGradients = 3;  // of one output, that are summed at once

// The most bytes of gradients that wait in a queue: so many that waiting for them takes no noticeable time beside
// computing them.
size_t most_queued(const Context &context) { return size_t(context.on_host() ? 8 : 256) << 20; }

Dtype type_of_sum(Dtype gradient) {
  return gradient == Dtype::kFloat16 || gradient == Dtype::kBfloat16 ? Dtype::kFloat32 : gradient;
}

}  // namespace

class Tape::Backward {
 public:
  Backward(Tape &tape, const BackwardOptions &options)
      : tape_(tape), options_(options), was_recording_(tape.recording_) {
    tape_.check_idle();
  }
  ~Backward() {
    tape_.busy_ = false;
    tape_.recording_ = was_recording_;
  }
  Backward(const Backward &) = delete;
  Backward &operator=(const Backward &) = delete;

  // `variables` null: all that are marked.
  void prepare(const Arrays &heads, const Arrays &head_grads, const Arrays *variables) {
    Values tracked;
    for (size_t i = 0; i < heads.size(); ++i) {
      tracked.push_back(tape_.track(heads[i], "heads", i));
      if (tracked.back().edge.record == 0) refuse("heads", i);
      if (!head_grads.empty() && head_grads[i]) check_head_gradient(heads[i], head_grads[i], i);
    }
    if (variables) {
      for (size_t i = 0; i < variables->size(); ++i) {
        refuse_part((*variables)[i], i);
        targets_.push_back(tape_.track((*variables)[i], "variables", i));
        if (targets_.back().edge.record == 0) refuse("variables", i);
      }
    }
    reach(tracked);
    mark_wanted(variables != nullptr);
    for (uint64_t id : flows_) check_versions(tape_.records_.at(id));
    tape_.busy_ = true;
    tape_.recording_ = options_.create_graph;
    count_gradients(tracked);
    for (size_t i = 0; i < heads.size(); ++i) {
      const bool given = !head_grads.empty() && head_grads[i];
      add_gradient(tracked[i].edge, given ? copy_of(tape_.track(head_grads[i], "head_grads", i)) : ones_like(heads[i]));
    }
  }

  void run() {
    for (auto id = reached_.rbegin(); id != reached_.rend(); ++id) {
      collect_targets(*id);
      if (flows_.count(*id)) differentiate(*id);
    }
  }

  void write_variables() {
    // Do what allocates memory first: else a failure could leave some added and others not.
    for (uint64_t id : reached_) collect({id, 0});
    for (uint64_t id : reached_) {
      const auto found = tape_.records_.find(id);
      if (found == tape_.records_.end() || !found->second.is_variable || !found->second.gradient) continue;
      const NDArray target = found->second.gradient;
      const GradReq req = found->second.req;
      const Tracked sum = collect({id, 0});
      if (req == GradReq::kAdd) {
        if (sum.array) apply("elemwise_add", {as_it_is(target), sum}, {target});
      } else if (sum.array) {
        apply("_copy", {sum}, {target});
      } else {
        target.fill(0);
        tape_.untrack(target);
      }
    }
  }

  Arrays take_targets() {
    Arrays results;
    std::set<const Storage *> seen;
    for (const Tracked &target : targets_) {
      Tracked gradient = collected_[{target.edge.record, target.edge.output}];
      if (!gradient.array) {
        results.push_back(NDArray::create(target.array.shape(), target.array.dtype(), target.array.context()));
        continue;
      }
      gradient = in_shape(gradient, target.array.shape());
      const bool shared = !seen.insert(gradient.array.storage().get()).second;  // two variables share one gradient
      results.push_back(shared ? copy_of(gradient).array : gradient.array);
    }
    return results;
  }

  void finish() {
    if (options_.retain_graph || options_.create_graph) return;
    for (auto id = reached_.rbegin(); id != reached_.rend(); ++id) {
      const auto found = tape_.records_.find(*id);
      if (found != tape_.records_.end() && !found->second.is_variable) tape_.remove(*id);
    }
  }

 private:
  using Key = std::pair<uint64_t, int>;
  struct Sum {
    Values given;         // gradients, or the running sum of many
    bool is_own = false;  // nothing else reads or keeps the running sum, which grows in place
    NDArray spare;        // has been added, and is free for the next gradient
  };

  [[noreturn]] void refuse(const char *what, size_t index) const {
    throw Error(
        Code::kState,
        text(what, "[", index, "]: the array is not in a recorded graph: it was not made by a recorded operator ",
             "from marked arrays, or a backward pass without retain_graph has released it"),
        what);
  }

  // Each use of a part is a record of its own, and none of them is this one.
  void refuse_part(const NDArray &variable, size_t index) const {
    if (!tape_.find_whole(variable)) return;
    throw Error(Code::kInvalidArgument,
                text("variables[", index, "]: array ", variable.shape(),
                     " is a part of one that the tape knows: expected the whole array"),
                "variables");
  }

  static void check_head_gradient(const NDArray &head, const NDArray &gradient, size_t index) {
    if (gradient.shape() != head.shape()) {
      throw Error(Code::kShape,
                  text("head_grads[", index, "]: expected shape ", head.shape(), ", found ", gradient.shape()),
                  "head_grads");
    }
    if (gradient.dtype() != head.dtype()) {
      throw Error(Code::kDtype,
                  text("head_grads[", index, "]: expected dtype ", head.dtype(), ", found ", gradient.dtype()),
                  "head_grads");
    }
    if (gradient.context() != head.context()) {
      throw Error(Code::kDevice,
                  text("head_grads[", index, "]: expected context ", head.context(), ", found ", gradient.context()),
                  "head_grads");
    }
  }

  // Finds all records that the heads were made from.
  void reach(const Values &heads) {
    std::vector<uint64_t> waiting;
    for (const Tracked &head : heads) waiting.push_back(head.edge.record);
    while (!waiting.empty()) {
      const uint64_t id = waiting.back();
      waiting.pop_back();
      if (!seen_.insert(id).second) continue;
      reached_.push_back(id);
      for (const Edge &edge : tape_.records_.at(id).edges) {
        if (edge.record == 0 || seen_.count(edge.record)) continue;
        if (!tape_.records_.count(edge.record)) {
          throw Error(Code::kState,
                      text("heads: ", tape_.records_.at(id).name(),
                           " reads a graph that a backward pass without retain_graph has released"),
                      "heads");
        }
        waiting.push_back(edge.record);
      }
    }
    std::sort(reached_.begin(), reached_.end());
  }

  // The inputs to which a gradient of this record can flow.
  static std::vector<int> inputs_with_flow(const Record &record) {
    std::vector<int> of;
    if (record.what.op && !record.what.backward) {
      const Gradient gradient = record.what.op->gradient_of(record.what.parsed);
      if (gradient.kind == Gradient::Kind::kNone) return of;
      return inputs_with_gradient(*record.what.op, gradient, record.edges.size());
    }
    for (size_t i = 0; i < record.edges.size(); ++i) of.push_back(int(i));
    return of;
  }

  // Finds flows_: the records that must pass gradients on, because they lead to a target.
  void mark_wanted(bool targets_only) {
    std::set<Key> targets;
    for (const Tracked &target : targets_) targets.insert({target.edge.record, target.edge.output});
    for (uint64_t id : reached_) {  // oldest first
      const Record &record = tape_.records_.at(id);
      bool wanted = !targets_only && record.is_variable;
      for (size_t j = 0; j < record.out_types.size() && !wanted; ++j) wanted = targets.count({id, int(j)}) != 0;
      bool flows = false;
      for (int k : inputs_with_flow(record)) flows = flows || wanted_.count(record.edges[size_t(k)].record) != 0;
      if (flows) flows_.insert(id);
      if (flows || wanted) wanted_.insert(id);
    }
    for (const Key &target : targets) targets_of_[target.first].push_back(target.second);
  }

  void count_gradients(const Values &heads) {
    for (const Tracked &head : heads) ++num_gradients_[{head.edge.record, head.edge.output}];
    for (uint64_t id : flows_) {
      const Record &record = tape_.records_.at(id);
      for (int k : inputs_with_flow(record)) {
        const Edge &edge = record.edges[size_t(k)];
        ++num_gradients_[{edge.record, edge.output}];
      }
    }
  }

  // The inputs that an operator itself writes, in its forward or backward step.
  static std::vector<int> states(const Record &record) {
    if (!record.what.op) return {};
    std::vector<int> own = record.what.mutated(record.inputs.size());
    if (record.what.backward) return own;
    const Gradient gradient = record.what.op->gradient_of(record.what.parsed);
    own.insert(own.end(), gradient.writes.begin(), gradient.writes.end());
    return own;
  }

  static void check_versions(const Record &record) {
    const std::vector<int> own = states(record);
    for (const std::vector<KeptArray> *kept : {&record.inputs, &record.outputs}) {
      for (size_t i = 0; i < kept->size(); ++i) {
        const KeptArray &array = (*kept)[i];
        if (kept == &record.inputs && std::count(own.begin(), own.end(), int(i))) continue;
        if (!array.array || array.version == array.array.own_version()) continue;
        throw Error(Code::kState,
                    text(kept == &record.inputs ? "input " : "output ", i, " of ", record.name(), ", array ",
                         array.array.shape(), ", was overwritten after it was recorded, and the gradient needs it"),
                    "heads");
      }
    }
  }

  // ---- gradients on their way ----

  Tracked apply(const char *op, const Values &inputs, const Arrays &outputs, const AttrMap &attrs = {}) {
    Application what;
    what.op = &get_op(op);
    what.attrs = attrs;
    what.parsed = what.op->parse(attrs);
    return tape_.apply(what, inputs, outputs, Context(), 0).front();
  }

  Tracked ones_like(const NDArray &array) {
    // Queued; a length of 0 in an attribute means that it is unknown.
    if (!array.context().on_host() && array.shape().rank() > 0 && array.shape().size() > 0) {
      const std::vector<int64_t> lengths(array.shape().begin(), array.shape().end());
      const AttrMap attrs{{"shape", print_tuple(lengths)}, {"dtype", dtype_name(array.dtype())}};
      return {cohort::invoke("_ones", attrs, {}, {}, array.context())[0], Edge()};
    }
    Tracked ones{NDArray::create(array.shape(), array.dtype(), array.context(), false), Edge()};
    ones.array.fill(1);
    return ones;
  }

  // Copies an array that the host has passed: it may be written before the gradient is read, by the host or as the
  // gradient of a variable.
  Tracked copy_of(const Tracked &value) { return apply("_copy", {value}, {}); }

  // The array as it is now: a constant if it was overwritten since it was recorded.
  Tracked as_it_is(const NDArray &array) {
    const Known *known = tape_.find_known(array, "gradients", 0);
    if (!known) return {array, Edge()};
    if (!tape_.is_stale(*known)) return {array, known->edge};
    tape_.untrack(array);
    return {array, Edge()};
  }

  Tracked in_shape(const Tracked &value, const Shape &shape) {
    if (value.array.shape() == shape) return value;
    if (value.edge.record == 0 || !tape_.recording_) return {value.array.reshape(shape), Edge()};
    const std::vector<int64_t> lengths(shape.begin(), shape.end());
    return apply("Reshape", {value}, {}, {{"shape", print_tuple(lengths)}});
  }

  // `is_own`: nothing else reads or keeps the array.
  void add_gradient(const Edge &edge, const Tracked &gradient, bool is_own = false) {
    if (!wanted_.count(edge.record) || !gradient.array) return;
    const Key key{edge.record, edge.output};
    const TensorType &type = tape_.records_.at(edge.record).out_types[size_t(edge.output)];
    Sum &sum = sums_[key];
    sum.given.push_back(in_shape(gradient, type.shape));
    if (num_gradients_[key] > kFewGradients) add_up(&sum, type_of_sum(type.dtype), is_own);
  }

  // An array for the next gradient of an output; may be null.
  NDArray take_spare(const Edge &edge) {
    const auto found = sums_.find({edge.record, edge.output});
    return found == sums_.end() ? NDArray() : std::exchange(found->second.spare, NDArray());
  }

  // Adds the gradient given last to the running sum.
  void add_up(Sum *sum, Dtype type, bool is_own) {
    const bool is_first = sum->given.size() == 1;
    const NDArray last = sum->given.back().array;
    if (tape_.recording_) {
      sum->given.back() = cast(sum->given.back(), type);
      if (!is_first) sum->given = {apply("elemwise_add", sum->given, {})};
    } else if (!is_first || last.dtype() != type) {
      sum->given = {tape_.sum(sum->given, type, sum->is_own ? sum->given.front().array : NDArray())};
      sum->is_own = true;
      if (is_own) sum->spare = last;
    } else {
      sum->is_own = is_own;
    }
  }

  Tracked cast(const Tracked &value, Dtype type) {
    if (value.array.dtype() == type) return value;
    if (!tape_.recording_) return tape_.sum({value}, type, NDArray());
    return apply("Cast", {value}, {}, {{"dtype", dtype_name(type)}});
  }

  // The sum of the gradients that an output was given; null if there are none.
  Tracked collect(const Edge &edge) {
    const auto found = sums_.find({edge.record, edge.output});
    if (found == sums_.end()) return {};
    Sum &sum = found->second;
    sum.spare = NDArray();
    if (sum.given.size() > 1) {
      sum.given = {apply("add_n", sum.given, {}, {{"num_args", std::to_string(sum.given.size())}})};
    } else if (num_gradients_[found->first] > kFewGradients) {
      sum.given = {cast(sum.given.front(), tape_.records_.at(edge.record).out_types[size_t(edge.output)].dtype)};
    }
    return sum.given.front();
  }

  void collect_targets(uint64_t id) {
    const auto found = targets_of_.find(id);
    if (found == targets_of_.end()) return;
    for (int output : found->second) collected_[{id, output}] = collect({id, output});
  }

  void differentiate(uint64_t id) {
    const Record &record = tape_.records_.at(id);
    Values heads;
    bool any = false;
    for (size_t j = 0; j < record.out_types.size(); ++j) {
      heads.push_back(collect({id, int(j)}));
      any = any || heads.back().array;
      sums_.erase({id, int(j)});
    }
    if (record.function) {
      if (any) by_function(record, heads);
      return;
    }
    check_versions(record);  // check again: host functions have run since
    const bool reads_heads = record.what.backward || record.what.op->gradient_of(record.what.parsed).head_grads;
    if (!any && reads_heads) return;
    std::vector<bool> has_head;
    for (const Tracked &head : heads) has_head.push_back(bool(head.array));
    GradientGraph graph(record.what, record.in_types, record.out_types, has_head);
    if (options_.create_graph || record.what.backward) {
      cohort::differentiate(graph);
    } else {
      differentiate_once(graph);
    }
    evaluate(graph, id, record, heads);
  }

  // Applies the nodes that a wanted gradient depends on.
  void evaluate(const GradientGraph &graph, uint64_t id, const Record &record, const Values &heads) {
    const auto &infos = graph.values();
    std::vector<bool> used(infos.size(), false);
    for (size_t k = 0; k < record.edges.size(); ++k) {
      const int gradient = graph.gradients()[k];
      if (gradient >= 0 && wanted_.count(record.edges[k].record)) used[size_t(gradient)] = true;
    }
    for (size_t n = graph.nodes().size(); n-- > 0;) {
      const GradientGraph::Node &node = graph.nodes()[n];
      if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](int v) { return used[size_t(v)]; })) continue;
      for (int v : node.inputs) used[size_t(v)] = true;
    }
    Values values(infos.size());
    for (size_t v = 0; v < infos.size(); ++v) {
      if (!used[v]) continue;
      const size_t at = size_t(infos[v].index);
      switch (infos[v].from) {
        case GradientGraph::From::kHead:
          values[v] = heads[at];
          break;
        case GradientGraph::From::kInput:
          values[v] = {record.inputs[at].array, record.edges[at]};
          break;
        case GradientGraph::From::kOutput:
          values[v] = {record.outputs[at].array, {id, int(at)}};
          break;
        case GradientGraph::From::kNode:
          continue;
      }
      if (!values[v].array) {
        throw Error(Code::kInternal, text("the gradient of ", record.name(), " reads an array that was not kept"));
      }
    }
    // Per value: how many inputs it is the gradient of, and the last of these.
    std::vector<int> num_receivers(infos.size(), 0), receiver(infos.size(), -1);
    for (size_t k = 0; k < record.edges.size(); ++k) {
      const int gradient = graph.gradients()[k];
      if (gradient < 0 || !wanted_.count(record.edges[k].record)) continue;
      ++num_receivers[size_t(gradient)];
      receiver[size_t(gradient)] = int(k);
    }
    std::vector<bool> is_own(infos.size(), false);
    for (const GradientGraph::Node &node : graph.nodes()) {
      std::vector<bool> wanted;
      for (int v : node.outputs) wanted.push_back(used[size_t(v)]);
      if (std::none_of(wanted.begin(), wanted.end(), [](bool w) { return w; })) continue;
      Values inputs;
      for (int v : node.inputs) inputs.push_back(values[size_t(v)]);
      Values made;
      if (node.what.backward) {
        std::vector<TensorType> types;
        Arrays spare;
        for (int v : node.outputs) {
          types.push_back(infos[size_t(v)].type);
          is_own[size_t(v)] = num_receivers[size_t(v)] == 1;
          spare.push_back(is_own[size_t(v)] ? take_spare(record.edges[size_t(receiver[size_t(v)])]) : NDArray());
        }
        made = tape_.apply_backward(node.what, inputs, types, wanted, record, spare);
      } else {
        made = tape_.apply(node.what, inputs, {}, record.context, 0);
      }
      for (size_t i = 0; i < node.outputs.size(); ++i) values[size_t(node.outputs[i])] = made[i];
      limit_queued(made);
    }
    for (size_t k = 0; k < record.edges.size(); ++k) {
      const int gradient = graph.gradients()[k];
      if (gradient >= 0 && record.edges[k].record)
        add_gradient(record.edges[k], values[size_t(gradient)], is_own[size_t(gradient)]);
    }
  }

  // Queued work holds its arrays until it is done.
  void limit_queued(const Values &made) {
    for (const Tracked &value : made) {
      if (!value.array) continue;
      queued_bytes_ += value.array.bytes();
      if (queued_bytes_ < most_queued(value.array.context())) continue;
      value.array.wait_to_write();
      queued_bytes_ = 0;
    }
  }

  void by_function(const Record &record, const Values &heads) {
    const std::shared_ptr<TapeFunction> function = record.function;
    const std::vector<Edge> edges = record.edges;
    const std::vector<TensorType> types = record.in_types;
    const std::vector<Context> contexts = record.in_contexts;
    const Context context = record.context;
    Arrays head_grads;
    for (size_t j = 0; j < heads.size(); ++j) {
      const TensorType &type = record.out_types[j];
      head_grads.push_back(heads[j].array ? heads[j].array : NDArray::create(type.shape, type.dtype, context));
    }
    const Arrays gradients = function->backward(head_grads);
    if (gradients.size() != edges.size()) {
      throw Error(Code::kInvalidArgument,
                  text("gradients: expected one for each of ", edges.size(), " inputs of the function, found ",
                       gradients.size()),
                  "gradients");
    }
    for (size_t k = 0; k < edges.size(); ++k) {
      if (!gradients[k] || !edges[k].record) continue;
      if (gradients[k].context() != contexts[k]) {
        throw Error(Code::kDevice,
                    text("gradients[", k, "]: expected context ", contexts[k], ", found ", gradients[k].context()),
                    "gradients");
      }
      if (gradients[k].shape() != types[k].shape || gradients[k].dtype() != types[k].dtype) {
        throw Error(gradients[k].shape() != types[k].shape ? Code::kShape : Code::kDtype,
                    text("gradients[", k, "]: expected ", types[k].shape, " ", types[k].dtype, ", found ",
                         gradients[k].shape(), " ", gradients[k].dtype()),
                    "gradients");
      }
      add_gradient(edges[k], copy_of(tape_.track(gradients[k], "gradients", k)));
    }
  }

  Tape &tape_;
  const BackwardOptions options_;
  const bool was_recording_;
  std::vector<uint64_t> reached_;  // ascending
  std::set<uint64_t> seen_, wanted_, flows_;
  Values targets_;
  std::map<uint64_t, std::vector<int>> targets_of_;
  std::map<Key, Tracked> collected_;
  std::map<Key, size_t> num_gradients_;  // the most that each output can get
  std::map<Key, Sum> sums_;
  size_t queued_bytes_ = 0;  // of gradients, since the pass has last waited
};

void Tape::backward(const Arrays &heads, const Arrays &head_grads, const BackwardOptions &options) {
  Backward work(*this, options);
  work.prepare(heads, head_grads, nullptr);
  work.run();
  work.write_variables();
  work.finish();
}

Tape::Arrays Tape::gradients_of(const Arrays &heads, const Arrays &head_grads, const Arrays &variables,
                                const BackwardOptions &options) {
  Backward work(*this, options);
  work.prepare(heads, head_grads, &variables);
  work.run();
  Arrays gradients = work.take_targets();
  work.finish();
  return gradients;
}

}  // namespace cohort
