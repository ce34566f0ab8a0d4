// SPDX-License-Identifier: Apache-2.0
// The memory of arrays and the tracking of work that uses it. Shared by all views of an array, and by executors.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "device/device.hpp"
#include "ndarray/hazards.hpp"

namespace cohort {

class Storage {
 public:
  // `from_file`: memory that is a private mapping of a file.
  explicit Storage(std::shared_ptr<Memory> memory, bool from_file = false)
      : memory_(std::move(memory)), from_file_(from_file), hazards_(AddressRange(memory_->data(), memory_->bytes())) {}
  // A part of a larger block, perhaps on another context; both see the same memory.
  Storage(std::shared_ptr<Memory> memory, std::shared_ptr<Storage> whole)
      : memory_(std::move(memory)), whole_(std::move(whole)), hazards_(AddressRange(nullptr, 0)) {}

  void *data() const { return memory_->data(); }
  size_t bytes() const { return memory_->bytes(); }
  const Context &context() const { return memory_->context(); }
  // The immediate timeline of this array's device; kept, so that later calls return the same one.
  std::shared_ptr<Timeline> immediate();
  uint64_t version() { return hazards().version(); }
  // Whether drop_pages() can do anything.
  bool has_droppable_pages() { return whole_ ? whole_->has_droppable_pages() : from_file_ && hazards_.pristine(); }
  // Releases the memory pages of an array that was never written; they are re-read from their file on access. The
  // caller must have announced a read, so that nothing writes meanwhile.
  void drop_pages();
  Hazards &hazards() { return whole_ ? whole_->hazards() : hazards_; }

 private:
  const std::shared_ptr<Memory> memory_;
  const std::shared_ptr<Storage> whole_;
  const bool from_file_ = false;
  Hazards hazards_;
  std::mutex mutex_;  // guards immediate_
  std::shared_ptr<Timeline> immediate_;
};

}  // namespace cohort
