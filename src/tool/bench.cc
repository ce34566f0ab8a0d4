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
  GroupOptions options;
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
void fill(NDArray &array, const std::string &name, bool input) {
  const cohort_dtype dtype = array.dtype();
  const bool is_float = dtype == COHORT_DTYPE_FLOAT16 || dtype == COHORT_DTYPE_FLOAT32 ||
                        dtype == COHORT_DTYPE_FLOAT64 || dtype == COHORT_DTYPE_BFLOAT16;
  if (ends_with(name, "label")) {
    array.fill(0);
  } else if (ends_with(name, "gamma") || ends_with(name, "var")) {
    array.fill(1);
  } else if (ends_with(name, "beta") || ends_with(name, "mean") || !is_float) {
    array.fill(0);
  } else {
    array.fill_uniform(input ? 0 : -0.07, input ? 1 : 0.07, 1);
  }
}

void fill_all(const Arrays &arrays) {
  for (size_t i = 0; i < arrays.num(); ++i) {
    NDArray array = arrays.array(i);
    fill(array, arrays.name(i), false);
  }
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
    bind(network, known, parse_contexts(setting.contexts), batch_axis, params, setting.options);
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
  void bind(const Network &network, const GivenShapes &known, const std::vector<Context> &contexts, int32_t batch_axis,
            const Params *params, GroupOptions options) {
    const std::string layout = std::string(size_t(batch_axis), 'T') + "N";
    Descs data, label;
    for (const ArrayInfo &value : network.of_kind(NetworkNode::kInput)) {
      if (!value.known())
        throw Failure("the shape of '" + value.name + "' is not known: --shape " + value.name + "=..");
      const bool given =
          std::any_of(known.shapes.begin(), known.shapes.end(), [&](const auto &s) { return s.first == value.name; });
      const bool is_label = !given || ends_with(value.name, "label");
      NDArray array = NDArray::zeros(*value.shape, value.dtype);
      fill(array, value.name, true);
      (is_label ? label : data).add({value.name, *value.shape, value.dtype, layout});
      (is_label ? labels_ : data_).push_back(std::move(array));
    }
    if (data_.empty()) throw Failure("no input has a shape: give --shape data=..");
    const bool in_place = params && !train_;  // used in the mapped file, without a copy
    if (in_place) options.arg_params = &params->arg, options.aux_params = &params->aux;
    group_ = Group(network.symbol, contexts, data, label, train_, options);
    if (in_place) {
      check_given(COHORT_GROUP_PARAMS, params->arg);
      check_given(COHORT_GROUP_AUX, params->aux);
    } else if (params) {
      group_.assign_params(params->arg, params->aux, false, true);
    } else {
      set_random_params();
    }
    if (train_) optimizer_ = Optimizer("sgd", {{"learning_rate", 0}, {"momentum", 0.9}});
    if (train_) make_head_gradients();
    for (size_t device = 0; device < contexts.size(); ++device) {
      const cohort_memory_info memory = group_.memory(device);
      result_.planned_bytes +=
          memory.planned_bytes + memory.argument_bytes + memory.gradient_bytes + memory.output_bytes;
    }
  }

  void set_random_params() {
    const Params params = group_.copy_params();
    fill_all(params.arg);
    fill_all(params.aux);
    group_.set_params(params.arg, params.aux, true);
  }

  void check_given(cohort_group_list list, const Arrays &given) const {
    const std::vector<std::string> names = given.names();
    for (const std::string &name : group_.names(list)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) throw Failure("--params has no '" + name + "'");
    }
  }

  // Ones for each output; losses ignore them.
  void make_head_gradients() {
    for (const Desc &output : group_.output_shapes().list()) {
      const cohort_dtype dtype = output.dtype == COHORT_DTYPE_NONE ? COHORT_DTYPE_FLOAT32 : output.dtype;
      heads_.push_back(NDArray::full(*output.shape, 1, dtype));
    }
  }

  void step() {
    group_.forward(data_, labels_, train_);
    if (train_) {
      group_.backward(heads_);
      group_.update(optimizer_);
    }
    group_.wait();
  }

  bool train_;
  std::vector<NDArray> data_, labels_, heads_;
  Group group_;
  Optimizer optimizer_;
  BenchResult result_;
};

GroupOptions options_from(const Arguments &arguments) {
  GroupOptions options;
  options.tf32 = arguments.has("--tf32");
  options.recompute = arguments.has("--recompute");
  const std::string dtype = arguments.one("--compute-dtype", "float32");
  try {
    options.compute_dtype = dtype_parse(dtype);
  } catch (const Error &error) {
    throw UsageError(std::string("--compute-dtype: ") + error.what());
  }
  return options;
}

void bench(const Arguments &arguments) {
  const GroupOptions options = options_from(arguments);
  std::vector<BenchSetting> settings;
  std::vector<std::string> contexts = arguments.all("--context");
  if (contexts.empty()) contexts = {"cpu(0)"};
  for (const std::string &one : contexts) {
    parse_contexts(one);
    for (const std::string &batch : split(arguments.one("--batch", "0"), ',')) {
      settings.push_back({arguments.has("--batch") ? parse_number(batch, 1, INT32_MAX, "--batch") : 0, one, options});
    }
  }
  const bool train = arguments.has("--train");
  const double seconds = double(arguments.number("--milliseconds", 1000, 1, 3600000)) / 1000;
  const int32_t batch_axis = int32_t(arguments.number("--batch-axis", 0, 0, COHORT_MAX_AXES - 1));
  const GivenShapes known = known_from(arguments);
  if (known.shapes.empty()) throw UsageError("--shape NAME=N,.. of the inputs is missing");
  const std::string &path = arguments.file();
  std::optional<Params> params;
  if (arguments.has("--params")) params = load_params(arguments.one("--params"), load_symbol(path));

  Tracing tracing(arguments);
  TextTable table({true, false, true, true, true, true, true, true});
  table.add({"batch", "devices", "steps", "first ms", "median ms", "spread", "items/s", "memory"});
  table.line();
  ordered_json json;
  json["file"] = path;
  json["train"] = train;
  json["compute_dtype"] = dtype_text(options.compute_dtype);
  json["tf32"] = options.tf32;
  json["recompute"] = options.recompute;
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
       {"--compute-dtype", "TYPE", "compute in float16 or bfloat16, with parameters in float32"},
       {"--tf32", "", "products in float32 may round their factors to TF32 on GPUs"},
       {"--recompute", "", "compute cheap values of forward again in backward: less memory"},
       {"--milliseconds", "N", "how long to measure each row; default 1000"},
       kTraceOption,
       kJsonOption},
      bench};
}

}  // namespace cohort::tool
