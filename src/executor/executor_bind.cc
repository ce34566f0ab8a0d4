// SPDX-License-Identifier: Apache-2.0
// Binding to given arrays: placement, inference, checks, outputs; reshape binds again over the same arrays.
#include <algorithm>

#include "base/error.hpp"
#include "base/processors.hpp"
#include "base/random.hpp"
#include "executor/executor.hpp"
#include "executor/planned_network.hpp"
#include "executor/value_shapes.hpp"
#include "ndarray/name_allocation.hpp"
#include "symbol/fused_layer.hpp"

namespace cohort {
namespace {

// Names of the arguments, then auxiliary states, that inference left without a complete shape or without a type. `told`
// also gets what is known of their shapes.
std::string unknown_names(const Graph &graph, const Inferred &inferred, bool shapes, std::string *told = nullptr) {
  std::string names;
  for (const std::vector<int> *list : {&graph.arguments, &graph.auxiliary}) {
    for (int n : *list) {
      const Shape &shape = inferred.shapes[size_t(n)][0];
      if (shapes ? shape.known() : inferred.dtypes[size_t(n)][0] != Dtype::kNone) continue;
      const std::string name = (names.empty() ? "" : ", ") + graph.nodes[size_t(n)]->name;
      names += name;
      if (told) *told += shape.rank_known() ? text(name, " ", shape) : name;
    }
  }
  return names;
}

void check_context(const NDArray &array, const Context &context, const std::string &what, const std::string &name) {
  if (array.context() == context) return;
  throw Error(Code::kDevice, text(what, " '", name, "' is on ", array.context(), ", expected ", context), name);
}

// One per node. The network's number separates networks on the same arenas, the part's number executors with the
// same seed.
RandomStreams random_streams(const Graph &graph, const ExecutorOptions &options, uint32_t network) {
  RandomStreams result{std::make_shared<NodeStreams>(), {}};
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = *graph.nodes[n];
    RandomStream stream;
    if (!node.is_variable() && node.op->is_random(node.parsed))
      stream.seed = stream_seed(options.seed, n, uint64_t(network) << 32 | options.batch_part);
    result.network->names.push_back(node.name);
    result.network->streams.push_back(stream);
    result.of_node.push_back(n);
  }
  return result;
}

// Per argument: it is named, or a layer multiplies with it, or a norm scales by it. If it is written before each pass,
// that costs a copy and nothing else.
std::vector<bool> constants_of(const Graph &graph, const std::set<std::string> &named) {
  std::vector<bool> of_layers(graph.nodes.size(), false), constants;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Op *const op = graph.nodes[n]->op;
    if (!op || (!op->linear_layer && !op->channel_scaling && !is_fused_layer(*graph.nodes[n]))) continue;
    for (size_t k = 1; k < graph.inputs[n].size(); ++k) of_layers[size_t(graph.inputs[n][k].node)] = true;
  }
  for (const int n : graph.arguments) {
    constants.push_back(of_layers[size_t(n)] || named.count(graph.nodes[size_t(n)]->name) > 0);
  }
  return constants;
}

}  // namespace

void check_array(const NDArray &array, const Shape &shape, Dtype dtype, const std::string &what,
                 const std::string &name) {
  if (array.shape() != shape) {
    throw Error(Code::kShape, text(what, " '", name, "': expected ", shape, ", found ", array.shape()), name);
  }
  if (array.dtype() != dtype) {
    throw Error(Code::kDtype, text(what, " '", name, "': expected ", dtype, ", found ", array.dtype()), name);
  }
}

Executor::Impl::Impl() = default;
Executor::Impl::~Impl() = default;

