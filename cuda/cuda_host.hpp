// SPDX-License-Identifier: Apache-2.0
// The library that has loaded this backend.
#pragma once

#include "device/host_services.hpp"

namespace cohort {

const HostServices &host_services();  // there before there is a device

}  // namespace cohort
