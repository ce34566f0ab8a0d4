// SPDX-License-Identifier: Apache-2.0
// Handles are addresses of objects in a registry. A handle that is NULL, freed or of another kind is not found there. A
// call holds a reference on the objects it works on, so that another thread may free their handles meanwhile.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "error_guard.hpp"

namespace cohort_mxnet {

enum class Kind {
  kNDArray,
  kSymbol,
  kExecutor,
  kCachedOp,
  kKVStore,
  kDataIter,
  kRecordWriter,
  kRecordReader,
  kPredictor,
  kNDList,
  kProfile
};

// An object that a handle stands for. A class derived from it has a static member `kKind`, and `kName` for messages.
class Object {
 public:
  explicit Object(Kind kind) : kind_(kind) {}
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;
  virtual ~Object();
  Kind kind() const { return kind_; }

 private:
  const Kind kind_;
};

// The handle of a new object, which is the host's until it is freed.
void *publish(std::shared_ptr<Object> object);
// Null if there is no such handle.
std::shared_ptr<Object> find_object(const void *handle) noexcept;
std::shared_ptr<Object> take_object(const void *handle) noexcept;
[[noreturn]] void refuse_handle(const void *handle, const char *expected, bool is_known);

template <typename T>
std::shared_ptr<T> from_handle(const void *handle) {
  std::shared_ptr<Object> object = find_object(handle);
  if (!object || object->kind() != T::kKind) refuse_handle(handle, T::kName, object != nullptr);
  return std::static_pointer_cast<T>(std::move(object));
}

template <typename T>
std::shared_ptr<T> from_handle_or_null(const void *handle) {
  return handle ? from_handle<T>(handle) : nullptr;
}

// Frees a handle; the object goes when nothing else refers to it. NULL does nothing.
template <typename T>
void free_handle(const void *handle) {
  if (!handle) return;
  from_handle<T>(handle);
  take_object(handle);
}

// Several new handles that are given to the host together: those that were made are taken back unless release() is
// reached.
class NewHandles {
 public:
  NewHandles() = default;
  NewHandles(const NewHandles &) = delete;
  NewHandles &operator=(const NewHandles &) = delete;
  ~NewHandles() {
    for (void *handle : handles_) take_object(handle);
  }
  void add(std::shared_ptr<Object> object) {
    handles_.push_back(nullptr);
    if (object) handles_.back() = publish(std::move(object));
  }
  void add_null() { handles_.push_back(nullptr); }
  std::vector<void *> release() { return std::exchange(handles_, {}); }

 private:
  std::vector<void *> handles_;
};

// Texts as C takes them; kept in a thread_local variable, they are valid until the thread's next call of the same
// function.
class Texts {
 public:
  const char **assign(std::vector<std::string> texts) {
    texts_ = std::move(texts);
    pointers_.clear();
    for (const std::string &text : texts_) pointers_.push_back(text.c_str());
    pointers_.push_back(nullptr);  // data() is not null without texts
    return pointers_.data();
  }
  size_t size() const { return texts_.size(); }
  const char **data() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char *> pointers_;
};

}  // namespace cohort_mxnet
