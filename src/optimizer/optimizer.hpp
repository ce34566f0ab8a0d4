// SPDX-License-Identifier: Apache-2.0
// Rules that update parameters from gradients: settings, learning rate schedule, multipliers, counts of updates and the
// states of the parameters seen, by name. The boundary updates single arrays; group updates whole models, in programs
// and in chunks, through UpdateKernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.hpp"
#include "ndarray/ndarray.hpp"
#include "optimizer/update_kernel.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

inline constexpr double kLargestLossScale = 16777216, kLeastLossScale = 1 / kLargestLossScale;  // 2^24

// Where a factor on the loss has come to. Group makes it; the states of the optimizer that goes with it hold it, too.
struct LossScaleState {
  double value = 1;  // of the next backward pass
  int num_good = 0;  // updates since it changed
  uint64_t num_skipped = 0;
};

// One at a time: an optimizer is used by one thread.
class Optimizer {
 public:
  // Names and settings as MXNet's Python package has them. Throws kName, kInvalidArgument.
  static std::shared_ptr<Optimizer> create(const std::string &name, const AttrMap &settings);
  ~Optimizer();

  const std::string &name() const;
  double get(const std::string &key) const;        // kName; "learning_rate" of the next update; "num_update"
  void set(const std::string &key, double value);  // kName, kInvalidArgument; kState: a schedule decides it
  void set_lr_schedule(const std::string &name, const AttrMap &settings);   // name empty: none
  void use_symbol(const Symbol &symbol);                                    // __lr_mult__ and __wd_mult__
  void set_mult(const std::string &param, double lr_mult, double wd_mult);  // negative: as if not set
  double lr_mult(const std::string &param) const;
  double wd_mult(const std::string &param) const;

  // One update of one array. Copies of a parameter (one a device) have states and counts of their own. Queued.
  void update(const std::string &param, size_t copy, const NDArray &weight, const NDArray &grad);

  // States and counts (optimizer_states.cc has the format). Wait for the states.
  std::string save_states() const;
  void load_states(const void *data, size_t bytes, const std::string &source);  // kFormat, and nothing changes

  const LossScaleState *loss_scale() const;  // of the group updated last, or as loaded; null: that had none

  // ---- for group ----------------------------------------------------------------------------------------------------

  // What is kept of one copy of a parameter. Lives as long as the optimizer.
  struct Slot;
  Slot &slot(const std::string &param, size_t copy);
  // Counts one update of this copy and says with which values it is done. In the order of the updates.
  UpdateValues begin_update(Slot &slot);
  // What came of begin_update() for each of these was not queued: counts are as before, when "num_update" was that.
  void take_back(const std::vector<Slot *> &slots, int64_t num_update);
  // The states of one copy, made where there are none yet, beside the weight; those that begin as a copy of it, as one
  // of `source`, which is what it will be then. kShape: loaded ones of another shape.
  const std::vector<NDArray> &states(Slot &slot, const NDArray &weight, const NDArray &source);
  // For a weight of this dtype and shape, or a piece of one, (elements,), unless it must be whole.
  std::unique_ptr<UpdateKernel> make_kernel(const Context &context, Dtype dtype, const Shape &shape,
                                            int num_threads) const;
  bool updates_whole() const;  // weights are not updated in pieces
  void keep_loss_scale(const LossScaleState &state);
  const LossScaleState *take_loaded_loss_scale();  // once after they were loaded; null: there is none
  // Changes when states were loaded or their number changed: states and kernels are then to be asked for anew.
  uint64_t generation() const;
  // What the gradients of the updates that follow have been multiplied by, beside the loss (1): they are taken without.
  void set_gradient_scale(double scale);

 private:
  Optimizer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
