// SPDX-License-Identifier: Apache-2.0
// Machine code that was compiled at run time, loaded on one device.
#pragma once

#include <cuda.h>

#include <string>

#include "cuda/cuda_launch.hpp"

namespace cohort {

class CudaModule {
 public:
  explicit CudaModule(int device, const std::string &code);  // throws kDevice if the driver refuses it
  ~CudaModule();                                             // no queued work may use it any more
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  // One of its kernels; must be destroyed before the module.
  class Function {
   public:
    Function(const CudaModule &module, const char *kernel);  // throws kDevice
    // Launches with one argument. The device must be current.
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
