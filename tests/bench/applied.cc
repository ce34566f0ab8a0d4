// SPDX-License-Identifier: Apache-2.0
#include "applied.hpp"

#include "measured.hpp"

namespace bench {

AppliedChain::AppliedChain() {
  std::vector<float> values(32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i) / 16 - 1;
  start_ = NDArray::from_host(values, {32});
}

// By the C function, so that nothing else is measured.
void AppliedChain::apply(const char *op, const char *scalar) {
  static const char *const key = "scalar";
  cohort_ndarray *const input = at_ ? at_.get() : start_.get();
  const auto outputs = make<Arrays>(cohort_operator_invoke, op, &key, &scalar, scalar ? size_t(1) : size_t(0), &input,
                                    size_t(1), nullptr, size_t(0), nullptr);
  at_ = outputs.array(0);
}

void AppliedChain::step() {
  at_ = NDArray();
  for (int i = 0; i < kOperators; i += 2) {
    apply("_plus_scalar", "0.01");
    apply("relu", nullptr);
  }
  at_.wait();
}

std::string AppliedChain::check() {
  step();
  const std::vector<float> values = at_.read<float>();
  return format("{\"first\": %.6g, \"last\": %.6g}", double(values.front()), double(values.back()));
}

AppliedSum::AppliedSum() : a_(size_t(kElements), 1.0f), b_(size_t(kElements), 2.0f), c_(size_t(kElements)) {
  left_ = NDArray::from_host(a_, {kElements});
  right_ = NDArray::from_host(b_, {kElements});
  sum_ = NDArray::from_host(c_, {kElements});
}

void AppliedSum::step() {
  cohort_ndarray *const inputs[] = {left_.get(), right_.get()}, *const output = sum_.get();
  cohort::check(cohort_operator_invoke("elemwise_add", nullptr, nullptr, 0, inputs, 2, &output, 1, nullptr, nullptr));
  sum_.wait();
}

void AppliedSum::step_by_hand() {
  const float *const a = a_.data(), *const b = b_.data();
  float *const c = c_.data();
  for (int64_t i = 0; i < kElements; ++i) c[i] = a[i] + b[i];
}

}  // namespace bench
