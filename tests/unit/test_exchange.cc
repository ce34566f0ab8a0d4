// SPDX-License-Identifier: Apache-2.0
// The exchange of gradients on real queues: sums in the order of the devices, on whatever thread; buckets that are
// reported during backward; failures that leave nobody waiting for ever.
#include "group/exchange.hpp"

#include <atomic>
#include <chrono>
#include <future>

#include "base/error.hpp"
#include "group/group.hpp"
#include "support/exchange_devices.hpp"

using namespace cohort;

namespace {

struct Exchanged : Devices {
  std::unique_ptr<Exchange> exchange;

  Exchanged(const DevicesOptions &options, size_t bucket_bytes)
      : Devices(options), exchange(std::make_unique<Exchange>(params, devices, int(params.size()), bucket_bytes)) {}
  Exchanged(size_t num_devices, size_t bucket_bytes) : Exchanged(DevicesOptions{num_devices, 0, false}, bucket_bytes) {}

  void backward(int step, int fails = -1) { Devices::backward(*exchange, exchange->buckets().ends, step, fails); }
  void set_weights() {
    for (size_t p = 0; p < params.size(); ++p) {
      for (const NDArray &weight : params[p].weights) {
        for (int64_t i = 0; i < kSizes[p]; ++i) weight.data_as<float>()[i] = first_weight(p, i);
        weight.written();
      }
    }
  }
};

// Momentum by hand, with the operations in the kernel's order; both are float32.
void check_weights(Exchanged &devices, int num_steps, UpdateMode mode) {
  devices.sync();
  const size_t num_devices = devices.queues.size();
  for (size_t p = 0; p < devices.params.size(); ++p) {
    for (size_t d = 0; d < num_devices; ++d) {
      const float *const found = devices.params[p].weights[d].data_as<float>();
      for (int64_t i = 0; i < kSizes[p]; ++i) {
        double weight = double(first_weight(p, i)), momentum = 0;
        for (int step = 0; step < num_steps; ++step) {
          const double grad = mode == UpdateMode::kNoStore ? double(gradient_value(p, d, i, step))
                                                           : double(sum_of(p, num_devices, i, step));
          momentum = 0.9 * momentum - 0.1 * (0.5 * grad + 0.01 * weight);
          weight += momentum;
        }
        CHECK_NEAR(double(found[i]), weight, 1e-5);
      }
      if (mode != UpdateMode::kNoStore) {
        CHECK(std::memcmp(found, devices.params[p].weights[0].data(), devices.params[p].weights[0].bytes()) == 0);
      }
    }
  }
}

std::shared_ptr<Optimizer> momentum_sgd() {
  return Optimizer::create("sgd",
                           {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {"wd", "0.01"}, {"rescale_grad", "0.5"}});
}

void train(const DevicesOptions &options, size_t bucket_bytes, UpdateMode mode, int num_steps) {
  const size_t num_devices = options.num_devices;
  Exchanged devices(options, bucket_bytes);
  const auto optimizer = momentum_sgd();
  for (int step = 0; step < num_steps; ++step) {
    devices.backward(step);
    devices.exchange->update(optimizer, mode);
  }
  check_weights(devices, num_steps, mode);
  if (mode == UpdateMode::kPerDevice) {
    for (size_t p = 0; p < devices.params.size(); ++p) {
      for (size_t d = 0; d < num_devices; ++d)
        CHECK_EQ(devices.params[p].grads[d].data_as<float>()[0], sum_of(p, num_devices, 0, num_steps - 1));
    }
  } else {
    CHECK_EQ(devices.params[1].grads[0].data_as<float>()[5], gradient_value(1, 0, 5, num_steps - 1));
  }
}

}  // namespace

TEST(the_store_is_updated_from_the_sum_and_copied) {
  for (size_t bucket_bytes : {size_t(0), size_t(1), size_t(60000), size_t(1) << 30}) {
    train({2, 0, false}, bucket_bytes, UpdateMode::kOnStore, 12);
    train({3, 0, false}, bucket_bytes, UpdateMode::kOnStore, 5);
  }
}

TEST(sums_replace_gradients_and_each_device_updates) {
  train({2, 0, false}, 1, UpdateMode::kPerDevice, 8);
  train({4, 0, false}, 60000, UpdateMode::kPerDevice, 8);
}

TEST(devices_part_without_a_store) {
  train({1, 0, false}, 0, UpdateMode::kOnStore, 6);
  train({3, 0, false}, 1, UpdateMode::kNoStore, 6);
}

