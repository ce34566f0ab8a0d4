// SPDX-License-Identifier: Apache-2.0
// Calls behave as if each had finished when it returned, even if they share arrays: random chains, diamonds and loops
// of executors, groups and copies on devices that are slow and out of step (support/slow_backend.cc), compared with the
// same calls with a wait after each.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "group/group.hpp"
#include "support/unit.hpp"
#include "tape/tape.hpp"

using namespace cohort;

namespace {

constexpr int64_t kRows = 4, kColumns = 3;

void use_slow_backend(int seed) {
  char file[4096];
  const ssize_t length = readlink("/proc/self/exe", file, sizeof file);
  const std::string program(file, size_t(length));
  setenv(kBackendPath.name, (program.substr(0, program.rfind('/')) + "/slow").c_str(), 1);
  setenv("COHORT_SLOW_SEED", std::to_string(seed).c_str(), 1);
}

Symbol op(const std::string &name, const std::vector<Symbol> &inputs, const std::string &as = "") {
  return Symbol::create(name, {}, as, {}, inputs);
}

// tanh(a * b + c) and similar functions, so that each result shows which values were read.
Symbol network(unsigned kind) {
  const Symbol a = Symbol::variable("a"), b = Symbol::variable("b"), c = Symbol::variable("c");
  switch (kind % 3) {
    case 0:
      return op("tanh", {op("elemwise_add", {op("elemwise_mul", {a, b}), c})}, "out");
    case 1:
      return op("elemwise_sub", {op("sigmoid", {a}), op("elemwise_mul", {b, c})}, "out");
    default:
      return op("elemwise_mul", {op("elemwise_add", {a, b}), op("tanh", {c})}, "out");
  }
}

// A sequence of random calls on a few shared arrays. `in_step`: on the host's devices, with a wait after each.
class World {
 public:
  World(int seed, bool in_step) : random_(std::minstd_rand::result_type(seed + 1)), in_step_(in_step) {
    for (size_t i = 0; i < kArrays; ++i) {
      const NDArray array = NDArray::create({kRows, kColumns}, Dtype::kFloat32, context(i % 3));
      array.fill_uniform(-1, 1, uint64_t(i) + 7);
      arrays_.push_back(array);
    }
    for (size_t e = 0; e < kExecutors; ++e) executors_.push_back(bind());
    make_group();
  }

  void run(int num_calls) {
    for (int i = 0; i < num_calls; ++i) {
      call();
      if (in_step_) settle();
    }
  }

  std::vector<float> result() {
    for (const NDArray &array : arrays_) note(array);
    for (size_t d = 0; d < 2; ++d) note(group_->array(GroupList::kParams, 0, d));
    note(group_->merged(GroupList::kOutputs, 0));
    return noted_;
  }

 private:
  static constexpr size_t kArrays = 8, kExecutors = 4;

  Context context(size_t id) const { return {in_step_ || id == 2 ? DeviceType::kCpu : DeviceType::kGpu, int32_t(id)}; }
  size_t pick(size_t count) { return size_t(random_() % count); }

  // Three arguments, three gradients or none, an output: all of one context, all different.
  std::shared_ptr<Executor> bind() {
    const size_t id = pick(3);
    const bool trains = pick(2) != 0;
    std::vector<NDArray> mine;
    for (size_t i = 0; i < kArrays; ++i) {
      if (i % 3 == id) mine.push_back(arrays_[i]);
    }
    while (mine.size() < 7) {
      mine.push_back(NDArray::create({kRows, kColumns}, Dtype::kFloat32, context(id)));
      mine.back().fill(0.25);
    }
    std::shuffle(mine.begin(), mine.end(), random_);
    ExecutorOptions options;
    options.context = context(id);
    options.num_threads = 1;
    options.outputs = {mine[6]};
    std::vector<NDArray> grads;
    if (trains) grads = {mine[3], mine[4], mine[5]};
    const std::vector<GradReq> reqs(3, trains ? GradReq::kWrite : GradReq::kNull);
    return Executor::bind(network(unsigned(pick(3))), {mine[0], mine[1], mine[2]}, grads, reqs, {}, options);
  }

