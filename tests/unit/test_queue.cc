// SPDX-License-Identifier: Apache-2.0
// Queues of cpu devices: order, errors, which thread does the work, events, forks. And how devices are found.
#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "base/error.hpp"
#include "base/processors.hpp"
#include "base/settings.hpp"
#include "device/device.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

std::shared_ptr<Queue> new_queue(int num_threads = 1, int id = 0) {
  QueueOptions options;
  options.num_threads = num_threads;
  return get_device({DeviceType::kCpu, id})->create_queue(options);
}

class TestKernel final : public Kernel {
 public:
  explicit TestKernel(std::function<void(const Lane &)> body) : body_(std::move(body)) {}
  void run(const Args &, const Lane &lane) const override { body_(lane); }

 private:
  const std::function<void(const Lane &)> body_;
};

// A program of one step or more, all the same.
struct Job {
  Job(std::function<void(const Lane &)> body, WorkSize size, const char *label = "Test 'node0'", size_t count = 1)
      : kernel(std::move(body)), steps(count, Step{&kernel, Args(), label}) {
    program = {steps.data(), steps.size(), size};
    program.failed = [](const void *owner, const char *message) {
      auto *job = static_cast<Job *>(const_cast<void *>(owner));
      const std::lock_guard<std::mutex> lock(job->mutex);
      job->failures.push_back(message);
    };
  }
  TestKernel kernel;
  std::vector<Step> steps;
  Program program;
  std::mutex mutex;  // guards failures
  std::vector<std::string> failures;
};

std::shared_ptr<Job> job(std::function<void(const Lane &)> body, WorkSize size = WorkSize::kParallel,
                         const char *label = "Test 'node0'") {
  return std::make_shared<Job>(std::move(body), size, label);
}

void run(Queue &queue, const std::shared_ptr<Job> &what) { queue.run(what->program, what); }

// Work that blocks until it is released, so that a queue can be held.
struct Gate {
  std::promise<void> promise;
  std::shared_future<void> opened{promise.get_future()};
  void open() { promise.set_value(); }
  std::function<void()> wait() {
    return [opened = opened] { opened.wait(); };
  }
};

// Its exit status; a child that does not end in time is a failure.
int status_of(pid_t child) {
  for (int i = 0; i < 2000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return 2000;
}

}  // namespace

TEST(work_is_done_in_order_whoever_does_it) {
  for (int num_threads : {1, 2}) {
    const auto queue = new_queue(num_threads);
    std::vector<int> order;
    constexpr int kCount = 3000;
    for (int i = 0; i < kCount; ++i) {
      if (i % 3 == 0) {
        queue->call([&order, i] { order.push_back(i); }, "note");
      } else {
        run(*queue, job([&order, i](const Lane &) { order.push_back(i); },
                        i % 3 == 1 ? WorkSize::kBrief : WorkSize::kParallel));
      }
      if (i % 100 == 99) queue->sync();
    }
    queue->sync();
    std::vector<int> expected(kCount);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(order == expected);
    CHECK(queue->idle());
  }
}

TEST(a_brief_program_on_an_idle_queue_runs_on_the_caller_with_one_thread) {
  const auto queue = new_queue(2);
  std::thread::id where;
  int num_threads = 0;
  const auto brief = job(
      [&](const Lane &lane) {
        where = std::this_thread::get_id();
        num_threads = lane.num_threads;
      },
      WorkSize::kBrief);
  run(*queue, brief);
  CHECK(where == std::this_thread::get_id());
  CHECK_EQ(num_threads, 1);
  CHECK(queue->idle());

  Gate gate;
  std::promise<void> held;
  queue->call([&held, wait = gate.wait()] { held.set_value(), wait(); }, "hold");
  held.get_future().wait();  // by the worker: a waiting thread may run work that has not started
  run(*queue, brief);        // must wait for its turn, so that the worker runs it
  CHECK(!queue->idle());
  num_threads = 0;
  gate.open();
  queue->sync();
  CHECK_EQ(num_threads, 1);
  CHECK(where != std::this_thread::get_id());
}

