// SPDX-License-Identifier: Apache-2.0
// Reducers without an update: every sum is delivered once, bit by bit that of the devices in their order, to each
// consumer. Buckets, which must be the same in all processes.
#include "group/reducer.hpp"

#include "group/group.hpp"
#include "group/shared_memory_reducer.hpp"
#include "group/staged_reducer.hpp"
#include "support/exchange_devices.hpp"

using namespace cohort;

namespace {

// Records the sums.
class Collector final : public SumConsumer {
 public:
  explicit Collector(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {
    for (int64_t size : kSizes) {
      sums_.emplace_back(size_t(size), 0.0f);
      times_.emplace_back(size_t(size), 0);
    }
  }
  void before_sums(const ExchangeDevices &devices) override { num_before_ += int(devices.size()); }
  void after_sums(const ExchangeDevices &devices) override { num_after_ += int(devices.size()); }
  void consume(size_t, size_t bucket, size_t index, const void *sum, const Lane &) override {
    const Piece &piece = (*pieces_)[bucket][index];
    for (int64_t i = 0; i < piece.count; ++i) {
      sums_[size_t(piece.param)][size_t(piece.begin + i)] = static_cast<const float *>(sum)[i];
      ++times_[size_t(piece.param)][size_t(piece.begin + i)];
    }
  }
  Program steps(size_t) override { return {nullptr, 0, WorkSize::kParallel}; }  // the workers here are threads
  void fail(size_t, const char *) noexcept override { ++num_failed_; }

  void check(size_t num_devices, int step, int times) const {
    for (size_t p = 0; p < sums_.size(); ++p) {
      for (int64_t i = 0; i < kSizes[p]; ++i) {
        CHECK_EQ(sums_[p][size_t(i)], sum_of(p, num_devices, i, step));
        CHECK_EQ(times_[p][size_t(i)], times);
      }
    }
    CHECK_EQ(num_before_, times * int(num_devices));
    CHECK_EQ(num_after_, times * int(num_devices));
    CHECK_EQ(int(num_failed_), 0);
  }
  int num_failed() const { return num_failed_; }

 private:
  const std::shared_ptr<const Pieces> pieces_;
  std::vector<std::vector<float>> sums_;
  std::vector<std::vector<int>> times_;
  int num_before_ = 0, num_after_ = 0;
  std::atomic<int> num_failed_{0};
};

std::unique_ptr<GradientReducer> make_reducer(const Devices &devices, const GradientBuckets &buckets) {
  bool on_host = true;
  for (const ExchangeDevice &device : devices.devices) on_host = on_host && device.context.on_host();
  if (on_host) return std::make_unique<SharedMemoryReducer>(devices.params, buckets, devices.devices);
  return std::make_unique<StagedReducer>(devices.params, buckets, devices.devices);
}

constexpr DevicesOptions kKinds[] = {{2, 0, false}, {3, 0, false}, {2, 1, false}, {2, 3, false}, {3, 2, true}};

}  // namespace

TEST(each_sum_is_given_once_whoever_wants_it) {
  for (const DevicesOptions &kind : kKinds) {
    Devices devices(kind);
    const GradientBuckets buckets = choose_buckets(devices.params, int(devices.params.size()), 60000);
    const std::unique_ptr<GradientReducer> reducer = make_reducer(devices, buckets);
    const auto collector = std::make_shared<Collector>(reducer->pieces());
    for (int step = 0; step < 6; ++step) {
      devices.backward(*reducer, buckets.ends, step);
      reducer->reduce(collector);
    }
    devices.sync();
    collector->check(kind.num_devices, 5, 6);
    for (size_t p = 0; p < devices.params.size(); ++p) {
      for (size_t d = 0; d < kind.num_devices; ++d)
        CHECK_EQ(devices.params[p].grads[d].data_as<float>()[0], gradient_value(p, d, 0, 5));
    }
  }
}

TEST(all_reduced_gradients_are_the_sums_on_every_device) {
  for (const DevicesOptions &kind : kKinds) {
    Devices devices(kind);
    const GradientBuckets buckets = choose_buckets(devices.params, int(devices.params.size()), 1);
    const std::unique_ptr<GradientReducer> reducer = make_reducer(devices, buckets);
    const auto collector = std::make_shared<Collector>(reducer->pieces());
    devices.backward(*reducer, buckets.ends, 3);
    reducer->all_reduce(collector);
    devices.sync();
    collector->check(kind.num_devices, 3, 1);
    for (size_t p = 0; p < devices.params.size(); ++p) {
      for (size_t d = 0; d < kind.num_devices; ++d) {
        for (int64_t i = 0; i < kSizes[p]; ++i)
          CHECK_EQ(devices.params[p].grads[d].data_as<float>()[i], sum_of(p, kind.num_devices, i, 3));
      }
    }
  }
}

TEST(a_consumer_is_told_of_every_device_that_gets_no_sums) {
  for (const DevicesOptions &kind : kKinds) {
    Devices devices(kind);
    const GradientBuckets buckets = choose_buckets(devices.params, int(devices.params.size()), 1);
    const std::unique_ptr<GradientReducer> reducer = make_reducer(devices, buckets);
    const auto collector = std::make_shared<Collector>(reducer->pieces());
    devices.params[0].grads[1].fail("planted");
    reducer->reduce(collector);
    int num_errors = 0;
    const auto count_errors = [&](const std::function<void()> &wait) {
      try {
        wait();
      } catch (const Error &error) {
        CHECK_EQ(error.subject(), std::string(kExchangeLabel));
        ++num_errors;
      }
    };
    for (const auto &queue : devices.queues) queue->finish();
    for (const auto &queue : devices.queues) count_errors([&] { queue->sync(); });
    count_errors([&] { reducer->wait(); });
    CHECK(num_errors > 0);
    CHECK_EQ(collector->num_failed(), int(kind.num_devices));
    reducer->wait();
  }
}

// ---- buckets --------------------------------------------------------------------------------------------------------

namespace {

struct Given {
  const char *name;
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  int position = -1;  // -1: that of the list
};

GradientBuckets buckets_of(const std::vector<Given> &list, size_t bucket_bytes, size_t num_devices = 1) {
  ExchangeParams params;
  for (size_t p = 0; p < list.size(); ++p) {
    ExchangeParam param;
    param.name = list[p].name;
    param.position = list[p].position < 0 ? int(p) : list[p].position;
    for (size_t d = 0; d < num_devices; ++d) {
      param.weights.push_back(NDArray::create(list[p].shape, list[p].dtype, Context()));
      param.grads.push_back(NDArray::create(list[p].shape, list[p].dtype, Context()));
    }
    params.push_back(param);
  }
  return choose_buckets(params, params.empty() ? 0 : params.back().position + 1, bucket_bytes);
}

Symbol mlp(int hidden) {
  const Symbol data = Symbol::variable("data");
  const Symbol fc1 = Symbol::create("FullyConnected", {{"num_hidden", std::to_string(hidden)}}, "fc1", {}, {data});
  const Symbol fc2 = Symbol::create("FullyConnected", {{"num_hidden", "3"}}, "fc2", {}, {fc1});
  return Symbol::create("SoftmaxOutput", {}, "softmax", {}, {fc2});
}

uint64_t hash_of_group(int hidden, size_t num_devices, int64_t batch, const std::vector<std::string> &fixed = {}) {
  GroupOptions options;
  for (size_t d = 0; d < num_devices; ++d) options.contexts.push_back({DeviceType::kCpu, int32_t(d)});
  options.param_names = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};
  options.fixed_param_names = fixed;
  options.num_threads = 1;
  return Group::create(mlp(hidden), {{"data", Shape{batch, 5}}}, {{"softmax_label", Shape{batch}}}, options)
      ->exchange_hash();
}

}  // namespace

