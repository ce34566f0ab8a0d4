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

  // One of its kernels, which goes before it does.
  class Function {
   public:
    Function(const CudaModule &module, const char *kernel);  // throws kDevice
    // With one argument. The device is current.
    template <typename T>
    void launch(const Grid &grid, void *stream, T argument) const {
      void *arguments[] = {&argument};
      use_code(&used_, [&] { launch_with(grid, stream, arguments); });
    }

   private:
    void launch_with(const Grid &grid, void *stream, void **arguments) const;
    CUfunction function_ = nullptr;
    mutable std::atomic<bool> used_{false};
  };

 private:
  const int device_;
  CUmodule module_ = nullptr;
};

}  // namespace cohort
