// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "lstm_symbol.hpp"

namespace bench {
namespace {

const char kData[] = "data";

bool is_input(const Workload &workload, const char *name) {
  return !std::strcmp(name, kData) || (workload.has_label() && !std::strcmp(name, workload.label_name()));
}

// A network on a group of devices, or on one executor.
class MeasuredNetwork final : public Measured {
 public:
  explicit MeasuredNetwork(const Options &options)
      : options_(options), symbol_(load_graph(options)), batch_(make_batch(*options.workload, options.batch)) {
    data_ = array_of(batch_.data, batch_.data_shape);
    data_descs_ = one_desc(kData, batch_.data_shape);
    if (options.workload->has_label()) {
      label_ = array_of(batch_.label, batch_.label_shape);
      label_descs_ = one_desc(options.workload->label_name(), batch_.label_shape);
    }
    if (options.compute_dtype == COHORT_DTYPE_INT8) calibrate();
    if (options.executor) {
      bind_executor(options.compute_dtype);
    } else {
      bind_group();
    }
  }

  void step() override {
    if (options_.train) {
      train_step();
    } else if (group_) {  // one answer at a time: what a caller of inference waits for
      forward();
      ok(cohort_ndarray_wait(output().get()));
    } else {
      ok(cohort_ndarray_copy_to(data_.get(), executor_data_.get()));
      ok(cohort_executor_forward(executor_.get(), 0));
      ok(cohort_ndarray_wait(executor_output_.get()));
    }
  }

  void wait() override { ok(group_ ? cohort_group_wait(group_.get()) : cohort_executor_wait(executor_.get())); }

  std::string check() override {
    if (options_.train) {
      double losses[3];
      for (double &value : losses) {
        train_step();
        value = loss_of(*options_.workload, read(output().get()), batch_.label);
      }
      return losses_text(losses);
    }
    step();
    return output_text(read(group_ ? output().get() : executor_output_.get()));
  }

  std::string memory() const override {
    cohort_memory_info sum = COHORT_MEMORY_INFO_INIT;
    for (int device = 0; device < (group_ ? options_.contexts : 1); ++device) {
      cohort_memory_info one = COHORT_MEMORY_INFO_INIT;
      ok(group_ ? cohort_group_memory(group_.get(), size_t(device), &one)
                : cohort_executor_memory(executor_.get(), &one));
      sum.planned_bytes += one.planned_bytes;
      sum.intermediate_bytes += one.intermediate_bytes;
      sum.argument_bytes += one.argument_bytes;
      sum.gradient_bytes += one.gradient_bytes;
      sum.output_bytes += one.output_bytes;
      sum.value_bytes += one.value_bytes;
    }
    return memory_text(sum);
  }

 private:
  void bind_group() {
    const std::vector<std::string> names = param_names(symbol_.get(), *options_.workload);
    std::vector<const char *> params;
    for (const std::string &name : names) params.push_back(name.c_str());
    const std::vector<cohort_context> contexts = contexts_of(options_);
    cohort_group_options group_options = COHORT_GROUP_OPTIONS_INIT;
    group_options.num_threads = options_.threads_of_context();
    group_options.compute_dtype = options_.compute_dtype;
    group_options.calibration = calibration_.get();
    group_options.tf32 = options_.tf32;
    group_options.recompute = options_.recompute;
    group_ = make<Group>(cohort_group_create, symbol_.get(), contexts.data(), contexts.size(), data_descs_.get(),
                         label_descs_.get(), params.data(), params.size(), int32_t(options_.train), &group_options);
    const auto bound = [this](int32_t list) {
      return make<Arrays>(cohort_group_arrays, group_.get(), list, size_t(0));
    };
    const Arrays args = first_values(*options_.workload, bound(COHORT_GROUP_PARAMS));
    const Arrays aux = first_values(*options_.workload, bound(COHORT_GROUP_AUX));
    ok(cohort_group_set_params(group_.get(), args.get(), aux.get(), 0));
    if (options_.train) optimizer_ = make_optimizer(options_);
  }

  // On the batch itself: what int8 costs does not depend on the ranges.
  void calibrate() {
    bind_executor(COHORT_DTYPE_FLOAT32);
    calibration_ = make<Calibration>(cohort_calibration_create, cohort_calibration_method(COHORT_CALIBRATION_MIN_MAX));
    ok(cohort_ndarray_copy_to(data_.get(), executor_data_.get()));
    ok(cohort_calibration_observe(calibration_.get(), executor_.get()));
    executor_data_ = {}, executor_output_ = {}, executor_ = {};
  }

  void bind_executor(cohort_dtype compute_dtype) {
    cohort_executor_options executor_options = COHORT_EXECUTOR_OPTIONS_INIT;
    executor_options.num_threads = options_.threads;
    executor_options.compute_dtype = compute_dtype;
    executor_options.calibration = calibration_.get();
    executor_options.tf32 = options_.tf32;
    executor_options.recompute = options_.recompute;
    const cohort_context where = contexts_of(options_)[0];
    executor_ =
        make<Executor>(cohort_executor_simple_bind, symbol_.get(), &where, data_descs_.get(), &executor_options);
    const auto bound = [this](int32_t list) { return make<Arrays>(cohort_executor_arrays, executor_.get(), list); };
    const Arrays args = first_values(*options_.workload, bound(COHORT_EXECUTOR_ARGS));
    const Arrays aux = first_values(*options_.workload, bound(COHORT_EXECUTOR_AUX));
    ok(cohort_executor_copy_params_from(executor_.get(), args.get(), aux.get(), 0));
    executor_data_ = make<Array>(cohort_executor_array_named, executor_.get(), int32_t(COHORT_EXECUTOR_ARGS), kData);
    executor_output_ = make<Array>(cohort_executor_array, executor_.get(), int32_t(COHORT_EXECUTOR_OUTPUTS), size_t(0));
  }