  void make_group() {
    const Symbol net = Symbol::create("FullyConnected", {{"num_hidden", std::to_string(kColumns)}, {"no_bias", "1"}},
                                      "fc", {}, {Symbol::variable("data")});
    GroupOptions options;
    options.contexts = {context(0), context(1)};
    options.param_names = {"fc_weight"};
    options.num_threads = 1;
    const DataDescs data = {{"data", {kRows, kColumns}, Dtype::kFloat32, "NC"}};
    group_ = Group::create(net, data, {}, options);
    const NDArray weight = NDArray::create({kColumns, kColumns}, Dtype::kFloat32, Context());
    weight.fill_uniform(-1, 1, 3);
    group_->set_params({{"fc_weight", weight}}, nullptr, false);
    optimizer_ = Optimizer::create("sgd", {{"learning_rate", "0.05"}, {"momentum", "0.5"}});
  }

  void call() {
    Executor &executor = *executors_[pick(kExecutors)];
    const NDArray &one = arrays_[pick(kArrays)], &other = arrays_[pick(kArrays)];
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        executor.forward(pick(2) != 0);
        break;
      case 3:
      case 4:
        // The head gradient is an array that another executor has just written.
        executor.forward(true);
        executor.backward({one});
        break;
      case 5:
        one.copy_from(other);
        break;
      case 6:
        executor.load(int(pick(3)), one);
        break;
      case 7:
        executors_[pick(kExecutors)] = bind();
        break;
      case 8:
        group_->forward({one}, {}, 1);
        group_->backward({other});
        break;
      case 9:
        group_->forward({one}, {}, 1);
        group_->backward({other});
        group_->update(optimizer_, UpdateMode(pick(2)));
        break;
      case 10:
        one.copy_from(group_->merged(GroupList::kOutputs, 0));
        break;
      default: {
        note(one);
        const std::vector<float> values(size_t(kRows * kColumns), float(pick(100)) / 100);
        one.write(values.data(), values.size() * sizeof(float));
      }
    }
  }

  void note(const NDArray &array) {
    std::vector<float> values(size_t(array.size()));
    array.read(values.data(), values.size() * sizeof(float));
    noted_.insert(noted_.end(), values.begin(), values.end());
  }

  void settle() {
    for (const auto &executor : executors_) executor->wait();
    group_->wait();
    for (const NDArray &array : arrays_) array.wait_to_write();
  }

  std::minstd_rand random_;
  const bool in_step_;
  std::vector<NDArray> arrays_;
  std::vector<std::shared_ptr<Executor>> executors_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Optimizer> optimizer_;
  std::vector<float> noted_;
};

void compare(int seed, int num_calls) {
  use_slow_backend(seed);
  World in_step(seed, true), slow(seed, false);
  in_step.run(num_calls);
  slow.run(num_calls);
  const std::vector<float> expected = in_step.result(), found = slow.result();
  CHECK_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == found[i]) continue;
    unit::fail(__FILE__, __LINE__, text("seed ", seed, ": value ", i, " is ", found[i], ", expected ", expected[i]));
    return;
  }
}

}  // namespace

TEST(random_calls_on_slow_devices_give_what_they_give_in_step) {
  for (int seed = 0; seed < (unit::kSanitized ? 60 : 150); ++seed) compare(seed, 60);
}

// E2 reads what E1 writes, and E1 gets E2's gradient as its head gradient, as in the loop of a GAN.
TEST(executors_that_read_each_others_arrays_run_in_order) {
  for (int seed = 0; seed < 40; ++seed) {
    use_slow_backend(seed);
    const Context first{DeviceType::kGpu, 0}, second{DeviceType::kGpu, 0};
    const auto array = [&](double value) {
      const NDArray result = NDArray::create({kRows, kColumns}, Dtype::kFloat32, first);
      result.fill(value);
      return result;
    };
    const NDArray x = array(0.5), y = array(0), z = array(0), dx = array(0), dy = array(0), head = array(1);
    const Symbol v = Symbol::variable("v"), square = op("square", {v}, "square");
    ExecutorOptions options;
    options.context = first;
    options.outputs = {y};
    const auto generator = Executor::bind(square, {x}, {dx}, {GradReq::kWrite}, {}, options);
    options.context = second;
    options.outputs = {z};
    const auto critic = Executor::bind(square, {y}, {dy}, {GradReq::kWrite}, {}, options);
    for (int step = 0; step < 4; ++step) {
      generator->forward(true);
      critic->forward(true);
      critic->backward({head});
      generator->backward({dy});
      x.copy_from(dx);
    }
    double value = 0.5;
    for (int step = 0; step < 4; ++step) value = 4 * value * value * value;  // of x^4
    std::vector<float> found(size_t(kRows * kColumns));
    x.read(found.data(), found.size() * sizeof(float));
    CHECK_NEAR(double(found[0]), value, 1e-6);
  }
}

