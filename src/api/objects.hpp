// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of symbols, executors, groups, optimizers, metrics, initializers, monitors, managers,
// logs and traces. Text that a handle returns lives here.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/api.hpp"
#include "base/log.hpp"
#include "device/recording.hpp"
#include "executor/calibration.hpp"
#include "executor/executor.hpp"
#include "executor/monitor.hpp"
#include "group/group.hpp"
#include "group/manager.hpp"
#include "metric/metric.hpp"
#include "optimizer/initializer.hpp"
#include "optimizer/optimizer.hpp"
#include "symbol/symbol.hpp"
#include "tape/tape.hpp"

namespace cohort::api {

// One attribute of a node, in a list of those of several nodes.
struct SymbolAttr {
  const std::string *node, *key, *value;
};

struct SymbolAttrs {
  std::vector<std::pair<std::string, AttrMap>> nodes;
  std::vector<SymbolAttr> list;
};

struct SymbolObject {
  // Texts that the host has asked for, kept as long as the symbol does not change.
  struct Texts {
    std::mutex mutex;  // guards the rest: several threads may read one symbol
    std::optional<std::vector<std::string>> names[5];
    NameIndex outputs;  // in names[COHORT_SYMBOL_OUTPUTS]
    std::optional<SymbolAttrs> attrs[2];
    std::optional<std::string> json;
  };

  Symbol symbol;
  std::shared_ptr<Texts> texts = std::make_shared<Texts>();
};

struct ExecutorObject {
  std::shared_ptr<Executor> executor;
  std::string debug_text;
  NameIndex args{}, aux{}, outputs{};  // in the executor's lists of names
};

struct GroupObject {
  std::shared_ptr<Group> group;
};

struct ManagerObject {
  std::shared_ptr<Manager> manager;
};

struct OptimizerObject {
  std::shared_ptr<Optimizer> optimizer;
};

struct MetricObject {
  std::shared_ptr<Metric> metric;
};

struct InitializerObject {
  std::shared_ptr<Initializer> initializer;
};

struct CalibrationObject {
  std::shared_ptr<Calibration> calibration;
};

struct TapeObject {
  std::shared_ptr<Tape> tape;
};

class HostLog;

// No message is sent after it is destroyed.
struct LogObject {
  LogObject() = default;
  LogObject(LogObject &&) = default;
  LogObject &operator=(LogObject &&) = delete;
  ~LogObject();

