/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort.hpp
 * The C interface as C++17 classes: owners of handles, errors as exceptions, vectors and spans for arrays and shapes.
 * Header only, over cohort.h alone. Each member names the C function that it calls; the comment of that function has
 * shapes, ranges and errors.
 *
 *   using namespace cohort;
 *   const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}});
 *   const Symbol net = Symbol::create("LinearRegressionOutput", "fit", {}, {fc});
 *   Group group(net, {"cpu(0)", "cpu(1)"}, {{"fc_data", {8, 1}}}, {{"fit_label", {8, 1}}});
 *   Optimizer sgd("sgd", {{"learning_rate", 0.01}});
 *   group.forward({x}, {y}, true);
 *   group.backward();
 *   group.update(sgd);
 *
 * Ownership. An object owns one handle and frees it in its destructor. Objects can be moved, and destroyed in any order
 * on any thread: the library keeps what a handle uses. Copying an NDArray gives a second handle on the same array;
 * copying a Symbol gives a symbol of the same heads; the other classes cannot be copied. An object that was moved from, or
 * made without arguments where the class allows it, is empty: it converts to false, get() is null, and a member called on
 * it throws Error with COHORT_ERROR_INVALID_ARGUMENT. Lists (Arrays, Descs) made without arguments are lists without
 * entries. Text and vectors that members return are copies.
 *
 * Errors. A call that fails throws Error, with the code, message and subject of the C error; the object is as before the
 * call unless the C function says otherwise. Destructors do not throw.
 *
 * Threads. As cohort.h has it: one object is used by one thread at a time, by any thread.
 *
 * Callbacks are std::function objects. What a callback throws comes out of the call in which it ran, in place of an Error;
 * callbacks that run where no call can pass it on say so. The closure is kept as long as an object that it was given to, or
 * one made from that (a reshaped executor, a child of a metric); after that the library finds it gone: the callback then
 * does nothing, or refuses.
 *
 * Calling C functions directly: get() gives the handle; check(), make() and query() turn errors into exceptions.
 *
 * All names are in an inline namespace, so that they differ in object files from those inside libcohort.a.
 *
 * MXNet's mxnet::Executor, member by member:
 *
 *   Bind                     Executor::bind              SimpleBind            Executor::simple_bind
 *   Forward                  forward                     PartialForward        partial_forward, which returns step_left
 *   Backward                 backward                    Reshape               reshape
 *   outputs                  outputs                     in_arg_map            arg_map
 *   arg_grad_map             grad_map                    aux_state_map         aux_map
 *   SetMonitorCallback       set_monitor                 Print                 print, debug_text
 *   MonitorCallback          MonitorFunction             shared_exec           ExecutorOptions::shared_executor
 *   group2ctx                ExecutorOptions::group2ctx  shared_data_arrays    ExecutorOptions::shared_data
 *   grad_req_type            the argument grad_req       param_names           ExecutorOptions::shared_arg_names
 *   partial_shaping, allow_up_sizing, default_ctx, ctx_map                     ReshapeOptions
 */
#ifndef COHORT_COHORT_HPP
#define COHORT_COHORT_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
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

// ---- contexts, dtypes, the library ------------------------------------------------------------------------------------

/** A device, from text or from a C context: "cpu(0)" is the default. */
struct Context : cohort_context {
  Context() noexcept : cohort_context{COHORT_DEVICE_CPU, 0} {}
  Context(const cohort_context &context) noexcept : cohort_context(context) {}
  Context(cohort_device_type type, int32_t id) noexcept : cohort_context{type, id} {}
  /** cohort_context_parse(). */
  Context(const char *text) : cohort_context(query<cohort_context>(cohort_context_parse, text)) {}
  Context(const std::string &text) : Context(text.c_str()) {}

  /** cohort_context_text(). */
  std::string text() const {
    char buffer[32];
    check(cohort_context_text(this, buffer, sizeof buffer, nullptr));
    return buffer;
  }
};
inline bool operator==(const Context &a, const Context &b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}
inline bool operator!=(const Context &a, const Context &b) { return !(a == b); }

inline Context cpu(int32_t id = 0) { return {COHORT_DEVICE_CPU, id}; }
inline Context gpu(int32_t id = 0) { return {COHORT_DEVICE_GPU, id}; }

namespace detail {

inline std::vector<cohort_context> c_contexts(Span<Context> contexts) { return {contexts.begin(), contexts.end()}; }

// Bytes or text that C writes into memory of the caller's: function(out, capacity, out_bytes).
template <typename Write>
std::string written(const Write &write) {
  size_t bytes = 0;
  check(write(nullptr, size_t{0}, &bytes));
  std::string text(bytes, '\0');
  check(write(text.data(), text.size(), &bytes));
  text.resize(bytes);
  return text;
}

}  // namespace detail

/** How many devices of a type there are: cohort_num_devices(). */
inline size_t num_devices(cohort_device_type type) { return query<size_t>(cohort_num_devices, type); }
/** cohort_device_memory(). */
inline cohort_device_memory_info device_memory(const Context &context) {
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;
  check(cohort_device_memory(&context, &info));
  return info;
}
/** cohort_device_reset_peak_memory(). */
inline void reset_peak_memory(const Context &context) { check(cohort_device_reset_peak_memory(&context)); }
/** cohort_device_limit_memory(); 0: no limit. */
inline void limit_memory(const Context &context, size_t bytes) { check(cohort_device_limit_memory(&context, bytes)); }
/** Waits for all work on all devices: cohort_wait_all(). */
inline void wait_all() { check(cohort_wait_all()); }
/** The dtype of a name: cohort_dtype_parse(). */
inline cohort_dtype dtype_parse(const std::string &text) {
  return query<cohort_dtype>(cohort_dtype_parse, text.c_str());
}
/** The name of a dtype: cohort_dtype_text(). */
inline std::string dtype_text(cohort_dtype dtype) { return query<const char *>(cohort_dtype_text, dtype); }
/** The bytes of an element: cohort_dtype_bytes(). */
inline size_t dtype_bytes(cohort_dtype dtype) { return query<size_t>(cohort_dtype_bytes, dtype); }
/** The batch axis of a layout: cohort_layout_batch_axis(). */
inline int32_t layout_batch_axis(const std::string &layout) {
  return query<int32_t>(cohort_layout_batch_axis, layout.c_str());
}
/** The version of the library that is loaded: cohort_version(). */
inline std::string version() { return cohort_version(); }
/** The same as one number: cohort_version_number(). */
inline int32_t version_number() noexcept { return cohort_version_number(); }
/** cohort_has_feature(). */
inline bool has_feature(const std::string &name) noexcept { return cohort_has_feature(name.c_str()) != 0; }

/** The dtype of a C++ type: float, double, bool, uint8_t, and signed integers of 8, 32 and 64 bits. */
template <typename T>
constexpr cohort_dtype dtype_of() noexcept {
  constexpr bool is_signed = std::is_integral_v<T> && std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, float>)
    return COHORT_DTYPE_FLOAT32;
  else if constexpr (std::is_same_v<T, double>)
    return COHORT_DTYPE_FLOAT64;
  else if constexpr (std::is_same_v<T, bool>)
    return COHORT_DTYPE_BOOL;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return COHORT_DTYPE_UINT8;
  else if constexpr (is_signed && sizeof(T) == 1)
    return COHORT_DTYPE_INT8;
  else if constexpr (is_signed && sizeof(T) == 4)
    return COHORT_DTYPE_INT32;
  else if constexpr (is_signed && sizeof(T) == 8)
    return COHORT_DTYPE_INT64;
  else
    static_assert(!sizeof(T), "arrays have no elements of this type");
}

// ---- arrays -----------------------------------------------------------------------------------------------------------

/** A dense array on a context, or a view of one. A copy of this object is another handle on the same array. */
class NDArray : public Handle<cohort_ndarray, cohort_ndarray_free> {
 public:
  using Handle::Handle;
  NDArray() noexcept = default;
  /** cohort_ndarray_share(); of an empty object an empty one. */
  NDArray(const NDArray &other) : Handle(other ? share(other.get()).release() : nullptr) {}
  NDArray(NDArray &&other) noexcept = default;
  NDArray &operator=(const NDArray &other) {
    if (this != &other) *this = NDArray(other);
    return *this;
  }
  NDArray &operator=(NDArray &&other) noexcept = default;

  /** A second handle on an array that a callback was lent: cohort_ndarray_share(). */
  static NDArray share(const cohort_ndarray *array) { return make<NDArray>(cohort_ndarray_share, array); }
  /** cohort_ndarray_zeros(). */
  static NDArray zeros(Span<int64_t> shape, cohort_dtype dtype = COHORT_DTYPE_FLOAT32, const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_zeros, shape.data(), num_axes(shape), dtype, &context);
  }
  /** Contents are unspecified until written: cohort_ndarray_empty(). */
  static NDArray empty(Span<int64_t> shape, cohort_dtype dtype = COHORT_DTYPE_FLOAT32, const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_empty, shape.data(), num_axes(shape), dtype, &context);
  }
  /** cohort_ndarray_full(). */
  static NDArray full(Span<int64_t> shape, double value, cohort_dtype dtype = COHORT_DTYPE_FLOAT32,
                      const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_full, shape.data(), num_axes(shape), dtype, &context, value);
  }
  /** A copy of host memory: cohort_ndarray_from_host(). */
  static NDArray from_host(const void *data, size_t bytes, Span<int64_t> shape, cohort_dtype dtype,
                           const Context &context = {}) {
    return make<NDArray>(cohort_ndarray_from_host, data, bytes, shape.data(), num_axes(shape), dtype, &context);
  }
  /** The same from a vector, row-major, of the vector's element type. */
  template <typename T>
  static NDArray from_host(const std::vector<T> &values, Span<int64_t> shape, const Context &context = {}) {
    return from_host(values.data(), values.size() * sizeof(T), shape, dtype_of<T>(), context);
  }
  /** The same from a list in braces. */
  template <typename T>
  static NDArray from_host(std::initializer_list<T> values, Span<int64_t> shape, const Context &context = {}) {
    return from_host(values.begin(), values.size() * sizeof(T), shape, dtype_of<T>(), context);
  }
  /** An array of the caller's memory, without a copy: cohort_ndarray_wrap(). The deleter runs once and must not throw. */
  static NDArray wrap(void *data, Span<int64_t> shape, cohort_dtype dtype, const Context &context = {},
                      std::function<void()> deleter = {}) {
    auto closure = deleter ? std::make_unique<std::function<void()>>(std::move(deleter)) : nullptr;
    const auto call = [](void *, void *user_data) noexcept {
      const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()> *>(user_data));
      (*function)();
    };
    auto array = make<NDArray>(cohort_ndarray_wrap, data, shape.data(), num_axes(shape), dtype, &context,
                               closure ? static_cast<cohort_deleter_fn>(call) : nullptr, closure.get());
    closure.release();  // the library's
    return array;
  }
  /** Joins arrays along an axis: cohort_ndarray_concat(). */
  static NDArray concat(Span<NDArray> arrays, int32_t axis) {
    return make<NDArray>(cohort_ndarray_concat, detail::raw(arrays).data(), arrays.size(), axis);
  }
  /** Takes over a `DLManagedTensorVersioned *`: cohort_ndarray_from_dlpack(). */
  static NDArray from_dlpack(void *managed) { return make<NDArray>(cohort_ndarray_from_dlpack, managed); }
  /** Takes over a `DLManagedTensor *`: cohort_ndarray_from_dlpack_unversioned(). */
  static NDArray from_dlpack_unversioned(void *managed) {
    return make<NDArray>(cohort_ndarray_from_dlpack_unversioned, managed);
  }

  /** cohort_ndarray_shape(). */
  Shape shape() const {
    std::array<int64_t, COHORT_MAX_AXES> lengths;
    int32_t num = 0;
    check(cohort_ndarray_shape(get(), lengths.data(), lengths.size(), &num));
    return {lengths.begin(), lengths.begin() + num};
  }
  /** cohort_ndarray_dtype(). */
  cohort_dtype dtype() const { return query<cohort_dtype>(cohort_ndarray_dtype, get()); }
  /** cohort_ndarray_context(). */
  Context context() const { return query<cohort_context>(cohort_ndarray_context, get()); }
  /** The number of elements: cohort_ndarray_size(). */
  int64_t size() const { return query<int64_t>(cohort_ndarray_size, get()); }
  /** The bytes of the elements: cohort_ndarray_bytes(). */
  size_t bytes() const { return query<size_t>(cohort_ndarray_bytes, get()); }
  /** The address of the elements on a CPU context: cohort_ndarray_data(). */
  void *data() const { return query<void *>(cohort_ndarray_data, get()); }

  /** Copies all elements to host memory: cohort_ndarray_read(). */
  void read(void *out_data, size_t bytes) const { check(cohort_ndarray_read(get(), out_data, bytes)); }
  /** All elements in a vector, converted to T if they are of another type. */
  template <typename T>
  std::vector<T> read() const {
    if (dtype() != dtype_of<T>()) return cast(dtype_of<T>()).template read<T>();
    std::vector<T> values(static_cast<size_t>(size()));
    read(values.data(), values.size() * sizeof(T));
    return values;
  }
  /** Copies host memory to all elements: cohort_ndarray_write(). */
  void write(const void *data, size_t bytes) { check(cohort_ndarray_write(get(), data, bytes)); }
  /** The same from a vector, converted to the array's type if that is another one. */
  template <typename T>
  void write(const std::vector<T> &values) {
    if (dtype() == dtype_of<T>()) return write(values.data(), values.size() * sizeof(T));
    from_host(values, shape()).copy_to(*this);
  }
  /** Waits for the work that writes the array: cohort_ndarray_wait(). */
  void wait() const { check(cohort_ndarray_wait(get())); }
  /** cohort_ndarray_fill(). */
  void fill(double value) { check(cohort_ndarray_fill(get(), value)); }
  /** cohort_ndarray_fill_uniform(). */
  void fill_uniform(double low, double high, uint64_t seed) {
    check(cohort_ndarray_fill_uniform(get(), low, high, seed));
  }
  /** cohort_ndarray_fill_normal(). */
  void fill_normal(double mean, double deviation, uint64_t seed) {
    check(cohort_ndarray_fill_normal(get(), mean, deviation, seed));
  }

  /** Copies into another array, converting: cohort_ndarray_copy_to(). */
  void copy_to(NDArray &target) const { check(cohort_ndarray_copy_to(get(), target.get())); }
  /** A copy on a context: cohort_ndarray_copy(). */
  NDArray copy(const Context &context) const { return make<NDArray>(cohort_ndarray_copy, get(), &context); }
  /** A copy of another dtype: cohort_ndarray_cast(). */
  NDArray cast(cohort_dtype dtype) const { return make<NDArray>(cohort_ndarray_cast, get(), dtype); }
  /** A view of rows: cohort_ndarray_slice(). */
  NDArray slice(int64_t begin, int64_t end) const { return make<NDArray>(cohort_ndarray_slice, get(), begin, end); }
  /** A view of one row, without that axis: cohort_ndarray_at(). */
  NDArray at(int64_t index) const { return make<NDArray>(cohort_ndarray_at, get(), index); }
  /** A range along any axis: cohort_ndarray_slice_axis(). */
  NDArray slice_axis(int32_t axis, int64_t begin, int64_t end = INT64_MAX) const {
    return make<NDArray>(cohort_ndarray_slice_axis, get(), axis, begin, end);
  }
  /** A view in another shape: cohort_ndarray_reshape(). */
  NDArray reshape(Span<int64_t> shape) const {
    return make<NDArray>(cohort_ndarray_reshape, get(), shape.data(), num_axes(shape));
  }
  /** A view of the first elements in another shape: cohort_ndarray_reshape_prefix(). */
  NDArray reshape_prefix(Span<int64_t> shape) const {
    return make<NDArray>(cohort_ndarray_reshape_prefix, get(), shape.data(), num_axes(shape));
  }
  /** A `DLManagedTensorVersioned *`, the caller's: cohort_ndarray_to_dlpack(). */
  void *to_dlpack() const { return query<void *>(cohort_ndarray_to_dlpack, get()); }
  /** A `DLManagedTensor *`, the caller's: cohort_ndarray_to_dlpack_unversioned(). */
  void *to_dlpack_unversioned() const { return query<void *>(cohort_ndarray_to_dlpack_unversioned, get()); }

 private:
  static int32_t num_axes(Span<int64_t> shape) { return static_cast<int32_t>(shape.size()); }
};