TEST(work_that_reads_what_was_not_written_fails_with_the_reason) {
  for (int seed = 0; seed < 20; ++seed) {
    use_slow_backend(seed);
    const Context gpu{DeviceType::kGpu, 0};
    const auto timeline = std::make_shared<Timeline>(get_device(gpu)->create_queue(QueueOptions()));
    const NDArray x = NDArray::create({kRows}, Dtype::kFloat32, gpu),
                  y = NDArray::create({kRows}, Dtype::kFloat32, gpu);
    ExecutorOptions options;
    options.context = gpu;
    options.outputs = {y};
    const auto reader = Executor::bind(op("square", {Symbol::variable("v")}), {x}, {}, {}, {}, options);
    x.begin_write(timeline);
    timeline->queues()[0]->call(
        [&] {
          x.fail("planted");
          throw Error(Code::kExecution, "planted");
        },
        "writer");
    try {
      reader->forward(false);  // it may be known already
    } catch (const Error &error) {
      CHECK(std::string(error.what()).find("planted") != std::string::npos);
      continue;
    }
    const NDArray copy = NDArray::create({kRows}, Dtype::kFloat32, gpu);
    std::vector<float> values(static_cast<size_t>(kRows));
    bool copied = true;
    try {
      copy.copy_from(y);
    } catch (const Error &) {
      copied = false;
    }
    CHECK_THROWS(y.read(values.data(), values.size() * sizeof(float)), Error, "planted");
    CHECK_THROWS(y.read(values.data(), values.size() * sizeof(float)), Error, "planted");
    if (copied) {
      CHECK_THROWS(copy.read(values.data(), values.size() * sizeof(float)), Error, "planted");
      CHECK_THROWS(copy.wait(), Error, "planted");
    }
    try {
      timeline->sync();  // the writer's own error, unless x was waited for
    } catch (const Error &) {
    }
    x.fill(2);
    reader->forward(false);
    y.read(values.data(), values.size() * sizeof(float));
    CHECK_EQ(values[0], 4.0f);
  }
}

// ---- failures ----------------------------------------------------------------------------------------------------

namespace {

const Context kGpu{DeviceType::kGpu, 0};

NDArray vector_of(float value) {
  const NDArray array = NDArray::create({kRows}, Dtype::kFloat32, kGpu);
  array.fill(double(value));
  return array;
}

float first_of(const NDArray &array) {
  std::vector<float> values(size_t(array.size()));
  array.read(values.data(), array.bytes());
  return values[0];
}

// Queued work of another owner that is to write an array, and will fail.
std::shared_ptr<Timeline> queue_failure(const NDArray &array) {
  const auto timeline = std::make_shared<Timeline>(get_device(kGpu)->create_queue(QueueOptions()));
  array.begin_write(timeline);
  timeline->queues()[0]->call(
      [array, by = timeline.get()] {
        array.fail("planted", by);
        throw Error(Code::kExecution, "planted");
      },
      "writer");
  return timeline;
}

std::shared_ptr<Executor> bind_one(const Symbol &symbol, const std::vector<NDArray> &args,
                                   const std::vector<NDArray> &grads, GradReq req, const std::vector<NDArray> &aux = {},
                                   const std::vector<NDArray> &outputs = {}) {
  ExecutorOptions options;
  options.context = kGpu;
  options.outputs = outputs;
  std::vector<GradReq> reqs(args.size(), req);
  for (size_t i = 0; i < reqs.size(); ++i)
    if (i >= grads.size() || !grads[i]) reqs[i] = GradReq::kNull;
  return Executor::bind(symbol, args, grads, reqs, aux, options);
}

bool refused(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &error) {
    CHECK(std::string(error.what()).find("planted") != std::string::npos);
    return true;
  }
  return false;
}

}  // namespace

