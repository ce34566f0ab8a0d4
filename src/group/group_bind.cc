// SPDX-License-Identifier: Apache-2.0
// Binding: options for each device's executor, merged outputs, sharing, reshape. New executors are made aside and
// adopted as a whole, so that a failure changes nothing (BND-09).
#include <algorithm>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/processors.hpp"
#include "device/device.hpp"
#include "group/group_impl.hpp"
#include "group/group_sync.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

constexpr size_t kMostCachedBindings = 16;

bool contains(const std::vector<std::string> &names, const std::string &name) { return index_of(names, name) >= 0; }

bool is_described(const DataDescs &descs, const std::string &name) {
  return std::any_of(descs.begin(), descs.end(), [&](const DataDesc &desc) { return desc.name == name; });
}

// Whether the devices' parts, joined along this axis, lie one after the other in memory.
bool contiguous_along(const Shape &shape, int axis) {
  for (int i = 0; i < axis; ++i)
    if (shape[i] != 1) return false;
  return true;
}

bool agree_outside(const Shape &a, const Shape &b, int axis) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (i != axis && a[i] != b[i]) return false;
  return true;
}

}  // namespace

std::vector<int64_t> starts_of_parts(const Shapes &parts, int axis) {
  std::vector<int64_t> starts{0};
  for (const Shape &part : parts) {
    if (axis < 0 || !part.known() || axis >= part.rank() || !agree_outside(parts[0], part, axis)) return {};
    starts.push_back(starts.back() + part[axis]);
  }
  return starts;
}

// The variables that losses take as labels, each with the name of a loss.
std::map<std::string, std::string> Group::Impl::labels_of_losses() const {
  std::map<std::string, std::string> found;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = *graph.nodes[n];
    if (node.is_variable() || !node.op->is_loss(node.parsed)) continue;
    const std::vector<std::string> names = node.op->input_names(node.parsed, int(node.inputs.size()));
    for (size_t i = 0; i < names.size(); ++i) {
      const Node &source = *graph.nodes[size_t(graph.inputs[n][i].node)];
      if (names[i] == "label" && source.is_variable()) found.emplace(source.name, node.name);
    }
  }
  return found;
}

// Warns of losses without labels: most often a caller has forgotten these.
void Group::Impl::warn_of_missing_labels(const DataDescs &data, const DataDescs &labels) const {
  if (!options.for_training) return;
  for (const auto &entry : labels_of_losses()) {
    const std::string &name = entry.first;
    if (is_described(data, name) || is_described(labels, name) || contains(options.param_names, name) ||
        contains(options.state_names, name))
      continue;
    log(LogLevel::kWarning,
        text(
            "the label '", name, "' of '", entry.second,
            "' is not among the label descriptors: training uses the current values of the argument, initially zeros"));
  }
}

void Group::Impl::prepare(const Symbol &given, const DataDescs &data, const DataDescs &labels) {
  if (options.contexts.empty()) {
    throw Error(Code::kInvalidArgument, "contexts: expected at least one, found none", "contexts");
  }
  for (const Context &context : options.contexts)  // before memory is asked for, whose errors name arrays
    if (!context.on_host()) get_device(context);
  if (!options.slices.empty()) check_slices(options.slices, num_devices());
  symbol = given;
  graph = Graph(symbol);
  arg_names = graph.argument_names();
  aux_names = graph.auxiliary_names();
  for (const Graph::Input &head : graph.heads) {
    output_names.push_back(graph.output_name(head));
    const AttrMap &attrs = graph.nodes[size_t(head.node)]->attrs;
    const auto found = attrs.find("__layout__");
    has_layout.push_back(found != attrs.end());
    head_layouts.push_back(found != attrs.end() ? found->second : "");
  }
  check_arg_names();
  const std::map<std::string, std::string> losses = labels_of_losses();
  refuse_duplicates(arg_names, "arguments");
  refuse_duplicates(aux_names, "auxiliary states");
  for (size_t i = 0; options.all_params && i < arg_names.size(); ++i) {
    const std::string &name = arg_names[i];
    if (is_described(data, name) || is_described(labels, name) || losses.count(name)) continue;
    if (contains(options.state_names, name)) continue;
    options.param_names.push_back(name);
  }
  for (size_t i = 0; i < arg_names.size(); ++i) {
    if (!contains(options.param_names, arg_names[i])) continue;
    param_args.push_back(int(i));
    param_arg_names.push_back(arg_names[i]);
  }
  refuse_duplicates(options.state_names, "states");
  for (const std::string &name : options.state_names) {
    const int arg = index_of(arg_names, name);
    if (arg < 0) throw Error(Code::kName, text("state '", name, "' is not among the arguments"), name);
    state_args.push_back(arg);
  }
}