std::unique_ptr<Executor::Impl> Executor::prepare(const Symbol &symbol, const ExecutorOptions &options,
                                                  const PartSetup &part) {
  if (options.num_threads < 0) {
    throw Error(Code::kInvalidArgument, text("num_threads: expected 0 or more, found ", options.num_threads),
                "num_threads");
  }
  if (options.shared) options.shared->check_idle("bind");  // its arena may be replaced
  auto impl = std::make_unique<Impl>();
  impl->symbol = symbol;
  impl->graph = Graph(symbol);
  impl->options = options;
  impl->options.shared = nullptr;
  impl->arg_names = impl->graph.argument_names();
  impl->constants = constants_of(impl->graph, impl->options.constants);
  impl->precisions = node_precisions(impl->graph, options.compute);
  impl->ranges = node_ranges(impl->graph, options.compute);
  impl->aux_names = impl->graph.auxiliary_names();
  for (const Graph::Input &head : impl->graph.heads) impl->output_names.push_back(impl->graph.output_name(head));
  impl->part_state = part.part_state;
  impl->is_part = part.arenas != nullptr;
  impl->arenas = part.arenas      ? part.arenas
                 : options.shared ? options.shared->impl_->arenas
                                  : std::make_shared<SharedArenas>();
  impl->arrays.random =
      part.random.network ? part.random : random_streams(impl->graph, options, impl->arenas->num_networks++);
  impl->arrays.batch_sync = options.batch_sync;
  impl->arrays.loss_scale = options.loss_scale;
  impl->arrays.batch_part = options.batch_part;
  impl->share_threads();
  impl->join(options.context);
  for (const auto &[group, context] : options.group2ctx) impl->group_devices[group] = impl->join(context);
  impl->node_contexts();  // refuses groups without a context before anything is allocated
  impl->check_compute_type();
  return impl;
}

void Executor::Impl::check_compute_type() const {
  if (options.compute.dtype != Dtype::kFloat16) return;
  for (const size_t index : arena_index) {
    const Context &context = arenas->devices[index].device->context();
    if (context.type == DeviceType::kGpu) continue;
    throw Error(Code::kUnsupported, text("compute_dtype float16: expected gpu contexts alone, found ", context),
                "compute_dtype");
  }
}

// The host may have bound one array, or parts of one, to several variables: what a node writes through one of them is
// read through the others.
std::vector<int> Executor::Impl::same_memory() const {
  struct Piece {
    AddressRange range;
    int node;
  };
  std::vector<bool> written(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const PassKind pass : {PassKind::kInference, PassKind::kTraining, PassKind::kBackward})
      for (const int variable : graph.written_by(n, pass)) written[size_t(variable)] = true;
  std::vector<Piece> pieces;
  const auto add = [&](const std::vector<int> &nodes, const std::vector<NDArray> &of) {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!of[i].range().empty()) pieces.push_back({of[i].range(), nodes[i]});
  };
  add(graph.arguments, arrays.args);
  add(graph.auxiliary, arrays.aux);
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) { return a.range.begin < b.range.begin; });
  std::vector<int> result;
  for (size_t first = 0, end; first < pieces.size(); first = end) {
    uintptr_t up_to = pieces[first].range.end;
    for (end = first + 1; end < pieces.size() && pieces[end].range.begin < up_to; ++end)
      up_to = std::max(up_to, pieces[end].range.end);
    int front = pieces[first].node;
    bool any_written = false;
    for (size_t i = first; i < end; ++i) {
      front = std::min(front, pieces[i].node);
      any_written = any_written || written[size_t(pieces[i].node)];
    }
    if (end - first == 1 || !any_written) continue;
    result.resize(graph.nodes.size(), -1);
    for (size_t i = first; i < end; ++i) result[size_t(pieces[i].node)] = front;
  }
  return result;
}

// A backward pass would lose what it wrote first, or read a gradient where a node expects the value of a variable.
// Gradients that are added up may share memory with each other.
void Executor::Impl::check_written_gradients() const {
  struct Piece {
    AddressRange range;
    const char *what;
    const std::string *name;
    bool is_written_gradient;
  };
  std::vector<Piece> pieces;
  const auto add = [&](const NDArray &array, const char *what, const std::string &name, bool is_written_gradient) {
    if (array && !array.range().empty()) pieces.push_back({array.range(), what, &name, is_written_gradient});
  };
  for (size_t i = 0; i < arg_names.size(); ++i) add(arrays.args[i], "argument", arg_names[i], false);
  for (size_t i = 0; i < aux_names.size(); ++i) add(arrays.aux[i], "auxiliary state", aux_names[i], false);
  for (size_t i = 0; i < arg_names.size(); ++i)
    if (reqs[i] != GradReq::kNull) add(arrays.grads[i], "gradient of", arg_names[i], reqs[i] == GradReq::kWrite);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece &a, const Piece &b) { return a.range.begin < b.range.begin; });
  const Piece *farthest = nullptr, *farthest_written = nullptr;  // of the pieces before: those that end last
  for (const Piece &piece : pieces) {
    const Piece *const before = piece.is_written_gradient ? farthest : farthest_written;
    if (before && before->range.overlaps(piece.range)) {
      const Piece &written = piece.is_written_gradient ? piece : *before;
      const Piece &other = piece.is_written_gradient ? *before : piece;
      throw Error(
          Code::kInvalidArgument,
          text("gradient of '", *written.name, "' with grad_req 'write': expected memory of its own, found that of ",
               other.what, " '", *other.name, "'"),
          *written.name);
    }
    const auto keep = [&](const Piece *&last) {
      if (!last || piece.range.end > last->range.end) last = &piece;
    };
    keep(farthest);
    if (piece.is_written_gradient) keep(farthest_written);
  }
}