  std::shared_ptr<HostLog> log;
  std::shared_ptr<const LogSink> sink;
};

struct TraceObject {
  std::shared_ptr<Recording> recording;
  std::string json, table, name, op;  // texts that were asked for last
};

struct MonitorObject {
  std::shared_ptr<Monitor> monitor;
  bool monitor_all = false;
  std::vector<MonitorEntry> entries;  // from the latest toc
  std::vector<std::string> texts;     // one per entry; empty until asked for
};

inline cohort_symbol *symbol_handle(Symbol symbol) { return make_handle<cohort_symbol>({std::move(symbol)}); }
cohort_executor *executor_handle(std::shared_ptr<Executor> executor);

// Shapes and dtypes by name for binding; a length of 0 is unknown. NULL: none. kInvalidArgument for an entry without a
// name.
std::vector<std::pair<std::string, Shape>> to_known_shapes(const cohort_descs *known);
std::vector<std::pair<std::string, Dtype>> to_known_dtypes(const cohort_descs *known);

// Conversions for groups and managers. to_grad_reqs() takes the options of an executor or a group.
template <typename Options>
GradReqs to_grad_reqs(const Options &set) {
  if (set.grad_req && (set.grad_req_list || set.grad_req_names)) {
    throw Error(Code::kInvalidArgument, "grad_req: expected one word or a list, found both", "grad_req");
  }
  GradReqs reqs;
  if (set.grad_req) reqs.all = set.grad_req;
  const auto words = to_texts(set.grad_req_list, set.num_grad_reqs, "grad_req_list");
  reqs.as_named = set.grad_req_names != nullptr;
  if (reqs.as_named) {
    const auto names = to_texts(set.grad_req_names, set.num_grad_reqs, "grad_req_names");
    for (size_t i = 0; i < names.size(); ++i) reqs.named.emplace_back(names[i], words[i]);
  } else if (set.grad_req_list) {
    reqs.list = words;
    reqs.as_list = true;
  }
  return reqs;
}
DataDescs to_data_descs(const cohort_descs *descs, const char *what);  // NULL: none
std::vector<double> to_workload(const double *workload, size_t num_workloads);
std::function<void(LogLevel, const std::string &)> to_log(cohort_log_fn log, void *user_data);
// Matrix of num_outer * num_inner arrays, stored row by row.
std::vector<std::vector<NDArray>> deref_matrix(cohort_ndarray *const *arrays, size_t num_outer, size_t num_inner,
                                               const char *what);
DescList to_desc_list(const DataDescs &descs);

MonitorFunction to_monitor(cohort_monitor_fn callback, void *user_data);
// The sum of the arrays' bytes.
size_t sum_bytes(const std::vector<NDArray> &arrays);
cohort_memory_info memory_info(const MemoryUse &use);

// Takes the calibration from options of an executor or group.
inline void take_ranges(ComputeTypes *types, const cohort_calibration *calibration) {
  const CalibrationObject *const given = calibration ? &deref(calibration, "calibration") : nullptr;
  if (types->dtype != Dtype::kInt8) return;
  if (!given) {
    throw Error(Code::kInvalidArgument, "compute_dtype: expected a calibration beside COHORT_DTYPE_INT8, found none",
                "compute_dtype");
  }
  types->ranges = given->calibration->ranges();
}

// Compute types from options of an executor, group or manager.
template <typename Options>
ComputeTypes to_compute_types(const Options &set) {
  ComputeTypes types;
  types.dtype = to_compute_dtype(set.compute_dtype);
  types.tf32 = to_bool(set.tf32, "tf32");
  types.wide = to_texts(set.float32_names, set.num_float32_names, "float32_names");
  types.narrow = to_texts(set.narrow_names, set.num_narrow_names, "narrow_names");
  if constexpr (std::is_same_v<Options, cohort_manager_options>) {
    if (types.dtype == Dtype::kInt8) {
      throw Error(Code::kUnsupported,
                  "compute_dtype int8: a manager trains, and int8 is for inference only; bind an executor or a group",
                  "compute_dtype");
    }
  } else {
    take_ranges(&types, set.calibration);
  }
  return types;
}

// Loss scale from options of a group or manager.
template <typename Options>
LossScaleOptions to_loss_scale(const Options &set) {
  LossScaleOptions options;
  options.initial = set.loss_scale;
  if (set.loss_scale != 0) check_loss_scale(set.loss_scale, "loss_scale");
  if (set.loss_scale_window < 0) {
    throw Error(Code::kInvalidArgument, text("loss_scale_window: expected 0 or more, found ", set.loss_scale_window),
                "loss_scale_window");
  }
  if (set.loss_scale_window > 0) options.window = set.loss_scale_window;
  return options;
}

inline void assign_params(Group &group, const cohort_arrays *arg_params, const cohort_arrays *aux_params,
                          int32_t allow_missing, int32_t allow_extra, cohort_descs **out_missing) {
  const NamedArrays &args = deref(arg_params, "arg_params");
  const NamedArrays *const aux = aux_params ? &deref(aux_params, "aux_params") : nullptr;
  ScopedHandle<cohort_descs> missing(
      to_desc_list(group.missing_params(args, aux, to_bool(allow_missing, "allow_missing"))));
  group.set_params(args, aux, to_bool(allow_extra, "allow_extra"));
  if (out_missing) *out_missing = missing.release();
}

inline Dtype to_gradient_sum_dtype(int32_t dtype) {
  if (dtype == COHORT_DTYPE_FLOAT32 || dtype == COHORT_DTYPE_BFLOAT16) return Dtype(dtype);
  throw Error(Code::kInvalidArgument,
              text("gradient_sum_dtype: expected COHORT_DTYPE_FLOAT32 or COHORT_DTYPE_BFLOAT16, found ", dtype),
              "gradient_sum_dtype");
}

inline void write_loss_scale(const Group &group, double *out_scale, int32_t *out_num_good, uint64_t *out_num_skipped) {
  const LossScale none, *const scale = group.loss_scale() ? group.loss_scale() : &none;
  write_if(out_scale, scale->value);
  write_if(out_num_good, scale->num_good);
  write_if(out_num_skipped, scale->num_skipped);
}

}  // namespace cohort::api
