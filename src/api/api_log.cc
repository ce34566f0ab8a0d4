// SPDX-License-Identifier: Apache-2.0
#include "cohort/log.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "api/objects.hpp"

namespace cohort::api {

// A log callback of the host. It runs on one thread at a time, inside a call of the library and under no lock: messages
// of other threads are left to the thread that is in the callback.
class HostLog : public std::enable_shared_from_this<HostLog> {
 public:
  HostLog(cohort_log_fn callback, cohort_log_end_fn ended, void *user_data)
      : callback_(callback), user_data_(user_data), end_([=] {
          if (ended) ended(user_data);
        }) {}

  void take() { end_.take(); }  // see HostRelease::take()

  void send(LogLevel level, const std::string &message) {
    run_inside_call(std::unique_ptr<HostCall>(new HostCall{[log = shared_from_this(), level, message] {
                                                             log->deliver({level, message});
                                                           },
                                                           nullptr}));
  }

  // Delivery of no further message begins after this.
  void close() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  // Waits until no other thread is in the callback.
  void wait_for_callback() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !busy_ || thread_ == std::this_thread::get_id(); });
  }

 private:
  struct Message {
    LogLevel level;
    std::string text;
  };

  void deliver(Message message) noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    try {
      messages_.push_back(std::move(message));
    } catch (const std::bad_alloc &) {  // the message is dropped
    }
    if (busy_) return;
    busy_ = true;
    thread_ = std::this_thread::get_id();
    for (; !closed_ && !messages_.empty(); messages_.pop_front()) {
      const Message &next = messages_.front();
      lock.unlock();
      callback_(int32_t(next.level), next.text.c_str(), user_data_);
      lock.lock();
    }
    busy_ = false;
    changed_.notify_all();
  }

  const cohort_log_fn callback_;
  void *const user_data_;
  HostRelease end_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::deque<Message> messages_;
  bool busy_ = false, closed_ = false;
  std::thread::id thread_;  // the thread that is in the callback
};

LogObject::~LogObject() {
  if (!log) return;
  log->close();
  remove_log_sink(sink.get());
}

void send_inside_call(cohort_log_fn log, int level, const std::string &message, void *user_data) noexcept {
  try {
    run_inside_call(
        std::unique_ptr<HostCall>(new HostCall{[=] { log(int32_t(level), message.c_str(), user_data); }, nullptr}));
  } catch (const std::bad_alloc &) {  // the message is dropped
  }
}

namespace {

// The log that cohort_set_log() has set.
struct CurrentLog {
  std::mutex mutex;  // guards `log`
  std::shared_ptr<HostLog> log;
};

CurrentLog &current_log() {
  static CurrentLog *const instance = new CurrentLog;
  return *instance;
}

LogLevel to_lowest(int32_t lowest) {
  if (lowest < COHORT_LOG_DEBUG || lowest > COHORT_LOG_OFF) {
    throw Error(Code::kInvalidArgument,
                text("lowest: expected ", int(COHORT_LOG_DEBUG), " to ", int(COHORT_LOG_OFF), ", found ", lowest),
                "lowest");
  }
  return LogLevel(lowest);
}

LogFunction sender(const std::shared_ptr<HostLog> &log) {
  return [log](LogLevel level, const std::string &message) { log->send(level, message); };
}

}  // namespace
}  // namespace cohort::api

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_log_create(int32_t lowest, cohort_log_fn callback, cohort_log_end_fn ended, void *user_data,
                                cohort_log **out_log) {
  return guard([&] {
    require(out_log, "out_log");
    require(reinterpret_cast<const void *>(callback), "callback");
    LogObject object;
    object.log = std::make_shared<HostLog>(callback, ended, user_data);
    object.sink = std::make_shared<const LogSink>(LogSink{to_lowest(lowest), sender(object.log)});
    const std::shared_ptr<HostLog> log = object.log;
    const std::shared_ptr<const LogSink> sink = object.sink;
    ScopedHandle<cohort_log> handle(std::move(object));
    add_log_sink(sink);
    log->take();
    *out_log = handle.release();
  });
}

void cohort_log_free(cohort_log *log) {
  const CallScope inside;
  free_handle(log);
}

cohort_error *cohort_set_log(int32_t lowest, cohort_log_fn callback, void *user_data) {
  return guard([&] {
    const LogLevel level = to_lowest(lowest);
    std::shared_ptr<HostLog> log, before;
    if (callback) log = std::make_shared<HostLog>(callback, nullptr, user_data);
    {
      const std::lock_guard<std::mutex> lock(current_log().mutex);
      set_log(log ? sender(log) : nullptr, level);
      before = std::exchange(current_log().log, log);
      if (before) before->close();
    }
    if (before) before->wait_for_callback();
  });
}