void Group::Impl::refuse_if_managed(const char *call) const {
  if (!options.managed) return;
  throw Error(Code::kState, text(call, ": this group belongs to a manager, which binds its groups itself"), "group");
}

// GRP-08: a caller that pairs arrays by position must have the order of the symbol.
void Group::Impl::check_arg_names() const {
  const std::vector<std::string> &given = options.arg_names;
  if (given.empty() || given == arg_names) return;
  if (given.size() != arg_names.size()) {
    throw Error(Code::kInvalidArgument,
                text("arg_names: expected the symbol's ", arg_names.size(), " arguments, found ", given.size()),
                "arg_names");
  }
  const size_t at = size_t(std::mismatch(given.begin(), given.end(), arg_names.begin()).first - given.begin());
  throw Error(Code::kInvalidArgument,
              text("arg_names[", at, "]: expected the symbol's '", arg_names[at], "', found '", given[at], "'"),
              "arg_names");
}

// GRP-07: names that have no effect are most often misspelt.
void Group::Impl::check_unknown_names() const {
  const auto check = [&](const char *list, const std::string &name, const std::vector<std::string> &known,
                         const char *what) {
    if (contains(known, name)) return;
    const std::string found = text(list, ": '", name, "' is not among the ", what);
    if (options.strict_names) throw Error(Code::kName, found + nearest_words(known, name), name);
    log(LogLevel::kWarning, found + ", and is ignored" + nearest_words(known, name));
  };
  for (const std::string &name : options.param_names) check("param_names", name, arg_names, "arguments");
  for (const std::string &name : options.fixed_param_names)
    check("fixed_param_names", name, param_arg_names, "parameters");
  for (const auto &[name, req] : options.grad_req.named) check("grad_req_names", name, arg_names, "arguments");
  for (const auto &[name, dtype] : options.input_dtypes) check("input_dtype_names", name, arg_names, "arguments");
}

// GRQ-01..07.
std::vector<GradReq> Group::Impl::resolve_grad_reqs(const GroupBinding &binding) const {
  const GradReq all = options.grad_req.all_or(GradReq::kWrite);
  std::vector<GradReq> reqs(arg_names.size(), GradReq::kNull);
  for (size_t i = 0; i < reqs.size(); ++i) {
    if (contains(options.param_names, arg_names[i])) {
      reqs[i] = contains(options.fixed_param_names, arg_names[i]) ? GradReq::kNull : all;
    } else if (options.inputs_need_grad) {
      for (const DataDesc &desc : binding.data)
        if (desc.name == arg_names[i]) reqs[i] = all;
    }
  }
  reqs = cohort::resolve_grad_reqs(options.grad_req, arg_names, std::move(reqs));
  if (!options.for_training) reqs.assign(reqs.size(), GradReq::kNull);
  return reqs;
}

