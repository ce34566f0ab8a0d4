// SPDX-License-Identifier: Apache-2.0
// Properties of a group that the C ABI does not show: where merged outputs are stored, which executors reshape creates,
// and that a failure on one device ends a training step on all of them.
#include "group/group.hpp"

#include <cstdlib>
#include <functional>

#include "base/error.hpp"
#include "support/failing_new.hpp"
#include "support/unit.hpp"

using namespace cohort;
using failing_new::failing_allocation;
using failing_new::no_memory;
using failing_new::num_allocations;

namespace {

constexpr int64_t kInputs = 6, kHidden = 40, kClasses = 4;

Symbol mlp() {
  const Symbol data = Symbol::variable("data");
  const Symbol fc1 = Symbol::create("FullyConnected", {{"num_hidden", std::to_string(kHidden)}}, "fc1", {}, {data});
  const Symbol act = Symbol::create("Activation", {{"act_type", "tanh"}}, "act", {}, {fc1});
  const Symbol fc2 = Symbol::create("FullyConnected", {{"num_hidden", std::to_string(kClasses)}}, "fc2", {}, {act});
  return Symbol::create("SoftmaxOutput", {}, "softmax", {}, {fc2});
}

GroupOptions options_for(size_t num_devices) {
  GroupOptions options;
  for (size_t d = 0; d < num_devices; ++d) options.contexts.push_back({DeviceType::kCpu, int32_t(d)});
  options.param_names = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};
  options.num_threads = 1;
  options.gradient_bucket_bytes = 1;  // a bucket for each parameter
  return options;
}

DataDescs data_of(int64_t batch) { return {{"data", Shape{batch, kInputs}}}; }
DataDescs label_of(int64_t batch) { return {{"softmax_label", Shape{batch}}}; }

void set_weights(Group &group) {
  NamedArrays params;
  for (size_t i = 0; i < group.num_arrays(GroupList::kParams); ++i) {
    const NDArray array = NDArray::create(group.array(GroupList::kParams, i, 0).shape(), Dtype::kFloat32, Context());
    array.fill_uniform(-0.5, 0.5, 7 + i);
    params.emplace_back(group.name(GroupList::kParams, i), array);
  }
  group.set_params(params, nullptr, false);
}

std::shared_ptr<Group> make_group(int64_t batch, const GroupOptions &options) {
  const auto group = Group::create(mlp(), data_of(batch), label_of(batch), options);
  set_weights(*group);
  return group;
}

std::shared_ptr<Group> make_group(size_t num_devices, int64_t batch) {
  return make_group(batch, options_for(num_devices));
}

struct Batch {
  NDArray data, label;
  explicit Batch(int64_t size, uint64_t seed = 1)
      : data(NDArray::create(Shape{size, kInputs}, Dtype::kFloat32, Context())),
        label(NDArray::create(Shape{size}, Dtype::kFloat32, Context())) {
    data.fill_uniform(-1, 1, seed);
    for (int64_t i = 0; i < size; ++i) label.data_as<float>()[i] = float(i % kClasses);
  }
};

void train(Group &group, const std::shared_ptr<Optimizer> &optimizer, const Batch &batch) {
  group.forward({batch.data}, {batch.label}, 1);
  group.backward({});
  group.update(optimizer, UpdateMode::kOnStore);
}

std::shared_ptr<Optimizer> sgd() {
  return Optimizer::create("sgd", {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {"rescale_grad", "0.1"}});
}