/** An array and its name. */
struct NamedArray {
  std::string name;
  NDArray array;
};

/** An ordered list of arrays, with or without names: Arrays{{"weight", w}, {"bias", b}}. */
class Arrays : public Handle<cohort_arrays, cohort_arrays_free> {
 public:
  using Handle::Handle;
  /** Without entries: cohort_arrays_create(). */
  Arrays() : Handle(make<Handle>(cohort_arrays_create)) {}
  Arrays(Span<NamedArray> entries) : Arrays() {
    for (const NamedArray &entry : entries) add(entry.name, entry.array);
  }
  Arrays(std::initializer_list<NamedArray> entries) : Arrays(Span<NamedArray>(entries)) {}
  /** As many entries as arrays, without names. */
  static Arrays of(Span<NDArray> arrays) {
    Arrays list;
    for (const NDArray &array : arrays) list.add("", array);
    return list;
  }

  /** cohort_arrays_load(). */
  static Arrays load(const std::string &path, const Context &context = {}) {
    return make<Arrays>(cohort_arrays_load, path.c_str(), &context);
  }
  /** Arrays in a mapping of the file: cohort_arrays_map(). */
  static Arrays map(const std::string &path) { return make<Arrays>(cohort_arrays_map, path.c_str()); }
  /** cohort_arrays_load_memory(). */
  static Arrays load_memory(const void *data, size_t bytes, const Context &context = {}) {
    return make<Arrays>(cohort_arrays_load_memory, data, bytes, &context);
  }

  /** Appends an entry; an empty array makes an entry without one: cohort_arrays_add(). */
  void add(const std::string &name, const NDArray &array) {
    check(cohort_arrays_add(get(), name.c_str(), array.get()));
  }
  /** Replaces or appends the entry of a name: cohort_arrays_set(). */
  void set(const std::string &name, const NDArray &array) {
    check(cohort_arrays_set(get(), name.c_str(), array.get()));
  }
  /** How many entries there are: cohort_arrays_num(). */
  size_t num() const { return query<size_t>(cohort_arrays_num, get()); }
  /** The name of an entry, "" if none: cohort_arrays_name(). */
  std::string name(size_t index) const { return query<const char *>(cohort_arrays_name, get(), index); }
  /** The array of an entry, empty if it has none: cohort_arrays_get(). */
  NDArray array(size_t index) const { return make<NDArray>(cohort_arrays_get, get(), index); }
  /** The array of a name: cohort_arrays_find(), cohort_arrays_get(). */
  NDArray array(const std::string &name) const { return array(find(name)); }
  /** The place of a name; none, or several: Error, COHORT_ERROR_NAME. cohort_arrays_find(). */
  size_t find(const std::string &name) const { return query<size_t>(cohort_arrays_find, get(), name.c_str()); }
  /** Whether exactly one entry has the name. */
  bool has(const std::string &name) const {
    size_t index = 0;
    cohort_error *const error = cohort_arrays_find(get(), name.c_str(), &index);
    const bool is_absent = cohort_error_code(error) == COHORT_ERROR_NAME;
    if (is_absent) cohort_error_free(error);
    if (!is_absent) check(error);
    return !is_absent;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all(num());
    for (size_t i = 0; i < all.size(); ++i) all[i] = name(i);
    return all;
  }
  /** The arrays in order. */
  std::vector<NDArray> list() const {
    std::vector<NDArray> all(num());
    for (size_t i = 0; i < all.size(); ++i) all[i] = array(i);
    return all;
  }
  /** The entries that have an array, by name; of a repeated name the first. */
  std::unordered_map<std::string, NDArray> by_name() const {
    std::unordered_map<std::string, NDArray> all;
    for (size_t i = 0; i < num(); ++i)
      if (NDArray entry = array(i)) all.emplace(name(i), std::move(entry));
    return all;
  }

  /** Writes a .params file: cohort_arrays_save(). */
  void save(const std::string &path) const { check(cohort_arrays_save(get(), path.c_str())); }
  /** The bytes of a .params file: cohort_arrays_save_memory(). */
  std::string save_memory() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_arrays_save_memory(get(), out, capacity, bytes);
    });
  }
  /** Writes a .npy file: cohort_arrays_save_npy(). */
  void save_npy(const std::string &path) const { check(cohort_arrays_save_npy(get(), path.c_str())); }
  /** Writes a .npz file: cohort_arrays_save_npz(). */
  void save_npz(const std::string &path) const { check(cohort_arrays_save_npz(get(), path.c_str())); }
};

/** A name with shape, dtype and layout. */
struct Desc {
  std::string name;
  std::optional<Shape> shape;  // nullopt: not known; a length of 0 is not known either
  cohort_dtype dtype = COHORT_DTYPE_NONE;
  std::string layout = "NCHW";  // one letter for each axis; N is the batch axis

  Desc(std::string desc_name, Shape desc_shape, cohort_dtype desc_dtype = COHORT_DTYPE_NONE,
       std::string desc_layout = "NCHW")
      : name(std::move(desc_name)), shape(std::move(desc_shape)), dtype(desc_dtype), layout(std::move(desc_layout)) {}
  /** One whose shape is not known. */
  static Desc of_dtype(std::string desc_name, cohort_dtype desc_dtype) {
    Desc desc(std::move(desc_name), Shape(), desc_dtype);
    desc.shape.reset();
    return desc;
  }
};

/** An ordered list of descriptors: Descs{{"data", {32, 1, 28, 28}}, {"mask", {32}, COHORT_DTYPE_BOOL}}. */
class Descs : public Handle<cohort_descs, cohort_descs_free> {
 public:
  using Handle::Handle;
  /** Without entries: cohort_descs_create(). */
  Descs() : Handle(make<Handle>(cohort_descs_create)) {}
  Descs(Span<Desc> descs) : Descs() {
    for (const Desc &desc : descs) add(desc);
  }
  Descs(std::initializer_list<Desc> descs) : Descs(Span<Desc>(descs)) {}

  /** Appends a descriptor: cohort_descs_add(). */
  void add(const Desc &desc) {
    check(cohort_descs_add(get(), desc.name.c_str(), desc.shape ? desc.shape->data() : nullptr,
                           desc.shape ? static_cast<int32_t>(desc.shape->size()) : COHORT_UNKNOWN_SHAPE, desc.dtype,
                           desc.layout.c_str()));
  }
  /** How many there are: cohort_descs_num(). */
  size_t num() const { return query<size_t>(cohort_descs_num, get()); }
  /** cohort_descs_get(). */
  Desc at(size_t index) const {
    const char *name = nullptr, *layout = nullptr;
    std::array<int64_t, COHORT_MAX_AXES> lengths;
    int32_t num_axes = 0;
    cohort_dtype dtype = COHORT_DTYPE_NONE;
    check(cohort_descs_get(get(), index, &name, lengths.data(), lengths.size(), &num_axes, &dtype, &layout));
    if (num_axes < 0) {
      Desc unknown = Desc::of_dtype(name, dtype);
      unknown.layout = layout;
      return unknown;
    }
    return Desc(name, Shape(lengths.begin(), lengths.begin() + num_axes), dtype, layout);
  }
  /** The place of a name: cohort_descs_find(). */
  size_t find(const std::string &name) const { return query<size_t>(cohort_descs_find, get(), name.c_str()); }
  /** The descriptor of a name. */
  Desc at(const std::string &name) const { return at(find(name)); }
  /** All in order. */
  std::vector<Desc> list() const {
    std::vector<Desc> all;
    for (size_t i = 0; i < num(); ++i) all.push_back(at(i));
    return all;
  }
};

// ---- symbols ----------------------------------------------------------------------------------------------------------

/** Shapes or dtypes that inference found, in the order of the symbol's lists. */
struct Inferred {
  bool complete = false;  // whether all is known; if not, and partial was not asked for, the lists are null
  Descs args{nullptr}, outputs{nullptr}, aux{nullptr};
};

/** An attribute of a node. */
struct NodeAttr {
  std::string node, key, value;
};

/** A graph of operators over variables. A copy has the same heads; setting an attribute of one does not change the other. */
class Symbol : public Handle<cohort_symbol, cohort_symbol_free> {
 public:
  using Handle::Handle;
  Symbol() noexcept = default;
  Symbol(const Symbol &other) : Handle(other ? group({&other, 1}).release() : nullptr) {}
  Symbol(Symbol &&other) noexcept = default;
  Symbol &operator=(const Symbol &other) {
    if (this != &other) *this = Symbol(other);
    return *this;
  }
  Symbol &operator=(Symbol &&other) noexcept = default;

  /** cohort_symbol_variable(). */
  static Symbol variable(const std::string &name, Span<Attr> attrs = {}) {
    const detail::CAttrs c(attrs);
    return make<Symbol>(cohort_symbol_variable, name.c_str(), c.keys.data(), c.values.data(), c.num);
  }
  /**
   * A node of an operator: cohort_symbol_create().
   *
   * @param name         "": a name that no node among the inputs has.
   * @param inputs       Inputs that are not given become variables.
   * @param input_names  The operator's input that each is for; none: in the operator's order.
   */
  static Symbol create(const std::string &op, const std::string &name, Span<Attr> attrs = {}, Span<Symbol> inputs = {},
                       Span<std::string> input_names = {}) {
    detail::check_length("input_names", input_names.size(), inputs.size());
    const detail::CAttrs c(attrs);
    const detail::CStrings names(input_names);
    return make<Symbol>(cohort_symbol_create, op.c_str(), name.c_str(), c.keys.data(), c.values.data(), c.num,
                        detail::raw(inputs).data(), input_names.empty() ? nullptr : names.data(), inputs.size());
  }
  /** All heads of several symbols: cohort_symbol_group(). */
  static Symbol group(Span<Symbol> symbols) {
    return make<Symbol>(cohort_symbol_group, detail::raw(symbols).data(), symbols.size());
  }
  /** cohort_symbol_from_json(). */
  static Symbol from_json(std::string_view json) {
    return make<Symbol>(cohort_symbol_from_json, json.data(), json.size());
  }
  /** cohort_symbol_load(). */
  static Symbol load(const std::string &path) { return make<Symbol>(cohort_symbol_load, path.c_str()); }

