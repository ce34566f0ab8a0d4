/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_base.hpp
 * Errors as exceptions, owners of handles, spans, shapes, attributes and closures. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_BASE_HPP
#define COHORT_CPP_BASE_HPP

#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/cohort.h"

namespace cohort {
inline namespace abi0 {

// ---- errors and handles -----------------------------------------------------------------------------------------------

/** A call that failed. Copies share the text; the C error is freed before this is thrown. */
class COHORT_API Error : public std::runtime_error {
 public:
  Error(cohort_error_class code, const std::string &message, const std::string &subject = "")
      : std::runtime_error(message), code_(code), subject_(std::make_shared<const std::string>(subject)) {}

  /** A COHORT_ERROR_ constant: cohort_error_code(). */
  cohort_error_class code() const noexcept { return code_; }
  /** The name of the code in lower case, such as "shape": cohort_error_code_text(). */
  const char *code_text() const noexcept { return cohort_error_code_text(code_); }
  /** One line for a person, the same as what(): cohort_error_message(). */
  const char *message() const noexcept { return what(); }
  /** The operator, node, argument, array or file concerned; "" if none: cohort_error_subject(). */
  const std::string &subject() const noexcept { return *subject_; }

 private:
  cohort_error_class code_;
  std::shared_ptr<const std::string> subject_;
};

namespace detail {

// The exception that a callback on this thread threw, until check() throws it again.
COHORT_API inline std::exception_ptr &pending_exception() noexcept {
  static thread_local std::exception_ptr pending;
  return pending;
}

}  // namespace detail

/** Throws what a callback of the call threw, or an Error for a C error, which it frees; does nothing for NULL. */
inline void check(cohort_error *error) {
  const std::unique_ptr<cohort_error, void (*)(cohort_error *)> owner(error, cohort_error_free);
  if (detail::pending_exception()) std::rethrow_exception(std::exchange(detail::pending_exception(), nullptr));
  if (error) throw Error(cohort_error_code(error), cohort_error_message(error), cohort_error_subject(error));
}

/** Owns a handle and frees it once. The base of the classes below. */
template <typename T, void (*free_function)(T *)>
class Handle {
 public:
  using pointer = T *;

  /** Empty. */
  Handle() noexcept = default;
  /** Takes the handle over. */
  explicit Handle(T *owned) noexcept : handle_(owned) {}
  Handle(Handle &&other) noexcept : handle_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) adopt(other.release());
    return *this;
  }
  ~Handle() { free_function(handle_); }

  /** The handle, for a C function; still owned here. */
  T *get() const noexcept { return handle_; }
  /** Gives the handle to the caller, who frees it. */
  T *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees the handle and takes over another one. */
  void adopt(T *owned) noexcept { free_function(std::exchange(handle_, owned)); }
  /** Whether there is a handle. */
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T *handle_ = nullptr;
};

/** Calls a C function whose last parameter is an out handle: make<NDArray>(cohort_ndarray_share, array.get()). */
template <typename Owner, typename Function, typename... Args>
Owner make(Function function, Args... args) {
  typename Owner::pointer made = nullptr;
  cohort_error *const error = function(args..., &made);
  Owner owner(made);
  check(error);
  return owner;
}

/** Calls a C function whose last parameter is an out value: query<size_t>(cohort_arrays_num, list.get()). */
template <typename T, typename Function, typename... Args>
T query(Function function, Args... args) {
  T value{};
  check(function(args..., &value));
  return value;
}

namespace detail {

// A list that a callback was lent, as its class; not freed here.
template <typename Owner>
struct Lent {
  template <typename T>
  explicit Lent(const T *lent) : owner(const_cast<T *>(lent)) {}
  Lent(const Lent &) = delete;
  Lent &operator=(const Lent &) = delete;
  ~Lent() { owner.release(); }
  Owner owner;
};

}  // namespace detail

/** How many handles are alive in this process: cohort_live_handles(). */
inline size_t live_handles() noexcept { return cohort_live_handles(); }

// ---- spans, shapes, attributes ----------------------------------------------------------------------------------------

/** Elements in memory of the caller's, which must outlive the call it is passed to: a vector, an array, or a list in braces. */
template <typename T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(const T *data, size_t size) noexcept : data_(data), size_(size) {}
  Span(const std::vector<T> &elements) noexcept : Span(elements.data(), elements.size()) {}
  Span(std::initializer_list<T> elements) noexcept : Span(elements.begin(), elements.size()) {}
  template <size_t n>
  constexpr Span(const T (&elements)[n]) noexcept : Span(elements, n) {}
  template <size_t n>
  constexpr Span(const std::array<T, n> &elements) noexcept : Span(elements.data(), n) {}

  constexpr const T *data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr const T *begin() const noexcept { return data_; }
  constexpr const T *end() const noexcept { return data_ + size_; }
  constexpr const T &operator[](size_t index) const noexcept { return data_[index]; }

 private:
  const T *data_ = nullptr;
  size_t size_ = 0;
};

/** Lengths of axes; none for a scalar. */
using Shape = std::vector<int64_t>;

/** An attribute or setting, in MXNet's spelling: {"num_hidden", 10}, {"kernel", Shape{3, 3}}, {"no_bias", true}. */
struct Attr {
  std::string key;
  std::string value;