TEST(a_thread_that_waits_runs_serial_programs_itself_with_one_thread_and_leaves_others_to_the_worker) {
  const auto queue = new_queue(2);
  // The worker may be faster: tries until it was not.
  for (int i = 0; i < 1000; ++i) {
    std::thread::id serial_on, parallel_on;
    int serial_threads = 0, parallel_threads = 0;
    run(*queue, job(
                    [&](const Lane &lane) {
                      serial_on = std::this_thread::get_id();
                      serial_threads = lane.num_threads;
                    },
                    WorkSize::kSerial));
    run(*queue, job([&](const Lane &lane) {
      parallel_on = std::this_thread::get_id();
      parallel_threads = lane.num_threads;
    }));
    queue->sync();
    CHECK_EQ(serial_threads, 1);
    CHECK_EQ(parallel_threads, queue->num_threads());
    if (queue->num_threads() > 1) CHECK(parallel_on != std::this_thread::get_id());
    if (serial_on == std::this_thread::get_id()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until the worker sleeps
  }
  CHECK(!"the waiting thread never ran the serial program");
}

TEST(a_long_program_leaves_the_caller_free) {
  const auto queue = new_queue();
  Gate gate;
  std::thread::id where;
  run(*queue, job([&, opened = gate.opened](const Lane &) {
    opened.wait();
    where = std::this_thread::get_id();
  }));
  gate.open();  // reached while the program waits for it
  const auto done = queue->record();
  done->wait();
  CHECK(done->done());
  CHECK(where != std::thread::id());
}

TEST(the_first_error_comes_out_at_sync_once_and_later_work_is_skipped) {
  const auto queue = new_queue();
  std::atomic<int> ran{0};
  const auto good = job([&](const Lane &) { ++ran; });
  const auto bad = job([](const Lane &) { throw Error(Code::kInternal, "the numbers are off"); }, WorkSize::kParallel,
                       "Convolution 'conv0'");
  const auto worse = job([](const Lane &) { throw Error(Code::kInternal, "worse"); });
  Gate gate;
  queue->call(gate.wait(), "hold");
  run(*queue, good);
  run(*queue, bad);
  run(*queue, worse);
  run(*queue, good);
  queue->call([&] { ++ran; }, "call");
  char from = 1, to = 0;
  queue->copy(&to, &from, 1, nullptr);
  gate.open();
  try {
    queue->sync();
    CHECK(!"sync threw nothing");
  } catch (const Error &error) {
    CHECK(error.code() == Code::kExecution);
    CHECK_EQ(std::string(error.what()), "Convolution 'conv0': the numbers are off");
    CHECK_EQ(error.subject(), "Convolution 'conv0'");
  }
  CHECK_EQ(ran.load(), 1);
  CHECK_EQ(int(to), 0);
  // The owner of each program that failed or was skipped has been told.
  CHECK_EQ(bad->failures.size(), 1u);
  CHECK_EQ(worse->failures.size(), 1u);
  CHECK_EQ(good->failures.size(), 1u);
  CHECK_EQ(good->failures[0], "Convolution 'conv0': the numbers are off");
  queue->sync();  // reported once
  run(*queue, good);
  queue->sync();
  CHECK_EQ(ran.load(), 2);
  CHECK(queue->idle());
}

TEST(a_brief_program_that_fails_poisons_its_queue_too) {
  const auto queue = new_queue();
  std::atomic<int> ran{0};
  const auto bad = job([](const Lane &) { throw std::bad_alloc(); }, WorkSize::kBrief, "Dropout 'drop'");
  run(*queue, bad);
  CHECK(!queue->idle());
  const auto good = job([&](const Lane &) { ++ran; }, WorkSize::kBrief);
  run(*queue, good);
  CHECK_THROWS(queue->sync(), Error, "Dropout 'drop': out of memory");
  CHECK_EQ(ran.load(), 0);
  CHECK_EQ(bad->failures.size(), 1u);
  CHECK_EQ(good->failures.size(), 1u);
  run(*queue, good);
  CHECK_EQ(ran.load(), 1);
}

TEST(the_fault_setting_makes_one_node_fail) {
  setenv(kFault.name, "conv1", 1);
  const auto queue = new_queue();
  unsetenv(kFault.name);
  int ran = 0;
  run(*queue, job([&](const Lane &) { ++ran; }, WorkSize::kBrief, "Convolution 'conv10'"));
  queue->sync();
  run(*queue, job([&](const Lane &) { ++ran; }, WorkSize::kBrief, "Convolution 'conv1'"));
  CHECK_THROWS(queue->sync(), Error, "Convolution 'conv1': made to fail by COHORT_FAULT");
  CHECK_EQ(ran, 1);
}

TEST(events_order_work_across_queues) {
  const auto first = new_queue(1, 0), second = new_queue(1, 1);
  Gate gate;
  std::vector<int> order;
  first->call(gate.wait(), "hold");
  first->call([&] { order.push_back(1); }, "first");
  second->wait(first->record());
  second->call([&] { order.push_back(2); }, "second");
  first->wait(second->record());
  first->call([&] { order.push_back(3); }, "third");
  CHECK(order.empty());
  gate.open();
  first->sync();
  CHECK(order == (std::vector<int>{1, 2, 3}));
}

TEST(an_event_outlives_its_queue) {
  std::shared_ptr<Event> event;
  {
    const auto queue = new_queue();
    queue->call([] {}, "call");
    event = queue->record();
  }
  CHECK(event->done());
  event->wait();
}

TEST(many_queues_pass_a_token_around) {
  constexpr int kQueues = 12, kRounds = 40;
  std::vector<std::shared_ptr<Queue>> queues;
  for (int i = 0; i < kQueues; ++i) queues.push_back(new_queue(1, i));
  int token = 0, mistakes = 0;
  std::shared_ptr<Event> last;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kQueues; ++i) {
      if (last) queues[i]->wait(last);
      queues[i]->call([&, expected = round * kQueues + i] { mistakes += token++ != expected; }, "pass");
      last = queues[i]->record();
    }
  }
  last->wait();
  CHECK_EQ(token, kQueues * kRounds);
  CHECK_EQ(mistakes, 0);
}

