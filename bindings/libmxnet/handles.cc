// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <unordered_map>

namespace cohort_mxnet {

namespace {

struct Shard {
  std::mutex mutex;  // guards objects
  std::unordered_map<const void *, std::shared_ptr<Object>> objects;
};

// Never destroyed: hosts free handles while the process ends.
Shard &shard_of(const void *handle) {
  static auto &shards = *std::make_unique<std::array<Shard, 16>>().release();
  return shards[reinterpret_cast<uintptr_t>(handle) / 64 % shards.size()];
}

}  // namespace

Object::~Object() = default;

void *publish(std::shared_ptr<Object> object) {
  Object *const handle = object.get();
  Shard &shard = shard_of(handle);
  const std::lock_guard<std::mutex> lock(shard.mutex);
  if (!shard.objects.emplace(handle, std::move(object)).second) fail("an object has two handles");
  return handle;
}

std::shared_ptr<Object> find_object(const void *handle) noexcept {
  if (!handle) return nullptr;
  Shard &shard = shard_of(handle);
  const std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.objects.find(handle);
  return found == shard.objects.end() ? nullptr : found->second;
}

std::shared_ptr<Object> take_object(const void *handle) noexcept {
  if (!handle) return nullptr;
  Shard &shard = shard_of(handle);
  const std::lock_guard<std::mutex> lock(shard.mutex);
  const auto found = shard.objects.find(handle);
  if (found == shard.objects.end()) return nullptr;
  std::shared_ptr<Object> object = std::move(found->second);
  shard.objects.erase(found);
  return object;  // destroyed by the caller, without the lock
}

void refuse_handle(const void *handle, const char *expected, bool is_known) {
  if (!handle) fail(std::string("expected the handle of ") + expected + ", found NULL");
  std::ostringstream text;
  text << "expected the handle of " << expected << ", found " << handle
       << (is_known ? ", the handle of another object" : ", which is freed or was never one");
  fail(text.str());
}

}  // namespace cohort_mxnet
