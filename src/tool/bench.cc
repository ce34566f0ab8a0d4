// SPDX-License-Identifier: Apache-2.0
// cohort bench: measures how long a step of a network takes, for batch sizes and devices.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tool/network.hpp"
#include "tool/printing.hpp"
#include "tool/tool.hpp"
#include "tool/tracing.hpp"

namespace cohort::tool {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct BenchSetting {
  int64_t batch;  // 0: that of the given shapes
  std::string contexts;
};

struct BenchResult {
  int64_t batch = 0;
  double first = 0;           // seconds from the symbol to the end of the first step
  std::vector<double> steps;  // seconds, sorted
  size_t planned_bytes = 0;   // of all devices together

  double quantile(double q) const { return steps[std::min(steps.size() - 1, size_t(q * double(steps.size())))]; }
  double median() const { return quantile(0.5); }
  // Half the interquartile range, as a share of the median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / 2 / median(); }
  double items() const { return double(batch) / median(); }
};

// Fills an array with plausible numbers: small weights, statistics of normal data, inputs from 0 to 1, labels 0.
void fill(cohort_ndarray *array, const std::string &name, bool input) {
  const cohort_dtype dtype = query<cohort_dtype>(cohort_ndarray_dtype, array);
  const bool is_float = dtype == COHORT_DTYPE_FLOAT16 || dtype == COHORT_DTYPE_FLOAT32 ||
                        dtype == COHORT_DTYPE_FLOAT64 || dtype == COHORT_DTYPE_BFLOAT16;
  if (ends_with(name, "label")) {
    check(cohort_ndarray_fill(array, 0));
  } else if (ends_with(name, "gamma") || ends_with(name, "var")) {
    check(cohort_ndarray_fill(array, 1));
  } else if (ends_with(name, "beta") || ends_with(name, "mean") || !is_float) {
    check(cohort_ndarray_fill(array, 0));
  } else {
    check(cohort_ndarray_fill_uniform(array, input ? 0 : -0.07, input ? 1 : 0.07, 1));
  }
}

void fill_all(const cohort_arrays *arrays) {
  const std::vector<std::string> names = names_of(arrays);
  for (size_t i = 0; i < names.size(); ++i) fill(make<NDArray>(cohort_arrays_get, arrays, i).get(), names[i], false);
}

class Measurement {
 public:
  Measurement(const std::string &path, const Params *params, GivenShapes known, const BenchSetting &setting,
              int32_t batch_axis, bool train, double seconds)
      : train_(train) {
    for (auto &[name, shape] : known.shapes) {
      if (shape.size() <= size_t(batch_axis))
        throw Failure("--shape " + name + ": there is no axis " + std::to_string(batch_axis) + " for the batch");
      if (setting.batch) shape[size_t(batch_axis)] = setting.batch;
      result_.batch = shape[size_t(batch_axis)];
    }
    const Clock::time_point begin = Clock::now();
    const Network network = make_network(load_symbol(path), known, params);
    bind(network, known, parse_contexts(setting.contexts), batch_axis, params);
    step();
    result_.first = seconds_since(begin);
    const Clock::time_point warm = Clock::now();
    for (int i = 0; i < 2 || seconds_since(warm) < seconds / 5; ++i) step();
    const Clock::time_point start = Clock::now();
    while (result_.steps.size() < 5 || (seconds_since(start) < seconds && result_.steps.size() < 100000)) {
      const Clock::time_point before = Clock::now();
      step();
      result_.steps.push_back(seconds_since(before));
    }
    std::sort(result_.steps.begin(), result_.steps.end());
  }

  const BenchResult &result() const { return result_; }

