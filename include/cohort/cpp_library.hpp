/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_library.hpp
 * Contexts, dtypes, what the library tells of itself, and its messages. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_LIBRARY_HPP
#define COHORT_CPP_LIBRARY_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/cpp_base.hpp"

namespace cohort {
inline namespace abi0 {

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

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_LIBRARY_HPP */