// Devices of one network work at the same time: they divide the processors.
void Executor::Impl::share_threads() {
  std::vector<Context> on_host;
  const auto count = [&](const Context &context) {
    if (context.on_host() && std::find(on_host.begin(), on_host.end(), context) == on_host.end()) {
      on_host.push_back(context);
    }
  };
  count(options.context);
  for (const auto &entry : options.group2ctx) count(entry.second);
  num_threads = options.num_threads;
  if (num_threads <= 0 && on_host.size() > 1) num_threads = default_threads(int(on_host.size()));
}

int Executor::Impl::join(const Context &context) {
  const auto found = std::find(contexts.begin(), contexts.end(), context);
  if (found != contexts.end()) return int(found - contexts.begin());
  SharedArenas::DeviceArena &on = arenas->arena_on(context, num_threads);
  contexts.push_back(context);
  arena_index.push_back(size_t(&on - arenas->devices.data()));
  return int(contexts.size()) - 1;
}

std::vector<Context> Executor::Impl::node_contexts() const {
  const std::vector<int> device = place_nodes(graph, group_devices, fixed_devices);
  std::vector<Context> result;
  for (const int d : device) result.push_back(contexts[size_t(d)]);
  // State that is updated in place must be on the operator's device: an update of a copy would be lost.
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int state : graph.written_by(n, PassKind::kTraining)) {
      if (device[size_t(state)] == device[n]) continue;
      const std::string &name = graph.nodes[size_t(state)]->name;
      throw Error(Code::kDevice,
                  text(graph.is_auxiliary[size_t(state)] ? "auxiliary state '" : "argument '", name, "' is on ",
                       result[size_t(state)], ", expected ", result[n]),
                  name);
    }
  }
  return result;
}

void Executor::Impl::fix_contexts(const std::map<int, Context> &given) {
  if (!group_devices.empty()) {  // without groups everything is on the default context (EXE-06)
    for (const auto &[node, context] : given) fixed_devices[node] = join(context);
  }
  const std::vector<Context> placed = node_contexts();
  for (const auto &[node, context] : given) {
    const std::string &name = graph.nodes[size_t(node)]->name;
    if (context == placed[size_t(node)]) continue;
    throw Error(Code::kDevice, text("array of '", name, "' is on ", context, ", expected ", placed[size_t(node)]),
                name);
  }
}

void Executor::Impl::infer_shapes(const std::vector<Shape> &by_node) {
  infer_shapes_at(graph, by_node, &inferred);
  if (inferred.shapes_complete) return;
  std::string told;
  const std::string names = unknown_names(graph, inferred, true, &told);
  if (names.empty()) return;  // the rest may depend on values
  throw Error(Code::kShape, text("shapes cannot be inferred from those given; unknown: ", told), names);
}

// Types that inference cannot know become float32, one variable at a time since each may settle others (EXE-14).
void Executor::Impl::infer_dtypes(std::vector<Dtype> by_node, bool strict) {
  infer_dtypes_at(graph, by_node, &inferred);
  if (inferred.dtypes_complete) return;
  if (strict) {
    const std::string names = unknown_names(graph, inferred, false);
    throw Error(Code::kDtype, text("element types cannot be inferred from those given; unknown: ", names), names);
  }
  for (const std::vector<int> *list : {&graph.arguments, &graph.auxiliary}) {
    for (int n : *list) {
      if (inferred.dtypes[size_t(n)][0] != Dtype::kNone) continue;
      by_node[size_t(n)] = Dtype::kFloat32;
      infer_dtypes_at(graph, by_node, &inferred);
    }
  }
}

