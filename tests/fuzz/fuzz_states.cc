// SPDX-License-Identifier: Apache-2.0
// States of optimizers, in which the kind is the first part: loaded, used by an update, and saved again.
#include "fuzz.hpp"

namespace {

constexpr const char *kKinds[] = {"sgd", "adam", "nadam"};

cohort_optimizer *make(const char *kind) {
  const char *const momentum = "momentum", *const value = "0.9";
  cohort_optimizer *optimizer = nullptr;
  must(cohort_optimizer_create(kind, &momentum, &value, std::strcmp(kind, "sgd") == 0, &optimizer));
  return optimizer;
}

bool update(cohort_optimizer *optimizer) {
  const float numbers[] = {1, 2, 3};
  const int64_t shape[] = {3};
  cohort_ndarray *weight = nullptr, *grad = nullptr;
  must(cohort_ndarray_from_host(numbers, sizeof numbers, shape, 1, COHORT_DTYPE_FLOAT32, nullptr, &weight));
  must(cohort_ndarray_from_host(numbers, sizeof numbers, shape, 1, COHORT_DTYPE_FLOAT32, nullptr, &grad));
  const bool done = good(cohort_optimizer_update(optimizer, "weight", 0, weight, grad));
  cohort_ndarray_free(weight);
  cohort_ndarray_free(grad);
  return done;
}

std::vector<char> saved(const cohort_optimizer *optimizer) {
  size_t bytes = 0;
  must(cohort_optimizer_save_states_memory(optimizer, nullptr, 0, &bytes));
  std::vector<char> states(bytes);
  must(cohort_optimizer_save_states_memory(optimizer, states.data(), states.size(), &bytes));
  return states;
}

}  // namespace

// fuzz_states --write-seeds FOLDER: what the optimizers save after an update.
extern "C" int LLVMFuzzerInitialize(int *num_args, char ***args) {
  if (*num_args != 3 || std::strcmp((*args)[1], "--write-seeds") != 0) return 0;
  for (const char *const kind : kKinds) {
    cohort_optimizer *const optimizer = make(kind);
    update(optimizer);
    const std::vector<char> states = saved(optimizer);
    FILE *const file = std::fopen((std::string((*args)[2]) + "/" + kind).c_str(), "wb");
    if (!file || std::fwrite(states.data(), 1, states.size(), file) != states.size()) found("seeds", "not written");
    std::fclose(file);
    cohort_optimizer_free(optimizer);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (const char *const kind : kKinds) {
    cohort_optimizer *const optimizer = make(kind);
    if (good(cohort_optimizer_load_states_memory(optimizer, data, size))) {
      update(optimizer);
      const std::vector<char> states = saved(optimizer);
      must(cohort_optimizer_load_states_memory(optimizer, states.data(), states.size()));
      if (saved(optimizer) != states) found("saved and loaded again", "other bytes");
    }
    cohort_optimizer_free(optimizer);
  }
  expect_no_handles();
  return 0;
}
