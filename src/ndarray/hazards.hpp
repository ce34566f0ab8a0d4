// SPDX-License-Identifier: Apache-2.0
// Tracks which work may still read or write a block of memory. Every user announces an access here before the work is
// enqueued, and is ordered after what it depends on: a read after the last writes, a write after the last writes and
// the reads since. Queues wait for queues; the host waits only when it accesses the memory itself. Failures propagate
// the same way: memory that was not written cannot be read.
//
// Addresses are absolute, so views, and arrays of several devices in one block, are distinguished by their position.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/range_map.hpp"
#include "device/timeline.hpp"

namespace cohort {

struct AddressRange {
  uintptr_t begin = 0, end = 0;

  AddressRange(const void *data, size_t bytes)
      : begin(reinterpret_cast<uintptr_t>(data)), end(reinterpret_cast<uintptr_t>(data) + bytes) {}
  bool empty() const { return begin >= end; }
  bool overlaps(const AddressRange &o) const { return begin < o.end && o.begin < end; }
  bool covers(const AddressRange &o) const { return begin <= o.begin && o.end <= end; }
};

// Two threads may use one block at a time only if both read. A use counts from its begin_ call, so that call and the
// enqueuing of the work must happen within one API call.
class Hazards {
 public:
  explicit Hazards(const AddressRange &whole) : whole_(whole) {}
  Hazards(const Hazards &) = delete;
  Hazards &operator=(const Hazards &) = delete;

  // Which work of other timelines must finish first.
  enum class Before { kNothing, kReaders, kWriters };
  // Announces that work reading, or writing, this range is enqueued next on `by`; work that does both calls both, in
  // this order. After kNothing, check_known() tells whether the input was written; otherwise that is not known yet, and
  // the work must call check_written() when it starts.
  Before begin_read(const AddressRange &range, const std::shared_ptr<Timeline> &by);
  // Fast path: nothing else uses the block and nothing has failed. If false, call the functions above.
  bool begins_read_alone(const Timeline *by) const {
    return (only_user_.load(std::memory_order_acquire) & ~uintptr_t(1)) == reinterpret_cast<uintptr_t>(by) &&
           !failed_.load(std::memory_order_acquire);
  }
  bool begins_write_alone(const Timeline *by) {
    if (only_user_.load(std::memory_order_acquire) != reinterpret_cast<uintptr_t>(by)) return false;
    if (failed_.load(std::memory_order_acquire)) return false;
    count_change(whole_);
    return true;
  }
  bool any_failed() const { return failed_.load(std::memory_order_acquire); }
  // Work with `overwrites` clears earlier write failures, but not for earlier readers: if it has to wait, it must call
  // clear_failure() when it starts. Work that changes an array in place does not clear failures.
  Before begin_write(const AddressRange &range, const std::shared_ptr<Timeline> &by, bool overwrites = true);
  // Throws kExecution if the range was not written. Call in the order of the work: when it starts, or if none is
  // pending.
  void check_written(const AddressRange &range);
  // Likewise at enqueue time, as far as is known: ignores writes still pending, and failures of earlier work on `by`
  // that have not been reported yet, since work enqueued there now fails with them. `by` null: no timeline.
  void check_known(const AddressRange &range, const Timeline *by);
  // For work on a shared timeline, which always checks when it starts.
  void begin_shared_read(const AddressRange &range, const std::shared_ptr<Timeline> &by) {
    if (!begins_read_alone(by.get()) && begin_read(range, by) == Before::kNothing) check_known(range, by.get());
  }
  void clear_failure(const AddressRange &range);

  // Before the host reads: waits for the writers. Throws kExecution, or the error of the failed work once, until the
  // range is written again. Errors of other work stay pending. Before the host writes: also waits for readers; earlier
  // failures do not matter.
  void wait_to_read(const AddressRange &range);
  void wait_to_write(const AddressRange &range);
  void written(const AddressRange &range);  // the host has written it, after waiting
  // Whether the host would have to wait before it reads, or before it writes.
  bool written_by_others(const AddressRange &range);
  bool used_by_others(const AddressRange &range);

  // Makes later reads and writes throw kExecution with this message. The block must not be in use.
  void revoke(const char *message) noexcept;

  // Marks the range as not written because the work of `by`, or of its last writer, failed.
  void fail(const AddressRange &range, const char *message, const Timeline *by = nullptr) noexcept;
  bool failed(const AddressRange &range);

  // Counts changes. Unreliable once the host has a raw pointer; the block is then `exposed`.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Likewise for this range alone: the number differs after any part of it has changed. The first call for a part of
  // the block starts tracking changes by range.
  uint64_t version(const AddressRange &range);
  bool pristine() const { return version() == kFirstVersion && !exposed(); }  // unchanged since it was created
  void expose() { exposed_.store(true, std::memory_order_release); }
  bool exposed() const { return exposed_.load(std::memory_order_acquire); }

 private:
  void check_not_revoked() const;
  // One writer at a time, so a plain load and store suffice.
  void count_change(const AddressRange &range) {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if (by_range_.load(std::memory_order_acquire)) note_change(range);
  }
  void note_change(const AddressRange &range);

  using Events = std::vector<std::shared_ptr<Event>>;
  struct Earlier {
    Events events;
    Before kind = Before::kNothing;
  };
  struct Use {
    AddressRange range;
    const Timeline *who;         // only compared
    std::weak_ptr<Timeline> by;  // expired: its work has finished
    bool writes;
    uint64_t number;
    // Set once another timeline has asked: `events` then stand for the use. Before, it is all work on the timeline.
    bool recorded = false;
    Events events = {};
  };
  struct Failure {
    AddressRange range;
    std::string message;
    const Timeline *by;  // whose work failed; only compared
  };
  Earlier find_earlier(const AddressRange &range, const Timeline *but, bool writers_only);
  bool has_failed(const AddressRange &range, const Timeline *by);
  bool knows_write(const AddressRange &range, const Timeline *by);
  void add_use(const AddressRange &range, const std::shared_ptr<Timeline> &by, bool writes);
  std::vector<std::shared_ptr<Timeline>> users_of(const AddressRange &range, bool writers_only);

  const AddressRange whole_;
  static constexpr uint64_t kFirstVersion = 1;
  std::atomic<uint64_t> version_{kFirstVersion};
  std::atomic<bool> exposed_{false};
  // Fast path without a lock: the only timeline with work in flight. Its address, only compared; plus 1 if it has only
  // read. 0: consult uses_.
  std::atomic<uintptr_t> only_user_{0};
  std::atomic<bool> used_{false};      // uses_ is not empty
  std::atomic<bool> by_range_{false};  // changes are tracked by range; only_user_ is then 0
  std::atomic<bool> failed_{false};    // failures_ or unnamed_ is not empty, or the block is revoked
  std::atomic<const char *> revoked_{nullptr};
  // Guards the rest. While it is held, nothing may be called that waits, or that frees something that waits, such as a
  // queue.
  std::mutex mutex_;
  uint64_t num_uses_ = 0;  // number of uses so far
  std::vector<Use> uses_;
  std::vector<Failure> failures_;
  RangeMap<uint64_t> changes_;        // version of the last change of each range, since by_range_ was set
  uint64_t noted_from_ = 0;           // the version when by_range_ was set
  AddressRange unnamed_{nullptr, 0};  // failures that could not be recorded for lack of memory
  const Timeline *unnamed_by_ = nullptr;
};

}  // namespace cohort
