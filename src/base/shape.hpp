// SPDX-License-Identifier: Apache-2.0
// Shapes of arrays, complete or partly unknown. Used by every room.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <vector>

namespace cohort {

constexpr int kMaxAxes = 32;  // of any array, and of any shape that is inferred; COHORT_MAX_AXES to users

// A list of axis lengths. The rank and single lengths may be unknown (kUnknown = -1) during shape inference; an array's
// shape is always known. Length 0 is a real, empty axis here; src/api converts MXNet's "0 is unknown" to kUnknown where
// the contract asks for it (EXE-13, SYM-10).
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;

  Shape() = default;  // unknown rank
  Shape(std::initializer_list<int64_t> dims) : known_rank_(true), dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : known_rank_(true), dims_(std::move(dims)) {}
  template <typename It>
  Shape(It first, It last) : known_rank_(true), dims_(first, last) {}
  static Shape of_rank(int rank) { return Shape(std::vector<int64_t>(size_t(rank), kUnknown)); }

  bool rank_known() const { return known_rank_; }
  bool known() const;  // rank and every length
  int rank() const { return int(dims_.size()); }
  int64_t &operator[](int axis) { return dims_[size_t(axis)]; }
  int64_t operator[](int axis) const { return dims_[size_t(axis)]; }
  int64_t size() const;                    // number of elements; 1 for rank 0; requires a known shape
  int64_t size(int begin, int end) const;  // product of the lengths of axes begin..end-1
  const std::vector<int64_t> &dims() const { return dims_; }
  const int64_t *data() const { return dims_.data(); }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  bool operator==(const Shape &other) const { return known_rank_ == other.known_rank_ && dims_ == other.dims_; }
  bool operator!=(const Shape &other) const { return !(*this == other); }

  // Fills in what `other` knows. Returns false and changes nothing if the two contradict each other.
  bool merge(const Shape &other);

 private:
  bool known_rank_ = false;
  std::vector<int64_t> dims_;
};

// (2, 3); () rank 0; unknown lengths as ?; [?] unknown rank.
std::ostream &operator<<(std::ostream &out, const Shape &shape);

// Maps an axis in [-rank, rank) to [0, rank). Throws kInvalidArgument naming `what`.
int normalize_axis(int64_t axis, int rank, const char *what);

}  // namespace cohort
