// SPDX-License-Identifier: Apache-2.0
// Running: which program a call needs, head gradients, partial forward, views.
#include "executor/executor.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/names.hpp"
#include "executor/executor_impl.hpp"
#include "executor/value_shapes.hpp"
#include "plan/plan_cache.hpp"

namespace cohort {

Executor::Executor() = default;

Executor::~Executor() {
  if (!impl_ || !impl_->arenas) return;
  for (size_t index : impl_->arena_index) impl_->arenas->devices[index].queue->finish();
}

BoundPlan &Executor::Impl::program(bool is_train, bool with_backward, bool separate_nodes) {
  const Mode mode{is_train, with_backward, separate_nodes};
  if (const auto known = programs.find(mode); known != programs.end()) return *known->second;
  PlanRequest request;
  request.graph = &graph;
  request.inferred = &inferred;
  request.grad_reqs = reqs;
  for (size_t index : arena_index) request.devices.push_back(arenas->devices[index].device);
  request.group_devices = group_devices;
  request.fixed_devices = fixed_devices;
  request.constants = constants;
  request.same_memory = same_memory();
  request.is_train = is_train;
  request.with_backward = with_backward;
  request.separate_nodes = separate_nodes;
  request.num_threads = arenas->devices[arena_index[0]].queue->num_threads();
  if (options.replicas) request.num_replicas = int(options.replicas->size());
  const bool in_bytes = options.compute.dtype == Dtype::kInt8;
  if (in_bytes && with_backward) {
    throw Error(Code::kUnsupported,
                "compute_dtype int8: expected inference without gradients, found a network with gradients",
                "compute_dtype");
  }
  request.compute_dtype = in_bytes && is_train ? Dtype::kFloat32 : options.compute.dtype;
  if (in_bytes && !is_train && !separate_nodes) request.ranges = ranges;
  request.precisions = precisions;
  request.tf32 = options.compute.tf32;
  request.backward_once = with_backward && options.backward_once;
  request.recompute = with_backward && options.recompute;
  request.restores = with_backward && !options.backward_once;
  request.scales_loss = with_backward && options.loss_scale;
  if (request.scales_loss) request.num_scaled_heads = num_cut_heads;
  const std::shared_ptr<const Plan> plan = shared_plan(request);
  const auto made = programs.emplace(mode, std::make_shared<BoundPlan>(plan, is_train, arrays, arenas, arena_index));
  log_if_none_narrow();
  return *made.first->second;
}

void Executor::Impl::log_if_none_narrow() {
  if (is_part || compute_type_logged || options.compute.dtype == Dtype::kFloat32) return;
  compute_type_logged = true;
  const std::vector<bool> narrow = narrow_nodes();
  if (std::find(narrow.begin(), narrow.end(), true) != narrow.end()) return;
  log(LogLevel::kInfo,
      text("compute_dtype ", options.compute.dtype, " has no effect: no step of this network runs in it here"));
}

// Waits for all queues even if one throws; then throws the first error.
void Executor::Impl::sync() {
  std::exception_ptr failure;
  for (size_t index : arena_index) {
    try {
      arenas->devices[index].queue->sync();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void Executor::Impl::check_no_sync(const BoundPlan &program) const {
  if (!program.syncs_batch()) return;
  throw Error(
      Code::kState,
      "executor: its layers exchange batch statistics with the other devices of its group; train the group instead");
}

void Executor::Impl::check_idle(const char *what) const {
  if (!in_pass) return;
  throw Error(Code::kState,
              text(what,
                   ": the executor is in a pass already; a callback (monitor or custom operator) cannot run the "
                   "executor that called it"),
              what);
}

void Executor::check_idle(const char *what) const { impl_->check_idle(what); }

BoundPlan &Executor::Impl::program_of_forward(bool is_train) {
  BoundPlan &chosen = program(is_train, is_train && any_gradient, bool(monitor));
  // A pass that changes arguments cannot be repeated, so it must keep what backward needs.
  const bool once = !is_train && any_gradient && !chosen.plan().written_forward.empty();
  return once ? program(is_train, true, bool(monitor)) : chosen;
}

BoundPlan &Executor::Impl::start_forward(bool is_train) {
  BoundPlan &chosen = program_of_forward(is_train);
  chosen.begin_forward();
  if (any_gradient) run_pass(chosen, /* backward */ false, [&] { chosen.mark_random(); });
  last = &chosen;
  last_is_train = is_train;
  last_is_separate = bool(monitor);
  backward_has_run = false;
  return chosen;
}

void Executor::Impl::pass_failed(bool backward, const char *why) const {
  if (last) return last->pass_failed(backward, why);
  for (size_t h = 0; h < graph.heads.size() && !backward; ++h)
    if (arrays.outputs[h] && !graph.nodes[size_t(graph.heads[h].node)]->is_variable()) arrays.outputs[h].fail(why);
}

void Executor::Impl::forward_to(BoundPlan &program, size_t end, Progress *progress) {
  if (monitor) return monitored_forward(program, end, progress);
  program.run_forward(progress->step, end);
  progress->step = end;
}

void Executor::forward(bool is_train) {
  const WorkSpan span(SpanKind::kCall, "executor forward");
  Impl &self = *impl_;
  self.check_idle("forward");
  check_arguments();
  if (self.parts) {
    const Impl::PassGuard pass(&self, "forward");
    return ValueShapedParts::forward({self.parts.get()}, is_train).rethrow();
  }
  if (self.options.replicas) self.check_no_sync(self.program_of_forward(is_train));
  BoundPlan &program = self.start_forward(is_train);
  const Impl::PassGuard pass(&self, "forward");
  self.run_pass(program, /* backward */ false, [&] {
    Impl::Progress progress;
    self.forward_to(program, program.plan().num_forward, &progress);
  });
}

int Executor::partial_forward(bool is_train, int step) {
  Impl &self = *impl_;
  const int nodes = int(self.graph.nodes.size());
  if (step < 0 || step >= nodes) return 0;
  if (const Node *const sized = node_sized_by_values()) {
    throw Error(Code::kUnsupported,
                text("partial_forward: not supported where shapes depend on values, as that of '", sized->name, "' (",
                     sized->op->name, ") does"),
                sized->name);
  }
  const Impl::PassGuard pass(&self, "partial_forward");
  check_arguments();
  BoundPlan &program = self.program(is_train, is_train && self.any_gradient, true);
  const std::vector<size_t> &end = program.plan().node_end;
  self.check_no_sync(program);
  program.begin_forward();
  // The values of the last pass are elsewhere, or were overwritten: run the steps before this one again.
  const bool gone = self.last && (self.last != &program || !program.is_latest() ||
                                  (self.options.backward_once && self.backward_has_run));
  self.last = &program;
  self.last_is_train = is_train;
  self.last_is_separate = true;
  self.backward_has_run = false;
  const int first = gone ? 0 : step;
  if (self.any_gradient) program.mark_random_of(first, step);
  self.run_pass(program, /* backward */ false,
                [&] { program.run_forward(first == 0 ? 0 : end[size_t(first) - 1], end[size_t(step)]); });
  if (self.monitor && !self.graph.nodes[size_t(step)]->is_variable()) {
    for (int o = 0; o < self.graph.nodes[size_t(step)]->num_outputs(); ++o) self.report_output(program, step, o);
  }
  return nodes - 1 - step;
}

bool Executor::output_needs_head_gradient(int head) const {
  std::vector<bool> &read = impl_->heads_with_gradient;
  if (read.empty()) read = heads_with_gradient(impl_->graph, impl_->reqs);
  return read[size_t(head)];
}

const Node *Executor::node_sized_by_values() const { return impl_->parts ? &impl_->parts->sized_node() : nullptr; }

void Executor::check_head_gradients(const std::vector<ArraySlice> &head_grads,
                                    const std::function<Shape(size_t head)> &shape_of) const {
  const std::vector<std::string> &names = impl_->output_names;
  if (head_grads.size() > names.size()) {
    throw Error(
        Code::kInvalidArgument,
        text("head_grads: expected at most one for each of ", names.size(), " outputs, found ", head_grads.size()),
        "head_grads");
  }
  for (size_t h = 0; h < names.size(); ++h) {
    if (h >= head_grads.size() || !head_grads[h]) {
      if (!output_needs_head_gradient(int(h))) continue;
      throw Error(
          Code::kInvalidArgument,
          text("head_grads: output '", names[h], "' is no loss: add a loss to the symbol, or pass its head gradient"),
          names[h]);
    }
    const Shape expected = shape_of(h);
    if (head_grads[h].shape() != expected) {
      throw Error(
          Code::kShape,
          text("head gradient of '", names[h], "': expected shape ", expected, ", found ", head_grads[h].shape()),
          names[h]);
    }
    if (output_needs_head_gradient(int(h)))
      with_array_name("head gradient of", names[h], [&] { head_grads[h].array.check_known(); });
  }
}

void Executor::check_backward() const {
  if (impl_->parts ? !impl_->parts->has_run() : !impl_->last) {
    throw Error(Code::kState, "backward: no forward has run since this executor was bound, or the last one failed",
                "backward");
  }
  if (impl_->parts)
    for (const ValueShapedParts::Bound &part : impl_->parts->bound()) part.executor.check_backward();
  if (impl_->last && impl_->last->has_lost_values()) {
    throw Error(Code::kState,
                "backward: an executor or group that shares memory with this one has overwritten the values of its "
                "forward pass; run forward again",
                "backward");
  }
  if (impl_->options.backward_once && impl_->backward_has_run) {
    throw Error(Code::kState,
                "backward: it has run once since the last forward, as often as backward_once allows; run forward "
                "again, or bind without backward_once",
                "backward");
  }
}

bool Executor::has_failed(bool backward) const {
  if (!impl_->parts) return impl_->last && impl_->last->has_failed(backward);
  const std::vector<ValueShapedParts::Bound> parts = impl_->parts->bound();
  return std::any_of(parts.begin(), parts.end(), [&](const auto &part) { return part.executor.has_failed(backward); });
}

void Executor::backward(const std::vector<ArraySlice> &head_grads, bool is_train, const BucketPrograms &after_bucket) {
  const WorkSpan span(SpanKind::kCall, "executor backward");
  Impl &self = *impl_;
  self.check_idle("backward");
  if (!self.any_gradient) return;  // BWD-10
  check_backward();
  check_head_gradients(head_grads, [&](size_t h) { return self.arrays.outputs[h].shape(); });
  if (self.parts) {
    const Impl::PassGuard pass(&self, "backward");
    return ValueShapedParts::backward({self.parts.get()}, {head_grads}, is_train).rethrow();
  }
  bool forward_again = false;
  BoundPlan &program = self.backward_program(is_train, &forward_again);
  self.check_no_sync(program);
  const Impl::PassGuard pass(&self, "backward");
  if (forward_again) {
    program.begin_forward();
    self.run_pass(program, /* backward */ false, [&] {
      program.rewind_random();
      program.run_forward(0, program.plan().num_forward);
    });
    program.skip_random();
    self.forward_ran(program, self.last_is_train && is_train);
  }
  self.set_head_gradients(program, head_grads);
  self.start_backward(program);
  self.run_pass(program, /* backward */ true, [&] {
    Impl::Progress progress;
    self.backward_to(program, program.plan().steps.size() - program.plan().num_forward, after_bucket, &progress);
  });
}

void Executor::Impl::forward_ran(BoundPlan &program, bool is_train) {
  backward_has_run = false;
  last = &program;
  last_is_train = is_train;
}

// An inference forward pass keeps nothing for backward: a program that does runs it again (BWD-07, EXE-24).
BoundPlan &Executor::Impl::backward_program(bool is_train, bool *forward_again) {
  const bool once = !last->plan().written_forward.empty();  // see program_of_forward()
  const bool train = last_is_train && (is_train || once);
  BoundPlan &chosen = program(train, true, bool(monitor) || last_is_separate);
  *forward_again = &chosen != last;
  return chosen;
}

// Does everything that can fail before backward has begun.
void Executor::Impl::set_head_gradients(BoundPlan &program, const std::vector<ArraySlice> &head_grads) {
  for (size_t i = 0; i < reqs.size(); ++i) {
    const NDArray &added_to = arrays.grads[i];
    if (reqs[i] != GradReq::kAdd || !added_to) continue;
    with_array_name("gradient of", arg_names[i], [&] { added_to.begin_read(arenas->timeline); });
  }
  const Plan &plan = program.plan();
  for (size_t h = 0; h < plan.head_gradient_slots.size(); ++h) {
    if (plan.head_gradient_slots[h] >= 0) program.copy_to_slot(plan.head_gradient_slots[h], head_grads[h]);
  }
}

void Executor::Impl::start_backward(BoundPlan &program) {
  program.begin_backward();
  if (backward_has_run) run_pass(program, /* backward */ true, [&] { program.restore(); });
  backward_has_run = true;
}

void Executor::Impl::backward_to(BoundPlan &program, size_t end, const BucketPrograms &after_bucket,
                                 Progress *progress) {
  const Plan &plan = program.plan();
  const bool is_end = end == plan.steps.size() - plan.num_forward;
  if (monitor) monitored_backward(program, end, progress);
  for (size_t &b = progress->bucket; b < after_bucket.count; ++b) {
    const int last_gradient = bucket_ends[b] - 1;
    const size_t complete = last_gradient < 0 ? 0 : plan.gradient_order[size_t(last_gradient)].second;
    if (complete > end || (monitor && !is_end)) break;
    if (complete > progress->step) program.run_backward(progress->step, complete);
    progress->step = std::max(progress->step, complete);
    program.run(after_bucket.programs[b], after_bucket.owner);
  }
  if (progress->step < end) program.run_backward(progress->step, end);
  progress->step = end;
}

void Executor::load(int argument, const ArraySlice &from) {
  impl_->check_idle("load");
  const NDArray &to = impl_->arrays.args[size_t(argument)];
  const std::shared_ptr<SharedArenas> &arenas = impl_->arenas;
  size_t index = impl_->arena_index[0];
  for (const size_t m : impl_->arena_index)
    if (arenas->devices[m].device->context() == to.context()) index = m;
  arenas->gather(index);
  queue_copy(from, to, arenas->timeline, *arenas->devices[index].queue);
}

void Executor::check_arguments() const {
  const auto may_be_bad = [](const NDArray &array) { return array.failed(); };
  const BoundArrays &all = impl_->arrays;
  if (std::none_of(all.args.begin(), all.args.end(), may_be_bad) &&
      std::none_of(all.aux.begin(), all.aux.end(), may_be_bad)) {
    return;
  }
  const Timeline *const by = impl_->arenas->timeline.get();
  const auto check = [by](const char *what, const std::vector<NDArray> &arrays, const std::vector<std::string> &names) {
    for (size_t i = 0; i < arrays.size(); ++i) with_array_name(what, names[i], [&] { arrays[i].check_known(by); });
  };
  check("argument", impl_->arrays.args, impl_->arg_names);
  check("auxiliary state", impl_->arrays.aux, impl_->aux_names);
}

void Executor::wait() { impl_->sync(); }

const std::vector<int> &Executor::gradient_order() {
  Impl &self = *impl_;
  if (self.parts && self.gradient_order.empty()) {  // all are complete at the end of backward
    for (size_t i = 0; i < self.reqs.size(); ++i)
      if (self.reqs[i] != GradReq::kNull) self.gradient_order.push_back(int(i));
  } else if (self.gradient_order.empty() && self.any_gradient) {
    for (const auto &entry : self.program(true, true, false).plan().gradient_order) {
      self.gradient_order.push_back(entry.first);
    }
  }
  return self.gradient_order;
}

void Executor::set_buckets(const std::vector<int> &ends) { impl_->bucket_ends = ends; }

const Symbol &Executor::symbol() const { return impl_->symbol; }
const std::vector<std::string> &Executor::arg_names() const { return impl_->arg_names; }
const std::vector<std::string> &Executor::aux_names() const { return impl_->aux_names; }
const std::vector<std::string> &Executor::output_names() const { return impl_->output_names; }
const std::vector<NDArray> &Executor::args() const { return impl_->arrays.args; }
const std::vector<NDArray> &Executor::grads() const { return impl_->arrays.grads; }
const std::vector<NDArray> &Executor::aux() const { return impl_->arrays.aux; }
const std::vector<NDArray> &Executor::outputs() const { return impl_->arrays.outputs; }
const std::vector<GradReq> &Executor::grad_reqs() const { return impl_->reqs; }
const ExecutorOptions &Executor::options() const { return impl_->options; }
const std::shared_ptr<Timeline> &Executor::timeline() const { return impl_->arenas->timeline; }
StreamAccess Executor::stream_access() const {
  std::vector<std::weak_ptr<Queue>> queues;
  for (size_t index : impl_->arena_index) queues.push_back(impl_->arenas->devices[index].queue);
  return {impl_->arrays.random.network, std::move(queues)};
}

const std::shared_ptr<Queue> &Executor::queue() const { return impl_->arenas->devices[impl_->arena_index[0]].queue; }

std::shared_ptr<Queue> Executor::queue_on(const Context &context) const {
  for (const SharedArenas::DeviceArena &on : impl_->arenas->devices)
    if (on.device->context() == context) return on.queue;
  return nullptr;
}

namespace {

int distinct_index_of(const std::vector<std::string> &names, const std::string &name, const char *what) {
  const int index = index_of(names, name);
  if (index >= 0 && std::find(names.begin() + index + 1, names.end(), name) != names.end()) {
    throw Error(Code::kName, text("two ", what, " are named '", name, "'; use their index"), name);
  }
  return index;
}

}  // namespace

int Executor::arg_index(const std::string &name) const {
  return distinct_index_of(impl_->arg_names, name, "arguments");
}
int Executor::aux_index(const std::string &name) const {
  return distinct_index_of(impl_->aux_names, name, "auxiliary states");
}

void Executor::copy_params_from(const NamedArrays &args, const NamedArrays &aux, bool allow_extra) {
  std::vector<std::pair<NDArray, NDArray>> copies;  // (source, target)
  auto collect = [&](const NamedArrays &from, bool is_aux) {
    for (const auto &[name, source] : from) {
      const int index = is_aux ? aux_index(name) : arg_index(name);
      if (index < 0) {
        if (allow_extra) continue;
        throw Error(Code::kName, text("'", name, "' is not among the ", is_aux ? "auxiliary states" : "arguments"),
                    name);
      }
      if (!source) throw Error(Code::kInvalidArgument, text("'", name, "' has no array"), name);
      const NDArray &target = is_aux ? impl_->arrays.aux[size_t(index)] : impl_->arrays.args[size_t(index)];
      if (source.shape() != target.shape()) {
        throw Error(Code::kShape, text("'", name, "': expected ", target.shape(), ", found ", source.shape()), name);
      }
      with_array_name(is_aux ? "auxiliary state" : "argument", name, [&from = source] { from.check_known(); });
      copies.emplace_back(source, target);
    }
  };
  collect(args, false);
  collect(aux, true);
  for (const auto &[source, target] : copies) target.copy_from(source);
}

MemoryUse Executor::memory() const {
  const auto sum = [](const std::vector<NDArray> &arrays) {
    size_t bytes = 0;
    for (const NDArray &array : arrays) bytes += array ? array.bytes() : 0;
    return bytes;
  };
  MemoryUse use;
  use.argument_bytes = sum(impl_->arrays.args) + sum(impl_->arrays.aux);
  use.gradient_bytes = sum(impl_->arrays.grads);
  use.output_bytes = sum(impl_->arrays.outputs);
  if (impl_->parts) {
    for (const ValueShapedParts::Bound &part : impl_->parts->bound()) {
      const MemoryUse of_part = part.executor.memory();
      use.planned_bytes += of_part.planned_bytes;
      use.intermediate_bytes += of_part.intermediate_bytes;
      use.value_bytes += of_part.value_bytes;
    }
  }
  for (const auto &entry : impl_->programs) {
    const Plan &plan = entry.second->plan();
    size_t planned = 0;
    for (size_t bytes : plan.arena_bytes) planned += bytes;
    if (planned < use.planned_bytes) continue;
    use.planned_bytes = planned;
    use.intermediate_bytes = plan.intermediate_bytes;
    use.value_bytes = plan.value_bytes;
  }
  return use;
}

namespace {

// Adds up pieces of memory, counting each byte once.
class MemoryPieces {
 public:
  void add(const void *data, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (bytes > 0) pieces_.emplace_back(begin, begin + bytes);
  }
  void add(const std::vector<NDArray> &arrays) {
    for (const NDArray &array : arrays)
      if (array) add(array.storage()->data(), array.storage()->bytes());
  }
  size_t bytes() {
    std::sort(pieces_.begin(), pieces_.end());
    size_t sum = 0;
    uintptr_t counted = 0;  // end of what was counted
    for (const auto &[begin, end] : pieces_) {
      if (end > counted) sum += end - std::max(begin, counted);
      counted = std::max(counted, end);
    }
    return sum;
  }

 private:
  std::vector<std::pair<uintptr_t, uintptr_t>> pieces_;
};

}  // namespace

MemoryUse Executor::combined_memory(const std::vector<std::shared_ptr<Executor>> &executors) {
  MemoryUse use;
  MemoryPieces planned, arguments, gradients, outputs;
  const std::function<void(const Impl &)> add_planned = [&](const Impl &impl) {
    if (impl.parts)
      for (const ValueShapedParts::Bound &part : impl.parts->bound()) add_planned(*part.executor.impl_);
    for (size_t index : impl.arena_index) {
      const std::shared_ptr<Memory> &arena = impl.arenas->devices[index].arena;
      if (arena) planned.add(arena->data(), arena->bytes());
    }
    for (const auto &program : impl.programs) {
      for (const auto &constant : program.second->constants())
        if (constant->memory) planned.add(constant->memory->data(), constant->memory->bytes());
    }
  };
  for (const auto &executor : executors) {
    const Impl &impl = *executor->impl_;
    const MemoryUse own = executor->memory();
    use.intermediate_bytes = std::max(use.intermediate_bytes, own.intermediate_bytes);
    use.value_bytes = std::max(use.value_bytes, own.value_bytes);
    add_planned(impl);
    arguments.add(impl.arrays.args);
    arguments.add(impl.arrays.aux);
    gradients.add(impl.arrays.grads);
    outputs.add(impl.arrays.outputs);
  }
  use.planned_bytes = planned.bytes();
  use.argument_bytes = arguments.bytes();
  use.gradient_bytes = gradients.bytes();
  use.output_bytes = outputs.bytes();
  return use;
}

}  // namespace cohort
