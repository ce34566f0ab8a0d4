// SPDX-License-Identifier: Apache-2.0
// Copies from pageable memory to simulated GPUs: their order among other work, sources that change right after the
// call, all sizes, several threads and devices, and failures.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "cuda_control.hpp"
#include "executor/executor.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1}, kGpu2{DeviceType::kGpu, 2};
const auto seed_anew = CONTROL(cudasim_seed);  // before the first use of a device
const auto fail_call = CONTROL(cudasim_fail_call);
const auto num_calls = CONTROL(cudasim_num_calls);
const auto in_use = CONTROL(cudasim_bytes_in_use);
const auto reports = CONTROL(cudasim_reports);

constexpr size_t kKilo = 1024, kMega = 1024 * kKilo;

std::vector<char> bytes_of(size_t count, unsigned seed) {
  std::vector<char> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = char((i * 2654435761u + seed * 40503u) >> 13);
  return all;
}

// A queue of a device, and an array there.
struct Line {
  explicit Line(const Context &context, size_t bytes)
      : device(get_device(context)), queue(device->create_queue(QueueOptions())), there(device->allocate(bytes)) {}

  void upload(const void *from, size_t bytes, size_t at = 0) {
    queue->copy(static_cast<char *>(there->data()) + at, from, bytes, nullptr);
  }
  void download(void *to, size_t bytes, size_t at = 0) {
    queue->copy(to, static_cast<char *>(there->data()) + at, bytes, nullptr);
  }
  // From now on the queue is one that runs programs again and again, and has work that is not done.
  void be_busy() {
    queue->run({nullptr, 0, WorkSize::kParallel, nullptr, false, false, "a program", &replay}, nullptr);
    queue->copy(mark, there->data(), sizeof mark, nullptr);
  }

  std::shared_ptr<Device> device;
  char mark[1];
  std::unique_ptr<Replay> replay;
  std::shared_ptr<Queue> queue;
  std::shared_ptr<Memory> there;
};

void same(const std::vector<char> &found, const std::vector<char> &expected) {
  CHECK_EQ(found.size(), expected.size());
  if (found != expected) unit::fail(__FILE__, __LINE__, "the bytes differ");
}

}  // namespace

// Must be the first one: later ones find the pinned memory of earlier ones.
TEST(without_pinned_memory_copies_are_right_and_one_warning_says_so) {
  std::atomic<int> num_warnings{0};
  const auto sink = std::make_shared<LogSink>(LogSink{LogLevel::kWarning, [&](LogLevel, const std::string &message) {
                                                        if (message.find("gpu(0): no pinned memory for 33554432") == 0)
                                                          ++num_warnings;
                                                      }});
  add_log_sink(sink);
  Line line(kGpu0, 3 * kMega);
  for (int i = 0; i < 2; ++i) {
    const std::vector<char> first = bytes_of(3 * kMega, unsigned(i));
    std::vector<char> source = first, back(source.size());
    fail_call(1, 2);  // cudaHostAlloc
    line.upload(source.data(), source.size());
    fail_call(0, 0);
    std::fill(source.begin(), source.end(), 0);
    line.download(back.data(), back.size());
    line.queue->sync();
    same(back, first);
  }
  remove_log_sink(sink.get());
  CHECK_EQ(num_warnings.load(), 1);
}

