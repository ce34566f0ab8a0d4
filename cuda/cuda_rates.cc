// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_rates.hpp"

#include <cuda_runtime.h>

namespace cohort {
namespace {

// Operations per clock of one multiprocessor; a multiply-add counts as two. Products of 16-bit floats and of TF32 are
// summed in float32.
struct Units {
  int capability;
  double flops, tf32_flops, narrow_flops;
};
constexpr Units kUnits[] = {
    {80, 128, 1024, 2048}, {86, 256, 256, 512}, {89, 256, 512, 1024}, {90, 256, 2048, 4096}, {100, 256, 4096, 8192}};

// 0: the driver does not say.
double attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, what, device) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

}  // namespace

MachineRates cuda_rates(int device) noexcept {
  MachineRates rates;
  const double two_a_clock = 2, hertz = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);  // the attribute is in kHz
  rates.bytes_per_s = two_a_clock * hertz * attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  const int capability = int(10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                             attribute(cudaDevAttrComputeCapabilityMinor, device));
  const double clocks =
      1e3 * attribute(cudaDevAttrClockRate, device) * attribute(cudaDevAttrMultiProcessorCount, device);
  for (const Units &units : kUnits) {
    if (units.capability != capability) continue;
    rates.flops_per_s = units.flops * clocks;
    rates.narrow_flops_per_s = units.narrow_flops * clocks;
    rates.tf32_flops_per_s = units.tf32_flops * clocks;
  }
  return rates;
}

}  // namespace cohort
