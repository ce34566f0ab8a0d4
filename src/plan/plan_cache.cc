// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_cache.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/per_process.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

// ---- keys ---------------------------------------------------------------------------------------------------------

// Serialises everything that compile() reads, so that plans with equal keys are equal.
class Key {
 public:
  explicit Key(const PlanRequest &request) {
    // All fields: one that is added does not compile until it is named here, and then has to be in the key.
    const auto &[graph, inferred, grad_reqs, devices, group_devices, fixed_devices, constants, same_memory, is_train,
                 with_backward, backward_once, recompute, restores, always_updates_aux, separate_nodes, num_threads,
                 num_replicas, compute_dtype, tf32, ranges, scales_loss, num_scaled_heads, precisions, gives_saved,
                 backward] = request;
    for (const bool flag : {is_train, with_backward, backward_once, recompute, restores, always_updates_aux,
                            separate_nodes, tf32, scales_loss, gives_saved, backward != nullptr}) {
      add(flag);
    }
    add(num_threads);
    add(num_replicas);
    add(num_scaled_heads);
    add(compute_dtype);
    add_map(precisions);
    add(ranges.size());
    for (const std::vector<ValueRange> &of_node : ranges) {
      add(of_node.size());
      for (const ValueRange &range : of_node) add(range.low), add(range.high);
    }
    for (const std::shared_ptr<Device> &device : devices) {
      // Host devices are interchangeable; a plan for any other device is for that one only.
      add(device->context().on_host() ? nullptr : device.get());
    }
    add_map(group_devices);
    add_map(fixed_devices);
    add_list(grad_reqs);
    add(constants.size());
    for (const bool constant : constants) add(constant);
    add_list(same_memory);
    add_list(graph->arguments);
    add_list(graph->auxiliary);
    add_list(graph->heads);
    for (size_t n = 0; n < graph->nodes.size(); ++n) add_node(*graph->nodes[n], graph->inputs[n], inferred, n);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void add_node(const Node &node, const std::vector<Graph::Input> &inputs, const Inferred *inferred, size_t n) {
    add(node.op);
    add_text(node.name);  // used in error messages
    if (!node.is_variable()) {
      add_map(node.attrs);
      add_list(inputs);
      for (const auto &subgraph : node.subgraphs) add_text(subgraph->json());
    } else if (const auto group = node.attrs.find("__ctx_group__"); group != node.attrs.end()) {
      add_text(group->second);
    }
    for (const Shape &shape : inferred->shapes[n]) add_list(shape.dims());
    add_list(inferred->dtypes[n]);
  }
  template <typename T>
  void add(const T &value) {
    static_assert(std::is_scalar_v<T>);
    bytes_.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void add(const Graph::Input &input) {
    add(input.node);
    add(input.index);
  }
  void add_text(const std::string &word) {
    add(word.size());
    bytes_.append(word);
  }
  template <typename T>
  void add_list(const std::vector<T> &list) {
    add(list.size());
    for (const T &entry : list) add(entry);
  }
  template <typename K, typename V>
  void add_map(const std::map<K, V> &entries) {
    add(entries.size());
    for (const auto &[key, value] : entries) {
      if constexpr (std::is_same_v<K, std::string>)
        add_text(key);
      else
        add(key);
      if constexpr (std::is_same_v<V, std::string>)
        add_text(value);
      else
        add(value);
    }
  }

  std::string bytes_;
};

// ---- the cache ----------------------------------------------------------------------------------------------------

class PlanCache {
 public:
  std::shared_ptr<const Plan> find(std::string_view key) {
    std::list<Entry> dropped;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    const auto entry = found->second;
    std::shared_ptr<const Plan> plan = entry->plan.lock();
    if (plan) keep(entry, plan);
    trim(&dropped);
    return plan;
  }

  // Returns the plan now stored under this key.
  std::shared_ptr<const Plan> add(std::string key, bool may_keep, const std::shared_ptr<const Plan> &plan) {
    std::list<Entry> dropped;  // plans in it are destroyed after the lock is released
    const std::lock_guard<std::mutex> lock(mutex_);
    ++compiled_;
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      if (std::shared_ptr<const Plan> faster = known->second->plan.lock()) return faster;
      drop(known->second, &dropped);
    }
    const size_t steps = plan->steps.size() + plan->prologue.size() + plan->num_inner_steps;
    entries_.push_front({std::move(key), plan, nullptr, may_keep, steps});
    by_key_.emplace(entries_.front().key, entries_.begin());
    keep(entries_.begin(), plan);
    trim(&dropped);
    if (entries_.size() > sweep_at_) sweep(&dropped);
    return plan;
  }

  void release() noexcept {
    std::list<Entry> dropped;
    const std::lock_guard<std::mutex> lock(mutex_);
    dropped.swap(entries_);
    by_key_.clear();
    kept_steps_ = 0;
  }

  PlanCacheUse use() {
    std::list<Entry> dropped;
    const std::lock_guard<std::mutex> lock(mutex_);
    sweep(&dropped);
    return {entries_.size(), kept_steps_, compiled_};
  }

 private:
  struct Entry {
    std::string key;
    std::weak_ptr<const Plan> plan;
    std::shared_ptr<const Plan> kept;
    bool may_keep;
    size_t steps;
  };
  using EntryIterator = std::list<Entry>::iterator;

  void keep(EntryIterator entry, const std::shared_ptr<const Plan> &plan) {
    entries_.splice(entries_.begin(), entries_, entry);
    if (!entry->may_keep || entry->kept || entry->steps > kKeptSteps) return;
    entry->kept = plan;
    kept_steps_ += entry->steps;
  }
  void drop(EntryIterator entry, std::list<Entry> *dropped) {
    by_key_.erase(entry->key);
    if (entry->kept) kept_steps_ -= entry->steps;
    dropped->splice(dropped->end(), entries_, entry);
  }
  // Stops keeping the least recently used plans beyond the limit. A plan still in use remains shared.
  void trim(std::list<Entry> *dropped) {
    for (auto entry = entries_.end(); kept_steps_ > kKeptSteps && entry != entries_.begin();) {
      --entry;
      if (!entry->kept) continue;
      dropped->push_back({{}, {}, std::move(entry->kept), false, 0});
      kept_steps_ -= entry->steps;
    }
  }
  // Removes the entries of destroyed plans.
  void sweep(std::list<Entry> *dropped) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (entry->plan.expired()) drop(entry, dropped);
      entry = next;
    }
    sweep_at_ = 2 * entries_.size() + 64;
  }

  std::mutex mutex_;          // guards all below
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, EntryIterator> by_key_;
  size_t kept_steps_ = 0, sweep_at_ = 64;
  uint64_t compiled_ = 0;
};

}  // namespace

std::shared_ptr<const Plan> shared_plan(const PlanRequest &request) {
  const std::vector<NodePtr> &nodes = request.graph->nodes;
  const auto is_stateful = [](const NodePtr &node) {
    return !node->is_variable() && node->op->is_stateful(node->parsed);
  };
  // A backward step's plan depends on a kernel of another plan.
  if (request.backward || std::any_of(nodes.begin(), nodes.end(), is_stateful))
    return std::make_shared<const Plan>(compile(request));
  std::string key = Key(request).take();
  auto &cache = per_process<PlanCache>();
  if (std::shared_ptr<const Plan> known = cache.find(key)) return known;
  const auto compiled = std::make_shared<const Plan>(compile(request));
  bool on_host = true;
  for (const std::shared_ptr<Device> &device : request.devices) on_host = on_host && device->context().on_host();
  return cache.add(std::move(key), on_host, compiled);
}

void release_plans() noexcept {
  if (auto *const cache = known_per_process<PlanCache>()) cache->release();
}

PlanCacheUse plan_cache_use() { return per_process<PlanCache>().use(); }

}  // namespace cohort
