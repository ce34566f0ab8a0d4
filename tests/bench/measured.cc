// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "lstm_symbol.hpp"

namespace bench {
namespace {

const char kData[] = "data";

bool is_input(const Workload &workload, const std::string &name) {
  return name == kData || (workload.has_label() && name == workload.label_name());
}

// A network on a group of devices, or on one executor.
class MeasuredNetwork final : public Measured {
 public:
  explicit MeasuredNetwork(const Options &options)
      : options_(options), symbol_(load_graph(options)), batch_(make_batch(*options.workload, options.batch)) {
    data_ = NDArray::from_host(batch_.data, batch_.data_shape);
    data_descs_ = one_desc(kData, batch_.data_shape);
    if (options.workload->has_label()) {
      label_ = NDArray::from_host(batch_.label, batch_.label_shape);
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
      group_.output().wait();
    } else {
      data_.copy_to(executor_data_);
      executor_.forward(false);
      executor_output_.wait();
    }
  }

  void wait() override { group_ ? group_.wait() : executor_.wait(); }

  std::string check() override {
    if (options_.train) {
      double losses[3];
      for (double &value : losses) {
        train_step();
        value = loss_of(*options_.workload, group_.output().read<float>(), batch_.label);
      }
      return losses_text(losses);
    }
    step();
    return output_text((group_ ? group_.output() : executor_output_).read<float>());
  }

  std::string memory() const override {
    cohort_memory_info sum = COHORT_MEMORY_INFO_INIT;
    for (int device = 0; device < (group_ ? options_.contexts : 1); ++device) {
      const cohort_memory_info one = group_ ? group_.memory(size_t(device)) : executor_.memory();
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
    GroupOptions group_options;
    group_options.param_names = param_names(symbol_, *options_.workload);
    group_options.num_threads = options_.threads_of_context();
    group_options.compute_dtype = options_.compute_dtype;
    group_options.calibration = &calibration_;
    group_options.tf32 = options_.tf32;
    group_options.recompute = options_.recompute;
    group_ = Group(symbol_, contexts_of(options_), data_descs_, label_descs_, options_.train, group_options);
    group_.set_params(first_values(*options_.workload, group_.arrays(COHORT_GROUP_PARAMS, 0)),
                      first_values(*options_.workload, group_.arrays(COHORT_GROUP_AUX, 0)));
    if (options_.train) optimizer_ = make_optimizer(options_);
  }

  // On the batch itself: what int8 costs does not depend on the ranges.
  void calibrate() {
    bind_executor(COHORT_DTYPE_FLOAT32);
    calibration_ = Calibration(COHORT_CALIBRATION_MIN_MAX);
    data_.copy_to(executor_data_);
    calibration_.observe(executor_);
    executor_data_ = {}, executor_output_ = {}, executor_ = {};
  }

  void bind_executor(cohort_dtype compute_dtype) {
    ExecutorOptions executor_options;
    executor_options.num_threads = options_.threads;
    executor_options.compute_dtype = compute_dtype;
    executor_options.calibration = &calibration_;
    executor_options.tf32 = options_.tf32;
    executor_options.recompute = options_.recompute;
    executor_ = Executor::simple_bind(symbol_, contexts_of(options_)[0], data_descs_, executor_options);
    executor_.copy_params_from(first_values(*options_.workload, executor_.arrays(COHORT_EXECUTOR_ARGS)),
                               first_values(*options_.workload, executor_.arrays(COHORT_EXECUTOR_AUX)));
    executor_data_ = executor_.array(COHORT_EXECUTOR_ARGS, kData);
    executor_output_ = executor_.array(COHORT_EXECUTOR_OUTPUTS, 0);
  }

  void forward() {
    group_.forward({&data_, 1}, {&label_, options_.train && label_ ? size_t(1) : size_t(0)}, options_.train);
  }

  void train_step() {
    forward();
    group_.backward();
    group_.update(optimizer_);
  }

  const Options options_;
  const Symbol symbol_;
  const Batch batch_;
  Descs data_descs_, label_descs_;
  NDArray data_, label_;
  Calibration calibration_;
  Group group_;
  Optimizer optimizer_;
  Executor executor_;
  NDArray executor_data_, executor_output_;
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
  return Descs{{name, shape, COHORT_DTYPE_FLOAT32}};
}

std::vector<std::string> param_names(const Symbol &symbol, const Workload &workload) {
  std::vector<std::string> names;
  for (const std::string &name : symbol.list_arguments())
    if (!is_input(workload, name)) names.push_back(name);
  return names;
}

std::vector<Context> contexts_of(const Options &options) {
  std::vector<Context> contexts;
  for (int id = 0; id < options.contexts; ++id) contexts.push_back(options.gpu ? gpu(id) : cpu(id));
  return contexts;
}

Optimizer make_optimizer(const Options &options) {
  const std::string rescale_grad = format("%.17g", 1.0 / double(options.batch));
  const Rule rule = options.workload->rule;
  if (rule == Rule::kAdam) {
    return Optimizer("adam", {{"learning_rate", "0.0001"},
                              {"beta1", "0.9"},
                              {"beta2", "0.999"},
                              {"epsilon", "1e-8"},
                              {"rescale_grad", rescale_grad}});
  }
  return Optimizer("sgd", {{"learning_rate", "0.01"},
                           {"momentum", rule == Rule::kPlainSgd ? "0" : "0.9"},
                           {"wd", rule == Rule::kSgdWithDecay ? "0.0001" : "0"},
                           {"rescale_grad", rescale_grad}});
}

Symbol load_graph(const Options &options) {
  const Workload &workload = *options.workload;
  if (workload.form == Form::kUnrolled) return unrolled_lstm(workload.sample[0]);
  return Symbol::load(options.symbols + "/" + workload.graph + ".json");
}

Arrays first_values(const Workload &workload, const Arrays &bound) {
  Arrays values;
  for (size_t i = 0; i < bound.num(); ++i) {
    const std::string name = bound.name(i);
    if (is_input(workload, name)) continue;
    const Shape shape = bound.array(i).shape();
    values.add(name, NDArray::from_host(first_value(name, shape), shape));
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
