// SPDX-License-Identifier: Apache-2.0
// Suppression of overlapping boxes, for detections and proposals.
#pragma once

#include "kernels/sorted_boxes.hpp"

namespace cohort {

// Sets `remains`. A box suppresses those behind it whose intersection over union with it is at least `least`;
// `extra`, 0 or 1, is added to lengths. Stops when `wanted` boxes remain: the flags behind them are then undefined.
void suppress(const SortedBoxes<float> &boxes, int64_t count, int64_t wanted, float extra, float least);
void suppress(const SortedBoxes<double> &boxes, int64_t count, int64_t wanted, double extra, double least);

}  // namespace cohort
