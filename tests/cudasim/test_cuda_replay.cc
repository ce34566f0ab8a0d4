// SPDX-License-Identifier: Apache-2.0
// Programs that are replayed as CUDA graphs on the simulated runtime: the results equal those of running step by step
// bit for bit, although learning rates, random numbers and loss scales change; graphs are dropped when addresses
// change, and not used for steps that cannot be captured.
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "cuda_control.hpp"
#include "group/group.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const auto seed_anew = CONTROL(cudasim_seed);  // before the first use of a device
const auto num_replays = CONTROL(cudasim_num_replays);
const auto num_launches = CONTROL(cudasim_num_launches);
const auto reports = CONTROL(cudasim_reports);
const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};

// Switches replays on or off for queues created later.
void replay(bool wanted) { setenv(kCudaGraphs.name, wanted ? "1" : "0", 1); }

// Collects the log messages that contain `part` while it exists.
class Heard {
 public:
  explicit Heard(std::string part) {
    set_log(
        [this, part = std::move(part)](LogLevel, const std::string &message) {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (message.find(part) != std::string::npos) text_ += message + "\n";
        },
        LogLevel::kInfo);
  }
  ~Heard() { set_log(nullptr, LogLevel::kWarning); }
  std::string text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

Symbol layer(const std::string &op, const AttrMap &attrs, const std::string &name, const Symbol &input) {
  return Symbol::create(op, attrs, name, {}, {input});
}

constexpr int64_t kBatch = 12, kInputs = 6, kClasses = 4;

Symbol middle(const Symbol &net) { return layer("Dropout", {{"p", "0.4"}}, "drop", net); }

Symbol network(const std::function<Symbol(const Symbol &)> &between) {
  Symbol net = layer("FullyConnected", {{"num_hidden", "10"}}, "one", Symbol::variable("data"));
  net = layer("LeakyReLU", {{"act_type", "rrelu"}}, "leaky", between(net)).output(0);
  net = layer("FullyConnected", {{"num_hidden", std::to_string(kClasses)}}, "two", net);
  return Symbol::create("SoftmaxOutput", {}, "softmax", {}, {net});
}

const DataDescs kData{{"data", Shape{kBatch, kInputs}}}, kLabels{{"softmax_label", Shape{kBatch}}};

GroupOptions options_on(const std::vector<Context> &contexts) {
  GroupOptions options;
  options.contexts = contexts;
  options.all_params = true;
  options.num_threads = 1;
  options.gradient_bucket_bytes = 1;  // one bucket per parameter
  options.seed = 5;
  return options;
}

std::shared_ptr<Group> group_of(const Symbol &net, const GroupOptions &options) {
  const auto group = Group::create(net, kData, kLabels, options);
  NamedArrays params;
  for (size_t i = 0; i < group->num_arrays(GroupList::kParams); ++i) {
    const NDArray array = NDArray::create(group->array(GroupList::kParams, i, 0).shape(), Dtype::kFloat32, kCpu);
    array.fill_uniform(-0.5, 0.5, 7 + i);
    params.emplace_back(group->name(GroupList::kParams, i), array);
  }
  group->set_params(params, nullptr, false);
  return group;
}

void pass(Group &group, uint64_t seed, float factor = 1) {
  const NDArray data = NDArray::create(Shape{kBatch, kInputs}, Dtype::kFloat32, kCpu);
  const NDArray label = NDArray::create(Shape{kBatch}, Dtype::kFloat32, kCpu);
  data.fill_uniform(-double(factor), double(factor), seed);
  for (int64_t i = 0; i < kBatch; ++i) label.data_as<float>()[i] = float((i + int64_t(seed)) % kClasses);
  group.forward({data}, {label}, 1);
  group.backward({});
}

std::vector<float> values_of(const NDArray &array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  array.read(values.data(), values.size() * sizeof(float));
  return values;
}

std::vector<float> weights_of(const Group &group) {
  std::vector<float> all;
  for (size_t d = 0; d < group.num_devices(); ++d) {
    for (size_t i = 0; i < group.num_arrays(GroupList::kParams); ++i) {
      const std::vector<float> values = values_of(group.array(GroupList::kParams, i, d));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

std::shared_ptr<Optimizer> adam() {
  const auto optimizer = Optimizer::create("adam", {{"learning_rate", "0.1"}, {"wd", "0.01"}});
  optimizer->set_lr_schedule("factor", {{"step", "2"}, {"factor", "0.5"}});
  return optimizer;
}

constexpr int kSteps = 8;

// Uses everything that changes from step to step: scheduled rates, counts of updates, random draws.
std::vector<float> trained(const Symbol &net, const GroupOptions &options, UpdateMode mode) {
  const auto group = group_of(net, options);
  const auto optimizer = adam();
  for (uint64_t step = 0; step < kSteps; ++step) {
    pass(*group, step);
    group->update(optimizer, mode);
  }
  group->wait();
  return weights_of(*group);
}

struct Compared {
  std::vector<float> weights;
  uint64_t replays;
};

// With and without replays, and in several orders of the streams.
Compared compare(const Symbol &net, const GroupOptions &options, UpdateMode mode = UpdateMode::kNoStore) {
  replay(false);
  uint64_t before = num_replays();
  const std::vector<float> expected = trained(net, options, mode);
  CHECK_EQ(num_replays(), before);
  replay(true);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    seed_anew(seed);
    before = num_replays();
    const std::vector<float> found = trained(net, options, mode);
    CHECK(found == expected);
  }
  CHECK_EQ(std::string(reports()), std::string());
  return {expected, num_replays() - before};
}

}  // namespace

TEST(training_is_the_same_bit_for_bit_though_rates_counts_and_draws_change) {
  const Compared one = compare(network(middle), options_on({kGpu0}));
  CHECK_EQ(one.replays, 3u * (kSteps - 2));  // forward, backward, update
}

// A training step has the same number of launches for any number of nodes; one more converts weights to 16 bits.
TEST(once_recorded_a_step_is_a_launch_each_for_forward_backward_and_update) {
  replay(true);
  seed_anew(2);
  const auto deep = [](const Symbol &net) {
    Symbol top = net;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "deep" + std::to_string(i);
      top = layer("softmax", {}, name, layer("FullyConnected", {{"num_hidden", "10"}}, name + "_fc", top));
    }
    return top;
  };
  for (const Dtype compute : {Dtype::kFloat32, Dtype::kBfloat16}) {
    GroupOptions options = options_on({kGpu0});
    options.compute.dtype = compute;
    const auto group = group_of(network(deep), options);
    const auto optimizer = adam();
    uint64_t launches = 0, replays = 0;
    for (uint64_t step = 0; step < kSteps; ++step) {
      launches = num_launches(), replays = num_replays();
      pass(*group, step);
      group->update(optimizer, UpdateMode::kNoStore);
      group->wait();
      if (step == 0) CHECK(num_launches() - launches > 80u);
    }
    const uint64_t expected = compute == Dtype::kFloat32 ? 3 : 4;
    CHECK_EQ(num_launches() - launches, expected);
    CHECK_EQ(num_replays() - replays, expected);
  }
}

TEST(weights_of_16_bits_are_made_anew_in_each_replay) {
  GroupOptions options = options_on({kGpu0});
  options.compute.dtype = Dtype::kBfloat16;
  CHECK_EQ(compare(network(middle), options).replays, 4u * (kSteps - 2));
}

TEST(several_gpus_replay_the_stretches_between_buckets_and_their_updates) {
  for (const UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice, UpdateMode::kNoStore}) {
    const Compared two = compare(network(middle), options_on({kGpu0, kGpu1}), mode);
    CHECK(two.replays > 4u * (kSteps - 4));
  }
}

