// SPDX-License-Identifier: Apache-2.0
// Loading batches, running, merging outputs and gradients, metrics (contract sections 7, 9 and 10).
#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/names.hpp"
#include "device/trace.hpp"
#include "executor/invoke.hpp"
#include "group/group_impl.hpp"
#include "group/group_lockstep.hpp"

namespace cohort {

namespace {

void check_count(const char *what, size_t expected, size_t found) {
  if (found == expected) return;
  throw Error(Code::kInvalidArgument,
              text(what, ": expected ", count_of(expected, "array"), ", one for each descriptor, found ", found), what);
}

void check_arrays(const char *what, const DataDescs &descs, const std::vector<NDArray> &arrays) {
  check_count(what, descs.size(), arrays.size());
  for (size_t k = 0; k < descs.size(); ++k) {
    if (!arrays[k]) {
      throw Error(Code::kInvalidArgument, text(what, " '", descs[k].name, "': found no array"), descs[k].name);
    }
    if (arrays[k].shape() != descs[k].shape) {
      throw Error(Code::kShape,
                  text(what, " '", descs[k].name, "': expected shape ", descs[k].shape, ", found ", arrays[k].shape()),
                  descs[k].name);
    }
    arrays[k].check_known();
  }
}

}  // namespace

// FWD-03..06: nothing is loaded unless everything fits.
void Group::Impl::check_load(const std::vector<NDArray> &data, const std::vector<NDArray> &labels) const {
  check_arrays("data", current_binding->data, data);
  if (!current_binding->labels.empty() && !labels.empty()) check_arrays("label", current_binding->labels, labels);
}

void Group::Impl::load_whole(const DataDescs &descs, const std::vector<int> &axes, const std::vector<int> &args,
                             const std::vector<NDArray> &arrays) {
  for (size_t k = 0; k < descs.size(); ++k) {
    for (size_t d = 0; d < num_devices(); ++d) {
      const BatchSlice slice = current_binding->slices.empty() ? BatchSlice() : current_binding->slices[d];
      current_binding->execs[d]->load(args[k], ArraySlice(arrays[k], axes[k], slice.begin, slice.end));
    }
  }
}

void Group::Impl::check_idle(const char *what) const {
  for (const auto &exec : current_binding->execs) exec->check_idle(what);
}

void Group::load(const std::vector<NDArray> &data, const std::vector<NDArray> &labels) {
  const WorkSpan span(SpanKind::kCall, "group load");
  Impl &self = *impl_;
  self.check_idle("forward");
  self.check_load(data, labels);
  self.load_whole(self.current_binding->data, self.current_binding->data_axes, self.current_binding->data_args, data);
  if (!self.current_binding->labels.empty() && !labels.empty()) {
    self.load_whole(self.current_binding->labels, self.current_binding->label_axes, self.current_binding->label_args,
                    labels);
  }
}

bool Group::Impl::resolve_train(int is_train) const {
  if (is_train < -1 || is_train > 1) {
    throw Error(Code::kInvalidArgument, text("is_train: expected -1, 0 or 1, found ", is_train), "is_train");
  }
  return is_train < 0 ? options.for_training : is_train != 0;
}

void Group::run(int is_train) {
  const WorkSpan span(SpanKind::kCall, "group forward");
  Impl &self = *impl_;
  const bool train = self.resolve_train(is_train);
  self.check_idle("forward");
  for (const auto &exec : self.current_binding->execs) exec->check_arguments();
  self.has_forward = false;
  self.last_is_train = train;
  forward_all(self.current_binding->execs, train);
  if (self.has_parts()) self.find_output_starts();
  self.has_forward = true;
}

void Group::Impl::find_output_starts() {
  GroupBinding &binding = *current_binding;
  for (size_t h = 0; h < output_names.size(); ++h) {
    Shapes parts;
    for (const auto &exec : binding.execs) parts.push_back(exec->outputs()[h].shape());
    binding.output_starts[h] = starts_of_parts(parts, binding.output_axes[h]);
  }
}

void Group::forward(const std::vector<NDArray> &data, const std::vector<NDArray> &labels, int is_train) {
  Impl &self = *impl_;
  if (self.resolve_train(is_train) && labels.empty() && !self.current_binding->labels.empty()) {
    throw Error(
        Code::kInvalidArgument,
        text("label: expected ", count_of(self.current_binding->labels.size(), "array"), " to train with, found none"),
        "label");
  }
  load(data, labels);
  run(is_train);
}

void Group::forward_presliced(const std::vector<std::vector<NDArray>> &device_data,
                              const std::vector<std::vector<NDArray>> &device_labels, int is_train) {
  Impl &self = *impl_;
  const GroupBinding &binding = *self.current_binding;
  const bool has_labels = !binding.labels.empty() && !device_labels.empty();
  const auto check_devices = [&](const char *what, size_t found) {
    if (found != num_devices()) {
      throw Error(Code::kInvalidArgument,
                  text("num_slices: expected ", num_devices(), ", a list of ", what, " per context, found ", found),
                  "num_slices");
    }
  };
  self.check_idle("forward");
  check_devices("data", device_data.size());
  if (has_labels) check_devices("label", device_labels.size());
  if (self.resolve_train(is_train) && !has_labels && !binding.labels.empty()) {
    throw Error(Code::kInvalidArgument,
                text("label: expected ", count_of(binding.labels.size(), "array"), " to train with, found none"),
                "label");
  }
  const auto cut = [&](const DataDescs &descs, const std::vector<int> &axes, size_t device) {
    return binding.slices.empty() ? descs : slice_descs(descs, axes, binding.slices[device]);
  };
  for (size_t d = 0; d < num_devices(); ++d) {
    check_arrays("data", cut(binding.data, binding.data_axes, d), device_data[d]);
    if (has_labels) check_arrays("label", cut(binding.labels, binding.label_axes, d), device_labels[d]);
  }
  for (size_t d = 0; d < num_devices(); ++d) {
    Executor &exec = *binding.execs[d];
    for (size_t k = 0; k < binding.data.size(); ++k) {
      exec.load(binding.data_args[k], device_data[d][k]);
    }
    for (size_t k = 0; has_labels && k < binding.labels.size(); ++k) {
      exec.load(binding.label_args[k], device_labels[d][k]);
    }
  }
  run(is_train);
}

// ---- backward and update --------------------------------------------------------------------------------------------

// The rows of a head gradient that belong to one device (BWD-02).
ArraySlice Group::Impl::part_of_head(const NDArray &whole, size_t head, size_t device) const {
  const std::vector<int64_t> &starts = current_binding->output_starts[head];
  if (starts.empty()) return whole;
  return ArraySlice(whole, current_binding->output_axes[head], starts[device], starts[device + 1]);
}

void Group::backward(const std::vector<NDArray> &head_grads) {
  const WorkSpan span(SpanKind::kCall, "group backward");
  Impl &self = *impl_;
  if (!self.options.for_training) {
    throw Error(Code::kState, "backward: the group was bound for inference; bind with for_training to run backward",
                "backward");
  }
  self.check_idle("backward");
  if (!self.has_forward)
    throw Error(Code::kState, "backward: no forward has run since the group was bound, or the last one failed",
                "backward");
  const Executor &front = *self.current_binding->execs[0];
  const std::vector<GradReq> &reqs = front.grad_reqs();
  if (std::all_of(reqs.begin(), reqs.end(), [](GradReq req) { return req == GradReq::kNull; })) {  // BWD-10
    self.has_backward = true;
    return;
  }
  for (const auto &exec : self.current_binding->execs) exec->check_backward();
  DataDescs shapes;
  front.check_head_gradients({head_grads.begin(), head_grads.end()}, [&](size_t head) {
    if (shapes.empty()) shapes = output_shapes();
    return shapes[head].shape;
  });
  // Buckets are known only for the usual program: a training pass without a monitor. If the layers of a device lie on
  // several contexts, these would have to wait for each other at the end of each bucket.
  const bool in_buckets = self.last_is_train && !self.monitor && !self.options.stop_if_not_finite &&
                          self.options.group2ctx.empty() && !self.has_parts();
  for (const auto &exec : self.current_binding->execs) exec->check_arguments();
  self.has_backward = false;
  if (self.loss_scale && *self.gradient_scale != self.loss_scale->value) {
    for (const auto &exec : self.current_binding->execs) exec->queue()->finish();  // an earlier pass may still read it
    *self.gradient_scale = self.loss_scale->value;
  }
  if (self.loss_scale) self.loss_scale->factors.begin_pass(self.current_binding->execs, *self.gradient_scale);
  self.exchange->begin_backward();
  std::vector<std::vector<ArraySlice>> parts(num_devices());
  for (size_t d = 0; d < num_devices(); ++d) {
    for (size_t h = 0; h < head_grads.size(); ++h) {
      const bool used = head_grads[h] && front.output_needs_head_gradient(int(h));
      parts[d].push_back(used ? self.part_of_head(head_grads[h], h, d) : ArraySlice());
    }
  }
  backward_all(self.current_binding->execs, parts,
               [&](size_t d) { return in_buckets ? self.exchange->after_bucket(d) : BucketPrograms(); });
  self.exchange->end_backward();
  self.has_backward = true;
}

void Group::update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode) {
  const WorkSpan span(SpanKind::kCall, "group update");
  Impl &self = *impl_;
  if (!self.options.for_training) throw Error(Code::kState, "update: the group was bound for inference", "update");
  if (!self.has_backward)
    throw Error(Code::kState, "update: no backward has run since the group was bound, or the last one failed",
                "update");
  optimizer->keep_source(self.source_for_optimizer());
  if (!self.loss_scale) return self.exchange->update(optimizer, mode);
  if (const LossScaleState *const loaded = optimizer->take_loaded_loss_scale()) self.loss_scale->state() = *loaded;
  const size_t num_summed = mode == UpdateMode::kNoStore ? 1 : num_devices();
  wait();  // the gradients are read next: throws errors of the work that makes them, once
  self.loss_scale->factors.rescale_to(self.current_binding->execs, *self.gradient_scale);
  if (!are_finite(self.current_binding->execs, self.param_args, num_summed)) {
    count_update(self.loss_scale.get(), false);
    optimizer->keep_loss_scale(*self.loss_scale);
    self.log(LogLevel::kInfo,
             text("a gradient is infinite or NaN: the update is skipped on all devices; the loss scale is now ",
                  self.loss_scale->value));
    return;
  }
  optimizer->set_gradient_scale(*self.gradient_scale);
  try {
    self.exchange->update(optimizer, mode);
  } catch (...) {
    optimizer->set_gradient_scale(1);
    throw;
  }
  optimizer->set_gradient_scale(1);
  count_update(self.loss_scale.get(), true);
  optimizer->keep_loss_scale(*self.loss_scale);
}

