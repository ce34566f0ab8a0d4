// SPDX-License-Identifier: Apache-2.0
// Recomputes a forward output that a backward pass has overwritten, or that was not kept, for use in a later pass.
#pragma once

#include "device/kernel.hpp"

namespace cohort {

// A forward kernel, followed by backward steps, whose output can be recomputed.
class RestoringKernel : public Kernel {
 public:
  // Recomputes output 0 of the latest run(), bit for bit, from input 0, which must be unchanged, and the saved block.
  // Other inputs may have changed; other outputs are not written.
  virtual void restore(const Args &args, const Lane &lane) const = 0;
};

// Runs restore() as a step of its own.
class Restorer final : public Kernel {
 public:
  explicit Restorer(const RestoringKernel *of) : of_(*of) {}
  void run(const Args &args, const Lane &lane) const override { of_.restore(args, lane); }

 private:
  const RestoringKernel &of_;
};

}  // namespace cohort