// Checks descriptors and splits the batch; binds nothing.
std::shared_ptr<GroupBinding> Group::Impl::describe(const DataDescs &data, const DataDescs &labels) const {
  if (data.empty()) {
    throw Error(Code::kInvalidArgument, "data: expected at least one descriptor, found none", "data");
  }
  auto binding = std::make_shared<GroupBinding>();
  binding->data = data;
  binding->labels = labels;
  std::set<std::string> names;
  const auto take = [&](const DataDescs &descs, const char *what, std::vector<int> *args) {
    for (const DataDesc &desc : descs) {
      const int arg = index_of(arg_names, desc.name);
      if (arg < 0) throw Error(Code::kName, text(what, " '", desc.name, "' is not among the arguments"), desc.name);
      if (!names.insert(desc.name).second) {
        throw Error(Code::kName, text(what, " '", desc.name, "' is described twice"), desc.name);
      }
      if (!desc.shape.known()) {
        throw Error(Code::kShape, text(what, " '", desc.name, "': expected a whole shape, found ", desc.shape),
                    desc.name);
      }
      args->push_back(arg);
    }
  };
  take(data, "data", &binding->data_args);
  take(labels, "label", &binding->label_args);
  binding->data_axes = batch_axes(data, &binding->batch_size);
  binding->label_axes = batch_axes(labels, &binding->batch_size);
  if (binding->batch_size > 0) {
    if (options.slices.empty()) {
      binding->slices = split_batch(binding->batch_size, options.workload, num_devices(), options.rounding);
    } else {
      binding->slices = options.slices;
      if (binding->slices.back().end != binding->batch_size) {
        throw Error(Code::kInvalidArgument,
                    text("slices: expected them to end at the batch size ", binding->batch_size, ", found ",
                         binding->slices.back().end),
                    "slices");
      }
    }
  }
  for (size_t h = 0; h < output_names.size(); ++h) {
    binding->output_axes.push_back(has_layout[h] ? batch_axis(head_layouts[h]) : binding->batch_size > 0 ? 0 : -1);
  }
  return binding;
}

// DIF-05: an override, then `__dtype__` of a data variable, then the descriptor.
Dtype Group::Impl::input_dtype(const DataDesc &desc, bool is_label) const {
  for (const auto &entry : options.input_dtypes)
    if (entry.first == desc.name && entry.second != Dtype::kNone) return entry.second;
  if (!is_label) {
    for (int node : graph.arguments) {
      const Node &variable = *graph.nodes[size_t(node)];
      const auto found = variable.attrs.find("__dtype__");
      if (variable.name != desc.name || found == variable.attrs.end()) continue;
      const int64_t code = parse_int("__dtype__ of " + desc.name, found->second);
      if (code == -1) continue;
      if (code < 0 || code > INT32_MAX || !dtype_valid(int32_t(code))) {
        throw Error(Code::kDtype, text("'", desc.name, "': no element type has the code ", code, " of its __dtype__"),
                    desc.name);
      }
      return Dtype(code);
    }
  }
  return desc.dtype;
}

namespace {

DataDescs device_descs(const GroupBinding &binding, bool labels, size_t device) {
  const DataDescs &descs = labels ? binding.labels : binding.data;
  if (binding.slices.empty()) return descs;
  return slice_descs(descs, labels ? binding.label_axes : binding.data_axes, binding.slices[device]);
}

}  // namespace

// Shapes of the heads on each device, and their dtypes where they are known.
// The part of the caller's arrays that a device has, for errors which tell the shapes of that part.
std::string Group::Impl::words_of_slice(const GroupBinding &binding, size_t device) const {
  const BatchSlice &slice = binding.slices[device];
  std::string given;
  for (const auto *descs : {&binding.data, &binding.labels})
    for (const DataDesc &desc : *descs) given += text(given.empty() ? "" : ", ", "'", desc.name, "' ", desc.shape);
  return text("; device ", device, " of ", num_devices(), " has samples ", slice.begin, " to ", slice.end - 1, " of ",
              given);
}

