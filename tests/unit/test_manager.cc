// SPDX-License-Identifier: Apache-2.0
// Buckets over one set of parameters (contract MGR-01..13).
#include "group/manager.hpp"

#include "base/error.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

// Sums a sequence of any length to one number, then one layer: its parameters do not depend on the length.
Symbol network(const std::string &) {
  const Symbol total =
      Symbol::create("sum", {{"axis", "1"}, {"keepdims", "1"}}, "total", {}, {Symbol::variable("data")});
  const Symbol fc = Symbol::create("FullyConnected", {{"num_hidden", "3"}}, "fc", {}, {total});
  return Symbol::create("SoftmaxOutput", {}, "softmax", {}, {fc});
}

DataDescs data_of(int64_t batch, int64_t length) { return {{"data", Shape{batch, length}}}; }
DataDescs label_of(int64_t batch) { return {{"softmax_label", Shape{batch}}}; }

ManagerOptions options_for(bool buckets, int *num_calls = nullptr) {
  ManagerOptions options;
  options.contexts = {{DeviceType::kCpu, 0}, {DeviceType::kCpu, 1}};
  options.param_names = {"fc_weight", "fc_bias"};
  options.batch_size = 5;
  options.num_threads = 1;
  options.log = [](LogLevel, const std::string &) {};
  options.default_bucket_key = "8";
  if (buckets) {
    options.generator = [num_calls](const std::string &key) {
      if (num_calls) ++*num_calls;
      if (key == "bad") throw Error(Code::kInvalidArgument, "no such bucket");
      return network(key);
    };
  }
  return options;
}

ManagerBatch batch_of(const std::string &key, int64_t length, int64_t size = 5) {
  ManagerBatch batch;
  batch.data = {NDArray::create(Shape{size, length}, Dtype::kFloat32, Context())};
  batch.data[0].fill(0.5);
  batch.labels = {NDArray::create(Shape{size}, Dtype::kFloat32, Context())};
  batch.bucket_key = key;
  batch.data_descs = data_of(size, length);
  batch.label_descs = label_of(size);
  return batch;
}

}  // namespace

TEST(buckets_are_made_once_and_share_parameters) {
  int num_calls = 0;
  Manager manager(network(""), data_of(5, 8), label_of(5), options_for(true, &num_calls));
  CHECK(manager.slices() == (std::vector<BatchSlice>{{0, 2}, {2, 5}}));
  for (const char *key : {"8", "3", "8", "3"}) {
    manager.load(batch_of(key, key[0] - '0'));
    manager.forward(1);
    manager.backward();
  }
  CHECK_EQ(num_calls, 1);
  CHECK_EQ(manager.buckets().size(), size_t(2));
  CHECK(manager.current() != manager.main());
  CHECK(
      manager.current()->array(GroupList::kParams, 0, 1).same_memory(manager.main()->array(GroupList::kParams, 0, 1)));
}

TEST(an_update_in_one_bucket_is_seen_in_all) {
  Manager manager(network(""), data_of(5, 8), label_of(5), options_for(true));
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "0.5"}, {"momentum", "0.9"}});
  manager.load(batch_of("3", 3));
  manager.forward(1);
  manager.backward();
  manager.update(optimizer, UpdateMode::kOnStore);
  NamedArrays found;
  for (const char *name : {"fc_weight", "fc_bias"}) {
    const size_t index = name == std::string("fc_bias");
    found.emplace_back(
        name, NDArray::create(manager.main()->array(GroupList::kParams, index, 0).shape(), Dtype::kFloat32, Context()));
  }
  manager.copy_to(found, nullptr);
  // All labels are class 0 and all predictions equal: the bias moves by lr * 5 * (1 - 1/3).
  CHECK_NEAR(double(found[1].second.data_as<float>()[0]), 0.5 * 5 * (2.0 / 3), 1e-5);
}

TEST(nothing_runs_before_a_batch_is_loaded) {
  Manager manager(network(""), data_of(5, 8), label_of(5), options_for(true));
  CHECK_THROWS(manager.forward(0), Error, "no batch has been loaded");
  CHECK_THROWS(manager.backward(), Error, "no batch has been loaded");
}

TEST(a_batch_that_does_not_fit_makes_no_bucket) {
  int num_calls = 0;
  Manager manager(network(""), data_of(5, 8), label_of(5), options_for(true, &num_calls));
  CHECK_THROWS(manager.load(batch_of("3", 3, 6)), Error, "expected 5 samples");
  ManagerBatch bare = batch_of("3", 3);
  bare.data_descs.clear();
  CHECK_THROWS(manager.load(bare), Error, "bucket '3' is new");
  ManagerBatch nameless = batch_of("3", 3);
  nameless.bucket_key.reset();
  CHECK_THROWS(manager.load(nameless), Error, "a bucket key");
  CHECK_EQ(num_calls, 0);
  CHECK_THROWS(manager.load(batch_of("bad", 3)), Error, "no such bucket");
  CHECK_EQ(manager.buckets().size(), size_t(1));
  CHECK_THROWS(manager.current(), Error, "no batch has been loaded");
}

TEST(one_network_reads_no_keys) {
  Manager manager(network(""), data_of(5, 8), label_of(5), options_for(false));
  ManagerBatch batch = batch_of("whatever", 8);
  manager.load(batch);
  CHECK(manager.current() == manager.main());
  manager.set_monitor([](const std::string &, const NDArray &) {}, false);
  Manager with_buckets(network(""), data_of(5, 8), label_of(5), options_for(true));
  CHECK_THROWS(with_buckets.set_monitor(nullptr, false), Error, "not supported");
}

TEST(workloads_are_checked_first) {
  ManagerOptions options = options_for(false);
  options.workload = {1};
  CHECK_THROWS(Manager(network(""), data_of(5, 8), label_of(5), options), Error, "each of 2 contexts");
  options.workload = {1e-9, 1};
  CHECK_THROWS(Manager(network(""), data_of(5, 8), label_of(5), options), Error, "empty split");
}

UNIT_MAIN()