std::vector<float> values_of(const NDArray &array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  array.read(values.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

TEST(devices_write_their_parts_of_one_merged_output) {
  const auto group = make_group(3, 10);
  const NDArray merged = group->merged(GroupList::kOutputs, 0);
  CHECK_EQ(merged.shape(), (Shape{10, kClasses}));
  CHECK(merged.context() == Context());
  for (size_t d = 0; d < 3; ++d) {
    const NDArray part = group->array(GroupList::kOutputs, 0, d);
    CHECK(part.context() == (Context{DeviceType::kCpu, int32_t(d)}));
    CHECK(part.data() == merged.data_as<float>() + group->slice(d).begin * kClasses);
  }
  const Batch batch(10);
  group->forward({batch.data}, {batch.label}, 0);
  const std::vector<float> found = values_of(merged);  // waits for all devices
  const auto single = make_group(1, 10);
  single->forward({batch.data}, {batch.label}, 0);
  const std::vector<float> expected = values_of(single->merged(GroupList::kOutputs, 0));
  for (size_t i = 0; i < found.size(); ++i) CHECK_NEAR(double(found[i]), double(expected[i]), 1e-5);
}

TEST(a_shape_seen_before_has_its_executors_still) {
  const auto group = make_group(2, 8);
  const auto first = group->executor(1);
  const std::vector<float> weight = values_of(group->array(GroupList::kParams, 0, 1));
  group->reshape(data_of(8), label_of(8));
  CHECK(group->executor(1) == first);
  group->reshape(data_of(6), label_of(6));
  const auto second = group->executor(1);
  CHECK(second != first);
  group->reshape(data_of(8), label_of(8));
  CHECK(group->executor(1) == first);
  group->reshape(data_of(6), label_of(6));
  CHECK(group->executor(1) == second);
  for (int64_t batch = 9; batch < 40; ++batch) group->reshape(data_of(batch), label_of(batch));
  group->reshape(data_of(6), label_of(6));
  CHECK(group->executor(1) != second);  // no longer cached
  group->reshape(data_of(8), label_of(8));
  CHECK(values_of(group->array(GroupList::kParams, 0, 1)) == weight);
}

TEST(training_goes_on_over_changing_shapes_as_on_one_device) {
  const auto group = make_group(2, 8), single = make_group(1, 8);
  const auto optimizer = sgd(), other = sgd();
  for (int step = 0; step < 12; ++step) {
    const int64_t size = step % 3 == 1 ? 6 : step % 3 == 2 ? 12 : 8;
    const Batch batch(size, uint64_t(step));
    for (Group *each : {group.get(), single.get()}) each->reshape(data_of(size), label_of(size));
    train(*group, optimizer, batch);
    train(*single, other, batch);
  }
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<float> expected = values_of(single->array(GroupList::kParams, i, 0));
    const std::vector<float> first = values_of(group->array(GroupList::kParams, i, 0));
    CHECK(values_of(group->array(GroupList::kParams, i, 1)) == first);
    for (size_t k = 0; k < expected.size(); ++k) CHECK_NEAR(double(first[k]), double(expected[k]), 1e-5);
  }
}

TEST(a_failed_reshape_changes_nothing) {
  const auto group = make_group(2, 8);
  const auto before = group->executor(0);
  CHECK_THROWS(group->reshape({{"data", Shape{8, kInputs + 1}}}, label_of(8)), Error, "fc1");
  CHECK_THROWS(group->reshape(data_of(1), label_of(1)), Error, "empty split");
  CHECK_THROWS(group->reshape({{"data", Shape{8, kInputs}, Dtype::kFloat64}}, label_of(8)), Error, "dtype");
  CHECK(group->executor(0) == before);
  CHECK_EQ(group->batch_size(), 8);
  const Batch batch(8);
  train(*group, sgd(), batch);
  group->wait();
}

// One device is slow in backward while the other is ahead: passes queued before the update must not see updated
// weights.
TEST(work_between_backward_and_update_has_the_old_parameters) {
  const int64_t size = 1026;
  const Batch batch(size);
  std::vector<float> expected;
  for (int round = 0; round < 12; ++round) {
    GroupOptions options = options_for(2);
    options.workload = {1, 512};
    const auto group = make_group(size, options);
    const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "1"}});
    const auto wait = [&] {
      if (round == 0) group->wait();
    };
    group->forward({batch.data}, {batch.label}, 1);
    group->backward({});
    wait();
    for (int i = 0; i < 20; ++i) group->run(0);
    wait();
    group->update(optimizer, UpdateMode::kOnStore);
    const std::vector<float> found = values_of(group->merged(GroupList::kOutputs, 0));
    if (round == 0) expected = found;
    CHECK(found == expected);
  }
}

// Each node in turn fails on the devices of a group that is training.
TEST(a_step_that_fails_is_reported_and_nobody_hangs) {
  const Batch batch(8);
  for (const char *node : {"fc1", "act", "softmax"}) {
    setenv("COHORT_FAULT", node, 1);
    const auto failing = make_group(2, 8);
    unsetenv("COHORT_FAULT");
    train(*failing, sgd(), batch);
    bool reported = false;
    try {
      failing->wait();
    } catch (const Error &error) {
      reported = error.code() == Code::kExecution && std::string(error.what()).find(node) != std::string::npos;
    }
    CHECK(reported);
    if (std::string(node) == "act") {  // in forward it is fused into another step
      failing->merged(GroupList::kOutputs, 0).wait();
    } else {
      CHECK_THROWS(failing->merged(GroupList::kOutputs, 0).wait(), Error, node);
    }
    CHECK_THROWS(failing->array(GroupList::kParams, 0, 1).wait(), Error, "not written");
    failing->wait();  // reported once
    CHECK_THROWS(failing->forward({batch.data}, {batch.label}, 1), Error, node);
    set_weights(*failing);
    train(*failing, sgd(), batch);  // fails again, and does not hang
    CHECK_THROWS(failing->wait(), Error, node);
  }
}