std::vector<Shapes> Group::Impl::infer_heads(const GroupBinding &binding, std::vector<Dtype> *dtypes) const {
  std::vector<Shapes> heads(num_devices());
  std::map<int64_t, size_t> by_length;  // slices of one length have the same shapes
  for (size_t d = 0; d < num_devices(); ++d) {
    const int64_t length = binding.slices.empty() ? 0 : binding.slices[d].size();
    const auto known = by_length.emplace(length, d);
    if (!known.second) {
      heads[d] = heads[known.first->second];
      continue;
    }
    std::vector<std::pair<std::string, Shape>> shapes;
    for (bool labels : {false, true})
      for (const DataDesc &desc : device_descs(binding, labels, d)) shapes.emplace_back(desc.name, desc.shape);
    Inferred inferred;
    try {
      infer_shapes(graph, shapes, &inferred);
    } catch (const Error &error) {
      if (num_devices() == 1 || binding.slices.empty()) throw;
      throw Error(error.code(), error.what() + words_of_slice(binding, d), error.subject());
    }
    for (const Graph::Input &head : graph.heads) {
      heads[d].push_back(inferred.shapes[size_t(head.node)][size_t(head.index)]);
    }
  }
  std::vector<std::pair<std::string, Dtype>> types;
  for (const DataDesc &desc : binding.data) types.emplace_back(desc.name, input_dtype(desc, false));
  for (const DataDesc &desc : binding.labels) types.emplace_back(desc.name, input_dtype(desc, true));
  Inferred inferred;
  infer_dtypes(graph, types, &inferred);
  for (const Graph::Input &head : graph.heads) {
    dtypes->push_back(inferred.dtypes[size_t(head.node)][size_t(head.index)]);
  }
  return heads;
}

std::shared_ptr<Storage> OutputPool::take(const Key &key, const Context &context, size_t bytes) {
  std::shared_ptr<Storage> &known = storage[key];
  if (known && known->bytes() >= bytes) return known;
  const NDArray fresh = NDArray::create(Shape{int64_t(bytes)}, Dtype::kUint8, context);
  return known = fresh.storage();
}

// Finds where the parts of each output begin, and allocates outputs: on cpu contexts one array that all devices write
// their parts of, each through a window with its own context. The memory is the pool's and keeps its old contents, as
// another group may be using them. Returns [device][head]; null: the executor allocates its own.
std::vector<std::vector<NDArray>> Group::Impl::make_outputs(GroupBinding *binding, OutputPool *pool) const {
  std::vector<std::vector<NDArray>> windows(num_devices(), std::vector<NDArray>(output_names.size()));
  binding->merged.resize(output_names.size());
  binding->output_starts.resize(output_names.size());
  std::vector<Dtype> dtypes;
  const std::vector<Shapes> heads = infer_heads(*binding, &dtypes);
  const bool on_host = std::all_of(options.contexts.begin(), options.contexts.end(),
                                   [](const Context &context) { return context.on_host(); });
  for (size_t h = 0; h < output_names.size(); ++h) {
    const int axis = binding->output_axes[h];
    Shapes parts;
    for (size_t d = 0; d < num_devices(); ++d) parts.push_back(heads[d][h]);
    const std::vector<int64_t> starts = binding->output_starts[h] = starts_of_parts(parts, axis);
    if (starts.empty()) continue;
    const bool is_variable = graph.nodes[size_t(graph.heads[h].node)]->is_variable();
    if (is_variable || dtypes[h] == Dtype::kNone || !options.group2ctx.empty()) continue;
    const auto take = [&](size_t device_or_all, const Context &context, size_t bytes) {
      return name_allocation(
          [&] {
            return pool->take({h, device_or_all}, context, bytes);
          },
          "output '", output_names[h], "'");
    };
    if (num_devices() == 1 || !on_host || !contiguous_along(heads[0][h], axis)) {
      for (size_t d = 0; d < num_devices(); ++d) {
        const size_t bytes = dense_bytes(heads[d][h], dtypes[h]);
        windows[d][h] = NDArray(take(d, options.contexts[d], bytes), 0, heads[d][h], dtypes[h]);
      }
      continue;
    }
    Shape whole = heads[0][h];
    whole[axis] = starts.back();
    const size_t whole_bytes = dense_bytes(whole, dtypes[h]);
    const std::shared_ptr<Storage> storage = take(OutputPool::kAllDevices, options.contexts[0], whole_bytes);
    const NDArray merged(storage, 0, whole, dtypes[h]);
    const size_t row_bytes = whole_bytes / size_t(std::max<int64_t>(starts.back(), 1));
    for (size_t d = 0; d < num_devices(); ++d) {
      // A storage of its own, which has its own context.
      const size_t begin = size_t(starts[d]) * row_bytes, bytes = size_t(starts[d + 1] - starts[d]) * row_bytes;
      auto memory =
          std::make_shared<Memory>(options.contexts[d], static_cast<char *>(storage->data()) + begin, bytes, nullptr);
      windows[d][h] = NDArray(std::make_shared<Storage>(std::move(memory), storage), 0, heads[d][h], dtypes[h]);
    }
    binding->merged[h] = merged;
  }
  return windows;
}

