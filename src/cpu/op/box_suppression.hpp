// SPDX-License-Identifier: Apache-2.0
// Which boxes remain where each suppresses those after it that overlap it: for detections and proposals.
#pragma once

#include "kernels/sorted_boxes.hpp"

namespace cohort {

// Sets `remains`. Boxes suppress each other from a shared part of both together of `least` on; `extra`, 0 or 1, is
// counted to lengths. Ends when `wanted` boxes are found to remain: those after them have no meaning then.
void suppress(const SortedBoxes<float> &boxes, int64_t count, int64_t wanted, float extra, float least);
void suppress(const SortedBoxes<double> &boxes, int64_t count, int64_t wanted, double extra, double least);

}  // namespace cohort
