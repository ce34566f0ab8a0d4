// SPDX-License-Identifier: Apache-2.0
#include "executor/value_shapes.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "device/kernel_table.hpp"
#include "executor/planned_network.hpp"

namespace cohort {

namespace {

std::shared_ptr<Device> host() { return get_device(Context{DeviceType::kCpu, 0}); }

}  // namespace

bool has_shape_by_values(const Op &op) { return !host()->kernels().candidates("_shape_" + op.name).empty(); }

Shape shape_by_values(const Op &op, const Attrs &attrs, const std::vector<NDArray> &inputs) {
  std::vector<TensorSpec> types;
  std::vector<void *> addresses;
  std::vector<NDArray> here;
  for (const NDArray &input : inputs) {
    here.push_back(input.on_host());
    here.back().wait();
    types.push_back({input.shape(), input.dtype(), nullptr});
    addresses.push_back(here.back().data());
  }
  int64_t axes[1 + kMaxAxes] = {};
  void *output = axes;
  StepSpec spec = StepSpec::of("_shape_" + op.name, attrs.pointer(), std::move(types),
                               {{Shape{1 + kMaxAxes}, Dtype::kInt64, nullptr}}, 1);
  Args args;
  args.inputs = addresses.data();
  args.outputs = &output;
  try {
    host()->make_kernel(spec)->run(args, {1, nullptr});
  } catch (const Error &e) {
    throw Error(e.code(), text("operator ", op.name, ": ", e.what()), e.subject().empty() ? op.name : e.subject());
  }
  return Shape(axes + 1, axes + 1 + axes[0]);
}

SplitNetwork::SplitNetwork(Executor::Impl &whole) : whole_(whole) {
  find_later_nodes();
  cut_second();
  std::shared_ptr<SharedPartState> &common = whole_.part_state;
  if (!common) common = std::make_shared<SharedPartState>();
  if (!common->inner) common->inner = std::make_shared<SharedPartState>();
  if (!common->arenas) common->arenas = std::make_shared<SharedArenas>(whole_.arenas->timeline);
  common->arenas->join(*whole_.arenas);
  bind_first();
  // Even outputs of a known shape: each second part has its own.
  for (const size_t h : second_heads_) whole_.arrays.outputs[h] = NDArray();
}

SplitNetwork::Source SplitNetwork::source_of(int variable) const {
  const Graph &graph = whole_.graph;
  const bool is_state = graph.is_auxiliary[size_t(variable)];
  const std::vector<int> &list = is_state ? graph.auxiliary : graph.arguments;  // ascending
  return {is_state ? Source::kState : Source::kArgument,
          size_t(std::lower_bound(list.begin(), list.end(), variable) - list.begin())};
}

const NDArray &SplitNetwork::array(const Source &source) const {
  if (source.kind == Source::kCutEdge) return first_->outputs()[first_heads_.size() + source.index];
  return (source.kind == Source::kState ? whole_.arrays.aux : whole_.arrays.args)[source.index];
}

void SplitNetwork::take(const Source &source, Arguments *to) const {
  NDArray gradient;
  GradReq req = GradReq::kNull;
  if (source.kind == Source::kCutEdge) {
    gradient = cut_edges_[source.index].gradient;
    req = cut_edges_[source.index].req;
  } else if (source.kind == Source::kArgument) {
    gradient = whole_.arrays.grads[source.index];
    req = whole_.reqs[source.index];
  }
  to->arrays.push_back(array(source));
  to->grads.push_back(std::move(gradient));
  to->reqs.push_back(req);
}

// Finds the nodes whose inputs have known shapes but whose output has not, and all that depend on them.
void SplitNetwork::find_later_nodes() {
  const Graph &graph = whole_.graph;
  const std::vector<Context> places = whole_.node_contexts();
  const auto is_known = [](const Shape &shape) { return shape.known(); };
  later_.assign(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = *graph.nodes[n];
    if (node.is_variable()) continue;
    bool inputs_known = true;
    for (const Graph::Input &input : graph.inputs[n]) {
      inputs_known = inputs_known && is_known(whole_.inferred.shapes[size_t(input.node)][size_t(input.index)]);
      later_[n] = later_[n] || later_[size_t(input.node)];
    }
    const Shapes &outputs = whole_.inferred.shapes[n];
    if (later_[n] || std::all_of(outputs.begin(), outputs.end(), is_known)) continue;
    later_[n] = true;
    sized_.push_back(int(n));
    if (inputs_known && outputs.size() == 1 && has_shape_by_values(*node.op)) continue;
    throw Error(Code::kShape,
                text("node '", node.name, "' (", node.op->name,
                     "): the shape of its output cannot be inferred, not even from values"),
                node.name);
  }
}

void SplitNetwork::cut_second() {
  const Graph &graph = whole_.graph;
  std::vector<NodePtr> copies(graph.nodes.size()), variables;  // variables: of the cut edges
  std::unordered_map<const Node *, int> of_whole;
  const auto entry_of = [&](const Graph::Input &input) -> Entry {
    const size_t from = size_t(input.node);
    if (later_[from]) return {copies[from], input.index};
    if (graph.nodes[from]->is_variable()) return {graph.nodes[from], 0};
    size_t t = 0;
    while (t < cut_edges_.size() && (cut_edges_[t].from.node != input.node || cut_edges_[t].from.index != input.index))
      ++t;
    if (t == cut_edges_.size()) {
      cut_edges_.push_back({input, {}, GradReq::kNull});
      auto variable = std::make_shared<Node>();
      variable->name = graph.output_name(input);
      variables.push_back(std::move(variable));
    }
    return {variables[t], 0};
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    of_whole[graph.nodes[n].get()] = int(n);
    if (!later_[n]) continue;
    auto copy = std::make_shared<Node>(*graph.nodes[n]);
    for (size_t k = 0; k < copy->inputs.size(); ++k) copy->inputs[k] = entry_of(graph.inputs[n][k]);
    of_whole[copy.get()] = int(n);
    copies[n] = std::move(copy);
  }
  std::vector<Entry> heads;
  for (size_t h = 0; h < graph.heads.size(); ++h) {
    const bool later = later_[size_t(graph.heads[h].node)];
    (later ? second_heads_ : first_heads_).push_back(h);
    if (later) heads.push_back(entry_of(graph.heads[h]));
  }
  second_symbol_ = Symbol(std::move(heads));

  const Graph second(second_symbol_);
  for (const NodePtr &node : second.nodes) {
    const auto found = of_whole.find(node.get());
    second_nodes_.push_back(found == of_whole.end() ? -1 : found->second);
  }
  const auto position = [](const auto &list, const auto &what) {
    return size_t(std::find(list.begin(), list.end(), what) - list.begin());
  };
  for (const int node : sized_) second_sized_.push_back(int(position(second_nodes_, node)));
  for (const int n : second.arguments) {
    const int node = second_nodes_[size_t(n)];
    second_args_.push_back(node < 0 ? Source{Source::kCutEdge, position(variables, second.nodes[size_t(n)])}
                                    : source_of(node));
  }
  for (const int n : second.auxiliary) second_aux_.push_back(source_of(second_nodes_[size_t(n)]).index);
}

// The random streams of the whole's nodes, each of which belongs to one part. A cut edge draws nothing.
RandomStreams SplitNetwork::random_of(const std::vector<int> &nodes) const {
  const RandomStreams &whole = whole_.arrays.random;
  RandomStreams streams{whole.network, {}};
  for (const int node : nodes) streams.of_node.push_back(node < 0 ? SIZE_MAX : whole.of_node[size_t(node)]);
  return streams;
}

// Its heads are those of the whole that belong to it, then the cut edges.
void SplitNetwork::bind_first() {
  const Graph &graph = whole_.graph;
  std::vector<Entry> heads;
  const auto add = [&](const Graph::Input &entry) { heads.push_back({graph.nodes[size_t(entry.node)], entry.index}); };
  for (const size_t h : first_heads_) add(graph.heads[h]);
  for (const CutEdge &edge : cut_edges_) add(edge.from);
  if (heads.empty()) return;
  const Symbol symbol(std::move(heads));
  const Graph first(symbol);
  std::unordered_map<const Node *, int> of_whole;
  for (size_t n = 0; n < graph.nodes.size(); ++n) of_whole[graph.nodes[n].get()] = int(n);
  for (const NodePtr &node : first.nodes) first_nodes_.push_back(of_whole.at(node.get()));
  Arguments args;
  std::vector<NDArray> aux;
  for (const int n : first.arguments) {
    const Source source = source_of(first_nodes_[size_t(n)]);
    const bool of_second = std::any_of(second_args_.begin(), second_args_.end(), [&](const Source &other) {
      return other.kind == source.kind && other.index == source.index;
    });
    take(source, &args);
    // Backward of the second part runs first and has written its share.
    if (of_second && args.reqs.back() == GradReq::kWrite) args.reqs.back() = GradReq::kAdd;
  }
  for (const int n : first.auxiliary) aux.push_back(array(source_of(first_nodes_[size_t(n)])));
  const bool any = std::any_of(args.reqs.begin(), args.reqs.end(), [](GradReq req) { return req != GradReq::kNull; });

  Executor::PartSetup part;
  part.arenas = whole_.arenas;
  part.random = random_of(first_nodes_);
  part.cut_inputs = cut_inputs_in(first_nodes_);
  for (const auto &[node, shape] : whole_.sized) {
    const auto found = std::find(first_nodes_.begin(), first_nodes_.end(), node);
    if (found != first_nodes_.end()) part.shapes.emplace_back(int(found - first_nodes_.begin()), shape);
  }
  part.num_cut_heads = cut_edges_.size();
  ExecutorOptions of_first = options();
  for (const size_t h : first_heads_) of_first.outputs.push_back(whole_.arrays.outputs[h]);
  first_ = Executor::bind_part(symbol, std::move(args.arrays), std::move(args.grads), std::move(args.reqs),
                               std::move(aux), of_first, part);
  const std::vector<NDArray> &outputs = first_->outputs();
  for (size_t i = 0; i < first_heads_.size(); ++i) whole_.arrays.outputs[first_heads_[i]] = outputs[i];
  for (size_t t = 0; t < cut_edges_.size() && any; ++t) {
    const NDArray &made = outputs[first_heads_.size() + t];
    cut_edges_[t].gradient =
        NDArray::create(made.shape(), made.dtype(), made.context());  // stays 0 if the second computes none
    if (dtype_is_float(made.dtype())) cut_edges_[t].req = GradReq::kWrite;
  }
}

ExecutorOptions SplitNetwork::options() const {
  ExecutorOptions of_part = whole_.options;
  of_part.compute.all_known = false;  // named nodes may be in the other part
  of_part.outputs.clear();            // they belong to the whole
  return of_part;
}

const NDArray &SplitNetwork::value(const Graph::Input &input) const {
  for (size_t t = 0; t < cut_edges_.size(); ++t) {
    const Graph::Input &from = cut_edges_[t].from;
    if (from.node == input.node && from.index == input.index) return array({Source::kCutEdge, t});
  }
  return array(source_of(input.node));
}

std::shared_ptr<Executor> SplitNetwork::bind_second(const Shapes &shapes) const {
  Arguments args;
  std::vector<NDArray> aux;
  for (const Source &source : second_args_) take(source, &args);
  for (const size_t i : second_aux_) aux.push_back(whole_.arrays.aux[i]);
  Executor::PartSetup part;
  part.arenas = whole_.part_state->arenas;
  part.random = random_of(second_nodes_);
  part.cut_inputs = cut_inputs_in(second_nodes_);
  part.part_state = whole_.part_state->inner;
  for (size_t i = 0; i < shapes.size(); ++i) part.shapes.emplace_back(second_sized_[i], shapes[i]);
  ExecutorOptions of_second = options();
  return Executor::bind_part(second_symbol_, std::move(args.arrays), std::move(args.grads), std::move(args.reqs),
                             std::move(aux), of_second, part);
}

const std::shared_ptr<Executor> &SplitNetwork::second(const Shapes &shapes) {
  const auto known =
      std::find_if(seconds_.begin(), seconds_.end(), [&](const auto &entry) { return entry.first == shapes; });
  if (known != seconds_.end()) {
    seconds_.splice(seconds_.begin(), seconds_, known);
  } else {
    seconds_.emplace_front(shapes, bind_second(shapes));
    if (seconds_.size() > kMost) seconds_.pop_back();
  }
  return seconds_.front().second;
}

std::vector<bool> SplitNetwork::cut_inputs_in(const std::vector<int> &nodes) const {
  std::vector<bool> cut_inputs;
  for (const int node : nodes) cut_inputs.push_back(node < 0 || whole_.is_cut_input(node));
  return cut_inputs;
}

void SplitNetwork::prepare_part() {
  const bool is_second = pass_.backward == (pass_.num_prepared++ == 0);
  if (is_second && !pass_.backward) choose_second();
  const std::shared_ptr<Executor> &part = is_second ? current_ : first_;
  if (!part || (pass_.backward && !part->impl_->any_gradient)) return;
  part->set_monitor(whole_.monitor, whole_.monitor_all);
  if (pass_.backward) {
    std::vector<ArraySlice> given;
    for (const size_t h : is_second ? second_heads_ : first_heads_)
      given.push_back(h < pass_.head_grads.size() ? pass_.head_grads[h] : ArraySlice());
    for (size_t t = 0; t < cut_edges_.size() && !is_second; ++t) given.emplace_back(cut_edges_[t].gradient);
    part->prepare_backward(given, pass_.is_train, {});
  } else {
    part->prepare_forward(pass_.is_train);
  }
  pass_.running = part.get();
}

void SplitNetwork::prepare_forward(bool is_train) {
  pass_ = {/* backward */ false, is_train};
  prepare_part();
}

void SplitNetwork::prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train, const BucketPrograms &) {
  pass_ = {/* backward */ true, is_train, head_grads};
  prepare_part();
}