// EXE-11.
const std::map<std::string, Context> &Group::Impl::group2ctx(size_t device) const {
  static const std::map<std::string, Context> none;
  const auto &maps = options.group2ctx;
  return maps.empty() ? none : maps[maps.size() == 1 ? 0 : device];
}

// The number of CPU contexts that work at the same time, each counted as often as it is used.
int Group::Impl::num_cpus() const {
  size_t count = 0;
  for (size_t d = 0; d < num_devices(); ++d) {
    std::set<Context> contexts{options.contexts[d]};
    for (const auto &entry : group2ctx(d)) contexts.insert(entry.second);
    count += size_t(std::count_if(contexts.begin(), contexts.end(), [](const Context &c) { return c.on_host(); }));
  }
  return int(std::max<size_t>(count, 1));
}

// The loss scale of the group with which parameters are shared. A group that binds again by itself continues with a
// copy of its own, as other groups may share the old one.
std::shared_ptr<LossScale> Group::Impl::make_loss_scale(const Group *shared) const {
  if (!options.for_training || options.loss_scale.initial == 0) return nullptr;
  refuse_unscaled(graph);
  if (shared && shared->impl_->loss_scale) return shared->impl_->loss_scale;
  if (loss_scale) return std::make_shared<LossScale>(*loss_scale);
  check_loss_scale(options.loss_scale.initial, "loss_scale");
  auto made = std::make_shared<LossScale>();
  made->value = options.loss_scale.initial;
  made->window = options.loss_scale.window;
  return made;
}

ExecutorOptions Group::Impl::executor_options(size_t device) const {
  ExecutorOptions result;
  result.context = options.contexts[device];
  result.group2ctx = group2ctx(device);
  result.num_threads = options.num_threads != 0 ? options.num_threads : default_threads(num_cpus());
  result.compute = options.compute;
  result.backward_once = options.backward_once;
  result.recompute = options.recompute;
  result.seed = options.seed;
  result.batch_part = uint32_t(device);
  result.constants = {options.param_names.begin(), options.param_names.end()};
  return result;
}

// SHR-02, SHR-05. Shapes and dtypes are checked by the executors.
void Group::Impl::check_shared(const Group &shared) const {
  const Impl &other = *shared.impl_;
  bool alike = num_devices() <= other.num_devices();
  for (size_t d = 0; alike && d < num_devices(); ++d) alike = options.contexts[d] == other.options.contexts[d];
  if (!alike) {
    std::string mine, theirs;
    for (const Context &context : options.contexts) mine += (mine.empty() ? "" : ", ") + text(context);
    for (const Context &context : other.options.contexts) theirs += (theirs.empty() ? "" : ", ") + text(context);
    throw Error(Code::kInvalidArgument,
                text("shared_group: expected the first of its own contexts (", theirs, "), found ", mine),
                "shared_group");
  }
  for (const std::string &name : param_arg_names) {
    if (other.current_binding->execs[0]->arg_index(name) < 0) {
      throw Error(Code::kName, text("parameter '", name, "' is not among the arguments of shared_group"), name);
    }
  }
}