// The steps around one that waits are still replayed.
TEST(a_step_on_the_host_or_one_that_waits_lies_between_two_graphs) {
  const auto on_host = [](const Symbol &net) {  // _contrib_calibrate_entropy runs on the host, in the forward pass
    const Symbol counts = Symbol::create("_arange", {{"start", "1"}, {"stop", "8"}}, "counts", {}, {});
    const Symbol edges = Symbol::create("_arange", {{"start", "-4"}, {"stop", "4"}}, "edges", {}, {});
    const Symbol found =
        Symbol::create("_contrib_calibrate_entropy", {{"num_quantized_bins", "3"}}, "found", {}, {counts, edges});
    const Symbol bound = Symbol::create("BlockGrad", {}, "bound", {}, {found.output(0)});
    return Symbol::create("broadcast_mul", {}, "scaled", {}, {net, bound});
  };
  CHECK_EQ(compare(network(on_host), options_on({kGpu0})).replays, 4u * (kSteps - 2));
  const auto taking = [](const Symbol &net) {
    const Symbol rows = Symbol::create("_arange", {{"start", "0"}, {"stop", std::to_string(kBatch)}}, "rows", {}, {});
    return Symbol::create("take", {{"mode", "raise"}}, "taken", {}, {net, rows});
  };
  CHECK(compare(network(taking), options_on({kGpu0})).replays >= 3u * (kSteps - 2));
}