void Executor::Impl::make_outputs() {
  const std::vector<Context> place = node_contexts();
  arrays.outputs.clear();
  for (size_t h = 0; h < graph.heads.size(); ++h) {
    const Graph::Input &head = graph.heads[h];
    const Shape &shape = inferred.shapes[size_t(head.node)][size_t(head.index)];
    const Dtype dtype = inferred.dtypes[size_t(head.node)][size_t(head.index)];
    if (graph.nodes[size_t(head.node)]->is_variable()) {  // EXE-07
      const bool is_aux = graph.is_auxiliary[size_t(head.node)];
      const std::vector<int> &nodes = is_aux ? graph.auxiliary : graph.arguments;  // ascending
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), head.node) - nodes.begin();
      arrays.outputs.push_back((is_aux ? arrays.aux : arrays.args)[size_t(at)]);
    } else if (!shape.known()) {
      arrays.outputs.emplace_back();
    } else if (h < options.outputs.size() && options.outputs[h]) {
      check_array(options.outputs[h], shape, dtype, "output array", output_names[h]);
      arrays.outputs.push_back(options.outputs[h]);
    } else {
      const Context &where = place[size_t(head.node)];
      arrays.outputs.push_back(
          name_allocation([&] { return NDArray::create(shape, dtype, where); }, "output '", output_names[h], "'"));
    }
  }
}

void Executor::Impl::finish_bind() {
  for (size_t i = 0; i < reqs.size(); ++i) {
    if (!arrays.grads[i]) reqs[i] = GradReq::kNull;  // EXE-04
    any_gradient = any_gradient || reqs[i] != GradReq::kNull;
  }
  if (!is_part) check_written_gradients();  // the gradients of a part are those of the whole
  make_outputs();
  if (inferred.shapes_complete) {
    auto planned = std::make_unique<PlannedNetwork>(*this);
    planned->compile_usual();
    network = std::move(planned);
  } else {
    network = std::make_unique<SplitNetwork>(*this);
  }
}

std::shared_ptr<Executor> Executor::bind(const Symbol &symbol, std::vector<NDArray> args, std::vector<NDArray> grads,
                                         std::vector<GradReq> reqs, std::vector<NDArray> aux,
                                         const ExecutorOptions &options) {
  return bind_part(symbol, std::move(args), std::move(grads), std::move(reqs), std::move(aux), options, {});
}

std::shared_ptr<Executor> Executor::bind_part(const Symbol &symbol, std::vector<NDArray> args,
                                              std::vector<NDArray> grads, std::vector<GradReq> reqs,
                                              std::vector<NDArray> aux, const ExecutorOptions &options,
                                              const PartSetup &part) {
  std::unique_ptr<Impl> impl = prepare(symbol, options, part);
  const size_t count = impl->arg_names.size();
  auto check_count = [](size_t expected, size_t found, const char *what) {
    if (expected != found) {
      throw Error(Code::kInvalidArgument, text("bind: expected ", expected, " ", what, ", found ", found), what);
    }
  };
  check_count(count, args.size(), "arguments");
  check_count(impl->aux_names.size(), aux.size(), "auxiliary states");
  if (grads.empty()) grads.resize(count);
  check_count(count, grads.size(), "gradient arrays");
  if (reqs.empty()) reqs.assign(count, GradReq::kNull);
  check_count(count, reqs.size(), "grad_reqs");

  std::vector<Shape> shapes(impl->graph.nodes.size());
  std::vector<Dtype> dtypes(impl->graph.nodes.size(), Dtype::kNone);
  std::map<int, Context> places;
  auto take = [&](const std::vector<int> &nodes, const std::vector<NDArray> &arrays, const char *what) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string &name = impl->graph.nodes[size_t(nodes[i])]->name;
      if (!arrays[i]) throw Error(Code::kName, text("bind: ", what, " '", name, "' has no array"), name);
      places[nodes[i]] = arrays[i].context();
      shapes[size_t(nodes[i])] = arrays[i].shape();
      dtypes[size_t(nodes[i])] = arrays[i].dtype();
    }
  };
  take(impl->graph.arguments, args, "argument");
  take(impl->graph.auxiliary, aux, "auxiliary state");
  impl->sized = part.shapes;
  impl->cut_inputs = part.cut_inputs;
  impl->num_cut_heads = part.num_cut_heads;
  for (const auto &[node, shape] : impl->sized) shapes[size_t(node)] = shape;
  impl->fix_contexts(places);
  impl->infer_shapes(shapes);
  impl->infer_dtypes(std::move(dtypes), false);
  for (size_t i = 0; i < count; ++i) {
    if (!grads[i]) continue;
    check_array(grads[i], args[i].shape(), args[i].dtype(), "gradient of", impl->arg_names[i]);
    check_context(grads[i], args[i].context(), "gradient of", impl->arg_names[i]);
  }
  impl->reqs = std::move(reqs);
  impl->arrays.args = std::move(args);
  impl->arrays.grads = std::move(grads);
  impl->arrays.aux = std::move(aux);
  impl->finish_bind();
  std::shared_ptr<Executor> executor(new Executor());
  executor->impl_ = std::move(impl);
  return executor;
}

