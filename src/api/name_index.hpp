// SPDX-License-Identifier: Apache-2.0
// Finds names in the list of a handle. A long list gets an index when it is first searched.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.hpp"

namespace cohort::api {

class NameIndex {
 public:
  NameIndex() = default;
  NameIndex(NameIndex &&) noexcept {}  // a list that moves to a handle has not been searched yet
  NameIndex &operator=(NameIndex &&) = delete;

  // The only i below `count` for which name(i) is `wanted`; `count` if there is none. kName if there is more than one.
  // From call to call, names may only be added at the end of the list.
  template <typename Name>
  size_t look_up(size_t count, const Name &name, const std::string &wanted, const char *where) {
    size_t found = count;
    const auto check = [&](size_t i) {
      if (name(i) != wanted) return;
      if (found < count) throw Error(Code::kName, text("'", wanted, "' occurs more than once in ", where), wanted);
      found = i;
    };
    if (count <= kShort) {
      for (size_t i = 0; i < count; ++i) check(i);
      return found;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::hash<std::string> hash;
    for (; num_known_ < count; ++num_known_) places_.emplace(hash(name(num_known_)), num_known_);
    const size_t wanted_hash = hash(wanted);
    for (auto at = places_.find(wanted_hash); at != places_.end() && at->first == wanted_hash; ++at) check(at->second);
    return found;
  }
  // The same; kName if there is none.
  template <typename Name>
  size_t find(size_t count, const Name &name, const std::string &wanted, const char *where) {
    const size_t found = look_up(count, name, wanted, where);
    if (found == count) throw Error(Code::kName, text("'", wanted, "' is not in ", where), wanted);
    return found;
  }

 private:
  static constexpr size_t kShort = 32;

  std::mutex mutex_;                                // guards the rest: several threads may search one list
  std::unordered_multimap<size_t, size_t> places_;  // by hash
  size_t num_known_ = 0;
};

}  // namespace cohort::api
