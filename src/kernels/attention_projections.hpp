// SPDX-License-Identifier: Apache-2.0
// Where queries, keys and values lie in the projections of op/interleaved_attention.hpp, and copies between there and
// arrays of their own. For all backends (kernels/compute.hpp).
#pragma once

#include <vector>

#include "kernels/compute.hpp"
#include "op/interleaved_attention.hpp"

namespace cohort {
namespace {

// One part of the projections (length, count, parts, width), where count = batch * heads.
struct ProjectionPart {
  int64_t length, count, parts, width, part;

  ProjectionPart(const Shape &s, int64_t heads, int64_t parts_of_head, int64_t which)
      : length(s[0]), count(s[1] * heads), parts(parts_of_head), width(s[2] / (heads * parts)), part(which) {}
  int64_t area() const { return length * width; }
  int64_t size() const { return count * area(); }
  // Copies the part from the projections into (count, length, width); kBack: from there into the projections.
  template <typename Backend, typename C, bool kBack>
  void move(const Lane &lane, const C *from, C *to) const {
    Backend::parallel_for(
        lane, length, 1 + 16384 / (count * width + 1), [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            for (int64_t i = 0; i < count; ++i) {
              const int64_t interleaved = ((t * count + i) * parts + part) * width, together = (i * length + t) * width;
              copy_elements(from + (kBack ? together : interleaved), width, to + (kBack ? interleaved : together));
            }
          }
        });
  }
};

// Queries and keys, which are parts of one array or of two.
struct ScoreProjections {
  ScoreProjections(const InterleavedAttentionAttrs &a, const std::vector<TensorSpec> &inputs, size_t first)
      : joint(!a.own_queries),
        queries(inputs[first].shape, a.heads, joint ? 3 : 1, 0),
        keys(inputs[first + (joint ? 0 : 1)].shape, a.heads, joint ? 3 : 2, joint ? 1 : 0) {}
  const bool joint;
  const ProjectionPart queries, keys;
};

inline ProjectionPart values_of(const InterleavedAttentionAttrs &a, const Shape &s) {
  return ProjectionPart(s, a.heads, a.own_queries ? 2 : 3, a.own_queries ? 1 : 2);
}

}  // namespace
}  // namespace cohort