  /** cohort_symbol_to_json(). */
  std::string to_json() const { return query<const char *>(cohort_symbol_to_json, get()); }
  /** cohort_symbol_save(). */
  void save(const std::string &path) const { check(cohort_symbol_save(get(), path.c_str())); }
  /** A copy that shares no node: cohort_symbol_copy(). */
  Symbol copy() const { return make<Symbol>(cohort_symbol_copy, get()); }
  /** Replaces variables by symbols, in a copy: cohort_symbol_compose(). No names: in the order of the arguments. */
  Symbol compose(Span<Symbol> inputs, Span<std::string> names = {}, const std::string &name = "") const {
    detail::check_length("names", names.size(), inputs.size());
    const detail::CStrings c(names);
    return make<Symbol>(cohort_symbol_compose, get(), names.empty() ? nullptr : c.data(), detail::raw(inputs).data(),
                        inputs.size(), name.c_str());
  }
  /** cohort_symbol_internals(). */
  Symbol internals() const { return make<Symbol>(cohort_symbol_internals, get()); }
  /** The inputs of the head nodes, empty if there are none: cohort_symbol_children(). */
  Symbol children() const { return make<Symbol>(cohort_symbol_children, get()); }
  /** One head: cohort_symbol_output(). */
  Symbol output(size_t index) const { return make<Symbol>(cohort_symbol_output, get(), index); }
  /** cohort_symbol_output_named(). */
  Symbol output(const std::string &name) const { return make<Symbol>(cohort_symbol_output_named, get(), name.c_str()); }

  /** cohort_symbol_num_nodes(). */
  size_t num_nodes() const { return query<size_t>(cohort_symbol_num_nodes, get()); }
  /** A list of names by its COHORT_SYMBOL_ constant: cohort_symbol_num_names(), cohort_symbol_name_at(). */
  std::vector<std::string> names(cohort_symbol_list list) const {
    std::vector<std::string> all(query<size_t>(cohort_symbol_num_names, get(), list));
    for (size_t i = 0; i < all.size(); ++i) all[i] = query<const char *>(cohort_symbol_name_at, get(), list, i);
    return all;
  }
  std::vector<std::string> list_arguments() const { return names(COHORT_SYMBOL_ARGUMENTS); }
  std::vector<std::string> list_aux() const { return names(COHORT_SYMBOL_AUX); }
  std::vector<std::string> list_outputs() const { return names(COHORT_SYMBOL_OUTPUTS); }
  /** The name of the head's node, nullopt if there are several heads: cohort_symbol_name(). */
  std::optional<std::string> name() const { return optional(query<const char *>(cohort_symbol_name, get())); }
  /** An attribute of the head's node: cohort_symbol_attr(). */
  std::optional<std::string> attr(const std::string &key) const {
    return optional(query<const char *>(cohort_symbol_attr, get(), key.c_str()));
  }
  /** Sets attributes of the head's node, for this object alone: cohort_symbol_set_attrs(). */
  void set_attrs(Span<Attr> attrs) {
    const detail::CAttrs c(attrs);
    check(cohort_symbol_set_attrs(get(), c.keys.data(), c.values.data(), c.num));
  }
  /** The attributes of the head's node, or of all nodes: cohort_symbol_num_attrs(), cohort_symbol_attr_at(). */
  std::vector<NodeAttr> attrs(bool all = false) const {
    std::vector<NodeAttr> found(query<size_t>(cohort_symbol_num_attrs, get(), cohort_bool{all}));
    for (size_t i = 0; i < found.size(); ++i) {
      const char *node = nullptr, *key = nullptr, *value = nullptr;
      check(cohort_symbol_attr_at(get(), all, i, &node, &key, &value));
      found[i] = {node, key, value};
    }
    return found;
  }

  /** cohort_symbol_infer_shape(). */
  Inferred infer_shape(const Descs &known = {}, bool partial = false) const {
    return infer(cohort_symbol_infer_shape, known, partial);
  }
  /** cohort_symbol_infer_dtype(). */
  Inferred infer_dtype(const Descs &known = {}, bool partial = false) const {
    return infer(cohort_symbol_infer_dtype, known, partial);
  }

 private:
  static std::optional<std::string> optional(const char *text) {
    return text ? std::optional<std::string>(text) : std::nullopt;
  }
  template <typename Function>
  Inferred infer(Function function, const Descs &known, bool partial) const {
    cohort_bool complete = 0;
    cohort_descs *args = nullptr, *outputs = nullptr, *aux = nullptr;
    check(function(get(), known.get(), partial, &complete, &args, &outputs, &aux));
    Inferred found;
    found.complete = complete != 0;
    found.args.adopt(args);
    found.outputs.adopt(outputs);
    found.aux.adopt(aux);
    return found;
  }
};

// ---- operators --------------------------------------------------------------------------------------------------------

/** An attribute of an operator: cohort_operator_attr(), cohort_operator_attr_range(). */
struct OperatorAttr {
  std::string name, type, doc;
  std::optional<std::string> default_value;  // nullopt: a value is required
  double low = 0, high = 0;
};

/** An input of an operator: cohort_operator_input(), cohort_operator_input_gradient(). */
struct OperatorInput {
  std::string name, doc;
  bool is_aux = false, has_gradient = false;
};

/** An operator: cohort_operator_info(), cohort_operator_output(), cohort_operator_precision(). */
struct OperatorInfo {
  std::string canonical, doc, count_attr;
  std::vector<OperatorAttr> attrs;
  std::vector<OperatorInput> inputs;
  std::vector<std::string> outputs;
  cohort_precision precision = COHORT_PRECISION_OWN;
};

/** All operator names, sorted: cohort_operator_num(), cohort_operator_name(). */
inline std::vector<std::string> operator_names() {
  std::vector<std::string> names(query<size_t>(cohort_operator_num));
  for (size_t i = 0; i < names.size(); ++i) names[i] = query<const char *>(cohort_operator_name, i);
  return names;
}

/** Describes an operator. */
inline OperatorInfo operator_info(const std::string &op) {
  OperatorInfo info;
  const char *canonical = nullptr, *doc = nullptr, *count_attr = nullptr;
  size_t num_attrs = 0, num_inputs = 0, num_outputs = 0;
  check(cohort_operator_info(op.c_str(), &canonical, &doc, &num_attrs, &num_inputs, &num_outputs, &count_attr));
  info.canonical = canonical;
  info.doc = doc;
  info.count_attr = count_attr;
  for (size_t i = 0; i < num_attrs; ++i) {
    OperatorAttr attr;
    const char *name = nullptr, *type = nullptr, *default_value = nullptr, *text = nullptr;
    check(cohort_operator_attr(op.c_str(), i, &name, &type, &default_value, &text));
    check(cohort_operator_attr_range(op.c_str(), i, &attr.low, &attr.high));
    attr.name = name;
    attr.type = type;
    attr.doc = text;
    if (default_value) attr.default_value = default_value;
    info.attrs.push_back(std::move(attr));
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    const char *name = nullptr, *text = nullptr;
    cohort_bool is_aux = 0;
    check(cohort_operator_input(op.c_str(), i, &name, &text, &is_aux));
    const auto has_gradient = query<cohort_bool>(cohort_operator_input_gradient, op.c_str(), i);
    info.inputs.push_back({name, text, is_aux != 0, has_gradient != 0});
  }
  for (size_t i = 0; i < num_outputs; ++i)
    info.outputs.push_back(query<const char *>(cohort_operator_output, op.c_str(), i));
  info.precision = query<cohort_precision>(cohort_operator_precision, op.c_str());
  return info;
}

/** Settings of one application of an operator: cohort_invoke_options. */
struct InvokeOptions {
  Context context;  // of an operator without inputs
  uint64_t seed = 0;
  bool is_train = false;
};

namespace detail {

inline cohort_invoke_options c_options(const InvokeOptions &options) {
  cohort_invoke_options c = COHORT_INVOKE_OPTIONS_INIT;
  c.context = &options.context;
  c.seed = options.seed;
  c.is_train = options.is_train;
  return c;
}

}  // namespace detail

/** Applies an operator to arrays and returns its outputs: cohort_operator_invoke(). Any thread. */
inline std::vector<NDArray> invoke(const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                                   const InvokeOptions &options = {}) {
  const detail::CAttrs c(attrs);
  const cohort_invoke_options c_options = detail::c_options(options);
  return make<Arrays>(cohort_operator_invoke, op.c_str(), c.keys.data(), c.values.data(), c.num,
                      detail::raw(inputs).data(), inputs.size(), nullptr, size_t{0}, &c_options)
      .list();
}

/** The same into given arrays. */
inline void invoke_into(Span<NDArray> outputs, const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                        const InvokeOptions &options = {}) {
  const detail::CAttrs c(attrs);
  const cohort_invoke_options c_options = detail::c_options(options);
  check(cohort_operator_invoke(op.c_str(), c.keys.data(), c.values.data(), c.num, detail::raw(inputs).data(),
                               inputs.size(), detail::raw(outputs).data(), outputs.size(), &c_options, nullptr));
}

// ---- gradients of operators applied at once ---------------------------------------------------------------------------

/** Settings of a backward pass along a tape: cohort_backward_options. */
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/** Records operators as they are applied, and computes gradients back along them. */
class Tape : public Handle<cohort_tape, cohort_tape_free> {
 public:
  using Handle::Handle;
  /** Computes the gradients of a function's inputs, in order, empty for none, from those of its outputs. */
  using Function = std::function<std::vector<NDArray>(const std::vector<NDArray> &head_grads)>;

  /** Records, in training mode: cohort_tape_create(). */
  Tape() : Handle(make<Handle>(cohort_tape_create)) {}

  /** Pauses or resumes; returns what it was before: cohort_tape_set_recording(). */
  bool set_recording(bool recording) {
    return query<cohort_bool>(cohort_tape_set_recording, get(), cohort_bool{recording}) != 0;
  }
  /** cohort_tape_is_recording(). */
  bool is_recording() const { return query<cohort_bool>(cohort_tape_is_recording, get()) != 0; }
  /** Sets the mode; returns what it was before: cohort_tape_set_training(). */
  bool set_training(bool training) {
    return query<cohort_bool>(cohort_tape_set_training, get(), cohort_bool{training}) != 0;
  }
  /** cohort_tape_is_training(). */
  bool is_training() const { return query<cohort_bool>(cohort_tape_is_training, get()) != 0; }

  /** Marks arrays that want gradients: cohort_tape_mark(). No gradients: none are written; no grad_reqs: "write". */
  void mark(Span<NDArray> arrays, Span<NDArray> gradients = {}, Span<cohort_grad_req> grad_reqs = {}) {
    detail::check_length("gradients", gradients.size(), arrays.size());
    detail::check_length("grad_reqs", grad_reqs.size(), arrays.size());
    check(cohort_tape_mark(get(), detail::raw(arrays).data(),
                           gradients.empty() ? nullptr : detail::raw(gradients).data(), grad_reqs.data(),
                           arrays.size()));
  }
  /** Applies an operator and records it: cohort_tape_invoke(). */
  std::vector<NDArray> invoke(const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                              const InvokeOptions &options = {}) {
    const detail::CAttrs c(attrs);
    const cohort_invoke_options c_options = detail::c_options(options);
    return make<Arrays>(cohort_tape_invoke, get(), op.c_str(), c.keys.data(), c.values.data(), c.num,
                        detail::raw(inputs).data(), inputs.size(), nullptr, size_t{0}, &c_options)
        .list();
  }
  /** The same into given arrays. */
  void invoke_into(Span<NDArray> outputs, const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                   const InvokeOptions &options = {}) {
    const detail::CAttrs c(attrs);
    const cohort_invoke_options c_options = detail::c_options(options);
    check(cohort_tape_invoke(get(), op.c_str(), c.keys.data(), c.values.data(), c.num, detail::raw(inputs).data(),
                             inputs.size(), detail::raw(outputs).data(), outputs.size(), &c_options, nullptr));
  }
  /** Writes the gradients of marked arrays: cohort_tape_backward(). No head gradients: ones. */
  void backward(Span<NDArray> heads, Span<NDArray> head_grads = {}, const BackwardOptions &options = {}) {
    detail::check_length("head_grads", head_grads.size(), heads.size());
    const cohort_backward_options c = c_options(options);
    check(cohort_tape_backward(get(), detail::raw(heads).data(),
                               head_grads.empty() ? nullptr : detail::raw(head_grads).data(), heads.size(), &c));
  }
  /** The gradients of some arrays, as new arrays: cohort_tape_grad(). */
  std::vector<NDArray> grad(Span<NDArray> heads, Span<NDArray> variables, Span<NDArray> head_grads = {},
                            const BackwardOptions &options = {}) {
    detail::check_length("head_grads", head_grads.size(), heads.size());
    const cohort_backward_options c = c_options(options);
    return make<Arrays>(cohort_tape_grad, get(), detail::raw(heads).data(),
                        head_grads.empty() ? nullptr : detail::raw(head_grads).data(), heads.size(),
                        detail::raw(variables).data(), variables.size(), &c)
        .list();
  }
  /** Records a function that the caller has computed: cohort_tape_function(). Kept as long as the tape needs it. */
  void function(Span<NDArray> inputs, Span<NDArray> outputs, Function backward) {
    auto closure = std::make_unique<Function>(std::move(backward));
    const cohort_tape_function_fn call = [](cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
      const bool done = detail::run_callback([&] {
        const std::vector<NDArray> heads = detail::Lent<Arrays>(head_grads).owner.list();
        for (const NDArray &gradient : (*static_cast<Function *>(user_data))(heads))
          check(cohort_arrays_add(gradients, nullptr, gradient.get()));
        return true;
      });
      return done ? int32_t{0} : int32_t{1};
    };
    const cohort_tape_release_fn release = [](void *user_data) {
      const std::unique_ptr<Function> last_owner(static_cast<Function *>(user_data));
    };
    check(cohort_tape_function(get(), detail::raw(inputs).data(), inputs.size(), detail::raw(outputs).data(),
                               outputs.size(), call, release, closure.get()));
    closure.release();  // the tape's, or released already
  }
  /** The symbol of what an array was made from: cohort_tape_symbol(). */
  Symbol symbol(const NDArray &array) const { return make<Symbol>(cohort_tape_symbol, get(), array.get()); }
  /** cohort_tape_num_recorded(). */
  size_t num_recorded() const { return query<size_t>(cohort_tape_num_recorded, get()); }