TEST(waiting_goes_on_to_the_other_devices_whatever_one_throws) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  const auto group = make_group(3, 6);
  for (size_t d = 0; d < 3; ++d) {
    const std::shared_ptr<Queue> &queue = group->executor(d)->queue();
    queue->call([] { throw Error(Code::kExecution, "planted, of more letters than a string holds itself"); }, "step");
    queue->record()->wait();
  }
  no_memory = true;
  bool ran_out = false;
  try {
    group->wait();
  } catch (const std::bad_alloc &) {
    ran_out = true;
  }
  no_memory = false;
  CHECK(ran_out);
  for (size_t d = 0; d < 3; ++d) CHECK(group->executor(d)->queue()->idle());
  group->wait();
}

TEST(a_reshape_that_fails_at_its_end_changes_nothing) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  const Batch large(6), small(4);
  make_group(2, 6)->reshape(data_of(4), label_of(4));  // one-time allocations
  int num_failed = 0;
  for (int before_end = 0; before_end < 25; ++before_end) {
    const auto group = make_group(2, 6), like = make_group(2, 6);
    const auto optimizer = sgd(), same_optimizer = sgd();
    num_allocations = 0;
    like->reshape(data_of(4), label_of(4));
    failing_allocation = num_allocations - before_end;
    num_allocations = 0;
    bool failed = false;
    try {
      group->reshape(data_of(4), label_of(4));
    } catch (const std::bad_alloc &) {
      failed = true;
    }
    failing_allocation = 0;
    if (!failed) continue;
    ++num_failed;
    CHECK_EQ(group->batch_size(), 6);
    CHECK_EQ(group->array(GroupList::kData, 0, 0).shape(), (Shape{3, kInputs}));
    like->reshape(data_of(6), label_of(6));
    for (const auto &[trained, its_optimizer] : {std::pair{group, optimizer}, std::pair{like, same_optimizer}}) {
      train(*trained, its_optimizer, large);
      trained->reshape(data_of(4), label_of(4));
      train(*trained, its_optimizer, small);
    }
    for (size_t i = 0; i < group->num_arrays(GroupList::kParams); ++i)
      CHECK(values_of(group->array(GroupList::kParams, i, 1)) == values_of(like->array(GroupList::kParams, i, 1)));
  }
  CHECK(num_failed >= 20);
}

// Runs an update of a new optimizer again and again, with another allocation failing each time.
void check_updates_without_memory(
    const std::function<std::function<void()>(const std::shared_ptr<Optimizer> &)> &make) {
  int num_failed = 0;
  for (int64_t place = 1;; ++place) {
    const auto optimizer = sgd();
    const auto update = make(optimizer);
    const std::string before = optimizer->save_states();
    bool failed = false;
    num_allocations = 0;
    failing_allocation = place;
    try {
      update();
    } catch (const std::exception &) {  // bad_alloc, or an Error that names the allocation
      failed = true;
    }
    failing_allocation = 0;
    if (!failed) break;
    ++num_failed;
    CHECK(optimizer->save_states() == before);
    update();
    CHECK(optimizer->save_states().size() > before.size());
  }
  CHECK(num_failed > 10);
}

TEST(an_update_that_finds_no_memory_leaves_no_states) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  const NDArray weight = NDArray::create(Shape{100}, Dtype::kFloat32, Context());
  const NDArray grad = NDArray::create(Shape{100}, Dtype::kFloat32, Context());
  check_updates_without_memory([&](const std::shared_ptr<Optimizer> &optimizer) {
    return [&weight, &grad, optimizer] { optimizer->update("a_parameter_with_a_long_name", 0, weight, grad); };
  });
  const Batch batch(6);
  for (const UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice, UpdateMode::kNoStore}) {
    const auto group = make_group(2, 6);
    check_updates_without_memory([&](const std::shared_ptr<Optimizer> &optimizer) {
      group->forward({batch.data}, {batch.label}, 1);
      group->backward({});
      group->wait();
      return [&group, optimizer, mode] { group->update(optimizer, mode); };
    });
  }
}

TEST(states_that_find_no_memory_are_not_loaded) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  const NDArray weight = NDArray::create(Shape{100}, Dtype::kFloat32, Context());
  const auto saved = sgd(), optimizer = sgd();
  for (size_t copy = 0; copy < 3; ++copy) saved->update("w", copy, weight, weight.copy_to(Context()));
  optimizer->update("w", 0, weight, weight.copy_to(Context()));
  optimizer->update("w", 0, weight, weight.copy_to(Context()));
  const std::string bytes = saved->save_states(), before = optimizer->save_states();
  int num_failed = 0;
  for (int64_t place = 1;; ++place) {
    bool failed = false;
    num_allocations = 0;
    failing_allocation = place;
    try {
      optimizer->load_states(bytes.data(), bytes.size(), "memory");
    } catch (const std::exception &) {
      failed = true;
    }
    failing_allocation = 0;
    if (!failed) break;
    ++num_failed;
    CHECK(optimizer->save_states() == before);
  }
  CHECK(num_failed > 10);
  CHECK(optimizer->save_states() == bytes);
}

UNIT_MAIN()