const LossScale *Group::loss_scale() const { return impl_->loss_scale.get(); }

void Group::set_loss_scale(double value, int num_good) {
  Impl &self = *impl_;
  if (!self.loss_scale) throw Error(Code::kState, "loss_scale: the group was bound without one", "loss_scale");
  check_loss_scale(value, "loss_scale");
  if (num_good < 0 || num_good >= self.loss_scale->window) {
    throw Error(Code::kInvalidArgument,
                text("num_good: expected 0 to ", self.loss_scale->window - 1, ", found ", num_good), "num_good");
  }
  self.loss_scale->value = value;
  self.loss_scale->num_good = num_good;
}

// ---- merging --------------------------------------------------------------------------------------------------------

NDArray Group::merged(GroupList list, size_t index) {
  Impl &self = *impl_;
  const GroupBinding &binding = *self.current_binding;
  if (list == GroupList::kStates) {
    throw Error(Code::kUnsupported, "merged states are not supported: read them device by device", "states");
  }
  if (list != GroupList::kOutputs && list != GroupList::kInputGrads) {
    throw Error(Code::kInvalidArgument,
                text("list: only outputs and input gradients can be merged, found ", int32_t(list)), "list");
  }
  const NDArray front = array(list, index, 0);
  if (num_devices() == 1 || !front) return front;
  if (list == GroupList::kOutputs && binding.merged[index]) return binding.merged[index];
  const int axis = this->axis(list, index);
  std::vector<NDArray> parts;
  for (size_t d = 0; d < num_devices(); ++d) parts.push_back(array(list, index, d));
  const std::string &what = name(list, index);
  if (axis < 0 && list == GroupList::kOutputs) return front;
  for (const NDArray &part : parts) {
    bool fits = part.shape().rank() == front.shape().rank() && axis < front.shape().rank();
    for (int i = 0; fits && i < front.shape().rank(); ++i) fits = i == axis || part.shape()[i] == front.shape()[i];
    if (!fits) {
      throw Error(Code::kShape,
                  text("'", what, "': the devices' parts of shapes ", front.shape(), " and ", part.shape(),
                       " cannot be joined along axis ", axis),
                  what);
    }
    if (part.dtype() != front.dtype()) {
      throw Error(Code::kDtype, text("'", what, "': the devices' parts are of ", front.dtype(), " and ", part.dtype()),
                  what);
    }
  }
  for (NDArray &part : parts) {
    part.wait();
    if (part.context() != front.context()) part = part.copy_to(front.context());
  }
  if (axis >= 0) return concatenate(parts, axis);
  NDArray sum = parts[0];  // IGR-02
  for (size_t d = 1; d < parts.size(); ++d) {
    sum = invoke("elemwise_add", {}, {sum, parts[d]}, {}, front.context())[0];
  }
  return sum;
}