TEST(arrays_changed_by_a_failed_training_pass_are_invalid_until_set) {
  int num_queued = 0;
  for (int seed = 0; seed < 10; ++seed) {
    use_slow_backend(seed);
    const auto matrix = [](double value) {
      const NDArray array = NDArray::create({kRows, kColumns}, Dtype::kFloat32, kGpu);
      array.fill(value);
      return array;
    };
    const auto channels = [](double value) {
      const NDArray array = NDArray::create({kColumns}, Dtype::kFloat32, kGpu);
      array.fill(value);
      return array;
    };
    const NDArray x = matrix(1), dx = matrix(0), gamma = channels(1), dgamma = channels(0), beta = channels(0),
                  mean = channels(0), var = channels(1), head = matrix(1);
    const auto exec = bind_one(op("BatchNorm", {Symbol::variable("x")}, "bn"), {x, gamma, beta},
                               {dx, dgamma, NDArray()}, GradReq::kWrite, {mean, var});
    const auto writer = queue_failure(x);
    // The failure may be known already, before one call or the other.
    if (refused([&] { exec->forward(true); }) || refused([&] { exec->backward({head}); })) continue;
    ++num_queued;
    CHECK(refused([&] { exec->wait(); }));
    exec->wait();
    CHECK_THROWS(first_of(mean), Error, "planted");
    CHECK_THROWS(first_of(var), Error, "planted");
    CHECK_THROWS(first_of(gamma), Error, "planted");  // it is fixed: backward was to set it
    CHECK_THROWS(first_of(dx), Error, "planted");
    x.fill(2);
    CHECK_THROWS(exec->forward(false), Error, "argument 'bn_gamma'");
    gamma.fill(1);
    CHECK_THROWS(exec->forward(true), Error, "auxiliary state");
    mean.fill(0);
    var.fill(1);
    exec->forward(true);
    exec->backward({head});
    CHECK_NEAR(double(first_of(mean)), 0.2, 1e-6);
    CHECK_EQ(first_of(gamma), 1.0f);
  }
  CHECK(num_queued > 0);
}

TEST(a_failed_inference_leaves_states_alone) {
  use_slow_backend(3);
  const NDArray x = NDArray::create({kRows, kColumns}, Dtype::kFloat32, kGpu);
  const auto channels = [] { return NDArray::create({kColumns}, Dtype::kFloat32, kGpu); };
  const NDArray mean = channels();
  const auto exec = bind_one(op("BatchNorm", {Symbol::variable("x")}, "bn"), {x, channels(), channels()}, {},
                             GradReq::kNull, {mean, channels()});
  const auto writer = queue_failure(x);
  if (!refused([&] { exec->forward(false); })) CHECK(refused([&] { exec->wait(); }));
  CHECK_EQ(first_of(mean), 0.0f);
}

// A batch norm over both devices, then rows by an index that is out of range on one device: every query names the layer
// that failed, and the statistics that were exchanged before it are valid.
TEST(a_device_that_fails_after_an_exchange_is_the_one_reported) {
  const Symbol norm = Symbol::create("_contrib_SyncBatchNorm", {{"key", "n"}}, "norm", {}, {Symbol::variable("data")});
  const Symbol late = Symbol::create("take", {{"mode", "raise"}}, "late", {}, {norm, Symbol::variable("index")});
  const Symbol last = Symbol::create("_contrib_SyncBatchNorm", {{"key", "l"}}, "last", {}, {late});
  const DataDescs data = {{"data", {kRows, kColumns}, Dtype::kFloat32, "NC"}, {"index", {kRows}, Dtype::kFloat32, "N"}};
  for (const Symbol &net : {late, last}) {
    for (int seed = 0; seed < 30; ++seed) {
      use_slow_backend(seed);
      GroupOptions options;
      options.contexts = {{DeviceType::kGpu, 0}, {DeviceType::kGpu, 1}};
      options.all_params = true;
      options.num_threads = 1;
      const auto group = Group::create(net, data, {}, options);
      const NDArray rows = NDArray::create({kRows, kColumns}, Dtype::kFloat32, Context());
      const NDArray good = NDArray::create({kRows}, Dtype::kFloat32, Context());
      const NDArray bad = NDArray::create({kRows}, Dtype::kFloat32, Context());
      rows.fill_uniform(-1, 1, 5);
      const float numbers[kRows] = {0, 1, 0, 99};
      bad.write(numbers, sizeof numbers);
      group->forward({rows, good}, {}, 1);
      group->forward({rows, bad}, {}, 1);
      CHECK_THROWS(group->wait(), Error, "'late': indices[1]: expected 0 to 1, found 99");
    }
  }
}

TEST(nothing_is_added_to_a_gradient_that_was_not_written) {
  for (int seed = 0; seed < 10; ++seed) {
    use_slow_backend(seed);
    const NDArray x = vector_of(3), dx = vector_of(1), head = vector_of(1);
    const auto exec = bind_one(op("square", {Symbol::variable("x")}), {x}, {dx}, GradReq::kAdd);
    exec->forward(true);
    CHECK_EQ(first_of(exec->outputs()[0]), 9.0f);
    const auto writer = queue_failure(head);
    if (!refused([&] { exec->backward({head}); })) {
      CHECK(refused([&] { exec->wait(); }));
      CHECK_EQ(first_of(exec->outputs()[0]), 9.0f);  // a failed backward does not invalidate the forward pass
      head.fill(1);
      exec->forward(true);
      CHECK_THROWS(exec->backward({head}), Error, "gradient of 'x': the array was not written");
    }
    head.fill(1);
    dx.fill(10);
    exec->forward(true);
    exec->backward({head});
    CHECK_EQ(first_of(dx), 16.0f);
  }
}

