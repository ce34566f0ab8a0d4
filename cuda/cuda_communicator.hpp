// SPDX-License-Identifier: Apache-2.0
// Sums over GPUs by NCCL, on one stream per device that carries nothing else. All sums that involve a device are queued
// on it in the order of the calls, so devices cannot wait for each other in a circle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/communicator.hpp"

namespace cohort {

// The shared communicator of these devices; a new one if there is none or if it is broken. Null without NCCL; then
// *why gives the reason.
std::shared_ptr<Communicator> make_cuda_communicator(const std::vector<Context> &contexts, std::string *why);

}  // namespace cohort
