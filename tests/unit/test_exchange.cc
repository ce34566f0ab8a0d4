// SPDX-License-Identifier: Apache-2.0
// The exchange of gradients on real queues: sums in the order of the devices whoever works, buckets told of in the
// midst of backward, failures that nobody waits for for ever.
#include "group/exchange.hpp"

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "group/group.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

constexpr int64_t kSizes[] = {3, 20000, 50, 40000, 1, 16384, 70};

float gradient_value(size_t param, size_t device, int64_t i, int step) {
  return float((i * 7 + int64_t(param) * 13 + int64_t(device) * 29 + step * 3) % 101) * 0.01f - 0.5f;
}

float first_weight(size_t param, int64_t i) { return float((i + int64_t(param)) % 17) * 0.1f; }

// An array on cpu(id), or, as far as anybody can tell but by looking, on a gpu: its memory is not for the host.
NDArray array_on(bool gpu, size_t id, int64_t size) {
  const NDArray array = NDArray::create(Shape{size}, Dtype::kFloat32, {DeviceType::kCpu, int32_t(id)});
  if (!gpu) return array;
  const Context context{DeviceType::kGpu, int32_t(id)};
  auto memory = std::make_shared<Memory>(context, array.data(), array.bytes(), [array](void *) {});
  return NDArray::wrap(std::move(memory), Shape{size}, Dtype::kFloat32);
}

// Devices with gradients that queued work writes, as an executor would, and the exchange over them. Bit i of `gpus`:
// device i is a gpu.
struct Devices {
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<ExchangeParam> params;
  std::unique_ptr<Exchange> exchange;

  Devices(size_t num_devices, size_t bucket_bytes, unsigned gpus = 0) {
    for (size_t d = 0; d < num_devices; ++d) {
      QueueOptions options;
      options.num_threads = 1;
      queues.push_back(get_device({DeviceType::kCpu, int32_t(d)})->create_queue(options));
    }
    for (size_t p = 0; p < std::size(kSizes); ++p) {
      ExchangeParam param;
      param.name = "p" + std::to_string(p) + "_weight";
      param.position = int(p);
      for (size_t d = 0; d < num_devices; ++d) {
        for (auto *list : {&param.weights, &param.grads}) {
          list->push_back(array_on((gpus >> d) & 1, d, kSizes[p]));
          list->back().storage()->attach(queues[d]);
        }
        for (int64_t i = 0; i < kSizes[p]; ++i) param.weights[d].data_as<float>()[i] = first_weight(p, i);
      }
      params.push_back(param);
    }
    exchange = std::make_unique<Exchange>(params, queues, int(params.size()), bucket_bytes, false);
  }

  // Writes gradients bucket by bucket; devices take different times. `fails`: that device throws half-way.
  void backward(int step, int fails = -1) {
    exchange->begin_backward(true);
    const std::vector<int> &ends = exchange->bucket_ends();
    for (size_t d = 0; d < queues.size(); ++d) {
      const std::vector<std::function<void()>> &after = exchange->after_bucket(d);
      int begin = 0;
      for (size_t b = 0; b < ends.size(); ++b) {
        const int end = ends[b];
        const bool fail = int(d) == fails && b == ends.size() / 2;
        queues[d]->call(
            [this, d, begin, end, step, fail] {
              if (fail) throw Error(Code::kExecution, "planted");
              std::this_thread::sleep_for(std::chrono::microseconds((step * 37 + int(d) * 91 + begin * 53) % 200));
              for (int p = begin; p < end; ++p) {
                float *const to = params[size_t(p)].grads[d].data_as<float>();
                for (int64_t i = 0; i < kSizes[p]; ++i) to[i] = gradient_value(size_t(p), d, i, step);
              }
            },
            "backward");
        if (b < after.size()) queues[d]->call(after[b], "bucket");
        begin = end;
      }
    }
  }
};

float sum_of(size_t param, size_t num_devices, int64_t i, int step) {
  float sum = gradient_value(param, 0, i, step);
  for (size_t d = 1; d < num_devices; ++d) sum += gradient_value(param, d, i, step);
  return sum;
}

void sync_all(Devices &devices) {
  for (const auto &queue : devices.queues) queue->sync();
}

// Momentum by hand, in the order of the kernel's operations; both are float32.
void check_weights(Devices &devices, int num_steps, UpdateMode mode) {
  sync_all(devices);
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

void train(size_t num_devices, size_t bucket_bytes, UpdateMode mode, int num_steps, unsigned gpus = 0) {
  Devices devices(num_devices, bucket_bytes, gpus);
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
    train(2, bucket_bytes, UpdateMode::kOnStore, 12);
    train(3, bucket_bytes, UpdateMode::kOnStore, 5);
  }
}

TEST(sums_replace_gradients_and_each_device_updates) {
  train(2, 1, UpdateMode::kPerDevice, 8);
  train(4, 60000, UpdateMode::kPerDevice, 8);
}

