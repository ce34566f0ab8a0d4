// SPDX-License-Identifier: Apache-2.0
// Rules that update parameters from gradients: settings, learning rate schedule, multipliers, counts of updates and the
// states of the parameters seen, by name. The API layer updates single arrays; group updates whole models, in programs
// and in pieces, through UpdateKernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.hpp"
#include "device/node_streams.hpp"
#include "ndarray/ndarray.hpp"
#include "optimizer/update_kernel.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

inline constexpr double kLargestLossScale = 16777216, kLeastLossScale = 1 / kLargestLossScale;  // 2^24

// The state of a loss scale. Group changes it; the optimizer saves and loads it with its states.
struct LossScaleState {
  double value = 1;  // for the next backward pass
  int num_good = 0;  // updates since it changed
  uint64_t num_skipped = 0;
};

// The state of a group beside its parameters on which later updates depend. An optimizer saves it for the groups that
// it updates: for each bucket of a manager, or for the group updated last.
struct TrainingSource {
  std::string bucket;                // empty: not a manager's
  std::vector<StreamAccess> random;  // by device
  std::vector<NamedArrays> aux;      // each device's auxiliary states; empty: the group does not want them saved
};
// The same, as saved.
struct TrainingState {
  std::map<std::string, std::vector<RandomPositions>> random;  // by bucket, then by device
  std::vector<NamedArrays> aux;
};

// An optimizer is used by one thread at a time.
class Optimizer {
 public:
  // Takes the names and settings of MXNet's Python package. Throws kName, kInvalidArgument.
  static std::shared_ptr<Optimizer> create(const std::string &name, const AttrMap &settings);
  ~Optimizer();

  const std::string &name() const;
  double get(const std::string &key) const;        // kName; "learning_rate" of the next update; "num_update"
  void set(const std::string &key, double value);  // kName, kInvalidArgument; kState: a schedule decides it
  void set_lr_schedule(const std::string &name, const AttrMap &settings);   // name empty: none
  void use_symbol(const Symbol &symbol);                                    // __lr_mult__ and __wd_mult__
  void set_mult(const std::string &param, double lr_mult, double wd_mult);  // a negative one is removed
  double lr_mult(const std::string &param) const;
  double wd_mult(const std::string &param) const;

  // Queues one update of one array. Copies of a parameter (one per device) have states and counts of their own.
  void update(const std::string &param, size_t copy, const NDArray &weight, const NDArray &grad);

  // Save and load states and counts (format: optimizer_states.cc); saving waits for the states.
  std::string save_states() const;
  void load_states(const void *data, size_t bytes, const std::string &source);  // kFormat, and nothing changes

  const LossScaleState *loss_scale() const;  // of the group updated last, or as loaded; null: it had none

  // ---- for group ----------------------------------------------------------------------------------------------------

  // The state of one copy of a parameter. Lives as long as the optimizer, once it is committed.
  struct Slot;
  // Slots and states that an update makes: the optimizer has them once the update is queued. If that fails, they are
  // dropped, and the optimizer is as before.
  class PendingSlots;
  static int64_t num_updates(const Slot &slot);
  // Counts one update of this copy and returns the numbers for it. Called in the order of the updates.
  UpdateValues begin_update(Slot &slot);
  // Undoes begin_update() for each of these, as the update was not queued; "num_update" was this before.
  void undo_begin_update(const std::vector<Slot *> &slots, int64_t num_update);
  // A kernel for a weight of this dtype and shape, or for a piece of one with shape (elements,), unless
  // updates_whole().
  std::unique_ptr<UpdateKernel> make_kernel(const Context &context, Dtype dtype, const Shape &shape,
                                            int num_threads) const;
  bool updates_whole() const;  // weights cannot be updated in pieces
  void keep_source(const std::shared_ptr<const TrainingSource> &source);
  // As it was loaded; null: no states were loaded, or the optimizer has made updates since then.
  const TrainingState *loaded_training() const;
  void keep_loss_scale(const LossScaleState &state);
  const LossScaleState *take_loaded_loss_scale();  // once after states were loaded; null: there is none
  // Changes when states are loaded, their number changes, or they move to another context: states and kernels must then
  // be asked for again.
  uint64_t generation() const;
  // The factor in the gradients of the updates that follow, which the updates divide out; 1 without a loss scale.
  void set_gradient_scale(double scale);

 private:
  Optimizer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Optimizer::PendingSlots {
 public:
  explicit PendingSlots(Optimizer &optimizer);
  ~PendingSlots();

  // The slot that the optimizer has, or a new one. A new copy of a parameter takes counts and states of copy 0 if these
  // were loaded and have not been used since.
  Slot &slot(const std::string &param, size_t copy);
  // The same for a device of a group: a new copy, or one that has not had as many updates, takes those of copy 0 unless
  // that is new, too.
  Slot &slot_of_device(const std::string &param, size_t copy);
  // The states of one of these slots, on the weight's context. A state that begins as a copy of the weight is copied
  // from `source`, which has the value that `weight` will have when it is updated. kShape if loaded states have another
  // shape.
  std::vector<NDArray> states(Slot &slot, const NDArray &weight, const NDArray &source);
  void commit() noexcept;

 private:
  struct Moved {
    Slot *slot;
    std::vector<NDArray> states;
    bool has_master;
  };
  Slot &find_or_make(const std::string &param, size_t copy, bool of_device);

  Optimizer &optimizer_;
  std::map<std::pair<std::string, size_t>, std::unique_ptr<Slot>> added_;
  std::vector<Moved> moved_;  // slots that the optimizer has already, whose states change
};

}  // namespace cohort
