// SPDX-License-Identifier: Apache-2.0
// Which boxes remain where each suppresses those after it that overlap it: for detections and proposals. A panel of
// boxes at a time: a block for each sample finds out who of the panel remains; then threads for all that lie behind it
// look who of those suppresses them. Nothing is read twice but the panel, and nothing kept but who remains.
#pragma once

#include "device/kernel.hpp"
#include "kernels/sorted_boxes.hpp"

namespace cohort {

// Sets `remains` of the first counts[n] of `most` boxes of each of `samples`. Boxes suppress each other from a shared
// part of both together of `least` on; `extra`, 0 or 1, is counted to lengths. Ends when `wanted` boxes of a sample are
// found to remain: those after them have no meaning then. `found` has room for a number for each sample.
void suppress(const Lane &lane, const SortedBoxes<float> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, float extra, float least, int64_t *found);
void suppress(const Lane &lane, const SortedBoxes<double> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, double extra, double least, int64_t *found);

}  // namespace cohort
