// SPDX-License-Identifier: Apache-2.0
// Maps non-overlapping ranges [begin, end) of numbers, such as addresses, to values. Used by ndarray and executor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

namespace cohort {

template <typename T>
class RangeMap {
 public:
  // Assigns a value to the range, replacing any values of its parts.
  void set(size_t begin, size_t end, T value) {
    if (begin >= end) return;
    split_at(begin);
    split_at(end);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
    pieces_.emplace(begin, Piece{end, std::move(value)});
  }
  // Calls fn with the value of each range that overlaps [begin, end).
  template <typename Fn>
  void for_each_in(size_t begin, size_t end, Fn &&fn) const {
    auto piece = pieces_.upper_bound(begin);
    if (piece != pieces_.begin() && std::prev(piece)->second.end > begin) --piece;
    for (; piece != pieces_.end() && piece->first < end; ++piece) fn(piece->second.value);
  }
  // Calls fn on every value in exactly [begin, end). Gaps are first filled with T(); ranges that cross an end are
  // split.
  template <typename Fn>
  void update(size_t begin, size_t end, Fn &&fn) {
    if (begin >= end) return;
    split_at(begin);
    split_at(end);
    for (size_t at = begin; at < end;) {
      const auto next = pieces_.lower_bound(at);
      const size_t until = next == pieces_.end() ? end : std::min(end, next->first);
      if (until > at) pieces_.emplace(at, Piece{until, T()});
      Piece &piece = pieces_.at(at);
      fn(piece.value);
      at = piece.end;
    }
  }

 private:
  struct Piece {
    size_t end;
    T value;
  };
  // Splits the range that contains `at`, if any, so that it ends there.
  void split_at(size_t at) {
    const auto after = pieces_.lower_bound(at);
    if (after == pieces_.begin()) return;
    Piece &piece = std::prev(after)->second;
    if (piece.end <= at) return;
    pieces_.emplace_hint(after, at, piece);
    piece.end = at;
  }

  std::map<size_t, Piece> pieces_;  // by begin
};

}  // namespace cohort
