// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression, for detections and proposals: each remaining box suppresses the later boxes that overlap it.
// Works on one panel of boxes at a time: one block per sample decides which boxes of the panel remain; then one thread
// per later box tests whether any of those suppresses it. Only the panel is read twice, and only the result is stored.
#pragma once

#include "device/kernel.hpp"
#include "kernels/sorted_boxes.hpp"

namespace cohort {

// Sets `remains` for the first counts[n] of `most` boxes of each of `samples`. A box suppresses another if their
// intersection over union is at least `least`; `extra`, 0 or 1, is added to lengths. Stops when `wanted` boxes of a
// sample remain; the flags after them are undefined then. `found` has room for one number per sample.
void suppress(const Lane &lane, const SortedBoxes<float> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, float extra, float least, int64_t *found);
void suppress(const Lane &lane, const SortedBoxes<double> &boxes, int64_t samples, int64_t most, const int64_t *counts,
              int64_t wanted, double extra, double least, int64_t *found);

}  // namespace cohort
