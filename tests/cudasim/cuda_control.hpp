// SPDX-License-Identifier: Apache-2.0
// For tests that link the library's objects: finds the functions of cudasim.h in the simulated backend, and makes the
// library load that one, with four GPUs. Call CONTROL before the first use of a device.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "cudasim.h"
#include "device/device.hpp"

inline std::string own_path() {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  return std::string(program, size_t(length));
}

// Whether a test passes in a process of its own, started with `setting` (NAME=value) in its environment.
inline bool passes_again_with(const std::string &setting, const std::string &test) {
  return std::system((setting + " '" + own_path() + "' " + test + " >/dev/null").c_str()) == 0;
}

template <typename Function>
Function *find_control(const char *name) {
  const std::string path = own_path();
  const std::string folder = path.substr(0, path.rfind("/tests/")) + "/cudasim";
  setenv(cohort::kBackendPath.name, folder.c_str(), 1);
  setenv("CUDASIM_DEVICES", "4", 1);
  void *const library = dlopen((folder + "/libcohort_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return reinterpret_cast<Function *>(dlsym(library, name));
}
#define CONTROL(name) find_control<decltype(name)>(#name)

// Waits until finished work has released what it held, which happens a while after it has ended: an allocation that
// finds no memory waits for that before it fails.
inline void wait_until_released() {
  try {
    cohort::get_device({cohort::DeviceType::kGpu, 0})->allocate(size_t(1) << 50);
  } catch (const cohort::Error &error) {
    if (error.code() != cohort::Code::kOutOfMemory) throw;
  }
}

// Whether `use` leaves none of the counts higher. Caches hold as much as was ever in use at once, so a count may rise
// between two calls, but not at each of 20.
template <typename Use, typename... Counts>
bool leaves_nothing(const Use &use, const Counts &...counts) {
  const auto now = [&] {
    wait_until_released();
    return std::array<size_t, sizeof...(counts)>{size_t(counts())...};
  };
  auto before = now();
  for (int times = 0; times < 20; ++times) {
    use();
    const auto after = now();
    if (std::equal(after.begin(), after.end(), before.begin(), std::less_equal<size_t>())) return true;
    before = after;
  }
  return false;
}