  void forward() {
    cohort_ndarray *const data = data_.get(), *const label = label_.get();
    const bool with_label = options_.train && label;
    ok(cohort_group_forward(group_.get(), &data, 1, with_label ? &label : nullptr, with_label, options_.train));
  }

  void train_step() {
    forward();
    ok(cohort_group_backward(group_.get(), nullptr, 0));
    ok(cohort_group_update(group_.get(), optimizer_.get(), COHORT_UPDATE_ON_STORE));
  }

  Array output() const {
    return make<Array>(cohort_group_merged, group_.get(), int32_t(COHORT_GROUP_OUTPUTS), size_t(0));
  }

  const Options options_;
  const Symbol symbol_;
  const Batch batch_;
  Descs data_descs_, label_descs_;
  Array data_, label_;
  Calibration calibration_;
  Group group_;
  Optimizer optimizer_;
  Executor executor_;
  Array executor_data_, executor_output_;
};

}  // namespace

std::unique_ptr<Measured> make_measured(const Options &options) { return std::make_unique<MeasuredNetwork>(options); }

std::string format(const char *pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

Descs one_desc(const char *name, const std::vector<int64_t> &shape) {
  Descs descs = make<Descs>(cohort_descs_create);
  ok(cohort_descs_add(descs.get(), name, shape.data(), int32_t(shape.size()), COHORT_DTYPE_FLOAT32, nullptr));
  return descs;
}

std::vector<std::string> param_names(const cohort_symbol *symbol, const Workload &workload) {
  std::vector<std::string> names;
  size_t num = 0;
  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &name));
    if (!is_input(workload, name)) names.push_back(name);
  }
  return names;
}

std::vector<cohort_context> contexts_of(const Options &options) {
  std::vector<cohort_context> contexts;
  for (int id = 0; id < options.contexts; ++id) {
    contexts.push_back({options.gpu ? COHORT_DEVICE_GPU : COHORT_DEVICE_CPU, id});
  }
  return contexts;
}

Optimizer make_optimizer(const Options &options) {
  const std::string rescale_grad = format("%.17g", 1.0 / double(options.batch));
  const Rule rule = options.workload->rule;
  if (rule == Rule::kAdam) {
    const char *const keys[] = {"learning_rate", "beta1", "beta2", "epsilon", "rescale_grad"};
    const char *const values[] = {"0.0001", "0.9", "0.999", "1e-8", rescale_grad.c_str()};
    return make<Optimizer>(cohort_optimizer_create, "adam", keys, values, size_t(5));
  }
  const char *const keys[] = {"learning_rate", "momentum", "wd", "rescale_grad"};
  const char *const values[] = {"0.01", rule == Rule::kPlainSgd ? "0" : "0.9",
                                rule == Rule::kSgdWithDecay ? "0.0001" : "0", rescale_grad.c_str()};
  return make<Optimizer>(cohort_optimizer_create, "sgd", keys, values, size_t(4));
}

Symbol load_graph(const Options &options) {
  const Workload &workload = *options.workload;
  if (workload.form == Form::kUnrolled) return unrolled_lstm(workload.sample[0]);
  return make<Symbol>(cohort_symbol_load, (options.symbols + "/" + workload.graph + ".json").c_str());
}

Arrays first_values(const Workload &workload, const Arrays &bound) {
  Arrays values = make<Arrays>(cohort_arrays_create);
  size_t num = 0;
  ok(cohort_arrays_num(bound.get(), &num));
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    ok(cohort_arrays_name(bound.get(), i, &name));
    if (is_input(workload, name)) continue;
    const std::vector<int64_t> shape = shape_of(make<Array>(cohort_arrays_get, bound.get(), i).get());
    ok(cohort_arrays_add(values.get(), name, array_of(first_value(name, shape), shape).get()));
  }
  return values;
}

// Mean over the rows of -log of what the output gives the row's class, or half the mean square.
double loss_of(const Workload &workload, const std::vector<float> &out, const std::vector<float> &label) {
  double sum = 0;
  if (workload.task == Task::kNumbers) {
    for (size_t i = 0; i < out.size(); ++i) sum += (double(out[i]) - label[i]) * (double(out[i]) - label[i]);
    return sum / 2 / double(out.size());
  }
  const size_t width = out.size() / label.size();
  for (size_t row = 0; row < label.size(); ++row)
    sum -= std::log(std::max(double(out[row * width + size_t(label[row])]), 1e-30));
  return sum / double(label.size());
}

std::string losses_text(const double (&losses)[3]) {
  return format("{\"loss\": [%.9g, %.9g, %.9g]}", losses[0], losses[1], losses[2]);
}

std::string output_text(const std::vector<float> &out) {
  double squares = 0;
  for (const float value : out) squares += double(value) * value;
  std::string first;
  for (size_t i = 0; i < std::min<size_t>(4, out.size()); ++i) first += format("%s%.9g", i ? ", " : "", out[i]);
  return format("{\"out_rms\": %.9g, \"out_first\": [%s]}", std::sqrt(squares / double(out.size())), first.c_str());
}

std::string memory_text(const cohort_memory_info &memory) {
  return format(
      "{\"planned\": %zu, \"values\": %zu, \"intermediate\": %zu, \"arguments\": %zu, \"gradients\": %zu, "
      "\"outputs\": %zu}",
      memory.planned_bytes, memory.value_bytes, memory.intermediate_bytes, memory.argument_bytes, memory.gradient_bytes,
      memory.output_bytes);
}

}  // namespace bench
