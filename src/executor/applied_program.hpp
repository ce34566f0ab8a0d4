// SPDX-License-Identifier: Apache-2.0
// One operator compiled for arrays of given shapes and types, without the arrays themselves. Applied operators
// (invoke.hpp) keep these programs and run them again. The passes that compile executors' plans make them too, so they
// get the same layouts, reorders and working memory.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "op/gradient_graph.hpp"
#include "plan/plan.hpp"

namespace cohort {

class AppliedProgram;

// Everything needed to compile one applied operator, or the backward step of one; shapes and types are complete,
// including those of hidden outputs.
struct AppliedOperator {
  Application applied;
  bool frozen = false, keeps = false;  // as in an Invocation
  // Write no output before everything is computed, so that outputs may share memory with any input.
  bool staged = false;
  Shapes in_shapes, out_shapes;
  Dtypes in_dtypes, out_dtypes;
  // For a backward step: the program of the forward step, if that was kept, and which outputs are computed. What the
  // forward step saved is one more input, behind the kernel's own.
  std::shared_ptr<const AppliedProgram> forward;
  std::vector<bool> wanted;

  size_t num_inputs() const;     // of the operator
  bool gives(int output) const;  // whether the output goes to the caller
};

class AppliedProgram {
 public:
  AppliedProgram(const AppliedOperator &what, const std::shared_ptr<Device> &device, int num_threads);

  const std::string &op() const { return op_; }  // "softmax", "_backward_softmax"
  // The visible ones; all, and then what is saved, if it keeps them; of a backward step those that are wanted.
  size_t num_outputs() const { return plan_->head_slots.size(); }
  bool saves() const { return saves_; }  // the last output is for the backward step alone
  const TensorSpec &output(size_t index) const { return plan_->slots[size_t(plan_->head_slots[index])].spec; }
  const std::vector<size_t> &mutated() const { return mutated_; }  // inputs that are written
  WorkSize size() const { return plan_->forward_size; }
  bool stateful() const { return plan_->stateful; }
  bool on_caller() const { return on_caller_; }  // the kernel of some step runs on the calling thread
  size_t arena_bytes() const { return plan_->arena_bytes[0]; }
  size_t num_steps() const { return plan_->steps.size(); }
  size_t num_pointers() const { return num_pointers_; }
  uint64_t random_seed() const { return random_seed_; }  // of its random stream; each call draws at its own position

  // Whether the result is correct if this output occupies exactly the memory of this input.
  bool may_share(size_t input, size_t output) const;
  // Fills in the steps for these arrays.
  void bind(void *const *inputs, void *const *outputs, char *arena, RandomStream *random, Step *steps,
            void **pointers) const;

 private:
  struct Address {  // where a pointer of a step points to
    ValueLocation location;
    size_t where;  // index of the array, or offset in the arena
  };
  Address address_of(int slot) const;

  const std::string op_;
  std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<const AppliedProgram> forward_;  // its kernel is used by this one's
  bool saves_ = false;
  std::vector<size_t> mutated_;
  std::vector<Address> addresses_;  // step by step: inputs, outputs, scratch, saved
  size_t num_pointers_ = 0;
  uint64_t random_seed_ = 0;
  bool on_caller_ = false;
};

// A cache of programs by a byte key, which keeps the kMost used last. Thread-safe.
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
  std::list<Item> items_;     // the most recently used first
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key_;
  uint64_t num_added_ = 0;
};

}  // namespace cohort
