// SPDX-License-Identifier: Apache-2.0
#include "executor/replicas.hpp"

#include <cstdio>

#include "base/error.hpp"

namespace cohort {

BatchSync::BatchSync(size_t num_replicas, size_t share_bytes)
    : share_bytes_(share_bytes),
      blocks_(num_replicas),
      parts_(num_replicas),
      found_(num_replicas),
      why_not_(num_replicas) {
  for (size_t r = 0; r < num_replicas; ++r) {
    parts_[r].own = r;
    parts_[r].blocks.resize(num_replicas);
    not_delivered(r, "it has not run");
  }
}

void BatchSync::join(size_t replica, Device &device) {
  if (blocks_[replica]) return;
  blocks_[replica] = device.host_memory(share_bytes_);
  for (BatchShares &parts : parts_) parts.blocks[replica] = blocks_[replica].get();
}

void BatchSync::not_delivered(size_t replica, const char *why) noexcept {
  std::snprintf(why_not_[replica].data(), why_not_[replica].size(), "%s", why);
  found_[replica].store(false, std::memory_order_release);
}

void BatchSync::check_delivered() const {
  for (size_t r = 0; r < found_.size(); ++r) {
    if (found_[r].load(std::memory_order_acquire)) continue;
    throw Error(Code::kExecution, text("expected what all devices of the group have found of the batch, found nothing "
                                       "of device ",
                                       r, ": ", why_not_[r].data()));
  }
}

std::shared_ptr<BatchSync> Replicas::meeting(int node, bool backward, size_t share_bytes) {
  std::shared_ptr<BatchSync> &known = syncs_[{node, backward, share_bytes}];
  if (!known) known = std::make_shared<BatchSync>(num_, share_bytes);
  return known;
}

}  // namespace cohort
