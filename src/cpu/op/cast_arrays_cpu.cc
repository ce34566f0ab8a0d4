// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/cpu_backend.hpp"

namespace cohort {

void widen(const Lane &, const void *from, Dtype dtype, float *to, int64_t count) {
  load_block(dtype, Dtype::kFloat32)(from, 0, to, count);
}
void widen(const Lane &, const void *from, Dtype dtype, double *to, int64_t count) {
  load_block(dtype, Dtype::kFloat64)(from, 0, to, count);
}
void narrow(const Lane &, const float *from, void *to, Dtype dtype, int64_t count) {
  store_block(Dtype::kFloat32, dtype)(from, to, 0, count);
}
void narrow(const Lane &, const double *from, void *to, Dtype dtype, int64_t count) {
  store_block(Dtype::kFloat64, dtype)(from, to, 0, count);
}

}  // namespace cohort
