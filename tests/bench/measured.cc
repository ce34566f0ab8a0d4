// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace bench {
namespace {

const char kData[] = "data", kLabel[] = "softmax_label";

bool is_input(const char *name) { return !std::strcmp(name, kData) || !std::strcmp(name, kLabel); }

Descs one_desc(const char *name, const std::vector<int64_t> &shape) {
  Descs descs = make<Descs>(cohort_descs_create);
  ok(cohort_descs_add(descs.get(), name, shape.data(), int32_t(shape.size()), COHORT_DTYPE_FLOAT32, nullptr));
  return descs;
}

std::vector<std::string> param_names(const cohort_symbol *symbol) {
  std::vector<std::string> names;
  size_t num = 0;
  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &name));
    if (!is_input(name)) names.push_back(name);
  }
  return names;
}

Optimizer sgd(const Options &options) {
  const std::string wd = format("%.17g", options.workload->wd);
  const std::string rescale_grad = format("%.17g", 1.0 / double(options.batch));
  const char *const keys[] = {"learning_rate", "momentum", "wd", "rescale_grad"};
  const char *const values[] = {"0.01", "0.9", wd.c_str(), rescale_grad.c_str()};
  return make<Optimizer>(cohort_optimizer_create, "sgd", keys, values, size_t(4));
}

cohort_context context(const Options &options, int id) {
  return {options.gpu ? COHORT_DEVICE_GPU : COHORT_DEVICE_CPU, id};
}

}  // namespace

std::string format(const char *pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

Measured::Measured(const Options &options)
    : options_(options),
      symbol_(make<Symbol>(cohort_symbol_load, (options.symbols + "/" + options.workload->graph + ".json").c_str())) {
  const Workload &workload = *options.workload;
  std::vector<int64_t> shape = workload.sample;
  shape.insert(shape.begin(), options.batch);
  data_ = array_of(batch_data(workload, options.batch), shape);
  data_descs_ = one_desc(kData, shape);
  if (workload.num_classes) {
    host_label_ = batch_label(workload, options.batch);
    label_ = array_of(host_label_, {options.batch});
    label_descs_ = one_desc(kLabel, {options.batch});
  }
  if (options.executor) {
    bind_executor();
  } else {
    bind_group();
  }
}

void Measured::bind_group() {
  const std::vector<std::string> names = param_names(symbol_.get());
  std::vector<const char *> params;
  for (const std::string &name : names) params.push_back(name.c_str());
  std::vector<cohort_context> contexts;
  for (int id = 0; id < options_.contexts; ++id) contexts.push_back(context(options_, id));

  cohort_group_options group_options = COHORT_GROUP_OPTIONS_INIT;
  group_options.num_threads = options_.threads_of_context();
  group_ = make<Group>(cohort_group_create, symbol_.get(), contexts.data(), contexts.size(), data_descs_.get(),
                       label_descs_.get(), params.data(), params.size(), int32_t(options_.train), &group_options);

  const auto bound = [this](int32_t list) { return make<Arrays>(cohort_group_arrays, group_.get(), list, size_t(0)); };
  const Arrays args = first_values(bound(COHORT_GROUP_PARAMS)), aux = first_values(bound(COHORT_GROUP_AUX));
  ok(cohort_group_set_params(group_.get(), args.get(), aux.get(), 0));
  if (options_.train) optimizer_ = sgd(options_);
}

void Measured::bind_executor() {
  cohort_executor_options executor_options = COHORT_EXECUTOR_OPTIONS_INIT;
  executor_options.num_threads = options_.threads;
  const cohort_context where = context(options_, 0);
  executor_ = make<Executor>(cohort_executor_simple_bind, symbol_.get(), &where, data_descs_.get(), &executor_options);

  const auto bound = [this](int32_t list) { return make<Arrays>(cohort_executor_arrays, executor_.get(), list); };
  const Arrays args = first_values(bound(COHORT_EXECUTOR_ARGS)), aux = first_values(bound(COHORT_EXECUTOR_AUX));
  ok(cohort_executor_copy_params_from(executor_.get(), args.get(), aux.get(), 0));
  executor_data_ = make<Array>(cohort_executor_array_named, executor_.get(), int32_t(COHORT_EXECUTOR_ARGS), kData);
  executor_output_ = make<Array>(cohort_executor_array, executor_.get(), int32_t(COHORT_EXECUTOR_OUTPUTS), size_t(0));
}

// Arrays of the first values of what is bound, but for data and label.
Arrays Measured::first_values(const Arrays &bound) const {
  Arrays values = make<Arrays>(cohort_arrays_create);
  size_t num = 0;
  ok(cohort_arrays_num(bound.get(), &num));
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    ok(cohort_arrays_name(bound.get(), i, &name));
    if (is_input(name)) continue;
    const std::vector<int64_t> shape = shape_of(make<Array>(cohort_arrays_get, bound.get(), i).get());
    ok(cohort_arrays_add(values.get(), name, array_of(first_value(name, shape), shape).get()));
  }
  return values;
}

void Measured::forward() {
  cohort_ndarray *const data = data_.get(), *const label = label_.get();
  const bool with_label = options_.train && label;
  ok(cohort_group_forward(group_.get(), &data, 1, with_label ? &label : nullptr, with_label, options_.train));
}

void Measured::train_step() {
  forward();
  ok(cohort_group_backward(group_.get(), nullptr, 0));
  ok(cohort_group_update(group_.get(), optimizer_.get(), COHORT_UPDATE_ON_STORE));
}

Array Measured::output() const {
  return make<Array>(cohort_group_merged, group_.get(), int32_t(COHORT_GROUP_OUTPUTS), size_t(0));
}

void Measured::step() {
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

void Measured::wait() { ok(group_ ? cohort_group_wait(group_.get()) : cohort_executor_wait(executor_.get())); }

// Mean over the rows of -log of what the output gives the row's class.
double Measured::loss() const {
  const std::vector<float> out = read(output().get());
  const size_t width = out.size() / host_label_.size();
  double sum = 0;
  for (size_t row = 0; row < host_label_.size(); ++row)
    sum -= std::log(std::max(double(out[row * width + size_t(host_label_[row])]), 1e-30));
  return sum / double(host_label_.size());
}

std::string Measured::check() {
  if (options_.train) {
    double losses[3];
    for (double &value : losses) {
      train_step();
      value = loss();
    }
    return format("{\"loss\": [%.9g, %.9g, %.9g]}", losses[0], losses[1], losses[2]);
  }
  step();
  const std::vector<float> out = read(group_ ? output().get() : executor_output_.get());
  double squares = 0;
  for (const float value : out) squares += double(value) * value;
  std::string first;
  for (size_t i = 0; i < std::min<size_t>(4, out.size()); ++i) first += format("%s%.9g", i ? ", " : "", out[i]);
  return format("{\"out_rms\": %.9g, \"out_first\": [%s]}", std::sqrt(squares / double(out.size())), first.c_str());
}

std::string Measured::memory() const {
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
  }
  return format("{\"planned\": %zu, \"intermediate\": %zu, \"arguments\": %zu, \"gradients\": %zu, \"outputs\": %zu}",
                sum.planned_bytes, sum.intermediate_bytes, sum.argument_bytes, sum.gradient_bytes, sum.output_bytes);
}

}  // namespace bench
