// SPDX-License-Identifier: Apache-2.0
#include "ndarray/hazards.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr size_t kManyUses = 8;  // if one timeline has more uses than this, they are merged

uintptr_t id_of(const std::shared_ptr<Timeline> &timeline) { return reinterpret_cast<uintptr_t>(timeline.get()); }

// Removes the range from all entries of a list, which may split one in two; afterwards there is room for one more
// entry. If memory runs out, the list is unchanged.
template <typename List>
void subtract_range(List *list, const AddressRange &range) {
  List rest, fronts;  // fronts: copies of the entries that are split
  rest.reserve(2 * list->size() + 1);
  for (const auto &entry : *list)
    if (entry.range.begin < range.begin && range.end < entry.range.end) fronts.push_back(entry);
  size_t cut = 0;
  for (auto &entry : *list) {
    if (!entry.range.overlaps(range)) {
      rest.push_back(std::move(entry));
      continue;
    }
    const bool front = entry.range.begin < range.begin, back = range.end < entry.range.end;
    const uintptr_t end = entry.range.end;
    if (front) {
      rest.push_back(std::move(back ? fronts[cut++] : entry));
      rest.back().range.end = range.begin;
    }
    if (back) {
      rest.push_back(std::move(entry));
      rest.back().range.begin = range.end;
      rest.back().range.end = end;
    }
  }
  *list = std::move(rest);
}

// The name of the failed work, with which messages of queues start: "Convolution 'conv0': out of memory".
std::string work_named_in(const std::string &message) {
  const size_t end = message.find("': ");
  return end == std::string::npos ? "array" : message.substr(0, end + 1);
}

}  // namespace

// The events for which new work on the range must wait. Removes finished uses.
Hazards::Earlier Hazards::find_earlier(const AddressRange &range, const Timeline *but, bool writers_only) {
  Earlier result;
  if (!used_.load(std::memory_order_acquire)) return result;
  std::vector<std::shared_ptr<Timeline>> users;
  std::vector<Use> uses;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Use &use : uses_) {
      if (use.who == but || !use.range.overlaps(range) || (writers_only && !use.writes)) continue;
      uses.push_back(use);
      users.push_back(use.by.lock());
    }
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!users[i]) {
      uses[i].events.clear();
    } else if (!uses[i].recorded) {
      users[i]->record(&uses[i].events);
    }
    for (const std::shared_ptr<Event> &event : uses[i].events) {
      if (event->done()) continue;
      result.events.push_back(event);
      result.kind = std::max(result.kind, uses[i].writes ? Before::kWriters : Before::kReaders);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < uses.size(); ++i) {
    Use &asked = uses[i];
    const auto known = std::find_if(uses_.begin(), uses_.end(), [&](const Use &use) {
      return use.number == asked.number && use.range.begin == asked.range.begin;
    });
    if (known == uses_.end()) continue;
    const bool finished = std::find_first_of(asked.events.begin(), asked.events.end(), result.events.begin(),
                                             result.events.end()) == asked.events.end();
    if (finished) {
      uses_.erase(known);
    } else {
      known->events = asked.events;
      known->recorded = true;
    }
    // The timeline may start a read at any moment without asking, as only_user_ allowed, so assume one.
    if (users[i] && !asked.recorded) {
      uses_.push_back({asked.range, asked.who, asked.by, false, ++num_uses_});
    }
    only_user_.store(0, std::memory_order_release);
  }
  used_.store(!uses_.empty(), std::memory_order_release);
  return result;
}

// Whether a write by this timeline needs no new entry: an equal use is recorded, and no other timeline uses the range.
bool Hazards::knows_write(const AddressRange &range, const Timeline *by) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool known = false;
  for (const Use &use : uses_) {
    if (!use.range.overlaps(range)) continue;
    if (use.who != by) return false;
    known = known || (use.writes && !use.recorded && use.range.covers(range));
  }
  return known;
}

