// SPDX-License-Identifier: Apache-2.0
// The random streams of a network on one device, and their positions, which are saved so that training draws the same
// numbers after a load. Executors own streams; group and optimizer read and set their positions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace cohort {

class ByteReader;

// One stream for each node of a network, for all its plans and shapes.
struct NodeStreams {
  std::vector<std::string> names;     // of the nodes
  std::vector<RandomStream> streams;  // seed 0: the node draws nothing
  RandomStream none;                  // of the cut edges of a part
};

// The streams of the nodes of a network, or of a part of it.
struct RandomStreams {
  std::shared_ptr<NodeStreams> network;
  std::vector<size_t> of_node;  // index in the network of each node of the part; SIZE_MAX: a cut edge

  RandomStream &at(size_t node) const {
    return of_node[node] == SIZE_MAX ? network->none : network->streams[of_node[node]];
  }
};

// The next draw of a node. Streams are counter-based: these two numbers are their whole state.
struct RandomPosition {
  std::string node;
  uint64_t seed = 0, draws = 0;
};
using RandomPositions = std::vector<RandomPosition>;  // of the random nodes of one device, in the order of the network

// Reads and sets positions. Both wait for the work that draws. The queues may have ended: then all work is done.
class StreamAccess {
 public:
  StreamAccess(std::shared_ptr<NodeStreams> network, std::vector<std::weak_ptr<Queue>> queues)
      : network_(std::move(network)), queues_(std::move(queues)) {}
  RandomPositions positions() const;
  void check(const RandomPositions &positions) const;  // kName: of another network
  void set(const RandomPositions &positions) const;    // after check()

 private:
  void finish() const;

  std::shared_ptr<NodeStreams> network_;
  std::vector<std::weak_ptr<Queue>> queues_;
};

// Positions of several devices as bytes. Reading throws kFormat.
void put_random_state(std::string *to, const std::vector<RandomPositions> &devices);
std::vector<RandomPositions> read_random_state(ByteReader *reader);
// The same in a block of their own, which begins with a mark.
std::string random_state_bytes(const std::vector<RandomPositions> &devices);
std::vector<RandomPositions> random_state_of(const void *data, size_t bytes, const std::string &source);

}  // namespace cohort
