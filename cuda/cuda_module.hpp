// SPDX-License-Identifier: Apache-2.0
// Machine code that was made while the program runs, on one device.
#pragma once

#include <cuda.h>

#include <string>

#include "cuda/cuda_launch.hpp"

namespace cohort {

class CudaModule {
 public:
  explicit CudaModule(int device, const std::string &code);  // throws kDevice where the driver does not take it
  ~CudaModule();                                             // nothing that is queued uses it any more
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  CUfunction find(const char *kernel) const;  // throws kDevice
  // A kernel of one argument. The device is current.
  template <typename T>
  static void launch(CUfunction kernel, const Grid &grid, void *stream, T argument) {
    void *arguments[] = {&argument};
    launch_with(kernel, grid, stream, arguments);
  }

 private:
  static void launch_with(CUfunction kernel, const Grid &grid, void *stream, void **arguments);
  const int device_;
  CUmodule module_ = nullptr;
};

}  // namespace cohort