TEST(a_full_queue_blocks_the_one_who_enqueues) {
  const auto queue = new_queue();
  Gate gate;
  std::atomic<int> enqueued{0}, ran{0};
  queue->call(gate.wait(), "hold");
  std::thread enqueuer([&] {
    for (int i = 0; i < 1000; ++i) {
      queue->call([&] { ++ran; }, "count");
      ++enqueued;
    }
  });
  while (enqueued.load() < 200) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(enqueued.load() < 300);
  gate.open();
  enqueuer.join();
  queue->sync();
  CHECK_EQ(ran.load(), 1000);
}

TEST(two_threads_wait_for_one_queue) {
  for (int round = 0; round < 50; ++round) {
    const auto queue = new_queue();
    std::atomic<int> ran{0};
    for (int i = 0; i < 20; ++i) {
      queue->call([&] { ++ran; }, "count");
    }
    const auto half = queue->record();
    std::atomic<int> seen_by_first{0}, seen_by_second{0};
    std::thread first([&] {
      half->wait();
      seen_by_first = ran.load();
    });
    std::thread second([&] {
      queue->sync();
      seen_by_second = ran.load();
    });
    for (int i = 0; i < 20; ++i) {
      queue->call([&] { ++ran; }, "count");
    }
    first.join();
    second.join();
    queue->sync();
    CHECK(seen_by_first.load() >= 20);
    CHECK(seen_by_second.load() >= 20);
    CHECK_EQ(ran.load(), 40);
  }
}

TEST(random_work_on_several_queues_with_waiters_all_around_is_done_once_and_in_order) {
  const char *const repeats = std::getenv("COHORT_FUZZ");
  const int num_rounds = repeats ? std::atoi(repeats) : 40;
  std::mt19937 random(7);
  constexpr int kQueues = 3;
  struct Line {
    std::shared_ptr<Queue> queue;
    int enqueued = 0;
    int done = 0;  // written by the work alone; the test reads it after a wait
    int mistakes = 0;
  };
  for (int round = 0; round < num_rounds; ++round) {
    Line lines[kQueues];
    for (int i = 0; i < kQueues; ++i) lines[i].queue = new_queue(1 + int(random() % 4 == 0), i);
    std::atomic<bool> over{false};
    std::mutex mutex;  // guards event
    std::shared_ptr<Event> event;
    std::thread waiter([&] {  // waits on another thread
      while (!over) {
        std::shared_ptr<Event> next;
        {
          const std::lock_guard<std::mutex> lock(mutex);
          next.swap(event);
        }
        if (next) {
          next->wait();
          if (!next->done()) std::abort();
        } else {
          std::this_thread::yield();
        }
      }
    });
    for (int i = 0; i < 400; ++i) {
      Line &line = lines[random() % kQueues];
      const auto step = [&line, number = line.enqueued] { line.mistakes += line.done++ != number; };
      switch (random() % 8) {
        case 0:
        case 1:
          line.queue->call(step, "call");
          ++line.enqueued;
          break;
        case 2:
        case 3:
          run(*line.queue, job([step](const Lane &) { step(); }, WorkSize::kBrief));
          ++line.enqueued;
          break;
        case 4:
          run(*line.queue, job([step](const Lane &) { step(); }));
          ++line.enqueued;
          break;
        case 5:
          line.queue->wait(lines[random() % kQueues].queue->record());
          break;
        case 6: {
          const auto recorded = line.queue->record();
          const std::lock_guard<std::mutex> lock(mutex);
          event = recorded;
          break;
        }
        default:
          if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 120));
          if (random() % 3 == 0) {
            line.queue->sync();
            CHECK_EQ(line.done, line.enqueued);
          }
      }
    }
    for (Line &line : lines) line.queue->sync();
    over = true;
    waiter.join();
    for (Line &line : lines) {
      CHECK_EQ(line.done, line.enqueued);
      CHECK_EQ(line.mistakes, 0);
    }
  }
}

