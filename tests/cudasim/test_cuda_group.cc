// SPDX-License-Identifier: Apache-2.0
// Groups over GPUs on the simulated runtime: they train like groups over processors, sum by collective calls while
// backward runs if possible, and name a lost device.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "cuda_control.hpp"
#include "device/recording.hpp"
#include "executor/invoke.hpp"
#include "group/group.hpp"
#include "op/pointwise.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const auto seed_anew = CONTROL(cudasim_seed);  // before the first use of a device
// By default all devices reach every sum, so the time limit can be long.
const int patience = setenv(kSumTimeout.name, "100", 1);
// Sets a short time limit for groups made while it exists, for tests in which a device does not reach a sum.
struct Impatience {
  Impatience() { change("5"); }
  ~Impatience() { change("100"); }
  static void change(const char *seconds) {
    wait_until_released();  // releases communicators of earlier groups
    setenv(kSumTimeout.name, seconds, 1);
  }
};
const auto num_collectives = CONTROL(cudasim_num_collectives);
const auto reports = CONTROL(cudasim_reports);

constexpr int64_t kInputs = 6, kHidden = 20, kClasses = 4, kBatch = 12;
constexpr uint64_t kNumParams = 4;

std::vector<Context> gpus(const std::vector<int> &ids) {
  std::vector<Context> contexts;
  for (int id : ids) contexts.push_back({DeviceType::kGpu, id});
  return contexts;
}

std::vector<Context> cpus(size_t num) {
  std::vector<Context> contexts;
  for (size_t d = 0; d < num; ++d) contexts.push_back({DeviceType::kCpu, int32_t(d)});
  return contexts;
}

void set_weights(Group &group) {
  NamedArrays params;
  for (size_t i = 0; i < group.num_arrays(GroupList::kParams); ++i) {
    const NDArray array = NDArray::create(group.array(GroupList::kParams, i, 0).shape(), Dtype::kFloat32, Context());
    array.fill_uniform(-0.5, 0.5, 7 + i);
    params.emplace_back(group.name(GroupList::kParams, i), array);
  }
  group.set_params(params, nullptr, false);
}

std::shared_ptr<Group> group_on(const std::vector<Context> &contexts) {
  GroupOptions options;
  options.contexts = contexts;
  options.param_names = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};
  options.num_threads = 1;
  options.gradient_bucket_bytes = 1;  // one bucket per layer
  const auto layer = [](const char *name, int64_t units, const Symbol &input) {
    return Symbol::create("FullyConnected", {{"num_hidden", std::to_string(units)}}, name, {}, {input});
  };
  const Symbol hidden = Symbol::create("Activation", {{"act_type", "tanh"}}, "act", {},
                                       {layer("fc1", kHidden, Symbol::variable("data"))});
  const Symbol net = Symbol::create("SoftmaxOutput", {}, "softmax", {}, {layer("fc2", kClasses, hidden)});
  const auto group =
      Group::create(net, {{"data", Shape{kBatch, kInputs}}}, {{"softmax_label", Shape{kBatch}}}, options);
  set_weights(*group);
  return group;
}

struct Batch {
  NDArray data = NDArray::create(Shape{kBatch, kInputs}, Dtype::kFloat32, Context());
  NDArray label = NDArray::create(Shape{kBatch}, Dtype::kFloat32, Context());
  explicit Batch(uint64_t seed) {
    data.fill_uniform(-1, 1, seed);
    for (int64_t i = 0; i < kBatch; ++i) label.data_as<float>()[i] = float((i + int64_t(seed)) % kClasses);
  }
};

std::shared_ptr<Optimizer> sgd() {
  return Optimizer::create("sgd", {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {"rescale_grad", "0.1"}});
}

void pass(Group &group, uint64_t seed) {
  const Batch batch(seed);
  group.forward({batch.data}, {batch.label}, 1);
  group.backward({});
}

void train(Group &group, const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode, int num_steps = 4) {
  for (int step = 0; step < num_steps; ++step) {
    pass(group, uint64_t(step));
    group.update(optimizer, mode);
  }
}

std::vector<float> values_of(const NDArray &array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  array.read(values.data(), values.size() * sizeof(float));
  return values;
}

