// SPDX-License-Identifier: Apache-2.0
// W10: the parameters of a group, out of its devices into arrays of the host and back. For cohort_bench.
#pragma once

#include "measured.hpp"

namespace bench {

class GroupParams {
 public:
  explicit GroupParams(const Options &options);
  void get();   // the mean over the devices
  void set();   // into every device
  void wait();  // until all of it has been done
  double megabytes() const;

 private:
  Group group_;
  Arrays args_, aux_;
};

}  // namespace bench
