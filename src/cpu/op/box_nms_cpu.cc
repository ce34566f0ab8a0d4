// SPDX-License-Identifier: Apache-2.0
// Samples of a batch are shared out.
#include "op/box_nms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/box_suppression.hpp"
#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/ranked.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/box_math.hpp"

namespace cohort {
namespace {

template <typename C>
class BoxNms {
 public:
  explicit BoxNms(const StepSpec &spec) : a_(spec.attrs_as<BoxNmsAttrs>()), threads_(spec.num_threads) {
    const Shape &data = spec.inputs[0].shape;
    batch_ = data.size(0, data.rank() - 2);
    boxes_ = data[data.rank() - 2];
    width_ = data[data.rank() - 1];
    if (double(boxes_) > 1 / double(std::numeric_limits<C>::epsilon())) {  // the second output would not be exact
      throw Error(Code::kUnsupported, text("data: expected fewer boxes, found ", data), "data");
    }
  }
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_ranges(lane, batch_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = n * boxes_ * width_;
        one_sample(in[0] + at, out[0] + at, out[1] ? out[1] + n * boxes_ : nullptr, memory);
      }
    });
  }

 private:
  int64_t per_thread() const { return whole_lines(ranked_elements<C>(boxes_) + SortedBoxes<C>::kArrays * boxes_); }
  bool has_classes() const { return a_.id_index >= 0; }

  void one_sample(const C *data, C *out, C *record, C *memory) const {
    if (a_.topk == 0) {
      std::copy_n(data, boxes_ * width_, out);
      for (int64_t i = 0; record && i < boxes_; ++i) record[i] = C(i);
      return;
    }
    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    const SortedBoxes<C> sorted(memory + ranked_elements<C>(boxes_), boxes_);
    int64_t count = 0;
    for (int64_t i = 0; i < boxes_; ++i) {
      const C *const row = data + i * width_;
      if (!(row[a_.score_index] > C(a_.valid_thresh))) continue;
      if (has_classes() && row[a_.id_index] == C(a_.background_id)) continue;
      order[count++] = {row[a_.score_index], i};
    }
    const int64_t kept = a_.topk < 0 ? count : std::min<int64_t>(a_.topk, count);
    rank<false>(order, count, kept);
    for (int64_t i = 0; i < kept; ++i) {
      const C *const row = data + order[i].index * width_, *const four = row + a_.coord_start;
      const Box<C> box = box_of(four, a_.in_center);
      sorted.left[i] = box.left;
      sorted.top[i] = box.top;
      sorted.right[i] = box.right;
      sorted.bottom[i] = box.bottom;
      sorted.area[i] = box_area(four, a_.in_center);
      sorted.group[i] = has_classes() && !a_.force_suppress ? std::trunc(row[a_.id_index]) : C(0);
    }
    suppress(sorted, kept, kept, C(0), std::nextafter(C(a_.overlap_thresh), std::numeric_limits<C>::infinity()));
    int64_t found = 0;
    for (int64_t i = 0; i < kept; ++i) {
      if (sorted.remains[i] == 0) continue;
      C *const row = out + found * width_;
      std::copy_n(data + order[i].index * width_, width_, row);
      if (a_.in_center != a_.out_center) convert(row + a_.coord_start);
      if (record) record[found] = C(order[i].index);
      ++found;
    }
    std::fill(out + found * width_, out + boxes_ * width_, C(-1));
    if (record) std::fill(record + found, record + boxes_, C(-1));
  }

  void convert(C *four) const {
    if (four[0] < 0) return;
    const Box<C> box = box_of(four, a_.in_center);
    const C center[4] = {(four[0] + four[2]) / 2, (four[1] + four[3]) / 2, four[2] - four[0], four[3] - four[1]};
    const C corner[4] = {box.left, box.top, box.right, box.bottom};
    std::copy_n(a_.out_center ? center : corner, 4, four);
  }

  const BoxNmsAttrs a_;
  const int64_t threads_;
  int64_t batch_, boxes_, width_;
};

// Each head gradient goes to the box that the row is.
template <typename C>
class BoxNmsBackward {
 public:
  explicit BoxNmsBackward(const StepSpec &spec) {
    const Shape &data = spec.outputs[0].shape;
    batch_ = data.size(0, data.rank() - 2);
    boxes_ = data[data.rank() - 2];
    width_ = data[data.rank() - 1];
  }
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    std::fill_n(out[0], batch_ * boxes_ * width_, C(0));
    parallel_for(lane, batch_ * boxes_, 1 + kCheapGrain / width_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = int64_t(in[1][i]);
        if (from >= 0) std::copy_n(in[0] + i * width_, width_, out[0] + (i / boxes_ * boxes_ + from) * width_);
      }
    });
  }

 private:
  int64_t batch_, boxes_, width_;
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
COHORT_KERNEL_BY(cpu, _backward__contrib_box_nms, make_compute<BoxNmsBackward>);
COHORT_KERNEL_BY(cpu, _contrib_bipartite_matching, make_compute<BipartiteMatching>);

}  // namespace
}  // namespace cohort