 private:
  static cohort_backward_options c_options(const BackwardOptions &options) {
    cohort_backward_options c = COHORT_BACKWARD_OPTIONS_INIT;
    c.retain_graph = options.retain_graph;
    c.create_graph = options.create_graph;
    return c;
  }
};

// ---- executors --------------------------------------------------------------------------------------------------------

class Executor;

/** The use of gradients: not given, one word for all, a word for each argument in order, or words by name. */
class GradReq {
 public:
  GradReq() = default;
  /** "null", "write" or "add" for all. */
  GradReq(std::string word) : word_(std::move(word)) {}
  GradReq(const char *word) : GradReq(std::string(word)) {}
  /** One for each argument in order. */
  GradReq(std::vector<std::string> words) : words_(std::move(words)), has_words_(true) {}
  /** By name of the argument. */
  GradReq(const std::map<std::string, std::string> &by_name) : has_words_(true), has_names_(true) {
    for (const auto &[name, word] : by_name) {
      names_.push_back(name);
      words_.push_back(word);
    }
  }

  const std::optional<std::string> &word() const { return word_; }
  const std::vector<std::string> &words() const { return words_; }
  const std::vector<std::string> &names() const { return names_; }
  bool has_words() const { return has_words_; }
  bool has_names() const { return has_names_; }

 private:
  std::optional<std::string> word_;
  std::vector<std::string> words_, names_;
  bool has_words_ = false, has_names_ = false;
};

/** Ranges of values, for inference in int8. */
class Calibration : public Handle<cohort_calibration, cohort_calibration_free> {
 public:
  using Handle::Handle;
  /** cohort_calibration_create(). */
  explicit Calibration(cohort_calibration_method method) : Handle(make<Handle>(cohort_calibration_create, method)) {}
  /** One that has found these ranges: cohort_calibration_create_from(). */
  static Calibration from(const Arrays &ranges) {
    return make<Calibration>(cohort_calibration_create_from, ranges.get());
  }

  /** Runs a forward pass and notes the values' ranges: cohort_calibration_observe(). */
  void observe(Executor &executor);
  /** The least and the largest number of a value: cohort_calibration_range(). */
  std::pair<double, double> range(const std::string &name) const {
    double low = 0, high = 0;
    check(cohort_calibration_range(get(), name.c_str(), &low, &high));
    return {low, high};
  }
  /** All ranges: cohort_calibration_ranges(). */
  Arrays ranges() const { return make<Arrays>(cohort_calibration_ranges, get()); }
};

/** Settings of an executor: cohort_executor_options, where each field is described. */
struct ExecutorOptions {
  std::map<std::string, Context> group2ctx;   // contexts of the nodes by `__ctx_group__`
  const Executor *shared_executor = nullptr;  // to share memory with
  int32_t num_threads = 0;
  uint64_t seed = 0;

  // From here to strict_dtypes: read by simple_bind alone.
  GradReq grad_req;
  std::vector<Context> arg_contexts, grad_contexts, aux_contexts;  // none, or one for each
  std::map<std::string, cohort_storage_type> storage_types;
  std::vector<std::string> shared_arg_names;
  Arrays *shared_data = nullptr;  // pool of input arrays by name
  bool strict_dtypes = false;

  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  const Calibration *calibration = nullptr;
  bool backward_once = false;
  bool tf32 = false;
  bool recompute = false;
};

/** Settings of a reshape: cohort_reshape_options. */
struct ReshapeOptions {
  bool partial_shaping = false;
  bool allow_up_sizing = false;
  std::optional<Context> context;            // nullopt: the executor's
  std::map<std::string, Context> group2ctx;  // none: the executor's
};

/** Sees an array while a pass runs; the array is a handle of its own and may be kept. */
using MonitorFunction = std::function<void(const std::string &name, const NDArray &array)>;

namespace detail {

// Keys of a map as C takes them, with the values in the same order.
template <typename Value, typename CValue = Value>
struct CMap {
  explicit CMap(const std::map<std::string, Value> &map) {
    for (const auto &[key, value] : map) {
      keys.push_back(key.c_str());
      values.push_back(value);
    }
  }
  std::vector<const char *> keys;
  std::vector<CValue> values;
};

struct CGradReq {
  explicit CGradReq(const GradReq &of) : grad_req(of), words(of.words()), names(of.names()) {}
  template <typename Options>
  void fill(Options &options) const {
    if (grad_req.word()) options.grad_req = grad_req.word()->c_str();
    if (!grad_req.has_words()) return;
    options.grad_req_list = words.data();
    options.grad_req_names = grad_req.has_names() ? names.data() : nullptr;
    options.num_grad_reqs = words.size();
  }
  const GradReq &grad_req;
  CStrings words, names;
};

// The C struct, with what it points to.
struct CExecutorOptions {
  CExecutorOptions(const ExecutorOptions &options, const cohort_executor *shared_executor)
      : ctx_groups(options.group2ctx),
        grad_req(options.grad_req),
        arg_contexts(c_contexts(options.arg_contexts)),
        grad_contexts(c_contexts(options.grad_contexts)),
        aux_contexts(c_contexts(options.aux_contexts)),
        storage(options.storage_types),
        shared_arg_names(options.shared_arg_names),
        float32_names(options.float32_names),
        narrow_names(options.narrow_names) {
    c.ctx_group_names = ctx_groups.keys.data();
    c.ctx_group_contexts = ctx_groups.values.data();
    c.num_ctx_groups = ctx_groups.keys.size();
    c.shared_executor = const_cast<cohort_executor *>(shared_executor);
    c.num_threads = options.num_threads;
    c.seed = options.seed;
    grad_req.fill(c);
    c.arg_contexts = arg_contexts.empty() ? nullptr : arg_contexts.data();
    c.grad_contexts = grad_contexts.empty() ? nullptr : grad_contexts.data();
    c.aux_contexts = aux_contexts.empty() ? nullptr : aux_contexts.data();
    c.storage_names = storage.keys.data();
    c.storage_types = storage.values.data();
    c.num_storage_types = storage.keys.size();
    c.shared_arg_names = shared_arg_names.data();
    c.num_shared_arg_names = shared_arg_names.size();
    c.shared_data = options.shared_data ? options.shared_data->get() : nullptr;
    c.strict_dtypes = options.strict_dtypes;
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.calibration = options.calibration ? options.calibration->get() : nullptr;
    c.backward_once = options.backward_once;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
  }
  cohort_executor_options c = COHORT_EXECUTOR_OPTIONS_INIT;
  CMap<Context, cohort_context> ctx_groups;
  CGradReq grad_req;
  std::vector<cohort_context> arg_contexts, grad_contexts, aux_contexts;
  CMap<cohort_storage_type> storage;
  CStrings shared_arg_names, float32_names, narrow_names;
};

inline void call_monitor(const char *name, cohort_ndarray *array, void *user_data) {
  run_closure<MonitorFunction>(user_data, [&](MonitorFunction &function) { function(name, NDArray::share(array)); });
}

template <typename Object, typename Function>
void set_monitor(Object *object, Function c_function, Closures &kept, MonitorFunction callback, bool monitor_all) {
  Closures closures;
  void *const user_data = keep_closure(closures, std::move(callback));
  check(c_function(object, user_data ? call_monitor : nullptr, user_data, monitor_all));
  kept = std::move(closures);
}

}  // namespace detail

/** A symbol bound to arrays on its contexts. */
class Executor : public Handle<cohort_executor, cohort_executor_free> {
 public:
  using Handle::Handle;

  /**
   * Binds a symbol to given arrays: cohort_executor_bind().
   *
   * @param grads     None, or one for each argument, empty where there is to be no gradient.
   * @param grad_req  COHORT_GRAD_ constants, none, or one for each argument; none: COHORT_GRAD_WRITE.
   */
  static Executor bind(const Symbol &symbol, const Context &context, Span<NDArray> args, Span<NDArray> grads = {},
                       Span<cohort_grad_req> grad_req = {}, Span<NDArray> aux = {},
                       const ExecutorOptions &options = {}) {
    detail::check_length("grads", grads.size(), args.size());
    detail::check_length("grad_req", grad_req.size(), args.size());
    const detail::CExecutorOptions c(options, options.shared_executor ? options.shared_executor->get() : nullptr);
    return make<Executor>(cohort_executor_bind, symbol.get(), &context, detail::raw(args).data(), args.size(),
                          grads.empty() ? nullptr : detail::raw(grads).data(), grad_req.data(), detail::raw(aux).data(),
                          aux.size(), &c.c);
  }
  /** Binds a symbol to arrays made for it, all zeros: cohort_executor_simple_bind(). */
  static Executor simple_bind(const Symbol &symbol, const Context &context, const Descs &known,
                              const ExecutorOptions &options = {}) {
    const auto num = [&](cohort_symbol_list list) {
      return query<size_t>(cohort_symbol_num_names, symbol.get(), list);
    };
    detail::check_length("arg_contexts", options.arg_contexts.size(), num(COHORT_SYMBOL_ARGUMENTS));
    detail::check_length("grad_contexts", options.grad_contexts.size(), num(COHORT_SYMBOL_ARGUMENTS));
    detail::check_length("aux_contexts", options.aux_contexts.size(), num(COHORT_SYMBOL_AUX));
    const detail::CExecutorOptions c(options, options.shared_executor ? options.shared_executor->get() : nullptr);
    return make<Executor>(cohort_executor_simple_bind, symbol.get(), &context, known.get(), &c.c);
  }
  /** An executor for other shapes, of the same family: cohort_executor_reshape(). It takes the monitor over. */
  Executor reshape(const Descs &known, const ReshapeOptions &options = {}) const {
    const detail::CMap<Context, cohort_context> ctx_groups(options.group2ctx);
    cohort_reshape_options c = COHORT_RESHAPE_OPTIONS_INIT;
    c.partial_shaping = options.partial_shaping;
    c.allow_up_sizing = options.allow_up_sizing;
    c.context = options.context ? &*options.context : nullptr;
    c.ctx_group_names = ctx_groups.keys.data();
    c.ctx_group_contexts = ctx_groups.values.data();
    c.num_ctx_groups = ctx_groups.keys.size();
    Executor made = make<Executor>(cohort_executor_reshape, get(), known.get(), &c);
    made.closures_ = closures_;
    return made;
  }

  /** cohort_executor_symbol(). */
  Symbol symbol() const { return make<Symbol>(cohort_executor_symbol, get()); }
  /** The default context: cohort_executor_context(). */
  Context context() const { return query<cohort_context>(cohort_executor_context, get()); }
  /** The length of a list, COHORT_EXECUTOR_ARGS or another: cohort_executor_num_arrays(). */
  size_t num_arrays(cohort_executor_list list) const { return query<size_t>(cohort_executor_num_arrays, get(), list); }
  /** The name of an entry: cohort_executor_name(). */
  std::string name(cohort_executor_list list, size_t index) const {
    return query<const char *>(cohort_executor_name, get(), list, index);
  }
  /** A live array, empty for an argument without gradient: cohort_executor_array(). */
  NDArray array(cohort_executor_list list, size_t index) const {
    return make<NDArray>(cohort_executor_array, get(), list, index);
  }
  /** cohort_executor_array_named(). */
  NDArray array(cohort_executor_list list, const std::string &name) const {
    return make<NDArray>(cohort_executor_array_named, get(), list, name.c_str());
  }
  /** A whole list: cohort_executor_arrays(). */
  Arrays arrays(cohort_executor_list list) const { return make<Arrays>(cohort_executor_arrays, get(), list); }
  /** The outputs in the order of the heads. */
  std::vector<NDArray> outputs() const { return arrays(COHORT_EXECUTOR_OUTPUTS).list(); }
  /** Arguments by name. */
  std::unordered_map<std::string, NDArray> arg_map() const { return arrays(COHORT_EXECUTOR_ARGS).by_name(); }
  /** Gradients by the names of their arguments, of those that have one. */
  std::unordered_map<std::string, NDArray> grad_map() const { return arrays(COHORT_EXECUTOR_GRADS).by_name(); }
  /** Auxiliary states by name. */
  std::unordered_map<std::string, NDArray> aux_map() const { return arrays(COHORT_EXECUTOR_AUX).by_name(); }
  /** A COHORT_GRAD_ constant of an argument: cohort_executor_grad_req(). */
  cohort_grad_req grad_req(size_t index) const {
    return query<cohort_grad_req>(cohort_executor_grad_req, get(), index);
  }

