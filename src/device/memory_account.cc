// SPDX-License-Identifier: Apache-2.0
#include "device/memory_account.hpp"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.hpp"

namespace cohort {

using Lock = std::lock_guard<std::mutex>;

MemoryAccount::Reservation::Reservation(MemoryAccount *account, size_t bytes) : account_(account), bytes_(bytes) {
  if (!account_) return;
  const Lock lock(account_->mutex_);
  const Counts &counts = account_->counts_;
  size_t after = 0;
  const bool overflows = __builtin_add_overflow(counts.used + account_->reserved_, bytes, &after);
  if (overflows || (counts.limit && bytes > 0 && after > counts.limit)) {
    throw Error(Code::kOutOfMemory,
                text(account_->context_, ": no room for ", bytes, " bytes within the limit of ", counts.limit, "; ",
                     counts.used, " are in use"),
                text(account_->context_));
  }
  account_->reserved_ += bytes;
}

MemoryAccount::Reservation::~Reservation() {
  if (!account_) return;
  const Lock lock(account_->mutex_);
  account_->reserved_ -= bytes_;
}

void MemoryAccount::Reservation::keep() {
  if (!account_) return;
  const Lock lock(account_->mutex_);
  Counts &counts = account_->counts_;
  account_->reserved_ -= bytes_;
  counts.used += bytes_;
  counts.peak = std::max(counts.peak, counts.used);
  account_ = nullptr;
}

void MemoryAccount::set_limit(size_t bytes) {
  const Lock lock(mutex_);
  counts_.limit = bytes;
}

void MemoryAccount::reset_peak() {
  const Lock lock(mutex_);
  counts_.peak = counts_.used;
}

MemoryAccount::Counts MemoryAccount::counts() const {
  const Lock lock(mutex_);
  return counts_;
}

namespace {

// The mutex is held while a process forks, so that it is never locked by another thread in the child.
struct Accounts {
  std::mutex mutex;  // protects all
  std::map<Context, std::unique_ptr<MemoryAccount>> all;

  void enter() {
    mutex.lock();
    for (const auto &entry : all) entry.second->lock();
  }
  void leave() {
    for (const auto &entry : all) entry.second->unlock();
    mutex.unlock();
  }
};

Accounts &accounts() {
  static Accounts *const instance = [] {
    auto *made = new Accounts;  // memory outlives static objects
    pthread_atfork([] { accounts().enter(); }, [] { accounts().leave(); }, [] { accounts().leave(); });
    return made;
  }();
  return *instance;
}

}  // namespace

MemoryAccount &memory_account(const Context &asked) {
  const Context context{asked.on_host() ? DeviceType::kCpu : asked.type, asked.id};
  const Lock lock(accounts().mutex);
  std::unique_ptr<MemoryAccount> &account = accounts().all[context];
  if (!account) account = std::make_unique<MemoryAccount>(context);
  return *account;
}

}  // namespace cohort
