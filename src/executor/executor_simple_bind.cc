// SPDX-License-Identifier: Apache-2.0
// Simple bind: the arrays are inferred and allocated, or taken from a shared executor and a pool.
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/names.hpp"
#include "executor/executor.hpp"
#include "executor/executor_impl.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

// EXE-16: refuses sparse storage that the caller or the symbol asks for.
void refuse_sparse(const Graph &graph, const SimpleBind &what) {
  std::set<std::string> dense_names;
  for (const auto &[name, type] : what.storage_types) {
    if (type < -1 || type > 2) {
      throw Error(Code::kInvalidArgument, text("storage_types: expected -1 to 2 for '", name, "', found ", type), name);
    }
    if (type > 0)
      throw Error(Code::kUnsupported,
                  text("storage_types: '", name, "': expected dense storage (0), found sparse storage (", type, ")"),
                  name);
    if (type == 0) dense_names.insert(name);
  }
  for (const NodePtr &node : graph.nodes) {
    const auto type = node->attrs.find("__storage_type__");
    if (!node->is_variable() || type == node->attrs.end() || dense_names.count(node->name) > 0) continue;
    if (type->second == "0" || type->second == "-1") continue;
    throw Error(Code::kUnsupported,
                text("'", node->name, "': expected dense storage, found the __storage_type__ ", type->second),
                node->name);
  }
}

// Contexts that the caller asks for, and those of arrays that belong to the shared executor.
std::map<int, Context> given_contexts(const Graph &graph, const SimpleBind &what, const Executor *shared) {
  std::map<int, Context> places;
  for (size_t i = 0; i < what.arg_contexts.size(); ++i) places[graph.arguments[i]] = what.arg_contexts[i];
  for (size_t i = 0; i < what.aux_contexts.size(); ++i) places[graph.auxiliary[i]] = what.aux_contexts[i];
  for (size_t i = 0; i < what.grad_contexts.size(); ++i) {
    const int argument = graph.arguments[i];
    const Context &place = places.emplace(argument, what.grad_contexts[i]).first->second;
    if (place == what.grad_contexts[i]) continue;
    const std::string &name = graph.nodes[size_t(argument)]->name;
    throw Error(Code::kUnsupported,
                text("grad_contexts: gradient of '", name, "': expected ", place,
                     ", the context of the argument, found ", what.grad_contexts[i]),
                name);
  }
  if (!shared) return places;
  for (const std::vector<int> *list : {&graph.arguments, &graph.auxiliary}) {
    for (int n : *list) {
      const std::string &name = graph.nodes[size_t(n)]->name;
      const bool is_aux = list == &graph.auxiliary;
      const int at = is_aux ? shared->aux_index(name) : what.param_names.count(name) > 0 ? shared->arg_index(name) : -1;
      if (at >= 0) places[n] = (is_aux ? shared->aux() : shared->args())[size_t(at)].context();
    }
  }
  return places;
}

NDArray new_array(const char *kind, const std::string &name, const Shape &shape, Dtype dtype, const Context &context) {
  return name_allocation([&] { return NDArray::create(shape, dtype, context); }, kind, " '", name, "'");
}

// SHR-03, 04: an array from the pool with another shape, or a new one that replaces it there.
NDArray from_pool(const SimpleBind &what, const std::string &key, const Shape &shape, Dtype dtype,
                  const Context &context, ArrayPool *staged) {
  const auto found = what.pool->find(key);
  if (found != what.pool->end()) {
    const NDArray &known = found->second;
    if (known.dtype() != dtype) {
      throw Error(Code::kDtype, text("shared array '", key, "': expected ", dtype, ", found ", known.dtype()), key);
    }
    if (known.context() == context && known.capacity_bytes() >= size_t(shape.size()) * dtype_size(dtype)) {
      return NDArray(known.storage(), 0, shape, dtype);
    }
    const std::string message = text("shared array '", key, "' of shape ", known.shape(), " is too small for ", shape,
                                     " and is reallocated; bind the largest bucket first to save memory");
    if (what.warn) {
      what.warn(message);
    } else {
      log(LogLevel::kWarning, message);
    }
  }
  const NDArray fresh = new_array("shared array", key, shape, dtype, context);
  (*staged)[key] = fresh;
  return fresh;
}

// The array itself if `context` can use its memory; else a copy.
NDArray given_or_copied(const NDArray &given, const Shape &shape, Dtype dtype, const Context &context,
                        const std::string &name) {
  if (given.shape() != shape) {
    throw Error(Code::kShape, text("'", name, "': expected shape ", shape, ", found ", given.shape()), name);
  }
  if (given.dtype() == dtype && given.context() == context) return given;
  if (given.dtype() == dtype && given.context().on_host() && context.on_host()) {
    auto memory = std::make_shared<Memory>(context, given.data(), given.bytes(), nullptr);
    return NDArray(std::make_shared<Storage>(std::move(memory), given.storage()), 0, shape, dtype);
  }
  const NDArray copy =
      name_allocation([&] { return NDArray::create(shape, dtype, context, false); }, "copy of '", name, "'");
  copy.copy_from(given);
  return copy;
}

size_t index_in_shared(const std::vector<std::string> &names, const std::string &name, const char *kind) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error(Code::kName, text("the shared executor has no ", kind, " '", name, "'"), name);
  return size_t(found - names.begin());
}

}  // namespace

