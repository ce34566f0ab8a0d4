// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "base/utf8.hpp"

namespace cohort {
namespace {

struct Listeners {
  std::mutex mutex;  // guards the three below; not held while a sink is called or freed
  std::vector<std::shared_ptr<const LogSink>> sinks;
  std::shared_ptr<const LogSink> set;  // the sink set by set_log(), also among `sinks`
  LogLevel lowest_on_stderr = LogLevel::kWarning;
};

Listeners &listeners() {
  static Listeners *const instance = new Listeners;  // never destroyed: other threads may log during exit
  return *instance;
}

std::shared_ptr<const LogSink> take_out(Listeners &all, const LogSink *sink) noexcept {
  std::shared_ptr<const LogSink> taken;
  const auto found = std::find_if(all.sinks.begin(), all.sinks.end(), [&](const auto &s) { return s.get() == sink; });
  if (found == all.sinks.end()) return taken;
  taken = std::move(*found);
  all.sinks.erase(found);
  return taken;
}

}  // namespace

void add_log_sink(std::shared_ptr<const LogSink> sink) {
  Listeners &all = listeners();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.sinks.push_back(std::move(sink));
}

void remove_log_sink(const LogSink *sink) noexcept {
  Listeners &all = listeners();
  std::shared_ptr<const LogSink> removed;  // freed after the lock is released
  const std::lock_guard<std::mutex> lock(all.mutex);
  removed = take_out(all, sink);
}

void set_log(LogFunction function, LogLevel lowest) {
  Listeners &all = listeners();
  std::shared_ptr<const LogSink> added, before;  // freed after the lock is released
  if (function) added = std::make_shared<const LogSink>(LogSink{lowest, std::move(function)});
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (added) all.sinks.push_back(added);
  before = take_out(all, all.set.get());
  all.set = std::move(added);
  all.lowest_on_stderr = lowest;
}

void log(LogLevel level, const std::string &given) {
  const std::string message = message_line(given);
  Listeners &all = listeners();
  std::vector<std::shared_ptr<const LogSink>> sinks;
  LogLevel lowest_on_stderr;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    sinks = all.sinks;
    lowest_on_stderr = all.lowest_on_stderr;
  }
  for (const auto &sink : sinks)
    if (level >= sink->lowest) sink->function(level, message);
  if (sinks.empty() && level >= LogLevel::kWarning && level >= lowest_on_stderr) {
    std::fprintf(stderr, "cohort: %s\n", message.c_str());
  }
}

}  // namespace cohort
