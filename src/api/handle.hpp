// SPDX-License-Identifier: Apache-2.0
// Handles: what a host holds in place of our objects. Every cohort_X pointer is the address of a cell of the table
// here, never of an object, and the table's memory never moves. So any pointer that comes in, even a freed or foreign
// one, is recognised without touching memory that is not ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "api/guard.hpp"
#include "base/error.hpp"
#include "cohort/types.h"

namespace cohort::api {

enum class HandleKind : uint32_t {
  kFree = 0,
  kError,
  kNDArray,
  kArrays,
  kDescs,
  kSymbol,
  kExecutor,
  kGroup,
  kOptimizer,
  kMetric,
  kInitializer,
  kMonitor,
  kManager,
  kTape,
  kLog,
  kCalibration,
  kTrace,
};

// Makes a handle that owns the object, unless it throws std::bad_alloc.
void *add_handle(HandleKind kind, void *object);
// The object of a live handle of this kind. kInvalidArgument says what `what` is instead; kState for a handle from
// before a fork.
void *find_object(HandleKind kind, const void *handle, const char *what);
// The same, but null instead of an error. Finds handles from before a fork, too.
void *peek_object(HandleKind kind, const void *handle) noexcept;
// Ends a handle, and its object with `end`; if an outer call of this thread uses it, when that call ends. An object
// from before a fork is not destroyed: it may wait for threads that the child does not have. Anything but a live handle
// of this kind is ignored.
void remove_handle(HandleKind kind, const void *handle, void (*end)(void *object)) noexcept;
// At the end of this thread's outermost call: ends the objects that were in use; returns whether there were any.
bool end_removed() noexcept;
size_t count_handles() noexcept;

// Specialised in api.hpp: the object type and the kind of handle of a C type.
template <typename C>
struct HandleTraits;

template <typename C>
using ObjectOf = typename HandleTraits<C>::Object;

// deref_to_copy() is for objects that are copied immediately; what deref() returns stays until the call returns, even
// if callbacks free it.
template <typename C>
const ObjectOf<C> &deref_to_copy(const C *handle, const char *what) {
  return *static_cast<const ObjectOf<C> *>(find_object(HandleTraits<C>::kKind, handle, what));
}
template <typename C>
ObjectOf<C> &deref(const C *handle, const char *what) {
  auto *const object = static_cast<ObjectOf<C> *>(find_object(HandleTraits<C>::kKind, handle, what));
  CallScope::note_used(handle);
  return *object;
}

template <typename C>
C *make_handle(ObjectOf<C> object) {
  auto owned = std::make_unique<ObjectOf<C>>(std::move(object));
  auto *handle = static_cast<C *>(add_handle(HandleTraits<C>::kKind, owned.get()));
  owned.release();
  return handle;
}

template <typename C>
void free_handle(C *handle) noexcept {
  remove_handle(HandleTraits<C>::kKind, handle, [](void *object) { delete static_cast<ObjectOf<C> *>(object); });
}

// A handle that exists during a callback, or until release() passes it on.
template <typename C>
class ScopedHandle {
 public:
  explicit ScopedHandle(ObjectOf<C> object) : handle_(make_handle<C>(std::move(object))) {}
  ScopedHandle(ScopedHandle &&other) noexcept : handle_(other.release()) {}
  ScopedHandle &operator=(ScopedHandle &&) = delete;
  ~ScopedHandle() { free_handle(handle_); }
  C *get() const { return handle_; }
  C *release() { return std::exchange(handle_, nullptr); }

 private:
  C *handle_;
};

}  // namespace cohort::api