TEST(memory_that_the_host_does_not_see_goes_through_copies) {
  for (unsigned gpus : {1u, 2u, 3u, 6u}) {
    train({gpus > 3 ? size_t(3) : 2, gpus, false}, 1, UpdateMode::kOnStore, 8);
    train({gpus > 3 ? size_t(3) : 2, gpus, false}, 1, UpdateMode::kPerDevice, 8);
  }
}

TEST(layers_on_other_contexts_take_part_in_the_order_of_their_device) {
  for (unsigned gpus : {0u, 1u, 3u}) {
    train({2, gpus, /* placed */ true}, 60000, UpdateMode::kOnStore, 8);
    train({2, gpus, /* placed */ true}, 1, UpdateMode::kPerDevice, 8);
  }
}

TEST(a_weight_that_the_host_sets_reaches_the_store) {
  for (UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice}) {
    Exchanged devices({2, /* gpus */ 1, false}, 1);
    const auto optimizer = momentum_sgd();
    for (int step = 0; step < 3; ++step) {
      devices.backward(step);
      devices.exchange->update(optimizer, mode);
    }
    devices.sync();
    devices.set_weights();
    const auto fresh = momentum_sgd();
    for (int step = 0; step < 3; ++step) {
      devices.backward(step);
      devices.exchange->update(fresh, mode);
    }
    check_weights(devices, 3, mode);
  }
}

TEST(a_failed_copy_of_gradients_fails_the_parameters) {
  Exchanged devices({2, /* gpus */ 2, false}, 1);
  devices.backward(0);
  std::promise<void> go_on = devices.fail_gradient(0, 1);
  devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore);
  go_on.set_value();
  CHECK_THROWS(devices.queues[0]->sync(), Error, "no gradients");
  CHECK_THROWS(devices.params[2].weights[1].wait(), Error, "not written");
}

TEST(results_are_the_same_bits_in_every_run) {
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 4; ++run) {
    Exchanged devices(3, run % 2 ? 1 : 60000);
    const auto optimizer = momentum_sgd();
    for (int step = 0; step < 6; ++step) {
      devices.backward(step * (run == 0 ? 1 : 1));
      devices.exchange->update(optimizer, UpdateMode::kOnStore);
    }
    devices.sync();
    for (size_t p = 0; p < devices.params.size(); ++p) {
      const float *const found = devices.params[p].weights[2].data_as<float>();
      const std::vector<float> values(found, found + kSizes[p]);
      if (run == 0) first.push_back(values);
      CHECK(values == first[p]);
    }
  }
}

TEST(a_pass_without_an_update_is_left_behind) {
  Exchanged devices(2, 1);
  const auto optimizer = momentum_sgd();
  for (int round = 0; round < 4; ++round) {
    devices.backward(7);
    devices.backward(8);
    devices.backward(round);
    devices.exchange->update(optimizer, UpdateMode::kOnStore);
  }
  check_weights(devices, 4, UpdateMode::kOnStore);
}

TEST(one_pass_may_be_used_for_two_updates) {
  Exchanged devices(2, 1);
  const auto optimizer = momentum_sgd();
  devices.backward(0);
  devices.exchange->update(optimizer, UpdateMode::kPerDevice);
  devices.sync();
  const float once = devices.params[1].weights[1].data_as<float>()[3];
  // Now sums of the sums.
  devices.exchange->update(optimizer, UpdateMode::kPerDevice);
  devices.sync();
  CHECK_EQ(devices.params[1].grads[0].data_as<float>()[3], 2 * sum_of(1, 2, 3, 0));
  CHECK(devices.params[1].weights[1].data_as<float>()[3] != once);
}

TEST(a_failed_device_fails_the_update_and_nobody_hangs) {
  Exchanged devices(3, 1);
  const auto optimizer = momentum_sgd();
  devices.backward(0, /* fails */ 1);
  devices.exchange->update(optimizer, UpdateMode::kOnStore);
  CHECK_THROWS(devices.queues[1]->sync(), Error, "planted");
  CHECK_THROWS(devices.queues[0]->sync(), Error, "device 1 failed");
  CHECK_THROWS(devices.queues[2]->sync(), Error, "device 1 failed");
  CHECK_THROWS(devices.params[0].weights[2].wait(), Error, "not written");
  devices.exchange->wait();
  // Once set again, they are valid, and the exchange works.
  for (size_t p = 0; p < devices.params.size(); ++p) {
    for (const NDArray &weight : devices.params[p].weights) {
      std::vector<float> values;
      for (int64_t i = 0; i < kSizes[p]; ++i) values.push_back(first_weight(p, i));
      weight.write(values.data(), weight.bytes());
    }
  }
  const auto fresh = momentum_sgd();
  for (int step = 0; step < 3; ++step) {
    devices.backward(step);
    devices.exchange->update(fresh, UpdateMode::kOnStore);
  }
  check_weights(devices, 3, UpdateMode::kOnStore);
}