TEST(a_failed_update_leaves_weight_and_states_bad_and_others_alone) {
  int num_queued = 0;
  for (int seed = 0; seed < 10; ++seed) {
    use_slow_backend(seed);
    const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "1"}, {"momentum", "0.5"}});
    const NDArray weight = vector_of(1), grad = vector_of(1), other = vector_of(1), other_grad = vector_of(1);
    optimizer->update("w", 0, weight, grad);
    CHECK_EQ(first_of(weight), 0.0f);
    const auto writer = queue_failure(grad);
    const bool known = refused([&] { optimizer->update("w", 0, weight, grad); });
    CHECK_EQ(optimizer->get("num_update"), known ? 1.0 : 2.0);
    optimizer->update("v", 0, other, other_grad);  // of the same queue
    CHECK_EQ(first_of(other), 0.0f);
    if (known) continue;
    ++num_queued;
    CHECK_THROWS(first_of(weight), Error, "planted");
    CHECK_THROWS(optimizer->save_states(), Error, "planted");
    grad.fill(1);
    CHECK(refused([&] { optimizer->update("w", 0, weight, grad); }));
    weight.fill(1);
    CHECK(refused([&] { optimizer->update("w", 0, weight, grad); }));  // its state
    CHECK_EQ(optimizer->get("num_update"), 2.0);                       // refused calls are not counted
    immediate_timeline(kGpu)->sync();
  }
  CHECK(num_queued > 0);
}

TEST(states_of_a_groups_failed_update_are_bad) {
  for (size_t num_devices : {size_t(1), size_t(2)}) {
    for (const UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice, UpdateMode::kNoStore}) {
      use_slow_backend(1);
      GroupOptions options;
      for (size_t d = 0; d < num_devices; ++d) options.contexts.push_back({DeviceType::kCpu, int32_t(d)});
      options.param_names = {"fc_weight"};
      options.num_threads = 1;
      const Symbol net = Symbol::create("FullyConnected", {{"num_hidden", "2"}, {"no_bias", "1"}}, "fc", {},
                                        {Symbol::variable("data")});
      const DataDescs data = {{"data", {kRows, kColumns}, Dtype::kFloat32, "NC"}};
      const NDArray batch = NDArray::create({kRows, kColumns}, Dtype::kFloat32, Context()),
                    head = NDArray::create({kRows, 2}, Dtype::kFloat32, Context());
      const auto optimizer = Optimizer::create("sgd", {{"momentum", "0.5"}});
      setenv("COHORT_FAULT", "fc", 1);
      const auto group = Group::create(net, data, {}, options);
      unsetenv("COHORT_FAULT");
      optimizer->save_states();
      group->forward({batch}, {}, 1);
      group->backward({head});
      bool queued = true;
      try {
        group->update(optimizer, mode);
      } catch (const Error &) {  // it is known already that there are no gradients
        queued = false;
      }
      CHECK_THROWS(group->wait(), Error, "'fc'");
      if (queued) CHECK_THROWS(optimizer->save_states(), Error, "not written");
      CHECK_EQ(optimizer->get("num_update"), queued ? 1.0 : 0.0);
    }
  }
}

// The failure is reported when the array's next writer has already been queued: it affects only the readers in between.
TEST(a_failure_does_not_stick_to_what_was_queued_to_be_written_after_it) {
  for (int seed = 0; seed < 40; ++seed) {
    use_slow_backend(seed);
    const NDArray x = vector_of(1), y = vector_of(1), z = vector_of(2);
    const auto between = bind_one(op("square", {Symbol::variable("v")}), {x}, {}, GradReq::kNull, {}, {y});
    const auto after = bind_one(op("square", {Symbol::variable("v")}), {z}, {}, GradReq::kNull, {}, {x});
    const auto writer = queue_failure(x);
    const bool known = refused([&] { between->forward(false); });
    after->forward(false);
    const auto reader = bind_one(op("square", {Symbol::variable("v")}), {x}, {}, GradReq::kNull);
    reader->forward(false);
    CHECK_EQ(first_of(reader->outputs()[0]), 16.0f);
    CHECK_EQ(first_of(x), 4.0f);
    if (!known) CHECK_THROWS(first_of(y), Error, "planted");
  }
}