TEST(a_source_may_change_as_soon_as_the_call_has_returned) {
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    for (const bool busy : {false, true}) {
      for (const size_t bytes : {size_t(0), size_t(1), 64 * kKilo - 1, 64 * kKilo, 64 * kKilo + 1, 256 * kKilo,
                                 256 * kKilo + 1, 2 * kMega + 1, 35 * kMega + 7}) {
        if (unit::kSanitized && bytes > 3 * kMega) continue;
        for (const size_t at : {0, 3}) {  // where it begins there
          Line line(kGpu0, bytes + 8);
          std::vector<char> source = bytes_of(bytes + 1, 1), back(bytes);
          const std::vector<char> expected(source.begin() + 1, source.end());
          if (busy) line.be_busy();
          const size_t before = in_use(0);
          line.upload(source.data() + 1, bytes, at);
          // While the queue computes, the bytes go through a staging array.
          if (seed == 2) CHECK_EQ(in_use(0) - before, busy && bytes > 256 * kKilo ? bytes : 0);
          std::fill(source.begin(), source.end(), 0);
          line.download(back.data(), bytes, at);
          line.queue->sync();
          same(back, expected);
        }
      }
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(copies_are_ordered_with_earlier_reads_and_writes_of_the_same_array) {
  for (const uint64_t seed : {2, 3, 4, 5}) {
    seed_anew(seed);
    for (const size_t bytes : {1000 * size_t(1), 300 * kKilo, 5 * kMega + 3}) {
      for (const bool busy : {false, true}) {
        Line line(kGpu1, bytes);
        std::vector<char> source;
        std::vector<std::vector<char>> backs(6, std::vector<char>(bytes));
        if (busy) line.be_busy();
        for (unsigned i = 0; i < backs.size(); ++i) {
          source = bytes_of(bytes, 100 + i);
          line.upload(source.data(), bytes);  // overwritten at once
          source = bytes_of(bytes, i);
          line.upload(source.data(), bytes);
          line.download(backs[i].data(), bytes);
          if (busy) line.be_busy();
        }
        line.queue->sync();
        for (unsigned i = 0; i < backs.size(); ++i) same(backs[i], bytes_of(bytes, i));
      }
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

// From one device to another through the host, without the caller waiting in between.
TEST(a_source_that_queued_work_still_writes_is_read_in_order) {
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    for (const size_t bytes : {1000 * size_t(1), 300 * kKilo, 5 * kMega, 65 * kMega}) {
      if (unit::kSanitized && bytes > 6 * kMega) continue;
      Line one(kGpu0, bytes), other(kGpu1, bytes);
      const std::vector<char> expected = bytes_of(bytes, 5);
      std::vector<char> between(bytes), back(bytes);
      other.be_busy();
      one.upload(expected.data(), bytes);
      for (size_t at = 0; at < bytes; at += 40 * kMega)  // in parts for which the caller does not wait
        one.download(between.data() + at, std::min(bytes - at, 40 * kMega), at);
      other.queue->wait(one.queue->record());
      other.upload(between.data() + 1, bytes - 2, 1);
      other.download(back.data() + 1, bytes - 2, 1);
      other.queue->sync();
      one.queue->sync();
      back.front() = expected.front(), back.back() = expected.back();
      same(back, expected);
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(copies_to_the_host_of_any_size_are_whole) {
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    for (const size_t bytes : {64 * kMega, 64 * kMega + 1, 80 * kMega + 77}) {
      if (unit::kSanitized && bytes != 64 * kMega + 1) continue;
      Line line(kGpu2, bytes);
      const std::vector<char> expected = bytes_of(bytes, 9);
      std::vector<char> back(bytes);
      line.upload(expected.data(), bytes);
      line.download(back.data(), bytes);
      line.queue->sync();
      same(back, expected);
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(a_staging_array_serves_each_batch_in_turn) {
  seed_anew(2);
  Line line(kGpu0, 8 * kMega);
  line.be_busy();
  const std::vector<char> batch = bytes_of(3 * kMega, 1), second = bytes_of(4 * kMega, 2);
  const size_t before = in_use(0);
  for (int step = 0; step < 5; ++step) {
    line.upload(batch.data(), batch.size());
    line.upload(second.data(), second.size(), 4 * kMega);
    line.be_busy();
  }
  CHECK_EQ(in_use(0) - before, 7 * kMega);
  std::vector<char> back(8 * kMega);
  line.download(back.data(), back.size());
  line.queue->sync();
  CHECK(std::equal(batch.begin(), batch.end(), back.begin()));
  CHECK(std::equal(second.begin(), second.end(), back.begin() + 4 * kMega));
  // Not on a device that is full, where the copy waits for its turn.
  line.be_busy();
  CONTROL(cudasim_set_memory)(in_use(0) + kMega);
  std::vector<char> large = bytes_of(8 * kMega, 3);
  line.upload(large.data(), large.size());
  CONTROL(cudasim_set_memory)(size_t(1) << 30);
  const std::vector<char> expected = large;
  std::fill(large.begin(), large.end(), 0);
  line.download(back.data(), back.size());
  line.queue->sync();
  same(back, expected);
}

TEST(threads_and_devices_copy_at_the_same_time) {
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    std::vector<std::thread> threads;
    std::atomic<int> num_right{0};
    const int num_rounds = unit::kSanitized ? 2 : 6;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const size_t bytes = 6 * kMega + t;
        Line line(t % 2 ? kGpu1 : kGpu2, bytes);
        for (int i = 0; i < num_rounds; ++i) {
          const std::vector<char> first = bytes_of(bytes, t + 10 * unsigned(i));
          std::vector<char> source = first, back(bytes);
          if (i % 2) line.be_busy();
          line.upload(source.data(), bytes);
          std::fill(source.begin(), source.end(), 0);
          line.download(back.data(), bytes);
          line.queue->sync();
          if (back == first) ++num_right;
        }
      });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK_EQ(num_right.load(), 4 * num_rounds);
  }
  CHECK_EQ(std::string(reports()), "");
}

// A small copy takes two calls: the copy, and the event behind it.
TEST(small_copies_take_few_calls) {
  seed_anew(2);
  Line line(kGpu0, 64 * kKilo);
  const std::vector<char> source = bytes_of(64 * kKilo, 1);
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = num_calls();
    line.upload(source.data(), source.size());
    if (i > 0) CHECK_EQ(num_calls() - before, uint64_t(2));
    line.queue->sync();
  }
}

TEST(whichever_call_of_a_copy_fails_the_error_names_the_device_and_later_copies_are_right) {
  seed_anew(2);
  Line line(kGpu1, 5 * kMega);
  const std::vector<char> source = bytes_of(5 * kMega, 1);
  for (const size_t bytes : {1000 * size_t(1), 5 * kMega}) {
    for (const bool busy : {false, true}) {
      int num_errors = 0, num_told = 0;
      const auto told = [](const void *owner, const char *) { ++**static_cast<int *const *>(owner); };
      for (uint64_t nth = 1; nth < 30; ++nth) {
        if (busy) line.be_busy();
        fail_call(nth, nth % 2 ? 2 : 999);  // cudaErrorMemoryAllocation, cudaErrorUnknown
        line.queue->copy(line.there->data(), source.data(), bytes, std::make_shared<int *>(&num_told), told);
        fail_call(0, 0);
        try {
          line.queue->sync();
        } catch (const Error &error) {
          ++num_errors;
          const std::string what = error.what();
          if (what.find("copy: ") != 0 || what.find("gpu(1)") == std::string::npos)
            unit::fail(__FILE__, __LINE__, "copy or gpu(1) is not named in: " + what);
        }
        std::vector<char> back(bytes);
        line.upload(source.data(), bytes);
        line.download(back.data(), bytes);
        line.queue->sync();
        CHECK(std::equal(back.begin(), back.end(), source.begin()));
      }
      CHECK_EQ(num_told, num_errors);
      CHECK(num_errors >= (bytes > kMega ? 6 : 1));
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(pinned_memory_is_kept_within_a_limit_and_given_back_when_more_is_pinned) {
  const auto pinned = CONTROL(cudasim_bytes_pinned);
  {
    std::vector<std::shared_ptr<void>> pieces;
    for (int i = 0; i < 6; ++i) pieces.push_back(get_device(kGpu0)->host_memory(64 * kMega));
  }
  std::vector<std::shared_ptr<void>> more;
  for (int i = 0; i < 8; ++i) more.push_back(get_device(kGpu0)->host_memory(16 * kMega));
  CHECK(pinned() <= (256 + 8 * 16 + 3 * 32) * kMega);  // with the pieces of three devices
}

// Batches of which each arrives while the step before has not run.
TEST(replayed_steps_train_on_the_batches_they_were_given) {
  const Symbol layer = Symbol::create("FullyConnected", {{"num_hidden", "8"}, {"no_bias", "1"}}, "layer", {},
                                      {Symbol::variable("data"), Symbol::variable("weight")});
  const Shape batch_shape{96, 1024};
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    std::vector<std::vector<float>> sums;
    for (const Context &context : {kCpu, kGpu0}) {
      std::vector<NDArray> args{NDArray::create(batch_shape, Dtype::kFloat32, context),
                                NDArray::create({8, 1024}, Dtype::kFloat32, context)};
      const NDArray weight = NDArray::create({8, 1024}, Dtype::kFloat32, kCpu);
      weight.fill_uniform(-1, 1, 3);
      args[1].copy_from(weight);
      const NDArray total = NDArray::create({8, 1024}, Dtype::kFloat32, context);
      total.fill(0);
      ExecutorOptions options;
      options.context = context;
      const auto executor =
          Executor::bind(layer, args, {NDArray(), total}, {GradReq::kNull, GradReq::kAdd}, {}, options);
      const NDArray head = NDArray::create({96, 8}, Dtype::kFloat32, context);
      head.fill(1);
      for (int step = 0; step < 6; ++step) {
        const NDArray batch = NDArray::create(batch_shape, Dtype::kFloat32, kCpu);
        batch.fill_uniform(-1, 1, uint64_t(step));
        executor->load(0, batch);
        executor->forward(true);
        executor->backward({head});
      }
      executor->wait();
      total.wait();
      std::vector<float> all(size_t(total.size()));
      total.read(all.data(), total.bytes());
      sums.push_back(all);
    }
    for (size_t i = 0; i < sums[0].size(); ++i) CHECK_NEAR(sums[1][i], sums[0][i], 1e-4);
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(a_device_that_fails_ends_no_thread_and_the_queue_can_be_freed) {
  if (!std::getenv("COHORT_TEST_BROKEN")) {  // breaks a device that other tests use
    CHECK(passes_again_with("COHORT_TEST_BROKEN=1", __func__));
    return;
  }
  seed_anew(2);
  Line line(kGpu0, 40 * kMega);
  const std::vector<char> source = bytes_of(40 * kMega, 1);
  line.upload(source.data(), source.size());
  line.be_busy();
  CONTROL(cudasim_break_device)(0);
  line.upload(source.data(), source.size());
  CHECK_THROWS(line.queue->sync(), Error, "gpu(0)");
}

UNIT_MAIN()