  Attr(std::string name, std::string text) : key(std::move(name)), value(std::move(text)) {}
  Attr(std::string name, const char *text) : key(std::move(name)), value(text) {}
  Attr(std::string name, const Shape &shape) : key(std::move(name)), value("(") {
    for (size_t i = 0; i < shape.size(); ++i) value += (i ? ", " : "") + std::to_string(shape[i]);
    value += shape.size() == 1 ? ",)" : ")";
  }
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Attr(std::string name, Number number) : key(std::move(name)) {
    if constexpr (std::is_same_v<Number, bool>) {
      value = number ? "True" : "False";
    } else {  // whatever the locale
      char text[64];
      value.assign(text, std::to_chars(text, text + sizeof text, number).ptr);
    }
  }
};

/** Attributes that are kept. */
using Attrs = std::vector<Attr>;

/** Samples or rows from begin up to end. */
struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
};
inline bool operator==(const Slice &a, const Slice &b) { return a.begin == b.begin && a.end == b.end; }
inline bool operator!=(const Slice &a, const Slice &b) { return !(a == b); }

namespace detail {

// Texts as C takes them, valid while the texts are. Never NULL: "no names" and "all names" differ.
class CStrings {
 public:
  CStrings() { pointers_.push_back(nullptr); }
  explicit CStrings(Span<std::string> texts) {
    pointers_.reserve(texts.size() + 1);
    for (const std::string &text : texts) pointers_.push_back(text.c_str());
    pointers_.push_back(nullptr);
  }
  const char *const *data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size() - 1; }

 private:
  std::vector<const char *> pointers_;
};

struct CAttrs {
  explicit CAttrs(Span<Attr> attrs) : num(attrs.size()) {
    keys.reserve(num);
    values.reserve(num);
    for (const Attr &attr : attrs) {
      keys.push_back(attr.key.c_str());
      values.push_back(attr.value.c_str());
    }
  }
  std::vector<const char *> keys, values;
  size_t num;
};

// Handles of a list of owners; NULL where an owner is empty.
template <typename Owner>
std::vector<typename Owner::pointer> raw(Span<Owner> owners) {
  std::vector<typename Owner::pointer> handles;
  handles.reserve(owners.size());
  for (const Owner &owner : owners) handles.push_back(owner.get());
  return handles;
}

// Where C takes a list without its length: as many as there must be, or none at all.
inline void check_length(const char *what, size_t num, size_t expected) {
  if (num != 0 && num != expected)
    throw Error(COHORT_ERROR_INVALID_ARGUMENT, std::string(what) + ": expected " + std::to_string(expected) +
                                                   " entries, found " + std::to_string(num));
}

// Lists of lists of one length, one after the other.
template <typename T>
std::vector<T> flatten(const char *what, Span<std::vector<T>> lists) {
  std::vector<T> all;
  for (const std::vector<T> &list : lists) {
    if (list.size() != lists[0].size())
      throw Error(COHORT_ERROR_INVALID_ARGUMENT, std::string(what) + ": expected lists of one length, found " +
                                                     std::to_string(lists[0].size()) + " and " +
                                                     std::to_string(list.size()) + " entries");
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

// Closures by number. C is given the number as user_data: a callback that comes when its closure is gone finds nothing.
struct ClosureTable {
  std::mutex mutex;  // guards the other two
  std::unordered_map<uintptr_t, std::shared_ptr<void>> closures;
  uintptr_t last = 0;
};

// Never destroyed: objects with static lifetime may have callbacks.
COHORT_API inline ClosureTable &closure_table() {
  static ClosureTable &table = *std::make_unique<ClosureTable>().release();
  return table;
}

// A closure in the table, taken out in the destructor.
class Closure {
 public:
  explicit Closure(std::shared_ptr<void> function) {
    ClosureTable &table = closure_table();
    const std::lock_guard<std::mutex> lock(table.mutex);
    number_ = ++table.last;
    table.closures.emplace(number_, std::move(function));
  }
  Closure(const Closure &) = delete;
  Closure &operator=(const Closure &) = delete;
  ~Closure() {
    std::shared_ptr<void> last_reference;  // what it holds may come back here when it is destroyed
    ClosureTable &table = closure_table();
    const std::lock_guard<std::mutex> lock(table.mutex);
    const auto found = table.closures.find(number_);
    last_reference = std::move(found->second);
    table.closures.erase(found);
  }
  void *user_data() const { return reinterpret_cast<void *>(number_); }

 private:
  uintptr_t number_ = 0;
};

using Closures = std::vector<std::shared_ptr<const Closure>>;

// Keeps a closure in `closures`. Gives the user_data for C, NULL if the function is empty.
template <typename Function>
void *keep_closure(Closures &closures, Function function) {
  if (!function) return nullptr;
  closures.push_back(std::make_shared<const Closure>(std::make_shared<Function>(std::move(function))));
  return closures.back()->user_data();
}

template <typename Function>
std::shared_ptr<Function> find_closure(void *user_data) {
  ClosureTable &table = closure_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.closures.find(reinterpret_cast<uintptr_t>(user_data));
  return found == table.closures.end() ? nullptr : std::static_pointer_cast<Function>(found->second);
}

// Runs code inside a C callback. Keeps what it throws for check(). False: it threw, or a callback before it did.
template <typename Code>
bool run_callback(const Code &code) noexcept {
  if (pending_exception()) return false;
  try {
    return code();
  } catch (...) {
    pending_exception() = std::current_exception();
    return false;
  }
}

// The same with the closure of a number. False also if that is gone.
template <typename Function, typename Code>
bool run_closure(void *user_data, const Code &code) noexcept {
  return run_callback([&] {
    const std::shared_ptr<Function> function = find_closure<Function>(user_data);
    if (function) code(*function);
    return function != nullptr;
  });
}

}  // namespace detail

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_BASE_HPP */
