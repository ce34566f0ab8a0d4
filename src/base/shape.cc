// SPDX-License-Identifier: Apache-2.0
#include "base/shape.hpp"

#include "base/error.hpp"

namespace cohort {

bool Shape::known() const {
  if (!known_rank_) return false;
  for (int64_t d : dims_) {
    if (d == kUnknown) return false;
  }
  return true;
}

int64_t Shape::size() const { return size(0, rank()); }

int64_t Shape::size(int begin, int end) const {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) product *= (*this)[axis];
  return product;
}

bool Shape::merge(const Shape &other) {
  if (!other.known_rank_) return true;
  if (!known_rank_) {
    *this = other;
    return true;
  }
  if (rank() != other.rank()) return false;
  for (int axis = 0; axis < rank(); ++axis) {
    const int64_t mine = (*this)[axis], theirs = other[axis];
    if (mine != kUnknown && theirs != kUnknown && mine != theirs) return false;
  }
  for (int axis = 0; axis < rank(); ++axis) {
    if ((*this)[axis] == kUnknown) (*this)[axis] = other[axis];
  }
  return true;
}

std::ostream &operator<<(std::ostream &out, const Shape &shape) {
  if (!shape.rank_known()) return out << "[?]";
  out << '(';
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out << ", ";
    if (shape[axis] == Shape::kUnknown) {
      out << '?';
    } else {
      out << shape[axis];
    }
  }
  if (shape.rank() == 1) out << ',';
  return out << ')';
}

int normalize_axis(int64_t axis, int rank, const char *what) {
  if (axis < -rank || axis >= rank) {
    const std::string expected = text(": expected ", -rank, " to ", rank - 1, ", found ", axis);
    throw Error(Code::kInvalidArgument, what + (rank > 0 ? expected : ": expected an array with axes, found a scalar"),
                what);
  }
  return int(axis < 0 ? axis + rank : axis);
}

}  // namespace cohort
