// SPDX-License-Identifier: Apache-2.0
// W5 in buckets: a manager over sentences of several lengths, a batch of each in turn.
#include <algorithm>
#include <cstdlib>

#include "lstm_symbol.hpp"
#include "measured.hpp"

namespace bench {
namespace {

class MeasuredBuckets final : public Measured {
 public:
  explicit MeasuredBuckets(const Options &options) : options_(options) {
    const Workload &workload = *options.workload;
    for (const int64_t length : kBuckets) {
      Bucket bucket;
      bucket.key = std::to_string(length);
      bucket.batch = make_batch(workload, options.batch, length);
      bucket.data = NDArray::from_host(bucket.batch.data, bucket.batch.data_shape);
      bucket.label = NDArray::from_host(bucket.batch.label, bucket.batch.label_shape);
      bucket.data_descs = one_desc("data", bucket.batch.data_shape);
      bucket.label_descs = one_desc(workload.label_name(), bucket.batch.label_shape);
      buckets_.push_back(std::move(bucket));
    }
    const Bucket &largest = buckets_.back();
    const Symbol symbol = unrolled_lstm(workload.sample[0]);
    ManagerOptions set;
    set.param_names = param_names(symbol, workload);
    set.default_bucket_key = largest.key;
    set.bucket_symbol = [](const std::string &key) { return unrolled_lstm(std::atoi(key.c_str())); };
    set.num_threads = options.threads_of_context();
    set.compute_dtype = options.compute_dtype;
    set.tf32 = options.tf32;
    set.recompute = options.recompute;
    manager_ = Manager(symbol, contexts_of(options), options.batch, largest.data_descs, largest.label_descs, set);
    manager_.set_params(first_values(workload, manager_.arrays(COHORT_GROUP_PARAMS, 0)));
    if (options.train) optimizer_ = make_optimizer(options);
  }

  void step() override {
    const Bucket &bucket = buckets_[at_];
    at_ = (at_ + 1) % buckets_.size();
    manager_.load_data_batch({&bucket.data, 1}, {&bucket.label, 1}, bucket.key, bucket.data_descs, bucket.label_descs);
    manager_.forward(options_.train);
    if (!options_.train) return manager_.output().wait();
    manager_.backward();
    manager_.update(optimizer_);
  }

  void wait() override { manager_.current_group().wait(); }

  std::string check() override {
    if (!options_.train) {
      step();
      at_ = 0;
      return output_text(manager_.output().read<float>());
    }
    double losses[3];
    for (double &value : losses) {
      const Bucket &bucket = buckets_[at_];
      step();
      value = loss_of(*options_.workload, manager_.output().read<float>(), bucket.batch.label);
    }
    at_ = 0;
    return losses_text(losses);
  }

  std::string memory() const override { return memory_text(manager_.memory()); }

 private:
  struct Bucket {
    std::string key;
    Batch batch;
    NDArray data, label;
    Descs data_descs, label_descs;
  };

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
