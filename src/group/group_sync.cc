// SPDX-License-Identifier: Apache-2.0
#include "group/group_sync.hpp"

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

// Whether an operator inside a node syncs with other devices.
bool syncs_inside(const NodeGraph &inside) {
  for (const NodePtr &node : inside.graph().nodes) {
    if (!node->is_variable() && node->op->syncs_batch) return true;
    for (const auto &graph : node->subgraphs) {
      if (syncs_inside(*graph)) return true;
    }
  }
  return false;
}

}  // namespace

GroupStepSync::GroupStepSync(size_t num_devices, size_t share_bytes)
    : share_bytes_(share_bytes),
      blocks_(num_devices),
      shares_(num_devices),
      delivered_(num_devices),
      reasons_(num_devices) {
  for (size_t d = 0; d < num_devices; ++d) {
    shares_[d].own = d;
    shares_[d].blocks.resize(num_devices);
    not_delivered(d, "its pass has not run");
  }
}

void GroupStepSync::join(size_t part, Device &device) {
  if (blocks_[part]) return;
  blocks_[part] = device.host_memory(share_bytes_);
  for (BatchShares &shares : shares_) shares.blocks[part] = blocks_[part].get();
}

void GroupStepSync::not_delivered(size_t part, const char *why) noexcept {
  std::snprintf(reasons_[part].data(), reasons_[part].size(), "%s", why);
  delivered_[part].store(false, std::memory_order_release);
}

void GroupStepSync::check_delivered() const {
  for (size_t d = 0; d < delivered_.size(); ++d) {
    if (delivered_[d].load(std::memory_order_acquire)) continue;
    throw Error(Code::kExecution, text("device ", d, " did not deliver its batch statistics: ", reasons_[d].data()));
  }
}

std::shared_ptr<GroupSync> GroupSync::create(const Symbol &symbol, size_t num_devices) {
  if (num_devices < 2) return nullptr;
  const Graph graph(symbol);
  for (const NodePtr &node : graph.nodes) {
    for (const auto &inside : node->subgraphs) {
      if (!syncs_inside(*inside)) continue;
      throw Error(Code::kUnsupported,
                  text("node '", node->name,
                       "': an operator that exchanges batch statistics between devices cannot be inside a loop, branch "
                       "or cached graph"),
                  node->name);
    }
  }
  const bool any_syncs = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const auto &node) { return !node->is_variable() && node->op->syncs_batch; });
  return any_syncs ? std::make_shared<GroupSync>(num_devices) : nullptr;
}

std::shared_ptr<StepSync> GroupSync::join(size_t part, size_t node, bool backward, size_t share_bytes, Device &device) {
  std::shared_ptr<GroupStepSync> &known = steps_[{node, backward, share_bytes}];
  if (!known) known = std::make_shared<GroupStepSync>(num_devices_, share_bytes);
  known->join(part, device);
  return known;
}

}  // namespace cohort
