// SPDX-License-Identifier: Apache-2.0
#include "group/update_slots.hpp"

#include "base/error.hpp"
#include "group/reducer.hpp"

namespace cohort {

UpdateSlots::UpdateSlots(const ExchangeParams &params, size_t num_devices, const std::shared_ptr<Optimizer> &optimizer,
                         UpdateMode mode, const QueueOf &queue_of)
    : optimizer_(optimizer),
      generation_(optimizer->generation()),
      mode_(mode),
      num_copies_(mode == UpdateMode::kOnStore ? 1 : num_devices) {
  for (const ExchangeParam &param : params)
    for (size_t c = 0; c < num_copies_; ++c) slots_.push_back(&optimizer->slot(param.name, c));
  // All slots before any states: a further copy may have to go on from what was loaded for the first.
  for (size_t s = 0; s < slots_.size(); ++s) {
    const size_t param = s / num_copies_, copy = s % num_copies_;
    states_.push_back(optimizer->states(*slots_[s], params[param].weights[copy]));
    if (states_.back().size() > kMostStates)
      throw Error(Code::kInternal, "an optimizer with more states than expected");
    for (const NDArray &state : states_.back()) state.storage()->attach(queue_of(param, copy));
  }
}

void UpdateSlots::begin(std::vector<UpdateValues> *values) const {
  values->resize(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) (*values)[s] = optimizer_->begin_update(*slots_[s]);
}

void UpdateSlots::find_states(size_t param, size_t copy, int64_t begin, void **states) const {
  const std::vector<NDArray> &arrays = states_[param * num_copies_ + copy];
  for (size_t i = 0; i < arrays.size(); ++i) states[i] = address_of(arrays[i], begin);
}

}  // namespace cohort
