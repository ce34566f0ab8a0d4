// SPDX-License-Identifier: Apache-2.0
// Running, head gradients, views, memory.
#include "executor/executor.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/names.hpp"
#include "executor/executor_impl.hpp"
#include "executor/planned_network.hpp"

namespace cohort {

Executor::Executor() = default;

Executor::~Executor() {
  if (!impl_ || !impl_->arenas) return;
  for (size_t index : impl_->arena_index) impl_->arenas->devices[index].queue->finish();
}

void Executor::Impl::log_if_none_narrow(const ExecutableNetwork &of) {
  if (is_part || compute_type_logged || options.compute.dtype == Dtype::kFloat32) return;
  compute_type_logged = true;
  const std::vector<bool> narrow = of.narrow_nodes();
  if (std::find(narrow.begin(), narrow.end(), true) != narrow.end()) return;
  log(LogLevel::kInfo,
      text("compute_dtype ", options.compute.dtype, " has no effect: no step of this network runs in it here"));
}

void Executor::Impl::refuse_sync() const {
  throw Error(
      Code::kState,
      "executor: its layers exchange batch statistics with the other devices of its group; train the group instead");
}

void Executor::check_idle(const char *what) const {
  if (!impl_->pass) return;
  throw Error(Code::kState,
              text(what,
                   ": the executor is in a pass already; a callback (monitor or custom operator) cannot run the "
                   "executor that called it"),
              what);
}

void Executor::prepare_forward(bool is_train) {
  check_idle("forward");
  check_arguments();
  impl_->network->prepare_forward(is_train);
  impl_->pass = "executor forward";
}

void Executor::prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train,
                                const BucketPrograms &after_bucket) {
  check_idle("backward");
  check_backward();
  check_head_gradients(head_grads, [&](size_t h) { return impl_->arrays.outputs[h].shape(); });
  impl_->network->prepare_backward(head_grads, is_train, after_bucket);
  impl_->pass = "executor backward";
}

const std::vector<int> &Executor::sync_nodes() const { return impl_->network->sync_nodes(); }
bool Executor::repeats_forward() const { return impl_->network->repeats_forward(); }
void Executor::repeat_forward() { impl_->network->repeat_forward(); }

// Does one piece of a pass, which is over if it throws.
template <typename Run>
auto Executor::run_pass(Run &&run) {
  try {
    return run();
  } catch (const std::exception &failure) {
    abandon(failure.what());
    throw;
  }
}

void Executor::begin() {
  run_pass([&] { impl_->network->begin(); });
}

PassStop Executor::advance() {
  const WorkSpan span(SpanKind::kCall, impl_->pass);
  const PassStop stop = run_pass([&] { return impl_->network->advance(); });
  if (stop == PassStop::kEnd) impl_->pass = nullptr;
  return stop;
}

void Executor::abandon(const char *why) {
  if (!impl_->pass) return;
  impl_->pass = nullptr;
  impl_->network->abandon(why);
}

// Executors that sync are run together: alone, this one would read what the others published in an earlier pass.
void Executor::run_alone() {
  const auto check_no_sync = [&] {
    if (!sync_nodes().empty()) impl_->refuse_sync();
  };
  run_pass(check_no_sync);
  while (advance() != PassStop::kEnd) run_pass(check_no_sync);
}

void Executor::forward(bool is_train) {
  prepare_forward(is_train);
  run_alone();
}

void Executor::backward(const std::vector<ArraySlice> &head_grads, bool is_train, const BucketPrograms &after_bucket) {
  check_idle("backward");
  if (!impl_->any_gradient) return;  // BWD-10
  prepare_backward(head_grads, is_train, after_bucket);
  run_alone();
}

int Executor::partial_forward(bool is_train, int step) {
  Impl &self = *impl_;
  if (step < 0 || step >= int(self.graph.nodes.size())) return 0;
  check_idle("partial_forward");
  check_arguments();
  self.pass = "executor partial_forward";
  const int step_left = run_pass([&] { return self.network->partial_forward(is_train, step); });
  self.pass = nullptr;
  return step_left;
}

bool Executor::output_needs_head_gradient(int head) const {
  std::vector<bool> &read = impl_->heads_with_gradient;
  if (read.empty()) read = heads_with_gradient(impl_->graph, impl_->reqs);
  return read[size_t(head)];
}

const Node *Executor::node_sized_by_values() const { return impl_->network->node_sized_by_values(); }

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
  if (!impl_->network->has_run()) {
    throw Error(Code::kState, "backward: no forward has run since this executor was bound, or the last one failed",
                "backward");
  }
  impl_->network->each_planned([](const PlannedNetwork &planned) {
    if (!planned.has_lost_values()) return;
    throw Error(Code::kState,
                "backward: an executor or group that shares memory with this one has overwritten the values of its "
                "forward pass; run forward again",
                "backward");
  });
  if (impl_->options.backward_once && impl_->backward_has_run) {
    throw Error(Code::kState,
                "backward: it has run once since the last forward, as often as backward_once allows; run forward "
                "again, or bind without backward_once",
                "backward");
  }
}

bool Executor::has_failed(bool backward) const {
  bool failed = false;
  impl_->network->each_planned([&](const PlannedNetwork &planned) { failed = failed || planned.has_failed(backward); });
  return failed;
}

void Executor::load(int argument, const ArraySlice &from) {
  check_idle("load");
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

// Waits for all queues even if one throws; then throws the first error.
void Executor::wait() {
  std::exception_ptr failure;
  for (size_t index : impl_->arena_index) {
    try {
      impl_->arenas->devices[index].queue->sync();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

const std::vector<int> &Executor::gradient_order() {
  if (impl_->gradient_order.empty() && impl_->any_gradient) impl_->gradient_order = impl_->network->gradient_order();
  return impl_->gradient_order;
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
  impl_->network->each_planned([&](const PlannedNetwork &planned) {
    const MemoryUse of_one = planned.planned_memory();
    use.planned_bytes += of_one.planned_bytes;
    use.intermediate_bytes += of_one.intermediate_bytes;
    use.value_bytes += of_one.value_bytes;
  });
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
  for (const auto &executor : executors) {
    const Impl &impl = *executor->impl_;
    const MemoryUse own = executor->memory();
    use.intermediate_bytes = std::max(use.intermediate_bytes, own.intermediate_bytes);
    use.value_bytes = std::max(use.value_bytes, own.value_bytes);
    impl.network->each_planned([&](const PlannedNetwork &network) {
      for (const auto &block : network.memory_blocks()) planned.add(block->data(), block->bytes());
    });
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