TEST(buckets_end_where_their_bytes_are_reached) {
  const std::vector<Given> list = {{"a", {100}}, {"b", {100}}, {"c", {100}}, {"d", {100}}, {"e", {100}}};
  CHECK(buckets_of(list, 800).ends == (std::vector<int>{2, 4, 5}));
  CHECK(buckets_of(list, 801).param_ends == (std::vector<int>{3, 5}));
  CHECK(buckets_of(list, 0).ends == (std::vector<int>{5}));
  // Other arguments may lie between parameters.
  const std::vector<Given> spaced = {
      {"a", {100}, Dtype::kFloat32, 1}, {"b", {100}, Dtype::kFloat32, 2}, {"c", {100}, Dtype::kFloat32, 5}};
  CHECK(buckets_of(spaced, 1).ends == (std::vector<int>{2, 3, 6}));
  CHECK(buckets_of(spaced, 1).param_ends == (std::vector<int>{1, 2, 3}));
  // A large model in buckets of an eighth each, on any machine.
  const std::vector<Given> large(16, {"w", {65536}});
  CHECK_EQ(buckets_of(large, 0).ends.size(), size_t(8));
}

TEST(the_hash_of_buckets_is_that_of_what_processes_must_agree_on) {
  const std::vector<Given> list = {{"w", {4, 6}}, {"b", {6}}};
  const uint64_t hash = buckets_of(list, 1).hash;
  CHECK_EQ(buckets_of(list, 1, /* num_devices */ 3).hash, hash);
  // Gradients of other arguments in between do not count.
  CHECK_EQ(buckets_of({{"w", {4, 6}, Dtype::kFloat32, 2}, {"b", {6}, Dtype::kFloat32, 5}}, 1).hash, hash);
  CHECK_EQ(hash, uint64_t(12896827745722536676u));  // on every machine
  CHECK(buckets_of({{"b", {6}}, {"w", {4, 6}}}, 1).hash != hash);
  CHECK(buckets_of({{"v", {4, 6}}, {"b", {6}}}, 1).hash != hash);
  CHECK(buckets_of({{"wb", {4, 6}}, {"", {6}}}, 1).hash != hash);
  CHECK(buckets_of({{"w", {6, 4}}, {"b", {6}}}, 1).hash != hash);
  CHECK(buckets_of({{"w", {24}}, {"b", {6}}}, 1).hash != hash);
  CHECK(buckets_of({{"w", {4, 6}, Dtype::kInt32}, {"b", {6}}}, 1).hash != hash);
  CHECK(buckets_of(list, 1 << 20).hash != hash);
  CHECK(buckets_of({{"w", {4, 6}}}, 1).hash != hash);
}

