// SPDX-License-Identifier: Apache-2.0
// The table of handles, and cohort_live_handles().
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "api/handle.hpp"
#include "executor/invoke.hpp"
#include "plan/plan_cache.hpp"

namespace cohort::api {
namespace {

struct Cell {
  std::atomic<uint32_t> kind{0};
  uint32_t generation = 0;  // of the process: 0 at first, one more in a child after each fork
  void *object = nullptr;
  Cell *next = nullptr;                 // in the list of free cells, or of those whose objects end later
  void (*end)(void *object) = nullptr;  // for cells whose objects end later
};

// Cells come in blocks, each twice as large as the one before, which are never freed. A freed cell is used again only
// after kRest others were freed, so that a stale handle is recognised for a while.
class HandleTable {
 public:
  Cell *take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (num_free_ <= kRest) grow();
    Cell *cell = first_;
    first_ = cell->next;
    --num_free_;
    return cell;
  }

  void give(Cell *cell) {
    std::lock_guard<std::mutex> lock(mutex_);
    append(cell);
  }

  Cell *cell_at(const void *handle) const {
    const auto address = reinterpret_cast<uintptr_t>(handle);
    const int num_blocks = num_blocks_.load(std::memory_order_acquire);
    for (int k = num_blocks - 1; k >= 0; --k) {
      const auto begin = reinterpret_cast<uintptr_t>(blocks_[size_t(k)]);
      if (address < begin || address >= begin + block_size(k) * sizeof(Cell)) continue;
      return (address - begin) % sizeof(Cell) ? nullptr : blocks_[size_t(k)] + (address - begin) / sizeof(Cell);
    }
    return nullptr;
  }

  std::atomic<size_t> live{0};
  std::atomic<uint32_t> generation{0};

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr size_t kRest = 1024;
  static constexpr size_t kFirstBlock = 2048;
  static size_t block_size(int k) { return kFirstBlock << k; }

  void append(Cell *cell) {
    cell->next = nullptr;
    (num_free_ ? last_->next : first_) = cell;
    last_ = cell;
    ++num_free_;
  }

  void grow() {
    const int k = num_blocks_.load(std::memory_order_relaxed);
    if (size_t(k) == blocks_.size()) throw std::bad_alloc();
    Cell *block = new Cell[block_size(k)];
    blocks_[size_t(k)] = block;
    for (size_t i = 0; i < block_size(k); ++i) append(block + i);
    num_blocks_.store(k + 1, std::memory_order_release);
  }

  std::mutex mutex_;  // guards the list of free cells, and growing
  Cell *first_ = nullptr, *last_ = nullptr;
  size_t num_free_ = 0;
  std::array<Cell *, 32> blocks_{};
  std::atomic<int> num_blocks_{0};
};

HandleTable &table() {
  static HandleTable *const instance = [] {
    alignas(HandleTable) static char memory[sizeof(HandleTable)];  // not on the heap, which may be exhausted
    auto *made = new (memory) HandleTable;  // never destroyed: handles may be freed while the process exits
    pthread_atfork([] { table().lock(); }, [] { table().unlock(); },
                   [] {
                     table().unlock();
                     table().generation.fetch_add(1, std::memory_order_relaxed);
                   });
    return made;
  }();
  return *instance;
}

const char *kind_name(uint32_t kind) {
  static constexpr const char *kNames[] = {
      "freed handle", "error",    "array",   "list of arrays", "list of descriptors",
      "symbol",       "executor", "group",   "optimizer",      "metric",
      "initializer",  "monitor",  "manager", "tape",           "log",
      "calibration",  "trace"};
  return kind < std::size(kNames) ? kNames[kind] : "?";
}

}  // namespace

void *add_handle(HandleKind kind, void *object) {
  HandleTable &t = table();
  Cell *cell = t.take();
  cell->object = object;
  cell->generation = t.generation.load(std::memory_order_relaxed);
  cell->kind.store(uint32_t(kind), std::memory_order_release);
  t.live.fetch_add(1, std::memory_order_relaxed);
  return cell;
}

void *find_object(HandleKind kind, const void *handle, const char *what) {
  if (!handle) throw Error(Code::kInvalidArgument, text(what, ": expected a handle, found NULL"), what);
  const Cell *cell = table().cell_at(handle);
  if (!cell) throw Error(Code::kInvalidArgument, text(what, ": expected a handle, found another pointer"), what);
  const uint32_t found = cell->kind.load(std::memory_order_acquire);
  if (found != uint32_t(kind)) {
    throw Error(Code::kInvalidArgument,
                text(what, ": expected a handle of kind ", kind_name(uint32_t(kind)), ", found ",
                     found ? "one of kind " : "a ", kind_name(found)),
                what);
  }
  if (cell->generation != table().generation.load(std::memory_order_relaxed)) {
    throw Error(Code::kState, text(what, ": the handle was made before this process was forked from its parent"), what);
  }
  return cell->object;
}

void *peek_object(HandleKind kind, const void *handle) noexcept {
  const Cell *cell = handle ? table().cell_at(handle) : nullptr;
  return cell && cell->kind.load(std::memory_order_acquire) == uint32_t(kind) ? cell->object : nullptr;
}

namespace {

thread_local Cell *ends_later = nullptr;

void end_object(Cell *cell, void (*end)(void *object)) noexcept {
  void *const object = cell->object;
  table().give(cell);
  end(object);
  // The library's threads end with the last handle.
  if (count_handles() > 0) return;
  release_invoked();
  release_plans();
}

}  // namespace

void remove_handle(HandleKind kind, const void *handle, void (*end)(void *object)) noexcept {
  HandleTable &t = table();
  Cell *cell = handle ? t.cell_at(handle) : nullptr;
  uint32_t expected = uint32_t(kind);
  if (!cell || !cell->kind.compare_exchange_strong(expected, uint32_t(HandleKind::kFree), std::memory_order_acq_rel)) {
    return;
  }
  const bool ours = kind == HandleKind::kError || cell->generation == t.generation.load(std::memory_order_relaxed);
  t.live.fetch_sub(1, std::memory_order_relaxed);
  if (!ours) return t.give(cell);
  if (!CallScope::used_by_outer_call(handle)) return end_object(cell, end);
  cell->end = end;
  cell->next = ends_later;
  ends_later = cell;
}

bool end_removed() noexcept {
  const bool any = ends_later;
  while (Cell *const cell = ends_later) {
    ends_later = cell->next;
    end_object(cell, cell->end);
  }
  return any;
}

size_t count_handles() noexcept { return table().live.load(std::memory_order_relaxed); }

}  // namespace cohort::api

size_t cohort_live_handles(void) { return cohort::api::count_handles(); }
