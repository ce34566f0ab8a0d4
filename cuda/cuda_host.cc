// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_host.hpp"

namespace cohort {
namespace {

const HostServices *given = nullptr;

}  // namespace

const HostServices &host_services() { return *given; }

}  // namespace cohort

extern "C" __attribute__((visibility("default"))) void cohort_backend_host(const cohort::HostServices *services) {
  cohort::given = services;
}