  /** Copies arrays into arguments: cohort_executor_set_inputs(). */
  void set_inputs(const Arrays &inputs) { check(cohort_executor_set_inputs(get(), inputs.get())); }
  /** cohort_executor_copy_params_from(). */
  void copy_params_from(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr),
                        bool allow_extra = false) {
    check(cohort_executor_copy_params_from(get(), arg_params.get(), aux_params.get(), allow_extra));
  }
  /** Queues a forward pass: cohort_executor_forward(). */
  void forward(bool is_train = false) { check(cohort_executor_forward(get(), is_train)); }
  /** Runs one step of a forward pass; returns how many nodes come after it: cohort_executor_partial_forward(). */
  int32_t partial_forward(bool is_train, int32_t step) {
    return query<int32_t>(cohort_executor_partial_forward, get(), cohort_bool{is_train}, step);
  }
  /** Queues a backward pass: cohort_executor_backward(). Head gradients may be empty where an output needs none. */
  void backward(Span<NDArray> head_grads = {}, bool is_train = true) {
    check(cohort_executor_backward(get(), detail::raw(head_grads).data(), head_grads.size(), is_train));
  }
  /** Waits for queued work: cohort_executor_wait(). */
  void wait() { check(cohort_executor_wait(get())); }
  /** Shows operators' outputs to a callback, none if it is empty: cohort_executor_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_executor_set_monitor, closures_, std::move(callback), monitor_all);
  }
  /** cohort_executor_random_state(). */
  std::string random_state() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_executor_random_state(get(), out, capacity, bytes);
    });
  }
  /** cohort_executor_set_random_state(). */
  void set_random_state(std::string_view state) {
    check(cohort_executor_set_random_state(get(), state.data(), state.size()));
  }
  /** The plan as text: cohort_executor_debug_text(). */
  std::string debug_text() const { return query<const char *>(cohort_executor_debug_text, get()); }
  /** Writes the plan to a stream. */
  void print(std::ostream &out) const { out << debug_text(); }
  /** cohort_executor_memory(). */
  cohort_memory_info memory() const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_executor_memory(get(), &info));
    return info;
  }

 private:
  friend class Group;
  detail::Closures closures_;
};

inline void Calibration::observe(Executor &executor) { check(cohort_calibration_observe(get(), executor.get())); }

// ---- what training needs beside ---------------------------------------------------------------------------------------

/** A loss scale and how it fares: cohort_group_loss_scale(). */
struct LossScale {
  double scale = 1;
  int32_t num_good = 0;
  uint64_t num_skipped = 0;
};

/** Multipliers of a parameter's learning rate and weight decay. */
struct Multipliers {
  double lr_mult = 1;
  double wd_mult = 1;
};

/** A rule that updates parameters from gradients, with its states. */
class Optimizer : public Handle<cohort_optimizer, cohort_optimizer_free> {
 public:
  using Handle::get;
  using Handle::Handle;
  Optimizer() noexcept = default;
  /** Names and settings: cohort_optimizer_create(). */
  explicit Optimizer(const std::string &name, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    *this = make<Optimizer>(cohort_optimizer_create, name.c_str(), c.keys.data(), c.values.data(), c.num);
  }

  /** A setting as a number: cohort_optimizer_get(). */
  double get(const std::string &key) const { return query<double>(cohort_optimizer_get, get(), key.c_str()); }
  /** cohort_optimizer_set(). */
  void set(const std::string &key, double value) { check(cohort_optimizer_set(get(), key.c_str(), value)); }
  /** Lets a schedule decide the learning rate: cohort_optimizer_set_lr_schedule(). */
  void set_lr_schedule(const std::string &name, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    check(cohort_optimizer_set_lr_schedule(get(), name.c_str(), c.keys.data(), c.values.data(), c.num));
  }
  /** The learning rate stays where it is. */
  void clear_lr_schedule() { check(cohort_optimizer_set_lr_schedule(get(), nullptr, nullptr, nullptr, 0)); }
  /** Takes the multipliers of a symbol's variables: cohort_optimizer_use_symbol(). */
  void use_symbol(const Symbol &symbol) { check(cohort_optimizer_use_symbol(get(), symbol.get())); }
  /** cohort_optimizer_set_mult(); a negative one is as if not set. */
  void set_mult(const std::string &param, double lr_mult, double wd_mult) {
    check(cohort_optimizer_set_mult(get(), param.c_str(), lr_mult, wd_mult));
  }
  /** cohort_optimizer_mult(). */
  Multipliers mult(const std::string &param) const {
    Multipliers found;
    check(cohort_optimizer_mult(get(), param.c_str(), &found.lr_mult, &found.wd_mult));
    return found;
  }
  /** Updates one parameter: cohort_optimizer_update(). */
  void update(const std::string &param, NDArray &weight, const NDArray &grad, size_t copy = 0) {
    check(cohort_optimizer_update(get(), param.c_str(), copy, weight.get(), grad.get()));
  }
  /** cohort_optimizer_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_optimizer_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_optimizer_save_states(). */
  void save_states(const std::string &path) const { check(cohort_optimizer_save_states(get(), path.c_str())); }
  /** The bytes of such a file: cohort_optimizer_save_states_memory(). */
  std::string save_states_memory() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_optimizer_save_states_memory(get(), out, capacity, bytes);
    });
  }
  /** cohort_optimizer_load_states(). */
  void load_states(const std::string &path) { check(cohort_optimizer_load_states(get(), path.c_str())); }
  /** cohort_optimizer_load_states_memory(). */
  void load_states_memory(std::string_view bytes) {
    check(cohort_optimizer_load_states_memory(get(), bytes.data(), bytes.size()));
  }
};

/** The numbers that a metric of the caller's adds in one update; the value is sum / num. */
struct MetricSum {
  double sum = 0;
  double num = 1;
};

/** A value of a metric; NaN if nothing was counted. */
struct MetricValue {
  std::string name;
  double value = 0;
};

/** A figure accumulated from labels and predictions. */
class Metric : public Handle<cohort_metric, cohort_metric_free> {
 public:
  using Handle::Handle;
  /** Computes what one update adds. */
  using Function = std::function<MetricSum(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds)>;

  Metric() noexcept = default;
  /** Kinds and settings: cohort_metric_create(). */
  explicit Metric(const std::string &kind, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    *this = make<Metric>(cohort_metric_create, kind.c_str(), c.keys.data(), c.values.data(), c.num);
  }
  /** A metric of a callback: cohort_metric_create_custom(). */
  static Metric custom(const std::string &name, Function function, bool allow_extra_outputs = false) {
    detail::Closures closures;
    void *const user_data = detail::keep_closure(closures, std::move(function));
    Metric made = make<Metric>(cohort_metric_create_custom, name.c_str(), user_data ? call : nullptr, user_data,
                               cohort_bool{allow_extra_outputs});
    made.closures_ = std::move(closures);
    return made;
  }

  /** Appends a metric to a composite one: cohort_metric_add(). */
  void add(const Metric &child) {
    closures_.reserve(closures_.size() + child.closures_.size());
    check(cohort_metric_add(get(), child.get()));
    closures_.insert(closures_.end(), child.closures_.begin(), child.closures_.end());
  }
  /** cohort_metric_num_children(). */
  size_t num_children() const { return query<size_t>(cohort_metric_num_children, get()); }
  /** A handle on a child: cohort_metric_child(). */
  Metric child(size_t index) const {
    Metric made = make<Metric>(cohort_metric_child, get(), index);
    made.closures_ = closures_;
    return made;
  }
  /** Which labels and outputs it takes, all where none are named: cohort_metric_set_names(). */
  void set_names(Span<std::string> label_names, Span<std::string> output_names) {
    const detail::CStrings labels(label_names), outputs(output_names);
    check(cohort_metric_set_names(get(), label_names.empty() ? nullptr : labels.data(), labels.size(),
                                  output_names.empty() ? nullptr : outputs.data(), outputs.size()));
  }
  /** cohort_metric_update(). */
  void update(Span<NDArray> labels, Span<NDArray> preds) {
    check(cohort_metric_update(get(), detail::raw(labels).data(), labels.size(), detail::raw(preds).data(),
                               preds.size()));
  }
  /** cohort_metric_update_named(). */
  void update_named(const Arrays &labels, const Arrays &preds) {
    check(cohort_metric_update_named(get(), labels.get(), preds.get()));
  }
  /** Forgets everything: cohort_metric_reset(). */
  void reset() { check(cohort_metric_reset(get())); }
  /** Keeps what counts globally: cohort_metric_reset_local(). */
  void reset_local() { check(cohort_metric_reset_local(get())); }
  /** cohort_metric_num_values(). */
  size_t num_values() const { return query<size_t>(cohort_metric_num_values, get()); }
  /** A value since the last reset, or since the last full one: cohort_metric_value(). */
  MetricValue value(size_t index = 0, bool global = false) const {
    const char *name = nullptr;
    MetricValue found;
    check(cohort_metric_value(get(), index, global, &name, &found.value));
    found.name = name;
    return found;
  }
  /** All values. */
  std::vector<MetricValue> values(bool global = false) const {
    std::vector<MetricValue> all(num_values());
    for (size_t i = 0; i < all.size(); ++i) all[i] = value(i, global);
    return all;
  }
  /** The sum and the number behind a value: cohort_metric_counters(). */
  MetricSum counters(size_t index = 0, bool global = false) const {
    MetricSum found;
    check(cohort_metric_counters(get(), index, global, &found.sum, &found.num));
    return found;
  }

 private:
  static int32_t call(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds, size_t num_preds,
                      double *out_sum, double *out_num, void *user_data) {
    const auto shared = [](cohort_ndarray *const *lent, size_t num) {
      std::vector<NDArray> arrays(num);
      for (size_t i = 0; i < num; ++i) arrays[i] = NDArray::share(lent[i]);
      return arrays;
    };
    const bool done = detail::run_closure<Function>(user_data, [&](Function &function) {
      const MetricSum added = function(shared(labels, num_labels), shared(preds, num_preds));
      *out_sum = added.sum;
      *out_num = added.num;
    });
    return done ? 0 : 1;
  }

  detail::Closures closures_;
};

/** A rule that fills parameters before training. */
class Initializer : public Handle<cohort_initializer, cohort_initializer_free> {
 public:
  using Handle::Handle;
  Initializer() noexcept = default;
  /** Names and settings: cohort_initializer_create(). */
  explicit Initializer(const std::string &name, Span<Attr> settings = {}, uint64_t seed = 0) {
    const detail::CAttrs c(settings);
    *this = make<Initializer>(cohort_initializer_create, name.c_str(), c.keys.data(), c.values.data(), c.num, seed);
  }

  /** Fills arrays by name, and by the attributes of a symbol's variables: cohort_initializer_apply(). */
  void apply(const Arrays &arrays, const Symbol &symbol = Symbol()) const {
    check(cohort_initializer_apply(get(), symbol.get(), arrays.get()));
  }
  /** Fills one array by this rule: cohort_initializer_fill(). */
  void fill(const std::string &name, NDArray &array) const {
    check(cohort_initializer_fill(get(), name.c_str(), array.get()));
  }
};

/** Parameters by name: arguments and auxiliary states. */
struct Params {
  Arrays arg{nullptr}, aux{nullptr};
};

/** A checkpoint in MXNet's two files. */
struct Checkpoint {
  Symbol symbol;
  Params params;

  /** cohort_checkpoint_load(); the parameters alone without with_symbol. */
  static Checkpoint load(const std::string &prefix, int32_t epoch, bool with_symbol = true) {
    return read(cohort_checkpoint_load, prefix, epoch, with_symbol);
  }
  /** The same with the arrays in a mapping of their file: cohort_checkpoint_map(). */
  static Checkpoint map(const std::string &prefix, int32_t epoch, bool with_symbol = true) {
    return read(cohort_checkpoint_map, prefix, epoch, with_symbol);
  }
  /** cohort_checkpoint_save(); an empty symbol is not written. */
  void save(const std::string &prefix, int32_t epoch) const { save(prefix, epoch, symbol, params); }
  static void save(const std::string &prefix, int32_t epoch, const Symbol &symbol, const Params &params) {
    check(cohort_checkpoint_save(prefix.c_str(), epoch, symbol.get(), params.arg.get(), params.aux.get()));
  }

 private:
  template <typename Function>
  static Checkpoint read(Function function, const std::string &prefix, int32_t epoch, bool with_symbol) {
    cohort_symbol *symbol = nullptr;
    cohort_arrays *arg = nullptr, *aux = nullptr;
    check(function(prefix.c_str(), epoch, with_symbol ? &symbol : nullptr, &arg, &aux));
    Checkpoint found;
    found.symbol.adopt(symbol);
    found.params.arg.adopt(arg);
    found.params.aux.adopt(aux);
    return found;
  }
};

// ---- messages ---------------------------------------------------------------------------------------------------------

/** Takes a message of a level, COHORT_LOG_DEBUG to COHORT_LOG_ERROR, on any thread; must not throw. */
using LogFunction = std::function<void(cohort_log_level level, const std::string &message)>;

namespace detail {

inline void call_log(cohort_log_level level, const char *message, void *user_data) noexcept {
  if (const std::shared_ptr<LogFunction> function = find_closure<LogFunction>(user_data)) (*function)(level, message);
}

}  // namespace detail

/** A receiver of the library's messages. A thread that is in the callback when this is destroyed finishes it. */
class Log : public Handle<cohort_log, cohort_log_free> {
 public:
  using Handle::Handle;
  /** cohort_log_create(). */
  Log(cohort_log_level lowest, LogFunction callback) {
    auto closure = std::make_unique<LogFunction>(std::move(callback));
    const auto call = [](cohort_log_level level, const char *message, void *user_data) noexcept {
      (*static_cast<LogFunction *>(user_data))(level, message);
    };
    const auto ended = [](void *user_data) noexcept {
      const std::unique_ptr<LogFunction> last_owner(static_cast<LogFunction *>(user_data));
    };
    adopt(make<Handle>(cohort_log_create, lowest, static_cast<cohort_log_fn>(call),
                       static_cast<cohort_log_end_fn>(ended), closure.get())
              .release());
    closure.release();  // the library's
  }
};

/** Sets the program's one receiver; an empty callback: none, messages go to stderr: cohort_set_log(). */
inline void set_log(cohort_log_level lowest, LogFunction callback) {
  static std::mutex mutex;
  static detail::Closures &kept = *std::make_unique<detail::Closures>().release();  // never destroyed, as the library
  const std::lock_guard<std::mutex> lock(mutex);
  detail::Closures closures;
  void *const user_data = detail::keep_closure(closures, std::move(callback));
  check(cohort_set_log(lowest, user_data ? detail::call_log : nullptr, user_data));
  kept = std::move(closures);
}

