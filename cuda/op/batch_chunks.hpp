// SPDX-License-Identifier: Apache-2.0
// Work on a batch in chunks, one after the other in the same scratch memory.
#pragma once

#include <algorithm>
#include <vector>

#include "cuda/op/matrix_product.hpp"

namespace cohort {

// Bytes gathered at a time: enough for large products, and little enough to be still in the L2 cache (40 MiB and more)
// when the product reads them.
constexpr int64_t kChunkBytes = 32 << 20;

inline int64_t cut(int64_t count, int64_t into) { return (count + into - 1) / into; }
inline int64_t round_up(int64_t count, int64_t to) { return cut(count, to) * to; }

// Divides the scratch memory of a step.
class Booking {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += round_up(bytes, 256);
    return at;
  }
  size_t bytes() const { return size_t(bytes_); }

 private:
  int64_t bytes_ = 0;
};

inline char *place_in(void *memory, int64_t at) { return static_cast<char *>(memory) + at; }

// `total` places or samples in chunks of at most `most`; all but the last are a multiple of `unit`.
struct BatchChunks {
  int64_t total, each;
  BatchChunks(int64_t of, int64_t most, int64_t unit) : total(of), each(of) {
    most = std::max<int64_t>(most, 1);
    if (total > most) each = round_up(cut(total, cut(total, most)), unit);
  }
  int64_t last() const { return total - (cut(total, each) - 1) * each; }
};

// The products of all chunks, of which the last may be shorter.
class ChunkProducts {
 public:
  template <typename Make>  // make(length of a chunk)
  void make(const BatchChunks &stretches, Booking *booking, const Make &make) {
    products_.push_back(make(stretches.each));
    if (stretches.last() != stretches.each) products_.push_back(make(stretches.last()));
    each_ = stretches.each;
    size_t most = 0;
    for (const MatrixProduct &product : products_) most = std::max(most, product.scratch_bytes());
    at_ = booking->take(int64_t(most));
  }
  void run(const Lane &lane, int64_t count, const void *a, const void *b, void *c, const void *bias,
           void *scratch) const {
    products_[count == each_ ? 0 : 1].run(lane, a, b, c, bias, place_in(scratch, at_));
  }

 private:
  std::vector<MatrixProduct> products_;
  int64_t each_ = 0, at_ = 0;
};

}  // namespace cohort