// The same for operators applied at once, on one queue and behind others; a failure on a queue changes no versions.
TEST(arrays_overwritten_by_applied_operators_are_valid_again) {
  for (int seed = 0; seed < 40; ++seed) {
    use_slow_backend(seed);
    const NDArray x = vector_of(1), y = vector_of(1), z = vector_of(2);
    const auto writer = queue_failure(x);
    refused([&] { invoke("square", {}, {x}, {y}, kGpu); });  // it may be known already
    invoke("square", {}, {z}, {y}, kGpu);
    const uint64_t version = y.version();
    const NDArray w = invoke("square", {}, {y}, {}, kGpu)[0];
    invoke("square", {}, {z}, {x}, kGpu);
    const NDArray copy = vector_of(0);
    copy.copy_from(x);
    CHECK_EQ(first_of(w), 16.0f);
    CHECK_EQ(first_of(copy), 4.0f);
    CHECK_EQ(y.version(), version);
  }
}

// A change in place counts as a write, whether it had to wait for other work before it or not.
TEST(a_reader_after_a_change_in_place_waits_for_it) {
  const auto timeline = [] { return std::make_shared<Timeline>(get_device(kGpu)->create_queue(QueueOptions())); };
  const auto copy = [](const NDArray &from, const NDArray &to, const Timeline &by) {
    by.queues()[0]->copy(to.data(), from.data(), to.bytes(), nullptr);
  };
  for (int seed = 0; seed < 40; ++seed) {
    use_slow_backend(seed);
    const auto writer = timeline(), changer = timeline(), reader = timeline();
    const NDArray x = vector_of(1), first = vector_of(2), second = vector_of(3), found = vector_of(0);
    x.begin_write(writer);
    copy(first, x, *writer);
    x.begin_change(changer);
    copy(second, x, *changer);
    writer->sync();
    x.begin_read(reader);
    found.begin_write(reader);
    copy(x, found, *reader);
    reader->sync();
    changer->sync();
    CHECK_EQ(found.data_as<float>()[0], 3.0f);
  }
}

TEST(a_batch_that_a_failure_kept_from_being_loaded_is_missed) {
  int num_queued = 0;
  for (int seed = 0; seed < 10; ++seed) {
    use_slow_backend(seed);
    const NDArray x = vector_of(1), batch = vector_of(3), bad = vector_of(0);
    const auto exec = bind_one(op("square", {Symbol::variable("v")}), {x}, {}, GradReq::kNull);
    const auto writer = queue_failure(bad);
    if (refused([&] { exec->load(0, bad); })) continue;
    ++num_queued;
    exec->load(0, batch);  // skipped, like everything on its queue until the failure has been reported
    CHECK(refused([&] { exec->wait(); }));
    CHECK_THROWS(exec->forward(false), Error, "argument 'v'");
    exec->load(0, batch);
    exec->forward(false);
    CHECK_EQ(first_of(exec->outputs()[0]), 9.0f);
  }
  CHECK(num_queued > 0);
}

// Steps that use what their forward pass kept are also queued in both ways, behind the work that writes their inputs.
TEST(tapes_are_queued_forward_and_backward) {
  int num_queued = 0;
  for (int seed = 0; seed < 20; ++seed) {
    use_slow_backend(seed);
    const NDArray x = vector_of(3), dx = vector_of(0), bad = vector_of(1), dbad = vector_of(0);
    Tape tape;
    tape.mark({x, bad}, {dx, dbad}, {GradReq::kWrite, GradReq::kWrite});
    const auto record = [&](const NDArray &array) {
      const NDArray y = tape.invoke("square", {}, {array}, {}, kGpu, 0)[0];
      return tape.invoke("sort", {}, {y}, {}, kGpu, 0)[0];
    };
    const auto writer = queue_failure(bad);
    NDArray failed;
    const bool known = refused([&] {
      failed = record(bad);
      tape.backward({failed}, {}, {});
    });
    tape.backward({record(x)}, {}, {});
    CHECK_EQ(first_of(dx), 6.0f);
    if (known) continue;
    ++num_queued;
    CHECK_THROWS(first_of(failed), Error, "planted");
    CHECK_THROWS(first_of(dbad), Error, "planted");
  }
  CHECK(num_queued > 0);
}

UNIT_MAIN()
