// SPDX-License-Identifier: Apache-2.0
// W5 in buckets: a manager over sentences of several lengths, a batch of each in turn.
#include <algorithm>
#include <cstdlib>

#include "lstm_symbol.hpp"
#include "measured.hpp"

namespace bench {
namespace {

using Manager = Handle<cohort_manager, cohort_manager_free>;

int32_t symbol_of_bucket(const char *key, cohort_symbol **out_symbol, void *) {
  try {
    *out_symbol = unrolled_lstm(std::atoi(key)).release();
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}

class MeasuredBuckets final : public Measured {
 public:
  explicit MeasuredBuckets(const Options &options) : options_(options) {
    const Workload &workload = *options.workload;
    for (const int64_t length : kBuckets) {
      Bucket bucket;
      bucket.key = std::to_string(length);
      bucket.batch = make_batch(workload, options.batch, length);
      bucket.data = array_of(bucket.batch.data, bucket.batch.data_shape);
      bucket.label = array_of(bucket.batch.label, bucket.batch.label_shape);
      bucket.data_descs = one_desc("data", bucket.batch.data_shape);
      bucket.label_descs = one_desc(workload.label_name(), bucket.batch.label_shape);
      buckets_.push_back(std::move(bucket));
    }
    const Bucket &largest = buckets_.back();
    const Symbol symbol = unrolled_lstm(workload.sample[0]);
    const std::vector<std::string> names = param_names(symbol.get(), workload);
    std::vector<const char *> params;
    for (const std::string &name : names) params.push_back(name.c_str());
    const std::vector<cohort_context> contexts = contexts_of(options);
    cohort_manager_options set = COHORT_MANAGER_OPTIONS_INIT;
    set.default_bucket_key = largest.key.c_str();
    set.bucket_symbol = symbol_of_bucket;
    set.num_threads = options.threads_of_context();
    set.compute_dtype = options.compute_dtype;
    set.tf32 = options.tf32;
    set.recompute = options.recompute;
    manager_ = make<Manager>(cohort_manager_create, symbol.get(), contexts.data(), contexts.size(), options.batch,
                             largest.data_descs.get(), largest.label_descs.get(), params.data(), params.size(), &set);
    const Arrays bound = make<Arrays>(cohort_manager_arrays, manager_.get(), int32_t(COHORT_GROUP_PARAMS), size_t(0));
    const Arrays aux = make<Arrays>(cohort_arrays_create);
    ok(cohort_manager_set_params(manager_.get(), first_values(workload, bound).get(), aux.get()));
    if (options.train) optimizer_ = make_optimizer(options);
  }

  void step() override {
    const Bucket &bucket = buckets_[at_];
    at_ = (at_ + 1) % buckets_.size();
    cohort_ndarray *const data = bucket.data.get(), *const label = bucket.label.get();
    ok(cohort_manager_load_data_batch(manager_.get(), &data, 1, &label, 1, bucket.key.c_str(), bucket.data_descs.get(),
                                      bucket.label_descs.get()));
    ok(cohort_manager_forward(manager_.get(), options_.train));
    if (!options_.train) return ok(cohort_ndarray_wait(output().get()));
    ok(cohort_manager_backward(manager_.get()));
    ok(cohort_manager_update(manager_.get(), optimizer_.get(), COHORT_UPDATE_ON_STORE));
  }

  void wait() override {
    const Group group = make<Group>(cohort_manager_current_group, manager_.get());
    ok(cohort_group_wait(group.get()));
  }

  std::string check() override {
    if (!options_.train) {
      step();
      at_ = 0;
      return output_text(read(output().get()));
    }
    double losses[3];
    for (double &value : losses) {
      const Bucket &bucket = buckets_[at_];
      step();
      value = loss_of(*options_.workload, read(output().get()), bucket.batch.label);
    }
    at_ = 0;
    return losses_text(losses);
  }

  std::string memory() const override {
    cohort_memory_info all = COHORT_MEMORY_INFO_INIT;
    ok(cohort_manager_memory(manager_.get(), &all));
    return memory_text(all);
  }

 private:
  struct Bucket {
    std::string key;
    Batch batch;
    Array data, label;
    Descs data_descs, label_descs;
  };

  Array output() const {
    return make<Array>(cohort_manager_merged, manager_.get(), int32_t(COHORT_GROUP_OUTPUTS), size_t(0));
  }

  const Options options_;
  std::vector<Bucket> buckets_;
  Manager manager_;
  Optimizer optimizer_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Measured> make_measured_buckets(const Options &options) {
  return std::make_unique<MeasuredBuckets>(options);
}

}  // namespace bench
