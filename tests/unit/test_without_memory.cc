// SPDX-License-Identifier: Apache-2.0
// Operations that must not fail for lack of memory: waiting, and the work that follows a wait.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "executor/executor.hpp"
#include "support/failing_new.hpp"
#include "support/unit.hpp"

using namespace cohort;
using failing_new::no_memory;

namespace {

std::shared_ptr<Executor> bind_square(int64_t size, const std::shared_ptr<Executor> &shared = nullptr) {
  // Two nodes that are not fused, so that the arena is used.
  const Symbol sum = Symbol::create("softmax", {}, "", {}, {Symbol::variable("a")});
  const Symbol y = Symbol::create("dot", {}, "", {}, {sum, sum});
  ExecutorOptions options;
  options.num_threads = 1;
  options.shared = shared;
  const NDArray a = NDArray::create(Shape{size, size}, Dtype::kFloat32, Context{});
  return Executor::bind(y, {a}, {}, {}, {}, options);
}

// Runs `end` without memory while the queue is blocked, and returns whether it waited for the queue.
template <typename Fn>
bool waits_without_memory(Queue &queue, Fn end) {
  std::promise<void> go_on;
  std::atomic<bool> ended{false};
  queue.call([held = go_on.get_future().share()] { held.wait(); }, "hold-up");
  std::thread other([&] {
    no_memory = true;
    end();
    no_memory = false;
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const bool waited = !ended;
  go_on.set_value();
  other.join();
  return waited;
}

TEST(a_queue_is_waited_for_without_memory) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  QueueOptions options;
  for (options.num_threads = 1; options.num_threads <= 2; ++options.num_threads) {
    const auto queue = get_device(Context{})->create_queue(options);
    CHECK(waits_without_memory(*queue, [&] { queue->finish(); }));
  }
}

TEST(finishing_leaves_an_error_to_who_synchronises) {
  const auto queue = get_device(Context{})->create_queue(QueueOptions());
  queue->call([] { throw std::runtime_error("on purpose"); }, "failing");
  queue->finish();
  CHECK(!queue->idle());
  CHECK_THROWS(queue->sync(), std::exception, "on purpose");
}

TEST(an_executor_ends_after_its_work_without_memory) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  std::shared_ptr<Executor> executor = bind_square(4);
  const std::shared_ptr<Queue> queue = executor->queue();
  executor->forward(false);
  executor->wait();
  CHECK(waits_without_memory(*queue, [&] { executor.reset(); }));
}

TEST(an_executor_takes_the_addresses_of_a_larger_arena_without_memory) {
  if (!FAILING_NEW) SKIP("the sanitizer brings its own operator new");
  const std::shared_ptr<Executor> small = bind_square(4);
  small->forward(false);
  const std::shared_ptr<Executor> large = bind_square(400, small);
  large->forward(false);
  no_memory = true;
  small->forward(false);
  no_memory = false;
  small->wait();
  CHECK_NEAR(small->outputs()[0].data_as<float>()[3], 0.25, 1e-6);
}

}  // namespace

UNIT_MAIN()