// ---- metrics --------------------------------------------------------------------------------------------------------

// MET-01: one update per device, all or none.
void Group::Impl::for_all_devices(Metric &metric, const std::function<NamedArrays(size_t device)> &labels) {
  const std::unique_ptr<Metric::Snapshot> before = metric.snapshot();
  try {
    for (size_t d = 0; d < num_devices(); ++d) {
      NamedArrays outputs;
      for (size_t h = 0; h < output_names.size(); ++h) {
        outputs.emplace_back(output_names[h], current_binding->execs[d]->outputs()[h]);
        if (!outputs.back().second) refuse_without_shape(h);
      }
      metric.update_named(labels(d), outputs);
    }
  } catch (...) {
    metric.restore(*before);
    throw;
  }
}

namespace {

// MET-04: each label has this many samples along its batch axis.
void check_samples(const GroupBinding &binding, const std::vector<NDArray> &labels, int64_t num_samples) {
  for (size_t k = 0; k < labels.size(); ++k) {
    const DataDesc &desc = binding.labels[k];
    const int axis = binding.label_axes[k];
    if (!labels[k]) throw Error(Code::kInvalidArgument, text("label '", desc.name, "': found no array"), desc.name);
    const Shape &shape = labels[k].shape();
    if (axis >= 0 && (axis >= shape.rank() || shape[axis] != num_samples)) {
      throw Error(Code::kShape,
                  text("label '", desc.name, "': expected ", num_samples, " samples along axis ", axis,
                       ", found shape ", shape),
                  desc.name);
    }
  }
}

}  // namespace