TEST(groups_of_one_network_have_one_hash_on_whatever_devices) {
  const uint64_t hash = hash_of_group(7, 1, 4);
  CHECK_EQ(hash_of_group(7, 1, 4), hash);
  CHECK_EQ(hash_of_group(7, 3, 12), hash);
  CHECK(hash_of_group(8, 1, 4) != hash);
  CHECK(hash_of_group(7, 1, 4, {"fc1_bias"}) != hash);
}

// s(x(data)) + y(data), with s on the same context or another: in the latter case y's gradient is computed while x's
// waits for that of s.
TEST(the_hash_of_buckets_is_that_of_the_network_alone) {
  const auto layer = [](const char *name, const Symbol &input, AttrMap attrs) {
    attrs["num_hidden"] = "64";
    return Symbol::create("FullyConnected", attrs, name, {}, {input});
  };
  const auto hash_of = [&](const std::vector<std::map<std::string, Context>> &group2ctx) {
    const Symbol data = Symbol::variable("data"), y = layer("y", data, {}), x = layer("x", data, {});
    const Symbol sum = Symbol::create("elemwise_add", {}, "sum", {}, {y, layer("s", x, {{"__ctx_group__", "far"}})});
    GroupOptions options;
    options.contexts = {{DeviceType::kCpu, 0}};
    options.group2ctx = group2ctx;
    options.all_params = true;
    const Symbol loss = Symbol::create("LinearRegressionOutput", {}, "loss", {}, {sum});
    const DataDescs labels = {{"loss_label", Shape{64, 64}}};
    return Group::create(loss, {{"data", Shape{64, 64}}}, labels, options)->exchange_hash();
  };
  CHECK_EQ(hash_of({{{"far", {DeviceType::kCpu, 1}}}}), hash_of({}));
}

UNIT_MAIN()