const std::vector<int> &SplitNetwork::sync_nodes() const {
  static const std::vector<int> none;
  return pass_.running ? pass_.running->sync_nodes() : none;
}

void SplitNetwork::begin() {
  if (pass_.running) pass_.running->begin();
  pass_.begun = true;
}

PassStop SplitNetwork::advance() {
  if (!pass_.started) {
    pass_.begun = pass_.started = true;
    whole_.backward_has_run = pass_.backward;
    is_complete_ = is_complete_ && pass_.backward;
  }
  if (pass_.num_prepared == pass_.num_ended) {
    prepare_part();
    return PassStop::kBetweenParts;
  }
  if (pass_.running) {
    const PassStop stop = pass_.running->advance();
    if (stop != PassStop::kEnd) return stop;
  }
  pass_.running = nullptr;
  if (++pass_.num_ended == 1) return PassStop::kBetweenParts;
  if (!pass_.backward) {
    show_outputs();
    is_complete_ = true;
    whole_.log_if_none_narrow(*this);
  }
  pass_ = {};
  return PassStop::kEnd;
}

// Also fails what the part that did not run would have written.
void SplitNetwork::abandon(const char *why) {
  const RunningPass pass = std::exchange(pass_, {});
  if (pass.running) pass.running->abandon(why);
  if (!pass.begun) return;
  const auto &last = pass.backward ? first_ : current_;
  if (!last) return;
  last->impl_->network->each_planned([&](const PlannedNetwork &planned) { planned.fail_pass(pass.backward, why); });
}

