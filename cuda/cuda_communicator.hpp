// SPDX-License-Identifier: Apache-2.0
// Sums over GPUs by NCCL, on a stream of each that has nothing else in it. Every device goes through the sums of all
// who share it in one order, that in which they were asked for: so none waits for another one in a circle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/communicator.hpp"

namespace cohort {

// The one there is for these devices, as long as somebody has it and it is not broken. Null, and why, without NCCL.
std::shared_ptr<Communicator> make_cuda_communicator(const std::vector<Context> &contexts, std::string *why);

}  // namespace cohort
