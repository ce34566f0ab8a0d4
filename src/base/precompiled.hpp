// SPDX-License-Identifier: Apache-2.0
// The standard headers that most files include, which the Makefile compiles once for each set of flags and includes
// before all else. No file relies on it: each includes what it uses. There is no #pragma once, which warns in a file
// that is compiled.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