 private:
  void bind(const Network &network, const GivenShapes &known, const std::vector<cohort_context> &contexts,
            int32_t batch_axis, const Params *params) {
    const std::string layout = std::string(size_t(batch_axis), 'T') + "N";
    const Descs data = make<Descs>(cohort_descs_create), label = make<Descs>(cohort_descs_create);
    for (const ArrayInfo &value : network.of_kind(NetworkNode::kInput)) {
      if (!value.known())
        throw Failure("the shape of '" + value.name + "' is not known: --shape " + value.name + "=..");
      const bool given =
          std::any_of(known.shapes.begin(), known.shapes.end(), [&](const auto &s) { return s.first == value.name; });
      const bool is_label = !given || ends_with(value.name, "label");
      NDArray array =
          make<NDArray>(cohort_ndarray_zeros, value.shape->data(), int32_t(value.shape->size()), value.dtype, nullptr);
      fill(array.get(), value.name, true);
      check(cohort_descs_add((is_label ? label : data).get(), value.name.c_str(), value.shape->data(),
                             int32_t(value.shape->size()), value.dtype, layout.c_str()));
      (is_label ? labels_ : data_).push_back(std::move(array));
    }
    if (data_.empty()) throw Failure("no input has a shape: give --shape data=..");
    cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
    const bool in_place = params && !train_;  // used in the mapped file, without a copy
    if (in_place) options.arg_params = params->args.get(), options.aux_params = params->aux.get();
    group_ = make<Group>(cohort_group_create, network.symbol.get(), contexts.data(), contexts.size(), data.get(),
                         label.get(), nullptr, size_t(0), cohort_bool(train_), &options);
    if (in_place) {
      check_given(COHORT_GROUP_PARAMS, params->args.get());
      check_given(COHORT_GROUP_AUX, params->aux.get());
    } else if (params) {
      check(cohort_group_assign_params(group_.get(), params->args.get(), params->aux.get(), 0, 1, nullptr));
    } else {
      set_random_params();
    }
    const char *const keys[] = {"learning_rate", "momentum"}, *const values[] = {"0", "0.9"};
    if (train_) optimizer_ = make<Optimizer>(cohort_optimizer_create, "sgd", keys, values, size_t(2));
    if (train_) make_head_gradients();
    for (size_t device = 0; device < contexts.size(); ++device) {
      cohort_memory_info memory = COHORT_MEMORY_INFO_INIT;
      check(cohort_group_memory(group_.get(), device, &memory));
      result_.planned_bytes +=
          memory.planned_bytes + memory.argument_bytes + memory.gradient_bytes + memory.output_bytes;
    }
  }

  void set_random_params() {
    cohort_arrays *args = nullptr, *aux = nullptr;
    check(cohort_group_copy_params(group_.get(), &args, &aux));
    const Arrays args_owner(args), aux_owner(aux);
    fill_all(args);
    fill_all(aux);
    check(cohort_group_set_params(group_.get(), args, aux, 1));
  }

  void check_given(cohort_group_list list, const cohort_arrays *given) const {
    const std::vector<std::string> names = names_of(given);
    const size_t num = query<size_t>(cohort_group_num_arrays, group_.get(), list);
    for (size_t i = 0; i < num; ++i) {
      const char *const name = query<const char *>(cohort_group_name, group_.get(), list, i);
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw Failure(std::string("--params has no '") + name + "'");
    }
  }

  // Ones for each output; losses ignore them.
  void make_head_gradients() {
    const Descs outputs = make<Descs>(cohort_group_output_shapes, group_.get());
    const size_t num = query<size_t>(cohort_group_num_arrays, group_.get(), COHORT_GROUP_OUTPUTS);
    for (size_t i = 0; i < num; ++i) {
      const ArrayInfo value = value_at(outputs.get(), i);
      const cohort_dtype dtype = value.dtype == COHORT_DTYPE_NONE ? COHORT_DTYPE_FLOAT32 : value.dtype;
      heads_.push_back(
          make<NDArray>(cohort_ndarray_full, value.shape->data(), int32_t(value.shape->size()), dtype, nullptr, 1.0));
    }
  }

  static std::vector<cohort_ndarray *> raw(const std::vector<NDArray> &arrays) {
    std::vector<cohort_ndarray *> pointers;
    for (const NDArray &array : arrays) pointers.push_back(array.get());
    return pointers;
  }

  void step() {
    const std::vector<cohort_ndarray *> data = raw(data_), labels = raw(labels_), heads = raw(heads_);
    check(cohort_group_forward(group_.get(), data.data(), data.size(), labels.data(), labels.size(),
                               cohort_bool(train_)));
    if (train_) {
      check(cohort_group_backward(group_.get(), heads.data(), heads.size()));
      check(cohort_group_update(group_.get(), optimizer_.get(), COHORT_UPDATE_ON_STORE));
    }
    check(cohort_group_wait(group_.get()));
  }