void Group::Impl::bind(const DataDescs &data, const DataDescs &labels, const std::shared_ptr<Group> &shared) {
  const std::shared_ptr<GroupBinding> binding = describe(data, labels);
  std::vector<GradReq> reqs = resolve_grad_reqs(*binding);
  if (shared) check_shared(*shared);
  const std::shared_ptr<LossScale> new_loss_scale = make_loss_scale(shared.get());
  const auto new_gradient_scale = std::make_shared<double>(1);
  const std::shared_ptr<OutputPool> new_outputs = shared ? shared->impl_->outputs : std::make_shared<OutputPool>();
  const std::vector<std::vector<NDArray>> windows = make_outputs(binding.get(), new_outputs.get());
  std::vector<std::shared_ptr<ArrayPool>> new_pools;
  std::vector<ArrayPool> staged_pools;  // pools of another group change only if everything succeeds
  const std::shared_ptr<GroupSync> sync = GroupSync::create(symbol, num_devices());
  for (size_t d = 0; d < num_devices(); ++d) {
    new_pools.push_back(shared ? shared->impl_->pools[d] : std::make_shared<ArrayPool>());
    staged_pools.push_back(*new_pools.back());
    SimpleBind what;
    for (bool is_label : {false, true}) {
      for (const DataDesc &desc : device_descs(*binding, is_label, d)) {
        what.shapes.emplace_back(desc.name, desc.shape);
        what.dtypes.emplace_back(desc.name, input_dtype(desc, is_label));
      }
    }
    what.grad_reqs = reqs;
    what.param_names = {options.param_names.begin(), options.param_names.end()};
    what.pool = &staged_pools.back();
    what.given_params = options.given_params;
    what.given_aux = options.given_aux;
    what.warn = [this](const std::string &message) { log(LogLevel::kWarning, message); };
    ExecutorOptions how = executor_options(d);
    how.batch_sync = sync;
    if (new_loss_scale) how.loss_scale = new_gradient_scale;
    if (shared) how.shared = shared->impl_->current_binding->execs[d];
    how.outputs = windows[d];
    binding->execs.push_back(Executor::simple_bind(symbol, what, how));
  }
  finish_merged(binding.get());
  adopt(binding);
  for (size_t d = 0; d < num_devices(); ++d) new_pools[d]->swap(staged_pools[d]);
  pools = std::move(new_pools);
  outputs = new_outputs;
  loss_scale = new_loss_scale;
  gradient_scale = new_gradient_scale;
  grad_reqs = std::move(reqs);
  initial_binding = binding;
  cached_bindings.resize(1);  // drops the shapes of the previous binding
  warn_of_missing_labels(data, labels);
}

// BND-05: gradients that are larger than those bound at first start from zero each time, so that "add" adds to nothing.
void Group::Impl::clear_grown(const GroupBinding &binding) const {
  for (size_t d = 0; d < num_devices(); ++d) {
    const std::vector<NDArray> &grads = binding.execs[d]->grads(), &bound = initial_binding->execs[d]->grads();
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i] && grads[i].storage() != bound[i].storage()) grads[i].fill(0);
  }
}

// Drops a merged array if an executor has put its output somewhere else than it was told to.
void Group::Impl::finish_merged(GroupBinding *binding) const {
  for (size_t h = 0; h < output_names.size(); ++h) {
    NDArray &merged = binding->merged[h];
    if (!merged) continue;
    for (size_t d = 0; d < num_devices(); ++d) {
      const NDArray &part = binding->execs[d]->outputs()[h];
      const size_t offset = size_t(binding->output_starts[h][d]) *
                            (merged.bytes() / size_t(std::max<int64_t>(binding->output_starts[h].back(), 1)));
      if (!part || part.data() != static_cast<char *>(merged.data()) + offset) {
        merged = NDArray();
        break;
      }
    }
  }
}