// Requires mutex_.
void Hazards::add_use(const AddressRange &range, const std::shared_ptr<Timeline> &by, bool writes) {
  uses_.erase(std::remove_if(uses_.begin(), uses_.end(), [](const Use &use) { return use.by.expired(); }), uses_.end());
  size_t num_own = 0;
  for (const Use &use : uses_) {
    if (use.who != by.get()) continue;
    ++num_own;
    if (!use.recorded && use.range.covers(range) && (use.writes || !writes)) return;
  }
  AddressRange all = range;
  if (num_own >= kManyUses) {
    // An array read piece by piece: merge the pieces. A range larger than the actual uses only makes others wait
    // longer.
    for (size_t i = uses_.size(); i-- > 0;) {
      const Use &use = uses_[i];
      if (use.who != by.get() || use.writes != writes || use.recorded) continue;
      all.begin = std::min(all.begin, use.range.begin);
      all.end = std::max(all.end, use.range.end);
      uses_.erase(uses_.begin() + std::ptrdiff_t(i));
    }
  }
  uses_.push_back({all, by.get(), by, writes, ++num_uses_});
  const bool alone = std::all_of(uses_.begin(), uses_.end(), [&](const Use &use) { return use.who == by.get(); });
  const bool only = alone && all.covers(whole_) && !by_range_.load(std::memory_order_relaxed);
  only_user_.store(only ? id_of(by) | uintptr_t(!writes) : 0, std::memory_order_release);
  used_.store(true, std::memory_order_release);
}

Hazards::Before Hazards::begin_read(const AddressRange &range, const std::shared_ptr<Timeline> &by) {
  if (range.empty()) return Before::kNothing;
  if ((only_user_.load(std::memory_order_acquire) & ~uintptr_t(1)) == id_of(by)) return Before::kNothing;
  const Earlier earlier = find_earlier(range, by.get(), /* writers_only */ true);
  by->wait_for(earlier.events);
  const std::lock_guard<std::mutex> lock(mutex_);
  add_use(range, by, /* writes */ false);
  return earlier.kind;
}

Hazards::Before Hazards::begin_write(const AddressRange &range, const std::shared_ptr<Timeline> &by, bool overwrites) {
  if (range.empty()) return Before::kNothing;
  check_not_revoked();
  count_change(range);
  Earlier earlier;
  if (only_user_.load(std::memory_order_acquire) != id_of(by) && !knows_write(range, by.get())) {
    earlier = find_earlier(range, by.get(), /* writers_only */ false);
    by->wait_for(earlier.events);
    const std::lock_guard<std::mutex> lock(mutex_);
    subtract_range(&uses_, range);
    add_use(range, by, /* writes */ true);
  }
  if (overwrites && earlier.kind == Before::kNothing) clear_failure(range);
  return earlier.kind;
}

std::vector<std::shared_ptr<Timeline>> Hazards::users_of(const AddressRange &range, bool writers_only) {
  // Destroyed after the lock: releasing the last reference to a queue waits for it.
  std::vector<std::shared_ptr<Timeline>> users;
  if (!used_.load(std::memory_order_acquire)) return users;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Use &use : uses_) {
      if (!use.range.overlaps(range) || (writers_only && !use.writes)) continue;
      std::shared_ptr<Timeline> by = use.by.lock();
      if (by && std::find(users.begin(), users.end(), by) == users.end()) users.push_back(std::move(by));
    }
  }
  return users;
}

void Hazards::wait_to_read(const AddressRange &range) {
  const std::vector<std::shared_ptr<Timeline>> writers = users_of(range, /* writers_only */ true);
  for (const auto &writer : writers) writer->finish();
  if (!failed(range)) return;
  for (const auto &writer : writers)
    if (has_failed(range, writer.get())) writer->sync();
  check_written(range);
}

void Hazards::wait_to_write(const AddressRange &range) {
  check_not_revoked();
  for (const auto &user : users_of(range, /* writers_only */ false)) user->finish();
}