int SplitNetwork::partial_forward(bool, int) {
  const Node &sized = *node_sized_by_values();
  throw Error(Code::kUnsupported,
              text("partial_forward: not supported where shapes depend on values, as that of '", sized.name, "' (",
                   sized.op->name, ") does"),
              sized.name);
}

void SplitNetwork::choose_second() {
  current_ = second(found_shapes());
  show_outputs();
}

// If the second part has two parts itself, its outputs are known when it has run.
void SplitNetwork::show_outputs() {
  for (size_t i = 0; i < second_heads_.size(); ++i) whole_.arrays.outputs[second_heads_[i]] = current_->outputs()[i];
}

Shapes SplitNetwork::found_shapes() const {
  Shapes shapes;
  for (size_t i = 0; i < sized_.size(); ++i) {
    const size_t n = size_t(sized_[i]);
    const Node &node = *whole_.graph.nodes[n];
    std::vector<NDArray> inputs;
    for (const Graph::Input &input : whole_.graph.inputs[n]) inputs.push_back(value(input));
    shapes.push_back(shape_by_values(*node.op, node.parsed, inputs));
  }
  return shapes;
}

void SplitNetwork::each_planned(const std::function<void(const PlannedNetwork &)> &fn) const {
  for (const auto *part : {&first_, &current_})
    if (*part) (*part)->impl_->network->each_planned(fn);
}

bool SplitNetwork::has_run() const {
  bool has_run = is_complete_;
  each_planned([&](const PlannedNetwork &planned) { has_run = has_run && planned.has_run(); });
  return has_run;
}

std::vector<int> SplitNetwork::gradient_order() {  // all are complete at the end of backward
  std::vector<int> order;
  for (size_t i = 0; i < whole_.reqs.size(); ++i)
    if (whole_.reqs[i] != GradReq::kNull) order.push_back(int(i));
  return order;
}

std::vector<bool> SplitNetwork::narrow_nodes() const {
  std::vector<bool> narrow(whole_.graph.nodes.size(), false);
  const auto add = [&](const std::shared_ptr<Executor> &part, const std::vector<int> &nodes) {
    if (!part) return;
    const std::vector<bool> of_part = part->impl_->network->narrow_nodes();
    for (size_t n = 0; n < of_part.size(); ++n)
      if (of_part[n]) narrow[size_t(nodes[n])] = true;
  };
  add(first_, first_nodes_);
  add(current_, second_nodes_);
  return narrow;
}

}  // namespace cohort
