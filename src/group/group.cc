// SPDX-License-Identifier: Apache-2.0
// Construction, views and settings of a group.
#include "group/group.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "executor/monitor.hpp"
#include "group/group_impl.hpp"

namespace cohort {
namespace {

template <typename T>
const T &element(const std::vector<T> &list, size_t index, const char *what) {
  if (index >= list.size()) {
    throw Error(Code::kInvalidArgument,
                text(what, ": expected an index below ", list.size(), ", found ", int64_t(index)), what);
  }
  return list[index];
}

}  // namespace

GroupList make_group_list(int32_t code) {
  if (code < 0 || code > int32_t(GroupList::kArgs)) {
    throw Error(Code::kInvalidArgument, text("list: expected 0 to ", int32_t(GroupList::kArgs), ", found ", code),
                "list");
  }
  return GroupList(code);
}

UpdateMode make_update_mode(int32_t code) {
  if (code < 0 || code > int32_t(UpdateMode::kNoStore)) {
    throw Error(Code::kInvalidArgument,
                text("mode: expected 0 (on store), 1 (per device) or 2 (no store), found ", code), "mode");
  }
  return UpdateMode(code);
}

Group::Group() : impl_(std::make_unique<Impl>()) {}

std::shared_ptr<Group> Group::create(const Symbol &symbol, const DataDescs &data, const DataDescs &labels,
                                     const GroupOptions &options, const std::shared_ptr<Group> &shared) {
  std::shared_ptr<Group> group(new Group());
  group->impl_->options = options;
  group->impl_->prepare(symbol, data, labels);
  if (!shared) group->impl_->check_unknown_names();  // buckets may have names of each other's
  group->impl_->bind(data, labels, shared);
  return group;
}

Group::~Group() = default;

void Group::bind(const DataDescs &data, const DataDescs &labels, const std::shared_ptr<Group> &shared, bool rebind) {
  if (!rebind) {
    throw Error(Code::kState, "bind: the group is already bound; set rebind, or reshape it", "group");
  }
  impl_->refuse_if_managed("bind");
  impl_->check_idle("bind");
  impl_->bind(data, labels, shared);
}

void Group::reshape(const DataDescs &data, const DataDescs &labels) {
  impl_->refuse_if_managed("reshape");
  impl_->check_idle("reshape");
  impl_->reshape(data, labels);
}

const Symbol &Group::symbol() const { return impl_->symbol; }
const GroupOptions &Group::options() const { return impl_->options; }
size_t Group::num_devices() const { return impl_->num_devices(); }

const Context &Group::context(size_t device) const { return element(impl_->options.contexts, device, "device"); }

const std::shared_ptr<Executor> &Group::executor(size_t device) const {
  return element(impl_->current_binding->execs, device, "device");
}

int64_t Group::batch_size() const { return impl_->current_binding->batch_size; }
const std::vector<BatchSlice> &Group::slices() const { return impl_->current_binding->slices; }

BatchSlice Group::slice(size_t device) const {
  context(device);
  if (impl_->current_binding->slices.empty())
    throw Error(Code::kState, "no descriptor has a batch axis: there are no slices", "slices");
  return impl_->current_binding->slices[device];
}

std::vector<int> Group::decide_slices(const DataDescs &descs) const {
  if (descs.empty())
    throw Error(Code::kInvalidArgument, "descs: expected at least one descriptor, found none", "descs");
  int64_t batch_size = impl_->current_binding->batch_size;
  return batch_axes(descs, &batch_size);
}

DataDescs Group::sliced_shape(const DataDescs &descs, size_t device, const std::vector<int> *axes) const {
  context(device);
  if (impl_->current_binding->slices.empty()) return descs;
  std::vector<int> own;
  if (!axes) {
    for (const DataDesc &desc : descs) own.push_back(batch_axis(desc.layout));
  }
  return slice_descs(descs, axes ? *axes : own, impl_->current_binding->slices[device]);
}

const DataDescs &Group::descs(GroupList list) const {
  if (list == GroupList::kData) return impl_->current_binding->data;
  if (list == GroupList::kLabels) return impl_->current_binding->labels;
  throw Error(Code::kInvalidArgument, text("list: only data and labels have descriptors, found ", int32_t(list)),
              "list");
}

void Group::Impl::refuse_without_shape(size_t head) const {
  throw Error(Code::kState,
              text("output '", output_names[head],
                   "': its shape depends on values, and no forward has run since the group was bound"),
              output_names[head]);
}

DataDescs Group::output_shapes() const {
  const GroupBinding &binding = *impl_->current_binding;
  DataDescs result;
  for (size_t h = 0; h < impl_->output_names.size(); ++h) {
    const NDArray &front = binding.execs[0]->outputs()[h];
    if (!front) impl_->refuse_without_shape(h);
    DataDesc desc;
    desc.name = impl_->output_names[h];
    desc.shape = front.shape();
    desc.dtype = front.dtype();
    desc.layout = impl_->has_layout[h] ? impl_->head_layouts[h] : binding.output_axes[h] < 0 ? "" : "NCHW";
    if (!binding.output_starts[h].empty()) desc.shape[binding.output_axes[h]] = binding.output_starts[h].back();
    result.push_back(std::move(desc));
  }
  return result;
}

// ---- lists ----------------------------------------------------------------------------------------------------------

size_t Group::num_arrays(GroupList list) const {
  const Impl &self = *impl_;
  switch (list) {
    case GroupList::kData:
      return self.current_binding->data.size();
    case GroupList::kLabels:
      return self.current_binding->labels.size();
    case GroupList::kParams:
      return self.param_args.size();
    case GroupList::kGrads:
      return self.options.for_training ? self.param_args.size() : 0;
    case GroupList::kAux:
      return self.aux_names.size();
    case GroupList::kStates:
      return self.state_args.size();
    case GroupList::kOutputs:
      return self.output_names.size();
    case GroupList::kInputGrads:
      return self.options.for_training && self.options.inputs_need_grad ? self.current_binding->data.size() : 0;
    case GroupList::kArgs:
      return self.arg_names.size();
  }
  return 0;
}

// IGR-01: asking for gradients of inputs is an error if there are none.
void Group::Impl::check_list(GroupList list, size_t index, size_t num) const {
  if (list == GroupList::kInputGrads && !(options.for_training && options.inputs_need_grad)) {
    throw Error(Code::kState, "input gradients: expected a group bound with inputs_need_grad and for_training",
                "inputs_need_grad");
  }
  if (index >= num) {
    throw Error(Code::kInvalidArgument, text("index: the list has ", num, " entries, found ", index), "index");
  }
}

const std::string &Group::name(GroupList list, size_t index) const {
  const Impl &self = *impl_;
  self.check_list(list, index, num_arrays(list));
  switch (list) {
    case GroupList::kData:
    case GroupList::kInputGrads:
      return self.current_binding->data[index].name;
    case GroupList::kLabels:
      return self.current_binding->labels[index].name;
    case GroupList::kParams:
    case GroupList::kGrads:
      return self.param_arg_names[index];
    case GroupList::kAux:
      return self.aux_names[index];
    case GroupList::kStates:
      return self.options.state_names[index];
    case GroupList::kOutputs:
      return self.output_names[index];
    case GroupList::kArgs:
      break;
  }
  return self.arg_names[index];
}

int Group::axis(GroupList list, size_t index) const {
  const Impl &self = *impl_;
  self.check_list(list, index, num_arrays(list));
  switch (list) {
    case GroupList::kData:
    case GroupList::kInputGrads:
      return self.current_binding->data_axes[index];
    case GroupList::kLabels:
      return self.current_binding->label_axes[index];
    case GroupList::kOutputs:
      return self.current_binding->output_axes[index];
    default:
      throw Error(Code::kInvalidArgument,
                  text("list: only data, labels, outputs and input gradients have batch axes, found ", int32_t(list)),
                  "list");
  }
}

NDArray Group::array(GroupList list, size_t index, size_t device) const {
  const Impl &self = *impl_;
  context(device);
  self.check_list(list, index, num_arrays(list));
  const Executor &exec = *self.current_binding->execs[device];
  switch (list) {
    case GroupList::kData:
      return exec.args()[size_t(self.current_binding->data_args[index])];
    case GroupList::kLabels:
      return exec.args()[size_t(self.current_binding->label_args[index])];
    case GroupList::kParams:
      return exec.args()[size_t(self.param_args[index])];
    case GroupList::kGrads:
      return exec.grads()[size_t(self.param_args[index])];
    case GroupList::kAux:
      return exec.aux()[index];
    case GroupList::kStates:
      return exec.args()[size_t(self.state_args[index])];
    case GroupList::kOutputs:
      return exec.outputs()[index];
    case GroupList::kInputGrads:
      return exec.grads()[size_t(self.current_binding->data_args[index])];
    case GroupList::kArgs:
      break;
  }
  return exec.args()[index];
}

NamedArrays Group::arrays(GroupList list, size_t device) const {
  context(device);
  NamedArrays result;
  if (list == GroupList::kInputGrads && num_arrays(list) == 0) impl_->check_list(list, 0, 0);
  for (size_t i = 0; i < num_arrays(list); ++i) result.emplace_back(name(list, i), array(list, i, device));
  return result;
}

NamedArrays Group::shared_data(size_t device) const {
  context(device);
  const ArrayPool &pool = *impl_->pools[device];
  return NamedArrays(pool.begin(), pool.end());
}

// ---- settings -------------------------------------------------------------------------------------------------------

void Group::Impl::log(LogLevel level, const std::string &message) const {
  if (options.log) {
    options.log(level, message);
  } else {
    cohort::log(level, message);
  }
}

MonitorFunction Group::Impl::monitor_of(size_t device) const {
  if (!options.stop_if_not_finite) return monitor;
  return [device, then = monitor, several = num_devices() > 1](const std::string &name, const NDArray &array) {
    try {
      refuse_not_finite(name, array);
    } catch (const Error &error) {
      if (!several) throw;
      throw Error(error.code(), text("device ", device, ": ", error.what()), error.subject());
    }
    if (then) then(name, array);
  };
}

void Group::set_monitor(MonitorFunction function, bool all) {
  impl_->check_idle("set_monitor");
  impl_->monitor = std::move(function);
  impl_->monitor_all = all;
  for (size_t d = 0; d < num_devices(); ++d) executor(d)->set_monitor(impl_->monitor_of(d), all);
  impl_->monitor_ever = true;
}

MemoryUse Group::memory(size_t device) const { return executor(device)->memory(); }

uint64_t Group::exchange_hash() const {
  if (!impl_->exchange) throw Error(Code::kState, "the group was bound for inference: it has no gradients", "group");
  return impl_->exchange->buckets().hash;
}

// Waits for every device. Of several errors, throws the first that is not a consequence of another device's.
void Group::wait() {
  std::exception_ptr cause, consequence;
  const auto wait_for = [&](auto &worker) {
    try {
      worker.wait();
    } catch (const Error &error) {
      std::exception_ptr &kept = error.subject() == kExchangeLabel ? consequence : cause;
      if (!kept) kept = std::current_exception();
    } catch (...) {
      if (!cause) cause = std::current_exception();
    }
  };
  for (const auto &exec : impl_->current_binding->execs) {
    wait_for(*exec);
    if (exec->has_failed(/* backward */ false)) impl_->has_forward = false;
    if (exec->has_failed(/* backward */ true)) impl_->has_backward = false;
  }
  if (impl_->exchange) wait_for(*impl_->exchange);
  if (cause) std::rethrow_exception(cause);
  if (consequence) std::rethrow_exception(consequence);
}

}  // namespace cohort
