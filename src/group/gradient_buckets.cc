// SPDX-License-Identifier: Apache-2.0
#include "group/gradient_buckets.hpp"

#include <algorithm>
#include <unordered_map>

namespace cohort {
namespace {

// Below this one bucket is enough: reporting several costs more than starting early gains.
constexpr size_t kSmallModelBytes = 256 << 10;
constexpr size_t kLeastBucketBytes = 128 << 10, kMostBucketBytes = 4 << 20;

// FNV-1a with 64 bits. A number is hashed as eight bytes, the lowest first.
class Hash {
 public:
  void add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(uint8_t(number >> shift));
  }
  void add(const std::string &name) {
    add(uint64_t(name.size()));
    for (char c : name) add_byte(uint8_t(c));
  }
  uint64_t value() const { return value_; }

 private:
  void add_byte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  uint64_t value_ = 0xcbf29ce484222325u;
};

uint64_t hash_of(const ExchangeParams &params, const std::vector<int> &param_ends) {
  Hash hash;
  hash.add(uint64_t(params.size()));
  for (const ExchangeParam &param : params) {
    const NDArray &grad = param.grads[0];
    hash.add(param.name);
    hash.add(uint64_t(grad.dtype()));
    hash.add(uint64_t(grad.shape().rank()));
    for (int axis = 0; axis < grad.shape().rank(); ++axis) hash.add(uint64_t(grad.shape()[axis]));
  }
  for (int end : param_ends) hash.add(uint64_t(end));
  return hash.value();
}

}  // namespace

GradientBuckets choose_buckets(const ExchangeParams &params, int num_gradients, size_t bucket_bytes) {
  size_t total = 0;
  for (const ExchangeParam &param : params) total += param.grads[0].bytes();
  if (bucket_bytes == 0) {
    bucket_bytes =
        total <= kSmallModelBytes ? total + 1 : std::min(std::max(total / 8, kLeastBucketBytes), kMostBucketBytes);
  }
  GradientBuckets buckets;
  size_t bytes = 0;
  for (size_t p = 0; p < params.size(); ++p) {
    bytes += params[p].grads[0].bytes();
    if (bytes < bucket_bytes || p + 1 == params.size()) continue;
    buckets.ends.push_back(params[p].position + 1);
    buckets.param_ends.push_back(int(p) + 1);
    bytes = 0;
  }
  buckets.ends.push_back(num_gradients);
  buckets.param_ends.push_back(int(params.size()));
  buckets.hash = hash_of(params, buckets.param_ends);
  return buckets;
}

std::vector<int> in_network_order(const Graph &graph, std::vector<int> arguments) {
  std::vector<size_t> first(graph.nodes.size(), graph.nodes.size());  // per node: the first node that reads it
  for (size_t n = graph.nodes.size(); n-- > 0;)
    for (const Graph::Input &input : graph.inputs[n])
      if (const int variable = graph.variable_of(input); variable >= 0) first[size_t(variable)] = n;
  const auto reader = [&](int argument) { return first[size_t(graph.arguments[size_t(argument)])]; };
  std::sort(arguments.begin(), arguments.end(),
            [&](int a, int b) { return reader(a) != reader(b) ? reader(a) > reader(b) : a < b; });
  return arguments;
}

std::vector<int> ends_in_order(const std::vector<int> &ends, const std::vector<int> &order,
                               const std::vector<int> &own) {
  if (own == order) return ends;
  std::unordered_map<int, int> ends_own;  // per argument: its position in `own`, plus one
  for (size_t i = 0; i < own.size(); ++i) ends_own[own[i]] = int(i) + 1;
  std::vector<int> result;
  int last = 0;
  size_t at = 0;
  for (const int end : ends) {
    for (; at < size_t(end); ++at) last = std::max(last, ends_own.at(order[at]));
    result.push_back(last);
  }
  return result;
}

}  // namespace cohort
