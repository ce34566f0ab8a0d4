// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "op/op.hpp"

namespace cohort {

struct ImageDecodeAttrs {
  std::string filename;  // for _cvimread
  int32_t flag = 1;      // 0: one channel, grey; 1: three channels
  bool to_rgb = true;    // false: blue comes first
};

}  // namespace cohort