// ---- groups -----------------------------------------------------------------------------------------------------------

class Group;

/** Settings of a group: cohort_group_options, where each field is described. */
struct GroupOptions {
  std::optional<std::vector<std::string>> param_names;  // nullopt: all but data, labels and states
  std::vector<double> workload;                         // none: equal shares
  cohort_rounding rounding = COHORT_ROUNDING_HALF_UP;
  std::vector<Slice> slices;  // none: by workload

  bool inputs_need_grad = false;
  std::vector<std::string> fixed_param_names;
  GradReq grad_req;
  std::vector<std::string> state_names;
  std::map<std::string, cohort_dtype> input_dtypes;
  const Group *shared_group = nullptr;
  std::map<std::string, std::vector<Context>> group2ctx;  // each name: one context, or one for each device

  int32_t num_threads = 0;
  size_t gradient_bucket_bytes = 0;
  uint64_t seed = 0;
  LogFunction log;                     // takes this group's messages
  std::vector<std::string> arg_names;  // checked, if there are any

  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  double loss_scale = 0;
  int32_t loss_scale_window = 0;
  const Calibration *calibration = nullptr;
  bool backward_once = false;
  const Arrays *arg_params = nullptr;  // of inference: the group's own arrays
  const Arrays *aux_params = nullptr;
  cohort_dtype gradient_sum_dtype = COHORT_DTYPE_FLOAT32;
  bool tf32 = false;
  bool recompute = false;
  bool keep_device_aux = false;
  bool strict_names = false;
  bool stop_if_not_finite = false;
};

namespace detail {

struct CGroupOptions {
  CGroupOptions(const GroupOptions &options, cohort_group *shared_group, Closures &closures)
      : param_names(options.param_names ? CStrings(*options.param_names) : CStrings()),
        fixed_param_names(options.fixed_param_names),
        grad_req(options.grad_req),
        state_names(options.state_names),
        input_dtypes(options.input_dtypes),
        arg_names(options.arg_names),
        float32_names(options.float32_names),
        narrow_names(options.narrow_names) {
    for (const Slice &slice : options.slices) slices.insert(slices.end(), {slice.begin, slice.end});
    for (const auto &[name, contexts] : options.group2ctx) {
      if (!ctx_group_names.empty()) check_length(name.c_str(), contexts.size(), c.contexts_per_ctx_group);
      c.contexts_per_ctx_group = contexts.size();
      ctx_group_names.push_back(name.c_str());
      ctx_group_contexts.insert(ctx_group_contexts.end(), contexts.begin(), contexts.end());
    }
    c.workload = options.workload.empty() ? nullptr : options.workload.data();
    c.num_workloads = options.workload.size();
    c.rounding = options.rounding;
    c.slices = slices.data();
    c.num_slices = options.slices.size();
    c.inputs_need_grad = options.inputs_need_grad;
    c.fixed_param_names = fixed_param_names.data();
    c.num_fixed_param_names = fixed_param_names.size();
    grad_req.fill(c);
    c.state_names = state_names.data();
    c.num_state_names = state_names.size();
    c.input_dtype_names = input_dtypes.keys.data();
    c.input_dtypes = input_dtypes.values.data();
    c.num_input_dtypes = input_dtypes.keys.size();
    c.shared_group = shared_group;
    c.ctx_group_names = ctx_group_names.data();
    c.ctx_group_contexts = ctx_group_contexts.data();
    c.num_ctx_groups = ctx_group_names.size();
    c.num_threads = options.num_threads;
    c.gradient_bucket_bytes = options.gradient_bucket_bytes;
    c.seed = options.seed;
    c.log_user_data = keep_closure(closures, options.log);
    c.log = options.log ? call_log : nullptr;
    c.arg_names = arg_names.data();
    c.num_arg_names = arg_names.size();
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.loss_scale = options.loss_scale;
    c.loss_scale_window = options.loss_scale_window;
    c.calibration = options.calibration ? options.calibration->get() : nullptr;
    c.backward_once = options.backward_once;
    c.arg_params = options.arg_params ? options.arg_params->get() : nullptr;
    c.aux_params = options.aux_params ? options.aux_params->get() : nullptr;
    c.gradient_sum_dtype = options.gradient_sum_dtype;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
    c.keep_device_aux = options.keep_device_aux;
    c.strict_names = options.strict_names;
    c.stop_if_not_finite = options.stop_if_not_finite;
  }
  cohort_group_options c = COHORT_GROUP_OPTIONS_INIT;
  CStrings param_names, fixed_param_names;
  CGradReq grad_req;
  CStrings state_names;
  CMap<cohort_dtype> input_dtypes;
  std::vector<int64_t> slices;
  std::vector<const char *> ctx_group_names;
  std::vector<cohort_context> ctx_group_contexts;
  CStrings arg_names, float32_names, narrow_names;
};

// -1: as the group was bound.
inline int32_t c_is_train(std::optional<bool> is_train) { return is_train ? int32_t{*is_train} : -1; }

}  // namespace detail

/** Splits a batch by workloads: cohort_split_slices(). No workload: num_contexts equal shares. */
inline std::vector<Slice> split_slices(int64_t batch_size, Span<double> workload, size_t num_contexts,
                                       cohort_rounding rounding = COHORT_ROUNDING_HALF_UP) {
  detail::check_length("workload", workload.size(), num_contexts);
  std::vector<int64_t> begin(num_contexts), end(num_contexts);
  check(cohort_split_slices(batch_size, workload.data(), num_contexts, rounding, begin.data(), end.data()));
  std::vector<Slice> slices(num_contexts);
  for (size_t i = 0; i < num_contexts; ++i) slices[i] = {begin[i], end[i]};
  return slices;
}

/** One executor for each context, each batch split over them, gradients summed. */
class Group : public Handle<cohort_group, cohort_group_free> {
 public:
  using Handle::Handle;
  Group() noexcept = default;
  /** Makes a group and binds it: cohort_group_create(). */
  Group(const Symbol &symbol, Span<Context> contexts, const Descs &data, const Descs &label = Descs(nullptr),
        bool for_training = true, const GroupOptions &options = {}) {
    const detail::CGroupOptions c(options, options.shared_group ? options.shared_group->get() : nullptr, closures_);
    adopt(make<Handle>(cohort_group_create, symbol.get(), detail::c_contexts(contexts).data(), contexts.size(),
                       data.get(), label.get(), options.param_names ? c.param_names.data() : nullptr,
                       c.param_names.size(), cohort_bool{for_training}, &c.c)
              .release());
  }

  /** Binds from scratch: cohort_group_bind(). */
  void bind(const Descs &data, const Descs &label = Descs(nullptr), bool rebind = false,
            const Group *shared_group = nullptr) {
    check(cohort_group_bind(get(), data.get(), label.get(), shared_group ? shared_group->get() : nullptr, rebind));
  }
  /** Changes the shapes of the batch: cohort_group_reshape(). */
  void reshape(const Descs &data, const Descs &label = Descs(nullptr)) {
    check(cohort_group_reshape(get(), data.get(), label.get()));
  }

  /** cohort_group_num_contexts(). */
  size_t num_contexts() const { return query<size_t>(cohort_group_num_contexts, get()); }
  /** The context of a device: cohort_group_context(). */
  Context context(size_t device) const { return query<cohort_context>(cohort_group_context, get(), device); }
  /** The executor of a device: cohort_group_executor(). */
  Executor executor(size_t device) const {
    Executor made = make<Executor>(cohort_group_executor, get(), device);
    made.closures_ = closures_;
    made.closures_.insert(made.closures_.end(), monitor_.begin(), monitor_.end());
    return made;
  }
  /** 0 if nothing has a batch axis: cohort_group_batch_size(). */
  int64_t batch_size() const { return query<int64_t>(cohort_group_batch_size, get()); }
  /** The slice of a device: cohort_group_slice(). */
  Slice slice(size_t device) const {
    Slice found;
    check(cohort_group_slice(get(), device, &found.begin, &found.end));
    return found;
  }
  /** The slices of all devices. */
  std::vector<Slice> slices() const {
    std::vector<Slice> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = slice(device);
    return all;
  }
  /** The batch axis of each descriptor: cohort_group_decide_slices(). */
  std::vector<int32_t> decide_slices(const Descs &descs) const {
    std::vector<int32_t> axes(descs.num());
    check(cohort_group_decide_slices(get(), descs.get(), axes.data()));
    return axes;
  }
  /** Descriptors as one device has them: cohort_group_sliced_shape(). No axes: by layout. */
  Descs sliced_shape(const Descs &descs, size_t device, Span<int32_t> axes = {}) const {
    detail::check_length("axes", axes.size(), descs.num());
    return make<Descs>(cohort_group_sliced_shape, get(), descs.get(), device, axes.data());
  }
  /** The bound descriptors of COHORT_GROUP_DATA or _LABELS: cohort_group_descs(). */
  Descs descs(cohort_group_list list) const { return make<Descs>(cohort_group_descs, get(), list); }
  /** cohort_group_output_shapes(). */
  Descs output_shapes() const { return make<Descs>(cohort_group_output_shapes, get()); }
  /** The length of a list, a COHORT_GROUP_ constant: cohort_group_num_arrays(). */
  size_t num_arrays(cohort_group_list list) const { return query<size_t>(cohort_group_num_arrays, get(), list); }
  /** The name of an entry: cohort_group_name(). */
  std::string name(cohort_group_list list, size_t index) const {
    return query<const char *>(cohort_group_name, get(), list, index);
  }
  /** The names of a list. */
  std::vector<std::string> names(cohort_group_list list) const {
    std::vector<std::string> all(num_arrays(list));
    for (size_t i = 0; i < all.size(); ++i) all[i] = name(list, i);
    return all;
  }
  /** The batch axis of an entry, -1 if not batched: cohort_group_axis(). */
  int32_t axis(cohort_group_list list, size_t index) const {
    return query<int32_t>(cohort_group_axis, get(), list, index);
  }
  /** The live array of one device, empty for a parameter without gradient: cohort_group_array(). */
  NDArray array(cohort_group_list list, size_t index, size_t device) const {
    return make<NDArray>(cohort_group_array, get(), list, index, device);
  }
  /** A whole list on one device: cohort_group_arrays(). */
  Arrays arrays(cohort_group_list list, size_t device) const {
    return make<Arrays>(cohort_group_arrays, get(), list, device);
  }
  /** The live arrays of all devices. */
  std::vector<NDArray> device_arrays(cohort_group_list list, size_t index) const {
    std::vector<NDArray> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = array(list, index, device);
    return all;
  }
  /** One array for all devices, of COHORT_GROUP_OUTPUTS or _INPUT_GRADS: cohort_group_merged(). */
  NDArray merged(cohort_group_list list, size_t index) const {
    return make<NDArray>(cohort_group_merged, get(), list, index);
  }
  /** A merged output. */
  NDArray output(size_t index = 0) const { return merged(COHORT_GROUP_OUTPUTS, index); }
  /** The pool of input arrays of a device: cohort_group_shared_data(). */
  Arrays shared_data(size_t device) const { return make<Arrays>(cohort_group_shared_data, get(), device); }