bool Hazards::written_by_others(const AddressRange &range) {
  return find_earlier(range, nullptr, /* writers_only */ true).kind != Before::kNothing;
}

bool Hazards::used_by_others(const AddressRange &range) {
  return find_earlier(range, nullptr, /* writers_only */ false).kind != Before::kNothing;
}

void Hazards::check_written(const AddressRange &range) {
  if (!failed_.load(std::memory_order_acquire)) return;
  check_not_revoked();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (unnamed_.overlaps(range)) throw Error(Code::kExecution, "the array was not written: out of memory", "array");
  for (const Failure &failure : failures_) {
    if (!failure.range.overlaps(range)) continue;
    throw Error(Code::kExecution, "the array was not written: " + failure.message, work_named_in(failure.message));
  }
}

void Hazards::check_known(const AddressRange &range, const Timeline *by) {
  if (!failed(range) || find_earlier(range, by, /* writers_only */ true).kind != Before::kNothing) return;
  // The order matters: the queue learns of a failure before the array does.
  if (!by || !has_failed(range, by) || by->has_no_pending_failure()) check_written(range);
}

// Whether work of this timeline failed to write part of the range.
bool Hazards::has_failed(const AddressRange &range, const Timeline *by) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return (unnamed_.overlaps(range) && unnamed_by_ == by) ||
         std::any_of(failures_.begin(), failures_.end(),
                     [&](const Failure &f) { return f.range.overlaps(range) && f.by == by; });
}

bool Hazards::failed(const AddressRange &range) {
  if (!failed_.load(std::memory_order_acquire)) return false;
  if (revoked_.load(std::memory_order_acquire)) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  return unnamed_.overlaps(range) ||
         std::any_of(failures_.begin(), failures_.end(), [&](const Failure &f) { return f.range.overlaps(range); });
}

uint64_t Hazards::version(const AddressRange &range) {
  if (range.covers(whole_)) return version();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!by_range_.load(std::memory_order_relaxed)) {
    noted_from_ = version();
    only_user_.store(0, std::memory_order_release);
    by_range_.store(true, std::memory_order_release);
  }
  uint64_t last = noted_from_;
  changes_.for_each_in(range.begin, range.end, [&](uint64_t version) { last = std::max(last, version); });
  return last;
}

void Hazards::note_change(const AddressRange &range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  changes_.set(range.begin, range.end, version());
}

void Hazards::written(const AddressRange &range) {
  count_change(range);
  clear_failure(range);
}

void Hazards::clear_failure(const AddressRange &range) {
  if (!failed_.load(std::memory_order_acquire) || revoked_.load(std::memory_order_acquire)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  subtract_range(&failures_, range);
  if (range.begin <= unnamed_.begin) unnamed_.begin = std::max(unnamed_.begin, range.end);
  if (range.end >= unnamed_.end) unnamed_.end = std::min(unnamed_.end, range.begin);
  if (unnamed_.empty()) unnamed_ = AddressRange(nullptr, 0);
  failed_.store(!unnamed_.empty() || !failures_.empty(), std::memory_order_release);
}

void Hazards::revoke(const char *message) noexcept {
  revoked_.store(message, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
}

void Hazards::check_not_revoked() const {
  if (const char *const why = revoked_.load(std::memory_order_acquire)) throw Error(Code::kExecution, why, "array");
}

void Hazards::fail(const AddressRange &range, const char *message, const Timeline *by) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  failed_.store(true, std::memory_order_release);
  const bool known = by != nullptr;
  for (const Use &use : uses_)
    if (!known && use.writes && use.range.overlaps(range)) by = use.who;
  try {
    subtract_range(&failures_, range);
    failures_.push_back({range, *message ? message : "its work failed", by});
  } catch (const std::bad_alloc &) {
    if (unnamed_.empty()) unnamed_ = range;
    unnamed_.begin = std::min(unnamed_.begin, range.begin);
    unnamed_.end = std::max(unnamed_.end, range.end);
    unnamed_by_ = by;
  }
}

}  // namespace cohort