void Group::update_metric(Metric &metric, const std::vector<NDArray> &labels) {
  Impl &self = *impl_;
  const GroupBinding &binding = *self.current_binding;
  if (binding.labels.empty()) throw Error(Code::kState, "update_metric: the group was bound without labels", "labels");
  check_count("label", binding.labels.size(), labels.size());
  check_samples(binding, labels, binding.batch_size);
  self.for_all_devices(metric, [&](size_t device) {
    NamedArrays parts;
    for (size_t k = 0; k < labels.size(); ++k) {
      const int axis = binding.label_axes[k];
      NDArray part = labels[k];
      if (axis >= 0 && num_devices() > 1) {
        part = part.slice_axis(axis, binding.slices[device].begin, binding.slices[device].end);
      }
      parts.emplace_back(binding.labels[k].name, std::move(part));
    }
    return parts;
  });
}

void Group::update_metric_presliced(Metric &metric, const std::vector<std::vector<NDArray>> &device_labels) {
  Impl &self = *impl_;
  const GroupBinding &binding = *self.current_binding;
  if (binding.labels.empty()) throw Error(Code::kState, "update_metric: the group was bound without labels", "labels");
  if (device_labels.size() != num_devices()) {
    throw Error(
        Code::kInvalidArgument,
        text("num_slices: expected ", num_devices(), ", a list of labels per context, found ", device_labels.size()),
        "num_slices");
  }
  for (const auto &labels : device_labels) check_count("label", binding.labels.size(), labels.size());
  for (size_t d = 0; d < num_devices(); ++d) {
    check_samples(binding, device_labels[d], binding.batch_size ? binding.slices[d].size() : 0);
  }
  self.for_all_devices(metric, [&](size_t device) {
    NamedArrays parts;
    for (size_t k = 0; k < binding.labels.size(); ++k)
      parts.emplace_back(binding.labels[k].name, device_labels[device][k]);
    return parts;
  });
}

}  // namespace cohort