  /** Copies parameters to every device: cohort_group_set_params(). */
  void set_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_extra = false) {
    check(cohort_group_set_params(get(), arg_params.get(), aux_params.get(), allow_extra));
  }
  /** The same of all parameters; returns those that were not given: cohort_group_assign_params(). */
  Descs assign_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_missing = false,
                      bool allow_extra = false) {
    return make<Descs>(cohort_group_assign_params, get(), arg_params.get(), aux_params.get(),
                       cohort_bool{allow_missing}, cohort_bool{allow_extra});
  }
  /** The mean over the devices into given arrays: cohort_group_get_params(). */
  void get_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) const {
    check(cohort_group_get_params(get(), arg_params.get(), aux_params.get()));
  }
  /** The same into new arrays on cpu(0): cohort_group_copy_params(). */
  Params copy_params() const {
    cohort_arrays *arg = nullptr, *aux = nullptr;
    check(cohort_group_copy_params(get(), &arg, &aux));
    Params copies;
    copies.arg.adopt(arg);
    copies.aux.adopt(aux);
    return copies;
  }

  /** Splits a batch over the devices: cohort_group_load(). No labels: they stay as they are. */
  void load(Span<NDArray> data, Span<NDArray> label = {}) {
    check(cohort_group_load(get(), detail::raw(data).data(), data.size(), c_labels(detail::raw(label)), label.size()));
  }
  /** Queues a forward pass over what is loaded: cohort_group_run(). nullopt: as the group was bound. */
  void run(std::optional<bool> is_train = std::nullopt) {
    check(cohort_group_run(get(), detail::c_is_train(is_train)));
  }
  /** Loads a batch and runs the forward pass: cohort_group_forward(). */
  void forward(Span<NDArray> data, Span<NDArray> label = {}, std::optional<bool> is_train = std::nullopt) {
    check(cohort_group_forward(get(), detail::raw(data).data(), data.size(), c_labels(detail::raw(label)), label.size(),
                               detail::c_is_train(is_train)));
  }
  /** The same with a batch that is split already, a list for each device: cohort_group_forward_presliced(). */
  void forward_presliced(Span<std::vector<NDArray>> data, Span<std::vector<NDArray>> label = {},
                         std::optional<bool> is_train = std::nullopt) {
    detail::check_length("label", label.size(), data.size());
    const std::vector<NDArray> all = detail::flatten("data", data), labels = detail::flatten("label", label);
    check(cohort_group_forward_presliced(get(), data.size(), detail::raw<NDArray>(all).data(),
                                         data.empty() ? 0 : data[0].size(), c_labels(detail::raw<NDArray>(labels)),
                                         label.empty() ? 0 : label[0].size(), detail::c_is_train(is_train)));
  }
  /** Queues a backward pass: cohort_group_backward(). Head gradients may be empty where an output needs none. */
  void backward(Span<NDArray> head_grads = {}) {
    check(cohort_group_backward(get(), detail::raw(head_grads).data(), head_grads.size()));
  }
  /** Updates every parameter that has a gradient: cohort_group_update(). */
  void update(Optimizer &optimizer, cohort_update_mode mode = COHORT_UPDATE_ON_STORE) {
    check(cohort_group_update(get(), optimizer.get(), mode));
  }
  /** cohort_group_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_group_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_group_set_loss_scale(). */
  void set_loss_scale(double scale, int32_t num_good = 0) {
    check(cohort_group_set_loss_scale(get(), scale, num_good));
  }
  /** cohort_group_random_state(). */
  std::string random_state() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_group_random_state(get(), out, capacity, bytes);
    });
  }
  /** cohort_group_set_random_state(). */
  void set_random_state(std::string_view state) {
    check(cohort_group_set_random_state(get(), state.data(), state.size()));
  }
  /** cohort_group_resume(). */
  void resume(Optimizer &optimizer) { check(cohort_group_resume(get(), optimizer.get())); }
  /** Updates a metric from whole labels: cohort_group_update_metric(). */
  void update_metric(Metric &metric, Span<NDArray> labels) {
    check(cohort_group_update_metric(get(), metric.get(), detail::raw(labels).data(), labels.size()));
  }
  /** The same from labels that are split already, a list for each device: cohort_group_update_metric_presliced(). */
  void update_metric_presliced(Metric &metric, Span<std::vector<NDArray>> labels) {
    const std::vector<NDArray> all = detail::flatten("labels", labels);
    check(cohort_group_update_metric_presliced(get(), metric.get(), labels.size(), detail::raw<NDArray>(all).data(),
                                               labels.empty() ? 0 : labels[0].size()));
  }
  /** Sets the states, for each of them a list of one array for each device: cohort_group_set_states(). */
  void set_states(Span<std::vector<NDArray>> states) {
    const std::vector<NDArray> all = detail::flatten("states", states);
    check(cohort_group_set_states(get(), detail::raw<NDArray>(all).data(), states.size(),
                                  states.empty() ? num_contexts() : states[0].size(), nullptr));
  }
  /** Fills all states with a value. */
  void set_states(double value) { check(cohort_group_set_states(get(), nullptr, 0, 0, &value)); }
  /** On every device, none if it is empty: cohort_group_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_group_set_monitor, monitor_, std::move(callback), monitor_all);
  }
  /** Waits for the work of all devices: cohort_group_wait(). */
  void wait() { check(cohort_group_wait(get())); }
  /** The memory that one device takes: cohort_group_memory(). */
  cohort_memory_info memory(size_t device) const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_group_memory(get(), device, &info));
    return info;
  }

 private:
  friend class Manager;
  // NULL where there are none: an empty vector may have an address.
  static cohort_ndarray *const *c_labels(const std::vector<cohort_ndarray *> &labels) {
    return labels.empty() ? nullptr : labels.data();
  }

  detail::Closures closures_, monitor_;
};

// ---- managers ---------------------------------------------------------------------------------------------------------

/** Gives the symbol of a bucket; throws to refuse the key. */
using BucketSymbolFunction = std::function<Symbol(const std::string &bucket_key)>;

/** Settings of a manager: cohort_manager_options, where each field is described. */
struct ManagerOptions {
  std::optional<std::vector<std::string>> param_names;  // nullopt: as for a group
  std::vector<double> workload;
  std::optional<std::string> default_bucket_key;
  std::map<std::string, Symbol> buckets;  // given ahead
  BucketSymbolFunction bucket_symbol;     // asked for the others
  int32_t num_threads = 0;
  uint64_t seed = 0;
  LogFunction log;
  std::vector<std::string> state_names;
  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  double loss_scale = 0;
  int32_t loss_scale_window = 0;
  bool backward_once = false;
  cohort_dtype gradient_sum_dtype = COHORT_DTYPE_FLOAT32;
  bool tf32 = false;
  bool recompute = false;
  bool keep_device_aux = false;
};

/** A bucket that has been made. */
struct Bucket {
  std::string key;
  Group group;
};

/** A group for each bucket of a network, on the parameters of the main one. */
class Manager : public Handle<cohort_manager, cohort_manager_free> {
 public:
  using Handle::Handle;
  Manager() noexcept = default;
  /** Makes a manager and binds its main group for training: cohort_manager_create(). */
  Manager(const Symbol &symbol, Span<Context> contexts, int64_t batch_size, const Descs &data,
          const Descs &label = Descs(nullptr), const ManagerOptions &options = {}) {
    const detail::CStrings param_names(options.param_names ? Span<std::string>(*options.param_names)
                                                           : Span<std::string>()),
        state_names(options.state_names), float32_names(options.float32_names), narrow_names(options.narrow_names);
    std::vector<const char *> keys;
    std::vector<cohort_symbol *> symbols;
    for (const auto &[key, bucket] : options.buckets) {
      keys.push_back(key.c_str());
      symbols.push_back(bucket.get());
    }
    cohort_manager_options c = COHORT_MANAGER_OPTIONS_INIT;
    c.workload = options.workload.empty() ? nullptr : options.workload.data();
    c.num_workloads = options.workload.size();
    c.default_bucket_key = options.default_bucket_key ? options.default_bucket_key->c_str() : nullptr;
    c.bucket_keys = keys.data();
    c.bucket_symbols = symbols.data();
    c.num_buckets = keys.size();
    c.bucket_symbol_user_data = detail::keep_closure(closures_, options.bucket_symbol);
    c.bucket_symbol = options.bucket_symbol ? call_bucket_symbol : nullptr;
    c.num_threads = options.num_threads;
    c.seed = options.seed;
    c.log_user_data = detail::keep_closure(closures_, options.log);
    c.log = options.log ? detail::call_log : nullptr;
    c.state_names = state_names.data();
    c.num_state_names = state_names.size();
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.loss_scale = options.loss_scale;
    c.loss_scale_window = options.loss_scale_window;
    c.backward_once = options.backward_once;
    c.gradient_sum_dtype = options.gradient_sum_dtype;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
    c.keep_device_aux = options.keep_device_aux;
    adopt(make<Handle>(cohort_manager_create, symbol.get(), detail::c_contexts(contexts).data(), contexts.size(),
                       batch_size, data.get(), label.get(), options.param_names ? param_names.data() : nullptr,
                       param_names.size(), &c)
              .release());
  }

  /** cohort_manager_num_contexts(). */
  size_t num_contexts() const { return query<size_t>(cohort_manager_num_contexts, get()); }
  /** The slice of a device: cohort_manager_slice(). */
  Slice slice(size_t device) const {
    Slice found;
    check(cohort_manager_slice(get(), device, &found.begin, &found.end));
    return found;
  }
  /** The slices of all devices. */
  std::vector<Slice> slices() const {
    std::vector<Slice> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = slice(device);
    return all;
  }
  /** How many buckets have been made: cohort_manager_num_buckets(). */
  size_t num_buckets() const { return query<size_t>(cohort_manager_num_buckets, get()); }
  /** A bucket that has been made, by place: cohort_manager_bucket(). */
  Bucket bucket(size_t index) const {
    const char *key = nullptr;
    cohort_group *group = nullptr;
    check(cohort_manager_bucket(get(), index, &key, &group));
    Bucket found;
    found.group = with_closures(Group(group));
    found.key = key;
    return found;
  }
  /** cohort_manager_main_group(). */
  Group main_group() const { return with_closures(make<Group>(cohort_manager_main_group, get())); }
  /** The group of the batch loaded last: cohort_manager_current_group(). */
  Group current_group() const { return with_closures(make<Group>(cohort_manager_current_group, get())); }

  /**
   * Makes the bucket of a batch current and splits the batch over the devices: cohort_manager_load_data_batch().
   *
   * @param bucket_key   nullopt: none, for a manager without bucket symbols.
   * @param data_descs   Needed if the bucket is new.
   */
  void load_data_batch(Span<NDArray> data, Span<NDArray> label = {},
                       const std::optional<std::string> &bucket_key = std::nullopt,
                       const Descs &data_descs = Descs(nullptr), const Descs &label_descs = Descs(nullptr)) {
    check(cohort_manager_load_data_batch(
        get(), detail::raw(data).data(), data.size(), Group::c_labels(detail::raw(label)), label.size(),
        bucket_key ? bucket_key->c_str() : nullptr, data_descs.get(), label_descs.get()));
  }
  /** A forward pass of the current group: cohort_manager_forward(). */
  void forward(std::optional<bool> is_train = std::nullopt) {
    check(cohort_manager_forward(get(), detail::c_is_train(is_train)));
  }
  /** cohort_manager_backward(). */
  void backward() { check(cohort_manager_backward(get())); }
  /** cohort_manager_update(). */
  void update(Optimizer &optimizer, cohort_update_mode mode = COHORT_UPDATE_ON_STORE) {
    check(cohort_manager_update(get(), optimizer.get(), mode));
  }
  /** cohort_manager_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_manager_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_manager_set_loss_scale(). */
  void set_loss_scale(double scale, int32_t num_good = 0) {
    check(cohort_manager_set_loss_scale(get(), scale, num_good));
  }
  /** cohort_manager_resume(). */
  void resume(Optimizer &optimizer) { check(cohort_manager_resume(get(), optimizer.get())); }
  /** cohort_manager_update_metric(). */
  void update_metric(Metric &metric, Span<NDArray> labels) {
    check(cohort_manager_update_metric(get(), metric.get(), detail::raw(labels).data(), labels.size()));
  }
  /** A list of labels for each device: cohort_manager_update_metric_presliced(). */
  void update_metric_presliced(Metric &metric, Span<std::vector<NDArray>> labels) {
    const std::vector<NDArray> all = detail::flatten("labels", labels);
    check(cohort_manager_update_metric_presliced(get(), metric.get(), labels.size(), detail::raw<NDArray>(all).data(),
                                                 labels.empty() ? 0 : labels[0].size()));
  }
  /** cohort_manager_num_arrays(). */
  size_t num_arrays(cohort_group_list list) const { return query<size_t>(cohort_manager_num_arrays, get(), list); }
  /** cohort_manager_name(). */
  std::string name(cohort_group_list list, size_t index) const {
    return query<const char *>(cohort_manager_name, get(), list, index);
  }
  /** The live array of one device: cohort_manager_array(). */
  NDArray array(cohort_group_list list, size_t index, size_t device) const {
    return make<NDArray>(cohort_manager_array, get(), list, index, device);
  }
  /** cohort_manager_arrays(). */
  Arrays arrays(cohort_group_list list, size_t device) const {
    return make<Arrays>(cohort_manager_arrays, get(), list, device);
  }
  /** cohort_manager_merged(). */
  NDArray merged(cohort_group_list list, size_t index) const {
    return make<NDArray>(cohort_manager_merged, get(), list, index);
  }
  /** A merged output of the current group. */
  NDArray output(size_t index = 0) const { return merged(COHORT_GROUP_OUTPUTS, index); }
  /** cohort_manager_set_params(). */
  void set_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) {
    check(cohort_manager_set_params(get(), arg_params.get(), aux_params.get()));
  }
  /** Returns the parameters that were not given: cohort_manager_assign_params(). */
  Descs assign_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_missing = false,
                      bool allow_extra = false) {
    return make<Descs>(cohort_manager_assign_params, get(), arg_params.get(), aux_params.get(),
                       cohort_bool{allow_missing}, cohort_bool{allow_extra});
  }
  /** The mean over the devices into given arrays: cohort_manager_copy_to(). */
  void copy_to(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) const {
    check(cohort_manager_copy_to(get(), arg_params.get(), aux_params.get()));
  }
  /** For each state a list of one array for each device: cohort_manager_set_states(). */
  void set_states(Span<std::vector<NDArray>> states) {
    const std::vector<NDArray> all = detail::flatten("states", states);
    check(cohort_manager_set_states(get(), detail::raw<NDArray>(all).data(), states.size(),
                                    states.empty() ? num_contexts() : states[0].size(), nullptr));
  }
  /** Fills all states with a value. */
  void set_states(double value) { check(cohort_manager_set_states(get(), nullptr, 0, 0, &value)); }
  /** cohort_manager_memory(). */
  cohort_memory_info memory() const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_manager_memory(get(), &info));
    return info;
  }
  /** On the main group: cohort_manager_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_manager_set_monitor, monitor_, std::move(callback), monitor_all);
  }

 private:
  static int32_t call_bucket_symbol(const char *bucket_key, cohort_symbol **out_symbol, void *user_data) {
    const bool done = detail::run_closure<BucketSymbolFunction>(
        user_data, [&](BucketSymbolFunction &function) { *out_symbol = function(bucket_key).release(); });
    return done ? 0 : 1;
  }
  Group with_closures(Group group) const {
    group.closures_ = closures_;
    group.monitor_ = monitor_;
    return group;
  }

  detail::Closures closures_, monitor_;
};

// ---- monitors ---------------------------------------------------------------------------------------------------------

/** Computes what a monitor reports of an array: one array or more. */
using StatisticFunction = std::function<std::vector<NDArray>(const NDArray &array)>;
/** Says whether a monitor is to report an array. */
using NameFilterFunction = std::function<bool(const std::string &name)>;