  bool train_;
  std::vector<NDArray> data_, labels_, heads_;
  Group group_;
  Optimizer optimizer_;
  BenchResult result_;
};

void bench(const Arguments &arguments) {
  std::vector<BenchSetting> settings;
  std::vector<std::string> contexts = arguments.all("--context");
  if (contexts.empty()) contexts = {"cpu(0)"};
  for (const std::string &one : contexts) {
    parse_contexts(one);
    for (const std::string &batch : split(arguments.one("--batch", "0"), ',')) {
      settings.push_back({arguments.has("--batch") ? parse_number(batch, 1, INT32_MAX, "--batch") : 0, one});
    }
  }
  const bool train = arguments.has("--train");
  const double seconds = double(arguments.number("--milliseconds", 1000, 1, 3600000)) / 1000;
  const int32_t batch_axis = int32_t(arguments.number("--batch-axis", 0, 0, COHORT_MAX_AXES - 1));
  const GivenShapes known = known_from(arguments);
  if (known.shapes.empty()) throw UsageError("--shape NAME=N,.. of the inputs is missing");
  const std::string &path = arguments.file();
  std::optional<Params> params;
  if (arguments.has("--params")) params = load_params(arguments.one("--params"), load_symbol(path).get());

  Tracing tracing(arguments);
  TextTable table({true, false, true, true, true, true, true, true});
  table.add({"batch", "devices", "steps", "first ms", "median ms", "spread", "items/s", "memory"});
  table.line();
  ordered_json json;
  json["file"] = path;
  json["train"] = train;
  json["results"] = ordered_json::array();
  {
    Progress progress("measuring", settings.size());
    for (const BenchSetting &setting : settings) {
      const size_t num_contexts = split(setting.contexts, ',').size();
      if (setting.batch && setting.batch < int64_t(num_contexts)) {  // the other rows are measured all the same
        table.add({std::to_string(setting.batch), setting.contexts, "fewer items than devices"});
        json["results"].push_back(
            {{"batch", setting.batch}, {"contexts", setting.contexts}, {"error", "fewer items than devices"}});
        progress.step();
        continue;
      }
      const Measurement measured(path, params ? &*params : nullptr, known, setting, batch_axis, train, seconds);
      const BenchResult &result = measured.result();
      table.add({std::to_string(result.batch), setting.contexts, std::to_string(result.steps.size()),
                 number_text("%.2f", 1e3 * result.first), number_text("%.3f", 1e3 * result.median()),
                 number_text("%.1f %%", 100 * result.spread()), number_text("%.1f", result.items()),
                 bytes_text(double(result.planned_bytes))});
      json["results"].push_back({{"batch", result.batch},
                                 {"contexts", setting.contexts},
                                 {"steps", result.steps.size()},
                                 {"first_ms", 1e3 * result.first},
                                 {"median_ms", 1e3 * result.median()},
                                 {"fastest_ms", 1e3 * result.steps.front()},
                                 {"spread", result.spread()},
                                 {"items_per_second", result.items()},
                                 {"memory_bytes", result.planned_bytes}});
      progress.step();
    }
  }
  const std::string totals = tracing.finish();
  size_t num_measured = 0;
  for (const auto &row : json["results"]) num_measured += !row.contains("error");
  if (arguments.has("--json")) {
    print(json);
  } else {
    print(table.text() + totals);
  }
  if (!num_measured) throw Failure("nothing was measured: fewer items than devices in every row");
}

}  // namespace

Command bench_command() {
  return {
      "bench",
      "FILE",
      "measures how long a step takes, for batch sizes and devices",
      "FILE is a symbol in JSON. A step loads a batch and runs forward; with --train also backward\n"
      "and an update with SGD. Without --params the parameters are small random numbers. The table\n"
      "shows the median of the steps, half their interquartile range (spread), and the time of the\n"
      "first step with loading and binding. The devices of a row split one batch.\n",
      {kShapeOption,
       kDtypeOption,
       kParamsOption,
       {"--batch", "N,..", "batch sizes, instead of the one in --shape"},
       {"--batch-axis", "AXIS", "the batch axis of the inputs; default 0"},
       {"--context", "CONTEXT,..", "devices, such as cpu(0),cpu(1); may be repeated for more rows", Option::kRepeated},
       {"--train", "", "measure steps of training"},
       {"--milliseconds", "N", "how long to measure each row; default 1000"},
       kTraceOption,
       kJsonOption},
      bench};
}

}  // namespace cohort::tool
