// SPDX-License-Identifier: Apache-2.0
// box_nms and bipartite_matching. Threads share out the samples of a batch.
#include "kernels/box_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/box_suppression.hpp"
#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/partial_sort.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/box_nms_kernels.hpp"

namespace cohort {
namespace {

template <typename C>
class BoxNms {
 public:
  explicit BoxNms(const StepSpec &spec)
      : a_(spec.attrs_as<BoxNmsAttrs>()), e_(spec.inputs[0].shape), threads_(spec.num_threads) {
    expect_countable<C>(e_);
  }
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_ranges(lane, e_.batch, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = n * e_.boxes * e_.width;
        one_sample(in[0] + at, out[0] + at, out[1] ? out[1] + n * e_.boxes : nullptr, memory);
      }
    });
  }

 private:
  int64_t per_thread() const { return whole_lines(ranked_elements<C>(e_.boxes) + SortedBoxes<C>::kArrays * e_.boxes); }

  void one_sample(const C *data, C *out, C *record, C *memory) const {
    if (a_.topk == 0) {
      std::copy_n(data, e_.boxes * e_.width, out);
      for (int64_t i = 0; record && i < e_.boxes; ++i) record[i] = C(i);
      return;
    }
    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    const SortedBoxes<C> sorted(memory + ranked_elements<C>(e_.boxes), e_.boxes);
    const BoxRows<C> rows{a_};
    int64_t count = 0;
    for (int64_t i = 0; i < e_.boxes; ++i) {
      const C *const row = data + i * e_.width;
      if (rows.counts(row)) order[count++] = {row[a_.score_index], i};
    }
    const int64_t kept = a_.topk < 0 ? count : std::min<int64_t>(a_.topk, count);
    rank<false>(order, count, kept);
    for (int64_t i = 0; i < kept; ++i) rows.sort_in(data + order[i].index * e_.width, sorted, i);
    suppress(sorted, kept, kept, C(0), std::nextafter(C(a_.overlap_thresh), std::numeric_limits<C>::infinity()));
    int64_t found = 0;
    for (int64_t i = 0; i < kept; ++i) {
      if (sorted.remains[i] == 0) continue;
      rows.write(data + order[i].index * e_.width, e_.width, out + found * e_.width);
      if (record) record[found] = C(order[i].index);
      ++found;
    }
    std::fill(out + found * e_.width, out + e_.boxes * e_.width, C(-1));
    if (record) std::fill(record + found, record + e_.boxes, C(-1));
  }

  const BoxNmsAttrs a_;
  const BoxNmsExtent e_;
  const int64_t threads_;
};

template <typename C>
class BipartiteMatching {
 public:
  explicit BipartiteMatching(const StepSpec &spec)
      : a_(spec.attrs_as<BipartiteMatchingAttrs>()), threads_(spec.num_threads) {
    const Shape &data = spec.inputs[0].shape;
    batch_ = data.size(0, data.rank() - 2);
    rows_ = data[data.rank() - 2];
    columns_ = data[data.rank() - 1];
  }
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_ranges(lane, batch_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) match(in[0] + n * rows_ * columns_, out, n, memory);
    });
  }

 private:
  int64_t per_thread() const { return whole_lines(ranked_elements<C>(rows_ * columns_) + rows_ + columns_); }

  void match(const C *scores, C *const *out, int64_t n, C *memory) const {
    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    C *const column_of = memory + ranked_elements<C>(rows_ * columns_), *const row_of = column_of + rows_;
    std::fill_n(column_of, rows_ + columns_, C(-1));
    int64_t count = 0;
    for (int64_t i = 0; i < rows_ * columns_; ++i) {
      const bool good = a_.is_ascend ? scores[i] < C(a_.threshold) : scores[i] > C(a_.threshold);
      if (good) order[count++] = {scores[i], i};
    }
    rank(a_.is_ascend, order, count, count);
    for (int64_t i = 0, found = 0; i < count && !(a_.topk > 0 && found > a_.topk); ++i) {
      const int64_t row = order[i].index / columns_, column = order[i].index % columns_;
      if (column_of[row] != -1 || row_of[column] != -1) continue;
      column_of[row] = C(column);
      row_of[column] = C(row);
      ++found;
    }
    if (out[0]) std::copy_n(column_of, rows_, out[0] + n * rows_);
    if (out[1]) std::copy_n(row_of, columns_, out[1] + n * columns_);
  }

  const BipartiteMatchingAttrs a_;
  const int64_t threads_;
  int64_t batch_, rows_, columns_;
};

COHORT_KERNEL_BY(cpu, _contrib_box_nms, make_compute<BoxNms>);
COHORT_KERNEL_BY(cpu, _contrib_bipartite_matching, make_compute<BipartiteMatching>);

const bool registered = [] {
  register_box_nms_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
