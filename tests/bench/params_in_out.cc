// SPDX-License-Identifier: Apache-2.0
#include "params_in_out.hpp"

namespace bench {

GroupParams::GroupParams(const Options &options) {
  const Workload &workload = *options.workload;
  const Symbol symbol = load_graph(options);
  const Batch batch = make_batch(workload, options.batch);
  const Descs data = one_desc("data", batch.data_shape), label = one_desc(workload.label_name(), batch.label_shape);
  const std::vector<cohort_context> contexts = contexts_of(options);
  cohort_group_options set = COHORT_GROUP_OPTIONS_INIT;
  set.num_threads = options.threads_of_context();
  group_ = make<Group>(cohort_group_create, symbol.get(), contexts.data(), contexts.size(), data.get(), label.get(),
                       nullptr, size_t(0), 1, &set);
  const auto bound = [this](int32_t list) { return make<Arrays>(cohort_group_arrays, group_.get(), list, size_t(0)); };
  args_ = first_values(workload, bound(COHORT_GROUP_PARAMS));
  aux_ = first_values(workload, bound(COHORT_GROUP_AUX));
  ok(cohort_group_set_params(group_.get(), args_.get(), aux_.get(), 0));
}

void GroupParams::get() { ok(cohort_group_get_params(group_.get(), args_.get(), aux_.get())); }

void GroupParams::set() { ok(cohort_group_set_params(group_.get(), args_.get(), aux_.get(), 0)); }

void GroupParams::wait() { ok(cohort_wait_all()); }

double GroupParams::megabytes() const {
  double bytes = 0;
  for (const Arrays *list : {&args_, &aux_}) {
    size_t num = 0;
    ok(cohort_arrays_num(list->get(), &num));
    for (size_t i = 0; i < num; ++i) {
      size_t one = 0;
      ok(cohort_ndarray_bytes(make<Array>(cohort_arrays_get, list->get(), i).get(), &one));
      bytes += double(one);
    }
  }
  return bytes / double(1 << 20);
}

}  // namespace bench