TEST(queued_work_is_finished_before_a_queue_goes) {
  std::atomic<int> ran{0};
  {
    const auto queue = new_queue();
    for (int i = 0; i < 100; ++i) queue->call([&] { ++ran; }, "count");
  }
  CHECK_EQ(ran.load(), 100);
}

TEST(work_may_hold_the_last_reference_on_its_queue) {
  for (int round = 0; round < 100; ++round) {
    auto queue = new_queue();
    auto ran = std::make_shared<std::atomic<int>>(0);
    auto held = job([ran](const Lane &) { ++*ran; });
    struct Owner {
      std::shared_ptr<Job> job;
      std::shared_ptr<Queue> queue;
    };
    const auto event = [&] {
      auto owner = std::make_shared<Owner>(Owner{held, queue});
      held->program.failed = nullptr;
      queue->run(held->program, owner);
      queue->call([ran] { ++*ran; }, "after");
      return queue->record();
    }();
    queue.reset();
    event->wait();
    CHECK_EQ(ran->load(), 2);
  }
}

TEST(work_may_enqueue_and_sync_on_its_own_queue) {
  const auto queue = new_queue();
  std::atomic<int> ran{0};
  queue->call(
      [&] {
        queue->call([&] { ++ran; }, "inner");
        queue->sync();  // earlier work is done: returns at once
      },
      "outer");
  queue->sync();
  queue->sync();
  CHECK_EQ(ran.load(), 1);
}

TEST(memory_of_work_is_free_when_a_wait_for_it_returns) {
  const auto queue = new_queue();
  for (int i = 0; i < 200; ++i) {
    auto what = job([](const Lane &) {});
    const std::weak_ptr<Job> watch = what;
    run(*queue, what);
    what.reset();
    queue->sync();
    CHECK(watch.expired());
  }
}

TEST(a_child_of_fork_gets_an_error_and_can_make_new_queues) {
  const auto queue = new_queue();
  Gate gate;
  std::promise<void> held;
  queue->call([&held, wait = gate.wait()] { held.set_value(), wait(); }, "hold");
  held.get_future().wait();  // the worker is busy, and holds no lock of the allocator, while the process forks
  const auto event = queue->record();
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      queue->call([] {}, "call");
      status |= 1;
    } catch (const Error &error) {
      if (error.code() != Code::kState || !std::strstr(error.what(), "made before fork()")) status |= 2;
    }
    try {
      queue->sync();
      status |= 4;
    } catch (const Error &) {
    }
    event->wait();  // never recorded; the wait must not hang
    const_cast<std::shared_ptr<Queue> &>(queue).reset();
#ifndef UNDER_TSAN  // it ends a child that starts a thread
    int ran = 0;
    const auto fresh = new_queue();
    fresh->call([&] { ++ran; }, "call");
    fresh->sync();
    if (ran != 1) status |= 8;
#endif
    _exit(status);
  }
  const int status = status_of(child);
  gate.open();
  queue->sync();
  CHECK_EQ(status, 0);
}

#ifdef __SSE__
TEST(the_callers_floating_point_mode_is_left_alone_and_not_used) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u);  // flush subnormals
  const auto queue = new_queue();
  unsigned inside = 0, inside_worker = 0;
  run(*queue, job([&](const Lane &) { inside = _mm_getcsr(); }, WorkSize::kBrief));
  run(*queue, job([&](const Lane &) { inside_worker = _mm_getcsr(); }));
  queue->sync();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK_EQ(after & 0x8040u, 0x8040u);
  CHECK_EQ(inside & ~0x3fu, 0x1f80u);
  CHECK_EQ(inside_worker & ~0x3fu, 0x1f80u);
}

#endif

