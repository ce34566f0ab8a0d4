// SPDX-License-Identifier: Apache-2.0
// One operator compiled for arrays of certain shapes and types, staged from the arrays: what applied operators
// (invoke.hpp) keep and run again. Made by the same passes as the plans of executors, so that layouts, reorders and
// working memory are theirs, too.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"

namespace cohort {

// What one application needs to know of the operator; shapes and types are complete, those of hidden outputs included.
struct AppliedOperator {
  const Op *op = nullptr;
  AttrMap written;  // the attributes as text, and ..
  Attrs attrs;      // .. parsed
  bool is_train = false;
  bool staged = false;  // computes everything before it writes the first output: these may share memory with any input
  Shapes in_shapes, out_shapes;
  Dtypes in_dtypes, out_dtypes;
};

class AppliedProgram {
 public:
  AppliedProgram(const AppliedOperator &what, const std::shared_ptr<Device> &device, int num_threads);

  const std::string &op() const { return op_; }
  size_t num_outputs() const { return plan_->head_slots.size(); }  // the visible ones
  const TensorSpec &output(size_t index) const { return plan_->slots[size_t(plan_->head_slots[index])].spec; }
  const std::vector<size_t> &mutated() const { return mutated_; }  // inputs that are written
  bool brief() const { return plan_->brief_forward; }
  bool stateful() const { return plan_->stateful; }
  bool on_caller() const { return on_caller_; }  // a step of it is: Kernel::on_caller()
  size_t arena_bytes() const { return plan_->arena_bytes[0]; }
  size_t num_steps() const { return plan_->steps.size(); }
  size_t num_pointers() const { return num_pointers_; }
  uint64_t random_seed() const { return random_seed_; }  // of its stream, which each call draws from at its own place

  // Whether the result is right if an output lies exactly where an input does.
  bool may_share(size_t input, size_t output) const;
  // Fills in the steps for these arrays.
  void bind(void *const *inputs, void *const *outputs, char *arena, RandomStream *random, Step *steps,
            void **pointers) const;

 private:
  struct Address {  // of a pointer of a step
    ValueLocation location;
    size_t where;  // index of the array, or offset in the arena
  };
  Address address_of(int slot) const;

  const std::string op_;
  std::shared_ptr<const Plan> plan_;
  std::vector<size_t> mutated_;
  std::vector<Address> addresses_;  // step by step: inputs, outputs, scratch, saved
  size_t num_pointers_ = 0;
  uint64_t random_seed_ = 0;
  bool on_caller_ = false;
};

// Programs by a key of bytes, the kMost that were used last. Any thread.
class AppliedPrograms {
 public:
  static constexpr size_t kMost = 1024;

  std::shared_ptr<const AppliedProgram> find(std::string_view key);  // null: none
  void add(std::string_view key, std::shared_ptr<const AppliedProgram> program);
  size_t size() const;
  uint64_t num_added() const;

 private:
  struct Item {
    std::string key;
    std::shared_ptr<const AppliedProgram> program;
  };
  mutable std::mutex mutex_;  // guards the three below
  std::list<Item> items_;     // the last used first
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key_;
  uint64_t num_added_ = 0;
};

}  // namespace cohort
