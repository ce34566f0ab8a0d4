/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_groups.hpp
 * Groups: a network on several devices, each with a part of the batch. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_GROUPS_HPP
#define COHORT_CPP_GROUPS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cpp_executors.hpp"
#include "cohort/cpp_training.hpp"

namespace cohort {
inline namespace abi0 {

class Group;

/** Settings of a group: cohort_group_options, where each field is described. */
struct GroupOptions {
  std::optional<std::vector<std::string>> param_names;  // nullopt: all but data, labels and states
  std::vector<double> workload;                         // none: equal shares
  cohort_rounding rounding = COHORT_ROUNDING_HALF_UP;
  std::vector<Slice> slices;  // none: by workload

  bool inputs_need_grad = false;
  std::vector<std::string> fixed_param_names;
  GradReq grad_req;
  std::vector<std::string> state_names;
  std::map<std::string, cohort_dtype> input_dtypes;
  const Group *shared_group = nullptr;
  std::map<std::string, std::vector<Context>> group2ctx;  // each name: one context, or one for each device

  int32_t num_threads = 0;
  size_t gradient_bucket_bytes = 0;
  uint64_t seed = 0;
  LogFunction log;                     // takes this group's messages
  std::vector<std::string> arg_names;  // checked, if there are any

  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  double loss_scale = 0;
  int32_t loss_scale_window = 0;
  const Calibration *calibration = nullptr;
  bool backward_once = false;
  const Arrays *arg_params = nullptr;  // of inference: the group's own arrays
  const Arrays *aux_params = nullptr;
  cohort_dtype gradient_sum_dtype = COHORT_DTYPE_FLOAT32;
  bool tf32 = false;
  bool recompute = false;
  bool keep_device_aux = false;
  bool strict_names = false;
  bool stop_if_not_finite = false;
};

namespace detail {

struct CGroupOptions {
  CGroupOptions(const GroupOptions &options, cohort_group *shared_group, Closures &closures)
      : param_names(options.param_names ? CStrings(*options.param_names) : CStrings()),
        fixed_param_names(options.fixed_param_names),
        grad_req(options.grad_req),
        state_names(options.state_names),
        input_dtypes(options.input_dtypes),
        arg_names(options.arg_names),
        float32_names(options.float32_names),
        narrow_names(options.narrow_names) {
    for (const Slice &slice : options.slices) slices.insert(slices.end(), {slice.begin, slice.end});
    for (const auto &[name, contexts] : options.group2ctx) {
      if (!ctx_group_names.empty()) check_length(name.c_str(), contexts.size(), c.contexts_per_ctx_group);
      c.contexts_per_ctx_group = contexts.size();
      ctx_group_names.push_back(name.c_str());
      ctx_group_contexts.insert(ctx_group_contexts.end(), contexts.begin(), contexts.end());
    }
    c.workload = options.workload.empty() ? nullptr : options.workload.data();
    c.num_workloads = options.workload.size();
    c.rounding = options.rounding;
    c.slices = slices.data();
    c.num_slices = options.slices.size();
    c.inputs_need_grad = options.inputs_need_grad;
    c.fixed_param_names = fixed_param_names.data();
    c.num_fixed_param_names = fixed_param_names.size();
    grad_req.fill(c);
    c.state_names = state_names.data();
    c.num_state_names = state_names.size();
    c.input_dtype_names = input_dtypes.keys.data();
    c.input_dtypes = input_dtypes.values.data();
    c.num_input_dtypes = input_dtypes.keys.size();
    c.shared_group = shared_group;
    c.ctx_group_names = ctx_group_names.data();
    c.ctx_group_contexts = ctx_group_contexts.data();
    c.num_ctx_groups = ctx_group_names.size();
    c.num_threads = options.num_threads;
    c.gradient_bucket_bytes = options.gradient_bucket_bytes;
    c.seed = options.seed;
    c.log_user_data = keep_closure(closures, options.log);
    c.log = options.log ? call_log : nullptr;
    c.arg_names = arg_names.data();
    c.num_arg_names = arg_names.size();
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.loss_scale = options.loss_scale;
    c.loss_scale_window = options.loss_scale_window;
    c.calibration = options.calibration ? options.calibration->get() : nullptr;
    c.backward_once = options.backward_once;
    c.arg_params = options.arg_params ? options.arg_params->get() : nullptr;
    c.aux_params = options.aux_params ? options.aux_params->get() : nullptr;
    c.gradient_sum_dtype = options.gradient_sum_dtype;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
    c.keep_device_aux = options.keep_device_aux;
    c.strict_names = options.strict_names;
    c.stop_if_not_finite = options.stop_if_not_finite;
  }
  cohort_group_options c = COHORT_GROUP_OPTIONS_INIT;
  CStrings param_names, fixed_param_names;
  CGradReq grad_req;
  CStrings state_names;
  CMap<cohort_dtype> input_dtypes;
  std::vector<int64_t> slices;
  std::vector<const char *> ctx_group_names;
  std::vector<cohort_context> ctx_group_contexts;
  CStrings arg_names, float32_names, narrow_names;
};

// -1: as the group was bound.
inline int32_t c_is_train(std::optional<bool> is_train) { return is_train ? int32_t{*is_train} : -1; }

}  // namespace detail

/** Splits a batch by workloads: cohort_split_slices(). No workload: num_contexts equal shares. */
inline std::vector<Slice> split_slices(int64_t batch_size, Span<double> workload, size_t num_contexts,
                                       cohort_rounding rounding = COHORT_ROUNDING_HALF_UP) {
  detail::check_length("workload", workload.size(), num_contexts);
  std::vector<int64_t> begin(num_contexts), end(num_contexts);
  check(cohort_split_slices(batch_size, workload.data(), num_contexts, rounding, begin.data(), end.data()));
  std::vector<Slice> slices(num_contexts);
  for (size_t i = 0; i < num_contexts; ++i) slices[i] = {begin[i], end[i]};
  return slices;
}

/** One executor for each context, each batch split over them, gradients summed. */
class Group : public Handle<cohort_group, cohort_group_free> {
 public:
  using Handle::Handle;
  Group() noexcept = default;
  /** Makes a group and binds it: cohort_group_create(). */
  Group(const Symbol &symbol, Span<Context> contexts, const Descs &data, const Descs &label = Descs(nullptr),
        bool for_training = true, const GroupOptions &options = {}) {
    const detail::CGroupOptions c(options, options.shared_group ? options.shared_group->get() : nullptr, closures_);
    adopt(make<Handle>(cohort_group_create, symbol.get(), detail::c_contexts(contexts).data(), contexts.size(),
                       data.get(), label.get(), options.param_names ? c.param_names.data() : nullptr,
                       c.param_names.size(), cohort_bool{for_training}, &c.c)
              .release());
  }

  /** Binds from scratch: cohort_group_bind(). */
  void bind(const Descs &data, const Descs &label = Descs(nullptr), bool rebind = false,
            const Group *shared_group = nullptr) {
    check(cohort_group_bind(get(), data.get(), label.get(), shared_group ? shared_group->get() : nullptr, rebind));
  }
  /** Changes the shapes of the batch: cohort_group_reshape(). */
  void reshape(const Descs &data, const Descs &label = Descs(nullptr)) {
    check(cohort_group_reshape(get(), data.get(), label.get()));
  }

  /** cohort_group_num_contexts(). */
  size_t num_contexts() const { return query<size_t>(cohort_group_num_contexts, get()); }
  /** The context of a device: cohort_group_context(). */
  Context context(size_t device) const { return query<cohort_context>(cohort_group_context, get(), device); }
  /** The executor of a device: cohort_group_executor(). */
  Executor executor(size_t device) const {
    Executor made = make<Executor>(cohort_group_executor, get(), device);
    made.closures_ = closures_;
    made.closures_.insert(made.closures_.end(), monitor_.begin(), monitor_.end());
    return made;
  }
  /** 0 if nothing has a batch axis: cohort_group_batch_size(). */
  int64_t batch_size() const { return query<int64_t>(cohort_group_batch_size, get()); }
  /** The slice of a device: cohort_group_slice(). */
  Slice slice(size_t device) const {
    Slice found;
    check(cohort_group_slice(get(), device, &found.begin, &found.end));
    return found;
  }
  /** The slices of all devices. */
  std::vector<Slice> slices() const {
    std::vector<Slice> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = slice(device);
    return all;
  }
  /** The batch axis of each descriptor: cohort_group_decide_slices(). */
  std::vector<int32_t> decide_slices(const Descs &descs) const {
    std::vector<int32_t> axes(descs.num());
    check(cohort_group_decide_slices(get(), descs.get(), axes.data()));
    return axes;
  }
  /** Descriptors as one device has them: cohort_group_sliced_shape(). No axes: by layout. */
  Descs sliced_shape(const Descs &descs, size_t device, Span<int32_t> axes = {}) const {
    detail::check_length("axes", axes.size(), descs.num());
    return make<Descs>(cohort_group_sliced_shape, get(), descs.get(), device, axes.data());
  }
  /** The bound descriptors of COHORT_GROUP_DATA or _LABELS: cohort_group_descs(). */
  Descs descs(cohort_group_list list) const { return make<Descs>(cohort_group_descs, get(), list); }
  /** cohort_group_output_shapes(). */
  Descs output_shapes() const { return make<Descs>(cohort_group_output_shapes, get()); }
  /** The length of a list, a COHORT_GROUP_ constant: cohort_group_num_arrays(). */
  size_t num_arrays(cohort_group_list list) const { return query<size_t>(cohort_group_num_arrays, get(), list); }
  /** The name of an entry: cohort_group_name(). */
  std::string name(cohort_group_list list, size_t index) const {
    return query<const char *>(cohort_group_name, get(), list, index);
  }
  /** The names of a list. */
  std::vector<std::string> names(cohort_group_list list) const {
    std::vector<std::string> all(num_arrays(list));
    for (size_t i = 0; i < all.size(); ++i) all[i] = name(list, i);
    return all;
  }
  /** The batch axis of an entry, -1 if not batched: cohort_group_axis(). */
  int32_t axis(cohort_group_list list, size_t index) const {
    return query<int32_t>(cohort_group_axis, get(), list, index);
  }
  /** The live array of one device, empty for a parameter without gradient: cohort_group_array(). */
  NDArray array(cohort_group_list list, size_t index, size_t device) const {
    return make<NDArray>(cohort_group_array, get(), list, index, device);
  }
  /** A whole list on one device: cohort_group_arrays(). */
  Arrays arrays(cohort_group_list list, size_t device) const {
    return make<Arrays>(cohort_group_arrays, get(), list, device);
  }
  /** The live arrays of all devices. */
  std::vector<NDArray> device_arrays(cohort_group_list list, size_t index) const {
    std::vector<NDArray> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = array(list, index, device);
    return all;
  }
  /** One array for all devices, of COHORT_GROUP_OUTPUTS or _INPUT_GRADS: cohort_group_merged(). */
  NDArray merged(cohort_group_list list, size_t index) const {
    return make<NDArray>(cohort_group_merged, get(), list, index);
  }
  /** A merged output. */
  NDArray output(size_t index = 0) const { return merged(COHORT_GROUP_OUTPUTS, index); }
  /** The pool of input arrays of a device: cohort_group_shared_data(). */
  Arrays shared_data(size_t device) const { return make<Arrays>(cohort_group_shared_data, get(), device); }

  /** Copies parameters to every device: cohort_group_set_params(). */
  void set_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_extra = false) {
    check(cohort_group_set_params(get(), arg_params.get(), aux_params.get(), allow_extra));
  }
  /** The same of all parameters; returns those that were not given: cohort_group_assign_params(). */
  Descs assign_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_missing = false,
                      bool allow_extra = false) {
    return make<Descs>(cohort_group_assign_params, get(), arg_params.get(), aux_params.get(),
                       cohort_bool{allow_missing}, cohort_bool{allow_extra});
  }
  /** The mean over the devices into given arrays: cohort_group_get_params(). */
  void get_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) const {
    check(cohort_group_get_params(get(), arg_params.get(), aux_params.get()));
  }
  /** The same into new arrays on cpu(0): cohort_group_copy_params(). */
  Params copy_params() const {
    cohort_arrays *arg = nullptr, *aux = nullptr;
    check(cohort_group_copy_params(get(), &arg, &aux));
    Params copies;
    copies.arg.adopt(arg);
    copies.aux.adopt(aux);
    return copies;
  }

  /** Splits a batch over the devices: cohort_group_load(). No labels: they stay as they are. */
  void load(Span<NDArray> data, Span<NDArray> label = {}) {
    check(cohort_group_load(get(), detail::raw(data).data(), data.size(), c_labels(detail::raw(label)), label.size()));
  }
  /** Queues a forward pass over what is loaded: cohort_group_run(). nullopt: as the group was bound. */
  void run(std::optional<bool> is_train = std::nullopt) {
    check(cohort_group_run(get(), detail::c_is_train(is_train)));
  }
  /** Loads a batch and runs the forward pass: cohort_group_forward(). */
  void forward(Span<NDArray> data, Span<NDArray> label = {}, std::optional<bool> is_train = std::nullopt) {
    check(cohort_group_forward(get(), detail::raw(data).data(), data.size(), c_labels(detail::raw(label)), label.size(),
                               detail::c_is_train(is_train)));
  }
  /** The same with a batch that is split already, a list for each device: cohort_group_forward_presliced(). */
  void forward_presliced(Span<std::vector<NDArray>> data, Span<std::vector<NDArray>> label = {},
                         std::optional<bool> is_train = std::nullopt) {
    detail::check_length("label", label.size(), data.size());
    const std::vector<NDArray> all = detail::flatten("data", data), labels = detail::flatten("label", label);
    check(cohort_group_forward_presliced(get(), data.size(), detail::raw<NDArray>(all).data(),
                                         data.empty() ? 0 : data[0].size(), c_labels(detail::raw<NDArray>(labels)),
                                         label.empty() ? 0 : label[0].size(), detail::c_is_train(is_train)));
  }
  /** Queues a backward pass: cohort_group_backward(). Head gradients may be empty where an output needs none. */
  void backward(Span<NDArray> head_grads = {}) {
    check(cohort_group_backward(get(), detail::raw(head_grads).data(), head_grads.size()));
  }
  /** Updates every parameter that has a gradient: cohort_group_update(). */
  void update(Optimizer &optimizer, cohort_update_mode mode = COHORT_UPDATE_ON_STORE) {
    check(cohort_group_update(get(), optimizer.get(), mode));
  }
  /** cohort_group_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_group_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_group_set_loss_scale(). */
  void set_loss_scale(double scale, int32_t num_good = 0) {
    check(cohort_group_set_loss_scale(get(), scale, num_good));
  }
  /** cohort_group_random_state(). */
  std::string random_state() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_group_random_state(get(), out, capacity, bytes);
    });
  }
  /** cohort_group_set_random_state(). */
  void set_random_state(std::string_view state) {
    check(cohort_group_set_random_state(get(), state.data(), state.size()));
  }
  /** cohort_group_resume(). */
  void resume(Optimizer &optimizer) { check(cohort_group_resume(get(), optimizer.get())); }
  /** Updates a metric from whole labels: cohort_group_update_metric(). */
  void update_metric(Metric &metric, Span<NDArray> labels) {
    check(cohort_group_update_metric(get(), metric.get(), detail::raw(labels).data(), labels.size()));
  }
  /** The same from labels that are split already, a list for each device: cohort_group_update_metric_presliced(). */
  void update_metric_presliced(Metric &metric, Span<std::vector<NDArray>> labels) {
    const std::vector<NDArray> all = detail::flatten("labels", labels);
    check(cohort_group_update_metric_presliced(get(), metric.get(), labels.size(), detail::raw<NDArray>(all).data(),
                                               labels.empty() ? 0 : labels[0].size()));
  }
  /** Sets the states, for each of them a list of one array for each device: cohort_group_set_states(). */
  void set_states(Span<std::vector<NDArray>> states) {
    const std::vector<NDArray> all = detail::flatten("states", states);
    check(cohort_group_set_states(get(), detail::raw<NDArray>(all).data(), states.size(),
                                  states.empty() ? num_contexts() : states[0].size(), nullptr));
  }
  /** Fills all states with a value. */
  void set_states(double value) { check(cohort_group_set_states(get(), nullptr, 0, 0, &value)); }
  /** On every device, none if it is empty: cohort_group_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_group_set_monitor, monitor_, std::move(callback), monitor_all);
  }
  /** Waits for the work of all devices: cohort_group_wait(). */
  void wait() { check(cohort_group_wait(get())); }
  /** The memory that one device takes: cohort_group_memory(). */
  cohort_memory_info memory(size_t device) const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_group_memory(get(), device, &info));
    return info;
  }

 private:
  friend class Manager;
  // NULL where there are none: an empty vector may have an address.
  static cohort_ndarray *const *c_labels(const std::vector<cohort_ndarray *> &labels) {
    return labels.empty() ? nullptr : labels.data();
  }

  detail::Closures closures_, monitor_;
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_GROUPS_HPP */
