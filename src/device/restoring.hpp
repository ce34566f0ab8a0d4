// SPDX-License-Identifier: Apache-2.0
// What a backward pass has overwritten is made again where that pass is repeated; or what was not kept for it.
#pragma once

#include "device/kernel.hpp"

namespace cohort {

// A kernel of a forward step that backward steps follow.
class RestoringKernel : public Kernel {
 public:
  // Makes output 0 of the latest run() again, bit for bit, of input 0, which is as it was then, and of what is saved;
  // other inputs may have changed, and no other output is written.
  virtual void restore(const Args &args, const Lane &lane) const = 0;
};

// The same as a step.
class Restorer final : public Kernel {
 public:
  explicit Restorer(const RestoringKernel *of) : of_(*of) {}
  void run(const Args &args, const Lane &lane) const override { of_.restore(args, lane); }

 private:
  const RestoringKernel &of_;
};

}  // namespace cohort
