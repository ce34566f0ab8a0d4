// SPDX-License-Identifier: Apache-2.0
// Who may still be reading or writing a block of memory. Everybody who uses memory says so here before the work is
// enqueued, and is made to come after what it depends on: a read after the last writes, a write after the last writes
// and the reads since. Queues wait for queues; the host waits only where it reads or writes itself. Failures travel the
// same way: what was not written cannot be read.
//
// Addresses are absolute, so that views, and arrays of several devices in one block, are told apart by where they lie.
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

// Two threads may use one block at a time as long as both only read. A use counts from its begin_ call, so that call
// and the enqueuing of the work belong into one call of the host.
class Hazards {
 public:
  explicit Hazards(const AddressRange &whole) : whole_(whole) {}
  Hazards(const Hazards &) = delete;
  Hazards &operator=(const Hazards &) = delete;

  // What work of other timelines has to come first.
  enum class Before { kNothing, kReaders, kWriters };
  // Work on `by` that reads, or writes, this range is enqueued next; what does both says both, in this order. After
  // kNothing, check_known() tells whether what is read was written; else that is not known yet, and the work has to
  // check_written() when it starts.
  Before begin_read(const AddressRange &range, const std::shared_ptr<Timeline> &by);
  // The usual cases, at little cost: nobody else uses the block, and nothing has failed. False: call the others.
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
  // Work that `overwrites` makes good what failed to be written before, but not for those who read before it: where it
  // has to wait it has to forgive() when it starts. What changes an array in place does not.
  Before begin_write(const AddressRange &range, const std::shared_ptr<Timeline> &by, bool overwrites = true);
  // kExecution: the range was not written. In the order of the work: when it starts, or when there is none any more.
  void check_written(const AddressRange &range);
  // The same when work on `by` is enqueued, as far as it is known: not what others are still to write, and not what
  // work before it on `by` has failed to write while that is still to be told: then what is enqueued fails with it.
  // `by` null: for nobody in particular.
  void check_known(const AddressRange &range, const Timeline *by);
  // For work on a timeline that is shared, which checks in any case when it starts.
  void begin_shared_read(const AddressRange &range, const std::shared_ptr<Timeline> &by) {
    if (!begins_read_alone(by.get()) && begin_read(range, by) == Before::kNothing) check_known(range, by.get());
  }
  void forgive(const AddressRange &range);

  // Before the host reads: waits for the writers; kExecution, or the error of the work that failed, once, as long as
  // the range is not written again. Other errors stay where they are. Before the host writes: waits for readers, too;
  // what failed before does not matter.
  void wait_to_read(const AddressRange &range);
  void wait_to_write(const AddressRange &range);
  void written(const AddressRange &range);  // by the host, which has waited before
  // The host would have to wait before it reads; before it writes.
  bool written_by_others(const AddressRange &range);
  bool used_by_others(const AddressRange &range);

  // Nobody may use the block again: reads and writes are kExecution with this message from here on. Of one that nobody
  // uses.
  void revoke(const char *message) noexcept;

  // The work that should have written it failed: that of `by`, or of who was the last to write.
  void fail(const AddressRange &range, const char *message, const Timeline *by = nullptr) noexcept;
  bool failed(const AddressRange &range);

  // Counts the changes. A raw pointer that is in the host's hands makes it worthless: then it is exposed.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // The same of this range alone: another number once some of it has changed. From the first call for a part of the
  // block on, changes are noted by where they are.
  uint64_t version(const AddressRange &range);
  bool pristine() const { return version() == kFirstVersion && !exposed(); }  // as it was made
  void expose() { exposed_.store(true, std::memory_order_release); }
  bool exposed() const { return exposed_.load(std::memory_order_acquire); }

 private:
  void check_not_revoked() const;
  // One writer at a time, so that this need not be one operation.
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
    std::weak_ptr<Timeline> by;  // one that is gone has finished its work
    bool writes;
    uint64_t number;
    // Once another timeline has asked: what stands for the use. Till then it is all that is on the timeline.
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
  // The usual case, which needs no lock: all that is in flight is on this one timeline. Its address, only compared;
  // plus 1 if it has done nothing but read. 0: look at uses_.
  std::atomic<uintptr_t> only_user_{0};
  std::atomic<bool> used_{false};      // uses_ is not empty
  std::atomic<bool> by_range_{false};  // changes are noted; nobody is the only user then
  std::atomic<bool> failed_{false};    // there is a failure below, or it is revoked
  std::atomic<const char *> revoked_{nullptr};
  // Guards what is below. Nothing is called with it that may wait, or end what waits: not a queue.
  std::mutex mutex_;
  uint64_t num_uses_ = 0;  // that there ever were
  std::vector<Use> uses_;
  std::vector<Failure> failures_;
  RangeMap<uint64_t> changes_;        // the version that the last one made of each range, since by_range_
  uint64_t noted_from_ = 0;           // the version at that time
  AddressRange unnamed_{nullptr, 0};  // where work failed for whose failure there was no memory
  const Timeline *unnamed_by_ = nullptr;
};

}  // namespace cohort