std::shared_ptr<Executor> Executor::reshape(const ReshapeOptions &how) {
  const Impl &old = *impl_;
  ExecutorOptions options = old.options;
  if (how.context) options.context = *how.context;
  if (how.group2ctx) options.group2ctx = *how.group2ctx;
  options.outputs = how.outputs;
  options.shared = shared_from_this();
  std::unique_ptr<Impl> impl = prepare(old.symbol, options, {});
  impl->arrays.random = old.arrays.random;
  impl->part_state = old.part_state;
  const Graph &graph = impl->graph;
  std::vector<Shape> shapes(graph.nodes.size());
  const ByName<Shape> given_shapes(how.shapes);
  for (int n : graph.arguments) {
    if (const Shape *shape = given_shapes.find(graph.nodes[size_t(n)]->name)) shapes[size_t(n)] = *shape;
  }
  std::map<int, Context> places;
  for (size_t i = 0; i < graph.arguments.size(); ++i) places[graph.arguments[i]] = old.arrays.args[i].context();
  for (size_t i = 0; i < graph.auxiliary.size(); ++i) places[graph.auxiliary[i]] = old.arrays.aux[i].context();
  impl->fix_contexts(places);
  impl->infer_shapes(shapes);
  impl->inferred.dtypes = old.inferred.dtypes;
  impl->inferred.dtypes_complete = true;

  // EXE-28: an array of no more elements keeps its memory. A larger one is allocated even if the storage is large
  // enough: the rest of the storage belongs to others.
  auto follow = [&](const NDArray &array, const Shape &shape, const std::string &name) {
    if (!array || array.shape() == shape) return array;
    if (shape.size() <= array.size()) return array.window(shape);
    if (!how.allow_up_sizing) {
      throw Error(Code::kShape,
                  text("'", name, "': new shape ", shape, " is larger than the bound ", array.shape(),
                       " and up-sizing is not allowed"),
                  name);
    }
    return NDArray::create(shape, array.dtype(), array.context());
  };
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const std::string &name = impl->arg_names[i];
    const Shape &shape = impl->inferred.shapes[size_t(graph.arguments[i])][0], &bound = old.arrays.args[i].shape();
    const bool may_change = how.partial_shaping || given_shapes.find(name) || how.may_follow.count(name) > 0;
    if (shape != bound && !may_change) {
      throw Error(Code::kShape, text("shape of unspecified argument '", name, "' changed from ", bound, " to ", shape),
                  name);
    }
    impl->arrays.args.push_back(follow(old.arrays.args[i], shape, name));
    impl->arrays.grads.push_back(follow(old.arrays.grads[i], shape, name));
  }
  for (size_t i = 0; i < graph.auxiliary.size(); ++i) {
    const std::string &name = impl->aux_names[i];
    const Shape &shape = impl->inferred.shapes[size_t(graph.auxiliary[i])][0], &bound = old.arrays.aux[i].shape();
    if (shape != bound && !how.partial_shaping) {
      throw Error(Code::kShape, text("shape of auxiliary state '", name, "' changed from ", bound, " to ", shape),
                  name);
    }
    impl->arrays.aux.push_back(follow(old.arrays.aux[i], shape, name));
  }
  impl->reqs = old.reqs;
  impl->monitor = old.monitor;
  impl->monitor_all = old.monitor_all;
  impl->finish_bind();
  std::shared_ptr<Executor> executor(new Executor());
  executor->impl_ = std::move(impl);
  return executor;
}

}  // namespace cohort