// The values of all parameters on all devices.
std::vector<float> weights_of(const Group &group) {
  std::vector<float> all;
  for (size_t d = 0; d < group.num_devices(); ++d) {
    for (size_t i = 0; i < kNumParams; ++i) {
      const std::vector<float> values = values_of(group.array(GroupList::kParams, i, d));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

std::vector<float> trained_on(const std::vector<Context> &contexts, UpdateMode mode) {
  const auto group = group_on(contexts);
  train(*group, sgd(), mode);
  group->wait();
  return weights_of(*group);
}

void same(const std::vector<float> &found, const std::vector<float> &expected) {
  CHECK_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK_NEAR(double(found[i]), double(expected[i]), 1e-5);
}

}  // namespace

TEST(a_trace_shows_the_sums_of_gpus) {
  const auto group = group_on(gpus({0, 1}));
  const auto optimizer = sgd();
  train(*group, optimizer, UpdateMode::kOnStore, 1);
  group->wait();
  const auto recording = std::make_shared<Recording>(Recording::Options{});
  recording->start();
  const uint64_t before = num_collectives();
  train(*group, optimizer, UpdateMode::kOnStore, 3);
  group->wait();
  recording->stop();
  double bytes = 0;
  for (const SpanTotal &total : *recording->take_totals(/* by_operator */ false)) {
    if (total.kind != SpanKind::kExchange || total.name != "sum of gradients") continue;
    CHECK(total.count > 0);
    bytes += total.bytes;
  }
  CHECK(num_collectives() > before);
  const double numbers = double(kHidden * kInputs + kHidden + kClasses * kHidden + kClasses);
  CHECK_EQ(bytes, 3 * 2 * 2 * numbers * double(sizeof(float)));  // passes, devices, read and written
}

TEST(gpus_sum_among_themselves_with_the_same_bits_as_processors_each_time) {
  for (const UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice}) {
    for (const std::vector<int> &ids : {std::vector<int>{0, 1}, {2, 0, 1}}) {
      const std::vector<float> expected = trained_on(cpus(ids.size()), mode);
      std::vector<float> first;
      for (uint64_t seed = 0; seed < 8; ++seed) {
        seed_anew(seed);
        const uint64_t before = num_collectives();
        const std::vector<float> found = trained_on(gpus(ids), mode);
        CHECK_EQ(num_collectives() - before, 4 * kNumParams);
        same(found, expected);
        if (first.empty()) first = found;
        CHECK(found == first);
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(where_there_can_be_no_collective_call_sums_are_made_on_the_host) {
  const Context cpu{DeviceType::kCpu, 0}, one{DeviceType::kGpu, 0}, other{DeviceType::kGpu, 1};
  for (const UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice}) {
    for (const std::vector<Context> &contexts :
         {std::vector<Context>{one, one}, {one, cpu}, {one, other, cpu}, {other, cpu, other}}) {
      const std::vector<float> expected = trained_on(cpus(contexts.size()), mode);
      for (uint64_t seed = 0; seed < 4; ++seed) {
        seed_anew(seed);
        const uint64_t before = num_collectives();
        same(trained_on(contexts, mode), expected);
        CHECK_EQ(num_collectives(), before);
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Runs in a process of its own, with the setting in its environment.
TEST(where_nccl_is_too_old_sums_are_made_on_the_host_and_the_reason_is_told) {
  if (!std::getenv("CUDASIM_NCCL")) {
    CHECK(passes_again_with("CUDASIM_NCCL=20900", __func__));
    return;
  }
  std::mutex mutex;
  std::string told;
  set_log(
      [&](LogLevel, const std::string &message) {
        const std::lock_guard<std::mutex> lock(mutex);
        told += message + "\n";
      },
      LogLevel::kInfo);
  same(trained_on(gpus({0, 1}), UpdateMode::kOnStore), trained_on(cpus(2), UpdateMode::kOnStore));
  set_log(nullptr, LogLevel::kWarning);
  CHECK_EQ(num_collectives(), 0u);
  CHECK(
      told.find("gradients are summed on the host: libnccl.so.2 is of version 20900, and must be of 21000 or later") !=
      std::string::npos);
}

TEST(several_groups_sum_over_the_same_devices_at_once) {
  const std::vector<float> two = trained_on(cpus(2), UpdateMode::kOnStore),
                           three = trained_on(cpus(3), UpdateMode::kOnStore);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    seed_anew(seed);
    const auto a = group_on(gpus({0, 1})), b = group_on(gpus({1, 0})), c = group_on(gpus({1, 2, 0}));
    const auto of_a = sgd(), of_b = sgd(), of_c = sgd();
    for (uint64_t step = 0; step < 4; ++step) {  // no wait in between
      pass(*a, step);
      pass(*b, step);
      b->update(of_b, UpdateMode::kOnStore);
      pass(*c, step);
      a->update(of_a, UpdateMode::kOnStore);
      c->update(of_c, UpdateMode::kOnStore);
    }
    same(weights_of(*a), two);
    same(weights_of(*b), two);
    same(weights_of(*c), three);
  }
  // Again, each on a thread of its own.
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> found(3);
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] { found[t] = trained_on(t == 1 ? gpus({1, 0}) : gpus({0, 1}), UpdateMode::kOnStore); });
  for (std::thread &thread : threads) thread.join();
  for (const auto &weights : found) same(weights, two);
  CHECK_EQ(std::string(reports()), std::string());
}

// A call that may wait for a device must not come between the launches of a sum, for which that device may wait.
// elsewhere(i) makes such calls on another thread, and returns whether it has more.
void does_not_come_between_the_launches_of_a_sum(const std::function<bool(size_t)> &elsewhere) {
  reports();
  std::atomic<bool> ended{false};
  std::thread other([&] {
    for (size_t i = 0; !ended && elsewhere(i);) ++i;
  });
  const auto group = group_on(gpus({0, 1, 2}));
  train(*group, sgd(), UpdateMode::kOnStore, 30);
  group->wait();
  ended = true;
  other.join();
  CHECK_EQ(std::string(reports()), "");
}

TEST(memory_is_not_pinned_while_a_sum_is_given_to_several_devices) {
  const std::shared_ptr<Device> device = get_device(gpus({0})[0]);
  std::vector<std::shared_ptr<void>> pinned;
  does_not_come_between_the_launches_of_a_sum([&](size_t i) {
    pinned.push_back(device->host_memory(1));
    return i < 5000;
  });
}

TEST(code_is_not_loaded_while_a_sum_is_given_to_several_devices) {
  std::vector<const PointwiseRule *> rules;
  for (const auto &rule : pointwise_rules())
    if (!rule->numbers) rules.push_back(rule.get());
  does_not_come_between_the_launches_of_a_sum([&](size_t i) {
    for (const Context &context : gpus({0, 1, 2})) {
      const NDArray x = NDArray::create(Shape{2, 2}, i % 2 ? Dtype::kFloat64 : Dtype::kFloat32, context);
      x.fill(0.5);
      const std::vector<NDArray> y =
          invoke(rules[i / 2]->name, {}, std::vector<NDArray>(size_t(rules[i / 2]->num_inputs), x), {}, context);
      invoke("dot", {{"transpose_a", std::to_string(i % 2)}, {"transpose_b", std::to_string(i / 2 % 2)}}, {x, x}, {},
             context);
    }
    return i + 1 < 2 * rules.size();
  });
}

TEST(graphs_and_communicators_are_not_made_while_a_sum_is_given_to_several_devices) {
  does_not_come_between_the_launches_of_a_sum([](size_t i) {
    train(*group_on(gpus({int(i % 3), 3})), sgd(), UpdateMode::kOnStore, 4);
    return true;
  });
}

TEST(sums_begin_in_backward_where_the_ones_before_were_wanted) {
  seed_anew(2);
  const auto group = group_on(gpus({0, 1}));
  const auto passes = [&] {
    const uint64_t before = num_collectives();
    pass(*group, 5);
    group->wait();
    return num_collectives() - before;
  };
  CHECK_EQ(passes(), 0u);  // the sums may never be read
  group->update(sgd(), UpdateMode::kOnStore);
  group->wait();
  CHECK_EQ(passes(), kNumParams);
  CHECK_EQ(passes(), 0u);  // they have not been read
}

// As a host does that clips gradients between backward and update.
TEST(gradients_that_are_changed_after_backward_are_summed_as_they_are_then) {
  const auto changed = [](const std::vector<Context> &contexts) {
    const auto group = group_on(contexts);
    const auto optimizer = sgd();
    for (uint64_t step = 0; step < 4; ++step) {
      pass(*group, step);
      if (step > 1) group->array(GroupList::kGrads, 0, 1).fill(double(step));
      group->update(optimizer, step == 3 ? UpdateMode::kPerDevice : UpdateMode::kOnStore);
      if (step == 1) group->update(optimizer, UpdateMode::kOnStore);  // a second update from the same gradients
    }
    group->wait();
    return weights_of(*group);
  };
  const std::vector<float> expected = changed(cpus(2));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    seed_anew(seed);
    same(changed(gpus({0, 1})), expected);
  }
}

TEST(a_device_that_does_not_reach_a_sum_is_named_and_unwritten_arrays_are_marked) {
  const Impatience impatience;
  seed_anew(2);
  const auto group = group_on(gpus({0, 1}));
  const auto optimizer = sgd();
  train(*group, optimizer, UpdateMode::kOnStore);
  group->wait();
  CONTROL(cudasim_stop_device)(1, 1);
  train(*group, optimizer, UpdateMode::kOnStore, 1);
  CHECK_THROWS(weights_of(*group), Error, "gpu(1) has not reached the sum for 5 seconds");
  CHECK_THROWS(weights_of(*group), Error, "sum of bucket 0, the gradients of 'fc2_");
  CONTROL(cudasim_stop_device)(1, 0);
  CHECK_THROWS(group->wait(), Error, "gpu(1)");
  group->wait();  // reported once
  const Batch batch(1);
  CHECK_THROWS(group->forward({batch.data}, {batch.label}, 1), Error, "gpu(1)");
  // After new weights are set, training continues with a new communicator.
  set_weights(*group);
  train(*group, sgd(), UpdateMode::kOnStore);
  group->wait();
  same(weights_of(*group), trained_on(cpus(2), UpdateMode::kOnStore));
}

TEST(the_time_limit_of_a_sum_may_be_as_long_as_one_likes) {
  Impatience::change("1e30");
  seed_anew(2);
  const auto group = group_on(gpus({0, 1}));
  const auto optimizer = sgd();
  train(*group, optimizer, UpdateMode::kOnStore, 2);
  group->wait();
  CONTROL(cudasim_stop_device)(1, 1);
  train(*group, optimizer, UpdateMode::kOnStore, 1);
  usleep(1000000);  // it is polled meanwhile
  CONTROL(cudasim_stop_device)(1, 0);
  group->wait();
  Impatience::change("100");
}

TEST(a_device_that_breaks_ends_the_sums_of_its_group_and_no_others) {
  seed_anew(2);
  const auto group = group_on(gpus({2, 3})), others = group_on(gpus({0, 1}));
  const auto optimizer = sgd(), of_group = sgd();
  train(*group, of_group, UpdateMode::kPerDevice);
  group->wait();
  train(*others, optimizer, UpdateMode::kOnStore, 2);
  CONTROL(cudasim_stop_device)(3, 1);  // no work runs before it breaks
  train(*group, of_group, UpdateMode::kPerDevice, 1);
  CONTROL(cudasim_break_device)(3);
  CONTROL(cudasim_stop_device)(3, 0);
  CHECK_THROWS(values_of(group->array(GroupList::kParams, 0, 0)), Error, "gpu(3) has failed: an illegal memory access");
  CHECK_THROWS(group->wait(), Error, "gpu(3)");
  CHECK_THROWS(set_weights(*group), Error, "gpu(3)");
  pass(*others, 2);
  others->update(optimizer, UpdateMode::kOnStore);
  others->wait();
  for (float weight : weights_of(*others)) CHECK(std::isfinite(weight));
}

// While the abort of one communicator hangs, the timeout of another one is detected.
TEST(a_sum_that_does_not_end_is_found_while_the_abort_of_another_one_hangs) {
  const Impatience impatience;
  seed_anew(2);
  const auto one = group_on(gpus({0, 1})), two = group_on(gpus({2, 1}));
  const auto of_one = sgd(), of_two = sgd();
  train(*one, of_one, UpdateMode::kOnStore);
  train(*two, of_two, UpdateMode::kOnStore);
  one->wait();
  two->wait();
  CONTROL(cudasim_stop_device)(1, 1);
  CONTROL(cudasim_hang_aborts)(1);
  train(*one, of_one, UpdateMode::kOnStore, 1);
  const auto failed = [](const Group &group) {
    for (int i = 0; i < 3000 && !group.array(GroupList::kParams, 0, 0).failed(); ++i) usleep(10000);
    return group.array(GroupList::kParams, 0, 0).failed();
  };
  CHECK(failed(*one));
  train(*two, of_two, UpdateMode::kOnStore, 1);  // polled after the abort has begun
  CHECK(failed(*two));
  CONTROL(cudasim_hang_aborts)(0);
  CONTROL(cudasim_stop_device)(1, 0);
  CHECK_THROWS(one->wait(), Error, "gpu(1)");
  CHECK_THROWS(two->wait(), Error, "gpu(1)");
  for (const auto &group : {one, two}) {
    set_weights(*group);
    train(*group, sgd(), UpdateMode::kOnStore);
    group->wait();
    same(weights_of(*group), trained_on(cpus(2), UpdateMode::kOnStore));
  }
}

// Weights and the gradients that sums were to replace are marked on all devices, and later calls that use them give the
// reason.
TEST(after_sums_that_failed_weights_and_gradients_are_marked_and_later_calls_say_so) {
  const Impatience impatience;
  seed_anew(2);
  const auto group = group_on(gpus({0, 1}));
  const auto optimizer = sgd();
  train(*group, optimizer, UpdateMode::kPerDevice);
  group->wait();
  CONTROL(cudasim_stop_device)(1, 1);
  train(*group, optimizer, UpdateMode::kPerDevice, 1);
  CHECK_THROWS(values_of(group->array(GroupList::kParams, 0, 0)), Error,
               "gpu(1) has not reached the sum for 5 seconds");
  CONTROL(cudasim_stop_device)(1, 0);
  CHECK_THROWS(group->wait(), Error, "gpu(1)");
  for (size_t d = 0; d < 2; ++d) {
    for (size_t i = 0; i < kNumParams; ++i) {
      for (const GroupList list : {GroupList::kParams, GroupList::kGrads}) {
        CHECK(group->array(list, i, d).failed());
        CHECK_THROWS(values_of(group->array(list, i, d)), Error, "gpu(1) has not reached the sum");
      }
    }
  }
  const Batch batch(1);
  CHECK_THROWS(group->forward({batch.data}, {batch.label}, 1), Error, "gpu(1) has not reached the sum");
  CHECK_THROWS(group->update(optimizer, UpdateMode::kPerDevice), Error, "gpu(1) has not reached the sum");
  set_weights(*group);
  train(*group, sgd(), UpdateMode::kPerDevice);
  group->wait();
  same(weights_of(*group), trained_on(cpus(2), UpdateMode::kPerDevice));
}

// The last index on the last device is wrong: no weight on any device is updated from it.
TEST(a_number_out_of_range_on_one_device_changes_no_weight) {
  for (uint64_t seed = 2; seed < 6; ++seed) {
    for (const std::vector<Context> &contexts : {cpus(2), gpus({0, 1})}) {
      for (const UpdateMode mode : {UpdateMode::kPerDevice, UpdateMode::kOnStore}) {
        seed_anew(seed);
        GroupOptions options;
        options.contexts = contexts;
        options.param_names = {"fc_weight", "fc_bias"};
        options.num_threads = 1;
        const Symbol rows =
            Symbol::create("take", {{"mode", "raise"}}, "rows", {}, {Symbol::variable("data"), Symbol::variable("at")});
        const Symbol fc = Symbol::create("FullyConnected", {{"num_hidden", "4"}}, "fc", {}, {rows});
        const auto group = Group::create(Symbol::create("SoftmaxOutput", {}, "softmax", {}, {fc}),
                                         {{"data", Shape{kBatch, kInputs}}, {"at", Shape{kBatch}}},
                                         {{"softmax_label", Shape{kBatch}}}, options);
        set_weights(*group);
        std::shared_ptr<Optimizer> optimizer = sgd();
        const Batch batch(1);
        const NDArray at = NDArray::create(Shape{kBatch}, Dtype::kFloat32, Context());
        const auto step = [&](float last) {
          for (int64_t i = 0; i < kBatch; ++i) at.data_as<float>()[i] = float(i % (kBatch / 2));
          at.data_as<float>()[kBatch - 1] = last;
          group->forward({batch.data, at}, {batch.label}, 1);
          group->backward({});
          group->update(optimizer, mode);
          group->wait();
        };
        for (int i = 0; i < 4; ++i) step(1);
        std::vector<std::vector<float>> before;
        for (size_t d = 0; d < 2; ++d)
          for (size_t i = 0; i < 2; ++i) before.push_back(values_of(group->array(GroupList::kParams, i, d)));
        CHECK_THROWS(step(99), Error, "indices[5]: expected 0 to 5, found 99");
        try {
          group->wait();  // if an earlier call has thrown
        } catch (const Error &) {
        }
        for (size_t d = 0; d < 2; ++d) {
          for (size_t i = 0; i < 2; ++i) {
            const NDArray weight = group->array(GroupList::kParams, i, d);
            if (!weight.failed()) same(values_of(weight), before[2 * d + i]);
          }
        }
        set_weights(*group);
        optimizer = sgd();  // the states are also marked
        step(2);
      }
    }
  }
}

UNIT_MAIN()