TEST(a_loss_scale_that_changes_between_replays_is_taken_as_it_is) {
  const auto scaled = [](bool replays) {
    replay(replays);
    GroupOptions options = options_on({kGpu0});
    options.loss_scale.initial = 1024;
    options.loss_scale.window = 3;
    const auto group = group_of(network(middle), options);
    const auto optimizer = adam();
    std::vector<double> scales;
    for (uint64_t step = 0; step < 10; ++step) {
      pass(*group, step, step == 5 ? 1e38f : 1.0f);  // gradients of one step overflow
      group->update(optimizer, UpdateMode::kNoStore);
      scales.push_back(group->loss_scale()->value);
    }
    group->wait();
    return std::make_pair(scales, weights_of(*group));
  };
  const auto expected = scaled(false);
  const uint64_t before = num_replays();
  const auto found = scaled(true);
  CHECK(found.first == expected.first);
  CHECK(found.second == expected.second);
  CHECK(expected.first[3] > expected.first[0]);
  CHECK(num_replays() > before);
}

TEST(dropout_between_the_layers_of_an_rnn_is_drawn_anew_in_each_replay) {
  const auto recurrent = [](const Symbol &net) {
    const Symbol rows = layer("Reshape", {{"shape", "(2,6,10)"}}, "rows", net);
    const AttrMap attrs{{"state_size", "10"}, {"num_layers", "2"}, {"mode", "gru"}, {"p", "0.5"}};
    const Symbol rnn = Symbol::create("RNN", attrs, "rnn", {}, {rows});
    return layer("Reshape", {{"shape", "(12,10)"}}, "flat", rnn);
  };
  CHECK(compare(network(recurrent), options_on({kGpu0})).replays >= 3u * (kSteps - 2));
}

// Memory shared by two groups grows for the second, and the addresses of the first change.
TEST(what_lies_elsewhere_is_recorded_anew) {
  replay(true);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    seed_anew(seed);
    const auto small = group_of(network(middle), options_on({kGpu0}));
    const auto optimizer = adam();
    for (uint64_t step = 0; step < 4; ++step) pass(*small, step);
    const auto large = Group::create(network(middle), {{"data", Shape{8 * kBatch, kInputs}}},
                                     {{"softmax_label", Shape{8 * kBatch}}}, options_on({kGpu0}), small);
    const NDArray data = NDArray::create(Shape{8 * kBatch, kInputs}, Dtype::kFloat32, kCpu),
                  label = NDArray::create(Shape{8 * kBatch}, Dtype::kFloat32, kCpu);
    data.fill_uniform(-1, 1, 1);
    label.fill(1);
    for (int i = 0; i < 4; ++i) {
      large->forward({data}, {label}, 1);
      large->backward({});
    }
    const uint64_t before = num_replays();
    for (uint64_t step = 0; step < 2; ++step) pass(*small, step);
    CHECK_EQ(num_replays(), before);
    for (uint64_t step = 0; step < 2; ++step) pass(*small, step);
    CHECK_EQ(num_replays(), before + 4);
    small->update(optimizer, UpdateMode::kNoStore);
    small->wait();
    large->wait();
    for (float weight : weights_of(*small)) CHECK(weight == weight);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Every call of the third run fails once: a failure of the capture is logged and replays are given up; others are
// errors.
TEST(a_capture_that_fails_is_given_up_and_the_results_are_the_same) {
  replay(false);
  const auto expected = [] {
    const auto group = group_of(network(middle), options_on({kGpu0}));
    for (uint64_t step = 0; step < 4; ++step) pass(*group, step);
    group->wait();
    return values_of(group->array(GroupList::kGrads, 0, 0));
  }();
  replay(true);
  seed_anew(2);
  const auto fail_call = CONTROL(cudasim_fail_call);
  const Heard given_up("not as a CUDA graph");
  int num_errors = 0, num_same = 0;
  for (uint64_t nth = 1; nth < 150; ++nth) {
    const auto group = group_of(network(middle), options_on({kGpu0}));
    for (uint64_t step = 0; step < 2; ++step) pass(*group, step);
    group->wait();
    fail_call(nth, 999);
    try {
      pass(*group, 2);
      fail_call(0, 0);
      pass(*group, 3);
      group->wait();
      CHECK(values_of(group->array(GroupList::kGrads, 0, 0)) == expected);
      ++num_same;
    } catch (const Error &) {
      fail_call(0, 0);
      ++num_errors;
    }
  }
  CHECK(num_errors > 0 && num_same > 50);
  const std::string text = given_up.text();
  CHECK(text.find("gpu(0): forward runs step by step, not as a CUDA graph, because of ") != std::string::npos);
  CHECK(text.find("gpu(0): backward runs step by step") != std::string::npos);
  reports();
}

TEST(nothing_of_graphs_is_left_when_their_groups_are_gone) {
  replay(true);
  seed_anew(3);
  const auto objects = CONTROL(cudasim_num_objects);
  const auto in_use = CONTROL(cudasim_bytes_in_use);
  const auto use = [] { trained(network(middle), options_on({kGpu0, kGpu1}), UpdateMode::kPerDevice); };
  use();
  CHECK(leaves_nothing(use, objects, [&] { return in_use(0) + in_use(1); }));
}

UNIT_MAIN()