TEST(gradients_that_failed_earlier_are_not_used) {
  Exchanged devices(2, 1);
  devices.backward(0);
  std::promise<void> go_on = devices.fail_gradient(0, 1);
  devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore);
  go_on.set_value();
  int num_errors = 0;
  for (const auto &queue : devices.queues) {
    try {
      queue->sync();
    } catch (const Error &error) {
      CHECK(error.code() == Code::kExecution);
      ++num_errors;
    }
  }
  CHECK(num_errors > 0);
}

TEST(a_gradient_that_is_known_to_have_failed_is_refused_at_once) {
  Exchanged devices(2, 1);
  devices.backward(0);
  devices.fail_gradient(0, 1).set_value();
  devices.sync();
  CHECK_THROWS(devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore), Error, "gradient of 'p0_weight'");
  devices.backward(0);
  devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore);
  check_weights(devices, 1, UpdateMode::kOnStore);
}

TEST(a_learning_rate_set_later_does_not_reach_back) {
  Exchanged devices(2, 1);
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "0.1"}});
  for (int step = 0; step < 20; ++step) {
    devices.backward(0);
    optimizer->set("learning_rate", step % 2 ? 0.0 : 0.1);
    devices.exchange->update(optimizer, UpdateMode::kOnStore);
  }
  devices.sync();
  double weight = double(first_weight(1, 9));
  for (int step = 0; step < 10; ++step) weight -= 0.1 * double(sum_of(1, 2, 9, 0));
  CHECK_NEAR(double(devices.params[1].weights[0].data_as<float>()[9]), weight, 1e-4);
}

TEST(queued_work_outlives_the_exchange_and_all_that_it_uses) {
  for (const DevicesOptions &options :
       {DevicesOptions{2, 0, false}, DevicesOptions{2, 2, false}, DevicesOptions{1, 0, false}}) {
    auto devices = std::make_unique<Exchanged>(options, 1);
    const std::vector<std::shared_ptr<Queue>> queues = devices->queues;
    const std::shared_ptr<std::atomic<int>> released = devices->released;
    std::promise<void> go_on;
    std::atomic<bool> in_time{false};
    queues[0]->call(
        [&in_time, held = go_on.get_future().share()] {
          in_time = held.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
        },
        "hold-up");
    devices->backward(0);
    devices->exchange->update(momentum_sgd(), UpdateMode::kOnStore);
    devices->backward(1);
    devices.reset();
    CHECK_EQ(int(*released), 0);
    go_on.set_value();
    for (const auto &queue : queues) queue->sync();
    CHECK(in_time);
    for (const auto &queue : queues) queue->finish();
    CHECK_EQ(size_t(*released), options.num_devices * std::size(kSizes));
  }
}

TEST(an_update_that_is_queued_in_part_fails_and_leaves_a_working_exchange) {
  for (const DevicesOptions &options :
       {DevicesOptions{3, 0, false}, DevicesOptions{2, 2, false}, DevicesOptions{2, 3, true}}) {
    for (UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice}) {
      bool failed = true;
      for (int n = 1; failed; n += 1 + n / 4) {
        Exchanged devices(options, 60000);
        devices.backward(0);
        failed = false;
        *devices.countdown = n;
        try {
          devices.exchange->update(momentum_sgd(), mode);
        } catch (const std::bad_alloc &) {
          failed = true;
        }
        *devices.countdown = 0;
        for (const ExchangeDevice &device : devices.devices) device.queue->finish();
        if (!failed) {
          check_weights(devices, 1, mode);
          break;
        }
        for (size_t p = 0; p < devices.params.size(); ++p) {  // no half-updated weight passes for a valid one
          for (const NDArray &weight : devices.params[p].weights) {
            for (int64_t i = 0; i < kSizes[p] && !weight.failed(); ++i)
              CHECK_EQ(weight.data_as<float>()[i], first_weight(p, i));
          }
        }
        for (const ExchangeDevice &device : devices.devices) {
          try {
            device.queue->sync();
          } catch (const Error &error) {  // from the queued work that waited in vain for the rest
            CHECK_EQ(error.subject(), std::string(kExchangeLabel));
          }
        }
        devices.exchange->wait();
        devices.set_weights();
        const auto optimizer = momentum_sgd();
        for (int step = 0; step < 2; ++step) {
          devices.backward(step);
          devices.exchange->update(optimizer, mode);
        }
        check_weights(devices, 2, mode);
        CHECK(n < 500);
      }
    }
  }
}

UNIT_MAIN()
