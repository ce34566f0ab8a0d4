// SPDX-License-Identifier: Apache-2.0
#include "executor/replicas.hpp"

#include <cstdio>

#include "base/error.hpp"

namespace cohort {

BatchSync::BatchSync(size_t num_replicas, size_t share_bytes)
    : share_bytes_(share_bytes),
      blocks_(num_replicas),
      shares_(num_replicas),
      delivered_(num_replicas),
      reasons_(num_replicas) {
  for (size_t r = 0; r < num_replicas; ++r) {
    shares_[r].own = r;
    shares_[r].blocks.resize(num_replicas);
    not_delivered(r, "its pass has not run");
  }
}

void BatchSync::join(size_t replica, Device &device) {
  if (blocks_[replica]) return;
  blocks_[replica] = device.host_memory(share_bytes_);
  for (BatchShares &shares : shares_) shares.blocks[replica] = blocks_[replica].get();
}

void BatchSync::not_delivered(size_t replica, const char *why) noexcept {
  std::snprintf(reasons_[replica].data(), reasons_[replica].size(), "%s", why);
  delivered_[replica].store(false, std::memory_order_release);
}

void BatchSync::check_delivered() const {
  for (size_t r = 0; r < delivered_.size(); ++r) {
    if (delivered_[r].load(std::memory_order_acquire)) continue;
    throw Error(Code::kExecution, text("device ", r, " did not deliver its batch statistics: ", reasons_[r].data()));
  }
}

std::shared_ptr<BatchSync> Replicas::sync(int node, bool backward, size_t share_bytes) {
  std::shared_ptr<BatchSync> &known = syncs_[{node, backward, share_bytes}];
  if (!known) known = std::make_shared<BatchSync>(num_, share_bytes);
  return known;
}

}  // namespace cohort