// Arguments are shared (EXE-17), or come from the pool if they are no parameters, or are new.
void Executor::Impl::make_arguments(const SimpleBind &what, const Impl *shared, ArrayPool *staged) {
  const std::vector<Context> place = node_contexts();
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const size_t n = size_t(graph.arguments[i]);
    const std::string &name = arg_names[i];
    const Shape &shape = inferred.shapes[n][0];
    const Dtype dtype = inferred.dtypes[n][0];
    const bool is_param = what.param_names.count(name) > 0, has_gradient = reqs[i] != GradReq::kNull;
    NDArray argument, gradient;
    if (is_param && shared) {
      const size_t at = index_in_shared(shared->arg_names, name, "parameter");
      argument = shared->arrays.args[at];
      if (has_gradient) gradient = shared->arrays.grads[at];  // SHR-06: may be none, then it gets its own
      check_array(argument, shape, dtype, "shared parameter", name);
    } else if (const auto given = what.given_params.find(name); is_param && given != what.given_params.end()) {
      argument = given_or_copied(given->second, shape, dtype, place[n], name);
    } else if (is_param || !what.pool) {
      argument = new_array("argument", name, shape, dtype, place[n]);
    } else {
      argument = from_pool(what, name, shape, dtype, place[n], staged);
      if (has_gradient) gradient = from_pool(what, "grad of " + name, shape, dtype, place[n], staged);
    }
    if (has_gradient && !gradient) gradient = new_array("gradient of", name, shape, dtype, argument.context());
    arrays.args.push_back(argument);
    arrays.grads.push_back(gradient);
  }
}

void Executor::Impl::make_auxiliary(const SimpleBind &what, const Impl *shared) {
  const std::vector<Context> place = node_contexts();
  for (size_t i = 0; i < graph.auxiliary.size(); ++i) {
    const size_t n = size_t(graph.auxiliary[i]);
    const Shape &shape = inferred.shapes[n][0];
    const Dtype dtype = inferred.dtypes[n][0];
    if (!shared) {
      const auto given = what.given_aux.find(aux_names[i]);
      arrays.aux.push_back(given == what.given_aux.end()
                               ? new_array("auxiliary state", aux_names[i], shape, dtype, place[n])
                               : given_or_copied(given->second, shape, dtype, place[n], aux_names[i]));
      continue;
    }
    const NDArray &state = shared->arrays.aux[index_in_shared(shared->aux_names, aux_names[i], "auxiliary state")];
    check_array(state, shape, dtype, "shared auxiliary state", aux_names[i]);
    arrays.aux.push_back(state);
  }
}

std::shared_ptr<Executor> Executor::simple_bind(const Symbol &symbol, const SimpleBind &what,
                                                const ExecutorOptions &options) {
  std::unique_ptr<Impl> impl = prepare(symbol, options, {});
  const Graph &graph = impl->graph;
  refuse_duplicates(impl->arg_names, "arguments");
  refuse_duplicates(impl->aux_names, "auxiliary states");
  refuse_sparse(graph, what);
  impl->reqs = what.grad_reqs;
  if (what.grad_req.as_named && what.grad_req.named.empty())
    throw Error(Code::kInvalidArgument, "grad_req_list: expected entries, found none", "grad_req");
  if (impl->reqs.empty()) {
    const std::vector<GradReq> all(impl->arg_names.size(), what.grad_req.all_or(GradReq::kNull));
    impl->reqs = resolve_grad_reqs(what.grad_req, impl->arg_names, all);
  }
  const auto check_count = [](const char *which, size_t expected, size_t found) {
    if (found == expected) return;
    throw Error(Code::kInvalidArgument, text(which, ": expected ", expected, " entries, found ", found), which);
  };
  check_count("grad_req", impl->arg_names.size(), impl->reqs.size());
  if (!what.arg_contexts.empty()) check_count("arg_contexts", impl->arg_names.size(), what.arg_contexts.size());
  if (!what.grad_contexts.empty()) check_count("grad_contexts", impl->arg_names.size(), what.grad_contexts.size());
  if (!what.aux_contexts.empty()) check_count("aux_contexts", impl->aux_names.size(), what.aux_contexts.size());
  std::vector<Shape> shapes(graph.nodes.size());
  std::vector<Dtype> dtypes(graph.nodes.size(), Dtype::kNone);
  const ByName<Shape> given_shapes(what.shapes);
  const ByName<Dtype> given_dtypes(what.dtypes);
  for (const std::vector<int> *list : {&graph.arguments, &graph.auxiliary}) {
    for (int n : *list) {
      const std::string &name = graph.nodes[size_t(n)]->name;
      if (const Shape *shape = given_shapes.find(name)) shapes[size_t(n)] = *shape;
      if (const Dtype *dtype = given_dtypes.find(name)) dtypes[size_t(n)] = *dtype;
    }
  }
  impl->infer_shapes(shapes);
  impl->infer_dtypes(std::move(dtypes), what.strict_dtypes);

  // Arrays are shared only together with a pool (EXE-17).
  const Executor *const shared = what.pool ? options.shared.get() : nullptr;
  const Impl *const shared_impl = shared ? shared->impl_.get() : nullptr;
  impl->fix_contexts(given_contexts(graph, what, shared));
  ArrayPool staged;  // the pool changes only when all went well
  impl->make_arguments(what, shared_impl, &staged);
  impl->make_auxiliary(what, shared_impl);
  impl->finish_bind();
  for (const auto &entry : staged) (*what.pool)[entry.first] = entry.second;
  std::shared_ptr<Executor> executor(new Executor());
  executor->impl_ = std::move(impl);
  return executor;
}

}  // namespace cohort