TEST(devices_part_without_a_store) {
  train(1, 0, UpdateMode::kOnStore, 6);
  train(3, 1, UpdateMode::kNoStore, 6);
}

TEST(memory_that_the_host_does_not_see_goes_through_copies) {
  for (unsigned gpus : {1u, 2u, 3u, 6u}) {
    train(gpus > 3 ? 3 : 2, 1, UpdateMode::kOnStore, 8, gpus);
    train(gpus > 3 ? 3 : 2, 1, UpdateMode::kPerDevice, 8, gpus);
  }
}

TEST(a_weight_that_the_host_sets_reaches_the_store) {
  for (UpdateMode mode : {UpdateMode::kOnStore, UpdateMode::kPerDevice}) {
    Devices devices(2, 1, /* gpus */ 1);
    const auto optimizer = momentum_sgd();
    for (int step = 0; step < 3; ++step) {
      devices.backward(step);
      devices.exchange->update(optimizer, mode);
    }
    sync_all(devices);
    for (size_t p = 0; p < devices.params.size(); ++p) {
      for (const NDArray &weight : devices.params[p].weights) {
        for (int64_t i = 0; i < kSizes[p]; ++i) weight.data_as<float>()[i] = first_weight(p, i);
        weight.storage()->written();
      }
    }
    const auto fresh = momentum_sgd();
    for (int step = 0; step < 3; ++step) {
      devices.backward(step);
      devices.exchange->update(fresh, mode);
    }
    check_weights(devices, 3, mode);
  }
}

TEST(a_failed_copy_of_gradients_fails_the_parameters) {
  Devices devices(2, 1, /* gpus */ 2);
  devices.backward(0);
  sync_all(devices);
  devices.params[0].grads[1].storage()->fail("planted");
  devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore);
  CHECK_THROWS(devices.queues[0]->sync(), Error, "no gradients");
  CHECK_THROWS(devices.params[2].weights[1].wait(), Error, "not written");
}

TEST(results_are_the_same_bits_in_every_run) {
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 4; ++run) {
    Devices devices(3, run % 2 ? 1 : 60000);
    const auto optimizer = momentum_sgd();
    for (int step = 0; step < 6; ++step) {
      devices.backward(step * (run == 0 ? 1 : 1));
      devices.exchange->update(optimizer, UpdateMode::kOnStore);
    }
    sync_all(devices);
    for (size_t p = 0; p < devices.params.size(); ++p) {
      const float *const found = devices.params[p].weights[2].data_as<float>();
      const std::vector<float> values(found, found + kSizes[p]);
      if (run == 0) first.push_back(values);
      CHECK(values == first[p]);
    }
  }
}

TEST(a_pass_without_an_update_is_left_behind) {
  Devices devices(2, 1);
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
  Devices devices(2, 1);
  const auto optimizer = momentum_sgd();
  devices.backward(0);
  devices.exchange->update(optimizer, UpdateMode::kPerDevice);
  sync_all(devices);
  const float once = devices.params[1].weights[1].data_as<float>()[3];
  // The sums of sums now.
  devices.exchange->update(optimizer, UpdateMode::kPerDevice);
  sync_all(devices);
  CHECK_EQ(devices.params[1].grads[0].data_as<float>()[3], 2 * sum_of(1, 2, 3, 0));
  CHECK(devices.params[1].weights[1].data_as<float>()[3] != once);
}

TEST(a_failed_device_fails_the_update_and_nobody_hangs) {
  Devices devices(3, 1);
  const auto optimizer = momentum_sgd();
  devices.backward(0, /* fails */ 1);
  devices.exchange->update(optimizer, UpdateMode::kOnStore);
  CHECK_THROWS(devices.queues[1]->sync(), Error, "planted");
  CHECK_THROWS(devices.queues[0]->sync(), Error, "device 1 failed");
  CHECK_THROWS(devices.queues[2]->sync(), Error, "device 1 failed");
  CHECK_THROWS(devices.params[0].weights[2].wait(), Error, "not written");
  devices.exchange->forget_failed_passes();
  // Set anew, they are good again, and the exchange works.
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
  Devices devices(2, 1);
  devices.backward(0);
  sync_all(devices);
  devices.params[0].grads[1].storage()->fail("planted");
  devices.exchange->update(momentum_sgd(), UpdateMode::kOnStore);
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

TEST(a_learning_rate_set_later_does_not_reach_back) {
  Devices devices(2, 1);
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "0.1"}});
  for (int step = 0; step < 20; ++step) {
    devices.backward(0);
    optimizer->set("learning_rate", step % 2 ? 0.0 : 0.1);
    devices.exchange->update(optimizer, UpdateMode::kOnStore);
  }
  sync_all(devices);
  double weight = double(first_weight(1, 9));
  for (int step = 0; step < 10; ++step) weight -= 0.1 * double(sum_of(1, 2, 9, 0));
  CHECK_NEAR(double(devices.params[1].weights[0].data_as<float>()[9]), weight, 1e-4);
}

UNIT_MAIN()
