// SPDX-License-Identifier: Apache-2.0
// One executor per context: each batch is split over them, outputs are merged, gradients summed and parameters updated
// (contract sections 1 to 10). Driven by the API layer.
//
// Threads: one at a time per group; groups that share memory count as one. A call that fails has changed nothing,
// unless its comment says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "executor/executor.hpp"
#include "group/loss_scale.hpp"
#include "group/slices.hpp"
#include "metric/metric.hpp"
#include "ndarray/ndarray.hpp"
#include "optimizer/optimizer.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class Group;

// Lists of arrays that a group has on each device, with the values of COHORT_GROUP_*.
enum class GroupList : int32_t {
  kData = 0,
  kLabels = 1,
  kParams = 2,
  kGrads = 3,
  kAux = 4,
  kStates = 5,
  kOutputs = 6,
  kInputGrads = 7,
  kArgs = 8,
};
GroupList make_group_list(int32_t code);  // kInvalidArgument

// How update() combines the devices' gradients, with the values of COHORT_UPDATE_*.
enum class UpdateMode : int32_t { kOnStore = 0, kPerDevice = 1, kNoStore = 2 };
UpdateMode make_update_mode(int32_t code);  // kInvalidArgument

struct GroupOptions {
  std::vector<Context> contexts;
  std::vector<double> workload;  // empty: equal shares
  Rounding rounding = Rounding::kHalfUp;
  std::vector<BatchSlice> slices;  // empty: by workload
  std::vector<std::string> param_names;
  // Instead of names: all arguments but data, labels (also of losses that are not bound) and states.
  bool all_params = false;
  bool for_training = true;
  bool inputs_need_grad = false;
  std::vector<std::string> fixed_param_names;
  GradReqs grad_req;
  std::vector<std::string> state_names;
  std::vector<std::pair<std::string, Dtype>> input_dtypes;
  std::vector<std::map<std::string, Context>> group2ctx;  // none, one for all devices, or one per device (EXE-11)
  int num_threads = 0;                                    // of each cpu context; 0: the contexts divide the processors
  ComputeTypes compute;
  bool backward_once = false;  // as an executor's
  bool recompute = false;      // likewise
  LossScaleOptions loss_scale;
  size_t gradient_bucket_bytes = 0;            // 0: chosen from the model
  Dtype gradient_sum_dtype = Dtype::kFloat32;  // of float32 gradients
  uint64_t seed = 0;
  std::function<void(LogLevel, const std::string &)> log;  // empty: the library's
  bool managed = false;  // it is a bucket of a manager, which binds it: bind() and reshape() throw kState
  std::map<std::string, NDArray> given_params, given_aux;  // arrays to use as the group's own, for inference
  std::vector<std::string> arg_names;  // the argument names that the caller expects; empty: not checked
  bool stop_if_not_finite = false;     // as MonitorOptions::stop_if_not_finite, in all passes
  bool strict_names = false;           // names that would be ignored are errors
  bool keep_device_aux = false;        // optimizers save each device's own auxiliary states
  std::string bucket;                  // of a manager; empty: none
};

class Group {
 public:
  static std::shared_ptr<Group> create(const Symbol &symbol, const DataDescs &data, const DataDescs &labels,
                                       const GroupOptions &options, const std::shared_ptr<Group> &shared = nullptr);
  ~Group();  // its executors wait for the queued work

  // Binds from scratch, with new arrays of zeros. rebind false: kState (DIF-17).
  void bind(const DataDescs &data, const DataDescs &labels, const std::shared_ptr<Group> &shared, bool rebind);
  void reshape(const DataDescs &data, const DataDescs &labels);  // BND-03..13

  const Symbol &symbol() const;
  const GroupOptions &options() const;
  size_t num_devices() const;
  const Context &context(size_t device) const;                     // kInvalidArgument
  const std::shared_ptr<Executor> &executor(size_t device) const;  // kInvalidArgument
  int64_t batch_size() const;                                      // 0: nothing is batched
  BatchSlice slice(size_t device) const;                           // kState if nothing is batched
  const std::vector<BatchSlice> &slices() const;                   // empty if nothing is batched

  std::vector<int> decide_slices(const DataDescs &descs) const;                                       // DSC-05
  DataDescs sliced_shape(const DataDescs &descs, size_t device, const std::vector<int> *axes) const;  // DSC-06
  const DataDescs &descs(GroupList list) const;  // of kData or kLabels, else kInvalidArgument
  DataDescs output_shapes() const;               // GRP-20; the layout is that of the head, "" if it is not batched

  size_t num_arrays(GroupList list) const;
  const std::string &name(GroupList list, size_t index) const;       // lives until reshape or bind
  int axis(GroupList list, size_t index) const;                      // kData, kLabels, kOutputs, kInputGrads
  NDArray array(GroupList list, size_t index, size_t device) const;  // live; null: a parameter without gradient
  NamedArrays arrays(GroupList list, size_t device) const;           // entries may be null likewise
  NDArray merged(GroupList list, size_t index);                      // OUT-01..05, IGR-01..03
  NamedArrays shared_data(size_t device) const;                      // SHR-03

  void set_params(const NamedArrays &args, const NamedArrays *aux, bool allow_extra);  // PRM-01..05
  // The parameters and auxiliary states that are not among these; kName if there are any, unless they are allowed.
  DataDescs missing_params(const NamedArrays &args, const NamedArrays *aux, bool allow_missing) const;
  void get_params(const NamedArrays &args, const NamedArrays *aux) const;  // PRM-06..09: writes into these arrays
  void copy_params(NamedArrays *args, NamedArrays *aux) const;             // into new ones on cpu(0)

  // Loads a batch, in the order of the descriptors; `labels` null or empty: they stay as they are. The copies are
  // queued; the caller may release the arrays at once.
  void load(const std::vector<NDArray> &data, const std::vector<NDArray> &labels);
  void run(int is_train);  // -1: as bound
  void forward(const std::vector<NDArray> &data, const std::vector<NDArray> &labels, int is_train);
  // [device][descriptor]; device_labels empty: none.
  void forward_presliced(const std::vector<std::vector<NDArray>> &device_data,
                         const std::vector<std::vector<NDArray>> &device_labels, int is_train);
  void backward(const std::vector<NDArray> &head_grads);
  void update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);

  const LossScale *loss_scale() const;              // null: there is none
  void set_loss_scale(double value, int num_good);  // kState: there is none

  std::vector<RandomPositions> random_state() const;  // by device; waits for the work that draws
  // kName: of another network. Devices that have none continue their own numbers, from the count of device 0.
  void set_random_state(std::vector<RandomPositions> devices);
  // Sets what the optimizer has loaded for this group beside the states: random state, loss scale and auxiliary states.
  // Does nothing if no states were loaded since the latest update.
  void resume(Optimizer &optimizer);

  void update_metric(Metric &metric, const std::vector<NDArray> &labels);  // MET-01..06
  void update_metric_presliced(Metric &metric, const std::vector<std::vector<NDArray>> &device_labels);

  // [state][device], or one value for all; exactly one of the two (STA-03..05).
  void set_states(const std::vector<std::vector<NDArray>> *states, const double *value);

  void set_monitor(MonitorFunction function, bool all);  // null removes it; reshape keeps it
  // Equal in processes whose gradients can be summed: a hash of names, shapes and dtypes of the parameters in the order
  // of the network, and of their buckets. kState if bound for inference.
  uint64_t exchange_hash() const;
  void wait();  // throws the first error of queued work
  MemoryUse memory(size_t device) const;

 private:
  Group();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
