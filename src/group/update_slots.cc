// SPDX-License-Identifier: Apache-2.0
#include "group/update_slots.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "group/reducer.hpp"

namespace cohort {

UpdateSlots::UpdateSlots(const ExchangeParams &params, const ExchangeParams &sources, size_t num_devices,
                         const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode)
    : optimizer_(optimizer),
      mode_(mode),
      num_copies_(mode == UpdateMode::kOnStore ? 1 : num_devices),
      generation_(optimizer->generation()),
      pending_(std::make_unique<Optimizer::PendingSlots>(*optimizer)) {
  for (const ExchangeParam &param : params) {
    names_.push_back(param.name);
    for (size_t c = 0; c < num_copies_; ++c) slots_.push_back(&pending_->slot_of_device(param.name, c));
  }
  for (size_t s = 0; s < slots_.size(); ++s) {
    const size_t param = s / num_copies_, copy = s % num_copies_;
    states_.push_back(pending_->states(*slots_[s], params[param].weights[copy], sources[param].weights[copy]));
    if (states_.back().size() > kMostStates)
      throw Error(Code::kInternal, "an optimizer with more states than expected");
  }
}

bool UpdateSlots::begin_states(const std::vector<std::shared_ptr<Timeline>> &timelines) const {
  bool waits = false;
  for (size_t s = 0; s < states_.size(); ++s) {
    const std::shared_ptr<Timeline> &by = timelines[std::min(s % num_copies_, timelines.size() - 1)];
    for (const NDArray &state : states_[s])
      waits =
          with_array_name("optimizer's state of", names_[s / num_copies_], [&] { return state.begin_change(by); }) ||
          waits;
  }
  return waits;
}

bool UpdateSlots::copies_agree() const {
  for (size_t s = 0; s < slots_.size(); ++s)
    if (Optimizer::num_updates(*slots_[s]) != Optimizer::num_updates(*slots_[s - s % num_copies_])) return false;
  return true;
}

void UpdateSlots::commit() const noexcept {
  if (!pending_) return;
  pending_->commit();
  pending_.reset();
  generation_ = optimizer_->generation();
}

void UpdateSlots::begin(std::vector<UpdateValues> *values) const {
  values->resize(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) (*values)[s] = optimizer_->begin_update(*slots_[s]);
}

void UpdateSlots::fail(size_t param, size_t copy, const char *message) const noexcept {
  for (const NDArray &state : states_[param * num_copies_ + copy]) state.fail(message);
}

void UpdateSlots::find_states(size_t param, size_t copy, int64_t begin, void **states) const {
  const std::vector<NDArray> &arrays = states_[param * num_copies_ + copy];
  for (size_t i = 0; i < arrays.size(); ++i) states[i] = address_of(arrays[i], begin);
}

}  // namespace cohort
