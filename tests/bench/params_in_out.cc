// SPDX-License-Identifier: Apache-2.0
#include "params_in_out.hpp"

namespace bench {

GroupParams::GroupParams(const Options &options) {
  const Workload &workload = *options.workload;
  const Symbol symbol = load_graph(options);
  const Batch batch = make_batch(workload, options.batch);
  const Descs data = one_desc("data", batch.data_shape), label = one_desc(workload.label_name(), batch.label_shape);
  GroupOptions set;
  set.num_threads = options.threads_of_context();
  group_ = Group(symbol, contexts_of(options), data, label, true, set);
  args_ = first_values(workload, group_.arrays(COHORT_GROUP_PARAMS, 0));
  aux_ = first_values(workload, group_.arrays(COHORT_GROUP_AUX, 0));
  group_.set_params(args_, aux_);
}

void GroupParams::get() { group_.get_params(args_, aux_); }

void GroupParams::set() { group_.set_params(args_, aux_); }

void GroupParams::wait() { wait_all(); }

double GroupParams::megabytes() const {
  double bytes = 0;
  for (const Arrays *list : {&args_, &aux_})
    for (const NDArray &array : list->list()) bytes += double(array.bytes());
  return bytes / double(1 << 20);
}

}  // namespace bench