void Group::Impl::reshape(const DataDescs &data, const DataDescs &labels) {
  if (current_binding->data == data && current_binding->labels == labels) return;  // BND-03, DIF-16
  for (const auto &known : cached_bindings) {
    if (known->data != data || known->labels != labels) continue;
    const std::shared_ptr<GroupBinding> binding = known;
    clear_grown(*binding);
    adopt(binding);
    return;
  }
  const std::shared_ptr<GroupBinding> binding = describe(data, labels);
  const auto keep_dtype = [&](const DataDesc &desc, int arg, bool is_label) {  // BND-08
    const Dtype bound = current_binding->execs[0]->args()[size_t(arg)].dtype();
    if (input_dtype(desc, is_label) != bound) {
      throw Error(Code::kDtype,
                  text("'", desc.name, "': expected the bound dtype ", bound, ", found ", input_dtype(desc, is_label),
                       "; bind again to change it"),
                  desc.name);
    }
  };
  for (size_t k = 0; k < data.size(); ++k) keep_dtype(data[k], binding->data_args[k], false);
  for (size_t k = 0; k < labels.size(); ++k) keep_dtype(labels[k], binding->label_args[k], true);
  OutputPool own;  // each cached shape keeps its outputs
  const std::vector<std::vector<NDArray>> windows = make_outputs(binding.get(), &own);
  for (size_t d = 0; d < num_devices(); ++d) {
    ReshapeOptions how;
    how.allow_up_sizing = true;
    for (bool is_label : {false, true})
      for (const DataDesc &desc : device_descs(*binding, is_label, d)) how.shapes.emplace_back(desc.name, desc.shape);
    for (const std::string &name : arg_names)
      if (!contains(options.param_names, name)) how.may_follow.insert(name);
    how.outputs = windows[d];
    binding->execs.push_back(initial_binding->execs[d]->reshape(how));
  }
  finish_merged(binding.get());
  adopt(binding);
}

// Everything that can fail comes first.
void Group::Impl::adopt(const std::shared_ptr<GroupBinding> &binding) {
  for (size_t d = 0; d < num_devices(); ++d) {
    if (monitor || options.stop_if_not_finite || (current_binding && monitor_ever))
      binding->execs[d]->set_monitor(monitor_of(d), monitor_all);
  }
  std::shared_ptr<Exchange> its_exchange = make_exchange(*binding);
  std::list<std::shared_ptr<GroupBinding>> latest{binding};
  exchange = std::move(its_exchange);
  current_binding = binding;
  cached_bindings.remove(binding);
  cached_bindings.splice(cached_bindings.begin(), latest);
  while (cached_bindings.size() > kMostCachedBindings) cached_bindings.pop_back();
  has_forward = has_backward = false;
  training_source.reset();
}

// An exchange of the parameters that have a gradient, on every device, in the order of the network; the present one if
// it works on the same arrays. Null if bound for inference.
std::shared_ptr<Exchange> Group::Impl::make_exchange(const GroupBinding &binding) const {
  if (!options.for_training) return nullptr;
  Executor &front = *binding.execs[0];
  std::vector<ExchangeParam> params;
  const std::vector<int> order = in_network_order(graph, front.gradient_order());
  for (size_t at = 0; at < order.size(); ++at) {
    const size_t arg = size_t(order[at]);
    if (!contains(options.param_names, arg_names[arg])) continue;
    ExchangeParam param;
    param.name = arg_names[arg];
    param.position = int(at);
    for (const auto &exec : binding.execs) {
      param.weights.push_back(exec->args()[arg]);
      param.grads.push_back(exec->grads()[arg]);
    }
    params.push_back(std::move(param));
  }
  ExchangeDevices devices;
  for (size_t d = 0; d < num_devices(); ++d) {
    const Executor &exec = *binding.execs[d];
    ExchangeDevice device{options.contexts[d], exec.queue(), exec.timeline(), {}};
    std::set<Context> others;
    for (const ExchangeParam &param : params)
      for (const auto *list : {&param.weights, &param.grads}) others.insert((*list)[d].context());
    for (const Context &other : others) {
      if (other == device.context || (other.on_host() && device.context.on_host())) continue;
      if (const auto queue = exec.queue_on(other)) device.others.emplace_back(other, queue);
    }
    devices.push_back(std::move(device));
  }
  std::shared_ptr<Exchange> result = exchange;
  if (!result || !result->works_on(params, devices)) {
    result = std::make_shared<Exchange>(std::move(params), std::move(devices), int(order.size()),
                                        options.gradient_bucket_bytes, options.gradient_sum_dtype);
  }
  for (const auto &exec : binding.execs) {
    exec->set_buckets(ends_in_order(result->buckets().ends, order, exec->gradient_order()));
  }
  return result;
}

}  // namespace cohort
