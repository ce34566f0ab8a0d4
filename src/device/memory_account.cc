// SPDX-License-Identifier: Apache-2.0
#include "device/memory_account.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace cohort {

bool MemoryAccount::book(size_t bytes) {
  size_t used = used_.load(std::memory_order_relaxed), after = 0;
  do {
    const size_t limit = limit_.load(std::memory_order_relaxed);
    if (__builtin_add_overflow(used, bytes, &after) || (limit && after > limit)) return false;
  } while (!used_.compare_exchange_weak(used, after, std::memory_order_relaxed));
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < after && !peak_.compare_exchange_weak(peak, after, std::memory_order_relaxed)) {
  }
  return true;
}

MemoryAccount::Counts MemoryAccount::counts() const {
  return {used_.load(std::memory_order_relaxed), peak_.load(std::memory_order_relaxed),
          limit_.load(std::memory_order_relaxed)};
}

MemoryAccount &memory_account(const Context &asked) {
  struct Accounts {
    std::mutex mutex;  // guards all
    std::map<Context, std::unique_ptr<MemoryAccount>> all;
  };
  static auto *const accounts = new Accounts;  // memory outlives static objects
  const Context context{asked.on_host() ? DeviceType::kCpu : asked.type, asked.id};
  const std::lock_guard<std::mutex> lock(accounts->mutex);
  std::unique_ptr<MemoryAccount> &account = accounts->all[context];
  if (!account) account = std::make_unique<MemoryAccount>();
  return *account;
}

}  // namespace cohort
