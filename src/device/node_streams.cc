// SPDX-License-Identifier: Apache-2.0
#include "device/node_streams.hpp"

#include <algorithm>

#include "base/byte_stream.hpp"

namespace cohort {
namespace {

constexpr char kMark[] = "COHORTRN";
constexpr uint32_t kVersion = 1;

}  // namespace

void StreamAccess::finish() const {
  for (const std::weak_ptr<Queue> &queue : queues_)
    if (const std::shared_ptr<Queue> alive = queue.lock()) alive->finish();
}

RandomPositions StreamAccess::positions() const {
  finish();
  RandomPositions result;
  for (size_t n = 0; n < network_->streams.size(); ++n) {
    const RandomStream &stream = network_->streams[n];
    if (stream.seed != 0) result.push_back({network_->names[n], stream.seed, stream.draws});
  }
  return result;
}

void StreamAccess::check(const RandomPositions &positions) const {
  const RandomPositions own = this->positions();
  for (size_t i = 0; i < std::max(own.size(), positions.size()); ++i) {
    const std::string expected = i < own.size() ? "'" + own[i].node + "'" : "none",
                      found = i < positions.size() ? "'" + positions[i].node + "'" : "none";
    if (expected == found) continue;
    throw Error(Code::kName,
                text("random state: node ", i + 1, " that draws random numbers: expected ", expected, ", found ", found,
                     "; the state is of another network"),
                i < positions.size() ? positions[i].node : own[i].node);
  }
}

void StreamAccess::set(const RandomPositions &positions) const {
  finish();
  auto next = positions.begin();
  for (RandomStream &stream : network_->streams) {
    if (stream.seed == 0) continue;
    stream = {next->seed, next->draws};
    ++next;
  }
}

void put_random_state(std::string *to, const std::vector<RandomPositions> &devices) {
  put(to, uint32_t(devices.size()));
  for (const RandomPositions &positions : devices) {
    put(to, uint32_t(positions.size()));
    for (const RandomPosition &position : positions) {
      put_text(to, position.node);
      put(to, position.seed);
      put(to, position.draws);
    }
  }
}

std::vector<RandomPositions> read_random_state(ByteReader *reader) {
  std::vector<RandomPositions> devices;
  for (auto num_devices = reader->number<uint32_t>(); num_devices > 0; --num_devices) {
    RandomPositions &positions = devices.emplace_back();
    for (auto num_nodes = reader->number<uint32_t>(); num_nodes > 0; --num_nodes) {
      RandomPosition position;
      position.node = reader->counted_words();
      position.seed = reader->number<uint64_t>();
      position.draws = reader->number<uint64_t>();
      if (position.seed == 0) reader->fail("'" + position.node + "' has no seed");
      positions.push_back(std::move(position));
    }
  }
  return devices;
}

std::string random_state_bytes(const std::vector<RandomPositions> &devices) {
  std::string bytes(kMark, 8);
  put(&bytes, kVersion);
  put_random_state(&bytes, devices);
  return bytes;
}

std::vector<RandomPositions> random_state_of(const void *data, size_t bytes, const std::string &source) {
  ByteReader reader(data, bytes, source);
  if (bytes < 8 || std::memcmp(data, kMark, 8) != 0) reader.fail("this is not a random state");
  reader.words(8);
  const auto version = reader.number<uint32_t>();
  if (version != kVersion) reader.fail(text("expected version ", kVersion, ", found ", version));
  std::vector<RandomPositions> devices = read_random_state(&reader);
  if (reader.left() != 0) reader.fail(text(reader.left(), " bytes too many"));
  return devices;
}

}  // namespace cohort