/** Settings of a monitor: cohort_monitor_options, where each field is described. */
struct MonitorOptions {
  std::string pattern;
  cohort_pattern_mode pattern_mode = COHORT_PATTERN_ANCHORED;
  bool all_in_toc = false;
  bool sort = false;
  bool monitor_all = false;
  StatisticFunction statistic;
  NameFilterFunction filter;
  bool stop_if_not_finite = false;
};

/** An entry of a report. */
struct MonitorEntry {
  int64_t step = 0;
  std::string name, text;
  std::vector<NDArray> values;
};

/** Statistics of the arrays of executors, groups and managers while they run. */
class Monitor : public Handle<cohort_monitor, cohort_monitor_free> {
 public:
  using Handle::Handle;
  Monitor() noexcept = default;
  /** cohort_monitor_create(). */
  explicit Monitor(int64_t interval, const MonitorOptions &options = {}) {
    cohort_monitor_options c = COHORT_MONITOR_OPTIONS_INIT;
    c.pattern = options.pattern.c_str();
    c.pattern_mode = options.pattern_mode;
    c.all_in_toc = options.all_in_toc;
    c.sort = options.sort;
    c.stop_if_not_finite = options.stop_if_not_finite;
    c.monitor_all = options.monitor_all;
    c.statistic_user_data = detail::keep_closure(closures_, options.statistic);
    c.statistic = options.statistic ? call_statistic : nullptr;
    c.filter_user_data = detail::keep_closure(closures_, options.filter);
    c.filter = options.filter ? call_filter : nullptr;
    adopt(make<Handle>(cohort_monitor_create, interval, &c).release());
  }

  /** cohort_monitor_install_on_executor(). */
  void install(Executor &executor) { check(cohort_monitor_install_on_executor(get(), executor.get())); }
  /** cohort_monitor_install_on_group(). */
  void install(Group &group) { check(cohort_monitor_install_on_group(get(), group.get())); }
  /** cohort_monitor_install_on_manager(). */
  void install(Manager &manager) { check(cohort_monitor_install_on_manager(get(), manager.get())); }
  /** Begins a batch: cohort_monitor_tic(). */
  void tic() { check(cohort_monitor_tic(get())); }
  /** Ends a batch and returns its entries: cohort_monitor_toc(), cohort_monitor_entry(), cohort_monitor_values(). */
  std::vector<MonitorEntry> toc() {
    std::vector<MonitorEntry> entries(query<size_t>(cohort_monitor_toc, get()));
    for (size_t i = 0; i < entries.size(); ++i) {
      const char *name = nullptr, *text = nullptr;
      check(cohort_monitor_entry(get(), i, &entries[i].step, &name, &text));
      entries[i].name = name;
      entries[i].text = text;
      entries[i].values = make<Arrays>(cohort_monitor_values, get(), i).list();
    }
    return entries;
  }
  /** How many batches were begun: cohort_monitor_step(). */
  int64_t step() const { return query<int64_t>(cohort_monitor_step, get()); }

 private:
  static int32_t call_statistic(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
    const bool done = detail::run_closure<StatisticFunction>(user_data, [&](StatisticFunction &function) {
      for (const NDArray &value : function(NDArray::share(array)))
        check(cohort_arrays_add(values, nullptr, value.get()));
    });
    return done ? 0 : 1;
  }
  static int32_t call_filter(const char *name, void *user_data) {
    bool wanted = false;
    const bool done = detail::run_closure<NameFilterFunction>(
        user_data, [&](NameFilterFunction &function) { wanted = function(name); });
    return done ? int32_t{wanted} : -1;
  }

  detail::Closures closures_;
};

// ---- traces -----------------------------------------------------------------------------------------------------------

/** Settings of a trace: cohort_trace_options. */
struct TraceOptions {
  size_t max_events = 0;
  double flop_per_s = 0;
  double bfloat16_flop_per_s = 0;
  double byte_per_s = 0;
};

/** A row of totals: cohort_trace_total(). */
struct SpanTotal {
  std::string name, op;
  cohort_span_total total;
};

/** A record of the steps that the process runs, and of the time they take. */
class Trace : public Handle<cohort_trace, cohort_trace_free> {
 public:
  using Handle::Handle;
  /** One that does not run yet: cohort_trace_create(). */
  explicit Trace(const TraceOptions &options = {}) {
    cohort_trace_options c = COHORT_TRACE_OPTIONS_INIT;
    c.max_events = options.max_events;
    c.flop_per_s = options.flop_per_s;
    c.bfloat16_flop_per_s = options.bfloat16_flop_per_s;
    c.byte_per_s = options.byte_per_s;
    adopt(make<Handle>(cohort_trace_create, &c).release());
  }

  /** cohort_trace_start(). */
  void start() { check(cohort_trace_start(get())); }
  /** cohort_trace_stop(). */
  void stop() { check(cohort_trace_stop(get())); }
  /** cohort_trace_clear(). */
  void clear() { check(cohort_trace_clear(get())); }
  /** cohort_trace_get_info(). */
  cohort_trace_info info() const {
    cohort_trace_info found = COHORT_TRACE_INFO_INIT;
    check(cohort_trace_get_info(get(), &found));
    return found;
  }
  /** The events in Chrome's format: cohort_trace_json(). */
  std::string json() { return query<const char *>(cohort_trace_json, get()); }
  /** The same to a file: cohort_trace_write(). */
  void write(const std::string &path) const { check(cohort_trace_write(get(), path.c_str())); }
  /** Totals, those that took longest first: cohort_trace_num_totals(), cohort_trace_total(). */
  std::vector<SpanTotal> totals(cohort_totals_by by = COHORT_TOTALS_BY_NAME) {
    std::vector<SpanTotal> rows(query<size_t>(cohort_trace_num_totals, get(), by));
    for (size_t i = 0; i < rows.size(); ++i) {
      const char *name = nullptr, *op = nullptr;
      rows[i].total = COHORT_SPAN_TOTAL_INIT;
      check(cohort_trace_total(get(), by, i, &name, &op, &rows[i].total));
      rows[i].name = name;
      rows[i].op = op;
    }
    return rows;
  }
  /** The totals as a table: cohort_trace_table(). */
  std::string table(cohort_totals_by by = COHORT_TOTALS_BY_NAME) {
    return query<const char *>(cohort_trace_table, get(), by);
  }
  /** Begins a span of the caller's own on a row: cohort_trace_begin(). */
  void begin(const std::string &row, const std::string &name) {
    check(cohort_trace_begin(get(), row.c_str(), name.c_str()));
  }
  /** cohort_trace_end(). */
  void end(const std::string &row) { check(cohort_trace_end(get(), row.c_str())); }
  /** Marks a moment: cohort_trace_mark(). */
  void mark(const std::string &row, const std::string &name) {
    check(cohort_trace_mark(get(), row.c_str(), name.c_str()));
  }
  /** Notes the value of a counter: cohort_trace_counter(). */
  void counter(const std::string &name, double value) { check(cohort_trace_counter(get(), name.c_str(), value)); }
};

// ---- operators of the caller's ----------------------------------------------------------------------------------------

/** The names of what a node of a custom operator has; no outputs: one, "output". */
struct CustomNames {
  std::vector<std::string> inputs, aux, outputs;
};

/** Shapes or dtypes that inference finds; no inputs: as they are known. */
struct CustomDescs {
  std::vector<Desc> inputs, aux, outputs;
};

/** One pass of a node. The arrays are the library's working memory and must not be kept. */
struct CustomPass {
  void *state = nullptr;  // what `create` made for this node
  std::vector<NDArray> inputs, aux, outputs;
  std::vector<NDArray> head_grads, gradients;  // of backward: read, and to be written; an empty gradient is not wanted
  bool is_train = false;                       // of forward
};

/** An operator of the caller's: cohort_custom_op, where each callback is described. */
struct CustomOperator {
  std::function<CustomNames(const Attrs &attrs)> declare;
  /** Empty: all inputs and outputs have one shape, or dtype. */
  std::function<CustomDescs(const Attrs &attrs, const std::vector<Desc> &known)> infer_shape, infer_dtype;
  /** Makes the state of a bound node, which lives as long as that. Empty: no state. */
  std::function<std::shared_ptr<void>(const Attrs &attrs, const Context &context)> create;
  std::function<void(CustomPass &pass)> forward;
  std::function<void(CustomPass &pass)> backward;  // empty: nothing flows back
  bool ignores_head_grads = false;
  bool any_thread = false;  // what forward and backward throw is lost then: the pass fails with an Error
};

namespace detail {

struct CustomCalls {
  static CustomOperator &op(void *user_data) { return *static_cast<CustomOperator *>(user_data); }
  static Attrs attrs(const char *const *keys, const char *const *values, size_t num) {
    Attrs found;
    for (size_t i = 0; i < num; ++i) found.emplace_back(keys[i], values[i]);
    return found;
  }
  static void add_names(cohort_descs *list, const std::vector<std::string> &names) {
    for (const std::string &name : names)
      check(cohort_descs_add(list, name.c_str(), nullptr, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, nullptr));
  }
  static void add_descs(cohort_descs *list, const std::vector<Desc> &descs) {
    Lent<Descs> view(list);
    for (const Desc &desc : descs) view.owner.add(desc);
  }
  static std::vector<NDArray> arrays(const cohort_arrays *lent) { return Lent<Arrays>(lent).owner.list(); }

  static int32_t declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                         cohort_descs *aux, cohort_descs *outputs, void *user_data) {
    return !run_callback([&] {
      const CustomNames names = op(user_data).declare(attrs(keys, values, num_attrs));
      add_names(inputs, names.inputs);
      add_names(aux, names.aux);
      add_names(outputs, names.outputs);
      return true;
    });
  }
  template <auto member>
  static int32_t infer(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_descs *known,
                       cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
    return !run_callback([&] {
      Lent<Descs> view(known);
      const CustomDescs found = (op(user_data).*member)(attrs(keys, values, num_attrs), view.owner.list());
      add_descs(inputs, found.inputs);
      add_descs(aux, found.aux);
      add_descs(outputs, found.outputs);
      return true;
    });
  }
  static int32_t create(const char *const *keys, const char *const *values, size_t num_attrs,
                        const cohort_context *context, void **out_state, void *user_data) {
    return !run_callback([&] {
      auto state = std::make_unique<std::shared_ptr<void>>(
          op(user_data).create(attrs(keys, values, num_attrs), Context(*context)));
      *out_state = state.release();
      return true;
    });
  }
  // An exception kept for a thread of the library's own would never be thrown again.
  template <typename Code>
  static int32_t run(void *user_data, const Code &code) {
    const bool done = run_callback([&] {
      code();
      return true;
    });
    if (op(user_data).any_thread) pending_exception() = nullptr;
    return !done;
  }
  static void *unwrap(void *state) { return state ? static_cast<std::shared_ptr<void> *>(state)->get() : nullptr; }
  static int32_t forward(void *state, const cohort_arrays *inputs, const cohort_arrays *aux,
                         const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
    return run(user_data, [&] {
      CustomPass pass;
      pass.state = unwrap(state);
      pass.inputs = arrays(inputs);
      pass.aux = arrays(aux);
      pass.outputs = arrays(outputs);
      pass.is_train = is_train != 0;
      op(user_data).forward(pass);
    });
  }
  static int32_t backward(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                          const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                          void *user_data) {
    return run(user_data, [&] {
      CustomPass pass;
      pass.state = unwrap(state);
      pass.head_grads = arrays(head_grads);
      pass.inputs = arrays(inputs);
      pass.aux = arrays(aux);
      pass.outputs = arrays(outputs);
      pass.gradients = arrays(gradients);
      op(user_data).backward(pass);
    });
  }
  static void release(void *state, void *) {
    const std::unique_ptr<std::shared_ptr<void>> last_owner(static_cast<std::shared_ptr<void> *>(state));
  }
  static void ended(void *user_data) {
    const std::unique_ptr<CustomOperator> last_owner(static_cast<CustomOperator *>(user_data));
  }
};

}  // namespace detail

/** Registers an operator of the caller's for the whole process: cohort_custom_register(). */
inline void register_custom(const std::string &op_type, CustomOperator custom) {
  auto owner = std::make_unique<CustomOperator>(std::move(custom));
  cohort_custom_op c = COHORT_CUSTOM_OP_INIT;
  c.declare = owner->declare ? detail::CustomCalls::declare : nullptr;
  c.infer_shape = owner->infer_shape ? detail::CustomCalls::infer<&CustomOperator::infer_shape> : nullptr;
  c.infer_dtype = owner->infer_dtype ? detail::CustomCalls::infer<&CustomOperator::infer_dtype> : nullptr;
  c.create = owner->create ? detail::CustomCalls::create : nullptr;
  c.forward = owner->forward ? detail::CustomCalls::forward : nullptr;
  c.backward = owner->backward ? detail::CustomCalls::backward : nullptr;
  c.release = owner->create ? detail::CustomCalls::release : nullptr;
  c.ended = detail::CustomCalls::ended;
  c.user_data = owner.get();
  c.ignores_head_grads = owner->ignores_head_grads;
  c.any_thread = owner->any_thread;
  check(cohort_custom_register(op_type.c_str(), &c));
  owner.release();  // the library's, until nothing has a node of it
}

/** Ends the name; nodes that there are stay: cohort_custom_unregister(). */
inline void unregister_custom(const std::string &op_type) { check(cohort_custom_unregister(op_type.c_str())); }

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_COHORT_HPP */