TEST(signals_of_the_host_are_not_delivered_to_the_worker) {
  const auto queue = new_queue();
  sigset_t blocked;
  sigemptyset(&blocked);
  std::atomic<bool> on_worker{false};
  const auto caller = std::this_thread::get_id();
  while (!on_worker) {  // until the worker, and not the waiting caller, has run it
    queue->call(
        [&] {
          if (std::this_thread::get_id() == caller) return;
          pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
          on_worker = true;
        },
        "look");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    queue->sync();
  }
  CHECK_EQ(sigismember(&blocked, SIGINT), 1);
  CHECK_EQ(sigismember(&blocked, SIGCHLD), 1);
  CHECK_EQ(sigismember(&blocked, SIGSEGV), 0);
}

TEST(copies_small_and_large_are_done_in_order) {
  const auto queue = new_queue(2);
  std::vector<char> from(5 << 20), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = char(i * 7);
  queue->copy(to.data(), from.data(), from.size(), nullptr);
  char last = 0;
  queue->copy(&last, &to.back(), 1, nullptr);
  queue->sync();
  CHECK(to == from);
  CHECK_EQ(last, from.back());
}

TEST(a_device_is_one_object_while_it_is_in_use) {
  const Context context{DeviceType::kCpu, 3};
  const auto device = get_device(context);
  CHECK(device == get_device(context));
  CHECK(device != get_device({DeviceType::kCpu, 4}));
  CHECK(device->context() == context);
  CHECK(count_devices(DeviceType::kCpu) == usable_processors());
  const int threads = device->create_queue(QueueOptions())->num_threads();
  CHECK_EQ(threads, std::min(default_threads(), omp_get_thread_limit()));
  CHECK_THROWS(get_device({DeviceType::kCpu, -1}), Error, "must not be negative");
  QueueOptions options;
  options.num_threads = -1;
  CHECK_THROWS(device->create_queue(options), Error, "number of threads");
}

TEST(threads_that_nobody_chose_are_no_more_than_the_environment_allows) {
  const char *const set = std::getenv("OMP_NUM_THREADS");
  const std::string before = set ? set : "";
  const auto threads_with = [](const char *value) {
    setenv("OMP_NUM_THREADS", value, 1);
    return default_threads();
  };
  const int all = usable_processors();
  CHECK_EQ(threads_with("1"), 1);
  CHECK_EQ(threads_with("1,4"), 1);
  CHECK_EQ(threads_with("1000000000000"), all);
  for (const char *nothing : {"", "0", "-3", "many"}) CHECK_EQ(threads_with(nothing), all);
  CHECK_EQ(default_threads(all + 1), 1);
  set ? setenv("OMP_NUM_THREADS", before.c_str(), 1) : unsetenv("OMP_NUM_THREADS");
}

TEST(memory_is_aligned_and_too_much_of_it_is_an_error) {
  const auto device = get_device(Context());
  for (size_t bytes : {size_t(0), size_t(1), size_t(100), size_t(5) << 20}) {
    const auto memory = device->allocate(bytes);
    CHECK_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
    CHECK_EQ(memory->bytes(), bytes);
    std::memset(memory->data(), 1, bytes);
  }
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, size_t(1) << 62}) {
    try {
      device->allocate(bytes);
      CHECK(!"allocated");
    } catch (const Error &error) {
      CHECK(error.code() == Code::kOutOfMemory);
      CHECK(std::strstr(error.what(), text("cpu(0): no memory for ", bytes, " bytes").c_str()));
    }
  }
}

TEST(a_gpu_without_a_backend_is_an_error_that_says_what_is_missing) {
  const char *temporary = std::getenv("TMPDIR");
  std::string folder = std::string(temporary ? temporary : P_tmpdir) + "/cohort_backend_XXXXXX";
  CHECK(mkdtemp(&folder[0]));
  setenv(kBackendPath.name, folder.c_str(), 1);
  const std::string file = folder + "/libcohort_cuda.so";
  std::ofstream(file) << "this is no library";
  std::string reason;
  const bool available = backend_available(DeviceType::kGpu, &reason);
  std::string message;
  Code code = Code::kInternal;
  try {
    get_device({DeviceType::kGpu, 0});
  } catch (const Error &error) {
    message = error.what();
    code = error.code();
  }
  unlink(file.c_str());
  rmdir(folder.c_str());
  unsetenv(kBackendPath.name);
  CHECK(!available);
  CHECK(reason.find("libcohort_cuda.so could not be loaded") != std::string::npos);
  CHECK(code == Code::kDevice);
  CHECK_EQ(message, "gpu(0): " + reason);
  CHECK_EQ(count_devices(DeviceType::kGpu) >= 0, true);
}

UNIT_MAIN()
