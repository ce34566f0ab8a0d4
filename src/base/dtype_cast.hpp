// SPDX-License-Identifier: Apache-2.0
// cast_element of dtype.hpp: float to integer truncates toward zero, to bool is "not zero", 16-bit floats go through
// float.
#pragma once

#include <type_traits>

#include "base/dtype.hpp"

namespace cohort {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <typename U, typename T>
COHORT_HOST_DEVICE inline U cast_element(T value) {
  if constexpr (std::is_same_v<U, T>) {
    return value;
  } else if constexpr (kIsHalf<T>) {
    return cast_element<U>(float(value));
  } else if constexpr (kIsHalf<U>) {
    return U(float(value));
  } else if constexpr (std::is_same_v<U, bool>) {
    return value != T(0);
  } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U>) {
    // The contract leaves NaN and values out of range unspecified, but they must not be undefined behaviour: convert
    // through int64 where the value fits, else use INT64_MIN, as x86 does.
    const double wide = double(value);
    const bool fits = wide >= -9223372036854775808.0 && wide < 9223372036854775808.0;
    return U(fits ? int64_t(wide) : INT64_MIN);
  } else {
    return U(value);
  }
}

// Converts a label, an index or a length to an integer, truncating. Values outside int64 become the nearest int64 and
// NaN becomes INT64_MIN, so that range checks on the result reject them.
template <typename T>
COHORT_HOST_DEVICE inline int64_t to_index(T value) {
  if constexpr (kIsHalf<T>) {
    return to_index(float(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    const double wide = double(value);
    if (!(wide >= -9223372036854775808.0)) return INT64_MIN;
    return wide < 9223372036854775808.0 ? int64_t(wide) : INT64_MAX;
  } else {
    return int64_t(value);
  }
}

}  // namespace cohort
